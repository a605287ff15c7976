"""Sources over arrays, sparse matrices, data frames and iterators.

narwhals recognises data frames, so that neither pandas nor polars is imported here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, TypeAlias

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from featstream.errors import DataError, DataTypeError, printable
from featstream.protocols import Block, IntArray, SparseColumns, feature_name
from featstream.sources.combined import index_names
from featstream.sources.kernels.transpose import (
    CACHE_LINE,
    by_column,
    has_whole_rows,
    is_by_row,
)
from featstream.sources.sentinels import Sentinels
from featstream.sources.text_values import refuse_hidden_numbers
from featstream.sources.values import (
    BLOCK_BYTES,
    DATES,
    FIELDS,
    LIMITS,
    MAX_COLUMNS,
    NamedColumn,
    as_array,
    as_column,
    as_column_of_objects,
    as_sparse_columns,
    block_width,
    canonical_csc,
    check_dimensions,
    check_name,
    check_names,
    code_categories,
    group_columns,
    not_numbers,
    numeric_dtype,
)

MAX_FRAME_COLUMNS = 1024

_PLAIN = "?bBhilqfd"
"""Types of values that kernels take without conversion."""

_EXACT_IN_FLOAT = {
    *(nw.Boolean, nw.Int8, nw.Int16, nw.Int32, nw.UInt8, nw.UInt16, nw.UInt32),
    *(nw.Float32, nw.Float64),
}
"""Types of columns whose values are exact as float64."""

_TEXT = {nw.Categorical, nw.Enum, nw.String}
"""Types of columns that are words, as far as the type tells."""

Positions: TypeAlias = "range | IntArray"


def as_index(positions: Positions) -> slice | IntArray:
    """The positions as a slice, which makes no copy, if they are a range."""
    if isinstance(positions, range):
        return slice(positions.start, positions.stop)
    return positions


class SizedSource(ABC):
    """A source whose shape is known; ``about`` is shown in its ``repr``.

    Attributes
    ----------
    n_samples, n_features : int
        The shape.
    names, sample_names : sequence of str or None
        The names of the features and of the samples, where they are known.
    """

    names: Sequence[str] | None = None
    sample_names: Sequence[str] | None = None
    text_columns: Sequence[int] | None = None  # see `protocols.text_columns_of`
    sample_column: str | None = None  # the feature that has them, if one does

    def __init__(
        self,
        shape: tuple[int, ...],
        names: Iterable[str] | None = None,
        *,
        about: object,
    ) -> None:
        if len(shape) != 2 or shape[0] == 0:
            check_dimensions(shape)  # raises
        self.n_samples, self.n_features = shape
        if names is not None:
            self.names = check_names(names, self.n_features)
        self._about = about

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.n_samples:,} samples × {self.n_features:,} "
            f"features, {self._about})"
        )

    @abstractmethod
    def blocks(self, start: int = 0) -> Iterator[Block]:
        """Yield the columns from position ``start`` on."""

    def _block(
        self,
        columns: NDArray[Any] | SparseColumns,
        start: int,
        chosen: Positions | None = None,
        nominal: NDArray[np.bool_] | None = None,
    ) -> Block:
        """Columns from ``start`` on, or those that were chosen, with their names."""
        names = self.names
        if names is not None and isinstance(chosen, np.ndarray):
            names = [names[i] for i in chosen]
        elif names is not None:
            names = names[start : start + columns.shape[1]]
        return Block(columns, start, names, nominal)


class AnyOrderSource(SizedSource):
    """A source whose columns can be read in any order."""

    def blocks(self, start: int = 0) -> Iterator[Block]:
        """Yield the columns from position ``start`` on."""
        return self._blocks(range(self.n_features), start)

    def blocks_at(self, positions: IntArray, start: int = 0) -> Iterator[Block]:
        """Yield the columns at these positions, in this order, from ``start`` on."""
        return self._blocks(positions, start)

    @abstractmethod
    def _blocks(self, positions: Positions, start: int) -> Iterator[Block]:
        """Yield the columns at these positions, from the one at ``start`` on."""


def moved(blocks: Iterable[Block], by: int) -> Iterator[Block]:
    """The blocks with ``by`` added to their positions."""
    for block in blocks:
        yield replace(block, start=by + block.start)


class ArraySource(AnyOrderSource):
    """The columns of a two-dimensional array.

    Blocks of a column-major array are views; other arrays are copied block by block.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Of any boolean, integer or floating dtype, byte order and strides;
        `numpy.memmap` included. float16 is read as float32 and extended precision
        as float64. Arrays of strings or objects are coded column by column:
        numbers as numbers, text as nominal codes.
    names : iterable of str, default=None
        One name per feature.
    block_bytes : int, default=2**23
        Size of a block.

    Examples
    --------
    >>> import numpy as np
    >>> from featstream.sources import ArraySource
    >>> source = ArraySource(np.array([[1, 2, 3], [4, 5, 6]]), names=["a", "b", "c"])
    >>> [(block.start, block.names) for block in source.blocks(start=1)]
    [(1, ['b', 'c'])]
    """

    def __init__(
        self,
        X: NDArray[Any],
        names: Iterable[str] | None = None,
        *,
        block_bytes: int = BLOCK_BYTES,
    ) -> None:
        if isinstance(X, np.ma.MaskedArray):
            raise DataTypeError(
                "X is a masked array, whose mask would be lost. Give missing values "
                "as NaN: X.astype(float).filled(np.nan)."
            )
        self._array = np.asarray(X)
        super().__init__(self._array.shape, names, about=self._array.dtype)
        self.block_bytes = block_bytes
        if self._array.dtype.kind not in "OUST":
            self._dtype = numeric_dtype(self._array.dtype, "X")
            self.text_columns = ()

    def _blocks(self, positions: Positions, start: int) -> Iterator[Block]:
        if self._array.dtype.kind in "OUST":
            coded = map(self._coded_column, positions[start:])
            yield from group_columns(coded, start, block_bytes=self.block_bytes)
            return
        # A row-major array is read by whole cache lines, however tall it is.
        itemsize, is_all = self._array.itemsize, isinstance(positions, range)
        by_line = is_all and is_by_row(self._array)
        least = max(CACHE_LINE // itemsize, 1) if by_line else 1
        width = block_width(self.n_samples, itemsize, self.block_bytes, least)
        for first in range(start, len(positions), width):
            chosen = positions[first : first + width]
            columns = self._array[:, as_index(chosen)]
            if not has_whole_rows(columns) or columns.dtype != self._dtype:
                columns = by_column(columns).astype(self._dtype, order="F", copy=False)
            yield self._block(columns, first, chosen)

    def _coded_column(self, i: int) -> NamedColumn:
        name = None if self.names is None else self.names[i]
        return name, *as_column(self._array[:, i], name or feature_name(i))


class SparseSource(AnyOrderSource):
    """The columns of a sparse matrix, which is never made dense.

    Parameters
    ----------
    X : sparse matrix or array of shape (n_samples, n_features)
        In any format of scipy.sparse; blocks of CSC are views, other formats are
        converted to CSC once. Explicit zeros stay stored.
    names : iterable of str, default=None
        One name per feature.
    block_columns, block_entries : int, default=2**16, 2**20
        Largest number of columns, and of stored entries, in a block.
    is_checked : bool, default=False
        Whether ``X`` is known to be CSC of numbers, with rows that increase strictly in
        every column: a parser made it so.

    Examples
    --------
    >>> from scipy import sparse
    >>> from featstream.sources import SparseSource
    >>> source = SparseSource(sparse.csr_array([[0, 1, 0], [2, 0, 3]]))
    >>> [block.columns.rows for block in source.blocks()]
    [array([1, 0, 1], dtype=int32)]
    """

    def __init__(
        self,
        X: Any,
        names: Iterable[str] | None = None,
        *,
        block_columns: int = MAX_COLUMNS,
        block_entries: int = LIMITS.sparse_block,
        is_checked: bool = False,
    ) -> None:
        self._csc = X if is_checked else canonical_csc(X)
        self.text_columns = ()
        about = f"{self._csc.nnz:,} stored {self._csc.dtype}"
        super().__init__(self._csc.shape, names, about=about)
        if self.n_samples > np.iinfo(np.int32).max:
            raise DataError(
                f"X has {self.n_samples:,} rows; a sparse source holds at most 2**31-1."
            )
        self.block_columns, self.block_entries = block_columns, block_entries

    def _blocks(self, positions: Positions, start: int) -> Iterator[Block]:
        csc, indptr = self._csc, self._csc.indptr
        if not isinstance(positions, range):
            sizes = np.diff(indptr)[positions]
            indptr = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        while start < len(positions):
            stop = sparse_stop(indptr, start, self.block_columns, self.block_entries)
            chosen = positions[start:stop]
            if isinstance(chosen, range):
                first, last = indptr[[start, stop]].tolist()
                pointers = indptr[start : stop + 1].astype(np.int64) - first
                rows = csc.indices[first:last].astype(np.int32, copy=False)
                values = csc.data[first:last]
                columns = SparseColumns(pointers, rows, values, self.n_samples)
            else:
                columns = as_sparse_columns(csc[:, chosen])
            yield self._block(columns, start, chosen)
            start = stop


def sparse_stop(indptr: NDArray[Any], start: int, columns: int, entries: int) -> int:
    """Where a sparse block that begins at ``start`` ends: it is full, or one column."""
    pointers = indptr[start : start + columns + 1]
    most = int(pointers[0]) + entries
    return start + max(int(np.searchsorted(pointers, most, "right")) - 1, 1)


def is_frame(X: Any) -> bool:
    """Whether `FrameSource` takes ``X``."""
    return bool(nw.dependencies.is_into_dataframe(X) or is_lazy_frame(X))


def is_lazy_frame(X: Any) -> bool:
    """Whether it is a frame of polars or Dask that is yet to be computed."""
    of_polars = nw.dependencies.is_polars_lazyframe(X)
    return bool(of_polars or nw.dependencies.is_dask_dataframe(X))


class FramedSource(AnyOrderSource):
    """Columns that are read as frames, some at a time."""

    block_bytes: int
    _sentinels: Sentinels | None = None

    @abstractmethod
    def _part(self, chosen: Positions) -> Any:
        """Some columns, as a frame of narwhals."""

    def _blocks(self, positions: Positions, start: int) -> Iterator[Block]:
        width = min(block_width(self.n_samples, 8, self.block_bytes), MAX_FRAME_COLUMNS)
        self._sentinels = self._sentinels or Sentinels()
        for first in range(start, len(positions), width):
            for block in self._read_blocks(positions[first : first + width], first):
                self._sentinels.look_at(block)
                yield block
        self._sentinels.warn()

    def _read_blocks(self, chosen: Positions, first: int) -> Iterator[Block]:
        part = self._part(chosen)
        columns = plain_numbers(part)
        if columns is not None:
            yield self._block(columns, first, chosen)
        else:
            coded = map(self._coded_column, chosen, part.iter_columns())
            yield from group_columns(coded, first, block_bytes=self.block_bytes)

    def _coded_column(self, i: int, series: Any) -> NamedColumn:
        name = None if self.names is None else self.names[i]
        return name, *_coded(series, feature_name(i) if name is None else name)


class FrameSource(FramedSource):
    """The columns of a data frame.

    Parameters
    ----------
    frame : pandas.DataFrame, polars.DataFrame, polars.LazyFrame or pyarrow.Table
        Or any other eager frame that narwhals knows, or one of Dask. A lazy one is
        evaluated once for each block, for the columns of that block alone, and must
        give its rows in the same order each time.
    block_bytes : int, default=2**23
        Size of a block, of at most 1024 columns.

    Notes
    -----
    The names of the columns are those of the features, if they are strings. The index
    of a pandas frame names the samples, or counts them if it is a plain range. Text and
    categorical columns become nominal codes, in sorted order, with -1 for a missing
    value. Missing numbers and booleans become NaN. Integers so large that a float would
    make two of them equal become codes if some are missing. Dates, durations and nested
    columns are refused.

    Examples
    --------
    >>> import polars as pl
    >>> from featstream.sources import FrameSource
    >>> source = FrameSource(pl.DataFrame({"size": [3, 5], "colour": ["red", "blue"]}))
    >>> block = next(source.blocks())
    >>> block.names, block.columns.tolist(), block.nominal.tolist()
    (['size', 'colour'], [[3, 1], [5, 0]], [False, True])
    """

    def __init__(self, frame: Any, *, block_bytes: int = BLOCK_BYTES) -> None:
        names, self.sample_names = _column_names(frame), index_names(frame)
        if names is None:  # pandas; its own names need not even be unique
            frame = frame.set_axis(range(frame.shape[1]), axis="columns")
        else:
            self.names = check_names(names, len(names))
        self._frame: Any = nw.from_native(frame)
        if isinstance(self._frame, nw.LazyFrame):
            self._labels = self._frame.collect_schema().names()
            n_samples = int(self._frame.select(nw.len()).collect().item())
            shape = n_samples, len(self._labels)
        else:
            shape = self._frame.shape
        super().__init__(shape, about=self._frame.implementation.value)
        self.block_bytes = block_bytes
        schema = self._frame.collect_schema()
        self.text_columns = [i for i, t in enumerate(schema.values()) if t in _TEXT]

    def _part(self, chosen: Positions) -> Any:
        if isinstance(self._frame, nw.LazyFrame):
            return self._frame.select([self._labels[i] for i in chosen]).collect()
        return self._frame[:, as_index(chosen)]


def _column_names(frame: Any) -> list[Any] | None:
    """Names of the columns, by scikit-learn's rule: all strings, or none."""
    if nw.dependencies.is_pyarrow_table(frame):
        names = frame.column_names
    elif nw.dependencies.is_polars_lazyframe(frame):
        names = frame.collect_schema().names()
    elif nw.dependencies.is_dask_dataframe(frame):
        names = [str(name) for name in frame.columns]
    else:
        names = list(getattr(frame, "columns", ()))
    kinds = sorted({type(name).__qualname__ for name in names})
    if len(kinds) > 1 and "str" in kinds:
        raise DataTypeError(
            "Feature names are only supported if all input features have string "
            f"names, but your input has {kinds} as feature name / column name types. "
            "If you want feature names to be stored and validated, you must convert "
            "them all to strings, by using X.columns = X.columns.astype(str) for "
            "example. Otherwise you can remove feature / column names from your input "
            "data, or convert them all to a non-string data type."
        )
    return names if kinds in (["str"], []) else None


