"""Continuous columns: sums of deviations, and correlations from them.

Each column is shifted by one of its own values (`pivot`), which costs no extra
pass, leaves integers integers, makes a constant column exactly zero and keeps
cancellation away. Correlations are then built from ``n·Σab − Σa·Σb``, which
does not depend on the shift: for integer-valued data (counts, expression
levels, 0/1) every such number is exact below 2**53, so the order of rows and
the storage cannot change a bit.

Sums run in `LANES` interleaved lanes that are added in a fixed order. That
vectorises without reassociation, so blocks, threads and machines agree.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from featstream.kernels._jit import jit, lean

__all__ = [
    "LANES",
    "DenseMoments",
    "MomentScratch",
    "SparseMoments",
    "correlate_dense",
    "correlate_sparse",
    "deviate_sparse",
    "eta",
    "moment_scratch",
    "standardise",
    "standardise_row",
    "sum_dense",
    "sum_sparse",
]

LANES = 64


class DenseMoments(NamedTuple):
    """Continuous columns, one row a column, as they are or as deviations.

    The deviations of column ``i`` are ``values[i] - pivot[i]``. Kept columns
    also have ``unit``, the same centred, of length one, and in single precision:
    the product of two is near their correlation, at a fraction of the cost.
    """

    total: np.ndarray
    norm: np.ndarray
    pivot: np.ndarray
    values: np.ndarray
    unit: np.ndarray


class SparseMoments(NamedTuple):
    """Continuous columns by their stored rows.

    Column ``i`` has the deviations ``values`` at its ``rows``, from
    ``offset[i]`` on, and the deviation ``base[i]`` in every other row.
    """

    total: np.ndarray
    norm: np.ndarray
    base: np.ndarray
    offset: np.ndarray
    length: np.ndarray
    rows: np.ndarray
    values: np.ndarray
    n_rows: int


class MomentScratch(NamedTuple):
    """Working memory of the continuous pair kernels.

    ``spread`` holds the newcomer's deviations less its base, by row; it is all
    zero between newcomers.
    """

    lanes: np.ndarray
    spread: np.ndarray


def moment_scratch(n_rows: int, *, is_sparse: bool) -> MomentScratch:
    """Fresh working memory for columns of ``n_rows`` values."""
    return MomentScratch(np.zeros(LANES), np.zeros(n_rows if is_sparse else 0))


@lean
def _fold(lanes):
    """Add the lanes pairwise, in place and in a fixed order."""
    half = LANES // 2
    while half >= 1:
        for k in range(half):
            lanes[k] += lanes[k + half]
        half //= 2
    return lanes[0]


@lean
def _dot(a, pivot_a, b, pivot_b, lanes):
    """Sum of products of deviations in the fixed order."""
    n = a.size
    lanes[:] = 0.0
    whole = n - n % LANES
    for start in range(0, whole, LANES):
        left, right = a[start : start + LANES], b[start : start + LANES]
        for k in range(LANES):
            deviation = np.float64(left[k]) - pivot_a
            lanes[k] += deviation * (np.float64(right[k]) - pivot_b)
    for k in range(n - whole):
        deviation = np.float64(a[whole + k]) - pivot_a
        lanes[k] += deviation * (np.float64(b[whole + k]) - pivot_b)
    return _fold(lanes)


@lean
def median_of_three(a, b, c):
    """The middle one: a typical value of a column, even with an odd first row."""
    return max(min(a, b), min(max(a, b), c))


@jit
def sum_dense(block, weights, pivots, totals, squares, products):
    """Sums of deviations of every column of a column-major block.

    ``weights`` has one row a target (an indicator of a class, or numbers);
    ``products[t]`` becomes the sum of deviation times weight. A NaN or an
    infinity in a column makes its ``squares`` NaN or infinite.
    """
    n, m = block.shape
    whole = n - n % LANES
    sums, powers, cross = np.empty(LANES), np.empty(LANES), np.empty(LANES)
    for j in range(m):
        column = block[:, j]
        pivot = np.float64(median_of_three(column[0], column[n // 2], column[n - 1]))
        pivots[j] = pivot
        for t in range(weights.shape[0]):
            weight = weights[t]
            sums[:] = 0.0
            powers[:] = 0.0
            cross[:] = 0.0
            for start in range(0, whole, LANES):
                piece = column[start : start + LANES]
                weights_here = weight[start : start + LANES]
                for k in range(LANES):
                    deviation = np.float64(piece[k]) - pivot
                    sums[k] += deviation
                    powers[k] += deviation * deviation
                    cross[k] += deviation * weights_here[k]
            for k in range(n - whole):
                deviation = np.float64(column[whole + k]) - pivot
                sums[k] += deviation
                powers[k] += deviation * deviation
                cross[k] += deviation * weight[whole + k]
            products[t, j] = _fold(cross)
        totals[j] = _fold(sums)
        squares[j] = _fold(powers)


@lean
def standardise_row(columns, i, out):
    """Write a dense column centred, of length one, in single precision."""
    row = columns.values[i]
    n = row.size
    mean = columns.pivot[i] + columns.total[i] / n
    scale = np.sqrt(np.float64(n)) / columns.norm[i]
    for r in range(n):
        out[r] = (np.float64(row[r]) - mean) * scale


@lean
def standardise(columns, which, unit):
    """Write the chosen columns in that form."""
    for k in range(which.size):
        standardise_row(columns, which[k], unit[k])


@jit
def _stored_at(rows, values, start, stop, row):
    """Value of a sparse column in a row."""
    position = start + np.searchsorted(rows[start:stop], row)
    if position < stop and rows[position] == row:
        return np.float64(values[position])
    return 0.0


@jit
def sum_sparse(
    indptr, rows, values, n, weights, weight_totals, pivots, totals, squares, products
):
    """Sums of deviations of sparse columns, in time of their stored entries."""
    for j in range(indptr.size - 1):
        start, stop = indptr[j], indptr[j + 1]
        pivot = median_of_three(
            _stored_at(rows, values, start, stop, 0),
            _stored_at(rows, values, start, stop, n // 2),
            _stored_at(rows, values, start, stop, n - 1),
        )
        n_rest = n - (stop - start)
        total, square = -pivot * n_rest, pivot * pivot * n_rest
        for e in range(start, stop):
            deviation = np.float64(values[e]) - pivot
            total += deviation
            square += deviation * deviation
        pivots[j], totals[j], squares[j] = pivot, total, square
        for t in range(weights.shape[0]):
            stored_weight, product = 0.0, 0.0
            for e in range(start, stop):
                weight = weights[t, rows[e]]
                stored_weight += weight
                product += (np.float64(values[e]) - pivot) * weight
            if pivot != 0.0:
                product -= pivot * (weight_totals[t] - stored_weight)
            products[t, j] = product


@jit
def deviate_sparse(indptr, rows, values, which, pivots, offset, out_rows, out_values):
    """Write the stored deviations of the chosen columns, and their rows."""
    for k in range(which.size):
        j = which[k]
        start = indptr[j]
        for e in range(indptr[j + 1] - start):
            out_rows[offset[k] + e] = rows[start + e]
            out_values[offset[k] + e] = np.float64(values[start + e]) - pivots[j]


@lean
def correlate_dense(a, i, b, j, scratch):
    """Absolute correlation of two dense columns."""
    left, right = a.values[i], b.values[j]
    product = _dot(left, a.pivot[i], right, b.pivot[j], scratch.lanes)
    return abs(left.size * product - a.total[i] * b.total[j]) / (a.norm[i] * b.norm[j])


@lean
def correlate_sparse(a, i, b, j, scratch):
    """Absolute correlation of two sparse columns, in time of those stored in ``b``.

    ``scratch.spread`` holds column ``i`` of ``a`` less its base.
    """
    product, stored, base = 0.0, 0.0, a.base[i]
    for e in range(b.offset[j], b.offset[j] + b.length[j]):
        deviation = scratch.spread[b.rows[e]] + base
        product += b.values[e] * deviation
        stored += deviation
    if b.base[j] != 0.0:
        product += b.base[j] * (a.total[i] - stored)
    return abs(b.n_rows * product - a.total[i] * b.total[j]) / (a.norm[i] * b.norm[j])


@jit
def eta(products, totals, squared_norms, class_counts, n, scores):
    """Correlation ratio of every column with the class.

    ``eta² = Σ_c (n·S_c − n_c·S)² / (n_c · n · (n·Q − S²))``. The terms are added
    from the smallest up, so that the labels of the classes do not matter.
    """
    n_classes = class_counts.size
    terms = np.empty(n_classes)
    for j in range(totals.size):
        if not squared_norms[j] > 0.0:
            scores[j] = 0.0
            continue
        for c in range(n_classes):
            gap = n * products[c, j] - class_counts[c] * totals[j]
            terms[c] = gap * gap / class_counts[c]
        terms.sort()
        between = 0.0
        for c in range(n_classes):
            between += terms[c]
        scores[j] = min(1.0, np.sqrt(between / (n * squared_norms[j])))
