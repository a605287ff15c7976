"""FGM and GDM: cutting planes of a sparse support vector machine."""

from __future__ import annotations

import itertools
import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.svm import LinearSVC

import reference_models
from featstream import FGM, GDM, Fate
from featstream.errors import FeatstreamWarning, ParameterError
from featstream.selectors.batch import fgm
from featstream.selectors.batch.fgm import generate_features
from featstream.selectors.batch.standard_columns import StandardColumns

VOTES = np.array(list(itertools.product([1.0, -1.0], repeat=3)))
"""Three voters, all cases; the majority decides."""


def generate(X, signs, **options):
    options = {"n_features": 99, "plane_size": 1, "cost": 2.0, "tol": 1e-6} | options
    return generate_features(StandardColumns(X), signs[:, None], **options)


def test_a_machine_worked_out_by_hand():
    """The majority of three: each voter joins, and all end with the same weight.

    With an output of u per voter, 2 rows have losses 1 - 3u and 6 rows 1 - u. The
    weights are u √8 on columns of length 1, so that (sum of weights)² / 2 = 36 u², and
    36 u² + 2/2 (2 (1 - 3u)² + 6 (1 - u)²) is least where 72 u = 2 (12 - 24 u).
    """
    found = generate(VOTES, np.sign(VOTES.sum(axis=1)))
    assert found.support.tolist() == [0, 1, 2]
    assert found.has_converged
    np.testing.assert_allclose(found.coefficients()[:, 0], 0.2 * np.sqrt(8), atol=1e-4)
    assert abs(found.intercepts[0]) < 1e-6


def test_what_is_not_violated_is_not_generated():
    """The class itself: its loss 1 / (1 + cost) leaves too little for the others.

    The weight 2C / (1 + C) is also the level of violation. A feature of correlation
    0.6 has 0.6 of that.
    """
    a, c = np.array([1, 1, -1, -1]) / 2, np.array([1, -1, -1, 1]) / 2
    found = generate(np.column_stack([0.6 * a + 0.8 * c, a]), 2 * a)
    assert found.support.tolist() == [1]
    np.testing.assert_allclose(found.coefficients(), [[4 / 3]], atol=1e-5)


@pytest.mark.parametrize("plane_size", [1, 2, 5])
@pytest.mark.parametrize("cost", [1.0, 10.0])
def test_cutting_planes_end_at_the_optimum(plane_size, cost):
    rng = np.random.default_rng(plane_size)
    X = rng.normal(size=(60, 200))
    signs = np.where(X[:, 0] + X[:, 1] + rng.normal(size=60) > 0, 1.0, -1.0)
    Z = reference_models.standardise(X)
    for stored in (X, sparse.csc_array(X)):
        found = generate(
            stored, signs, n_features=200, plane_size=plane_size, cost=cost
        )
        assert found.has_converged
        weights = np.zeros(200)
        weights[found.support] = found.coefficients()[:, 0]
        norm = sum(np.linalg.norm(own) for own in found.weights)
        value, gap = reference_models.machine_gap(
            Z, signs, weights, found.intercepts[0], norm, cost, plane_size
        )
        assert -1e-9 * value < gap < 1e-4 * value


def test_the_first_plane_has_the_highest_correlations():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 400)), rng.permutation(np.arange(50) % 2)
    found = FGM(n_features=6, plane_size=6).fit(X, y).selected_
    values = f_classif(X, y)[0]
    assert found.tolist() == np.argsort(-values)[:6].tolist()


@pytest.mark.parametrize("make", [FGM, GDM])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_fewer_features_are_the_beginning_of_more(make, n_classes):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(80, 300)), np.arange(80) % n_classes
    whole = make(n_features=30, plane_size=3).fit(X, y).selected_
    assert whole.size == 30
    for k in (1, 2, 8, 19):
        part = make(n_features=k, plane_size=3).fit(X, y).selected_
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


def test_fgm_improves_on_the_best_single_features():
    gains = []
    for seed in range(10):
        data = reference_models.study(seed)
        best = SelectKBest(f_classif, k=10).fit(*data[:2]).get_support(indices=True)
        own = FGM(n_features=10).fit(*data[:2]).selected_
        gains.append(accuracy(own, *data) - accuracy(best, *data))
    assert min(gains) > 0
    assert np.mean(gains) > 0.05


def test_gdm_has_lower_correlations_than_fgm_at_equal_accuracy():
    gains, falls = [], []
    for seed in range(10):
        data = reference_models.study(seed)
        own = GDM(n_features=10).fit(*data[:2]).selected_
        other = FGM(n_features=10).fit(*data[:2]).selected_
        assert own.size == other.size == 10
        gains.append(accuracy(own, *data) - accuracy(other, *data))
        falls.append(mean_correlation(other, data[0]) - mean_correlation(own, data[0]))
    assert np.mean(gains) >= 0
    assert min(falls) > 0
    assert np.mean(falls) > 0.05


@pytest.mark.parametrize("make", [np.asarray, sparse.csc_array])
def test_support_features_are_apart_and_affiliated_ones_near(make, monkeypatch):
    """Affiliated are all others above the limit, each with its nearest feature."""
    monkeypatch.setattr(fgm, "_MOST_CORRELATIONS", 200)  # in several blocks
    X, y, *_ = reference_models.study(3)
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
    X, y, *_ = reference_models.study(0)
    with pytest.raises(ParameterError, match="trace='full'"):
        _ = GDM(trace=None).fit(X, y).affiliated_
