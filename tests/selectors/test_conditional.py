"""SAOLA with the conditional test: Algorithm 1 with a test in place of the bound."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import reference
import strategies
from checks import fates_of
from featstream import SAOLA, FisherZ, SymmetricalUncertainty
from scores import DISCRETE, overlaps, relevances, scores_of
from strategies import examples

ROWS = st.sampled_from([20, 70, 200])


def expected_fates(scores, is_redundant, rule):
    options = {k: rule[k] for k in ("ties", "pruning", "max_features")}
    return reference.saola(scores, is_redundant=is_redundant, **options)


def assert_equals(selector, fates, p_values):
    """Fates as expected; of a redundant feature, the p-value if there was a test."""
    assert fates_of(selector) == fates
    for arrival, (fate, witness) in fates.items():
        if fate == "redundant":
            found = selector.result_.trace.p_value(arrival)
            expected = p_values.get((arrival, witness))
            assert found == (expected and pytest.approx(expected, abs=1e-5))


@examples(50)
@given(
    data=ROWS.flatmap(lambda n: strategies.discrete_data(least_rows=n)),
    rule=strategies.conditional_rules(),
    measure=st.sampled_from([*DISCRETE]),
    make=strategies.STORAGES,
)
def test_discrete_features_are_tested_given_the_more_relevant(
    data, rule, measure, make
):
    X, y = data
    columns, classes = X.T.tolist(), y.tolist()
    table, p_values = reference.nlogn(len(y)), {}
    scores = reference.discrete_scores(X, y, DISCRETE[measure])

    def is_redundant(loser, winner):
        pair = columns[loser], columns[winner]
        if reference.is_thin([*pair, classes]):
            return scores.overlap(loser, winner) >= scores.relevance[loser]
        found = reference.information_given(pair[0], classes, pair[1], table)
        p_values[loser, winner] = reference.g_square_tail(*found, table)
        return p_values[loser, winner] >= rule["redundancy_alpha"]

    fates = expected_fates(scores, is_redundant, rule)
    assert_equals(SAOLA(measure=measure(), **rule).fit(make(X), y), fates, p_values)


@examples(40)
@given(
    data=strategies.continuous_data(),
    rule=strategies.conditional_rules(),
    make=strategies.STORAGES,
)
def test_continuous_features_are_tested_given_the_more_relevant(data, rule, make):
    X, y = data
    n, alpha, p_values = len(y), rule["redundancy_alpha"], {}
    measure, n_classes = FisherZ(alpha=0.2), len(set(y.tolist()))
    scores = scores_of(measure, make(X), y)

    def is_redundant(loser, winner):
        a, g = X[:, loser].astype(float), X[:, winner].astype(float)
        r = np.corrcoef(a, g)[0, 1]
        if r * r > 1 - 1e-10 or scores.relevance[winner] ** 2 > 1 - 1e-10:
            p = 1.0
        else:
            share = min(max(reference.explained_given(a, y.tolist(), g), 0), 1)
            if n_classes == 2:
                z = np.arctanh(np.sqrt(share)) * np.sqrt(max(n - 4, 0))
                p = 2 * stats.norm.sf(z)
            else:
                within = n - n_classes - 1
                f = share / (n_classes - 1) * within / (1 - share)
                p = stats.f.sf(f, n_classes - 1, within) if within > 0 else 1.0
        p_values[loser, winner] = p
        return p >= alpha

    fates = expected_fates(scores, is_redundant, rule)
    if all(abs(p - alpha) >= 1e-9 for p in p_values.values()):  # else rounding decides
        selector = SAOLA(measure=measure, **rule).fit(make(X), y)
        assert_equals(selector, fates, p_values)


def test_what_the_bound_takes_for_redundant_the_test_keeps():
    """Two words of one style, each of which tells something of its own."""
    y = np.repeat([0, 1], 200)
    style = np.tile(np.repeat([0, 1], 100), 2)
    rng = np.random.default_rng(0)
    words = style[:, None] & (rng.random((400, 2)) < 0.4 + 0.35 * y[:, None])
    measure = SymmetricalUncertainty()
    scores, pairs = relevances(measure, words, y), overlaps(measure, words, y)
    assert pairs[1, 0] >= scores.min() > 0
    assert SAOLA(measure=measure).fit(words, y).selected_.size == 1
    tested = SAOLA(measure=measure, redundancy="conditional").fit(words, y)
    assert tested.selected_.tolist() == [0, 1]


def test_an_explanation_tells_the_p_value():
    y = np.repeat([0, 1], 100)
    rng = np.random.default_rng(1)
    word = y ^ (rng.random(200) < 0.1)
    worse = word ^ (rng.random(200) < 0.2)
    selector = SAOLA(measure="su", redundancy="conditional").start(y)
    assert selector.update(word, "word").p_value is None
    decision = selector.update(worse, "worse")
    assert (decision.witness, decision.overlap) == ("word", None)
    found = reference.information_given(
        worse.tolist(), y.tolist(), word.tolist(), reference.nlogn(200)
    )
    p = reference.g_square_tail(*found, reference.nlogn(200))
    assert decision.p_value == pytest.approx(p)
    assert selector.explain("worse") == (
        "'worse' is redundant: no evidence that it adds anything once 'word' is "
        f"known: p = {p:.2g}."
    )
