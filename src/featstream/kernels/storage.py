"""What the scan asks of a storage, whatever it holds.

The scan is written once. Which correlation it computes, and over which arrays,
follows from the type of the columns it is given: each function here picks its
implementation by that type, at compile time.
"""

from __future__ import annotations

import numpy as np
from numba.extending import overload

from featstream.kernels._jit import LEAN, lean
from featstream.kernels.index import (
    add_rows,
    index_pays,
    join_kind,
    leave_kind,
    list_apart_tables,
    sort_short,
    touch_rows,
)
from featstream.kernels.moments import (
    DenseMoments,
    SparseMoments,
    correlate_dense,
    correlate_sparse,
    standardise_row,
)
from featstream.kernels.rule import bound_of
from featstream.kernels.tables import (
    DenseTables,
    SparseTables,
    joint_of_counts,
    joint_of_dense,
    joint_of_sparse,
    ratio,
)

__all__ = [
    "copy_column",
    "has_room",
    "lift",
    "make_shortlist",
    "overlap",
    "overlap_known",
    "register",
    "settle",
    "unregister",
]


@lean
def _overlap_dense_tables(new, i, kept, j, scratch):
    joint = joint_of_dense(new, i, kept, j, scratch)
    information = new.nlogn[new.nlogn.size - 1] + joint - new.own[i] - kept.own[j]
    return ratio(information, new.norm[i], kept.norm[j])


@lean
def _overlap_sparse_tables(new, i, kept, j, scratch):
    joint = joint_of_sparse(new, i, kept, j, scratch)
    information = new.nlogn[new.nlogn.size - 1] + joint - new.own[i] - kept.own[j]
    return ratio(information, new.norm[i], kept.norm[j])


@lean
def _nothing(new, i, scratch):
    pass


@lean
def _settle_sparse_tables(new, i, scratch):
    for e in range(new.offset[i], new.offset[i] + new.length[i]):
        scratch.mark[new.rows[e]] = new.codes[e]


@lean
def _lift_sparse_tables(new, i, scratch):
    for e in range(new.offset[i], new.offset[i] + new.length[i]):
        scratch.mark[new.rows[e]] = 0


@lean
def _settle_sparse_moments(new, i, scratch):
    for e in range(new.offset[i], new.offset[i] + new.length[i]):
        scratch.spread[new.rows[e]] = new.values[e] - new.base[i]


@lean
def _lift_sparse_moments(new, i, scratch):
    for e in range(new.offset[i], new.offset[i] + new.length[i]):
        scratch.spread[new.rows[e]] = 0.0


@lean
def _copy_row(out, row):
    for i in range(row.size):
        out[i] = row[i]


@lean
def _room_dense_tables(new, i, kept, used):
    if new.code_row[i] >= 0:
        return used[1] < kept.codes.shape[0]
    return used[0] + new.arity[i] - 1 <= kept.planes.shape[0]


@lean
def _copy_dense_tables(new, i, kept, slot, used):
    kept.arity[slot] = new.arity[i]
    kept.own[slot] = new.own[i]
    kept.norm[slot] = new.norm[i]
    if new.code_row[i] >= 0:
        kept.first_plane[slot] = 0
        kept.code_row[slot] = used[1]
        _copy_row(kept.codes[used[1]], new.codes[new.code_row[i]])
        used[1] += 1
        return
    kept.code_row[slot] = -1
    kept.first_plane[slot] = used[0]
    for p in range(new.arity[i] - 1):
        _copy_row(kept.planes[used[0] + p], new.planes[new.first_plane[i] + p])
        kept.plane_count[used[0] + p] = new.plane_count[new.first_plane[i] + p]
    used[0] += new.arity[i] - 1


@lean
def _room_sparse_tables(new, i, kept, used):
    return (
        used[0] + new.length[i] <= kept.rows.size
        and used[1] + new.arity[i] - 1 <= kept.counts.size
    )