def plain_numbers(frame: Any) -> NDArray[Any] | None:
    """All columns at once, if they are numbers and one array can hold them exactly."""
    dtypes = set(frame.schema.values())
    if not dtypes <= {*_EXACT_IN_FLOAT, nw.Int64, nw.UInt64}:
        return None
    array = frame.to_numpy()
    is_float = array.dtype.kind == "f" and dtypes <= _EXACT_IN_FLOAT
    if not is_float and array.dtype.kind not in "biu":
        return None
    return array if has_whole_rows(array) else by_column(array)


def _coded(series: Any, name: str) -> tuple[NDArray[Any], bool]:
    dtype = series.dtype
    if dtype.is_temporal() or dtype.is_nested():
        hint = DATES if dtype.is_temporal() else FIELDS
        raise not_numbers(f"Feature {printable(name)}", dtype, hint)
    if dtype in (nw.Categorical, nw.Enum):
        values = series.to_list()
        what = f"Feature {printable(name)}"
        refuse_hidden_numbers(values, what, is_label=True)
        present = series.drop_nulls().unique().to_list()
        try:
            present.sort()
        except TypeError:  # categories need not be text, nor even ordered
            present = list(dict.fromkeys(series.drop_nulls().to_list()))
        return code_categories(values, present), True
    has_nulls = series.null_count() > 0
    if dtype == nw.Boolean and has_nulls:
        return series.cast(nw.Float64).to_numpy(), False
    is_odd = dtype in (nw.Int128, nw.UInt128, nw.String, nw.Decimal)
    if is_odd or (dtype.is_integer() and has_nulls):
        return as_column_of_objects(series.to_list(), name)
    return as_column(np.asarray(series.to_numpy()), name)


