"""Lasso, group lasso and sparse group lasso as selectors."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

import reference_models
from featstream import GroupLassoSelector, LassoSelector, SparseGroupLassoSelector
from featstream.errors import FeatstreamWarning
from featstream.selectors.batch import lasso
from featstream.selectors.batch.lasso import Penalty, fit_logistic
from featstream.selectors.batch.standard_columns import StandardColumns


def data(seed, n=60, p=40):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * rng.integers(1, 9, p) + rng.integers(0, 9, p)
    X[:, 1] = X[:, 0] + 0.1 * rng.normal(size=n)
    linear = X[:, 0] - X[:, 0].mean() + rng.normal(size=n)
    return X, np.where(linear > 0, 1.0, -1.0), rng.integers(0, 8, p)


@pytest.mark.parametrize("make", [np.asarray, sparse.csc_array])
@pytest.mark.parametrize(
    ("l1", "l2"), [(0.05, 0.02), (0.01, 0.01), (0.1, 0.0), (0.0, 0.05)]
)
def test_the_objective_is_that_of_plain_fista(make, l1, l2):
    for seed in range(3):
        X, signs, groups = data(seed)
        columns = StandardColumns(make(X), np.sqrt(60))
        found = fit_logistic(columns, signs, Penalty.of(groups, l1, l2), 1e-6)
        Z = reference_models.standardise(X, np.sqrt(60))
        best = reference_models.penalised_objective(Z, signs, groups, l1, l2)
        assert found.has_converged
        assert abs(found.objective - best) < 1e-8


def test_the_lasso_is_that_of_scikit_learn():
    X, signs, groups = data(5, n=100)
    X, groups = np.delete(X, 1, axis=1), np.delete(groups, 1)  # near copies are slow
    Z = reference_models.standardise(X, np.sqrt(100))
    model = LogisticRegression(
        l1_ratio=1.0, C=1 / (100 * 0.03), solver="saga", tol=1e-9, max_iter=50_000
    ).fit(Z, signs)
    columns = StandardColumns(X, np.sqrt(100))
    found = fit_logistic(columns, signs, Penalty.of(groups, 0.03, 0.0), 1e-7)
    np.testing.assert_allclose(found.weights, model.coef_[0], atol=1e-5)
    assert LassoSelector(penalty=0.03).fit(X, signs).selected_.tolist() == (
        np.argsort(-np.abs(model.coef_[0]))[: np.count_nonzero(found.weights)].tolist()
    )


def test_a_single_feature_has_the_weight_of_the_closed_form():
    """Of the rows with +1, and of those with -1, three quarters have that class.

    The slope of the mean loss at the weight w is 3/4 - expit(w): it must equal the
    price.
    """
    X = np.repeat([1.0, -1.0], 8)[:, None]
    y = np.tile([1, 1, 1, 0], 4)
    y[8:] = 1 - y[8:]
    for price in (0.05, 0.2):
        columns = StandardColumns(X, 4.0)
        penalty = Penalty.of(np.zeros(1, np.int64), price, 0.0)
        found = fit_logistic(columns, 2.0 * y - 1.0, penalty, 1e-9)
        share = 0.75 - price
        np.testing.assert_allclose(
            found.weights, np.log(share / (1 - share)), atol=1e-6
        )
    assert LassoSelector(penalty=0.26).fit(X, y).selected_.size == 0


def test_groups_are_selected_whole_or_in_part():
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(400, 60)), np.arange(60) // 5
    y = X[:, 10] - X[:, 11] + X[:, 32] > 0
    whole = GroupLassoSelector(group_penalty=0.06).fit(X, y, groups=groups)
    assert whole.selected_groups_.tolist() == [2, 6]
    assert sorted(whole.selected_.tolist()) == [*range(10, 15), *range(30, 35)]
    part = SparseGroupLassoSelector(penalty=0.08).fit(X, y, groups=groups)
    assert part.selected_groups_.tolist() == [2, 6]
    assert sorted(part.selected_.tolist()) == [10, 11, 32]
    assert "leaves none of its 5 features" in part.explain(group=0)
    assert "leaves it no weight" in part.explain(12)
    nothing = GroupLassoSelector(group_penalty=1.0).fit(X, y, groups=groups)
    assert nothing.selected_.size == nothing.selected_groups_.size == 0


def test_groups_of_one_are_the_lasso():
    X, signs, _ = data(7)
    alone = LassoSelector(penalty=0.04).fit(X, signs)
    with pytest.warns(FeatstreamWarning, match="GroupLassoSelector has no groups"):
        single = GroupLassoSelector(group_penalty=0.04).fit(X, signs)
    assert single.selected_.tolist() == alone.selected_.tolist()


def test_several_classes_share_the_selection():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(600, 30))
    y = np.argmax(X[:, [3, 9, 20]], axis=1)
    found = LassoSelector(penalty=0.1).fit(X, y)
    assert sorted(found.selected_.tolist()) == [3, 9, 20]


def test_what_has_not_converged_is_said(monkeypatch):
    monkeypatch.setattr(lasso, "_MOST_STEPS", 3)
    X, signs, _ = data(0)
    with pytest.warns(ConvergenceWarning, match="did not reach tol=1e-06"):
        LassoSelector(penalty=0.01).fit(X, signs)
