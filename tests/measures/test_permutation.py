"""Continuous columns over all orders of the rows, against slow and obvious counts."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse, special
from sklearn.feature_selection import f_classif, f_regression

from featstream import FisherZ, as_source
from featstream.measures.drawn_sums import DrawnSum, log_tails
from featstream.measures.permutation import log_f_tail
from strategies import examples


def drawn_sum(column, rows):
    """The sum of a standardised column over some of its rows."""
    column = np.asarray(column, float)
    z = (column - column.mean()) / column.std()
    values, counts = np.unique(z, return_counts=True)
    return DrawnSum(0, values, counts, len(rows), float(z[list(rows)].sum()))


def share_as_far(column, rows):
    """The share of all sets of as many rows whose sum is as far from its mean."""
    z = np.asarray(column, float) - np.mean(column)
    observed = abs(z[list(rows)].sum())
    all_draws = combinations(range(z.size), len(rows))
    sums = np.array([abs(z[list(drawn)].sum()) for drawn in all_draws])
    return np.mean(sums >= observed - 1e-9)


@examples(30)
@given(seed=st.integers(0, 10**6), n=st.integers(4, 12), is_tied=st.booleans())
def test_small_columns_have_the_law_of_all_draws(seed, n, is_tied):
    rng = np.random.default_rng(seed)
    column = rng.poisson(0.7, n) if is_tied else rng.lognormal(0, 1, n)
    if np.ptp(column) == 0:
        return
    rows = rng.choice(n, rng.integers(1, n // 2 + 1), replace=False)
    (found,) = log_tails([drawn_sum(column, rows)])
    assert np.exp(found) == pytest.approx(share_as_far(column, rows), rel=1e-9)


def law_of_counts(counts, n_drawn):
    """The law of the sum of ``n_drawn`` of some whole numbers, row by row."""
    ways = np.zeros((n_drawn + 1, int(counts.sum()) + 1))
    ways[0, 0] = 1.0
    for i, count in enumerate(counts.tolist()):
        # A row is among the drawn ones with a chance that depends on those before.
        for drawn in range(min(i, n_drawn - 1), -1, -1):
            moved = ways[drawn, : ways.shape[1] - count]
            ways[drawn + 1, count:] += moved
    law = ways[n_drawn]
    return law / law.sum()


@pytest.mark.parametrize("mean", [0.5, 2.0, 8.0])
@pytest.mark.parametrize(("n", "n_drawn"), [(60, 20), (120, 15)])
def test_larger_counts_have_nearly_the_law_of_all_draws(mean, n, n_drawn):
    rng = np.random.default_rng(0)
    counts = rng.poisson(mean, n) + (rng.random(n) < 0.05) * rng.poisson(4 * mean, n)
    law, z = law_of_counts(counts, n_drawn), (counts - counts.mean()) / counts.std()
    values, sizes = np.unique(z, return_counts=True)
    totals = (np.arange(law.size) - n_drawn * counts.mean()) / counts.std()
    upper = np.cumsum(law[::-1])[::-1]
    n_tried = 0
    for s in np.flatnonzero((upper < 0.02) & (upper > 1e-9)):
        both = law[np.abs(totals) >= abs(totals[s]) - 1e-9].sum()
        test = DrawnSum(0, values, sizes, n_drawn, float(totals[s]))
        (found,) = np.exp(log_tails([test]))
        n_tried += 1
        # Twice the one tail where the other is not impossible.
        assert 0.75 * both < found < max(1.4 * both, 2.5 * upper[s])
    assert n_tried > 3


def test_the_largest_sum_of_all_has_the_chance_of_one_draw():
    rng = np.random.default_rng(0)
    column = np.sort(rng.lognormal(0, 1, 200))
    log_ways = special.gammaln(201) - special.gammaln(31) - special.gammaln(171)
    (found,) = log_tails([drawn_sum(column, range(170, 200))])
    assert found == pytest.approx(-log_ways, abs=1e-6)
    # Next to the end there is a saddlepoint again, and the tail is larger.
    (near,) = log_tails([drawn_sum(column, [168, *range(171, 200)])])
    assert found < near < found + 5


def judged(X, y, **options):
    bound = FisherZ(**options).bind(y)
    bound.use_level(0.05)
    found = []
    for block in as_source(X).blocks():
        encoded = bound.encode(block)
        found.append(bound.log_p_values(encoded, bound.relevance(encoded)))
    return np.concatenate(found)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("order", ["C", "F"])
def test_dense_and_sparse_columns_have_the_same_p_values(n_classes, order):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((400, 300)) < 0.05, rng.exponential(size=(400, 300)), 0)
    y = np.minimum(np.arange(400) // 15, n_classes - 1)
    X[:15, ::7] += 1.5 * (rng.random((15, 43)) < 0.5)
    dense = judged(np.asarray(X, order=order), y)
    np.testing.assert_allclose(judged(sparse.csc_array(X), y), dense, rtol=1e-8)
    f = np.log(f_classif(X, y)[1])
    assert np.all(dense >= f - 1e-9)
    assert np.count_nonzero(dense > f + 0.1) > 20


@pytest.mark.parametrize("kind", ["lognormal", "few not zero", "ties"])
def test_a_rare_class_does_not_make_columns_significant(kind):
    """With a class of 10 of 500 the F-test passes 5 to 30 times as many."""
    rng, shape = np.random.default_rng(0), (500, 20_000)
    if kind == "lognormal":
        X = rng.lognormal(0, 2, shape)
    elif kind == "few not zero":
        X = np.where(rng.random(shape) < 0.02, rng.exponential(size=shape), 0.0)
    else:
        X = rng.poisson(0.05, shape).astype(float)
    y = np.arange(500) < 10
    p = np.exp(judged(X, y))
    for level in (0.01, 0.001):
        expected = level * p.size
        assert np.count_nonzero(p <= level) <= expected + 4 * np.sqrt(expected)
        assert np.count_nonzero(f_classif(X, y)[1] <= level) > 2 * expected


@pytest.mark.parametrize("kind", ["lognormal", "few not zero"])
@pytest.mark.parametrize("target", ["lognormal", "mostly zero", "few values"])
def test_a_heavy_target_does_not_make_columns_significant(kind, target):
    rng, shape = np.random.default_rng(0), (500, 10_000)
    X = rng.lognormal(0, 2, shape)
    if kind == "few not zero":
        X = np.where(rng.random(shape) < 0.02, X, 0.0)
    y = rng.lognormal(0, 2, 500)
    if target == "mostly zero":
        y[25:] = 0.0
    elif target == "few values":
        y = np.repeat([0, 1, 2, 9], [400, 80, 15, 5])
    p = np.exp(judged(X, y, target="numeric"))
    for level in (0.01, 0.001):
        expected = level * p.size
        assert np.count_nonzero(p <= level) <= expected + 4 * np.sqrt(expected)


def test_strong_features_of_a_skewed_quantity_keep_their_p_values():
    """The larger of two F-tests: with the target, and with its normal scores."""
    rng = np.random.default_rng(0)
    y = rng.lognormal(0, 1, 400)
    X = np.outer(y, np.linspace(0.2, 2, 30)) + rng.normal(size=(400, 30))
    ranks = np.argsort(np.argsort(y)) + 1
    scores = special.ndtri((ranks - 0.375) / 400.25)
    plain, ranked = (np.log(f_regression(X, target)[1]) for target in (y, scores))
    expected = np.maximum(plain, ranked)
    is_known = np.isfinite(expected)  # the others underflow
    found = judged(X, y, target="numeric")
    assert is_known.sum() > 10
    assert np.all((found < -100)[~is_known])
    np.testing.assert_allclose(found[is_known], expected[is_known], rtol=1e-8)


def test_nothing_is_lost_where_the_f_test_is_right():
    """Normal columns and equal classes: its p-values, to the last digit."""
    rng = np.random.default_rng(0)
    y = np.arange(1000) % 2
    X = rng.normal(size=(1000, 500)) + np.outer(y, rng.uniform(0, 1, 500))
    found, plain = judged(X, y), np.log(f_classif(X, y)[1])
    np.testing.assert_allclose(found, plain, rtol=1e-8)


@pytest.mark.parametrize("left", [50, 3000])
def test_the_log_of_the_f_test_does_not_underflow(left):
    """With two degrees of freedom the p-value is (1 - share) ** (left / 2)."""
    share = np.array([0.01, 0.3, 0.9, 1 - 1e-14])
    expected = left / 2 * np.log1p(-share)
    np.testing.assert_allclose(log_f_tail(share, 2, left), expected, rtol=1e-7)
    assert expected.min() < -700 or left == 50


def test_the_p_value_of_the_f_test_is_continuous_where_it_underflows():
    share = np.linspace(0.44, 0.52, 400)  # p-values about 1e-282
    found = log_f_tail(share, 1, 2000)
    assert found[0] > -650 > found[-1]
    second = np.diff(found, 2)
    assert np.abs(second - second.mean()).max() < 1e-3
