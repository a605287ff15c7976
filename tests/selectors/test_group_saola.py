"""Group-SAOLA against Algorithm 2 as printed, and against the authors' library."""

import json
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.linalg import hadamard

import golden
import reference
import strategies
from checks import fates_of, outcome
from featstream import (
    OGFS,
    SAOLA,
    Fate,
    FisherZ,
    GroupSAOLA,
    SymmetricalUncertainty,
    random_groups,
)
from featstream.datasets import make_stream
from featstream.errors import FeatstreamWarning
from featstream.selectors.saola import group_saola
from featstream.selectors.saola.kept import Tuning, is_indexed, start_group
from featstream.sources import ArraySource, SparseSource
from featstream.sources.values import BLOCK_BYTES
from group_checks import in_order
from scores import expected_scores
from shared import load, shared
from strategies import examples


def group_fate(fates, group):
    """The fate of a group, from those of its features."""
    found = {fates[f][0] for f in group}
    order = ("kept", "displaced", "redundant", "irrelevant")
    return next(fate for fate in order if fate in found)


def arriving(labels):
    """Positions in order of arrival, and the arrivals of each group."""
    members = in_order(labels)[1]
    cuts = np.cumsum([len(group) for group in members])
    arrivals = np.split(np.arange(labels.size), cuts[:-1])
    return np.concatenate(members), [group.tolist() for group in arrivals]


def assert_kept(selector, labels, kept):
    """The kept features, by arrival, and what follows from them."""
    order, groups = arriving(labels)
    assert selector.selected_.tolist() == order[kept].tolist()
    assert np.flatnonzero(selector.support_).tolist() == sorted(order[kept])
    assert selector.group_of_.tolist() == labels.tolist()
    left = [
        label
        for label, group in zip(in_order(labels)[0], groups, strict=True)
        if set(kept) & set(group)
    ]
    assert selector.selected_groups_.tolist() == left


def assert_equals(selector, labels, scores, rule):
    groups = arriving(labels)[1]
    fates = reference.group_saola(groups, scores, **rule)
    kept = [arrival for arrival in fates if fates[arrival][0] == "kept"]
    assert_kept(selector, labels, kept)
    assert selector.scores_.tolist() == [scores.relevance[i] for i in kept]
    assert fates_of(selector) == fates
    for label, group in zip(in_order(labels)[0], groups, strict=True):
        fate = selector.result_.groups.fate(label)
        assert str(fate) == group_fate(fates, group)


@examples(90)
@given(
    case=strategies.measured(strategies.grouped),
    rule=strategies.group_rules(),
    make=strategies.STORAGES,
)
def test_every_option_decides_as_printed(case, rule, make):
    (X, y, labels), measure = case
    scores = expected_scores(measure, X[:, arriving(labels)[0]], y, make)
    selector = GroupSAOLA(measure=measure, **rule)
    assert_equals(selector.fit(make(X), y, groups=labels), labels, scores, rule)


@examples(40)
@given(
    case=strategies.measured(strategies.grouped),
    bound=st.sampled_from(["min", "max"]),
    make=strategies.STORAGES,
)
def test_the_librarys_reading_has_ghosts(case, bound, make):
    (X, y, labels), measure = case
    order, groups = arriving(labels)
    scores = expected_scores(measure, X[:, order], y, make)
    kept = reference.group_saola_of_the_library(groups, scores, bound=bound)
    selector = GroupSAOLA(measure=measure, reading="library", bound=bound)
    selector.fit(make(X), y, groups=labels)
    assert_kept(selector, labels, [f for group in kept for f in group])


@examples(40)
@given(
    data=st.sampled_from([4, 70]).flatmap(
        lambda n: strategies.discrete_data(least_rows=n)
    ),
    rule=st.one_of(strategies.group_rules(), strategies.conditional_rules()),
    make=strategies.STORAGES,
)
def test_groups_of_one_feature_are_saola(data, rule, make):
    """With every option: selection, scores and the whole trace."""
    X, y = data
    own = {name: rule[name] for name in rule if name != "reading"}
    alone = SAOLA(measure="su", **own).fit(make(X), y)
    grouped = GroupSAOLA(measure="su", **rule).fit(make(X), y)
    assert grouped.result_.trace.tested.tolist() == alone.result_.trace.tested.tolist()
    assert outcome(grouped)[:3] == outcome(alone)
    assert grouped.selected_groups_.tolist() == list(alone.result_.names)


