"""Tables of counts: their information, and tests given another column.

Counts are integers, and ``k log2 k`` comes from one table in fixed point, so every
entropy is an exact sum: the order of rows, the labels of categories and the way a
column is stored cannot change a bit of it. A discrete column carries ``own``, the sum
of ``k log2 k`` over its categories, and ``norm``, the denominator of its score.

**Given another column**, G² is summed over its categories. A category in which the
column or the class is constant adds no degrees of freedom.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from featstream.jit import inner, kernel
from featstream.measures.storages.dispatch import (
    EARLIER,
    decode_column,
    fill_classes,
    for_storage,
    overlap,
)
from featstream.protocols import FloatArray, IntArray

MAX_PLANES = 15
"""Columns of at most ``MAX_PLANES + 1`` categories are stored as bit planes."""

MAX_CELLS = 1 << 20
"""Tables of more cells than this are counted by their keys instead."""


def n_words(n_rows: int) -> int:
    """Number of 64-bit words that hold one bit for each row."""
    return (n_rows + 63) // 64


def pack_rows(is_set: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Bit planes of rows of booleans: one bit for each column."""
    bits = np.packbits(is_set, axis=1, bitorder="little")
    planes = np.zeros((is_set.shape[0], n_words(is_set.shape[1])), np.uint64)
    planes.view(np.uint8)[:, : bits.shape[1]] = bits
    return planes


class CodedTarget(NamedTuple):
    """The class of each row: as codes and, if there are few classes, as bit planes."""

    classes: np.ndarray
    counts: np.ndarray
    planes: np.ndarray
    own: int
    norm: int


class CodeScratch(NamedTuple):
    """Scratch buffers of the discrete kernels.

    Between calls ``keys`` are -1, ``left`` and ``right`` may hold anything, and the
    others are zero. ``mark`` has the codes of a loaded sparse newcomer by row.
    """

    cells: np.ndarray
    keys: np.ndarray
    mark: np.ndarray
    used_left: np.ndarray
    used_right: np.ndarray
    left: np.ndarray
    right: np.ndarray


def code_scratch(n_rows: int) -> CodeScratch:
    """New buffers for columns of ``n_rows`` values."""
    n_keys = 1 << int(2 * n_rows).bit_length()
    # A column with gaps may have more planes than rows, and one more for missing.
    most_codes = max(n_rows, MAX_PLANES) + 1
    return CodeScratch(
        cells=np.zeros(max(n_keys, min(MAX_CELLS, most_codes**2)), np.int64),
        keys=np.full(n_keys, -1, np.int64),
        mark=np.zeros(n_rows, np.int32),
        used_left=np.zeros(most_codes, np.int64),
        used_right=np.zeros(most_codes, np.int64),
        left=np.zeros(n_rows, np.int32),
        right=np.zeros(n_rows, np.int32),
    )


def fixed_point_nlogn(n_rows: int) -> IntArray:
    """``k log2 k`` for k = 0 … n_rows, as integers in units of ``2**-s``.

    The scale ``s`` is the largest for which ``n log2 n`` stays below ``2**51``: entries
    are then exact to half a unit, and sums of any length fit 64 bits.
    """
    k = np.arange(1.0, n_rows + 1)
    table = np.append(0.0, k * np.log2(k))
    largest = max(float(table[-1]), 1.0)
    shift = 51 - int(np.ceil(np.log2(largest)))
    fixed: IntArray = np.rint(np.ldexp(table, shift)).astype(np.int64)
    return fixed


def coded_target(
    codes: NDArray[Any], counts: IntArray, nlogn: IntArray, norm: int | None
) -> CodedTarget:
    """The target with these codes and class counts; without a norm, its entropy is."""
    own, n_classes = int(nlogn[counts].sum()), counts.size
    norm = int(nlogn[-1]) - own if norm is None else norm
    n_packed = n_classes if n_classes <= MAX_PLANES + 1 else 1
    planes = pack_rows(np.equal.outer(np.arange(1, n_packed), codes))
    return CodedTarget(codes.astype(np.int32), counts, planes, own, norm)


def count_tables(
    columns: Any, target: CodedTarget, scratch: CodeScratch
) -> Iterator[slice]:
    """Count (category, class) in as many columns at a time as there is room for.

    Their tables follow one another in ``scratch.cells``. If there is no room for a
    single table, ``scratch.left`` has the codes of the column instead.
    """
    begin, n_classes = 0, target.counts.size
    count = for_storage(_count_while_room, columns)
    while begin < columns.arity.size:
        end = max(count(columns, begin, target, scratch), begin + 1)
        yield slice(begin, end)
        scratch.cells[: np.add.reduce(columns.arity[begin:end]) * n_classes] = 0
        begin = end


