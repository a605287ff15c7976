"""Batch selectors that fit a model, against slow and obvious models."""

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import f_classif
from sklearn.svm import LinearSVC

import featstream as fs
import reference_batch as reference
from featstream.errors import FeatstreamWarning, ParameterError
from featstream.selectors.batch import fgm, regressions
from featstream.selectors.batch.fgm import generate_features
from featstream.selectors.batch.regressions import (
    Penalty,
    class_similarity,
    fit_logistic,
    least_angle_path,
)
from featstream.selectors.numeric import StandardColumns

forms = pytest.mark.parametrize("make", [np.asarray, sparse.csc_array])


@pytest.mark.parametrize("plane_size", [1, 2, 5])
@pytest.mark.parametrize("cost", [1.0, 10.0])
def test_cutting_planes_end_at_the_optimum(plane_size, cost):
    rng = np.random.default_rng(plane_size)
    X = rng.normal(size=(60, 200))
    signs = np.where(X[:, 0] + X[:, 1] + rng.normal(size=60) > 0, 1.0, -1.0)
    Z = reference.standardise(X)
    options = fs.FGM(200, plane_size=plane_size, cost=cost, tol=1e-6)
    for stored in (X, sparse.csc_array(X)):
        found = generate_features(StandardColumns(stored), signs[:, None], options)
        assert found.has_converged
        weights = np.zeros(200)
        for group, own in zip(found.groups, found.weights, strict=True):
            weights[found.support[group]] += own[:, 0]
        norm = sum(np.linalg.norm(own) for own in found.weights)
        value, gap = reference.machine_gap(
            Z, signs, weights, found.intercepts[0], norm, cost, plane_size
        )
        assert -1e-9 * value < gap < 1e-4 * value


def test_the_first_plane_has_the_highest_correlations():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 400)), rng.permutation(np.arange(50) % 2)
    found = fs.FGM(n_features=6, plane_size=6).fit(X, y).selected_
    values = f_classif(X, y)[0]
    assert found.tolist() == np.argsort(-values)[:6].tolist()


@pytest.mark.parametrize(
    "selector", [fs.FGM(plane_size=3), fs.GDM(plane_size=3), fs.SPFSLAR()], ids=repr
)
@pytest.mark.parametrize("n_classes", [2, 4])
def test_fewer_features_are_the_beginning_of_more(selector, n_classes):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(80, 300)), np.arange(80) % n_classes
    whole = selector.set_params(n_features=30).fit(X, y).selected_
    assert whole.size == 30
    for k in (1, 2, 8, 19):
        part = selector.set_params(n_features=k).fit(X, y).selected_
        assert part.tolist() == whole[:k].tolist()


def test_gdm_has_lower_correlations_than_fgm_at_no_less_accuracy():
    """The numbers are in docs/batch.md."""
    correlations, accuracies = [], []
    for seed in range(10):
        X, y, X_test, y_test = reference.study(seed)
        chosen = [model.fit(X, y).selected_ for model in (fs.FGM(), fs.GDM())]
        both = [np.abs(np.corrcoef(X[:, own].T)) for own in chosen]
        correlations.append([found[np.triu_indices(10, 1)].mean() for found in both])
        models = [LinearSVC().fit(X[:, own], y) for own in chosen]
        found = zip(models, chosen, strict=True)
        accuracies.append([m.score(X_test[:, own], y_test) for m, own in found])
    close = {"abs": 0.005}
    assert np.mean(correlations, axis=0) == pytest.approx([0.114, 0.046], **close)
    assert np.mean(accuracies, axis=0) == pytest.approx([0.825, 0.903], **close)


@forms
def test_support_features_are_apart_and_affiliated_ones_near(make, monkeypatch):
    """Affiliated are all others above the limit, each with its nearest feature."""
    monkeypatch.setattr(fgm, "_MOST_CORRELATIONS", 200)  # in several blocks
    X, y, *_ = reference.study(3)
    with pytest.warns(FeatstreamWarning, match="than n_features=25: no other group"):
        selector = fs.GDM(n_features=25, max_correlation=0.6).fit(make(X), y)
    found, chosen = np.abs(np.corrcoef(X.T)), selector.selected_
    assert found[np.ix_(chosen, chosen)][np.triu_indices(chosen.size, 1)].max() <= 0.6
    expected = {}
    for j in set(range(60)) - set(chosen.tolist()):
        nearest = max(chosen.tolist(), key=lambda s, j=j: found[j, s])
        if found[j, nearest] > 0.6:
            expected.setdefault(nearest, []).append(j)
            assert selector.result_.trace.fate(j) is fs.Fate.REDUNDANT
    own = {s: members.tolist() for s, members in selector.affiliated_.items()}
    assert own == {s: sorted(members) for s, members in expected.items()}
    assert sum(map(len, expected.values())) > 40
    assert "is above 0.6" in selector.explain(j)
    with pytest.raises(ParameterError, match="trace='full'"):
        _ = selector.set_params(trace=None, n_features=2).fit(X, y).affiliated_


