"""Which kept features can matter to a newcomer: an inverted index of sparse columns.

Most pairs of sparse columns share no row. The index lists, for each row, the
kept columns stored there, so that a newcomer finds in time of its own rows all
kept ones that it shares a row with, and how many rows.

Of a pair that shares none, the overlap depends on a few numbers of each column
alone. Kept columns that agree in these are one *kind*; a newcomer's verdict on
a kind is remembered for all newcomers of its own kind. Usually it is that none
matters, and the whole kept set is dismissed at once.

What is left is a short list, in order of arrival, on which Algorithm 1 does
what it would have done on the whole.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from featstream.jit import inner
from featstream.kernels.rule import reaches
from featstream.kernels.tables import ratio

__all__ = ["RowIndex", "empty_index", "no_index"]


class RowIndex(NamedTuple):
    """An inverted index over the slots of a kept set.

    ``head[r]`` is the newest node of row ``r``; node ``e`` says that slot
    ``slot[e]`` stores ``value[e]`` there, and ``next[e]`` is the node before it.
    ``common`` and ``product`` gather, by slot, what a newcomer shares.
    """

    head: np.ndarray
    next: np.ndarray
    slot: np.ndarray
    value: np.ndarray
    row_size: np.ndarray
    n_nodes: np.ndarray
    is_live: np.ndarray
    # Kinds of kept columns: length, norm and score of each, and its members.
    kind_of: np.ndarray
    kind_key: np.ndarray
    kind_score: np.ndarray
    kind_head: np.ndarray
    kind_tail: np.ndarray
    kind_hash: np.ndarray
    kind_place: np.ndarray
    n_kinds: np.ndarray
    member_next: np.ndarray
    member_previous: np.ndarray
    # What newcomers' kinds were told about the first ``memo_checked`` kinds.
    memo_key: np.ndarray
    memo_score: np.ndarray
    memo_checked: np.ndarray
    memo_matters: np.ndarray
    # The newcomer at hand.
    common: np.ndarray
    product: np.ndarray
    touched: np.ndarray
    shortlist: np.ndarray
    # Largest tilt, largest tilt by score, and number of columns with a base.
    extremes: np.ndarray
    # How far along the kept features a walk goes, on average of late.
    pace: np.ndarray


def empty_index(
    n_rows: int,
    n_slots: int,
    n_nodes: int,
    n_kinds: int,
    *,
    has_values: bool,
    largest_memo: int = 1 << 11,
) -> RowIndex:
    """An index with room for so many slots, entries in them, and kinds of them."""
    n_memo = 1 << int(16 * n_slots).bit_length()
    n_memo = 0 if has_values else min(n_memo, largest_memo)
    hash_size = 1 << int(2 * n_kinds).bit_length() if n_kinds else 0
    return RowIndex(
        head=np.full(n_rows, -1, np.int32),
        next=np.zeros(n_nodes, np.int32),
        slot=np.zeros(n_nodes, np.int32),
        value=np.zeros(n_nodes if has_values else 0),
        row_size=np.zeros(n_rows, np.int32),
        n_nodes=np.zeros(1, np.int64),
        is_live=np.zeros(n_slots, np.bool_),
        kind_of=np.zeros(n_slots, np.int32),
        kind_key=np.zeros((n_kinds, 2), np.int64),
        kind_score=np.zeros(n_kinds),
        kind_head=np.full(n_kinds, -1, np.int32),
        kind_tail=np.full(n_kinds, -1, np.int32),
        kind_hash=np.full(hash_size, -1, np.int32),
        kind_place=np.zeros(n_kinds, np.int32),
        n_kinds=np.zeros(1, np.int64),
        member_next=np.full(n_slots, -1, np.int32),
        member_previous=np.full(n_slots, -1, np.int32),
        memo_key=np.full((n_memo, 2), -1, np.int64),
        memo_score=np.zeros(n_memo),
        memo_checked=np.zeros(n_memo, np.int32),
        memo_matters=np.zeros(n_memo, np.bool_),
        common=np.zeros(n_slots, np.int32),
        product=np.zeros(n_slots if has_values else 0),
        touched=np.zeros(n_slots, np.int32),
        shortlist=np.zeros(n_slots, np.int32),
        extremes=np.zeros(3),
        pace=np.zeros(1),
    )


def no_index() -> RowIndex:
    """For storages that have none."""
    return empty_index(0, 0, 0, 0, has_values=False)


@inner
def is_full(index):
    """Whether there is no room for another kind, if there is an index at all."""
    n_kinds = index.kind_score.size
    return n_kinds > 0 and index.n_kinds[0] == n_kinds


@inner
def add_rows(index, slot, rows, values):
    """Enter a column's rows; without values if ``values`` is empty."""
    for e in range(rows.size):
        row, node = rows[e], index.n_nodes[0]
        index.slot[node] = slot
        index.next[node] = index.head[row]
        if values.size:
            index.value[node] = values[e]
        index.head[row] = node
        index.row_size[row] += 1
        index.n_nodes[0] = node + 1
    index.is_live[slot] = True


