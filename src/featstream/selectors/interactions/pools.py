"""The pools: columns seen so far, dense or sparse, with which newcomers are paired."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from featstream.engines import prepared_ahead
from featstream.measures.inputs import Labels
from featstream.measures.storages.dense_codes import DenseCodes
from featstream.measures.storages.sparse_codes import SparseCodes
from featstream.measures.storages.tables import fixed_point_nlogn
from featstream.protocols import BoolArray, FloatArray, IntArray
from featstream.runs.arrays import Arrays, Declared, check_arrays, damaged
from featstream.selectors.interactions import kernels
from featstream.selectors.result import appended

MAX_LEVELS = 8
"""A column of more categories takes no part: its tables would be too thin."""

_HITS = 1 << 14
_NONE = np.empty(0, np.int64)
_SAVED = {
    "levels": Declared(np.int64, ("k",), 2, MAX_LEVELS + 1),
    "arrival": Declared(np.int64, ("k",), 0, "n_seen"),
}

Bounds = Callable[[int, int], FloatArray]
"""What a statistic must reach, by the numbers of categories of the two columns."""


class Newcomers(NamedTuple):
    """The columns of a block that can take part, in order of arrival.

    ``which`` are their places in the block, ``levels`` their numbers of categories;
    ``columns`` holds them as the pool does.
    """

    which: IntArray
    levels: IntArray
    columns: Any
    n_left_out: int


class _Pool(ABC):
    """Columns by number, from 0 in the order in which they were added.

    ``roster`` lists the members; its order decides which one leaves when memory is
    full. A column that has left did so with the newcomer at the position ``left``.
    Columns that have left are forgotten once there are many.
    """

    def __init__(self, labels: Labels) -> None:
        n = labels.codes.size
        n_words = (labels.counts + 63) // 64
        first_word = np.concatenate([[0], np.cumsum(n_words)])
        order = np.argsort(labels.codes, kind="stable")
        begin = np.cumsum(labels.counts) - labels.counts
        codes = labels.codes[order]
        # Where the bit of each row is: sorted by class, each class in its own words.
        self._place = np.empty(n, np.int64)
        self._place[order] = 64 * first_word[codes] + np.arange(n) - begin[codes]
        self.nlogn = nlogn = fixed_point_nlogn(n)
        constant = int(nlogn[labels.counts].sum() - nlogn[n])
        self._classes = kernels.Classes(first_word, labels.counts, nlogn, constant)
        self._class_of = labels.codes.astype(np.int64)
        self._clear()

    def _clear(self) -> None:
        self.roster = self.arrival = self.levels = self.n_bytes = _NONE
        self.left = np.empty(0, np.int32)
        self.size = 0

    @abstractmethod
    def _add_columns(self, new: Newcomers) -> IntArray:
        """Add columns, which get the numbers from ``size`` on; the bytes of each."""

    @abstractmethod
    def _column_arrays(self) -> dict[str, NDArray[Any]]:
        """What `_columns_from` needs of the members, in the order of the roster."""

    @abstractmethod
    def _columns_from(self, saved: Arrays) -> Any:
        """Columns as newcomers have them."""

    def _count_levels(
        self, counts: IntArray, owner: IntArray, n_columns: int
    ) -> tuple[IntArray, BoolArray, BoolArray]:
        """Numbers of categories, from the numbers of rows in all but the background.

        Also which columns have no row in the background, and which vary enough.
        """
        n = self._place.size
        background = n - np.bincount(owner, counts, n_columns).astype(np.int64)
        n_used = np.bincount(owner[counts > 0], minlength=n_columns)
        largest = background.copy()
        np.maximum.at(largest, owner, counts)
        is_full = background == 0
        return n_used + ~is_full, is_full, n - largest >= 2 * kernels.MIN_CELL

    def _own_parts(self, counts: IntArray, first: IntArray) -> IntArray:
        """The part of the statistic that depends on one column, for some columns.

        Of each the (category, class) counts are the rows from ``first`` on.
        """
        if not first.size:
            return first
        nlogn, rest = self.nlogn, self._classes.counts - np.add.reduceat(counts, first)
        own = nlogn[counts.sum(axis=1)] - nlogn[counts].sum(axis=1)
        own = np.add.reduceat(own, first) + nlogn[rest.sum(axis=1)]
        return np.asarray(own - nlogn[rest].sum(axis=1))

    def add(self, new: Newcomers, arrivals: IntArray) -> IntArray:
        """Add newcomers, and return their numbers."""
        size = self.size
        self.arrival = appended(self.arrival, size, arrivals)
        self.levels = appended(self.levels, size, new.levels)
        self.n_bytes = appended(self.n_bytes, size, self._add_columns(new))
        alive = np.full(arrivals.size, kernels.ALIVE, np.int32)
        self.left = appended(self.left, size, alive)
        self.size += arrivals.size
        return np.arange(size, self.size)

    def settle(self) -> None:
        """Forget the columns that have left, once there are many."""
        left = self.left[: self.size]
        has_left = left != kernels.ALIVE
        left[has_left] = -1
        if np.count_nonzero(has_left) > self.size // 8 + 64:
            arrays = self.arrays()
            self._clear()
            self._take(arrays)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The members in the order of the roster, for `restore`."""
        own = {name: getattr(self, name)[self.roster] for name in _SAVED}
        return own | self._column_arrays()

    def _take(self, saved: Arrays) -> None:
        levels = saved["levels"]
        columns = self._columns_from(saved)
        members = Newcomers(np.arange(levels.size), levels, columns, 0)
        self.roster = self.add(members, saved["arrival"])


