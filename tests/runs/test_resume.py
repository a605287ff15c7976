"""Runs: saved, resumed, continued, refused; of features, of groups and of rows."""

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
    SAOLA,
    AlphaInvesting,
    FastOSFS,
    FisherZ,
    Grafting,
    GroupSAOLA,
    SelectFromStream,
    SymmetricalUncertainty,
)
from featstream.datasets import make_stream
from featstream.errors import ParameterError, RunError
from featstream.runs.state import complete_parameters, describe_selector
from featstream.sources import ArraySource, SparseSource
from strategies import examples


@pytest.fixture(scope="module")
def stream():
    return make_stream(n_samples=120, n_features=240, seed=3)


def interrupted(folder, selector, y, source, at=120, **how):
    """A run that was stopped after some features."""
    with pytest.raises(Stop):
        selector.start(y).consume(
            source, checkpoint=folder, every=0, progress=stop_at(at), **how
        )
    return folder


@pytest.mark.parametrize("cut", [1, 60])
def test_resumed_equals_uninterrupted(stream, cut):
    """With a measure that the first features decide."""
    checks.check_resume_equals_uninterrupted(SAOLA(), stream.X, stream.y, cut)


def test_resumed_equals_uninterrupted_for_many_categories():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 90)
    X = rng.integers(0, 40, (90, 60)) * (rng.random((90, 60)) < 0.8)
    X[:, ::7] = (y[:, None] + rng.integers(0, 20, (90, 9)) // 15) % 3
    for measure in ("su", FisherZ(alpha=0.3)):
        selector = SAOLA(measure=measure, max_features=7)
        checks.check_resume_equals_uninterrupted(selector, X, y, 33)
        checks.check_updates_go_on_after_save(selector, X, y, 33)


def test_few_rows_with_gaps_between_their_categories_resume():
    """Codes follow the values: up to sixteen, however few the rows."""
    y = np.array([0, 1, 1])
    X = np.array([[0, 3, 0], [9, 12, 1], [9, 12, 1]])
    checks.check_resume_equals_uninterrupted(SAOLA(measure="su"), X, y, 2)
    checks.check_updates_go_on_after_save(SAOLA(measure="su"), X, y, 2)


MODELS = [
    OSFS(test="g2"),
    FastOSFS(test="fisher-z", alpha=0.2),
    AlphaInvesting(wealth=2.0),
    AlphaInvesting(wealth=2.0, loss="logistic"),
    Grafting(l1=0.05),
    OGFS(group_size=1, penalty=0.1),
]


@pytest.mark.jit_only
@pytest.mark.parametrize("selector", MODELS, ids=repr)
def test_runs_of_many_samples_are_resumed(selector):
    """With enough rows for matrix products on several threads."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2500, 60))
    y = X[:, ::6] @ rng.normal(size=10) + rng.normal(size=2500) > 0
    if selector.get_params().get("test") == "g2":
        X = (X > 0).astype(int)
    checks.check_resume_equals_uninterrupted(selector, X, y, 33)
    checks.check_updates_go_on_after_save(selector, X, y, 33)


KINDS = [SAOLA(measure="su"), GroupSAOLA(measure="su"), OGFS(penalty=0.05)]
each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda s: type(s).__name__)


@each_kind
def test_a_second_run_of_the_same_script_continues(kind, tmp_path, stream):
    interrupted(tmp_path / "run", clone(kind), stream.y, narrow(stream.X))
    before = featstream.resume(tmp_path / "run").n_seen_
    seen, expected = [], checks.state(clone(kind).fit(stream.X, stream.y))
    for _ in range(2):  # the second finds it finished
        again = clone(kind).start(stream.y)
        again.consume(
            narrow(stream.X), checkpoint=tmp_path / "run", progress=seen.append, every=0
        )
        assert checks.state(again) == expected
    assert seen[0].n_seen > before > 0
    assert seen[-1].n_features == 240


def test_the_same_data_in_another_storage_may_continue(tmp_path, stream):
    interrupted(tmp_path, SAOLA(measure="su"), stream.y, narrow(stream.X))
    resumed = featstream.resume(tmp_path)
    resumed.consume(SparseSource(sparse.csc_array(stream.X)))
    expected = SAOLA(measure="su").fit(stream.X, stream.y)
    assert checks.outcome(resumed) == checks.outcome(expected)


def test_words_as_labels_and_parameters_come_back(tmp_path, stream):
    y = np.array(["ham", "späm"])[stream.y]
    measure = SymmetricalUncertainty(threshold=0.01, n_bins=3)
    selector = SAOLA(measure=measure, max_features=5, ties="drop").start(y)
    selector.consume(stream.X, checkpoint=tmp_path)
    resumed = featstream.resume(tmp_path)
    assert repr(resumed) == repr(selector)
    assert checks.outcome(resumed) == checks.outcome(selector)
    assert resumed._stream.y.tolist() == y.tolist()


LABELS = np.arange(240) // 6


def changed(X, column):
    """The same data but for one value."""
    X = X.copy()
    X[-1, column] += 1
    return X


OTHER_DATA = "a different data set .* checksum of some columns"
OTHER_GROUPS = "other groups than the run was reading: the checksum of labels"
FEWER_GROUPS = "other groups .* their number was 40 and is 20"
NO_GROUPS = "other groups .* how they are given was labels and is"
REFUSALS = [
    (SAOLA(), lambda s: {"y": 1 - s.y}, "y differs"),
    (SAOLA(), lambda s: {"y": s.y[:-1], "X": s.X[:-1]}, "120 samples; here are 119"),
    (SAOLA(), lambda s: {"measure": FisherZ()}, r"measure='su'; here it is FisherZ\("),
    (SAOLA(), lambda s: {"X": s.X[:, 1:]}, "number of features was 240 and is 239"),
    (SAOLA(), lambda s: {"X": s.X[:, ::-1].copy()}, OTHER_DATA),
    (SAOLA(), lambda s: {"X": changed(s.X, 0)}, OTHER_DATA),
    (SAOLA(), lambda s: {"X": changed(s.X, 120)}, OTHER_DATA),
    (SAOLA(), lambda s: {"X": changed(s.X, -16)}, OTHER_DATA),
    (SAOLA(), lambda s: {"X": changed(s.X, -1)}, OTHER_DATA),
    (GroupSAOLA(), lambda s: {"X": s.X[:, ::-1].copy()}, OTHER_DATA),
    (GroupSAOLA(), lambda s: {"groups": LABELS[::-1]}, OTHER_GROUPS),
    (GroupSAOLA(), lambda s: {"groups": LABELS // 2}, FEWER_GROUPS),
    (GroupSAOLA(), lambda s: {"groups": None}, NO_GROUPS),
    (OGFS(penalty=0.05), lambda s: {"groups": None}, NO_GROUPS),
]


@pytest.mark.parametrize(("selector", "change", "message"), REFUSALS)
def test_a_run_refuses(selector, change, message, tmp_path, stream):
    if "measure" in selector.get_params():
        selector = clone(selector).set_params(measure="su")
    how = {} if isinstance(selector, SAOLA) else {"groups": LABELS}
    interrupted(tmp_path, clone(selector), stream.y, narrow(stream.X), **how)
    before = (tmp_path / "run.json").read_bytes()
    other = change(stream)
    X, y = other.pop("X", stream.X), other.pop("y", stream.y)
    how |= {"groups": other.pop("groups")} if "groups" in other else {}
    tried = [clone(selector).set_params(**other).start(y)]
    if not other and y is stream.y:
        tried.append(featstream.resume(tmp_path))
    for again in tried:
        with pytest.raises(RunError, match=message):
            again.consume(X, checkpoint=tmp_path, **how)
    with pytest.raises(RunError, match="in the middle of a source"):
        update(featstream.resume(tmp_path), stream.X[:, 0])
    assert (tmp_path / "run.json").read_bytes() == before


def update(selector, column):
    if isinstance(selector, GroupSAOLA):
        return selector.update_group(column[:, None], group="new")
    return selector.update(column)


def test_a_selector_that_has_begun_does_not_take_over_a_run(tmp_path, stream):
    SAOLA(measure="su").start(stream.y).consume(stream.X, checkpoint=tmp_path)
    begun = SAOLA(measure="su").start(stream.y).consume(stream.X[:, :3])
    with pytest.raises(RunError, match="holds another run"):
        begun.consume(stream.X[:, 3:], checkpoint=tmp_path)
    with pytest.raises(RunError, match="holds another run"):
        begun.save(tmp_path)


def test_a_run_continued_elsewhere_is_not_written_over(tmp_path, stream):
    SAOLA(measure="su").start(stream.y).consume(stream.X[:, :9], checkpoint=tmp_path)
    one, other = featstream.resume(tmp_path), featstream.resume(tmp_path)
    one.consume(stream.X[:, 9:20])
    with pytest.raises(RunError, match="continued by another process"):
        other.consume(stream.X[:, 9:20])


def test_saving_needs_a_folder(tmp_path, stream):
    selector = SAOLA(measure="su").start(stream.y)
    with pytest.raises(ParameterError, match="`path` is needed"):
        selector.save()
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(RunError, match=r"holds 'thesis.tex'"):
        selector.save(tmp_path)


def test_a_run_in_progress_may_be_looked_at(tmp_path, stream):
    """Looking takes no lock: there is always a whole generation."""
    seen = []

    def look(progress):
        seen.append(featstream.resume(tmp_path).n_seen_ <= progress.n_seen)

    selector = SAOLA(measure="su").start(stream.y)
    selector.consume(narrow(stream.X), checkpoint=tmp_path, every=0, progress=look)
    assert seen
    assert all(seen)


def test_a_run_from_before_a_measure_gained_an_option_continues():
    new = describe_selector(SAOLA(measure=SymmetricalUncertainty()))["parameters"]
    old = describe_selector(SAOLA(measure=SymmetricalUncertainty()))["parameters"]
    del old["measure"]["parameters"]["identifiers"]
    assert old != new
    assert complete_parameters(old, SAOLA()) == new


def test_a_run_from_before_a_selector_gained_an_option_continues():
    new = describe_selector(SelectFromStream())["parameters"]
    old = {name: new[name] for name in new if name != "target_copies"}
    assert complete_parameters(old, SelectFromStream()) == new


@pytest.fixture(scope="module")
def data():
    stream = make_stream(80, 40, n_redundant=12, seed=5)
    return stream.X, stream.y


@each_kind
def test_what_arrives_later_joins_the_run(kind, data, tmp_path):
    """In further sources, and by updates."""
    X, y = data
    names, labels = [f"gene_{j}" for j in range(40)], np.arange(40) // 4
    in_groups = not isinstance(kind, SAOLA)

    def part(begin, end):
        how = {"groups": labels[begin:end]} if in_groups else {}
        return {"source": ArraySource(X[:, begin:end], names[begin:end]), **how}

    clone(kind).start(y).consume(**part(0, 20), checkpoint=tmp_path)
    featstream.resume(tmp_path).consume(**part(20, 32))
    third = featstream.resume(tmp_path)
    if in_groups:
        for number in (8, 9):
            here = slice(4 * number, 4 * number + 4)
            third.update_group(X[:, here], group=number, names=names[here])
    else:
        for j in range(32, 40):
            third.update(X[:, j], name=names[j])
    third.save()
    whole = clone(kind).start(y).consume(**part(0, 40))
    last = featstream.resume(tmp_path)
    assert checks.outcome(last) == checks.outcome(whole)
    assert checks.state(last) == checks.state(whole)
    assert list(map(last.explain, names)) == list(map(whole.explain, names))
    columns = ["feature", "index", "relevance", "group"][: 3 + in_groups]
    table = (tmp_path / "selected.csv").read_text().splitlines()
    assert table[0] == ",".join(columns)
    if in_groups:
        for label in range(10):
            assert last.explain(group=label) == whole.explain(group=label)
        with pytest.raises(ValueError, match="Group 3 has already arrived"):
            last.update_group(X[:, :1], group=3)


@pytest.mark.parametrize("selector", KINDS[1:], ids=lambda s: type(s).__name__)
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


def test_groups_by_name_of_an_iterator_created_again(data, tmp_path):
    X, y = data
    group_of = {f"f{j}": f"group {j // 3}" for j in range(40)}

    def columns():
        return ((f"f{j}", X[:, j]) for j in range(40))

    selector = GroupSAOLA(measure="su")
    interrupted(tmp_path, selector, y, columns(), 1, groups=group_of)
    resumed = featstream.resume(tmp_path)
    with pytest.raises(RunError, match="other groups than the run was reading"):
        resumed.consume(columns(), groups=group_of | {"f3": "group 0"})
    resumed.consume(columns(), groups=group_of)
    whole = GroupSAOLA(measure="su").start(y).consume(columns(), groups=group_of)
    assert checks.state(resumed) == checks.state(whole)


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
    pick = (lambda part: rows[part]) if is_sparse else (lambda part: rows.iloc[part])
    for part in parts:
        whole.partial_fit(pick(part), y[part])
    expected = checks.state(whole)
    np.random.seed(seed)  # noqa: NPY002
    with tempfile.TemporaryDirectory(dir=checks.MEMORY) as folder:
        for part in parts:
            later.partial_fit(pick(part), y[part])
            later.save(folder)
            later = featstream.resume(folder)
    assert checks.state(later) == expected
    assert np.array_equal(later.coef_, whole.coef_)
    assert (later.n_seen_, later.n_mistakes_) == (50, whole.n_mistakes_)
    if not is_sparse:
        assert later.feature_names_in_.tolist() == list("abcdefghi")
        assert later.transform(frame).shape == (50, later.selected_.size)


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
