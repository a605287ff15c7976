"""Arrays of Dask: columns that a cluster, or this process, computes when needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import sparse

from featstream.errors import DataError
from featstream.protocols import Block, IntArray
from featstream.sources.memory import SizedSource, moved
from featstream.sources.open import as_source
from featstream.sources.values import check_dimensions

_BLOCK_BYTES = 1 << 26
_SPARSE_WIDTH = 1 << 14


class DaskArraySource(SizedSource):
    """The columns of a dask.array, some chunks at a time.

    A block has all rows of some columns; they are computed when the block is read, by
    the scheduler that Dask uses at that time. Arrays with all rows in a chunk are best.
    Of others, a block is put together from its part of every chunk of rows: on a
    cluster this is done once for all blocks if the array fits there, and otherwise
    the chunks are computed again for every block.

    Parameters
    ----------
    array : dask.array.Array of shape (n_samples, n_features)
        Chunks may be arrays of numpy or sparse matrices of scipy.

    Examples
    --------
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
        self._array = array
        shape = check_dimensions(tuple(array.shape))
        super().__init__(shape, about=array.dtype)
        self._ends = np.concatenate(
            [
                np.append(np.arange(end - size, end, self._width())[1:], end)
                for end, size in zip(
                    np.cumsum(array.chunks[1]), array.chunks[1], strict=True
                )
            ]
        )
        self._about = f"{array.dtype}, {self._ends.size:,} blocks"

    def _width(self) -> int:
        """Columns of a block: one chunk of rows may have all columns."""
        if sparse.issparse(self._array._meta):
            return _SPARSE_WIDTH
        column_bytes: int = self.n_samples * self._array.dtype.itemsize
        return max(1, _BLOCK_BYTES // column_bytes)

    def by_column(self, hold: Callable[[Any], Any]) -> DaskArraySource:
        """The same with all rows in a chunk, if ``hold`` has room for that."""
        if len(self._array.chunks[0]) == 1:
            return self
        widths = tuple(np.diff(self._ends, prepend=0).tolist())
        held = hold(self._array.rechunk((-1, widths)))
        return self if held is None else DaskArraySource(held)

    def lazy(self, positions: range | IntArray) -> Any:
        """Some columns as an array of Dask."""
        if isinstance(positions, range):
            return self._array[:, positions.start : positions.stop]
        return self._array[:, positions]

    def blocks(self, start: int = 0) -> Iterator[Block]:
        """Yield the columns from position ``start`` on."""
        for end in self._ends[self._ends > start].tolist():
            yield from self._compute(range(start, end), start)
            start = end

    def blocks_at(self, positions: IntArray, start: int = 0) -> Iterator[Block]:
        """Yield the columns at these positions, in this order, from ``start`` on."""
        width = max(1, int(np.diff(self._ends, prepend=0).max()))
        for first in range(start, positions.size, width):
            yield from self._compute(positions[first : first + width], first)

    def _compute(self, positions: range | IntArray, first: int) -> Iterator[Block]:
        yield from moved(as_source(self.lazy(positions).compute()).blocks(), first)