@pytest.mark.parametrize(("reading", "kept"), [("relevant", [0]), ("literal", [0, 2])])
def test_irrelevant_features_of_a_relevant_group_stay_to_the_letter(reading, kept):
    """Steps 5 to 8 drop only groups without any relevant feature.

    The second feature is as irrelevant as the third, and a copy of a part of the
    first; nothing overlaps with the third. The group behind them has nothing relevant.
    """
    y = np.repeat([0, 1], 16)
    strong = np.where(np.arange(32) < 2, 1, y)
    part = np.where(np.arange(32) % 8 < 5, strong, 0)
    apart = np.tile([0, 1, 1, 0], 8)
    apart[0] = 1
    X = np.c_[strong, part, apart, np.tile([0, 1], 16)]
    measure = SymmetricalUncertainty(threshold=0.3)
    scores = expected_scores(measure, X, y)
    assert scores.relevance[0] > 0.3 > max(scores.relevance[1:])
    assert scores.overlap(0, 1) >= scores.relevance[1]
    assert scores.overlap(0, 2) < scores.relevance[2]
    labels = np.array(["a", "a", "a", "b"])
    selector = GroupSAOLA(measure=measure, reading=reading).fit(X, y, groups=labels)
    assert selector.selected_.tolist() == kept
    assert selector.selected_groups_.tolist() == ["a"]


def test_to_the_letter_selections_differ_where_a_threshold_drops_features():
    n_different = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        X, y = rng.integers(0, 3, (30, 24)), rng.integers(0, 2, 30)
        measure, groups = SymmetricalUncertainty(threshold=0.1), np.arange(24) // 4
        found = [
            GroupSAOLA(measure=measure, reading=reading)
            .fit(X, y, groups=groups)
            .selected_.tolist()
            for reading in ("relevant", "literal")
        ]
        n_different += found[0] != found[1]
    assert n_different >= 20


def test_at_most_the_number_asked_for_is_kept_after_each_group():
    stream = make_stream(n_features=200, kind="continuous", seed=1)
    selector = GroupSAOLA(measure="fisher-z", max_features=3).start(stream.y)
    for i in range(20):
        columns = stream.X[:, 10 * i : 10 * i + 10]
        selector.update_group(columns, group=i)
        assert len(selector.selected_) <= 3
    all_kept = GroupSAOLA(measure="fisher-z").fit(
        stream.X, stream.y, groups=np.arange(200) // 10
    )
    best = np.sort(all_kept.scores_)[-1]
    assert best in selector.scores_
    displaced = next(a for a in range(200) if selector.result_.trace.is_over_limit(a))
    assert "more than max_features" in selector.explain(displaced)


@pytest.mark.parametrize("kind", [GroupSAOLA, OGFS])
def test_who_gives_no_groups_is_warned(kind):
    X, y = np.random.default_rng(0).normal(size=(30, 20)), np.arange(30) % 2
    with pytest.warns(FeatstreamWarning, match=f"{kind.__name__} has no groups"):
        kind().fit(X, y)


@pytest.mark.parametrize(
    ("pruning", "kept"), [("deferred", [0, 1]), ("interleaved", [1])]
)
def test_a_redundant_newcomer_displaces_nothing_if_that_is_deferred(pruning, kept):
    """The last feature meets the first, which it displaces, and then its witness.

    The features are sums of orthogonal columns, so that products of their weights are
    correlations: with the target 0.4, 0.8 and 0.6; of the last feature 0.54 with the
    first and 0.72 with the second; of these two 0.14.
    """
    basis = hadamard(16)[:, 1:5]
    weights = np.array(
        [
            [0.4, -0.3, 0.6, 0.39**0.5],
            [0.8, 0.6, 0.0, 0.0],
            [0.6, 0.4, 0.48**0.5, 0.0],
        ]
    )
    selector = GroupSAOLA(measure=FisherZ(alpha=0.9), pruning=pruning)
    selector.fit(basis @ weights.T, basis[:, 0] > 0, groups=["a", "b", "c"])
    np.testing.assert_allclose(selector.scores_, weights[kept, 0], atol=1e-12)
    assert selector.selected_.tolist() == kept
    assert selector.result_.trace.fate(2) is Fate.REDUNDANT


# Decisions and explanations ---------------------------------------------------

