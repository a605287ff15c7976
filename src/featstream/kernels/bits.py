"""Bit planes: a few-valued column as one bit a row for each value but the first."""

from __future__ import annotations

import numpy as np
from numba import types
from numba.extending import intrinsic, overload

from featstream.kernels._jit import LEAN, lean

__all__ = ["count_common", "count_ones", "n_words", "unpack"]


def _ones(word):
    """Number of set bits of a 64-bit word."""
    return int(word).bit_count()


@intrinsic
def _ctpop(typingctx, word):
    def codegen(context, builder, signature, args):
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), codegen


@overload(_ones, jit_options=LEAN)
def _ones_compiled(word):
    return lambda word: np.int64(_ctpop(np.uint64(word)))


def n_words(n_rows: int) -> int:
    """Number of 64-bit words that hold one bit for each row."""
    return (n_rows + 63) // 64


@lean
def count_ones(plane):
    """Number of rows set in a plane."""
    total = 0
    for w in range(plane.size):
        total += _ones(plane[w])
    return total


@lean
def count_common(a, b):
    """Number of rows set in both of two planes."""
    total = 0
    for w in range(a.size):
        total += _ones(a[w] & b[w])
    return total


@lean
def unpack(planes, codes):
    """Write the codes that the planes spell: plane p stands for code p + 1."""
    codes[:] = 0
    for p in range(planes.shape[0]):
        for i in range(codes.size):
            if (planes[p, i >> 6] >> np.uint64(i & 63)) & np.uint64(1):
                codes[i] = p + 1
