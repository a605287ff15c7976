"""Sums over columns in a fixed order, in vector registers.

A sum runs in `LANES` interleaved partial sums, which are added in a fixed order: it is
vectorised, and the same for all block sizes, threads and machines. Numba keeps partial
sums in memory, which takes half as long again. So the loops over a column are written
as instructions for `WIDTH` lanes at a time, with products that are rounded once, as
part of the sum.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba.core import cgutils, errors, types
from numba.extending import intrinsic, overload

from featstream.jit import INNER, inner
from featstream.sources.kernels.transpose import AHEAD_BYTES, CACHE_LINE, prefetch

LANES, WIDTH = 64, 16
_VECTOR = ir.VectorType(ir.DoubleType(), WIDTH)


@inner
def sum_deviations(column, pivot, weight, lanes):
    """Fill lanes: of the deviations, of their squares, and times the weights."""
    n, line = column.size, CACHE_LINE // column.itemsize
    whole, ahead = n - n % LANES, AHEAD_BYTES // column.itemsize
    for k in range(0, LANES, WIDTH):
        for r in range(n * k // LANES, n * (k + WIDTH) // LANES, line):
            prefetch(column, ahead + r)
        fill_deviations(column[:whole], pivot, weight, lanes, k)
    for r in range(whole, n):
        deviation = np.float64(column[r]) - pivot
        lanes[0, r - whole] += deviation
        lanes[1, r - whole] += deviation * deviation
        lanes[2, r - whole] += deviation * weight[r]


@inner
def dot(a, b, lanes):
    """Sum of products of deviations."""
    n = a.size
    whole = n - n % LANES
    for k in range(0, LANES, WIDTH):
        fill_products(a[:whole], b, lanes, k)
    for r in range(whole, n):
        lanes[0, r - whole] += a[r] * b[r]
    return fold(lanes[0])


@inner
def fold(lanes):
    """Add the lanes pairwise, in a fixed order: those 32 apart first, 1 apart last."""
    for k in range(8):
        even = (lanes[k] + lanes[k + 32]) + (lanes[k + 16] + lanes[k + 48])
        odd = (lanes[k + 8] + lanes[k + 40]) + (lanes[k + 24] + lanes[k + 56])
        lanes[k] = even + odd
    even = (lanes[0] + lanes[4]) + (lanes[2] + lanes[6])
    odd = (lanes[1] + lanes[5]) + (lanes[3] + lanes[7])
    return even + odd


def fill_deviations(column, pivot, weight, lanes, k):
    """Fill `WIDTH` lanes from ``k`` on of the three sums of `sum_deviations`.

    The length of the column is a multiple of `LANES`.
    """
    deviations = column.astype(np.float64) - pivot
    factors = np.ones(column.size), deviations, weight
    for sums, factor in zip(lanes, factors, strict=True):
        fill_products(deviations, factor, sums[None, :], k)


def fill_products(a, b, lanes, k):
    """The same for the products of two columns."""
    products = (a * b[: a.size]).reshape(-1, LANES)[:, k : k + WIDTH]
    lanes[0, k : k + WIDTH] = products.sum(axis=0)


def _loop(context, builder, signature, arguments, n_columns, n_sums, step):
    """Run ``step`` along columns, and store the sums that it returns.

    The first ``n_columns`` arrays of the arguments are columns, the next are lanes.
    ``step`` gets vectors of the columns, and the sums so far.
    """
    arrays = [
        (kind.dtype, context.make_array(kind)(context, builder, argument))
        for kind, argument in zip(signature.args, arguments, strict=True)
        if isinstance(kind, types.Array)
    ]
    columns, (_, lanes), first = arrays[:n_columns], arrays[n_columns], arguments[-1]

    def address(array, place, kind):
        vector = ir.VectorType(kind, WIDTH).as_pointer()
        return builder.bitcast(builder.gep(array.data, [place]), vector)

    def load(dtype, array, place):
        """Values of a column as numbers in double precision."""
        kind = context.get_data_type(dtype)
        size = context.get_abi_sizeof(kind)
        values = builder.load(address(array, place, kind), align=size)
        if isinstance(dtype, types.Float):
            return values if size == 8 else builder.fpext(values, _VECTOR)
        convert = builder.sitofp if getattr(dtype, "signed", False) else builder.uitofp
        return convert(values, _VECTOR)

    sums = [cgutils.alloca_once(builder, _VECTOR) for _ in range(n_sums)]
    for total in sums:
        builder.store(ir.Constant(_VECTOR, [0.0] * WIDTH), total)
    (stop,) = cgutils.unpack_tuple(builder, columns[0][1].shape, 1)
    word = first.type
    stride = ir.Constant(word, LANES)
    with cgutils.for_range_slice(builder, first, stop, stride, word) as (place, _):
        vectors = [load(*column, place) for column in columns]
        found = step(vectors, [builder.load(total) for total in sums])
        for total, vector in zip(sums, found, strict=True):
            builder.store(vector, total)
    for t, total in enumerate(sums):
        place = builder.add(first, ir.Constant(word, t * LANES))
        where = address(lanes, place, ir.DoubleType())
        builder.store(builder.load(total), where, align=8)
    return context.get_dummy_value()


def _check_contiguous(*arrays):
    """Refuse to compile for values that do not lie one after the other."""
    if any(array.layout != "C" for array in arrays):
        raise errors.TypingError("sums need contiguous columns")


def _multiply_add(builder, a, b, c):
    kind = ir.FunctionType(_VECTOR, [_VECTOR] * 3)
    name = f"llvm.fma.v{WIDTH}f64"
    return builder.call(
        cgutils.get_or_insert_function(builder.module, kind, name), [a, b, c]
    )


@intrinsic
def _fill_deviations(typing_context, column, pivot, weight, lanes, k):
    _check_contiguous(column, weight, lanes)

    def generate(context, builder, signature, arguments):
        pivots = ir.Constant(_VECTOR, ir.Undefined)
        for i in range(WIDTH):
            place = ir.Constant(ir.IntType(32), i)
            pivots = builder.insert_element(pivots, arguments[1], place)

        def step(vectors, sums):
            deviations = builder.fsub(vectors[0], pivots)
            return [
                builder.fadd(sums[0], deviations),
                _multiply_add(builder, deviations, deviations, sums[1]),
                _multiply_add(builder, deviations, vectors[1], sums[2]),
            ]

        return _loop(context, builder, signature, arguments, 2, 3, step)

    return types.void(column, types.float64, weight, lanes, types.int64), generate


@intrinsic
def _fill_products(typing_context, a, b, lanes, k):
    _check_contiguous(a, b, lanes)

    def generate(context, builder, signature, arguments):
        def step(vectors, sums):
            return [_multiply_add(builder, *vectors, *sums)]

        return _loop(context, builder, signature, arguments, 2, 1, step)

    return types.void(a, b, lanes, types.int64), generate


@overload(fill_deviations, jit_options=INNER)
def _compile_fill_deviations(column, pivot, weight, lanes, k):
    return lambda column, pivot, weight, lanes, k: _fill_deviations(
        column, pivot, weight, lanes, k
    )


@overload(fill_products, jit_options=INNER)
def _compile_fill_products(a, b, lanes, k):
    return lambda a, b, lanes, k: _fill_products(a, b, lanes, k)
