"""Arrays of numpy and scipy on disk: ``.npy`` and ``.npz``. No pickle is read."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from scipy import sparse

from featstream.errors import DataError, printable
from featstream.sources.memory import ArraySource, SparseSource
from featstream.sources.open import Dataset, PathLike, existing, reading
from featstream.sources.tables import NAMES, check_target, read_target
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
        source = ArraySource(npy.open_memmap(path, mode="r"))
    if target is None:
        return Dataset(source)
    return Dataset(source, read_target(target), target_name=str(target))


def open_npz(
    path: PathLike, target: str | None = None, *, duplicates: Duplicates = "error"
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
    duplicates
        As for `open_dataset`.
    """
    path = existing(path)
    with reading(path), _load(path) as arrays:
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
    with reading(path), _load(path) as arrays:
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


def _load(path: Path) -> Any:
    """The archive; a file of another kind is never tried as a pickle."""
    if not zipfile.is_zipfile(path):
        raise ValueError("it is not an archive of arrays")
    return np.load(path, allow_pickle=False)
