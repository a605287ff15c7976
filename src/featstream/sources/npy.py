"""Plain ``.npy`` files, written by appending and read by mapping."""

from __future__ import annotations

import io
import mmap
import os
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import DTypeLike, NDArray

from featstream.errors import DataError

__all__ = ["NPY", "ZIP", "ArrayWriter", "MappedArray", "checksum_of", "load_array"]

NPY, ZIP = b"\x93NUMPY", b"PK"
"""The first bytes of an array, and of an archive of arrays."""

_HEADER = 128  # bytes; numpy leaves room in it for the length to grow
_PIECE = 16 << 20


def _header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """First bytes of a file: two-dimensional arrays are column-major."""
    text = io.BytesIO()
    npy.write_array_header_1_0(
        text,
        {
            "descr": npy.dtype_to_descr(dtype),
            "fortran_order": len(shape) == 2,
            "shape": shape,
        },
    )
    if len(text.getvalue()) != _HEADER:
        raise RuntimeError(f"numpy writes a header of {len(text.getvalue())} bytes.")
    return text.getvalue()


class ArrayWriter:
    """Appends to an array on disk.

    Parameters
    ----------
    path : Path
        The file to make.
    dtype : dtype
        Type of the values.
    n_rows : int, optional
        If given, the array is two-dimensional and column-major, and grows by
        columns of this length.
    """

    def __init__(self, path: Path, dtype: DTypeLike, n_rows: int | None = None) -> None:
        self.path = path
        self.dtype = np.dtype(dtype)
        self.n_rows = n_rows
        self.size = 0
        self.checksum = 0
        self._file = open(path, "xb")  # noqa: SIM115 - closed by close()
        self._file.write(bytes(_HEADER))

    def append(self, values: NDArray[Any]) -> None:
        """Write values after those written before."""
        data = np.ascontiguousarray(values.ravel(order="F"), self.dtype)
        self.checksum = zlib.crc32(data, self.checksum)
        self.size += data.size
        self._file.write(data)

    def close(self) -> None:
        """Write the header and see to it that all is on the disk."""
        shape: tuple[int, ...] = (self.size,)
        if self.n_rows is not None:
            shape = (self.n_rows, self.size // self.n_rows if self.n_rows else 0)
        self._file.seek(0)
        self._file.write(_header(self.dtype, shape))
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()

    def abandon(self) -> None:
        """Close the file as it is; nothing happens if it is closed."""
        self._file.close()

    def convert(
        self, dtype: DTypeLike, runs: Iterable[tuple[str, int, int]]
    ) -> ArrayWriter:
        """Write the array again as another type, and return its writer.

        ``runs`` has the types in which values were written, and in the last place how
        many of each.
        """
        self._file.close()
        old = self.path.rename(self.path.with_suffix(".old"))
        new = ArrayWriter(self.path, dtype, self.n_rows)
        with open(old, "rb") as file:
            file.seek(_HEADER)
            for written, _, n_values in runs:
                for begin in range(0, n_values, _PIECE // 8):
                    n = min(_PIECE // 8, n_values - begin)
                    new.append(np.fromfile(file, written, n))
        old.unlink()
        return new


class MappedArray:
    """An array on disk, looked at without being read.

    The header must be as `ArrayWriter` writes it: it is compared, never parsed. The
    file must be as long as it says.

    Parameters
    ----------
    path : Path
        A ``.npy`` file.
    dtype : dtype
        Type that the values must have.
    shape : tuple of int
        Shape that the array must have.
    """

    def __init__(self, path: Path, dtype: DTypeLike, shape: tuple[int, ...]) -> None:
        dtype = np.dtype(dtype)
        with open(path, "rb") as file:
            if file.read(_HEADER) != _header(dtype, shape):
                raise DataError(
                    f"{path} should hold {dtype} of shape {shape}. The store is "
                    "damaged; make it again from its source."
                )
            n_bytes = int(np.prod(shape, dtype=object)) * dtype.itemsize
            size = os.fstat(file.fileno()).st_size
            if size != _HEADER + n_bytes:
                raise DataError(
                    f"{path} should be {_HEADER + n_bytes:,} bytes long. It is "
                    f"{size:,}. The store is damaged; make it again."
                )
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        flat = np.ndarray(n_bytes // dtype.itemsize, dtype, self._map, _HEADER)
        self.array: NDArray[Any] = flat.reshape(shape, order="F")

    def forget(self, begin: int, stop: int) -> None:
        """Give back the memory of values ``begin`` to ``stop``, counted flat.

        They are read from the disk again if they are looked at again.
        """
        first = _HEADER + begin * self.array.itemsize
        last = _HEADER + stop * self.array.itemsize
        first -= first % mmap.PAGESIZE
        last -= last % mmap.PAGESIZE
        if last > first and hasattr(self._map, "madvise"):
            self._map.madvise(mmap.MADV_DONTNEED, first, last - first)


def checksum_of(path: Path) -> int:
    """Checksum of the values of a file, as `ArrayWriter` computes it."""
    checksum = 0
    with open(path, "rb") as file:
        file.seek(_HEADER)
        while piece := file.read(_PIECE):
            checksum = zlib.crc32(piece, checksum)
    return checksum


def load_array(path: Path, magic: bytes, **options: Any) -> Any:
    """Load with numpy what is certain not to be taken for a pickle."""
    with path.open("rb") as file:
        if not file.read(len(magic)).startswith(magic):
            raise ValueError("its first bytes are not those of such a file")
    return np.load(path, allow_pickle=False, **options)
