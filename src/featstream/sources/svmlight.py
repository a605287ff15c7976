"""svmlight (libsvm) text: ``label [qid:n] index:value ... [# comment]``.

The text is cut into chunks of whole lines, which threads parse into rows; the rows
are put together in the order of the file, and the first flaw is explained.
"""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from featstream.errors import (
    DataError,
    ParameterError,
    Setting,
    printable,
    size_text,
)
from featstream.parallel import count_threads
from featstream.sources.kernels import parse_svmlight as grammar
from featstream.sources.memory import SparseSource
from featstream.sources.open import Dataset, PathLike, existing
from featstream.sources.text_file import TextFile
from featstream.sources.values import LIMITS

ZeroBased: TypeAlias = bool | Literal["auto"]
FileProgress: TypeAlias = Callable[[int, int], object]  # bytes read, and bytes in all

_NUMBER = re.compile(rb"[0-9.eE+-]+")
_TOKEN = re.compile(rb"[^ \t\r\n#]*")
_NOT_FINITE = {"nan", "inf", "infinity"}
_POINTER_BYTES = 8  # per column, wherever its entries begin
_NOTATION = "Write plain decimals such as 12, -0.5 or 1e-3"


def open_svmlight(
    path: PathLike, target: str | None = None, *, max_bytes: int | None = None
) -> Dataset:
    """Open a text file in the format of svmlight and libsvm.

    Parameters
    ----------
    path : str or path-like
        Plain, or compressed with gzip, xz or bzip2.
    target : None
        Each line begins with the target, so there is nothing to choose.
    max_bytes
        As for `read_svmlight`. Where columns begin, 8 bytes each, may not take more
        either.
    """
    if target is not None:
        raise ParameterError(
            f"An svmlight file holds its own target. Got target={target!r} for {path}."
        )
    X, y = read_svmlight(path, max_bytes=max_bytes)
    with closing(TextFile(path, LIMITS.svmlight_chunk, max_bytes)) as file:
        _check_width(X.shape[1], file)
    return Dataset(SparseSource(X.tocsc(), is_checked=X.shape[0] > 0), y)


def read_svmlight(
    path: PathLike,
    *,
    n_jobs: int | None = None,
    n_features: int | None = None,
    zero_based: ZeroBased = "auto",
    max_bytes: int | None = None,
) -> tuple[csr_array, NDArray[Any]]:
    r"""Read a svmlight file into memory.

    Parameters
    ----------
    path : str or path
        Plain text, or text compressed with gzip, bzip2 or xz.
    n_jobs : int, optional
        Threads; by default one per core. The result does not depend on it.
    n_features : int, optional
        Number of columns; by default as many as the greatest index asks for.
    zero_based : bool or "auto", default="auto"
        Whether the first column has the index 0. "auto" takes the file as
        zero-based if the index 0 occurs in it.
    max_bytes : int, optional
        Most text that a compressed file may decompress to; by default 200 times the
        size of the file, or 64 MiB.

    Returns
    -------
    X : csr_array of float64 of shape (n_samples, n_features)
        The matrix; zeros that are written out are stored.
    y : ndarray of shape (n_samples,)
        Labels: float64 if they are numbers, str if they are words.

    Raises
    ------
    DataError
        If the text is malformed; the message names the line.

    Notes
    -----
    Numbers are rounded as ``float`` rounds. A last line without a newline is
    read like any other. ``qid:`` is checked and left out. ``nan`` and ``inf`` are
    refused, and so are several labels in a row. A plain file is read twice.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "small.svm"
    >>> _ = path.write_text("+1 1:0.5 3:2 # first\n-1 2:25e-2\n")
    >>> X, y = read_svmlight(path)
    >>> X.toarray()
    array([[0.5 , 0.  , 2.  ],
           [0.  , 0.25, 0.  ]])
    >>> y
    array([ 1., -1.])
    """
    with Reader(path, n_jobs, zero_based, max_bytes) as reader:
        rows = reader.whole()
    found = rows.highest + 1
    if rows.lowest < 0:
        rows.indices[:] += 1
        found += 1
    if n_features is None:
        n_features = found
    elif found > n_features:
        raise DataError(
            f"{reader.file.name} has {found} columns but n_features={n_features}. "
            "Pass n_features=None to take them all."
        )
    shape = (rows.y.size, n_features)
    X = csr_array((rows.values, rows.indices, rows.indptr), shape=shape)
    X.has_canonical_format = True
    return X, rows.y


