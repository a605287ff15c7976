"""Benchmark data and golden results that live beside the repository.

They are found in ``../shared``, or where the environment variable
``FEATSTREAM_SHARED`` points.
"""

import os
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

ROOT = Path(
    os.environ.get("FEATSTREAM_SHARED", Path(__file__).parents[1].parent / "shared")
)


def shared(*parts):
    """Path of a shared file; the test is skipped where it is absent."""
    path = ROOT.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"no {'/'.join(parts)} in {ROOT}; set FEATSTREAM_SHARED")
    return path


def load(path):
    """Arrays of an npz file, sparse matrices put together again."""
    arrays, result = np.load(path, allow_pickle=False), {}
    for key in arrays.files:
        if key.endswith("_format"):
            name = key.removesuffix("_format")
            parts = (arrays[f"{name}_{part}"] for part in ("data", "indices", "indptr"))
            data, indices, indptr = parts
            result[name] = sp.csc_matrix(
                (data, indices.astype(np.int32), indptr),
                shape=tuple(arrays[f"{name}_shape"]),
            )
        elif not key.endswith(("_data", "_indices", "_indptr", "_shape")):
            result[key] = arrays[key]
    return result
