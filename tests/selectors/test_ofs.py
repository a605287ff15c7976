"""OFS against Algorithm 2, and on known answers."""

import time
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import reference_rivals as reference
from featstream import OFS
from strategies import examples


def study(n=4000, d=100, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.where(X[:, [3, 40, 77]] @ [1.0, -1.5, 1.2] > 0, 1, -1)
    return X, y


@examples(20)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_kept=st.integers(1, 6),
    step=st.sampled_from([0.2, 0.5]),
    regularization=st.sampled_from([0.01, 0.5]),
    is_sparse=st.booleans(),
)
def test_equals_algorithm_2(seed, n_kept, step, regularization, is_sparse):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 8)) * (rng.random((40, 8)) < 0.5)
    y = np.where(rng.random(40) < 0.5, 1, -1)
    y[:2] = [1, -1]
    expected, mistakes = reference.ofs(X, y, n_kept, step, regularization)
    selector = OFS(n_kept, step_size=step, regularization=regularization)
    selector.fit(sparse.csr_array(X) if is_sparse else X, y)
    np.testing.assert_allclose(selector.coef_[0], expected, atol=1e-12)
    assert selector.selected_.tolist() == np.flatnonzero(expected).tolist()
    assert selector.n_mistakes_ == mistakes
    assert selector.n_seen_ == 40


def test_partial_fit_continues_where_fit_stopped():
    X, y = study(500)
    whole = OFS(3).fit(X, y)
    parts = OFS(3)
    for begin in range(0, 500, 70):
        parts.partial_fit(X[begin : begin + 70], y[begin : begin + 70], classes=[-1, 1])
    assert np.array_equal(parts.coef_, whole.coef_)
    assert np.array_equal(whole.fit(X, y).coef_, parts.coef_)


def test_a_study_with_a_known_answer():
    X, y = study(20_000)
    selector = OFS(3, step_size=0.05).fit(X, y)
    assert selector.selected_.tolist() == [3, 40, 77]
    # Ten values of each sample are seen, and steps are multiplied by as much as 50.
    partly = OFS(10, information="partial", step_size=0.003, random_state=0)
    assert {3, 40, 77} <= set(partly.fit(X, y).selected_)


def test_partial_information_is_repeatable():
    X, y = study(300)
    selector = OFS(2, information="partial", exploration=0.5, random_state=0)
    first = selector.fit(X, y).coef_
    assert np.count_nonzero(first) == 2
    assert np.array_equal(selector.fit(X, y).coef_, first)


def test_exploring_does_not_cost_the_number_of_features():
    """A draw of 10 features out of 50 million touches 10 of them, not all."""
    selector = OFS(10, information="partial", exploration=1.0, random_state=0)
    selector.n_features_in_ = 50_000_000
    selector._rule = SimpleNamespace(n_kept=10, exploration=1.0)
    selector._rng = np.random.RandomState(0)
    began = time.process_time()
    explored, seen = selector._explore(200)
    assert time.process_time() - began < 5  # 200 permutations take minutes
    assert explored.tolist() == list(range(200))
    assert all(np.unique(row).size == 10 for row in seen)


def test_sparse_rows_are_not_made_dense():
    rng = np.random.default_rng(0)
    X = sparse.random_array((300, 1_000_000), density=1e-5, format="csr", rng=rng)
    y = rng.integers(0, 2, 300)
    selector = OFS(20).fit(X, y)
    assert 0 < selector.selected_.size <= 20
    assert selector.transform(X).shape == (300, selector.selected_.size)


def test_a_class_that_comes_late_is_an_error():
    selector = OFS().partial_fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(ValueError, match="class 2 was not among the first rows"):
        selector.partial_fit([[2.0]], [2])
