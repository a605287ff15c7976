"""OSFS and Fast-OSFS: newcomers against the kept features, given sets of them.

The kept features lie in the first slots of a pool, in order of arrival; the
newcomer takes the slot after them while it is judged.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload

from featstream.jit import inner_jit, jit
from featstream.kernels.coding import spell
from featstream.kernels.contingency import CodedColumns
from featstream.kernels.partial import Correlations
from featstream.kernels.subsets import CUT, LEFT, separate
from featstream.measures.storages.dense_codes import DenseCodes
from featstream.measures.storages.dense_values import DenseValues
from featstream.measures.storages.sparse_codes import SparseCodes
from featstream.measures.storages.sparse_values import SparseValues

__all__ = [
    "Candidates",
    "KeptSet",
    "Outcome",
    "fill_correlations",
    "keep_values",
    "take",
]

KEPT, REDUNDANT = 1, 2
_LANES = 16


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
    """The kept features in the first ``size[0]`` slots.

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
    size: np.ndarray


class Outcome(NamedTuple):
    """What was decided: of each candidate its fate and the set that separates it.

    The first ``n_events[0]`` entries of ``gone`` are arrivals that left the kept
    set, ``gone_by`` the newcomers that caused it, ``gone_sets`` what separates them.
    """

    fate: np.ndarray
    sets: np.ndarray
    gone: np.ndarray
    gone_by: np.ndarray
    gone_sets: np.ndarray
    n_events: np.ndarray


@inner_jit
def _place_tables(columns, new, k, kept, slot):
    spell(columns, new.column[k], new.arity[k], kept.pool, slot)


@inner_jit
def _dot(a, b):
    """Sum of products in lanes that are added in a fixed order."""
    lanes = np.zeros(_LANES)
    whole = a.size - a.size % _LANES
    for start in range(0, whole, _LANES):
        left, right = a[start : start + _LANES], b[start : start + _LANES]
        for k in range(_LANES):
            lanes[k] += left[k] * right[k]
    for k in range(a.size - whole):
        lanes[k] += a[whole + k] * b[whole + k]
    total = 0.0
    for k in range(_LANES):
        total += lanes[k]
    return total


@inner_jit
def _relate(product, n, total, norm, kept, slot, j):
    """Store the correlation of the newcomer with the kept column ``j``."""
    value = (n * product - total * kept.total[j]) / (norm * kept.norm[j])
    kept.pool.gram[slot, j] = value
    kept.pool.gram[j, slot] = value


@inner_jit
def _keep_tables(columns, i, values):
    pass


@inner_jit
def _keep_dense_moments(columns, i, values):
    row = columns.values[i]
    for r in range(values.size):
        values[r] = row[r]


@inner_jit
def _keep_sparse_moments(columns, i, values):
    values[:] = columns.background[i]
    for e in range(columns.offset[i], columns.offset[i] + columns.length[i]):
        values[columns.rows[e]] = columns.values[e]


@inner_jit
def _place_dense_moments(columns, new, k, kept, slot):
    i = new.column[k]
    values, total, norm = kept.values[slot], columns.total[i], columns.norm[i]
    _keep_dense_moments(columns, i, values)
    for j in range(slot):
        product = _dot(values, kept.values[j])
        _relate(product, values.size, total, norm, kept, slot, j)
    _finish_moments(new, k, kept, slot, total, norm)


@inner_jit
def _place_sparse_moments(columns, new, k, kept, slot):
    i = new.column[k]
    total, norm, base = columns.total[i], columns.norm[i], columns.background[i]
    for j in range(slot):
        values, product = kept.values[j], base * kept.total[j]
        for e in range(columns.offset[i], columns.offset[i] + columns.length[i]):
            product += (columns.values[e] - base) * values[columns.rows[e]]
        _relate(product, values.size, total, norm, kept, slot, j)
    _finish_moments(new, k, kept, slot, total, norm)


@inner_jit
def _finish_moments(new, k, kept, slot, total, norm):
    kept.pool.gram[slot, slot] = 1.0
    kept.pool.links[slot] = new.links[k]
    kept.total[slot] = total
    kept.norm[slot] = norm


_PLACE = {
    DenseCodes: _place_tables,
    SparseCodes: _place_tables,
    DenseValues: _place_dense_moments,
    SparseValues: _place_sparse_moments,
}
_KEEP = {
    DenseCodes: _keep_tables,
    SparseCodes: _keep_tables,
    DenseValues: _keep_dense_moments,
    SparseValues: _keep_sparse_moments,
}


def place(columns, new, k, kept, slot):
    """Put what the tests need to know of newcomer ``k`` into the slot."""
    _PLACE[type(columns)](columns, new, k, kept, slot)


@overload(place)
def _place(columns, new, k, kept, slot):
    chosen = _PLACE[columns.instance_class]
    return lambda columns, new, k, kept, slot: chosen(columns, new, k, kept, slot)


