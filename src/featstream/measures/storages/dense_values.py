"""Continuous columns with a value for every row."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from featstream.jit import inner, kernel
from featstream.measures.storages import moments
from featstream.measures.storages.dispatch import empty, storage_from
from featstream.measures.storages.lanes import LANES, dot, fold, sum_deviations
from featstream.parallel import ReusedMemory
from featstream.protocols import (
    FloatArray,
    IntArray,
    SavedField,
    read_only,
)

_MOST_SPARE, _SPARE_BYTES = 256, 2**22
_NO_SINGLE = read_only(np.empty((0, 0), np.float32))
_NO_DOUBLE = read_only(np.empty((0, 0)))
memory = ReusedMemory()


class DenseValues(NamedTuple):
    """Deviations of continuous columns, one row per column.

    ``total`` is their sum and ``norm`` the root of ``n·Σa² − (Σa)²``. ``unit`` are the
    centred columns, of length one, in single precision: the product of two is near
    their correlation, and cheap.

    Few newcomers need more than ``unit``, so `write_deviations` fills ``values`` when
    they are first needed: with row ``row[i]`` of ``single`` or ``double``, the values
    of the block by their precision, less ``pivot[i]``. Then the row is -1. ``span`` has
    the correlations with the variables that span the class, or no columns.
    """

    total: np.ndarray
    norm: np.ndarray
    values: np.ndarray
    unit: np.ndarray
    single: np.ndarray
    double: np.ndarray
    row: np.ndarray
    pivot: np.ndarray
    span: np.ndarray


def _scratch(n_samples: int) -> FloatArray:
    return np.zeros((1, LANES))


def room_for(n_columns: int, n_samples: int) -> DenseValues:
    """Memory for the deviations of some columns."""
    shape, row = (n_columns, n_samples), np.zeros(n_columns, np.int64)
    values, unit = (memory.empty(shape, kind) for kind in (np.float64, np.float32))
    total, norm, pivot = np.empty((3, n_columns))
    own = total, norm, values, unit, _NO_SINGLE, _NO_DOUBLE
    return DenseValues(*own, row, pivot, np.empty((n_columns, 0)))


def deviations(
    columns: NDArray[Any], which: IntArray, sums: Any, room: DenseValues | None = None
) -> DenseValues:
    """Deviations of the chosen rows of ``columns``, in ``room`` or in new memory."""
    room = room or room_for(which.size, columns.shape[1])
    room.row[:] = which
    if columns.dtype.kind != "f":
        columns = read_only(columns[which].astype(np.float64))
        room.row[:] = np.arange(which.size)
    if columns.itemsize == 4:
        found = room._replace(single=columns)
    else:
        found = room._replace(double=columns)
    _describe(columns, which, sums, found)
    return found


@kernel
def _describe(columns, which, sums, out):
    """Fill everything but the deviations."""
    n = columns.shape[1]
    for k in range(which.size):
        j, column, unit = which[k], columns[out.row[k]], out.unit[k]
        out.pivot[k], out.total[k] = sums.pivot[j], sums.total[j]
        out.norm[k] = np.sqrt(max(sums.squared_norm[j], 0.0))
        pivot, mean = out.pivot[k], out.total[k] / n
        scale = np.sqrt(np.float64(n)) / out.norm[k]
        for r in range(n):
            unit[r] = (np.float64(column[r]) - pivot - mean) * scale


@inner
def write_deviations(columns, i):
    """Write the deviations of a column if they have not been written."""
    row, pivot, values = columns.row[i], columns.pivot[i], columns.values[i]
    if row < 0:
        return
    if columns.single.size:
        for r in range(values.size):
            values[r] = np.float64(columns.single[row, r]) - pivot
    else:
        for r in range(values.size):
            values[r] = columns.double[row, r] - pivot
    columns.row[i] = -1


@kernel(allocates=True)
def sum_columns(columns, target, sums):
    """Sums of columns, one row each; `score_columns` centres the squares."""
    lanes = np.empty((4, LANES))
    n = columns.shape[1]
    for j in range(columns.shape[0]):
        column = columns[j]
        pivot = np.float64(
            moments.median_of_three(column[0], column[n // 2], column[n - 1])
        )
        for t in range(target.totals.size):
            sum_deviations(column, pivot, target.weights[t], lanes)
            sums.product[j, t] = fold(lanes[2])
        sums.pivot[j], sums.total[j] = pivot, fold(lanes[0])
        sums.squared_norm[j] = fold(lanes[1])


@inner
def _correlate(new, i, columns, slot, scratch):
    write_deviations(new, i)
    left, right = new.values[i], columns.values[slot]
    product = dot(left, right, scratch)
    covariance = left.size * product - new.total[i] * columns.total[slot]
    return covariance / (new.norm[i] * columns.norm[slot])


def _overlap(new, i, kept, slot, is_listed, scratch):
    return abs(_correlate(new, i, kept.columns, slot, scratch))


def _is_independent(new, i, kept, slot, winner, known, rule, scratch):
    columns = kept.columns
    own, given = moments.squared_relevances(new, i, columns, slot, winner)
    cross = moments.dot_spans(new.span, i, columns.span, slot)
    if moments.adds_surely(known[0], known[1], own, given, cross, rule.critical[0]):
        return False, np.nan
    r = _correlate(new, i, columns, slot, scratch)
    return moments.judge_correlation(r, own, given, cross, rule)


def _has_room(new, i, kept):
    return kept.used[0] < kept.columns.values.shape[0]


def _copy_column(new, i, kept, slot, used):
    kept.total[slot] = new.total[i]
    kept.norm[slot] = new.norm[i]
    write_deviations(new, i)
    for r in range(kept.values.shape[1]):
        kept.values[slot, r] = new.values[i, r]
    for r in range(kept.unit.shape[1]):
        kept.unit[slot, r] = new.unit[i, r]
    for k in range(kept.span.shape[1]):
        kept.span[slot, k] = new.span[i, k]
    used[0] = slot + 1


def _units(columns: DenseValues, which: IntArray) -> tuple[NDArray[np.float32], float]:
    """Unit columns, and a bound on the error of a product of two.

    In any order of summation the error of n products in single precision is below n
    units in the last place. Rounding the vectors adds a few; twice that is safe.
    """
    n = columns.values.shape[1]
    is_whole = which.size == columns.unit.shape[0]  # positions increase
    return columns.unit if is_whole else columns.unit[which], (2 * n + 16) * 2.0**-24


def _demand(columns: DenseValues, which: IntArray) -> IntArray:
    return np.zeros((2, which.size), np.int64)


def _allocate(like: DenseValues, n_slots: int, first: int, second: int) -> Any:
    own = dict.fromkeys(("total", "norm", "values", "unit", "pivot", "span"), n_slots)
    return empty(like, **own)._replace(**_written(n_slots))


def _written(n_columns: int) -> dict[str, NDArray[Any]]:
    """Fields of columns whose deviations are written."""
    row = np.full(n_columns, -1)
    return {"single": _NO_SINGLE, "double": _NO_DOUBLE, "row": row}


def _spare_slots(like: DenseValues) -> int:
    return min(_MOST_SPARE, int(_SPARE_BYTES // (12 * like.values.shape[1])))


def _restore(arrays: dict[str, Any], n: int, measure: Any) -> DenseValues:
    if not (arrays["norm"] > 0).all():
        raise ValueError("a kept column is constant")
    arrays = moments.restore_span(arrays, measure)
    total, norm, values = arrays["total"], arrays["norm"], arrays["values"]
    mean, scale = total[:, None] / n, np.sqrt(float(n)) / norm[:, None]
    unit = ((values - mean) * scale).astype(np.float32)
    pivot = np.zeros(norm.size)
    return DenseValues(unit=unit, pivot=pivot, **_written(norm.size), **arrays)


def _as_rows(columns: DenseValues, which: IntArray, n: int) -> NDArray[Any]:
    return columns.values[which]


DENSE_VALUES = storage_from(
    globals(),
    name="dense values",
    old_names=("DenseMoments",),
    columns=DenseValues,
    saved={
        "total": SavedField(np.float64),
        "norm": SavedField(np.float64),
        "values": SavedField(np.float64, ("kept", "samples")),
        "span": moments.SPAN,
    },
)