@kernel
def _count_while_room(columns, begin, target, scratch):
    """The tables of the columns from ``begin`` on; returns the column after them."""
    cells, first, n_classes = scratch.cells, 0, target.counts.size
    for i in range(begin, columns.arity.size):
        n_cells = np.int64(columns.arity[i]) * n_classes
        if first + n_cells > cells.size:
            if i == begin:
                decode_column(columns, i, scratch.left)
            return i
        fill_classes(columns, i, cells[first : first + n_cells], target, scratch)
        first += n_cells
    return columns.arity.size


def codes_as_rows(columns: Any, which: IntArray, n: int) -> NDArray[np.int32]:
    """The categories of the chosen columns, one row per column."""
    rows = np.empty((which.size, n), np.int32)
    for_storage(_decode_columns, columns)(columns, which, rows)
    return rows


@kernel
def _decode_columns(columns, which, rows):
    for k in range(which.size):
        decode_column(columns, which[k], rows[k])


def score_columns(
    columns: Any, target: CodedTarget, scratch: CodeScratch, has_entropy_norm: bool
) -> FloatArray:
    """Score of every column with the target; fills ``own``.

    If ``has_entropy_norm``, ``norm`` becomes the entropy of the column.
    """
    scores, run = np.empty(columns.arity.size), for_storage(score_tables, columns)
    known = target, columns.nlogn, has_entropy_norm
    outputs = columns.own, columns.norm, columns.split, scores
    for here in count_tables(columns, target, scratch):
        found = (array[here] for array in outputs)
        run(scratch, columns.arity[here], *known, *found)
    return scores


def restore_split(columns: Any, measure: Any) -> Any:
    """Restored columns with ``split``, if their measure needs it."""
    width = 2 if measure.is_split else 0
    columns = columns._replace(split=np.zeros((columns.arity.size, width), np.int64))
    if measure.is_split:
        measure.relevance(columns)
    return columns


@inner
def joint_of_codes(nlogn, left, right, n_right, n_cells, scratch):
    """Sum of ``k log2 k`` over the cells of the table of two lists of codes.

    When a cell grows from k to k + 1 the sum grows by the difference, so that time is
    proportional to the rows, not to the cells. Large tables are hashed.
    """
    total, cells = 0, scratch.cells
    if n_cells <= cells.size:
        for i in range(left.size):
            cell = left[i] * n_right + right[i]
            total += nlogn[cells[cell] + 1] - nlogn[cells[cell]]
            cells[cell] += 1
        for i in range(left.size):
            cells[left[i] * n_right + right[i]] = 0
        return total
    keys, mask = scratch.keys, scratch.keys.size - 1
    for i in range(left.size):
        key = np.int64(left[i]) * n_right + right[i]
        place = (key * 0x9E3779B1) & mask
        while keys[place] >= 0 and keys[place] != key:
            place = (place + 1) & mask
        keys[place] = key
        total += nlogn[cells[place] + 1] - nlogn[cells[place]]
        cells[place] += 1
    keys[:] = -1
    cells[: keys.size] = 0
    return total


@inner
def joint_of_counts(nlogn, n, ones_a, ones_b, common):
    """The same for two binary columns of ``n`` rows, from their counts alone."""
    total = nlogn[common] + nlogn[ones_a - common] + nlogn[ones_b - common]
    return total + nlogn[n - ones_a - ones_b + common]


@inner
def score_pair(new, i, kept, slot, joint):
    """Score of two columns, from the sum over their joint table."""
    nlogn = new.nlogn
    information = nlogn[nlogn.size - 1] + joint - new.own[i] - kept.own[slot]
    return ratio(information, new.norm[i], kept.norm[slot])


@inner
def ratio(information, norm_a, norm_b):
    """The score: twice the information over the sum of the norms; 0 for 0 / 0."""
    if norm_a + norm_b == 0:
        return 0.0
    return 2.0 * max(information, 0) / (norm_a + norm_b)


@inner
def _is_independent(cells, arity, class_counts, n):
    """Whether every cell is exactly as its margins predict."""
    n_classes = class_counts.size
    for p in range(arity):
        row = cells[p * n_classes : (p + 1) * n_classes]
        size = row.sum()
        for c in range(n_classes):
            if n * row[c] != size * class_counts[c]:
                return False
    return True


