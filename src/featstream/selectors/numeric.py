"""Columns as numbers, for selectors that fit a model to them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from featstream.measures.inputs import (
    Labels,
    check_length,
    complain_of_values,
    refuse_text,
    to_kernel_dtype,
)
from featstream.protocols import Block, BoolArray, FloatArray, SparseColumns
from featstream.sources.kernels.transpose import by_column

_LARGEST = 1e150
"""Squares beyond this overflow."""

_NONE = np.empty(0, np.int64)
_REMEDY = "Fill them in or drop the feature."


def as_numeric(
    block: Block, n_samples: int, owner: str
) -> NDArray[Any] | SparseColumns:
    """The columns of a block, checked: finite numbers, one per sample."""
    check_length(block, n_samples)
    refuse_text(block, f"{owner} fits a model to numbers: encode its categories")
    columns = block.columns
    if isinstance(columns, SparseColumns):
        columns = columns.alone()
        values = to_kernel_dtype(columns.values)
        is_bad = np.flatnonzero(_is_bad(values))
        if is_bad.size:
            j = int(np.searchsorted(columns.indptr, is_bad[0], side="right")) - 1
            raise complain_of_values(block, j, _REMEDY)
        return replace(columns, values=values)
    values = by_column(to_kernel_dtype(columns))
    is_bad = np.flatnonzero(_is_bad(values).any(axis=0))
    if is_bad.size:
        raise complain_of_values(block, int(is_bad[0]), _REMEDY)
    return values


def _is_bad(values: NDArray[Any]) -> BoolArray:
    """Missing, infinite, or of a square that overflows."""
    if values.dtype.kind != "f":
        return np.zeros(values.shape, dtype=np.bool_)
    largest = min(_LARGEST, float(np.finfo(values.dtype).max))
    return np.asarray(~(np.abs(values) <= largest))


def dense_column(columns: NDArray[Any] | SparseColumns, j: int) -> FloatArray:
    """A column with all its zeros."""
    if isinstance(columns, SparseColumns):
        stored = slice(columns.indptr[j], columns.indptr[j + 1])
        column = np.zeros(columns.n_samples)
        column[columns.rows[stored]] = columns.values[stored]
        return column
    return columns[:, j].astype(np.float64)


def parts_of(columns: NDArray[Any] | SparseColumns) -> tuple[Any, ...]:
    """What kernels read: an array and nothing else, or values, ``indptr`` and rows."""
    if isinstance(columns, SparseColumns):
        return columns.values, columns.indptr, columns.rows
    return columns, _NONE, _NONE


def join_columns(features: list[tuple[Block, int]]) -> Block:
    """Columns of one or more blocks as one dense block."""
    first = features[0][0]
    columns = [dense_column(b.columns, i) for b, i in features]
    names = None if first.names is None else [b.name(i) for b, i in features]
    nominal = np.array([b.nominal is not None and b.nominal[i] for b, i in features])
    return Block(np.array(columns).T, 0, names, nominal if nominal.any() else None)


def class_indicators(labels: Labels) -> FloatArray:
    """One column for two classes, otherwise one for each, whatever their names.

    Of two classes it is the rarer one, or that of the first row; several come in the
    order of their first rows.
    """
    codes, counts = labels.codes, labels.counts
    if counts.size == 2:
        chosen = codes[0] if counts[0] == counts[1] else counts.argmin()
        return np.asarray(codes == chosen, dtype=np.float64)[:, None]
    first = np.unique(codes, return_index=True)[1]
    return np.equal.outer(codes, np.argsort(first)).astype(np.float64)
