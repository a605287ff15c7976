"""What saves time in the walk, and changes no decision.

*Candidates*: an index of sparse columns lists the kept ones that can matter to a
newcomer, which is usually none. *Ceilings*: upper bounds on overlaps, many at once,
from a matrix product in single precision. A bound may be loose but never wrong:
what it rules out could not have decided anything, and what it does not is computed
as ever. So the selection does not depend on it, nor on the order in which a matrix
product adds its terms.

Ceilings for the kept features of a moment ago can be computed in another thread,
while the features before are still being decided: who was kept then and is kept now
has a ceiling, and those that came in between get theirs later.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from featstream.jit import inner
from featstream.measures.storages.dispatch import (
    NEITHER,
    bound_of,
    list_candidates,
    overlap,
    reaches,
    storage_of,
    who_wins,
)
from featstream.protocols import IntArray
from featstream.selectors.saola.kept import Kept, Tuning

FIRST_BATCH = 64
_WHOLE_BLOCK = 2**40
_MANY = 256
_MANY_DEAD = 1.1
_WIDTH = 16
"""A matrix product is a fifth faster if its sizes are multiples of this."""

NO_CEILINGS = np.empty((0, 0), np.float32)


@inner
def find_candidates(newcomers, k, kept, rule):
    """How many kept features to visit, and whether they are on the short list.

    Exact, and only saves time: who is not on the list cannot be a witness of the
    newcomer, nor be displaced by it.
    """
    n_listed = list_candidates(
        newcomers.columns, newcomers.column[k], newcomers.score[k], kept, rule
    )
    return (kept.size[0], False) if n_listed < 0 else (n_listed, True)


@inner
def overlaps_enough(newcomers, k, kept, slot, is_listed, rule, scratch):
    """Whether one of two features makes the other redundant, and their overlap.

    The overlap is NaN where its bounds were enough to know. Exact: that only saves
    time.
    """
    score, kept_score = newcomers.score[k], kept.score[slot]
    if who_wins(kept_score, score, rule) == NEITHER:
        return False, np.nan
    column = kept.ceiling_column[slot]
    if column < newcomers.ceiling.shape[1]:
        ceiling, bound = newcomers.ceiling[k, column], bound_of(score, kept_score, rule)
        if ceiling < bound:
            return False, np.nan
        if ceiling - newcomers.slack > bound:
            return True, np.nan
    value = overlap(
        newcomers.columns, newcomers.column[k], kept, slot, is_listed, scratch
    )
    return reaches(value, score, kept_score, rule), value


class Snapshot(NamedTuple):
    """Kept features of some moment: their arrivals, increasing, and unit columns.

    There may be more unit columns than features, for even sizes.
    """

    arrival: IntArray
    unit: NDArray[np.float32]


class Ceilings(NamedTuple):
    """What newcomers' overlaps with the kept features are at most.

    ``bound[k, c]`` is for newcomer ``k``, whose unit column is ``unit[k]``, and the
    kept feature that was the ``arrival[c]``-th to arrive. An overlap can be ``error``
    below or above the product of unit columns.
    """

    unit: NDArray[np.float32]
    arrival: IntArray
    bound: NDArray[np.float32]
    error: float = 0.0

    def part(self, newcomers: slice) -> Ceilings:
        """Those of some of the newcomers."""
        return self._replace(unit=self.unit[newcomers], bound=self.bound[newcomers])

    @property
    def slack(self) -> float:
        """How far below its bound an overlap can be."""
        return 2.01 * self.error


def take_snapshot(kept: Kept, tuning: Tuning) -> Snapshot | None:
    """The kept features now; None where bounds would save nothing.

    A slot that is filled is never filled again, so the views stay what they are.
    """
    n_live, n_slots = (int(size) for size in kept.size)
    if storage_of(kept.columns).units is None or n_live < tuning.ceilings_from:
        return None
    if n_slots > _MANY and n_slots < _MANY_DEAD * n_live:
        return Snapshot(kept.arrival[:n_slots], kept.columns.unit[:n_slots])
    live = kept.live[:n_live]
    padded = np.resize(live, -(-n_live // _WIDTH) * _WIDTH)
    return Snapshot(kept.arrival[live], kept.columns.unit[padded])


def find_ceilings(
    columns: Any, which: IntArray, snapshot: Snapshot | None, tuning: Tuning
) -> Ceilings:
    """Bounds for the chosen columns; none at all where they would not pay."""
    units = storage_of(columns).units
    if snapshot is None or units is None or which.size < tuning.ceilings_from:
        nothing = np.empty((which.size, 0), np.float32)
        return Ceilings(nothing, np.empty(0, np.int64), nothing)
    unit, error = units(columns, which)
    bound = _bounds(unit, snapshot.unit, error)
    return Ceilings(unit, snapshot.arrival, bound, error)


def update_ceilings(
    found: Ceilings, columns: Any, which: IntArray, kept: Kept, tuning: Tuning
) -> Ceilings:
    """The bounds for those kept now, and their columns in ``kept.ceiling_column``."""
    if not found.arrival.size:
        found = find_ceilings(columns, which, take_snapshot(kept, tuning), tuning)
    n_known, n_slots = found.arrival.size, int(kept.size[1])
    if not n_known:
        return found
    arrival = kept.arrival[:n_slots]
    # Both increase, and who is kept now but was not then has arrived since.
    n_old = int(np.searchsorted(arrival, found.arrival[-1], "right"))
    kept.ceiling_column[:n_old] = np.searchsorted(found.arrival, arrival[:n_old])
    width = found.bound.shape[1]
    kept.ceiling_column[n_old:n_slots] = np.arange(width, width + n_slots - n_old)
    if n_old == n_slots:
        return found
    later = _bounds(found.unit, kept.columns.unit[n_old:n_slots], found.error)
    return found._replace(bound=np.hstack([found.bound, later]))


def next_batch(batch: int, n_added: int, kept: Kept, tuning: Tuning) -> int:
    """How many newcomers to scan before bounds are brought up to date again.

    Few while many of them are kept, as at the start of a stream: there are no
    bounds for those that came in since.
    """
    if storage_of(kept.columns).units is None:
        return _WHOLE_BLOCK
    if n_added > tuning.ceilings_from + kept.size[0] // 8:
        return FIRST_BATCH
    return min(2 * batch, _WHOLE_BLOCK)


def _bounds(
    unit: NDArray[np.float32], kept_unit: NDArray[np.float32], error: float
) -> NDArray[np.float32]:
    found: NDArray[np.float32] = unit @ kept_unit.T
    np.abs(found, out=found)
    found += np.float32(error)
    return found
