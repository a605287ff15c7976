"""Any column becomes numbers; columns become blocks.

What every source shares: which dtypes can be used, which values are missing, how text
becomes codes, which names and sparse matrices are valid, and how columns of different
dtypes are combined without making different values equal.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import count
from numbers import Real
from typing import Any, Literal, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from featstream.errors import (
    ComplexDataError,
    DataError,
    DataTypeError,
    check_choice,
    printable,
)
from featstream.protocols import Block, Source, SparseColumns, feature_name
from featstream.sources.text_values import refuse_hidden_numbers

BLOCK_BYTES = 2**23
"""Size of a dense block: about what one core's second-level cache holds."""

MAX_COLUMNS = 2**16
"""Largest number of columns in a block."""

EXACT_IN_FLOAT = 2**53
"""Integers up to here are exact as float64."""


@dataclass(slots=True)
class Limits:
    """How much is read, held or written at a time. No data and no selection differ.

    Attributes
    ----------
    svmlight_chunk, csv_chunk : int
        Bytes of text that are parsed at a time.
    csv_held : int
        Text up to this size is held in memory, if it has at most ``csv_columns``.
    csv_block : int
        About the size of the text of a block, unless one column has more.
    csv_columns : int
        Columns parsed at a time: each takes pyarrow ten kilobytes.
    array_read, dask_block : int
        Bytes of an array that are read at a time, unless one column is longer.
    sparse_block : int
        Stored entries in a sparse block at most, unless one column has more.
    sparse_held : int
        Rows with at most this number of entries are transposed in memory.
    dense_block : int
        Bytes of a sparse block that are made dense at a time.
    entry_bytes, column_bytes : int
        Memory for an entry, and for a column, while rows become columns: 16 in a file,
        12 sorted, and several files are in memory.
    """

    svmlight_chunk: int = 8 << 20
    csv_chunk: int = 16 << 20
    csv_held: int = 64 << 20
    csv_block: int = 16 << 20
    csv_columns: int = 1024
    array_read: int = 64 << 20
    dask_block: int = 64 << 20
    sparse_block: int = 1 << 20
    sparse_held: int = 1 << 23
    dense_block: int = 16 << 20
    entry_bytes: int = 128
    column_bytes: int = 64


LIMITS = Limits()

FIELDS = "Give each of its fields as a feature of its own."
DATES = "Convert dates to numbers, for instance to days since a fixed date."

Duplicates: TypeAlias = Literal["error", "number"]
"""What to do about two features of one name."""

NamedColumn: TypeAlias = tuple[str | None, Any, bool]
"""Name, values (1-D ndarray or one sparse column), whether they are codes."""


