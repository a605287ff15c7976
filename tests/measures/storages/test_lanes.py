"""Sums to the bit, in the order that `lanes.py` describes."""

import numpy as np
import pytest

from featstream.jit import kernel
from featstream.measures.storages.lanes import LANES, dot, fold, sum_deviations


@kernel(allocates=True)
def sums_of(column, pivot, weight):
    lanes = np.empty((4, LANES))
    sum_deviations(column, pivot, weight, lanes)
    return fold(lanes[0]), fold(lanes[1]), fold(lanes[2])


@kernel(allocates=True)
def product_of(a, b):
    return dot(a, b, np.empty((1, LANES)))


def product_by_hand(a, b):
    lanes = [0.0] * LANES
    for r, (x, y) in enumerate(zip(a.tolist(), b.tolist(), strict=True)):
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
