"""Columns of a row-major matrix, copied nearly as fast as memory is read.

Value by value that takes several times as long for small values. So they move in words
of eight bytes: two of four bytes, four of two, or eight of one. As many words from as
many rows are a square tile, which is transposed by exchanging halves of words, then
quarters, then eighths.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from featstream.jit import inner, kernel

CHUNK_BYTES = 512
"""Bytes of a row copied at a time: with more, too many pages are written at once."""

CACHE_LINE = 64


def by_column(columns: NDArray[Any]) -> NDArray[Any]:
    """The same values, column-major: as they are, or copied."""
    if columns.flags.f_contiguous:
        return columns
    if not has_whole_rows(columns):
        return np.asfortranarray(columns)
    out = np.empty(columns.shape[::-1], columns.dtype)
    copy_columns(columns, out)
    return out.T


def copy_columns(columns: NDArray[Any], out: NDArray[Any]) -> None:
    """Copy columns into the rows of ``out``; see `has_whole_rows` for ``columns``."""
    size = columns.itemsize
    if size == 8 or sys.byteorder == "big":  # numpy is as fast; words begin elsewhere
        out[:] = columns.T
        return
    n, p = columns.shape
    lanes = 8 // size
    whole_n, whole_p = n - n % lanes, p - p % lanes
    if whole_n and whole_p:
        words = columns[:whole_n, :whole_p].view(np.uint64)
        _KERNELS[size](words, out[:whole_p, :whole_n].view(np.uint64))
    out[whole_p:] = columns[:, whole_p:].T
    out[:whole_p, whole_n:] = columns[whole_n:, :whole_p].T


def aligned(values: NDArray[Any]) -> NDArray[Any]:
    """A copy that begins where a cache line does: a vector never spans two lines."""
    room = np.empty(values.nbytes + CACHE_LINE, np.uint8)
    begin = -room.ctypes.data % CACHE_LINE
    copy = room[begin : begin + values.nbytes].view(values.dtype).reshape(values.shape)
    copy[...] = values
    return copy


def is_by_row(columns: NDArray[Any]) -> bool:
    """Whether neighbours in memory are neighbours in a row."""
    down, across = (abs(stride) for stride in columns.strides)
    return across < down


def has_whole_rows(columns: NDArray[Any]) -> bool:
    """Whether it is row-major, without gaps in the rows, and of a size for kernels."""
    down, across = columns.strides
    size = columns.itemsize
    return size in (1, 2, 4, 8) and across == size < abs(down) and down % size == 0


_TILES = 8
"""Tiles of a row that are transposed before those below: a cache line of words."""

_LOW_32, _LOW_16, _LOW_8 = (
    np.uint64(mask) for mask in (0xFFFFFFFF, 0x0000FFFF0000FFFF, 0x00FF00FF00FF00FF)
)
_32, _16, _8 = np.uint64(32), np.uint64(16), np.uint64(8)


@inner
def _exchange(a, b, shift, low):
    """Exchange the high parts of one word with the low parts of another."""
    parts = ((a >> shift) ^ b) & low
    return a ^ (parts << shift), b ^ parts


@kernel
def _copy_pairs(words, out):
    """Transpose values of four bytes, two in a word."""
    n, width = words.shape
    for first in range(0, width, _TILES):
        for i in range(0, n, 2):
            for j in range(first, min(first + _TILES, width)):
                a, b = _exchange(words[i, j], words[i + 1, j], _32, _LOW_32)
                out[2 * j, i >> 1] = a
                out[2 * j + 1, i >> 1] = b


@kernel
def _copy_fours(words, out):
    """Transpose values of two bytes, four in a word."""
    n, width = words.shape
    for first in range(0, width, _TILES):
        for i in range(0, n, 4):
            for j in range(first, min(first + _TILES, width)):
                a, c = _exchange(words[i, j], words[i + 2, j], _32, _LOW_32)
                b, d = _exchange(words[i + 1, j], words[i + 3, j], _32, _LOW_32)
                a, b = _exchange(a, b, _16, _LOW_16)
                c, d = _exchange(c, d, _16, _LOW_16)
                k = i >> 2
                out[4 * j, k] = a
                out[4 * j + 1, k] = b
                out[4 * j + 2, k] = c
                out[4 * j + 3, k] = d


@kernel
def _copy_eights(words, out):
    """Transpose values of one byte, eight in a word."""
    n, width = words.shape
    for first in range(0, width, _TILES):
        for i in range(0, n, 8):
            for j in range(first, min(first + _TILES, width)):
                a, e = _exchange(words[i, j], words[i + 4, j], _32, _LOW_32)
                b, f = _exchange(words[i + 1, j], words[i + 5, j], _32, _LOW_32)
                c, g = _exchange(words[i + 2, j], words[i + 6, j], _32, _LOW_32)
                d, h = _exchange(words[i + 3, j], words[i + 7, j], _32, _LOW_32)
                a, c = _exchange(a, c, _16, _LOW_16)
                b, d = _exchange(b, d, _16, _LOW_16)
                e, g = _exchange(e, g, _16, _LOW_16)
                f, h = _exchange(f, h, _16, _LOW_16)
                a, b = _exchange(a, b, _8, _LOW_8)
                c, d = _exchange(c, d, _8, _LOW_8)
                e, f = _exchange(e, f, _8, _LOW_8)
                g, h = _exchange(g, h, _8, _LOW_8)
                k = i >> 3
                out[8 * j, k] = a
                out[8 * j + 1, k] = b
                out[8 * j + 2, k] = c
                out[8 * j + 3, k] = d
                out[8 * j + 4, k] = e
                out[8 * j + 5, k] = f
                out[8 * j + 6, k] = g
                out[8 * j + 7, k] = h


_KERNELS = {4: _copy_pairs, 2: _copy_fours, 1: _copy_eights}
