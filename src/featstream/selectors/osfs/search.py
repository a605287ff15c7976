"""OSFS and Fast-OSFS: newcomers against the kept features, given sets of them.

The kept features lie in slots of a pool, which are listed in order of arrival; the
newcomer takes the slot that is listed after theirs while it is judged.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from featstream.jit import by_type, inner, kernel
from featstream.measures.independence_correlations import (
    Correlations,
    begin_partial,
    dot,
    judge_partial,
    keep_dense_deviations,
    keep_values,
)
from featstream.measures.independence_tables import (
    INDEPENDENT,
    SINGULAR,
    UNRELIABLE,
    CodedColumns,
    begin_tables,
    judge_tables,
    recode_column,
)
from featstream.measures.storages.dense_codes import DenseCodes
from featstream.measures.storages.dense_values import DenseValues
from featstream.measures.storages.sparse_codes import SparseCodes
from featstream.measures.storages.sparse_values import SparseValues

KEPT, REDUNDANT = 1, 2


N_TESTS, N_UNRELIABLE, CUT, LEFT = 0, 1, 2, 3
"""Places in a tally: tests run, not run, searches cut short, tests left to spend."""

begin = by_type({CodedColumns: begin_tables, Correlations: begin_partial})
"""Pair a column with the target."""
judge = by_type({CodedColumns: judge_tables, Correlations: judge_partial})
"""Verdict on the set ``path[:size]``, of which ``built`` members are worked in."""


@inner
def next_subset(index, size, n):
    """Make ``index[:size]`` the next subset of ``range(n)`` in lexicographic order.

    Returns the first position that changed, or -1 after the last subset.
    """
    p = size - 1
    while p >= 0 and index[p] == n - size + p:
        p -= 1
    if p >= 0:
        index[p] += 1
        for q in range(p + 1, size):
            index[q] = index[q - 1] + 1
    return p


@kernel(allocates=True)
def separate(columns, a, candidates, must, rule, work, found, tally):
    """Find a set of candidates given which column ``a`` and target are independent.

    Sets of 1, 2, … members, each size in lexicographic order; if ``must`` is not
    negative all sets contain it, besides candidates. Writes the first that
    separates to ``found`` and returns its size, or 0 if none does.
    """
    begin(columns, a, rule, work)
    n_fixed, n = (1 if must >= 0 else 0), candidates.size
    path, index = work.path, work.order
    path[0] = must
    for size in range(1, rule.max_size + 1):
        n_free = size - n_fixed
        if n_free > n:
            break
        for q in range(n_free):
            index[q] = q
            path[n_fixed + q] = candidates[q]
        built = 0
        while True:
            if tally[LEFT] == 0:
                tally[CUT] += 1
                return 0
            verdict, built = judge(columns, path, size, built, rule, work)
            if verdict == UNRELIABLE:
                tally[N_UNRELIABLE] += 1
            elif verdict != SINGULAR:
                tally[N_TESTS] += 1
                tally[LEFT] -= 1
            if verdict == INDEPENDENT or (
                verdict == UNRELIABLE and rule.unreliable_separates
            ):
                for q in range(size):
                    found[q] = path[q]
                return size
            p = next_subset(index, n_free, n)
            if p < 0:
                break
            for q in range(p, n_free):
                path[n_fixed + q] = candidates[index[q]]
            built = min(built, n_fixed + p)
    return 0


class Candidates(NamedTuple):
    """The relevant features of a block, in order of arrival.

    Candidate ``k`` is column ``column[k]`` of ``columns``, as a measure encodes
    them. ``arity`` (0: the categories seen) is for discrete columns, ``links``,
    the correlations with the target, for continuous ones.
    """

    columns: Any
    column: np.ndarray
    score: np.ndarray
    arrival: np.ndarray
    arity: np.ndarray
    links: np.ndarray


class KeptSet(NamedTuple):
    """The kept features, in the first ``size[0]`` of ``slots``.

    ``pool`` is what the tests read. ``values`` and ``total`` are deviations and
    their sums, by which continuous newcomers are correlated with the kept ones;
    ``norm`` are their norms.
    """

    pool: Any
    score: np.ndarray
    arrival: np.ndarray
    values: np.ndarray
    total: np.ndarray
    norm: np.ndarray
    slots: np.ndarray
    size: np.ndarray


class Outcome(NamedTuple):
    """What was decided: the fate of each candidate, and what separates features.

    A row of ``sets`` is an arrival and the set that separates it: of each candidate,
    and, in the first ``n_gone[0]`` rows of ``gone_sets``, of features that left the
    kept set; ``gone_by`` are the newcomers that caused it.
    """

    fate: np.ndarray
    sets: np.ndarray
    gone_sets: np.ndarray
    gone_by: np.ndarray
    n_gone: np.ndarray


@inner(allocates=True)
def _place_tables(columns, new, k, kept, slot):
    recode_column(columns, new.column[k], new.arity[k], kept.pool, slot)


@inner(allocates=True)
def _relate(product, n, total, norm, kept, slot, j):
    """Store the correlation of the newcomer with the kept column ``j``."""
    value = (n * product - total * kept.total[j]) / (norm * kept.norm[j])
    kept.pool.gram[slot, j] = value
    kept.pool.gram[j, slot] = value


@inner(allocates=True)
def _place_dense_moments(columns, new, k, kept, slot):
    i = new.column[k]
    values, total, norm = kept.values[slot], columns.total[i], columns.norm[i]
    keep_dense_deviations(columns, i, values)
    for j in kept.slots[: kept.size[0]]:
        product = dot(values, kept.values[j])
        _relate(product, values.size, total, norm, kept, slot, j)
    _finish_moments(new, k, kept, slot, total, norm)


@inner(allocates=True)
def _place_sparse_moments(columns, new, k, kept, slot):
    i = new.column[k]
    total, norm, base = columns.total[i], columns.norm[i], columns.background[i]
    for j in kept.slots[: kept.size[0]]:
        values, product = kept.values[j], base * kept.total[j]
        for e in range(columns.offset[i], columns.offset[i] + columns.length[i]):
            product += (columns.values[e] - base) * values[columns.rows[e]]
        _relate(product, values.size, total, norm, kept, slot, j)
    _finish_moments(new, k, kept, slot, total, norm)


@inner(allocates=True)
def _finish_moments(new, k, kept, slot, total, norm):
    kept.pool.gram[slot, slot] = 1.0
    kept.pool.links[slot] = new.links[k]
    kept.total[slot] = total
    kept.norm[slot] = norm


place = by_type(
    {
        DenseCodes: _place_tables,
        SparseCodes: _place_tables,
        DenseValues: _place_dense_moments,
        SparseValues: _place_sparse_moments,
    }
)
"""Put what the tests need to know of a newcomer into a slot."""


@inner(allocates=True)
def _write_set(arrivals, slot, found, size, row):
    row[0] = arrivals[slot]
    for q in range(size):
        row[1 + q] = arrivals[found[q]]
    row[1 : 1 + size].sort()


@inner(allocates=True)
def _separate_newcomer(kept, rule, work, found, tally):
    """Find a set of kept features that separates the newcomer, as `separate` does."""
    n = kept.size[0]
    slot, others = kept.slots[n], kept.slots[:n]
    return separate(kept.pool, slot, others, -1, rule, work, found, tally)


@inner(allocates=True)
def _revise(kept, rule, work, others, found, tally, outcome):
    """Take out kept features that a set with the newcomer makes redundant.

    Sets without it have been tried before, when their last member arrived: all
    that is left of the kept features has survived them.
    """
    position = 0
    while position < kept.size[0]:
        n = kept.size[0]
        new, old, rest = kept.slots[n], kept.slots[position], others[: n - 1]
        for q in range(n - 1):
            rest[q] = kept.slots[q if q < position else q + 1]
        size = separate(kept.pool, old, rest, new, rule, work, found, tally)
        if size == 0:
            position += 1
            continue
        event = outcome.n_gone[0]
        outcome.gone_by[event] = kept.arrival[new]
        _write_set(kept.arrival, old, found, size, outcome.gone_sets[event])
        outcome.n_gone[0] = event + 1
        for q in range(position, n):  # the newcomer's slot is then the next again
            kept.slots[q] = kept.slots[q + 1]
        kept.slots[n] = old
        kept.size[0] = n - 1


@kernel(allocates=True)
def judge_candidates(new, begin, kept, is_fast, rule, work, tally, max_tests, outcome):
    """Decide about the candidates from ``begin`` on.

    Returns the number decided: all of them, or fewer if the pool is full.
    """
    columns = new.columns
    others = np.empty(kept.arrival.size, np.int64)
    found = np.zeros(max(1, rule.max_size), np.int64)
    for k in range(begin, new.column.size):
        if kept.size[0] + 1 >= kept.arrival.size:
            return k
        cut_before, tally[LEFT] = tally[CUT], max_tests
        slot = kept.slots[kept.size[0]]
        kept.arrival[slot] = new.arrival[k]
        kept.score[slot] = new.score[k]
        place(columns, new, k, kept, slot)
        size = 0
        if is_fast:
            size = _separate_newcomer(kept, rule, work, found, tally)
        if size == 0:
            _revise(kept, rule, work, others, found, tally, outcome)
            if not is_fast:
                size = _separate_newcomer(kept, rule, work, found, tally)
        tally[CUT] = min(tally[CUT], cut_before + 1)
        if size:
            outcome.fate[k] = REDUNDANT
            _write_set(kept.arrival, slot, found, size, outcome.sets[k])
            continue
        outcome.fate[k] = KEPT
        if kept.values.shape[0]:
            keep_values(columns, new.column[k], kept.values[slot])
        kept.size[0] += 1
    return new.column.size
