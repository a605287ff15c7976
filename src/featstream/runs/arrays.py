"""Arrays in one file: a plain ``.npz`` that is read with suspicion.

The file can be opened with `numpy.load`. Reading it here trusts nothing: members
are stored, not compressed, so that no file is larger than it looks; types are on a
list; every declared size is compared with the bytes there are before anything is
made of them. Nothing is ever unpickled.
"""

from __future__ import annotations

import errno
import io
import struct
import zipfile
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from featstream.errors import RunError, printable

__all__ = [
    "damaged",
    "join_text",
    "read_arrays",
    "split_text",
    "take_array",
    "take_floats",
    "write_arrays",
]

DTYPES = frozenset(
    ["|b1", "|u1", "|i1", "<u2", "<i2", "<u4", "<i4", "<u8", "<i8", "<f4", "<f8"]
)
_LONG_AGO = (1980, 1, 1, 0, 0, 0)  # the same arrays give the same bytes
_MAX_HEADER = 1024
_SUFFIX = ".npy"

_UNREADABLE = (
    EOFError,
    KeyError,
    LookupError,
    MemoryError,
    NotImplementedError,
    OverflowError,
    RuntimeError,
    TypeError,
    ValueError,
    struct.error,
    zipfile.BadZipFile,
)


def write_arrays(file: BinaryIO, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays, as `numpy.savez` does, the same bytes each time.

    >>> import io, numpy as np
    >>> file = io.BytesIO()
    >>> write_arrays(file, {"a": np.arange(3)})
    >>> np.load(io.BytesIO(file.getvalue()), allow_pickle=False)["a"]
    array([0, 1, 2])
    """
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            plain = np.ascontiguousarray(array)
            plain = plain.astype(plain.dtype.newbyteorder("<"), copy=False)
            if plain.dtype.str not in DTYPES:
                raise RunError(f"Cannot save {name}: its type is {array.dtype}.")
            entry = zipfile.ZipInfo(name + _SUFFIX, _LONG_AGO)
            with archive.open(entry, "w", force_zip64=True) as member:
                npy.write_array(member, plain, allow_pickle=False)


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Read what `write_arrays` wrote; `RunError` for anything else.

    The arrays are copies that may be written to.
    """
    try:
        size = path.stat().st_size
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            _check_entries(entries, size)
            return {
                entry.filename.removesuffix(_SUFFIX): _parse(archive.read(entry))
                for entry in entries
            }
    except RunError:
        raise
    except OSError as error:
        if error.errno != errno.EINVAL:  # what a place before the file's start gives
            raise
        raise RunError(f"{path} is damaged: {printable(error)}.") from error
    except _UNREADABLE as error:
        raise RunError(f"{path} is damaged: {printable(error)}.") from error


def _check_entries(entries: list[zipfile.ZipInfo], size: int) -> None:
    names = [entry.filename for entry in entries]
    if len(set(names)) != len(names):
        raise ValueError("an array occurs twice")
    for entry in entries:
        if entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & 1:
            raise ValueError("an array is compressed or encrypted")
        if entry.compress_size != entry.file_size:
            raise ValueError("an array has two sizes")
        if not 0 <= entry.header_offset < size:
            raise ValueError("an array lies outside the file")
    if sum(entry.file_size for entry in entries) > size:
        raise ValueError("its arrays are larger than the file")


def _parse(content: bytes) -> NDArray[Any]:
    head = io.BytesIO(content)
    if npy.read_magic(head) != (1, 0):
        raise ValueError("an array has a header of another version")
    shape, is_fortran, dtype = npy.read_array_header_1_0(
        head, max_header_size=_MAX_HEADER
    )
    if dtype.str not in DTYPES or is_fortran or len(shape) > 2:
        raise ValueError(f"an array has type {dtype.str!r} and shape {shape}")
    if any(type(length) is not int or length < 0 for length in shape):
        raise ValueError(f"an array has shape {shape}")
    n_values = 1
    for length in shape:
        n_values *= length
    if n_values * dtype.itemsize != len(content) - head.tell():
        raise ValueError("an array is longer or shorter than it says")
    values = np.frombuffer(content, dtype, n_values, head.tell())
    if dtype.kind == "b" and (values.view(np.uint8) > 1).any():
        raise ValueError("an array of truth values holds others")
    return values.reshape(shape).copy()


def take_array(
    arrays: Mapping[str, NDArray[Any]],
    name: str,
    dtype: Any,
    shape: tuple[int | None, ...] = (None,),
) -> NDArray[Any]:
    """An array by its name; `RunError` unless it is of that type and shape.

    None is any length.

    >>> take_array({"a": np.arange(3)}, "a", np.int64, (3,))
    array([0, 1, 2])
    """
    array = arrays.get(name)
    if array is None or array.dtype != dtype or array.ndim != len(shape):
        raise damaged(f"{name} is missing or of another type")
    if any(n not in (None, m) for n, m in zip(shape, array.shape, strict=True)):
        raise damaged(f"{name} has the shape {array.shape}")
    return array


def take_floats(
    arrays: Mapping[str, NDArray[Any]],
    name: str,
    shape: tuple[int | None, ...] = (None,),
) -> NDArray[np.float64]:
    """An array of finite numbers in double precision; else `RunError`."""
    array = take_array(arrays, name, np.float64, shape)
    if not np.isfinite(array).all():
        raise damaged(f"{name} has values that are not numbers")
    return array


def damaged(how: str) -> RunError:
    """The error for a state that cannot be right."""
    return RunError(f"The run is damaged: {how}.")


def join_text(words: list[str]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Words as UTF-8 end to end, and where each ends.

    >>> text, ends = join_text(["ab", "c"])
    >>> text.tobytes(), ends
    (b'abc', array([2, 3]))
    """
    encoded = [word.encode("utf-8", "surrogatepass") for word in words]
    ends = np.cumsum([len(word) for word in encoded], dtype=np.int64)
    return np.frombuffer(b"".join(encoded), np.uint8), ends


def split_text(text: NDArray[Any], ends: NDArray[Any]) -> list[str]:
    """The words that `join_text` joined; `RunError` if the ends do not fit.

    >>> split_text(*join_text(["ab", "", "c"]))
    ['ab', '', 'c']
    """
    bounds = np.concatenate([[0], ends]).astype(np.int64)
    if (
        text.dtype != np.uint8
        or text.ndim != 1
        or bounds[-1] != text.size
        or (np.diff(bounds) < 0).any()
    ):
        raise damaged("its text does not fit its words")
    joined, at = text.tobytes(), bounds.tolist()
    try:
        return [
            joined[begin:end].decode("utf-8", "surrogatepass")
            for begin, end in pairwise(at)
        ]
    except UnicodeDecodeError as error:
        raise damaged(str(error)) from error
