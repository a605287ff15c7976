"""Discrete columns given others: tables within each configuration of a set.

A table of (column, target, configuration) is counted in one pass over the rows.
The cell of each row without the last member of the set is kept from one set to
the next, so that a set that differs in its last member costs one addition a row.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from featstream.kernels._jit import jit

__all__ = [
    "DEPENDENT",
    "INDEPENDENT",
    "SINGULAR",
    "UNRELIABLE",
    "CodedColumns",
    "TableRule",
    "TableWork",
    "begin_tables",
    "chi_square",
    "judge_tables",
    "measure_tables",
    "table_work",
]

DEPENDENT, INDEPENDENT, UNRELIABLE, SINGULAR = 0, 1, 2, 3


class CodedColumns(NamedTuple):
    """Discrete columns as codes from 0, one row a column.

    All codes of column ``i`` are below ``n_codes[i]``; ``arity[i]`` is the number
    of its categories that the degrees of freedom count.
    """

    codes: np.ndarray
    n_codes: np.ndarray
    arity: np.ndarray


class TableRule(NamedTuple):
    """The test and what it is a test with.

    ``critical[df]`` is the largest statistic that does not show dependence;
    ``nlogn`` is in units of which one is worth ``unit`` of the statistic G².
    """

    target: np.ndarray
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
    """Working memory of one search; ``cells`` is all zero between tests.

    ``levels[d]`` is the cell of each row given the first ``d`` members of the
    set; ``shape`` holds the codes of the column, and ``degrees`` the degrees of
    freedom of the pair alone.
    """

    levels: np.ndarray
    shape: np.ndarray
    degrees: np.ndarray
    cells: np.ndarray
    terms: np.ndarray
    path: np.ndarray
    order: np.ndarray


def table_work(n_rows: int, samples_per_df: float, max_size: int) -> TableWork:
    """Fresh working memory; a reliable table has at most 4 cells a degree."""
    n_cells = int(4 * n_rows / samples_per_df) + 4
    return TableWork(
        levels=np.zeros((max(1, max_size), n_rows), np.int32),
        shape=np.zeros(1, np.int64),
        degrees=np.zeros(1),
        cells=np.zeros(n_cells, np.int64),
        terms=np.zeros(n_cells),
        path=np.zeros(max(1, max_size), np.int64),
        order=np.zeros(max(1, max_size), np.int64),
    )


@jit
def _g_square(cells, n_a, n_t, n_s, nlogn, unit):
    """G² from a table of integers: a sum of ``k log k`` that no order changes."""
    total = 0
    for s in range(n_s):
        whole = 0
        for p in range(n_a):
            row = 0
            for t in range(n_t):
                count = cells[(p * n_t + t) * n_s + s]
                total += nlogn[count]
                row += count
            total -= nlogn[row]
            whole += row
        if whole == 0:
            continue
        total += nlogn[whole]
        for t in range(n_t):
            column = 0
            for p in range(n_a):
                column += cells[(p * n_t + t) * n_s + s]
            total -= nlogn[column]
    return max(total, 0) * unit


@jit
def chi_square(cells, n_a, n_t, n_s, terms):
    """Chi-square of a table, with half a count off where fewer than 10 are expected.

    The terms are added from the smallest up: labels do not matter.
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
    used = terms[:n_terms]
    used.sort()
    total = 0.0
    for k in range(n_terms):
        total += used[k]
    return total


@jit
def begin_tables(columns, a, rule, work):
    """Pair column ``a`` with the target."""
    codes, level, target = columns.codes[a], work.levels[0], rule.target
    for i in range(codes.size):
        level[i] = codes[i] * rule.target_codes + target[i]
    work.shape[0] = columns.n_codes[a]
    work.degrees[0] = (columns.arity[a] - 1.0) * (rule.target_arity - 1.0)


@jit
def measure_tables(columns, path, size, built, rule, work):
    """Statistic and degrees of freedom given the set ``path[:size]``.

    ``levels`` holds good up to depth ``built``; the new depth is returned last.
    The statistic is NaN if there are too few samples for the degrees of freedom.
    """
    df = work.degrees[0]
    for d in range(size):
        df *= columns.arity[path[d]]
    df = max(df, 1.0)
    if rule.target.size < rule.samples_per_df * df:
        return np.nan, df, built
    n_a, n_t = work.shape[0], rule.target_codes
    n_s = 1
    for d in range(size):
        n_s *= columns.n_codes[path[d]]
    if n_a * n_t * n_s > work.cells.size:
        return 0.0, df, built  # only a constant has so few degrees and so many cells
    for d in range(built, size - 1):
        n_member, member = columns.n_codes[path[d]], columns.codes[path[d]]
        level, deeper = work.levels[d], work.levels[d + 1]
        for i in range(level.size):
            deeper[i] = level[i] * n_member + member[i]
    cells, level = work.cells, work.levels[max(0, size - 1)]
    if size == 0:
        for i in range(level.size):
            cells[level[i]] += 1
    else:
        last = path[size - 1]
        n_member, member = columns.n_codes[last], columns.codes[last]
        for i in range(level.size):
            cells[level[i] * n_member + member[i]] += 1
    if rule.uses_g2:
        statistic = _g_square(cells, n_a, n_t, n_s, rule.nlogn, rule.unit)
    else:
        statistic = chi_square(cells, n_a, n_t, n_s, work.terms)
    cells[: n_a * n_t * n_s] = 0
    return statistic, df, max(built, size - 1)


@jit
def judge_tables(columns, path, size, built, rule, work):
    """Whether the set ``path[:size]`` makes the column independent of the target."""
    statistic, df, built = measure_tables(columns, path, size, built, rule, work)
    if np.isnan(statistic):
        return UNRELIABLE, built
    if statistic <= rule.critical[np.int64(df)]:
        return INDEPENDENT, built
    return DEPENDENT, built
