"""Sums in vector registers: to the bit, in the order that `lanes.py` describes."""

from fractions import Fraction

import numpy as np
import pytest
from numba.core.errors import TypingError

from featstream.jit import jit
from featstream.measures.storages.lanes import LANES, dot, fold, sum_deviations

pytestmark = pytest.mark.jit_only  # plain Python rounds products as well


@jit
def sums_of(column, pivot, weight):
    lanes = np.empty((3, LANES))
    sum_deviations(column, pivot, weight, lanes)
    return fold(lanes[0]), fold(lanes[1]), fold(lanes[2])


@jit
def product_of(a, b):
    return dot(a, b, np.empty((1, LANES)))


def product_by_hand(a, b):
    lanes = [0.0] * LANES
    for r, (x, y) in enumerate(zip(a.tolist(), b.tolist(), strict=True)):
        if r < a.size // LANES * LANES:  # rounded once
            exact = Fraction(x) * Fraction(y) + Fraction(lanes[r % LANES])
            lanes[r % LANES] = float(exact)
        else:
            lanes[r % LANES] += x * y
    while len(lanes) > 1:
        half = len(lanes) // 2
        lanes = [lanes[k] + lanes[k + half] for k in range(half)]
    return lanes[0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint8, np.int32])
@pytest.mark.parametrize("n", [1, 63, 64, 191, 640])
def test_sums_have_a_fixed_order(n, dtype):
    rng = np.random.default_rng(n)
    column = (100 * rng.normal(0.3, 1, n)).astype(dtype)
    pivot, weight = float(column[0]), rng.normal(size=n)
    deviations = column.astype(np.float64) - pivot
    factors = np.ones(n), deviations, weight
    expected = tuple(product_by_hand(deviations, factor) for factor in factors)
    assert sums_of(column, pivot, weight) == expected
    assert product_of(deviations, weight) == expected[2]


def test_columns_with_gaps_are_refused():
    with pytest.raises(TypingError, match="contiguous"):
        product_of(np.ones(256)[::2], np.ones(128))