def iter_svmlight(
    path: PathLike,
    *,
    n_jobs: int | None = None,
    zero_based: ZeroBased = "auto",
    max_bytes: int | None = None,
    progress: FileProgress | None = None,
) -> Iterator[RowSlice]:
    r"""Read a svmlight file a few megabytes at a time.

    Parameters
    ----------
    path, n_jobs, zero_based
        As for `read_svmlight`.
    max_bytes : int, optional
        As for `read_svmlight`.
    progress : callable, optional
        Called after each slice with the bytes read and the bytes in all.

    Yields
    ------
    rows : RowSlice
        Slices in the order of the file. With ``zero_based="auto"`` only the last
        one decides: the file is zero-based if some slice has ``lowest == -1``.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "small.svm"
    >>> _ = path.write_text("spam 1:0.5 3:2\nham 2:1\n")
    >>> for rows in iter_svmlight(path):
    ...     print(rows.y, rows.indices, rows.values)
    ['spam' 'ham'] [0 2 1] [0.5 2.  1. ]
    """
    with Reader(path, n_jobs, zero_based, max_bytes) as reader:
        yield from reader.slices(progress)


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


class ParsedChunk(NamedTuple):
    """The rows of a chunk; lines are counted from its first line, 0."""

    rows: RowSlice
    n_lines: int
    kind: int
    first_row: tuple[int, bytes]  # its line and label, if there is one
    failure: tuple[int, str] | None  # line and reason


def _check_width(n_features: int, file: TextFile) -> None:
    """Raise if where the columns begin would take far more memory than the file."""
    most = file.max_bytes // _POINTER_BYTES
    if n_features > most:
        raise DataError(
            f"{file.name} has {n_features:,} features, and a file of "
            f"{size_text(file.size)} is not expected to have more than {most:,}. "
            "Number them from 1 on; or, if that is right, pass ",
            Setting("max_bytes", size_text(_POINTER_BYTES << 31).replace(" ", "")),
            ", memory for where columns begin.",
        )


class Reader:
    """Parses the chunks of a file, several at a time; a file is read once."""

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
        path = existing(path)
        self.n_threads = count_threads(-1 if n_jobs is None else n_jobs)
        self.file = TextFile(path, LIMITS.svmlight_chunk, limit)
        self.pool = ThreadPoolExecutor(self.n_threads)
        self.limits_columns = False  # of rows; by columns, each takes some memory
        self._kind = grammar.UNKNOWN  # of the labels of the chunks checked so far
        self._n_lines = 1  # one more than the lines of these chunks

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self.pool.shutdown(cancel_futures=True)
        self.file.close()

    def slices(self, progress: FileProgress | None = None) -> Iterator[RowSlice]:
        """Parse chunk after chunk, a few ahead, each into arrays of its own."""
        ahead = (
            (self.pool.submit(self.parse, text), stop)
            for text, stop in self.file.line_chunks()
        )
        waiting = deque(islice(ahead, self.n_threads))
        while waiting:
            waiting.extend(islice(ahead, 1))
            parsed, stop = waiting.popleft()
            rows = self.check(parsed.result())
            yield rows
            if progress is not None:
                progress(stop, self.file.size)

    def whole(self) -> RowSlice:
        """Parse all chunks, those of a plain file into one set of arrays."""
        if self.file.is_compressed:
            return join_rows([*self.slices()], _make_room(0, 0))
        spans = list(self.file.spans())
        counts = np.array(list(self.pool.map(self._count_marks, spans)), np.int64)
        ends = counts.reshape(-1, 2).cumsum(axis=0)
        n_lines, n_colons = ends[-1] if spans else (0, 0)
        room = _make_room(n_lines, n_colons)
        rooms = (
            grammar.Rows._make(
                [a[line - k : line] for a in room[:3]]
                + [a[entry - n : entry] for a in room[3:]]
            )
            for (line, entry), (k, n) in zip(ends, counts, strict=True)
        )
        parsed = self.pool.map(self._parse_span, spans, rooms)
        return join_rows([self.check(chunk) for chunk in parsed], room)

    def _count_marks(self, span: tuple[int, int]) -> tuple[int, int]:
        n_lines, n_colons = grammar.count_marks(self.file.lines_between(*span))
        return n_lines, n_colons

    def _parse_span(self, span: tuple[int, int], room: grammar.Rows) -> ParsedChunk:
        return self.parse(self.file.lines_between(*span), room)

    def check(self, chunk: ParsedChunk) -> RowSlice:
        """The rows of the next chunk in the order of the file; raise if it failed."""
        failure = chunk.failure
        if self._kind != grammar.UNKNOWN != chunk.kind != self._kind:
            line, label = chunk.first_row
            failure = line, explain(grammar.MIXED, label)
        if failure is not None:
            line, reason = failure
            place = f"{self.file.name}, line {self._n_lines + line}"
            raise DataError(f"{place}: {reason}.")
        if self.limits_columns:
            _check_width(chunk.rows.highest + 1, self.file)
        self._kind = self._kind or chunk.kind
        self._n_lines += chunk.n_lines
        return chunk.rows

    def parse(
        self, text: NDArray[np.uint8], room: grammar.Rows | None = None
    ) -> ParsedChunk:
        """Parse some whole lines, into arrays of their own if none are given."""
        room = room or _make_room(*grammar.count_marks(text))
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
        return ParsedChunk(rows, room.labels.size, parsed.kind, first_row, failure)


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


