"""How the text of a table is written: what is given, and what is found in its head.

Comments before the header are skipped, and a header without a name for the names of
the rows, as R writes it, gets an empty one. What is found is said.
"""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Iterator
from itertools import islice, pairwise
from pathlib import Path
from typing import NamedTuple

from featstream.errors import (
    DataError,
    FeatstreamWarning,
    ParameterError,
    Setting,
    printable,
)
from featstream.protocols import feature_name
from featstream.sources.open import format_suffix, shortened
from featstream.sources.text_values import MISSING, is_plain_number

SAMPLE = 1 << 16
"""Bytes from which the separator is found."""

_SEPARATORS = {
    ",": "commas",
    ";": "semicolons",
    "\t": "tabs",
    "|": "bars",
    " ": "spaces",
}
_SAMPLE_ROWS = 8
_MOST_CELLS = 1000  # of the first row that are compared with those below
_LINE_END = re.compile(rb"\r\n|\n|\r")


class TextOptions(NamedTuple):
    """What a user says of the text of a table; None where it is to be found."""

    separator: str | None = None
    na_values: tuple[str, ...] = ()
    decimal: str | None = None
    thousands: str | None = None
    encoding: str | None = None
    skip_rows: int | None = None
    max_bytes: int | None = None
    no_header: bool = False


AS_FOUND = TextOptions()


class Dialect(NamedTuple):
    """How the text of a table is written."""

    separator: str
    decimal: str
    null_values: list[str]
    thousands: str = ""


class Beginning(NamedTuple):
    """The dialect of a table, and where its header begins.

    ``n_skipped`` bytes come before the header, which is to be written ``header_start``
    first.
    """

    dialect: Dialect
    n_skipped: int
    header_start: bytes


def find_beginning(
    head: bytes, path: Path, options: TextOptions, *, is_all: bool
) -> Beginning:
    """Find how a table is written from its first bytes, and say what was guessed."""
    guessed: list[str] = []
    comments: list[bytes] = []
    n_skipped = 0
    if options.skip_rows is not None:
        n_skipped = _end_of_lines(head, options.skip_rows)
    else:
        comments, n_skipped = _comments(head)
    body = head[n_skipped:]
    dialect = _find_dialect(body[:SAMPLE], path, options, guessed)
    rows = list(islice(_rows(body, dialect.separator), _SAMPLE_ROWS))
    if not is_all and len(rows) < _SAMPLE_ROWS:
        del rows[-1:]  # it may be cut
    start = b""
    if options.no_header and rows:
        names = map(feature_name, range(len(rows[0])))
        start = dialect.separator.join(names).encode() + b"\n"
    if comments and not start:
        named = comments[-1].lstrip(b"# \t")
        if _is_header(named, rows, dialect.separator):
            comments.pop()
            start = named  # the header, written again without its mark
        if comments:
            lines = "1 line" if len(comments) == 1 else f"{len(comments)} lines"
            be = "is" if len(comments) == 1 else "are"
            guessed.append(f"{lines} of comments (#) before the header {be} skipped")
    if start:
        pass  # there is none, or it was the last comment
    elif _lacks_first_name(rows):
        start = b'""' + dialect.separator.encode()
    elif (n_before := _n_before_header(rows)) is not None:
        n_lines = len(_LINE_END.findall(head[:n_skipped])) + n_before
        raise _not_the_header(rows, n_before, n_lines)
    elif looks_like_data(rows):
        raise _no_header(rows[0])
    if guessed:
        message = f"{path}: {' and '.join(guessed)}, as its first lines suggest."
        warnings.warn(message, FeatstreamWarning, stacklevel=2)
    return Beginning(dialect, n_skipped, start)


def _end_of_lines(head: bytes, n_lines: int) -> int:
    """Where the line after ``n_lines`` lines begins."""
    ends = islice(_LINE_END.finditer(head), n_lines)
    found = [match.end() for match in ends]
    if len(found) < n_lines:
        raise DataError(
            f"it has {len(found):,} lines, and ",
            Setting("skip_rows", n_lines),
            " skips more.",
        )
    return found[-1] if found else 0


def _comments(head: bytes) -> tuple[list[bytes], int]:
    """The lines at the beginning that are comments or empty, and where they end."""
    comments: list[bytes] = []
    at = 0
    for match in _LINE_END.finditer(head):
        line = head[at : match.end()]
        if line.strip() and not line.startswith(b"#"):
            break
        if line.strip():
            comments.append(line)
        at = match.end()
    return (comments, at) if comments else ([], 0)


def _is_header(line: bytes, rows: list[list[str]], separator: str) -> bool:
    """Whether a comment has the names of the columns of the rows that follow."""
    names = next(_rows(line, separator), [])
    if not rows or len(names) < 2 or len(names) != len(rows[0]):
        return False
    has_numbers = any(map(is_plain_number, rows[0]))
    return has_numbers and not any(map(is_plain_number, names))


def _lacks_first_name(rows: list[list[str]]) -> bool:
    """Whether every row has one value more than the header, which names the others."""
    if len(rows) < 2 or not all(rows[0]) or all(map(is_plain_number, rows[0])):
        return False
    return {len(row) for row in rows[1:]} == {len(rows[0]) + 1}


def _n_before_header(rows: list[list[str]]) -> int | None:
    """How many rows before the header have another number of values, if any do."""
    widths = [len(row) for row in rows]
    if len(rows) < 3 or widths[0] == widths[-1]:
        return None
    n_before = next(i for i, width in enumerate(widths) if width == widths[-1])
    is_regular = set(widths[n_before:]) == {widths[-1]} and n_before < len(rows) - 1
    return n_before if is_regular else None