@inner
def _mix(length, norm, score):
    """A hash of a kind."""
    h = np.uint64(length) * np.uint64(0x9E3779B97F4A7C15)
    h ^= np.uint64(norm) * np.uint64(0xC2B2AE3D27D4EB4F)
    h ^= np.uint64(np.int64(score * 4503599627370496.0)) * np.uint64(0x165667B19E3779F9)
    return h ^ (h >> np.uint64(29))


@inner
def join_kind(index, slot, length, norm, score):
    """Make a kept column a member of its kind, which may be new."""
    mask = np.uint64(index.kind_hash.size - 1)
    place = _mix(length, norm, score) & mask
    kind = index.kind_hash[place]
    while kind >= 0 and not (
        index.kind_key[kind, 0] == length
        and index.kind_key[kind, 1] == norm
        and index.kind_score[kind] == score
    ):
        place = (place + np.uint64(1)) & mask
        kind = index.kind_hash[place]
    if kind < 0:
        kind = index.n_kinds[0]
        index.n_kinds[0] = kind + 1
        index.kind_hash[place] = kind
        index.kind_place[kind] = place
        index.kind_key[kind, 0], index.kind_key[kind, 1] = length, norm
        index.kind_score[kind] = score
    last = index.kind_tail[kind]
    index.kind_of[slot] = kind
    index.member_next[slot] = -1
    index.member_previous[slot] = last
    if last >= 0:
        index.member_next[last] = slot
    else:
        index.kind_head[kind] = slot
    index.kind_tail[kind] = slot


@inner
def leave_kind(index, slot):
    """Take a column out of its kind."""
    before, after = index.member_previous[slot], index.member_next[slot]
    if before >= 0:
        index.member_next[before] = after
    else:
        index.kind_head[index.kind_of[slot]] = after
    if after >= 0:
        index.member_previous[after] = before
    else:
        index.kind_tail[index.kind_of[slot]] = before


@inner
def clear_index(index, rows):
    """Forget all columns; ``rows`` are those of all of them."""
    for e in range(rows.size):
        index.head[rows[e]] = -1
        index.row_size[rows[e]] = 0
    index.n_nodes[0] = 0
    for kind in range(index.n_kinds[0]):
        index.kind_hash[index.kind_place[kind]] = -1
        index.kind_head[kind] = -1
        index.kind_tail[kind] = -1
    index.n_kinds[0] = 0
    for place in range(index.memo_checked.size):
        index.memo_key[place, 0] = -1
    index.extremes[:] = 0.0


@inner
def index_pays(index, rows, n_entries, n_slots):
    """Whether a newcomer's rows list fewer entries than a plain walk would read.

    Following a list costs about four times what reading a column does.
    """
    mean_length = n_entries / max(n_slots, 1)
    budget = index.pace[0] * (mean_length + 4.0) / 4.0
    for e in range(rows.size):
        budget -= index.row_size[rows[e]]
        if budget < 0.0:
            return False
    return budget > 8.0


@inner
def keep_pace(index, live, n_live, witness):
    """Learn from where a walk ended, whichever way it went."""
    low, high = 0, n_live
    if witness >= 0:
        while low < high:
            middle = (low + high) // 2
            if live[middle] < witness:
                low = middle + 1
            else:
                high = middle
        n_live = low + 1
    index.pace[0] += (n_live - index.pace[0]) / 64.0


