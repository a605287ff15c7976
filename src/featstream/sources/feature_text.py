"""Tables of text with one row per feature, as expression data are mostly written."""

from __future__ import annotations

import csv
import hashlib
import io
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from featstream.errors import DataError, Setting, explain_full_disk, printable
from featstream.protocols import Block
from featstream.sources.csv import parse_rows
from featstream.sources.csv_dialect import (
    AS_FOUND,
    Dialect,
    TextOptions,
    find_beginning,
)
from featstream.sources.memory import SizedSource
from featstream.sources.text_file import TextFile, as_utf8
from featstream.sources.text_values import refuse_hidden_numbers
from featstream.sources.values import (
    BLOCK_BYTES,
    LIMITS,
    Duplicates,
    block_width,
    check_names,
)

_ADVICE = (
    "the values are kept in a temporary file, 8 bytes each. Make room, or name another "
    "folder with TMPDIR"
)


class FeatureTextSource(SizedSource):
    """The rows of a text file as columns: a name, then one number per sample.

    The file is parsed once, into a temporary file of numbers: a row of text is then a
    column that can be read by itself.
    """

    def __init__(
        self,
        path: Path,
        options: TextOptions = AS_FOUND,
        block_bytes: int = BLOCK_BYTES,
        duplicates: Duplicates = "error",
    ) -> None:
        self.path, self.block_bytes = path, block_bytes
        self._options, self._duplicates = options, duplicates
        self._lock = Lock()
        with ExitStack() as stack:
            self._numbers = stack.enter_context(tempfile.TemporaryFile())
            self._parse(path, options)
            stack.pop_all()  # it lives as long as the source

    def _parse(self, path: Path, options: TextOptions) -> None:
        """Write the numbers to the temporary file, and learn names and shape."""
        digest = hashlib.sha256()
        names: list[str] = []
        with closing(TextFile(path, LIMITS.csv_chunk, options.max_bytes)) as file:
            text = as_utf8(_hashed(file.chunks(), digest), options.encoding)
            header, dialect, rows = _open(text, path, options)
            samples = header[1:]
            with explain_full_disk(tempfile.gettempdir(), _ADVICE):
                for part in rows:
                    found, matrix = _read_rows(part, dialect, header, len(names))
                    names += found
                    self._numbers.write(matrix)
                self._numbers.flush()
        self.fingerprint = digest.hexdigest()
        names = check_names(names, len(names), self._duplicates)
        if not samples:
            raise DataError(
                "its rows have no values: it needs a column of names, and one column "
                "per sample."
            )
        super().__init__((len(samples), len(names)), about=printable(path.name))
        self.names, self.sample_names, self.text_columns = names, samples, ()

    def reopener(self) -> Callable[[], FeatureTextSource]:
        """A function that opens the file again in another process."""
        options = self._options, self.block_bytes, self._duplicates
        return partial(FeatureTextSource, self.path.absolute(), *options)

    def blocks(self, start: int = 0) -> Iterator[Block]:
        """Yield the features from position ``start`` on."""
        width = block_width(self.n_samples, 8, self.block_bytes)
        row_bytes = 8 * self.n_samples
        for first in range(start, self.n_features, width):
            n = min(width, self.n_features - first)
            with self._lock:
                self._numbers.seek(first * row_bytes)
                values = np.fromfile(self._numbers, np.float64, n * self.n_samples)
            yield self._block(values.reshape(n, self.n_samples).T, first)


def _hashed(chunks: Iterable[bytes], digest: Any) -> Iterator[bytes]:
    for chunk in chunks:
        digest.update(chunk)
        yield chunk


def _open(
    text: Iterator[bytes], path: Path, options: TextOptions
) -> tuple[list[str], Dialect, Iterator[bytes]]:
    """The fields of the header, the dialect, and the rest as chunks of whole rows."""
    head = next(text, b"")
    while head.count(b"\n") < 2 and (chunk := next(text, b"")):
        head += chunk
    more = next(text, b"")
    beginning = find_beginning(head, path, options, is_all=not more)
    head = beginning.header_start + head[beginning.n_skipped :] + more
    lines = io.TextIOWrapper(io.BytesIO(head), "utf-8", "replace", newline="")
    reader = csv.reader(lines, delimiter=beginning.dialect.separator)
    header = next(filter(None, reader), None)
    if header is None:
        raise DataError("it is empty.")
    rows = _whole_rows(head, text)
    return header, beginning.dialect, rows


def _whole_rows(head: bytes, text: Iterator[bytes]) -> Iterator[bytes]:
    """Chunks of whole rows, the first of which begins with the header."""
    rest = head
    for chunk in text:
        # A newline between quotes does not end a row.
        cut = rest.rfind(b"\n") + 1
        if cut and rest.count(b'"', 0, cut) % 2 == 0:
            yield rest[:cut]
            rest = rest[cut:]
        rest += chunk
    if rest.strip():
        yield rest if rest.endswith(b"\n") else rest + b"\n"


def _read_rows(
    text: bytes, dialect: Dialect, header: list[str], n_before: int
) -> tuple[list[str], NDArray[np.float64]]:
    """The names and the values of some rows; the first chunk has the header."""
    table = parse_rows(text, dialect, header, n_before)
    names = table.column(0).to_pylist()
    if None in names:
        row = n_before + names.index(None) + 1
        raise DataError(f"row {row} has no name in its first column.")
    matrix = np.empty((len(names), len(header) - 1))
    for i in range(1, len(header)):
        column = table.column(i)
        if column.null_count < len(column):
            if str(column.type) not in ("int64", "double", "bool", "uint64"):
                _refuse_text(column.to_pylist(), names, header[i])
            matrix[:, i - 1] = column.cast("float64").to_numpy()
        else:
            matrix[:, i - 1] = np.nan
    return names, matrix


def _refuse_text(values: list[Any], names: list[str], sample: str) -> None:
    """Raise the error for a column of a sample that has text."""
    refuse_hidden_numbers(values, f"The column {printable(sample)}")
    row = next(i for i, value in enumerate(values) if isinstance(value, str))
    raise DataError(
        f"the column {printable(sample)} has text, {printable(values[row])} for the "
        f"feature {printable(names[row])}. With ",
        Setting("orient", "features"),
        " all but the first column are numbers, one column per sample: leave others "
        "out of the file.",
    )
