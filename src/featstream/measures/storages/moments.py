"""Sums of deviations of continuous columns, and their scores with the target.

Each column is shifted by one of its own values (`pivot`), which costs no extra
pass, leaves integers integers, makes a constant column exactly zero and keeps
cancellation away. Correlations are then built from ``n·Σab − Σa·Σb``, which
does not depend on the shift: for integer-valued data (counts, expression
levels, 0/1) every such number is exact below 2**53, so the order of rows and
the storage cannot change a bit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from featstream.jit import inner

_TINY = 1e-280


class WeightedTarget(NamedTuple):
    """The target as weights of the rows, one row per class or a single one.

    ``totals`` are the sums of the weights. A single row has ``norm``, the root of
    ``n·Σw² − (Σw)²``.
    """

    weights: np.ndarray
    totals: np.ndarray
    norm: float
    is_nominal: bool


class MomentSums(NamedTuple):
    """Sums of the deviations of every column from its pivot.

    ``squared_norm`` is ``n·Σa² − (Σa)²``, and ``product[j, t]`` the sum of deviation
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
def _correlate(target, sums, j):
    """Absolute correlation of a column with the target."""
    n = target.weights.shape[1]
    covariance = n * sums.product[j, 0] - target.totals[0] * sums.total[j]
    return min(abs(covariance) / (np.sqrt(sums.squared_norm[j]) * target.norm), 1.0)


@inner
def _eta(target, sums, j, terms):
    """Correlation ratio of a column with the class.

    ``eta² = Σ_c (n·S_c − n_c·S)² / (n_c · n · (n·Q − S²))``. The terms are added
    from the smallest up, so that the labels of the classes do not matter.
    """
    n, n_classes = target.weights.shape[1], target.totals.size
    for c in range(n_classes):
        gap = n * sums.product[j, c] - target.totals[c] * sums.total[j]
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
def score_column(target, sums, j, terms):
    """Centre the squares of a column, and score it.

    The score is NaN if the squares overflow, or what is made of them, are NaN, or
    vanish although the column varies, which would make it pass for a constant.
    """
    square, total = sums.squared_norm[j], sums.total[j]
    centred = target.weights.shape[1] * square - total * total
    varies = total != 0.0
    for t in range(target.totals.size):
        varies |= sums.product[j, t] != 0.0
    if not np.isfinite(centred) or (square < _TINY and varies):
        return np.nan
    sums.squared_norm[j] = centred
    if not centred > 0.0:
        return 0.0
    if target.is_nominal:
        return _eta(target, sums, j, terms)
    return _correlate(target, sums, j)


def empty_sums(n_targets: int, n_columns: int) -> MomentSums:
    """Room for the sums of some columns."""
    m = n_columns
    return MomentSums(np.empty(m), np.empty(m), np.empty(m), np.empty((m, n_targets)))