@lean
def _copy_sparse_tables(new, i, kept, slot, used):
    kept.arity[slot] = new.arity[i]
    kept.own[slot] = new.own[i]
    kept.norm[slot] = new.norm[i]
    kept.offset[slot] = used[0]
    kept.length[slot] = new.length[i]
    for e in range(new.length[i]):
        kept.rows[used[0] + e] = new.rows[new.offset[i] + e]
        kept.codes[used[0] + e] = new.codes[new.offset[i] + e]
    used[0] += new.length[i]
    kept.count_offset[slot] = used[1]
    for c in range(new.arity[i] - 1):
        kept.counts[used[1] + c] = new.counts[new.count_offset[i] + c]
    used[1] += new.arity[i] - 1


@lean
def _room_dense_moments(new, i, kept, used):
    return used[0] < kept.values.shape[0]


@lean
def _copy_dense_moments(new, i, kept, slot, used):
    kept.total[slot] = new.total[i]
    kept.norm[slot] = new.norm[i]
    for r in range(kept.values.shape[1]):
        kept.values[slot, r] = np.float64(new.values[i, r]) - new.pivot[i]
    standardise_row(kept, slot, kept.unit[slot])
    used[0] = slot + 1


@lean
def _room_sparse_moments(new, i, kept, used):
    return used[0] + new.length[i] <= kept.rows.size


@lean
def _copy_sparse_moments(new, i, kept, slot, used):
    kept.total[slot] = new.total[i]
    kept.norm[slot] = new.norm[i]
    kept.base[slot] = new.base[i]
    kept.offset[slot] = used[0]
    kept.length[slot] = new.length[i]
    for e in range(new.length[i]):
        kept.rows[used[0] + e] = new.rows[new.offset[i] + e]
        kept.values[used[0] + e] = new.values[new.offset[i] + e]
    used[0] += new.length[i]


@lean
def _overlap_known_tables(new, i, kept, slot, scratch):
    columns = kept.columns
    if new.arity[i] != 2 or columns.arity[slot] != 2:
        return _overlap_sparse_tables(new, i, columns, slot, scratch)
    joint = joint_of_counts(
        new.nlogn, new.length[i], columns.length[slot], kept.lookup.common[slot]
    )
    information = new.nlogn[new.nlogn.size - 1] + joint - new.own[i] - columns.own[slot]
    return ratio(information, new.norm[i], columns.norm[slot])


@lean
def _overlap_known_moments(new, i, kept, slot, scratch):
    columns = kept.columns
    if columns.base[slot] != 0.0:
        return correlate_sparse(new, i, columns, slot, scratch)
    product = kept.lookup.product[slot]
    covariance = new.n_rows * product - new.total[i] * columns.total[slot]
    return abs(covariance) / (new.norm[i] * columns.norm[slot])


@lean
def _overlap_unknown(new, i, kept, slot, scratch):
    return overlap(new, i, kept.columns, slot, scratch)


@lean
def _register_nothing(columns, index, slot, score):
    pass


@lean
def _register_tables(columns, index, slot, score):
    if not index.head.size:
        return
    start, stop = columns.offset[slot], columns.offset[slot] + columns.length[slot]
    add_rows(index, slot, columns.rows[start:stop], index.value)
    join_kind(index, slot, columns.length[slot], columns.norm[slot], score)


@lean
def _register_moments(columns, index, slot, score):
    if not index.head.size:
        return
    start, stop = columns.offset[slot], columns.offset[slot] + columns.length[slot]
    add_rows(index, slot, columns.rows[start:stop], columns.values[start:stop])
    tilt = abs(columns.total[slot]) / columns.norm[slot]
    index.extremes[0] = max(index.extremes[0], tilt)
    index.extremes[1] = max(index.extremes[1], tilt / score)
    index.extremes[2] += columns.base[slot] != 0.0


@lean
def _unregister_nothing(columns, index, slot):
    pass


