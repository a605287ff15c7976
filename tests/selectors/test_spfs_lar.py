"""SPFS-LAR: least-angle regression on the similarity of samples of one class."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.linear_model import LogisticRegression, lars_path

import reference_models
from featstream import SPFSLAR, Fate
from featstream.errors import FeatstreamWarning
from featstream.selectors.batch.spfs_lar import class_similarity, least_angle_path
from featstream.selectors.batch.standard_columns import StandardColumns, largest

A, B, C = (
    np.array(signs) / 2 for signs in ([1, 1, -1, -1], [1, -1, 1, -1], [1, -1, -1, 1])
)
"""Orthonormal and without mean; A is the class."""


def test_a_path_worked_out_by_hand():
    """The second in correlation, 0.75, repeats the first; the third, 0.6, does not.

    The fit moves along the first feature by g. What is left of the third is
    0.6 - 0.8 * 0.48 g, that of the first 0.8 (1 - g): equal at g = 0.2 / 0.416. What
    is left of the second stays below until g = 1.55 / (0.8 + 0.8 * 0.99686).
    """
    copy = 0.75 * A + np.sqrt(1 - 0.75**2) * B
    X = np.column_stack([0.8 * A + 0.6 * B, copy, 0.6 * A + 0.8 * C])
    path = least_angle_path(StandardColumns(X), A[:, None], 2)
    assert path.entered == [0, 2]
    np.testing.assert_allclose(path.levels, [0.8, 0.8 * (1 - 0.2 / 0.416)])
    assert SPFSLAR(n_features=2).fit(X, [1, 1, 0, 0]).selected_.tolist() == [0, 2]


def test_the_targets_are_the_centred_similarity():
    y = np.array([2, 0, 0, 1, 2, 2, 1])
    kernel = np.equal.outer(y, y) / np.bincount(y)[y]
    centre = np.eye(7) - 1 / 7
    targets = class_similarity(y)
    assert targets.shape == (7, 2)
    np.testing.assert_allclose(targets @ targets.T, centre @ kernel @ centre)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_the_path_is_that_of_plain_loops(n_classes):
    rng = np.random.default_rng(n_classes)
    for _ in range(5):
        n, p = rng.integers(20, 60), rng.integers(3, 25)
        X = rng.normal(size=(n, p))
        y = rng.permutation(np.arange(n) % n_classes)
        X[:, 0] += y
        Z, Y = reference_models.standardise(X), class_similarity(y)
        entered, levels = reference_models.least_angles(Z, Y, min(p, n // 2))
        for stored in (X, sparse.csc_array(X)):
            path = least_angle_path(StandardColumns(stored), Y, len(entered))
            assert path.entered == entered
            np.testing.assert_allclose(path.levels, levels, atol=1e-9)


def test_two_classes_are_plain_least_angle_regression():
    """The first half of scikit-learn's path; near its end that one is inexact."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 30))
    y = (X[:, :3].sum(axis=1) + rng.normal(size=200) > 0).astype(int)
    Z, Y = reference_models.standardise(X), class_similarity(y)
    _, active, _ = lars_path(Z, Y[:, 0], method="lar", max_iter=15)
    assert least_angle_path(StandardColumns(X), Y, 15).entered == active


def test_fewer_features_are_the_beginning_of_more():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(80, 300)), np.arange(80) % 3
    whole = SPFSLAR(n_features=40).fit(X, y).selected_
    assert whole.size == 40
    for k in (1, 7, 25):
        assert SPFSLAR(n_features=k).fit(X, y).selected_.tolist() == whole[:k].tolist()


def test_a_combination_of_features_in_the_model_is_redundant():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, 3))
    y = X[:, 0] + X[:, 1] > 0
    X = np.column_stack([X, 5 - 2 * X[:, 0]])
    with pytest.warns(FeatstreamWarning, match="3 features, .* explain all"):
        fitted = SPFSLAR(n_features=4).fit(X, y)
    assert sorted(fitted.selected_.tolist()) == [0, 1, 2]
    trace = fitted.result_.trace
    assert trace.fate(3) is Fate.REDUNDANT
    assert trace.witness(3) == 0
    assert "combination of features that entered" in fitted.explain(3)


def test_it_improves_on_the_best_single_features():
    gains = []
    for seed in range(10):
        X, y, X_test, y_test = reference_models.study(seed)
        best = SelectKBest(f_classif, k=10).fit(X, y).get_support(indices=True)
        accuracy = [
            LogisticRegression().fit(X[:, chosen], y).score(X_test[:, chosen], y_test)
            for chosen in (SPFSLAR(n_features=10).fit(X, y).selected_, best)
        ]
        gains.append(accuracy[0] - accuracy[1])
    assert min(gains) > 0
    assert np.mean(gains) > 0.05


def test_standard_columns_are_those_of_plain_arrays():
    rng = np.random.default_rng(3)
    X = np.round(4 * rng.normal(size=(30, 12))) * (rng.random((30, 12)) < 0.4)
    X[:, 3], X[:, 7] = 0.0, 0.1
    Z, V, W = (
        reference_models.standardise(X, 2.0),
        rng.normal(size=(30, 2)),
        rng.normal(size=(12, 2)),
    )
    some = np.array([5, 1, 7])
    for stored in (X, sparse.csc_array(X)):
        columns = StandardColumns(stored, 2.0)
        assert np.flatnonzero(columns.is_constant).tolist() == [3, 7]
        np.testing.assert_allclose(columns.products(V), Z.T @ V, atol=1e-12)
        np.testing.assert_allclose(columns.products(V[:, 0]), Z.T @ V[:, 0], atol=1e-12)
        np.testing.assert_allclose(columns.combine(W), Z @ W, atol=1e-12)
        np.testing.assert_allclose(columns.to_dense(), Z, atol=1e-12)
        part = columns.take(some)
        np.testing.assert_allclose(part.to_dense(), Z[:, some], atol=1e-12)
        found = columns.correlations(part)
        np.testing.assert_allclose(found, Z.T @ Z[:, some], atol=1e-12)


def test_the_largest_ignore_rounding():
    scores = np.array([0.3, 0.1 + 0.2, 0.5, 0.0, 0.3])
    assert scores[1] > scores[0]
    assert largest(scores, 3).tolist() == [2, 0, 1]
    assert largest(scores, 9).tolist() == [2, 0, 1, 4]
