"""A target in a file of its own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from featstream.errors import DataError, ParameterError, printable
from featstream.sources._npy import NPY, load_array
from featstream.sources.dataset import (
    PathLike,
    existing,
    find_target,
    format_suffix,
    reading,
    shortened,
)
from featstream.sources.tables import Table, find_table

__all__ = ["is_target_file", "read_target", "split_column"]


def read_target(target: PathLike, samples: Sequence[str] | None = None) -> NDArray[Any]:
    r"""Read a target from a file of its own.

    Parameters
    ----------
    target : str or path-like
        The file, or ``FILE:COLUMN``: ``.npy``; ``.txt`` with a label a line; ``.csv``
        or ``.parquet``, with the column, one called ``y``, ``target``, ``class`` or
        ``label``, or just one besides the names of the samples.
    samples : sequence of str, default=None
        The names of the samples, if they have any. A table of several columns then
        begins with these names, in any order, and is put in the order of the
        features' values.

    Returns
    -------
    ndarray of shape (n_samples,)
        The labels.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     print("id,status\ns2,ill\ns1,well", file=file, flush=True)
    ...     read_target(file.name, ["s1", "s2"])
    array(['well', 'ill'], dtype=object)
    """
    path, column = split_column(target)
    suffix = format_suffix(path)
    if suffix not in (".npy", ".txt", ".csv", ".parquet"):
        raise ParameterError(
            f"A target is read from .npy, .txt, .csv or .parquet. Got {path}."
        )
    if suffix in (".npy", ".txt") and column is not None:
        raise ParameterError(f"{path} has no columns. Got the column {column!r}.")
    if suffix in (".csv", ".parquet"):
        table = find_table(path)
        with reading(path):
            return _read_column(table, column, samples)
    with reading(path):
        if suffix == ".npy":
            return np.asarray(load_array(path, NPY))
        lines = path.read_text("utf-8").splitlines()
        return _as_numbers([line.strip() for line in lines])


def is_target_file(target: str) -> bool:
    """Whether a target is ``FILE`` or ``FILE:COLUMN``, and the file is there."""
    name = target.rpartition(":")[0]
    return Path(target).is_file() or (name != "" and Path(name).is_file())


def split_column(target: PathLike) -> tuple[Path, str | None]:
    """The file that a target is in, and the column: ``FILE`` or ``FILE:COLUMN``."""
    name, _, column = str(target).rpartition(":")
    if name and not Path(target).exists() and Path(name).is_file():
        return Path(name), column
    return existing(target), None


def _read_column(
    table: Table, column: str | None, samples: Sequence[str] | None
) -> NDArray[Any]:
    names = table.names
    is_keyed = samples is not None and len(names) > 1
    choice = names[1:] if is_keyed else names
    if column is None:
        column = choice[0] if len(choice) == 1 else find_target(choice)
    if column is None:
        raise DataError(
            f"which of its columns is the target? Write FILE:COLUMN, with one of: "
            f"{shortened(choice)}."
        )
    if column not in choice:
        raise DataError(
            f"it has no column {printable(column)} for a target. Its columns are: "
            f"{shortened(choice)}."
        )
    values = table.read([names.index(column)]).column(0).to_numpy()
    if not is_keyed or samples is None:
        return np.asarray(values)
    keys = [str(key) for key in table.read([0]).column(0).to_pylist()]
    place = {key: i for i, key in enumerate(keys)}
    if len(place) < len(keys):
        twice = next(key for i, key in enumerate(keys) if place[key] != i)
        raise DataError(f"its first column names the sample {printable(twice)} twice.")
    lost = [name for name in samples if name not in place]
    if lost:
        raise DataError(
            f"its first column {printable(names[0])} should name the samples, and "
            f"{len(lost):,} are not there: {shortened(lost, 5)}. A file of one column "
            "is taken in the order of the samples."
        )
    return np.asarray(values)[[place[name] for name in samples]]


def _as_numbers(words: list[str]) -> NDArray[Any]:
    """Labels as numbers if all of them are."""
    try:
        return np.array([float(word) for word in words])
    except ValueError:
        return np.array(words, np.str_)
