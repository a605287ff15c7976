"""Pairs counted class by class: bits in tiles, or the rows of sparse columns.

Rows are sorted by class, and each class begins with a word of its own. So one pass
of AND and popcount over the words of a pair counts the rows that two features share
in every class, for the price of one count over all rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from featstream.jit import inner, lean
from featstream.measures.storages.bitplanes import ones_of_word

TILE = 64
"""Pool columns that lie together: word by word, so that popcounts are vectorised."""

MIN_CELL = 5
"""Rows that two categories must share for the pair's table to count on them."""

ALIVE = 1 << 30
"""Place at which a column leaves the pool that does not leave it."""


class Classes(NamedTuple):
    """The target: where the words of each class begin, sizes, and sums of n log n."""

    first_word: np.ndarray
    counts: np.ndarray
    nlogn: np.ndarray
    constant: int


class Members(NamedTuple):
    """Columns of one number of categories, as bits: in rows, or in tiles.

    ``words`` has the shape (columns, planes * words) or (tiles, planes * words,
    TILE). ``ones[c * planes + p]`` counts the rows of class c in plane p; ``scale``
    and ``shift`` standardise the count of common rows (two categories only).
    ``own`` is the part of the statistic that depends on one column.
    """

    words: np.ndarray
    ones: np.ndarray
    scale: np.ndarray
    shift: np.ndarray
    own: np.ndarray


class Order(NamedTuple):
    """Which pairs there are: newcomer q with the slots below ``limit[q]``.

    ``position`` is the newcomer's place in its block; slot s is in the pool for the
    newcomers up to the place ``left[s]``.
    """

    limit: np.ndarray
    position: np.ndarray
    left: np.ndarray


class Hits(NamedTuple):
    """Pairs whose statistic reaches a bound, how many there are, pairs tested."""

    newcomer: np.ndarray
    slot: np.ndarray
    statistic: np.ndarray
    size: np.ndarray
    n_tested: np.ndarray


class Scratch(NamedTuple):
    """Buffers of one thread for the columns of a tile."""

    counts: np.ndarray
    total: np.ndarray
    bound: np.ndarray
    cells: np.ndarray


def tile_scratch(n_classes: int, planes: int, other_planes: int) -> Scratch:
    """Buffers for columns of these numbers of planes."""
    n_cells = (planes + 1) * (other_planes + 1) * (n_classes + 1)
    return Scratch(
        counts=np.zeros((n_classes * planes * other_planes, TILE), np.int32),
        total=np.zeros(TILE, np.int32),
        bound=np.zeros(TILE),
        cells=np.zeros(n_cells, np.int64),
    )


@inner
def _count_common(plane, tile, begin, end, offset, other, counts):
    """Common rows of a plane with every column of a tile, in the words of a class.

    The plane is words ``offset`` on of the newcomer; that of the tile, ``other`` on.
    """
    for i in range(TILE):
        counts[i] = 0
    w = begin
    while w + 8 <= end:
        a, b = offset + w, other + w
        x0, x1, x2, x3 = plane[a], plane[a + 1], plane[a + 2], plane[a + 3]
        x4, x5, x6, x7 = plane[a + 4], plane[a + 5], plane[a + 6], plane[a + 7]
        for i in range(TILE):
            counts[i] += np.int32(
                ones_of_word(x0 & tile[b, i])
                + ones_of_word(x1 & tile[b + 1, i])
                + ones_of_word(x2 & tile[b + 2, i])
                + ones_of_word(x3 & tile[b + 3, i])
                + ones_of_word(x4 & tile[b + 4, i])
                + ones_of_word(x5 & tile[b + 5, i])
                + ones_of_word(x6 & tile[b + 6, i])
                + ones_of_word(x7 & tile[b + 7, i])
            )
        w += 8
    while w < end:
        x0, b = plane[offset + w], other + w
        for i in range(TILE):
            counts[i] += np.int32(ones_of_word(x0 & tile[b, i]))
        w += 1


@inner
def _statistic(cells, n_cells, n_free, classes, own):
    """The statistic from the table of a pair, (classes, cells), and if it is a test.

    It is n times the interaction information, in the unit of the table of n log n:
    integers, so that no order of sums matters. There is nothing to test unless more
    than ``n_free`` cells, the number that the margins need, have rows enough.
    """
    nlogn, n_classes = classes.nlogn, classes.counts.size
    n_present = 0
    total = own + classes.constant
    for k in range(n_cells):
        here = 0
        for c in range(n_classes):
            count = cells[c * n_cells + k]
            total += nlogn[count]
            here += count
        total -= nlogn[here]
        n_present += here >= MIN_CELL
    return total, n_present > n_free


@inner
def _add_hit(hits, newcomer, slot, statistic):
    k = hits.size[0]
    hits.newcomer[k] = newcomer
    hits.slot[k] = slot
    hits.statistic[k] = statistic
    hits.size[0] = k + 1


