"""Correlations against sums in extended precision."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import reference
from featstream import FisherZ
from featstream.measures.storages.dense_values import LANES
from scores import overlaps, relevances
from strategies import continuous_data, examples

STORAGES = {"dense": np.asarray, "sparse": sparse.csc_array}


def correlate(a, b):
    """Absolute correlation in numpy's extended precision, in two passes."""
    a, b = np.asarray(a, np.longdouble), np.asarray(b, np.longdouble)
    a, b = a - a.mean(), b - b.mean()
    return float(abs(a @ b) / np.sqrt((a @ a) * (b @ b)))


@pytest.mark.parametrize("storage", STORAGES)
@examples(25)
@given(data=continuous_data())
def test_scores_are_those_of_plain_sums(storage, data):
    X, y = data
    stored, columns = STORAGES[storage](X), X.T.tolist()
    numeric = FisherZ(target="numeric")
    expected = [reference.correlation(c, y.tolist()) for c in columns]
    np.testing.assert_allclose(relevances(numeric, stored, y), expected, atol=1e-12)
    expected = [reference.correlation_ratio(c, y.tolist()) for c in columns]
    np.testing.assert_allclose(relevances(FisherZ(), stored, y), expected, atol=1e-12)
    varied = np.flatnonzero(np.ptp(X, axis=0) > 0)
    found = overlaps(numeric, stored, y)[np.ix_(varied, varied)]
    expected = [[correlate(columns[i], columns[j]) for j in varied] for i in varied]
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("offset", [0.0, 1.0, 1e6, -1e6, 1e9])
@pytest.mark.parametrize(
    "n", [5, LANES - 1, LANES, LANES + 1, 2 * LANES - 1, 2 * LANES, 1000]
)
def test_offsets_cost_no_precision(storage, offset, n):
    rng = np.random.default_rng(n)
    y = np.arange(n) % 2
    X = offset + rng.normal(size=(n, 4)) + 0.5 * y[:, None]
    X[0, 0] += 100.0  # an odd first row
    stored = STORAGES[storage](X)
    found = relevances(FisherZ(), stored, y)
    expected = [correlate(column, y) for column in X.T]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)
    pairs = [[correlate(a, b) for b in X.T] for a in X.T]
    np.testing.assert_allclose(
        overlaps(FisherZ(), stored, y), pairs, rtol=0, atol=1e-10
    )
    several = np.arange(n) % 3
    found = relevances(FisherZ(), stored, several)
    centred = (X - offset).T.tolist()
    expected = [reference.correlation_ratio(c, several.tolist()) for c in centred]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("value", [0.0, 0.1, 1 / 3, -1e9, 1e-300])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_constant_scores_exactly_nothing(storage, n_classes, value, dtype):
    """0.1 is not a binary fraction: its mean is not 0.1, its deviation is 0."""
    n = 101
    X = np.full((n, 1), value, dtype)
    y = np.arange(n) % n_classes
    assert relevances(FisherZ(), STORAGES[storage](X), y).tolist() == [0.0]
    numeric = FisherZ(target="numeric")
    assert relevances(numeric, STORAGES[storage](X), y).tolist() == [0.0]


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize(
    "dtype",
    [
        np.uint8,
        np.float32,
        *(pytest.param(t, marks=pytest.mark.slow) for t in (np.int16, np.int64, bool)),
    ],
)
def test_whole_numbers_score_alike_in_every_dtype_and_order(storage, dtype):
    rng = np.random.default_rng(2)
    X = rng.integers(0, 2 if dtype is bool else 90, (150, 5))
    y = rng.integers(0, 2, 150)
    measure = FisherZ()
    expected = relevances(measure, X.astype(float), y).tolist()
    pairs = overlaps(measure, X.astype(float), y).tolist()
    order = rng.permutation(150)
    stored = STORAGES[storage](X.astype(dtype)[order])
    assert relevances(measure, stored, y[order]).tolist() == expected
    assert overlaps(measure, stored, y[order]).tolist() == pairs


@examples(15)
@given(data=continuous_data(), shift=st.integers(-400, 400), is_negated=st.booleans())
def test_powers_of_two_and_signs_change_no_bit(data, shift, is_negated):
    """P14, for the scores themselves."""
    X, y = data
    factor = 2.0**shift * (-1 if is_negated else 1)
    measure = FisherZ()
    for storage in STORAGES.values():
        plain, scaled = storage(X), storage(factor * X)
        found = relevances(measure, scaled, y)
        assert found.tolist() == relevances(measure, plain, y).tolist()
        before, after = overlaps(measure, plain, y), overlaps(measure, scaled, y)
        assert np.array_equal(before, after, equal_nan=True)


def test_scores_do_not_exceed_one():
    """Rounding may carry a perfect correlation past 1."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        y = rng.integers(0, 2, 37)
        y[:2] = [0, 1]
        column = (rng.normal() + rng.normal() * y)[:, None]
        for storage in STORAGES.values():
            (found,) = relevances(FisherZ(), storage(column), y)
            assert found <= 1.0
            assert found == pytest.approx(1.0, abs=1e-12)
