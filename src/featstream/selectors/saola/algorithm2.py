"""Algorithm 2: groups of features, pruned within and between.

Step numbers are those of Algorithm 2 in Yu, Wu, Ding and Pei, "Scalable and
Accurate Online Feature Selection for Big Data".

A pair of features is decided once: the less relevant one goes if they overlap
enough and neither has gone before. Hence the nesting of the printed loops does
not matter, only the order of the pairs that share a feature: each feature of the
arriving group walks along those before it in the group (Steps 10 to 19), and then
each that is left walks along the kept ones, oldest group first (Steps 21 to 35).
Both are the walk of Algorithm 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from featstream.jit import inner, kernel
from featstream.measures.storages.dispatch import (
    EARLIER,
    LATER,
    has_room,
    load_newcomer,
    unload_newcomer,
)
from featstream.selectors.saola.algorithm1 import (
    DISPLACED,
    KEPT,
    REDUNDANT,
    Newcomers,
    drop_least_relevant,
    makes_redundant,
    record_gone,
    walk,
)
from featstream.selectors.saola.kept import Kept, add_column, remove_all, remove_column


class Arriving(NamedTuple):
    """The arriving group: what is left of it, and the same as newcomers by slot."""

    left: Kept
    newcomers: Newcomers

    @classmethod
    def of(cls, left: Kept) -> Arriving:
        """What is left of a group, also as it comes to the kept features."""
        slots = np.arange(left.live.size)
        return cls(left, Newcomers(left.columns, slots, left.score, left.arrival))


class Workspace(NamedTuple):
    """Buffers for as many slots as either set has, and where the scan stands."""

    displaced: np.ndarray
    is_gone: np.ndarray  # all false
    n_added: np.ndarray  # features decided of a group that is being closed, or -1


@inner
def _drop(outcome, arrival, witness, value):
    feature = arrival - outcome.first
    outcome.fate[feature] = REDUNDANT
    outcome.witness[feature] = witness
    outcome.overlap[feature] = value


@inner
def _join(newcomers, k, left, rule, scratch, work, outcome):
    """Steps 11 to 18: a feature along those of its group before it."""
    columns, i, arrival = newcomers.columns, newcomers.column[k], newcomers.arrival[k]
    load_newcomer(columns, i, scratch)
    slot, value, n_displaced = walk(newcomers, k, left, rule, scratch, work.displaced)
    if slot < 0 or not rule.is_deferred:
        for d in range(n_displaced):  # Step 16
            gone = work.displaced[d]
            _, shared = makes_redundant(
                newcomers, k, left, gone, LATER, False, rule, scratch
            )
            _drop(outcome, left.arrival[gone], arrival, shared)
            remove_column(left, gone)
    unload_newcomer(columns, i, scratch)
    if slot >= 0:  # Step 11
        _drop(outcome, arrival, left.arrival[slot], value)
    else:
        add_column(columns, i, newcomers.score[k], arrival, left)


@inner
def _compare(arriving, kept, rule, scratch, work, outcome):
    """Steps 21 to 35: what is left of the arriving group along the kept groups."""
    newcomers, left = arriving.newcomers, arriving.left
    for position in range(left.size[0]):
        k = left.live[position]
        load_newcomer(newcomers.columns, k, scratch)
        slot, value, n_displaced = walk(
            newcomers, k, kept, rule, scratch, work.displaced
        )
        unload_newcomer(newcomers.columns, k, scratch)
        if slot < 0 or not rule.is_deferred:
            for d in range(n_displaced):  # Step 22
                gone = work.displaced[d]
                record_gone(outcome, kept.arrival[gone], left.arrival[k], DISPLACED)
                remove_column(kept, gone)
        if slot >= 0:  # Step 26
            _drop(outcome, left.arrival[k], kept.arrival[slot], value)


@inner
def _compare_as_library(arriving, kept, ends, rule, scratch, work, outcome):
    """The same with both lists as they were at the start: the library's reading.

    A feature that has been removed still removes others; but a newcomer continues
    with the next kept group where it meets its witness. Of equally relevant features
    the older one goes.
    """
    newcomers, left = arriving.newcomers, arriving.left
    for b in range(left.size[0]):
        k = left.live[b]
        score, arrival = left.score[k], left.arrival[k]
        group, skipped = 0, -1
        load_newcomer(newcomers.columns, k, scratch)
        for position in range(kept.size[0]):
            slot = kept.live[position]
            while ends[group] <= kept.arrival[slot]:
                group += 1
            if group == skipped:
                continue
            winner = EARLIER if kept.score[slot] > score else LATER
            is_redundant, value = makes_redundant(
                newcomers, k, kept, slot, winner, False, rule, scratch
            )
            if not is_redundant:
                continue
            if winner == EARLIER:
                skipped = group
                if outcome.fate[arrival - outcome.first] != REDUNDANT:
                    _drop(outcome, arrival, kept.arrival[slot], value)
            elif not work.is_gone[slot]:
                work.is_gone[slot] = True
                record_gone(outcome, kept.arrival[slot], arrival, DISPLACED)
        unload_newcomer(newcomers.columns, k, scratch)
    for position in range(kept.size[0] - 1, -1, -1):
        slot = kept.live[position]
        if work.is_gone[slot]:
            work.is_gone[slot] = False
            remove_column(kept, slot)


@inner
def _close(arriving, kept, ends, rule, follows_library, scratch, work, outcome):
    """Steps 20 to 38: compare the arriving group with the kept ones, and add it.

    Returns whether that is done; it is not if ``kept`` has to grow first.
    """
    left = arriving.left
    if work.n_added[0] < 0:
        if follows_library:
            _compare_as_library(arriving, kept, ends, rule, scratch, work, outcome)
        else:
            _compare(arriving, kept, rule, scratch, work, outcome)
        work.n_added[0] = 0
    while work.n_added[0] < left.size[0]:  # Step 37
        k = left.live[work.n_added[0]]
        feature = left.arrival[k] - outcome.first
        if outcome.fate[feature] != REDUNDANT:
            if kept.size[1] == kept.live.size or not has_room(left.columns, k, kept):
                return False
            add_column(left.columns, k, left.score[k], left.arrival[k], kept)
            outcome.fate[feature] = KEPT
        work.n_added[0] += 1
    newest = kept.live[max(kept.size[0] - 1, 0)]
    while kept.size[0] > rule.limit:  # the top k, after Step 38
        drop_least_relevant(kept, kept.arrival[newest], outcome)
    remove_all(left)
    work.n_added[0] = -1
    return True


@kernel
def scan_groups(
    newcomers,
    group,
    begin,
    arriving,
    kept,
    ends,
    rule,
    follows_library,
    scratch,
    work,
    outcome,
):
    """Take newcomers from ``begin`` on through Steps 9 to 38.

    Newcomer ``k`` is of group ``group[k]``, and ``group`` has one entry more: that
    of the newcomer to follow, or -1. A group is closed when another follows.
    ``ends`` holds the arrival after the last of each group, in order.
    ``arriving`` has room for any one of the groups.

    Returns the number of newcomers decided: all of them, or fewer if ``kept``
    has to grow before a group can be closed.
    """
    for k in range(begin, newcomers.column.size):
        if work.n_added[0] < 0:
            _join(newcomers, k, arriving.left, rule, scratch, work, outcome)
        if group[k + 1] != group[k] and not _close(
            arriving, kept, ends, rule, follows_library, scratch, work, outcome
        ):
            return k
    return newcomers.column.size
