"""What OSFS has learned as plain arrays, and back: kept features, separating sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from featstream.measures.independence import BoundTest
from featstream.measures.independence_correlations import Correlations
from featstream.measures.independence_tables import CodedColumns, pack_plane
from featstream.measures.storages.bitplanes import unpack
from featstream.protocols import Fate, IntArray
from featstream.runs.arrays import damaged, take_array, take_floats
from featstream.selectors.osfs.search import KeptSet
from featstream.selectors.trace import Trace

__all__ = ["Separators", "grow_kept_set", "pack_kept_set", "unpack_kept_set"]

Arrays = Mapping[str, NDArray[Any]]

_FEW = 16
_ROUNDING = 1e-6


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

    def restore(self, arrays: Arrays, trace: Trace) -> None:
        """Take over what `arrays` gave; `RunError` for what cannot be right.

        A full trace has a set for every feature that was dropped after it had
        passed the first test, and no other trace has any.
        """
        arrivals = take_array(arrays, "separated", np.int32)
        shape = (arrivals.size, self._sets.shape[1])
        sets = take_array(arrays, "separators", np.int32, shape)
        expected = np.empty(0, np.int64)
        if trace.level == "full":
            expected = np.flatnonzero(trace.records["fate"] >= Fate.REDUNDANT)
        if not np.array_equal(arrivals, expected) or (
            sets.size
            and (sets.min() < -1 or sets.max() >= trace.n_seen or sets[:, 0].min() < 0)
        ):
            raise damaged("what separates its features cannot be right")
        self.add(arrivals.astype(np.int64), sets.astype(np.int64))


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


def unpack_kept_set(arrays: Arrays, test: BoundTest) -> KeptSet | None:
    """The kept features that `pack_kept_set` took apart, or `RunError`."""
    if "arrival" not in arrays:
        return None
    arrival = take_array(arrays, "arrival", np.int64)
    size = arrival.size
    kept = _empty_kept_set(test, max(_FEW, 2 * size))
    kept.arrival[:size] = arrival
    kept.score[:size] = take_floats(arrays, "score", (size,))
    kept.size[0] = size
    if isinstance(kept.pool, CodedColumns):
        _fill_codes(kept.pool, arrays, size)
    else:
        _fill_correlations(kept, arrays, size)
    return kept


def _fill_codes(pool: CodedColumns, arrays: Arrays, size: int) -> None:
    codes = take_array(arrays, "codes", np.int32, (size, pool.codes.shape[1]))
    arity = take_array(arrays, "arity", np.int64, (size,))
    for i, own in enumerate(codes):
        found = np.unique(own)
        n_codes = found.size
        if not np.array_equal(found, np.arange(n_codes)) or not arity[i] >= n_codes:
            raise damaged("a kept feature has categories that it cannot have")
        pool.codes[i], pool.has_codes[i] = own, True
        pool.n_codes[i], pool.arity[i] = n_codes, arity[i]
        if n_codes == 2:
            pack_plane(pool.codes[i], pool.planes[i])


def _fill_correlations(kept: KeptSet, arrays: Arrays, size: int) -> None:
    pool: Correlations = kept.pool
    gram = take_floats(arrays, "gram", (size, size))
    links = take_floats(arrays, "links", (size, pool.links.shape[1]))
    norm = take_floats(arrays, "norm", (size,))
    if (
        not np.array_equal(gram, gram.T)
        or (np.diag(gram) != 1.0).any()
        or (np.abs(gram) > 1 + _ROUNDING).any()
        or ((links**2).sum(axis=1) > 1 + _ROUNDING).any()
        or not (norm > 0).all()
    ):
        raise damaged("the correlations of its kept features cannot be right")
    pool.gram[:size, :size], pool.links[:size] = gram, links
    shape = (size, kept.values.shape[1])
    kept.values[:size] = take_floats(arrays, "values", shape)
    kept.total[:size], kept.norm[:size] = take_floats(arrays, "total", (size,)), norm
