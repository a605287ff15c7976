"""Runs of groups and of the rivals: killed anywhere, resumed to the same bits."""

from __future__ import annotations

import json
import tempfile

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone

import checks
import featstream
from crash_runs import Stop, narrow, stop_at
from featstream import (
    OFS,
    OGFS,
    OSFS,
    AlphaInvesting,
    FastOSFS,
    Grafting,
    GroupSAOLA,
)
from featstream.errors import RunError
from strategies import examples

pytestmark = pytest.mark.jit_only

STREAM_SELECTORS = [
    OSFS(test="g2"),
    FastOSFS(test="fisher-z", alpha=0.2),
    AlphaInvesting(wealth=2.0),
    AlphaInvesting(wealth=2.0, loss="logistic"),
    Grafting(l1=0.05),
    OGFS(group_size=1, penalty=0.1),
]


@pytest.mark.parametrize("selector", STREAM_SELECTORS, ids=repr)
def test_runs_of_many_samples_are_resumed(selector):
    """With enough rows for matrix products on several threads."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2500, 60))
    y = X[:, ::6] @ rng.normal(size=10) + rng.normal(size=2500) > 0
    if selector.get_params().get("test") == "g2":
        X = (X > 0).astype(int)
    checks.check_resume_equals_uninterrupted(selector, X, y, 33)
    checks.check_updates_go_on_after_save(selector, X, y, 33)


GROUP_SELECTORS = [GroupSAOLA(measure="su"), OGFS(penalty=0.05)]
each_kind = pytest.mark.parametrize(
    "selector", GROUP_SELECTORS, ids=lambda s: type(s).__name__
)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(5)
    y = rng.integers(0, 2, 80)
    X = rng.integers(0, 3, (80, 40))
    X[:, ::5] = np.where(rng.random((80, 8)) < 0.3, X[:, ::5], y[:, None])
    return X, y


def interrupted(folder, selector, source, y, groups, at=20):
    with pytest.raises(Stop):
        selector.start(y).consume(
            source, groups=groups, checkpoint=folder, every=0, progress=stop_at(at)
        )


@each_kind
def test_groups_that_arrive_later_join_the_run(selector, data, tmp_path):
    X, y = data
    labels = np.arange(40) // 4
    first = clone(selector).start(y)
    first.consume(X[:, :20], groups=labels[:20], checkpoint=tmp_path)
    second = featstream.resume(tmp_path)
    second.consume(X[:, 20:32], groups=labels[20:32])
    third = featstream.resume(tmp_path)
    for number in (8, 9):
        third.update_group(X[:, labels == number], group=number)
    third.save()
    whole = clone(selector).fit(X, y, groups=labels)
    last = featstream.resume(tmp_path)
    assert checks.outcome(last) == checks.outcome(whole)
    assert checks.state(last) == checks.state(whole)
    assert last.result_.groups.labels == list(range(10))
    for label in range(10):
        assert last.explain(group=label) == whole.explain(group=label)
    with pytest.raises(ValueError, match="Group 3 has already arrived"):
        last.update_group(X[:, :1], group=3)
    facts = json.loads((tmp_path / "run.json").read_text())
    assert (facts["n_groups"], facts["n_groups_kept"]) == (
        10,
        whole.selected_groups_.size,
    )
    table = (tmp_path / "selected.csv").read_text().splitlines()
    assert table[0] == "feature,index,relevance,group"


@each_kind
def test_scattered_groups_of_two_sources_keep_their_places(selector, data, tmp_path):
    X, y = data
    rng = np.random.default_rng(0)
    one, two = rng.integers(0, 5, 20), rng.integers(5, 9, 20)
    whole = clone(selector).start(y).consume(X[:, :20], groups=one)
    whole.consume(X[:, 20:], groups=two)
    run = clone(selector).start(y)
    run.consume(X[:, :20], groups=one, checkpoint=tmp_path)
    later = featstream.resume(tmp_path)
    with pytest.raises(Stop):
        later.consume(narrow(X[:, 20:], 6), groups=two, every=0, progress=stop_at(32))
    halfway = featstream.resume(tmp_path)
    assert 20 <= halfway.n_seen_ < 32
    assert halfway.support_.size == 40
    assert halfway.group_of_[:20].tolist() == one.tolist()
    arrived = [label for label in halfway.group_of_[20:] if label is not None]
    assert len(arrived) == halfway.n_seen_ - 20
    halfway.consume(narrow(X[:, 20:], 6), groups=two)
    assert checks.state(halfway) == checks.state(whole)
    assert halfway.group_of_.tolist() == [*one, *two]
    assert halfway.selected_.tolist() == whole.selected_.tolist()


REFUSALS = {
    "other labels": (
        lambda X, groups: (X, groups[::-1]),
        "other groups than the run was reading: the checksum of labels and members",
    ),
    "fewer groups": (
        lambda X, groups: (X, groups // 2),
        "other groups .* their number was 10 and is 5",
    ),
    "no groups": (
        lambda X, groups: (X, None),
        "other groups .* how they are given was labels and is",
    ),
    "other values": (
        lambda X, groups: (X[:, ::-1].copy(), groups),
        "another data set .* checksum of some columns",
    ),
}


@each_kind
@pytest.mark.parametrize("case", REFUSALS)
def test_a_run_refuses(case, selector, data, tmp_path):
    X, y = data
    groups = np.arange(40) // 4
    interrupted(tmp_path, clone(selector), narrow(X, 6), y, groups)
    before = (tmp_path / "run.json").read_bytes()
    change, message = REFUSALS[case]
    other, regrouped = change(X, groups)
    for again in (featstream.resume(tmp_path), clone(selector).start(y)):
        with pytest.raises(RunError, match=message):
            again.consume(other, groups=regrouped, checkpoint=tmp_path)
    with pytest.raises(RunError, match="in the middle of a source"):
        featstream.resume(tmp_path).update_group(X[:, :1], group="new")
    assert (tmp_path / "run.json").read_bytes() == before


def test_groups_by_name_of_an_iterator_created_again(data, tmp_path):
    X, y = data
    group_of = {f"f{j}": f"group {j // 3}" for j in range(40)}

    def columns():
        return ((f"f{j}", X[:, j]) for j in range(40))

    interrupted(tmp_path, GroupSAOLA(measure="su"), columns(), y, group_of, at=1)
    resumed = featstream.resume(tmp_path)
    with pytest.raises(RunError, match="other groups than the run was reading"):
        resumed.consume(columns(), groups=group_of | {"f3": "group 0"})
    resumed.consume(columns(), groups=group_of)
    whole = GroupSAOLA(measure="su").start(y).consume(columns(), groups=group_of)
    assert checks.state(resumed) == checks.state(whole)


def test_groups_of_a_frame_are_gathered_from_where_the_run_stopped(data, tmp_path):
    X, y = data
    frame = pd.DataFrame(X, columns=[f"gene {j}" for j in range(40)])
    groups = np.arange(40) % 3
    whole = GroupSAOLA(measure="su").fit(frame, y, groups=groups)
    running = GroupSAOLA(measure="su").start(y)
    with pytest.raises(Stop):
        running.consume(
            frame, groups=groups, checkpoint=tmp_path, every=0, progress=stop_at(14)
        )
    resumed = featstream.resume(tmp_path).consume(frame, groups=groups)
    assert checks.state(resumed) == checks.state(whole)
    assert resumed.result_.names == whole.result_.names


def test_nothing_to_save_is_an_error(tmp_path):
    for selector in (GroupSAOLA(), OGFS(), OSFS(), AlphaInvesting(), Grafting()):
        with pytest.raises(AttributeError, match="has seen no target"):
            selector.save(tmp_path)


def test_a_label_that_cannot_be_saved_is_named(data, tmp_path):
    X, y = data
    labels = np.array([frozenset([j]) for j in range(40)], dtype=object)
    selector = GroupSAOLA(measure="su").start(y)
    with pytest.raises(RunError, match=r"is of type frozenset\. Use text"):
        selector.consume(X, groups=labels, checkpoint=tmp_path)
    assert not list(tmp_path.glob("run.json"))


# Rows -------------------------------------------------------------------------


@examples(20)
@given(
    seed=st.integers(0, 2**32 - 1),
    information=st.sampled_from(["full", "partial"]),
    n_classes=st.integers(2, 3),
    cuts=st.lists(st.integers(3, 49), min_size=1, max_size=3, unique=True),
    random_state=st.sampled_from([None, 3]),
    is_sparse=st.booleans(),
)
def test_ofs_learns_on_where_it_stopped(
    seed, information, n_classes, cuts, random_state, is_sparse
):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(50, 9)) * (rng.random((50, 9)) < 0.6)
    y = np.array(["a", "b", "c"])[np.arange(50) % n_classes]
    X[:, 2] += y == "a"
    frame = pd.DataFrame(X, columns=list("abcdefghi"))
    rows = sparse.csr_array(X) if is_sparse else frame
    options = {"information": information, "random_state": random_state}
    np.random.seed(seed)  # noqa: NPY002  # what random_state=None means
    whole, later = OFS(3, **options), OFS(3, **options)
    parts = np.split(np.arange(50), sorted(cuts))
    for part in parts:
        whole.partial_fit(pick(rows, part), y[part])
    expected = checks.state(whole)
    np.random.seed(seed)  # noqa: NPY002
    with tempfile.TemporaryDirectory(dir=checks.MEMORY) as folder:
        for part in parts:
            later.partial_fit(pick(rows, part), y[part])
            later.save(folder)
            later = featstream.resume(folder)
    assert checks.state(later) == expected
    assert np.array_equal(later.coef_, whole.coef_)
    assert later.selected_.tolist() == whole.selected_.tolist()
    assert (later.n_seen_, later.n_mistakes_) == (50, whole.n_mistakes_)
    assert later.classes_.tolist() == whole.classes_.tolist()
    if not is_sparse:
        assert later.feature_names_in_.tolist() == list("abcdefghi")
        assert later.transform(frame).shape == (50, later.selected_.size)


def pick(rows, part):
    return rows.iloc[part] if isinstance(rows, pd.DataFrame) else rows[part]


def test_what_ofs_cannot_save_is_said(tmp_path):
    with pytest.raises(AttributeError, match="has seen no samples"):
        OFS().save(tmp_path)
    X, y = np.eye(4), np.array([0, 1, 0, 1])
    odd = OFS(random_state=np.random.RandomState(0)).fit(X, y)
    with pytest.raises(RunError, match=r"`random_state` is .* cannot be saved"):
        odd.save(tmp_path)
    one = OFS().fit(X, y).save(tmp_path)
    other = featstream.resume(tmp_path).partial_fit(X, y).save()
    with pytest.raises(RunError, match="continued by another process"):
        one.partial_fit(X, y).save()
    with pytest.raises(RunError, match="holds another run"):
        OFS().fit(X, y).save(tmp_path)
    assert other.n_seen_ == 8
    assert featstream.resume(tmp_path).fit(X, y).n_seen_ == 4
