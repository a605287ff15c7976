"""Rows of svmlight (libsvm) text: ``label [qid:n] index:value ... [# comment]``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from numpy.typing import NDArray
from scipy.sparse import csr_array

from featstream.errors import DataError
from featstream.sources._svmlight_rows import (
    PathLike,
    Reader,
    RowSlice,
    ZeroBased,
    join_rows,
)
from featstream.sources.text_file import MAX_BYTES

__all__ = ["RowSlice", "iter_svmlight", "read_svmlight"]


def read_svmlight(
    path: PathLike,
    *,
    n_jobs: int | None = None,
    n_features: int | None = None,
    zero_based: ZeroBased = "auto",
    max_bytes: int = MAX_BYTES,
) -> tuple[csr_array, NDArray[Any]]:
    r"""Read a svmlight file into memory.

    Parameters
    ----------
    path : str or path
        Plain text, or text compressed with gzip, bzip2 or xz.
    n_jobs : int, optional
        Threads; by default one a core. The result does not depend on it.
    n_features : int, optional
        Number of columns; by default as many as the greatest index asks for.
    zero_based : bool or "auto", default="auto"
        Whether the first column has the index 0. "auto" takes the file as
        zero-based if the index 0 occurs in it.
    max_bytes : int, default=4 GiB
        Most text that a compressed file may unfold to.

    Returns
    -------
    X : csr_array of float64 of shape (n_samples, n_features)
        The matrix; zeros that are written out are stored.
    y : ndarray of shape (n_samples,)
        Labels: float64 if they are numbers, str if they are words.

    Raises
    ------
    DataError
        If the text is malformed; the message names the line.

    Notes
    -----
    Numbers are rounded as ``float`` rounds. A last line without a newline is
    read like any other. ``qid:`` is checked and left out. ``nan`` and ``inf`` are
    refused, and so are several labels in a row. A plain file is mapped into
    memory: nobody may cut it short or write to it while it is read.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "small.svm"
    >>> _ = path.write_text("+1 1:0.5 3:2 # first\n-1 2:25e-2\n")
    >>> X, y = read_svmlight(path)
    >>> X.toarray()
    array([[0.5 , 0.  , 2.  ],
           [0.  , 0.25, 0.  ]])
    >>> y
    array([ 1., -1.])
    """
    with Reader(path, n_jobs, zero_based, max_bytes) as reader:
        if reader.file.is_compressed:
            rows = join_rows([rows for _, rows in reader.slices()], None)
        else:
            rows = reader.whole()
    found = rows.highest + 1
    if rows.lowest < 0:
        rows.indices[:] += 1
        found += 1
    if n_features is None:
        n_features = found
    elif found > n_features:
        raise DataError(
            f"{reader.file.name} has {found} columns but n_features={n_features}. "
            "Pass n_features=None to take them all."
        )
    shape = (rows.y.size, n_features)
    X = csr_array((rows.values, rows.indices, rows.indptr), shape=shape)
    X.has_canonical_format = True
    return X, rows.y


def iter_svmlight(
    path: PathLike,
    *,
    n_jobs: int | None = None,
    zero_based: ZeroBased = "auto",
    max_bytes: int | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Iterator[RowSlice]:
    r"""Read a svmlight file a few megabytes at a time.

    Parameters
    ----------
    path, n_jobs, zero_based
        As for `read_svmlight`.
    max_bytes : int, optional
        Most text that a compressed file may unfold to; by default 200 times the
        size of the file, since the text is never held.
    progress : callable, optional
        Called after each slice with the bytes read and the bytes in all.

    Yields
    ------
    rows : RowSlice
        Slices in the order of the file. With ``zero_based="auto"`` only the last
        one tells: the file is zero-based if some slice has ``lowest == -1``.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "small.svm"
    >>> _ = path.write_text("spam 1:0.5 3:2\nham 2:1\n")
    >>> for rows in iter_svmlight(path):
    ...     print(rows.y, rows.indices, rows.values)
    ['spam' 'ham'] [0 2 1] [0.5 2.  1. ]
    """
    with Reader(path, n_jobs, zero_based, max_bytes) as reader:
        for stop, rows in reader.slices():
            yield rows
            if progress is not None:
                progress(stop, reader.file.size)
