"""Upper bounds on overlaps, many at once and cheaply, before any is computed.

A bound may be loose but never wrong: what it rules out could not have decided
anything, and what it does not is computed as ever. So the selection does not
depend on it, nor on the order in which a matrix product adds its terms.

Bounds against the kept features of a moment ago can be had in another thread,
while the features before are still being decided about: whoever was kept then
and is kept now has its bound, and those that came in between get theirs later.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from featstream.kernels.moments import DenseMoments, write_units
from featstream.kernels.scan import Kept
from featstream.protocols import IntArray

__all__ = [
    "FIRST_BATCH",
    "Ceilings",
    "Snapshot",
    "ceilings",
    "next_batch",
    "slack_of",
    "take_snapshot",
    "up_to_date",
]

FIRST_BATCH = 64
_WHOLE_BLOCK = 2**40
_FEW = 4
_MANY = 256
_MANY_DEAD = 1.1
_WIDTH = 16
"""A matrix product is a fifth faster if its sizes are multiples of this."""


class Snapshot(NamedTuple):
    """Kept features of some moment: their arrivals, increasing, and unit columns.

    There may be more unit columns than features, for even sizes.
    """

    arrival: IntArray
    unit: NDArray[np.float32]


class Ceilings(NamedTuple):
    """What newcomers' overlaps with the kept features are at most.

    ``bound[k, h]`` is for newcomer ``k``, whose unit column is ``unit[k]``, and the
    kept feature that was the ``arrival[h]``-th to arrive.
    """

    unit: NDArray[np.float32]
    arrival: IntArray
    bound: NDArray[np.float32]

    def part(self, newcomers: slice) -> Ceilings:
        """Those of some of the newcomers."""
        return Ceilings(self.unit[newcomers], self.arrival, self.bound[newcomers])


def take_snapshot(kept: Kept) -> Snapshot | None:
    """The kept features now; None where there is nothing to be had from bounds.

    A slot that is filled is never filled again, so the views stay what they are.
    """
    n_live, n_slots = (int(size) for size in kept.size)
    if not isinstance(kept.columns, DenseMoments) or n_live < _FEW:
        return None
    if n_slots > _MANY and n_slots < _MANY_DEAD * n_live:
        return Snapshot(kept.arrival[:n_slots], kept.columns.unit[:n_slots])
    live = kept.live[:n_live]
    padded = np.resize(live, -(-n_live // _WIDTH) * _WIDTH)
    return Snapshot(kept.arrival[live], kept.columns.unit[padded])


def ceilings(columns: Any, which: IntArray, snapshot: Snapshot | None) -> Ceilings:
    """Bounds for the chosen columns; none at all where they would not pay."""
    if snapshot is None or which.size < _FEW:
        nothing = np.empty((which.size, 0), np.float32)
        return Ceilings(nothing, np.empty(0, np.int64), nothing)
    unit = np.empty((which.size, columns.values.shape[1]), np.float32)
    write_units(columns, which, unit)
    return Ceilings(unit, snapshot.arrival, _bounds(unit, snapshot.unit))


def up_to_date(
    found: Ceilings, columns: Any, which: IntArray, kept: Kept
) -> NDArray[np.float32]:
    """The bounds for those kept now, with ``kept.hint`` set to their columns."""
    if not found.arrival.size:
        found = ceilings(columns, which, take_snapshot(kept))
    n_known, n_slots = found.arrival.size, int(kept.size[1])
    if not n_known:
        return found.bound
    arrival = kept.arrival[:n_slots]
    # Both increase, and who is kept now but was not then has arrived since.
    n_old = int(np.searchsorted(arrival, found.arrival[-1], "right"))
    kept.hint[:n_old] = np.searchsorted(found.arrival, arrival[:n_old])
    width = found.bound.shape[1]
    kept.hint[n_old:n_slots] = np.arange(width, width + n_slots - n_old)
    if n_old == n_slots:
        return found.bound
    later = _bounds(found.unit, kept.columns.unit[n_old:n_slots])
    return np.hstack([found.bound, later])


def next_batch(batch: int, n_added: int, kept: Kept) -> int:
    """How many newcomers to scan before bounds are brought up to date again.

    Few while many of them are kept, as at the start of a stream: there are no
    bounds for those that came in since.
    """
    if not isinstance(kept.columns, DenseMoments):
        return _WHOLE_BLOCK
    if n_added > _FEW + kept.size[0] // 8:
        return FIRST_BATCH
    return min(2 * batch, _WHOLE_BLOCK)


def slack_of(columns: Any) -> float:
    """How far below its bound an overlap can be."""
    if not isinstance(columns, DenseMoments):
        return np.inf
    return 2.01 * _error(columns.values.shape[1])


def _bounds(
    unit: NDArray[np.float32], kept_unit: NDArray[np.float32]
) -> NDArray[np.float32]:
    found: NDArray[np.float32] = unit @ kept_unit.T
    np.abs(found, out=found)
    found += np.float32(_error(unit.shape[1]))
    return found


def _error(n: int) -> float:
    """How wrong a product of unit vectors of ``n`` values can be.

    However n products are summed in single precision, the error is below n units
    in the last place, and rounding the vectors adds a few; twice that is safe, and
    far below any relevance that matters.
    """
    return (2 * n + 16) * 2.0**-24
