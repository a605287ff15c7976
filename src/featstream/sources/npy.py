"""Arrays of numpy and scipy on disk: ``.npy`` and ``.npz``. No pickle is read."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray
from scipy import sparse

from featstream.errors import DataError, printable
from featstream.protocols import Block
from featstream.sources.memory import ArraySource, Positions, SparseSource
from featstream.sources.open import Dataset, PathLike, existing, reading
from featstream.sources.tables import NAMES, check_target, read_target
from featstream.sources.text_file import allowed_bytes, refuse_cut_file, too_large
from featstream.sources.values import (
    Duplicates,
    check_dimensions,
    check_names,
    check_sparse,
)

_SPARSE_PARTS = (
    *("col", "data", "format", "indices", "indptr", "offsets", "row", "shape"),
)


def open_npy(path: PathLike, target: PathLike | None = None) -> Dataset:
    """Open an array saved by `numpy.save`, mapped into memory and not read.

    Parameters
    ----------
    path : str or path-like
        A two-dimensional array.
    target : str or path-like, default=None
        The file that holds it; see `read_target`.
    """
    path = existing(path)
    with reading(path):
        with open(path, "rb") as file:
            refuse_objects(read_header(file, "it")[1], "it")
        source = MappedArraySource(path, npy.open_memmap(path, mode="r"))
    if target is None:
        return Dataset(source)
    return Dataset(source, read_target(target), target_name=str(target))


def open_npz(
    path: PathLike,
    target: str | None = None,
    *,
    max_bytes: int | None = None,
    duplicates: Duplicates = "error",
) -> Dataset:
    """Open an archive of arrays saved by `numpy.savez` or `scipy.sparse.save_npz`.

    The features are the array ``X``, or else ``X_train``: dense, or sparse as
    ``X_data``, ``X_indices``, ``X_indptr``, ``X_shape`` and ``X_format``. An
    archive of scipy's has the same five without the prefix. Names are in
    ``names`` or ``feature_names``.

    Parameters
    ----------
    path : str or path-like
        The archive.
    target : str, default=None
        The array that is the target; by default ``y``, or ``y_train`` if the
        features are ``X_train``. Or the file that holds it, ``FILE`` or
        ``FILE:COLUMN``; see `read_target`.
    max_bytes, duplicates
        As for `open_dataset`.
    """
    path = existing(path)
    with reading(path), _Archive(path, max_bytes) as arrays:
        prefix = _feature_prefix(arrays)
        y_name = target or ("y_train" if prefix == "X_train" else "y")
        y = arrays.get(y_name)
        if target is not None:
            check_target(target, list(arrays))
        X = arrays[prefix] if prefix in arrays else _read_sparse(arrays, prefix)
        names = next((arrays[key].tolist() for key in NAMES if key in arrays), None)
        if names is not None:
            names = check_names(names, check_dimensions(X.shape)[1], duplicates)
        make = SparseSource if sparse.issparse(X) else ArraySource
        source: ArraySource | SparseSource = make(X, names)
    if y is None and target is not None:
        y = read_target(target)
    is_guessed = y is not None and target is None
    return Dataset(source, y, source.names, y_name, is_guessed)


def read_archive(path: PathLike) -> dict[str, Any]:
    """All arrays of an ``.npz``; sparse ones as for `open_npz`."""
    path = existing(path)
    with reading(path), _Archive(path) as arrays:
        suffix = "_format"
        whole = [k.removesuffix(suffix) for k in arrays if k.endswith(suffix)]
        parts = {f"{name}_{part}" for name in whole for part in _SPARSE_PARTS}
        found = {name: arrays[name] for name in arrays if name not in parts}
        return found | {name: _read_sparse(arrays, name) for name in whole}


def _feature_prefix(arrays: Mapping[str, Any]) -> str:
    for prefix in ("X", "X_train"):
        if prefix in arrays or f"{prefix}_format" in arrays:
            return prefix
    if "format" in arrays:
        return ""
    raise DataError(
        "it has no features: neither an array X or X_train, nor a sparse matrix "
        "(X_data, X_indices, X_indptr, X_shape, X_format). It holds: "
        f"{', '.join(arrays) or 'nothing'}."
    )


def _read_sparse(arrays: Mapping[str, Any], prefix: str) -> Any:
    start = prefix and prefix + "_"
    kind = arrays[start + "format"].item()
    kind = kind.decode("ascii") if isinstance(kind, bytes) else str(kind)
    shape = tuple(int(size) for size in arrays[start + "shape"])
    data = arrays[start + "data"]
    if kind == "coo":
        row, col = (arrays[start + key].astype(np.int64) for key in ("row", "col"))
        X = sparse.coo_array((data, (row, col)), shape)
    elif kind == "dia":
        X = sparse.dia_array((data, arrays[start + "offsets"]), shape).tocsc()
    elif kind in ("csc", "csr", "bsr"):
        # Small files may hold row numbers of 16 bits, which scipy does not take.
        indices, indptr = arrays[start + "indices"], arrays[start + "indptr"]
        if indices.dtype.itemsize < 4 or indices.dtype.kind == "u":
            is_small = max(shape) <= np.iinfo(np.int32).max
            indices = indices.astype(np.int32 if is_small else np.int64)
        X = getattr(sparse, f"{kind}_array")((data, indices, indptr), shape)
    else:
        known = "csc, csr, bsr, coo, dia"
        raise ValueError(f"its sparse format is {printable(kind)}, not one of {known}")
    check_sparse(X, "its matrix")
    return X


class _Archive(Mapping[str, Any]):
    """The arrays of an ``.npz``, each read when it is asked for, and checked before.

    A few bytes can claim an array that fills the memory: what the header of an array
    claims is compared with what the archive says of its size, and that with a limit.
    """

    def __init__(self, path: Path, max_bytes: int | None = None) -> None:
        if not zipfile.is_zipfile(path):  # another kind is never tried as a pickle
            raise DataError("it is not an archive of arrays.")
        self._zip = zipfile.ZipFile(path)
        limit = allowed_bytes(path.stat().st_size)
        self._limit = limit if max_bytes is None else max_bytes
        members = {info.filename: info for info in self._zip.infolist()}
        self._members = {n.removesuffix(".npy"): info for n, info in members.items()}

    def __enter__(self) -> _Archive:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def __contains__(self, name: object) -> bool:
        return name in self._members  # without reading it

    def __getitem__(self, name: str) -> Any:
        if name not in self._members:
            raise KeyError(f"{name} is not a file in the archive")
        member = self._members[name]
        what = f"its array {printable(name)}"
        if member.file_size > self._limit:
            raise too_large(f"{what} unpacks to", self._limit)
        with self._zip.open(member) as file:
            shape, dtype = read_header(file, what)
            refuse_objects(dtype, what)
            claimed = math.prod(shape) * dtype.itemsize
            held = member.file_size - file.tell()
            if claimed != held:
                raise DataError(
                    f"{what} should be {dtype} of shape {shape}, {claimed:,} bytes, "
                    f"and has {held:,}. The file is damaged: write it again."
                )
        with self._zip.open(member) as file:
            return npy.read_array(file, allow_pickle=False)


_BAD_HEADER = (
    *(AttributeError, KeyError, MemoryError, OverflowError, RecursionError),
    *(SyntaxError, TokenError, TypeError, ValueError),
)
"""What numpy raises on a header that is not what it has written."""


def read_header(file: IO[bytes], what: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """The shape and dtype that the header of an array claims."""
    try:
        version = npy.read_magic(file)
        read = npy.read_array_header_2_0
        if version == (1, 0):
            read = npy.read_array_header_1_0
        shape, _, dtype = read(file)
    except _BAD_HEADER as error:
        reason = " ".join(str(error).split()).rstrip(".") or type(error).__name__
        raise DataError(
            f"{what} has a header that cannot be read: {reason}. The file may be "
            "damaged, or not what its name says."
        ) from error
    if any(type(size) is not int or size < 0 for size in shape):
        raise DataError(f"{what} should have the shape {shape}. The file is damaged.")
    return shape, dtype


def refuse_objects(dtype: np.dtype[Any], what: str) -> None:
    """Raise for objects of Python, which numpy saves as a pickle."""
    if dtype.hasobject:
        raise DataError(
            f"{what} holds objects of Python (a pickle, with allow_pickle=True), and "
            "reading these would run what the file says. Save text as text, "
            "array.astype(str), and numbers as numbers."
        )


class MappedArraySource(ArraySource):
    """The columns of an array in a file that is mapped into memory.

    Before every block the size of the file is compared: it may have been cut.
    """

    def __init__(self, path: Path, X: NDArray[Any], **options: Any) -> None:
        self.path, self._size = path, path.stat().st_size
        super().__init__(X, **options)

    def _blocks(self, positions: Positions, start: int) -> Iterator[Block]:
        refuse_cut_file(self.path, self._size)
        for block in super()._blocks(positions, start):
            yield block
            refuse_cut_file(self.path, self._size)