@lean
def compare_binary(new, pool, order, classes, least, tiles, scratch, hits):
    """Pairs of columns of two categories with a statistic of at least ``least[0]``.

    From the tile ``tiles[0]`` on, before ``tiles[1]``; returns where it stopped
    because ``hits`` is full. ``least[1]`` is half the bound in nats: the statistic is
    at most twice the sum of the chi-square statistics of the two columns within each
    class, which takes no logarithm.
    """
    n_classes, n = classes.counts.size, classes.nlogn.size - 1
    counts, total, bound = scratch.counts, scratch.total, scratch.bound
    cells = scratch.cells
    least_exact, least_bound = np.int64(least[0]), least[1]
    for t in range(tiles[0], tiles[1]):
        if hits.newcomer.size - hits.size[0] < TILE * new.own.size:
            return t
        first = t * TILE
        tile, left = pool.words[t], order.left[first : first + TILE]
        for q in range(new.own.size):
            k = min(TILE, order.limit[q] - first)
            if k <= 0:
                continue
            ones_q = 0
            for i in range(TILE):
                total[i] = 0
                bound[i] = 0.0
            for c in range(n_classes):
                begin, end = classes.first_word[c], classes.first_word[c + 1]
                common = counts[c]
                _count_common(new.words[q], tile, begin, end, 0, 0, common)
                ones_q += new.ones[c, q]
                scale_q, shift_q = new.scale[c, q], new.shift[c, q]
                scale = pool.scale[c, first : first + TILE]
                shift = pool.shift[c, first : first + TILE]
                for i in range(TILE):
                    total[i] += common[i]
                    z = common[i] * scale_q * scale[i] - shift_q * shift[i]
                    bound[i] += z * z
            position = order.position[q]
            n_tested = n_near = np.int32(0)
            all_ones = pool.ones[n_classes, first : first + TILE]
            low_q = np.int32(ones_q - MIN_CELL)
            rest = np.int32(n - ones_q - MIN_CELL)
            for i in range(k):
                is_tested = (
                    (total[i] >= np.int32(MIN_CELL))
                    & (total[i] <= low_q)
                    & (total[i] <= all_ones[i] - np.int32(MIN_CELL))
                    & (all_ones[i] - total[i] <= rest)
                    & (position <= left[i])
                )
                n_tested += is_tested
                n_near += is_tested & (bound[i] >= least_bound)
            hits.n_tested[q] += n_tested
            if not n_near:
                continue
            for i in range(k):
                if bound[i] < least_bound or position > left[i]:
                    continue
                for c in range(n_classes):
                    both = np.int64(counts[c, i])
                    only_new = new.ones[c, q] - both
                    only_old = pool.ones[c, first + i] - both
                    cells[4 * c] = both
                    cells[4 * c + 1] = only_new
                    cells[4 * c + 2] = only_old
                    cells[4 * c + 3] = classes.counts[c] - both - only_new - only_old
                own = new.own[q] + pool.own[first + i]
                value, is_tested = _statistic(cells, 4, 3, classes, own)
                if is_tested and value >= least_exact:
                    _add_hit(hits, q, first + i, value)
    return tiles[1]


@lean
def compare_levels(new, pool, order, classes, least, tiles, scratch, hits):
    """As `compare_binary`, for columns of any numbers of categories.

    The kernel counts the pairs of planes; the rest of a table follows from margins.
    """
    n_classes, n_words = classes.counts.size, classes.first_word[-1]
    n_new = new.words.shape[1] // n_words
    n_old = pool.words.shape[1] // n_words
    n_a, n_b = n_new + 1, n_old + 1
    counts, cells = scratch.counts, scratch.cells
    least_exact = np.int64(least[0])
    for t in range(tiles[0], tiles[1]):
        if hits.newcomer.size - hits.size[0] < TILE * new.own.size:
            return t
        first = t * TILE
        tile = pool.words[t]
        for q in range(new.own.size):
            k = min(TILE, order.limit[q] - first)
            if k <= 0:
                continue
            for c in range(n_classes):
                begin, end = classes.first_word[c], classes.first_word[c + 1]
                for a in range(n_new):
                    for b in range(n_old):
                        common = counts[(c * n_new + a) * n_old + b]
                        _count_common(
                            new.words[q],
                            tile,
                            begin,
                            end,
                            a * n_words,
                            b * n_words,
                            common,
                        )
            for i in range(k):
                if order.position[q] > order.left[first + i]:
                    continue
                for c in range(n_classes):
                    at = c * n_a * n_b
                    cells[at] = classes.counts[c]
                    for b in range(n_old):
                        cells[at + b + 1] = pool.ones[c * n_old + b, first + i]
                        cells[at] -= cells[at + b + 1]
                    for a in range(n_new):
                        row = at + (a + 1) * n_b
                        cells[row] = new.ones[c * n_new + a, q]
                        for b in range(n_old):
                            both = np.int64(counts[(c * n_new + a) * n_old + b, i])
                            cells[row + b + 1] = both
                            cells[row] -= both
                            cells[at + b + 1] -= both
                        cells[at] -= cells[row]
                own = new.own[q] + pool.own[first + i]
                value, is_tested = _statistic(
                    cells, n_a * n_b, n_a + n_b - 1, classes, own
                )
                if is_tested:
                    hits.n_tested[q] += 1
                    if value >= least_exact:
                        _add_hit(hits, q, first + i, value)
    return tiles[1]


