"""Discrete columns spelt out: codes that all occur, from any storage."""

from __future__ import annotations

import numpy as np
from numba.extending import overload

from featstream.jit import inner_jit, jit
from featstream.kernels.contingency import chi_square
from featstream.kernels.planes import pack_plane
from featstream.measures.storages.bitplanes import unpack
from featstream.measures.storages.dense_codes import DenseCodes
from featstream.measures.storages.sparse_codes import SparseCodes

__all__ = ["count_categories", "score_chi_square", "spell"]


@inner_jit
def _spell_dense(columns, i, codes):
    if columns.code_row[i] >= 0:
        codes[:] = columns.codes[columns.code_row[i]]
    else:
        first = columns.first_plane[i]
        unpack(columns.planes[first : first + columns.arity[i] - 1], codes)


@inner_jit
def _spell_sparse(columns, i, codes):
    codes[:] = 0
    for e in range(columns.offset[i], columns.offset[i] + columns.length[i]):
        codes[columns.rows[e]] = columns.codes[e]


_SPELL = {DenseCodes: _spell_dense, SparseCodes: _spell_sparse}


def spell_raw(columns, i, codes):
    """Write the codes of column ``i`` as they are stored."""
    _SPELL[type(columns)](columns, i, codes)


@overload(spell_raw)
def _spell_raw(columns, i, codes):
    chosen = _SPELL[columns.instance_class]
    return lambda columns, i, codes: chosen(columns, i, codes)


@inner_jit
def _plane_of_dense(columns, i, plane):
    first = columns.first_plane[i]
    if columns.code_row[i] >= 0 or columns.arity[i] != 2:
        return -1
    plane[:] = columns.planes[first]
    return columns.plane_count[first]


@inner_jit
def _plane_of_sparse(columns, i, plane):
    if columns.arity[i] != 2:
        return -1
    plane[:] = 0
    for e in range(columns.offset[i], columns.offset[i] + columns.length[i]):
        row = columns.rows[e]
        plane[row >> 6] |= np.uint64(1) << np.uint64(row & 63)
    return columns.length[i]


_PLANE_OF = {DenseCodes: _plane_of_dense, SparseCodes: _plane_of_sparse}


def plane_of(columns, i, plane):
    """Write a column of two codes as a plane; how many rows it has, or -1."""
    return _PLANE_OF[type(columns)](columns, i, plane)


@overload(plane_of)
def _plane_of(columns, i, plane):
    chosen = _PLANE_OF[columns.instance_class]
    return lambda columns, i, plane: chosen(columns, i, plane)


@jit
def spell(columns, i, arity, pool, slot):
    """Write column ``i`` into a slot: as a plane, or with codes that all occur."""
    codes = pool.codes[slot]
    n_ones = plane_of(columns, i, pool.planes[slot])
    if 0 < n_ones < codes.size:
        pool.has_codes[slot] = False
        pool.n_codes[slot] = 2
        pool.arity[slot] = arity if arity > 0 else 2
        return
    pool.has_codes[slot] = True
    spell_raw(columns, i, codes)
    new_code = np.zeros(columns.arity[i], np.int32)
    for r in range(codes.size):
        new_code[codes[r]] = 1
    n_codes = 0
    for c in range(new_code.size):
        if new_code[c]:
            new_code[c] = n_codes
            n_codes += 1
    for r in range(codes.size):
        codes[r] = new_code[codes[r]]
    pool.n_codes[slot] = n_codes
    pool.arity[slot] = arity if arity > 0 else n_codes
    if n_codes == 2:
        pack_plane(codes, pool.planes[slot])


@inner_jit
def _sizes_in_dense(columns, i, n, sizes):
    if columns.code_row[i] >= 0:
        codes = columns.codes[columns.code_row[i]]
        for r in range(n):
            sizes[codes[r]] += 1
        return
    sizes[0] = n
    for p in range(columns.arity[i] - 1):
        sizes[p + 1] = columns.plane_count[columns.first_plane[i] + p]
        sizes[0] -= sizes[p + 1]


@inner_jit
def _sizes_in_sparse(columns, i, n, sizes):
    sizes[0] = n - columns.length[i]
    for c in range(columns.arity[i] - 1):
        sizes[c + 1] = columns.counts[columns.count_offset[i] + c]


_SIZES = {DenseCodes: _sizes_in_dense, SparseCodes: _sizes_in_sparse}


def sizes_of(columns, i, n, sizes):
    """Count the rows of each category of column ``i``."""
    _SIZES[type(columns)](columns, i, n, sizes)


@overload(sizes_of)
def _sizes_of(columns, i, n, sizes):
    chosen = _SIZES[columns.instance_class]
    return lambda columns, i, n, sizes: chosen(columns, i, n, sizes)


@jit
def count_categories(columns, n, found):
    """Number of categories that occur, of every column."""
    for i in range(found.size):
        sizes = np.zeros(columns.arity[i], np.int64)
        sizes_of(columns, i, n, sizes)
        found[i] = np.count_nonzero(sizes)


@inner_jit
def _classes_in_dense(columns, i, target, cells):
    codes = np.empty(target.classes.size, np.int32)
    spell_raw(columns, i, codes)
    n_classes = target.counts.size
    for r in range(codes.size):
        cells[codes[r] * n_classes + target.classes[r]] += 1


@inner_jit
def _classes_in_sparse(columns, i, target, cells):
    n_classes = target.counts.size
    cells[:n_classes] = target.counts
    for e in range(columns.offset[i], columns.offset[i] + columns.length[i]):
        c = target.classes[columns.rows[e]]
        cells[columns.codes[e] * n_classes + c] += 1
        cells[c] -= 1


_CLASSES = {DenseCodes: _classes_in_dense, SparseCodes: _classes_in_sparse}


def count_classes(columns, i, target, cells):
    """Table of (category, class) of column ``i``."""
    _CLASSES[type(columns)](columns, i, target, cells)


@overload(count_classes)
def _count_classes(columns, i, target, cells):
    chosen = _CLASSES[columns.instance_class]
    return lambda columns, i, target, cells: chosen(columns, i, target, cells)


@jit
def score_chi_square(columns, is_wanted, target, statistics):
    """Chi-square of every wanted column with the class."""
    n_classes = target.counts.size
    for i in range(statistics.size):
        if is_wanted[i]:
            n_cells = columns.arity[i] * n_classes
            cells = np.zeros(n_cells, np.int64)
            count_classes(columns, i, target, cells)
            terms = np.empty(n_cells)
            statistics[i] = chi_square(cells, columns.arity[i], n_classes, 1, terms)
