"""Parquet and Arrow IPC: one row per sample, or one row per feature (genes, say)."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from featstream.errors import (
    DataError,
    DataTypeError,
    ParameterError,
    check_choice,
    printable,
)
from featstream.protocols import Block
from featstream.sources.combined import RowNumbers
from featstream.sources.memory import ArraySource, SizedSource, moved, plain_numbers
from featstream.sources.open import (
    Dataset,
    PathLike,
    existing,
    reading,
    require,
    while_reading,
)
from featstream.sources.tables import as_sample_names, open_table, read_target
from featstream.sources.text_file import allowed_bytes, too_large
from featstream.sources.text_values import is_number
from featstream.sources.values import (
    BLOCK_BYTES,
    FIELDS,
    Duplicates,
    Names,
    as_column_of_objects,
    block_width,
    check_names,
    group_columns,
    not_numbers,
)

_BUFFERED_BYTES = 16 << 20  # by the reader, for all columns together
_LEAST_ROWS = 256  # at a time: each batch costs the reader some work per column
_MOST_BYTES = 64 << 20
_CELL_BYTES = 8
_SMALL_COLUMN = 256 << 20  # held for a moment, whatever the size of the file


def open_parquet(
    path: PathLike,
    target: str | None = None,
    *,
    orient: str = "samples",
    optional: Collection[str] | None = None,
    na_values: str | Iterable[str] | None = None,
    max_bytes: int | None = None,
    duplicates: Duplicates = "error",
) -> Dataset:
    """Open a parquet file, with one row per sample or per feature (``orient``)."""
    if check_choice(orient, "orient", ("samples", "features")) == "samples":
        options: dict[str, Any] = {"na_values": na_values, "max_bytes": max_bytes}
        options |= {"optional": optional, "duplicates": duplicates}
        return open_table(path, target, **options)
    if na_values is not None:
        raise ParameterError(
            "`na_values` is for tables with one row per sample, not orient='features'. "
            f"Got {na_values!r} for {path}. Write nulls in the file."
        )
    return open_feature_table(path, target, max_bytes=max_bytes, duplicates=duplicates)


class _ArrowTable(ABC):
    """Named columns in a file of pyarrow's, without the index of pandas."""

    n_rows: int

    def __init__(self, path: Path, schema: Any, na_values: Sequence[str]) -> None:
        import pyarrow

        for field in schema:
            if pyarrow.types.is_nested(field.type):
                hint = FIELDS
                if pyarrow.types.is_list(field.type):
                    hint = "If each row is a feature, not a sample: orient='features'."
                raise not_numbers(f"Feature {printable(field.name)}", field.type, hint)
        self.path, self._na_values = path, na_values
        self._index = index_columns(schema)
        self._is_counted = has_plain_index(schema)
        fields = [field for field in schema if field.name not in self._index]
        self.names = [field.name for field in fields]
        self.text_columns = [i for i, f in enumerate(fields) if _is_text(f.type)]
        # The name in the file, and the number of columns of that name before it.
        times: Counter[str] = Counter()
        self._columns = []
        for name in self.names:
            self._columns.append((name, times[name]))
            times[name] += 1

    @property
    def samples(self) -> Sequence[str] | None:
        """The index of pandas, if it is one column, or counts the rows."""
        if self._is_counted:
            return RowNumbers(self.n_rows)
        if len(self._index) != 1:
            return None
        return as_sample_names(self._read([*self._index]).column(0).to_pylist())

    def read(self, positions: Sequence[int]) -> Any:
        """Some columns, in this order."""
        wanted = [self._columns[i] for i in positions]
        table = self._read([name for name, _ in wanted])
        find = table.schema.get_all_field_indices
        table = table.select([find(name)[number] for name, number in wanted])
        table = table.rename_columns([self.names[i] for i in positions])
        return mark_missing(table, self._na_values)

    @abstractmethod
    def _read(self, names: list[str]) -> Any:
        """These columns, in any order."""


class ParquetTable(_ArrowTable):
    """The columns of a parquet file.

    The footer is held in memory: about 1.4 KB for each column and row group.
    """

    def __init__(
        self,
        path: Path,
        na_values: Sequence[str] = (),
        max_bytes: int | None = None,
    ) -> None:
        from pyarrow.parquet import ParquetFile

        self._file: Any = ParquetFile(path, pre_buffer=True)
        check_unpacked_size(self._file.metadata, path, max_bytes)
        super().__init__(path, self._file.schema_arrow, na_values)
        self.n_rows = self._file.metadata.num_rows
        self.fingerprint = footer_digest(path)

    def _read(self, names: list[str]) -> Any:
        return self._file.read(columns=names)  # with a, it reads a.1 as well


