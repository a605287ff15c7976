"""Sources over arrays, sparse matrices and iterators in memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from featstream.errors import DataError, DataTypeError, printable
from featstream.protocols import Block, IntArray, SparseColumns, feature_name
from featstream.sources.kernels.transpose import (
    by_column,
    has_whole_rows,
    is_by_row,
)
from featstream.sources.values import (
    BLOCK_BYTES,
    MAX_COLUMNS,
    Duplicates,
    NamedColumn,
    as_array,
    as_column,
    as_sparse_columns,
    block_width,
    canonical_csc,
    check_dimensions,
    check_names,
    group_columns,
    numeric_dtype,
)

MAX_ENTRIES = 2**20
"""Stored entries in a sparse block at most, unless one column has more."""

CACHE_LINE = 64


_DENSE_BYTES = 1 << 24
_PLAIN = "?bBhilqfd"
"""Types of values that kernels take as they are."""


class SizedSource(ABC):
    """A source whose shape is known: what those in memory and on disk have in common.

    ``about`` says in ``repr`` what is special about it.
    """

    names: Sequence[str] | None = None
    sample_names: Sequence[str] | None = None

    def __init__(
        self,
        shape: tuple[int, int],
        names: Iterable[str] | None = None,
        duplicates: Duplicates = "error",
        *,
        about: object,
    ) -> None:
        self.n_samples, self.n_features = shape
        if names is not None:
            self.names = check_names(names, self.n_features, duplicates)
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
        self, columns: NDArray[Any] | SparseColumns, start: int, stop: int
    ) -> Block:
        names = None if self.names is None else self.names[start:stop]
        return Block(columns, start, names)


def moved(blocks: Iterable[Block], by: int) -> Iterator[Block]:
    """Blocks of some columns of a source, ``by`` further on in it."""
    for block in blocks:
        yield replace(block, start=by + block.start)


class ArraySource(SizedSource):
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

    Attributes
    ----------
    n_samples, n_features : int
        The shape of ``X``.
    names, sample_names : list of str or None
        The names of features, as given, and of samples.

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
        shape = check_dimensions(self._array.shape)
        super().__init__(shape, names, about=self._array.dtype)
        self.block_bytes = block_bytes
        if self._array.dtype.kind not in "OUST":
            self._dtype = numeric_dtype(self._array.dtype, "X")

    def blocks(self, start: int = 0) -> Iterator[Block]:
        """Yield the columns from position ``start`` on."""
        if self._array.dtype.kind in "OUST":
            yield from group_columns(
                self._coded_columns(start), start, block_bytes=self.block_bytes
            )
            return
        # A row-major array is read by whole cache lines, however tall it is.
        itemsize = self._array.itemsize
        least = max(CACHE_LINE // itemsize, 1) if is_by_row(self._array) else 1
        width = block_width(self.n_samples, itemsize, self.block_bytes, least)
        for first in range(start, self.n_features, width):
            stop = first + width
            yield self._block(self._columns(first, stop), first, stop)

    def blocks_at(self, positions: IntArray, start: int = 0) -> Iterator[Block]:
        """Yield the columns at these positions, in this order, from ``start`` on."""
        width = block_width(self.n_samples, self._array.itemsize, self.block_bytes)
        for first in range(start, positions.size, width):
            chosen = positions[first : first + width]
            names = None if self.names is None else [self.names[i] for i in chosen]
            yield from moved(ArraySource(self._array[:, chosen], names).blocks(), first)

    def _columns(self, start: int, stop: int) -> NDArray[Any]:
        columns = self._array[:, start:stop]
        if has_whole_rows(columns) and columns.dtype == self._dtype:
            return columns
        return by_column(columns).astype(self._dtype, order="F", copy=False)

    def _coded_columns(self, start: int) -> Iterator[NamedColumn]:
        for i in range(start, self.n_features):
            name = None if self.names is None else self.names[i]
            column, nominal = as_column(self._array[:, i], name or feature_name(i))
            yield name, column, nominal


class SparseSource(SizedSource):
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

    Attributes
    ----------
    n_samples, n_features : int
        The shape of ``X``.
    names, sample_names : list of str or None
        The names of features, as given, and of samples.

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
        block_entries: int = MAX_ENTRIES,
        is_checked: bool = False,
    ) -> None:
        self._csc = X if is_checked else canonical_csc(X)
        about = f"{self._csc.nnz:,} stored {self._csc.dtype}"
        super().__init__(self._csc.shape, names, about=about)
        if self.n_samples > np.iinfo(np.int32).max:
            raise DataError(
                f"X has {self.n_samples:,} rows; a sparse source holds at most 2**31-1."
            )
        self.block_columns, self.block_entries = block_columns, block_entries

    def blocks(self, start: int = 0) -> Iterator[Block]:
        """Yield the columns from position ``start`` on."""
        indptr, rows, values = self._csc.indptr, self._csc.indices, self._csc.data
        while start < self.n_features:
            pointers = indptr[start : start + self.block_columns + 1].astype(np.int64)
            entries = int(pointers[0])
            fitting = (
                np.searchsorted(pointers, entries + self.block_entries, "right") - 1
            )
            pointers = pointers[: max(int(fitting), 1) + 1]
            if rows.dtype == np.int32:
                columns = SparseColumns(pointers, rows, values, self.n_samples)
            else:
                here = slice(entries, int(pointers[-1]))
                columns = SparseColumns(
                    pointers - entries,
                    rows[here].astype(np.int32),
                    values[here],
                    self.n_samples,
                )
            stop = start + pointers.size - 1
            names = None if self.names is None else self.names[start:stop]
            yield Block(columns, start, names)
            start = stop

    def blocks_at(self, positions: IntArray, start: int = 0) -> Iterator[Block]:
        """Yield the columns at these positions, in this order, from ``start`` on."""
        entries = np.cumsum(np.diff(self._csc.indptr)[positions], dtype=np.int64)
        while start < positions.size:
            before = entries[start - 1] if start else 0
            fitting = int(
                np.searchsorted(entries, before + self.block_entries, "right")
            )
            stop = min(max(fitting, start + 1), start + self.block_columns)
            chosen = positions[start:stop]
            columns = as_sparse_columns(self._csc[:, chosen])
            names = None if self.names is None else [self.names[i] for i in chosen]
            yield Block(columns, start, names)
            start = stop


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
        if not isinstance(name, str):
            raise DataTypeError(
                "An iterator of features must give pairs (name, values) with a "
                f"string for a name. Got {printable(name)} of type "
                f"{type(name).__name__} at position {position}."
            )
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
        column, nominal = as_column(array, name)
        return name, column, nominal


def is_plain_column(values: Any) -> bool:
    """Whether values are a column as it is, without any conversion."""
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
    if name is not None and not isinstance(name, str):
        raise DataTypeError(
            f"A feature name must be a string. Got {printable(name)} of type "
            f"{type(name).__name__}."
        )
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
        width = max(1, _DENSE_BYTES // (8 * max(1, block.n_samples)))
        for begin in range(0, block.n_columns, width):
            part = block.part(begin, min(begin + width, block.n_columns))
            yield replace(part, columns=part.to_dense())
    else:
        stored = sparse.csc_array(np.asarray(block.columns))
        yield replace(block, columns=as_sparse_columns(stored))
