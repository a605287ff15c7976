"""The pool of sparse columns: by the rows outside their background category."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from featstream.measures.inputs import Labels
from featstream.measures.storages.sparse_codes import SparseCodes
from featstream.protocols import FloatArray, IntArray
from featstream.runs.arrays import Declared, check_arrays, damaged
from featstream.selectors.interactions.kernels import (
    ALIVE,
    MIN_CELL,
    Order,
    RowIndex,
    SparseMembers,
    SparseScratch,
    compare_sparse,
    link_rows,
)
from featstream.selectors.interactions.pools import (
    MAX_LEVELS,
    Newcomers,
    Pairs,
    in_threads,
    joined,
    lay_out,
    new_hits,
)
from featstream.selectors.result import appended

_HITS = 1 << 14


class SparsePool:
    """Sparse columns with an index of their rows; otherwise as `DensePool`."""

    def __init__(self, labels: Labels) -> None:
        self._classes, place = lay_out(labels)
        self.nlogn = self._classes.nlogn
        self._class_of = labels.codes.astype(np.int64)
        self._rank = np.argsort(np.argsort(place))
        self.roster = np.empty((0, 2), np.int64)
        self._clear()

    def _clear(self) -> None:
        n, none = self._class_of.size, np.empty(0, np.int64)
        self._members = SparseMembers(
            offset=np.zeros(1, np.int64),
            rows=np.empty(0, np.int32),
            codes=np.empty(0, np.uint8),
            levels=none,
            n_codes=none,
            margin_offset=none,
            margins=none,
            own=none,
        )
        self._index = RowIndex(np.full(n, -1), none, none)
        self._arrival, self._score = none, np.empty(0)
        self._left = np.empty(0, np.int32)
        self._size = self._n_margins = 0

    def encode(self, codes: SparseCodes) -> Newcomers:
        """Newcomers from the categories that a measure found."""
        n, m = self._class_of.size, codes.arity.size
        n_codes = codes.arity - 1
        owner = np.repeat(np.arange(m), n_codes)
        counts = codes.counts[: owner.size]
        background = n - np.bincount(owner, counts, m).astype(np.int64)
        levels = (background > 0) + np.bincount(owner[counts > 0], minlength=m)
        largest = background.copy()
        np.maximum.at(largest, owner, counts)
        is_varied = n - largest >= 2 * MIN_CELL
        which = np.flatnonzero((levels <= MAX_LEVELS) & is_varied)
        length = codes.length[which]
        offset = np.concatenate([[0], np.cumsum(length)])
        entries = np.repeat(codes.offset[which] - offset[:-1], length)
        entries += np.arange(offset[-1])
        columns = self._measured(
            offset,
            codes.rows[entries].astype(np.int32),
            codes.codes[entries].astype(np.uint8),
            levels[which],
            n_codes[which],
        )
        n_left_out = int(np.count_nonzero(levels > MAX_LEVELS))
        parts = {0: (np.arange(which.size), columns)}
        return Newcomers(which, levels[which], parts, n_left_out)

    def _measured(
        self,
        offset: IntArray,
        rows: NDArray[np.int32],
        codes: NDArray[np.uint8],
        levels: IntArray,
        n_codes: IntArray,
    ) -> SparseMembers:
        """Columns with what the kernels need to know of each."""
        sizes, nlogn, m = self._classes.counts, self.nlogn, levels.size
        n_margins = n_codes * sizes.size
        margin_offset = np.cumsum(n_margins) - n_margins
        owner = np.repeat(np.arange(m), np.diff(offset))
        at = margin_offset[owner] + (codes.astype(np.int64) - 1) * sizes.size
        margins = np.bincount(at + self._class_of[rows], minlength=int(n_margins.sum()))
        own = np.zeros(m, np.int64)
        if m:
            first = np.cumsum(n_codes) - n_codes
            by_code = margins.reshape(-1, sizes.size)
            rest = sizes - np.add.reduceat(by_code, first)
            own = np.add.reduceat(nlogn[by_code.sum(axis=1)], first)
            own -= np.add.reduceat(nlogn[by_code].sum(axis=1), first)
            own += nlogn[rest.sum(axis=1)] - nlogn[rest].sum(axis=1)
        return SparseMembers(
            offset, rows, codes, levels, n_codes, margin_offset, margins, own
        )

    def bytes_of(self, newcomers: Newcomers) -> IntArray:
        """Memory that each newcomer takes."""
        return self._bytes_of(newcomers.parts[0][1], np.arange(newcomers.which.size))

    def bytes_held(self) -> list[int]:
        """Memory that each member takes, in the order of the roster."""
        held: list[int] = self._bytes_of(self._members, self.roster[:, 1]).tolist()
        return held

    def _bytes_of(self, members: SparseMembers, slots: IntArray) -> IntArray:
        n_entries: IntArray = np.diff(members.offset)[slots]
        n_margins: IntArray = members.n_codes[slots] * self._classes.counts.size
        return 21 * n_entries + 8 * n_margins + 80

    def arrivals(self) -> IntArray:
        """Arrivals of the members, in the order of the roster."""
        return self._arrival[self.roster[:, 1]]

    def score_of(self, place: NDArray[np.int64]) -> float:
        """The score that a column was added with."""
        return float(self._score[place[1]])

    def add(
        self, newcomers: Newcomers, arrivals: IntArray, scores: FloatArray
    ) -> IntArray:
        """Add newcomers, and return the number of categories and slot of each."""
        new, old, index = newcomers.parts[0][1], self._members, self._index
        size, n_new = self._size, arrivals.size
        n_entries, n_margins = int(old.offset[size]), self._n_margins
        blank = np.empty(new.rows.size, np.int64)
        sizes = size + 1, n_entries, n_entries, size, size, size, n_margins, size
        moved = new._replace(
            offset=n_entries + new.offset[1:],
            margin_offset=n_margins + new.margin_offset,
        )
        self._members = SparseMembers(*map(appended, old, sizes, moved))
        self._index = index._replace(
            following=appended(index.following, n_entries, blank),
            owner=appended(index.owner, n_entries, blank),
        )
        self._arrival = appended(self._arrival, size, arrivals)
        self._score = appended(self._score, size, scores)
        alive = np.full(n_new, ALIVE, np.int32)
        self._left = appended(self._left, size, alive)
        self._size, self._n_margins = size + n_new, n_margins + new.margins.size
        link_rows(self._members, self._index, size, self._size)
        return np.stack([newcomers.levels, size + np.arange(n_new)], axis=1)

    def leave(self, place: NDArray[np.int64], position: int) -> None:
        """Mark that a column leaves with the newcomer at a position."""
        self._left[place[1]] = position

    def compare(
        self, newcomers: Newcomers, places: IntArray, least: Any, n_threads: int
    ) -> tuple[Pairs, IntArray]:
        """Pairs of newcomers with what came before them that reach a bound."""
        n_new, size = places.shape[0], self._size
        levels = np.unique(self._members.levels[:size]).tolist()
        bounds = np.zeros((MAX_LEVELS + 1, MAX_LEVELS + 1))
        for a in levels:
            for b in levels:
                bounds[a, b] = least(a, b)[0]
        most_codes = int(self._members.n_codes[:size].max())
        order = Order(
            np.empty(0, np.int64), np.arange(n_new, dtype=np.int32), self._left
        )
        n_classes = self._classes.counts.size
        n_parts = n_threads if n_new >= 2 * n_threads else 1
        cuts = np.linspace(size - n_new, size, n_parts + 1).astype(np.int64)

        def run(part: int) -> tuple[list[Pairs], IntArray]:
            slots = np.array([*cuts[part : part + 2], size - n_new])
            hits = new_hits(max(_HITS, size), n_new)
            scratch = SparseScratch(
                np.zeros((size, most_codes**2 * n_classes + 1), np.int32),
                np.empty(size, np.int64),
                np.empty((most_codes + 1) ** 2 * n_classes, np.int64),
            )
            found = []
            while True:
                slots[0] = compare_sparse(
                    self._members,
                    self._index,
                    self._class_of,
                    order,
                    self._classes,
                    bounds,
                    slots,
                    scratch,
                    hits,
                )
                k = int(hits.size[0])
                slot = hits.slot[:k].copy()
                place = np.stack([self._members.levels[slot], slot], axis=1)
                found.append(
                    Pairs(
                        hits.newcomer[:k].copy(),
                        self._arrival[slot],
                        hits.statistic[:k].copy(),
                        place,
                    )
                )
                hits.size[0] = 0
                if slots[0] == slots[1]:
                    return found, hits.n_tested

        outcomes = in_threads(run, list(range(n_parts)), n_threads)
        n_tested = np.sum([counted for _, counted in outcomes], axis=0)
        return joined([pairs for found, _ in outcomes for pairs in found]), n_tested

    def codes(self, place: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Categories of a column, its rows sorted by class."""
        begin, end = self._members.offset[place[1] : place[1] + 2]
        codes = np.zeros(self._rank.size, np.uint8)
        codes[self._rank[self._members.rows[begin:end]]] = self._members.codes[
            begin:end
        ]
        return codes

    def settle(self) -> None:
        """Forget the columns that have left, once there are many."""
        is_alive = self._left[: self._size] == ALIVE
        n_alive = int(np.count_nonzero(is_alive))
        self._left[: self._size][~is_alive] = -1
        if n_alive < self._size - self._size // 8 - 64:
            arrays = self.arrays()
            self._clear()
            self._take(arrays)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The members in the order of the roster, for `restore`."""
        members, slots = self._members, self.roster[:, 1]
        length: IntArray = np.diff(members.offset)[slots]
        first = np.cumsum(length) - length
        entries = np.repeat(members.offset[slots] - first, length)
        entries += np.arange(entries.size)
        return {
            "arrival": self._arrival[slots],
            "score": self._score[slots],
            "levels": members.levels[slots],
            "n_codes": members.n_codes[slots],
            "length": length,
            "rows": members.rows[entries],
            "codes": members.codes[entries],
        }

    def _take(self, saved: Mapping[str, NDArray[Any]]) -> None:
        offset = np.concatenate([[0], np.cumsum(saved["length"])])
        names = ("rows", "codes", "levels", "n_codes")
        columns = self._measured(offset, *(saved[name] for name in names))
        which = np.arange(saved["levels"].size)
        members = Newcomers(which, saved["levels"], {0: (which, columns)}, 0)
        self.roster = self.add(members, saved["arrival"], saved["score"])

    def restore(self, arrays: Mapping[str, NDArray[Any]], n_seen: int) -> None:
        """Take back the members that `arrays` gave."""
        n = self._class_of.size
        table = {
            "arrival": Declared(np.int64, ("k",), 0, "n_seen"),
            "score": Declared(np.float64, ("k",)),
            "levels": Declared(np.int64, ("k",), 2, MAX_LEVELS + 1),
            "n_codes": Declared(np.int64, ("k",), 1, MAX_LEVELS + 1),
            "length": Declared(np.int64, ("k",), 1, n + 1),
            "rows": Declared(np.int32, ("n_entries",), 0, n),
            "codes": Declared(np.uint8, ("n_entries",), 1, MAX_LEVELS + 1),
        }
        saved = check_arrays(arrays, table, n_seen=n_seen)
        length, rows = saved["length"], saved["rows"]
        owner = np.repeat(np.arange(length.size), length)
        if owner.size != rows.size:
            raise damaged("the rows of the pool do not fit its columns")
        if (saved["codes"] > saved["n_codes"][owner]).any():
            raise damaged("a code of the pool is out of range")
        if ((np.diff(rows) <= 0) & (np.diff(owner) == 0)).any():
            raise damaged("the rows of a column of the pool do not increase")
        self._take(saved)
