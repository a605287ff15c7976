"""Wide comma-separated text: cut into strips of columns once, then read by strip.

A parser that is asked for some columns walks all of the text; asked for all of them,
a thousand at a time, it walks it a thousandfold. So text that is too large to be
held is cut in one pass. Each strip is comma-separated text itself, and is read as
the whole would be.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from featstream.errors import DataError
from featstream.kernels import strips
from featstream.sources._spill import Spill
from featstream.sources.pieces import TextFile

__all__ = ["CsvTable"]

HELD_BYTES = 64 << 20
"""Text up to this size is held in memory, if its columns are not too many."""

MAX_COLUMNS = 4096
"""Columns parsed at a time: each takes pyarrow ten kilobytes."""

STRIP_BYTES = 16 << 20
"""About the size of the text of a strip, unless one column has more."""

_CHUNK = 16 << 20
_UNFOLDS = 8  # times, as a guess, a compressed file
_MAX_STRIPS = 4096
_MAX_FIELDS = 1 << 40


class CsvTable:
    """The columns of a CSV file, plain or compressed.

    Parameters
    ----------
    path : Path
        The file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        digest = hashlib.sha256()
        with closing(TextFile(path, _CHUNK, None)) as file:
            chunks = _hashed(file.chunks(), digest)
            head, is_all = _take(chunks, HELD_BYTES)
            self.names = _header([*head, b"\n"] if is_all else head)
            if is_all and len(self.names) <= MAX_COLUMNS:
                self._table = _parse(b"".join(head))
                self._strip, self._width, self._spill = 0, 0, None
                self.n_rows: int = self._table.num_rows
            else:
                size = file.size * (_UNFOLDS if file.is_compressed else 1)
                self._width = _width(len(self.names), size)
                self._spill, n_rows = self._cut(chain(head, chunks))
                self.n_rows = n_rows - 1
                self._strip = -1  # the one that is held
        self.fingerprint = digest.hexdigest()

    def read(self, positions: Sequence[int]) -> Any:
        """Some columns, in this order."""
        import pyarrow

        if self._spill is None:
            return self._table.select(positions)
        columns = []
        for position in positions:
            strip, place = divmod(position, self._width)
            if strip != self._strip:
                text = b"".join(self._spill.read(strip))
                self._table, self._strip = _parse(text, is_strip=True), strip
            columns.append(self._table.column(place))
        return pyarrow.table(columns, names=[self.names[i] for i in positions])

    def _cut(self, chunks: Iterable[bytes]) -> tuple[Spill, int]:
        """Cut the text into strips; how many rows there are, with the header."""
        n_fields = len(self.names)
        spill = Spill(-(-n_fields // self._width))
        carried = np.zeros(4, np.int64)
        for chunk in chain(chunks, [b"\n"]):  # the last line may lack its end
            if chunk == b"\n" and carried[strips.STATE] == strips.QUOTED:
                raise DataError(
                    f"row {carried[strips.ROWS]} has a quote that is never closed."
                )
            text = np.frombuffer(chunk, np.uint8)
            n_ends = int(np.count_nonzero((text == 10) | (text == 13)))
            most = min(text.size, (n_ends + 1) * spill.n_parts) + 2
            room = np.empty((most, 4), np.int64)
            n = strips.find_segments(text, n_fields, self._width, carried, room)
            if carried[strips.MISCOUNTED]:
                found = _counted(int(carried[strips.MISCOUNTED]), n_fields)
                raise DataError(
                    f"row {carried[strips.ROWS]} has {found} but the header "
                    f"{n_fields:,}."
                )
            segments = room[:n]
            sizes = np.zeros(spill.n_parts, np.int64)
            np.add.at(sizes, segments[:, 2], segments[:, 1] - segments[:, 0])
            bounds = np.concatenate([[0], np.cumsum(sizes)])
            out = np.empty(bounds[-1], np.uint8)
            strips.copy_segments(text, segments, bounds[:-1].copy(), out)
            spill.append(out, bounds)
        return spill, int(carried[strips.ROWS])


def _counted(found: int, n_fields: int) -> str:
    if found > n_fields:
        return f"more than {n_fields:,} values"
    return f"{found:,} value{'s' * (found > 1)}"


def _hashed(chunks: Iterable[bytes], digest: Any) -> Iterator[bytes]:
    for chunk in chunks:
        digest.update(chunk)
        yield chunk


def _take(chunks: Iterator[bytes], most: int) -> tuple[list[bytes], bool]:
    """The beginning of the text, and whether it is all."""
    taken: list[bytes] = []
    size = 0
    for chunk in chunks:
        taken.append(chunk)
        size += len(chunk)
        if size > most:
            return taken, False
    return taken, True


def _header(chunks: Iterable[bytes]) -> list[str]:
    """Names in the first row.

    pyarrow would take ten kilobytes a column to read them.
    """
    text = np.frombuffer(b"".join(chunks), np.uint8)
    carried = np.zeros(4, np.int64)
    segments = np.empty((2, 4), np.int64)
    # With room for any number of fields, the first row has too few, and it stops.
    strips.find_segments(text, _MAX_FIELDS, _MAX_FIELDS, carried, segments)
    if not text.tobytes().strip():
        raise DataError("it is empty.")
    if not carried[strips.MISCOUNTED]:
        raise DataError(f"its first {text.size:,} bytes hold no end of a line.")
    begin, end = segments[0, :2]
    try:
        return next(csv.reader([text[begin:end].tobytes().decode()]))
    except csv.Error as error:
        raise DataError(f"its header cannot be read: {error}.") from error


def _width(n_fields: int, size: int) -> int:
    """Columns in a strip."""
    width = n_fields * STRIP_BYTES // max(size, 1)
    width = max(width, -(-n_fields // _MAX_STRIPS), 1)
    return int(min(width, MAX_COLUMNS, n_fields))


def _parse(text: bytes, *, is_strip: bool = False) -> Any:
    """Text as a table; an empty line of a strip is a missing value."""
    import pyarrow
    from pyarrow.csv import ParseOptions, ReadOptions, read_csv

    return read_csv(
        pyarrow.py_buffer(text),
        ReadOptions(block_size=_CHUNK),
        ParseOptions(newlines_in_values=True, ignore_empty_lines=not is_strip),
    )
