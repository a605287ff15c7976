"""Relevance of discrete columns: the information in their tables with the class."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from featstream.jit import inner, lean
from featstream.kernels.bits import count_common
from featstream.kernels.tables import (
    MAX_PLANES,
    joint_of_codes,
    ratio,
    spell,
    sum_nlogn,
)

__all__ = ["TableTarget", "score_dense_tables", "score_sparse_tables"]


class TableTarget(NamedTuple):
    """The target: the class of each row, as codes and as one plane a class."""

    classes: np.ndarray
    counts: np.ndarray
    planes: np.ndarray
    own: int
    norm: int


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
def _measure_table(cells, arity, target, nlogn):
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
def _measure_large_table(codes, classes, arity, own, target, nlogn, scratch):
    """The same from lists of codes, for tables too large to count in cells.

    What does not exceed the rounding error counts as nothing.
    """
    n_classes = target.counts.size
    n_cells = np.int64(arity) * n_classes
    joint = joint_of_codes(nlogn, codes, classes, n_classes, n_cells, scratch)
    information = nlogn[nlogn.size - 1] + joint - own - target.own
    return information if information > n_cells else 0


@inner
def _fill_from_planes(cells, planes, counts, target, n):
    """Count (category, class) with one popcount for each pair of planes."""
    n_classes = target.counts.size
    for c in range(n_classes):
        cells[c] = target.counts[c]
    for p in range(planes.shape[0]):
        row = (p + 1) * n_classes
        cells[row] = counts[p]
        for q in range(n_classes - 1):
            common = count_common(planes[p], target.planes[q])
            cells[row + q + 1] = common
            cells[row] -= common
            cells[q + 1] -= common
        cells[0] -= cells[row]


@lean
def score_dense_tables(columns, target, scratch, scores, entropy_norm):
    """Score every dense column with the target; fill ``own`` and ``norm``.

    ``norm`` is the entropy of the column if ``entropy_norm``, otherwise it is
    left as it is.
    """
    nlogn, cells = columns.nlogn, scratch.cells
    n = nlogn.size - 1
    n_classes = target.counts.size
    for i in range(columns.arity.size):
        arity = columns.arity[i]
        n_cells = np.int64(arity) * n_classes
        if columns.code_row[i] < 0 and n_classes <= MAX_PLANES + 1:
            first = columns.first_plane[i]
            last = first + arity - 1
            planes, counts = columns.planes[first:last], columns.plane_count[first:last]
            _fill_from_planes(cells, planes, counts, target, n)
            information, own = _measure_table(cells, arity, target, nlogn)
            cells[:n_cells] = 0
        else:
            codes = scratch.left
            spell(columns, i, codes)
            if n_cells <= cells.size:
                for r in range(n):
                    cells[codes[r] * n_classes + target.classes[r]] += 1
                information, own = _measure_table(cells, arity, target, nlogn)
                cells[:n_cells] = 0
            else:
                sizes = scratch.used_left
                for r in range(n):
                    sizes[codes[r]] += 1
                own = sum_nlogn(nlogn, sizes)
                sizes[:] = 0
                information = _measure_large_table(
                    codes, target.classes, arity, own, target, nlogn, scratch
                )
        columns.own[i] = own
        if entropy_norm:
            columns.norm[i] = nlogn[n] - own
        scores[i] = ratio(information, columns.norm[i], target.norm)


@lean
def score_sparse_tables(columns, target, scratch, scores, entropy_norm):
    """Score every sparse column with the target; fill ``own`` and ``norm``."""
    nlogn, cells = columns.nlogn, scratch.cells
    n = nlogn.size - 1
    n_classes = target.counts.size
    for i in range(columns.arity.size):
        arity = columns.arity[i]
        n_cells = np.int64(arity) * n_classes
        start, stop = columns.offset[i], columns.offset[i] + columns.length[i]
        if n_cells <= cells.size:
            for c in range(n_classes):
                cells[c] = target.counts[c]
            for e in range(start, stop):
                c = target.classes[columns.rows[e]]
                cells[columns.codes[e] * n_classes + c] += 1
                cells[c] -= 1
            information, own = _measure_table(cells, arity, target, nlogn)
            cells[:n_cells] = 0
        else:
            codes = scratch.left
            codes[:] = 0
            for e in range(start, stop):
                codes[columns.rows[e]] = columns.codes[e]
            sizes = columns.counts[
                columns.count_offset[i] : columns.count_offset[i] + arity - 1
            ]
            own = sum_nlogn(nlogn, sizes) + nlogn[n - (stop - start)]
            information = _measure_large_table(
                codes, target.classes, arity, own, target, nlogn, scratch
            )
        columns.own[i] = own
        if entropy_norm:
            columns.norm[i] = nlogn[n] - own
        scores[i] = ratio(information, columns.norm[i], target.norm)
