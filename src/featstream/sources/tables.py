"""Tables on disk, one row per sample, read some columns at a time."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from featstream.errors import DataError, FeatstreamWarning, printable
from featstream.protocols import Block, IntArray
from featstream.sources.csv import CsvTable
from featstream.sources.frames import MAX_FRAME_COLUMNS, FrameSource
from featstream.sources.memory import SizedSource, moved
from featstream.sources.missing import (
    as_na_values,
    refuse_hidden_missing,
)
from featstream.sources.open import (
    Dataset,
    PathLike,
    existing,
    find_target,
    format_suffix,
    lacks,
    reading,
    require,
    shortened,
)
from featstream.sources.values import (
    BLOCK_BYTES,
    Duplicates,
    block_width,
    check_dimensions,
    check_names,
)


def open_table(
    path: PathLike,
    target: str | None = None,
    *,
    optional: Collection[str] | None = None,
    separator: str | None = None,
    na_values: str | Iterable[str] | None = None,
    duplicates: Duplicates = "error",
) -> Dataset:
    r"""Open a table: CSV, TSV, parquet or Arrow IPC (Feather); needs pyarrow.

    Parameters
    ----------
    path : str or path-like
        A table with named columns and one row per sample. What stands between the
        values of a ``.csv`` is found in its first lines: a comma, a semicolon, a tab
        or a bar.
    target : str, default=None
        The column that is the target; by default the one called ``y``, ``target``,
        ``class`` or ``label``.
    optional : collection of str, default=None
        If given, the table need not have a target: it is the column with a name from
        here or one of the four, if there is any.
    separator : str, default=None
        Of a text file, what stands between two values.
    na_values : str or list of str, default=None
        Values that mean a missing one, in every column, besides those that
        ``pandas.read_csv`` knows (an empty one, ``NA``, ``nan``, ``null``, ...).
    duplicates
        As for `open_dataset`.

    Returns
    -------
    Dataset
        The other columns, the target, and the names. An index that pandas wrote is
        not a feature: in parquet it is marked; in text it is a first column without
        a name, of distinct words or whole numbers.

    Notes
    -----
    The columns are read some at a time. A text file of more than 64 MiB is first cut
    into blocks of columns, in a temporary file of its own size.

    Examples
    --------
    >>> import tempfile
    >>> from featstream.sources import open_table
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     print("a,b,class\n1,2.5,yes\n3,4.5,no", file=file, flush=True)
    ...     data = open_table(file.name)
    >>> data.names, data.y.tolist(), data.target_name
    (['a', 'b'], ['yes', 'no'], 'class')
    """
    table = find_table(path, separator, na_values)
    with reading(table.path):
        index, samples = _find_index(table)
        if duplicates != "error":
            table.names = check_names(table.names, len(table.names), duplicates)
        names = table.names
        is_guessed = target is None
        if target is None:
            target = find_target(names, optional or ())
        if target is None and optional is None:
            raise DataError(
                "which of its columns is the target? None is called y, target, class "
                "or label. Name it with target=... (command line: --target). Its "
                f"columns are: {shortened(names)}."
            )
        if target is not None and target not in names:
            raise lacks("column", target, names, " for a target")
        found = [] if target is None else [names.index(target)]
        source = TableSource(table, without=[*found, *index])
        source.sample_names = samples
        y = read_labels_of(table, found[0]) if found else None
    return Dataset(source, y, source.names, target, is_guessed and y is not None)


def read_labels_of(table: Table, position: int) -> NDArray[Any]:
    """The column of a table that is the target; None or NaN where it has no label."""
    column = table.read([position]).column(0)
    y = np.asarray(column.to_numpy())
    if y.dtype.kind == "O":
        what = f"The target {printable(table.names[position])}"
        refuse_hidden_missing(y.tolist(), what, is_target=True)
    return y


def _find_index(table: Table) -> tuple[list[int], Sequence[str] | None]:
    """The column that names the samples, if the first one does, and their names."""
    names = table.names
    nameless = [i for i, name in enumerate(names) if not name.strip()]
    samples = table.samples
    if nameless[:1] == [0] or (names and names[0] == "Unnamed: 0"):
        found = table.read([0]).column(0).to_pylist()
        is_counted = as_sample_names(found) is None
        are_names = len(set(found)) == len(found) and (
            all(type(value) is str for value in found)
            or all(type(value) is int for value in found)
        )
        if is_counted or (are_names and nameless[:1] == [0]):
            warnings.warn(
                f"{table.path}: the first column has no name and "
                f"{'counts the rows' if is_counted else 'names the samples'}; it is "
                "left out. Name it if it is a feature.",
                FeatstreamWarning,
                stacklevel=3,
            )
            return [0], as_sample_names(found)
    if nameless:
        raise DataError(
            f"its column {nameless[0] + 1} has no name. Name it if it is a feature, "
            "or remove it."
        )
    return [], samples


def as_sample_names(found: list[Any]) -> list[str] | None:
    """An index as text; None if it counts the rows, from 0 or from 1."""
    n = len(found)
    is_counted = found in (list(range(n)), list(range(1, n + 1)))
    return None if is_counted else [str(name) for name in found]


class Table(Protocol):
    """Named columns on disk."""

    path: Path
    names: list[str]
    n_rows: int

    @property
    def samples(self) -> Sequence[str] | None:
        """The names of the samples, where the file has them apart."""

    @property
    def fingerprint(self) -> str:
        """Changes with the data."""

    def read(self, positions: Sequence[int]) -> Any:
        """Some columns, in this order, as a table of pyarrow's."""


