"""Algorithm 1: the walk of a newcomer along the kept features.

Step numbers are those of Algorithm 1 in Yu, Wu, Ding and Pei, "Scalable and
Accurate Online Feature Selection for Big Data". Steps 5 to 8, the relevance of a
newcomer, are the measure's: `SAOLA` calls them for a whole block.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from featstream.jit import inner, kernel
from featstream.measures.storages.dispatch import (
    EARLIER,
    NEITHER,
    bound_of,
    by_rule,
    end_walk,
    has_room,
    is_independent,
    list_candidates,
    load_newcomer,
    overlap,
    reaches,
    unload_newcomer,
    who_wins,
)
from featstream.protocols import FloatArray, IntArray
from featstream.selectors.saola.kept import add_column, remove_column

IRRELEVANT, KEPT, REDUNDANT, DISPLACED, OVER_LIMIT = range(5)
NO_CEILING = np.empty((0, 0), np.float32)


class Newcomers(NamedTuple):
    """The relevant features of a block, in order of arrival.

    The correlation of newcomer ``k`` with the kept feature of ceiling column ``c``
    differs from ``ceiling[k, c]`` by at most ``slack``.
    """

    columns: Any
    column: np.ndarray  # position of each newcomer among the columns
    score: np.ndarray  # its relevance
    arrival: np.ndarray  # its position in the stream
    ceiling: np.ndarray = NO_CEILING
    slack: float = 0.0

    def part(self, which: Any) -> Newcomers:
        """Some of the newcomers, without ceilings."""
        own = self.column[which], self.score[which], self.arrival[which]
        return Newcomers(self.columns, *own)


class Scored(NamedTuple):
    """A block after Steps 5 to 8: what is known before any of it is decided."""

    start: int
    scores: FloatArray
    p_values: FloatArray | None  # if the threshold is corrected
    relevant: IntArray  # positions of the features that may be relevant
    newcomers: Newcomers | None  # the features that take part, if there are any


class Outcome(NamedTuple):
    """What the scan decided about the features from the arrival ``first`` on."""

    first: int
    fate: np.ndarray  # one entry per feature, as of the next two
    witness: np.ndarray
    overlap: np.ndarray
    gone: np.ndarray  # arrivals that left the kept set; n_events[0] of them
    gone_by: np.ndarray  # the arrivals that caused it
    gone_fate: np.ndarray
    n_events: np.ndarray


def new_outcome(first: int, n_features: int, n_events: int) -> Outcome:
    """Room for the decisions about some features, and for those that can leave."""
    return Outcome(
        first=first,
        fate=np.full(n_features, IRRELEVANT, np.uint8),
        witness=np.full(n_features, -1),
        overlap=np.full(n_features, np.nan),
        gone=np.empty(n_events, np.int64),
        gone_by=np.empty(n_events, np.int64),
        gone_fate=np.empty(n_events, np.uint8),
        n_events=np.zeros(1, np.int64),
    )


@inner
def walk(newcomers, k, kept, rule, scratch, displaced):
    """Newcomer ``k`` along the kept features, in order of arrival.

    Returns the slot of the witness or -1, what makes the newcomer redundant (NaN
    where there was no need to know it), and how many slots the newcomer displaced
    before the walk ended; they are in ``displaced``.
    """
    i, score, length = newcomers.column[k], newcomers.score[k], kept.size[0]
    witness, value, n_displaced = -1, np.nan, 0
    # Features that are not listed can neither be a witness nor be displaced.
    n_listed = list_candidates(newcomers.columns, i, score, kept, kept.index, rule)
    is_listed = n_listed >= 0
    n_steps = n_listed if is_listed else length
    for step in range(n_steps):  # Step 9: for each kept feature Y
        slot = kept.index.shortlist[step] if is_listed else kept.live[step]
        winner = who_wins(kept.score[slot], score, rule)
        if winner == NEITHER:
            continue
        is_redundant, value = makes_redundant(
            newcomers, k, kept, slot, winner, is_listed, rule, scratch
        )
        if is_redundant and winner == EARLIER:
            witness, length = slot, step + 1  # Step 11: the newcomer is redundant
            break
        if is_redundant:
            displaced[n_displaced] = slot  # Step 16: Y gives way
            n_displaced += 1
    end_walk(newcomers.columns, kept.index)
    if witness < 0 or not is_listed:  # whether an index pays depends on the mean
        kept.index.mean_walk[0] += (length - kept.index.mean_walk[0]) / 64.0
    return witness, value, n_displaced


def _bound(newcomers, k, kept, slot, winner, is_listed, rule, scratch):
    """By the paper's bound: the two overlap enough."""
    score, kept_score = newcomers.score[k], kept.score[slot]
    column = kept.ceiling_column[slot]
    if column < newcomers.ceiling.shape[1]:
        near = abs(np.float64(newcomers.ceiling[k, column]))
        bound = bound_of(score, kept_score, rule)
        if near + newcomers.slack < bound:
            return False, np.nan
        if near - newcomers.slack > bound:
            return True, np.nan
    i = newcomers.column[k]
    value = overlap(newcomers.columns, i, kept, slot, is_listed, scratch)
    return reaches(value, score, kept_score, rule), value


