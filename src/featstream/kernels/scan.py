"""Algorithm 1: the walk of a newcomer along the kept features.

Step numbers are those of Algorithm 1 in Yu, Wu, Ding and Pei, "Scalable and
Accurate Online Feature Selection for Big Data".
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from featstream.jit import inner, lean
from featstream.kernels.index import RowIndex, forget_touched, is_full, keep_pace
from featstream.kernels.rule import bound_of, reaches
from featstream.kernels.shortlist import (
    make_shortlist,
    overlap_known,
    register,
    unregister,
)
from featstream.kernels.storage import copy_column, has_room, lift, overlap, settle

__all__ = ["Kept", "Newcomers", "Outcome", "can_take", "leave", "scan", "walk"]

KEPT, REDUNDANT, DISPLACED, OVER_LIMIT = 1, 2, 3, 4


class Kept(NamedTuple):
    """The kept features in slots that fill in order of arrival.

    ``live[:size[0]]`` are the slots in use, ``size[1]`` is the next free slot;
    ``used`` says how much of each pool of ``columns`` is taken. ``hint`` is the
    column of a slot in the ceilings of the newcomers, where it has one.
    """

    columns: Any
    lookup: RowIndex
    score: np.ndarray
    arrival: np.ndarray
    hint: np.ndarray
    live: np.ndarray
    size: np.ndarray
    used: np.ndarray


class Outcome(NamedTuple):
    """What the scan decided.

    ``fate``, ``witness`` and ``overlap`` are by newcomer; the first
    ``n_events[0]`` of ``gone`` and ``gone_by`` list the arrivals that left the
    kept set and the arrival that caused it, ``gone_fate`` how.
    """

    fate: np.ndarray
    witness: np.ndarray
    overlap: np.ndarray
    gone: np.ndarray
    gone_by: np.ndarray
    gone_fate: np.ndarray
    n_events: np.ndarray

    def part(self, newcomers: slice) -> Outcome:
        """The same for some of the newcomers."""
        return self._replace(
            fate=self.fate[newcomers],
            witness=self.witness[newcomers],
            overlap=self.overlap[newcomers],
        )


class Newcomers(NamedTuple):
    """The relevant features of a block, in order of arrival.

    Newcomer ``k`` is column ``column[k]`` of ``columns``; ``score`` is its
    relevance and ``arrival`` its position in the stream. Its overlap with the
    kept feature of hint ``h`` is at most ``ceiling[k, h]``, and at least that
    less ``slack``.
    """

    columns: Any
    column: np.ndarray
    score: np.ndarray
    arrival: np.ndarray
    ceiling: np.ndarray
    slack: float


@inner
def walk(newcomers, k, kept, rule, scratch, displaced):
    """Newcomer ``k`` along the kept features that can matter, in arrival order.

    Returns the slot of the witness or -1, its overlap (NaN where there was no need
    to know it), and how many slots the newcomer displaced before the walk ended;
    they are in ``displaced``.
    """
    columns, i, score = newcomers.columns, newcomers.column[k], newcomers.score[k]
    n_ceilings = newcomers.ceiling.shape[1]
    n_listed, n_touched = make_shortlist(columns, i, score, kept, rule)
    n_steps = kept.size[0] if n_listed < 0 else n_listed
    witness, value, n_displaced = -1, 0.0, 0
    for step in range(n_steps):
        slot = kept.live[step] if n_listed < 0 else kept.lookup.shortlist[step]
        kept_score = kept.score[slot]
        if score == kept_score and not rule.drops_ties:
            continue  # neither Step 11 nor Step 16 can hold
        hint, is_certain = kept.hint[slot], False
        if hint < n_ceilings:
            ceiling = newcomers.ceiling[k, hint]
            bound = bound_of(score, kept_score, rule)
            if ceiling < bound:
                continue
            is_certain = ceiling - newcomers.slack > bound
        if is_certain:
            value = np.nan
        elif n_listed < 0:
            value = overlap(columns, i, kept.columns, slot, scratch)
        else:
            value = overlap_known(columns, i, kept, slot, scratch)
        if not (is_certain or reaches(value, score, kept_score, rule)):
            continue
        if kept_score >= score:  # Step 11: the newcomer is redundant
            witness = slot
            break
        displaced[n_displaced] = slot  # Step 16: Y gives way
        n_displaced += 1
    forget_touched(kept.lookup, n_touched)
    keep_pace(kept.lookup, kept.live, kept.size[0], witness)
    return witness, value, n_displaced


@inner
def leave(kept, slot):
    """Take a feature out of the kept ones."""
    unregister(kept.columns, kept.lookup, slot)
    live, n_kept = kept.live, kept.size[0]
    position = n_kept - 1
    follower = live[position]
    while follower != slot:
        position -= 1
        live[position], follower = follower, live[position]
    kept.size[0] = n_kept - 1


@inner
def _record(outcome, arrival, by, fate):
    event = outcome.n_events[0]
    outcome.gone[event] = arrival
    outcome.gone_by[event] = by
    outcome.gone_fate[event] = fate
    outcome.n_events[0] = event + 1


@inner
def _least_relevant(kept):
    """Slot of the least relevant kept feature; of equals, the latest."""
    least = kept.live[0]
    for p in range(1, kept.size[0]):
        if kept.score[kept.live[p]] <= kept.score[least]:
            least = kept.live[p]
    return least


@inner
def can_take(columns, i, kept):
    """Whether there is room for a column in all pools of the kept ones."""
    return (
        kept.size[1] < kept.live.size
        and has_room(columns, i, kept.columns, kept.used)
        and not is_full(kept.lookup)
    )


@lean
def scan(newcomers, begin, kept, rule, scratch, displaced, outcome):
    """Take the newcomers from ``begin`` on through Steps 9 to 20.

    Returns the number dealt with: all of them, or fewer if the pools of ``kept``
    have to grow first. ``displaced`` is working memory for as many slots as
    ``kept`` has, and ``outcome`` has room for all that can leave.
    """
    columns = newcomers.columns
    for k in range(begin, newcomers.column.size):
        i, arrival = newcomers.column[k], newcomers.arrival[k]
        if not can_take(columns, i, kept):
            return k
        settle(columns, i, scratch)
        slot, value, n_displaced = walk(newcomers, k, kept, rule, scratch, displaced)
        lift(columns, i, scratch)
        if slot < 0 or not rule.is_deferred:
            for d in range(n_displaced):
                leave(kept, displaced[d])
                _record(outcome, kept.arrival[displaced[d]], arrival, DISPLACED)
        if slot >= 0:
            outcome.fate[k] = REDUNDANT
            outcome.witness[k] = kept.arrival[slot]
            outcome.overlap[k] = value
            continue
        slot = kept.size[1]
        copy_column(columns, i, kept.columns, slot, kept.used)
        kept.score[slot] = newcomers.score[k]
        kept.hint[slot] = newcomers.ceiling.shape[1]
        register(kept.columns, kept.lookup, slot, newcomers.score[k])
        kept.arrival[slot] = arrival
        kept.live[kept.size[0]] = slot
        kept.size[0] += 1
        kept.size[1] += 1
        outcome.fate[k] = KEPT
        if kept.size[0] > rule.limit:  # top k after Step 20
            least = _least_relevant(kept)
            leave(kept, least)
            _record(outcome, kept.arrival[least], arrival, OVER_LIMIT)
    return newcomers.column.size
