"""Compressed columns: checking them, and making them from rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from featstream.jit import kernel


class ValueFacts(NamedTuple):
    """What kind of numbers some values are; see `describe_values`."""

    is_whole: bool
    is_single: bool  # exact in single precision
    lowest: float
    highest: float


@kernel(allocates=True)
def describe_values(values: NDArray[Any]) -> ValueFacts:
    """Whether values are whole numbers, or exact in single precision.

    The range is that of all values only if ``is_whole``; that of no values is
    from inf to -inf.
    """
    is_whole = True
    is_single = True
    lowest = np.inf
    highest = -np.inf
    for i in range(values.size):
        value = np.float64(values[i])
        is_whole = is_whole and value == np.floor(value) and not np.isinf(value)
        is_single = is_single and (
            np.isnan(value) or np.float64(np.float32(value)) == value
        )
        if not is_whole and not is_single:
            break
        lowest = min(lowest, value)
        highest = max(highest, value)
    return ValueFacts(is_whole, is_single, lowest, highest)


@kernel(allocates=True)
def find_bad_column(
    indptr: NDArray[np.int64], rows: NDArray[np.int32], n_samples: int
) -> int:
    """First column whose rows do not increase within [0, n_samples); -1 if none.

    ``indptr`` has been checked: it increases, within the size of ``rows``.
    """
    bad = -1
    for j in range(indptr.size - 1):
        previous = -1
        is_good = True
        for k in range(indptr[j], indptr[j + 1]):
            is_good &= rows[k] > previous
            previous = rows[k]
        if not is_good or previous >= n_samples:
            bad = j
            break
    return bad


@kernel(allocates=True)
def pack_entries(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    values: NDArray[np.float64],
    first_row: int,
    bounds: NDArray[np.int64],
    packed: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Sort the entries of some rows by range of columns; zeros are left out.

    ``bounds`` has the first index of every range but the first. ``packed``, of shape
    (n_entries, 2), is filled with ``row << 32 | index + 1`` and the bits of the value;
    entries keep their order within a range. Returns where each range begins and ends.
    """
    n_ranges = bounds.size + 1
    bits = values.view(np.int64)
    starts = np.zeros(n_ranges + 1, np.int64)
    for row in range(indptr.size - 1):
        j = 0
        for k in range(indptr[row], indptr[row + 1]):
            while j < bounds.size and indices[k] >= bounds[j]:
                j += 1
            starts[j + 1] += values[k] != 0.0
    for j in range(n_ranges):
        starts[j + 1] += starts[j]
    place = starts[:n_ranges].copy()
    for row in range(indptr.size - 1):
        j = 0
        high = np.int64(first_row + row) << 32
        for k in range(indptr[row], indptr[row + 1]):
            while j < bounds.size and indices[k] >= bounds[j]:
                j += 1
            if values[k] != 0.0:
                packed[place[j], 0] = high | (np.int64(indices[k]) + 1)
                packed[place[j], 1] = bits[k]
                place[j] += 1
    return starts


@kernel(allocates=True)
def place_entries(
    packed: NDArray[np.int64],
    first: int,
    place: NDArray[np.int64],
    rows: NDArray[np.int32],
    values: NDArray[Any],
) -> None:
    """Write each entry to the next place of its column, and advance ``place``."""
    numbers = packed.view(np.float64)
    for i in range(packed.shape[0]):
        j = (packed[i, 0] & 0xFFFFFFFF) - first
        k = place[j]
        rows[k] = packed[i, 0] >> 32
        values[k] = numbers[i, 1]
        place[j] = k + 1
