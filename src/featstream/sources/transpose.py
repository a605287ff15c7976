"""From rows to columns, out of core: svmlight text to a column store.

The text is parsed once. The entries of each slice of rows are sorted by range of
columns and appended to a scratch file per range (first pass); every range is then
small enough to be put in order in memory, and is written (second pass).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from featstream.errors import DataError, ParameterError
from featstream.kernels.columns import (
    count_columns,
    describe_values,
    pack_entries,
    place_entries,
)
from featstream.protocols import Block, Source, SparseColumns
from featstream.sources._store_writer import (
    NOTHING,
    Progress,
    merge,
    new_folder,
    smallest_dtype,
    write_blocks,
    write_store,
)
from featstream.sources._svmlight_rows import PathLike, Reader, ZeroBased
from featstream.sources.pieces import TextFile
from featstream.sources.store import ONES, StoreSource, open_store

__all__ = ["convert"]

_BYTES_PER_ENTRY = 128  # of memory; 16 on scratch, 12 in order, some ranges in flight
_BYTES_PER_COLUMN = 64
_LEAST_MEMORY = 64 << 20
_MAX_RANGES = 256  # files open at a time
_KEY = 0xFFFFFFFF
_INDEX = re.compile(rb"[ \t]([0-9]{1,10}):")


def convert(
    input: PathLike | Source,
    output: PathLike,
    *,
    y: ArrayLike | None = None,
    memory: int = 2 << 30,
    n_jobs: int | None = None,
    zero_based: ZeroBased = "auto",
    progress: Progress | None = None,
) -> StoreSource:
    r"""Make a column store of a svmlight file or of any source.

    Parameters
    ----------
    input : str, path or Source
        A svmlight file, plain or compressed; or a source of columns.
    output : str or path
        Folder to make, by custom ``NAME.cols``. It appears whole or not at all.
    y : array-like of shape (n_samples,), optional
        The target, for a source; a svmlight file has its own.
    memory : int, default=2 GiB
        Bytes of memory to stay below, the interpreter's own included. Scratch
        files next to ``output`` take 16 bytes an entry.
    n_jobs : int, optional
        Threads; by default one a core.
    zero_based : bool or "auto", default="auto"
        As for `read_svmlight`.
    progress : callable, optional
        Called now and then with the stage ("reading" or "writing"), how much is
        done, and how much there is.

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
        write_store(output, input, y, progress=progress)
        return open_store(output)
    if y is not None:
        raise ParameterError("`y` goes with a source. A svmlight file has its own.")
    with (
        new_folder(output) as folder,
        Reader(input, n_jobs, zero_based, None) as reader,
    ):
        ranges = _Ranges(folder, reader.file, memory)
        try:
            labels = ranges.fill(reader, progress)
            write_blocks(
                folder,
                ranges.blocks(labels.size),
                labels,
                dtype=ranges.dtype,
                total=ranges.n_features,
                progress=progress,
            )
        finally:
            ranges.close()
    return open_store(output)


class _Ranges:
    """Entries of a file, sorted by range of columns, on scratch.

    An entry is a key, ``row << 32 | index + 1``, and the bits of its value.
    """

    def __init__(self, folder: Path, file: TextFile, memory: int) -> None:
        self._folder = folder
        self._max_entries = memory // _BYTES_PER_ENTRY
        self._max_columns = memory // _BYTES_PER_COLUMN
        self._n_files = 0
        self._bounds = self._choose_bounds(file)
        self._files = [self._new_file() for _ in range(self._bounds.size + 1)]
        self._nature = NOTHING
        self._first = 1  # least key of a column: index + 1, or 0 if zero-based
        self.n_features = 0

    def _choose_bounds(self, file: TextFile) -> NDArray[np.int64]:
        """Cut the columns into ranges of about equally many entries."""
        text, scale = file.sample()
        indices = np.array(_INDEX.findall(text), np.bytes_).astype(np.int64)
        n_ranges = min(int(indices.size * scale / self._max_entries) + 1, _MAX_RANGES)
        return _quantiles(indices, n_ranges)

    def _new_file(self) -> IO[bytes]:
        self._n_files += 1
        return open(self._folder / f"{self._n_files}.scratch", "xb")

    @property
    def dtype(self) -> str:
        """Smallest type that holds every value."""
        return smallest_dtype(self._nature)

    def fill(self, reader: Reader, progress: Progress | None) -> NDArray[Any]:
        """First pass: write the entries of a file to scratch; its labels."""
        labels = []
        n_rows = 0
        lowest, highest = 0, -1
        for stop, rows in reader.slices():
            packed = np.empty((rows.values.size, 2), np.int64)
            starts = pack_entries(
                rows.indptr, rows.indices, rows.values, n_rows, self._bounds, packed
            )
            for file, begin, end in zip(self._files, starts, starts[1:], strict=False):
                file.write(packed[begin:end])
            self._nature = merge(self._nature, describe_values(rows.values))
            labels.append(rows.y)
            n_rows += rows.y.size
            if n_rows >= 2**31:
                raise DataError(f"{reader.file.name} has more than 2**31 - 1 rows.")
            lowest, highest = min(lowest, rows.lowest), max(highest, rows.highest)
            if progress is not None:
                progress("reading", stop, reader.file.size)
        self._first = 1 + lowest
        self.n_features = highest - lowest + 1
        for file in self._files:
            file.close()
        return np.concatenate([part for part in labels if part.size] or [np.empty(0)])

    def blocks(self, n_samples: int) -> Iterator[Block]:
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
            return SparseColumns(indptr, rows, values, n_samples)

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

    def close(self) -> None:
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
