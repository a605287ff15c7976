"""The information in tables of counts, from one table of integers.

Counts are integers, and ``k log2 k`` comes from one table in fixed point, so every
entropy is an exact sum: the order of rows, the labels of categories and the way a
column is stored cannot change a bit of it.

A discrete column carries ``own``, the sum of ``k log2 k`` over its categories, and
``norm``, the denominator of its score.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from featstream.jit import inner, lean

MAX_PLANES = 15
"""Columns of at most ``MAX_PLANES + 1`` categories are stored as bit planes."""

MAX_CELLS = 1 << 20
"""Tables of more cells than this are counted by their keys instead."""


class CodedTarget(NamedTuple):
    """The target: the class of each row, as codes and as one plane per class."""

    classes: np.ndarray
    counts: np.ndarray
    planes: np.ndarray
    own: int
    norm: int


class CodeScratch(NamedTuple):
    """Scratch buffers of the discrete kernels.

    Between calls all is zero, but for ``keys``, which are -1, and what is in
    ``left`` and ``right``. ``mark`` holds the codes of a loaded newcomer by row.
    """

    cells: np.ndarray
    keys: np.ndarray
    mark: np.ndarray
    used_left: np.ndarray
    used_right: np.ndarray
    left: np.ndarray
    right: np.ndarray


def code_scratch(n_rows: int, *, has_marks: bool = False) -> CodeScratch:
    """Fresh buffers for columns of ``n_rows`` values."""
    n_marks = n_rows if has_marks else 0
    n_keys = 1 << int(2 * n_rows).bit_length()
    # A column with gaps may have more planes than rows, and one more for missing.
    most_codes = max(n_rows, MAX_PLANES) + 1
    return CodeScratch(
        cells=np.zeros(max(n_keys, min(MAX_CELLS, most_codes**2)), np.int64),
        keys=np.full(n_keys, -1, np.int64),
        mark=np.zeros(n_marks, np.int32),
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


def class_planes(codes: NDArray[Any], n_classes: int) -> NDArray[np.uint64]:
    """One bit plane per class but the first; none if there are many classes."""
    wanted = np.arange(1, n_classes if n_classes <= MAX_PLANES + 1 else 1)
    bits = np.zeros((wanted.size, (codes.size + 63) // 64 * 8), np.uint8)
    packed = np.packbits(codes == wanted[:, None], axis=1, bitorder="little")
    bits[:, : packed.shape[1]] = packed
    return bits.view(np.uint64)


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


@inner
def _is_independent(cells, arity, class_counts, n):
    """Whether every cell is exactly what its margins say."""
    n_classes = class_counts.size
    for p in range(arity):
        row = cells[p * n_classes : (p + 1) * n_classes]
        size = row.sum()
        for c in range(n_classes):
            if n * row[c] != size * class_counts[c]:
                return False
    return True


@inner
def measure_table(cells, arity, target, nlogn):
    """Information in a table of (category, class), and ``own`` of its categories.

    Rounding leaves a few units where independence should give nothing, or
    nothing where there should be a little; there the integers decide.
    """
    n_classes = target.counts.size
    n = nlogn.size - 1
    joint, own = 0, 0
    for p in range(arity):
        size = 0
        for c in range(n_classes):
            count = cells[p * n_classes + c]
            joint += nlogn[count]
            size += count
        own += nlogn[size]
    information = nlogn[n] + joint - own - target.own
    if information <= (arity + 1) * (n_classes + 1):
        if _is_independent(cells, arity, target.counts, n):
            return 0, own
        return max(information, 1), own
    return information, own


@inner
def measure_large_table(codes, classes, arity, own, target, nlogn, scratch):
    """The same from lists of codes, for tables too large to count in cells.

    What does not exceed the rounding error counts as nothing.
    """
    n_classes = target.counts.size
    n_cells = np.int64(arity) * n_classes
    joint = joint_of_codes(nlogn, codes, classes, n_classes, n_cells, scratch)
    information = nlogn[nlogn.size - 1] + joint - own - target.own
    return information if information > n_cells else 0
