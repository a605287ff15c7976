"""Ceilings: what correlations are near to, many at once, before any is computed.

They come from a matrix product in single precision, save time, and change no
decision. A bound may be loose but never wrong: what it rules out could not have
decided anything, and what it does not is computed exactly. So the selection does not
depend on it, nor on the order in which a matrix product adds its terms.

Ceilings for the kept features of a moment ago can be computed in another thread,
while the features before are still being decided. Features that were kept then and
are kept now have ceilings; those that came in between get theirs later.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from featstream.measures.storages.dispatch import Rule, storage_of
from featstream.protocols import BoolArray, FloatArray, IntArray
from featstream.selectors.saola.algorithm1 import Newcomers
from featstream.selectors.saola.kept import Kept, Tuning

FIRST_BATCH = 64
_WHOLE_BLOCK = 2**40
_MANY_DEAD = 1.1
_MOST_OPEN = 0.75
"""Above this share it costs more to copy the newcomers without a witness."""

_WIDTH = 8
"""A matrix product takes as long as one whose size is the next multiple of this."""


class Snapshot(NamedTuple):
    """The features that were kept at some moment."""

    arrival: IntArray  # increasing
    unit: NDArray[np.float32]  # unit columns; perhaps more, for even sizes
    score: FloatArray  # of each unit column: relevance, or -inf if it is gone


class Ceilings(NamedTuple):
    """Products of the unit columns of newcomers and kept features."""

    unit: NDArray[np.float32]  # unit columns of the newcomers
    arrival: IntArray  # of the kept features
    product: NDArray[np.float32]  # by newcomer and kept feature
    error: float = 0.0  # how far a product can be from the correlation

    def part(self, newcomers: slice | BoolArray) -> Ceilings:
        """Those of some of the newcomers."""
        return self._replace(unit=self.unit[newcomers], product=self.product[newcomers])


def take_snapshot(kept: Kept, tuning: Tuning) -> Snapshot | None:
    """The kept features now; None where bounds would save nothing.

    A slot that is filled is never filled again, so the views stay what they are.
    """
    n_live, n_slots = (int(size) for size in kept.size)
    if n_live < tuning.ceilings_from:
        return None
    live = kept.live[:n_live]
    if n_slots < _MANY_DEAD * n_live:
        unit = kept.columns.unit[: -(-n_slots // _WIDTH) * _WIDTH]
        score = np.full(unit.shape[0], -np.inf)
        score[live] = kept.score[live]
        return Snapshot(kept.arrival[:n_slots], unit, score)
    padded = np.resize(live, -(-n_live // _WIDTH) * _WIDTH)
    return Snapshot(kept.arrival[live], kept.columns.unit[padded], kept.score[padded])


def find_ceilings(
    newcomers: Newcomers, snapshot: Snapshot | None, rule: Any, tuning: Tuning
) -> Ceilings:
    """Bounds for the newcomers; none at all where they would not pay.

    A walk ends at the first witness. So the later half of the kept features is left
    out, as NaN, for newcomers that have a witness in the earlier half.
    """
    columns, which, scores = newcomers.columns, newcomers.column, newcomers.score
    units = storage_of(columns).units
    if snapshot is None or units is None or which.size < tuning.ceilings_from:
        nothing = np.empty((which.size, 0), np.float32)
        return Ceilings(nothing, np.empty(0, np.int64), nothing)
    unit, error = units(columns, which)
    width = snapshot.unit.shape[0]
    half = -(-width // (2 * _WIDTH)) * _WIDTH
    if half == width or not isinstance(rule, Rule) or rule.uses_max_bound:
        return Ceilings(unit, snapshot.arrival, unit @ snapshot.unit.T, error)
    product = np.full((which.size, width), np.nan, np.float32)
    early, late = snapshot.unit[:half].T, snapshot.unit[half:].T
    np.matmul(unit, early, out=product[:, :half])
    bound = (scores + error).astype(np.float32)[:, None]
    is_witness = np.abs(product[:, :half]) > bound
    is_witness &= snapshot.score[:half] > scores[:, None]
    is_open = ~is_witness.view(np.uint64).any(axis=1)
    if np.count_nonzero(is_open) > _MOST_OPEN * which.size:
        np.matmul(unit, late, out=product[:, half:])
    else:
        product[is_open, half:] = unit[is_open] @ late
    return Ceilings(unit, snapshot.arrival, product, error)


def with_ceilings(
    newcomers: Newcomers, found: Ceilings, kept: Kept, rule: Any, tuning: Tuning
) -> Newcomers:
    """The newcomers with bounds for the features that are kept now.

    ``found`` are those for features that were kept earlier; ``kept.ceiling_column`` is
    brought up to date.
    """
    if not found.arrival.size:
        found = find_ceilings(newcomers, take_snapshot(kept, tuning), rule, tuning)
    n_known, n_slots = found.arrival.size, int(kept.size[1])
    if not n_known:
        return newcomers
    arrival = kept.arrival[:n_slots]
    # Both increase, and a feature that is kept now but was not then has arrived since.
    n_old = int(np.searchsorted(arrival, found.arrival[-1], "right"))
    kept.ceiling_column[:n_old] = np.searchsorted(found.arrival, arrival[:n_old])
    product, width = found.product, found.product.shape[1]
    kept.ceiling_column[n_old:n_slots] = np.arange(width, width + n_slots - n_old)
    if n_old < n_slots:
        later = found.unit @ kept.columns.unit[n_old:n_slots].T
        product = np.hstack([product, later])
    return newcomers._replace(ceiling=product, slack=found.error)


def next_batch(batch: int, n_added: int, kept: Kept, tuning: Tuning) -> int:
    """How many newcomers to scan before bounds are brought up to date again.

    Few while many of them are kept, as at the start of a stream: there are no
    bounds for those that came in since.
    """
    if n_added > tuning.ceilings_from + kept.size[0] // 8:
        return FIRST_BATCH
    return min(2 * batch, _WHOLE_BLOCK)
