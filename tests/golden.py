"""The golden results of the authors' own library (LOFS) and their inputs."""

from __future__ import annotations

import json
from functools import cache

import numpy as np

from shared import load, shared


@cache
def cases():
    return json.loads(shared("golden", "lofs_golden.json").read_text())["cases"]


@cache
def data(name):
    """Dense ``X`` and ``y`` of a case, as floating numbers."""
    arrays = load(shared("golden", cases()[name]["file"]))
    X = arrays["X"]
    dense = X.toarray() if hasattr(X, "toarray") else X
    return np.asfortranarray(dense, dtype=float), arrays["y"].astype(float)


def runs(*algorithms):
    """Every run of the algorithms, with the name of its case."""
    return [
        (name, run)
        for name, case in cases().items()
        for run in case["runs"]
        if run["algorithm"] in algorithms
    ]


def measures(*kinds):
    """Every number-level result of the kinds, with the name of its case."""
    return [
        (name, measure)
        for name, case in cases().items()
        for measure in case["measures"]
        if measure["kind"] in kinds
    ]


def without_zero_sums(X):
    """LOFS skips a column whose sum is exactly 0; a constant is skipped as well."""
    return np.where(X.sum(axis=0) == 0, 1.0, X)
