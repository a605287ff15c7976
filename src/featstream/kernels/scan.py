"""Algorithm 1: the walk of a newcomer along the kept features.

Step numbers are those of Algorithm 1 in Yu, Wu, Ding and Pei, "Scalable and
Accurate Online Feature Selection for Big Data".
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from featstream.kernels._jit import jit
from featstream.kernels.storage import copy_column, has_room, lift, overlap, settle

__all__ = ["Kept", "Newcomers", "Outcome", "Rule", "scan", "walk"]

KEPT, REDUNDANT, DISPLACED, OVER_LIMIT = 1, 2, 3, 4


class Rule(NamedTuple):
    """The options of the algorithm, as the kernel wants them.

    Attributes
    ----------
    uses_max_bound : bool
        SAOLA-max: overlap must reach the larger of the two relevances.
    needs_excess : bool
        Overlap must exceed its bound instead of reaching it.
    drops_ties : bool
        Of two equally relevant features the earlier may remove the later.
    is_deferred : bool
        A newcomer that is discarded displaces nothing.
    limit : int
        Keep at most so many features.
    """

    uses_max_bound: bool
    needs_excess: bool
    drops_ties: bool
    is_deferred: bool
    limit: int


class Kept(NamedTuple):
    """The kept features in slots that fill in order of arrival.

    ``live[:size[0]]`` are the slots in use, ``size[1]`` is the next free slot;
    ``used`` says how much of each pool of ``columns`` is taken. ``hint`` is the
    column of a slot in the ceilings of the newcomers, where it has one.
    """

    columns: Any
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


class Newcomers(NamedTuple):
    """The relevant features of a block, in order of arrival.

    Newcomer ``k`` is column ``column[k]`` of ``columns``; ``score`` is its
    relevance and ``arrival`` its position in the stream. Its overlap with the
    kept feature of hint ``h`` is at most ``ceiling[k, h]``.
    """

    columns: Any
    column: np.ndarray
    score: np.ndarray
    arrival: np.ndarray
    ceiling: np.ndarray


@jit
def _reaches(value, bound, rule):
    return value > bound if rule.needs_excess else value >= bound


@jit
def walk(newcomers, k, kept, rule, scratch, displaced):
    """Newcomer ``k`` along the kept features, in arrival order.

    Returns the slot of the witness or -1, its overlap, and how many of
    ``kept.live`` the newcomer displaced before the walk ended; their positions
    are in ``displaced``.
    """
    columns, i, score = newcomers.columns, newcomers.column[k], newcomers.score[k]
    n_ceilings = newcomers.ceiling.shape[1]
    n_displaced = 0
    for position in range(kept.size[0]):
        slot = kept.live[position]
        kept_score = kept.score[slot]
        if score == kept_score and not rule.drops_ties:
            continue  # neither Step 11 nor Step 16 can hold
        bound = min(score, kept_score)
        if rule.uses_max_bound:
            bound = max(score, kept_score)
        hint = kept.hint[slot]
        if hint < n_ceilings and newcomers.ceiling[k, hint] < bound:
            continue
        value = overlap(columns, i, kept.columns, slot, scratch)
        if not _reaches(value, bound, rule):
            continue
        if kept_score >= score:  # Step 11: the newcomer is redundant
            return slot, value, n_displaced
        displaced[n_displaced] = position  # Step 16: Y gives way
        n_displaced += 1
    return -1, 0.0, n_displaced


@jit
def _leave(kept, position):
    """Take the feature at a position out of the kept ones."""
    for p in range(position, kept.size[0] - 1):
        kept.live[p] = kept.live[p + 1]
    kept.size[0] -= 1


@jit
def _record(outcome, arrival, by, fate):
    event = outcome.n_events[0]
    outcome.gone[event] = arrival
    outcome.gone_by[event] = by
    outcome.gone_fate[event] = fate
    outcome.n_events[0] = event + 1


@jit
def _least_relevant(kept):
    """Position of the least relevant kept feature; of equals, the latest."""
    least = 0
    for p in range(1, kept.size[0]):
        if kept.score[kept.live[p]] <= kept.score[kept.live[least]]:
            least = p
    return least


@jit
def scan(newcomers, begin, kept, rule, scratch, outcome):
    """Take the newcomers from ``begin`` on through Steps 9 to 20.

    Returns the number dealt with: all of them, or fewer if the pools of
    ``kept`` or the lists of ``outcome`` have to grow first.
    """
    columns = newcomers.columns
    displaced = np.empty(kept.live.size, np.int64)
    for k in range(begin, newcomers.column.size):
        i, arrival = newcomers.column[k], newcomers.arrival[k]
        if (
            kept.size[1] == kept.live.size
            or outcome.n_events[0] + kept.size[0] >= outcome.gone.size
            or not has_room(columns, i, kept.columns, kept.used)
        ):
            return k
        settle(columns, i, scratch)
        slot, value, n_displaced = walk(newcomers, k, kept, rule, scratch, displaced)
        lift(columns, i, scratch)
        if slot < 0 or not rule.is_deferred:
            for d in range(n_displaced - 1, -1, -1):
                gone = kept.live[displaced[d]]
                _leave(kept, displaced[d])
                _record(outcome, kept.arrival[gone], arrival, DISPLACED)
        if slot >= 0:
            outcome.fate[k] = REDUNDANT
            outcome.witness[k] = kept.arrival[slot]
            outcome.overlap[k] = value
            continue
        slot = kept.size[1]
        copy_column(columns, i, kept.columns, slot, kept.used)
        kept.score[slot] = newcomers.score[k]
        kept.hint[slot] = newcomers.ceiling.shape[1]
        kept.arrival[slot] = arrival
        kept.live[kept.size[0]] = slot
        kept.size[0] += 1
        kept.size[1] += 1
        outcome.fate[k] = KEPT
        if kept.size[0] > rule.limit:  # top k after Step 20
            least = _least_relevant(kept)
            gone = kept.arrival[kept.live[least]]
            _leave(kept, least)
            _record(outcome, gone, arrival, OVER_LIMIT)
    return newcomers.column.size
