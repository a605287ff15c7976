"""Sparse matrices on disk, in compressed form: by columns, or by rows."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import warnings
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from featstream.errors import DataError, FeatstreamWarning, printable
from featstream.protocols import Block, Source, SparseColumns
from featstream.sources._ranges import Ranges
from featstream.sources._svmlight_rows import RowSlice
from featstream.sources.dataset import PathLike, reading
from featstream.sources.kernels.csc_from_rows import find_bad_column
from featstream.sources.memory import MAX_ENTRIES, SparseSource
from featstream.sources.store import open_store
from featstream.sources.store_writer import Progress, new_folder, write_blocks
from featstream.sources.values import (
    Duplicates,
    canonical_csc,
    check_dimensions,
    check_names,
    exceeds_float,
    index_flaw,
    numeric_dtype,
    pointer_flaw,
)

__all__ = ["ColumnsSource", "CompressedArrays", "RowsSource"]

HELD_ENTRIES = 1 << 23
"""Rows of so many entries are turned into columns in memory."""

_MAX_LINES = 1 << 16
_TEMPORARY_MEMORY = 512 << 20
_SAMPLE = 64  # places at which columns of entries are looked at


class CompressedArrays:
    """The three arrays of a matrix in compressed form, on disk.

    A line is a column of a matrix by columns, a row of one by rows.

    Parameters
    ----------
    data, indices, indptr : array-like
        With ``shape``, ``dtype`` and slices; see h5py and zarr.
    n_lines, length : int
        How many lines there are, and how long each is.
    path : Path
        The file, for messages.
    axis : {"row", "column"}, default="row"
        What the indices are, for messages.
    """

    def __init__(
        self,
        data: Any,
        indices: Any,
        indptr: Any,
        n_lines: int,
        length: int,
        path: Path,
        axis: str = "row",
    ) -> None:
        self.path, self.n_lines, self.length, self.axis = path, n_lines, length, axis
        self._data, self._indices = data, indices
        if length > np.iinfo(np.int32).max:
            raise DataError(f"it has lines of {length:,} values; 2**31-1 are the most.")
        for part in (data, indices, indptr):
            if len(getattr(part, "shape", ())) != 1:
                raise DataError("its sparse matrix is not made of three vectors.")
        self.dtype = numeric_dtype(np.dtype(data.dtype), "X")
        self.n_entries = int(data.shape[0])
        pointers = np.asarray(indptr[:])
        flaw = pointer_flaw(pointers, n_lines, self.n_entries)
        if not flaw and tuple(indices.shape) != (self.n_entries,):
            flaw = f"{indices.shape[0]:,} indices for {self.n_entries:,} values"
        if not flaw and pointers[-1] != self.n_entries:
            flaw = f"its indptr ends at {pointers[-1]:,} of {self.n_entries:,} entries"
        if flaw:
            raise DataError(f"its sparse matrix is not valid: {flaw}.")
        self.indptr: NDArray[np.int64] = pointers.astype(np.int64)
        digest = hashlib.sha256(f"{n_lines} {length} {self.dtype}".encode())
        digest.update(self.indptr.tobytes())
        self.fingerprint = digest.hexdigest()

    def stop(self, begin: int) -> int:
        """The line to stop before, so that those from ``begin`` are some at a time."""
        most = self.indptr[begin] + MAX_ENTRIES
        last = int(np.searchsorted(self.indptr, most, "right")) - 1
        return min(max(last, begin + 1), begin + _MAX_LINES, self.n_lines)

    def read(self, begin: int, stop: int) -> SparseColumns:
        """Lines ``begin`` to ``stop``, checked, their entries in order."""
        first, last = self.indptr[[begin, stop]].tolist()
        indptr = self.indptr[begin : stop + 1] - first
        with reading(self.path):
            indices = np.asarray(self._indices[first:last])
            values = np.asarray(self._data[first:last]).astype(self.dtype, copy=False)
            if flaw := index_flaw(indices, self.length, self.axis):
                raise DataError(f"its sparse matrix is not valid: {flaw}.")
            indices = indices.astype(np.int32, copy=False)
            if find_bad_column(indptr, indices, self.length) >= 0:
                # Entries out of order, or several of one place, which then add up.
                shape = (self.length, stop - begin)
                part = sparse.csc_array((values, indices, indptr), shape=shape)
                part = canonical_csc(part, "its sparse matrix")
                indptr, indices = part.indptr.astype(np.int64), part.indices
                indices, values = indices.astype(np.int32, copy=False), part.data
        return SparseColumns(indptr, indices, values, self.length)

    def sample(self) -> NDArray[np.int64]:
        """Indices of some entries, from all over the file."""
        starts = np.unique(np.linspace(0, self.n_entries, _SAMPLE, endpoint=False))
        with reading(self.path):
            parts = [self._indices[int(i) : int(i) + 4096] for i in starts]
        return np.concatenate([np.empty(0, np.int64), *parts]).astype(np.int64)


class _Stored(ABC):
    """What both kinds of sources have in common.

    Parameters
    ----------
    arrays : CompressedArrays
        Its arrays.
    names : sequence of str, default=None
        One name per feature.
    duplicates : {"error", "number"}, default="error"
        What to do about two features of one name.

    Attributes
    ----------
    n_samples, n_features : int
        The shape.
    names : list of str or None
        The names as given.
    sample_names : list of str or None
        One name per sample, where they are known.
    fingerprint : str
        Changes with the number of entries of any line.
    """

    sample_names: Sequence[str] | None = None

    def __init__(
        self,
        arrays: CompressedArrays,
        names: Sequence[str] | None = None,
        duplicates: Duplicates = "error",
    ) -> None:
        self._arrays = arrays
        self.n_samples, self.n_features = check_dimensions(self._shape())
        self.names = (
            None if names is None else check_names(names, self.n_features, duplicates)
        )
        self.fingerprint = arrays.fingerprint

    @abstractmethod
    def _shape(self) -> tuple[int, int]:
        """Samples and features."""

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.n_samples:,} samples × "
            f"{self.n_features:,} features, {self._arrays.n_entries:,} stored "
            f"{self._arrays.dtype}, {printable(self._arrays.path.name)})"
        )


class ColumnsSource(_Stored):
    """The columns of a sparse matrix on disk that is compressed by columns.

    The parameters are CompressedArrays, and names of the features.
    """

    def _shape(self) -> tuple[int, int]:
        return self._arrays.length, self._arrays.n_lines

    def blocks(self, start: int = 0) -> Iterator[Block]:
        """Yield the columns from position ``start`` on."""
        while start < self.n_features:
            stop = self._arrays.stop(start)
            names = None if self.names is None else self.names[start:stop]
            yield Block(self._arrays.read(start, stop), start, names)
            start = stop


class RowsSource(_Stored):
    """The columns of a sparse matrix on disk that is compressed by rows.

    The first look at a block turns rows into columns: in memory if they have no more
    than 8 million entries, otherwise out of core, into a temporary column store. To do
    that once and for all, use `convert`. The parameters are CompressedArrays, and names
    of the features.
    """

    _columns: Source | None = None

    def _shape(self) -> tuple[int, int]:
        return self._arrays.n_lines, self._arrays.length

    def blocks(self, start: int = 0) -> Iterator[Block]:
        """Yield the columns from position ``start`` on."""
        if self._columns is None:
            is_small = self._arrays.n_entries <= HELD_ENTRIES
            self._columns = self._in_memory() if is_small else self._on_disk()
        for block in self._columns.blocks(start):
            yield self._named(block)

    def write(
        self,
        output: PathLike,
        y: ArrayLike | None,
        *,
        memory: int,
        progress: Progress | None = None,
    ) -> None:
        """Write a column store; the parameters are those of `convert`."""
        arrays = self._arrays
        with (
            new_folder(output) as folder,
            Ranges(folder, arrays.sample(), arrays.n_entries, memory) as ranges,
        ):
            ranges.fill(self._slices(progress), self.n_features)
            write_blocks(
                folder,
                (self._named(block) for block in ranges.blocks()),
                y,
                samples=self.sample_names,
                dtype=ranges.dtype,
                total=self.n_features,
                progress=progress,
            )

    def _named(self, block: Block) -> Block:
        if self.names is None:
            return block
        stop = block.start + block.n_columns
        return replace(block, names=self.names[block.start : stop])

    def _slices(self, progress: Progress | None = None) -> Iterator[RowSlice]:
        arrays = self._arrays
        start = 0
        while start < arrays.n_lines:
            stop = arrays.stop(start)
            rows = arrays.read(start, stop)
            with reading(arrays.path):
                values = _as_floats(rows.values)
            lowest, highest = 0, self.n_features - 1
            labels = np.empty(0)
            yield RowSlice(rows.indptr, rows.rows, values, labels, lowest, highest)
            start = stop
            if progress is not None:
                progress("reading", start, arrays.n_lines)

    def _in_memory(self) -> Source:
        rows = self._arrays.read(0, self._arrays.n_lines)
        stored = (rows.values, rows.rows, rows.indptr)
        shape = (self.n_samples, self.n_features)
        return SparseSource(sparse.csr_array(stored, shape=shape))

    def _on_disk(self) -> Source:
        warnings.warn(
            f"{self._arrays.path} is stored by rows. Its columns are put into a "
            "temporary store; to do that once, use `featstream convert`.",
            FeatstreamWarning,
            stacklevel=2,
        )
        folder = tempfile.mkdtemp(prefix="featstream-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        store = Path(folder) / "columns.cols"
        self.write(store, None, memory=_TEMPORARY_MEMORY)
        return open_store(store)


def _as_floats(values: NDArray[Any]) -> NDArray[np.float64]:
    if exceeds_float(values):
        raise DataError(
            "its sparse matrix has integers beyond 2**53, which are not exact as "
            "floating-point numbers."
        )
    return values.astype(np.float64)
