"""Hypothesis strategies: small data, few values, many ties.

Data come from one number: drawn piece by piece they would be tiny, as Hypothesis
likes small pieces. The number's digits are the sizes, so that it still shrinks
to small data.
"""

import numba
import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from scipy import sparse

from featstream import FisherZ, MutualInformation, SymmetricalUncertainty

RULES = {
    "bound": ["min", "max"],
    "ties": ["keep", "drop"],
    "pruning": ["interleaved", "deferred", "newcomers"],
    "overlap": [">=", ">"],
    "max_features": [None, 1, 3],
}


def examples(n):
    """Try n examples: half as many in plain Python, 25 times as many random ones."""
    if not settings.default.derandomize:
        n *= 25
    return settings(max_examples=n // 2 if numba.config.DISABLE_JIT else n)


CONDITIONAL = {
    "redundancy": ["conditional"],
    "redundancy_alpha": [0.05, 0.5],
    "ties": ["keep", "drop"],
    "pruning": ["interleaved", "deferred", "newcomers"],
    "max_features": [None, 3],
}


GROUP_RULES = RULES | {"reading": ["relevant", "literal"]}


def options(table):
    """Options, each with one of its values in the table."""
    return st.fixed_dictionaries({k: st.sampled_from(v) for k, v in table.items()})


def rules():
    """Options of SAOLA."""
    return options(RULES)


def conditional_rules():
    """Options of SAOLA with the conditional test."""
    return options(CONDITIONAL)


def group_rules():
    """Options of group-SAOLA as printed."""
    return options(GROUP_RULES)


def generators(*limits):
    """A random generator, and one size below each limit."""
    return st.integers(0, 2**40).map(lambda number: _split(number, limits))


def _split(number, limits):
    sizes, rest = [], number
    for limit in limits:
        rest, size = divmod(rest, limit)
        sizes.append(size)
    return np.random.default_rng(number), *sizes


def two_classes(data):
    """The data of a strategy, where they have just two classes."""
    return data.filter(lambda drawn: len(set(drawn[1].tolist())) == 2)


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
def discrete_data(draw, *, max_features=12, max_arity=4, max_classes=3, least_rows=4):
    """Small integer columns, some of them copies, relabelled copies or noisy ones."""
    rng, p, n = draw(generators(max_features, 21))
    n, p = n + least_rows, p + 1
    arity = rng.integers(2, max_arity + 1)
    y = rng.integers(0, rng.integers(2, max_classes + 1), n)
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
    rng, p, n = draw(generators(max_features, 146))
    n, p = n + 5, p + 1
    y = rng.integers(0, rng.integers(2, 4), n)
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


def measured(change=lambda data: data):
    """Data, perhaps changed, with a measure that suits them."""
    kinds = SymmetricalUncertainty, MutualInformation
    discrete = [kind(threshold=t) for kind in kinds for t in (0.0, 0.05)]
    return st.one_of(
        st.tuples(change(discrete_data()), st.sampled_from(discrete)),
        st.tuples(change(continuous_data()), st.just(FisherZ(alpha=0.05))),
    )


STORAGES = st.sampled_from([np.asarray, sparse.csc_array])


@st.composite
def awkward_data(draw, *, max_features=12):
    """Columns that try sums: outliers, offsets, near copies, tiny and huge scales."""
    rng, p, n = draw(generators(max_features, 120))
    n, p = n + 5, p + 1
    y = rng.integers(0, 2, n)
    y[:2] = [0, 1]
    X = rng.normal(size=(n, p)) + y[:, None]
    for j in range(p):
        kind = rng.integers(0, 6)
        if kind == 0:
            X[rng.integers(0, n, 2), j] = 1e8
        elif kind == 1:
            X[:, j] += 10.0 ** rng.integers(3, 9)
        elif kind == 2 and j:
            X[:, j] = X[:, j - 1] * (1 + 1e-15 * rng.normal(size=n))
        elif kind == 3:
            X[:, j] *= 10.0 ** rng.integers(-120, 120)
        elif kind == 4:
            X[:, j] = y + 1e-9 * X[:, j]
        elif kind == 5 and j:
            X[:, j] = 3.0 * X[:, j - 1] - 7.0
    return X, y


@st.composite
def interacting_data(draw, *, max_features=12, max_arity=4):
    """Columns of few categories, some of which tell the class only in pairs."""
    rng, p, n = draw(generators(max_features, 150))
    n, p = n + 40, p + 3
    X = rng.integers(0, rng.integers(2, max_arity + 1, p), (n, p))
    first, second, copied = rng.permutation(p)[:3]
    y = (X[:, first] + X[:, second]) % rng.integers(2, 4)
    y = np.where(rng.random(n) < rng.choice([0.0, 0.15]), rng.integers(0, 2, n), y)
    y[:2] = [0, 1]
    if rng.random() < 0.5:
        X[:, copied] = 3 - X[:, first]
    elif rng.random() < 0.5:
        X[:, copied] *= rng.random(n) < 0.1
    return X, y
