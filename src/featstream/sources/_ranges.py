"""Entries that come by rows and are wanted by columns, out of core.

The entries of each slice of rows are sorted by range of columns and appended to a
scratch file per range (first pass); every range is then small enough to be put in
order in memory, and is written (second pass).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from featstream.errors import DataError
from featstream.protocols import Block, SparseColumns
from featstream.sources._svmlight_rows import RowSlice
from featstream.sources.kernels.csc_from_rows import (
    count_columns,
    describe_values,
    pack_entries,
    place_entries,
)
from featstream.sources.store import ONES
from featstream.sources.store_writer import NOTHING, merge, smallest_dtype

__all__ = ["Ranges"]

_BYTES_PER_ENTRY = 128  # of memory; 16 on scratch, 12 in order, some ranges in flight
_BYTES_PER_COLUMN = 64
_MAX_RANGES = 256  # files open at a time
_KEY = 0xFFFFFFFF


class Ranges:
    """Entries of rows, sorted by range of columns, on scratch.

    An entry is a key, ``row << 32 | index + 1``, and the bits of its value.

    Parameters
    ----------
    folder : Path
        Where the scratch files are made.
    sample : ndarray of int64
        Columns of some entries.
    n_entries : int
        About how many there are.
    memory : int
        Bytes to stay below.
    """

    def __init__(
        self, folder: Path, sample: NDArray[np.int64], n_entries: int, memory: int
    ) -> None:
        self._folder = folder
        self._max_entries = memory // _BYTES_PER_ENTRY
        self._max_columns = memory // _BYTES_PER_COLUMN
        self._n_files = 0
        # Of about equally many entries each, going by the sample.
        n_ranges = min(n_entries // self._max_entries + 1, _MAX_RANGES)
        self._bounds = _quantiles(sample, n_ranges)
        self._files = [self._new_file() for _ in range(self._bounds.size + 1)]
        self._nature = NOTHING
        self._first = 1  # least key of a column: index + 1, or 0 if zero-based
        self.n_samples = 0
        self.n_features = 0

    def _new_file(self) -> IO[bytes]:
        self._n_files += 1
        return open(self._folder / f"{self._n_files}.scratch", "xb")

    @property
    def dtype(self) -> str:
        """Smallest type that holds every value."""
        return smallest_dtype(self._nature)

    def fill(self, slices: Iterable[RowSlice], n_features: int | None = None) -> None:
        """First pass: write the entries of rows to scratch.

        There are as many columns as the entries ask for, if they are not counted.
        """
        lowest, highest = 0, -1
        for rows in slices:
            packed = np.empty((rows.values.size, 2), np.int64)
            starts = pack_entries(
                rows.indptr,
                rows.indices,
                rows.values,
                self.n_samples,
                self._bounds,
                packed,
            )
            for file, begin, end in zip(self._files, starts, starts[1:], strict=False):
                file.write(packed[begin:end])
            self._nature = merge(self._nature, describe_values(rows.values))
            self.n_samples += rows.indptr.size - 1
            if self.n_samples >= 2**31:
                raise DataError("There are more than 2**31 - 1 rows.")
            lowest, highest = min(lowest, rows.lowest), max(highest, rows.highest)
        self._first = 1 + lowest
        self.n_features = highest - lowest + 1 if n_features is None else n_features
        for file in self._files:
            file.close()

    def blocks(self) -> Iterator[Block]:
        """Second pass: put one range after the other in order, the next one ahead."""
        dtype = self.dtype.replace(ONES, "|u1")

        def sort(path: Path, first: int, last: int) -> SparseColumns:
            packed = np.fromfile(path, np.int64).reshape(-1, 2)
            path.unlink()
            indptr = np.zeros(last - first + 1, np.int64)
            count_columns(packed, first, indptr[1:])
            np.cumsum(indptr, out=indptr)
            rows = np.empty(packed.shape[0], np.int32)
            values = np.empty(packed.shape[0], dtype)
            place_entries(packed, first, indptr[:-1].copy(), rows, values)
            return SparseColumns(indptr, rows, values, self.n_samples)

        with ThreadPoolExecutor(1) as pool:
            start = 0
            waiting: Future[SparseColumns] | None = None
            for part in self._parts():
                ahead = pool.submit(sort, *part)
                if waiting is not None:
                    columns = waiting.result()
                    yield Block(columns, start)
                    start += columns.shape[1]
                waiting = ahead
            if waiting is not None:
                yield Block(waiting.result(), start)

    def _parts(self) -> Iterator[tuple[Path, int, int]]:
        """Scratch files with their first key and the one after the last."""
        end = self._first + self.n_features
        firsts = np.clip(self._bounds + 1, self._first, end).tolist()
        for file, first, last in zip(
            self._files, [self._first, *firsts], [*firsts, end], strict=True
        ):
            if first < last:
                yield from self._split(Path(file.name), first, last)

    def _split(
        self, path: Path, first: int, last: int
    ) -> Iterator[tuple[Path, int, int]]:
        """Cut a range that came out too large into some that are not."""
        n_entries = path.stat().st_size // 16
        n_parts = min(n_entries // (2 * self._max_entries) + 1, _MAX_RANGES // 2)
        step = max(self._max_columns, -(-(last - first) // _MAX_RANGES))
        bounds = np.arange(first, last, step)
        if n_parts > 1:
            sample = _sample_keys(path, n_entries)
            bounds = np.union1d(bounds, _quantiles(sample, 2 * n_parts))
        if bounds.size == 1:
            yield path, first, last
            return
        parts = [self._new_file() for _ in bounds]
        with open(path, "rb") as file:
            while (packed := np.fromfile(file, np.int64, 1 << 20).reshape(-1, 2)).size:
                part = np.searchsorted(bounds, packed[:, 0] & _KEY, "right") - 1
                packed = packed[np.argsort(part, kind="stable")]
                ends = np.cumsum(np.bincount(part, minlength=bounds.size))
                for out, piece in zip(parts, np.split(packed, ends[:-1]), strict=True):
                    out.write(piece)
        path.unlink()
        for out, begin, end in zip(parts, bounds, [*bounds[1:], last], strict=True):
            out.close()
            yield Path(out.name), int(begin), int(end)

    def __enter__(self) -> Ranges:
        return self

    def __exit__(self, *_: object) -> None:
        """Close and remove what is left of the scratch files."""
        for file in self._files:
            file.close()
        for path in self._folder.glob("*.scratch"):
            path.unlink()


def _quantiles(numbers: NDArray[np.int64], n_parts: int) -> NDArray[np.int64]:
    """Numbers that cut a sample into parts of about the same size."""
    if numbers.size == 0:
        return np.empty(0, np.int64)
    places = np.linspace(0, numbers.size - 1, n_parts + 1)[1:-1].astype(np.int64)
    return np.unique(np.sort(numbers)[places])


def _sample_keys(path: Path, n_entries: int) -> NDArray[np.int64]:
    """Columns of entries from all over a scratch file."""
    begins = np.linspace(0, max(0, n_entries - 1024), 64).astype(np.int64) * 16
    parts = [np.fromfile(path, np.int64, 2048, offset=begin) for begin in begins]
    return np.concatenate(parts)[::2] & _KEY
