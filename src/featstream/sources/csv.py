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
import math
import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from decimal import Decimal, InvalidOperation
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from featstream.errors import DataError
from featstream.jit import inner, kernel
from featstream.sources.csv_dialect import (
    AS_FOUND,
    Dialect,
    TextOptions,
    find_beginning,
)
from featstream.sources.kernels.parse_decimal import GOOD, is_digit, scan_number
from featstream.sources.rows_to_columns import TempColumns
from featstream.sources.text_file import TextFile, as_utf8
from featstream.sources.values import EXACT_IN_FLOAT, LIMITS

_EXPANSION = 8  # guessed size of the text, in sizes of the compressed file
_MAX_BLOCKS = 4096
_EMPTY_LINES = re.compile(rb"\n[ \t]*(?=\n)")
_LINE_END = re.compile(rb"\r\n|\n|\r")
_NARROW = 256  # with more columns threads take longer than one

STATE, FIELD, ROWS, MISCOUNTED = 0, 1, 2, 3
"""What is carried from one chunk of text to the next: the state, the number of fields
passed in the row and of rows passed, and the number of fields of a row that has too few
of them, or the first one too many."""

BEGIN, START, PLAIN, QUOTED, QUOTE = 0, 1, 2, 3, 4
"""Before the first byte of a row; before a field; in a plain field; in a quoted one;
after a quote in it."""

NUMBER, FRACTION, EMPTY, OTHER = 1, 2, 4, 8
"""What the fields of a column are; a column may have several of these."""

_QUOTE, _LF, _CR, _MINUS = 34, 10, 13, 45


