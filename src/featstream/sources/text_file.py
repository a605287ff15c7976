"""A text file as chunks of whole lines, decompressed while reading if need be.

Files are read, not mapped: reading a mapped file that another process cuts short ends
this process with SIGBUS, where a read tells how much there is.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import lzma
import mmap
import os
import zlib
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from itertools import chain
from threading import Lock
from typing import IO, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from featstream.errors import (
    DataError,
    MissingExtraError,
    ParameterError,
    Setting,
    printable,
    size_text,
)

_MAX_RATIO = 200  # no ordinary text compresses better
_ALWAYS_ALLOWED = 64 << 20  # small enough to decompress, whatever the ratio
_MAX_LINE = 1 << 30  # of a compressed file, whose lines are held in memory
_N_SAMPLES, _SAMPLE = 32, 64 << 10
_LEAST = 16  # shorter chunks are padded, so that the kernels see one kind of array


def _open_zstd(file: IO[bytes]) -> Any:
    """Zstandard, by the standard library (Python 3.14) or by pyarrow."""
    if find_spec("compression") is not None:
        return import_module("compression.zstd").ZstdFile(file)
    if find_spec("pyarrow") is None:
        raise MissingExtraError(
            "Reading .zst needs Python 3.14 or pyarrow. Install it: pip install pyarrow"
        )
    import pyarrow

    return pyarrow.CompressedInputStream(pyarrow.PythonFile(file, "r"), "zstd")


_OPENERS: dict[bytes, Callable[[IO[bytes]], Any]] = {
    b"\x1f\x8b": lambda file: gzip.GzipFile(fileobj=file),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\x00": lzma.LZMAFile,
    b"\x28\xb5\x2f\xfd": _open_zstd,
}
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_MARKED = {
    codecs.BOM_UTF32_LE: "utf-32",  # begins with the mark of UTF-16
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
    codecs.BOM_UTF8: "utf-8-sig",
}
"""Encodings by the bytes at the beginning of a text."""


Lines: TypeAlias = tuple[NDArray[np.uint8], int]
"""Whole lines, the last ended by a newline; and bytes of the file read so far."""


class TextFile:
    """A text file, plain or compressed; its first bytes tell how, not its name.

    ``chunk_bytes`` is the size of a chunk, unless a line is longer; ``max_bytes`` the
    most text that a compressed file may decompress to, by default `allowed_bytes`.
    """

    def __init__(
        self, path: str | os.PathLike[str], chunk_bytes: int, max_bytes: int | None
    ) -> None:
        self._path = path
        self._chunk_bytes = chunk_bytes
        self._file: IO[bytes] = open(path, "rb")  # noqa: SIM115 - closed by close()
        self._lock = Lock()  # threads share the position in the file
        self.size = os.fstat(self._file.fileno()).st_size
        head = self._file.peek(16)[:16]
        magic = next((magic for magic in _OPENERS if head.startswith(magic)), b"")
        if magic == b"BZh" and head[4:10] not in (b"1AY&SY", b"\x17rE8P\x90"):
            magic = b""  # a label that happens to begin with BZh
        self._opener = _OPENERS.get(magic)
        self.max_bytes = allowed_bytes(self.size) if max_bytes is None else max_bytes

    def close(self) -> None:
        """Close the file; chunks handed out stay readable."""
        self._file.close()

    @property
    def name(self) -> str:
        """The path, for messages."""
        return printable(os.fspath(self._path), limit=4096)[1:-1]

    @property
    def is_compressed(self) -> bool:
        """Whether the file is compressed, and can be read from the beginning only."""
        return self._opener is not None

    def line_chunks(self) -> Iterator[Lines]:
        """Yield the text in chunks of whole lines."""
        if self.is_compressed:
            yield from self._decompressed()
        else:
            for begin, stop in self.spans():
                yield self.lines_between(begin, stop), stop

    def sample(self) -> tuple[bytes, float]:
        """Some of the text, from all over the file, and how many times more there is.

        A compressed file gives its beginning.
        """
        if self.is_compressed:
            first, stop = next(self.line_chunks(), (np.empty(0, np.uint8), self.size))
            return first.tobytes(), self.size / max(1, stop)
        starts = range(0, self.size, max(1, self.size // _N_SAMPLES, _SAMPLE))
        ends = [min(start + _SAMPLE, self.size) for start in starts]
        parts = (self._read(*span).tobytes() for span in zip(starts, ends, strict=True))
        text = b" ".join(parts)
        return text, self.size / max(1, len(text))

    def spans(self) -> Iterator[tuple[int, int]]:
        """Where the chunks of a plain file begin and end."""
        begin = 0
        while begin < self.size:
            last = min(begin + self._chunk_bytes, self.size) - 1
            stop = self._end_of_line(last)
            if stop is None:
                # The last line has no newline at its end: it is a chunk of its own.
                ends = np.flatnonzero(self._read(begin, self.size) == 10)
                stop = begin + int(ends[-1]) + 1 if ends.size else self.size
            yield begin, stop
            begin = stop

    def _end_of_line(self, begin: int) -> int | None:
        """Where the line that ``begin`` lies in ends; None if it has no newline."""
        while begin < self.size:
            text = self._read(begin, min(begin + _SAMPLE, self.size)).tobytes()
            if found := text.find(b"\n") + 1:
                return begin + found
            begin += len(text)
        return None

    def lines_between(self, begin: int, stop: int) -> NDArray[np.uint8]:
        """The whole lines between two places of a plain file."""
        text = self._read(begin, stop)
        if not begin and text[:3].tobytes() == _BYTE_ORDER_MARK:
            text = text[3:]
        is_ended = text.size > 0 and text[-1] == 10
        return _padded(text if is_ended else np.append(text, np.uint8(10)))

    def _read(self, begin: int, stop: int) -> NDArray[np.uint8]:
        """The bytes between two places of the file."""
        text = np.empty(stop - begin, np.uint8)
        with self._lock:
            self._file.seek(begin)
            n_read = self._file.readinto(text)  # type: ignore[attr-defined]
        if n_read < text.size:
            raise DataError(f"{self.name} was cut short while it was read.")
        return text

    def chunks(self) -> Iterator[bytes]:
        """Yield the text, decompressed, in chunks that may end anywhere."""
        self._file.seek(0)
        total = 0
        try:
            stream = self._file if self._opener is None else self._opener(self._file)
            while chunk := stream.read(self._chunk_bytes):
                chunk = chunk if total else chunk.removeprefix(_BYTE_ORDER_MARK)
                total += len(chunk)
                if self.is_compressed and total > self.max_bytes:
                    raise too_large(f"{self.name} decompresses to", self.max_bytes)
                yield chunk
        except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise DataError(
                f"{self.name}: the compressed data are damaged or cut short ({error})."
            ) from error

    def _decompressed(self) -> Iterator[Lines]:
        rest = b""
        for chunk in self.chunks():
            cut = chunk.rfind(b"\n") + 1
            if cut:
                text = np.frombuffer(rest + chunk[:cut], np.uint8)
                rest = chunk[cut:]
                yield _padded(text), self._file.tell()
            else:
                rest += chunk
            if len(rest) > _MAX_LINE:
                raise DataError(f"{self.name} has a line of more than 1 GiB.")
        if rest:
            text = np.frombuffer(rest + b"\n", np.uint8)
            yield _padded(text), self.size


def refuse_cut_file(path: str | os.PathLike[str], size: int) -> None:
    """Raise if a mapped file has become shorter than it was.

    Reading what another process has cut off ends this one with SIGBUS.
    """
    found = os.stat(path).st_size
    if found < size:
        raise DataError(
            f"{os.fspath(path)} was cut short while it was read: it has {found:,} "
            f"bytes, and had {size:,}. Write it again."
        )


def allowed_bytes(file_size: int) -> int:
    """What a file may unpack to: a file of a few bytes could fill the memory."""
    return max(_ALWAYS_ALLOWED, _MAX_RATIO * file_size)


def too_large(what: str, limit: int) -> DataError:
    """The error for a file that unpacks to more than is allowed."""
    return DataError(
        f"{what} more than {size_text(limit)}, far more than its size on disk. If you "
        "trust it, pass ",
        Setting("max_bytes", size_text(8 * limit).replace(" ", "")),
        ", or as much as it needs.",
    )


def as_utf8(chunks: Iterator[bytes], encoding: str | None) -> Iterator[bytes]:
    """Yield text in UTF-8, whatever it is written in; a byte order mark says it.

    Without a mark and an ``encoding`` it must be UTF-8.
    """
    first = next(chunks, b"")
    mark = next((mark for mark in _MARKED if first.startswith(mark)), b"")
    name = _MARKED.get(mark) or encoding or "utf-8"
    try:
        decoder = codecs.getincrementaldecoder(name)()
    except LookupError:
        raise ParameterError(
            f"`encoding` is unknown: {printable(name)}. Use one of Python's, such as "
            "'utf-8', 'latin-1', 'cp1252' or 'utf-16'."
        ) from None
    if name == "utf-8" and first[:200].count(0):
        raise DataError(
            "it has NUL bytes: it is not plain text, or UTF-16 without a byte order "
            "mark. If so, pass ",
            Setting("encoding", "utf-16-le" if first[1:2] == b"\0" else "utf-16-be"),
            ".",
        )
    n_lines = 1
    for chunk in chain([first], chunks, [b""]):
        is_plain = name == "utf-8" and chunk.isascii() and not decoder.getstate()[0]
        try:
            text = chunk if is_plain else decoder.decode(chunk, not chunk).encode()
        except UnicodeDecodeError as error:
            line = n_lines + error.object.count(b"\n", 0, error.start)
            begin = max(0, error.start - 10)
            around = error.object[begin : error.end + 10]
            raise DataError(
                f"line {line:,} is not written in {name}: it has the byte "
                f"0x{error.object[error.start]:02x} in {around!r}. If it is Western "
                "European text, pass ",
                Setting("encoding", "latin-1"),
                "; otherwise the encoding that it was saved in.",
            ) from error
        n_lines += chunk.count(b"\n")
        if text:
            yield text


def release_pages(mapped: mmap.mmap, begin: int, end: int) -> None:
    """Release the memory of bytes ``begin`` to ``end`` of a mapped file.

    They are read from the disk again when they are needed again.
    """
    begin -= begin % mmap.PAGESIZE
    end -= end % mmap.PAGESIZE
    if end > begin and hasattr(mapped, "madvise"):
        mapped.madvise(mmap.MADV_DONTNEED, begin, end - begin)


def _padded(text: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Put blanks before a very short chunk; a line may begin with blanks."""
    if text.size < _LEAST:
        blanks = np.full(_LEAST - text.size, 32, np.uint8)
        text = np.concatenate([blanks, text])
    text.flags.writeable = False
    return text
