"""The golden results of the authors' own library (LOFS) and their inputs."""

import json
from functools import cache

import numpy as np

from featstream import FisherZ, SymmetricalUncertainty
from shared import load, shared


@cache
def cases():
    return json.loads(shared("golden", "lofs_golden.json").read_text())["cases"]


def arrays(name):
    """``X``, ``y`` and the order ``perm`` of a case, as they are stored."""
    return load(shared("golden", cases()[name]["file"]))


@cache
def data(name):
    """``X`` and ``y`` of a case, as floating numbers."""
    found = arrays(name)
    return np.asfortranarray(found["X"], dtype=float), found["y"].astype(float)


def as_lofs_sees(name, run):
    """``X``, ``y`` and the measure of a run of SAOLA or group-SAOLA.

    Columns that sum to 0 are made constant. With symmetrical uncertainty values are
    cut at integers.
    """
    found, params = arrays(name), run["params"]
    X, y = found["X"], found["y"].astype(float)
    X = np.where(X.sum(axis=0) == 0, X.dtype.type(0), X)
    if run["algorithm"].endswith("_z"):
        return X, y, FisherZ(alpha=params["alpha"], target="numeric")
    return X // 1, y, SymmetricalUncertainty(threshold=params["delta"], binning=None)


def _of_all_cases(part, key, wanted):
    return [
        (name, found)
        for name, case in cases().items()
        for found in case[part]
        if found[key] in wanted
    ]


def runs(*algorithms):
    """Every run of the algorithms, with the name of its case."""
    return _of_all_cases("runs", "algorithm", algorithms)


def measures(*kinds):
    """Every number-level result of the kinds, with the name of its case."""
    return _of_all_cases("measures", "kind", kinds)


def without_zero_sums(X):
    """LOFS skips a column whose sum is exactly 0; a constant is skipped as well."""
    return np.where(X.sum(axis=0) == 0, 1.0, X)
