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
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from featstream.errors import RunError, printable
from featstream.protocols import SavedField

_DTYPES = ["|b1", "|u1", "|i1", "<u2", "<i2", "<u4", "<i4", "<u8", "<i8", "<f4", "<f8"]
_UNREADABLE = (
    *(ArithmeticError, EOFError, LookupError, MemoryError, RuntimeError),
    *(TypeError, ValueError, OSError, struct.error, zipfile.BadZipFile),
)

Arrays = Mapping[str, NDArray[Any]]
Declared = SavedField


def check_arrays(
    arrays: Arrays, table: Mapping[str, Declared], **sizes: int
) -> dict[str, NDArray[Any]]:
    """Return the arrays of a table; `RunError` unless each is what it must be.

    A length whose name is not among ``sizes`` is that of the first array that has it.
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
    """Write arrays with `numpy.savez`; the same arrays give the same bytes."""
    plain = {}
    for name, array in arrays.items():
        little = array.dtype.newbyteorder("<")
        plain[name] = np.ascontiguousarray(array).astype(little, copy=False)
        if little.str not in _DTYPES:
            raise RunError(f"Cannot save {name}: its type is {array.dtype}.")
    np.savez(file, **plain)  # type: ignore[arg-type]


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Read what `write_arrays` wrote; `RunError` for anything else.

    Arrays are stored, not compressed, so that none is larger than the file.
    """
    arrays = {}
    try:
        with zipfile.ZipFile(path) as archive:
            if sum(e.file_size for e in archive.infolist()) > path.stat().st_size:
                raise ValueError("its arrays are larger than the file")
        with np.load(path, allow_pickle=False) as loaded:
            for name, array in loaded.items():
                if array.dtype.str not in _DTYPES or array.ndim > 2:
                    found = f"type {array.dtype} and shape {array.shape}"
                    raise ValueError(f"an array has {found}")
                arrays[name] = np.ascontiguousarray(array)
    except _UNREADABLE as error:
        raise RunError(f"{path} is damaged: {printable(error)}.") from error
    return arrays


def damaged(how: str) -> RunError:
    """Return the error for a state that cannot be right."""
    return RunError(f"The run is damaged: {how}.")


def join_text(words: list[str]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return words as UTF-8 end to end, and where each ends."""
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