def _collect(
    step: Callable[[IntArray, kernels.Hits], int],
    span: IntArray,
    n_newcomers: int,
    room: int,
) -> tuple[IntArray, IntArray]:
    """The pairs that a kernel finds in a span, and the number tested by newcomer.

    The kernel stops when its buffer is full. A row is a newcomer, a slot and the
    statistic.
    """
    size, n_tested = np.zeros(1, np.int64), np.zeros(n_newcomers, np.int64)
    hits = kernels.Hits(np.empty((max(_HITS, room), 3), np.int64), size, n_tested)
    found = []
    while True:
        span[0] = step(span, hits)
        found.append(hits.found[: size[0]].copy())
        size[0] = 0
        if span[0] == span[1]:
            return np.concatenate(found), n_tested


def _join(found: Iterable[tuple[IntArray, IntArray]]) -> tuple[IntArray, IntArray]:
    """What several calls of `_collect` have found."""
    pairs, n_tested = zip(*found, strict=True)
    return np.concatenate(pairs), sum(n_tested)


class Group:
    """Columns of one number of categories, in tiles with room for more."""

    def __init__(self, levels: int, classes: kernels.Classes) -> None:
        self._levels, self._classes = levels, classes
        self.size, self._numbers = 0, _NONE
        self.columns = self._allocate(kernels.TILE)

    def _allocate(self, n_slots: int) -> kernels.Members:
        n_tiles, n_planes = -(-n_slots // kernels.TILE), self._levels - 1
        n_classes, n_slots = self._classes.counts.size, kernels.TILE * n_tiles
        n_words = n_planes * int(self._classes.first_word[-1])
        return kernels.Members(
            words=np.zeros((n_tiles, n_words, kernels.TILE), np.uint64),
            ones=np.zeros((n_classes * n_planes + 1, n_slots), np.int32),
            scale=np.zeros((n_classes, n_slots)),
            shift=np.zeros((n_classes, n_slots)),
            own=np.zeros(n_slots, np.int64),
        )

    def add(self, new: kernels.Members, numbers: IntArray) -> None:
        """Add columns, whose numbers increase."""
        begin, end = self.size, self.size + numbers.size
        if end > self.columns.own.size:
            old, self.columns = self.columns, self._allocate(max(end, 2 * begin))
            self.columns.words[: len(old.words)] = old.words
            for larger, array in zip(self.columns[1:], old[1:], strict=True):
                larger[..., : array.shape[-1]] = array
        slots = np.arange(begin, end)
        self.columns.words[slots // kernels.TILE, :, slots % kernels.TILE] = new.words
        for mine, theirs in zip(self.columns[1:], new[1:], strict=True):
            mine[..., begin:end] = theirs
        self._numbers = appended(self._numbers, begin, numbers)
        self.size = end

    @property
    def numbers(self) -> IntArray:
        """The number of each column."""
        return self._numbers[: self.size]

    def words(self, numbers: IntArray) -> NDArray[np.uint64]:
        """The words of columns, one row per column."""
        slots = np.searchsorted(self.numbers, numbers)
        found: NDArray[np.uint64] = self.columns.words[
            slots // kernels.TILE, :, slots % kernels.TILE
        ]
        return found


class DensePool(_Pool):
    """Columns as bits, in groups by their number of categories."""

    def __init__(self, labels: Labels) -> None:
        super().__init__(labels)
        self._n_bits = 64 * int(self._classes.first_word[-1])

    def _clear(self) -> None:
        super()._clear()
        self._groups: dict[int, Group] = {}

    def encode(self, codes: DenseCodes) -> Newcomers:
        """Newcomers from the categories that a measure found."""
        m, has_planes = codes.arity.size, codes.code_row < 0
        owner = np.repeat(np.arange(m), np.where(has_planes, codes.arity - 1, 0))
        ones = codes.plane_count
        levels, is_full, is_varied = self._count_levels(ones, owner, m)
        is_used = ones > 0
        used = np.flatnonzero(is_used)
        first = used[np.unique(owner[used], return_index=True)[1]]
        is_used[first[is_full[owner[first]]]] = False  # the background from now on
        is_large = ~has_planes | (levels > MAX_LEVELS)
        is_chosen = ~is_large & is_varied
        planes = codes.planes[is_used & is_chosen[owner]]
        which = np.flatnonzero(is_chosen)
        columns = {
            level: (mine, self.as_members(planes[rows], level))
            for level, mine, rows in _by_level(levels[which])
        }
        n_left_out = int(np.count_nonzero(is_large))
        return Newcomers(which, levels[which], columns, n_left_out)

    def as_members(self, planes: NDArray[np.uint64], levels: int) -> kernels.Members:
        """Columns of planes in the order of rows, their bits sorted by class."""
        n = self._place.size
        rows = np.unpackbits(planes.view(np.uint8), axis=1, bitorder="little")[:, :n]
        bits = np.zeros((planes.shape[0], self._n_bits), np.uint8)
        bits[:, self._place] = rows
        words = np.packbits(bits, axis=1, bitorder="little").view(np.uint64)
        return self._measured(words, levels)

    def _measured(self, planes: NDArray[np.uint64], levels: int) -> kernels.Members:
        """Columns with the sums that the kernels need."""
        classes, n_planes = self._classes, levels - 1
        n_classes, m = classes.counts.size, planes.shape[0] // n_planes
        ones = np.empty((n_classes, n_planes, m), np.int64)
        n_bits = np.bitwise_count(planes).reshape(m, n_planes, -1)
        for c in range(n_classes):
            begin, end = classes.first_word[c : c + 2]
            ones[c] = n_bits[:, :, begin:end].sum(axis=2, dtype=np.int64).T
        sizes = classes.counts[:, None]
        by_plane = ones.transpose(2, 1, 0).reshape(-1, n_classes)
        own = self._own_parts(by_plane, n_planes * np.arange(m))
        product = (ones[:, 0] * (sizes - ones[:, 0])).astype(np.float64)
        with np.errstate(divide="ignore"):
            scale = np.where(product > 0, sizes**0.75 / np.sqrt(product), 0.0)
        shift = ones[:, 0] * scale / np.sqrt(sizes)
        flat = np.vstack([*ones.reshape(-1, m), ones[:, 0].sum(axis=0)])
        words = np.ascontiguousarray(planes.reshape(m, -1))
        return kernels.Members(words, flat, scale, shift, own)

    def _add_columns(self, new: Newcomers) -> IntArray:
        for level, (mine, columns) in new.columns.items():
            if level not in self._groups:
                self._groups[level] = Group(level, self._classes)
            self._groups[level].add(columns, self.size + mine)
        n_classes = self._classes.counts.size
        per_plane = self._n_bits // 8 + 4 * n_classes
        return (new.levels - 1) * per_plane + 16 * n_classes + 48

    def compare(
        self, new: Newcomers, numbers: IntArray, least: Bounds, n_threads: int
    ) -> tuple[IntArray, IntArray]:
        """Pairs of a newcomer and an earlier column whose statistic reaches a bound.

        ``numbers`` are those of the newcomers. Returns rows of the newcomer's
        position, the number of its partner and the statistic, and how many pairs were
        tested for each newcomer.
        """
        tasks: list[Any] = []
        n_classes = self._classes.counts.size
        for level, (mine, columns) in new.columns.items():
            for other, group in self._groups.items():
                limit = np.searchsorted(group.numbers, numbers[mine])
                n_tiles = -(-int(limit.max(initial=0)) // kernels.TILE)
                left = np.full(
                    kernels.TILE * -(-group.size // kernels.TILE), -1, np.int32
                )
                left[: group.size] = self.left[group.numbers]
                order = kernels.Order(limit, mine.astype(np.int32), left)
                bounds, shape = least(level, other), (n_classes, level - 1, other - 1)
                given = columns, group.columns, order, self._classes, bounds
                cuts = np.linspace(0, n_tiles, min(n_threads, max(n_tiles, 1)) + 1)
                for first, last in pairwise(cuts.tolist()):
                    tiles = np.array([first, last], np.int64)
                    tasks.append((given, shape, tiles, group.numbers))

        def run(task: Any) -> tuple[IntArray, IntArray]:
            given, shape, tiles, numbers_of = task
            scratch = kernels.tile_scratch(*shape)
            found, n_tested = _collect(
                lambda tiles, hits: kernels.compare_tiles(*given, tiles, scratch, hits),
                tiles,
                numbers.size,
                kernels.TILE * given[0].own.size,
            )
            found[:, 1] = numbers_of[found[:, 1]]
            return found, n_tested

        return _join(prepared_ahead(iter(tasks), run, n_threads))

    def codes(self, number: int) -> NDArray[np.uint8]:
        """Categories of a column, its rows sorted by class."""
        level = int(self.levels[number])
        words = self._groups[level].words(np.array([number]))
        bits = np.unpackbits(words.view(np.uint8), bitorder="little")
        planes = bits.reshape(level - 1, self._n_bits)[:, np.sort(self._place)]
        return np.asarray(planes.T @ np.arange(1, level, dtype=np.uint8), np.uint8)

    def _column_arrays(self) -> dict[str, NDArray[Any]]:
        levels = self.levels[self.roster]
        words = np.empty((int((levels - 1).sum()), self._n_bits // 64), np.uint64)
        for level, mine, rows in _by_level(levels):
            found = self._groups[level].words(self.roster[mine])
            words[rows] = found.reshape(-1, words.shape[1])
        return {"words": words}

    def restore(self, arrays: Arrays, n_seen: int) -> None:
        """Restore the members that `arrays` returned, or raise `RunError`."""
        words = {"words": Declared(np.uint64, (None, self._n_bits // 64))}
        saved = check_arrays(arrays, _SAVED | words, n_seen=n_seen)
        planes, ends = saved["words"], np.cumsum(saved["levels"] - 1)
        if planes.shape[0] != ends.max(initial=0):
            raise damaged("the planes of the pool do not fit its categories")
        is_row = np.zeros(self._n_bits, np.uint8)
        is_row[self._place] = 1
        if (planes & ~np.packbits(is_row, bitorder="little").view(np.uint64)).any():
            raise damaged("the pool has bits beyond the samples")
        if ends.size:
            either = np.bitwise_or.reduceat(planes, np.append(0, ends[:-1]))
            if np.bitwise_count(either).sum() != np.bitwise_count(planes).sum():
                raise damaged("a row of the pool has two categories")
        self._take(saved)

    def _columns_from(
        self, saved: Arrays
    ) -> dict[int, tuple[IntArray, kernels.Members]]:
        return {
            level: (mine, self._measured(saved["words"][rows], level))
            for level, mine, rows in _by_level(saved["levels"])
        }


def _by_level(levels: IntArray) -> Iterator[tuple[int, IntArray, IntArray]]:
    """For each number of categories, the columns that have it, and their planes.

    The planes of all columns are rows of one array.
    """
    first = np.cumsum(levels - 1) - (levels - 1)
    for level in np.unique(levels).tolist():
        mine = np.flatnonzero(levels == level)
        yield level, mine, (first[mine, None] + np.arange(level - 1)).ravel()


class SparsePool(_Pool):
    """Columns by the rows outside their background category, and an index of rows."""

    def _clear(self) -> None:
        super()._clear()
        rows, codes = np.empty(0, np.int32), np.empty(0, np.uint8)
        counted = (_NONE,) * 5
        self._members = kernels.SparseMembers(
            np.zeros(1, np.int64), rows, codes, *counted
        )
        self._index = kernels.RowIndex(np.full(self._class_of.size, -1), _NONE, _NONE)
        self._n_margins = 0

    def encode(self, codes: SparseCodes) -> Newcomers:
        """Newcomers from the categories that a measure found."""
        m, n_codes = codes.arity.size, codes.arity - 1
        owner = np.repeat(np.arange(m), n_codes)
        counts = codes.counts[: owner.size]
        levels, _, is_varied = self._count_levels(counts, owner, m)
        which = np.flatnonzero((levels <= MAX_LEVELS) & is_varied)
        length = codes.length[which]
        entries = _entries(codes.offset[which], length)
        saved = {
            "length": length,
            "rows": codes.rows[entries].astype(np.int32),
            "codes": codes.codes[entries].astype(np.uint8),
            "levels": levels[which],
            "n_codes": n_codes[which],
        }
        n_left_out = int(np.count_nonzero(levels > MAX_LEVELS))
        return Newcomers(which, levels[which], self._columns_from(saved), n_left_out)

    def _columns_from(self, saved: Arrays) -> kernels.SparseMembers:
        sizes, codes = self._classes.counts, saved["codes"]
        rows, levels, n_codes = saved["rows"], saved["levels"], saved["n_codes"]
        offset, m = np.concatenate([[0], np.cumsum(saved["length"])]), levels.size
        n_margins = n_codes * sizes.size
        margin_offset = np.cumsum(n_margins) - n_margins
        owner = np.repeat(np.arange(m), saved["length"])
        at = margin_offset[owner] + (codes.astype(np.int64) - 1) * sizes.size
        margins = np.bincount(at + self._class_of[rows], minlength=int(n_margins.sum()))
        first = np.cumsum(n_codes) - n_codes
        own = self._own_parts(margins.reshape(-1, sizes.size), first)
        return kernels.SparseMembers(
            offset, rows, codes, levels, n_codes, margin_offset, margins, own
        )

    def _add_columns(self, new: Newcomers) -> IntArray:
        columns: kernels.SparseMembers = new.columns
        old, index, size = self._members, self._index, self.size
        n_entries, n_margins = int(old.offset[size]), self._n_margins
        blank = np.empty(columns.rows.size, np.int64)
        sizes = size + 1, n_entries, n_entries, size, size, size, n_margins, size
        moved = columns._replace(
            offset=n_entries + columns.offset[1:],
            margin_offset=n_margins + columns.margin_offset,
        )
        self._members = kernels.SparseMembers(*map(appended, old, sizes, moved))
        self._index = index._replace(
            following=appended(index.following, n_entries, blank),
            owner=appended(index.owner, n_entries, blank),
        )
        self._n_margins += columns.margins.size
        kernels.link_rows(self._members, self._index, size, size + columns.own.size)
        n_cells: IntArray = columns.n_codes * self._classes.counts.size
        return 21 * np.diff(columns.offset) + 8 * n_cells + 80

    def compare(
        self, new: Newcomers, numbers: IntArray, least: Bounds, n_threads: int
    ) -> tuple[IntArray, IntArray]:
        """Pairs of a newcomer and an earlier column whose statistic reaches a bound."""
        n_new, size = numbers.size, self.size
        bounds = np.zeros((MAX_LEVELS + 1, MAX_LEVELS + 1))
        levels = np.unique(self.levels[:size]).tolist()
        for a in levels:
            for b in levels:
                bounds[a, b] = least(a, b)[0]
        most_codes = int(self._members.n_codes[:size].max())
        n_classes = self._classes.counts.size
        n_parts = n_threads if n_new >= 2 * n_threads else 1
        cuts = np.linspace(size - n_new, size, n_parts + 1).astype(np.int64)
        given = self._members, self._index, self._class_of, self.left, self._classes

        def run(part: int) -> tuple[IntArray, IntArray]:
            scratch = kernels.SparseScratch(
                np.zeros((size, most_codes**2 * n_classes + 1), np.int32),
                np.empty(size, np.int64),
                np.empty((most_codes + 1) ** 2 * n_classes, np.int64),
            )
            return _collect(
                lambda span, hits: kernels.compare_sparse(
                    *given, bounds, span, scratch, hits
                ),
                np.array([*cuts[part : part + 2], size - n_new]),
                n_new,
                size,
            )

        return _join(prepared_ahead(iter(range(n_parts)), run, n_threads))

    def codes(self, number: int) -> NDArray[np.uint8]:
        """Categories of a column, its rows sorted by class."""
        begin, end = self._members.offset[number : number + 2]
        codes = np.zeros(self._class_of.size, np.uint8)
        codes[self._members.rows[begin:end]] = self._members.codes[begin:end]
        return codes[np.argsort(self._place)]

    def _column_arrays(self) -> dict[str, NDArray[Any]]:
        members, roster = self._members, self.roster
        length: IntArray = np.diff(members.offset)[roster]
        entries = _entries(members.offset[roster], length)
        return {
            "n_codes": members.n_codes[roster],
            "length": length,
            "rows": members.rows[entries],
            "codes": members.codes[entries],
        }

    def restore(self, arrays: Arrays, n_seen: int) -> None:
        """Restore the members that `arrays` returned, or raise `RunError`."""
        n = self._class_of.size
        table = {
            "n_codes": Declared(np.int64, ("k",), 1, MAX_LEVELS + 1),
            "length": Declared(np.int64, ("k",), 1, n + 1),
            "rows": Declared(np.int32, ("n_entries",), 0, n),
            "codes": Declared(np.uint8, ("n_entries",), 1, MAX_LEVELS + 1),
        }
        saved = check_arrays(arrays, _SAVED | table, n_seen=n_seen)
        length, rows = saved["length"], saved["rows"]
        owner = np.repeat(np.arange(length.size), length)
        if owner.size != rows.size:
            raise damaged("the rows of the pool do not fit its columns")
        if (saved["codes"] > saved["n_codes"][owner]).any():
            raise damaged("a code of the pool is out of range")
        if ((np.diff(rows) <= 0) & (np.diff(owner) == 0)).any():
            raise damaged("the rows of a column of the pool do not increase")
        self._take(saved)


Pool = DensePool | SparsePool


def _entries(begin: IntArray, length: IntArray) -> IntArray:
    """The entries of columns, one column after the other."""
    first = np.cumsum(length) - length
    return np.repeat(begin - first, length) + np.arange(int(length.sum()))
