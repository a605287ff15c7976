"""Sums over columns in a fixed order, as fast as memory is read.

A sum runs in `LANES` interleaved partial sums, which are added in a fixed order: it is
the same for all block sizes, threads and machines, and a processor can add several
lanes at a time. The loops over lanes are short and plain, so that numba makes vector
instructions of each of them; one loop for all three sums would not become one.
"""

from __future__ import annotations

import numpy as np

from featstream.jit import inner

LANES = 64


@inner
def sum_deviations(column, pivot, weight, lanes):
    """Fill the first three rows of lanes: deviations, squares, and times the weights.

    The fourth row is scratch.
    """
    n = column.size
    whole = n - n % LANES
    total, square, product, deviation = lanes[0], lanes[1], lanes[2], lanes[3]
    for k in range(LANES):
        total[k] = 0.0
        square[k] = 0.0
        product[k] = 0.0
    for r in range(0, whole, LANES):
        for k in range(LANES):
            deviation[k] = np.float64(column[r + k]) - pivot
        for k in range(LANES):
            total[k] += deviation[k]
        for k in range(LANES):
            square[k] += deviation[k] * deviation[k]
        for k in range(LANES):
            product[k] += deviation[k] * weight[r + k]
    for r in range(whole, n):
        rest = np.float64(column[r]) - pivot
        total[r - whole] += rest
        square[r - whole] += rest * rest
        product[r - whole] += rest * weight[r]


@inner
def dot(a, b, lanes):
    """Sum of products of deviations."""
    n = a.size
    whole = n - n % LANES
    total = lanes[0]
    for k in range(LANES):
        total[k] = 0.0
    for r in range(0, whole, LANES):
        for k in range(LANES):
            total[k] += a[r + k] * b[r + k]
    for r in range(whole, n):
        total[r - whole] += a[r] * b[r]
    return fold(total)


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
