"""Cut points of continuous columns, from their distinct values in order.

A column is given by its distinct values, how often each occurs, and how often
in each class. Dense and sparse columns reach that form by different ways and
are cut alike from there on. A value belongs to bin ``b`` if exactly ``b`` cut
points lie below it; so a cut point is the largest value of its bin.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from featstream.jit import by_reference, inner_jit, jit
from featstream.protocols import BoolArray, FloatArray

QUANTILE, UNIFORM, MDL = 0, 1, 2


@by_reference
class Summary(NamedTuple):
    """Range of every column, whether it is whole numbers, and what it lacks.

    A sparse column ``is_plain`` if it stores a single value, not zero, only.
    """

    low: FloatArray
    high: FloatArray
    is_whole: BoolArray
    is_missing: BoolArray
    is_infinite: BoolArray
    is_plain: BoolArray


@jit
def distinct_values(stored, classes, n_zeros, zero_classes, n_classes):
    """Distinct values in order, and the table of (value, class).

    ``stored`` and ``classes`` are parallel; ``n_zeros`` rows more are zero, and
    ``zero_classes`` counts their classes.
    """
    order = np.argsort(stored)
    values = np.empty(stored.size + 1)
    table = np.zeros((stored.size + 1, n_classes), np.int64)
    last = -1
    is_zero_due = n_zeros > 0
    for e in range(stored.size):
        value = stored[order[e]]
        if is_zero_due and value >= 0.0:
            last += 1
            values[last], table[last] = 0.0, zero_classes
            is_zero_due = False
        if last < 0 or values[last] != value:
            last += 1
            values[last] = value
        table[last, classes[order[e]]] += 1
    if is_zero_due:
        last += 1
        values[last], table[last] = 0.0, zero_classes
    return values[: last + 1], table[: last + 1]


@inner_jit
def _cut_quantiles(values, counts, n_bins):
    n = counts.sum()
    cuts = np.empty(n_bins)
    n_cuts, below, q = 0, 0, 1
    for v in range(values.size - 1):
        below += counts[v]
        if below * n_bins >= q * n:
            cuts[n_cuts] = values[v]
            n_cuts += 1
            while below * n_bins >= q * n:
                q += 1
    return cuts[:n_cuts]


@inner_jit
def _cut_uniformly(values, n_bins):
    low, high = values[0], values[-1]
    cuts = np.empty(n_bins - 1)
    for q in range(1, n_bins):
        cuts[q - 1] = low + (high - low) * (q / n_bins)
    return cuts


@inner_jit
def _best_cut(table, begin, end, totals, nlogn):
    """Where to cut rows ``begin:end`` of the table for the least class entropy.

    Entropies are sums of exact integers, so equal cuts are equal and the first
    of them wins.
    """
    n_classes = totals.size
    left = np.zeros(n_classes, np.int64)
    right = totals.copy()
    best, best_cost = -1, np.int64(0)
    n_left, n_right = 0, totals.sum()
    for v in range(begin, end - 1):
        for c in range(n_classes):
            left[c] += table[v, c]
            right[c] -= table[v, c]
            n_left += table[v, c]
            n_right -= table[v, c]
        cost = nlogn[n_left] + nlogn[n_right]
        for c in range(n_classes):
            cost -= nlogn[left[c]] + nlogn[right[c]]
        if best < 0 or cost < best_cost:
            best, best_cost = v, cost
    return best


@inner_jit
def _class_entropy(counts, nlogn, unit):
    n = counts.sum()
    total = nlogn[n]
    for c in range(counts.size):
        total -= nlogn[counts[c]]
    return total * unit / n


@inner_jit
def _cut_by_description_length(values, table, nlogn, unit):
    """Fayyad and Irani (1993): cut where the class is described in fewer bits."""
    n_values = values.size
    is_cut = np.zeros(n_values, np.bool_)
    pending = [(0, n_values)]
    while len(pending) > 0:
        begin, end = pending.pop()
        totals = table[begin:end].sum(axis=0)
        if end - begin < 2 or np.count_nonzero(totals) < 2:
            continue
        cut = _best_cut(table, begin, end, totals, nlogn)
        left = table[begin : cut + 1].sum(axis=0)
        right = totals - left
        n, k = totals.sum(), np.count_nonzero(totals)
        whole = _class_entropy(totals, nlogn, unit)
        part_left = _class_entropy(left, nlogn, unit)
        part_right = _class_entropy(right, nlogn, unit)
        gain = whole - (left.sum() * part_left + right.sum() * part_right) / n
        k_left, k_right = np.count_nonzero(left), np.count_nonzero(right)
        spent = k * whole - k_left * part_left - k_right * part_right
        # log2(3**k - 2), which overflows for many classes and is k log2(3) there.
        choices = np.log2(3.0**k - 2.0) if k < 40 else k * np.log2(3.0)
        price = np.log2(n - 1.0) + choices - spent
        if gain * n > price:
            is_cut[cut] = True
            pending.append((begin, cut + 1))
            pending.append((cut + 1, end))
    return values[is_cut]


@jit
def cut_column(values, table, method, n_bins, nlogn, unit):
    """Cut points by the chosen method; ``unit`` is the value of 1 in ``nlogn``.

    A column of no more distinct values than bins keeps its values as they are,
    unless the class decides.
    """
    if method == MDL:
        return _cut_by_description_length(values, table, nlogn, unit)
    if values.size <= n_bins:
        return values[: max(values.size - 1, 0)]
    if method == UNIFORM:
        return _cut_uniformly(values, n_bins)
    return _cut_quantiles(values, table.sum(axis=1), n_bins)


@inner_jit
def cut_or_list(values, classes, n_zeros, zero_classes, binning, is_whole):
    """Cut points of a column: bins if it is continuous, else every value but one.

    Missing values are passed over.
    """
    is_there = ~np.isnan(values)
    distinct, table = distinct_values(
        values[is_there], classes[is_there], n_zeros, zero_classes, zero_classes.size
    )
    method, n_bins, nlogn, unit = binning
    if is_whole or method < 0:
        return distinct[:-1]
    return cut_column(distinct, table, method, n_bins, nlogn, unit)


@inner_jit
def find_bin(cuts, value):
    """The bin of a value; a missing one is in another, after the last."""
    return cuts.size + 1 if np.isnan(value) else np.searchsorted(cuts, value)