class IteratorSource:
    """Features that arrive one by one, as pairs of a name and its values.

    Parameters
    ----------
    features : iterable of (str, array-like)
        Each array-like is one-dimensional with one value per sample (an array, a
        list, a series), or a sparse matrix of one column. Text becomes codes.
        Names are not checked to be different: that would take memory for each.
    block_bytes : int, default=2**23
        Features are grouped into blocks of about this size.

    Attributes
    ----------
    n_samples, n_features : None
        Not known in advance.

    Notes
    -----
    A list can be read again from the start. An iterator can be read once: a later
    call of ``blocks(start)`` continues where the last one stopped and cannot go back.

    Examples
    --------
    >>> from featstream.sources import IteratorSource
    >>> source = IteratorSource([("size", [1.5, 2.5]), ("colour", ["red", "blue"])])
    >>> block = next(source.blocks())
    >>> block.columns
    array([[1.5, 1. ],
           [2.5, 0. ]])
    >>> block.nominal
    array([False,  True])
    """

    n_samples: int | None = None
    n_features: int | None = None
    names: Sequence[str] | None = None

    def __init__(
        self, features: Iterable[tuple[str, Any]], *, block_bytes: int = BLOCK_BYTES
    ) -> None:
        self._features = features
        self._is_one_shot = iter(features) is features
        self._n_read = 0
        self.block_bytes = block_bytes

    def __repr__(self) -> str:
        return f"IteratorSource({type(self._features).__name__})"

    def blocks(self, start: int = 0) -> Iterator[Block]:
        """Yield the features from position ``start`` on."""
        if not self._is_one_shot:
            self._n_read = 0
        if start < self._n_read:
            raise DataError(
                f"This {type(self._features).__name__} has already given "
                f"{self._n_read} features and cannot go back to position {start}. "
                "Give a list, or create the iterator again."
            )
        rest = islice(self._features, start - self._n_read, None)
        self._n_read = start
        columns = (self._column(item) for item in rest)
        return group_columns(columns, start, block_bytes=self.block_bytes)

    def _column(self, item: Any) -> NamedColumn:
        position = self._n_read
        self._n_read += 1
        if not isinstance(item, (tuple, list)) or len(item) != 2:
            got = type(item).__name__
            if isinstance(item, (tuple, list)):
                got += f" of length {len(item)}"
            raise DataTypeError(
                "An iterator of features must give pairs (name, values). Got a "
                f"{got} at position {position}."
            )
        name, values = item
        check_name(name, position)
        what = f"Feature {printable(name)}"
        if sparse.issparse(values):
            column = canonical_csc(values, what)
            if column.shape[1] != 1:
                raise DataError(
                    f"{what} has {column.shape[1]} columns. A sparse feature must have "
                    "exactly one column."
                )
            return name, column, False
        array = as_array(values, what)
        if array.ndim != 1:
            raise DataError(
                f"{what} has shape {array.shape}. Give one value per sample, in one "
                "dimension."
            )
        return name, *as_column(array, name)


