"""Benchmark data beside the repository: ``../shared``, or ``FEATSTREAM_SHARED``."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from scipy import sparse

FOLDER = Path(
    os.environ.get("FEATSTREAM_SHARED", Path(__file__).parents[1].parent / "shared")
)


def load(name):
    """Arrays of a data set, sparse matrices put together again."""
    arrays, found = np.load(FOLDER / "data" / f"{name}.npz", allow_pickle=False), {}
    for key in arrays.files:
        if key.endswith("_format"):
            name = key.removesuffix("_format")
            data, rows, starts, shape = (
                arrays[f"{name}_{part}"]
                for part in ("data", "indices", "indptr", "shape")
            )
            parts = data, rows.astype(np.int32), starts
            found[name] = sparse.csc_array(parts, shape=tuple(shape))
        elif not key.endswith(("_data", "_indices", "_indptr", "_shape")):
            found[key] = arrays[key]
    return found
