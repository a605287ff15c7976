"""A target in a file of its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from featstream.errors import DataError, ParameterError, printable
from featstream.sources.missing import MISSING, as_na_values, refuse_hidden_missing
from featstream.sources.open import (
    PathLike,
    existing,
    find_target,
    format_suffix,
    lacks,
    reading,
    shortened,
)
from featstream.sources.tables import Table, find_table, read_labels_of

_TABLES = (".csv", ".tsv", ".parquet", ".feather", ".arrow")


def read_target(
    target: PathLike,
    samples: Sequence[str] | None = None,
    *,
    separator: str | None = None,
    na_values: str | Iterable[str] | None = None,
) -> NDArray[Any]:
    r"""Read a target from a file of its own.

    Parameters
    ----------
    target : str or path-like
        The file, or ``FILE:COLUMN``: ``.npy``; ``.txt`` with one label per line; or a
        table (``.csv``, ``.tsv``, ``.parquet``, ``.feather``), with the column, one
        called ``y``, ``target``, ``class`` or ``label``, or just one besides the
        names of the samples.
    samples : sequence of str, default=None
        The names of the samples, if they have any. A table of several columns then
        begins with these names, in any order, and is put in the order of the
        features' values.
    separator, na_values
        As for `open_table`.

    Returns
    -------
    ndarray of shape (n_samples,)
        The labels; NaN or None where one is missing.

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
    if suffix not in (".npy", ".txt", *_TABLES):
        raise ParameterError(
            f"A target is read from .npy, .txt, {', '.join(_TABLES)}. Got {path}."
        )
    if suffix in (".npy", ".txt") and column is not None:
        raise ParameterError(f"{path} has no columns. Got the column {column!r}.")
    if suffix in _TABLES:
        table = find_table(path, separator, na_values)
        with reading(path):
            return _read_column(table, column, samples)
    with reading(path):
        if suffix == ".npy":
            with open(path, "rb") as file:
                return np.asarray(npy.read_array(file, allow_pickle=False))
        lines = path.read_text("utf-8").splitlines()
        return _as_labels([line.strip() for line in lines], as_na_values(na_values))


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
    has_index = len(names) > 1 and not names[0].strip()
    choice = names[1:] if is_keyed or has_index else names
    values = read_labels_of(table, names.index(choose_column(choice, column)))
    if not is_keyed or samples is None:
        return values
    keys = [str(key) for key in table.read([0]).column(0).to_pylist()]
    hint = "A file of one column is taken in the order of the samples."
    return values[places_of(samples, keys, f"column {printable(names[0])}", hint)]


def choose_column(names: Sequence[str], column: str | None) -> str:
    """The column of a file that is the target: the one asked for, or found by name."""
    if column is None:
        column = names[0] if len(names) == 1 else find_target(names)
    if column is None:
        raise DataError(
            "the target column is ambiguous. Write FILE:COLUMN, with one of: "
            f"{shortened(names)}."
        )
    if column not in names:
        raise lacks("column", column, names, " for a target")
    return column


def places_of(
    samples: Sequence[str], keys: Sequence[str], what: str, hint: str
) -> list[int]:
    """Where samples are among the keys of a file, which its first ``what`` holds."""
    place = {key: i for i, key in enumerate(keys)}
    if len(place) < len(keys):
        twice = next(key for i, key in enumerate(keys) if place[key] != i)
        raise DataError(f"its first {what} has the sample {printable(twice)} twice.")
    lost = [name for name in samples if name not in place]
    if lost:
        raise DataError(
            f"its first {what} should name the samples, and {len(lost):,} are not "
            f"there: {shortened(lost, 5)}. {hint}"
        )
    return [place[name] for name in samples]


def _as_labels(words: list[str], na_values: Sequence[str]) -> NDArray[Any]:
    missing = {*MISSING, *na_values}
    labels = [None if word in missing else word for word in words]
    refuse_hidden_missing(labels, "The target", is_target=True)
    return label_array(labels)


def label_array(labels: list[str | None]) -> NDArray[Any]:
    """Labels as numbers if all are, else as text; NaN or None where one is missing."""
    try:
        return np.array([np.nan if label is None else float(label) for label in labels])
    except ValueError:
        return np.array(labels, object if None in labels else np.str_)
