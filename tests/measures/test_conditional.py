"""Tests of conditional independence against their definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse, stats

import reference_rivals as reference
import strategies
from featstream import as_source
from featstream.measures import TARGET, ChiSquareTest, FisherZTest, GTest
from strategies import examples

STATISTIC = {GTest: reference.g_square, ChiSquareTest: reference.chi_square}


def gather(test, X, y):
    bound = test.bind(y)
    block = next(iter(as_source(X).blocks()))
    return bound, bound.gather(bound.encode(block), np.arange(X.shape[1]))


@examples(30)
@given(
    data=strategies.discrete_data(),
    kind=st.sampled_from([GTest, ChiSquareTest]),
    size=st.integers(0, 3),
    is_sparse=st.booleans(),
)
def test_discrete_tests_equal_their_definition(data, kind, size, is_sparse):
    X, y = data
    given = list(range(1, min(size, X.shape[1] - 1) + 1))
    test = kind(alpha=0.1, samples_per_df=1)
    bound, columns = gather(test, sparse.csc_array(X) if is_sparse else X, y)
    result = bound.test(columns, 0, TARGET, given)
    lists = X.T.tolist()
    others = [lists[g] for g in given]
    assert result.df == reference.degrees(lists[0], y.tolist(), others)
    assert result.is_reliable == (len(y) >= result.df)
    if not result.is_reliable:
        assert np.isnan(result.statistic)
        assert result.p_value == 1.0
        return
    expected = STATISTIC[kind](lists[0], y.tolist(), others)
    assert result.statistic == pytest.approx(expected, abs=1e-9)
    p_value = stats.chi2.sf(max(expected, 0), result.df)
    assert result.p_value == pytest.approx(p_value, abs=1e-9)
    assert result.is_independent == (result.p_value >= 0.1)


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (10, 4 * 2**2 / 10),  # just enough: 12 and 8 where 10 are expected
        (9, 4 * 1.5**2 / 9),  # too few: each gap of 2 counts as 1.5
    ],
)
def test_chi_square_is_corrected_where_fewer_than_ten_are_expected(size, expected):
    """All four cells of two binary columns with equal margins expect ``size`` rows."""
    a = np.repeat([0, 1], 2 * size)
    y = np.repeat([0, 1, 0, 1], [size + 2, size - 2, size - 2, size + 2])
    bound, columns = gather(ChiSquareTest(), a[:, None], y)
    assert bound.test(columns, 0).statistic == pytest.approx(expected, rel=1e-12)


@examples(30)
@given(data=strategies.continuous_data(), size=st.integers(0, 3))
def test_partial_correlation_is_that_of_the_residuals(data, size):
    X, y = data
    given = list(range(1, min(size, X.shape[1] - 1) + 1))
    bound, columns = gather(FisherZTest(alpha=0.05, target="numeric"), X, y)
    result = bound.test(columns, 0, TARGET, given)
    others = X[:, given]
    rank = np.linalg.matrix_rank(np.column_stack([np.ones(len(y)), others]), tol=1e-9)
    if rank < len(given) + 1 and np.isnan(result.effect):
        return  # the set is linearly dependent
    left = X[:, 0] - X[:, 0].mean()
    if rank == len(given) + 1 and given:
        design = np.column_stack([np.ones(len(y)), others])
        left = X[:, 0] - design @ np.linalg.lstsq(design, X[:, 0], rcond=None)[0]
    if np.linalg.norm(left) < 1e-6 or len(y) <= len(given) + 4:
        return
    expected = reference.partial_correlation(X[:, 0], y, others.T)
    assert result.effect == pytest.approx(expected, abs=1e-7)
    W = np.sqrt(len(y) - len(given) - 3) * np.arctanh(min(expected, 1 - 1e-16))
    assert result.p_value == pytest.approx(2 * stats.norm.sf(W), abs=1e-5)


def test_two_classes_are_a_number_and_three_are_an_f_test():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = rng.integers(0, 2, 60)
    nominal, columns = gather(FisherZTest(), X, y)
    numeric, same = gather(FisherZTest(target="numeric"), X, y)
    assert nominal.test(columns, 0, given=[1, 2]).effect == pytest.approx(
        numeric.test(same, 0, given=[1, 2]).effect, abs=1e-14
    )
    y = rng.integers(0, 3, 60)
    bound, columns = gather(FisherZTest(), X, y)
    result = bound.test(columns, 0, given=[1])
    # The F-test of two nested regressions of the feature on (1, x1) and the classes.
    small = np.column_stack([np.ones(60), X[:, 1]])
    large = np.column_stack([small, y == 1, y == 2])
    rss = [
        ((X[:, 0] - A @ np.linalg.lstsq(A, X[:, 0], rcond=None)[0]) ** 2).sum()
        for A in (small, large)
    ]
    f = (rss[0] - rss[1]) / 2 / (rss[1] / (60 - 4))
    assert result.statistic == pytest.approx(f, rel=1e-9)
    assert result.df == 56
    assert result.p_value == pytest.approx(stats.f.sf(f, 2, 56), rel=1e-9)


def test_two_features_are_tested_as_a_feature_and_the_target():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(50, 4))
    X[:, 1] += X[:, 0]
    y = np.repeat([0, 1, 2, 3, 4], 10)
    bound, columns = gather(FisherZTest(), X, y)
    result = bound.test(columns, 0, 1, [2, 3])
    expected = reference.partial_correlation(X[:, 0], X[:, 1], X[:, 2:].T)
    assert result.effect == pytest.approx(expected, abs=1e-12)
    codes = rng.integers(0, 3, (200, 3))
    bound, columns = gather(GTest(), codes, rng.integers(0, 2, 200))
    lists = codes.T.tolist()
    assert bound.test(columns, 0, 1, [2]).statistic == pytest.approx(
        reference.g_square(lists[0], lists[1], [lists[2]])
    )


def test_too_few_samples_are_reported_and_not_hidden():
    X = np.column_stack([np.arange(20) % 4, np.arange(20) % 5])
    y = np.arange(20) % 2
    bound, columns = gather(GTest(), X, y)
    alone = bound.test(columns, 0)
    assert (alone.df, alone.is_reliable) == (3, True)
    given = bound.test(columns, 0, given=[1])
    assert (given.df, given.is_reliable, given.is_independent) == (15, False, True)
    assert np.isnan(given.statistic)


def test_arity_may_be_the_largest_code():
    X = np.array([[1, 3], [3, 1]] * 10)
    y = np.array([1, 3] * 10)
    bound, columns = gather(GTest(arity="largest"), X, y)
    assert bound.test(columns, 0).df == 4
    assert gather(GTest(), X, y)[0].test(columns, 0).statistic == pytest.approx(
        20 * 2 * np.log(2)
    )
    with pytest.raises(ValueError, match="from 1 on"):
        gather(GTest(arity="largest"), X - 1, y)
    with pytest.raises(ValueError, match="from 1 on"):
        GTest(arity="largest").bind(y - 1)


@pytest.mark.parametrize(
    ("test", "message"),
    [
        (GTest(alpha=5), "For a 5% level write alpha=0.05"),
        (GTest(samples_per_df=0), "at least 1"),
        (GTest(arity="seen"), "'observed', 'largest' or 'occurring'"),
        (ChiSquareTest(unreliable="drop"), "'independent' or 'skip'"),
        (FisherZTest(unreliable="drop"), "'independent' or 'skip'"),
        (FisherZTest(target="text"), "'nominal' or 'numeric'"),
    ],
)
def test_a_bad_parameter_is_named(test, message):
    with pytest.raises(ValueError, match=message):
        test.bind([0, 1, 0, 1])
