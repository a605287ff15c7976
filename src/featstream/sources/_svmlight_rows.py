"""Parsing svmlight text in threads: pieces of text in, rows out, in order."""

from __future__ import annotations

import math
import os
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from featstream.errors import DataError, ParameterError
from featstream.parallel import count_threads
from featstream.sources._svmlight_flaws import MAX_INDEX, explain
from featstream.sources.kernels import parse_svmlight as grammar
from featstream.sources.text_file import TextFile

__all__ = ["PathLike", "Reader", "RowSlice", "ZeroBased", "join_rows"]

ZeroBased: TypeAlias = bool | Literal["auto"]
PathLike: TypeAlias = str | os.PathLike[str]

PIECE = 8 << 20  # bytes of text parsed at a time
_NUMBER = re.compile(rb"[0-9.eE+-]+")


@dataclass(frozen=True, slots=True)
class RowSlice:
    """Consecutive rows of a file, in compressed (CSR) form.

    Attributes
    ----------
    indptr : ndarray of int64 of shape (n_rows + 1,)
        Where each row begins and ends.
    indices : ndarray of int32
        Column of each entry. Unless the file was said to be zero-based, one less
        than written: -1 for the index 0.
    values : ndarray of float64
        Value of each entry.
    y : ndarray of shape (n_rows,)
        Labels: float64, or str if they are words.
    lowest, highest : int
        Least and greatest of ``indices``; 2**31 - 1 and -1 if there are none.
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    values: NDArray[np.float64]
    y: NDArray[Any]
    lowest: int
    highest: int


class _Outcome(NamedTuple):
    """What became of a piece; lines are counted from its first, 0."""

    rows: RowSlice
    n_lines: int
    kind: int
    first_row: tuple[int, bytes]  # its line and label, if there is one
    failure: tuple[int, str] | None  # line and reason


class Reader:
    """Parses the pieces of a file, several at a time, all by the same rules."""

    def __init__(
        self,
        path: PathLike,
        n_jobs: int | None,
        zero_based: ZeroBased,
        limit: int | None,
    ) -> None:
        if zero_based not in (True, False, "auto"):
            raise ParameterError(
                f"`zero_based` must be True, False or 'auto'. Got {zero_based!r}."
            )
        self.base = int(zero_based is False)
        self.shift = int(zero_based is not True)
        self.n_threads = _n_threads(n_jobs)
        self.file = TextFile(path, PIECE, limit)
        self.pool = ThreadPoolExecutor(self.n_threads)

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self.pool.shutdown(cancel_futures=True)
        self.file.close()

    def slices(self) -> Iterator[tuple[int, RowSlice]]:
        """Parse piece after piece, a few ahead, each into arrays of its own."""
        stops: deque[int] = deque()
        for rows in self._checked(self._outcomes(stops)):
            stop = stops.popleft()
            self.file.forget(stop)
            yield stop, rows

    def _outcomes(self, stops: deque[int]) -> Iterator[_Outcome]:
        waiting: deque[Future[_Outcome]] = deque()
        for piece in self.file.pieces():
            stops.append(piece.stop)
            waiting.append(self.pool.submit(self._count_and_parse, piece.text))
            if len(waiting) > self.n_threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()

    def whole(self) -> RowSlice:
        """Count first, then parse all pieces into one set of arrays."""
        texts = [piece.text for piece in self.file.pieces()]
        counts = np.array(list(self.pool.map(grammar.count_marks, texts)), np.int64)
        ends = counts.reshape(-1, 2).cumsum(axis=0)
        n_lines, n_colons = ends[-1] if texts else (0, 0)
        room = _make_room(n_lines, n_colons)
        rooms = (
            _part_of(room, slice(line - k, line), slice(entry - n, entry))
            for (line, entry), (k, n) in zip(ends, counts, strict=True)
        )
        rows = list(self._checked(self.pool.map(self._parse, texts, rooms)))
        return join_rows(rows, room)

    def _checked(self, outcomes: Iterable[_Outcome]) -> Iterator[RowSlice]:
        """Raise the first failure in the order of the file."""
        kind = grammar.UNKNOWN
        n_lines = 1
        for outcome in outcomes:
            failure = outcome.failure
            if kind != grammar.UNKNOWN != outcome.kind != kind:
                line, label = outcome.first_row
                failure = line, explain(grammar.MIXED, label)
            if failure is not None:
                line, reason = failure
                raise DataError(f"{self.file.name}, line {n_lines + line}: {reason}.")
            kind = kind or outcome.kind
            n_lines += outcome.n_lines
            yield outcome.rows

    def _count_and_parse(self, text: NDArray[np.uint8]) -> _Outcome:
        return self._parse(text, _make_room(*grammar.count_marks(text)))

    def _parse(self, text: NDArray[np.uint8], room: grammar.Rows) -> _Outcome:
        words = np.ndarray((text.size - 7,), np.uint64, text, strides=(1,))
        with np.errstate(over="ignore"):  # as compiled, also without numba
            parsed = grammar.parse_rows(text, words, self.base, self.shift, room)
        flaws = []
        if parsed.flaw != grammar.FINE:
            flaws.append((parsed.position, parsed.flaw))
        if parsed.n_long:
            flaws += _read_long_numbers(text, room, parsed)
        y: NDArray[Any] = room.labels[: parsed.n_rows]
        if parsed.kind == grammar.WORDS:
            y, bad = _read_words(text, room.label_spans[: parsed.n_rows])
            flaws += bad
        failure = None
        if flaws:
            position, flaw = min(flaws)
            n_before, _ = grammar.count_marks(text[:position])
            rest = text[position : position + 4096].tobytes()
            failure = n_before, explain(flaw, rest, parsed.previous)
        first_row = 0, b""
        if parsed.kind != grammar.UNKNOWN:
            begin, end = room.label_spans[0]
            n_before, _ = grammar.count_marks(text[:begin])
            first_row = n_before, text[begin:end].tobytes()
        rows = RowSlice(
            np.concatenate([[0], room.ends[: parsed.n_rows]]),
            room.indices[: parsed.n_entries],
            room.values[: parsed.n_entries],
            y,
            parsed.lowest,
            parsed.highest,
        )
        return _Outcome(rows, room.labels.size, parsed.kind, first_row, failure)


def _make_room(n_lines: int, n_colons: int) -> grammar.Rows:
    values = np.empty(n_colons)
    return grammar.Rows(
        np.empty(n_lines),
        np.empty((n_lines, 2), np.int64),
        np.empty(n_lines, np.int64),
        np.empty(n_colons, np.int32),
        values,
        values.view(np.int64),
    )


def _part_of(room: grammar.Rows, lines: slice, entries: slice) -> grammar.Rows:
    return grammar.Rows(
        room.labels[lines],
        room.label_spans[lines],
        room.ends[lines],
        room.indices[entries],
        room.values[entries],
        room.bits[entries],
    )


def _read_long_numbers(
    text: NDArray[np.uint8], room: grammar.Rows, parsed: grammar.Parsed
) -> list[tuple[int, int]]:
    """Let Python read the numbers of very many digits; where one is too large."""
    flaws = []

    def read(begin: int) -> float:
        match = _NUMBER.match(memoryview(text), begin)
        assert match is not None
        value = float(match[0])
        if math.isinf(value):
            flaws.append((begin, grammar.OVERFLOW))
        return value

    for i in np.flatnonzero(np.isnan(room.values[: parsed.n_entries])):
        room.values[i] = read(int(room.bits[i] & grammar.POSITION))
    if parsed.kind == grammar.NUMBERS:
        for i in np.flatnonzero(np.isnan(room.labels[: parsed.n_rows])):
            room.labels[i] = read(int(room.label_spans[i, 0]))
    return flaws


def _read_words(
    text: NDArray[np.uint8], spans: NDArray[np.int64]
) -> tuple[NDArray[np.str_], list[tuple[int, int]]]:
    """Labels as text; where one is not UTF-8."""
    words = []
    for begin, end in spans.tolist():
        try:
            words.append(text[begin:end].tobytes().decode())
        except UnicodeDecodeError:
            return np.array(words, np.str_), [(begin, grammar.LABEL)]
    return np.array(words, np.str_), []


def join_rows(parts: Sequence[RowSlice], room: grammar.Rows | None) -> RowSlice:
    """Slices as one; without copying if they fill the room that they share."""
    if not parts:
        _, _, indptr, indices, values, _ = _make_room(1, 0)
        return RowSlice(indptr * 0, indices, values, np.empty(0), MAX_INDEX, -1)
    n_entries = sum(part.values.size for part in parts)
    if room is not None and room.values.size == n_entries:
        indices, values = room.indices, room.values
    else:
        indices = np.concatenate([part.indices for part in parts])
        values = np.concatenate([part.values for part in parts])
    starts = [np.zeros(1, np.int64)]
    n_before = 0
    for part in parts:
        starts.append(part.indptr[1:] + n_before)
        n_before += part.values.size
    return RowSlice(
        np.concatenate(starts),
        indices,
        values,
        np.concatenate([part.y for part in parts if part.y.size] or [parts[0].y]),
        min(part.lowest for part in parts),
        max(part.highest for part in parts),
    )


def _n_threads(n_jobs: int | None) -> int:
    return count_threads(-1 if n_jobs is None else n_jobs)
