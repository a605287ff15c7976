"""Bit planes: one bit per row for each value of a column but the first."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic, overload
from numpy.typing import NDArray

from featstream.jit import INNER, jit, lean
from featstream.protocols import IntArray, read_only


def n_words(n_rows: int) -> int:
    """Number of 64-bit words that hold one bit for each row."""
    return (n_rows + 63) // 64


def ones_of_word(word):
    """Number of set bits of a 64-bit word."""
    return int(word).bit_count()


@intrinsic
def _ctpop(typingctx, word):
    def codegen(context, builder, signature, args):
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), codegen


@overload(ones_of_word, jit_options=INNER)
def _ones_of_word_compiled(word):
    return lambda word: np.int64(_ctpop(np.uint64(word)))


def pack(codes: NDArray[Any], arity: IntArray) -> tuple[NDArray[np.uint64], IntArray]:
    """Bit planes of columns of codes, one row per column, and the size of each plane.

    The planes of a column, for its codes 1, 2, …, follow one another.
    """
    n_planes = arity - 1
    first = n_planes.cumsum() - n_planes
    planes = np.zeros((int(n_planes.sum()), n_words(codes.shape[1])), np.uint64)
    if codes.dtype == np.uint8 and n_planes.max(initial=0) == 1:
        sizes = np.empty(planes.shape[0], np.int64)
        _pack_binary(read_only(codes), n_planes.nonzero()[0], planes, sizes)
        return planes, sizes
    bits = planes.view(np.uint8)
    for code in range(1, int(arity.max(initial=1))):
        having = np.flatnonzero(n_planes >= code)
        rows = codes if having.size == arity.size else codes[having]
        packed = np.packbits(rows == code, axis=1, bitorder="little")
        bits[first[having] + code - 1, : packed.shape[1]] = packed
    return planes, np.bitwise_count(planes).sum(axis=1, dtype=np.int64)


@jit
def _pack_binary(codes, which, planes, sizes):
    """Planes of the chosen columns, which are 0 or 1, and their sizes.

    A multiplication moves the lowest bits of eight bytes next to each other.
    """
    n = codes.shape[1]
    n_whole = n // 64
    gather, shift = np.uint64(0x0102040810204080), np.uint64(56)
    for k in range(which.size):
        column, plane, size = codes[which[k]], planes[k], 0
        eights = column[: 64 * n_whole].view(np.uint64)
        for w in range(n_whole):
            word = np.uint64(0)
            for b in range(8):
                word |= ((eights[8 * w + b] * gather) >> shift) << np.uint64(8 * b)
            plane[w] = word
            size += ones_of_word(word)
        for i in range(64 * n_whole, n):
            plane[n_whole] |= np.uint64(column[i]) << np.uint64(i & 63)
            size += np.int64(column[i])
        sizes[k] = size


@lean
def count_common(a, b):
    """Number of rows set in both of two planes."""
    total = 0
    for w in range(a.size):
        total += ones_of_word(a[w] & b[w])
    return total


@lean
def count_all(a, b, c):
    """Number of rows set in all of three planes."""
    total = 0
    for w in range(a.size):
        total += ones_of_word(a[w] & b[w] & c[w])
    return total


@lean
def unpack(planes, codes):
    """Write the codes of the rows: plane p has the rows of code p + 1."""
    codes[:] = 0
    for p in range(planes.shape[0]):
        for i in range(codes.size):
            if (planes[p, i >> 6] >> np.uint64(i & 63)) & np.uint64(1):
                codes[i] = p + 1