class IpcTable(_ArrowTable):
    """The columns of an Arrow IPC file (Feather version 2), or of an IPC stream."""

    def __init__(
        self,
        path: Path,
        na_values: Sequence[str] = (),
        max_bytes: int | None = None,
    ) -> None:
        self.path = path
        with self._open() as file:
            self._schema = file.schema
        super().__init__(path, self._schema, na_values)
        limit = allowed_bytes(path.stat().st_size) if max_bytes is None else max_bytes
        with self._open(included_fields=[0]) as file:
            first = file.read_all()
        self.n_rows = first.num_rows
        if _CELL_BYTES * self.n_rows > max(limit, _SMALL_COLUMN):
            raise too_large(f"a column of {self.n_rows:,} values takes", limit)

    @cached_property
    def fingerprint(self) -> str:
        """Checksum of the file."""
        with open(self.path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def _open(self, **options: Any) -> Any:
        from pyarrow import ArrowInvalid, OSFile, ipc

        # Not mapped: a file that is cut while it is read would end the process.
        chosen = ipc.IpcReadOptions(**options)
        try:
            return ipc.open_file(OSFile(str(self.path)), options=chosen)
        except ArrowInvalid:
            return ipc.open_stream(OSFile(str(self.path)), options=chosen)

    def _read(self, names: list[str]) -> Any:
        find = self._schema.get_all_field_indices
        fields = sorted({place for name in names for place in find(name)})
        with self._open(included_fields=fields) as file:
            return file.read_all()


def check_unpacked_size(metadata: Any, path: Path, max_bytes: int | None) -> None:
    """Raise if a column of a parquet file is far larger than the whole file.

    A value that is repeated a thousand million times takes some bytes on disk.
    """
    limit = allowed_bytes(path.stat().st_size) if max_bytes is None else max_bytes
    n_groups = metadata.num_row_groups
    unpacked = sum(metadata.row_group(i).total_byte_size for i in range(n_groups))
    column = _CELL_BYTES * metadata.num_rows
    if column > max(limit, _SMALL_COLUMN) or unpacked > limit:
        what = f"a column of {metadata.num_rows:,} values takes"
        raise too_large(what if column > limit else "its columns unpack to", limit)


def mark_missing(table: Any, na_values: Sequence[str]) -> Any:
    """Replace ``na_values`` by nulls; text that is then all numbers becomes numbers."""
    if not na_values:
        return table
    import pyarrow
    from pyarrow import compute

    numbers = [float(value) for value in na_values if is_number(value)]
    for i, field in enumerate(table.schema):
        column = table.column(i)
        kind = field.type
        if pyarrow.types.is_dictionary(kind):
            column = column.cast(kind.value_type)
            kind = kind.value_type
        if str(kind) in ("string", "large_string", "string_view"):
            kind = pyarrow.large_string()
            column = column.cast(kind)
            wanted = pyarrow.array(na_values, kind)
        elif pyarrow.types.is_integer(kind):
            limits = np.iinfo(kind.to_pandas_dtype())
            whole = [int(value) for value in numbers if value.is_integer()]
            fitting = [v for v in whole if limits.min <= v <= limits.max]
            wanted = pyarrow.array(fitting, kind)
        elif pyarrow.types.is_floating(kind):
            wanted = pyarrow.array(numbers, pyarrow.float64()).cast(kind)
        else:
            continue
        is_missing = compute.is_in(column, value_set=wanted)
        if not compute.any(is_missing).as_py():
            continue
        column = compute.if_else(is_missing, pyarrow.scalar(None, kind), column)
        if not pyarrow.types.is_primitive(kind):
            with suppress(pyarrow.ArrowInvalid):
                column = column.cast(pyarrow.float64())
        table = table.set_column(i, field.name, column)
    return table


def index_columns(schema: Any) -> set[str]:
    """Columns in which pandas keeps the index of its frame."""
    described = schema.pandas_metadata or {}
    columns = described.get("index_columns", ())
    return {column for column in columns if isinstance(column, str)}


def has_plain_index(schema: Any) -> bool:
    """Whether pandas counted the rows of its frame from 0."""
    columns = (schema.pandas_metadata or {}).get("index_columns", ())
    plain = {"kind": "range", "start": 0, "step": 1}
    return any(isinstance(c, dict) and plain.items() <= c.items() for c in columns)


def footer_digest(path: Path) -> str:
    """Checksum of a parquet footer, which has the place and size of every part."""
    with open(path, "rb") as file:
        file.seek(-8, 2)
        length = int.from_bytes(file.read(4), "little")
        file.seek(-8 - length, 2)
        return hashlib.sha256(file.read(length)).hexdigest()


def open_feature_table(
    path: PathLike,
    target: str | None = None,
    *,
    max_bytes: int | None = None,
    duplicates: Duplicates = "error",
) -> Dataset:
    """Open a parquet file with one row per feature; needs pyarrow.

    Parameters
    ----------
    path : str or path-like
        The names of the features are in the first column that is text. Their values
        are in the one column of lists, or else in all the other columns, one per
        sample, whose names are then the names of the samples.
    target : str, default=None
        The file that holds it, ``FILE`` or ``FILE:COLUMN``; see `read_target`.
    max_bytes, duplicates
        As for `open_dataset`.

    Returns
    -------
    Dataset
        The features, the target if its file was given, and the names.

    Examples
    --------
    >>> import pathlib, tempfile, pyarrow, pyarrow.parquet
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "genes.parquet"
    >>> rows = {"gene": ["TP53", "MYC"], "s1": [0.5, 2.0], "s2": [1.5, 3.0]}
    >>> pyarrow.parquet.write_table(pyarrow.table(rows), path)
    >>> data = open_feature_table(path)
    >>> list(data.names), next(data.source.blocks()).columns
    (['TP53', 'MYC'], array([[0.5, 2. ],
           [1.5, 3. ]]))
    """
    path = existing(path)
    require("pyarrow", "frames", path)
    with reading(path):
        source = FeatureTableSource(path, duplicates=duplicates, max_bytes=max_bytes)
    y = None if target is None else read_target(target, source.sample_names)
    return Dataset(source, y, source.names)


class FeatureTableSource(SizedSource):
    """The rows of a parquet file as columns; see `open_feature_table`.

    Some rows at a time are read, about ``block_bytes``, however large a row group is.
    """

    names: Names

    def __init__(
        self,
        path: Path,
        block_bytes: int = BLOCK_BYTES,
        duplicates: Duplicates = "error",
        max_bytes: int | None = None,
    ) -> None:
        from pyarrow.parquet import ParquetFile

        self._max_bytes = max_bytes
        self.path, self.block_bytes, self._duplicates = path, block_bytes, duplicates
        found = _find_columns(ParquetFile(path).schema_arrow)
        name, self._values, self.sample_names = found
        buffered = _BUFFERED_BYTES // (1 + len(self._values))
        # With pre_buffer, a row group would be read as a whole before its first row.
        self._file: Any = ParquetFile(
            path, buffer_size=max(buffered, 1 << 12), pre_buffer=False
        )
        metadata = self._file.metadata
        check_unpacked_size(metadata, path, max_bytes)
        groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
        self._group_ends = np.cumsum([group.num_rows for group in groups])
        shape = self._count_samples(), metadata.num_rows
        super().__init__(shape, about=printable(path.name))
        names = self._file.read(columns=[name]).column(name)
        self.names = _read_names(names, duplicates)
        self.fingerprint = footer_digest(path)

    def _count_samples(self) -> int:
        if self.sample_names is not None:
            return len(self.sample_names)
        if not self._file.metadata.num_rows:
            raise DataError("it has no rows, so that the number of samples is unknown.")
        _, batch = next(self._batches(0, 1))
        first = batch.column(0)[0].as_py()
        if first is None:
            raise DataError("the first row has no list of values.")
        return len(first)

    def reopener(self) -> Callable[[], FeatureTableSource]:
        """A function that opens the file again in another process."""
        options = self.block_bytes, self._duplicates, self._max_bytes
        return partial(FeatureTableSource, self.path.absolute(), *options)

    def blocks(self, start: int = 0) -> Iterator[Block]:
        """Yield the features from position ``start`` on."""
        width = block_width(self.n_samples, 8, self.block_bytes)
        if self.sample_names is not None:
            fitting = block_width(self.n_samples, 8, _MOST_BYTES)
            width = max(width, min(_LEAST_ROWS, fitting))
        for first, batch in self._batches(start, width):
            names = self.names[first : first + batch.num_rows]
            with reading(self.path):
                values = self._matrix(batch, names)
            if values is not None:
                source = ArraySource(values.T, names, block_bytes=self.block_bytes)
                blocks = source.blocks()
            else:
                columns = (
                    (name, *as_column_of_objects(row, name))
                    for name, row in zip(names, self._lists(batch), strict=True)
                )
                blocks = group_columns(columns, block_bytes=self.block_bytes)
            yield from moved(blocks, first)

    def _batches(self, start: int, width: int) -> Iterator[tuple[int, Any]]:
        """Rows from ``start`` on, some at a time, with the position of the first."""
        group = int(np.searchsorted(self._group_ends, start, "right"))
        if group == self._group_ends.size:
            return  # older versions of pyarrow cannot read no row group at all
        position = int(self._group_ends[group - 1]) if group else 0
        batches = self._file.iter_batches(
            width, list(range(group, self._group_ends.size)), self._values
        )
        for batch in while_reading(self.path, batches):
            if position + batch.num_rows > start:
                passed = max(start - position, 0)
                yield position + passed, batch.slice(passed)
            position += batch.num_rows

    def _matrix(self, batch: Any, names: Sequence[str]) -> NDArray[Any] | None:
        """Values as numbers, features by samples; None if they need conversion."""
        import pyarrow
        from pyarrow import compute

        columns = [batch.column(name) for name in self._values]
        if self.sample_names is None:
            lengths = compute.list_value_length(columns[0]).fill_null(-1).to_numpy()
            if (lengths != self.n_samples).any():
                i = int((lengths != self.n_samples).argmax())
                got = f"{lengths[i]} values" if lengths[i] >= 0 else "no values"
                raise DataError(
                    f"Feature {printable(names[i])} has {got} but the first one has "
                    f"{self.n_samples}. Every feature needs one value per sample."
                )
            columns = [columns[0].flatten()]
        table = pyarrow.table(columns, [str(i) for i in range(len(columns))])
        values = plain_numbers(nw.from_native(table, eager_only=True))
        return None if values is None else values.reshape(-1, self.n_samples)

    def _lists(self, batch: Any) -> list[list[Any]]:
        columns: list[Any] = [batch.column(name).to_pylist() for name in self._values]
        if self.sample_names is None:
            return list(columns[0])
        return [list(row) for row in zip(*columns, strict=True)]


def _find_columns(schema: Any) -> tuple[str, list[str], list[str] | None]:
    """The column of names, those of values, and the samples if these are columns."""
    import pyarrow.types as kinds

    index = index_columns(schema)
    fields = list(schema)
    name = next((field for field in fields if _is_text(field.type)), None)
    if name is None:
        raise DataError(
            "none of its columns is text, to name the features. Give them names, or "
            "open it with one row per sample: orient='samples'."
        )
    others = [field for field in fields if field is not name]
    lists = [field for field in others if kinds.is_nested(field.type)]
    values = lists or [field for field in others if field.name not in index]
    if len(lists) > 1 or not values:
        raise DataError(
            "the values should be in one column of lists, or in one column per sample. "
            f"Besides the names in {printable(name.name)} it has "
            f"{len(lists)} columns of lists."
        )
    is_fixed = kinds.is_fixed_size_list
    numbers = (kinds.is_integer, kinds.is_floating, kinds.is_boolean, kinds.is_decimal)
    for field in values:
        kind = field.type
        if any(f(kind) for f in (kinds.is_list, kinds.is_large_list, is_fixed)):
            kind = kind.value_type
        if not any(f(kind) for f in (*numbers, kinds.is_null, _is_text)):
            raise not_numbers(f"the column {printable(field.name)}", field.type)
    odd = [field for field in values if _is_text(field.type)]
    if odd and len(odd) < len(values):
        raise DataTypeError(
            f"the column {printable(odd[0].name)} is text, and others are "
            "numbers. All but the first text column are values, one per sample: "
            "leave it out of the file."
        )
    found = [field.name for field in values]
    return name.name, found, None if lists else found


def _is_text(kind: Any) -> bool:
    import pyarrow.types as kinds

    if kinds.is_dictionary(kind):
        kind = kind.value_type
    return bool(kinds.is_string(kind) or kinds.is_large_string(kind))


def _read_names(texts: Any, duplicates: Duplicates) -> Names:
    """The names in a column of pyarrow's, all there and different, or numbered."""
    import pyarrow
    from pyarrow import compute

    texts = texts.cast("large_string")
    if compute.count_distinct(texts).as_py() < len(texts):
        names = check_names(texts.to_pylist(), len(texts), duplicates)
        texts = pyarrow.chunked_array([names], "large_string")
    joined = texts.combine_chunks()
    _, offsets, text = joined.buffers()
    bounds = np.frombuffer(offsets, np.int64, len(joined) + 1, 8 * joined.offset)
    joined_text = np.frombuffer(text or b"", np.uint8)
    return Names(joined_text[bounds[0] :], bounds[1:] - bounds[0])