def looks_like_data(rows: list[list[str]]) -> bool:
    """Whether the first row goes with the rows below it, and is no header.

    A number goes with a column of numbers if it lies near them, and a word with a
    column where it occurs again. Numbers that are counted, such as 1, 2, 3, and so on,
    are names.
    """
    if len(rows) < 3 or len({len(row) for row in rows}) > 1:
        return False
    header = rows[0][:_MOST_CELLS]
    below = list(zip(*(row[: len(header)] for row in rows[1:]), strict=True))
    n_alike = n_unlike = 0
    for cell, column in zip(header, below, strict=True):
        others = [other for other in column if other.strip()]
        if not cell.strip() or not others:
            continue
        are_numbers = all(map(is_plain_number, others))
        if is_plain_number(cell) and are_numbers:
            is_alike = _is_near(float(cell), [float(other) for other in others])
        else:
            is_alike = cell in others
        n_alike += is_alike
        # A word that is new goes with words: it may identify the row.
        n_unlike += not is_alike and (are_numbers or is_plain_number(cell))
    return n_alike > 4 * n_unlike and not _is_counted(header)


def _is_near(number: float, others: list[float]) -> bool:
    low, high = min(others), max(others)
    room = 2 * (high - low) + max(abs(low), abs(high), 1.0)
    return low - room <= number <= high + room


def _is_counted(header: list[str]) -> bool:
    """Whether four names or more are numbers in equal steps."""
    numbers = [float(cell) for cell in header if is_plain_number(cell)]
    steps = {round(b - a, 9) for a, b in pairwise(numbers)}
    return len(numbers) >= 4 and len(steps) == 1 and 0 not in steps


def _no_header(row: list[str]) -> DataError:
    """The error for a text that begins with data."""
    return DataError(
        f"its first row looks like data, not like the names of columns: "
        f"{shortened(row, 5)}. If it has no header, pass ",
        Setting("no_header", True),
        f"; its columns are then called {feature_name(0)}, {feature_name(1)}, and so "
        f"on, the last one {feature_name(len(row) - 1)}. Otherwise name the columns in "
        "words.",
    )


def _not_the_header(rows: list[list[str]], n_before: int, n_lines: int) -> DataError:
    """The error for a first row that is a title or a count rather than a header."""
    return DataError(
        f"its first row has {_values(len(rows[0]))} ({printable(rows[0][0])}), and "
        f"those after row {n_before} have {len(rows[-1]):,}. If it begins with a title "
        "or a count, pass ",
        Setting("skip_rows", n_lines),
        "; otherwise give every row the same number of values.",
    )


def _values(n: int) -> str:
    return "1 value" if n == 1 else f"{n:,} values"


def _rows(text: bytes, separator: str) -> Iterator[list[str]]:
    lines = io.TextIOWrapper(io.BytesIO(text), "utf-8", "replace", newline="")
    try:
        yield from filter(None, csv.reader(lines, delimiter=separator))
    except csv.Error:
        return


def _find_dialect(
    head: bytes, path: Path, options: TextOptions, guessed: list[str]
) -> Dialect:
    """The separator that was given or is found in the first lines; and the rest."""
    separator = options.separator
    if separator is None:
        is_tabs = format_suffix(path) in (".tsv", ".tab")
        usual = "\t" if is_tabs else ","
        samples = {each: _sample_rows(head, each) for each in _SEPARATORS}
        fields = {each: _width(rows) for each, rows in samples.items()}
        # Words may be divided by spaces; a table of R has numbers, and names of rows.
        last = samples[" "][-1] if samples[" "] else []
        if fields[" "] < 3 or not any(map(is_plain_number, last)):
            fields[" "] = 0
        best = max(fields, key=lambda each: fields[each])
        separator = usual if fields[usual] > 1 or fields[best] < 2 else best
        if separator != usual:
            guessed.append(f"the values are separated by {_SEPARATORS[separator]}")
    separator = {"tab": "\t", "\\t": "\t", "space": " "}.get(separator, separator)
    if len(separator.encode()) != 1 or separator in '"\r\n':
        raise ParameterError(
            "`separator` must be one character, such as ';' or '\\t'. Got "
            f"{separator!r}."
        )
    decimal, thousands = options.decimal, options.thousands or ""
    if decimal is None:
        decimal = _find_decimal(head, separator)
        if decimal == ",":
            guessed.append("decimals are written with a comma")
    if decimal not in (".", ","):
        raise ParameterError(f"`decimal` must be '.' or ','. Got {decimal!r}.")
    if len(thousands) > 1 or thousands == decimal or thousands.isalnum():
        raise ParameterError(
            "`thousands` must be one character, such as ',' or ' ', and not that of "
            f"`decimal`. Got {thousands!r}. With thousands='.' write decimal=','."
        )
    return Dialect(separator, decimal, [*MISSING, *options.na_values], thousands)


def _width(rows: list[list[str]]) -> int:
    """Fields per row, if all have the same number; the header may lack the first."""
    widths = [len(row) for row in rows]
    if len(widths) > 1 and widths[0] == widths[1] - 1 > 1:
        widths[0] += 1
    # What comes before the header has fewer, most often one.
    while len(widths) > 3 and widths[0] < widths[1]:
        del widths[0]
    return widths[0] if len(set(widths)) == 1 else 0


def _sample_rows(head: bytes, separator: str) -> list[list[str]]:
    """Whole rows at the beginning of the text; or the beginning of one long row."""
    lines = head.decode("utf-8", "replace").splitlines(keepends=True)
    whole = lines[:-1] if len(head) == SAMPLE and len(lines) > 1 else lines
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
