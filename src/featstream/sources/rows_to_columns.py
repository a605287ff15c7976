"""Columns from data that are stored by rows, out of core.

Sparse rows (`convert`): the entries of each slice of rows are sorted by range of
columns and appended to one temporary file per range; then each range, which fits in
memory, is sorted and written to a column store. Dense rows or text (`TempColumns`):
one temporary file holds the parts of every row.
"""

from __future__ import annotations

import errno
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from itertools import chain, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import psutil
from numpy.typing import ArrayLike, NDArray

from featstream.errors import DataError, ParameterError, explain_full_disk
from featstream.protocols import Block, Source, SparseColumns
from featstream.sources import store_writer
from featstream.sources.kernels import csc_from_rows as csc
from featstream.sources.open import PathLike
from featstream.sources.store import ONES, StoreSource, open_store
from featstream.sources.svmlight import Reader, RowSlice, ZeroBased, join_labels
from featstream.sources.values import LIMITS

_LEAST_MEMORY = 64 << 20
_INDEX = re.compile(rb"[ \t]([0-9]{1,10}):")
_MAX_BUCKETS = 256  # files open at a time
_KEY = 0xFFFFFFFF


def convert(
    input: PathLike | Source,
    output: PathLike,
    *,
    y: ArrayLike | None = None,
    memory: int = 2 << 30,
    n_jobs: int | None = None,
    zero_based: ZeroBased = "auto",
    progress: store_writer.Progress | None = None,
) -> StoreSource:
    r"""Make a column store of a svmlight file or of any source.

    Parameters
    ----------
    input : str, path or Source
        A svmlight file, plain or compressed; or a source of columns.
    output : str or path
        Folder to make, usually ``NAME.cols``. It appears complete or not at all.
    y : array-like of shape (n_samples,), optional
        The target, for a source; a svmlight file has its own.
    memory : int, default=2 GiB
        Limit in bytes, including the interpreter. Scratch files next to ``output``
        take 16 bytes per entry.
    n_jobs : int, optional
        Number of threads; by default one per core.
    zero_based : bool or "auto", default="auto"
        As for `read_svmlight`.
    progress : callable, optional
        Called now and then with the stage ("reading" or "writing"), the amount done
        and the total.

    Returns
    -------
    store : StoreSource
        The store, open. Zeros that are written out in the file are not stored.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "small.svm").write_text("1 1:1 3:1\n-1 2:1\n")
    >>> store = convert(folder / "small.svm", folder / "small.cols")
    >>> for block in store.blocks():
    ...     print(block.columns.indptr, block.columns.rows, block.columns.values)
    [0 1 2 3] [0 1 0] [1 1 1]
    """
    if memory < _LEAST_MEMORY:
        raise ParameterError(f"`memory` must be at least 64 MiB. Got {memory} bytes.")
    if isinstance(input, Source):
        # A source that is stored by rows transposes itself.
        write = getattr(input, "write_columns", None)
        if write is None:
            store_writer.write_store(output, input, y, progress=progress)
        else:
            write(output, y, memory=memory, progress=progress)
        return open_store(output)
    if y is not None:
        raise ParameterError("`y` goes with a source. A svmlight file has its own.")
    with Reader(input, n_jobs, zero_based, None) as reader:
        reader.limits_columns = True
        reading = None if progress is None else partial(progress, "reading")
        sampled = sample_entries(reader)
        write_rows(output, reader.slices(reading), sampled, memory, progress=progress)
    return open_store(output)


def sample_entries(reader: Reader) -> tuple[NDArray[np.int64], int]:
    """The columns of some entries of a svmlight file, and about how many there are."""
    text, scale = reader.file.sample()
    sample = np.array(_INDEX.findall(text), np.bytes_).astype(np.int64)
    return sample, int(sample.size * scale)


def sort_entries(
    packed: NDArray[np.int64], first: int, last: int, dtype: str, n_samples: int
) -> SparseColumns:
    """The columns of some keys, from packed entries in order of rows."""
    counts = np.bincount((packed[:, 0] & _KEY) - first, minlength=last - first)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    rows = np.empty(packed.shape[0], np.int32)
    values = np.empty(packed.shape[0], dtype)
    csc.place_entries(packed, first, indptr[:-1].copy(), rows, values)
    return SparseColumns(indptr, rows, values, n_samples)


