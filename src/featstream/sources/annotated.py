"""AnnData (an HDF5 file, ``.h5ad``, or zarr, or an object in Python) and plain zarr.

anndata reads the tables ``obs`` and ``var``. A matrix is never read as a whole: it
stays where it is, and is read some columns at a time.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Collection
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from featstream.errors import DataError, DataTypeError, printable
from featstream.sources.chunked import (
    ChunkedArraySource,
    ColumnsSource,
    RowsSource,
)
from featstream.sources.memory import ArraySource, SizedSource, SparseSource
from featstream.sources.open import (
    Dataset,
    PathLike,
    existing,
    find_target,
    lacks,
    reading,
    require,
    shortened,
)
from featstream.sources.tables import NAMES, check_target, read_target
from featstream.sources.values import Duplicates, check_names


def open_h5ad(
    path: PathLike,
    target: str | None = None,
    *,
    layer: str | None = None,
    optional: Collection[str] = (),
    duplicates: Duplicates = "error",
) -> Dataset:
    """Open an AnnData file; needs anndata (``featstream[science]``).

    Parameters
    ----------
    path : str or path-like
        An ``.h5ad`` file of anndata 0.7 or later.
    target : str, default=None
        The column of ``obs`` that is the target; by default the one called ``y``,
        ``target``, ``class`` or ``label``, if there is one.
    layer : str, default=None
        The layer to read; by default ``X``. ``"raw"`` is ``raw.X``, unless a layer
        has that name.
    optional, duplicates
        As for `open_features` and `open_dataset`.

    Returns
    -------
    Dataset
        The variables, the target if there is one, ``var_names`` and ``obs_names``.

    Notes
    -----
    A dense matrix is read some columns at a time, and so is a sparse one by columns
    (CSC). One by rows (CSR), as is usual, is transposed first: in memory if it has no
    more than 8 million entries, otherwise in a temporary column store. `convert` does
    that once and for all.
    """
    path = existing(path)
    require("anndata", "science", path)
    import h5py

    with reading(path), ExitStack() as stack:
        file = stack.enter_context(h5py.File(path, "r"))
        dataset = _read_anndata(file, path, target, layer, optional, duplicates)
        stack.pop_all()  # it stays open for as long as the source lives
        return dataset


def open_anndata(
    adata: Any,
    target: str | None = None,
    *,
    layer: str | None = None,
    duplicates: Duplicates = "error",
) -> Dataset:
    """Take the features of an AnnData object, in memory or backed by a file.

    Parameters
    ----------
    adata : anndata.AnnData
        Never modified. Of a backed one, the file must stay open.
    target, layer, duplicates
        As for `open_h5ad`.

    Examples
    --------
    >>> import anndata, numpy as np, pandas as pd
    >>> obs = pd.DataFrame({"kind": ["B", "T"]}, index=["c1", "c2"])
    >>> cells = anndata.AnnData(np.eye(2), obs)
    >>> open_anndata(cells, "kind").y.tolist()
    ['B', 'T']
    """
    has_x, has_raw = adata.X is not None, adata.raw is not None
    place = _choose(layer, list(adata.layers), has_x=has_x, has_raw=has_raw)
    holder = adata.raw if place == "raw" else adata
    matrix = adata.layers[layer] if place == "layers" else holder.X
    matrix = getattr(matrix, "group", matrix)  # of a sparse one that is backed
    source = _open_matrix(matrix, adata.filename, holder.var_names, duplicates)
    return _dataset(source, adata.obs, target, ())


def _read_anndata(
    root: Any,
    path: Path,
    target: str | None,
    layer: str | None,
    optional: Collection[str],
    duplicates: Duplicates,
) -> Dataset:
    """The data set in a group of h5py or zarr."""
    require("anndata", "science", path)
    obs = _read_table(root, "obs")
    layers = list(root["layers"]) if "layers" in root else []
    has_raw = hasattr(root.get("raw"), "keys")  # anndata may write a null
    place = _choose(layer, layers, has_x="X" in root, has_raw=has_raw)
    holder = root["raw"] if place == "raw" else root
    node = f"layers/{layer}" if place == "layers" else "X"
    names = _read_table(holder, "var").index
    source = _open_matrix(holder[node], path, names, duplicates)
    return _dataset(source, obs, target, optional)


def _choose(layer: str | None, layers: list[str], *, has_x: bool, has_raw: bool) -> str:
    """Where a layer is: ``layers``, ``raw`` or, by default, ``X``."""
    if layer is None and has_x:
        return "X"
    if layer is None:
        raise DataError(f"it has no X. Choose a layer: {shortened(layers) or 'none'}.")
    if layer in layers:
        return "layers"
    if layer == "raw" and has_raw:
        return "raw"
    raise lacks("layer", layer, [*layers, "raw"] if has_raw else layers)


def _read_table(root: Any, part: str) -> Any:
    """``obs`` or ``var`` as a data frame."""
    from anndata.io import read_elem

    if part not in root:
        raise DataError(f"it has no table {part!r}, so that it is not AnnData.")
    if not hasattr(root[part], "keys"):
        raise DataError(
            f"its table {part!r} is as anndata wrote it before version 0.7. Read it "
            "with anndata, and write it again."
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of files of old versions
            table = read_elem(root[part])
    except Exception as error:  # anndata raises whatever its parts raise
        reason = str(error.__cause__ or error).partition("\n")[0].rstrip(".")
        raise DataError(f"anndata cannot read its table {part!r}: {reason}.") from error
    if not hasattr(table, "index"):
        raise DataError(
            f"its table {part!r} is not marked as one: it lacks the attribute "
            "'encoding-type' that anndata writes. Write the file with anndata."
        )
    return table


def _dataset(
    source: SizedSource, obs: Any, target: str | None, optional: Collection[str]
) -> Dataset:
    """Features with their target, a column of ``obs``."""
    if source.n_samples != len(obs):
        raise DataError(
            f"it has {len(obs):,} observations, but a matrix of {source.n_samples:,} "
            "rows."
        )
    source.sample_names = [str(name) for name in obs.index]
    columns = [str(name) for name in obs.columns]
    found = find_target(columns, target, optional, "its obs")
    if found is None:
        return Dataset(source, None, source.names)
    y, is_missing = obs[found].to_numpy(), obs[found].isna().to_numpy()
    if is_missing.any():
        y = y.astype(object)
        y[is_missing] = None
    return Dataset(source, y, source.names, found, target is None)


def _open_matrix(
    node: Any, path: PathLike | None, var_names: Any, duplicates: Duplicates
) -> SizedSource:
    """A source over a matrix in memory, or over arrays of h5py or zarr."""
    path = Path(path or "AnnData")
    written = [str(name) for name in var_names]
    names = check_names(written, len(written), duplicates)
    if sparse.issparse(node):
        return SparseSource(node, names)
    if hasattr(node, "shape"):
        if not type(node).__module__.startswith(("h5py", "zarr")):
            return ArraySource(np.asarray(node), names)
        described = f"{node.shape} {node.dtype} {written}"
        digest = hashlib.sha256(described.encode("utf-8", "surrogatepass"))
        return ChunkedArraySource(node, path, names, digest.hexdigest())
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
    make = ColumnsSource if kind[:3] == "csc" else RowsSource
    return make(node, (n_rows, n_columns), path, names)


def open_zarr(
    path: PathLike,
    target: str | None = None,
    *,
    layer: str | None = None,
    optional: Collection[str] = (),
    duplicates: Duplicates = "error",
) -> Dataset:
    """Open an array of zarr; needs zarr (``featstream[science]``).

    Parameters
    ----------
    path : str or path-like
        The folder of an array of samples by features, of a group of arrays, or of an
        AnnData object (see `open_h5ad`, whose parameters these then are).
    target : str, default=None
        The array of the group that is the target; by default the one called ``y``,
        ``target``, ``class`` or ``label``, if there is one. Or the file that holds
        it, ``FILE`` or ``FILE:COLUMN``; see `read_target`.
    layer : str, default=None
        The array of the group that has the features; by default ``X``.
    optional, duplicates
        As for `open_features` and `open_dataset`.

    Returns
    -------
    Dataset
        The features, the target if there is one, and the names, if the group has
        them as ``names`` or ``feature_names``.

    Notes
    -----
    Chunks of some columns and all rows are read best. By the format, a chunk that is
    not stored has the array's fill value, so that a lost one goes unnoticed. An array
    that would be decoded with pickle is refused.
    """
    path = existing(path)
    require("zarr", "science", path)
    import zarr

    with reading(path):
        try:
            root: Any = zarr.open(path, mode="r")
        except (TypeError, AttributeError, RecursionError) as error:
            raise DataError(f"its description is damaged: {error}.") from error
        is_group = hasattr(root, "keys")
        members = root.members(max_depth=None) if is_group else [("", root)]
        for _, node in members:
            if not hasattr(node, "keys"):
                _refuse_pickle(node)
        if is_group and root.attrs.get("encoding-type") == "anndata":
            return _read_anndata(root, path, target, layer, optional, duplicates)
        is_guessed = target is None
        array, names, target, y = _find_parts(root, target, layer, optional)
        if hasattr(array, "keys"):
            raise DataError(f"{printable(array.path)} in it is no array but a group.")
        if array.dtype.kind not in "biufc":
            raise DataTypeError(
                f"its array has dtype {array.dtype}, and not numbers. Give text as "
                "codes, or in a table."
            )
        described = f"{array.shape} {np.dtype(array.dtype)} {array.chunks}"
        digest = hashlib.sha256(described.encode())
        if names is not None:
            names = check_names(names, len(names), duplicates)
        source = ChunkedArraySource(array, path, names, digest.hexdigest())
    if y is None and target is not None:
        y = read_target(target)
    return Dataset(source, y, source.names, target, is_guessed and y is not None)


def _refuse_pickle(array: Any) -> None:
    """Raise if reading an array would run what a file says."""
    metadata = array.metadata.to_dict()
    codecs = {name: value for name, value in metadata.items() if name != "attributes"}
    if "pickle" in json.dumps(codecs, default=str).lower():
        raise DataError(
            f"its array {printable(array.path)} is decoded with pickle, which runs "
            "what a file says. Write it with another codec."
        )


def _find_parts(
    root: Any, target: str | None, layer: str | None, optional: Collection[str]
) -> tuple[Any, Any, str | None, Any]:
    """The array of features, names if there are any, and the target with its name."""
    if not hasattr(root, "keys"):
        if layer is not None:
            raise DataError(f"it is one array, and has no layer {printable(layer)}.")
        return root, None, target, None
    present = sorted(root.keys())
    wanted = layer or "X"
    if wanted not in present:
        raise lacks("array", wanted, present)
    if target is None:
        target = find_target(present, None, optional)
    else:
        check_target(target, present)
    y = _read_vector(root[target]) if target in present else None
    named = next((name for name in NAMES if name in present), None)
    names = None if named is None else [str(name) for name in _read_vector(root[named])]
    return root[wanted], names, target, y


def _read_vector(node: Any) -> NDArray[Any]:
    """The values of a one-dimensional array, text as str."""
    shape = getattr(node, "shape", ())
    if len(shape) != 1:
        raise DataError(f"its array of names or labels has the shape {shape}.")
    values = np.asarray(node[...])
    return values.astype(object) if values.dtype.kind in "TU" else values
