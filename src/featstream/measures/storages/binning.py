"""Cut points of continuous columns, from their distinct values in order.

A value belongs to bin ``b`` if exactly ``b`` cut points lie below it; so a cut point
is the largest value of its bin.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from featstream.jit import inner
from featstream.protocols import BoolArray, FloatArray, IntArray

QUANTILE, UNIFORM, MDL = 0, 1, 2


class Binning(NamedTuple):
    """How columns become categories: whole numbers as they are, others in bins.

    Whole numbers of more than ``most_listed`` distinct values are binned as well.
    ``unit`` is the value of 1 in ``nlogn``, in bits.
    """

    method: int
    n_bins: int
    most_listed: int
    nlogn: IntArray
    unit: float


class Summary(NamedTuple):
    """The range of every column, and what kinds of values it has.

    Nominal columns are codes of categories. A sparse column ``is_plain`` if all
    values that it stores are the same whole number, not zero.
    """

    low: FloatArray
    high: FloatArray
    is_whole: BoolArray
    is_missing: BoolArray
    is_infinite: BoolArray
    is_plain: BoolArray
    is_nominal: BoolArray


@inner(allocates=True)
def most_listed(summary, j, binning):
    """Number of distinct values up to which column ``j`` is not binned."""
    if binning.method < 0 or (summary.is_whole[j] and summary.is_nominal[j]):
        return np.int64(2**62)
    return binning.most_listed if summary.is_whole[j] else 0


@inner(allocates=True)
def _distinct_values(stored, classes, n_zeros, zero_classes):
    """Distinct values in order, and the table of (value, class).

    ``classes`` are those of the stored rows. The other ``n_zeros`` rows are zero, and
    ``zero_classes`` counts their classes.
    """
    order = np.argsort(stored)
    values = np.empty(stored.size + 1)
    table = np.zeros((stored.size + 1, zero_classes.size), np.int64)
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


@inner(allocates=True)
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


@inner(allocates=True)
def _cut_uniformly(values, n_bins):
    low, high = values[0], values[-1]
    cuts = np.empty(n_bins - 1)
    for q in range(1, n_bins):
        cuts[q - 1] = low + (high - low) * (q / n_bins)
    return cuts


@inner(allocates=True)
def _best_cut(table, begin, end, totals, nlogn):
    """Where to cut rows ``begin:end`` of the table for the least class entropy.

    Entropies are sums of exact integers, so equal cuts are equal and the first
    of them wins.
    """
    left, n_left, n = np.zeros(totals.size, np.int64), 0, totals.sum()
    best, best_cost = -1, np.int64(0)
    for v in range(begin, end - 1):
        cost = np.int64(0)
        for c in range(totals.size):
            left[c] += table[v, c]
            n_left += table[v, c]
            cost -= nlogn[left[c]] + nlogn[totals[c] - left[c]]
        cost += nlogn[n_left] + nlogn[n - n_left]
        if best < 0 or cost < best_cost:
            best, best_cost = v, cost
    return best


@inner(allocates=True)
def _class_entropy(counts, binning):
    n = counts.sum()
    total = binning.nlogn[n]
    for c in range(counts.size):
        total -= binning.nlogn[counts[c]]
    return total * binning.unit / n


@inner(allocates=True)
def _cut_by_description_length(values, table, binning):
    """Fayyad and Irani (1993): cut where the class is described in fewer bits."""
    n_values = values.size
    is_cut = np.zeros(n_values, np.bool_)
    pending = [(0, n_values)]
    while len(pending) > 0:
        begin, end = pending.pop()
        totals = table[begin:end].sum(axis=0)
        if end - begin < 2 or np.count_nonzero(totals) < 2:
            continue
        cut = _best_cut(table, begin, end, totals, binning.nlogn)
        left = table[begin : cut + 1].sum(axis=0)
        right = totals - left
        n, k = totals.sum(), np.count_nonzero(totals)
        whole = _class_entropy(totals, binning)
        part_left = _class_entropy(left, binning)
        part_right = _class_entropy(right, binning)
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


@inner(allocates=True)
def cut_points(values, classes, n_zeros, zero_classes, binning, n_listed):
    """Cut points of a column: of its bins, or all distinct values but the last.

    The latter if there are at most ``n_listed``. A column of no more distinct values
    than bins keeps them too, unless the class decides. Missing values are left out.
    """
    is_there = ~np.isnan(values)
    distinct, table = _distinct_values(
        values[is_there], classes[is_there], n_zeros, zero_classes
    )
    if distinct.size <= n_listed:
        return distinct[:-1]
    if binning.method == MDL:
        return _cut_by_description_length(distinct, table, binning)
    if distinct.size <= binning.n_bins:
        return distinct[:-1]
    if binning.method == UNIFORM:
        return _cut_uniformly(distinct, binning.n_bins)
    return _cut_quantiles(distinct, table.sum(axis=1), binning.n_bins)


@inner(allocates=True)
def find_bin(cuts, value):
    """The bin of a value; a missing one is in another, after the last."""
    return cuts.size + 1 if np.isnan(value) else np.searchsorted(cuts, value)
