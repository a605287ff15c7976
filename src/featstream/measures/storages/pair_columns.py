"""Columns of any kind of numbers, compared by a function of two of them.

For measures that bring no storage of their own: the scan runs as plain Python, and
calls the measure's ``pair(a, b)`` for each comparison. That function may be compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from featstream.measures.storages.dispatch import storage_from
from featstream.protocols import FloatArray, IntArray, SavedField


class PairColumns(NamedTuple):
    """Columns as rows of ``values``, and the function that compares two.

    Examples
    --------
    >>> columns = PairColumns(np.eye(3), lambda a, b: abs(float(a @ b)))
    >>> columns.pair(columns.values[0], columns.values[1])
    0.0
    """

    values: FloatArray
    pair: Callable[[FloatArray, FloatArray], float]


def _overlap(new, i, kept, slot, is_listed, scratch):
    return new.pair(new.values[i], kept.columns.values[slot])


def _has_room(new, i, kept):
    return True


def _copy_column(new, i, kept, slot, used):
    kept.values[slot] = new.values[i]


def _demand(columns: PairColumns, which: IntArray) -> IntArray:
    return np.zeros((2, which.size), np.int64)


def _allocate(like: PairColumns, n_slots: int, first: int, second: int) -> PairColumns:
    return like._replace(values=np.zeros((n_slots, like.values.shape[1])))


def _restore(arrays: dict[str, Any], n: int, measure: Any) -> PairColumns:
    return PairColumns(arrays["values"], measure.pair)


PAIR_COLUMNS = storage_from(
    globals(),
    name="pair columns",
    columns=PairColumns,
    scratch=lambda n_samples: None,
    saved={"values": SavedField(np.float64, ("kept", "samples"))},
    is_compiled=False,
)
