"""Tables as text: separated by commas, semicolons, tabs or bars.

A parser that is asked for some columns reads all of the text, so that reading a wide
table a thousand columns at a time would read it many times. Text that is too large
to be held is cut in one pass into blocks of columns. Each block is text of the same
kind, and is parsed as the whole would be.
"""

from __future__ import annotations

import csv
import hashlib
import io
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from decimal import Decimal, InvalidOperation
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from featstream.errors import DataError, FeatstreamWarning, ParameterError
from featstream.sources.kernels import split_csv
from featstream.sources.open import format_suffix
from featstream.sources.rows_to_columns import TempColumns
from featstream.sources.text_file import TextFile
from featstream.sources.values import EXACT_IN_FLOAT, MISSING

HELD_BYTES = 64 << 20
"""Text up to this size is held in memory, if its columns are not too many."""

MAX_COLUMNS = 1024
"""Columns parsed at a time: each takes pyarrow ten kilobytes."""

TEXT_BLOCK_BYTES = 16 << 20
"""About the size of the text of a block, unless one column has more."""

_CHUNK = 16 << 20
_EXPANSION = 8  # times, as a guess, a compressed file
_MAX_BLOCKS = 4096
_SAMPLE = 1 << 16  # bytes from which the separator is found
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_NARROW = 256  # columns at most for which threads pay


class Dialect(NamedTuple):
    """How the text of a table is written."""

    separator: str
    decimal: str
    null_values: list[str]


