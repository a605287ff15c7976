"""Which kept features can matter to a newcomer: an inverted index of sparse columns.

Most pairs of sparse columns share no row. The index lists, for each row, the
kept columns stored there, so that a newcomer finds in time of its own rows all
kept ones that it shares a row with, and how many rows.

Of a pair that shares none, the overlap depends on a few numbers of each column
alone, its *signature*. What a signature means to a newcomer is remembered for all
newcomers of the same signature. Usually none matters, and the whole kept set is
dismissed at once.

What is left is a short list, in order of arrival, on which Algorithm 1 does
what it would have done on the whole.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from featstream.jit import by_reference, inner


@by_reference
class RowIndex(NamedTuple):
    """An inverted index over the slots of a kept set.

    ``head[r]`` is the newest node of row ``r``; node ``e`` says that slot
    ``slot[e]`` stores ``value[e]`` there, and ``next[e]`` is the node before it.
    ``common`` and ``product`` gather, by slot, what a newcomer shares: the number of
    rows, and the sum of products, or the number of rows of class 1.
    """

    head: np.ndarray
    next: np.ndarray
    slot: np.ndarray
    value: np.ndarray
    row_size: np.ndarray
    n_nodes: np.ndarray
    is_live: np.ndarray
    # Signatures of kept columns: length, norm and score of each, and its members.
    signature_of: np.ndarray
    signature_key: np.ndarray
    signature_score: np.ndarray
    signature_head: np.ndarray
    signature_tail: np.ndarray
    signature_hash: np.ndarray
    signature_place: np.ndarray
    n_signatures: np.ndarray
    member_next: np.ndarray
    member_previous: np.ndarray
    # What is known of newcomers' signatures and the first ``memo_checked`` ones.
    memo_key: np.ndarray
    memo_score: np.ndarray
    memo_checked: np.ndarray
    memo_matters: np.ndarray
    # The newcomer at hand.
    common: np.ndarray
    product: np.ndarray
    touched: np.ndarray
    n_touched: np.ndarray
    shortlist: np.ndarray
    # Largest tilt, largest tilt by score, and number of columns with a background.
    extremes: np.ndarray
    # How far along the kept features recent walks went, on average; and a number
    # above zero if the index is to be used even where it does not pay.
    mean_walk: np.ndarray


def empty_index(
    n_rows: int,
    n_slots: int,
    n_nodes: int,
    *,
    has_values: bool,
    has_classes: bool = False,
    largest_memo: int = 1 << 11,
) -> RowIndex:
    """An index with room for these numbers of slots and entries.

    Columns with values have no signatures; otherwise there may be one per slot.
    """
    n_memo = 1 << int(16 * n_slots).bit_length()
    n_memo = 0 if has_values else min(n_memo, largest_memo)
    n_signatures = 0 if has_values else n_slots
    hash_size = 1 << int(2 * n_signatures).bit_length() if n_signatures else 0
    return RowIndex(
        head=np.full(n_rows, -1, np.int32),
        next=np.zeros(n_nodes, np.int32),
        slot=np.zeros(n_nodes, np.int32),
        value=np.zeros(n_nodes if has_values else 0),
        row_size=np.zeros(n_rows, np.int32),
        n_nodes=np.zeros(1, np.int64),
        is_live=np.zeros(n_slots, np.bool_),
        signature_of=np.zeros(n_slots, np.int32),
        signature_key=np.zeros((n_signatures, 2), np.int64),
        signature_score=np.zeros(n_signatures),
        signature_head=np.full(n_signatures, -1, np.int32),
        signature_tail=np.full(n_signatures, -1, np.int32),
        signature_hash=np.full(hash_size, -1, np.int32),
        signature_place=np.zeros(n_signatures, np.int32),
        n_signatures=np.zeros(1, np.int64),
        member_next=np.full(n_slots, -1, np.int32),
        member_previous=np.full(n_slots, -1, np.int32),
        memo_key=np.full((n_memo, 2), -1, np.int64),
        memo_score=np.zeros(n_memo),
        memo_checked=np.zeros(n_memo, np.int32),
        memo_matters=np.zeros(n_memo, np.bool_),
        common=np.zeros(n_slots, np.int32),
        product=np.zeros(n_slots if has_values or has_classes else 0),
        touched=np.zeros(n_slots, np.int32),
        n_touched=np.zeros(1, np.int64),
        shortlist=np.zeros(n_slots, np.int32),
        extremes=np.zeros(3),
        mean_walk=np.zeros(2),
    )


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
def mix_signature(length, norm, score):
    """A hash of a signature."""
    h = np.uint64(length) * np.uint64(0x9E3779B97F4A7C15)
    h ^= np.uint64(norm) * np.uint64(0xC2B2AE3D27D4EB4F)
    h ^= np.uint64(np.int64(score * 4503599627370496.0)) * np.uint64(0x165667B19E3779F9)
    return h ^ (h >> np.uint64(29))


@inner
def join_signature(index, slot, length, norm, score):
    """Make a kept column a member of its signature, which may be new."""
    mask = np.uint64(index.signature_hash.size - 1)
    place = mix_signature(length, norm, score) & mask
    signature = index.signature_hash[place]
    while signature >= 0 and not (
        index.signature_key[signature, 0] == length
        and index.signature_key[signature, 1] == norm
        and index.signature_score[signature] == score
    ):
        place = (place + np.uint64(1)) & mask
        signature = index.signature_hash[place]
    if signature < 0:
        signature = index.n_signatures[0]
        index.n_signatures[0] = signature + 1
        index.signature_hash[place] = signature
        index.signature_place[signature] = place
        index.signature_key[signature, 0], index.signature_key[signature, 1] = (
            length,
            norm,
        )
        index.signature_score[signature] = score
    last = index.signature_tail[signature]
    index.signature_of[slot] = signature
    index.member_next[slot] = -1
    index.member_previous[slot] = last
    if last >= 0:
        index.member_next[last] = slot
    else:
        index.signature_head[signature] = slot
    index.signature_tail[signature] = slot


@inner
def leave_signature(index, slot):
    """Take a column out of its signature."""
    before, after = index.member_previous[slot], index.member_next[slot]
    if before >= 0:
        index.member_next[before] = after
    else:
        index.signature_head[index.signature_of[slot]] = after
    if after >= 0:
        index.member_previous[after] = before
    else:
        index.signature_tail[index.signature_of[slot]] = before


@inner
def forget_all(index, rows):
    """Forget all columns; ``rows`` are those of all of them."""
    for e in range(rows.size):
        index.head[rows[e]] = -1
        index.row_size[rows[e]] = 0
    index.n_nodes[0] = 0
    for signature in range(index.n_signatures[0]):
        index.signature_hash[index.signature_place[signature]] = -1
        index.signature_head[signature] = -1
        index.signature_tail[signature] = -1
    index.n_signatures[0] = 0
    for place in range(index.memo_checked.size):
        index.memo_key[place, 0] = -1
    index.extremes[:] = 0.0


@inner
def index_pays(index, rows, n_entries, n_slots):
    """Whether a newcomer's rows list fewer entries than a plain walk would read.

    Following a list costs about four times what reading a column does.
    """
    if index.mean_walk[1] > 0.0:
        return True
    mean_length = n_entries / max(n_slots, 1)
    budget = index.mean_walk[0] * (mean_length + 4.0) / 4.0
    for e in range(rows.size):
        budget -= index.row_size[rows[e]]
        if budget < 0.0:
            return False
    return budget > 8.0


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
    index.n_touched[0] = n_touched
    return n_touched


@inner
def touch_by_class(index, rows, classes):
    """The same, with the number of shared rows that are of class 1."""
    n_touched = 0
    for e in range(rows.size):
        node, is_of_class = index.head[rows[e]], classes[rows[e]]
        while node >= 0:
            slot = index.slot[node]
            if index.is_live[slot]:
                if index.common[slot] == 0:
                    index.touched[n_touched] = slot
                    index.shortlist[n_touched] = slot
                    n_touched += 1
                index.common[slot] += 1
                index.product[slot] += is_of_class
            node = index.next[node]
    index.n_touched[0] = n_touched
    return n_touched


@inner
def forget_touched(index):
    """Clear what `touch_rows` gathered."""
    for t in range(index.n_touched[0]):
        index.common[index.touched[t]] = 0
        if index.product.size:
            index.product[index.touched[t]] = 0.0
    index.n_touched[0] = 0


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