Y = np.array([0, 0, 0, 0, 1, 1, 1, 1])
WEAK = np.array([0, 0, 0, 1, 1, 1, 1, 0])
WEAKER = np.array([0, 0, 1, 1, 1, 1, 1, 0])
NOISE = np.array([0, 1, 0, 1, 0, 1, 0, 1])


def test_a_decision_tells_the_fate_of_group_and_features():
    selector = GroupSAOLA(measure="su").start(Y)
    three, names = np.c_[WEAK, NOISE, WEAKER], ["weak", "noise", "weaker"]
    first = selector.update_group(three, group="a", names=names)
    assert (first.fate, first.displaced, first.displaced_groups) == (Fate.KEPT, (), ())
    weak, noise, weaker = first.features
    assert weak.is_kept
    assert (noise.fate, noise.relevance, noise.witness) == (Fate.IRRELEVANT, 0.0, None)
    assert (weaker.fate, weaker.witness) == (Fate.REDUNDANT, "weak")
    assert weaker.overlap >= weaker.relevance
    second = selector.update_group(NOISE[:, None], group="b")
    assert (second.fate, second.features[0].name) == (Fate.IRRELEVANT, "x3")
    third = selector.update_group({"again": WEAKER}.items(), group="c")
    assert (third.fate, third.features[0].witness) == (Fate.REDUNDANT, "weak")
    fourth = selector.update_group(pd.DataFrame({"class": Y, "copy": WEAK}), group="d")
    assert (fourth.displaced, fourth.displaced_groups) == (("weak",), ("a",))
    klass, copy = fourth.features
    assert klass.displaced == ("weak",)
    assert (copy.fate, copy.witness) == (Fate.REDUNDANT, "class")
    assert selector.selected_groups_.tolist() == ["d"]
    assert selector.group_of_.tolist() == ["a", "a", "a", "b", "c", "d", "d"]
    explain = selector.explain
    assert explain("class") == "'class' of group 'd' is kept: its relevance is 1."
    assert "below that of 'weak' of group 'a'" in explain("weaker")
    displaced = "'weak' of group 'a' was displaced by 'class' of group 'd'"
    assert displaced in explain("weak")
    assert explain(group="a").startswith("Group 'a' was displaced")
    assert explain("b").startswith("Group 'b' is irrelevant: none of its 1 feature")
    assert "is redundant" in explain(group="c")
    assert explain(group="d") == "Group 'd' is kept, with 1 of its 2 features."


@pytest.mark.parametrize("trace", ["full", "kept", None])
def test_a_decision_names_features_that_the_trace_forgets(trace):
    selector = GroupSAOLA(measure="su", trace=trace).start(Y)
    names = ["weaker", "weak"]
    decision = selector.update_group(np.c_[WEAKER, WEAK], group="a", names=names)
    assert [f.name for f in decision.features] == names
    assert decision.features[0].witness == "weak"
    assert selector.result_.names == ("weak",)


def test_a_result_names_features_by_position_and_lists_groups():
    X = np.c_[NOISE, Y, NOISE, WEAK]
    selector = GroupSAOLA(measure="su").fit(X, Y, groups=["b", "a", "b", "a"])
    assert selector.selected_.tolist() == [1]
    assert selector.get_feature_names_out().tolist() == ["x1"]
    assert selector.explain("x1") == selector.explain(1)
    assert selector.explain(3).startswith("'x3' of group 'a' is redundant")
    assert np.array_equal(selector.transform(X), Y[:, None])
    result = selector.result_
    assert result.names == ("x1",)
    frame = result.groups_frame("polars")
    assert frame.rows() == [("b", 2, 0, "irrelevant", None), ("a", 2, 1, "kept", 1.0)]
    assert result.to_frame("polars").rows() == [("x1", 1, 1.0, "a")]
    plain = json.loads(json.dumps(result.to_dict()))
    assert plain["selected_groups"] == result.selected_groups == ["a"]
    assert plain["selected"][0]["group"] == "a"
    assert plain["n_groups"] == 2
    assert "1 of 4 features in 1 of 2 groups" in repr(result)


def test_names_of_a_stored_source_are_in_its_order():
    X = np.c_[NOISE, Y, WEAK]
    source = ArraySource(X, ["noise", "class", "weak"])
    selector = GroupSAOLA(measure="su").fit(source, Y, groups=[0, 1, 0])
    assert selector.feature_names_in_.tolist() == ["noise", "class", "weak"]
    assert selector.get_feature_names_out().tolist() == ["class"]


