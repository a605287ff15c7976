"""Complaints about a block that name the feature, the row and the remedy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from featstream.errors import DataError, DataTypeError, printable
from featstream.protocols import Block, BoolArray, SparseColumns

FEW_VALUES = 10
"""A column of at most this many distinct values is discrete whatever the rows."""

_KERNEL_DTYPES = frozenset(np.dtype(t).str for t in ("u1", "i8", "f4", "f8"))
_EXACT_IN_FLOAT = 2**53
"""Up to here every integer is a float64 of its own."""


def check_length(block: Block, n_samples: int) -> None:
    """Every column needs one value per sample."""
    if block.n_samples != n_samples:
        raise DataError(
            f"Feature {printable(block.name(0))} has {block.n_samples} values but the "
            f"target has {n_samples}. Every feature needs one value per sample, in "
            "the order given to start(y)."
        )


def refuse_text(block: Block, measure: str) -> None:
    """Codes of categories have no meaning as numbers."""
    if block.nominal is not None and block.nominal.any():
        name = printable(block.name(int(block.nominal.argmax())))
        raise DataTypeError(
            f"Feature {name} is text or categorical, and {measure} needs a number: "
            "encode it or use measure='su'."
        )


def are_identifiers(block: Block) -> BoolArray | None:
    """Which columns of text or categories identify rows; None if there are none.

    A column does if it has more than ten categories, and fewer than two rows per
    category on average among the rows that are not missing. Most categories then
    have a single row, from which nothing can be learned about any other row, while
    the entropy of the column is close to its maximum: information scores would be
    high by construction.
    """
    if block.nominal is None or not block.nominal.any():
        return None
    found = np.zeros(block.n_columns, np.bool_)
    for i in np.flatnonzero(block.nominal):
        codes = column_values(block, int(i))
        codes = codes[codes >= 0]
        if codes.size > FEW_VALUES and codes.max() >= FEW_VALUES:
            n_categories = np.unique(codes).size
            found[i] = n_categories > max(FEW_VALUES, codes.size / 2)
    return found if found.any() else None


def column_values(block: Block, i: int) -> NDArray[Any]:
    """All values of a column, the zeros of a sparse one in front."""
    if isinstance(block.columns, SparseColumns):
        start, stop = block.columns.indptr[i], block.columns.indptr[i + 1]
        stored = block.columns.values[start:stop]
        zeros = np.zeros(block.n_samples - stored.size, stored.dtype)
        return np.concatenate([zeros, stored])
    return np.asarray(block.columns[:, i])


class LeftOut:
    """The identifiers that a measure left out of a stream, by arrival."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}

    def strip(self, block: Block) -> Block:
        """The block with a constant in place of each identifier."""
        found = are_identifiers(block)
        if found is None:
            return block
        assert block.nominal is not None
        for i in np.flatnonzero(found).tolist():
            self.names[block.start + i] = block.name(i)
        columns = block.columns
        if isinstance(columns, SparseColumns):
            is_gone = np.zeros(columns.values.size, np.bool_)
            for i in np.flatnonzero(found).tolist():
                is_gone[columns.indptr[i] : columns.indptr[i + 1]] = True
            columns = replace(columns, values=np.where(is_gone, 0, columns.values))
        else:
            columns = columns.copy(order="K")
            columns[:, found] = 0
        nominal = block.nominal & ~found
        return replace(
            block, columns=columns, nominal=nominal if nominal.any() else None
        )


def to_kernel_dtype(values: NDArray[Any], *, are_labels: bool = False) -> NDArray[Any]:
    """The same numbers in one of the few dtypes that the kernels are compiled for.

    Of labels only their being different matters, and that zero stays zero.
    """
    dtype = values.dtype
    if dtype.str in _KERNEL_DTYPES:
        return values
    if dtype == np.bool_ or (are_labels and dtype == np.int8):
        return values.view(np.uint8)
    return values.astype(np.float32 if dtype.itemsize <= 2 else np.float64, order="K")


def keep_apart(values: NDArray[Any]) -> NDArray[Any]:
    """Labels that stay different when the kernels read them as float64.

    Integers beyond 2**53 are numbered, in each column (dense) or among those
    stored (sparse); zero stays zero.

    >>> keep_apart(np.array([[2**60, 0], [2**60 + 1, 3]]))
    array([[1, 0],
           [2, 2]])
    """
    if values.dtype not in (np.int64, np.uint64) or not values.size:
        return values
    if values.max() <= _EXACT_IN_FLOAT and values.min() >= -_EXACT_IN_FLOAT:
        return values
    columns = values.T if values.ndim == 2 else [values]
    numbered = [
        np.where(column == 0, 0, 1 + np.unique(column, return_inverse=True)[1])
        for column in columns
    ]
    return np.column_stack(numbered) if values.ndim == 2 else numbered[0]


def complain_of_values(block: Block, i: int, remedy: str) -> DataError:
    """Error for a column with missing or infinite values."""
    name = printable(block.name(i))
    if isinstance(block.columns, SparseColumns):
        start, stop = block.columns.indptr[i], block.columns.indptr[i + 1]
        rows = block.columns.rows[start:stop]
        values = np.asarray(block.columns.values[start:stop], dtype=np.float64)
    else:
        rows = np.arange(block.n_samples, dtype=np.int32)
        values = np.asarray(block.columns[:, i], dtype=np.float64)
    if block.nominal is not None and block.nominal[i]:
        values = np.where(values < 0, np.nan, values)
    infinite, missing = rows[np.isinf(values)], rows[np.isnan(values)]
    if infinite.size:
        return DataError(
            f"Feature {name} has infinite values (inf), the first at row "
            f"{infinite[0]}. Replace them or drop the feature."
        )
    if missing.size:
        return DataError(
            f"Feature {name} has {missing.size} missing value"
            f"{'s' * (missing.size > 1)} (NaN), the first at row {missing[0]}. {remedy}"
        )
    largest = np.abs(values).max()
    size, fault = ("large", "overflow") if largest > 1 else ("small", "vanish")
    return DataError(
        f"Feature {name} has values as {size} as {largest:g}, whose squares {fault}. "
        "Rescale it."
    )
