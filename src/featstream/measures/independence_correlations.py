"""Continuous columns given others: partial correlations from an updated factor.

Correlations of all columns with each other and with the target are known. The Cholesky
factor of a set grows by one row with each member; sets that share their first members
share these rows. The time of a test depends on the size of the set, not on the rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from featstream.jit import by_type, inner, kernel
from featstream.measures.independence_tables import (
    DEPENDENT,
    INDEPENDENT,
    SINGULAR,
    UNRELIABLE,
)
from featstream.measures.storages.dense_codes import DenseCodes
from featstream.measures.storages.dense_values import DenseValues, write_deviations
from featstream.measures.storages.sparse_codes import SparseCodes
from featstream.measures.storages.sparse_values import SparseValues

_N_SUMS = 16

COLLINEAR = 1e-12
"""A share of the variance that may be rounding."""


class Correlations(NamedTuple):
    """Columns by their correlations: with each other, and with the target.

    The target is spanned by orthonormal variables, one for two classes or for a
    number; ``links[i]`` are the correlations of column ``i`` with them.
    """

    gram: np.ndarray
    links: np.ndarray


class PartialRule(NamedTuple):
    """``critical[d]`` is the least significant correlation, given ``d`` columns.

    It is NaN if there are too few samples.
    """

    critical: np.ndarray
    max_size: int
    unreliable_separates: bool


class PartialWork(NamedTuple):
    """Scratch buffers of one search.

    Row ``d`` of ``factor``, ``own`` and ``links`` belongs to member ``d`` of the set;
    the latter are column and target, forward-substituted. Given the first ``d``
    members, ``left[d]`` is the variance of the column, ``shared[d]`` its covariance
    with the target, and ``target[d]`` the covariance of the target.
    """

    factor: np.ndarray
    own: np.ndarray
    links: np.ndarray
    left: np.ndarray
    shared: np.ndarray
    target: np.ndarray
    column: np.ndarray
    triangle: np.ndarray
    solved: np.ndarray
    path: np.ndarray
    order: np.ndarray


def partial_work(n_targets: int, max_size: int) -> PartialWork:
    """New scratch buffers."""
    size = max(1, max_size)
    return PartialWork(
        factor=np.zeros((size, size)),
        own=np.zeros(size),
        links=np.zeros((size, n_targets)),
        left=np.zeros(size + 1),
        shared=np.zeros((size + 1, n_targets)),
        target=np.zeros((size + 1, n_targets, n_targets)),
        column=np.zeros(1, np.int64),
        triangle=np.zeros((n_targets, n_targets)),
        solved=np.zeros(n_targets),
        path=np.zeros(size, np.int64),
        order=np.zeros(size, np.int64),
    )


@kernel
def begin_partial(columns, a, rule, work):
    """Pair column ``a`` with the target."""
    work.column[0] = a
    work.left[0] = 1.0
    for t in range(columns.links.shape[1]):
        work.shared[0, t] = columns.links[a, t]
        for u in range(columns.links.shape[1]):
            work.target[0, t, u] = 1.0 if t == u else 0.0


@inner
def _extend(columns, path, d, work):
    """Add member ``d`` of the set to the factor; False if it depends on the others."""
    gram, factor, links = columns.gram, work.factor, work.links
    member, a = path[d], work.column[0]
    left = 1.0
    for j in range(d):
        value = gram[member, path[j]]
        for k in range(j):
            value -= factor[j, k] * factor[d, k]
        factor[d, j] = value / factor[j, j]
        left -= factor[d, j] * factor[d, j]
    if not left > COLLINEAR:
        return False
    factor[d, d] = np.sqrt(left)
    value = gram[member, a]
    for k in range(d):
        value -= factor[d, k] * work.own[k]
    work.own[d] = value / factor[d, d]
    work.left[d + 1] = work.left[d] - work.own[d] * work.own[d]
    n_targets = links.shape[1]
    for t in range(n_targets):
        value = columns.links[member, t]
        for k in range(d):
            value -= factor[d, k] * links[k, t]
        links[d, t] = value / factor[d, d]
        work.shared[d + 1, t] = work.shared[d, t] - work.own[d] * links[d, t]
    for t in range(n_targets):
        for u in range(n_targets):
            product = links[d, t] * links[d, u]
            work.target[d + 1, t, u] = work.target[d, t, u] - product
    return True


@inner
def _correlate_left(left, shared, target, factor, solved):
    """Correlation of the residuals of a column and of the target.

    It is 0 if either has none. The solution of ``target x = shared`` leaves out
    directions without residual variance.
    """
    if not left > COLLINEAR:
        return 0.0
    n_targets = shared.size
    if n_targets == 1:
        if not target[0, 0] > COLLINEAR:
            return 0.0
        return min(1.0, abs(shared[0]) / np.sqrt(left * target[0, 0]))
    explained = 0.0
    for t in range(n_targets):
        for u in range(t + 1):
            value = target[t, u]
            for k in range(u):
                value -= factor[t, k] * factor[u, k]
            if u == t:
                factor[t, t] = np.sqrt(value) if value > COLLINEAR else 0.0
            else:
                factor[t, u] = value / factor[u, u] if factor[u, u] > 0.0 else 0.0
        solved[t] = 0.0
        if factor[t, t] > 0.0:
            value = shared[t]
            for k in range(t):
                value -= factor[t, k] * solved[k]
            solved[t] = value / factor[t, t]
            explained += solved[t] * solved[t]
    return min(1.0, np.sqrt(explained / left))


@kernel
def measure_partial(columns, path, size, built, rule, work):
    """Absolute partial correlation given the set ``path[:size]``, and the new depth.

    The factor is valid up to depth ``built``. The correlation is NaN if a member of the
    set is a linear function of the others.
    """
    for d in range(built, size):
        if not _extend(columns, path, d, work):
            return np.nan, d
    left = work.left[size], work.shared[size], work.target[size]
    return _correlate_left(*left, work.triangle, work.solved), size


@inner
def judge_partial(columns, path, size, built, rule, work):
    """Whether the set ``path[:size]`` makes the column independent of the target."""
    critical = rule.critical[size]
    if np.isnan(critical):
        return UNRELIABLE, built
    value, built = measure_partial(columns, path, size, built, rule, work)
    if np.isnan(value):
        return SINGULAR, built
    return (INDEPENDENT if value < critical else DEPENDENT), built


@inner(allocates=True)
def dot(a, b):
    """Sum of products, in partial sums that are added in a fixed order."""
    sums = np.zeros(_N_SUMS)
    whole = a.size - a.size % _N_SUMS
    for start in range(0, whole, _N_SUMS):
        left, right = a[start : start + _N_SUMS], b[start : start + _N_SUMS]
        for k in range(_N_SUMS):
            sums[k] += left[k] * right[k]
    for k in range(a.size - whole):
        sums[k] += a[whole + k] * b[whole + k]
    total = 0.0
    for k in range(_N_SUMS):
        total += sums[k]
    return total


@inner(allocates=True)
def _keep_tables(columns, i, values):
    pass


@inner(allocates=True)
def keep_dense_deviations(columns, i, values):
    """Write the deviations of a dense column."""
    write_deviations(columns, i)
    row = columns.values[i]
    for r in range(values.size):
        values[r] = row[r]


@inner(allocates=True)
def _keep_sparse_deviations(columns, i, values):
    values[:] = columns.background[i]
    for e in range(columns.offset[i], columns.offset[i] + columns.length[i]):
        values[columns.rows[e]] = columns.values[e]


keep_values = by_type(
    {
        DenseCodes: _keep_tables,
        SparseCodes: _keep_tables,
        DenseValues: keep_dense_deviations,
        SparseValues: _keep_sparse_deviations,
    }
)
"""Write the deviations of a column, by which later ones are correlated."""