def write_rows(
    output: PathLike,
    slices: Iterable[RowSlice],
    sampled: tuple[NDArray[np.int64], int],
    memory: int,
    y: ArrayLike | None = None,
    *,
    n_features: int | None = None,
    names: Sequence[str] | None = None,
    samples: Sequence[str] | None = None,
    progress: store_writer.Progress | None = None,
) -> None:
    """Write rows to a column store, with their own labels or those that are given.

    ``sampled`` is the columns of some entries, and about how many entries there are.
    """
    with (
        store_writer.new_folder(output) as folder,
        TemporaryDirectory(dir=folder) as scratch,
    ):
        totals = RowTotals(n_features)
        buckets = ColumnBuckets(totals, *sampled, memory, Path(scratch))
        buckets.fill(slices)
        labels = totals.labels
        if y is None and labels.size:
            y = labels
        store_writer.write_blocks(
            folder,
            buckets.blocks(names),
            y,
            samples=samples,
            dtype=totals.dtype,
            total=totals.n_features,
            progress=progress,
        )


class RowTotals:
    """What slices of rows are together, once `add` has taken them in order."""

    def __init__(self, n_features: int | None = None) -> None:
        self.n_samples = 0
        self._n_features = n_features
        self._span = 0, -1
        self._facts = store_writer.NO_VALUES
        self._labels: list[NDArray[Any]] = []

    def add(self, rows: RowSlice, facts: csc.ValueFacts) -> None:
        """Count some rows, with what is known of their values."""
        lowest, highest = self._span
        self._span = min(lowest, rows.lowest), max(highest, rows.highest)
        self._facts = store_writer.merge_facts(self._facts, facts)
        self._labels.append(rows.y)
        self.n_samples += rows.indptr.size - 1
        if self.n_samples >= 2**31:
            raise DataError("There are more than 2**31 - 1 rows.")

    @property
    def labels(self) -> NDArray[Any]:
        """The labels of all rows; none if these have none."""
        return join_labels(self._labels)

    @property
    def n_features(self) -> int:
        """As given, or else columns up to the last one that has an entry."""
        if self._n_features is not None:
            return self._n_features
        return self._span[1] - self._span[0] + 1

    @property
    def first(self) -> int:
        """Smallest key of a column: index + 1, or 0 if the file is zero-based."""
        return 1 + self._span[0]

    @property
    def dtype(self) -> str:
        """Smallest type that holds every value."""
        return store_writer.smallest_dtype(self._facts)

    def ranges(self, bounds: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
        """First key, and the key after the last, of the ranges between ``bounds``."""
        end = self.first + self.n_features
        inner = np.clip(bounds + 1, self.first, end).tolist()
        return pairwise([self.first, *inner, end])


class ColumnBuckets:
    """Entries of rows in files of a folder, one per range of columns.

    An entry is a key, ``row << 32 | index + 1``, and the bits of its value. The
    bounds of the ranges are quantiles of ``sample``, columns of some entries, of which
    there are about ``n_entries``.
    """

    def __init__(
        self,
        totals: RowTotals,
        sample: NDArray[np.int64],
        n_entries: int,
        memory: int,
        folder: Path,
    ) -> None:
        # The interpreter and its imports count as well: anndata alone takes 100 MB.
        spare = max(memory - psutil.Process().memory_info().rss, memory // 4)
        self._max_entries = max(spare // LIMITS.entry_bytes, 1)
        self._max_columns = max(spare // LIMITS.column_bytes, 1)
        n_buckets = min(n_entries // self._max_entries + 1, _MAX_BUCKETS)
        self._bounds = quantiles(sample, n_buckets)
        self._paths = [folder / str(i) for i in range(self._bounds.size + 1)]
        self.totals = totals

    def fill(self, slices: Iterable[RowSlice]) -> None:
        """First pass: write entries to the files, and add up the rows."""
        totals = self.totals
        with ExitStack() as stack:
            files = [stack.enter_context(open(path, "xb")) for path in self._paths]
            for rows in slices:
                packed = np.empty((rows.values.size, 2), np.int64)
                starts = csc.pack_entries(
                    rows.indptr,
                    rows.indices,
                    rows.values,
                    totals.n_samples,
                    self._bounds,
                    packed,
                )
                for file, (begin, end) in zip(files, pairwise(starts), strict=True):
                    file.write(packed[begin:end])
                totals.add(rows, csc.describe_values(rows.values))

    def blocks(self, names: Sequence[str] | None = None) -> Iterator[Block]:
        """Second pass: sort one bucket after the other, the next one in a thread."""
        totals = self.totals
        dtype = totals.dtype.replace(ONES, "|u1")

        def sort(path: Path, first: int, last: int) -> SparseColumns:
            packed = np.fromfile(path, np.int64).reshape(-1, 2)
            path.unlink()
            return sort_entries(packed, first, last, dtype, totals.n_samples)

        start = 0
        ahead: Future[SparseColumns] | None = None
        with ThreadPoolExecutor(1) as pool:
            for bucket in chain(self._buckets(), [None]):
                sorting, ahead = ahead, bucket and pool.submit(sort, *bucket)
                if sorting is not None:
                    columns = sorting.result()
                    stop = start + columns.shape[1]
                    yield Block(columns, start, names and names[start:stop])
                    start = stop

    def _buckets(self) -> Iterator[tuple[Path, int, int]]:
        """Files, each with its first key and the key after its last."""
        ranges = self.totals.ranges(self._bounds)
        for path, (first, last) in zip(self._paths, ranges, strict=True):
            if first < last:
                yield from self._split(path, first, last)

    def _split(
        self, path: Path, first: int, last: int
    ) -> Iterator[tuple[Path, int, int]]:
        """Divide a bucket that is too large for memory."""
        n_entries = path.stat().st_size // 16
        n_parts = min(n_entries // (2 * self._max_entries) + 1, _MAX_BUCKETS // 2)
        step = max(self._max_columns, -(-(last - first) // _MAX_BUCKETS))
        bounds = np.arange(first, last, step)
        if n_parts > 1:
            sample = _sample_keys(path, n_entries)
            bounds = np.union1d(bounds, quantiles(sample, 2 * n_parts))
        if bounds.size == 1:
            yield path, first, last
            return
        paths = [path.with_suffix(f".{i}") for i in range(bounds.size)]
        with ExitStack() as stack:
            entries = stack.enter_context(open(path, "rb"))
            files = [stack.enter_context(open(part, "xb")) for part in paths]
            while (packed := np.fromfile(entries, np.int64, 1 << 20)).size:
                packed = packed.reshape(-1, 2)
                part = np.searchsorted(bounds, packed[:, 0] & _KEY, "right") - 1
                packed = packed[np.argsort(part, kind="stable")]
                ends = np.cumsum(np.bincount(part, minlength=bounds.size))
                for file, chunk in zip(files, np.split(packed, ends[:-1]), strict=True):
                    file.write(chunk)
        path.unlink()
        for path, (begin, end) in zip(paths, pairwise([*bounds, last]), strict=True):
            yield path, int(begin), int(end)


def quantiles(numbers: NDArray[np.int64], n_parts: int) -> NDArray[np.int64]:
    """Numbers that divide a sample into parts of about the same size."""
    if numbers.size == 0:
        return np.empty(0, np.int64)
    places = np.linspace(0, numbers.size - 1, n_parts + 1)[1:-1].astype(np.int64)
    return np.unique(np.sort(numbers)[places])


def _sample_keys(path: Path, n_entries: int) -> NDArray[np.int64]:
    """Columns of entries from all over a file."""
    begins = np.linspace(0, max(0, n_entries - 1024), 64).astype(np.int64) * 16
    parts = [np.fromfile(path, np.int64, 2048, offset=begin) for begin in begins]
    return np.concatenate(parts)[::2] & _KEY


class TempColumns:
    """Groups of columns that grow by rows, in one unnamed temporary file."""

    def __init__(self, n_parts: int) -> None:
        self.n_parts = n_parts
        self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
        self._size = 0
        self._bounds: list[NDArray[np.int64]] = []

    def append(self, data: NDArray[np.uint8], bounds: NDArray[np.int64]) -> None:
        """Add to each part the bytes between two bounds."""
        advice = (
            "columns are made out of rows in a temporary file, as large as the data. "
            "Make room, or name another folder with TMPDIR"
        )
        with explain_full_disk(tempfile.gettempdir(), advice):
            view = memoryview(data)
            while view:
                view = view[self._file.write(view) or 0 :]
        self._bounds.append(self._size + bounds)
        self._size += data.size

    def read(self, part: int) -> list[bytes]:
        """The bytes that were added to a part, one item per call of `append`."""
        descriptor = self._file.fileno()
        chunks = []
        for bounds in self._bounds:
            begin, end = bounds[part : part + 2].tolist()
            os.lseek(descriptor, begin, os.SEEK_SET)
            chunks.append(os.read(descriptor, end - begin))
            if len(chunks[-1]) != end - begin:
                raise OSError(errno.EIO, "The temporary file has been cut short")
        return chunks