def is_missing(value: Any) -> bool:
    """None, NaN, and the missing values of pandas, which need not be installed."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (float, np.floating)) and bool(value != value)


def not_numbers(what: str, dtype: Any, hint: str = "") -> DataTypeError:
    """The error for values of a type that cannot be used."""
    message = f"{what} has dtype {dtype}, which is neither numbers nor text. {hint}"
    return DataTypeError(message.strip())


def numeric_dtype(dtype: np.dtype[Any], what: str) -> np.dtype[Any]:
    """The dtype in which kernels can read values of ``dtype``.

    Half precision is widened to float32, extended precision rounded to float64.
    """
    if dtype.kind == "c":
        raise ComplexDataError(
            f"Complex data not supported: {what} has dtype {dtype}. "
            "Give the real and imaginary parts, or the modulus, as features."
        )
    if dtype.kind in "mM":
        raise not_numbers(what, dtype, DATES)
    if dtype.kind not in "biuf":
        hint = "Give each feature as numbers, booleans or strings."
        raise not_numbers(what, dtype, hint)
    if dtype.kind == "f" and dtype.itemsize not in (4, 8):
        return np.dtype(np.float32 if dtype.itemsize == 2 else np.float64)
    return dtype.newbyteorder("=")


def as_array(values: Any, what: str) -> NDArray[Any]:
    """An array of the same values; of objects where numpy would change them.

    For a list, numpy converts numbers beside text to text, and integers that no
    integer dtype holds to floats.
    """
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise DataTypeError(
            f"{what} is a ragged sequence: its items have different lengths. Give one "
            "value for each feature and sample."
        ) from error
    if hasattr(values, "__array__"):
        return array
    is_large = array.dtype.kind == "f" and bool((abs(array) > EXACT_IN_FLOAT).any())
    return np.asarray(values, object) if is_large or array.dtype.kind in "US" else array


def as_column(values: NDArray[Any], name: str) -> tuple[NDArray[Any], bool]:
    """Numbers for the values of one feature, and whether they are nominal codes.

    Booleans, integers and floats stay what they are; missing numbers are NaN. Text is
    coded in sorted order, missing text as -1. ``values`` is copied only if it must be.
    """
    if values.dtype.kind in "UST":
        values = values.astype(object)
    if values.dtype.kind == "O":
        return as_column_of_objects(values.tolist(), name)
    dtype = numeric_dtype(values.dtype, f"Feature {printable(name)}")
    return values.astype(dtype, copy=False), False


def as_column_of_objects(values: list[Any], name: str) -> tuple[NDArray[Any], bool]:
    """`as_column` for Python objects, all of them numbers or all of them text."""
    if not set(map(type, values)) <= {str, bytes, int, bool, type(None)}:
        values = [None if is_missing(value) else value for value in values]
    sort_of = {kind: _sort(kind) for kind in set(map(type, values)) - {type(None)}}
    what = f"Feature {printable(name)}"
    if len(set(sort_of.values())) > 1 or "other" in sort_of.values():
        _refuse_objects(values, sort_of, what)
    if set(sort_of.values()) <= {"number"}:
        return _as_numbers(values)
    refuse_hidden_numbers(values, what)
    return code_categories(values, sorted(set(values) - {None})), True


def _sort(kind: type) -> str:
    if issubclass(kind, (Real, Decimal, np.bool_)):
        return "number"
    if issubclass(kind, str):
        return "str"
    return "bytes" if issubclass(kind, bytes) else "other"


def _refuse_objects(values: list[Any], sort_of: dict[type, str], what: str) -> None:
    """Raise the error for values that are neither all numbers nor all text."""
    row_of: dict[str, int] = {}
    for row, value in enumerate(values):
        if value is not None:
            row_of.setdefault(sort_of[type(value)], row)
    kind_of = {sort: type(values[row]) for sort, row in row_of.items()}
    if "other" in row_of:
        if issubclass(kind_of["other"], (complex, np.complexfloating)):
            numeric_dtype(np.dtype(complex), what)
        raise DataTypeError(
            f"{what} has dtype object and a value of type {kind_of['other'].__name__} "
            f"at row {row_of['other']}; the argument must be a string or a number."
        )
    mixed = [f"{kind_of[s].__name__} (row {row_of[s]})" for s in sorted(row_of)]
    raise DataTypeError(
        f"{what} has dtype object and mixes {mixed[0]} with {mixed[1]}. "
        "Make all of its values numbers, or all of them text."
    )


def _as_numbers(values: list[Any]) -> tuple[NDArray[Any], bool]:
    """Convert Python numbers: integers if they fit, else floats, else codes."""
    if all(isinstance(value, (int, np.integer)) for value in values):
        column = np.array(values)
        if column.dtype.kind in "biu":
            return column, False
    present = set(values) - {None}
    try:
        is_exact = len(set(map(float, present))) == len(present)
    except OverflowError:
        is_exact = False
    if not is_exact:
        return code_categories(values, sorted(present)), True
    return np.array([np.nan if v is None else float(v) for v in values]), False


def code_categories(values: Iterable[Any], categories: Sequence[Any]) -> NDArray[Any]:
    """Positions of the values among the categories; -1 where not among them."""
    code = {category: i for i, category in enumerate(categories)}
    return np.fromiter((code.get(value, -1) for value in values), np.int32)


class Names(Sequence[str]):
    """Strings stored end to end in UTF-8, decoded one at a time; a slice is a view."""

    def __init__(
        self,
        text: NDArray[np.uint8],
        ends: NDArray[np.int64],
        span: range | None = None,
    ) -> None:
        self._text, self._ends = text, ends
        self._span = range(ends.size) if span is None else span

    def __len__(self) -> int:
        return len(self._span)

    @overload
    def __getitem__(self, i: int) -> str: ...
    @overload
    def __getitem__(self, i: slice) -> Names: ...
    def __getitem__(self, i: int | slice) -> str | Names:
        """One name, or a view of some."""
        if isinstance(i, slice):
            return Names(self._text, self._ends, self._span[i])
        j = self._span[i]
        begin, end = int(self._ends[j - 1]) if j else 0, int(self._ends[j])
        try:
            if not 0 <= begin <= end <= self._text.size:
                raise ValueError("it lies outside the text")
            return self._text[begin:end].tobytes().decode("utf-8")
        except ValueError as error:
            raise DataError(
                f"Name {j} of the store is damaged: {error}. Make the store again."
            ) from error


def check_name(name: Any, position: int | None = None) -> None:
    """Raise unless the name of a feature is text."""
    if not isinstance(name, str):
        where = "" if position is None else f" at position {position}"
        raise DataTypeError(
            f"A feature name must be a string. Got {printable(name)} of type "
            f"{type(name).__name__}{where}."
        )


def check_names(
    names: Iterable[Any], n_features: int, duplicates: Duplicates = "error"
) -> list[str]:
    """List the names, one per feature, all of them text and different.

    With ``duplicates="number"`` the second feature of a name is called ``name#2``.
    """
    check_choice(duplicates, "duplicates", ("error", "number"))
    listed = list(names)
    if len(listed) != n_features:
        raise DataError(
            f"names must have one name per feature. Got {len(listed):,} names for "
            f"{n_features:,} features."
        )
    if set(map(type, listed)) == {str} and len(set(listed)) == n_features:
        return listed
    position_of: dict[str, int] = {}
    repeated: list[int] = []
    for position, name in enumerate(listed):
        check_name(name, position)
        first = position_of.setdefault(name, position)
        if first != position and duplicates == "error":
            raise DataError(
                f"Feature name {printable(name)} already seen at position {first} "
                f"(now {position}). Names must be unique. Rename one, or open the "
                "data with duplicates='number', which makes the second one "
                f"{printable(f'{name}#2')}."
            )
        if first != position:
            repeated.append(position)
    numbers: dict[str, Iterator[int]] = defaultdict(lambda: count(2))
    for position in repeated:
        name = listed[position]
        numbered = (f"{name}#{number}" for number in numbers[name])
        listed[position] = next(new for new in numbered if new not in position_of)
    return [str(name) for name in listed]


def check_dimensions(shape: tuple[int, ...]) -> tuple[int, int]:
    """Number of samples, and of features: 0 or more. Errors as in scikit-learn."""
    if len(shape) > 2:
        raise DataError(
            f"Found array with dim {len(shape)}, while dim <= 2 is required."
        )
    if len(shape) < 2:
        raise DataError(
            f"Expected 2D array, got {len(shape)}D array instead (shape={shape}). "
            "Reshape your data either using array.reshape(-1, 1) if your data has a "
            "single feature or array.reshape(1, -1) if it contains a single sample."
        )
    if shape[0] == 0:
        raise DataError(
            f"Found array with 0 sample(s) (shape={shape}) while a minimum of 1 is "
            "required."
        )
    return shape[0], shape[1]


def check_has_features(source: Source) -> None:
    """Raise scikit-learn's message if a source is known to have no features."""
    if source.n_features == 0:
        raise DataError(
            f"Found array with 0 feature(s) (shape=({source.n_samples}, 0)) while a "
            "minimum of 1 is required."
        )


