"""A text file as chunks of whole lines: mapped, or decompressed while reading."""

from __future__ import annotations

import bz2
import gzip
import lzma
import mmap
import os
import zlib
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import IO, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from featstream.errors import DataError, MissingExtraError, printable

MAX_BYTES = 4 << 30
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


Lines: TypeAlias = tuple[NDArray[np.uint8], int]
"""Whole lines, the last ended by a newline; and bytes of the file read so far."""


class TextFile:
    """A text file, plain or compressed; its first bytes tell how, not its name.

    ``chunk_bytes`` is the size of a chunk, unless a line is longer; ``max_bytes`` the
    most text that a compressed file may decompress to.
    """

    def __init__(
        self, path: str | os.PathLike[str], chunk_bytes: int, max_bytes: int | None
    ) -> None:
        self._path = path
        self._chunk_bytes = chunk_bytes
        self._file: IO[bytes] = open(path, "rb")  # noqa: SIM115 - closed by close()
        self.size = os.fstat(self._file.fileno()).st_size
        head = self._file.peek(16)[:16]
        magic = next((magic for magic in _OPENERS if head.startswith(magic)), b"")
        if magic == b"BZh" and head[4:10] not in (b"1AY&SY", b"\x17rE8P\x90"):
            magic = b""  # a label that happens to begin with BZh
        self._opener = _OPENERS.get(magic)
        allowed = max(_ALWAYS_ALLOWED, _MAX_RATIO * self.size)
        self._max_bytes = allowed if max_bytes is None else min(allowed, max_bytes)
        self._map: mmap.mmap | None = None
        if self._opener is None and self.size:
            self._map = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
        self._forgotten = 0

    def close(self) -> None:
        """Close the file; chunks handed out stay readable."""
        self._map = None  # unmapped when the last chunk is deleted
        self._file.close()

    @property
    def name(self) -> str:
        """The path, for messages."""
        return printable(os.fspath(self._path), limit=4096)[1:-1]

    @property
    def is_compressed(self) -> bool:
        """Whether chunks are decompressed rather than mapped."""
        return self._opener is not None

    def line_chunks(self) -> Iterator[Lines]:
        """Yield the text in chunks of whole lines."""
        return self._decompressed() if self.is_compressed else self._mapped()

    def sample(self) -> tuple[bytes, float]:
        """Some of the text, from all over the file, and how many times more there is.

        A compressed file gives its beginning.
        """
        if self._map is None:
            first, stop = next(self.line_chunks(), (np.empty(0, np.uint8), self.size))
            return first.tobytes(), self.size / max(1, stop)
        starts = range(0, self.size, max(1, self.size // _N_SAMPLES, _SAMPLE))
        text = b" ".join(self._map[i : i + _SAMPLE] for i in starts)
        return text, self.size / len(text)

    def forget(self, stop: int) -> None:
        """Release the memory of the text before ``stop``, which is not needed again."""
        if self._map is not None:
            release_pages(self._map, self._forgotten, stop)
            self._forgotten = stop

    def _mapped(self) -> Iterator[Lines]:
        begin = 0
        while self._map is not None and begin < self.size:
            last = min(begin + self._chunk_bytes, self.size) - 1
            # The last line may have no newline at its end: it is a chunk of its own.
            stop = self._map.find(b"\n", last) + 1 or self._map.rfind(b"\n", begin) + 1
            stop = stop or self.size
            yield self.lines_between(begin, stop), stop
            begin = stop

    def lines_between(self, begin: int, stop: int) -> NDArray[np.uint8]:
        """The whole lines between two places of a plain file."""
        assert self._map is not None
        if not begin and self._map[:3] == _BYTE_ORDER_MARK:
            begin = 3
        text = np.frombuffer(self._map, np.uint8)[begin:stop]
        is_ended = text.size > 0 and text[-1] == 10
        return _padded(text if is_ended else np.append(text, np.uint8(10)))

    def chunks(self) -> Iterator[bytes]:
        """Yield the text, decompressed, in chunks that may end anywhere."""
        self._file.seek(0)
        total = 0
        try:
            stream = self._file if self._opener is None else self._opener(self._file)
            while chunk := stream.read(self._chunk_bytes):
                chunk = chunk if total else chunk.removeprefix(_BYTE_ORDER_MARK)
                total += len(chunk)
                if self.is_compressed and total > self._max_bytes:
                    raise DataError(
                        f"{self.name} decompresses to more than {self._max_bytes:,} "
                        "bytes. Decompress it if you trust it, or raise max_bytes."
                    )
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
