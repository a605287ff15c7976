"""Discrete columns by the rows that are not in their background category."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from featstream.jit import inner, kernel
from featstream.measures.storages import row_index, tables
from featstream.measures.storages.binning import (
    Binning,
    Summary,
    cut_points,
    find_bin,
    most_listed,
)
from featstream.measures.storages.dispatch import (
    EARLIER,
    NEITHER,
    by_rule,
    empty,
    reaches,
    storage_from,
    who_wins,
)
from featstream.measures.storages.tables import MAX_PLANES, CodedTarget
from featstream.protocols import (
    IntArray,
    SavedField,
    SparseColumns,
    read_only,
)

_UNIQUE = 1 << 60
"""Keys from here on belong to one column each; others are counts or norms."""


class SparseCodes(NamedTuple):
    """Discrete columns by the rows that are not in the background category 0.

    Column ``i`` has ``length[i]`` such rows, from ``offset[i]`` on in ``rows``
    and ``codes``; ``count_offset[i]`` is where the sizes of its categories
    1, 2, … begin in ``counts``. For the conditional test, ``split`` has the number of
    categories that occur and, with two classes, the number of these rows in class 1;
    otherwise it has no columns.
    """

    nlogn: np.ndarray
    arity: np.ndarray
    own: np.ndarray
    norm: np.ndarray
    offset: np.ndarray
    length: np.ndarray
    rows: np.ndarray
    codes: np.ndarray
    count_offset: np.ndarray
    counts: np.ndarray
    split: np.ndarray


def summarise(stored: SparseColumns) -> Summary:
    """The ranges and kinds of sparse columns; their ranges include zero."""
    m = stored.indptr.size - 1
    summary = Summary(*np.empty((2, m)), *np.zeros((5, m), np.bool_))
    _summarise(stored.indptr, stored.values, summary)
    return summary


def encode(
    stored: SparseColumns,
    summary: Summary,
    target: CodedTarget,
    binning: Binning,
    norm: int,
) -> SparseCodes:
    """Categories of sparse columns; ``own`` is filled when they are scored."""
    m, n_stored = stored.indptr.size - 1, stored.rows.size
    if summary.is_plain.all():
        length = np.diff(stored.indptr)
        arity = 1 + (length > 0).astype(np.int64)
        rows, codes = stored.rows, np.ones(n_stored, np.int32)
        counts = length[length > 0]
    else:
        rows, codes = np.empty((2, n_stored), np.int32)
        counts = np.empty(n_stored + m * (binning.n_bins + 2), np.int64)
        arity, length = np.empty((2, m), np.int64)
        entries = stored.indptr, stored.rows, stored.values
        found = rows, codes, counts, arity, length
        size, n_entries = summary.high - summary.low + 1, -1
        is_counted = summary.is_whole & ~summary.is_missing
        if (is_counted & (size <= 4 * stored.n_samples + 1024)).all():
            # Needs no binning, which takes long to compile.
            code_of = np.zeros(int(size.max()), np.int32)
            n_entries, n_counts = _code_counts(
                entries, summary, binning, code_of, found
            )
        if n_entries < 0:
            n_entries, n_counts = _code(entries, summary, target, binning, found)
        rows, codes, counts = rows[:n_entries], codes[:n_entries], counts[:n_counts]
    return SparseCodes(
        nlogn=binning.nlogn,
        arity=arity,
        own=np.zeros(m, np.int64),
        norm=np.full(m, norm, np.int64),
        offset=np.cumsum(length) - length,
        length=length,
        rows=read_only(rows),
        codes=read_only(codes),
        count_offset=np.cumsum(arity - 1) - (arity - 1),
        counts=counts,
        split=np.empty((m, 0), np.int64),
    )


@kernel(allocates=True)
def _summarise(indptr, values, summary):
    for j in range(indptr.size - 1):
        start, stop = indptr[j], indptr[j + 1]
        plain, whole, missing, infinite = True, True, False, False
        low, high = 0.0, 0.0
        for e in range(start, stop):
            value = np.float64(values[e])
            plain = plain and value != 0.0 and value == values[start]
            if np.isnan(value):
                missing = True
            elif np.isinf(value):
                infinite = True
            else:
                whole = whole and value == np.floor(value)
                low, high = min(low, value), max(high, value)
        summary.is_plain[j] = plain and whole
        summary.is_whole[j] = whole
        summary.is_missing[j], summary.is_infinite[j] = missing, infinite
        summary.low[j], summary.high[j] = low, high


@kernel(allocates=True)
def _code_counts(entries, summary, binning, code_of, found):
    """The same as `_code` for whole numbers in a short range; -1 if one is binned.

    ``code_of`` is all zero, and long enough for the range of any column.
    """
    indptr, rows, values = entries
    out_rows, out_codes, out_counts, arity, length = found
    n_entries, n_counts = 0, 0
    for j in range(indptr.size - 1):
        start, stop, low = indptr[j], indptr[j + 1], np.int64(summary.low[j])
        for e in range(start, stop):
            code_of[np.int64(values[e]) - low] = 1
        is_zero_stored, code_of[-low], n_codes = code_of[-low], 0, 0
        for v in range(np.int64(summary.high[j]) - low + 1):
            if code_of[v]:
                n_codes += 1
                code_of[v] = n_codes
                out_counts[n_counts + n_codes - 1] = 0
        has_zero = is_zero_stored or stop - start < binning.nlogn.size - 1
        if n_codes + has_zero > most_listed(summary, j, binning):
            return -1, 0
        first = n_entries
        for e in range(start, stop):
            code = code_of[np.int64(values[e]) - low]
            if code:
                out_rows[n_entries] = rows[e]
                out_codes[n_entries] = code
                out_counts[n_counts + code - 1] += 1
                n_entries += 1
        for e in range(start, stop):
            code_of[np.int64(values[e]) - low] = 0
        length[j] = n_entries - first
        arity[j] = n_codes + 1
        n_counts += n_codes
    return n_entries, n_counts


@kernel(allocates=True)
def _code(entries, summary, target, binning, found):
    """Stored rows, codes and category sizes of sparse columns.

    Category 0 is that of the value zero. Returns the number of rows and of counts.
    """
    indptr, rows, values = entries
    out_rows, out_codes, out_counts, arity, length = found
    n_entries, n_counts = 0, 0
    for j in range(indptr.size - 1):
        start, stop = indptr[j], indptr[j + 1]
        if summary.is_plain[j]:
            for e in range(start, stop):
                out_rows[n_entries] = rows[e]
                out_codes[n_entries] = 1
                n_entries += 1
            length[j] = stop - start
            arity[j] = 2 if stop > start else 1
            if stop > start:
                out_counts[n_counts] = stop - start
                n_counts += 1
            continue
        stored = values[start:stop].astype(np.float64)
        classes, zero_classes = np.empty(stored.size, np.int32), target.counts.copy()
        for e in range(stored.size):
            classes[e] = target.classes[rows[start + e]]
            zero_classes[classes[e]] -= 1
        n_zeros = target.classes.size - stored.size
        n_listed = most_listed(summary, j, binning)
        cuts = cut_points(stored, classes, n_zeros, zero_classes, binning, n_listed)
        background = find_bin(cuts, 0.0)
        n_codes = cuts.size + 1 + summary.is_missing[j]
        out_counts[n_counts : n_counts + n_codes - 1] = 0
        first = n_entries
        for e in range(start, stop):
            code = find_bin(cuts, stored[e - start])
            if code == background:
                continue
            if code < background:  # the background takes code 0
                code += 1
            out_rows[n_entries] = rows[e]
            out_codes[n_entries] = code
            out_counts[n_counts + code - 1] += 1
            n_entries += 1
        length[j] = n_entries - first
        arity[j] = n_codes
        n_counts += n_codes - 1
    return n_entries, n_counts


def _fill_classes(columns, i, cells, target, scratch):
    n_classes = target.counts.size
    for c in range(n_classes):
        cells[c] = target.counts[c]
    for e in range(columns.offset[i], columns.offset[i] + columns.length[i]):
        c = target.classes[columns.rows[e]]
        cells[columns.codes[e] * n_classes + c] += 1
        cells[c] -= 1


def _decode_column(columns, i, codes):
    """Write the code of every row of a sparse column."""
    codes[:] = 0
    for e in range(columns.offset[i], columns.offset[i] + columns.length[i]):
        codes[columns.rows[e]] = columns.codes[e]


@inner
def _joint(a, i, b, j, scratch):
    """Sum of ``k log2 k`` over the joint table of two sparse columns.

    ``scratch.mark`` has the codes of column ``i`` of ``a``, so that only the stored
    rows of ``b`` are read. If the columns shared no row, all counts would be in the
    margins; each row in which both are stored moves one from there to a cell.
    """
    nlogn, mark = a.nlogn, scratch.mark
    n = nlogn.size - 1
    start, stored_a, stored_b = b.offset[j], a.length[i], b.length[j]
    common = 0
    if a.arity[i] == 2 and b.arity[j] == 2:
        for e in range(start, start + stored_b):
            common += mark[b.rows[e]]
        return tables.joint_of_counts(nlogn, n, stored_a, stored_b, common)
    for e in range(start, start + stored_b):
        code = mark[b.rows[e]]
        if code:
            scratch.left[common] = code
            scratch.right[common] = b.codes[e]
            common += 1
    left, right = scratch.left[:common], scratch.right[:common]
    n_right = b.arity[j]
    n_cells = np.int64(a.arity[i]) * np.int64(n_right)
    total = tables.joint_of_codes(nlogn, left, right, n_right, n_cells, scratch)
    total += a.own[i] - nlogn[n - stored_a] + b.own[j] - nlogn[n - stored_b]
    total += nlogn[n - stored_a - stored_b + common]
    used_left, used_right = scratch.used_left, scratch.used_right
    for e in range(common):
        used_left[left[e]] += 1
        rest = a.counts[a.count_offset[i] + left[e] - 1] - used_left[left[e]]
        total += nlogn[rest] - nlogn[rest + 1]
        used_right[right[e]] += 1
        rest = b.counts[b.count_offset[j] + right[e] - 1] - used_right[right[e]]
        total += nlogn[rest] - nlogn[rest + 1]
    for e in range(common):
        used_left[left[e]] = 0
        used_right[right[e]] = 0
    return total


def _overlap(new, i, kept, slot, is_listed, scratch):
    columns, nlogn = kept.columns, new.nlogn
    if is_listed and new.arity[i] == 2 and columns.arity[slot] == 2:
        common, _ = row_index.rows_shared(kept.index, slot)
        ones, others = new.length[i], columns.length[slot]
        joint = tables.joint_of_counts(nlogn, nlogn.size - 1, ones, others, common)
    else:
        joint = _joint(new, i, columns, slot, scratch)
    return tables.score_pair(new, i, columns, slot, joint)


@inner
def _count_binary(new, i, kept, slot, is_listed, target, scratch):
    columns, mark = kept.columns, scratch.mark
    ones, others, start = new.length[i], columns.length[slot], columns.offset[slot]
    if is_listed:
        common, common_1 = row_index.rows_shared(kept.index, slot)
        return ones, others, common, common_1
    common, common_1 = 0, 0
    for e in range(start, start + others):
        row = columns.rows[e]
        common += mark[row]
        common_1 += mark[row] * target.classes[row]
    return ones, others, common, common_1


@inner
def _fill_cells(cells, new, i, columns, slot, target, scratch):
    """Count (category of new, category of kept, class) in every row."""
    n_kept, n_classes = columns.arity[slot], target.counts.size
    for c in range(n_classes):
        cells[c] = target.counts[c]
    for e in range(new.offset[i], new.offset[i] + new.length[i]):
        c = target.classes[new.rows[e]]
        cells[c] -= 1
        cells[new.codes[e] * n_kept * n_classes + c] += 1
    for e in range(columns.offset[slot], columns.offset[slot] + columns.length[slot]):
        row = columns.rows[e]
        c, pair = target.classes[row], scratch.mark[row] * n_kept
        cells[pair * n_classes + c] -= 1
        cells[(pair + columns.codes[e]) * n_classes + c] += 1


_is_independent = tables.conditional_test(_count_binary, _fill_cells)


def _load_newcomer(new, i, scratch):
    for e in range(new.offset[i], new.offset[i] + new.length[i]):
        scratch.mark[new.rows[e]] = new.codes[e]


def _unload_newcomer(new, i, scratch):
    for e in range(new.offset[i], new.offset[i] + new.length[i]):
        scratch.mark[new.rows[e]] = 0


def _has_room(new, i, kept):
    return (
        kept.used[0] + new.length[i] <= kept.columns.rows.size
        and kept.used[1] + new.arity[i] - 1 <= kept.columns.counts.size
    )


def _copy_column(new, i, kept, slot, used):
    kept.arity[slot] = new.arity[i]
    kept.own[slot] = new.own[i]
    kept.norm[slot] = new.norm[i]
    for k in range(kept.split.shape[1]):
        kept.split[slot, k] = new.split[i, k]
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
def _signature(columns, i, score):
    """What decides about two columns that share no row: length, key and score of each.

    A column of more than two categories needs a comparison, and has a key of its own.
    """
    key = columns.norm[i]
    if columns.split.shape[1]:
        key = columns.split[i, 1] if columns.arity[i] == 2 else _UNIQUE + i
    return columns.length[i], key, score


def _matter_by_bound(nlogn, own, index, other, rule):
    length, norm, score = own
    other_score, n = index.signature_score[other], nlogn.size - 1
    rest = n - length - index.signature_key[other, 0]
    if who_wins(other_score, score, rule) == NEITHER or rest < 0:
        return False  # if nothing is left they must share rows
    without_other = nlogn[n - index.signature_key[other, 0]]
    information = nlogn[n] + nlogn[rest] - nlogn[n - length] - without_other
    value = tables.ratio(information, norm, index.signature_key[other, 1])
    return reaches(value, score, other_score, rule)


def _matter_by_test(nlogn, own, index, other, rule):
    length, ones_1, score = own
    others, others_1 = index.signature_key[other, 0], index.signature_key[other, 1]
    winner = who_wins(index.signature_score[other], score, rule)
    if winner == NEITHER or others_1 >= _UNIQUE:
        return winner != NEITHER
    n, n_1 = nlogn.size - 1, rule.target.counts[1]
    if ones_1 + others_1 > n_1 or length - ones_1 + others - others_1 > n - n_1:
        return False  # they must share rows
    found = tables.judge_binary(
        nlogn, length, ones_1, others, others_1, 0, 0, winner, rule
    )
    return found[0]


_matters = by_rule(_matter_by_bound, _matter_by_test)
"""Whether one of two columns that share no row can remove the other."""


@inner
def _is_dismissed(index, nlogn, own, rule):
    """Whether no kept column that shares no row with a newcomer matters to it."""
    place = row_index.hash_signature(own) & np.uint64(index.memo_checked.size - 1)
    if not row_index.has_signature(index.memo_key, index.memo_score, place, own):
        row_index.set_signature(index.memo_key, index.memo_score, place, own)
        index.memo_checked[place], index.memo_matters[place] = 0, False
    n_signatures = index.n_signatures[0]
    for other in range(index.memo_checked[place], n_signatures):
        if index.memo_matters[place]:
            break
        index.memo_matters[place] = _matters(nlogn, own, index, other, rule)
    index.memo_checked[place] = n_signatures
    return not index.memo_matters[place]


@inner
def _list_apart(index, nlogn, own, rule, n_listed):
    """Append the kept columns that matter but share no row to the short list.

    The members of a signature all matter or none does. Of those that make the newcomer
    redundant only the earliest, the witness, is needed.
    """
    if _is_dismissed(index, nlogn, own, rule):
        return n_listed
    witness = -1
    for other in range(index.n_signatures[0]):
        if not _matters(nlogn, own, index, other, rule):
            continue
        winner = who_wins(index.signature_score[other], own[2], rule)
        is_decided = winner == EARLIER and index.signature_key[other, 1] < _UNIQUE
        slot = index.signature_head[other]
        while slot >= 0:
            if index.is_live[slot] and index.common[slot] == 0:
                if is_decided:
                    witness = slot if witness < 0 else min(witness, slot)
                    break
                index.shortlist[n_listed] = slot
                n_listed += 1
            slot = index.member_next[slot]
    if witness >= 0:
        index.shortlist[n_listed] = witness
        n_listed += 1
    return n_listed


def _touch_for_bound(new, i, index, rows, rule):
    return row_index.touch_rows(index, rows, index.value, index.touched[:0])


def _touch_for_test(new, i, index, rows, rule):
    has_counts = new.arity[i] == 2 and rule.target.counts.size == 2
    if not has_counts or tables.is_thin(8, new.nlogn.size - 1):
        return -1
    return row_index.touch_rows(index, rows, index.value, rule.target.classes)


_touch = by_rule(_touch_for_bound, _touch_for_test)
"""List the kept columns that share a row with a newcomer; return their number.

