"""SAOLA with the conditional test: Algorithm 1 with a test in place of the bound."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse, stats

import reference
import strategies
from featstream import (
    SAOLA,
    FisherZ,
    MutualInformation,
    SymmetricalUncertainty,
)
from featstream.errors import ParameterError
from scores import overlaps, relevances
from strategies import examples

ROWS = st.sampled_from([20, 70, 200])


def as_stored(X, is_sparse):
    return sparse.csc_array(X) if is_sparse else X


@examples(50)
@given(
    data=ROWS.flatmap(lambda n: strategies.discrete_data(least_rows=n)),
    rule=strategies.conditional_rules(),
    name=st.sampled_from(["su", "mi"]),
    is_sparse=st.booleans(),
)
def test_discrete_features_are_tested_given_the_more_relevant(
    data, rule, name, is_sparse
):
    X, y = data
    columns, classes, alpha = X.T.tolist(), y.tolist(), rule["redundancy_alpha"]
    table = reference.nlogn(len(y))
    measure, score = {
        "su": (SymmetricalUncertainty(), reference.symmetrical_uncertainty),
        "mi": (MutualInformation(), reference.mutual_information),
    }[name]
    relevance = [score(column, classes, table) for column in columns]
    p_values = {}

    def is_redundant(loser, winner):
        pair = columns[loser], columns[winner]
        if reference.is_thin([*pair, classes]):
            return score(*pair, table) >= relevance[loser]
        found = reference.information_given(pair[0], classes, pair[1], table)
        p_values[loser, winner] = reference.g_square_tail(*found, table)
        return p_values[loser, winner] >= alpha

    options = {k: rule[k] for k in ("ties", "pruning", "max_features")}
    kept, fates = reference.saola(
        relevance, None, lambda f: f > 0, is_redundant=is_redundant, **options
    )
    selector = SAOLA(measure=measure, **rule).fit(as_stored(X, is_sparse), y)
    assert selector.selected_.tolist() == kept
    trace = selector.result_.trace
    for arrival, (fate, witness) in fates.items():
        assert (str(trace.fate(arrival)), trace.witness(arrival)) == (fate, witness)
        if fate == "redundant":
            expected = p_values.get((arrival, witness))
            assert trace.p_value(arrival) == (
                expected and pytest.approx(expected, 1e-5)
            )


@examples(40)
@given(
    data=strategies.continuous_data(),
    rule=strategies.conditional_rules(),
    is_sparse=st.booleans(),
)
def test_continuous_features_are_tested_given_the_more_relevant(data, rule, is_sparse):
    X, y = data
    stored, n, alpha = as_stored(X, is_sparse), len(y), rule["redundancy_alpha"]
    measure, n_classes = FisherZ(alpha=0.2), len(set(y.tolist()))
    relevance = relevances(measure, stored, y).tolist()
    bound, p_values, margin = measure.bind(y), {}, [1.0]

    def is_redundant(loser, winner):
        a, g = X[:, loser].astype(float), X[:, winner].astype(float)
        r = np.corrcoef(a, g)[0, 1]
        if r * r > 1 - 1e-10 or relevance[winner] ** 2 > 1 - 1e-10:
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
        margin.append(abs(p - alpha))
        return p >= alpha

    options = {k: rule[k] for k in ("ties", "pruning", "max_features")}
    kept, fates = reference.saola(
        relevance,
        None,
        lambda f: f >= bound.critical,
        is_redundant=is_redundant,
        **options,
    )
    if min(margin) < 1e-9:
        return  # rounding may decide otherwise
    selector = SAOLA(measure=measure, **rule).fit(stored, y)
    assert selector.selected_.tolist() == kept
    trace = selector.result_.trace
    for arrival, (fate, witness) in fates.items():
        assert (str(trace.fate(arrival)), trace.witness(arrival)) == (fate, witness)
        if fate == "redundant":
            expected = p_values[arrival, witness]
            assert trace.p_value(arrival) == pytest.approx(expected, abs=1e-5)


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
        f"'worse' is redundant: it adds nothing once 'word' is known: p = {p:.2g}."
    )


@pytest.mark.parametrize("option", [{"bound": "max"}, {"overlap": ">"}])
def test_options_of_the_bound_are_refused(option):
    selector = SAOLA(redundancy="conditional", **option)
    with pytest.raises(ParameterError, match="belongs to redundancy='bound'"):
        selector.start([0, 1])
