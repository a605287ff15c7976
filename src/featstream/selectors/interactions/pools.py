"""The pool: columns seen so far, as bits in tiles, with which newcomers are paired."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from featstream.measures.inputs import Labels
from featstream.measures.storages.dense_codes import DenseCodes
from featstream.measures.storages.tables import fixed_point_nlogn
from featstream.protocols import FloatArray, IntArray
from featstream.runs.arrays import Declared, check_arrays, damaged
from featstream.selectors.interactions.kernels import (
    ALIVE,
    MIN_CELL,
    TILE,
    Classes,
    Hits,
    Members,
    Order,
    compare_binary,
    compare_levels,
    tile_scratch,
)

MAX_LEVELS = 8
"""A column of more categories takes no part: its tables would be too thin."""

_HITS = 1 << 14


class Pairs(NamedTuple):
    """Pairs found: position of the newcomer, arrival of its partner, the statistic.

    ``place`` is where the partner is in the pool.
    """

    newcomer: IntArray
    partner: IntArray
    statistic: IntArray
    place: IntArray


_NONE = np.empty(0, np.int64)
_NO_PAIRS = Pairs(_NONE, _NONE, _NONE, np.empty((0, 2), np.int64))


def lay_out(labels: Labels) -> tuple[Classes, IntArray]:
    """The classes, and the place of each row's bit: sorted by class, padded."""
    n = labels.codes.size
    n_words = (labels.counts + 63) // 64
    first_word = np.concatenate([[0], np.cumsum(n_words)])
    order = np.argsort(labels.codes, kind="stable")
    begin = np.cumsum(labels.counts) - labels.counts
    place = np.empty(n, np.int64)
    sorted_codes = labels.codes[order]
    place[order] = 64 * first_word[sorted_codes] + np.arange(n) - begin[sorted_codes]
    nlogn = fixed_point_nlogn(n)
    constant = int(nlogn[labels.counts].sum() - nlogn[n])
    return Classes(first_word, labels.counts, nlogn, constant), place


def joined(found: list[Pairs]) -> Pairs:
    """Lists of pairs as one."""
    return Pairs(*map(np.concatenate, zip(_NO_PAIRS, *found, strict=True)))


def in_threads(
    run: Callable[[Any], Any], tasks: list[Any], n_threads: int
) -> list[Any]:
    """What a function returns for each task, in order."""
    if n_threads == 1 or len(tasks) < 2:
        return [run(task) for task in tasks]
    with ThreadPoolExecutor(n_threads) as threads:
        return list(threads.map(run, tasks))


def new_hits(capacity: int, n_newcomers: int) -> Hits:
    """Room for pairs."""
    newcomer, slot, statistic = np.empty((3, capacity), np.int64)
    size, n_tested = np.zeros(1, np.int64), np.zeros(n_newcomers, np.int64)
    return Hits(newcomer, slot, statistic, size, n_tested)


class Newcomers(NamedTuple):
    """The columns of a block that can take part, in order of arrival.

    ``which`` are their places in the block, ``levels`` their numbers of categories,
    and ``parts`` holds them by that number: their places in ``which``, and the
    columns.
    """

    which: IntArray
    levels: IntArray
    parts: dict[int, tuple[IntArray, Any]]
    n_left_out: int


