"""The kept features: pools with room to grow, and what a run saves of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from featstream.jit import inner, kernel
from featstream.measures.storages.dispatch import (
    NoIndex,
    clear_index,
    copy_column,
    enter_index,
    for_storage,
    leave_index,
    no_index,
    storage_named,
    storage_of,
)
from featstream.protocols import FloatArray, IntArray, Storage, read_only
from featstream.runs.arrays import Declared, check_arrays, damaged

_GROWTH = 1.25
_FEW = 16
_SMALL_MEMO = 1 << 9
_OLD_FIELDS = {"base": "background"}
"""Arrays by their names in older run folders."""


class Tuning(NamedTuple):
    """When shortcuts are taken; they change no decision.

    An index of sparse columns costs upkeep for each feature that is kept. It is built
    when a walk reads ``index_from`` entries, on average. That of a group is small, and
    soon forgotten: it pays earlier.
    """

    index_from: float = 2000.0
    group_index_from: float = 100.0
    is_index_forced: bool = False  # even for newcomers for which it does not pay
    ceilings_from: int = 4  # least number of kept features, and of newcomers


class Kept(NamedTuple):
    """The kept features in slots that fill in order of arrival."""

    columns: Any
    index: Any
    score: FloatArray
    arrival: IntArray
    ceiling_column: IntArray  # column of a slot in the ceilings of the newcomers
    live: IntArray  # slots in use, the first size[0] of them
    size: IntArray  # number of slots in use, and the next free slot
    used: IntArray  # how much of each pool of the columns is taken


@inner
def add_column(columns, i, score, arrival, kept):
    """Add a column at the end of the kept ones."""
    slot = kept.size[1]
    copy_column(columns, i, kept.columns, slot, kept.used)
    kept.score[slot] = score
    kept.arrival[slot] = arrival
    enter_index(kept.columns, kept.index, slot, score)
    kept.live[kept.size[0]] = slot
    kept.size[0] += 1
    kept.size[1] += 1
    return slot


@inner
def remove_column(kept, slot):
    """Take a feature out of the kept ones."""
    leave_index(kept.columns, kept.index, slot)
    live, n_kept = kept.live, kept.size[0]
    position = n_kept - 1
    follower = live[position]
    while follower != slot:
        position -= 1
        live[position], follower = follower, live[position]
    kept.size[0] = n_kept - 1


@inner
def remove_all(kept):
    """Take all features out of a set."""
    clear_index(kept.columns, kept.index, kept)
    kept.size[:] = 0
    kept.used[:] = 0


@kernel
def _repack(columns, live, score, arrival, ceiling_column, larger):
    """Copy the live columns, in their order."""
    for position in range(live.size):
        slot = live[position]
        new = add_column(columns, slot, score[slot], arrival[slot], larger)
        larger.ceiling_column[new] = ceiling_column[slot]


def start_kept(columns: Any, which: IntArray, tuning: Tuning) -> Kept:
    """An empty kept set with room for the first of the chosen columns."""
    storage = storage_of(columns)
    demand = storage.demand(columns, which[:_FEW]).sum(axis=1)
    return _allocate(storage, columns, _FEW, demand, tuning)


def start_group(newcomers: list[Any], begins: IntArray, tuning: Tuning) -> Kept:
    """An empty set that can take any one of several groups of newcomers.

    The newcomers are those of several blocks; a group begins at each of ``begins``,
    counted through them all. The set has an index if walks along a group are long.
    """
    like = newcomers[0].columns
    storage = storage_of(like)
    demand = np.hstack([storage.demand(new.columns, new.column) for new in newcomers])
    most = np.add.reduceat(demand, begins, axis=1).max(axis=1)
    n_columns = demand.shape[1]
    n_slots = int(np.diff(begins, append=n_columns).max())
    mean_walk, mean_length = n_columns / begins.size / 2, float(demand[0].mean())
    has_index = _is_long(mean_walk, mean_length, tuning.group_index_from)
    memo = {"largest_memo": _SMALL_MEMO}
    return _allocate(storage, like, n_slots, most, tuning, has_index=has_index, **memo)


def make_room(kept: Kept, columns: Any, i: int, tuning: Tuning) -> Kept:
    """A copy without what has left, and with room for column ``i`` and more.

    It has an index if walks have become long.
    """
    extra = storage_of(columns).demand(columns, np.array([i]))[:, 0]
    has_index = _wants_index(kept, tuning)
    return rebuild(kept, columns, tuning, extra, has_index=has_index)


def fit_index(kept: Kept, tuning: Tuning) -> Kept:
    """The same with an index if walks have become long, without if short."""
    has_index = _wants_index(kept, tuning)
    if has_index == is_indexed(kept):
        return kept
    return rebuild(kept, kept.columns, tuning, has_index=has_index)


def is_indexed(kept: Kept) -> bool:
    """Whether there is an index of the kept features."""
    return not isinstance(kept.index, NoIndex)


def _wants_index(kept: Kept, tuning: Tuning) -> bool:
    """Whether an index would pay; an index stays until walks are much shorter."""
    if storage_of(kept.columns).allocate_index is None:
        return False
    mean_length = kept.used[0] / max(1, int(kept.size[1]))
    pays_from = tuning.index_from / (4 if is_indexed(kept) else 1)
    return _is_long(kept.index.mean_walk[0], mean_length, pays_from)


def _is_long(mean_walk: float, mean_length: float, pays_from: float) -> bool:
    """Whether a walk along that many columns of that many entries is long."""
    return bool(mean_walk * (mean_length + 4.0) > pays_from)


def rebuild(
    kept: Kept,
    like: Any,
    tuning: Tuning,
    extra: IntArray | int = 0,
    *,
    has_index: bool = False,
) -> Kept:
    """The live columns of a set in new pools, with room for more."""
    storage = storage_of(like)
    live = kept.live[: kept.size[0]]
    demand = extra + storage.demand(kept.columns, live).sum(axis=1)
    n_slots = max(_FEW, int(_GROWTH * (live.size + 1)) + 1)
    n_slots = max(n_slots, live.size + storage.spare_slots(like))
    larger = _allocate(storage, like, n_slots, demand, tuning, has_index=has_index)
    # Columns of the types of newcomers: the same code copies both.
    lent = {n: read_only(getattr(kept.columns, n)) for n in storage.read_only}
    columns = kept.columns._replace(**lent)
    own = kept.score, kept.arrival, kept.ceiling_column
    for_storage(_repack, columns)(columns, live, *own, larger)
    larger.index.mean_walk[0] = kept.index.mean_walk[0]
    return larger


def copy_columns(columns: Any, which: IntArray) -> Any:
    """The chosen columns of some newcomers, without the others of their block."""
    storage = storage_of(columns)
    first, second = storage.demand(columns, which).sum(axis=1).tolist()
    own = storage.allocate(columns, which.size, first, second)
    n_slots = int(which[-1]) + 1  # positions increase
    unused = np.zeros(n_slots), np.zeros(n_slots, np.int64), np.zeros(n_slots, np.int64)
    copied = _empty_kept(own, no_index(), which.size)
    for_storage(_repack, columns)(columns, which, *unused, copied)
    return own


def _allocate(
    storage: Storage,
    like: Any,
    n_slots: int,
    demand: Any,
    tuning: Tuning,
    *,
    has_index: bool = False,
    **options: int,
) -> Kept:
    """Empty pools: a quarter more than is demanded."""
    first, second = (int(_GROWTH * size) for size in demand)
    columns = storage.allocate(like, n_slots, first, second)
    if has_index and storage.allocate_index is not None:
        index: Any = storage.allocate_index(like, n_slots, first, **options)
    else:
        index = no_index()
    index.mean_walk[1] = tuning.is_index_forced
    return _empty_kept(columns, index, n_slots)


def _empty_kept(columns: Any, index: Any, n_slots: int) -> Kept:
    return Kept(
        columns=columns,
        index=index,
        score=np.zeros(n_slots),
        arrival=np.zeros(n_slots, np.int64),
        ceiling_column=np.zeros(n_slots, np.int64),
        live=np.zeros(n_slots, np.int64),
        size=np.zeros(2, np.int64),
        used=np.zeros(2, np.int64),
    )


def arrivals_and_scores(kept: Kept | None) -> tuple[IntArray, FloatArray]:
    """The arrivals and scores of the kept features, in order of arrival."""
    if kept is None:
        return np.empty(0, np.int64), np.empty(0)
    live = kept.live[: kept.size[0]]
    return kept.arrival[live], kept.score[live]


def columns_of(kept: Kept | None, n_samples: int) -> NDArray[Any] | None:
    """The kept columns as plain numbers, one row each, if their storage can tell."""
    if kept is None:
        return None
    as_rows = storage_of(kept.columns).as_rows
    live = kept.live[: kept.size[0]]
    return None if as_rows is None else as_rows(kept.columns, live, n_samples)


def p_values_of(kept: Kept, measure: Any) -> FloatArray:
    """How probable the score of each kept feature is without any relation."""
    live = kept.live[: kept.size[0]]
    found: FloatArray = measure.p_of_kept(kept.columns, live, kept.score[live])
    return found


_OWN = {
    "arrival": Declared(np.int64, ("kept",)),
    "score": Declared(np.float64, ("kept",)),
}


def pack_kept(kept: Kept | None) -> dict[str, NDArray[Any]]:
    """The live columns of a kept set, in their order; nothing if there are none."""
    if kept is None or not kept.size[0]:
        return {}
    packed = rebuild(kept, kept.columns, Tuning())
    storage, n_kept = storage_of(packed.columns), int(packed.size[0])
    arrays = {"arrival": packed.arrival[:n_kept], "score": packed.score[:n_kept]}
    for name in storage.saved:
        pool = storage.pool_of.get(name)
        size = n_kept if pool is None else int(packed.used[pool])
        values = getattr(packed.columns, name)[:size]
        if values.size or not storage.saved[name].is_optional:
            arrays[f"{storage.name}.{name}"] = values
    return arrays


def unpack_kept(
    arrays: Mapping[str, NDArray[Any]],
    n_samples: int,
    storages: tuple[Storage, ...],
    measure: Any,
    tuning: Tuning,
) -> Kept | None:
    """The kept set whose arrays `pack_kept` gave; `RunError` if it cannot be one.

    There may be other arrays, whose names have no dot.
    """
    kinds, fields = set(), {}
    for name, values in arrays.items():
        kind, dot, field = name.partition(".")
        if dot:
            kinds.add(kind)
            fields[_OLD_FIELDS.get(field, field)] = values
    if not kinds and not arrays.keys() & _OWN.keys():
        return None
    storage = storage_named(kinds.pop()) if len(kinds) == 1 else None
    if storage is None or storage not in storages:
        raise damaged("its kept features are not stored as its measure stores them")
    own = check_arrays(arrays, _OWN)
    n_kept = own["arrival"].size
    if not n_kept:
        raise damaged("it has no kept features")
    fields = check_arrays(fields, storage.saved, kept=n_kept, samples=n_samples)
    try:
        columns = storage.restore(fields, n_samples, measure)
    except ValueError as error:
        raise damaged(f"of its kept features, {error}") from error
    exact = Kept(
        columns=columns,
        index=no_index(),
        **own,
        ceiling_column=np.zeros(n_kept, np.int64),
        live=np.arange(n_kept),
        size=np.array([n_kept, n_kept]),
        used=np.zeros(2, np.int64),
    )
    return rebuild(exact, columns, tuning)
