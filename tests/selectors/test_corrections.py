"""Thresholds that pay for the number of features they judge."""

import re
from copy import deepcopy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.base import clone
from sklearn.feature_selection import f_classif

import reference
from featstream import (
    SAOLA,
    FisherZ,
    GroupSAOLA,
    SelectFromStream,
    SymmetricalUncertainty,
)
from featstream.errors import FeatstreamWarning
from featstream.selectors.saola.budget import Budget
from strategies import examples


def drawn_p_values(seed, n=200):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    strong = rng.random(n) < rng.choice([0.02, 0.2])
    p[strong] *= 10.0 ** -rng.integers(2, 9, strong.sum())
    return p


@examples(15)
@given(seed=st.integers(0, 10**6), alpha=st.sampled_from([0.01, 0.05, 0.15]))
def test_online_fdr_is_lord(seed, alpha):
    p = drawn_p_values(seed)
    assert Budget("online-fdr", alpha).judge(p).tolist() == reference.lord(p, alpha)


@examples(15)
@given(
    seed=st.integers(0, 10**6),
    correction=st.sampled_from(["bonferroni", "online-fdr"]),
    n_known=st.sampled_from([None, 120, 200]),
    cuts=st.lists(st.integers(0, 200), max_size=5),
)
def test_neither_blocks_nor_resuming_change_the_levels(seed, correction, n_known, cuts):
    p = drawn_p_values(seed)
    whole, budget = Budget(correction, 0.05), Budget(correction, 0.05)
    whole.to_open = budget.to_open = n_known or 0
    budget.judge(np.empty(0))
    found = []
    for part in np.split(p, sorted(cuts)):
        again = Budget(correction, 0.05)
        again.restore(budget.arrays())
        found += again.judge(part).tolist()
        budget = again
    assert found == whole.judge(p).tolist()


def levels(budget, n):
    """The level of each of the next features, by bisection on copies."""
    found = []
    budget.judge(np.empty(0))  # opens its source
    for _ in range(n):
        low, high = 0.0, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            passes = deepcopy(budget).judge(np.array([middle]))[0]
            low, high = (middle, high) if passes else (low, middle)
        found.append(high)
        budget.judge(np.ones(1))
    return np.array(found)


def test_bonferroni_spends_no_more_than_its_level():
    budget = Budget("bonferroni", 0.05)
    budget.to_open = 100
    np.testing.assert_allclose(levels(budget, 100), 0.95 * 0.05 / 100, rtol=1e-9)
    rest = levels(budget, 50)
    assert (np.diff(rest) < 0).all()
    assert rest.sum() < 0.05 * 0.05
    budget.to_open = 10
    left = 0.05 * 0.05 - rest.sum()
    np.testing.assert_allclose(levels(budget, 10), 0.95 * left / 10, rtol=1e-6)


def test_the_share_of_false_discoveries_is_at_most_the_level():
    """Planted effects in 200 streams; the mean share, and what chance adds to it."""
    rng, shares = np.random.default_rng(0), []
    for _ in range(200):
        p = rng.random(1000)
        is_true = rng.random(1000) < rng.choice([0.01, 0.1])
        effect = rng.normal(3.5, 0.5, is_true.sum())
        p[is_true] = stats.norm.sf(rng.normal(effect))
        passed = Budget("online-fdr", 0.05).judge(p)
        shares.append(np.count_nonzero(passed & ~is_true) / max(passed.sum(), 1))
    assert np.mean(shares) <= 0.05 + 2 * np.std(shares) / np.sqrt(200)


