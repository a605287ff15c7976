"""Checks of what users give: a measure, a target, features.

A measure is given by its name or as an object, or is chosen for the features. The
target becomes classes or numbers. Errors about features name the feature, the row and
the remedy.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from featstream.errors import (
    DataError,
    DataTypeError,
    FeatstreamWarning,
    ParameterError,
    printable,
    some_of,
    unknown_name,
)
from featstream.protocols import (
    Block,
    BoolArray,
    FloatArray,
    IntArray,
    Measure,
    SparseColumns,
)

MEASURES: dict[str, Any] = {}
"""Classes of measures by name, each registered by its own module."""


def register_measure(name: str, measure: Any) -> None:
    """Make a class of measures known by a name.

    It can then be given as ``measure=name``, and runs that use it can be resumed.

    Parameters
    ----------
    name : str
        Lower-case words joined by hyphens.
    measure : class
        A `featstream.protocols.Measure` that scikit-learn's ``get_params`` describes:
        its parameters are numbers, text, booleans or None.
    """
    if not isinstance(name, str) or not name.replace("-", "").isalnum():
        raise ParameterError(
            "The name of a measure must be words joined by hyphens. "
            f"Got {printable(name)}. Write 'distance-correlation'."
        )
    if not (isinstance(measure, type) and hasattr(measure, "bind")):
        raise DataTypeError(
            f"A measure is a class with a method bind(y). Got {printable(measure)}."
        )
    own = measure.__module__, measure.__name__
    for known, other in MEASURES.items():
        has_its_name = known == name or other.__name__ == own[1]
        if has_its_name and own != (other.__module__, other.__name__):
            raise ParameterError(
                f"There is a measure {known!r} already, of the class {other.__name__}. "
                f"Choose another name for {name!r}, or for its class."
            )
    MEASURES[name] = measure


def resolve_measure(measure: str | Measure) -> Measure | None:
    """The measure that a parameter means; None for ``"auto"``.

    >>> from featstream.measures import resolve_measure
    >>> resolve_measure("su")
    SymmetricalUncertainty()
    """
    if isinstance(measure, str):
        if measure == "auto":
            return None
        if measure not in MEASURES:
            raise unknown_name("measure", measure, [*MEASURES, "auto"])
        known: Measure = MEASURES[measure]()
        return known
    if not hasattr(measure, "bind") or isinstance(measure, type):
        raise DataTypeError(
            f"`measure` must be a name or a measure object. Got {measure!r}. Write "
            "measure='su', or measure=FisherZ(alpha=0.01)."
        )
    return measure


class Choice(NamedTuple):
    """A measure that ``"auto"`` chose, and the reason."""

    name: str
    reason: str
    options: dict[str, Any]
    is_guess: bool = False


def choose_measure(blocks: Sequence[Block], n_features: int) -> tuple[Any, str]:
    """A measure for data that begin with these blocks, and the reason as text."""
    choice = propose_measure(blocks, n_features)
    return MEASURES[choice.name](**choice.options), choice.reason


def propose_measure(blocks: Sequence[Block], n_features: int) -> Choice:
    """The measure that ``"auto"`` chooses for data that begin with these blocks.

    Text, categories, booleans and whole numbers of at most ten distinct values are
    discrete; other numbers are continuous. If there is text, or no continuous feature,
    the measure is symmetrical uncertainty, and continuous features are binned.
    Otherwise it is Fisher's Z. Columns of text that identify rows do not count. Only
    the first ``n_features`` are looked at.
    """
    parts: list[Block] = []
    n_seen = 0
    for block in blocks:
        parts.append(block.part(0, min(block.n_columns, n_features - n_seen)))
        n_seen += parts[-1].n_columns
    text = next(filter(None, map(_first_text, parts)), None)
    number, reason = next(filter(None, map(_first_continuous, parts)), (None, ""))
    if text is not None:
        reason = f"feature {printable(text)} is text or categorical"
        if number is not None:
            reason += f", and numbers such as {printable(number)} are cut into bins"
        options = {"max_categories": FEW_VALUES}
        return Choice("su", reason, options, is_guess=number is not None)
    if number is not None:
        return Choice("fisher-z", reason, {})
    values = f"more than {FEW_VALUES} distinct values"
    return Choice("su", f"none of the first {n_seen} features has {values}", {})


def _first_text(block: Block) -> str | None:
    """The first column of text or categories that is no identifier."""
    is_identifier = are_identifiers(block)
    return next((block.name(i) for i in _nominal(block) if not is_identifier[i]), None)


def _first_continuous(block: Block) -> tuple[str, str] | None:
    """The first continuous column, and the reason."""
    for i in range(block.n_columns):
        if block.nominal is not None and block.nominal[i]:
            continue
        name, values = block.name(i), _values_of(block, i)
        if values.dtype.kind == "f" and np.any(values != np.floor(values)):
            fact = "values that are not whole numbers"
            return name, f"feature {printable(name)} has {fact}"
        n_distinct = np.unique(values).size
        if n_distinct > FEW_VALUES:
            return name, f"feature {printable(name)} has {n_distinct} distinct values"
    return None


def _nominal(block: Block) -> list[int]:
    """The columns of text or categories."""
    return [] if block.nominal is None else np.flatnonzero(block.nominal).tolist()


def _stored(block: Block, i: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """The rows and values that a column stores: all of them if it is dense."""
    columns = block.columns
    if isinstance(columns, SparseColumns):
        start, stop = columns.indptr[i], columns.indptr[i + 1]
        return columns.rows[start:stop], columns.values[start:stop]
    return np.arange(block.n_samples), np.asarray(columns[:, i])


def _values_of(block: Block, i: int) -> NDArray[Any]:
    """All distinct values of a column, some of them more than once."""
    stored = _stored(block, i)[1]
    return stored if stored.size == block.n_samples else np.append(stored, 0)


_MANY_CLASSES = 20
_FEW_ROWS = 5
"""More classes than this, or fewer rows per class than that, may be a quantity."""

_COUNTS = 7
"""This many whole numbers may be counts."""


@dataclass(frozen=True, slots=True)
class Labels:
    """A nominal target: its sorted labels, the code of each sample, and class sizes."""

    classes: NDArray[Any]
    codes: NDArray[np.int32]
    counts: IntArray


def as_labels(y: Any) -> Labels:
    """Check a nominal target of any label type."""
    values = as_vector(y)
    is_whole = values == np.floor(values) if values.dtype.kind == "f" else np.True_
    if not is_whole.all():
        row = int(is_whole.argmin())
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


def check_classes(labels: Labels, remedy: str, *, asks: bool = False) -> None:
    """Warn of a target that looks like a quantity, or has few rows per class.

    If ``asks``, whole numbers that are many, or of which some are rare, are refused:
    whether they are classes has to be said.
    """
    n_classes, n_rows = labels.classes.size, labels.codes.size
    are_numbers = labels.classes.dtype.kind in "fiu"
    is_count = are_numbers and n_classes >= _COUNTS
    is_many = are_numbers and n_classes > _MANY_CLASSES
    numbers = ""
    if are_numbers:
        low, high = labels.classes[[0, -1]].tolist()
        numbers = f"y has {n_classes:,} different whole numbers, {low:g} to {high:g}"
    if asks and (is_many or (is_count and labels.counts.min() < _FEW_ROWS)):
        raise DataError(
            f"{numbers}, and the rarest has {labels.counts.min()} rows: are they "
            "classes or a quantity? For a quantity use FisherZ(target='numeric'), for "
            "classes FisherZ(target='nominal') or measure='su'."
        )
    is_sparse = n_classes > 2 and n_rows < _FEW_ROWS * n_classes
    if not (is_count or is_many or is_sparse):
        return
    advice = "Merge rare classes."
    if are_numbers:
        advice = "If y is a quantity, bin it"
        advice += f", or use {remedy}." if remedy else "."
    if is_many or is_sparse:
        fact = (
            f"y has {n_classes:,} classes with {n_rows / n_classes:.2g} rows each on "
            "average: their scores say little."
        )
    else:
        fact = f"{numbers}, which are taken as classes, not as counts."
    warnings.warn(f"{fact} {advice}", FeatstreamWarning, stacklevel=3)


def as_numbers(y: Any) -> FloatArray:
    """Check a numeric target."""
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
    """Check a target of any kind: one-dimensional, nothing missing or infinite."""
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
        from sklearn.exceptions import DataConversionWarning

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
    if values.size < 2:
        state = "has only 1 sample" if values.size else "is empty"
        raise DataError(f"y {state}. Pass one label per sample, of at least two.")
    if values.dtype.kind in "cmMV":
        raise DataTypeError(
            f"y has dtype {values.dtype}. Give labels as numbers, text or booleans."
        )
    is_missing = _find_missing(values)
    n_missing = int(is_missing.sum())
    what = f"{n_missing} missing label{'s' * (n_missing > 1)} (NaN)"
    if not n_missing and values.dtype.kind == "f":
        what, is_missing = "infinite labels (inf)", np.isinf(values)
    if is_missing.any():
        row = int(is_missing.argmax())
        raise DataError(f"y has {what}, the first at row {row}. Drop those samples.")
    return _as_plain(values) if values.dtype.kind == "O" else values


def _as_array(y: Any) -> NDArray[Any]:
    """The labels as an array; numpy would turn numbers beside text into text."""
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
        return np.array([v is None or str(v) in ("<NA>", "nan", "NaT") for v in values])
    return np.zeros(values.shape, dtype=bool)


def _as_plain(values: NDArray[Any]) -> NDArray[Any]:
    """Objects as an array of numbers, booleans or text, if they are all of one kind."""
    listed = values.tolist()
    if all(isinstance(v, str) for v in listed):
        return np.array(listed, dtype=np.str_)
    if all(isinstance(v, bool | int | float | np.number | np.bool_) for v in listed):
        return np.array(listed)
    return values


FEW_VALUES = 10
"""A column of at most this number of distinct values is discrete."""

_KERNEL_DTYPES = frozenset(np.dtype(t).str for t in ("u1", "i8", "f4", "f8"))
_EXACT_IN_FLOAT = 2**53
"""Integers up to this one are exact as float64."""


def check_length(block: Block, n_samples: int) -> None:
    """Refuse columns that do not have one value per sample."""
    if block.n_samples != n_samples:
        raise DataError(
            f"Feature {printable(block.name(0))} has {block.n_samples} values but the "
            f"target has {n_samples}. Every feature needs one value per sample, in "
            "the order given to start(y)."
        )


def refuse_text(block: Block, need: str) -> None:
    """Refuse text and categories, whose codes have no meaning as numbers."""
    for i in _nominal(block):
        name = printable(block.name(i))
        raise DataTypeError(f"Feature {name} is text or categorical, and {need}.")


def are_identifiers(block: Block) -> BoolArray:
    """Which columns of text or categories identify rows.

    They have more than ten categories, and fewer than two rows per category on average
    among the rows that are not missing. Most categories then have a single row, from
    which nothing can be learned about other rows, but information scores are high by
    construction.
    """
    found = np.zeros(block.n_columns, np.bool_)
    for i in _nominal(block):
        codes = _values_of(block, i)
        n_known = block.n_samples - np.count_nonzero(codes < 0)
        n_categories = np.unique(codes[codes >= 0]).size
        found[i] = n_categories > max(FEW_VALUES, n_known / 2)
    return found


class LeftOut:
    """The identifiers that a measure left out of a stream, by arrival."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self._has_warned = False

    def warn(self) -> None:
        """Name them, once."""
        if self._has_warned:
            return
        self._has_warned = True
        names = [printable(name) for _, name in sorted(self.names.items())]
        shown = f"{some_of(names, 5)} {'has' if len(names) == 1 else 'have'}"
        warnings.warn(
            f"Left out, with relevance 0: {shown} about one category per row, "
            "like a name or an identifier. To score such columns pass a measure with "
            "identifiers='keep', such as SymmetricalUncertainty(identifiers='keep').",
            FeatstreamWarning,
            stacklevel=4,
        )

    def strip(self, block: Block) -> Block:
        """The block with a constant in place of each identifier."""
        found = are_identifiers(block)
        if block.nominal is None or not found.any():
            return block
        for i in np.flatnonzero(found).tolist():
            self.names[block.start + i] = block.name(i)
        return without_values(block, found)


