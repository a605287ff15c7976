"""Discrete columns given others: tables within each configuration of a set.

A table of (column, target, configuration) is counted in one pass over the rows. The
cell of each row without the last member of the set is kept from one set to the next, so
that a set that differs in its last member costs one addition per row.

If all columns are binary, each cell is a bit plane of its rows. Every member splits
each plane into two, but for the last one, whose rows are only counted.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from featstream.jit import by_type, inner, kernel
from featstream.measures.storages.dense_codes import DenseCodes, count_common, unpack
from featstream.measures.storages.dispatch import decode_column
from featstream.measures.storages.row_index import sort_short
from featstream.measures.storages.sparse_codes import SparseCodes
from featstream.measures.storages.tables import information_given, n_words

MAX_MEMBERS = 6
"""Sets of more members are counted row by row: their planes would be too many."""


@kernel
def pack_plane(codes, plane):
    """Write the bit plane of the rows with code 1."""
    plane[:] = 0
    for r in range(codes.size):
        if codes[r] == 1:
            plane[r >> 6] |= np.uint64(1) << np.uint64(r & 63)


@inner
def _split_planes(level, sizes, n_cells, member, deeper, deeper_sizes):
    """Split each cell by a member, the last first: both levels may be the same."""
    for c in range(n_cells - 1, -1, -1):
        inside, outside = deeper[2 * c + 1], deeper[2 * c]
        for w in range(member.size):
            cell = level[c, w]
            inside[w] = cell & member[w]
            outside[w] = cell & ~member[w]
        n_inside = count_common(inside, inside)
        deeper_sizes[2 * c] = sizes[c] - n_inside
        deeper_sizes[2 * c + 1] = n_inside


DEPENDENT, INDEPENDENT, UNRELIABLE, SINGULAR = 0, 1, 2, 3


class CodedColumns(NamedTuple):
    """Discrete columns, one row per column.

    Column ``i`` has ``n_codes[i]`` categories that occur; the degrees of freedom count
    ``arity[i]``. A binary column has the plane of its rows with code 1, and ``codes``
    only if ``has_codes``. Others have codes.
    """

    codes: np.ndarray
    has_codes: np.ndarray
    planes: np.ndarray
    n_codes: np.ndarray
    arity: np.ndarray


class TableRule(NamedTuple):
    """A test and its target.

    ``critical[df]`` is the largest statistic that is not significant; 1 in ``nlogn`` is
    ``unit`` of the statistic G².
    """

    target: np.ndarray
    target_plane: np.ndarray
    target_codes: int
    target_arity: int
    nlogn: np.ndarray
    unit: float
    critical: np.ndarray
    uses_g2: bool
    samples_per_df: float
    max_size: int
    unreliable_separates: bool


class TableWork(NamedTuple):
    """Scratch buffers of one search; ``cells`` is all zero between tests.

    ``levels[d]`` is the cell of each row given the first ``d`` members of the set;
    ``plane_levels[d]`` and ``plane_sizes[d]`` are the same as planes. Both are valid up
    to their ``depth``, if it is not -1. ``column`` is the column that is tested.
    """

    levels: np.ndarray
    plane_levels: np.ndarray
    plane_sizes: np.ndarray
    depth: np.ndarray
    column: np.ndarray
    cells: np.ndarray
    terms: np.ndarray
    path: np.ndarray
    order: np.ndarray


def table_work(n_rows: int, samples_per_df: float, max_size: int) -> TableWork:
    """New scratch buffers; a reliable table has at most 4 cells per degree."""
    n_cells = int(4 * n_rows / samples_per_df) + 4
    size = max(1, max_size)
    n_planes = 4 << min(size - 1, MAX_MEMBERS)
    n_levels = min(size, MAX_MEMBERS)
    return TableWork(
        levels=np.zeros((size, n_rows), np.int32),
        plane_levels=np.zeros((n_levels, n_planes, n_words(n_rows)), np.uint64),
        plane_sizes=np.zeros((n_levels, n_planes), np.int64),
        depth=np.zeros(2, np.int64),
        column=np.zeros(1, np.int64),
        cells=np.zeros(n_cells, np.int64),
        terms=np.zeros(n_cells),
        path=np.zeros(size, np.int64),
        order=np.zeros(size, np.int64),
    )


@kernel
def chi_square(cells, n_a, n_t, n_s, terms):
    """Chi-square of a table, corrected by 0.5 where fewer than 10 are expected.

    The terms are added from the smallest up, so that labels do not matter.
    """
    n_terms = 0
    for s in range(n_s):
        whole = 0
        for c in range(n_a * n_t):
            whole += cells[c * n_s + s]
        if whole == 0:
            continue
        for p in range(n_a):
            row = 0
            for t in range(n_t):
                row += cells[(p * n_t + t) * n_s + s]
            if row == 0:
                continue
            for t in range(n_t):
                column = 0
                for q in range(n_a):
                    column += cells[(q * n_t + t) * n_s + s]
                if column == 0:
                    continue
                expected = row * column / whole
                gap = abs(cells[(p * n_t + t) * n_s + s] - expected)
                if expected < 10.0:
                    gap -= 0.5
                terms[n_terms] = gap * gap / expected
                n_terms += 1
    sort_short(terms, n_terms)
    total = 0.0
    for k in range(n_terms):
        total += terms[k]
    return total


@kernel
def begin_tables(columns, a, rule, work):
    """Pair column ``a`` with the target."""
    work.column[0] = a
    work.depth[:] = -1


@inner
def _has_planes(columns, path, size, rule, work):
    """Whether target, column and members are all binary."""
    if rule.target_plane.size == 0 or size > MAX_MEMBERS:
        return False
    is_binary = columns.n_codes[work.column[0]] == 2
    for d in range(size):
        is_binary = is_binary and columns.n_codes[path[d]] == 2
    return is_binary


@inner
def _count_planes(columns, path, size, rule, work):
    """Fill the cells of the table, 64 rows at a time."""
    levels, sizes, depth = work.plane_levels, work.plane_sizes, work.depth[1]
    if depth < 0:
        level, cell_sizes, n_rows = levels[0], sizes[0], rule.target.size
        cell_sizes[0] = n_rows
        level[0] = ~np.uint64(0)
        if n_rows & 63:
            last_rows = np.uint64(1) << np.uint64(n_rows & 63)
            level[0, -1] = last_rows - np.uint64(1)
        column = columns.planes[work.column[0]]
        _split_planes(level, cell_sizes, 1, column, level, cell_sizes)
        _split_planes(level, cell_sizes, 2, rule.target_plane, level, cell_sizes)
    for d in range(max(depth, 0), size - 1):
        member = columns.planes[path[d]]
        _split_planes(levels[d], sizes[d], 4 << d, member, levels[d + 1], sizes[d + 1])
    work.depth[1] = max(depth, size - 1, 0)
    d = max(size - 1, 0)
    for c in range(4 << d):
        if size == 0:
            work.cells[c] = sizes[d, c]
            continue
        n_inside = 0
        if sizes[d, c] > 0:
            n_inside = count_common(levels[d, c], columns.planes[path[d]])
        work.cells[2 * c + 1] = n_inside
        work.cells[2 * c] = sizes[d, c] - n_inside


@inner
def _fill_codes(columns, i):
    """Fill in the codes of a binary column, if they are missing."""
    if not columns.has_codes[i]:
        unpack(columns.planes[i : i + 1], columns.codes[i])
        columns.has_codes[i] = True


@inner
def _count_rows(columns, path, size, rule, work):
    """Fill the cells of the table, row by row."""
    levels, depth = work.levels, work.depth[0]
    if depth < 0:
        _fill_codes(columns, work.column[0])
        codes, level = columns.codes[work.column[0]], levels[0]
        for i in range(codes.size):
            level[i] = codes[i] * rule.target_codes + rule.target[i]
    for d in range(max(depth, 0), size - 1):
        _fill_codes(columns, path[d])
        n_member, member = columns.n_codes[path[d]], columns.codes[path[d]]
        level, deeper = levels[d], levels[d + 1]
        for i in range(level.size):
            deeper[i] = level[i] * n_member + member[i]
    work.depth[0] = max(depth, size - 1, 0)
    cells, level = work.cells, levels[max(0, size - 1)]
    if size == 0:
        for i in range(level.size):
            cells[level[i]] += 1
        return
    last = path[size - 1]
    _fill_codes(columns, last)
    n_member, member = columns.n_codes[last], columns.codes[last]
    for i in range(level.size):
        cells[level[i] * n_member + member[i]] += 1


@kernel
def measure_tables(columns, path, size, unchanged, rule, work):
    """Statistic and degrees of freedom given the set ``path[:size]``.

    The first ``unchanged`` members are those of the last call. The statistic is NaN
    if there are too few samples for the degrees of freedom.
    """
    for route in range(2):
        work.depth[route] = min(work.depth[route], unchanged)
    a = work.column[0]
    df = (columns.arity[a] - 1.0) * (rule.target_arity - 1.0)
    n_a, n_t, n_s = columns.n_codes[a], rule.target_codes, 1
    for d in range(size):
        df *= columns.arity[path[d]]
        n_s *= columns.n_codes[path[d]]
    df = max(df, 1.0)
    if rule.target.size < rule.samples_per_df * df:
        return np.nan, df
    n_cells = n_a * n_t * n_s
    if n_cells > work.cells.size:
        return 0.0, df  # one of the columns is constant
    if _has_planes(columns, path, size, rule, work):
        _count_planes(columns, path, size, rule, work)
    else:
        _count_rows(columns, path, size, rule, work)
    if rule.uses_g2:
        a, b, given = (n_a, n_t * n_s), (n_t, n_s), (n_s, 1)
        found, _ = information_given(work.cells, a, b, given, rule.nlogn)
        statistic = max(found, 0) * rule.unit
    else:
        statistic = chi_square(work.cells, n_a, n_t, n_s, work.terms)
    work.cells[:n_cells] = 0
    return statistic, df


@inner
def judge_tables(columns, path, size, built, rule, work):
    """Whether the set ``path[:size]`` makes the column independent of the target."""
    statistic, df = measure_tables(columns, path, size, built, rule, work)
    if np.isnan(statistic):
        return UNRELIABLE, size
    if statistic <= rule.critical[np.int64(df)]:
        return INDEPENDENT, size
    return DEPENDENT, size


@inner(allocates=True)
def _plane_of_dense(columns, i, plane):
    first = columns.first_plane[i]
    if columns.code_row[i] >= 0 or columns.arity[i] != 2:
        return -1
    plane[:] = columns.planes[first]
    return columns.plane_count[first]


@inner(allocates=True)
def _plane_of_sparse(columns, i, plane):
    if columns.arity[i] != 2:
        return -1
    plane[:] = 0
    for e in range(columns.offset[i], columns.offset[i] + columns.length[i]):
        row = columns.rows[e]
        plane[row >> 6] |= np.uint64(1) << np.uint64(row & 63)
    return columns.length[i]


plane_of = by_type({DenseCodes: _plane_of_dense, SparseCodes: _plane_of_sparse})
"""Write a column of two codes as a plane; return its number of rows, or -1."""


@kernel(allocates=True)
def recode_column(columns, i, arity, pool, slot):
    """Write column ``i`` into a slot: as a plane, or with codes of which all occur."""
    codes, pool.arity[slot] = pool.codes[slot], arity
    n_ones = plane_of(columns, i, pool.planes[slot])
    pool.has_codes[slot] = not 0 < n_ones < codes.size
    if not pool.has_codes[slot]:
        pool.n_codes[slot] = 2
        return
    decode_column(columns, i, codes)
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
    if n_codes == 2:
        pack_plane(codes, pool.planes[slot])


@kernel(allocates=True)
def score_chi_square(cells, arity, n_classes, is_wanted, statistics):
    """Chi-square of the wanted columns, from their tables with the class."""
    first = 0
    for i in range(arity.size):
        n_cells = arity[i] * n_classes
        table = cells[first : first + n_cells]
        if is_wanted[i]:
            terms = np.empty(n_cells)
            statistics[i] = chi_square(table, arity[i], n_classes, 1, terms)
        first += n_cells
