"""Numbers that stand for a missing value, such as -999, found in numeric columns."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from featstream.errors import FeatstreamWarning, Setting, printable, some_of
from featstream.protocols import Block, SparseColumns

_LEAST_TIMES = 2
_LEAST_OTHERS = 3
"""Distinct values besides: of 0, 1 and 99 the last may be a code as good as others."""

SENTINELS = np.array(
    [
        sign * int(digit * times)
        for digit in "98"
        for times in range(2, 8)
        for sign in (-1, 1)
    ]
)
"""-99 to 9999999, and the same with eights."""


class Sentinels:
    """Looks for repeated nines far outside a column, and warns of them once."""

    def __init__(self) -> None:
        self._found: list[str] = []
        self._values: set[int] = set()
        self._has_warned = False

    def look_at(self, block: Block) -> None:
        """Remember the columns of a dense block that have such values."""
        columns = block.columns
        if isinstance(columns, SparseColumns) or self._has_warned:
            return
        if columns.dtype.kind not in "if":  # unsigned types begin at 0: counts
            return
        lows, highs = np.fmin.reduce(columns, axis=0), np.fmax.reduce(columns, axis=0)
        is_odd = np.isin(lows, SENTINELS) | np.isin(highs, SENTINELS)
        if block.nominal is not None:
            is_odd &= ~block.nominal
        for i in np.flatnonzero(is_odd).tolist():
            ends = np.isin(SENTINELS, [lows[i], highs[i]])  # one may be infinite
            for value in SENTINELS[ends].tolist():
                n = count_sentinel(columns[:, i], value)
                if n:
                    name = printable(block.name(i))
                    self._found.append(f"{name} ({value}, {n:,} times)")
                    self._values.add(value)

    def warn(self) -> None:
        """Name the columns, once."""
        if not self._found or self._has_warned:
            return
        self._has_warned = True
        values = [str(value) for value in sorted(self._values)]
        warnings.warn(
            FeatstreamWarning(
                f"Far outside the other values, and repeated: {some_of(self._found, 5)}"
                ". They are taken as numbers. If they mean missing values, pass ",
                Setting("na_values", values),
                " for a file, or put NaN in their place.",
            ),
            stacklevel=3,
        )


def count_sentinel(column: NDArray[np.generic], value: int) -> int:
    """How often a value occurs, if it is repeated and far outside the others; or 0.

    It is far outside if it is farther from the others than these are from each other.

    >>> count_sentinel(np.array([1.5, 2.0, 30.0, -999.0, -999.0]), -999)
    2
    >>> count_sentinel(np.array([50, 60, 98, 99, 99]), 99)
    0
    """
    is_it = column == value
    others = column[~is_it & np.isfinite(column)].astype(np.float64)
    n_times = int(np.count_nonzero(is_it))
    if n_times < _LEAST_TIMES or np.unique(others).size < _LEAST_OTHERS:
        return 0
    low, high = float(others.min()), float(others.max())
    distance = low - value if value < low else value - high
    return n_times if distance > high - low else 0
