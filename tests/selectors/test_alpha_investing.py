"""Alpha-investing against its pseudo-code, LOFS and hopeless columns."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import golden
import reference_rivals as reference
from featstream import AlphaInvesting
from shared import load, shared
from strategies import examples


@st.composite
def regressions(draw):
    """A number to explain, by columns some of which are collinear or constant."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, p = int(rng.integers(10, 60)), int(rng.integers(1, 12))
    X = rng.normal(size=(n, p))
    for j in range(p):
        kind = rng.integers(0, 6)
        if kind == 0:
            X[:, j] = float(rng.integers(-2, 3))
        elif kind == 1 and j > 1:
            X[:, j] = X[:, :2] @ rng.normal(size=2)
        elif kind == 2:
            X[:, j] *= rng.random(n) < 0.2
    if rng.random() < 0.2:
        X[:, 0] = 0.0  # which leaves the model empty
    y = X @ (rng.normal(size=p) * (rng.random(p) < 0.5)) + rng.normal(size=n)
    return X, y


@examples(30)
@given(
    data=regressions(),
    intercept=st.sampled_from([True, False, "first-column"]),
    is_sparse=st.booleans(),
)
def test_equals_the_pseudo_code(data, intercept, is_sparse):
    X, y = data
    start = {True: [np.ones(len(y))], False: [], "first-column": [X[:, 0]]}[intercept]
    first = 1 if intercept == "first-column" else 0
    expected, wealth = reference.alpha_investing(X, y, start=start, first=first)
    selector = AlphaInvesting(target="numeric", intercept=intercept)
    selector.fit(sparse.csc_array(X) if is_sparse else X, y)
    assert selector.selected_.tolist() == [0] * first + expected
    assert selector.wealth_ == pytest.approx(wealth, rel=1e-9)


@pytest.mark.parametrize("loss", ["linear", "logistic"])
def test_a_perfect_fit_ends_the_search_without_a_nan(loss):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 60)
    X = np.column_stack([rng.normal(size=60), y, 3 * y + 1, rng.normal(size=(60, 20))])
    selector = AlphaInvesting(loss=loss).fit(X, y)
    assert selector.selected_.tolist() == [1]
    assert np.isfinite(selector.wealth_)
    assert np.isfinite(selector.result_.trace.records["relevance"]).all()


@pytest.mark.parametrize("loss", ["linear", "logistic"])
def test_constant_and_collinear_columns_are_rejected(loss):
    rng = np.random.default_rng(1)
    good = rng.normal(size=100)
    y = good + rng.normal(size=100) > 0
    X = np.column_stack([np.zeros(100), np.full(100, 0.1), good, 2 - 3 * good, good])
    selector = AlphaInvesting(loss=loss).fit(X, y)
    assert selector.selected_.tolist() == [2]


ZERO_FIRST = {("real_dexter", False), ("bin_sparse_500x300", False)}
"""Runs in which the first column, untested in the model, is all zero."""


@pytest.mark.jit_only
def test_selections_are_those_of_the_authors():
    runs = golden.runs("alpha_investing")
    assert len(runs) == 40
    for name, run in runs:
        X, y = golden.data(name)
        has_ones = run["params"]["prepend_ones"]
        if has_ones:
            X = np.column_stack([np.ones(len(y)), X])
        selector = AlphaInvesting(intercept="first-column", target="numeric")
        selected = selector.fit(X, y).selected_
        if has_ones:
            selected = selected[1:] - 1
        if (name, has_ones) in ZERO_FIRST:
            # XᵀX is singular from the start: LOFS's errors are NaN, and NaN rejects.
            assert not X[:, 0].any()
            assert run["selected"] == [0]
            assert selected.size > 1
        else:
            assert selected.tolist() == run["selected"], (name, has_ones)


@pytest.mark.jit_only
@pytest.mark.parametrize(("name", "n_selected"), [("madelon", 4), ("hiva_train", 48)])
def test_as_many_features_are_selected_as_the_paper_says(name, n_selected):
    """With the first column untested and the classes 0 and 1."""
    arrays = load(shared("data", f"{name}.npz"))
    X = arrays.get("X_train", arrays.get("X"))
    y = arrays.get("y_train", arrays.get("y")) > 0
    selector = AlphaInvesting(intercept="first-column", target="numeric").fit(X, y)
    assert selector.selected_.size == n_selected
