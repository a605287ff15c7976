"""Making a column store of anything: of rows, out of core."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from featstream.errors import ParameterError
from featstream.protocols import Source
from featstream.sources._ranges import Ranges
from featstream.sources._svmlight_rows import PathLike, Reader, RowSlice, ZeroBased
from featstream.sources.compressed import RowsSource
from featstream.sources.store import StoreSource, open_store
from featstream.sources.store_writer import (
    Progress,
    new_folder,
    write_blocks,
    write_store,
)

__all__ = ["convert"]

_LEAST_MEMORY = 64 << 20
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
    if isinstance(input, RowsSource):
        input.write(output, y, memory=memory, progress=progress)
        return open_store(output)
    if isinstance(input, Source):
        write_store(output, input, y, progress=progress)
        return open_store(output)
    if y is not None:
        raise ParameterError("`y` goes with a source. A svmlight file has its own.")
    with (
        new_folder(output) as folder,
        Reader(input, n_jobs, zero_based, None) as reader,
    ):
        text, scale = reader.file.sample()
        sample = np.array(_INDEX.findall(text), np.bytes_).astype(np.int64)
        labels: list[NDArray[Any]] = []
        with Ranges(folder, sample, int(sample.size * scale), memory) as ranges:
            ranges.fill(_slices(reader, labels, progress))
            y = np.concatenate([p for p in labels if p.size] or [np.empty(0)])
            write_blocks(
                folder,
                ranges.blocks(),
                y,
                dtype=ranges.dtype,
                total=ranges.n_features,
                progress=progress,
            )
    return open_store(output)


def _slices(
    reader: Reader, labels: list[NDArray[Any]], progress: Progress | None
) -> Iterator[RowSlice]:
    """The rows of a file; its labels are put into the list."""
    for stop, rows in reader.slices():
        labels.append(rows.y)
        yield rows
        if progress is not None:
            progress("reading", stop, reader.file.size)
