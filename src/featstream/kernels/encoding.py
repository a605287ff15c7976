"""From values to the categories of discrete columns.

A column of integers is taken as it is: its values are labels. A column with
other numbers is binned, or, without binning, has a category for each value. A
missing value is a category of its own. Which number stands for which category
does not matter; in sparse columns 0 is the category of the rows not stored.
"""

from __future__ import annotations

import numpy as np

from featstream.jit import inner_jit, jit
from featstream.kernels.binning import cut_column, distinct_values
from featstream.kernels.prefetch import AHEAD_BYTES, CACHE_LINE, prefetch

__all__ = [
    "code_dense",
    "code_sparse",
    "find_bad",
    "range_of_integers",
    "summarise_dense",
    "summarise_sparse",
]

_STRETCH = 512


@jit
def find_bad(values):
    """First position of a NaN, number of NaN, and first infinity; -1 for none."""
    first_missing, n_missing, first_infinite = -1, 0, -1
    for i in range(values.size):
        value = values[i]
        if np.isnan(value):
            n_missing += 1
            if first_missing < 0:
                first_missing = i
        elif np.isinf(value) and first_infinite < 0:
            first_infinite = i
    return first_missing, n_missing, first_infinite


@jit
def range_of_integers(block, low, high):
    """Smallest and largest value of every column of integers."""
    n, m = block.shape
    ahead, line = AHEAD_BYTES // block.itemsize, CACHE_LINE // block.itemsize
    for j in range(m):
        column = block[:, j]
        smallest = largest = column[0]
        for start in range(0, n, _STRETCH):
            piece = column[start : start + _STRETCH]
            for k in range(0, piece.size, line):
                prefetch(piece, ahead + k)
            for k in range(piece.size):
                smallest = min(smallest, piece[k])
                largest = max(largest, piece[k])
        low[j], high[j] = smallest, largest


@jit
def summarise_dense(block, low, high, is_whole, is_missing, is_infinite):
    """Range of every column, and whether all its values are whole numbers."""
    n, m = block.shape
    for j in range(m):
        column = block[:, j]
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
        low[j], high[j] = smallest, largest
        is_whole[j], is_missing[j] = whole, missing
        is_infinite[j] = smallest == -np.inf or largest == np.inf
        if is_infinite[j] and missing:
            is_infinite[j] = find_bad(column.astype(np.float64))[2] >= 0


@inner_jit
def _cut_or_list(present, classes, n_zeros, zero_classes, target, binning, is_whole):
    """Cut points of a column: bins if it is continuous, else every value but one."""
    values, table = distinct_values(
        present, classes, n_zeros, zero_classes, target.counts.size
    )
    method, n_bins, nlogn, unit = binning
    if is_whole or method < 0:
        return values[:-1]
    return cut_column(values, table, method, n_bins, nlogn, unit)


@inner_jit
def _code_by_lookup(column, low, size, is_missing, codes):
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
    return n_codes + is_missing


@inner_jit
def _code_by_cuts(column, is_whole, target, binning, codes):
    """Codes of any numbers, by sorting them."""
    n = column.size
    present = np.empty(n)
    classes = np.empty(n, np.int32)
    no_zeros = np.zeros(target.counts.size, np.int64)
    n_present = 0
    for i in range(n):
        if not np.isnan(np.float64(column[i])):
            present[n_present] = column[i]
            classes[n_present] = target.classes[i]
            n_present += 1
    cuts = _cut_or_list(
        present[:n_present],
        classes[:n_present],
        0,
        no_zeros,
        target,
        binning,
        is_whole,
    )
    for i in range(n):
        value = np.float64(column[i])
        codes[i] = cuts.size + 1
        if not np.isnan(value):
            codes[i] = np.searchsorted(cuts, value)
    return cuts.size + 1 + (n_present < n)


@jit
def code_dense(
    block, which, low, high, is_whole, is_missing, target, binning, codes, arity
):
    """Codes of the chosen columns of a block, one row a column."""
    n = block.shape[0]
    for k in range(which.size):
        j = which[k]
        column, size = block[:, j], high[j] - low[j] + 1
        # Where all is missing there is no range: high < low.
        if is_whole[j] and 0 < size <= 4 * n + 1024:
            arity[k] = _code_by_lookup(
                column, low[j], np.int64(size), is_missing[j], codes[k]
            )
        else:
            arity[k] = _code_by_cuts(column, is_whole[j], target, binning, codes[k])


@jit
def summarise_sparse(indptr, values, is_plain, is_whole, is_missing, is_infinite):
    """Of every column: whether it stores a single value other than zero, and so on."""
    for j in range(indptr.size - 1):
        start, stop = indptr[j], indptr[j + 1]
        plain, whole, missing, infinite = True, True, False, False
        for e in range(start, stop):
            value = np.float64(values[e])
            plain = plain and value != 0.0 and value == values[start]
            if np.isnan(value):
                missing = True
            elif np.isinf(value):
                infinite = True
            else:
                whole = whole and value == np.floor(value)
        is_plain[j] = plain and whole
        is_whole[j], is_missing[j], is_infinite[j] = whole, missing, infinite


@jit
def code_sparse(
    indptr,
    rows,
    values,
    is_plain,
    is_whole,
    target,
    binning,
    n,
    out_rows,
    out_codes,
    out_counts,
    arity,
    length,
):
    """Stored rows, codes and category sizes of sparse columns.

    Everything is written from the start of the outputs on; category 0 is that
    of the value zero. Returns how much of ``out_rows`` and ``out_counts`` is used.
    """
    n_entries, n_counts = 0, 0
    for j in range(indptr.size - 1):
        start, stop = indptr[j], indptr[j + 1]
        if is_plain[j]:
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
        present = np.empty(stop - start)
        classes = np.empty(stop - start, np.int32)
        zero_classes = target.counts.copy()
        n_present, n_zeros = 0, n - (stop - start)
        for e in range(start, stop):
            c = target.classes[rows[e]]
            zero_classes[c] -= 1
            if not np.isnan(np.float64(values[e])):
                present[n_present] = values[e]
                classes[n_present] = c
                n_present += 1
        cuts = _cut_or_list(
            present[:n_present],
            classes[:n_present],
            n_zeros,
            zero_classes,
            target,
            binning,
            is_whole[j],
        )
        background = np.searchsorted(cuts, 0.0)
        n_codes = cuts.size + 2
        out_counts[n_counts : n_counts + n_codes - 1] = 0
        first = n_entries
        for e in range(start, stop):
            value = np.float64(values[e])
            code = cuts.size + 1
            if not np.isnan(value):
                code = np.searchsorted(cuts, value)
                if code == background:
                    continue
                # The bins below the background move up by one: it takes code 0.
                code = code + 1 if code < background else code
            out_rows[n_entries] = rows[e]
            out_codes[n_entries] = code
            out_counts[n_counts + code - 1] += 1
            n_entries += 1
        length[j] = n_entries - first
        arity[j] = n_codes
        n_counts += n_codes - 1
    return n_entries, n_counts