def keep_values(columns: Any, i: int, values: np.ndarray) -> None:
    """Write the deviations of column ``i``, by which later ones are correlated."""
    _KEEP[type(columns)](columns, i, values)


@overload(keep_values)
def _keep_values(columns, i, values):
    chosen = _KEEP[columns.instance_class]
    return lambda columns, i, values: chosen(columns, i, values)


@inner_jit
def _move_codes(pool, source, slot, size):
    pool.has_codes[slot] = pool.has_codes[source]
    pool.planes[slot] = pool.planes[source]
    if pool.has_codes[source]:
        pool.codes[slot] = pool.codes[source]
    pool.n_codes[slot] = pool.n_codes[source]
    pool.arity[slot] = pool.arity[source]


@inner_jit
def _move_correlations(pool, source, slot, size):
    for j in range(size):
        pool.gram[slot, j] = pool.gram[source, j]
    for j in range(size):
        pool.gram[j, slot] = pool.gram[j, source]
    pool.links[slot] = pool.links[source]


_MOVE = {CodedColumns: _move_codes, Correlations: _move_correlations}


def move(pool, source, slot, size):
    """Copy a column of a pool to another slot."""
    _MOVE[type(pool)](pool, source, slot, size)


@overload(move)
def _move(pool, source, slot, size):
    chosen = _MOVE[pool.instance_class]
    return lambda pool, source, slot, size: chosen(pool, source, slot, size)


@inner_jit
def _leave(kept, position, end):
    """Take out the feature of a slot; those after it, up to ``end``, move up."""
    for slot in range(position, end - 1):
        move(kept.pool, slot + 1, slot, end)
        kept.score[slot] = kept.score[slot + 1]
        kept.arrival[slot] = kept.arrival[slot + 1]
        kept.total[slot] = kept.total[slot + 1]
        kept.norm[slot] = kept.norm[slot + 1]
        if kept.values.shape[0]:
            kept.values[slot] = kept.values[slot + 1]


@inner_jit
def _write_set(arrivals, found, size, row):
    for q in range(size):
        row[q] = arrivals[found[q]]
    row[:size].sort()


@inner_jit
def _revise(kept, arrival, rule, work, others, found, tally, outcome):
    """Take out kept features that a set with the newcomer makes redundant.

    Sets without it have been tried before, when their last member arrived: all
    that is left of the kept features has survived them.
    """
    j = 0
    while j < kept.size[0]:
        n = kept.size[0]
        for q in range(n - 1):
            others[q] = q if q < j else q + 1
        size = separate(kept.pool, j, others[: n - 1], n, rule, work, found, tally)
        if size == 0:
            j += 1
            continue
        event = outcome.n_events[0]
        outcome.gone[event] = kept.arrival[j]
        outcome.gone_by[event] = arrival
        _write_set(kept.arrival, found, size, outcome.gone_sets[event])
        outcome.n_events[0] = event + 1
        _leave(kept, j, n + 1)
        kept.size[0] = n - 1


@jit
def take(new, begin, kept, is_fast, rule, work, tally, max_tests, outcome):
    """Decide about the candidates from ``begin`` on.

    Returns the number dealt with: all of them, or fewer if the pool is full.
    """
    columns = new.columns
    others = np.arange(kept.arrival.size)
    found = np.zeros(max(1, rule.max_size), np.int64)
    for k in range(begin, new.column.size):
        if kept.size[0] + 1 >= kept.arrival.size:
            return k
        arrival, cut_before = new.arrival[k], tally[CUT]
        tally[LEFT] = max_tests
        slot = kept.size[0]
        kept.arrival[slot] = arrival
        kept.score[slot] = new.score[k]
        place(columns, new, k, kept, slot)
        size = 0
        if is_fast:
            for q in range(slot):
                others[q] = q
            size = separate(
                kept.pool, slot, others[:slot], -1, rule, work, found, tally
            )
        if size == 0:
            _revise(kept, arrival, rule, work, others, found, tally, outcome)
            slot = kept.size[0]
            if not is_fast:
                for q in range(slot):
                    others[q] = q
                size = separate(
                    kept.pool, slot, others[:slot], -1, rule, work, found, tally
                )
        tally[CUT] = min(tally[CUT], cut_before + 1)
        if size:
            outcome.fate[k] = REDUNDANT
            _write_set(kept.arrival, found, size, outcome.sets[k])
            continue
        outcome.fate[k] = KEPT
        if kept.values.shape[0]:
            keep_values(columns, new.column[k], kept.values[slot])
        kept.size[0] = slot + 1
    return new.column.size


@jit
def fill_correlations(values, total, norm, gram):
    """Correlations of dense columns, given as deviations, with each other.

    A constant is uncorrelated with everything.
    """
    for i in range(values.shape[0]):
        gram[i, i] = 1.0
        for j in range(i):
            scale, value = norm[i] * norm[j], 0.0
            if scale > 0.0:
                product = values.shape[1] * _dot(values[i], values[j])
                value = (product - total[i] * total[j]) / scale
            gram[i, j] = value
            gram[j, i] = value
