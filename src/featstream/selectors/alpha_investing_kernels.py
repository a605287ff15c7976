"""Alpha-investing: how much of what is left unexplained a new column explains.

The model is an orthonormal basis of its columns, so a new column needs one pass:
its products with the basis and with the residuals. Zeros add nothing, and dense
and sparse columns are summed in the same order, to the same bit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from featstream.jit import inner, jit

COLLINEAR = 1e-10
"""A share of a column's square that may be rounding: it adds nothing to the model."""


class Fit(NamedTuple):
    """The model: what is explained, and what is left.

    ``basis`` and ``residuals``, the gradient of the loss, have one row per sample; the
    former is orthonormal, times the root of ``weights``, the curvature of the loss.
    ``scale`` turns a squared product with the residuals into a statistic (0: there is
    nothing left to explain), whose tail has ``2 n_free`` degrees of freedom.
    """

    basis: np.ndarray
    weights: np.ndarray
    residuals: np.ndarray
    scale: float
    n_free: int


class Account(NamedTuple):
    """``state`` is the wealth and the number of features tested so far."""

    state: np.ndarray
    payout: float


@inner
def _tail(statistic, n_free):
    """Tail of chi-square with ``2 n_free`` degrees; ``exp(-statistic / 2)`` for one."""
    half = statistic / 2.0
    term, total = 1.0, 1.0
    for k in range(1, n_free):
        term *= half / k
        total += term
    return np.exp(-half) * total


@inner
def _decide(square, inner, products, fit, account):
    """Spend on one column: whether it is accepted, and its statistic."""
    account.state[1] += 1.0
    alpha = account.state[0] / (2.0 * account.state[1])
    left, gain = square, 0.0
    for k in range(inner.size):
        left -= inner[k] * inner[k]
    for t in range(products.size):
        gain += products[t] * products[t]
    statistic, p_value = 0.0, 1.0
    if left > COLLINEAR * square:
        statistic = fit.scale * gain / left
        p_value = _tail(statistic, fit.n_free)
    if p_value < alpha:
        account.state[0] += account.payout - alpha
        return True, statistic
    account.state[0] -= alpha
    return False, statistic


@inner
def _add(value, row, inner, products, basis, residuals):
    for k in range(inner.size):
        inner[k] += basis[row, k] * value
    for t in range(products.size):
        products[t] += residuals[row, t] * value


@inner
def _add_four(a, b, c, d, row, total, table):
    """Four rows at once, added one after the other: zeros do not change a sum."""
    first, second = table[row], table[row + 1]
    third, fourth = table[row + 2], table[row + 3]
    for k in range(total.size):
        total[k] = (
            ((total[k] + first[k] * a) + second[k] * b) + third[k] * c
        ) + fourth[k] * d


@jit
def invest_dense(block, begin, fit, account, statistics):
    """Test the columns from ``begin`` on; the first accepted, or their number."""
    n, m = block.shape
    basis, residuals, weights = fit.basis, fit.residuals, fit.weights
    inner, products = np.empty(basis.shape[1]), np.empty(residuals.shape[1])
    whole = n - n % 4
    for j in range(begin, m):
        column, square = block[:, j], 0.0
        inner[:] = 0.0
        products[:] = 0.0
        for row in range(n):
            value = np.float64(column[row])
            square += weights[row] * value * value
        for row in range(0, whole, 4):
            a, b = np.float64(column[row]), np.float64(column[row + 1])
            c, d = np.float64(column[row + 2]), np.float64(column[row + 3])
            if a != 0.0 or b != 0.0 or c != 0.0 or d != 0.0:
                _add_four(a, b, c, d, row, inner, basis)
                _add_four(a, b, c, d, row, products, residuals)
        for row in range(whole, n):
            _add(np.float64(column[row]), row, inner, products, basis, residuals)
        is_accepted, statistics[j] = _decide(square, inner, products, fit, account)
        if is_accepted:
            return j
    return m


@jit
def invest_sparse(indptr, rows, values, begin, fit, account, statistics):
    """The same for sparse columns, in time of their stored entries."""
    m = indptr.size - 1
    basis, residuals, weights = fit.basis, fit.residuals, fit.weights
    inner, products = np.empty(basis.shape[1]), np.empty(residuals.shape[1])
    for j in range(begin, m):
        square = 0.0
        inner[:] = 0.0
        products[:] = 0.0
        for e in range(indptr[j], indptr[j + 1]):
            value = np.float64(values[e])
            square += weights[rows[e]] * value * value
            _add(value, rows[e], inner, products, basis, residuals)
        is_accepted, statistics[j] = _decide(square, inner, products, fit, account)
        if is_accepted:
            return j
    return m