@inner
def measure_table(cells, arity, target, nlogn):
    """Information in a table of (category, class), ``own``, and the categories used.

    Rounding can leave a few units where there is none, or none where there is a little.
    There the counts decide.
    """
    n_classes, n, joint, own, n_used = target.counts.size, nlogn.size - 1, 0, 0, 0
    for p in range(arity):
        size = 0
        for c in range(n_classes):
            count = cells[p * n_classes + c]
            joint += nlogn[count]
            size += count
        own += nlogn[size]
        n_used += size > 0
    information = nlogn[n] + joint - own - target.own
    if information <= (arity + 1) * (n_classes + 1):
        if _is_independent(cells, arity, target.counts, n):
            return 0, own, n_used
        return max(information, 1), own, n_used
    return information, own, n_used


@inner
def _measure_large_table(arity, target, nlogn, scratch):
    """The same from the codes in ``scratch.left``, without a table of all cells.

    Information that does not exceed the rounding error counts as none.
    """
    codes, sizes, own, n_used = scratch.left, scratch.used_left, 0, 0
    for r in range(codes.size):
        sizes[codes[r]] += 1
    for c in range(arity):
        own += nlogn[sizes[c]]
        n_used += sizes[c] > 0
        sizes[c] = 0
    n_classes = target.counts.size
    n_cells = np.int64(arity) * n_classes
    joint = joint_of_codes(nlogn, codes, target.classes, n_classes, n_cells, scratch)
    information = nlogn[nlogn.size - 1] + joint - own - target.own
    return (information if information > n_cells else 0), own, n_used


@kernel
def score_tables(
    scratch, arity, target, nlogn, has_entropy_norm, own, norm, split, scores
):
    """Score the columns whose tables with the class have been counted."""
    cells, first, n_classes = scratch.cells, 0, target.counts.size
    for i in range(arity.size):
        n_cells = np.int64(arity[i]) * n_classes
        if n_cells > cells.size:
            found = _measure_large_table(arity[i], target, nlogn, scratch)
        else:
            table = cells[first : first + n_cells]
            found = measure_table(table, arity[i], target, nlogn)
        information, own[i], n_used = found
        if split.shape[1]:
            split[i, 0] = n_used
            is_binary = arity[i] == 2 and n_classes == 2
            split[i, 1] = cells[first + 3] if is_binary else 0  # category 1, class 1
        if has_entropy_norm:
            norm[i] = nlogn[nlogn.size - 1] - own[i]
        scores[i] = ratio(information, norm[i], target.norm)
        first += n_cells


SAMPLES_PER_CELL = 5
MOST_CELLS = 1 << 12
_ENOUGH = 2.0 * math.log(2.0) * (1.0 + 1e-9)
"""Nats in two bits, and a little more."""