def test_any_hashable_is_a_label():
    selector = GroupSAOLA(measure="su").start(Y)
    for label in (("chr1", 3), 7, "seven", 7.5):
        assert selector.update_group(Y[:, None], group=label).is_kept
    assert selector.selected_groups_.tolist() == [("chr1", 3), 7, "seven", 7.5]
    assert selector.group_of_.dtype == object


@pytest.mark.jit_only
@pytest.mark.parametrize(
    ("measure", "ties", "pruning", "n_groups"),
    [
        ("su", "keep", "interleaved", 300),
        ("su", "drop", "deferred", 12),
        (FisherZ(alpha=0.5), "keep", "deferred", 300),
        (FisherZ(alpha=0.5), "drop", "interleaved", 12),
    ],
)
def test_an_index_of_sparse_columns_changes_nothing(
    measure, ties, pruning, n_groups, monkeypatch
):
    """Of the kept features, and of the group that arrives."""
    arriving = []

    def start_and_note(*given):
        arriving.append(start_group(*given))
        return arriving[-1]

    monkeypatch.setattr(group_saola, "start_group", start_and_note)
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 1000)
    X = (rng.random((1000, 3000)) < rng.uniform(0.001, 0.01, 3000)).astype(np.int64)
    X[:, ::7] &= y[:, None]
    X *= rng.integers(1, 3, X.shape)
    groups, found = rng.integers(0, n_groups, 3000), []
    for threshold in (10**9, 0):
        tuning = Tuning(index_from=threshold, group_index_from=threshold)
        monkeypatch.setattr(GroupSAOLA, "_tuning", tuning)
        source = SparseSource(sparse.csc_array(X), block_columns=100)
        selector = GroupSAOLA(measure=measure, ties=ties, pruning=pruning)
        found.append(selector.fit(source, y, groups=groups))
    assert outcome(found[0]) == outcome(found[1])
    assert is_indexed(found[1]._state)
    assert not is_indexed(arriving[0])
    assert is_indexed(arriving[-1])
    # Walks along a large group are so long that the index is asked.
    assert n_groups == 300 or max(left.index.mean_walk[0] for left in arriving) > 20


@pytest.mark.jit_only
def test_gathering_costs_memory_for_the_group_alone():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 20_000)), rng.integers(0, 2, 200)
    selector = GroupSAOLA(measure=FisherZ(alpha=1e-4))
    groups = np.arange(20_000) % 20
    source = ArraySource(X, block_bytes=2**18)
    selector.fit(source, y, groups=groups)  # compiles
    tracemalloc.start()
    selector.fit(source, y, groups=groups)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # A few groups, and the blocks in which they are read.
    assert peak < X.nbytes / 20 * 4 + 2 * BLOCK_BYTES


# What goes wrong --------------------------------------------------------------


def test_a_bad_group_changes_nothing():
    selector = GroupSAOLA(measure="su").start(Y)
    selector.update_group(np.c_[WEAK, NOISE], group="a")
    before = outcome(selector)
    for bad, group, message in (
        (np.full((8, 1), np.nan), "b", "missing"),
        (Y[:, None], "a", "already arrived"),
        (Y[:4, None], "b", "has 4 values"),
        (np.empty((8, 0)), "b", "has no features"),
        (Y[:, None], None, "needs a label"),
    ):
        with pytest.raises(ValueError, match=message):
            selector.update_group(bad, group=group)
        assert outcome(selector) == before
    assert selector.update_group(Y[:, None], group="b").displaced_groups == ("a",)


def test_a_gathered_stream_that_fails_is_over():
    X = np.c_[Y, NOISE, WEAK].astype(float)
    X[0, 1] = np.nan
    source = ArraySource(X, block_bytes=1)
    selector = GroupSAOLA(measure="su").start(Y)
    with pytest.raises(ValueError, match="missing"):
        selector.consume(source, groups=["a", "b", "a"])
    with pytest.raises(AttributeError, match="Call start"):
        _ = selector.selected_


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([[0, 1], [1, 2]], "Feature 1 is in the groups 0 and 1. Groups must not over"),
        ([[0], [2]], "Feature 1 is in no group"),
        ([[0, 1], [2, 3]], "position 3 for 3 features"),
        ([[0, 1, 2], []], "Group 1 of `groups` has no features"),
        ([[0, 1], ["x2"]], "not a list of positions"),
        (["a", None, "b"], "Feature 1 is in no group"),
        ([1.0, np.nan, 2.0], "Feature 1 is in no group"),
        (["a", "b"], "labels for 2 features, but the source has 3"),
        (np.zeros((3, 1)), "one dimension"),
        ("abc", "Got str"),
        ({"x0": "a", "x2": "b"}, "Feature 'x1' is in no group"),
        ({"x0": "a", "x1": ["a", "b"], "x2": "b"}, "must not overlap"),
    ],
)
def test_groups_that_cannot_be_say_so(groups, message):
    with pytest.raises((ValueError, TypeError), match=message):
        GroupSAOLA(measure="su").fit(np.c_[Y, WEAK, NOISE], Y, groups=groups)


