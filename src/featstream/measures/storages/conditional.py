"""Whether a column tells more of the class than another one does: the arithmetic.

Of discrete columns, twice the information on the class within the categories of the
other column (G²) follows the chi-square law if there is none. Its degrees of freedom
count the categories that occur: a category in which the column or the class is
constant counts for nothing. Of continuous columns the share of variance that the
class explains beyond the other column is tested.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import special

from featstream.jit import inner
from featstream.measures.storages.dispatch import EARLIER
from featstream.protocols import FloatArray, SavedField

SAMPLES_PER_CELL = 5
MOST_CELLS = 1 << 12
_ENOUGH = 2.0 * math.log(2.0) * (1.0 + 1e-9)
"""Nats in two bits, and a little more."""

_COPY = 1e-10
"""What of a column's variance is left in a copy of another, by rounding."""


def critical_information(alpha: float, n_samples: int, bit: int) -> FloatArray:
    """Information that is significant at a level, by degrees of freedom.

    ``bit`` is what one bit of one sample counts.
    """
    df = np.arange(min(n_samples // SAMPLES_PER_CELL, MOST_CELLS) + 2)
    critical: FloatArray = special.chdtri(df, alpha) * bit / (2 * math.log(2))
    critical[0] = np.inf  # nothing varies: nothing can be told
    return critical


@inner
def is_thin(n_cells, n_samples):
    """Whether a table has too many cells for the law of G² to hold."""
    return n_cells * SAMPLES_PER_CELL > n_samples or n_cells > MOST_CELLS


@inner
def gamma_tail(shape, x):
    """Probability that a gamma variable of that shape, and scale 1, exceeds ``x``.

    By the series for the other side, or by a continued fraction (Lentz).
    """
    if x <= 0.0:
        return 1.0
    front = math.exp(shape * math.log(x) - x - math.lgamma(shape))
    if x < shape + 1.0:
        term = total = 1.0 / shape
        k = shape
        while term > 1e-16 * total:
            k += 1.0
            term *= x / k
            total += term
        return max(0.0, 1.0 - front * total)
    b = x + 1.0 - shape
    c, d = 1e300, 1.0 / b
    fraction, k, change = d, 0.0, 0.0
    while abs(change - 1.0) > 1e-15 and k < 10000.0:
        k += 1.0
        b += 2.0
        a = -k * (k - shape)
        d = 1.0 / (a * d + b)
        c = b + a / c
        change = c * d
        fraction *= change
    return min(1.0, front * fraction)


@inner
def judge_information(information, df, rule, nlogn):
    """Whether information is no more than chance gives, and its p-value."""
    if information > rule.critical[df]:
        return False, np.nan
    if df == 0:
        return True, 1.0
    g_square = 4.0 * math.log(2.0) * information / nlogn[2]
    return True, gamma_tail(df / 2.0, g_square / 2.0)


@inner
def _in_stratum(nlogn, size, class_size, ones, ones_in_class):
    """Information on one of two classes in a binary column; 1 if both vary, else 0."""
    if ones <= 0 or ones >= size or class_size <= 0 or class_size >= size:
        return 0, 0
    others = class_size - ones_in_class
    information = (
        nlogn[ones_in_class]
        + nlogn[ones - ones_in_class]
        + nlogn[others]
        + nlogn[size - ones - others]
        - nlogn[ones]
        - nlogn[size - ones]
        - nlogn[class_size]
        - nlogn[size - class_size]
        + nlogn[size]
    )
    return information, 1


@inner
def _at_least(size, class_size, ones, ones_in_class):
    """What that information, in nats, is at least (Pinsker); only saves time."""
    if ones <= 0 or size <= 0:
        return 0.0
    gap = ones_in_class / ones - class_size / size
    return 2.0 * ones * gap * gap


@inner
def judge_binary(nlogn, loser, loser_1, winner, winner_1, common, common_1, rule):
    """The test for two binary columns and two classes, from their counts.

    ``loser`` and ``winner`` are the rows set in each, ``common`` those set in both;
    ``_1`` marks those of class 1.
    """
    n, n_1 = nlogn.size - 1, rule.target.counts[1]
    at_least = _at_least(winner, winner_1, common, common_1)
    rest, rest_1 = loser - common, loser_1 - common_1
    at_least += _at_least(n - winner, n_1 - winner_1, rest, rest_1)
    if at_least * nlogn[2] > _ENOUGH * rule.critical[2]:
        return False, np.nan
    inside, df = _in_stratum(nlogn, winner, winner_1, common, common_1)
    outside, df_outside = _in_stratum(nlogn, n - winner, n_1 - winner_1, rest, rest_1)
    return judge_information(inside + outside, df + df_outside, rule, nlogn)


@inner
def judge_table(cells, n_new, n_kept, winner, rule, nlogn):
    """The same for any columns and classes, from the table of (new, kept, class)."""
    n_classes = rule.target.counts.size
    n_loser, loser_step, n_winner, winner_step = n_new, n_kept, n_kept, 1
    if winner != EARLIER:
        n_loser, loser_step, n_winner, winner_step = n_kept, 1, n_new, n_kept
    information, df = 0, 0
    for w in range(n_winner):
        total, n_used, n_used_classes = 0, 0, 0
        for v in range(n_loser):
            cell = (w * winner_step + v * loser_step) * n_classes
            size = 0
            for c in range(n_classes):
                information += nlogn[cells[cell + c]]
                size += cells[cell + c]
            information -= nlogn[size]
            total += size
            n_used += size > 0
        for c in range(n_classes):
            size = 0
            for v in range(n_loser):
                size += cells[(w * winner_step + v * loser_step) * n_classes + c]
            information -= nlogn[size]
            n_used_classes += size > 0
        information += nlogn[total]
        if total > 0:
            df += (n_used - 1) * (n_used_classes - 1)
    return judge_information(information, df, rule, nlogn)


@inner
def _excess(r, own, given, cross, critical):
    """How far what the class explains of a column, given another, is too much.

    Below zero it is not significant. With the correlation ``r`` of the two columns,
    their squared relevances ``own`` and ``given`` and the product ``cross`` of their
    correlations with the class, the class explains ``own - r² + (r - cross)² / (1 -
    given)`` of the ``1 - r²`` that the other column leaves.
    """
    return own - critical - (1.0 - critical) * r * r + (r - cross) ** 2 / (1.0 - given)


@inner
def adds_surely(near, slack, own, given, cross, critical):
    """Whether the class explains enough for every correlation that is possible."""
    if not slack < 1.0 or given > 1.0 - 1e-6:
        return False
    steepness = 1.0 / (1.0 - given) - (1.0 - critical)
    lowest = cross / ((1.0 - given) * steepness)
    lowest = min(max(lowest, near - slack), near + slack)
    return _excess(lowest, own, given, cross, critical) > 1e-9


@inner
def judge_correlation(r, own, given, cross, rule):
    """Whether what the class explains is not significant, and its share."""
    critical = rule.critical[0]
    if given > 1.0 - _COPY or r * r > 1.0 - _COPY:
        return True, 0.0
    if _excess(r, own, given, cross, critical) > 0.0:
        return False, np.nan
    explained = own - r * r + (r - cross) ** 2 / (1.0 - given)
    return True, max(explained, 0.0) / (1.0 - r * r)


@inner
def dot_spans(a, i, b, j):
    """Product of the correlations of two columns with what spans the class."""
    total = 0.0
    for k in range(a.shape[1]):
        total += a[i, k] * b[j, k]
    return total


@inner
def squared_relevances(new, i, columns, slot, winner):
    """Squared relevance of the loser, and of the winner."""
    new_one = dot_spans(new.span, i, new.span, i)
    kept_one = dot_spans(columns.span, slot, columns.span, slot)
    return (new_one, kept_one) if winner == EARLIER else (kept_one, new_one)


SPAN = SavedField(np.float64, ("kept", None), -1.0 - 1e-6, 2, is_optional=True)


def restore_span(arrays: dict[str, Any], measure: Any) -> dict[str, Any]:
    """Arrays of continuous columns, with the span that their measure needs."""
    n_kept, width = arrays["norm"].size, measure.n_spanning if measure.is_split else 0
    span = arrays.get("span", np.empty((n_kept, 0)))
    if span.shape[1] != width:
        raise ValueError("their correlations with the class do not fit the class")
    return arrays | {"span": span}
