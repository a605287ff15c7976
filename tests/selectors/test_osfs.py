"""OSFS and Fast-OSFS against their pseudo-code, and the contracts of a selector."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse, stats

import reference_rivals as reference
import strategies
from featstream import OSFS, FastOSFS, Fate
from featstream.errors import FeatstreamWarning
from featstream.measures import ChiSquareTest, GTest
from strategies import examples

SELECTORS = {"osfs": OSFS, "fast": FastOSFS}
both = pytest.mark.parametrize("kind", SELECTORS)


@examples(30)
@given(
    data=strategies.discrete_data(),
    kind=st.sampled_from(sorted(SELECTORS)),
    test=st.sampled_from([GTest, ChiSquareTest]),
    unreliable=st.sampled_from(["independent", "skip"]),
    max_size=st.integers(1, 3),
    is_sparse=st.booleans(),
)
def test_discrete_equals_the_pseudo_code(
    data, kind, test, unreliable, max_size, is_sparse
):
    X, y = data
    columns, classes, n = X.T.tolist(), y.tolist(), len(y)
    statistic = reference.g_square if test is GTest else reference.chi_square

    def independent(a, given, unknown):
        others = [columns[g] for g in given]
        df = reference.degrees(columns[a], classes, others)
        if n < df:
            return unknown
        return stats.chi2.sf(statistic(columns[a], classes, others), df) >= 0.2

    expected = reference.osfs(
        X.shape[1],
        lambda a: not independent(a, (), True),
        lambda a, given: independent(a, given, unreliable == "independent"),
        max_size,
        is_fast=kind == "fast",
    )
    selector = SELECTORS[kind](
        test=test(alpha=0.2, samples_per_df=1, unreliable=unreliable),
        max_condition=max_size,
    )
    selector.fit(sparse.csc_array(X) if is_sparse else X, y)
    assert selector.selected_.tolist() == expected


@examples(20)
@given(
    seed=st.integers(0, 2**32 - 1),
    kind=st.sampled_from(sorted(SELECTORS)),
    is_sparse=st.booleans(),
)
def test_continuous_equals_the_pseudo_code(seed, kind, is_sparse):
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(12, 60)), int(rng.integers(1, 9))
    X = np.round(3 * rng.normal(size=(n, p)) @ rng.normal(size=(p, p)))
    y = X @ rng.normal(size=p) + 5 * rng.normal(size=n) > 0
    y[:2] = [False, True]

    def independent(a, given):
        r = reference.partial_correlation(X[:, a], y, X[:, list(given)].T)
        W = np.sqrt(max(n - len(given) - 3, 0)) * np.arctanh(min(r, 1 - 1e-16))
        return bool(stats.norm.sf(W) > 0.05)

    expected = reference.osfs(
        p,
        lambda a: not independent(a, ()),
        independent,
        is_fast=kind == "fast",
    )
    selector = SELECTORS[kind](test="fisher-z", alpha=0.1)
    selector.fit(sparse.csc_array(X) if is_sparse else X, y)
    assert selector.selected_.tolist() == expected


@both
def test_a_dropped_feature_names_the_set_that_separates_it(kind):
    rng = np.random.default_rng(2)
    causes = rng.normal(size=(400, 2))
    y = causes.sum(axis=1) + 0.5 * rng.normal(size=400) > 0
    effect = causes.sum(axis=1) + 0.2 * rng.normal(size=400)
    selector = SELECTORS[kind](test="fisher-z").start(y)
    assert selector.update(causes[:, 0], name="left").is_kept
    assert selector.update(causes[:, 1], name="right").is_kept
    decision = selector.update(effect, name="effect")
    if kind == "osfs":  # the sum of the causes makes each of them redundant first
        assert decision.is_kept
        assert decision.displaced == ("left", "right")
        assert selector.separating_set("left") == ("effect",)
        assert "displaced by 'effect'" in selector.explain("left")
        return
    assert decision.fate is Fate.REDUNDANT
    assert decision.witness == "left"
    assert selector.separating_set("effect") == ("left", "right")
    assert "given 'left', 'right' it is independent" in selector.explain("effect")
    assert selector.separating_set("left") == ()


def test_max_tests_cuts_a_search_short_and_says_so_once():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 30))
    y = X @ rng.normal(size=30) > 0
    with pytest.warns(FeatstreamWarning, match="max_tests=2") as caught:
        short = FastOSFS(test="fisher-z", alpha=0.2, max_tests=2).fit(X, y)
    assert len(caught) == 1
    assert 1 < short.n_cut_short_ <= 30  # at most one search per arrival
    assert short.n_tests_ <= 2 * 30
    whole = FastOSFS(test="fisher-z", alpha=0.2).fit(X, y)
    assert whole.n_cut_short_ == 0
    assert set(whole.selected_) <= set(short.selected_)


def test_tests_that_cannot_be_run_are_counted():
    X = np.column_stack([np.arange(20) % 10, np.arange(20) % 2])
    selector = OSFS(test="g2").fit(X, np.arange(20) % 2)
    assert selector.selected_.tolist() == [1]
    assert selector.n_unreliable_ == 1


@both
def test_the_test_fits_the_data(kind):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 50)
    discrete = SELECTORS[kind]().fit(rng.integers(0, 3, (50, 4)), y)
    continuous = SELECTORS[kind]().fit(rng.normal(size=(50, 4)), y)
    assert (discrete.measure_, continuous.measure_) == ("g2", "fisher-z")


def test_many_features_may_be_kept():
    """More than the pool holds at first."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 40))
    y = X.sum(axis=1) > 0
    selector = FastOSFS(test="fisher-z", max_condition=1).fit(X, y)
    assert selector.selected_.tolist() == list(range(40))
    codes = (X > 0).astype(int)
    selector = FastOSFS(test="g2", max_condition=1).fit(codes, codes.sum(axis=1) > 20)
    assert len(selector.selected_) == 40
