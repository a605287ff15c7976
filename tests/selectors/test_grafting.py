"""Grafting against a solver of its objective, and by hand."""

import numpy as np
import pytest
from scipy import optimize

from featstream import Fate, Grafting
from featstream.datasets import make_stream


def test_the_first_feature_by_hand():
    """Four samples, a feature of signs: the optimum is where the loss's slope is l1.

    With weight w the loss is log(1 + e^-w), whose slope is -1 / (1 + e^w). At w = 0
    it is -1/2, steeper than l1 = 0.2; at the optimum 1 / (1 + e^w) = 0.2, w = log 4.
    """
    y = np.array([0, 0, 1, 1])
    selector = Grafting(l1=0.2).start(y)
    decision = selector.update(np.array([-1.0, -1.0, 1.0, 1.0]))
    assert decision.is_kept
    assert decision.relevance == pytest.approx(0.5)
    assert selector.scores_ == pytest.approx([np.log(4.0)], abs=1e-6)
    expected = np.log(1.25) + 0.2 * np.log(4.0)
    assert selector.objective_ == pytest.approx(expected, abs=1e-10)
    # Its copy is no steeper than its price.
    assert selector.update(np.array([3.0, 3.0, 5.0, 5.0])).fate is Fate.IRRELEVANT
    # With a price above one half nothing is steep enough.
    assert Grafting(l1=0.51).fit(y[:, None] * 1.0, y).selected_.size == 0


@pytest.mark.parametrize(("l1", "l2"), [(0.05, 0.0), (0.1, 0.3)])
def test_the_weights_minimise_the_objective(l1, l2):
    stream = make_stream(200, 60, n_informative=4, kind="continuous", seed=3)
    selector = Grafting(l1=l1, l2=l2).fit(stream.X, stream.y)
    X = stream.X[:, selector.selected_]
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    signs = 2.0 * stream.y - 1
    k = Z.shape[1]
    assert k >= 2

    def objective(v):  # weights as differences of positive parts: smooth in a box
        w = v[1 : 1 + k] - v[1 + k :]
        loss = np.logaddexp(0.0, -signs * (v[0] + Z @ w)).mean()
        return loss + l1 * v[1:].sum() + l2 * (w**2).sum()

    best = optimize.minimize(
        objective,
        np.zeros(1 + 2 * k),
        bounds=[(None, None)] + [(0, None)] * (2 * k),
        method="L-BFGS-B",
        options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 5000},
    )
    assert selector.objective_ == pytest.approx(best.fun, abs=1e-8)
    found = np.abs(best.x[1 : 1 + k] - best.x[1 + k :])
    np.testing.assert_allclose(selector.scores_, found, atol=1e-4)


def test_a_weight_that_returns_to_zero_leaves():
    rng = np.random.default_rng(0)
    cause = rng.normal(size=500)
    y = (cause > 0).astype(int)
    noisy = cause + 0.7 * rng.normal(size=500)
    selector = Grafting(l1=0.1).start(y)
    assert selector.update(noisy, name="noisy").is_kept
    decision = selector.update(cause, name="cause")
    assert decision.displaced == ("noisy",)
    assert selector.result_.names == ("cause",)
    assert "with 'cause' in the model" in selector.explain("noisy")


def test_a_feature_must_be_worth_its_price():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 3))
    y = X[:, 0] + 0.3 * X[:, 1] + 0.3 * rng.normal(size=300) > 0
    cheap = Grafting(l1=0.01).fit(X, y)
    dear = Grafting(l1=0.01, l0=0.1).fit(X, y)
    assert {0, 1} <= set(cheap.selected_)
    assert dear.selected_.tolist() == [0]


def test_separable_classes_and_constants_are_no_trouble():
    y = np.repeat([0, 1], 20)
    X = np.column_stack([np.full(40, 0.1), y, 2 * y, np.zeros(40)])
    selector = Grafting(l1=1e-4).fit(X, y)
    assert selector.selected_.tolist() == [1]
    assert np.isfinite(selector.scores_).all()
