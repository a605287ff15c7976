"""Discrete columns with a code for every row: as bit planes if categories are few."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from featstream.jit import inner, kernel
from featstream.measures.storages import tables
from featstream.measures.storages.binning import (
    Binning,
    Summary,
    cut_points,
    find_bin,
    most_listed,
)
from featstream.measures.storages.dispatch import empty, storage_from
from featstream.measures.storages.tables import (
    MAX_PLANES,
    CodedTarget,
    n_words,
    pack_rows,
)
from featstream.protocols import IntArray, SavedField, read_only

_STEP = 512


class DenseCodes(NamedTuple):
    """Discrete columns with a code for every row.

    Column ``i`` has ``arity[i]`` categories. Its codes are row ``code_row[i]`` of
    ``codes`` or, if that is -1, its categories 1, 2, … are the planes from
    ``first_plane[i]`` on. For the conditional test, ``split`` has the number of
    categories that occur and, for binary columns and two classes, the number of rows in
    category 1 and class 1; otherwise it has no columns.
    """

    nlogn: np.ndarray
    arity: np.ndarray
    own: np.ndarray
    norm: np.ndarray
    first_plane: np.ndarray
    planes: np.ndarray
    plane_count: np.ndarray
    code_row: np.ndarray
    codes: np.ndarray
    split: np.ndarray


def encode(
    values: NDArray[Any],
    summary: Summary,
    target: CodedTarget,
    binning: Binning,
    norm: int,
) -> DenseCodes:
    """Categories of column-major values; ``own`` is filled when they are scored."""
    low, n_samples = summary.low, values.shape[0]
    has_range = summary.is_whole & (low <= summary.high)
    size = np.where(has_range, summary.high - low + 1, np.inf)
    is_small = (size <= min(MAX_PLANES + 1, binning.most_listed)) & ~summary.is_missing
    arity = np.where(is_small, size, 0).astype(np.int64)
    other = np.flatnonzero(~is_small)
    codes = np.empty((other.size, n_samples), np.int32)
    if other.size:
        _code(values.T, other, summary, target, binning, codes, arity)
    has_planes = arity <= MAX_PLANES + 1
    code_row = np.full(arity.size, -1, np.int64)
    code_row[other] = np.where(has_planes[other], -1, np.arange(other.size))
    if values.dtype == np.uint8 and is_small.all() and not low.any():
        small = values.T
    else:
        small = np.empty((int(has_planes.sum()), n_samples), np.uint8)
        small[is_small[has_planes]] = (values[:, is_small] - low[is_small]).T
        small[~is_small[has_planes]] = codes[has_planes[other]]
    return assemble(small, arity, binning.nlogn, norm, codes, code_row)


def assemble(
    small: NDArray[np.uint8],
    arity: IntArray,
    nlogn: IntArray,
    norm: int,
    codes: NDArray[np.int32],
    code_row: IntArray,
) -> DenseCodes:
    """Columns of few categories from their codes, one row each, and the others."""
    has_planes = code_row < 0
    n_planes = (arity - 1) * has_planes
    planes, plane_count = pack(small, arity[has_planes])
    return DenseCodes(
        nlogn=nlogn,
        arity=arity,
        own=np.zeros(arity.size, np.int64),
        norm=np.full(arity.size, norm, np.int64),
        first_plane=n_planes.cumsum() - n_planes,
        planes=planes,
        plane_count=plane_count,
        code_row=code_row,
        codes=codes,
        split=np.empty((arity.size, 0), np.int64),
    )


_ODD = np.uint64(0x5555555555555555)
_PAIRS = np.uint64(0x3333333333333333)
_NIBBLES = np.uint64(0x0F0F0F0F0F0F0F0F)
_BYTES = np.uint64(0x0101010101010101)
_1, _2, _4, _56 = np.uint64(1), np.uint64(2), np.uint64(4), np.uint64(56)


@inner
def ones_of_word(word):
    """Number of set bits of a 64-bit word.

    Sums of bits, pairs and nibbles side by side, and of bytes by a product. LLVM knows
    these steps, and makes the processor's own instruction of them.
    """
    word = word - ((word >> _1) & _ODD)
    word = (word & _PAIRS) + ((word >> _2) & _PAIRS)
    word = (word + (word >> _4)) & _NIBBLES
    return np.int64((word * _BYTES) >> _56)


def pack(codes: NDArray[Any], arity: IntArray) -> tuple[NDArray[np.uint64], IntArray]:
    """Bit planes of columns of codes, one row per column, and the size of each plane.

    The planes of a column, for its codes 1, 2, …, follow one another.
    """
    n_planes = arity - 1
    first = n_planes.cumsum() - n_planes
    planes = np.zeros((int(n_planes.sum()), n_words(codes.shape[1])), np.uint64)
    if codes.dtype == np.uint8 and n_planes.max(initial=0) == 1:
        sizes = np.empty(planes.shape[0], np.int64)
        _pack_binary(read_only(codes), n_planes.nonzero()[0], planes, sizes)
        return planes, sizes
    for code in range(1, int(arity.max(initial=1))):
        having = np.flatnonzero(n_planes >= code)
        rows = codes if having.size == arity.size else codes[having]
        planes[first[having] + code - 1] = pack_rows(rows == code)
    return planes, np.bitwise_count(planes).sum(axis=1, dtype=np.int64)


@kernel(allocates=True)
def _pack_binary(codes, which, planes, sizes):
    """Planes of the chosen columns, which are 0 or 1, and their sizes.

    A multiplication moves the lowest bits of eight bytes next to each other.
    """
    n = codes.shape[1]
    n_whole = n // 64
    gather, shift = np.uint64(0x0102040810204080), np.uint64(56)
    for k in range(which.size):
        column, plane, size = codes[which[k]], planes[k], 0
        eights = column[: 64 * n_whole].view(np.uint64)
        for w in range(n_whole):
            word = np.uint64(0)
            for b in range(8):
                word |= ((eights[8 * w + b] * gather) >> shift) << np.uint64(8 * b)
            plane[w] = word
            size += ones_of_word(word)
        for i in range(64 * n_whole, n):
            plane[n_whole] |= np.uint64(column[i]) << np.uint64(i & 63)
            size += np.int64(column[i])
        sizes[k] = size


@kernel
def count_common(a, b):
    """Number of rows set in both of two planes."""
    total = 0
    for w in range(a.size):
        total += ones_of_word(a[w] & b[w])
    return total


@kernel
def count_all(a, b, c):
    """Number of rows set in all of three planes."""
    total = 0
    for w in range(a.size):
        total += ones_of_word(a[w] & b[w] & c[w])
    return total


@kernel
def unpack(planes, codes):
    """Write the codes of the rows: plane p has the rows of code p + 1."""
    codes[:] = 0
    for p in range(planes.shape[0]):
        for i in range(codes.size):
            if (planes[p, i >> 6] >> np.uint64(i & 63)) & np.uint64(1):
                codes[i] = p + 1


def summarise(values: NDArray[Any]) -> Summary:
    """The ranges and kinds of column-major values."""
    m = values.shape[1]
    summary = Summary(*np.empty((2, m)), *np.zeros((5, m), np.bool_))
    if values.dtype.kind in "iu":
        summary.is_whole[:] = True
        _range_of_integers(values.T, summary.low, summary.high)
    else:
        summarise_floats(values.T, summary)
    return summary


@kernel(allocates=True)
def _range_of_integers(columns, low, high):
    """Smallest and largest value of every column of integers."""
    m, n = columns.shape
    for j in range(m):
        column = columns[j]
        smallest = largest = column[0]
        for start in range(0, n, _STEP):
            here = column[start : start + _STEP]
            for k in range(here.size):
                smallest = min(smallest, here[k])
                largest = max(largest, here[k])
        low[j], high[j] = smallest, largest


@kernel(allocates=True)
def summarise_floats(columns, summary):
    """Range of every column, and whether all its values are whole numbers."""
    m, n = columns.shape
    for j in range(m):
        column = columns[j]
        smallest, largest = np.inf, -np.inf
        whole, missing = True, False
        for i in range(n):
            value = np.float64(column[i])
            if np.isnan(value):
                missing = True
            else:
                smallest = min(smallest, value)
                largest = max(largest, value)
                whole = whole and value == np.floor(value)
        summary.low[j], summary.high[j] = smallest, largest
        summary.is_whole[j], summary.is_missing[j] = whole, missing
        # If all values are missing there is no range: high < low.
        is_infinite = smallest == -np.inf or largest == np.inf
        summary.is_infinite[j] = is_infinite and smallest <= largest


@inner(allocates=True)
def _code_by_lookup(column, low, size, codes):
    """Codes of whole numbers in a range not much longer than the column."""
    code_of = np.zeros(size, np.int32)
    for i in range(column.size):
        value = np.float64(column[i])
        if not np.isnan(value):
            code_of[np.int64(value - low)] = 1
    n_codes = 0
    for v in range(size):
        if code_of[v]:
            code_of[v] = n_codes
            n_codes += 1
    for i in range(column.size):
        value = np.float64(column[i])
        codes[i] = n_codes if np.isnan(value) else code_of[np.int64(value - low)]
    return n_codes


@inner(allocates=True)
def _code_by_cuts(column, target, binning, n_listed, codes):
    """Codes of any numbers, by sorting them."""
    values = column.astype(np.float64)
    no_zeros = np.zeros(target.counts.size, np.int64)
    cuts = cut_points(values, target.classes, 0, no_zeros, binning, n_listed)
    for i in range(values.size):
        codes[i] = find_bin(cuts, values[i])
    return cuts.size + 1


@kernel(allocates=True)
def _code(columns, which, summary, target, binning, codes, arity):
    """Codes of the chosen columns, one row per column, and their arity."""
    for k in range(which.size):
        j = which[k]
        column, low, is_missing = columns[j], summary.low[j], summary.is_missing[j]
        size, n_listed = summary.high[j] - low + 1, most_listed(summary, j, binning)
        arity[j] = 0
        if summary.is_whole[j] and 0 < size <= 4 * column.size + 1024:
            n_codes = _code_by_lookup(column, low, np.int64(size), codes[k])
            arity[j] = n_codes + is_missing if n_codes <= n_listed else 0
        if arity[j] == 0:
            n_codes = _code_by_cuts(column, target, binning, n_listed, codes[k])
            arity[j] = n_codes + is_missing


def _fill_classes(columns, i, cells, target, scratch):
    """By one popcount for each pair of planes, if there are planes."""
    n_classes, codes = target.counts.size, scratch.left
    if columns.code_row[i] >= 0 or n_classes > MAX_PLANES + 1:
        decode_column(columns, i, codes)
        for r in range(codes.size):
            cells[codes[r] * n_classes + target.classes[r]] += 1
        return
    for c in range(n_classes):
        cells[c] = target.counts[c]
    for p in range(columns.arity[i] - 1):
        plane, row = columns.first_plane[i] + p, (p + 1) * n_classes
        cells[row] = columns.plane_count[plane]
        for c in range(1, n_classes):
            common = count_common(columns.planes[plane], target.planes[c - 1])
            cells[row + c] = common
            cells[row] -= common
            cells[c] -= common
        cells[0] -= cells[row]


@inner
def decode_column(columns, i, codes):
    """Write the codes of a dense column."""
    row, first = columns.code_row[i], columns.first_plane[i]
    if row < 0:
        unpack(columns.planes[first : first + columns.arity[i] - 1], codes)
        return
    for r in range(codes.size):
        codes[r] = columns.codes[row, r]


@inner
def _joint(a, i, b, j, scratch):
    """Sum of ``k log2 k`` over the joint table of two dense columns."""
    nlogn = a.nlogn
    n_a, n_b = a.arity[i] - 1, b.arity[j] - 1
    if a.code_row[i] >= 0 or b.code_row[j] >= 0:
        left, right = scratch.left, scratch.right
        decode_column(a, i, left)
        decode_column(b, j, right)
        n_cells = np.int64(n_a + 1) * np.int64(n_b + 1)
        return tables.joint_of_codes(nlogn, left, right, n_b + 1, n_cells, scratch)
    first_a, first_b = a.first_plane[i], b.first_plane[j]
    if n_a == 1 and n_b == 1:
        common = count_common(a.planes[first_a], b.planes[first_b])
        ones_a, ones_b = a.plane_count[first_a], b.plane_count[first_b]
        return tables.joint_of_counts(nlogn, nlogn.size - 1, ones_a, ones_b, common)
    total, both_zero, rest = 0, nlogn.size - 1, scratch.used_right
    for q in range(n_b):
        rest[q] = b.plane_count[first_b + q]
    for p in range(n_a):
        row = a.plane_count[first_a + p]
        both_zero -= row
        for q in range(n_b):
            common = count_common(a.planes[first_a + p], b.planes[first_b + q])
            total += nlogn[common]
            row -= common
            rest[q] -= common
        total += nlogn[row]
    for q in range(n_b):
        total += nlogn[rest[q]]
        both_zero -= rest[q]
        rest[q] = 0
    return total + nlogn[both_zero]


def _overlap(new, i, kept, slot, is_listed, scratch):
    joint = _joint(new, i, kept.columns, slot, scratch)
    return tables.score_pair(new, i, kept.columns, slot, joint)


@inner
def _count_binary(new, i, kept, slot, is_listed, target, scratch):
    first_new, first_kept = new.first_plane[i], kept.columns.first_plane[slot]
    mine, other = new.planes[first_new], kept.columns.planes[first_kept]
    common_1 = count_all(mine, other, target.planes[0])
    ones, others = new.plane_count[first_new], kept.columns.plane_count[first_kept]
    return ones, others, count_common(mine, other), common_1


@inner
def _fill_cells(cells, new, i, columns, slot, target, scratch):
    """Count (category of new, category of kept, class) in every row."""
    n_new, n_kept, n_classes = new.arity[i], columns.arity[slot], target.counts.size
    n, row = new.nlogn.size - 1, n_kept * n_classes
    has_planes = new.code_row[i] < 0 and columns.code_row[slot] < 0
    if not has_planes or target.planes.shape[0] != n_classes - 1:
        decode_column(new, i, scratch.left)
        decode_column(columns, slot, scratch.right)
        for r in range(n):
            pair = np.int64(scratch.left[r]) * n_kept + scratch.right[r]
            cells[pair * n_classes + target.classes[r]] += 1
        return
    first_new, first_kept = new.first_plane[i], columns.first_plane[slot]
    for c in range(n_classes):  # class 0 stands for all rows until the end
        plane = target.planes[max(c - 1, 0)]
        cells[c] = target.counts[c] if c else n
        for q in range(1, n_kept):
            k = first_kept + q - 1
            size = columns.plane_count[k]
            if c:
                size = count_common(columns.planes[k], plane)
            cells[q * n_classes + c] = size
            cells[c] -= size
        for p in range(1, n_new):
            k = first_new + p - 1
            mine = new.planes[k]
            rest = count_common(mine, plane) if c else new.plane_count[k]
            for q in range(1, n_kept):
                other = columns.planes[first_kept + q - 1]
                both = count_all(mine, other, plane) if c else count_common(mine, other)
                cells[p * row + q * n_classes + c] = both
                cells[q * n_classes + c] -= both
                rest -= both
            cells[p * row + c] = rest
            cells[c] -= rest
    for pair in range(n_new * n_kept):
        for c in range(1, n_classes):
            cells[pair * n_classes] -= cells[pair * n_classes + c]


_is_independent = tables.conditional_test(_count_binary, _fill_cells)


def _has_room(new, i, kept):
    if new.code_row[i] >= 0:
        return kept.used[1] < kept.columns.codes.shape[0]
    return kept.used[0] + new.arity[i] - 1 <= kept.columns.planes.shape[0]


@inner
def _copy_row(out, row):
    for i in range(row.size):
        out[i] = row[i]


def _copy_column(new, i, kept, slot, used):
    kept.arity[slot] = new.arity[i]
    kept.own[slot] = new.own[i]
    kept.norm[slot] = new.norm[i]
    for k in range(kept.split.shape[1]):
        kept.split[slot, k] = new.split[i, k]
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


def _demand(columns: DenseCodes, which: IntArray) -> IntArray:
    has_codes = columns.code_row[which] >= 0
    return np.stack([np.where(has_codes, 0, columns.arity[which] - 1), has_codes])


def _allocate(like: DenseCodes, n_slots: int, first: int, second: int) -> Any:
    slots = ("arity", "own", "norm", "first_plane", "code_row", "split")
    sizes = dict.fromkeys(slots, n_slots)
    return empty(like, **sizes, planes=first, plane_count=first, codes=second)


def _restore(arrays: dict[str, Any], n: int, measure: Any) -> Any:
    arity, planes, codes = arrays["arity"], arrays["planes"], arrays["codes"]
    if arity.max() > max(n, MAX_PLANES) + 1:  # with gaps there may be more than rows
        raise ValueError("a column has too many categories")
    has_codes = arity > MAX_PLANES + 1
    n_planes = np.where(has_codes, 0, arity - 1)
    first_plane = np.cumsum(n_planes) - n_planes
    code_row = np.where(has_codes, np.cumsum(has_codes) - 1, -1)
    if planes.shape != (n_planes.sum(), n_words(n)):
        raise ValueError("the number of planes does not fit the categories")
    if n % 64 and (planes[:, -1] >> np.uint64(n % 64)).any():
        raise ValueError("a plane has bits beyond the last sample")
    for first, size in zip(first_plane, n_planes, strict=True):
        own = planes[first : first + size]
        together = np.bitwise_count(np.bitwise_or.reduce(own, axis=0))
        if together.sum() != np.bitwise_count(own).sum():
            raise ValueError("a row has two categories")
    if codes.shape[0] != has_codes.sum() or (codes >= arity[has_codes][:, None]).any():
        raise ValueError("the codes do not fit the categories")
    columns = DenseCodes(
        nlogn=tables.fixed_point_nlogn(n),
        first_plane=np.where(has_codes, 0, first_plane),
        plane_count=np.bitwise_count(planes).sum(axis=1, dtype=np.int64),
        code_row=code_row,
        split=np.empty((arity.size, 0), np.int64),
        **arrays,
    )
    return tables.restore_split(columns, measure)


DENSE_CODES = storage_from(
    globals(),
    name="dense codes",
    old_names=("DenseTables",),
    columns=DenseCodes,
    decode_column=decode_column,
    as_rows=tables.codes_as_rows,
    scratch=tables.code_scratch,
    saved={
        "arity": SavedField(np.int64, low=1),
        "own": SavedField(np.int64, low=0, stop=2**62),
        "norm": SavedField(np.int64, low=0, stop=2**62),
        "planes": SavedField(np.uint64, (None, None)),
        "codes": SavedField(np.int32, (None, "samples"), low=0),
    },
    pool_of={"planes": 0, "codes": 1},
)