def find_table(
    path: PathLike,
    separator: str | None = None,
    na_values: str | Iterable[str] | None = None,
) -> Table:
    """The table in a file of text, parquet or Arrow IPC."""
    path = existing(path)
    require("pyarrow", "frames", path)
    listed = as_na_values(na_values)
    with reading(path):
        suffix = format_suffix(path)
        if suffix in (".csv", ".tsv"):
            return CsvTable(path, separator, listed)
        from featstream.sources import parquet

        kind = parquet.ParquetTable if suffix == ".parquet" else parquet.IpcTable
        return kind(path, listed)


class TableSource(SizedSource):
    """The columns of a table on disk, but for those at the positions ``without``.

    A block has about ``block_bytes``, and at most 1024 columns.
    """

    def __init__(
        self,
        table: Table,
        without: int | Sequence[int] = (),
        block_bytes: int = BLOCK_BYTES,
    ) -> None:
        self._table = table
        left_out = np.array(without, np.int64)
        self._positions = np.delete(np.arange(len(table.names)), left_out)
        names = [table.names[i] for i in self._positions]
        shape = check_dimensions((table.n_rows, len(names)))
        super().__init__(shape, names, about=printable(table.path.name))
        self.block_bytes = block_bytes

    @property
    def fingerprint(self) -> str:
        """Changes with the data."""
        return self._table.fingerprint

    def blocks(self, start: int = 0) -> Iterator[Block]:
        """Yield the columns from position ``start`` on."""
        yield from self._blocks(self._positions, start)

    def blocks_at(self, positions: IntArray, start: int = 0) -> Iterator[Block]:
        """Yield the columns at these positions, in this order, from ``start`` on."""
        yield from self._blocks(self._positions[positions], start)

    def _blocks(self, positions: NDArray[Any], start: int) -> Iterator[Block]:
        width = min(block_width(self.n_samples, 8, self.block_bytes), MAX_FRAME_COLUMNS)
        for first in range(start, positions.size, width):
            part = self._table.read(positions[first : first + width].tolist())
            with reading(self._table.path):
                blocks = list(FrameSource(part, block_bytes=self.block_bytes).blocks())
            yield from moved(blocks, first)