def without_values(block: Block, which: BoolArray) -> Block:
    """The block with a constant in place of some columns."""
    columns = block.columns
    if isinstance(columns, SparseColumns):
        columns = columns.alone()
        is_gone = np.repeat(which, np.diff(columns.indptr))
        columns = replace(columns, values=np.where(is_gone, 0, columns.values))
    else:
        columns = np.where(which, 0, columns)
    nominal = None if block.nominal is None else block.nominal & ~which
    return replace(block, columns=columns, nominal=nominal)


def to_kernel_dtype(values: NDArray[Any]) -> NDArray[Any]:
    """The same numbers in one of the dtypes that the kernels are compiled for."""
    dtype = values.dtype
    if dtype.str in _KERNEL_DTYPES:
        return values
    if dtype == np.bool_ or (dtype == np.int8 and values.min(initial=0) >= 0):
        return values.view(np.uint8)
    return values.astype(np.float32 if dtype.itemsize <= 2 else np.float64, order="K")


def keep_apart(values: NDArray[Any]) -> NDArray[Any]:
    """Labels that stay different when the kernels read them as float64.

    If there are integers beyond 2**53, labels are numbered, in each column (dense) or
    among those stored (sparse); zero stays zero.
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
    name, (rows, values) = printable(block.name(i)), _stored(block, i)
    values = np.asarray(values, np.float64)
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
