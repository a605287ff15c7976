"""Square tiles of a matrix turned over in the registers of the processor.

Value by value, to turn a matrix over takes twice as long as to read it from memory.
Numba cannot be brought to use vectors for it, so the instructions are spelled out.
"""

from __future__ import annotations

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, overload

from featstream.jit import INNER, inner

__all__ = ["tile_size", "turn_tile"]

_VECTOR_BYTES = 32
_MOST_ROWS = 16


@inner
def tile_size(itemsize):
    """Rows and columns of a tile of values of so many bytes: a power of two."""
    return min(_MOST_ROWS, _VECTOR_BYTES // itemsize)


def turn_tile(x, i, j, out):
    """Copy the tile of ``x`` that begins at row ``i`` and column ``j``, turned over.

    It goes to row ``j`` and column ``i`` of ``out``. The values of a row must lie one
    after the other, in ``x`` and in ``out``.
    """
    n = tile_size(x.itemsize)
    out[j : j + n, i : i + n] = x[i : i + n, j : j + n].T


@intrinsic
def _turn_tile(typing_context, x, i, j, out):
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
        # Dealt like two halves of a pack of cards, log2(n) times, rows are columns.
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


@overload(turn_tile, jit_options=INNER)
def _compile_turn_tile(x, i, j, out):
    return lambda x, i, j, out: _turn_tile(x, i, j, out)