@inner
def touch_rows(index, rows, values):
    """Gather what a newcomer shares with kept columns, and list those it touches."""
    n_touched = 0
    for e in range(rows.size):
        node = index.head[rows[e]]
        while node >= 0:
            slot = index.slot[node]
            if index.is_live[slot]:
                if index.common[slot] == 0:
                    index.touched[n_touched] = slot
                    index.shortlist[n_touched] = slot
                    n_touched += 1
                index.common[slot] += 1
                if values.size:
                    index.product[slot] += index.value[node] * values[e]
            node = index.next[node]
    return n_touched


@inner
def forget_touched(index, n_touched):
    """Clear what `touch_rows` gathered."""
    for t in range(n_touched):
        index.common[index.touched[t]] = 0
    if index.product.size:
        for t in range(n_touched):
            index.product[index.touched[t]] = 0.0


@inner
def apart_tables(nlogn, length_a, norm_a, length_b, norm_b):
    """Score of two discrete columns that share no row, from their counts alone."""
    n = nlogn.size - 1
    rest = n - length_a - length_b
    if rest < 0:
        return 0.0  # they cannot but share rows
    information = nlogn[n] + nlogn[rest] - nlogn[n - length_a] - nlogn[n - length_b]
    return ratio(information, norm_a, norm_b)


@inner
def _matters(nlogn, length, norm, score, index, kind, rule):
    """Whether a newcomer and a kind that share no row decide about each other."""
    kind_score = index.kind_score[kind]
    if score == kind_score and not rule.drops_ties:
        return False
    value = apart_tables(
        nlogn, length, norm, index.kind_key[kind, 0], index.kind_key[kind, 1]
    )
    return reaches(value, score, kind_score, rule)


@inner
def _is_dismissed(index, nlogn, length, norm, score, rule):
    """Whether no kind matters to newcomers like this one, by what is remembered."""
    place = _mix(length, norm, score) & np.uint64(index.memo_checked.size - 1)
    if not (
        index.memo_key[place, 0] == length
        and index.memo_key[place, 1] == norm
        and index.memo_score[place] == score
    ):
        index.memo_key[place, 0], index.memo_key[place, 1] = length, norm
        index.memo_score[place] = score
        index.memo_checked[place] = 0
        index.memo_matters[place] = False
    n_kinds = index.n_kinds[0]
    for kind in range(index.memo_checked[place], n_kinds):
        if index.memo_matters[place]:
            break
        index.memo_matters[place] = _matters(
            nlogn, length, norm, score, index, kind, rule
        )
    index.memo_checked[place] = n_kinds
    return not index.memo_matters[place]


@inner
def list_apart_tables(index, nlogn, length, norm, score, rule, n_listed):
    """Append to the short list what shares no row with a newcomer but matters.

    All members of a kind meet the same fate. Of the kinds that make the newcomer
    redundant, the earliest member is the witness, and no other counts.
    """
    if _is_dismissed(index, nlogn, length, norm, score, rule):
        return n_listed
    witness = -1
    for kind in range(index.n_kinds[0]):
        slot = index.kind_head[kind]
        if slot < 0 or not _matters(nlogn, length, norm, score, index, kind, rule):
            continue
        if index.kind_score[kind] >= score:
            while slot >= 0 and index.common[slot] > 0:
                slot = index.member_next[slot]
            if slot >= 0 and (witness < 0 or slot < witness):
                witness = slot
            continue
        while slot >= 0:
            if index.common[slot] == 0:
                index.shortlist[n_listed] = slot
                n_listed += 1
            slot = index.member_next[slot]
    if witness >= 0:
        index.shortlist[n_listed] = witness
        n_listed += 1
    return n_listed


@inner
def sort_short(values, n):
    """Sort the first ``n`` in place (Shell's method: lists are short)."""
    gap = 1
    while gap < n // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, n):
            value, j = values[i], i
            while j >= gap and values[j - gap] > value:
                values[j] = values[j - gap]
                j -= gap
            values[j] = value
        gap //= 3
