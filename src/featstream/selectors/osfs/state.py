"""What OSFS has learned as plain arrays, and back: kept features, separating sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from featstream.measures.independence import BoundTest
from featstream.measures.independence_tables import CodedColumns, pack_plane
from featstream.measures.storages.bitplanes import unpack
from featstream.protocols import IntArray
from featstream.runs.arrays import Declared, check_arrays, damaged
from featstream.selectors.osfs.search import KeptSet

Arrays = Mapping[str, NDArray[Any]]

_FEW = 16


class Separators:
    """The sets that separate dropped features from the class, in arrays."""

    def __init__(self, width: int) -> None:
        self._size = 0
        self._arrivals = np.empty(0, np.int64)
        self._sets = np.empty((0, max(1, width)), np.int64)

    def add(self, arrivals: IntArray, sets: IntArray) -> None:
        """Record one set, filled up with -1, for each arrival."""
        end = self._size + arrivals.size
        if end > self._arrivals.size:
            room = max(64, 2 * end)
            self._arrivals = np.resize(self._arrivals, room)
            self._sets = np.resize(self._sets, (room, self._sets.shape[1]))
        self._arrivals[self._size : end] = arrivals
        self._sets[self._size : end] = sets
        self._size = end

    def find(self, arrival: int) -> tuple[int, ...]:
        """Members of the set for a feature, in order of arrival; none if unknown."""
        for row in np.flatnonzero(self._arrivals[: self._size] == arrival):
            return tuple(m for m in self._sets[row].tolist() if m >= 0)
        return ()

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All that is recorded, by arrival, for `restore`."""
        order = np.argsort(self._arrivals[: self._size])
        return {
            "separated": self._arrivals[order].astype(np.int32),
            "separators": self._sets[order].astype(np.int32),
        }

    def restore(self, arrays: Arrays, n_seen: int) -> None:
        """Restore what `arrays` returned."""
        width = self._sets.shape[1]
        table = {
            "separated": Declared(np.int32, ("n_sets",), 0, "n_seen"),
            "separators": Declared(np.int32, ("n_sets", width), -1, "n_seen"),
        }
        found = check_arrays(arrays, table, n_seen=n_seen)
        self.add(*(array.astype(np.int64) for array in found.values()))


def grow_kept_set(kept: KeptSet | None, test: BoundTest) -> KeptSet:
    """A copy with twice as many slots, or an empty set with a few."""
    if kept is None:
        return _empty_kept_set(test, _FEW)
    larger = _empty_kept_set(test, 2 * kept.arrival.size)
    for old, new in zip(
        (*kept.pool, *kept[1:]), (*larger.pool, *larger[1:]), strict=True
    ):
        new[tuple(map(slice, old.shape))] = old
    return larger


def _empty_kept_set(test: BoundTest, capacity: int) -> KeptSet:
    pool, values = test.allocate(capacity)
    return KeptSet(
        pool=pool,
        score=np.zeros(capacity),
        arrival=np.zeros(capacity, np.int64),
        values=values,
        total=np.zeros(capacity),
        norm=np.zeros(capacity),
        size=np.zeros(1, np.int64),
    )


def pack_kept_set(kept: KeptSet | None) -> dict[str, NDArray[Any]]:
    """What the tests need to know of the kept features, in order of arrival."""
    if kept is None:
        return {}
    size = int(kept.size[0])
    arrays = {"arrival": kept.arrival[:size], "score": kept.score[:size]}
    pool = kept.pool
    if isinstance(pool, CodedColumns):
        codes = pool.codes[:size].copy()
        for i in np.flatnonzero(~pool.has_codes[:size]):
            unpack(pool.planes[i : i + 1], codes[i])
        return arrays | {"codes": codes, "arity": pool.arity[:size]}
    return arrays | {
        "gram": pool.gram[:size, :size],
        "links": pool.links[:size],
        "values": kept.values[:size],
        "total": kept.total[:size],
        "norm": kept.norm[:size],
    }


def unpack_kept_set(arrays: Arrays, test: BoundTest, n_seen: int) -> KeptSet | None:
    """The kept features that `pack_kept_set` took apart, or `RunError`."""
    if "arrival" not in arrays:
        return None
    size = arrays["arrival"].size
    kept = _empty_kept_set(test, max(_FEW, 2 * size))
    pool = kept.pool
    table = {
        "arrival": Declared(np.int64, (size,), 0, n_seen),
        "score": Declared(np.float64, (size,)),
    }
    if isinstance(pool, CodedColumns):
        n = pool.codes.shape[1]
        table["codes"] = Declared(np.int32, (size, n), 0, n)
        table["arity"] = Declared(np.int64, (size,), 1)
    else:
        table["gram"] = Declared(np.float64, (size, size))
        table["links"] = Declared(np.float64, (size, pool.links.shape[1]))
        table["values"] = Declared(np.float64, (size, kept.values.shape[1]))
        table["total"] = table["norm"] = Declared(np.float64, (size,))
    found = check_arrays(arrays, table)
    kept.arrival[:size], kept.score[:size] = found["arrival"], found["score"]
    kept.size[0] = size
    if isinstance(pool, CodedColumns):
        _fill_codes(pool, found["codes"], found["arity"])
    else:
        pool.gram[:size, :size], pool.links[:size] = found["gram"], found["links"]
        kept.values[:size], kept.total[:size] = found["values"], found["total"]
        kept.norm[:size] = found["norm"]
    return kept


def _fill_codes(pool: CodedColumns, codes: IntArray, arity: IntArray) -> None:
    n_codes = codes.max(axis=1, initial=0) + 1
    if (arity < n_codes).any():
        raise damaged("a kept feature has more categories than it can have")
    size = arity.size
    pool.codes[:size], pool.has_codes[:size] = codes, True
    pool.n_codes[:size], pool.arity[:size] = n_codes, arity
    for i in np.flatnonzero(n_codes == 2):
        pack_plane(pool.codes[i], pool.planes[i])