def _conditional(newcomers, k, kept, slot, winner, is_listed, rule, scratch):
    """By the test that the bound approximates: the loser says nothing more."""
    column, near, slack = kept.ceiling_column[slot], 0.0, np.inf
    if column < newcomers.ceiling.shape[1]:
        near, slack = np.float64(newcomers.ceiling[k, column]), newcomers.slack
    least = min(newcomers.score[k], kept.score[slot])
    i, known = newcomers.column[k], (near, slack, least, is_listed)
    return is_independent(
        newcomers.columns, i, kept, slot, winner, known, rule, scratch
    )


makes_redundant = by_rule(_bound, _conditional)
"""Whether the winner of two features makes the other redundant, and by what.

That is their overlap, or the p-value of the other one given the winner; NaN where
bounds on it were enough to know. Exact: the bounds only save time.
"""


@kernel
def scan(newcomers, begin, kept, rule, scratch, displaced, outcome):
    """Take the newcomers from ``begin`` on through Steps 9 to 20.

    Returns the number decided: all of them, or fewer if the pools of ``kept`` have
    to grow first. ``displaced`` is a buffer for as many slots as ``kept`` has, and
    ``outcome`` has room for all that can leave.
    """
    columns = newcomers.columns
    for k in range(begin, newcomers.column.size):
        i, arrival = newcomers.column[k], newcomers.arrival[k]
        if kept.size[1] == kept.live.size or not has_room(columns, i, kept):
            return k
        load_newcomer(columns, i, scratch)
        slot, value, n_displaced = walk(newcomers, k, kept, rule, scratch, displaced)
        unload_newcomer(columns, i, scratch)
        if slot < 0 or not rule.is_deferred:
            for d in range(n_displaced):  # Step 17
                remove_column(kept, displaced[d])
                record_gone(outcome, kept.arrival[displaced[d]], arrival, DISPLACED)
        feature = arrival - outcome.first
        outcome.witness[feature] = kept.arrival[slot] if slot >= 0 else -1
        outcome.overlap[feature] = value if slot >= 0 else np.nan
        outcome.fate[feature] = REDUNDANT if slot >= 0 else KEPT
        if slot >= 0:  # Step 12
            continue
        slot = add_column(columns, i, newcomers.score[k], arrival, kept)  # Step 20
        kept.ceiling_column[slot] = newcomers.ceiling.shape[1]
        if kept.size[0] > rule.limit:  # the top k, after Step 20
            drop_least_relevant(kept, arrival, outcome)
    return newcomers.column.size


@inner
def record_gone(outcome, arrival, by, fate):
    """Record that a feature has left the kept ones."""
    event = outcome.n_events[0]
    outcome.gone[event] = arrival
    outcome.gone_by[event] = by
    outcome.gone_fate[event] = fate
    outcome.n_events[0] = event + 1


@inner
def drop_least_relevant(kept, arrival, outcome):
    """Drop the least relevant kept feature: with a newcomer there are too many."""
    least = _least_relevant(kept.score, kept.live, kept.size[0])
    remove_column(kept, least)
    record_gone(outcome, kept.arrival[least], arrival, OVER_LIMIT)


@inner
def _least_relevant(score, live, n_live):
    """Slot of the least relevant kept feature; of equals, the latest."""
    least = live[0]
    for position in range(1, n_live):
        if score[live[position]] <= score[least]:
            least = live[position]
    return least
