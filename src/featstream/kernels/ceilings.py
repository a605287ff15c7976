"""Upper bounds on overlaps, many at once and cheaply, before any is computed.

A bound may be loose but never wrong: what it rules out could not have decided
anything, and what it does not is computed as ever. So the selection does not
depend on it, nor on the order in which a matrix product adds its terms.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from featstream.kernels.moments import DenseMoments, standardise
from featstream.kernels.scan import Kept
from featstream.protocols import IntArray

__all__ = ["ceilings"]

_FEW = 4


def ceilings(columns: Any, which: IntArray, kept: Kept) -> NDArray[np.float32]:
    """What newcomers' overlaps with the kept features are at most, by slot.

    Empty where computing bounds would not pay.
    """
    n_slots = int(kept.size[1])
    if not isinstance(columns, DenseMoments) or min(n_slots, which.size) < _FEW:
        return np.empty((which.size, 0), np.float32)
    n = columns.values.shape[1]
    unit = np.empty((which.size, n), np.float32)
    standardise(columns, which, unit)
    found: NDArray[np.float32] = unit @ kept.columns.unit[:n_slots].T
    np.abs(found, out=found)
    # However n products of unit vectors are summed in single precision, the
    # error is below n units in the last place, and rounding the vectors adds a
    # few; twice that is safe, and far below any relevance that matters.
    found += np.float32((2 * n + 16) * 2.0**-24)
    return found
