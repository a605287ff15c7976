"""Relevance of continuous columns: sums and scores in one pass over a block."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from featstream.jit import inner, jit
from featstream.kernels.layout import copy_panel
from featstream.kernels.moments import LANES, fold
from featstream.kernels.prefetch import AHEAD_BYTES, CACHE_LINE, prefetch

__all__ = [
    "MomentSums",
    "MomentTarget",
    "screen_dense",
    "screen_rows",
    "screen_sparse",
]

_TINY = 1e-280


class MomentTarget(NamedTuple):
    """The target as weights of the rows, one row a class or a single one.

    ``totals`` are the sums of the weights. A single row has ``norm``, the root of
    ``n·Σw² − (Σw)²``.
    """

    weights: np.ndarray
    totals: np.ndarray
    norm: float
    is_nominal: bool


class MomentSums(NamedTuple):
    """Sums of the deviations of every column from its pivot.

    ``squared_norm`` is ``n·Σa² − (Σa)²``, and ``product[t]`` the sum of deviation
    times weight ``t`` of the target.
    """

    pivot: np.ndarray
    total: np.ndarray
    squared_norm: np.ndarray
    product: np.ndarray


@inner
def median_of_three(a, b, c):
    """The middle one: a typical value of a column, even with an odd first row."""
    return max(min(a, b), min(max(a, b), c))


@inner
def _tally(column, row, pivot, weight, sums, powers, cross, k):
    deviation = np.float64(column[row]) - pivot
    sums[k] += deviation
    powers[k] += deviation * deviation
    cross[k] += deviation * weight[row]


@inner
def _sum_column(column, pivot, weight, sums, powers, cross):
    """Sums by lane of the deviations, of their squares, and times the weights."""
    n = column.size
    sums[:] = 0.0
    powers[:] = 0.0
    cross[:] = 0.0
    ahead = AHEAD_BYTES // column.itemsize
    line = CACHE_LINE // column.itemsize
    pairs = n - n % (2 * LANES)
    for start in range(0, pairs, 2 * LANES):
        piece = column[start : start + 2 * LANES]
        weight_here = weight[start : start + 2 * LANES]
        for k in range(0, 2 * LANES, line):
            prefetch(piece, ahead + k)
        for k in range(LANES):
            first = np.float64(piece[k]) - pivot
            second = np.float64(piece[LANES + k]) - pivot
            sums[k] = sums[k] + first + second
            powers[k] = powers[k] + first * first + second * second
            cross[k] = (
                cross[k] + first * weight_here[k] + second * weight_here[LANES + k]
            )
    whole = n - n % LANES
    for start in range(pairs, whole, LANES):
        for k in range(LANES):
            _tally(column, start + k, pivot, weight, sums, powers, cross, k)
    for k in range(n - whole):
        _tally(column, whole + k, pivot, weight, sums, powers, cross, k)


@inner
def _sum_dense(column, j, target, sums, lanes):
    """Fill the sums of a column; its squares are not centred yet."""
    n = column.size
    pivot = np.float64(median_of_three(column[0], column[n // 2], column[n - 1]))
    sums.pivot[j] = pivot
    for t in range(target.totals.size):
        _sum_column(column, pivot, target.weights[t], lanes[0], lanes[1], lanes[2])
        sums.product[t, j] = fold(lanes[2])
    sums.total[j] = fold(lanes[0])
    sums.squared_norm[j] = fold(lanes[1])


@inner
def _correlate(target, sums, j):
    """Absolute correlation of a column with the target."""
    n = target.weights.shape[1]
    covariance = n * sums.product[0, j] - target.totals[0] * sums.total[j]
    return min(abs(covariance) / (np.sqrt(sums.squared_norm[j]) * target.norm), 1.0)


@inner
def _eta(target, sums, j, terms):
    """Correlation ratio of a column with the class.

    ``eta² = Σ_c (n·S_c − n_c·S)² / (n_c · n · (n·Q − S²))``. The terms are added
    from the smallest up, so that the labels of the classes do not matter.
    """
    n, n_classes = target.weights.shape[1], target.totals.size
    for c in range(n_classes):
        gap = n * sums.product[c, j] - target.totals[c] * sums.total[j]
        term, place = gap * gap / target.totals[c], c
        while place > 0 and terms[place - 1] > term:
            terms[place] = terms[place - 1]
            place -= 1
        terms[place] = term
    between = 0.0
    for c in range(n_classes):
        between += terms[c]
    whole = n * sums.squared_norm[j]
    if np.isinf(between) or np.isinf(whole):
        return np.nan
    return min(1.0, np.sqrt(between / whole))


@inner
def _score(target, sums, j, terms):
    """Centre the squares of a column, and score it.

    The score is NaN if the squares overflow, or what is made of them, are NaN, or
    vanish although the column varies, which would make it pass for a constant.
    """
    square, total = sums.squared_norm[j], sums.total[j]
    centred = target.weights.shape[1] * square - total * total
    varies = total != 0.0
    for t in range(target.totals.size):
        varies |= sums.product[t, j] != 0.0
    if not np.isfinite(centred) or (square < _TINY and varies):
        return np.nan
    sums.squared_norm[j] = centred
    if not centred > 0.0:
        return 0.0
    if target.is_nominal:
        return _eta(target, sums, j, terms)
    return _correlate(target, sums, j)


@jit
def screen_dense(block, target, sums, scores):
    """Sums and scores of the columns of a column-major block.

    Returns the first column that cannot be scored, or -1.
    """
    lanes, terms = np.empty((3, LANES)), np.empty(target.totals.size)
    for j in range(block.shape[1]):
        _sum_dense(block[:, j], j, target, sums, lanes)
        scores[j] = _score(target, sums, j, terms)
        if np.isnan(scores[j]):
            return j
    return -1


@jit
def screen_rows(x, target, critical, sums, scores, panel, held):
    """Sums and scores of the columns of a row-major block.

    They are turned over a panel at a time. Those with a critical score are copied
    to the rows of ``held``. Returns the first column that cannot be scored, or -1,
    and the number of those held.
    """
    lanes, terms = np.empty((3, LANES)), np.empty(target.totals.size)
    width, n_held = panel.shape[0], 0
    for first in range(0, x.shape[1], width):
        stop = min(first + width, x.shape[1])
        copy_panel(x[:, first:stop], panel[: stop - first])
        for j in range(first, stop):
            column = panel[j - first]
            _sum_dense(column, j, target, sums, lanes)
            scores[j] = _score(target, sums, j, terms)
            if np.isnan(scores[j]):
                return j, n_held
            if scores[j] >= critical:
                held[n_held] = column
                n_held += 1
    return -1, n_held


@inner
def _stored_at(rows, values, start, stop, row):
    """Value of a sparse column in a row."""
    position = start + np.searchsorted(rows[start:stop], row)
    if position < stop and rows[position] == row:
        return np.float64(values[position])
    return 0.0


@inner
def _sum_sparse(rows, values, start, stop, j, target, sums):
    """The same as `_sum_dense`, in time of the stored entries."""
    n = target.weights.shape[1]
    pivot = median_of_three(
        _stored_at(rows, values, start, stop, 0),
        _stored_at(rows, values, start, stop, n // 2),
        _stored_at(rows, values, start, stop, n - 1),
    )
    n_rest = n - (stop - start)
    total, square = 0.0, 0.0
    if n_rest > 0:  # the square of a large pivot may overflow for nothing
        total, square = -pivot * n_rest, pivot * pivot * n_rest
    for e in range(start, stop):
        deviation = np.float64(values[e]) - pivot
        total += deviation
        square += deviation * deviation
    sums.pivot[j], sums.total[j], sums.squared_norm[j] = pivot, total, square
    for t in range(target.totals.size):
        stored_weight, product = 0.0, 0.0
        for e in range(start, stop):
            weight = target.weights[t, rows[e]]
            stored_weight += weight
            product += (np.float64(values[e]) - pivot) * weight
        if pivot != 0.0 and n_rest > 0:  # otherwise rounding alone is left
            product -= pivot * (target.totals[t] - stored_weight)
        sums.product[t, j] = product


@jit
def screen_sparse(indptr, rows, values, target, sums, scores):
    """Sums and scores of sparse columns.

    Returns the first column that cannot be scored, or -1.
    """
    terms = np.empty(target.totals.size)
    for j in range(indptr.size - 1):
        _sum_sparse(rows, values, indptr[j], indptr[j + 1], j, target, sums)
        scores[j] = _score(target, sums, j, terms)
        if np.isnan(scores[j]):
            return j
    return -1
