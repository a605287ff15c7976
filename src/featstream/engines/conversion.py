"""A svmlight file made a column store by the tasks of an engine.

Workers parse chunks of the file, each into a scratch file with its entries sorted by
range of columns. Then they merge one range after the other, and this process appends
the ranges to the store. Chunks, their order and every number are those of
`featstream.sources.convert`, and so is the store, to the byte.

Scratch files lie next to the store, on storage that all workers share. A task writes
its file under another name first: it may run twice, or die.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce
from itertools import accumulate, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from featstream.engines.loop import Engine, in_order
from featstream.errors import DataError, printable
from featstream.protocols import Block, SparseColumns
from featstream.sources.kernels.csc_from_rows import (
    ValueFacts,
    describe_values,
    pack_entries,
)
from featstream.sources.open import PathLike
from featstream.sources.rows_to_columns import (
    quantiles,
    sample_entries,
    sort_entries,
)
from featstream.sources.store import ONES, StoreSource, open_store
from featstream.sources.store_writer import (
    NO_VALUES,
    Progress,
    merge_facts,
    new_folder,
    smallest_dtype,
    write_blocks,
)
from featstream.sources.svmlight import ParsedChunk, Reader, ZeroBased, join_labels
from featstream.sources.values import LIMITS

_PER_WORKER = 4
_SHARED = "All workers must see the same files at the same path: use shared storage."


class FileChunk(NamedTuple):
    """Some whole lines of a file.

    ``text`` is None if workers read them themselves: those of a compressed file are
    sent.
    """

    number: int
    begin: int
    stop: int
    text: NDArray[np.uint8] | None


class Input(NamedTuple):
    """What all chunks of a file have in common."""

    path: str
    size: int
    zero_based: ZeroBased
    bounds: NDArray[np.int64]  # first index of every range but the first
    scratch: Path


class ChunkReport(NamedTuple):
    """What is known of a chunk; its entries are in its scratch file.

    ``starts`` says where each range of columns begins and ends there.
    """

    parsed: ParsedChunk
    facts: ValueFacts
    starts: NDArray[np.int64]


def convert_svmlight(
    path: PathLike,
    output: PathLike,
    engine: Engine,
    *,
    memory: int = 2 << 30,
    zero_based: ZeroBased = "auto",
    progress: Progress | None = None,
) -> StoreSource:
    """Make a column store of a svmlight file, on the workers of an engine.

    Parameters
    ----------
    path : str or path
        The file, where all workers see it. A compressed file is decompressed by this
        process.
    output : str or path
        Folder to make, on storage that all workers share.
    engine : Engine
        Such as ``as_engine(client)``.
    memory : int, default=2 GiB
        What a task may use.
    zero_based, progress
        As for `featstream.sources.convert`.

    Returns
    -------
    StoreSource
        The same store, to the byte, that `featstream.sources.convert` makes.
    """
    output = Path(output).absolute()
    n_workers = engine.n_workers
    with (
        new_folder(output) as folder,
        TemporaryDirectory(
            dir=output.parent, prefix=f".{output.name}.", ignore_cleanup_errors=True
        ) as scratch,
        Reader(path, 1, zero_based, None) as reader,
    ):
        sample, n_entries = sample_entries(reader)
        n_ranges = n_entries * LIMITS.entry_bytes // memory + _PER_WORKER * n_workers
        given = Input(
            os.path.abspath(path),
            reader.file.size,
            zero_based,
            quantiles(sample, n_ranges),
            Path(scratch),
        )
        found = in_order(
            engine,
            _chunks(reader),
            lambda chunk, n_ahead: engine.submit(parse_chunk, given, chunk),
            first=2 * n_workers,
            most=2 * n_workers,
        )
        reports = list(_checked(reader, found, progress))
        labels = join_labels([report.parsed.rows.y for report in reports])
        whole = Whole.of(reports)
        write_blocks(
            folder,
            _merge(engine, given, reports, whole),
            labels,
            dtype=whole.dtype,
            total=whole.n_features,
            progress=progress,
        )
    return open_store(output)


def _chunks(reader: Reader) -> Iterator[FileChunk]:
    begin, is_compressed = 0, reader.file.is_compressed
    for number, (text, stop) in enumerate(reader.file.line_chunks()):
        yield FileChunk(number, begin, stop, np.array(text) if is_compressed else None)
        begin = stop


def _checked(
    reader: Reader, found: Iterator[tuple[FileChunk, Any]], progress: Progress | None
) -> Iterator[ChunkReport]:
    """The reports in order; raises the first failure in the order of the file."""
    for chunk, report in found:
        reader.check(report.parsed)
        if progress is not None:
            progress("reading", chunk.stop, reader.file.size)
        yield report


def parse_chunk(given: Input, chunk: FileChunk) -> ChunkReport:
    """Parse some lines, and write their entries to a scratch file."""
    try:
        reader = Reader(given.path, 1, given.zero_based, None)
    except OSError as error:
        raise DataError(f"{error}. {_SHARED}") from error
    with reader:
        if reader.file.size != given.size or not given.scratch.is_dir():
            raise DataError(
                f"A worker sees another {printable(given.path, limit=400)} than the "
                f"driver, or does not see the folder of the store. {_SHARED}"
            )
        text = chunk.text
        if text is None:
            text = reader.file.lines_between(chunk.begin, chunk.stop)
        parsed = reader.parse(text)
    rows = parsed.rows
    packed = np.empty((rows.values.size, 2), np.int64)
    starts = pack_entries(
        rows.indptr, rows.indices, rows.values, 0, given.bounds, packed
    )
    with _new_file(given.scratch / f"{chunk.number}.npy") as file:
        np.save(file, packed[: starts[-1]], allow_pickle=False)
    facts = ValueFacts(*describe_values(rows.values))
    light = replace(rows, indices=rows.indices[:0], values=rows.values[:0])
    return ChunkReport(parsed._replace(rows=light), facts, starts)


class Whole(NamedTuple):
    """What the chunks of a file are together.

    ``first`` is the smallest key of a column, index + 1, or 0 if it is zero-based.
    """

    dtype: str
    first: int
    n_features: int
    first_rows: list[int]
    n_samples: int

    @classmethod
    def of(cls, reports: Sequence[ChunkReport]) -> Whole:
        """Add up the chunks, in order."""
        rows = [report.parsed.rows for report in reports]
        facts = reduce(merge_facts, (report.facts for report in reports), NO_VALUES)
        lowest = min([0, *(r.lowest for r in rows)])
        highest = max([-1, *(r.highest for r in rows)])
        *first_rows, n_samples = accumulate(
            (r.indptr.size - 1 for r in rows), initial=0
        )
        if n_samples >= 2**31:
            raise DataError("There are more than 2**31 - 1 rows.")
        dtype = smallest_dtype(facts)
        return cls(dtype, 1 + lowest, highest - lowest + 1, first_rows, n_samples)


class ColumnRange(NamedTuple):
    """Columns from one key up to another, and where their entries are.

    Each of ``places`` is the number of a chunk, where the range begins and ends in
    its scratch file, and the first row of the chunk.
    """

    first: int
    last: int
    places: list[tuple[int, int, int, int]]


def _merge(
    engine: Engine, given: Input, reports: Sequence[ChunkReport], whole: Whole
) -> Iterator[Block]:
    """The columns of the store, range by range."""
    end = whole.first + whole.n_features
    bounds = np.clip(given.bounds + 1, whole.first, end).tolist()
    starts = [report.starts.tolist() for report in reports]
    ranges = (
        ColumnRange(
            first,
            last,
            [
                (number, own[i], own[i + 1], row)
                for number, (own, row) in enumerate(
                    zip(starts, whole.first_rows, strict=True)
                )
                if own[i] < own[i + 1]
            ],
        )
        for i, (first, last) in enumerate(pairwise([whole.first, *bounds, end]))
        if first < last
    )
    dtype = whole.dtype.replace(ONES, "|u1")
    for columns, path in in_order(
        engine,
        ranges,
        lambda columns, n_ahead: engine.submit(
            merge_range, given.scratch, columns, dtype, whole.n_samples
        ),
        first=engine.n_workers + 1,
        most=engine.n_workers + 1,
    ):
        with np.load(path, allow_pickle=False) as arrays:
            stored = SparseColumns(
                arrays["indptr"], arrays["rows"], arrays["values"], whole.n_samples
            )
        path.unlink()
        yield Block(stored, columns.first - whole.first)


def merge_range(
    scratch: Path, columns: ColumnRange, dtype: str, n_samples: int
) -> Path:
    """Put the columns of a range together; returns the file that holds them."""
    parts = [np.empty((0, 2), np.int64)]
    for number, begin, end, row in columns.places:
        entries = np.load(scratch / f"{number}.npy", mmap_mode="r", allow_pickle=False)
        part = np.array(entries[begin:end])
        part[:, 0] += row << 32
        parts.append(part)
    packed = np.concatenate(parts)
    found = sort_entries(packed, columns.first, columns.last, dtype, n_samples)
    path = scratch / f"columns-{columns.first}.npz"
    with _new_file(path) as file:
        np.savez(file, indptr=found.indptr, rows=found.rows, values=found.values)
    return path


@contextmanager
def _new_file(path: Path) -> Iterator[IO[bytes]]:
    """A file that takes its name when it is complete."""
    other = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    with open(other, "xb") as file:
        yield file
    os.replace(other, path)
