"""Sums of deviations of continuous columns: their scores, and tests on them.

Each column is shifted by one of its own values (``pivot``). That needs no extra pass,
leaves integers integers, makes a constant column exactly zero and avoids cancellation.
Correlations are made of ``n·Σab − Σa·Σb``, which does not depend on the shift. For
integers (counts, 0/1) such sums are exact below 2**53, whatever the order of rows and
the storage.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from featstream.jit import inner, kernel
from featstream.measures.storages.dispatch import EARLIER
from featstream.measures.storages.row_index import sort_short
from featstream.protocols import SavedField

_TINY = 1e-280
_COPY = 1e-10
"""Rounding leaves at most this share of the variance of a copy of another column."""


class WeightedTarget(NamedTuple):
    """The target as weights of the samples: a row for each of several classes, or one.

    ``totals`` are the sums of the weights. A single row has ``norm``, the root of
    ``n·Σw² − (Σw)²``.
    """

    weights: np.ndarray
    totals: np.ndarray
    norm: float


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
    """The middle one: a typical value of a column, even with an unusual first row."""
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

    ``eta² = Σ_c (n·S_c − n_c·S)² / (n_c · n · (n·Q − S²))``, added from the smallest
    term up, so that the order of the classes does not matter.
    """
    n, n_classes = target.weights.shape[1], target.totals.size
    for c in range(n_classes):
        gap = n * sums.product[j, c] - target.totals[c] * sums.total[j]
        terms[c] = gap * gap / target.totals[c]
    sort_short(terms, n_classes)
    between = 0.0
    for c in range(n_classes):
        between += terms[c]
    whole = n * sums.squared_norm[j]
    if np.isinf(between) or np.isinf(whole):
        return np.nan
    return min(1.0, np.sqrt(between / whole))


@kernel(allocates=True)
def score_columns(target, sums, scores):
    """Score columns by their sums; return the first that cannot be scored, or -1.

    It is compiled once, for dense and sparse columns of any dtype.
    """
    terms = np.empty(target.totals.size)
    for j in range(scores.size):
        scores[j] = _score_column(target, sums, j, terms)
        if np.isnan(scores[j]):
            return j
    return -1


@inner
def _score_column(target, sums, j, terms):
    """Centre the squares of a column, and score it.

    The score is NaN if the squares are NaN, overflow, or vanish although the column
    varies.
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
    if target.totals.size > 1:
        return _eta(target, sums, j, terms)
    return _correlate(target, sums, j)


def empty_sums(n_targets: int, n_columns: int) -> MomentSums:
    """Room for the sums of some columns."""
    m = n_columns
    return MomentSums(np.empty(m), np.empty(m), np.empty(m), np.empty((m, n_targets)))


@inner
def _excess(r, own, given, cross, critical):
    """Above zero if the class explains a significant part of a column, given another.

    With the correlation ``r`` of the two columns, their squared relevances ``own`` and
    ``given`` and the product ``cross`` of their correlations with the class, the class
    explains ``own - r² + (r - cross)² / (1 - given)`` of the ``1 - r²`` that the other
    column leaves.
    """
    return own - critical - (1.0 - critical) * r * r + (r - cross) ** 2 / (1.0 - given)


@inner
def adds_surely(near, slack, own, given, cross, critical):
    """Whether that is so for every correlation within ``slack`` of ``near``."""
    if not slack < 1.0 or given > 1.0 - 1e-6:
        return False
    steepness = 1.0 / (1.0 - given) - (1.0 - critical)
    lowest = cross / ((1.0 - given) * steepness)
    lowest = min(max(lowest, near - slack), near + slack)
    return _excess(lowest, own, given, cross, critical) > 1e-9


@inner
def judge_correlation(r, own, given, cross, rule):
    """Whether that is not so, and the share that the class explains."""
    critical = rule.critical[0]
    if given > 1.0 - _COPY or r * r > 1.0 - _COPY:
        return True, 0.0
    if _excess(r, own, given, cross, critical) > 0.0:
        return False, np.nan
    explained = own - r * r + (r - cross) ** 2 / (1.0 - given)
    return True, max(explained, 0.0) / (1.0 - r * r)


@inner
def dot_spans(a, i, b, j):
    """Product of the correlations of two columns with the class."""
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