class CsvTable:
    """The columns of a text file, plain or compressed; see `open_table`."""

    samples = None

    def __init__(
        self, path: Path, separator: str | None = None, na_values: Sequence[str] = ()
    ) -> None:
        self.path = path
        digest = hashlib.sha256()
        with closing(TextFile(path, _CHUNK, None)) as file:
            chunks = _hashed(file.chunks(), digest)
            head: list[bytes] = []
            while sum(map(len, head)) <= HELD_BYTES and (chunk := next(chunks, b"")):
                head.append(chunk)
            text = b"".join(head)
            is_all = len(text) <= HELD_BYTES
            self._dialect = _find_dialect(text[:_SAMPLE], path, separator, na_values)
            self.names = _header(text, self._dialect, is_all=is_all)
            if is_all and len(self.names) <= MAX_COLUMNS:
                self._table = _parse(_CsvReader(text, self._dialect))
                self._held, self._width, self._spill = 0, 0, None
                self.n_rows: int = self._table.num_rows
            else:
                size = file.size * (_EXPANSION if file.is_compressed else 1)
                self._width = _width(len(self.names), size)
                del text
                self._spill, n_rows = self._cut(chain(head, chunks))
                self.n_rows = n_rows - 1
                self._held = -1  # the one that is held
        self.fingerprint = digest.hexdigest()

    def read(self, positions: Sequence[int]) -> Any:
        """Some columns, in this order."""
        import pyarrow

        if self._spill is None:
            names = [self.names[i] for i in positions]
            return self._table.select(positions).rename_columns(names)
        columns = {}
        for position in sorted(positions):  # each block is parsed once
            block, place = divmod(position, self._width)
            if block != self._held:
                begin = block * self._width
                names = self.names[begin : begin + self._width]
                text = b"".join(self._spill.read(block))
                self._table = _parse_block(text, self._dialect, names, self.n_rows)
                self._held = block
            columns[position] = self._table.column(place)
        names = [self.names[i] for i in positions]
        return pyarrow.table([columns[i] for i in positions], names=names)

    def _cut(self, chunks: Iterable[bytes]) -> tuple[TempColumns, int]:
        """Cut the text into blocks; also the number of rows, with the header."""
        n_fields = len(self.names)
        separator = ord(self._dialect.separator)
        spill = TempColumns(-(-n_fields // self._width))
        carried = np.zeros(4, np.int64)
        for chunk in chain(chunks, [b"\n"]):  # the last line may lack its end
            if chunk == b"\n" and carried[split_csv.STATE] == split_csv.QUOTED:
                raise DataError(
                    f"row {carried[split_csv.ROWS]} has a quote that is never closed."
                )
            text = np.frombuffer(chunk, np.uint8)
            n_ends = int(np.count_nonzero((text == 10) | (text == 13)))
            most = min(text.size, (n_ends + 1) * spill.n_parts) + 2
            room = np.empty((most, 4), np.int64)
            n = split_csv.find_segments(
                text, separator, n_fields, self._width, carried, room
            )
            if found := int(carried[split_csv.MISCOUNTED]):
                count = f"{found:,}" if found <= n_fields else f"more than {n_fields:,}"
                raise DataError(
                    f"row {carried[split_csv.ROWS]} has {count} values but the header "
                    f"{n_fields:,}."
                )
            segments = room[:n]
            sizes = np.zeros(spill.n_parts, np.int64)
            np.add.at(sizes, segments[:, 2], segments[:, 1] - segments[:, 0])
            bounds = np.concatenate([[0], np.cumsum(sizes)])
            out = np.empty(bounds[-1], np.uint8)
            split_csv.copy_segments(text, segments, bounds[:-1].copy(), out)
            spill.append(out, bounds)
        return spill, int(carried[split_csv.ROWS])


def _find_dialect(
    head: bytes, path: Path, separator: str | None, na_values: Sequence[str]
) -> Dialect:
    """The separator that was asked for, or else the one of the first lines."""
    guessed = []
    if separator is None:
        usual = "\t" if format_suffix(path) == ".tsv" else ","
        rows = {each: _sample_rows(head, each) for each in _SEPARATORS}
        widths = {each: {len(row) for row in rows[each]} for each in rows}
        fields = {each: max(w) if len(w) == 1 else 0 for each, w in widths.items()}
        best = max(fields, key=lambda each: fields[each])
        separator = usual if fields[usual] > 1 or fields[best] < 2 else best
        if separator != usual:
            guessed.append(f"the values are separated by {_SEPARATORS[separator]}")
    separator = {"tab": "\t", "\\t": "\t"}.get(separator, separator)
    if len(separator.encode()) != 1 or separator in '"\r\n':
        raise ParameterError(
            "`separator` must be one character, such as ';' or '\\t'. Got "
            f"{separator!r}."
        )
    decimal = _find_decimal(head, separator)
    if decimal == ",":
        guessed.append("decimals are written with a comma")
    if guessed:
        warnings.warn(
            f"{path}: {' and '.join(guessed)}, as its first lines suggest.",
            FeatstreamWarning,
            stacklevel=2,
        )
    return Dialect(separator, decimal, [*MISSING, *na_values])


def _sample_rows(head: bytes, separator: str) -> list[list[str]]:
    """Whole rows at the beginning of the text; of one long row, what there is."""
    lines = head.decode("utf-8", "replace").splitlines(keepends=True)
    whole = lines[:-1] if len(head) == _SAMPLE and len(lines) > 1 else lines
    try:
        return [row for row in csv.reader(whole, delimiter=separator) if row]
    except csv.Error:
        return []


def _find_decimal(head: bytes, separator: str) -> str:
    """A comma if values such as 1,5 occur, and none such as 1.5."""
    if separator == ",":
        return "."
    cells = {cell.strip() for row in _sample_rows(head, separator) for cell in row}
    found = {
        match[1] for c in cells if (match := re.fullmatch(r"[+-]?\d+([.,])\d+", c))
    }
    return "," if found == {","} else "."


def _hashed(chunks: Iterable[bytes], digest: Any) -> Iterator[bytes]:
    for chunk in chunks:
        digest.update(chunk)
        yield chunk


def _header(text: bytes, dialect: Dialect, *, is_all: bool) -> list[str]:
    """Names in the first row; pyarrow would take ten kilobytes per column."""
    lines = io.TextIOWrapper(io.BytesIO(text), "utf-8", newline="")
    rows = csv.reader(lines, delimiter=dialect.separator)
    try:
        names = next(filter(None, rows), None)
    except csv.Error as error:
        raise DataError(f"its header cannot be read: {error}.") from error
    if names is None:
        raise DataError("it is empty.")
    if not is_all and not lines.read(1) and text[-1:] not in b"\r\n":
        raise DataError(f"its first {len(text):,} bytes hold no end of a line.")
    return names


def _width(n_fields: int, size: int) -> int:
    """Columns in a block."""
    width = n_fields * TEXT_BLOCK_BYTES // max(size, 1)
    width = max(width, -(-n_fields // _MAX_BLOCKS), 1)
    return int(min(width, MAX_COLUMNS, n_fields))


def _parse_block(
    text: bytes, dialect: Dialect, names: Sequence[str], n_rows: int
) -> Any:
    """The columns of a block: plain numbers by our kernel, all else by pyarrow.

    A column costs pyarrow 0.2 ms, whatever its length.
    """
    import pyarrow

    has_marks = any(mark[-1:].isdigit() for mark in dialect.null_values)  # -99, say
    has_lines = any("\n" in name or "\r" in name for name in names)
    if dialect.decimal != "." or has_marks or has_lines:
        return _parse(_CsvReader(text, dialect, is_block=True))
    places = [str(i) for i in range(len(names))]  # instead of names, which may be odd
    header = f"{dialect.separator.join(places)}\n".encode()
    text = header + text[text.find(b"\n") + 1 :]
    whole = np.empty((n_rows, len(names)), np.int64, order="F")
    real = np.empty((n_rows, len(names)), order="F")
    kinds = np.zeros(len(names), np.int64)
    separator = ord(dialect.separator)
    with np.errstate(over="ignore"):  # as compiled, also without numba
        is_unquoted = split_csv.parse_numbers(
            np.frombuffer(text, np.uint8), len(header), separator, whole, real, kinds
        )
    reader = _CsvReader(text, dialect, is_block=True)
    if not is_unquoted:
        return _parse(reader)
    is_plain = (kinds & (split_csv.OTHER | split_csv.NUMBER)) == split_csv.NUMBER
    others = [place for i, place in enumerate(places) if not is_plain[i]]
    rest = reader.read(include_columns=others) if others else None
    columns = []
    for i, place in enumerate(places):
        missing = np.isnan(real[:, i]) if kinds[i] & split_csv.MISSING else None
        if rest is not None and not is_plain[i]:
            columns.append(rest.column(place))
        elif kinds[i] & split_csv.FRACTION:
            columns.append(pyarrow.array(real[:, i], mask=missing))
        else:
            columns.append(pyarrow.array(whole[:, i], mask=missing))
    return _keep_large_integers(pyarrow.table(columns, names=places), reader)


class _CsvReader(NamedTuple):
    """Text that pyarrow parses; an empty line of a block is a missing value."""

    text: bytes
    dialect: Dialect
    is_block: bool = False

    def read(self, **options: Any) -> Any:
        import pyarrow
        from pyarrow.csv import ConvertOptions, ParseOptions, ReadOptions, read_csv

        text, (separator, decimal, null_values), is_block = self
        header = text[: text.find(b"\n") + 1]
        is_narrow = header.count(separator.encode()) < _NARROW
        return read_csv(
            pyarrow.py_buffer(text),
            # One block, one thread: each block of many columns costs pyarrow more.
            ReadOptions(block_size=max(len(text), 1 << 16), use_threads=is_narrow),
            ParseOptions(
                delimiter=separator,
                newlines_in_values=True,
                ignore_empty_lines=not is_block,
            ),
            ConvertOptions(
                null_values=null_values,
                strings_can_be_null=True,
                decimal_point=decimal,
                **options,
            ),
        )


def _parse(reader: _CsvReader) -> Any:
    return _keep_large_integers(reader.read(), reader)


def _keep_large_integers(table: Any, reader: _CsvReader) -> Any:
    """Replace floats by the integers in the text, where these are not exact."""
    import pyarrow

    times = Counter(table.column_names)
    large = []  # columns of floats that may have made integers equal
    for name, column in zip(table.column_names, table.columns, strict=True):
        if column.type == pyarrow.float64() and times[name] == 1:
            arrays = (chunk.to_numpy(zero_copy_only=False) for chunk in column.chunks)
            if any((np.abs(array) > EXACT_IN_FLOAT).any() for array in arrays):
                large.append(name)
    if not large:
        return table
    kinds = dict.fromkeys(large, pyarrow.string())
    texts = reader.read(include_columns=large, column_types=kinds)
    for name in large:
        exact = _as_large_integers(texts.column(name))
        if exact is not None:
            table = table.set_column(table.column_names.index(name), name, exact)
    return table


def _as_large_integers(texts: Any) -> Any:
    """Integers that no float holds, as they are; None if there are none."""
    import pyarrow

    listed = texts.to_pylist()
    if not any(text and re.fullmatch(r"[+-]?\d{16,}", text) for text in listed):
        return None
    try:
        return texts.cast(pyarrow.uint64())
    except pyarrow.ArrowInvalid:
        pass
    try:
        return pyarrow.array([None if t is None else Decimal(t) for t in listed])
    except (InvalidOperation, pyarrow.ArrowInvalid):
        return None