def test_scattered_groups_need_a_source_that_can_be_gathered():
    features = [("a1", WEAK), ("b1", Y), ("a2", WEAKER)]
    group_of = {"a1": "a", "b1": "b", "a2": "a"}
    selector = GroupSAOLA(measure="su").start(Y)
    with pytest.raises(ValueError, match="'a' has already arrived"):
        selector.consume(iter(features), groups=group_of)
    selector = GroupSAOLA(measure="su").start(Y)
    with pytest.raises(ValueError, match="IteratorSource can only be read in order"):
        selector.consume(iter(features), groups=["a", "b", "a"])
    with pytest.raises(ValueError, match="but the source has 3"):
        selector.consume(iter(features), groups=["a", "a", "b", "b"])


def test_an_explanation_is_of_a_feature_or_a_group():
    selector = GroupSAOLA(measure="su").start(Y)
    with pytest.raises(ValueError, match="a feature or a group"):
        selector.explain()
    with pytest.raises(ValueError, match="No group 'a'"):
        selector.explain(group="a")


# The authors' library ---------------------------------------------------------


GOLDEN = ("group_saola_mi", "group_saola_z")


def differs_from_the_library(name, run):
    X, y, measure = golden.as_lofs_sees(name, run)
    n_groups, p = run["params"]["n_groups"], X.shape[1]
    is_permuted = run["params"]["order"] == "perm"
    order = golden.arrays(name)["perm"] if is_permuted else np.arange(p)
    groups = np.split(order, np.arange(1, n_groups) * (p // n_groups))
    selector = GroupSAOLA(measure=measure, reading="library").fit(X, y, groups=groups)
    expected = run["selected"], run["n_groups_selected"]
    return (selector.selected_.tolist(), selector.selected_groups_.size) != expected


@pytest.mark.jit_only
def test_the_librarys_reading_selects_what_the_library_selects():
    """All 165 runs but one, in which two features differ by rounding alone."""
    runs = [r for r in golden.runs(*GOLDEN) if r[0] != "real_dorothea"]
    assert len(runs) == 165
    ((name, run),) = [r for r in runs if differs_from_the_library(*r)]
    assert (name, run["algorithm"]) == ("bin_ties_80x60", "group_saola_z")
    assert run["tie_sensitive"]
    X, y = golden.data(name)
    ours, theirs = (abs(np.corrcoef(X[:, f], y)[0, 1]) for f in (15, 17))
    assert abs(ours - theirs) < 1e-15


@pytest.mark.slow
def test_the_librarys_reading_selects_what_the_library_selects_from_dorothea():
    (run,) = (r for r in golden.runs(*GOLDEN) if r[0] == "real_dorothea")
    assert not differs_from_the_library(*run)


@pytest.mark.jit_only
@pytest.mark.parametrize(
    ("name", "measure", "features", "groups"),
    [
        ("madelon", FisherZ(alpha=0.01), 2, 2),
        ("dexter", FisherZ(alpha=0.01), 21, 19),
        ("hiva_train", "su", 5, 5),
    ],
)
def test_the_librarys_reading_gives_the_papers_numbers(name, measure, features, groups):
    """Table 23 (`tb17`): means over ten divisions into 100 random groups."""
    data = load(shared("data", f"{name}.npz"))
    X, y = (data.get(f"{part}_train", data.get(part)) for part in ("X", "y"))
    found = []
    for seed in range(10):
        selector = GroupSAOLA(measure=measure, reading="library")
        selector.fit(X, y, groups=random_groups(X.shape[1], 100, seed))
        found.append((selector.selected_.size, selector.selected_groups_.size))
    assert np.abs(np.mean(found, axis=0) - (features, groups)).max() < 1
