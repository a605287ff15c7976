"""Memory for kept columns: room to grow, and none for those that left."""

from __future__ import annotations

from typing import Any

import numpy as np

from featstream.jit import jit
from featstream.kernels.index import empty_index, no_index
from featstream.kernels.moments import DenseMoments, SparseMoments
from featstream.kernels.scan import Kept
from featstream.kernels.shortlist import register
from featstream.kernels.storage import copy_column
from featstream.kernels.tables import DenseTables, SparseTables

__all__ = ["fit_index", "make_room", "start_kept", "start_kept_for"]

Columns = DenseTables | SparseTables | DenseMoments | SparseMoments

_GROWTH = 1.25
_FEW = 16
_MOST_SPARE, _SPARE_BYTES = 64, 2**20
_LONG_WALK = 2000
_LONG_WALK_IN_GROUP = 100
"""An index of a group is small, and soon forgotten: it pays earlier."""

_SMALL_MEMO = 1 << 9


def start_kept(columns: Columns) -> Kept:
    """An empty kept set for columns of this storage."""
    return _allocate(columns, _FEW, (0, 0))


def start_kept_for(
    chosen: list[tuple[Columns, np.ndarray]], begins: np.ndarray
) -> Kept:
    """An empty set that can take any one of several groups of columns.

    Each of ``chosen`` is a storage and some of its columns; a group begins at each
    of ``begins``, counted through them all. It has an inverted index if walks along
    a group are long.
    """
    demand = np.hstack([_demand(columns, which) for columns, which in chosen])
    first, second = np.add.reduceat(demand, begins, axis=1).max(axis=1)
    n_columns = demand.shape[1]
    n_slots = int(np.diff(begins, append=n_columns).max())
    pace, mean_length = n_columns / begins.size / 2, demand[0].mean()
    has_index = _is_long(pace, mean_length, _LONG_WALK_IN_GROUP)
    return _allocate(
        chosen[0][0],
        n_slots,
        (int(first), int(second)),
        n_slots if has_index else 0,
        largest_memo=_SMALL_MEMO,
    )


def make_room(kept: Kept, columns: Columns, i: int, *, may_index: bool = True) -> Kept:
    """A copy without what has left, and with room for column ``i`` and more.

    It has an inverted index if walks have become long.
    """
    has_index = may_index and _wants_index(kept)
    return _rebuild(kept, columns, _demand(columns, [i])[:, 0], has_index=has_index)


def fit_index(kept: Kept) -> Kept:
    """The same with an inverted index if walks have become long, without if short."""
    has_index = _wants_index(kept)
    if has_index == (kept.lookup.head.size > 0):
        return kept
    return _rebuild(kept, kept.columns, np.zeros(2, int), has_index=has_index)


def _wants_index(kept: Kept) -> bool:
    """Whether an index would pay: it costs upkeep for each feature that is kept.

    That is so when a plain walk reads some thousand entries. What has an index
    keeps it until walks are much shorter.
    """
    if not isinstance(kept.columns, SparseTables | SparseMoments):
        return False
    mean_length = kept.used[0] / max(1, int(kept.size[1]))
    has_index = kept.lookup.head.size > 0
    long_walk = _LONG_WALK / 4 if has_index else _LONG_WALK
    return _is_long(kept.lookup.pace[0], mean_length, long_walk)


def _is_long(pace: float, mean_length: float, long_walk: float) -> bool:
    """Whether a walk along so many columns of so many entries is long."""
    return bool(pace * (mean_length + 4.0) > long_walk)


def _rebuild(kept: Kept, like: Columns, extra: np.ndarray, *, has_index: bool) -> Kept:
    live = kept.live[: kept.size[0]]
    held = _demand(kept.columns, live).sum(axis=1) + extra
    n_slots = max(_FEW, int(_GROWTH * (live.size + 1)) + 1, live.size + _spare(like))
    demand = int(held[0]), int(held[1])
    n_kinds = 0
    if has_index:
        had_index = kept.lookup.head.size > 0
        n_before = int(kept.lookup.n_kinds[0]) if had_index else n_slots
        n_kinds = min(n_slots, _FEW + int(_GROWTH * n_before))
    larger = _allocate(like, n_slots, demand, n_kinds)
    _repack(kept, larger)
    return larger


