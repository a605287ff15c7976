"""Columns of a row-major matrix, copied as fast as memory is read.

Small square tiles are transposed in CPU registers: value by value it would take
twice as long as reading the matrix. Numba cannot be brought to use vectors for
that, nor to prefetch, so both are written as instructions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, overload
from numpy.typing import NDArray

from featstream.jit import INNER, inner, inner_jit, jit

CHUNK_BYTES = 512
"""Bytes of a row copied at a time: with more, too many pages are written at once."""

AHEAD_BYTES = 6144
"""How far ahead to prefetch: the best of the distances tried, from 4 to 32 KiB."""

CACHE_LINE = 64
_VECTOR_BYTES = 32
_MOST_ROWS = 16


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
    if columns.itemsize == 8:
        out[:] = columns.T  # numpy is as fast
    else:
        # Bits are moved, so one kernel per size serves every dtype.
        bits = np.dtype(f"u{columns.itemsize}")
        _copy_columns(columns.view(bits), out.view(bits))


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


@jit
def _copy_columns(x: Any, out: Any) -> None:
    width = CHUNK_BYTES // x.itemsize
    for start in range(0, x.shape[1], width):
        stop = min(start + width, x.shape[1])
        _copy_chunk(x[:, start:stop], out[start:stop])


@inner_jit
def _copy_chunk(x: Any, out: Any) -> None:
    """The same for as many columns as `CHUNK_BYTES` of a row hold, or fewer.

    Tiles are transposed until a cache line of ``out`` is full, and the rows after
    the next are prefetched: it takes no longer than reading the memory.
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
                transpose_tile(x, k, j, out)
        for a in range(i, i + line):
            for j in range(tiled_p, p):
                out[j, a] = x[a, j]
    for i in range(tiled_n, n):
        for j in range(p):
            out[j, i] = x[i, j]


def prefetch(array, position):
    """Bring the cache line of ``array[position]`` into the caches; nothing is read.

    The processor's own prefetching stops at the end of a page, which is about the
    length of a column of a thousand values. A kernel that reads a block once,
    column after column, is a third faster if it asks for the next column while it
    sums this one. The position may lie beyond the array.
    """


@intrinsic
def _prefetch(typing_context, array, position):
    def generate(context, builder, signature, arguments):
        values = context.make_array(signature.args[0])(context, builder, arguments[0])
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        address = builder.bitcast(builder.gep(values.data, [arguments[1]]), byte)
        kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        function = cgutils.get_or_insert_function(
            builder.module, kind, "llvm.prefetch.p0"
        )
        to_read, into_all_caches, of_data = (ir.Constant(word, k) for k in (0, 3, 1))
        builder.call(function, [address, to_read, into_all_caches, of_data])
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


@overload(prefetch, jit_options=INNER)
def _compile_prefetch(array, position):
    return lambda array, position: _prefetch(array, position)


@inner
def tile_size(itemsize):
    """Rows and columns of a tile of values of that many bytes: a power of two."""
    return min(_MOST_ROWS, _VECTOR_BYTES // itemsize)


def transpose_tile(x, i, j, out):
    """Copy the tile at row ``i`` and column ``j`` of ``x``, transposed, to ``out``.

    It goes to row ``j`` and column ``i``. The values of a row must lie one after
    the other, in ``x`` and in ``out``.
    """
    n = tile_size(x.itemsize)
    out[j : j + n, i : i + n] = x[i : i + n, j : j + n].T


@intrinsic
def _transpose_tile(typing_context, x, i, j, out):
    itemsize = x.dtype.bitwidth // 8
    n = min(_MOST_ROWS, _VECTOR_BYTES // itemsize)

    def generate(context, builder, signature, arguments):
        vector = ir.VectorType(ir.IntType(8 * itemsize), n).as_pointer()

        def lines(array, kind, row, column):
            """Where the lines of a tile begin."""
            found = context.make_array(kind)(context, builder, array)
            down = cgutils.unpack_tuple(builder, found.strides, 2)[0]
            size = ir.Constant(down.type, itemsize)
            place = builder.add(builder.mul(row, down), builder.mul(column, size))
            data = builder.bitcast(found.data, ir.IntType(8).as_pointer())
            for _ in range(n):
                yield builder.bitcast(builder.gep(data, [place]), vector)
                place = builder.add(place, down)

        x, i, j, out = arguments
        kinds = signature.args[0], signature.args[3]
        rows = [builder.load(p, align=itemsize) for p in lines(x, kinds[0], i, j)]
        # log2(n) perfect shuffles transpose the tile.
        for _ in range(n.bit_length() - 1):
            rows = [
                _interleave(builder, rows[r // 2], rows[r // 2 + n // 2], r % 2)
                for r in range(n)
            ]
        for row, place in zip(rows, lines(out, kinds[1], j, i), strict=True):
            builder.store(row, place, align=itemsize)
        return context.get_dummy_value()

    return types.void(x, types.int64, types.int64, out), generate


def _interleave(builder, a, b, half):
    """The first or second halves of two vectors, alternating."""
    n = a.type.count
    order = [
        k + side for k in range(half * n // 2, (half + 1) * n // 2) for side in (0, n)
    ]
    mask = ir.Constant(ir.VectorType(ir.IntType(32), n), order)
    return builder.shuffle_vector(a, b, mask)


@overload(transpose_tile, jit_options=INNER)
def _compile_transpose_tile(x, i, j, out):
    return lambda x, i, j, out: _transpose_tile(x, i, j, out)
