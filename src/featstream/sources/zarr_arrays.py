"""Arrays of zarr, versions 2 and 3 of the format."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator
from typing import Any

import numpy as np

from featstream.errors import DataError, DataTypeError, printable
from featstream.sources.annotated import as_texts, is_anndata, read_anndata
from featstream.sources.chunked import SlabSource
from featstream.sources.dataset import (
    Dataset,
    PathLike,
    existing,
    find_target,
    reading,
    require,
    shortened,
)
from featstream.sources.targets import is_target_file, read_target
from featstream.sources.values import Duplicates

__all__ = ["open_zarr"]

_NAMES = ("names", "feature_names")


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
    optional : collection of str, default=()
        Further names that a target may have if none is asked for.
    duplicates : {"error", "number"}, default="error"
        What to do about two features of one name: refuse them, or call the second
        one ``name#2``.

    Returns
    -------
    Dataset
        The features, the target if there is one, and the names, if the group has
        them as ``names`` or ``feature_names``.

    Notes
    -----
    Chunks of some columns and all rows are read best. A chunk that is not stored has
    the array's fill value: so the format has it, and nothing tells it from one that
    was lost. An array that would be decoded with pickle is refused.

    Examples
    --------
    >>> import tempfile, numpy as np, zarr
    >>> folder = tempfile.mkdtemp(suffix=".zarr")
    >>> _ = zarr.create_array(folder, data=np.eye(4), chunks=(4, 2), overwrite=True)
    >>> open_zarr(folder).source.n_features
    4
    """
    path = existing(path)
    require("zarr", "science", path)
    import zarr

    with reading(path):
        try:
            root = zarr.open(path, mode="r")
        except (TypeError, AttributeError, RecursionError) as error:
            raise DataError(f"its description is damaged: {error}.") from error
        for array in _arrays(root):
            _refuse_pickle(array)
        if hasattr(root, "keys") and is_anndata(root):
            return read_anndata(root, path, target, layer, optional, duplicates)
        is_guessed = target is None
        array, names, target, y = _find_parts(root, target, layer, optional)
        if hasattr(array, "keys"):
            raise DataError(f"{printable(array.path)} in it is no array but a group.")
        if array.dtype.kind not in "biufc":
            raise DataTypeError(
                f"its array has dtype {array.dtype}, and not numbers. Give text as "
                "codes, or in a table."
            )
        source = SlabSource(array, path, names, _fingerprint(array), duplicates)
    if y is None and target is not None:
        y = read_target(target)
    return Dataset(source, y, source.names, target, is_guessed and y is not None)


def _arrays(root: Any) -> Iterator[Any]:
    if not hasattr(root, "keys"):
        yield root
        return
    for _, node in root.members(max_depth=None):
        if not hasattr(node, "keys"):
            yield node


def _refuse_pickle(array: Any) -> None:
    """Raise if reading an array would run what a file says."""
    told = array.metadata.to_dict()
    codecs = {name: value for name, value in told.items() if name != "attributes"}
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
    kept = sorted(root.keys())
    wanted = layer or "X"
    if wanted not in kept:
        raise DataError(
            f"it has no array {printable(wanted)}. It holds: "
            f"{shortened(kept) or 'nothing'}."
        )
    if target is None:
        target = find_target(kept, optional)
    elif target not in kept and not is_target_file(target):
        raise DataError(
            f"it has no array {printable(target)} for a target, and there is no such "
            f"file. It holds: {shortened(kept)}."
        )
    y = as_texts(root[target]) if target in kept else None
    named = next((name for name in _NAMES if name in kept), None)
    names = None if named is None else [str(name) for name in as_texts(root[named])]
    return root[wanted], names, target, y


def _fingerprint(array: Any) -> str:
    told = f"{tuple(array.shape)} {np.dtype(array.dtype)} {tuple(array.chunks)}"
    return hashlib.sha256(told.encode()).hexdigest()