def _spare(like: Columns) -> int:
    """Slots that cost next to nothing, and save growing time and again."""
    if not isinstance(like, DenseMoments):
        return 0
    n_rows = int(like.values.shape[1])
    return min(_MOST_SPARE, _SPARE_BYTES // (12 * n_rows))


def _demand(columns: Columns, which: Any) -> np.ndarray:
    """What each of the chosen columns takes of the two pools of its storage."""
    which = np.asarray(which, dtype=np.int64)
    nothing = np.zeros(which.size, np.int64)
    if isinstance(columns, DenseTables):
        has_codes = columns.code_row[which] >= 0
        n_planes = np.where(has_codes, 0, columns.arity[which] - 1)
        return np.stack([n_planes, has_codes.astype(np.int64)])
    if isinstance(columns, SparseTables):
        return np.stack([columns.length[which], columns.arity[which] - 1])
    if isinstance(columns, SparseMoments):
        return np.stack([columns.length[which], nothing])
    return np.stack([nothing, nothing])


def _allocate(
    like: Columns,
    n_slots: int,
    demand: tuple[int, int],
    n_kinds: int = 0,
    **options: int,
) -> Kept:
    """Empty pools: a quarter more than is demanded. Without kinds, without index."""
    first, second = (int(_GROWTH * d) for d in demand)
    columns: Columns
    index = no_index()
    if isinstance(like, DenseTables):
        columns = like._replace(
            arity=np.zeros(n_slots, np.int64),
            own=np.zeros(n_slots, np.int64),
            norm=np.zeros(n_slots, np.int64),
            first_plane=np.zeros(n_slots, np.int64),
            planes=np.zeros((first, like.planes.shape[1]), np.uint64),
            plane_count=np.zeros(first, np.int64),
            code_row=np.zeros(n_slots, np.int64),
            codes=np.zeros((second, like.nlogn.size - 1), np.int32),
        )
    elif isinstance(like, SparseTables):
        columns = like._replace(
            arity=np.zeros(n_slots, np.int64),
            own=np.zeros(n_slots, np.int64),
            norm=np.zeros(n_slots, np.int64),
            offset=np.zeros(n_slots, np.int64),
            length=np.zeros(n_slots, np.int64),
            rows=np.zeros(first, np.int32),
            codes=np.zeros(first, np.int32),
            count_offset=np.zeros(n_slots, np.int64),
            counts=np.zeros(second, np.int64),
        )
        if n_kinds:
            sizes = like.nlogn.size - 1, n_slots, first, n_kinds
            index = empty_index(*sizes, has_values=False, **options)
    elif isinstance(like, SparseMoments):
        columns = like._replace(
            total=np.zeros(n_slots),
            norm=np.zeros(n_slots),
            base=np.zeros(n_slots),
            offset=np.zeros(n_slots, np.int64),
            length=np.zeros(n_slots, np.int64),
            rows=np.zeros(first, np.int32),
            values=np.zeros(first),
        )
        if n_kinds:  # of which it makes no use
            sizes = like.n_rows, n_slots, first, 0
            index = empty_index(*sizes, has_values=True, **options)
    else:
        columns = DenseMoments(
            total=np.zeros(n_slots),
            norm=np.zeros(n_slots),
            pivot=np.zeros(n_slots),
            values=np.zeros((n_slots, like.values.shape[1])),
            unit=np.zeros((n_slots, like.values.shape[1]), np.float32),
        )
    return Kept(
        columns=columns,
        lookup=index,
        score=np.zeros(n_slots),
        arrival=np.zeros(n_slots, np.int64),
        hint=np.zeros(n_slots, np.int64),
        live=np.zeros(n_slots, np.int64),
        size=np.zeros(2, np.int64),
        used=np.zeros(2, np.int64),
    )


@jit
def _repack(kept, larger):
    """Copy the live columns, in their order."""
    for position in range(kept.size[0]):
        slot = kept.live[position]
        copy_column(kept.columns, slot, larger.columns, position, larger.used)
        larger.score[position] = kept.score[slot]
        larger.arrival[position] = kept.arrival[slot]
        larger.hint[position] = kept.hint[slot]
        register(larger.columns, larger.lookup, position, kept.score[slot])
        larger.live[position] = position
    larger.size[:] = kept.size[0]
    larger.lookup.pace[0] = kept.lookup.pace[0]