def noise(kind, n=300, p=3000, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    if kind == "normal":
        return rng.normal(size=(n, p)), y
    return (rng.random((n, p)) < rng.choice([0.01, 0.1, 0.5], p)).astype(np.uint8), y


@pytest.mark.parametrize("kind", ["normal", "binary"])
def test_nothing_is_selected_from_noise(kind):
    X, y = noise(kind)
    assert SelectFromStream().fit(X, y).selected_.size == 0
    with pytest.warns(FeatstreamWarning, match="chance alone"):
        assert SAOLA().fit(X, y).selected_.size > 5


@pytest.mark.parametrize("correction", ["bonferroni", "online-fdr"])
def test_a_selection_of_nothing_says_what_it_lacked(correction):
    """The smallest p-value, the level at its place, and the rows that would do."""
    X, y = noise("normal")
    p = f_classif(X, y)[1]
    selector = SAOLA(measure="fisher-z", correction=correction)
    with pytest.warns(FeatstreamWarning, match="Nothing was selected") as caught:
        selector.fit(X, y)
    smallest = p.min()
    budget = Budget(correction, 0.05)
    budget.to_open = p.size
    level = levels(budget, int(p.argmin()) + 1)[-1]
    said = str(caught[0].message)
    assert f"the smallest p-value of 3,000 features is {smallest:.2g}," in said
    assert f"it would have needed {level:.2g}." in said
    n_rows = int(re.search(r"about ([\d,]+) rows", said)[1].replace(",", ""))
    z = np.sqrt(n_rows / y.size) * stats.norm.isf(smallest / 2)
    assert 2 * stats.norm.sf(z) == pytest.approx(level, rel=0.05)
    assert len(caught) == 1


def test_chance_is_what_a_false_discovery_rate_leaves_out():
    X, y = noise("normal")
    X[:, [7, 70]] += np.c_[y, 1 - y]
    with pytest.warns(FeatstreamWarning) as caught:
        kept = SAOLA().fit(X, y).selected_
    among_all = np.r_[f_classif(X[:, kept], y)[1], np.ones(X.shape[1] - kept.size)]
    n_sure = np.count_nonzero(stats.false_discovery_control(among_all) <= 0.05)
    assert 2 <= n_sure < 5
    assert len(caught) == 1
    said = f"Of {kept.size} kept features, {kept.size - n_sure} may be chance alone"
    assert said in str(caught[0].message)


@pytest.mark.parametrize("kind", ["normal", "binary"])
@pytest.mark.parametrize("correction", ["bonferroni", "online-fdr"])
def test_what_stands_out_is_selected(kind, correction):
    X, y = noise(kind)
    X = X.copy()
    X[:, 1000] = X[:, 1000] + y if kind == "normal" else y
    measure = "fisher-z" if kind == "normal" else "su"
    selector = SAOLA(measure=measure, correction=correction).fit(X, y)
    assert selector.selected_.tolist() == [1000]
    grouped = GroupSAOLA(measure=measure, correction=correction).fit(X, y)
    assert grouped.selected_.tolist() == [1000]


def test_the_level_is_that_of_the_measure_or_five_percent():
    y = [0, 1] * 20
    for measure, level in [
        (FisherZ(), 0.05),
        (FisherZ(alpha=0.02), 0.02),
        (SymmetricalUncertainty(), 0.05),
        (SymmetricalUncertainty(alpha=0.1), 0.1),
    ]:
        selector = SAOLA(measure=measure, correction="bonferroni").start(y)
        selector.update(np.arange(40) % 3)
        assert selector._budget.level == level


def test_the_recommended_settings_are_options_of_saola():
    X, y = noise("binary", p=300)
    X[:, ::9] = np.where(np.arange(y.size)[:, None] % 3 == 0, X[:, ::9], y[:, None])
    X[:, -1] = X[:, 0]
    stream = SelectFromStream(measure="su").fit(X, y)
    options = {"redundancy": "conditional", "redundancy_alpha": 0.2}
    copies = SAOLA(measure="su", correction="online-fdr", **options).fit(X, y)
    same = clone(copies).set_params(ties="drop").fit(X, y)
    assert stream.selected_.tolist() == same.selected_.tolist()
    assert {0, 299} & set(stream.selected_) == {0}
    assert {0, 299} & set(copies.selected_) == {0, 299}