def is_plain_column(values: Any) -> bool:
    """Whether values can be used as a column without any conversion."""
    return (
        type(values) is np.ndarray
        and values.ndim == 1
        and values.size > 0
        and values.dtype.char in _PLAIN
        and values.dtype.isnative
        and values.flags.c_contiguous
    )


def block_of_one(values: Any, name: str | None, arrival: int) -> Block:
    """A feature that arrives alone, as a block."""
    if name is not None:
        check_name(name)
    if is_plain_column(values):
        column = values[:, None]
        column.flags.writeable = False
        return Block(column, arrival, None if name is None else [name])
    shown = feature_name(arrival) if name is None else name
    (block,) = IteratorSource([(shown, values)]).blocks()
    names = None if name is None else block.names
    return Block(block.columns, arrival, names, block.nominal)


def in_storage(block: Block, *, is_sparse: bool) -> Iterator[Block]:
    """The block in the storage of its stream, in parts if it has to be densified."""
    if block.is_sparse == is_sparse:
        yield block
    elif isinstance(block.columns, SparseColumns):
        width = max(1, LIMITS.dense_block // (8 * max(1, block.n_samples)))
        for begin in range(0, block.n_columns, width):
            part = block.part(begin, min(begin + width, block.n_columns))
            yield replace(part, columns=part.to_dense())
    else:
        stored = sparse.csc_array(np.asarray(block.columns))
        yield replace(block, columns=as_sparse_columns(stored))
