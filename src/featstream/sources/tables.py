"""Tables on disk, one row a sample, read some columns at a time."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from featstream.errors import DataError, DataTypeError, printable
from featstream.protocols import Block, IntArray
from featstream.sources.columns import (
    BLOCK_BYTES,
    block_width,
    check_dimensions,
    check_names,
)
from featstream.sources.dataset import (
    Dataset,
    PathLike,
    existing,
    find_target,
    format_suffix,
    reading,
    require,
    shortened,
)
from featstream.sources.frames import MAX_FRAME_COLUMNS, FrameSource
from featstream.sources.wide_csv import CsvTable

__all__ = [
    "ParquetTable",
    "Table",
    "TableSource",
    "find_table",
    "footer_digest",
    "index_columns",
    "open_table",
]


def open_table(
    path: PathLike,
    target: str | None = None,
    *,
    optional: Collection[str] | None = None,
) -> Dataset:
    r"""Open a CSV or parquet file; needs pyarrow (``featstream[frames]``).

    Parameters
    ----------
    path : str or path-like
        A table with named columns and one row a sample.
    target : str, default=None
        The column that is the target; by default the one called ``y``,
        ``target``, ``class`` or ``label``, otherwise the last.
    optional : collection of str, default=None
        If given, the table need not have a target: it is the first column with a
        name from here or one of the four, if there is any.

    Returns
    -------
    Dataset
        The other columns, the target, and the names. Of a parquet file that pandas
        wrote, the index is not a feature.

    Notes
    -----
    The columns are read some at a time. A CSV file of more than 64 MiB is first cut
    into strips of columns, in a temporary file of its own size.

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
    table = find_table(path)
    with reading(table.path):
        names = table.names
        if target is None:
            target = find_target(names, optional or ())
        if target is None and optional is None:
            target = names[-1] if names else ""
        if target is None:
            source = TableSource(table)
            return Dataset(source, None, source.names)
        if target not in names:
            raise DataError(
                f"it has no column {printable(target)} for a target. "
                f"Its columns are: {shortened(names)}."
            )
        position = names.index(target)
        source = TableSource(table, without=position)
        y = table.read([position]).column(0).to_numpy()
    return Dataset(source, y, source.names)


class Table(Protocol):
    """Named columns on disk."""

    path: Path
    names: list[str]
    n_rows: int
    fingerprint: str

    def read(self, positions: Sequence[int]) -> Any:
        """Some columns, in this order, as a table of pyarrow's."""


def find_table(path: PathLike) -> Table:
    """The table in a CSV or parquet file."""
    path = existing(path)
    require("pyarrow", "frames", path)
    with reading(path):
        if format_suffix(path) == ".parquet":
            return ParquetTable(path)
        return CsvTable(path)


class ParquetTable:
    """The columns of a parquet file.

    The footer is held in memory: about 1.4 KB for each column and row group.
    """

    def __init__(self, path: Path) -> None:
        from pyarrow.parquet import ParquetFile

        self.path = path
        self._file: Any = ParquetFile(path, pre_buffer=True)
        schema = self._file.schema_arrow
        index = index_columns(schema)
        _refuse_nested(schema)
        # By position, since by name a.1 would come along with a.
        names = schema.names  # made anew each time it is asked for
        self._leaves = [i for i, name in enumerate(names) if name not in index]
        self.names = [names[i] for i in self._leaves]
        self.n_rows: int = self._file.metadata.num_rows
        self.fingerprint = footer_digest(path)

    def read(self, positions: Sequence[int]) -> Any:
        """Some columns, in this order."""
        leaves = [self._leaves[i] for i in positions]
        with reading(self.path):
            table = self._file.reader.read_all(column_indices=sorted(leaves))
        return table.select(np.argsort(np.argsort(leaves)).tolist())


def index_columns(schema: Any) -> set[str]:
    """Columns in which pandas keeps the index of its frame."""
    described = schema.pandas_metadata or {}
    columns = described.get("index_columns", ())
    return {column for column in columns if isinstance(column, str)}


def _refuse_nested(schema: Any) -> None:
    import pyarrow

    for field in schema:
        if pyarrow.types.is_nested(field.type):
            hint = "Give each of its fields as a feature of its own."
            if pyarrow.types.is_list(field.type):
                hint = "If each row is a feature, and not a sample: orient='features'."
            raise DataTypeError(
                f"Feature {printable(field.name)} has dtype {field.type}, which is "
                f"neither numbers nor text. {hint}"
            )


def footer_digest(path: Path) -> str:
    """Checksum of a parquet footer, which says where all is and how large."""
    with open(path, "rb") as file:
        file.seek(-8, 2)
        length = int.from_bytes(file.read(4), "little")
        file.seek(-8 - length, 2)
        return hashlib.sha256(file.read(length)).hexdigest()


class TableSource:
    """The columns of a table on disk, but for the target.

    Parameters
    ----------
    table : Table
        Where the columns are.
    without : int, default=None
        Position of a column that is not a feature.
    block_bytes : int, default=2**23
        Size of a block, of at most 1024 columns.

    Attributes
    ----------
    n_samples, n_features : int
        The shape.
    names : list of str
        One name a feature.
    fingerprint : str
        Changes with the data.
    """

    def __init__(
        self, table: Table, without: int | None = None, block_bytes: int = BLOCK_BYTES
    ) -> None:
        self._table = table
        positions = np.arange(len(table.names))
        self._positions = (
            positions if without is None else np.delete(positions, without)
        )
        names = [table.names[i] for i in self._positions]
        self.n_samples, self.n_features = check_dimensions((table.n_rows, len(names)))
        self.names = check_names(names, len(names))
        self.fingerprint = table.fingerprint
        self.block_bytes = block_bytes

    def __repr__(self) -> str:
        return (
            f"TableSource({self.n_samples:,} samples × {self.n_features:,} features, "
            f"{printable(self._table.path.name)})"
        )

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
            for block in FrameSource(part, block_bytes=self.block_bytes).blocks():
                yield replace(block, start=first + block.start)
