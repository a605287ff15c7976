"""Algorithm 2: groups of features, pruned within and between.

Step numbers are those of Algorithm 2 in Yu, Wu, Ding and Pei, "Scalable and
Accurate Online Feature Selection for Big Data".

A pair of features is decided once: the less relevant one goes if they overlap
enough and neither has gone before. Hence the nesting of the printed loops does
not matter, only the order of the pairs that share a feature: each feature of the
arriving group walks along those before it in the group (Steps 10 to 19), and then
each that is left walks along the kept ones, oldest group first (Steps 21 to 35).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from featstream.kernels._jit import lean
from featstream.kernels.index import forget_touched, keep_pace
from featstream.kernels.rule import reaches
from featstream.kernels.scan import Kept
from featstream.kernels.shortlist import (
    make_shortlist,
    overlap_known,
    register,
    unregister,
)
from featstream.kernels.storage import copy_column, has_room, lift, overlap, settle

__all__ = [
    "ARRIVING_IS_FULL",
    "DONE",
    "KEPT_IS_FULL",
    "Arrivals",
    "GroupOutcome",
    "close_group",
    "new_marks",
    "scan_groups",
]

KEPT, REDUNDANT = 1, 2

DONE, ARRIVING_IS_FULL, KEPT_IS_FULL = 0, 1, 2


class Arrivals(NamedTuple):
    """The relevant features of whole groups, or of parts of them, in order.

    Feature ``k`` is column ``column[k]`` of ``columns``, with the relevance
    ``score[k]``, the arrival ``arrival[k]`` and the group number ``group[k]``.
    """

    columns: Any
    column: np.ndarray
    score: np.ndarray
    arrival: np.ndarray
    group: np.ndarray


class GroupOutcome(NamedTuple):
    """What the scan decided, and where it stands.

    ``fate``, ``witness`` and ``overlap`` are by feature, from the arrival
    ``first`` on. The first ``n_events[0]`` of ``gone`` and ``gone_by`` list the
    arrivals that left earlier groups and the arrivals that caused it. ``open`` is
    the group now arriving, or -1, and how many of its features have been taken
    over among the kept, or -1 if it has not been compared with them.
    """

    first: int
    fate: np.ndarray
    witness: np.ndarray
    overlap: np.ndarray
    gone: np.ndarray
    gone_by: np.ndarray
    n_events: np.ndarray
    open: np.ndarray


class Marks(NamedTuple):
    """Working memory, by slot: no mark is left between calls."""

    is_gone: np.ndarray
    is_out: np.ndarray
    displaced: np.ndarray
    covered: np.ndarray


def new_marks(arriving: Kept, kept: Kept) -> Marks:
    """Working memory for as many slots as there are."""
    n_slots = max(arriving.live.size, kept.live.size)
    return Marks(
        is_gone=np.zeros(n_slots, np.bool_),
        is_out=np.zeros(n_slots, np.bool_),
        displaced=np.empty(n_slots, np.int64),
        covered=np.empty(n_slots),
    )


@lean
def _drop(outcome, arrival, witness, value):
    k = arrival - outcome.first
    outcome.fate[k] = REDUNDANT
    outcome.witness[k] = witness
    outcome.overlap[k] = value


@lean
def _put(columns, i, score, arrival, kept):
    """Add a column to the end of the kept ones."""
    slot = kept.size[1]
    copy_column(columns, i, kept.columns, slot, kept.used)
    kept.score[slot] = score
    kept.arrival[slot] = arrival
    kept.live[kept.size[0]] = slot
    kept.size[0] += 1
    kept.size[1] += 1
    register(kept.columns, kept.lookup, slot, score)


@lean
def _is_full(columns, i, kept):
    return kept.size[1] == kept.live.size or not has_room(
        columns, i, kept.columns, kept.used
    )


@lean
def _compact(kept, is_gone):
    """Forget the features in the slots that are marked, and clear the marks."""
    n = 0
    for position in range(kept.size[0]):
        slot = kept.live[position]
        if not is_gone[slot]:
            kept.live[n] = slot
            n += 1
        is_gone[slot] = False
    kept.size[0] = n


@lean
def _join(arrivals, k, arriving, rule, scratch, marks, outcome):
    """Steps 11 to 18: a feature along those of its group before it."""
    columns, i = arrivals.columns, arrivals.column[k]
    score, arrival = arrivals.score[k], arrivals.arrival[k]
    n_covered, is_out = 0, False
    settle(columns, i, scratch)
    for position in range(arriving.size[0]):
        slot = arriving.live[position]
        other = arriving.score[slot]
        if score == other and not rule.drops_ties:
            continue
        value = overlap(columns, i, arriving.columns, slot, scratch)
        if not reaches(value, score, other, rule):
            continue
        if other >= score:  # Step 11
            _drop(outcome, arrival, arriving.arrival[slot], value)
            is_out = True
            break
        marks.displaced[n_covered] = slot  # Step 16
        marks.covered[n_covered] = value
        n_covered += 1
    lift(columns, i, scratch)
    if n_covered and not (is_out and rule.is_deferred):
        for c in range(n_covered):
            slot = marks.displaced[c]
            marks.is_out[slot] = True
            _drop(outcome, arriving.arrival[slot], arrival, marks.covered[c])
        _compact(arriving, marks.is_out)
    if not is_out:
        _put(columns, i, score, arrival, arriving)


@lean
def _next_group(kept, position, ends):
    """The position after the last kept feature of the group at a position."""
    arrival = kept.arrival[kept.live[position]]
    low, high = 0, ends.size
    while low < high:
        middle = (low + high) // 2
        if ends[middle] <= arrival:
            low = middle + 1
        else:
            high = middle
    while position < kept.size[0] and kept.arrival[kept.live[position]] < ends[low]:
        position += 1
    return position


@lean
def _compare(arriving, kept, ends, rule, is_frozen, scratch, marks, outcome):
    """Steps 21 to 35: what is left of the arriving group along the kept groups.

    If ``is_frozen``, both lists stay as they were at the start: a feature that has
    been removed still removes others, though a newcomer leaves the kept group in
    which it met its witness, and of equally relevant ones the older goes.
    """
    columns = arriving.columns
    for b in range(arriving.size[0]):
        i = arriving.live[b]
        score, arrival = arriving.score[i], arriving.arrival[i]
        n_displaced, step, witness = 0, 0, -1
        n_listed, n_touched = -1, 0
        settle(columns, i, scratch)
        if not is_frozen:
            n_listed, n_touched = make_shortlist(columns, i, score, kept, rule)
        n_steps = kept.size[0] if n_listed < 0 else n_listed
        while step < n_steps:
            here = step
            slot = kept.live[here] if n_listed < 0 else kept.lookup.shortlist[here]
            step += 1
            if marks.is_gone[slot] and not is_frozen:
                continue
            other = kept.score[slot]
            if score == other and not rule.drops_ties:
                continue
            if n_listed < 0:
                value = overlap(columns, i, kept.columns, slot, scratch)
            else:
                value = overlap_known(columns, i, kept, slot, scratch)
            if not reaches(value, score, other, rule):
                continue
            if other > score or (other == score and not is_frozen):  # Step 26
                if not marks.is_out[i]:
                    _drop(outcome, arrival, kept.arrival[slot], value)
                marks.is_out[i] = True
                witness = slot
                if not is_frozen:
                    break
                step = _next_group(kept, here, ends)
            else:  # Step 22
                marks.displaced[n_displaced] = slot
                n_displaced += 1
        lift(columns, i, scratch)
        forget_touched(kept.lookup, n_touched)
        if not is_frozen:
            keep_pace(kept.lookup, kept.live, kept.size[0], witness)
        if marks.is_out[i] and rule.is_deferred:
            continue
        for d in range(n_displaced):
            slot = marks.displaced[d]
            if not marks.is_gone[slot]:
                marks.is_gone[slot] = True
                unregister(kept.columns, kept.lookup, slot)
                event = outcome.n_events[0]
                outcome.gone[event] = kept.arrival[slot]
                outcome.gone_by[event] = arrival
                outcome.n_events[0] = event + 1
    _compact(kept, marks.is_gone)
    _compact(arriving, marks.is_out)


@lean
def close_group(arriving, kept, ends, rule, is_frozen, scratch, marks, outcome):
    """Steps 20 to 38: compare the arriving group with the kept ones, and add it.

    Returns `DONE`, or `KEPT_IS_FULL` if ``kept`` has to grow first.
    """
    if outcome.open[1] < 0:
        _compare(arriving, kept, ends, rule, is_frozen, scratch, marks, outcome)
        outcome.open[1] = 0
    while outcome.open[1] < arriving.size[0]:  # Step 37
        i = arriving.live[outcome.open[1]]
        if _is_full(arriving.columns, i, kept):
            return KEPT_IS_FULL
        arrival = arriving.arrival[i]
        _put(arriving.columns, i, arriving.score[i], arrival, kept)
        outcome.fate[arrival - outcome.first] = KEPT
        outcome.open[1] += 1
    arriving.size[:] = 0
    arriving.used[:] = 0
    outcome.open[:] = -1
    return DONE


@lean
def scan_groups(
    arrivals, begin, arriving, kept, ends, rule, is_frozen, scratch, marks, outcome
):
    """Take features from ``begin`` on through Steps 9 to 38.

    The last group stays open, since more of it may come: `close_group` ends it.
    ``ends`` holds the arrival after the last of each group, in order. Returns the
    number of features dealt with, and `DONE` or what has to grow first.
    """
    for k in range(begin, arrivals.column.size):
        if arrivals.group[k] != outcome.open[0]:
            if outcome.open[0] >= 0:
                state = close_group(
                    arriving, kept, ends, rule, is_frozen, scratch, marks, outcome
                )
                if state != DONE:
                    return k, state
            outcome.open[0] = arrivals.group[k]
        if _is_full(arrivals.columns, arrivals.column[k], arriving):
            return k, ARRIVING_IS_FULL
        _join(arrivals, k, arriving, rule, scratch, marks, outcome)
    return arrivals.column.size, DONE
