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

from featstream.jit import inner, jit, lean

__all__ = [
    "LANES",
    "DenseMoments",
    "MomentScratch",
    "SparseMoments",
    "correlate_dense",
    "correlate_sparse",
    "deviate_sparse",
    "fold",
    "moment_scratch",
    "write_unit",
    "write_units",
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


def moment_scratch(n_rows: int, is_sparse: bool) -> MomentScratch:
    """Fresh working memory for columns of ``n_rows`` values."""
    return MomentScratch(np.zeros(LANES), np.zeros(n_rows if is_sparse else 0))


@inner
def fold(lanes):
    """Add the lanes pairwise, in place and in a fixed order."""
    half = LANES // 2
    while half >= 1:
        for k in range(half):
            lanes[k] += lanes[k + half]
        half //= 2
    return lanes[0]


@inner
def _dot(a, pivot_a, b, pivot_b, lanes):
    """Sum of products of deviations in the fixed order."""
    n = a.size
    lanes[:] = 0.0
    pairs = n - n % (2 * LANES)
    for start in range(0, pairs, 2 * LANES):
        left, right = a[start : start + 2 * LANES], b[start : start + 2 * LANES]
        for k in range(LANES):
            first = np.float64(left[k]) - pivot_a
            first *= np.float64(right[k]) - pivot_b
            second = np.float64(left[LANES + k]) - pivot_a
            second *= np.float64(right[LANES + k]) - pivot_b
            lanes[k] = lanes[k] + first + second
    whole = n - n % LANES
    for start in range(pairs, whole, LANES):
        for k in range(LANES):
            deviation = np.float64(a[start + k]) - pivot_a
            lanes[k] += deviation * (np.float64(b[start + k]) - pivot_b)
    for k in range(n - whole):
        deviation = np.float64(a[whole + k]) - pivot_a
        lanes[k] += deviation * (np.float64(b[whole + k]) - pivot_b)
    return fold(lanes)


@inner
def write_unit(column, pivot, total, norm, out):
    """Write a column centred, of length one, in single precision."""
    n = column.size
    mean = pivot + total / n
    scale = np.sqrt(np.float64(n)) / norm
    for r in range(n):
        out[r] = (np.float64(column[r]) - mean) * scale


@lean
def write_units(columns, which, unit):
    """Write the chosen columns in that form."""
    for k in range(which.size):
        i = which[k]
        write_unit(
            columns.values[i],
            columns.pivot[i],
            columns.total[i],
            columns.norm[i],
            unit[k],
        )


@jit
def deviate_sparse(indptr, rows, values, which, pivots, offset, out_rows, out_values):
    """Write the stored deviations of the chosen columns, and their rows."""
    for k in range(which.size):
        j = which[k]
        start = indptr[j]
        for e in range(indptr[j + 1] - start):
            out_rows[offset[k] + e] = rows[start + e]
            out_values[offset[k] + e] = np.float64(values[start + e]) - pivots[j]


@inner
def correlate_dense(a, i, b, j, scratch):
    """Absolute correlation of two dense columns."""
    left, right = a.values[i], b.values[j]
    product = _dot(left, a.pivot[i], right, b.pivot[j], scratch.lanes)
    return abs(left.size * product - a.total[i] * b.total[j]) / (a.norm[i] * b.norm[j])


@inner
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
