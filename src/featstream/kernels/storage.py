"""What the scan asks of a storage, whatever it holds.

The scan is written once. Which correlation it computes, and over which arrays,
follows from the type of the columns it is given: each function here picks its
implementation by that type, at compile time.
"""

from __future__ import annotations

import numpy as np
from numba.extending import overload

from featstream.jit import INNER, inner
from featstream.kernels.moments import (
    DenseMoments,
    SparseMoments,
    correlate_dense,
    correlate_sparse,
    write_unit,
)
from featstream.kernels.tables import (
    DenseTables,
    SparseTables,
    joint_of_dense,
    joint_of_sparse,
    ratio,
)

__all__ = ["copy_column", "has_room", "lift", "overlap", "settle"]


@inner
def _overlap_dense_tables(new, i, kept, j, scratch):
    joint = joint_of_dense(new, i, kept, j, scratch)
    information = new.nlogn[new.nlogn.size - 1] + joint - new.own[i] - kept.own[j]
    return ratio(information, new.norm[i], kept.norm[j])


@inner
def _overlap_sparse_tables(new, i, kept, j, scratch):
    joint = joint_of_sparse(new, i, kept, j, scratch)
    information = new.nlogn[new.nlogn.size - 1] + joint - new.own[i] - kept.own[j]
    return ratio(information, new.norm[i], kept.norm[j])


@inner
def _nothing(new, i, scratch):
    pass


@inner
def _settle_sparse_tables(new, i, scratch):
    for e in range(new.offset[i], new.offset[i] + new.length[i]):
        scratch.mark[new.rows[e]] = new.codes[e]


@inner
def _lift_sparse_tables(new, i, scratch):
    for e in range(new.offset[i], new.offset[i] + new.length[i]):
        scratch.mark[new.rows[e]] = 0


@inner
def _settle_sparse_moments(new, i, scratch):
    for e in range(new.offset[i], new.offset[i] + new.length[i]):
        scratch.spread[new.rows[e]] = new.values[e] - new.base[i]


@inner
def _lift_sparse_moments(new, i, scratch):
    for e in range(new.offset[i], new.offset[i] + new.length[i]):
        scratch.spread[new.rows[e]] = 0.0


@inner
def _copy_row(out, row):
    for i in range(row.size):
        out[i] = row[i]


@inner
def _room_dense_tables(new, i, kept, used):
    if new.code_row[i] >= 0:
        return used[1] < kept.codes.shape[0]
    return used[0] + new.arity[i] - 1 <= kept.planes.shape[0]


@inner
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


@inner
def _room_sparse_tables(new, i, kept, used):
    return (
        used[0] + new.length[i] <= kept.rows.size
        and used[1] + new.arity[i] - 1 <= kept.counts.size
    )


@inner
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


@inner
def _room_dense_moments(new, i, kept, used):
    return used[0] < kept.values.shape[0]


@inner
def _copy_dense_moments(new, i, kept, slot, used):
    kept.total[slot] = new.total[i]
    kept.norm[slot] = new.norm[i]
    for r in range(kept.values.shape[1]):
        kept.values[slot, r] = np.float64(new.values[i, r]) - new.pivot[i]
    if new.unit.size > 0:  # it was kept before
        for r in range(kept.unit.shape[1]):
            kept.unit[slot, r] = new.unit[i, r]
    else:
        write_unit(
            kept.values[slot],
            kept.pivot[slot],
            kept.total[slot],
            kept.norm[slot],
            kept.unit[slot],
        )
    used[0] = slot + 1


@inner
def _room_sparse_moments(new, i, kept, used):
    return used[0] + new.length[i] <= kept.rows.size


@inner
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


@overload(overlap, jit_options=INNER)
def _overlap(new, i, kept, j, scratch):
    chosen = _OVERLAP[new.instance_class]
    return lambda new, i, kept, j, scratch: chosen(new, i, kept, j, scratch)


def settle(new, i, scratch):
    """Spread column ``i`` over the working memory, before it is compared."""
    _SETTLE[type(new)](new, i, scratch)


@overload(settle, jit_options=INNER)
def _settle(new, i, scratch):
    chosen = _SETTLE[new.instance_class]
    return lambda new, i, scratch: chosen(new, i, scratch)


def lift(new, i, scratch):
    """Clear the working memory that ``settle`` used."""
    _LIFT[type(new)](new, i, scratch)


@overload(lift, jit_options=INNER)
def _lift(new, i, scratch):
    chosen = _LIFT[new.instance_class]
    return lambda new, i, scratch: chosen(new, i, scratch)


def has_room(new, i, kept, used):
    """Whether the pools of ``kept`` can take column ``i``."""
    return _HAS_ROOM[type(new)](new, i, kept, used)


@overload(has_room, jit_options=INNER)
def _has_room(new, i, kept, used):
    chosen = _HAS_ROOM[new.instance_class]
    return lambda new, i, kept, used: chosen(new, i, kept, used)


def copy_column(new, i, kept, slot, used):
    """Copy column ``i`` into the pools of ``kept``, as its column ``slot``."""
    _COPY[type(new)](new, i, kept, slot, used)


@overload(copy_column, jit_options=INNER)
def _copy_column(new, i, kept, slot, used):
    chosen = _COPY[new.instance_class]
    return lambda new, i, kept, slot, used: chosen(new, i, kept, slot, used)
