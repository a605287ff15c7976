"""Batch selectors that fit a model, against slow and obvious models, and libraries."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.linear_model import LogisticRegression, lars_path
from sklearn.svm import LinearSVC

import reference_models as reference
from featstream import (
    FGM,
    GDM,
    SPFSLAR,
    Fate,
    GroupLassoSelector,
    LassoSelector,
    SparseGroupLassoSelector,
)
from featstream.errors import FeatstreamWarning, ParameterError
from featstream.selectors.batch import fgm, regressions
from featstream.selectors.batch.fgm import generate_features
from featstream.selectors.batch.regressions import (
    Penalty,
    class_similarity,
    fit_logistic,
    least_angle_path,
)
from featstream.selectors.numeric import StandardColumns, largest

forms = pytest.mark.parametrize("make", [np.asarray, sparse.csc_array])


def test_standard_columns_are_those_of_plain_arrays():
    rng = np.random.default_rng(3)
    X = np.round(4 * rng.normal(size=(30, 12))) * (rng.random((30, 12)) < 0.4)
    X[:, 3], X[:, 7] = 0.0, 0.1
    Z, some = reference.standardise(X, 2.0), np.array([5, 1, 7])
    V, W = rng.normal(size=(30, 2)), rng.normal(size=(12, 2))
    for stored in (X, sparse.csc_array(X)):
        columns = StandardColumns(stored, 2.0)
        part = columns.take(some)
        assert np.flatnonzero(columns.is_constant).tolist() == [3, 7]
        for found, expected in (
            (columns.products(V), Z.T @ V),
            (columns.products(V[:, 0]), Z.T @ V[:, 0]),
            (columns.combine(W), Z @ W),
            (columns.to_dense(), Z),
            (part.to_dense(), Z[:, some]),
            (columns.correlations(part), Z.T @ Z[:, some]),
        ):
            np.testing.assert_allclose(found, expected, atol=1e-12)


def test_the_largest_ignore_rounding():
    scores = np.array([0.3, 0.1 + 0.2, 0.5, 0.0, 0.3])
    assert scores[1] > scores[0]
    assert largest(scores, 3).tolist() == [2, 0, 1]
    assert largest(scores, 9).tolist() == [2, 0, 1, 4]


def generate(X, signs, **options):
    options = {"n_features": 99, "plane_size": 1, "cost": 2.0, "tol": 1e-6} | options
    return generate_features(StandardColumns(X), signs[:, None], FGM(**options))


def coefficients(found):
    """The weights of the features, summed over the groups that have them."""
    total = np.zeros((found.support.size, found.intercepts.size))
    for group, weights in zip(found.groups, found.weights, strict=True):
        total[group] += weights
    return total


def test_what_is_not_violated_is_not_generated():
    """The class itself: its loss 1 / (1 + cost) leaves too little for the others.

    The weight 2C / (1 + C) is also the level of violation. A feature of correlation
    0.6 has 0.6 of that.
    """
    a, c = np.array([1, 1, -1, -1]) / 2, np.array([1, -1, -1, 1]) / 2
    found = generate(np.column_stack([0.6 * a + 0.8 * c, a]), 2 * a)
    assert found.support.tolist() == [1]
    np.testing.assert_allclose(coefficients(found), [[4 / 3]], atol=1e-5)


@pytest.mark.parametrize("plane_size", [1, 2, 5])
@pytest.mark.parametrize("cost", [1.0, 10.0])
def test_cutting_planes_end_at_the_optimum(plane_size, cost):
    rng = np.random.default_rng(plane_size)
    X = rng.normal(size=(60, 200))
    signs = np.where(X[:, 0] + X[:, 1] + rng.normal(size=60) > 0, 1.0, -1.0)
    Z = reference.standardise(X)
    for stored in (X, sparse.csc_array(X)):
        found = generate(
            stored, signs, n_features=200, plane_size=plane_size, cost=cost
        )
        assert found.has_converged
        weights = np.zeros(200)
        weights[found.support] = coefficients(found)[:, 0]
        norm = sum(np.linalg.norm(own) for own in found.weights)
        value, gap = reference.machine_gap(
            Z, signs, weights, found.intercepts[0], norm, cost, plane_size
        )
        assert -1e-9 * value < gap < 1e-4 * value


def test_the_first_plane_has_the_highest_correlations():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 400)), rng.permutation(np.arange(50) % 2)
    found = FGM(n_features=6, plane_size=6).fit(X, y).selected_
    values = f_classif(X, y)[0]
    assert found.tolist() == np.argsort(-values)[:6].tolist()


@pytest.mark.parametrize(
    "selector", [FGM(plane_size=3), GDM(plane_size=3), SPFSLAR()], ids=repr
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


def test_one_pass_per_cutting_plane_and_nothing_dense(monkeypatch):
    n, p = 1_000, 200_000
    rng = np.random.default_rng(2)
    entries = 400_000
    rows, columns = rng.integers(0, n, entries), rng.integers(0, p, entries)
    X = sparse.csc_array((np.ones(entries), (rows, columns)), shape=(n, p))
    signs = rng.choice([-1.0, 1.0], n)
    passes = []
    products = StandardColumns.products

    def counted(self, vectors):
        if self.shape[1] == p:
            passes.append(self)
        return products(self, vectors)

    monkeypatch.setattr(StandardColumns, "products", counted)
    tracemalloc.start()
    found = generate(X, signs, n_features=60, plane_size=10)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.support.size == 60
    assert len(passes) == len(found.groups)
    assert peak < n * p * 8 / 20


def accuracy(chosen, X, y, X_test, y_test):
    return LinearSVC().fit(X[:, chosen], y).score(X_test[:, chosen], y_test)


def mean_correlation(chosen, X):
    found = np.abs(np.corrcoef(X[:, chosen].T))
    return found[np.triu_indices(len(chosen), 1)].mean()


def test_models_improve_on_the_best_single_features():
    """And GDM has lower correlations than FGM, at equal accuracy."""
    gains, falls = [], []
    for seed in range(10):
        data = reference.study(seed)
        best = SelectKBest(f_classif, k=10).fit(*data[:2]).get_support(indices=True)
        models = FGM(), GDM(), SPFSLAR()
        found = [model.fit(*data[:2]).selected_ for model in models]
        assert [own.size for own in found] == [10, 10, 10]
        gains.append([accuracy(own, *data) - accuracy(best, *data) for own in found])
        fgm_has, gdm_has, _ = (mean_correlation(own, data[0]) for own in found)
        falls.append(fgm_has - gdm_has)
    assert np.min(gains) > 0
    of_fgm, of_gdm, of_spfs = np.mean(gains, axis=0)
    assert min(of_fgm, of_spfs) > 0.05
    assert of_gdm >= of_fgm
    assert min(falls) > 0
    assert np.mean(falls) > 0.05


@forms
def test_support_features_are_apart_and_affiliated_ones_near(make, monkeypatch):
    """Affiliated are all others above the limit, each with its nearest feature."""
    monkeypatch.setattr(fgm, "_MOST_CORRELATIONS", 200)  # in several blocks
    X, y, *_ = reference.study(3)
    with pytest.warns(FeatstreamWarning, match="than n_features=25: no other group"):
        selector = GDM(n_features=25, max_correlation=0.6).fit(make(X), y)
    found, chosen = np.abs(np.corrcoef(X.T)), selector.selected_
    assert found[np.ix_(chosen, chosen)][np.triu_indices(chosen.size, 1)].max() <= 0.6
    expected = {}
    for j in set(range(60)) - set(chosen.tolist()):
        nearest = max(chosen.tolist(), key=lambda s, j=j: found[j, s])
        if found[j, nearest] > 0.6:
            expected.setdefault(nearest, []).append(j)
            assert selector.result_.trace.fate(j) is Fate.REDUNDANT
    own = {s: members.tolist() for s, members in selector.affiliated_.items()}
    assert own == {s: sorted(members) for s, members in expected.items()}
    assert sum(map(len, expected.values())) > 40
    assert "is above 0.6" in selector.explain(j)


def test_affiliated_features_need_a_full_trace():
    X, y, *_ = reference.study(0)
    with pytest.raises(ParameterError, match="trace='full'"):
        _ = GDM(trace=None).fit(X, y).affiliated_


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
def test_the_objective_is_that_of_plain_fista(make, l1, l2):
    for seed in range(3):
        X, signs, groups = data(seed)
        columns = StandardColumns(make(X), np.sqrt(60))
        found = fit_logistic(columns, signs, Penalty(groups, l1, l2), 1e-6)
        Z = reference.standardise(X, np.sqrt(60))
        problem = Z, signs, groups, l1, l2
        best = reference.penalised_objective(
            *problem, *reference.penalised_fit(*problem)
        )
        own = reference.penalised_objective(*problem, found.weights, found.intercept)
        assert found.has_converged
        assert abs(own - best) < 1e-8


def test_the_lasso_is_that_of_scikit_learn():
    X, signs, groups = data(5, n=100)
    X, groups = np.delete(X, 1, axis=1), np.delete(groups, 1)  # near copies are slow
    Z = reference.standardise(X, np.sqrt(100))
    model = LogisticRegression(
        l1_ratio=1.0, C=1 / (100 * 0.03), solver="saga", tol=1e-9, max_iter=50_000
    ).fit(Z, signs)
    columns = StandardColumns(X, np.sqrt(100))
    found = fit_logistic(columns, signs, Penalty(groups, 0.03, 0.0), 1e-7)
    np.testing.assert_allclose(found.weights, model.coef_[0], atol=1e-5)
    assert LassoSelector(penalty=0.03).fit(X, signs).selected_.tolist() == (
        np.argsort(-np.abs(model.coef_[0]))[: np.count_nonzero(found.weights)].tolist()
    )


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
    monkeypatch.setattr(regressions, "_MOST_STEPS", 3)
    X, signs, _ = data(0)
    with pytest.warns(ConvergenceWarning, match="did not reach tol=1e-06"):
        LassoSelector(penalty=0.01).fit(X, signs)


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


def test_two_classes_are_plain_least_angle_regression():
    """The first half of scikit-learn's path; near its end that one is inexact."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 30))
    y = (X[:, :3].sum(axis=1) + rng.normal(size=200) > 0).astype(int)
    Z, Y = reference.standardise(X), class_similarity(y)
    _, active, _ = lars_path(Z, Y[:, 0], method="lar", max_iter=15)
    assert least_angle_path(StandardColumns(X), Y, 15)[0] == active


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