class CsvTable:
    """The columns of a text file, plain or compressed; see `open_table`."""

    samples = None
    text_columns: list[int] | None = None  # known if all of the text was parsed

    def __init__(self, path: Path, options: TextOptions = AS_FOUND) -> None:
        self.path = path
        digest = hashlib.sha256()
        with closing(TextFile(path, LIMITS.csv_chunk, options.max_bytes)) as file:
            chunks = as_utf8(_hashed(file.chunks(), digest), options.encoding)
            head: list[bytes] = []
            while sum(map(len, head)) <= LIMITS.csv_held and (
                chunk := next(chunks, b"")
            ):
                head.append(chunk)
            text = b"".join(head)
            is_all = len(text) <= LIMITS.csv_held
            self._dialect, n_skipped, start = find_beginning(
                text, path, options, is_all=is_all
            )
            if n_skipped or start:
                text = start + text[n_skipped:]
                head = [text]
            self.names = _header(text, self._dialect, is_all=is_all)
            if is_all and len(self.names) <= LIMITS.csv_columns:
                self._table = _parse(_CsvReader(text, self._dialect))
                self._held, self._width, self._spill = 0, len(self.names), None
                self.n_rows: int = self._table.num_rows
                kinds = [str(field.type) for field in self._table.schema]
                self.text_columns = [i for i, k in enumerate(kinds) if k == "string"]
            else:
                size = file.size * (_EXPANSION if file.is_compressed else 1)
                n_fields = len(self.names)
                width = n_fields * LIMITS.csv_block // max(size, 1)
                width = max(width, -(-n_fields // _MAX_BLOCKS), 1)
                self._width = min(width, LIMITS.csv_columns, n_fields)
                del text
                self._spill, n_rows = self._cut(chain(head, chunks))
                self.n_rows = n_rows - 1
                self._held = -1  # the number of the block that is parsed
        self.fingerprint = digest.hexdigest()

    def read(self, positions: Sequence[int]) -> Any:
        """Some columns, in this order."""
        import pyarrow

        columns = {}
        for position in sorted(positions):  # each block is parsed once
            block, place = divmod(position, self._width)
            if self._spill is not None and block != self._held:
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
        for chunk in chain(chunks, [None]):
            if chunk is None and carried[STATE] == QUOTED:
                raise DataError(
                    f"row {carried[ROWS]} has a quote that is never closed."
                )
            # The last line may lack its end.
            text = np.frombuffer(b"\n" if chunk is None else chunk, np.uint8)
            n_ends = int(np.count_nonzero((text == 10) | (text == 13)))
            most = min(text.size, (n_ends + 1) * spill.n_parts) + 2
            room = np.empty((most, 4), np.int64)
            n = find_segments(text, separator, n_fields, self._width, carried, room)
            if found := int(carried[MISCOUNTED]):
                count = f"{found:,}" if found <= n_fields else f"more than {n_fields:,}"
                raise miscounted(int(carried[ROWS]), count, n_fields)
            segments = room[:n]
            sizes = np.zeros(spill.n_parts, np.int64)
            np.add.at(sizes, segments[:, 2], segments[:, 1] - segments[:, 0])
            bounds = np.concatenate([[0], np.cumsum(sizes)])
            out = np.empty(bounds[-1], np.uint8)
            copy_segments(text, segments, bounds[:-1].copy(), out)
            spill.append(out, bounds)
        return spill, int(carried[ROWS])


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


def _parse_block(
    text: bytes, dialect: Dialect, names: Sequence[str], n_rows: int
) -> Any:
    """The columns of a block: plain numbers by our kernel, all else by pyarrow.

    A column costs pyarrow 0.2 ms, whatever its length.
    """
    import pyarrow

    has_marks = any(mark[-1:].isdigit() for mark in dialect.null_values)  # such as -99
    has_lines = any("\n" in name or "\r" in name for name in names)
    if dialect.decimal != "." or dialect.thousands or has_marks or has_lines:
        return _parse(_CsvReader(text, dialect, is_block=True))
    places = [str(i) for i in range(len(names))]  # instead of names, which may be odd
    header = f"{dialect.separator.join(places)}\n".encode()
    text = header + text[text.find(b"\n") + 1 :]
    whole = np.empty((n_rows, len(names)), np.int64, order="F")
    real = np.empty((n_rows, len(names)), order="F")
    kinds = np.zeros(len(names), np.int64)
    separator = ord(dialect.separator)
    with np.errstate(over="ignore"):  # as compiled, also without numba
        is_unquoted = parse_numbers(
            np.frombuffer(text, np.uint8), len(header), separator, whole, real, kinds
        )
    reader = _CsvReader(text, dialect, is_block=True)
    if not is_unquoted:
        return _parse(reader)
    is_plain = (kinds & (OTHER | NUMBER)) == NUMBER
    others = [place for i, place in enumerate(places) if not is_plain[i]]
    rest = reader.read(include_columns=others) if others else None
    columns = []
    for i, place in enumerate(places):
        missing = np.isnan(real[:, i]) if kinds[i] & EMPTY else None
        if rest is not None and not is_plain[i]:
            columns.append(rest.column(place))
        elif kinds[i] & FRACTION:
            columns.append(pyarrow.array(real[:, i], mask=missing))
        else:
            columns.append(pyarrow.array(whole[:, i], mask=missing))
    return finish(pyarrow.table(columns, names=places), reader)


def parse_rows(
    text: bytes, dialect: Dialect, header: Sequence[str], n_before: int
) -> Any:
    """Some whole rows, of which the first is text; at the beginning with the header.

    ``n_before`` rows came before; the columns are called by their numbers.
    """
    import pyarrow

    places = [str(i) for i in range(len(header))]
    line = f"{dialect.separator.join(places)}\n".encode()
    if not n_before:
        text = _after_header(text, dialect)
    text = _EMPTY_LINES.sub(b"\n", text.replace(b"\r\n", b"\n")).lstrip(b"\n")
    if b'"' in text:
        table = _parse(_CsvReader(line + text, dialect, is_block=True))
    else:
        n_rows = _count_rows(text, dialect.separator, len(header), n_before)
        table = _parse_block(line + text, dialect, places, n_rows)
    # The kernel and pyarrow would read names such as 007 as numbers.
    words = {"include_columns": ["0"], "column_types": {"0": pyarrow.string()}}
    names = _CsvReader(line + text, dialect, is_block=True).read(**words)
    return table.set_column(0, "0", names.column(0))


def _count_rows(text: bytes, separator: str, n_fields: int, n_before: int) -> int:
    """The number of rows without quotes, which must have the same number of fields."""
    data = np.frombuffer(text, np.uint8)
    ends = np.flatnonzero(data == _LF)
    marks = np.concatenate([[0], np.cumsum(data == ord(separator))])
    found = np.diff(marks[ends + 1], prepend=0) + 1
    if (found != n_fields).any():
        row = int((found != n_fields).argmax())
        raise miscounted(n_before + row + 1, f"{found[row]:,}", n_fields)
    return ends.size


def _after_header(text: bytes, dialect: Dialect) -> bytes:
    """The text after its first row that is not empty."""
    lines = io.TextIOWrapper(io.BytesIO(text), "utf-8", newline="")
    rows = csv.reader(lines, delimiter=dialect.separator)
    next(filter(None, rows))
    ends = islice(_LINE_END.finditer(text), rows.line_num)
    return text[deque(ends, 1)[0].end() :]


class _CsvReader(NamedTuple):
    """Text that pyarrow parses; an empty line of a block is a missing value."""

    text: bytes
    dialect: Dialect
    is_block: bool = False

    def read(self, **options: Any) -> Any:
        import pyarrow
        from pyarrow.csv import ConvertOptions, ParseOptions, ReadOptions, read_csv

        text, (separator, decimal, null_values, _), is_block = self
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
    from pyarrow import ArrowInvalid

    try:
        table = reader.read()
    except ArrowInvalid as error:
        flaw = _first_ragged_row(reader)
        raise (flaw or error) from error
    return finish(table, reader)


def finish(table: Any, reader: _CsvReader) -> Any:
    """What pyarrow read, with the numbers that it left as text or as rounded floats."""
    return _keep_large_integers(_read_numbers(table, reader.dialect), reader)


def _first_ragged_row(reader: _CsvReader) -> DataError | None:
    """The error for the first row that has too many or too few values."""
    lines = io.TextIOWrapper(io.BytesIO(reader.text), "utf-8", "replace", newline="")
    n_fields = 0
    rows = csv.reader(lines, delimiter=reader.dialect.separator)
    with suppress(csv.Error):
        for number, row in enumerate(filter(None, rows)):
            n_fields = n_fields or len(row)
            if len(row) != n_fields:
                return miscounted(number, f"{len(row):,}", n_fields)
    return None


def miscounted(row: int, found: str, n_fields: int) -> DataError:
    """The error for a row with too many or too few values."""
    values = "value" if found == "1" else "values"
    return DataError(f"row {row} has {found} {values} but the header {n_fields:,}.")


def _read_numbers(table: Any, dialect: Dialect) -> Any:
    """Replace text by numbers where pyarrow knows no such notation: +5, or 1,234."""
    import pyarrow
    from pyarrow import compute

    decimal, thousands = re.escape(dialect.decimal), re.escape(dialect.thousands)
    grouped = rf"[0-9]{{1,3}}({thousands}[0-9]{{3}})+|" if thousands else ""
    end = rf"({decimal}[0-9]*)?([eE][+-]?[0-9]+)?"
    pattern = rf"^ *[+-]?({grouped}[0-9]+|{decimal}[0-9]){end} *$"
    for i, field in enumerate(table.schema):
        if not pyarrow.types.is_string(field.type):
            continue
        column = table.column(i)
        first = column.drop_null()[:1]
        matches = partial(compute.match_substring_regex, pattern=pattern)
        if not len(first) or not matches(first)[0].as_py():
            continue
        if not compute.all(matches(column)).as_py():
            continue
        plain = compute.utf8_trim_whitespace(column)
        plain = compute.replace_substring_regex(plain, r"^\+", "")
        if thousands:
            plain = compute.replace_substring(plain, dialect.thousands, "")
        plain = compute.replace_substring(plain, dialect.decimal, ".")
        try:
            numbers = plain.cast(pyarrow.int64())
        except pyarrow.ArrowInvalid:
            numbers = plain.cast(pyarrow.float64())
        table = table.set_column(i, field.name, numbers)
    return table


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
    """Integers that float64 would round, exactly; None if there are none."""
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


@kernel(allocates=True)
def find_segments(
    text: Any, separator: int, n_fields: int, width: int, carried: Any, segments: Any
) -> int:
    """Divide a chunk of text into segments that each belong to one block.

    The rules are those of RFC 4180, as pyarrow reads it: quotes count at the start
    of a field alone, and are doubled within; empty lines are passed over.

    ``text`` may begin and end anywhere. ``n_fields`` and ``width`` are fields per row,
    and per block, but for the last one. ``carried``, four zeros at the beginning, is
    written to: state, field, rows, miscounted; it stops at a row that is miscounted.
    ``segments`` is filled with begin, end, block, and whether the last byte ends a row
    of the block; it has room for one per block and end of line, and two more. Returns
    their number.
    """
    state = carried[STATE]
    field = carried[FIELD]
    n_segments = 0
    begin = 0
    i = 0
    while i < text.size:
        byte = text[i]
        i += 1
        block = field // width
        is_end = False
        if state == QUOTED:
            while byte != _QUOTE and i < text.size:
                byte = text[i]
                i += 1
            state = QUOTE if byte == _QUOTE else QUOTED
        elif byte == _QUOTE and state != PLAIN:
            state = QUOTED
        elif byte == separator:
            state = START
            field += 1
            if field == n_fields:
                carried[MISCOUNTED] = field + 1
                break
            is_end = field % width == 0
        elif byte in (_LF, _CR):
            if state == BEGIN:  # an empty line, or a line feed after a carriage return
                begin = i
                continue
            state = BEGIN
            if field + 1 < n_fields:
                carried[MISCOUNTED] = field + 1
                break
            is_end = True
            carried[ROWS] += 1
            field = 0
        else:
            state = PLAIN
            while i < text.size and text[i] != separator and text[i] > _CR:
                i += 1
        if is_end:
            segments[n_segments] = begin, i, block, 1
            n_segments += 1
            begin = i
    if begin < i:
        segments[n_segments] = begin, i, field // width, 0
        n_segments += 1
    carried[STATE] = state
    carried[FIELD] = field
    return n_segments


@kernel(allocates=True)
def copy_segments(text: Any, segments: Any, place: Any, out: Any) -> None:
    """Copy segments to their blocks, with a newline at the end of each row.

    ``place`` has the position in ``out`` of the next byte of each block.
    """
    for k in range(segments.shape[0]):
        begin, end, block, is_end = segments[k]
        at = place[block]
        place[block] = at + end - begin
        out[at : place[block]] = text[begin:end]
        if is_end:
            out[place[block] - 1] = _LF


@inner(allocates=True)
def _scan_integer(text: Any, i: int) -> Any:
    """The number of at most 18 digits at ``i``, and the position after them."""
    begin = i
    number = np.int64(0)
    while is_digit(text[i]) and i - begin < 18:
        number = number * 10 + (np.int64(text[i]) - 48)
        i += 1
    return number, i


@kernel(allocates=True)
def parse_numbers(
    text: Any, i: int, separator: int, whole: Any, real: Any, kinds: Any
) -> bool:
    """Read the numbers of a block from position ``i`` on; False if a field is quoted.

    ``whole`` and ``real`` are of shape (n_rows, n_columns): every number is put into
    both, if it can be. ``kinds`` has flags for each column; one with ``OTHER`` has
    fields that are not plain numbers, and is not to be used.
    """
    n_rows, n_columns = whole.shape
    for row in range(n_rows):
        for column in range(n_columns):
            end_mark = separator if column < n_columns - 1 else _LF
            if text[i] == _QUOTE:
                return False
            if text[i] == end_mark:
                kinds[column] |= EMPTY
                real[row, column] = math.nan
                whole[row, column] = 0
                i += 1
                continue
            is_negative = text[i] == _MINUS
            first = i + is_negative
            number, end = _scan_integer(text, first)
            kind = NUMBER
            value = 0.0
            if end == first or is_digit(text[end]):
                kind = OTHER
            elif text[end] == end_mark:
                whole[row, column] = -number if is_negative else number
                value = float(number)
            else:
                value, end, status = scan_number(text, first)
                is_plain = status == GOOD and is_digit(text[end - 1])
                if is_plain and text[end] == end_mark and not math.isinf(value):
                    kind = NUMBER | FRACTION
                else:
                    kind = OTHER
            if kind == OTHER:
                while text[end] != end_mark:
                    end += 1
            real[row, column] = -value if is_negative else value
            kinds[column] |= kind
            i = end + 1
    return True
