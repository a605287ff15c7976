"""Archives of arrays on disk, and what all readers of files share."""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from featstream.errors import DataError, DataTypeError, MissingFileError, printable

__all__ = [
    "PathLike",
    "existing",
    "load_numpy",
    "read_archive",
    "read_sparse",
    "reading",
]

PathLike: TypeAlias = "str | os.PathLike[str]"

UNREADABLE = (
    EOFError,
    KeyError,
    NotImplementedError,
    OSError,
    ValueError,
    zipfile.BadZipFile,
    zlib.error,
)
"""What the readers of other libraries raise on a file that is not well formed."""


def read_archive(path: PathLike) -> dict[str, Any]:
    """All arrays of an ``.npz``; sparse ones put together from their parts.

    A sparse matrix ``X`` is stored as ``X_data``, ``X_indices``, ``X_indptr``,
    ``X_shape`` and ``X_format``.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile(suffix=".npz") as file:
    ...     np.savez(file.name, X=np.eye(2), y=[0, 1])
    ...     sorted(read_archive(file.name))
    ['X', 'y']
    """
    path = existing(path)
    with reading(path), load_numpy(path, b"PK") as arrays:
        suffix = "_format"
        whole = [k.removesuffix(suffix) for k in arrays if k.endswith(suffix)]
        parts = {
            f"{name}_{part}"
            for name in whole
            for part in ("col", "data", "format", "indices", "indptr", "row", "shape")
        }
        found = {name: arrays[name] for name in arrays if name not in parts}
        return found | {name: read_sparse(arrays, name) for name in whole}


def load_numpy(path: Path, magic: bytes, **options: Any) -> Any:
    """Load with numpy what is certain not to be taken for a pickle."""
    with path.open("rb") as file:
        if not file.read(len(magic)).startswith(magic):
            raise ValueError("its first bytes are not those of such a file")
    return np.load(path, allow_pickle=False, **options)


def read_sparse(arrays: Mapping[str, Any], prefix: str) -> Any:
    """A sparse matrix from its parts; an archive of scipy's has an empty prefix."""
    start = prefix and prefix + "_"
    kind = arrays[start + "format"].item()
    kind = kind.decode("ascii") if isinstance(kind, bytes) else str(kind)
    shape = tuple(int(size) for size in arrays[start + "shape"])
    data = arrays[start + "data"]
    if kind == "coo":
        row, col = (arrays[start + key].astype(np.int64) for key in ("row", "col"))
        return sparse.coo_array((data, (row, col)), shape)
    build = {"csc": sparse.csc_array, "csr": sparse.csr_array}
    if kind not in build:
        raise ValueError(f"its sparse format is {printable(kind)}, not csc, csr or coo")
    # Small files may hold row numbers of 16 bits, which scipy does not take.
    indices, indptr = arrays[start + "indices"], arrays[start + "indptr"]
    if indices.dtype.itemsize < 4 or indices.dtype.kind == "u":
        is_small = max(shape) <= np.iinfo(np.int32).max
        indices = indices.astype(np.int32 if is_small else np.int64)
    return build[kind]((data, indices, indptr), shape)


def existing(path: PathLike) -> Path:
    """The path of a file that is there, or of a column store."""
    path = Path(path)
    if not path.exists() or (path.is_dir() and path.suffix != ".cols"):
        hint = "It is a folder." if path.is_dir() else "Check the path."
        raise MissingFileError(
            f"There is no file {printable(path, limit=400)} "
            f"(working folder: {Path.cwd()}). {hint}"
        )
    return path


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Say which file it was that could not be read."""
    try:
        yield
    except (DataError, DataTypeError) as error:
        raise type(error)(f"{path}: {error}") from error
    except PermissionError:
        raise
    except UNREADABLE as error:
        raise DataError(
            f"{path} cannot be read as {path.suffix}: {str(error).rstrip('.')}. "
            "It may be truncated, or not what its name says."
        ) from error
