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
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from featstream.engines.loop import Engine, in_order
from featstream.errors import DataError, printable
from featstream.protocols import Block, SparseColumns
from featstream.sources.kernels import csc_from_rows as csc
from featstream.sources.open import PathLike
from featstream.sources.rows_to_columns import (
    RowTotals,
    quantiles,
    sample_entries,
    sort_entries,
)
from featstream.sources.store import ONES, StoreSource, open_store
from featstream.sources.store_writer import Progress, new_folder, write_blocks
from featstream.sources.svmlight import ParsedChunk, Reader, ZeroBased
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


Place: TypeAlias = tuple[int, int, int, int]
"""Number of a chunk, where a range begins and ends in its scratch file, first row."""


class ChunkReport(NamedTuple):
    """What is known of a chunk; its entries are in its scratch file.

    ``starts`` says where each range of columns begins and ends there.
    """

    parsed: ParsedChunk
    facts: csc.ValueFacts
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
        reader.limits_columns = True
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
        totals, starts, first_rows = RowTotals(), [], []
        for chunk, report in found:
            reader.check(report.parsed)
            starts.append(report.starts.tolist())
            first_rows.append(totals.n_samples)
            totals.add(report.parsed.rows, report.facts)
            if progress is not None:
                progress("reading", chunk.stop, reader.file.size)
        write_blocks(
            folder,
            _merge(engine, given, totals, starts, first_rows),
            totals.labels,
            dtype=totals.dtype,
            total=totals.n_features,
            progress=progress,
        )
    return open_store(output)


def _chunks(reader: Reader) -> Iterator[FileChunk]:
    begin, is_compressed = 0, reader.file.is_compressed
    for number, (text, stop) in enumerate(reader.file.line_chunks()):
        yield FileChunk(number, begin, stop, np.array(text) if is_compressed else None)
        begin = stop


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
    starts = csc.pack_entries(
        rows.indptr, rows.indices, rows.values, 0, given.bounds, packed
    )
    with _new_file(given.scratch / f"{chunk.number}.npy") as file:
        np.save(file, packed[: starts[-1]], allow_pickle=False)
    facts = csc.ValueFacts(*csc.describe_values(rows.values))
    light = replace(rows, indices=rows.indices[:0], values=rows.values[:0])
    return ChunkReport(parsed._replace(rows=light), facts, starts)


def _merge(
    engine: Engine,
    given: Input,
    totals: RowTotals,
    starts: Sequence[Sequence[int]],
    first_rows: Sequence[int],
) -> Iterator[Block]:
    """The columns of the store, range by range; ``starts`` of each chunk."""
    dtype = totals.dtype.replace(ONES, "|u1")

    def merge(keys: tuple[int, int, int], n_ahead: int) -> Any:
        i, first, last = keys
        places: list[Place] = [
            (number, own[i], own[i + 1], row)
            for number, (own, row) in enumerate(zip(starts, first_rows, strict=True))
            if own[i] < own[i + 1]
        ]
        given_range = places, first, last, dtype, totals.n_samples
        return engine.submit(merge_range, given.scratch, *given_range)

    ranges = enumerate(totals.ranges(given.bounds))
    keys = ((i, first, last) for i, (first, last) in ranges if first < last)
    n_ahead = engine.n_workers + 1
    for (_, first, _), path in in_order(
        engine, keys, merge, first=n_ahead, most=n_ahead
    ):
        with np.load(path, allow_pickle=False) as arrays:
            stored = SparseColumns(
                arrays["indptr"], arrays["rows"], arrays["values"], totals.n_samples
            )
        path.unlink()
        yield Block(stored, first - totals.first)


def merge_range(
    scratch: Path,
    places: list[Place],
    first: int,
    last: int,
    dtype: str,
    n_samples: int,
) -> Path:
    """Put the columns of a range together; returns the file that holds them."""
    parts = [np.empty((0, 2), np.int64)]
    for number, begin, end, row in places:
        entries = np.load(scratch / f"{number}.npy", mmap_mode="r", allow_pickle=False)
        part = np.array(entries[begin:end])
        part[:, 0] += row << 32
        parts.append(part)
    found = sort_entries(np.concatenate(parts), first, last, dtype, n_samples)
    path = scratch / f"columns-{first}.npz"
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
