"""AnnData on disk, in an HDF5 file (``.h5ad``) or in zarr, read as it is described.

The layout is that of https://anndata.readthedocs.io/en/latest/fileformat-prose.html.
anndata itself is not needed, nor is the whole ever read: a matrix stays where it is.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from featstream.errors import DataError, printable
from featstream.sources.compressed import ColumnsSource, CompressedArrays, RowsSource
from featstream.sources.dataset import (
    Dataset,
    PathLike,
    existing,
    find_target,
    reading,
    require,
    shortened,
)
from featstream.sources.slabs import SlabSource

__all__ = ["as_texts", "is_anndata", "open_h5ad", "read_anndata"]


def open_h5ad(
    path: PathLike,
    target: str | None = None,
    *,
    layer: str | None = None,
    optional: Collection[str] = (),
) -> Dataset:
    """Open an AnnData file; needs h5py (``featstream[science]``).

    Parameters
    ----------
    path : str or path-like
        An ``.h5ad`` file of anndata 0.7 or later.
    target : str, default=None
        The column of ``obs`` that is the target; by default the one called ``y``,
        ``target``, ``class`` or ``label``, if there is one.
    layer : str, default=None
        The layer to read; by default ``X``.
    optional : collection of str, default=()
        Further names that a target may have if none is asked for.

    Returns
    -------
    Dataset
        The variables, the target if there is one, and ``var_names``.

    Notes
    -----
    A dense matrix is read some columns at a time, and so is a sparse one by columns
    (CSC). One by rows (CSR), as is usual, is turned into columns first: in memory if
    it has no more than 8 million entries, otherwise in a temporary column store.
    `convert` does that once for all.

    Examples
    --------
    >>> import pathlib, tempfile, h5py, numpy as np
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "cells.h5ad"
    >>> with h5py.File(path, "w") as file:  # or: adata.write_h5ad(path)
    ...     file["X"] = np.eye(3)
    ...     file["obs/_index"], file["obs/kind"] = ["c1", "c2", "c3"], ["B", "T", "T"]
    ...     file["var/_index"] = ["CD19", "CD3E", "CD8A"]
    ...     for axis in ("obs", "var"):
    ...         file[axis].attrs["_index"] = "_index"
    >>> data = open_h5ad(path, target="kind")
    >>> data.names, data.y.tolist()
    (['CD19', 'CD3E', 'CD8A'], ['B', 'T', 'T'])
    """
    path = existing(path)
    require("h5py", "science", path)
    import h5py

    with reading(path):
        file = h5py.File(path, "r")  # open for as long as the source lives
        return read_anndata(file, path, target, layer, optional)


def is_anndata(root: Any) -> bool:
    """Whether a group is the root of an AnnData object."""
    return bool(root.attrs.get("encoding-type") == "anndata")


def read_anndata(
    root: Any,
    path: Path,
    target: str | None,
    layer: str | None,
    optional: Collection[str] = (),
) -> Dataset:
    """The data set in a group of h5py or zarr."""
    for part in ("obs", "var"):
        if part not in root:
            raise DataError(f"it has no table {part!r}, so that it is not AnnData.")
        if not hasattr(root[part], "keys"):
            raise DataError(
                f"its table {part!r} is as anndata wrote it before version 0.7. Read "
                "it with anndata, and write it again."
            )
    source = _open_matrix(_find_matrix(root, layer), path, _variable_names(root))
    source.sample_names = _read_index(root, "obs").tolist()
    n_cells = len(source.sample_names)
    if source.n_samples != n_cells:
        raise DataError(
            f"it has {n_cells:,} observations, but a matrix of {source.n_samples:,} "
            "rows."
        )
    columns = [name for name in root["obs"] if not name.startswith("_")]
    if target is None:
        target = find_target(columns, optional)
    elif target not in columns:
        raise DataError(
            f"its obs has no column {printable(target)} for a target. Its columns "
            f"are: {shortened(columns)}."
        )
    y = None if target is None else _read_column(root, "obs", target)
    return Dataset(source, y, source.names)


def _find_matrix(root: Any, layer: str | None) -> Any:
    layers = list(root["layers"]) if "layers" in root else []
    if layer is not None:
        if layer not in layers:
            raise DataError(
                f"it has no layer {printable(layer)}. Its layers are: "
                f"{shortened(layers) or 'none'}."
            )
        return root["layers"][layer]
    if "X" not in root:
        raise DataError(f"it has no X. Choose a layer: {shortened(layers) or 'none'}.")
    return root["X"]


def _open_matrix(
    node: Any, path: Path, names: list[str]
) -> SlabSource | ColumnsSource | RowsSource:
    if hasattr(node, "shape"):
        told = f"{node.shape} {node.dtype} {names}"
        fingerprint = hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()
        return SlabSource(node, path, names, fingerprint)
    kind = str(node.attrs.get("encoding-type", node.attrs.get("h5sparse_format", "")))
    shape = node.attrs.get("shape", node.attrs.get("h5sparse_shape"))
    if kind[:3] not in ("csr", "csc") or shape is None or len(shape) != 2:
        raise DataError(
            f"its matrix is stored as {printable(kind)}, and not as an array, "
            "csr_matrix or csc_matrix."
        )
    n_rows, n_columns = (int(size) for size in shape)
    if n_columns != len(names):
        raise DataError(
            f"it has {len(names):,} variables, but a matrix of {n_columns:,} columns."
        )
    arrays = (node["data"], node["indices"], node["indptr"])
    if kind[:3] == "csc":
        return ColumnsSource(
            CompressedArrays(*arrays, n_columns, n_rows, path, axis="row"), names
        )
    return RowsSource(
        CompressedArrays(*arrays, n_rows, n_columns, path, axis="column"), names
    )


def _variable_names(root: Any) -> list[str]:
    names: list[str] = _read_index(root, "var").tolist()
    twice = next((name for name, n in Counter(names).items() if n > 1), None)
    if twice is not None:
        raise DataError(
            f"its var_names are not unique: {printable(twice)} occurs twice. Call "
            "adata.var_names_make_unique() and write it again."
        )
    return names


def _read_index(root: Any, part: str) -> NDArray[Any]:
    name = root[part].attrs.get("_index", "_index")
    if name not in root[part]:
        raise DataError(f"its table {part!r} has no index {printable(name)}.")
    return np.array([str(v) for v in _read_column(root, part, name)], object)


def _read_column(root: Any, part: str, name: str) -> NDArray[Any]:
    """A column of a table, with None for what is missing."""
    node = root[part][name]
    if not hasattr(node, "keys"):
        values = as_texts(node)
        if "categories" in node.attrs:  # of anndata 0.7: a reference to them
            return _decode(values, as_texts(root[node.attrs["categories"]]))
        return values
    kind = node.attrs.get("encoding-type", "")
    if kind == "categorical":
        return _decode(as_texts(node["codes"]), as_texts(node["categories"]))
    if kind.startswith("nullable-"):
        values = as_texts(node["values"]).astype(object)
        values[as_texts(node["mask"]).astype(bool)] = None
        return values
    raise DataError(
        f"column {printable(name)} of its {part} is stored as {printable(kind)}, which "
        "is neither numbers, text nor categories."
    )


def _decode(codes: NDArray[Any], categories: NDArray[Any]) -> NDArray[Any]:
    codes = codes.astype(np.int64)
    if codes.size and not -1 <= codes.min() <= codes.max() < categories.size:
        raise DataError("it has categorical codes beyond its categories.")
    if codes.size and codes.min() < 0:
        categories = np.array([*categories.tolist(), None], object)  # the -1st
    return np.asarray(categories[codes])


def as_texts(node: Any) -> NDArray[Any]:
    """The values of a one-dimensional array of h5py or zarr, text as str."""
    shape = tuple(getattr(node, "shape", ()))
    if len(shape) != 1:
        raise DataError(f"a column of it has the shape {shape}, and not one axis.")
    if hasattr(node, "asstr") and node.dtype.kind in "OS":
        return np.asarray(node.asstr()[...], object)
    values = np.asarray(node[...])
    return values.astype(object) if values.dtype.kind in "TU" else values
