"""Discrete columns: contingency counts and the information in them.

Counts are integers, and ``k log2 k`` comes from one table of integers in fixed
point, so every entropy is an exact sum: the order of rows, the labels of
categories and the way a column is stored cannot change a bit of it.

Two storages: `DenseTables` (bit planes for few-valued columns, codes for the
others) and `SparseTables` (the rows that differ from the background value).
Each carries what a pair needs and a row count cannot give: ``own``, the sum of
``k log2 k`` over its categories, and ``norm``, the denominator of its score.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from featstream.jit import inner, lean
from featstream.kernels.bits import count_common, unpack

__all__ = [
    "MAX_PLANES",
    "DenseTables",
    "SparseTables",
    "TableScratch",
    "fixed_point_nlogn",
    "joint_of_codes",
    "joint_of_counts",
    "joint_of_dense",
    "joint_of_sparse",
    "ratio",
    "spell",
    "sum_nlogn",
    "table_scratch",
]

MAX_PLANES = 15
"""Columns of at most ``MAX_PLANES + 1`` categories are stored as bit planes."""

MAX_CELLS = 1 << 20
"""Tables of more cells than this are counted by their keys instead."""


class DenseTables(NamedTuple):
    """Discrete columns with a code for every row.

    Column ``i`` has ``arity[i]`` categories. If that is at most
    ``MAX_PLANES + 1`` its categories 1, 2, … are the planes from
    ``first_plane[i]`` on; otherwise its codes are row ``code_row[i]`` of ``codes``.
    """

    nlogn: np.ndarray
    arity: np.ndarray
    own: np.ndarray
    norm: np.ndarray
    first_plane: np.ndarray
    planes: np.ndarray
    plane_count: np.ndarray
    code_row: np.ndarray
    codes: np.ndarray


class SparseTables(NamedTuple):
    """Discrete columns by the rows that are not in the background category 0.

    Column ``i`` has ``length[i]`` such rows, from ``offset[i]`` on in ``rows``
    and ``codes``; ``count_offset[i]`` is where the sizes of its categories
    1, 2, … begin in ``counts``.
    """

    nlogn: np.ndarray
    arity: np.ndarray
    own: np.ndarray
    norm: np.ndarray
    offset: np.ndarray
    length: np.ndarray
    rows: np.ndarray
    codes: np.ndarray
    count_offset: np.ndarray
    counts: np.ndarray


class TableScratch(NamedTuple):
    """Working memory of the discrete pair kernels.

    Between calls all is zero, but for ``keys``, which are -1, and what is in
    ``left`` and ``right``.
    """

    cells: np.ndarray
    keys: np.ndarray
    mark: np.ndarray
    used_left: np.ndarray
    used_right: np.ndarray
    left: np.ndarray
    right: np.ndarray


def table_scratch(n_rows: int, is_sparse: bool) -> TableScratch:
    """Fresh working memory for columns of ``n_rows`` values."""
    sparse_rows = n_rows if is_sparse else 0
    n_keys = 1 << int(2 * n_rows).bit_length()
    # A column with gaps may have more planes than rows, and one more for missing.
    most_codes = max(n_rows, MAX_PLANES) + 1
    return TableScratch(
        cells=np.zeros(max(n_keys, min(MAX_CELLS, most_codes**2)), np.int64),
        keys=np.full(n_keys, -1, np.int64),
        mark=np.zeros(sparse_rows, np.int32),
        used_left=np.zeros(most_codes, np.int64),
        used_right=np.zeros(most_codes, np.int64),
        left=np.zeros(n_rows, np.int32),
        right=np.zeros(n_rows, np.int32),
    )


def fixed_point_nlogn(n_rows: int) -> np.ndarray:
    """``k log2 k`` for k = 0 … n_rows, as integers in units of ``2**-s``.

    The scale ``s`` is the largest for which ``n log2 n`` stays below ``2**51``:
    every entry is then the nearest integer to a float that is itself exact to
    half a unit, and sums of any length fit 64 bits.
    """
    k = np.arange(n_rows + 1, dtype=np.float64)
    k[0] = 1.0
    table = k * np.log2(k)
    table[0] = 0.0
    largest = max(float(table[-1]), 1.0)
    shift = 51 - int(np.ceil(np.log2(largest)))
    return np.rint(np.ldexp(table, shift)).astype(np.int64)


@lean
def sum_nlogn(nlogn, counts):
    """Sum of ``k log2 k`` over an array of counts."""
    total = 0
    for c in range(counts.size):
        total += nlogn[counts[c]]
    return total


@inner
def joint_of_codes(nlogn, left, right, n_right, n_cells, scratch):
    """Sum of ``k log2 k`` over the cells of the table of two lists of codes.

    A running sum: when a cell grows from k to k + 1 the sum grows by the
    difference, so time is in the rows and never in the cells. A table of too
    many cells is kept by its keys instead.
    """
    total, cells = 0, scratch.cells
    if n_cells <= cells.size:
        for i in range(left.size):
            cell = left[i] * n_right + right[i]
            total += nlogn[cells[cell] + 1] - nlogn[cells[cell]]
            cells[cell] += 1
        for i in range(left.size):
            cells[left[i] * n_right + right[i]] = 0
        return total
    keys, mask = scratch.keys, scratch.keys.size - 1
    for i in range(left.size):
        key = np.int64(left[i]) * n_right + right[i]
        place = (key * 0x9E3779B1) & mask
        while keys[place] >= 0 and keys[place] != key:
            place = (place + 1) & mask
        keys[place] = key
        total += nlogn[cells[place] + 1] - nlogn[cells[place]]
        cells[place] += 1
    keys[:] = -1
    cells[: keys.size] = 0
    return total


@lean
def spell(columns, i, codes):
    """Write the codes of a dense column."""
    row, first = columns.code_row[i], columns.first_plane[i]
    if row < 0:
        unpack(columns.planes[first : first + columns.arity[i] - 1], codes)
        return
    for r in range(codes.size):
        codes[r] = columns.codes[row, r]


@inner
def joint_of_dense(a, i, b, j, scratch):
    """Sum of ``k log2 k`` over the joint table of two dense columns."""
    nlogn = a.nlogn
    n_a, n_b = a.arity[i] - 1, b.arity[j] - 1
    if a.code_row[i] >= 0 or b.code_row[j] >= 0:
        left, right = scratch.left, scratch.right
        spell(a, i, left)
        spell(b, j, right)
        n_cells = np.int64(n_a + 1) * np.int64(n_b + 1)
        return joint_of_codes(nlogn, left, right, n_b + 1, n_cells, scratch)
    first_a, first_b = a.first_plane[i], b.first_plane[j]
    total, both_zero = 0, nlogn.size - 1
    if n_a == 1 and n_b == 1:
        ones_a, ones_b = a.plane_count[first_a], b.plane_count[first_b]
        common = count_common(a.planes[first_a], b.planes[first_b])
        both_zero -= ones_a + ones_b - common
        return (
            nlogn[common]
            + nlogn[ones_a - common]
            + nlogn[ones_b - common]
            + nlogn[both_zero]
        )
    rest = scratch.used_right
    for q in range(n_b):
        rest[q] = b.plane_count[first_b + q]
    for p in range(n_a):
        row = a.plane_count[first_a + p]
        both_zero -= row
        for q in range(n_b):
            common = count_common(a.planes[first_a + p], b.planes[first_b + q])
            total += nlogn[common]
            row -= common
            rest[q] -= common
        total += nlogn[row]
    for q in range(n_b):
        total += nlogn[rest[q]]
        both_zero -= rest[q]
        rest[q] = 0
    return total + nlogn[both_zero]


@inner
def joint_of_sparse(a, i, b, j, scratch):
    """Sum of ``k log2 k`` over the joint table of two sparse columns.

    ``scratch.mark`` holds the codes of column ``i`` of ``a``, so that time is in
    the stored rows of ``b`` alone. Rows in which both are stored move counts
    from the margins, where all would be if the columns shared no row, to cells.
    """
    nlogn, mark = a.nlogn, scratch.mark
    n = nlogn.size - 1
    start, stored_a, stored_b = b.offset[j], a.length[i], b.length[j]
    common = 0
    if a.arity[i] == 2 and b.arity[j] == 2:
        for e in range(start, start + stored_b):
            common += mark[b.rows[e]]
        return joint_of_counts(nlogn, stored_a, stored_b, common)
    for e in range(start, start + stored_b):
        code = mark[b.rows[e]]
        if code:
            scratch.left[common] = code
            scratch.right[common] = b.codes[e]
            common += 1
    left, right = scratch.left[:common], scratch.right[:common]
    n_right = b.arity[j]
    n_cells = np.int64(a.arity[i]) * np.int64(n_right)
    total = joint_of_codes(nlogn, left, right, n_right, n_cells, scratch)
    total += a.own[i] - nlogn[n - stored_a] + b.own[j] - nlogn[n - stored_b]
    total += nlogn[n - stored_a - stored_b + common]
    used_left, used_right = scratch.used_left, scratch.used_right
    for e in range(common):
        used_left[left[e]] += 1
        rest = a.counts[a.count_offset[i] + left[e] - 1] - used_left[left[e]]
        total += nlogn[rest] - nlogn[rest + 1]
        used_right[right[e]] += 1
        rest = b.counts[b.count_offset[j] + right[e] - 1] - used_right[right[e]]
        total += nlogn[rest] - nlogn[rest + 1]
    for e in range(common):
        used_left[left[e]] = 0
        used_right[right[e]] = 0
        left[e] = 0
        right[e] = 0
    return total


@inner
def joint_of_counts(nlogn, ones_a, ones_b, common):
    """The same for two binary columns, from their counts alone."""
    return (
        nlogn[common]
        + nlogn[ones_a - common]
        + nlogn[ones_b - common]
        + nlogn[nlogn.size - 1 - ones_a - ones_b + common]
    )


@inner
def ratio(information, norm_a, norm_b):
    """The score: twice the information over the sum of the norms; 0 for 0 / 0."""
    if norm_a + norm_b == 0:
        return 0.0
    return 2.0 * max(information, 0) / (norm_a + norm_b)
