"""Further features of samples whose target is known already."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from featstream.sources.archives import PathLike
from featstream.sources.files import (
    READERS,
    TARGET_NAMES,
    Dataset,
    open_dataset,
    open_svmlight,
    open_table,
    read_table,
)
from featstream.sources.frames import FrameSource

__all__ = ["is_svmlight", "open_features"]


def open_features(path: PathLike, target_names: Collection[str] = ()) -> Dataset:
    r"""Open a data set that need not have a target.

    Parameters
    ----------
    path : str or path-like
        As for `open_dataset`.
    target_names : collection of str
        Columns of a table that are the target if they are there, besides ``y``,
        ``target``, ``class`` and ``label``. Any other column is a feature: the last
        one is not taken for a target.

    Returns
    -------
    Dataset
        The features; the target, if there is one.

    Examples
    --------
    >>> import tempfile
    >>> from featstream.sources import open_features
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     print("a,b\n1,2.5\n3,4.5", file=file, flush=True)
    ...     open_features(file.name).names
    ['a', 'b']
    """
    if READERS.get(_suffix(path)) is not open_table:
        return open_dataset(path)
    table = read_table(path)
    for name in table.column_names:
        if name in target_names or name.lower() in TARGET_NAMES:
            return open_table(path, name)
    source = FrameSource(table)
    return Dataset(source, None, source.names)


def is_svmlight(path: PathLike) -> bool:
    """Whether a file is svmlight text, by its suffix.

    >>> is_svmlight("news20.svm.gz"), is_svmlight("news20.csv")
    (True, False)
    """
    return READERS.get(_suffix(path)) is open_svmlight


def _suffix(path: PathLike) -> str:
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    if suffixes[-1:] in ([".gz"], [".xz"], [".bz2"]):
        suffixes.pop()
    return suffixes[-1] if suffixes else ""