def block_width(n_samples: int, itemsize: int, block_bytes: int, least: int = 1) -> int:
    """Number of columns that fit into ``block_bytes``, but at least ``least``."""
    return min(max(block_bytes // (n_samples * itemsize), least), MAX_COLUMNS)


def canonical_csc(X: Any, what: str = "X") -> Any:
    """Any sparse matrix as CSC with rows increasing strictly; ``X`` is not changed."""
    check_dimensions(X.shape)
    dtype = numeric_dtype(X.dtype, what)
    # scipy converts without bounds checks: a bad index would corrupt memory.
    if X.format not in ("csc", "csr", "bsr", "coo"):
        try:
            X = X.tocoo()
        except ValueError as error:
            raise DataError(f"{what} is not a valid sparse matrix: {error}.") from error
    check_sparse(X, what)
    csc = X.tocsc()
    # A new object: flags that the caller's may carry are not relied upon.
    csc = sparse.csc_array((csc.data, csc.indices, csc.indptr), shape=csc.shape)
    if not csc.has_canonical_format:
        csc = csc.copy()
        csc.sum_duplicates()
    return csc if csc.dtype == dtype else csc.astype(dtype)


def as_sparse_columns(csc: Any) -> SparseColumns:
    """The columns of a canonical CSC matrix, in the types that the kernels read."""
    rows = csc.indices.astype(np.int32, copy=False)
    return SparseColumns(csc.indptr.astype(np.int64), rows, csc.data, csc.shape[0])


def check_sparse(X: Any, what: str = "X") -> None:
    """Raise unless the indices and pointers of a CSR, CSC, BSR or COO matrix fit it."""
    n_rows, n_columns = X.shape
    if X.format == "coo":
        rows, columns = X.coords
        flaw = index_flaw(rows, n_rows, "row")
        flaw = flaw or index_flaw(columns, n_columns, "column")
        if not rows.size == columns.size == X.data.size:
            flaw = "its rows, columns and values differ in number"
    else:
        height, width = X.blocksize if X.format == "bsr" else (1, 1)
        n_lines, length, axis = n_rows // height, n_columns // width, "column"
        if X.format == "csc":
            n_lines, length, axis = n_columns, n_rows, "row"
        flaw = pointer_flaw(X.indptr, n_lines, min(X.indices.size, len(X.data)))
        flaw = flaw or index_flaw(X.indices[: int(X.indptr[-1])], length, axis)
    if flaw:
        raise DataError(f"{what} is not a valid sparse matrix: {flaw}.")


def index_flaw(indices: Any, size: int, axis: str) -> str:
    """What is wrong with row or column indices; empty if nothing is."""
    if indices.dtype.kind not in "iu":
        return f"its {axis} indices have dtype {indices.dtype}, not integers"
    if indices.size and (indices.min() < 0 or indices.max() >= size):
        outside = indices[(indices < 0) | (indices >= size)][0]
        return f"{axis} index {outside} is outside [0, {size})"
    return ""


def pointer_flaw(indptr: Any, n_lines: int, n_entries: int) -> str:
    """What is wrong with the pointers of a compressed matrix; empty if nothing is."""
    if indptr.dtype.kind not in "iu":
        return f"its indptr has dtype {indptr.dtype}, not integers"
    if indptr.shape != (n_lines + 1,):
        return f"its indptr has {indptr.size:,} values, not {n_lines + 1:,}"
    if indptr[0] != 0 or (indptr[1:] < indptr[:-1]).any():
        return "its indptr must begin with 0 and never decrease"
    if indptr[-1] > n_entries:
        return f"its indptr ends at {indptr[-1]:,} but {n_entries:,} entries are stored"
    return ""


def group_columns(
    columns: Iterable[NamedColumn], start: int = 0, *, block_bytes: int = BLOCK_BYTES
) -> Iterator[Block]:
    """Combine columns into blocks.

    A block ends when it is full, between dense and sparse columns, and where a
    common dtype would make different integers equal (beyond 2**53, as floats).
    """
    held: list[NamedColumn] = []
    dtype: np.dtype[Any] = np.dtype(np.bool_)
    n_samples = None
    width = 0
    has_wide = False
    for name, values, nominal in columns:
        if n_samples is None:
            n_samples = values.shape[0]
            check_dimensions((n_samples, 1))
            width = block_width(n_samples, 8, block_bytes)
        elif values.shape[0] != n_samples:
            shown = printable(feature_name(start + len(held)) if name is None else name)
            raise DataError(
                f"Feature {shown} has {values.shape[0]} values but the features "
                f"before it have {n_samples}. Every feature needs one value per sample."
            )
        is_wide = exceeds_float(values)
        common = np.result_type(dtype, values.dtype) if held else values.dtype
        if held and (
            len(held) >= width
            or (common.kind == "f" and (has_wide or is_wide))
            or sparse.issparse(values) != sparse.issparse(held[0][1])
        ):
            yield _stack(held, dtype, start)
            start += len(held)
            held, has_wide, common = [], False, values.dtype
        dtype = common
        has_wide |= is_wide
        held.append((name, values, nominal))
    if held:
        yield _stack(held, dtype, start)


def exceeds_float(values: Any) -> bool:
    """Whether float64 might make some of these integers equal."""
    if values.dtype.kind not in "iu" or values.dtype.itemsize < 8 or not values.size:
        return False
    return bool(values.max() > EXACT_IN_FLOAT or values.min() < -EXACT_IN_FLOAT)


def _stack(held: list[NamedColumn], dtype: np.dtype[Any], start: int) -> Block:
    names = [name for name, _, _ in held if name is not None]
    nominal = np.array([is_nominal for _, _, is_nominal in held])
    columns: Any
    if sparse.issparse(held[0][1]):
        stacked = sparse.hstack([values for _, values, _ in held], "csc", dtype)
        columns = as_sparse_columns(stacked)
    else:
        columns = np.empty((held[0][1].shape[0], len(held)), dtype, order="F")
        for i, (_, values, _) in enumerate(held):
            columns[:, i] = values
    return Block(columns, start, names or None, nominal if nominal.any() else None)