def _read_long_numbers(
    text: NDArray[np.uint8], room: grammar.Rows, parsed: grammar.Parsed
) -> list[tuple[int, int]]:
    """Parse numbers with very many digits in Python; return those too large."""
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
    """Labels as text, and the first one that is not UTF-8."""
    words = []
    for begin, end in spans.tolist():
        try:
            words.append(text[begin:end].tobytes().decode())
        except UnicodeDecodeError:
            return np.array(words, np.str_), [(begin, grammar.LABEL)]
    return np.array(words, np.str_), []


def join_rows(parts: Sequence[RowSlice], room: grammar.Rows) -> RowSlice:
    """Slices as one; without copying if they fill the room that they share."""
    indices, values = room.indices, room.values
    if values.size != sum(part.values.size for part in parts):
        indices = np.concatenate([part.indices for part in parts])
        values = np.concatenate([part.values for part in parts])
    sizes = [np.zeros(1, np.int64), *(np.diff(part.indptr) for part in parts)]
    return RowSlice(
        np.concatenate(sizes).cumsum(),
        indices,
        values,
        join_labels([part.y for part in parts]),
        min([grammar.MAX_INDEX, *(part.lowest for part in parts)]),
        max([-1, *(part.highest for part in parts)]),
    )


def join_labels(labels: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """The labels of several slices of rows."""
    return np.concatenate([part for part in labels if part.size] or [np.empty(0)])


def explain(flaw: int, text: bytes, previous: int = -1) -> str:
    """Reason why the token at the beginning of ``text`` is refused.

    ``text`` goes to the end of the line at least; ``previous`` is the index before
    the token, if the flaw is one of order.
    """
    match = _TOKEN.match(text)
    token = match[0].decode("utf-8", "backslashreplace") if match else ""
    if flaw == grammar.ENDING and text[:1] == b"\r":
        return "there is a carriage return inside the line. End lines with a newline"
    if flaw == grammar.ENDING or "\0" in token:
        return "there is a NUL byte. This is not plain text; UTF-16 perhaps, or binary"
    if flaw in (grammar.LABEL, grammar.MIXED):
        return _explain_label(flaw, token)
    if flaw == grammar.OVERFLOW:
        return f"{printable(token)} is too large for a float"
    if flaw == grammar.QID or token.startswith("qid:"):
        return (
            f"{printable(token)} is out of place or no whole number. Write qid:12 "
            "once, right after the label"
        )
    return _explain_entry(flaw, token, previous)


def _explain_label(flaw: int, token: str) -> str:
    shown = printable(token)
    if flaw == grammar.MIXED:
        return (
            f"label {shown} after labels of another kind. Labels are all numbers or "
            "all words"
        )
    if ":" in token:
        return f"{shown} where the label should be. Every row begins with its label"
    if "," in token:
        return f"several labels, {shown}. There must be one label per row"
    if token.lower().lstrip("+-") in _NOT_FINITE:
        return f"label {shown} is not finite. Leave out rows without a label"
    if len(token) > 255:
        return f"label {shown} is longer than 255 bytes"
    return (
        f"label {shown} is neither a number nor a word. {_NOTATION}; words begin with "
        "a letter"
    )


def _explain_entry(flaw: int, token: str, previous: int) -> str:
    index, colon, value = token.partition(":")
    if not colon:
        return f"{printable(token)} has no colon. Entries are written index:value"
    if re.fullmatch(r"-\d+", index):
        return (
            f"index {index[:20]} is negative. Indices are whole numbers from 0 or 1 up"
        )
    if not re.fullmatch(r"[0-9]+", index):
        return f"index {printable(index)} is not a whole number"
    if len(index) > 10 or int(index) > grammar.MAX_INDEX:
        return f"index {index[:20]} is above {grammar.MAX_INDEX}"
    if flaw == grammar.ORDER and previous > 0:
        again = "occurs twice" if int(index) == previous else f"after {previous}"
        return f"index {index} {again}; indices must increase"
    if flaw == grammar.ORDER:
        return f"index {index} in a one-based file. Pass zero_based=True or 'auto'"
    if value.lower().lstrip("+-") in _NOT_FINITE:
        return (
            f"value {printable(value)} of index {index} is not finite. Leave the entry "
            "out, or write a number for it"
        )
    return f"value {printable(value)} of index {index} is not a number. {_NOTATION}"