@lean
def _unregister_tables(columns, index, slot):
    if not index.head.size:
        return
    index.is_live[slot] = False
    leave_kind(index, slot)


@lean
def _unregister_moments(columns, index, slot):
    if not index.head.size:
        return
    index.is_live[slot] = False
    index.extremes[2] -= columns.base[slot] != 0.0


@lean
def _shortlist_nothing(new, i, score, kept, rule):
    return -1, 0


@lean
def _shortlist_tables(new, i, score, kept, rule):
    index = kept.lookup
    rows = new.rows[new.offset[i] : new.offset[i] + new.length[i]]
    if not (index.head.size and index_pays(index, rows, kept.used[0], kept.size[1])):
        return -1, 0
    n_touched = touch_rows(index, rows, index.value)
    n_listed = list_apart_tables(
        index, new.nlogn, new.length[i], new.norm[i], score, rule, n_touched
    )
    sort_short(index.shortlist, n_listed)
    return n_listed, n_touched


@lean
def _shortlist_moments(new, i, score, kept, rule):
    """A newcomer with a base is stored everywhere, as it were: it has no list.

    Without a common row the correlation is the product of the tilts, up to
    rounding, for which there is a little slack.
    """
    index = kept.lookup
    if new.base[i] != 0.0 or not index.head.size:
        return -1, 0
    start, stop = new.offset[i], new.offset[i] + new.length[i]
    rows, values = new.rows[start:stop], new.values[start:stop]
    if not index_pays(index, rows, kept.used[0], kept.size[1]):
        return -1, 0
    n_touched = touch_rows(index, rows, values)
    n_listed = n_touched
    tilt = abs(new.total[i]) / new.norm[i] * (1.0 + 1e-9)
    reaches_score = tilt * index.extremes[0] >= score
    if reaches_score or tilt * index.extremes[1] >= 1.0 or index.extremes[2] > 0:
        columns = kept.columns
        for position in range(kept.size[0]):
            slot = kept.live[position]
            if index.common[slot] > 0:
                continue
            value = tilt * abs(columns.total[slot]) / columns.norm[slot]
            if columns.base[slot] != 0.0 or value >= bound_of(
                score, kept.score[slot], rule
            ):
                index.shortlist[n_listed] = slot
                n_listed += 1
    sort_short(index.shortlist, n_listed)
    return n_listed, n_touched


_OVERLAP_KNOWN = {
    DenseTables: _overlap_unknown,
    SparseTables: _overlap_known_tables,
    DenseMoments: _overlap_unknown,
    SparseMoments: _overlap_known_moments,
}
_REGISTER = {
    DenseTables: _register_nothing,
    SparseTables: _register_tables,
    DenseMoments: _register_nothing,
    SparseMoments: _register_moments,
}
_UNREGISTER = {
    DenseTables: _unregister_nothing,
    SparseTables: _unregister_tables,
    DenseMoments: _unregister_nothing,
    SparseMoments: _unregister_moments,
}
_SHORTLIST = {
    DenseTables: _shortlist_nothing,
    SparseTables: _shortlist_tables,
    DenseMoments: _shortlist_nothing,
    SparseMoments: _shortlist_moments,
}
_OVERLAP = {
    DenseTables: _overlap_dense_tables,
    SparseTables: _overlap_sparse_tables,
    DenseMoments: correlate_dense,
    SparseMoments: correlate_sparse,
}
_SETTLE = {
    DenseTables: _nothing,
    SparseTables: _settle_sparse_tables,
    DenseMoments: _nothing,
    SparseMoments: _settle_sparse_moments,
}
_LIFT = {
    DenseTables: _nothing,
    SparseTables: _lift_sparse_tables,
    DenseMoments: _nothing,
    SparseMoments: _lift_sparse_moments,
}
_HAS_ROOM = {
    DenseTables: _room_dense_tables,
    SparseTables: _room_sparse_tables,
    DenseMoments: _room_dense_moments,
    SparseMoments: _room_sparse_moments,
}
_COPY = {
    DenseTables: _copy_dense_tables,
    SparseTables: _copy_sparse_tables,
    DenseMoments: _copy_dense_moments,
    SparseMoments: _copy_sparse_moments,
}