def data(seed, n=60, p=40):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * rng.integers(1, 9, p) + rng.integers(0, 9, p)
    X[:, 1] = X[:, 0] + 0.1 * rng.normal(size=n)
    linear = X[:, 0] - X[:, 0].mean() + rng.normal(size=n)
    return X, np.where(linear > 0, 1.0, -1.0), rng.integers(0, 8, p)


@forms
@pytest.mark.parametrize(
    ("l1", "l2"), [(0.05, 0.02), (0.01, 0.01), (0.1, 0.0), (0.0, 0.05)]
)
def test_the_weights_of_a_lasso_are_optimal(make, l1, l2):
    """The slopes of the loss are those of the penalty, or within its kinks."""
    for seed in range(3):
        X, signs, groups = data(seed)
        columns = StandardColumns(make(X), np.sqrt(60))
        penalty, Z = Penalty(groups, l1, l2), reference.standardise(X, np.sqrt(60))
        w, intercept, has_converged = fit_logistic(columns, signs, penalty, 1e-6)
        assert has_converged
        pull = signs * expit(-signs * (Z @ w + intercept)) / 60
        assert abs(pull.sum()) < 1e-6
        for g in np.unique(groups):
            own, slopes = w[groups == g], pull @ Z[:, groups == g]
            price, norm = l2 * np.sqrt(own.size), np.linalg.norm(own)
            if norm == 0:
                above = np.maximum(np.abs(slopes) - l1, 0)
                assert np.linalg.norm(above) < price + 1e-6
                continue
            rest = slopes - price * own / norm
            expected = np.where(own == 0, np.clip(rest, -l1, l1), l1 * np.sign(own))
            np.testing.assert_allclose(rest, expected, atol=1e-6)


def test_groups_are_selected_whole_or_in_part():
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(400, 60)), np.arange(60) // 5
    y = X[:, 10] - X[:, 11] + X[:, 32] > 0
    whole = fs.GroupLassoSelector(group_penalty=0.06).fit(X, y, groups=groups)
    assert whole.selected_groups_.tolist() == [2, 6]
    assert sorted(whole.selected_.tolist()) == [*range(10, 15), *range(30, 35)]
    part = fs.SparseGroupLassoSelector(penalty=0.08).fit(X, y, groups=groups)
    assert part.selected_groups_.tolist() == [2, 6]
    assert sorted(part.selected_.tolist()) == [10, 11, 32]
    assert "leaves none of its 5 features" in part.explain(group=0)
    assert "leaves it no weight" in part.explain(12)
    nothing = fs.GroupLassoSelector(group_penalty=1.0).fit(X, y, groups=groups)
    assert nothing.selected_.size == nothing.selected_groups_.size == 0


def test_groups_of_one_are_the_lasso():
    X, signs, _ = data(7)
    alone = fs.LassoSelector(penalty=0.04).fit(X, signs)
    with pytest.warns(FeatstreamWarning, match="GroupLassoSelector has no groups"):
        single = fs.GroupLassoSelector(group_penalty=0.04).fit(X, signs)
    assert single.selected_.tolist() == alone.selected_.tolist()


def test_what_has_not_converged_is_said(monkeypatch):
    monkeypatch.setattr(regressions, "_MOST_STEPS", 3)
    X, signs, _ = data(0)
    with pytest.warns(ConvergenceWarning, match="did not reach tol=1e-06"):
        fs.LassoSelector(penalty=0.01).fit(X, signs)


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
        Z, Y = reference.standardise(X), class_similarity(y)
        entered = reference.least_angles(Z, Y, min(p, n // 2))
        for stored in (X, sparse.csc_array(X)):
            path = least_angle_path(StandardColumns(stored), Y, len(entered))
            assert path == (entered, {})


def test_a_combination_of_features_in_the_model_is_redundant():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, 3))
    y = X[:, 0] + X[:, 1] > 0
    X = np.column_stack([X, 5 - 2 * X[:, 0]])
    with pytest.warns(FeatstreamWarning, match="3 features, .* explain all"):
        fitted = fs.SPFSLAR(n_features=4).fit(X, y)
    assert sorted(fitted.selected_.tolist()) == [0, 1, 2]
    trace = fitted.result_.trace
    assert trace.fate(3) is fs.Fate.REDUNDANT
    assert trace.witness(3) == 0
    assert "combination of features that entered" in fitted.explain(3)