class _Group:
    """Columns of one number of categories, in tiles with room for more."""

    def __init__(self, levels: int, classes: Classes) -> None:
        self.levels, self.size = levels, 0
        n_classes, n_words = classes.counts.size, int(classes.first_word[-1])
        self._shape = n_classes, (levels - 1) * n_words
        self._allocate(TILE)

    def _allocate(self, n_slots: int) -> None:
        n_classes, n_words = self._shape
        self.columns = Members(
            words=np.zeros((n_slots // TILE, n_words, TILE), np.uint64),
            ones=np.zeros((n_classes * (self.levels - 1) + 1, n_slots), np.int32),
            scale=np.zeros((n_classes, n_slots)),
            shift=np.zeros((n_classes, n_slots)),
            own=np.zeros(n_slots, np.int64),
        )
        self.arrival = np.zeros(n_slots, np.int64)
        self.score = np.zeros(n_slots)
        self.left = np.full(n_slots, ALIVE, np.int32)

    def add(self, new: Members, arrivals: IntArray, scores: FloatArray) -> IntArray:
        """Add columns, and return their slots."""
        begin, end = self.size, self.size + new.own.size
        if end > self.own.size:
            self._move(np.arange(begin), max(end, 2 * begin))
        slots = np.arange(begin, end)
        self.columns.words[slots // TILE, :, slots % TILE] = new.words
        for mine, theirs in zip(self.columns[1:], new[1:], strict=True):
            mine[..., begin:end] = theirs
        self.arrival[begin:end], self.score[begin:end] = arrivals, scores
        self.left[begin:end] = ALIVE
        self.size = end
        return slots

    @property
    def own(self) -> IntArray:
        own: IntArray = self.columns.own
        return own

    def words(self, slots: IntArray) -> NDArray[np.uint64]:
        """The words of columns, one row per column."""
        found: NDArray[np.uint64] = self.columns.words[slots // TILE, :, slots % TILE]
        return found

    def keep(self, slots: IntArray) -> None:
        """Drop all columns but these, which get the first slots."""
        self._move(slots, self.own.size)
        self.size = slots.size

    def _move(self, slots: IntArray, n_slots: int) -> None:
        before, words = self.__dict__.copy(), self.words(slots)
        self._allocate(-(-n_slots // TILE) * TILE)
        new = np.arange(slots.size)
        self.columns.words[new // TILE, :, new % TILE] = words
        pairs = zip(self.columns[1:], before["columns"][1:], strict=True)
        named = ((getattr(self, k), before[k]) for k in ("arrival", "score", "left"))
        for mine, old in (*pairs, *named):
            mine[..., : slots.size] = old[..., slots]


class DensePool:
    """Columns as bits, by their number of categories.

    ``roster`` lists the members, each by its number of categories and its slot. The
    order in which it does so decides who leaves when memory is full.
    """

    def __init__(self, labels: Labels) -> None:
        self._classes, self._place = lay_out(labels)
        self.nlogn = self._classes.nlogn
        self._n_bits = 64 * int(self._classes.first_word[-1])
        self._groups: dict[int, _Group] = {}
        self.roster = np.empty((0, 2), np.int64)

    def encode(self, codes: DenseCodes) -> Newcomers:
        """Newcomers from the categories that a measure found."""
        n, m = self._place.size, codes.arity.size
        has_planes = codes.code_row < 0
        n_planes = np.where(has_planes, codes.arity - 1, 0)
        owner = np.repeat(np.arange(m), n_planes)
        ones = codes.plane_count
        background = n - np.bincount(owner, ones, m).astype(np.int64)
        is_used = ones > 0
        used = np.flatnonzero(is_used)
        first = used[np.unique(owner[used], return_index=True)[1]]
        first = first[background[owner[first]] == 0]
        background[owner[first]], is_used[first] = ones[first], False
        levels = 1 + np.bincount(owner[is_used], minlength=m)
        largest = background.copy()
        np.maximum.at(largest, owner[is_used], ones[is_used])
        can = has_planes & (levels <= MAX_LEVELS) & (n - largest >= 2 * MIN_CELL)
        which = np.flatnonzero(can)
        parts = {}
        for level in np.unique(levels[which]).tolist():
            mine = np.flatnonzero(levels[which] == level)
            is_mine = np.zeros(m, np.bool_)
            is_mine[which[mine]] = True
            planes = codes.planes[is_used & is_mine[owner]]
            parts[level] = mine, self._as_members(planes, level)
        n_left_out = int(np.count_nonzero(~has_planes | (levels > MAX_LEVELS)))
        return Newcomers(which, levels[which], parts, n_left_out)

    def _as_members(self, planes: NDArray[np.uint64], levels: int) -> Members:
        """Columns of planes in the order of rows, their bits sorted by class."""
        n = self._place.size
        rows = np.unpackbits(planes.view(np.uint8), axis=1, bitorder="little")[:, :n]
        bits = np.zeros((planes.shape[0], self._n_bits), np.uint8)
        bits[:, self._place] = rows
        words = np.packbits(bits, axis=1, bitorder="little").view(np.uint64)
        return self._measured(words.reshape(-1, (levels - 1) * words.shape[1]), levels)

    def _measured(self, words: NDArray[np.uint64], levels: int) -> Members:
        """Columns with what the kernels need to know of each."""
        classes, n_planes = self._classes, levels - 1
        n_classes, m = classes.counts.size, words.shape[0]
        ones = np.empty((n_classes, n_planes, m), np.int64)
        by_plane = np.bitwise_count(words).reshape(m, n_planes, -1)
        for c in range(n_classes):
            begin, end = classes.first_word[c : c + 2]
            ones[c] = by_plane[:, :, begin:end].sum(axis=2, dtype=np.int64).T
        sizes, nlogn = classes.counts[:, None], classes.nlogn
        rest = sizes - ones.sum(axis=1)
        all_ones = ones.sum(axis=0)
        own = nlogn[all_ones].sum(axis=0) + nlogn[rest.sum(axis=0)]
        own -= nlogn[ones].sum(axis=(0, 1)) + nlogn[rest].sum(axis=0)
        product = (ones[:, 0] * (sizes - ones[:, 0])).astype(np.float64)
        with np.errstate(divide="ignore"):
            scale = np.where(product > 0, sizes**0.75 / np.sqrt(product), 0.0)
        shift = ones[:, 0] * scale / np.sqrt(sizes)
        flat = np.vstack([ones.reshape(n_classes * n_planes, m), all_ones[:1]])
        return Members(np.ascontiguousarray(words), flat, scale, shift, own)

    def bytes_of(self, newcomers: Newcomers) -> IntArray:
        """Memory that each newcomer takes."""
        return self._bytes_of(newcomers.levels)

    def bytes_held(self) -> list[int]:
        """Memory that each member takes, in the order of the roster."""
        held: list[int] = self._bytes_of(self.roster[:, 0]).tolist()
        return held

    def _bytes_of(self, levels: IntArray) -> IntArray:
        n_classes = self._classes.counts.size
        per_plane = self._n_bits // 8 + 4 * n_classes
        return (levels - 1) * per_plane + 16 * n_classes + 48

    def arrivals(self) -> IntArray:
        """Arrivals of the members, in the order of the roster."""
        arrivals = np.empty(self.roster.shape[0], np.int64)
        for level, group in self._groups.items():
            mine = self.roster[:, 0] == level
            arrivals[mine] = group.arrival[self.roster[mine, 1]]
        return arrivals

    def score_of(self, place: NDArray[np.int64]) -> float:
        """The score that a column was added with."""
        return float(self._groups[int(place[0])].score[place[1]])

    def add(
        self, newcomers: Newcomers, arrivals: IntArray, scores: FloatArray
    ) -> IntArray:
        """Add newcomers, and return the number of categories and slot of each."""
        places = np.empty((newcomers.which.size, 2), np.int64)
        for level, (mine, columns) in newcomers.parts.items():
            if level not in self._groups:
                self._groups[level] = _Group(level, self._classes)
            slots = self._groups[level].add(columns, arrivals[mine], scores[mine])
            places[mine, 0], places[mine, 1] = level, slots
        return places

    def leave(self, place: NDArray[np.int64], position: int) -> None:
        """Mark that a column leaves with the newcomer at a position."""
        self._groups[int(place[0])].left[place[1]] = position

    def compare(
        self, newcomers: Newcomers, places: IntArray, least: Any, n_threads: int
    ) -> tuple[Pairs, IntArray]:
        """Pairs of newcomers with what came before them that reach a bound.

        ``least(levels, others)`` is that bound. Returns the pairs, and how many were
        tested for each newcomer.
        """
        tasks: list[Any] = []
        for level, (mine, columns) in newcomers.parts.items():
            for other, group in self._groups.items():
                new = np.flatnonzero(places[:, 0] == other)
                limit = group.size - new.size + np.searchsorted(new, mine)
                n_tiles = -(-int(limit.max(initial=0)) // TILE)
                order = Order(limit, mine.astype(np.int32), group.left)
                cuts = np.linspace(0, n_tiles, min(n_threads, max(n_tiles, 1)) + 1)
                for first, last in pairwise(cuts.tolist()):
                    tiles = np.array([first, last], np.int64)
                    tasks.append((level, columns, other, group, order, tiles))
        n_tested = np.zeros(newcomers.which.size, np.int64)
        found: list[Pairs] = []
        run = partial(self._run, least=least)
        for pairs, mine, counted in in_threads(run, tasks, n_threads):
            found += pairs
            n_tested[mine] += counted
        return joined(found), n_tested

    def _run(self, task: Any, least: Any) -> tuple[list[Pairs], IntArray, IntArray]:
        level, new, other, group, order, tiles = task
        kernel = compare_binary if level == other == 2 else compare_levels
        capacity = max(_HITS, TILE * new.own.size)
        hits = new_hits(capacity, new.own.size)
        scratch = tile_scratch(self._classes.counts.size, level - 1, other - 1)
        bounds, found = least(level, other), []
        while True:
            pool, classes = group.columns, self._classes
            tiles[0] = kernel(new, pool, order, classes, bounds, tiles, scratch, hits)
            k = int(hits.size[0])
            found.append(
                Pairs(
                    order.position[hits.newcomer[:k]].astype(np.int64),
                    group.arrival[hits.slot[:k]],
                    hits.statistic[:k].copy(),
                    np.stack([np.full(k, other), hits.slot[:k]], axis=1),
                )
            )
            hits.size[0] = 0
            if tiles[0] == tiles[1]:
                return found, order.position.astype(np.int64), hits.n_tested

    def codes(self, place: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Categories of a column, its rows sorted by class."""
        level, slot = place.tolist()
        words = self._groups[level].words(np.array([slot]))
        bits = np.unpackbits(words.view(np.uint8), bitorder="little")
        planes = bits.reshape(level - 1, self._n_bits)[:, np.sort(self._place)]
        return planes.T @ np.arange(1, level, dtype=np.uint8)

    def settle(self) -> None:
        """Forget the columns that have left, once there are many."""
        for level, group in self._groups.items():
            is_alive = group.left[: group.size] == ALIVE
            n_alive = int(np.count_nonzero(is_alive))
            if n_alive < group.size - group.size // 8 - TILE:
                group.keep(np.flatnonzero(is_alive))
                mine = self.roster[:, 0] == level
                self.roster[mine, 1] = np.cumsum(is_alive)[self.roster[mine, 1]] - 1
            else:
                group.left[: group.size][~is_alive] = -1

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The members in the order of the roster, for `restore`."""
        levels, slots = self.roster.T
        n_planes = levels - 1
        first = np.cumsum(n_planes) - n_planes
        words = np.empty((int(n_planes.sum()), self._n_bits // 64), np.uint64)
        arrival, score = np.empty(levels.size, np.int64), np.empty(levels.size)
        for level, group in self._groups.items():
            mine = np.flatnonzero(levels == level)
            rows = first[mine, None] + np.arange(level - 1)
            shape = (mine.size, level - 1, words.shape[1])
            words[rows] = group.words(slots[mine]).reshape(shape)
            arrival[mine] = group.arrival[slots[mine]]
            score[mine] = group.score[slots[mine]]
        return {"levels": levels, "arrival": arrival, "score": score, "words": words}

    def restore(self, arrays: Mapping[str, NDArray[Any]], n_seen: int) -> None:
        """Take back the members that `arrays` gave."""
        table = {
            "levels": Declared(np.int64, ("k",), 2, MAX_LEVELS + 1),
            "arrival": Declared(np.int64, ("k",), 0, "n_seen"),
            "score": Declared(np.float64, ("k",)),
            "words": Declared(np.uint64, (None, self._n_bits // 64)),
        }
        saved = check_arrays(arrays, table, n_seen=n_seen)
        levels, words = saved["levels"], saved["words"]
        n_planes = levels - 1
        if words.shape[0] != n_planes.sum():
            raise damaged("the planes of the pool do not fit its categories")
        is_row = np.zeros(self._n_bits, np.uint8)
        is_row[self._place] = 1
        if (words & ~np.packbits(is_row, bitorder="little").view(np.uint64)).any():
            raise damaged("the pool has bits beyond the samples")
        first = np.cumsum(n_planes) - n_planes
        parts: dict[int, tuple[IntArray, Any]] = {}
        for level in np.unique(levels).tolist():
            mine = np.flatnonzero(levels == level)
            planes = words[first[mine, None] + np.arange(level - 1)]
            either = np.bitwise_count(np.bitwise_or.reduce(planes, axis=1))
            if either.sum() != np.bitwise_count(planes).sum():
                raise damaged("a row of the pool has two categories")
            flat = planes.reshape(mine.size, (level - 1) * words.shape[1])
            parts[level] = mine, self._measured(flat, level)
        members = Newcomers(np.arange(levels.size), levels, parts, 0)
        self.roster = self.add(members, saved["arrival"], saved["score"])