def overlap(new, i, kept, j, scratch):
    """Score of column ``i`` of ``new``, which is settled, with ``j`` of ``kept``."""
    return _OVERLAP[type(new)](new, i, kept, j, scratch)


@overload(overlap, jit_options=LEAN)
def _overlap(new, i, kept, j, scratch):
    chosen = _OVERLAP[new.instance_class]
    return lambda new, i, kept, j, scratch: chosen(new, i, kept, j, scratch)


def settle(new, i, scratch):
    """Spread column ``i`` over the working memory, before it is compared."""
    _SETTLE[type(new)](new, i, scratch)


@overload(settle, jit_options=LEAN)
def _settle(new, i, scratch):
    chosen = _SETTLE[new.instance_class]
    return lambda new, i, scratch: chosen(new, i, scratch)


def lift(new, i, scratch):
    """Clear the working memory that ``settle`` used."""
    _LIFT[type(new)](new, i, scratch)


@overload(lift, jit_options=LEAN)
def _lift(new, i, scratch):
    chosen = _LIFT[new.instance_class]
    return lambda new, i, scratch: chosen(new, i, scratch)


def has_room(new, i, kept, used):
    """Whether the pools of ``kept`` can take column ``i``."""
    return _HAS_ROOM[type(new)](new, i, kept, used)


@overload(has_room, jit_options=LEAN)
def _has_room(new, i, kept, used):
    chosen = _HAS_ROOM[new.instance_class]
    return lambda new, i, kept, used: chosen(new, i, kept, used)


def copy_column(new, i, kept, slot, used):
    """Copy column ``i`` into the pools of ``kept``, as its column ``slot``."""
    _COPY[type(new)](new, i, kept, slot, used)


@overload(copy_column, jit_options=LEAN)
def _copy_column(new, i, kept, slot, used):
    chosen = _COPY[new.instance_class]
    return lambda new, i, kept, slot, used: chosen(new, i, kept, slot, used)


def overlap_known(new, i, kept, slot, scratch):
    """Score with a kept column on the short list, from what the index gathered."""
    return _OVERLAP_KNOWN[type(new)](new, i, kept, slot, scratch)


@overload(overlap_known, jit_options=LEAN)
def _overlap_known(new, i, kept, slot, scratch):
    chosen = _OVERLAP_KNOWN[new.instance_class]
    return lambda new, i, kept, slot, scratch: chosen(new, i, kept, slot, scratch)


def register(columns, index, slot, score):
    """Enter a kept column into the index."""
    _REGISTER[type(columns)](columns, index, slot, score)


@overload(register, jit_options=LEAN)
def _register(columns, index, slot, score):
    chosen = _REGISTER[columns.instance_class]
    return lambda columns, index, slot, score: chosen(columns, index, slot, score)


def unregister(columns, index, slot):
    """Take a kept column out of the index."""
    _UNREGISTER[type(columns)](columns, index, slot)


@overload(unregister, jit_options=LEAN)
def _unregister(columns, index, slot):
    chosen = _UNREGISTER[columns.instance_class]
    return lambda columns, index, slot: chosen(columns, index, slot)


def make_shortlist(new, i, score, kept, rule):
    """List the kept columns that can matter to a newcomer, in order of arrival.

    Returns the length of ``kept.lookup.shortlist``, or -1 if all can matter, and
    how many slots have to be forgotten afterwards.
    """
    return _SHORTLIST[type(new)](new, i, score, kept, rule)


@overload(make_shortlist, jit_options=LEAN)
def _make_shortlist(new, i, score, kept, rule):
    chosen = _SHORTLIST[new.instance_class]
    return lambda new, i, score, kept, rule: chosen(new, i, score, kept, rule)
