"""Continuous columns by their stored rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from featstream.jit import inner, kernel
from featstream.measures.storages import moments, row_index
from featstream.measures.storages.dispatch import (
    NEITHER,
    bound_of,
    by_rule,
    empty,
    storage_from,
    who_wins,
)
from featstream.measures.storages.sparse_codes import check_rows
from featstream.protocols import IntArray, SavedField, SparseColumns


class SparseValues(NamedTuple):
    """Continuous columns by their stored rows.

    Column ``i`` has ``length[i]`` deviations in ``values``, from ``offset[i]`` on, at
    its ``rows``, and the deviation ``background[i]`` in every other row. ``total``,
    ``norm`` and ``span`` are as in `DenseValues`.
    """

    total: np.ndarray
    norm: np.ndarray
    background: np.ndarray
    offset: np.ndarray
    length: np.ndarray
    rows: np.ndarray
    values: np.ndarray
    span: np.ndarray
    n_rows: int


def deviations(stored: SparseColumns, which: IntArray, sums: Any) -> SparseValues:
    """Stored deviations of the chosen columns, and their rows."""
    length, pivot = np.diff(stored.indptr)[which], sums.pivot[which]
    offset = np.cumsum(length) - length
    entries = np.arange(int(length.sum()))
    entries += np.repeat(stored.indptr[which] - offset, length)
    values = stored.values[entries].astype(np.float64)
    return SparseValues(
        total=sums.total[which],
        norm=np.sqrt(np.maximum(sums.squared_norm[which], 0.0)),
        background=-pivot,
        offset=offset,
        length=length,
        rows=stored.rows[entries],
        values=values - np.repeat(pivot, length),
        span=np.empty((which.size, 0)),
        n_rows=stored.n_samples,
    )


@inner
def _stored_at(rows, values, start, stop, row):
    """Value of a sparse column in a row."""
    position = start + np.searchsorted(rows[start:stop], row)
    if position < stop and rows[position] == row:
        return np.float64(values[position])
    return 0.0


@kernel
def sum_sparse(indptr, rows, values, target, sums):
    """Sums of sparse columns; `score_columns` centres the squares."""
    n = target.weights.shape[1]
    for j in range(indptr.size - 1):
        start, stop = indptr[j], indptr[j + 1]
        pivot = moments.median_of_three(
            _stored_at(rows, values, start, stop, 0),
            _stored_at(rows, values, start, stop, n // 2),
            _stored_at(rows, values, start, stop, n - 1),
        )
        n_rest = n - (stop - start)
        total, square = 0.0, 0.0
        if n_rest > 0:  # the square of a large pivot may overflow for nothing
            total, square = -pivot * n_rest, pivot * pivot * n_rest
        for e in range(start, stop):
            deviation = np.float64(values[e]) - pivot
            total += deviation
            square += deviation * deviation
        sums.pivot[j], sums.total[j], sums.squared_norm[j] = pivot, total, square
        for t in range(target.totals.size):
            stored_weight, product = 0.0, 0.0
            for e in range(start, stop):
                weight = target.weights[t, rows[e]]
                stored_weight += weight
                product += (np.float64(values[e]) - pivot) * weight
            if pivot != 0.0 and n_rest > 0:  # otherwise rounding alone is left
                product -= pivot * (target.totals[t] - stored_weight)
            sums.product[j, t] = product


@inner
def _correlate(new, i, kept, j, scratch):
    """Correlation, from the stored rows of column ``j``.

    ``scratch`` has the newcomer's deviations less its background, by row.
    """
    product, stored, background = 0.0, 0.0, new.background[i]
    for e in range(kept.offset[j], kept.offset[j] + kept.length[j]):
        deviation = scratch[kept.rows[e]] + background
        product += kept.values[e] * deviation
        stored += deviation
    if kept.background[j] != 0.0:
        product += kept.background[j] * (new.total[i] - stored)
    covariance = kept.n_rows * product - new.total[i] * kept.total[j]
    return covariance / (new.norm[i] * kept.norm[j])


@inner
def _correlate_listed(new, i, kept, slot):
    """The same from the product that the index has summed."""
    columns, product = kept.columns, kept.index.product[slot]
    covariance = new.n_rows * product - new.total[i] * columns.total[slot]
    return covariance / (new.norm[i] * columns.norm[slot])


@inner
def _correlation(new, i, kept, slot, is_listed, scratch):
    if is_listed and kept.columns.background[slot] == 0.0:
        return _correlate_listed(new, i, kept, slot)
    return _correlate(new, i, kept.columns, slot, scratch)


def _overlap(new, i, kept, slot, is_listed, scratch):
    return abs(_correlation(new, i, kept, slot, is_listed, scratch))


@inner
def _judge(new, i, kept, slot, winner, r, rule):
    columns = kept.columns
    own, given = moments.squared_relevances(new, i, columns, slot, winner)
    cross = moments.dot_spans(new.span, i, columns.span, slot)
    return moments.judge_correlation(r, own, given, cross, rule)


def _is_independent(new, i, kept, slot, winner, known, rule, scratch):
    r = _correlation(new, i, kept, slot, known[3], scratch)
    return _judge(new, i, kept, slot, winner, r, rule)


def _load_newcomer(new, i, scratch):
    for e in range(new.offset[i], new.offset[i] + new.length[i]):
        scratch[new.rows[e]] = new.values[e] - new.background[i]


def _unload_newcomer(new, i, scratch):
    for e in range(new.offset[i], new.offset[i] + new.length[i]):
        scratch[new.rows[e]] = 0.0


def _has_room(new, i, kept):
    return kept.used[0] + new.length[i] <= kept.columns.rows.size


def _copy_column(new, i, kept, slot, used):
    kept.total[slot] = new.total[i]
    kept.norm[slot] = new.norm[i]
    kept.background[slot] = new.background[i]
    kept.offset[slot] = used[0]
    kept.length[slot] = new.length[i]
    for e in range(new.length[i]):
        kept.rows[used[0] + e] = new.rows[new.offset[i] + e]
        kept.values[used[0] + e] = new.values[new.offset[i] + e]
    used[0] += new.length[i]
    for k in range(kept.span.shape[1]):
        kept.span[slot, k] = new.span[i, k]


def _list_for_bound(new, i, score, kept, rule, n_listed):
    """Without a shared row the correlation is, but for rounding, the product of tilts.

    The tilt of a column is its total over its norm.
    """
    index, columns = kept.index, kept.columns
    tilt = abs(new.total[i]) / new.norm[i] * (1.0 + 1e-9)
    reaches_score = tilt * index.extremes[0] >= score
    if reaches_score or tilt * index.extremes[1] >= 1.0 or index.extremes[2] > 0:
        for position in range(kept.size[0]):
            slot = kept.live[position]
            if index.common[slot] > 0:
                continue
            value = tilt * abs(columns.total[slot]) / columns.norm[slot]
            if columns.background[slot] != 0.0 or value >= bound_of(
                score, kept.score[slot], rule
            ):
                index.shortlist[n_listed] = slot
                n_listed += 1
    return n_listed


def _list_for_test(new, i, score, kept, rule, n_listed):
    """Without a shared row the test needs no pass over the rows."""
    index = kept.index
    for position in range(kept.size[0]):
        slot = kept.live[position]
        winner = who_wins(kept.score[slot], score, rule)
        if index.common[slot] > 0 or winner == NEITHER:
            continue
        matters = kept.columns.background[slot] != 0.0
        if not matters:
            r = _correlate_listed(new, i, kept, slot)
            matters = _judge(new, i, kept, slot, winner, r, rule)[0]
        if matters:
            index.shortlist[n_listed] = slot
            n_listed += 1
    return n_listed


_list_apart = by_rule(_list_for_bound, _list_for_test)
"""Append the kept columns that matter but share no row to the short list."""


def _list_candidates(new, i, score, kept, index, rule):
    """A newcomer with a background shares rows with all columns: there is no list."""
    if new.background[i] != 0.0:
        return -1
    start, stop = new.offset[i], new.offset[i] + new.length[i]
    rows, values = new.rows[start:stop], new.values[start:stop]
    if not row_index.index_pays(index, rows, kept.used[0], kept.size[1]):
        return -1
    n_touched = row_index.touch_rows(index, rows, values, index.touched[:0])
    n_listed = _list_apart(new, i, score, kept, rule, n_touched)
    row_index.sort_candidates(index, kept.live[: kept.size[0]], n_touched, n_listed)
    return n_listed


def _enter_index(columns, index, slot, score):
    start, stop = columns.offset[slot], columns.offset[slot] + columns.length[slot]
    rows, values = columns.rows[start:stop], columns.values[start:stop]
    row_index.add_rows(index, slot, rows, values)
    tilt = abs(columns.total[slot]) / columns.norm[slot]
    index.extremes[0] = max(index.extremes[0], tilt)
    index.extremes[1] = max(index.extremes[1], tilt / score)
    index.extremes[2] += columns.background[slot] != 0.0


def _leave_index(columns, index, slot):
    index.is_live[slot] = False
    index.extremes[2] -= columns.background[slot] != 0.0


def _demand(columns: SparseValues, which: IntArray) -> IntArray:
    return np.stack([columns.length[which], np.zeros(which.size, np.int64)])


def _allocate(like: SparseValues, n_slots: int, first: int, _: int) -> Any:
    slots = ("total", "norm", "background", "offset", "length", "span")
    return empty(like, **dict.fromkeys(slots, n_slots), rows=first, values=first)


def _allocate_index(like: Any, n_slots: int, n_nodes: int, **options: Any) -> Any:
    sizes = like.n_rows, n_slots, n_nodes
    return row_index.empty_index(*sizes, has_values=True, **options)


def _restore(arrays: dict[str, Any], n: int, measure: Any) -> SparseValues:
    length, rows = arrays["length"], arrays["rows"]
    check_rows(length, rows, n)
    if arrays["values"].shape != rows.shape or not (arrays["norm"] > 0).all():
        raise ValueError("the values do not fit the rows, or a column is constant")
    arrays = moments.restore_span(arrays, measure)
    return SparseValues(offset=np.cumsum(length) - length, n_rows=n, **arrays)


def _as_rows(columns: SparseValues, which: IntArray, n: int) -> NDArray[Any]:
    rows = np.repeat(columns.background[which, None], n, axis=1)
    for row, i in zip(rows, which, strict=True):
        here = slice(columns.offset[i], columns.offset[i] + columns.length[i])
        row[columns.rows[here]] = columns.values[here]
    return rows


SPARSE_VALUES = storage_from(
    globals(),
    name="sparse values",
    old_names=("SparseMoments",),
    columns=SparseValues,
    end_walk=row_index.end_walk,
    clear_index=row_index.clear_index,
    scratch=np.zeros,
    saved={
        "total": SavedField(np.float64),
        "norm": SavedField(np.float64),
        "background": SavedField(np.float64),
        "length": SavedField(np.int64, low=0),
        "rows": SavedField(np.int32, (None,), low=0, stop="samples"),
        "values": SavedField(np.float64, (None,)),
        "span": moments.SPAN,
    },
    pool_of={"rows": 0, "values": 0},
    is_sparse=True,
)
