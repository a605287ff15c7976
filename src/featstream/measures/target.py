"""The target as the measures need it: classes, or numbers."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import DataConversionWarning

from featstream.errors import (
    DataError,
    DataTypeError,
    FeatstreamWarning,
    printable,
)
from featstream.protocols import FloatArray, IntArray

_MANY_CLASSES = 20
_FEW_ROWS = 5
"""Classes that are whole numbers are perhaps a quantity if there are more of them
than this, or if they have fewer rows on average than that."""


@dataclass(frozen=True, slots=True)
class Labels:
    """A nominal target.

    Attributes
    ----------
    classes : ndarray
        The distinct labels, sorted.
    codes : ndarray of int32
        Index into ``classes``, for each sample.
    counts : ndarray of int64
        How many samples each class has.
    """

    classes: NDArray[Any]
    codes: NDArray[np.int32]
    counts: IntArray


def as_labels(y: Any) -> Labels:
    """Check a nominal target of any label type.

    >>> as_labels(["spam", "ham", "spam"]).codes
    array([1, 0, 1], dtype=int32)
    """
    values = as_vector(y)
    if values.dtype.kind == "f" and not np.all(values == np.floor(values)):
        row = int((values != np.floor(values)).argmax())
        raise DataError(
            f"y looks continuous: {values[row]} at row {row} is no class label. "
            "Unknown label type: continuous. Bin it, or use FisherZ(target='numeric')."
        )
    try:
        classes, codes = np.unique(values, return_inverse=True)
    except TypeError:
        kinds = sorted({type(v).__name__ for v in values.tolist()})
        raise DataTypeError(
            f"y mixes labels of the types {', '.join(kinds)}, which have no order. "
            "Give all labels one type."
        ) from None
    if classes.size < 2:
        raise DataError(
            f"y has a single class ({printable(classes.tolist()[0])}); at least two "
            "are needed to tell one from another. Check the labels."
        )
    counts = np.bincount(codes).astype(np.int64)
    return Labels(classes, codes.astype(np.int32), counts)


def warn_of_many_classes(labels: Labels, remedy: str) -> None:
    """Say that a target looks like a quantity, and how it is given as one."""
    n_classes, n_rows = labels.classes.size, labels.codes.size
    are_numbers = labels.classes.dtype.kind in "fiu"
    is_many = are_numbers and n_classes > _MANY_CLASSES
    if not is_many and (n_classes == 2 or n_rows >= _FEW_ROWS * n_classes):
        return
    advice = "Merge rare classes."
    if are_numbers:
        advice = "If y is a quantity, bin it"
        advice += f", or use {remedy}." if remedy else "."
    warnings.warn(
        f"y has {n_classes:,} classes with {n_rows / n_classes:.2g} rows each on "
        f"average: their scores say little. {advice}",
        FeatstreamWarning,
        stacklevel=3,
    )


def as_numbers(y: Any) -> FloatArray:
    """Check a numeric target.

    >>> as_numbers([1, 2, 4])
    array([1., 2., 4.])
    """
    values = as_vector(y)
    if values.dtype.kind not in "fiub":
        raise DataTypeError(
            f"y has the label {printable(values.tolist()[0])}, which is not a number. "
            "Use FisherZ(target='nominal') for labels."
        )
    numbers = values.astype(np.float64)
    if np.all(numbers == numbers[0]):
        raise DataError(
            f"y has a single value ({numbers[0]:g}); nothing correlates with a "
            "constant, at least two values are needed. Check the target."
        )
    return numbers


def as_vector(y: Any) -> NDArray[Any]:
    """One-dimensional, without missing or infinite values, not empty."""
    if y is None:
        raise DataError(
            "This selector requires y to be passed, but the target y is None. "
            "Pass one label per sample."
        )
    if hasattr(y, "to_numpy") and not hasattr(y, "to_pylist"):  # pyarrow may refuse
        values = np.asarray(y.to_numpy())
    else:
        values = _as_array(y.toarray() if hasattr(y, "toarray") else y)
    if values.ndim == 2 and values.shape[1] == 1:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected. Pass "
            "y.ravel() to silence this.",
            DataConversionWarning,
            stacklevel=4,
        )
        values = values.ravel()
    if values.ndim != 1:
        raise DataError(
            f"y must be one-dimensional, got shape {values.shape}. y should be a 1d "
            "array with one label per sample."
        )
    if values.size == 0:
        raise DataError("y is empty. Pass one label per sample.")
    if values.size == 1:
        raise DataError("y has only 1 sample. Pass the labels of at least two.")
    if values.dtype.kind in "cmMV":
        raise DataTypeError(
            f"y has dtype {values.dtype}. Give labels as numbers, text or booleans."
        )
    is_missing = _find_missing(values)
    if is_missing.any():
        n_missing = int(is_missing.sum())
        raise DataError(
            f"y has {n_missing} missing label{'s' * (n_missing > 1)} (NaN), the first "
            f"at row {int(is_missing.argmax())}. Drop those samples."
        )
    if values.dtype.kind == "f" and np.isinf(values).any():
        row = int(np.isinf(values).argmax())
        raise DataError(
            f"y has infinite labels (inf), the first at row {row}. Drop those samples."
        )
    if values.dtype.kind == "O":
        values = _as_plain(values)
    return values


def _as_array(y: Any) -> NDArray[Any]:
    """An array of the labels as they are: of a list numpy makes text of numbers."""
    try:
        values = np.asarray(y)
    except ValueError as error:
        raise DataTypeError(
            "y is a ragged sequence: its items have different lengths. Pass one label "
            "per sample."
        ) from error
    if values.dtype.kind in "US" and isinstance(y, list | tuple):
        return np.asarray(y, object)
    return values


def _find_missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    if values.dtype.kind == "f":
        return np.asarray(np.isnan(values))
    if values.dtype.kind == "O":
        # pandas.NA is not equal to itself either, and refuses to be a truth value.
        return np.array(
            [
                v is None or v is not v or str(v) in ("<NA>", "nan", "NaT")
                for v in values
            ]
        )
    return np.zeros(values.shape, dtype=bool)


def _as_plain(values: NDArray[Any]) -> NDArray[Any]:
    """Objects as an array of numbers, booleans or text, if they are all of one kind."""
    listed = values.tolist()
    if all(isinstance(v, str) for v in listed):
        return np.array(listed, dtype=np.str_)
    if all(isinstance(v, bool | int | float | np.number | np.bool_) for v in listed):
        return np.array(listed)
    return values
