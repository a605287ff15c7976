"""Arrays in one file: a plain ``.npz`` whose content is checked when it is read.

`numpy.load` opens the file. Nothing is ever unpickled. Damage is found by the
checksum of the run; what is checked here, and once more by `check_arrays` against a
declared table, is that no kernel will read outside its arrays, whoever wrote them.
"""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from featstream.errors import RunError, printable

_DTYPES = ["|b1", "|u1", "|i1", "<u2", "<i2", "<u4", "<i4", "<u8", "<i8", "<f4", "<f8"]
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the same arrays give the same bytes
_SUFFIX = ".npy"
_UNREADABLE = (
    *(ArithmeticError, EOFError, LookupError, MemoryError, RuntimeError),
    *(TypeError, ValueError, OSError, struct.error, zipfile.BadZipFile),
)

Arrays = Mapping[str, NDArray[Any]]


class Declared(NamedTuple):
    """What an array of a saved state must be.

    A length or a limit may be the name of a size that `check_arrays` is given; the
    first array that has a length of another name decides it for the others. None
    is any length, or no limit. Values are at least ``low`` and less than ``stop``;
    floating ones are finite.
    """

    dtype: Any
    shape: tuple[int | str | None, ...] = (None,)
    low: int | float | None = None
    stop: int | str | None = None
    is_optional: bool = False


def check_arrays(
    arrays: Arrays, table: Mapping[str, Declared], **sizes: int
) -> dict[str, NDArray[Any]]:
    """Return the arrays of a table; `RunError` unless each is what it must be.

    >>> table = {"rows": Declared(np.int32, ("k",), 0, "n"), "score": Declared(float)}
    >>> saved = {"rows": np.array([0, 7], np.int32), "score": np.array([0.5, 0.25])}
    >>> check_arrays(saved, table, n=5)
    Traceback (most recent call last):
    featstream.errors.RunError: The run is damaged: rows has values out of range.
    """
    checked = {}
    for name, declared in table.items():
        array = arrays.get(name)
        if array is None and declared.is_optional:
            continue
        if array is None or array.dtype != declared.dtype:
            raise damaged(f"{name} is missing or has another type")
        lengths = [
            sizes.setdefault(length, found) if isinstance(length, str) else length
            for length, found in zip(declared.shape, array.shape, strict=False)
        ]
        if array.ndim != len(declared.shape) or any(
            length not in (None, found)
            for length, found in zip(lengths, array.shape, strict=True)
        ):
            raise damaged(f"{name} has the shape {array.shape}")
        stop = sizes[declared.stop] if isinstance(declared.stop, str) else declared.stop
        if array.size and (
            (array.dtype.kind == "f" and not np.isfinite(array).all())
            or (array.dtype.kind == "b" and array.view(np.uint8).max() > 1)
            or (declared.low is not None and array.min() < declared.low)
            or (stop is not None and array.max() >= stop)
        ):
            raise damaged(f"{name} has values out of range")
        checked[name] = array
    return checked


def write_arrays(file: BinaryIO, arrays: Arrays) -> None:
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
            if plain.dtype.str not in _DTYPES:
                raise RunError(f"Cannot save {name}: its type is {array.dtype}.")
            entry = zipfile.ZipInfo(name + _SUFFIX, _EPOCH)
            with archive.open(entry, "w", force_zip64=True) as member:
                npy.write_array(member, plain, allow_pickle=False)


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Read what `write_arrays` wrote; `RunError` for anything else.

    Arrays are stored, not compressed, so that none is larger than the file.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            if sum(entry.file_size for entry in entries) > path.stat().st_size:
                raise ValueError("its arrays are larger than the file")
            return {
                entry.filename.removesuffix(_SUFFIX): _read_array(archive, entry)
                for entry in entries
            }
    except _UNREADABLE as error:
        raise RunError(f"{path} is damaged: {printable(error)}.") from error


def _read_array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> NDArray[Any]:
    with archive.open(entry) as member:
        array: NDArray[Any] = npy.read_array(member, allow_pickle=False)
    if array.dtype.str not in _DTYPES or array.ndim > 2:
        raise ValueError(f"an array has type {array.dtype} and shape {array.shape}")
    return np.ascontiguousarray(array)


def damaged(how: str) -> RunError:
    """Return the error for a state that cannot be right."""
    return RunError(f"The run is damaged: {how}.")


def join_text(words: list[str]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return words as UTF-8 end to end, and where each ends.

    >>> text, ends = join_text(["ab", "c"])
    >>> text.tobytes(), ends
    (b'abc', array([2, 3]))
    """
    encoded = [word.encode("utf-8", "surrogatepass") for word in words]
    ends = np.cumsum([len(word) for word in encoded], dtype=np.int64)
    return np.frombuffer(b"".join(encoded), np.uint8), ends


def split_text(text: NDArray[Any], ends: NDArray[Any]) -> list[str]:
    """Return the words that `join_text` joined.

    >>> split_text(*join_text(["ab", "", "c"]))
    ['ab', '', 'c']
    """
    joined = text.tobytes()
    try:
        return [
            joined[begin:end].decode("utf-8", "surrogatepass")
            for begin, end in pairwise([0, *ends.tolist()])
        ]
    except UnicodeDecodeError as error:
        raise damaged(str(error)) from error
