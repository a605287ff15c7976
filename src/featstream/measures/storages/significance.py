"""The p-value of a table of categories and classes, also where counts are small.

Where every expected count is at least five, twice the information (G²) follows the
chi-square law. Otherwise a table of two categories and two classes has its exact
distribution, given its margins: the p-value is the probability of more information,
and half of that of the same (mid-p). A larger table is compared with all tables of
its margins too, by the mean and the variance that Pearson's X² has among them: a
column with one value per row always has the same X², so that it is not significant.
"""

from __future__ import annotations

import math

import numpy as np

from featstream.jit import inner
from featstream.measures.storages.conditional import gamma_tail

_EXPECTED = 5
MEMO = 128
"""Sizes of a rare category for which p-values are remembered."""


def empty_memo() -> np.ndarray:
    """P-values of rare categories that are known: by size, and size in class 1."""
    return np.full((MEMO, MEMO), np.nan)


@inner
def table_p_value(cells, arity, target, nlogn, memo):
    """The p-value of a table of counts, ``arity`` rows of one count per class."""
    n, n_classes = nlogn.size - 1, target.counts.size
    n_used, rarest, information = 0, n, 0
    for p in range(arity):
        size = 0
        for c in range(n_classes):
            information += nlogn[cells[p * n_classes + c]]
            size += cells[p * n_classes + c]
        information -= nlogn[size]
        if size:
            n_used += 1
            rarest = min(rarest, size)
    if n_used < 2:
        return 1.0
    rarest_class = n
    for c in range(n_classes):
        rarest_class = min(rarest_class, target.counts[c])
    if rarest * rarest_class >= _EXPECTED * n:
        information += nlogn[n] - target.own
        g_square = 4.0 * math.log(2.0) * information / nlogn[2]
        return gamma_tail((n_used - 1) * (n_classes - 1) / 2.0, g_square / 2.0)
    if n_used > 2 or n_classes > 2:
        return _permuted_p_value(cells, arity, n_used, target, n)
    first = -1
    for p in range(arity):  # of the two categories, the rarer one
        size = cells[2 * p] + cells[2 * p + 1]
        if size and (first < 0 or size < cells[2 * first] + cells[2 * first + 1]):
            first = p
    both = cells[2 * first + 1]
    ones = cells[2 * first] + both
    if ones >= MEMO:
        return _exact_p_value(ones, both, target.counts[1], nlogn)
    if np.isnan(memo[ones, both]):
        memo[ones, both] = _exact_p_value(ones, both, target.counts[1], nlogn)
    return memo[ones, both]


@inner
def _log_chance(ones, both, n_1, n):
    """Logarithm of the probability of a table, given its margins."""
    n_0 = n - n_1
    return (
        math.lgamma(n_1 + 1.0)
        + math.lgamma(n_0 + 1.0)
        + math.lgamma(ones + 1.0)
        + math.lgamma(n - ones + 1.0)
        - math.lgamma(n + 1.0)
        - math.lgamma(both + 1.0)
        - math.lgamma(ones - both + 1.0)
        - math.lgamma(n_1 - both + 1.0)
        - math.lgamma(n_0 - ones + both + 1.0)
    )


@inner
def _joint(ones, both, n_1, nlogn):
    """What the information of a table grows with, given its margins."""
    rest = nlogn.size - 1 - n_1 - ones + both
    return nlogn[both] + nlogn[ones - both] + nlogn[n_1 - both] + nlogn[rest]


@inner
def _exact_p_value(ones, both, n_1, nlogn):
    """Probability of more information, and half of that of the same."""
    n = nlogn.size - 1
    lowest, highest = max(0, ones - (n - n_1)), min(ones, n_1)
    observed, total = _joint(ones, both, n_1, nlogn), 0.0
    for end, step in ((lowest, 1), (highest, -1)):
        k = end
        chance = math.exp(_log_chance(ones, k, n_1, n))
        while lowest <= k <= highest:
            joint = _joint(ones, k, n_1, nlogn)
            if joint < observed:
                break
            total += chance if joint > observed else 0.5 * chance
            if step > 0:
                up, down = (ones - k) * (n_1 - k), (k + 1) * (n - n_1 - ones + k + 1)
            else:
                up, down = k * (n - n_1 - ones + k), (ones - k + 1) * (n_1 - k + 1)
            chance *= up / down
            k += step
        if k > highest or k < lowest:
            break  # both ends have been reached: every table has as much
    return min(total, 1.0)


@inner
def _permuted_p_value(cells, arity, n_used, target, n):
    """Tail of a gamma law with the mean and variance of X² given the margins.

    Lewis, Saunders and Westcott (1984) give both for tables of any size.
    """
    n_classes, x_square, spread, spread_1 = target.counts.size, 0.0, 0.0, 0.0
    for c in range(n_classes):
        spread_1 += n / target.counts[c]
    for p in range(arity):
        size = 0
        for c in range(n_classes):
            size += cells[p * n_classes + c]
        if size:
            spread += n / size
            for c in range(n_classes):
                expected = size * target.counts[c] / n
                x_square += (cells[p * n_classes + c] - expected) ** 2 / expected
    if n < 4:
        return 1.0
    mean = n / (n - 1.0) * (n_used - 1) * (n_classes - 1)
    v = (n_used - 1) * (n - n_used) / (n - 1.0)
    v_1 = (n_classes - 1) * (n - n_classes) / (n - 1.0)
    w = (spread - n_used * n_used) / (n - 2.0)
    w_1 = (spread_1 - n_classes * n_classes) / (n - 2.0)
    variance = 2.0 * n / (n - 3.0) * (v - w) * (v_1 - w_1) + n * n / (n - 1.0) * w * w_1
    if variance <= 1e-9 * mean:
        return 1.0  # X² is the same for every order of the rows
    shape = mean * mean / variance
    return gamma_tail(shape, x_square * mean / variance)