def critical_information(alpha: float, n_samples: int, bit: int) -> FloatArray:
    """The least significant information by degrees of freedom; ``bit`` is one bit."""
    df = np.arange(min(n_samples // SAMPLES_PER_CELL, MOST_CELLS) + 2)
    critical: FloatArray = special.chdtri(df, alpha) * bit / (2 * math.log(2))
    critical[0] = np.inf  # without variation there is no test
    return critical


@inner
def is_thin(n_cells, n_samples):
    """Whether a table has too many cells for the law of G² to hold."""
    return n_cells * SAMPLES_PER_CELL > n_samples or n_cells > MOST_CELLS


@inner
def gamma_tail(shape, x):
    """Probability that a gamma variable of this shape, and scale 1, exceeds ``x``.

    By a series for the complement, or by a continued fraction (Lentz).
    """
    if x <= 0.0:
        return 1.0
    front = math.exp(shape * math.log(x) - x - math.lgamma(shape))
    if x < shape + 1.0:
        term = total = 1.0 / shape
        k = shape
        while term > 1e-16 * total:
            k += 1.0
            term *= x / k
            total += term
        return max(0.0, 1.0 - front * total)
    b = x + 1.0 - shape
    c, d = 1e300, 1.0 / b
    fraction, k, change = d, 0.0, 0.0
    while abs(change - 1.0) > 1e-15 and k < 10000.0:
        k += 1.0
        b += 2.0
        a = -k * (k - shape)
        d = 1.0 / (a * d + b)
        c = b + a / c
        change = c * d
        fraction *= change
    return min(1.0, front * fraction)


@inner
def _chi_square_tail(information, df, nlogn):
    """P-value of information by the chi-square law of G²."""
    g_square = 4.0 * math.log(2.0) * information / nlogn[2]
    return gamma_tail(df / 2.0, g_square / 2.0)


@inner
def judge_information(information, df, rule, nlogn):
    """Whether information is not significant, and its p-value."""
    if information > rule.critical[df]:
        return False, np.nan
    return True, _chi_square_tail(information, df, nlogn) if df else 1.0


@inner
def _in_stratum(nlogn, size, class_size, ones, ones_in_class):
    """Information on two classes in a binary column, and its degrees of freedom."""
    if ones <= 0 or ones >= size or class_size <= 0 or class_size >= size:
        return 0, 0
    joint = joint_of_counts(nlogn, size, ones, class_size, ones_in_class)
    own = nlogn[ones] + nlogn[size - ones]
    own_class = nlogn[class_size] + nlogn[size - class_size]
    return joint + nlogn[size] - own - own_class, 1


@inner
def _at_least(size, class_size, ones, ones_in_class):
    """A lower bound of that information in nats (Pinsker), to save time."""
    if ones <= 0 or size <= 0:
        return 0.0
    gap = ones_in_class / ones - class_size / size
    return 2.0 * ones * gap * gap


@inner
def judge_binary(nlogn, loser, loser_1, given, given_1, common, common_1, who, rule):
    """The test for two binary columns and two classes, from their counts.

    ``loser`` rows are set in the newcomer and ``given`` rows in the kept column, which
    change places if the newcomer wins; ``common`` rows are set in both. Of these, the
    counts ``_1`` are of class 1.
    """
    if who != EARLIER:
        loser, loser_1, given, given_1 = given, given_1, loser, loser_1
    n, n_1 = nlogn.size - 1, rule.target.counts[1]
    at_least = _at_least(given, given_1, common, common_1)
    rest, rest_1 = loser - common, loser_1 - common_1
    at_least += _at_least(n - given, n_1 - given_1, rest, rest_1)
    if at_least * nlogn[2] > _ENOUGH * rule.critical[2]:
        return False, np.nan
    inside, df = _in_stratum(nlogn, given, given_1, common, common_1)
    outside, df_outside = _in_stratum(nlogn, n - given, n_1 - given_1, rest, rest_1)
    return judge_information(inside + outside, df + df_outside, rule, nlogn)


@inner
def information_given(cells, a, b, given, nlogn):
    """Information of two variables given a third, and its degrees of freedom.

    Of each variable: the number of its categories, and the distance of their cells.
    """
    (n_a, step_a), (n_b, step_b), (n_given, step_given) = a, b, given
    information, df = 0, 0
    for g in range(n_given):
        total, n_used_a, n_used_b = 0, 0, 0
        for p in range(n_a):
            size = 0
            for q in range(n_b):
                count = cells[g * step_given + p * step_a + q * step_b]
                information += nlogn[count]
                size += count
            information -= nlogn[size]
            total += size
            n_used_a += size > 0
        if total == 0:
            continue
        for q in range(n_b):
            size = 0
            for p in range(n_a):
                size += cells[g * step_given + p * step_a + q * step_b]
            information -= nlogn[size]
            n_used_b += size > 0
        information += nlogn[total]
        df += (n_used_a - 1) * (n_used_b - 1)
    return information, df


@inner
def judge_table(cells, n_new, n_kept, winner, rule, nlogn):
    """The same for any columns and classes, from the table of (new, kept, class)."""
    n_classes = rule.target.counts.size
    loser, given = (n_new, n_kept * n_classes), (n_kept, n_classes)
    if winner != EARLIER:
        loser, given = given, loser
    information, df = information_given(cells, loser, (n_classes, 1), given, nlogn)
    return judge_information(information, df, rule, nlogn)


def conditional_test(count_binary: Any, fill_cells: Any) -> Callable[..., Any]:
    """`Storage.is_independent` of columns of codes, from two kernels of a storage.

    ``count_binary`` counts the rows set in each of two binary columns, in both, and in
    both and class 1; ``fill_cells`` fills the table of (new, kept, class).
    """

    def is_independent(new, i, kept, slot, winner, known, rule, scratch):
        columns, target, nlogn = kept.columns, rule.target, new.nlogn
        n_new, n_kept = new.arity[i], columns.arity[slot]
        n_classes, is_listed = target.counts.size, known[3]
        n_used = new.split[i, 0] * columns.split[slot, 0] * n_classes
        if is_thin(n_used, nlogn.size - 1):
            value = overlap(new, i, kept, slot, is_listed, scratch)
            return value >= known[2], np.nan
        if n_new == 2 and n_kept == 2 and n_classes == 2:
            ones, others, common, common_1 = count_binary(
                new, i, kept, slot, is_listed, target, scratch
            )
            of_new, of_kept = (ones, new.split[i, 1]), (others, columns.split[slot, 1])
            return judge_binary(
                nlogn, *of_new, *of_kept, common, common_1, winner, rule
            )
        cells = scratch.cells
        fill_cells(cells, new, i, columns, slot, target, scratch)
        found = judge_table(cells, n_new, n_kept, winner, rule, nlogn)
        cells[: n_new * n_kept * n_classes] = 0
        return found

    return is_independent
