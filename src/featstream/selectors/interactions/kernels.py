"""Pairs counted class by class: bits in tiles, or the rows of sparse columns.

Rows are sorted by class, and each class begins with a word of its own. So one pass
of AND and popcount over the words of a pair counts the rows that two features share
in every class, for the price of one count over all rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from featstream.jit import inner, kernel
from featstream.measures.storages.dense_codes import ones_of_word

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
    """Pairs whose statistic reaches a bound; ``n_tested`` counts by newcomer.

    The first ``size[0]`` rows of ``found`` are newcomers, slots and statistics.
    """

    found: np.ndarray
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
def _fill_cells(cells, total, margin_a, margin_b, common, stride):
    """The table of a class, from its margins and from the rows that categories share.

    The margins are of the categories but the first; ``common[a * stride + b]`` counts
    the rows in two of these.
    """
    n_b = margin_b.size + 1
    cells[0] = total
    for b in range(margin_b.size):
        cells[b + 1] = margin_b[b]
        cells[0] -= margin_b[b]
    for a in range(margin_a.size):
        row = (a + 1) * n_b
        cells[row] = margin_a[a]
        for b in range(margin_b.size):
            both = np.int64(common[a * stride + b])
            cells[row + b + 1] = both
            cells[row] -= both
            cells[b + 1] -= both
        cells[0] -= cells[row]


@inner
def _add_hit(hits, newcomer, slot, statistic):
    row = hits.found[hits.size[0]]
    row[0], row[1], row[2] = newcomer, slot, statistic
    hits.size[0] += 1


@inner
def _screen_binary(new, q, pool, order, first, k, classes, least, scratch, hits):
    """Count the tests of a newcomer with a tile, and those that may reach a bound.

    The columns have two categories. The statistic is at most twice the sum of the
    chi-square statistics of the two columns within each class, which takes no
    logarithm: ``scratch.bound``; ``least`` is half of what it has to reach.
    """
    n_classes, n = classes.counts.size, classes.nlogn.size - 1
    total, bound, ones_q = scratch.total, scratch.bound, 0
    tile, left = pool.words[first // TILE], order.left[first : first + TILE]
    for i in range(TILE):
        total[i] = 0
        bound[i] = 0.0
    for c in range(n_classes):
        begin, end = classes.first_word[c], classes.first_word[c + 1]
        common = scratch.counts[c]
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
        n_near += is_tested & (bound[i] >= least)
    hits.n_tested[position] += n_tested
    return n_near


@kernel
def compare_tiles(new, pool, order, classes, least, tiles, scratch, hits):
    """Pairs of newcomers and columns with a statistic of at least ``least[0]``.

    From the tile ``tiles[0]`` on, before ``tiles[1]``; returns where it stopped
    because ``hits`` is full. ``least[1]`` is half the bound in nats. The rows that two
    planes share are counted; the rest of a table follows from margins.
    """
    n_classes, n_words = classes.counts.size, classes.first_word[-1]
    n_new = new.words.shape[1] // n_words
    n_old = pool.words.shape[1] // n_words
    n_common, n_cells = n_new * n_old, (n_new + 1) * (n_old + 1)
    counts, cells, is_binary = scratch.counts, scratch.cells, n_common == 1
    for t in range(tiles[0], tiles[1]):
        if len(hits.found) - hits.size[0] < TILE * new.own.size:
            return t
        first, tile = t * TILE, pool.words[t]
        for q in range(new.own.size):
            k, position = min(TILE, order.limit[q] - first), order.position[q]
            if k <= 0:
                continue
            if is_binary:
                n_near = _screen_binary(
                    new, q, pool, order, first, k, classes, least[1], scratch, hits
                )
                if not n_near:
                    continue
            for ab in range(0 if is_binary else n_common):
                offset, other = ab // n_old * n_words, ab % n_old * n_words
                for c in range(n_classes):
                    begin, end = classes.first_word[c], classes.first_word[c + 1]
                    common = counts[c * n_common + ab]
                    _count_common(new.words[q], tile, begin, end, offset, other, common)
            for i in range(k):
                if position > order.left[first + i]:
                    continue
                if is_binary and scratch.bound[i] < least[1]:
                    continue
                for c in range(n_classes):
                    _fill_cells(
                        cells[c * n_cells : (c + 1) * n_cells],
                        classes.counts[c],
                        new.ones[c * n_new : (c + 1) * n_new, q],
                        pool.ones[c * n_old : (c + 1) * n_old, first + i],
                        counts[c * n_common : (c + 1) * n_common, i],
                        n_old,
                    )
                own = new.own[q] + pool.own[first + i]
                value, is_tested = _statistic(
                    cells, n_cells, n_new + n_old + 1, classes, own
                )
                hits.n_tested[position] += is_tested and not is_binary
                if is_tested and value >= np.int64(least[0]):
                    _add_hit(hits, position, first + i, value)
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


@kernel
def link_rows(members, index, first, last):
    """Enter the columns from slot ``first`` on, before ``last``, in the index."""
    for slot in range(first, last):
        for e in range(members.offset[slot], members.offset[slot + 1]):
            row = members.rows[e]
            index.following[e] = index.head[row]
            index.owner[e] = slot
            index.head[row] = e


@kernel
def compare_sparse(
    members, index, class_of, left, classes, bounds, slots, scratch, hits
):
    """Pairs of the columns in some slots with those before them, by the row index.

    ``bounds[a, b]`` is what the statistic must reach for a and b categories; ``left``
    is that of `Order`. Only pairs that share a row outside the background are looked
    at: the others have no more cells than the margins need. Returns the slot at which
    it stopped because ``hits`` is full.
    """
    n_classes = classes.counts.size
    counts, touched, cells = scratch.counts, scratch.touched, scratch.cells
    n_pairs_of_codes = counts.shape[1] // n_classes
    most_codes = np.int64(np.sqrt(n_pairs_of_codes) + 0.5)
    for k in range(slots[0], slots[1]):
        if len(hits.found) - hits.size[0] < k:
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
        margin_a = members.margin_offset[k]
        end_a = margin_a + members.n_codes[k] * n_classes
        for t in range(n_touched):
            slot = touched[t]
            common = counts[slot]
            n_common = common[common.size - 1]
            if n_common >= MIN_CELL and q <= left[slot]:
                margin_b = members.margin_offset[slot]
                end_b = margin_b + members.n_codes[slot] * n_classes
                n_cells = (members.n_codes[k] + 1) * (members.n_codes[slot] + 1)
                for c in range(n_classes):
                    _fill_cells(
                        cells[c * n_cells : (c + 1) * n_cells],
                        classes.counts[c],
                        members.margins[margin_a + c : end_a : n_classes],
                        members.margins[margin_b + c : end_b : n_classes],
                        common[c::n_classes],
                        most_codes,
                    )
                own = members.own[k] + members.own[slot]
                levels_a, levels_b = members.levels[k], members.levels[slot]
                value, is_tested = _statistic(
                    cells, n_cells, levels_a + levels_b - 1, classes, own
                )
                hits.n_tested[q] += is_tested
                if is_tested and value >= bounds[levels_a, levels_b]:
                    _add_hit(hits, q, slot, value)
            common[:] = 0
    return slots[1]
