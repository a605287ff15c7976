"""SAOLA against Algorithm 1 as printed, and the contracts of a stream selector."""

import numpy as np
import pytest
from hypothesis import given

import reference
import strategies
from checks import fates_of
from featstream import SAOLA, Fate
from scores import expected_scores
from strategies import examples


def assert_equals(selector, fates, relevance):
    kept = [arrival for arrival, (fate, _) in fates.items() if fate == "kept"]
    assert selector.selected_.tolist() == kept
    assert selector.scores_.tolist() == [relevance[i] for i in kept]
    assert fates_of(selector) == fates


@examples(80)
@given(case=strategies.measured(), rule=strategies.rules(), make=strategies.STORAGES)
def test_every_option_decides_as_printed(case, rule, make):
    (X, y), measure = case
    scores = expected_scores(measure, X, y, make)
    selector = SAOLA(measure=measure, **rule).fit(make(X), y)
    assert_equals(selector, reference.saola(scores, **rule), scores.relevance)


def test_an_explanation_names_the_feature_that_decided():
    y = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    selector = SAOLA(measure="su").start(y)
    selector.update([0, 0, 0, 1, 1, 1, 1, 0], name="weak")
    assert selector.update([0, 0, 1, 1, 1, 1, 1, 0], name="weaker").witness == "weak"
    assert selector.update(y, name="class").displaced == ("weak",)
    assert selector.result_.names == ("class",)
    assert "displaced by 'class'" in selector.explain("weak")
    assert "below that of 'weak'" in selector.explain("weaker")
    assert selector.explain("class") == "'class' is kept: its relevance is 1."
    selector = SAOLA(measure="su", ties="drop").start(y)
    selector.update(y, name="class")
    assert selector.update(y, name="copy").witness == "class"
    assert "its relevance 1 is not above that of 'class'" in selector.explain("copy")


def test_a_feature_beyond_max_features_is_displaced_at_once():
    y = np.array([0, 0, 0, 1, 1, 1])
    selector = SAOLA(measure="su", max_features=1).start(y)
    assert selector.update([0, 0, 1, 1, 1, 1], name="good").is_kept
    decision = selector.update([0, 1, 0, 1, 0, 1], name="poor")
    assert (decision.fate, decision.displaced) == (Fate.DISPLACED, ())
    assert selector.result_.names == ("good",)
    assert "more than max_features" in selector.explain("poor")


def test_a_feature_displaced_by_a_discarded_newcomer_by_hand():
    """Y arrives, then W; F displaces Y, and W, met later in the walk, discards F."""
    # Rows in which each differs from the class: the fewer, the more relevant. Two
    # features overlap the more, the fewer rows are in just one of their sets.
    rows = {
        "Y": {2, 3, 22, 23, 4, 5, 24, 25},  # 8 rows; 12 apart from W: no overlap
        "W": {0, 1, 20, 21},  # 4 rows
        "F": {2, 3, 22, 23, 0, 1, 20},  # 7 rows; 7 apart from Y, 5 from W
    }
    y = np.repeat([0, 1], 20)
    values = {name: y ^ np.isin(np.arange(40), list(odd)) for name, odd in rows.items()}
    for pruning, names in (("interleaved", ["W"]), ("deferred", ["Y", "W"])):
        selector = SAOLA(measure="su", pruning=pruning).start(y)
        assert selector.update(values["Y"], name="Y").is_kept
        assert selector.update(values["W"], name="W").displaced == ()
        decision = selector.update(values["F"], name="F")
        assert decision.witness == "W"
        assert decision.displaced == (("Y",) if pruning == "interleaved" else ())
        assert list(selector.result_.names) == names


def test_a_trace_of_the_kept_knows_just_those_ever_kept():
    rng = np.random.default_rng(3)
    X, y = rng.integers(0, 2, (30, 50)), rng.integers(0, 2, 30)
    full = SAOLA(measure="su").fit(X, y)
    part = SAOLA(measure="su", trace="kept").fit(X, y)
    none = SAOLA(measure="su", trace=None).fit(X, y)
    assert part.selected_.tolist() == full.selected_.tolist() == none.selected_.tolist()
    fates = fates_of(full)
    ever_kept = [a for a in fates if fates[a][0] in ("kept", "displaced")]
    assert part.result_.trace.arrivals.tolist() == ever_kept
    assert len(none.result_.trace) == 0
    assert none.n_seen_ == 50
    dropped = next(a for a in range(50) if a not in ever_kept)
    with pytest.raises(ValueError, match="Use trace='full'"):
        none.explain(dropped)


def test_a_trace_costs_nine_bytes_per_feature():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (20, 1000))
    records = SAOLA(measure="su").fit(X, X[:, 0]).result_.trace.records
    assert records.nbytes == 9 * 1000