class SparseMembers(NamedTuple):
    """Columns by the rows that are not in their background category 0.

    Those of column k are the entries from ``offset[k]`` on. It has ``levels[k]``
    categories with rows; ``margins``, from ``margin_offset[k]`` on, counts (code,
    class) for the ``n_codes[k]`` codes of its entries.
    """

    offset: np.ndarray
    rows: np.ndarray
    codes: np.ndarray
    levels: np.ndarray
    n_codes: np.ndarray
    margin_offset: np.ndarray
    margins: np.ndarray
    own: np.ndarray


class RowIndex(NamedTuple):
    """Entries by row, the newest first, and the column of each entry."""

    head: np.ndarray
    following: np.ndarray
    owner: np.ndarray


class SparseScratch(NamedTuple):
    """Buffers of one thread; ``counts`` is zero between newcomers."""

    counts: np.ndarray
    touched: np.ndarray
    cells: np.ndarray


@lean
def link_rows(members, index, first, last):
    """Enter the columns from slot ``first`` on, before ``last``, in the index."""
    for slot in range(first, last):
        for e in range(members.offset[slot], members.offset[slot + 1]):
            row = members.rows[e]
            index.following[e] = index.head[row]
            index.owner[e] = slot
            index.head[row] = e


@lean
def compare_sparse(
    members, index, class_of, order, classes, bounds, slots, scratch, hits
):
    """Pairs of the columns in some slots with those before them, by the row index.

    ``bounds[a, b]`` is what the statistic must reach for a and b categories. Only
    pairs that share a row outside the background are looked at: the others have no
    more cells than the margins need. Returns the slot at which it stopped because
    ``hits`` is full.
    """
    n_classes = classes.counts.size
    counts, touched, cells = scratch.counts, scratch.touched, scratch.cells
    n_pairs_of_codes = counts.shape[1] // n_classes
    most_codes = np.int64(np.sqrt(n_pairs_of_codes) + 0.5)
    for k in range(slots[0], slots[1]):
        if hits.newcomer.size - hits.size[0] < k:
            return k
        q = k - slots[2]
        n_touched = 0
        for e in range(members.offset[k], members.offset[k + 1]):
            row = members.rows[e]
            at = np.int64(members.codes[e] - 1) * most_codes - 1
            c, other = class_of[row], index.head[row]
            while other >= 0:
                slot = index.owner[other]
                if slot < k:
                    if counts[slot, counts.shape[1] - 1] == 0:
                        touched[n_touched] = slot
                        n_touched += 1
                    cell = (at + members.codes[other]) * n_classes + c
                    counts[slot, cell] += 1
                    counts[slot, counts.shape[1] - 1] += 1
                other = index.following[other]
        n_a, margin_a = members.n_codes[k] + 1, members.margin_offset[k]
        for t in range(n_touched):
            slot = touched[t]
            common = counts[slot]
            n_common = common[common.size - 1]
            if n_common >= MIN_CELL and order.position[q] <= order.left[slot]:
                n_b, margin_b = members.n_codes[slot] + 1, members.margin_offset[slot]
                for c in range(n_classes):
                    at = c * n_a * n_b
                    cells[at] = classes.counts[c]
                    for b in range(n_b - 1):
                        cells[at + b + 1] = members.margins[
                            margin_b + b * n_classes + c
                        ]
                        cells[at] -= cells[at + b + 1]
                    for a in range(n_a - 1):
                        here = at + (a + 1) * n_b
                        cells[here] = members.margins[margin_a + a * n_classes + c]
                        for b in range(n_b - 1):
                            both = common[(a * most_codes + b) * n_classes + c]
                            cells[here + b + 1] = both
                            cells[here] -= both
                            cells[at + b + 1] -= both
                        cells[at] -= cells[here]
                own = members.own[k] + members.own[slot]
                levels_a, levels_b = members.levels[k], members.levels[slot]
                value, is_tested = _statistic(
                    cells, n_a * n_b, levels_a + levels_b - 1, classes, own
                )
                hits.n_tested[q] += is_tested
                if is_tested and value >= bounds[levels_a, levels_b]:
                    _add_hit(hits, q, slot, value)
            common[:] = 0
    return slots[1]
