"""What the scan asks of an index, whatever the storage.

As in `featstream.kernels.storage`, each function picks its implementation by the
type of the columns. Dense storages have no index: all kept columns can matter.
"""

from __future__ import annotations

from numba.extending import overload

from featstream.jit import INNER, inner
from featstream.kernels.index import (
    add_rows,
    clear_index,
    index_pays,
    join_kind,
    leave_kind,
    list_apart_tables,
    sort_short,
    touch_rows,
)
from featstream.kernels.moments import DenseMoments, SparseMoments, correlate_sparse
from featstream.kernels.rule import bound_of
from featstream.kernels.storage import overlap
from featstream.kernels.tables import (
    DenseTables,
    SparseTables,
    joint_of_counts,
    ratio,
)

__all__ = ["empty", "make_shortlist", "overlap_known", "register", "unregister"]


@inner
def _overlap_known_tables(new, i, kept, slot, scratch):
    columns = kept.columns
    if new.arity[i] != 2 or columns.arity[slot] != 2:
        return overlap(new, i, columns, slot, scratch)
    joint = joint_of_counts(
        new.nlogn, new.length[i], columns.length[slot], kept.lookup.common[slot]
    )
    information = new.nlogn[new.nlogn.size - 1] + joint - new.own[i] - columns.own[slot]
    return ratio(information, new.norm[i], columns.norm[slot])


@inner
def _overlap_known_moments(new, i, kept, slot, scratch):
    columns = kept.columns
    if columns.base[slot] != 0.0:
        return correlate_sparse(new, i, columns, slot, scratch)
    product = kept.lookup.product[slot]
    covariance = new.n_rows * product - new.total[i] * columns.total[slot]
    return abs(covariance) / (new.norm[i] * columns.norm[slot])


@inner
def _overlap_unknown(new, i, kept, slot, scratch):
    return overlap(new, i, kept.columns, slot, scratch)


@inner
def _register_nothing(columns, index, slot, score):
    pass


@inner
def _register_tables(columns, index, slot, score):
    if not index.head.size:
        return
    start, stop = columns.offset[slot], columns.offset[slot] + columns.length[slot]
    add_rows(index, slot, columns.rows[start:stop], index.value)
    join_kind(index, slot, columns.length[slot], columns.norm[slot], score)


@inner
def _register_moments(columns, index, slot, score):
    if not index.head.size:
        return
    start, stop = columns.offset[slot], columns.offset[slot] + columns.length[slot]
    add_rows(index, slot, columns.rows[start:stop], columns.values[start:stop])
    tilt = abs(columns.total[slot]) / columns.norm[slot]
    index.extremes[0] = max(index.extremes[0], tilt)
    index.extremes[1] = max(index.extremes[1], tilt / score)
    index.extremes[2] += columns.base[slot] != 0.0


@inner
def _unregister_nothing(columns, index, slot):
    pass


@inner
def _unregister_tables(columns, index, slot):
    if not index.head.size:
        return
    index.is_live[slot] = False
    leave_kind(index, slot)


@inner
def _unregister_moments(columns, index, slot):
    if not index.head.size:
        return
    index.is_live[slot] = False
    index.extremes[2] -= columns.base[slot] != 0.0


@inner
def _clear_nothing(columns, kept):
    pass


@inner
def _clear_sparse(columns, kept):
    if kept.lookup.head.size:
        clear_index(kept.lookup, columns.rows[: kept.used[0]])


@inner
def _shortlist_nothing(new, i, score, kept, rule):
    return -1, 0


@inner
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


@inner
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
_CLEAR = {
    DenseTables: _clear_nothing,
    SparseTables: _clear_sparse,
    DenseMoments: _clear_nothing,
    SparseMoments: _clear_sparse,
}
_SHORTLIST = {
    DenseTables: _shortlist_nothing,
    SparseTables: _shortlist_tables,
    DenseMoments: _shortlist_nothing,
    SparseMoments: _shortlist_moments,
}


def overlap_known(new, i, kept, slot, scratch):
    """Score with a kept column on the short list, from what the index gathered."""
    return _OVERLAP_KNOWN[type(new)](new, i, kept, slot, scratch)


@overload(overlap_known, jit_options=INNER)
def _overlap_known(new, i, kept, slot, scratch):
    chosen = _OVERLAP_KNOWN[new.instance_class]
    return lambda new, i, kept, slot, scratch: chosen(new, i, kept, slot, scratch)


def register(columns, index, slot, score):
    """Enter a kept column into the index."""
    _REGISTER[type(columns)](columns, index, slot, score)


@overload(register, jit_options=INNER)
def _register(columns, index, slot, score):
    chosen = _REGISTER[columns.instance_class]
    return lambda columns, index, slot, score: chosen(columns, index, slot, score)


def unregister(columns, index, slot):
    """Take a kept column out of the index."""
    _UNREGISTER[type(columns)](columns, index, slot)


@overload(unregister, jit_options=INNER)
def _unregister(columns, index, slot):
    chosen = _UNREGISTER[columns.instance_class]
    return lambda columns, index, slot: chosen(columns, index, slot)


def clear(columns, kept):
    """Take all columns out of the index."""
    _CLEAR[type(columns)](columns, kept)


@overload(clear, jit_options=INNER)
def _clear(columns, kept):
    chosen = _CLEAR[columns.instance_class]
    return lambda columns, kept: chosen(columns, kept)


@inner
def empty(kept):
    """Take all columns out of a set."""
    clear(kept.columns, kept)
    kept.size[:] = 0
    kept.used[:] = 0


def make_shortlist(new, i, score, kept, rule):
    """List the kept columns that can matter to a newcomer, in order of arrival.

    Returns the length of ``kept.lookup.shortlist``, or -1 if all can matter, and
    how many slots have to be forgotten afterwards.
    """
    return _SHORTLIST[type(new)](new, i, score, kept, rule)


@overload(make_shortlist, jit_options=INNER)
def _make_shortlist(new, i, score, kept, rule):
    chosen = _SHORTLIST[new.instance_class]
    return lambda new, i, score, kept, rule: chosen(new, i, score, kept, rule)
