"""Data sets on disk. Nothing here reads a pickle."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from featstream.errors import DataError, MissingExtraError, ParameterError, printable
from featstream.protocols import Source
from featstream.sources.archives import (
    PathLike,
    existing,
    load_numpy,
    read_sparse,
    reading,
)
from featstream.sources.frames import FrameSource
from featstream.sources.memory import ArraySource, SparseSource
from featstream.sources.store import open_store
from featstream.sources.svmlight import read_svmlight

__all__ = [
    "Dataset",
    "open_dataset",
    "open_npy",
    "open_npz",
    "open_svmlight",
    "open_table",
]

TARGET_NAMES = ("y", "target", "class", "label")


@dataclass(frozen=True, slots=True)
class Dataset:
    """Features, and the target where the file holds one.

    Attributes
    ----------
    source : Source
        The features.
    y : ndarray of shape (n_samples,) or None
        The target.
    names : sequence of str or None
        The names of the features, where the file holds them.

    Examples
    --------
    >>> import numpy as np
    >>> from featstream.sources import ArraySource, Dataset
    >>> Dataset(ArraySource(np.eye(2)), np.array([0, 1]))
    Dataset(source=ArraySource(2 samples × 2 features, float64),
            y=array([0, 1]), names=None)
    """

    source: Source
    y: NDArray[Any] | None = None
    names: Sequence[str] | None = None


def open_dataset(path: PathLike, target: str | None = None) -> Dataset:
    """Open a data set, whose kind the file's suffix tells.

    Parameters
    ----------
    path : str or path-like
        ``.npy``, ``.npz``, ``.csv``, ``.parquet``, ``.cols`` (a column store), or
        svmlight (``.svm``, ``.svmlight``, ``.libsvm``, ``.txt``); text files may
        end in ``.gz``, ``.xz`` or ``.bz2``. Or a folder of such (`open_folder`).
    target : str, default=None
        Where the target is: the array in an ``.npz`` (by default ``y`` or
        ``y_train``), the column of a table (by default the one called ``y``,
        ``target``, ``class`` or ``label``, otherwise the last), for an ``.npy``
        the path of a second ``.npy``. An svmlight file holds its own.

    Returns
    -------
    Dataset
        The features, the target if there is one, and names if there are any.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from featstream.sources import open_dataset
    >>> with tempfile.NamedTemporaryFile(suffix=".npz") as file:
    ...     np.savez(file.name, X=np.eye(3), y=[0, 1, 1])
    ...     open_dataset(file.name).y
    array([0, 1, 1])
    """
    if os.path.isdir(path) and Path(path).suffix != ".cols":
        from featstream.sources.chain import open_folder

        return open_folder(path, target)
    path = existing(path)
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes[-1:] in ([".gz"], [".xz"], [".bz2"]):
        suffixes.pop()
    suffix = suffixes[-1] if suffixes else ""
    if suffix not in READERS:
        raise ParameterError(
            f"Cannot tell what kind of file {printable(path)} is from its suffix "
            f"{printable(suffix)}. Known: {', '.join(READERS)}; text also as .gz, .xz "
            "or .bz2."
        )
    return READERS[suffix](path, target)


def open_npy(path: PathLike, target: PathLike | None = None) -> Dataset:
    """Open an array saved by `numpy.save`, mapped into memory and not read.

    Parameters
    ----------
    path : str or path-like
        A two-dimensional array.
    target : str or path-like, default=None
        A one-dimensional array in a file of its own.

    Returns
    -------
    Dataset
        The features, and the target if its file was given.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from featstream.sources import open_npy
    >>> with tempfile.NamedTemporaryFile(suffix=".npy") as file:
    ...     np.save(file.name, np.eye(3, dtype=np.int8))
    ...     open_npy(file.name).source
    ArraySource(3 samples × 3 features, int8)
    """
    path = existing(path)
    with reading(path):
        source = ArraySource(load_numpy(path, b"\x93NUMPY", mmap_mode="r"))
    if target is None:
        return Dataset(source)
    target = existing(target)
    with reading(target):
        return Dataset(source, load_numpy(target, b"\x93NUMPY"))


def open_npz(path: PathLike, target: str | None = None) -> Dataset:
    """Open an archive of arrays saved by `numpy.savez` or `scipy.sparse.save_npz`.

    The features are the array ``X``, or else ``X_train``: dense, or sparse as
    ``X_data``, ``X_indices``, ``X_indptr``, ``X_shape`` and ``X_format``. An
    archive of scipy's has the same five without the prefix. Names are in
    ``names`` or ``feature_names``.

    Parameters
    ----------
    path : str or path-like
        The archive.
    target : str, default=None
        The array that is the target; by default ``y``, or ``y_train`` if the
        features are ``X_train``.

    Returns
    -------
    Dataset
        The features, the target if there is one, and names if there are any.

    Examples
    --------
    >>> import tempfile
    >>> from scipy import sparse
    >>> from featstream.sources import open_npz
    >>> with tempfile.NamedTemporaryFile(suffix=".npz") as file:
    ...     sparse.save_npz(file.name, sparse.eye_array(3, format="csc"))
    ...     open_npz(file.name).source
    SparseSource(3 samples × 3 features, 3 stored float64)
    """
    path = existing(path)
    with reading(path), load_numpy(path, b"PK") as arrays:
        prefix = _feature_prefix(arrays)
        y_name = target or ("y_train" if prefix == "X_train" else "y")
        if target is not None and target not in arrays:
            raise DataError(
                f"it has no array {printable(target)} for a target. "
                f"It holds: {', '.join(arrays)}."
            )
        y = arrays.get(y_name)
        name_key = next((k for k in ("names", "feature_names") if k in arrays), None)
        names = None if name_key is None else arrays[name_key].tolist()
        source: ArraySource | SparseSource
        if prefix in arrays:
            source = ArraySource(arrays[prefix], names)
        else:
            source = SparseSource(read_sparse(arrays, prefix), names)
    return Dataset(source, y, source.names)


def _feature_prefix(arrays: Mapping[str, Any]) -> str:
    for prefix in ("X", "X_train"):
        if prefix in arrays or f"{prefix}_format" in arrays:
            return prefix
    if "format" in arrays:
        return ""
    raise DataError(
        "it has no features: neither an array X or X_train, nor a sparse matrix "
        "(X_data, X_indices, X_indptr, X_shape, X_format). It holds: "
        f"{', '.join(arrays) or 'nothing'}."
    )


def open_table(path: PathLike, target: str | None = None) -> Dataset:
    r"""Open a CSV or parquet file; needs pyarrow (``featstream[frames]``).

    Parameters
    ----------
    path : str or path-like
        A table with named columns.
    target : str, default=None
        The column that is the target; by default the one called ``y``,
        ``target``, ``class`` or ``label``, otherwise the last.

    Returns
    -------
    Dataset
        The other columns, the target, and the names.

    Examples
    --------
    >>> import tempfile
    >>> from featstream.sources import open_table
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     print("a,b,class\n1,2.5,yes\n3,4.5,no", file=file, flush=True)
    ...     data = open_table(file.name)
    >>> data.names, data.y.tolist()
    (['a', 'b'], ['yes', 'no'])
    """
    path = existing(path)
    table = read_table(path)
    with reading(path):
        names = table.column_names
        if target is None:
            likely = [name for name in names if name.lower() in TARGET_NAMES]
            target = (likely or names[-1:] or [""])[0]
        if target not in names:
            raise DataError(
                f"it has no column {printable(target)} for a target. "
                f"Its columns are: {_shortened(names)}."
            )
        source = FrameSource(table.drop_columns([target]))
    return Dataset(source, table.column(target).to_numpy(), source.names)


def read_table(path: PathLike) -> Any:
    """The table in a CSV or parquet file, as pyarrow's."""
    path = existing(path)
    if find_spec("pyarrow") is None:
        raise MissingExtraError(
            f"Reading {path} needs pyarrow. Install it: pip install featstream[frames]"
        )
    with reading(path):
        if path.suffix.lower() == ".parquet":
            import pyarrow.parquet

            return pyarrow.parquet.read_table(path)
        import pyarrow.csv

        return pyarrow.csv.read_csv(path)