-1 if it is not known which of the other columns matter.
"""


def _list_candidates(new, i, score, kept, index, rule):
    rows = new.rows[new.offset[i] : new.offset[i] + new.length[i]]
    if not row_index.index_pays(index, rows, kept.used[0], kept.size[1]):
        return -1
    n_touched = _touch(new, i, index, rows, rule)
    if n_touched < 0:
        return -1
    own = _signature(new, i, score)
    n_listed = _list_apart(index, new.nlogn, own, rule, n_touched)
    row_index.sort_candidates(index, kept.live[: kept.size[0]], n_touched, n_listed)
    return n_listed


def _enter_index(columns, index, slot, score):
    start, stop = columns.offset[slot], columns.offset[slot] + columns.length[slot]
    row_index.add_rows(index, slot, columns.rows[start:stop], index.value)
    row_index.join_signature(index, slot, _signature(columns, slot, score))


def _leave_index(columns, index, slot):
    index.is_live[slot] = False


def _demand(columns: SparseCodes, which: IntArray) -> IntArray:
    return np.stack([columns.length[which], columns.arity[which] - 1])


def _allocate(like: SparseCodes, n_slots: int, first: int, second: int) -> Any:
    slots = ("arity", "own", "norm", "offset", "length", "count_offset", "split")
    sizes = dict.fromkeys(slots, n_slots)
    return empty(like, **sizes, rows=first, codes=first, counts=second)


def _allocate_index(like: Any, n_slots: int, n_nodes: int, **options: Any) -> Any:
    sizes = like.nlogn.size - 1, n_slots, n_nodes
    return row_index.empty_index(*sizes, has_values=False, **options)


def check_rows(length: Any, rows: Any, n: int) -> None:
    """Refuse rows that sparse columns of these lengths cannot have."""
    if rows.size != length.sum() or (length > n).any():
        raise ValueError("the number of rows does not fit the lengths")
    is_first = np.zeros(rows.size + 1, dtype=bool)
    is_first[np.cumsum(length) - length] = True
    if not ((np.diff(rows.astype(np.int64)) > 0) | is_first[1:-1]).all():
        raise ValueError("rows do not increase")


def _restore(arrays: dict[str, Any], n: int, measure: Any) -> Any:
    arity, length, codes = arrays["arity"], arrays["length"], arrays["codes"]
    check_rows(length, arrays["rows"], n)
    if arity.max() > max(n, MAX_PLANES) + 1:
        raise ValueError("a column has too many categories")
    if codes.shape != arrays["rows"].shape or (codes >= np.repeat(arity, length)).any():
        raise ValueError("the codes do not fit the categories")
    count_offset = np.cumsum(arity - 1) - (arity - 1)
    places = np.repeat(count_offset, length) + codes - 1
    columns = SparseCodes(
        nlogn=tables.fixed_point_nlogn(n),
        offset=np.cumsum(length) - length,
        count_offset=count_offset,
        counts=np.bincount(places, minlength=int((arity - 1).sum())).astype(np.int64),
        split=np.empty((arity.size, 0), np.int64),
        **arrays,
    )
    return tables.restore_split(columns, measure)


SPARSE_CODES = storage_from(
    globals(),
    name="sparse codes",
    old_names=("SparseTables",),
    columns=SparseCodes,
    as_rows=tables.codes_as_rows,
    end_walk=row_index.end_walk,
    clear_index=row_index.clear_index,
    scratch=tables.code_scratch,
    saved={
        "arity": SavedField(np.int64, low=1),
        "own": SavedField(np.int64, low=0, stop=2**62),
        "norm": SavedField(np.int64, low=0, stop=2**62),
        "length": SavedField(np.int64, low=0),
        "rows": SavedField(np.int32, (None,), low=0, stop="samples"),
        "codes": SavedField(np.int32, (None,), low=1),
    },
    pool_of={"rows": 0, "codes": 0},
    is_sparse=True,
    read_only=("rows", "codes"),
)
