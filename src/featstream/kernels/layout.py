"""Copy the columns of a row-major block."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from featstream.jit import inner_jit, jit
from featstream.kernels.prefetch import CACHE_LINE, prefetch
from featstream.kernels.tiles import tile_size, turn_tile

__all__ = [
    "PANEL_BYTES",
    "by_column",
    "copy_columns",
    "copy_panel",
    "has_whole_rows",
    "is_by_row",
]

PANEL_BYTES = 512
"""Of each row at a time: more, and the pages written to are too many at once."""


def by_column(columns: NDArray[Any]) -> NDArray[Any]:
    """The same values, column-major: as they are, or copied.

    Parameters
    ----------
    columns : ndarray of shape (n_samples, n_columns)
        In any layout.

    Returns
    -------
    ndarray of shape (n_samples, n_columns)
        Column-major.
    """
    if columns.flags.f_contiguous:
        return columns
    if columns.itemsize == 8 or not has_whole_rows(columns):
        return np.asfortranarray(columns)  # as fast as the kernel for 8 bytes
    # Bits are moved, so one kernel for each size serves every dtype.
    bits = np.dtype(f"u{columns.itemsize}")
    out = np.empty(columns.shape[::-1], columns.dtype)
    copy_columns(columns.view(bits), out.view(bits))
    return out.T


def is_by_row(columns: NDArray[Any]) -> bool:
    """Whether neighbours in memory are neighbours in a row."""
    down, across = (abs(stride) for stride in columns.strides)
    return across < down


def has_whole_rows(columns: NDArray[Any]) -> bool:
    """Whether it is row-major, without gaps in the rows, and of a size for kernels."""
    down, across = columns.strides
    size = columns.itemsize
    return size in (1, 2, 4, 8) and across == size < abs(down) and down % size == 0


@jit
def copy_columns(x: Any, out: Any) -> None:
    """Copy the columns of ``x`` into the rows of ``out``.

    Parameters
    ----------
    x : ndarray of shape (n_samples, n_columns)
        Read only; as `has_whole_rows` wants it.
    out : ndarray of shape (n_columns, n_samples), row-major
        Written to. Its transpose is the column-major block.
    """
    width = PANEL_BYTES // x.itemsize
    for start in range(0, x.shape[1], width):
        stop = min(start + width, x.shape[1])
        copy_panel(x[:, start:stop], out[start:stop])


@inner_jit
def copy_panel(x: Any, out: Any) -> None:
    """The same for as many columns as `PANEL_BYTES` of a row hold, or fewer.

    Tiles are turned over until a cache line of ``out`` is full, and the rows after
    the next are asked for ahead: memory is read as fast as if nothing was done.
    """
    n, p = x.shape
    across, line = x.strides[0] // x.itemsize, CACHE_LINE // x.itemsize
    tile = tile_size(x.itemsize)
    tiled_n, tiled_p = n - n % line, p - p % tile
    for i in range(0, tiled_n, line):
        for j in range(0, tiled_p, tile):
            if j % line == 0:
                for a in range(i + 2 * line, i + 3 * line):
                    prefetch(x, a * across + j)
            for k in range(i, i + line, tile):
                turn_tile(x, k, j, out)
        for a in range(i, i + line):
            for j in range(tiled_p, p):
                out[j, a] = x[a, j]
    for i in range(tiled_n, n):
        for j in range(p):
            out[j, i] = x[i, j]
