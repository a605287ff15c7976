"""An inverted index of sparse columns: which kept features can matter to a newcomer.

Most pairs of sparse columns share no row. The index lists, for each row, the kept
columns that store it. So a newcomer finds the kept columns that share rows with it, and
the number of rows, without reading the others.

The overlap of two columns that share no row depends on a few numbers of each, its
*signature*. Whether any kept signature matters is remembered for all newcomers of the
same signature. Usually none does, and no such column has to be looked at.

Algorithm 1 then walks along the other columns: a short list in order of arrival.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from featstream.jit import inner

NODE = 8
"""Slots in a node: with more, rows of few entries take more memory."""

IN_CLASS = 1 << 32
_APART = 1 << 62


class RowIndex(NamedTuple):
    """An inverted index over the slots of a kept set.

    ``row_size[r]`` slots store row ``r``, in nodes of `NODE`: ``head[r]`` is the
    newest node and ``next[e]`` the node before node ``e``, which is full. The slots of
    node ``e`` begin at ``e * NODE`` in ``slot``, and their values in ``value``. For
    each slot, ``common`` counts the rows shared with a newcomer, plus `IN_CLASS` if
    they are of class 1, and ``product`` sums the products of values.
    """

    head: np.ndarray
    next: np.ndarray
    slot: np.ndarray
    value: np.ndarray
    row_size: np.ndarray
    n_nodes: np.ndarray
    is_live: np.ndarray
    # Signatures of kept columns: length and key, score, and members, dead ones too.
    signature_key: np.ndarray
    signature_score: np.ndarray
    signature_head: np.ndarray
    signature_tail: np.ndarray
    signature_hash: np.ndarray
    signature_place: np.ndarray
    n_signatures: np.ndarray
    member_next: np.ndarray
    # Signatures of newcomers: whether one of the first ``memo_checked`` matters.
    memo_key: np.ndarray
    memo_score: np.ndarray
    memo_checked: np.ndarray
    memo_matters: np.ndarray
    # The current newcomer.
    common: np.ndarray
    product: np.ndarray
    touched: np.ndarray
    n_touched: np.ndarray
    shortlist: np.ndarray
    # Largest tilt, largest tilt by score, and number of columns with a background.
    extremes: np.ndarray
    # Mean length of recent walks; and above zero if the index is always used.
    mean_walk: np.ndarray


def empty_index(
    n_rows: int,
    n_slots: int,
    n_nodes: int,
    *,
    has_values: bool,
    largest_memo: int = 1 << 11,
) -> RowIndex:
    """An index with room for these numbers of slots and entries.

    Columns with values have no signatures.
    """
    n_nodes = min(n_rows, n_nodes) + n_nodes // NODE  # the newest ones are not full
    n_memo = 1 << int(16 * n_slots).bit_length()
    n_memo = 0 if has_values else min(n_memo, largest_memo)
    n_signatures = 0 if has_values else n_slots
    hash_size = 1 << int(2 * n_signatures).bit_length() if n_signatures else 0
    return RowIndex(
        head=np.full(n_rows, -1, np.int32),
        next=np.zeros(n_nodes, np.int32),
        slot=np.zeros(NODE * n_nodes, np.int32),
        value=np.zeros(NODE * n_nodes if has_values else 0),
        row_size=np.zeros(n_rows, np.int32),
        n_nodes=np.zeros(1, np.int64),
        is_live=np.zeros(n_slots, np.bool_),
        signature_key=np.zeros((n_signatures, 2), np.int64),
        signature_score=np.zeros(n_signatures),
        signature_head=np.full(n_signatures, -1, np.int32),
        signature_tail=np.full(n_signatures, -1, np.int32),
        signature_hash=np.full(hash_size, -1, np.int32),
        signature_place=np.zeros(n_signatures, np.int32),
        n_signatures=np.zeros(1, np.int64),
        member_next=np.full(n_slots, -1, np.int32),
        memo_key=np.full((n_memo, 2), -1, np.int64),
        memo_score=np.zeros(n_memo),
        memo_checked=np.zeros(n_memo, np.int32),
        memo_matters=np.zeros(n_memo, np.bool_),
        common=np.zeros(n_slots, np.int64),
        product=np.zeros(n_slots if has_values else 0),
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
        row = rows[e]
        place = index.row_size[row] % NODE
        if place == 0:
            node = index.n_nodes[0]
            index.next[node] = index.head[row]
            index.head[row] = node
            index.n_nodes[0] = node + 1
        place += index.head[row] * NODE
        index.slot[place] = slot
        if values.size:
            index.value[place] = values[e]
        index.row_size[row] += 1
    index.is_live[slot] = True


@inner
def hash_signature(own):
    """A hash of a signature."""
    length, key, score = own
    h = np.uint64(length) * np.uint64(0x9E3779B97F4A7C15)
    h ^= np.uint64(key) * np.uint64(0xC2B2AE3D27D4EB4F)
    h ^= np.uint64(np.int64(score * 4503599627370496.0)) * np.uint64(0x165667B19E3779F9)
    return h ^ (h >> np.uint64(29))


@inner
def has_signature(keys, scores, place, own):
    """Whether the signature at a place of a table is this one."""
    length, key, score = own
    is_same = keys[place, 0] == length and keys[place, 1] == key
    return is_same and scores[place] == score


@inner
def set_signature(keys, scores, place, own):
    """Write a signature at a place of a table."""
    keys[place, 0], keys[place, 1], scores[place] = own


@inner
def join_signature(index, slot, own):
    """Make a kept column a member of its signature, which may be new."""
    keys, scores = index.signature_key, index.signature_score
    mask = np.uint64(index.signature_hash.size - 1)
    place = hash_signature(own) & mask
    signature = index.signature_hash[place]
    while signature >= 0 and not has_signature(keys, scores, signature, own):
        place = (place + np.uint64(1)) & mask
        signature = index.signature_hash[place]
    if signature < 0:
        signature = index.n_signatures[0]
        index.n_signatures[0] = signature + 1
        index.signature_hash[place] = signature
        index.signature_place[signature] = place
        set_signature(keys, scores, signature, own)
    last, index.member_next[slot] = index.signature_tail[signature], -1
    if last >= 0:
        index.member_next[last] = slot
    else:
        index.signature_head[signature] = slot
    index.signature_tail[signature] = slot


def clear_index(columns, index, kept):
    """Forget all columns."""
    for e in range(kept.used[0]):
        index.head[columns.rows[e]] = -1
        index.row_size[columns.rows[e]] = 0
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
    """Whether the index reads less for a newcomer than a walk along all columns.

    To read an entry of the index takes about four times as long.
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
def touch_rows(index, rows, values, classes):
    """Count the rows shared with kept columns, and list the columns that share any.

    ``values`` of the rows are multiplied with those of the columns; ``classes`` are 0
    or 1 for every row. Both are empty where they are not needed.
    """
    n_touched = 0
    for e in range(rows.size):
        row, step = rows[e], 1
        if classes.size and classes[row]:
            step += IN_CLASS
        node, n_here = index.head[row], (index.row_size[row] - 1) % NODE + 1
        while node >= 0:
            for place in range(node * NODE, node * NODE + n_here):
                slot = index.slot[place]  # its column may have left
                if index.common[slot] == 0:
                    index.touched[n_touched] = slot
                    n_touched += 1
                index.common[slot] += step
                if values.size:
                    index.product[slot] += index.value[place] * values[e]
            node, n_here = index.next[node], NODE
    index.n_touched[0], n_listed = n_touched, 0
    for t in range(n_touched):
        slot = index.touched[t]
        if index.is_live[slot]:
            index.shortlist[n_listed] = slot
            n_listed += 1
    return n_listed


@inner
def rows_shared(index, slot):
    """Number of rows shared by a newcomer and a kept column, and those of class 1."""
    return index.common[slot] & (IN_CLASS - 1), index.common[slot] >> 32


def end_walk(new, index):
    """Clear what `touch_rows` gathered."""
    for t in range(index.n_touched[0]):
        index.common[index.touched[t]] = 0
        if index.product.size:
            index.product[index.touched[t]] = 0.0
    index.n_touched[0] = 0


@inner
def sort_candidates(index, live, n_touched, n_listed):
    """Sort the short list; its columns from ``n_touched`` on share no row.

    A long list is filled again by a pass over all slots in use, ``live``.
    """
    if 16 * n_listed < live.size:
        sort_short(index.shortlist, n_listed)
        return
    for t in range(n_touched, n_listed):
        index.common[index.shortlist[t]] = _APART
    n_listed = 0
    for position in range(live.size):
        slot = live[position]
        if index.common[slot] != 0:
            index.shortlist[n_listed] = slot
            n_listed += 1
            if index.common[slot] == _APART:
                index.common[slot] = 0


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