def open_svmlight(path: PathLike, target: str | None = None) -> Dataset:
    r"""Open a text file in the format of svmlight and libsvm.

    Parameters
    ----------
    path : str or path-like
        Plain, or compressed with gzip, xz or bzip2.
    target : None
        Each line begins with the target, so there is nothing to choose.

    Returns
    -------
    Dataset
        Sparse features, and the target.

    Examples
    --------
    >>> import tempfile
    >>> from featstream.sources import open_svmlight
    >>> with tempfile.NamedTemporaryFile("w", suffix=".svm") as file:
    ...     print("1 1:0.5 3:2\n-1 2:1", file=file, flush=True)
    ...     open_svmlight(file.name)
    Dataset(source=SparseSource(2 samples × 3 features, 3 stored float64),
            y=array([ 1., -1.]), names=None)
    """
    path = existing(path)
    if target is not None:
        raise ParameterError(
            f"An svmlight file holds its own target. Got target={target!r} for {path}."
        )
    X, y = read_svmlight(path)
    return Dataset(SparseSource(X), y)


def open_cols(path: PathLike, target: str | None = None) -> Dataset:
    """Open a column store; see `featstream.sources.open_store`."""
    if target is not None:
        raise ParameterError(
            f"A column store holds its own target. Got target={target!r} for {path}."
        )
    store = open_store(path)
    return Dataset(store, store.y, store.names)


READERS: dict[str, Callable[[PathLike, str | None], Dataset]] = {
    ".cols": open_cols,
    ".npy": open_npy,
    ".npz": open_npz,
    ".csv": open_table,
    ".parquet": open_table,
    **dict.fromkeys((".svm", ".svmlight", ".libsvm", ".txt"), open_svmlight),
}


def _shortened(names: list[str], most: int = 20) -> str:
    shown = ", ".join(printable(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most:,} more"
