"""Arrays in chunks: of HDF5 or zarr, dense or sparse, on disk; and of Dask."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from featstream.errors import DataError, FeatstreamWarning, printable
from featstream.protocols import Block, Source, SparseColumns
from featstream.sources.kernels.csc_from_rows import find_bad_column
from featstream.sources.memory import (
    AnyOrderSource,
    ArraySource,
    Positions,
    SizedSource,
    SparseSource,
    as_index,
    moved,
    sparse_stop,
)
from featstream.sources.open import PathLike, reading
from featstream.sources.rows_to_columns import TempColumns, write_rows
from featstream.sources.store import open_store
from featstream.sources.store_writer import Progress
from featstream.sources.svmlight import RowSlice
from featstream.sources.values import (
    LIMITS,
    MAX_COLUMNS,
    as_sparse_columns,
    canonical_csc,
    exceeds_float,
    index_flaw,
    numeric_dtype,
    pointer_flaw,
)

_SPARSE_WIDTH = 1 << 14
_MAX_READS = 2  # of a chunk; an array that needs more is first transposed on disk
_RUN_BYTES = 1 << 16  # of a row, read at once if an array has no chunks
_TEMPORARY_MEMORY = 512 << 20
_SAMPLE = 64  # places at which the columns of entries are sampled


class ChunkedArraySource(SizedSource):
    """The columns of a dense array in an HDF5 file or in zarr.

    Whole chunks are read, so that each is unpacked once, or twice if it is wider than
    memory allows. A large array that is stored by rows is transposed first, into a
    temporary file of its size.

    Parameters
    ----------
    array : array-like of shape (n_samples, n_features)
        With ``shape``, ``dtype``, ``chunks`` and slices; see h5py and zarr.
    path : Path
        The file, for messages.
    names : sequence of str, default=None
        One name per feature.
    fingerprint : str, default=None
        Changes with the data, as far as can be known without reading them.
    read_bytes : int, default=2**26
        Bytes read at a time, unless one column is longer.

    """

    def __init__(
        self,
        array: Any,
        path: Path,
        names: Sequence[str] | None = None,
        fingerprint: str | None = None,
        *,
        read_bytes: int | None = None,
    ) -> None:
        self._array, self.path = array, path
        self.read_bytes = LIMITS.array_read if read_bytes is None else read_bytes
        about = f"{array.dtype}, {printable(path.name)}"
        super().__init__(tuple(array.shape), names, about=about)
        numeric_dtype(np.dtype(array.dtype), "X")  # an error if it is not numbers
        self.fingerprint, self.text_columns = fingerprint, ()
        self._width, self._is_by_row = self._plan()
        self._temporary: TempColumns | None = None

    def reopener(self) -> Callable[[], ChunkedArraySource] | None:
        """A function that opens it in another process; None if it is by rows."""
        is_zarr = type(self._array).__module__.partition(".")[0] == "zarr"
        if not is_zarr or self._is_by_row:
            return None
        path, within = self.path.absolute(), self._array.path
        described = self.names, self.fingerprint
        return partial(_reopen_zarr, path, within, described, self.read_bytes)

    def _plan(self) -> tuple[int, bool]:
        """Columns to read at a time, and whether to transpose the array first."""
        itemsize = self._array.dtype.itemsize
        fitting = max(self.read_bytes // (self.n_samples * itemsize), 1)
        chunks = self._array.chunks
        chunk = chunks[1] if chunks else max(_RUN_BYTES // itemsize, 1)
        chunk = min(chunk, max(self.n_features, 1))
        if chunk <= fitting:
            return fitting // chunk * chunk, False
        return fitting, -(-chunk // fitting) > _MAX_READS

    def blocks(self, start: int = 0) -> Iterator[Block]:
        """Yield the columns from position ``start`` on."""
        if self._is_by_row and self._temporary is None:
            with reading(self.path):
                self._temporary = self._transpose()
        width = self._width
        for first in range(start // width * width, self.n_features, width):
            begin = max(start, first)
            for block in ArraySource(self._read(begin, first)).blocks():
                yield self._block(block.columns, begin + block.start)

    def _read(self, begin: int, first: int) -> NDArray[Any]:
        """Columns from ``begin`` to the end of the group that begins at ``first``."""
        stop = min(first + self._width, self.n_features)
        if self._temporary is None:
            with reading(self.path):
                return np.asarray(self._array[:, begin:stop])
        parts = [
            np.frombuffer(part, self._array.dtype).reshape(-1, stop - first)
            for part in self._temporary.read(first // self._width)
        ]
        return np.concatenate(parts)[:, begin - first :]

    def _transpose(self) -> TempColumns:
        """Read the array once, by rows, and write groups of columns to a file."""
        bounds = np.arange(0, self.n_features, self._width)
        temporary = TempColumns(bounds.size)
        height = self._array.chunks[0] if self._array.chunks else 1
        row_bytes = self.n_features * self._array.dtype.itemsize
        height *= max(self.read_bytes // (row_bytes * height), 1)
        for top in range(0, self.n_samples, height):
            rows = np.asarray(self._array[top : top + height])
            parts = [
                np.ascontiguousarray(part).view(np.uint8).ravel()
                for part in np.split(rows, bounds[1:], axis=1)
            ]
            ends = np.cumsum([0, *(part.size for part in parts)])
            temporary.append(np.concatenate(parts), ends)
        return temporary


def _reopen_zarr(
    path: Path, within: str, described: tuple[Any, ...], read_bytes: int
) -> ChunkedArraySource:
    import zarr  # an array that was sent as it is would read zeros from a missing file

    array = zarr.open_array(path, path=within, mode="r")
    return ChunkedArraySource(array, path, *described, read_bytes=read_bytes)


class _SparseOnDisk(SizedSource):
    """A sparse matrix on disk: a group of three arrays, of h5py or zarr.

    A line is a column of a matrix by columns (CSC), a row of a matrix by rows (CSR).
    """

    text_columns = ()
    _axis: str  # what the stored indices count: "row" (CSC) or "column" (CSR)

    def __init__(
        self,
        group: Any,
        shape: tuple[int, int],
        path: Path,
        names: Sequence[str] | None = None,
    ) -> None:
        self.path = path
        n_lines, length = shape[::-1] if self._axis == "row" else shape
        data, indices, indptr = (group[key] for key in ("data", "indices", "indptr"))
        self._data, self._indices, self._length = data, indices, length
        if length > np.iinfo(np.int32).max:
            raise DataError(
                f"it has {length:,} {self._axis}s; at most 2**31-1 are read."
            )
        if any(len(getattr(p, "shape", ())) != 1 for p in (data, indices, indptr)):
            raise DataError("its sparse matrix is not made of three vectors.")
        self._dtype = numeric_dtype(np.dtype(data.dtype), "X")
        self._n_entries = n_entries = int(data.shape[0])
        pointers = np.asarray(indptr[:])
        flaw = pointer_flaw(pointers, n_lines, n_entries)
        if not flaw and tuple(indices.shape) != (n_entries,):
            flaw = f"{indices.shape[0]:,} indices for {n_entries:,} values"
        if not flaw and pointers[-1] != n_entries:
            flaw = f"its indptr ends at {pointers[-1]:,} of {n_entries:,} entries"
        if flaw:
            raise DataError(f"its sparse matrix is not valid: {flaw}.")
        self._indptr: NDArray[np.int64] = pointers.astype(np.int64)
        digest = hashlib.sha256(f"{n_lines} {length} {self._dtype}".encode())
        digest.update(self._indptr.tobytes())
        self.fingerprint = digest.hexdigest()
        about = f"{n_entries:,} stored {self._dtype}, {printable(path.name)}"
        super().__init__(shape, names, about=about)

    def _lines_from(self, start: int) -> Iterator[tuple[int, SparseColumns]]:
        """Some lines at a time, with the position of the first."""
        while start < self._indptr.size - 1:
            stop = sparse_stop(self._indptr, start, MAX_COLUMNS, LIMITS.sparse_block)
            yield start, self._read(start, stop)
            start = stop

    def _read(self, begin: int, stop: int) -> SparseColumns:
        """Lines ``begin`` to ``stop``, checked, their entries in order."""
        first, last = self._indptr[[begin, stop]].tolist()
        indptr = self._indptr[begin : stop + 1] - first
        with reading(self.path):
            indices = np.asarray(self._indices[first:last])
            values = np.asarray(self._data[first:last]).astype(self._dtype, copy=False)
            if flaw := index_flaw(indices, self._length, self._axis):
                raise DataError(f"its sparse matrix is not valid: {flaw}.")
            indices = indices.astype(np.int32, copy=False)
            if find_bad_column(indptr, indices, self._length) >= 0:
                # Entries out of order, or several of one place, which then add up.
                shape = (self._length, stop - begin)
                part = sparse.csc_array((values, indices, indptr), shape=shape)
                return as_sparse_columns(canonical_csc(part, "its sparse matrix"))
        return SparseColumns(indptr, indices, values, self._length)


class ColumnsSource(_SparseOnDisk):
    """The columns of a sparse matrix on disk in CSC form."""

    _axis = "row"

    def blocks(self, start: int = 0) -> Iterator[Block]:
        """Yield the columns from position ``start`` on."""
        for begin, columns in self._lines_from(start):
            yield self._block(columns, begin)


class RowsSource(_SparseOnDisk):
    """The columns of a sparse matrix on disk in CSR form.

    The first call of `blocks` transposes it: in memory up to 8 million entries,
    otherwise into a temporary column store. `convert` does that once and for all.
    """

    _axis = "column"
    _columns: Source | None = None

    def blocks(self, start: int = 0) -> Iterator[Block]:
        """Yield the columns from position ``start`` on."""
        if self._columns is None:
            if self._n_entries > LIMITS.sparse_held:
                self._columns = self._on_disk()
            else:
                rows = self._read(0, self.n_samples)
                stored, shape = (rows.values, rows.rows, rows.indptr), rows.shape[::-1]
                self._columns = SparseSource(sparse.csr_array(stored, shape=shape))
        for block in self._columns.blocks(start):
            yield self._block(block.columns, block.start)

    def write_columns(
        self,
        output: PathLike,
        y: ArrayLike | None,
        *,
        memory: int,
        progress: Progress | None = None,
    ) -> None:
        """Write a column store; the parameters are those of `convert`."""
        starts = np.unique(np.linspace(0, self._n_entries, _SAMPLE, endpoint=False))
        with reading(self.path):
            parts = [self._indices[int(i) : int(i) + 4096] for i in starts]
        sample = np.concatenate([np.empty(0, np.int64), *parts]).astype(np.int64)
        write_rows(
            output,
            self._slices(progress),
            (sample, self._n_entries),
            memory,
            y,
            n_features=self.n_features,
            names=self.names,
            samples=self.sample_names,
            progress=progress,
        )

    def _slices(self, progress: Progress | None = None) -> Iterator[RowSlice]:
        for begin, rows in self._lines_from(0):
            if exceeds_float(rows.values):
                raise DataError(
                    f"{self.path}: its sparse matrix has integers beyond 2**53, "
                    "which are not exact as floating-point numbers."
                )
            values, span = rows.values.astype(np.float64), (0, self.n_features - 1)
            yield RowSlice(rows.indptr, rows.rows, values, np.empty(0), *span)
            if progress is not None:
                progress("reading", begin + rows.shape[1], self.n_samples)

    def _on_disk(self) -> Source:
        warnings.warn(
            f"{self.path} is stored by rows. It is transposed into a "
            "temporary column store; `featstream convert` does that once and for all.",
            FeatstreamWarning,
            stacklevel=2,
        )
        folder = tempfile.mkdtemp(prefix="featstream-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        store = Path(folder) / "columns.cols"
        self.write_columns(store, None, memory=_TEMPORARY_MEMORY)
        return open_store(store)


class DaskArraySource(AnyOrderSource):
    """The columns of a dask.array, whose chunks are of numpy or scipy.sparse.

    A block has all rows of some columns; they are computed when the block is read, by
    the scheduler that Dask uses at that time. Arrays with all rows in a chunk are best.
    Of others, a block is put together from its part of every chunk of rows, and the
    chunks are computed again for every block.

    >>> import dask.array as da
    >>> from featstream.sources import as_source
    >>> source = as_source(da.eye(6, chunks=2))
    >>> source
    DaskArraySource(6 samples × 6 features, float64, 3 blocks)
    >>> [block.start for block in source.blocks()]
    [0, 2, 4]
    """

    def __init__(self, array: Any) -> None:
        if any(np.isnan(size) for size in array.shape):
            raise DataError(
                f"X is a dask.array of unknown shape {array.shape}. Call "
                "X.compute_chunk_sizes() first."
            )
        self._array, self.text_columns = array, ()
        super().__init__(tuple(array.shape), about=array.dtype)
        # Blocks end where chunks do, and within those that are too wide for one.
        width = max(1, LIMITS.dask_block // (self.n_samples * array.dtype.itemsize))
        if sparse.issparse(array._meta):
            width = _SPARSE_WIDTH
        ends = np.cumsum([0, *array.chunks[1]])
        cuts = [np.arange(*bounds, width) for bounds in pairwise(ends)]
        self._ends = np.concatenate([*cuts, ends[-1:]])[1:]
        self._about = f"{array.dtype}, {self._ends.size:,} blocks"

    def _blocks(self, positions: Positions, start: int) -> Iterator[Block]:
        ends = self._ends
        if not isinstance(positions, range):
            width = int(np.diff(ends, prepend=0).max(initial=1))
            ends = np.arange(start, len(positions), width) + width
        for end in ends[ends > start].tolist():
            computed = self._array[:, as_index(positions[start:end])].compute()
            make: Any = SparseSource if sparse.issparse(computed) else ArraySource
            yield from moved(make(computed).blocks(), start)
            start = end
