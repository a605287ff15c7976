"""Hypothesis strategies: small data, few values, many ties."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

RULES = {
    "bound": ["min", "max"],
    "ties": ["keep", "drop"],
    "pruning": ["interleaved", "deferred"],
    "overlap": [">=", ">"],
    "max_features": [None, 1, 3],
}


def rules():
    """Options of SAOLA."""
    return st.fixed_dictionaries({k: st.sampled_from(v) for k, v in RULES.items()})


GROUP_RULES = {name: RULES[name] for name in ("bound", "ties", "pruning", "overlap")}


def group_rules():
    """Options of group-SAOLA as printed."""
    return st.fixed_dictionaries(
        {k: st.sampled_from(v) for k, v in GROUP_RULES.items()}
    )


@st.composite
def grouped(draw, data):
    """Data with a label for each feature: from one group to as many as features."""
    X, y = draw(data)
    p = X.shape[1]
    n_groups = draw(st.integers(1, p))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    labels = rng.integers(0, n_groups, p)
    return X, y, np.sort(labels) if draw(st.booleans()) else labels


@st.composite
def discrete_data(draw, *, max_features=12, max_arity=4, max_classes=3):
    """Small integer columns, some of them copies, relabelled copies or noisy ones."""
    seed = draw(st.integers(0, 2**32 - 1))
    n = draw(st.integers(4, 24))
    p = draw(st.integers(1, max_features))
    arity = draw(st.integers(2, max_arity))
    rng = np.random.default_rng(seed)
    y = rng.integers(0, draw(st.integers(2, max_classes)), n)
    y[:2] = [0, 1]
    X = rng.integers(0, arity, (n, p))
    for j in range(p):
        kind = rng.integers(0, 6)
        if kind == 0:
            X[:, j] = y
        elif kind == 1 and j:
            X[:, j] = X[:, rng.integers(0, j)]
        elif kind == 2 and j:
            X[:, j] = rng.permutation(arity + 3)[X[:, rng.integers(0, j)]]
        elif kind == 3:
            noisy = rng.random(n) < 0.2
            X[:, j] = np.where(noisy, X[:, j], y)
        elif kind == 4:
            X[:, j] = X[:, j] * (rng.random(n) < 0.2)
    return X, y


@st.composite
def continuous_data(draw, *, max_features=10):
    """Correlated columns; some whole-numbered, so that ties occur."""
    seed = draw(st.integers(0, 2**32 - 1))
    n = draw(st.integers(5, 150))
    p = draw(st.integers(1, max_features))
    rng = np.random.default_rng(seed)
    y = rng.integers(0, draw(st.integers(2, 3)), n)
    y[:3] = [0, 1, y.max()]
    X = rng.normal(size=(n, p))
    for j in range(p):
        kind = rng.integers(0, 5)
        if kind == 0:
            X[:, j] += 2 * y
        elif kind == 1 and j:
            X[:, j] = X[:, rng.integers(0, j)] + 0.3 * X[:, j]
        elif kind == 2 and j:
            X[:, j] = X[:, rng.integers(0, j)]
        elif kind == 3:
            X[:, j] = np.round(X[:, j] + y) * (rng.random(n) < 0.5)
    return X, y
