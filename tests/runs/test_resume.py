"""Runs: saved, resumed, continued, refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

import checks
import featstream
from crash_runs import Stop, narrow, stop_at
from featstream import OGFS, SAOLA, FisherZ, GroupSAOLA, SymmetricalUncertainty
from featstream.datasets import make_stream
from featstream.errors import ParameterError, RunError
from featstream.runs.state import complete_parameters, describe_selector
from featstream.sources import ArraySource, SparseSource


@pytest.fixture(scope="module")
def stream():
    return make_stream(n_samples=120, n_features=240, seed=3)


def interrupted(folder, stream, selector, at=120):
    with pytest.raises(Stop):
        selector.start(stream.y).consume(
            narrow(stream.X), checkpoint=folder, every=0, progress=stop_at(at)
        )


@pytest.mark.parametrize(("measure", "cut"), [("mi", 239), ("auto", 1), ("auto", 60)])
def test_resumed_equals_uninterrupted(stream, measure, cut):
    selector = SAOLA(measure=measure)
    checks.check_resume_equals_uninterrupted(selector, stream.X, stream.y, cut)


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


KINDS = [SAOLA(measure="su"), GroupSAOLA(measure="su"), OGFS(penalty=0.05)]
each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda s: type(s).__name__)


@each_kind
def test_a_second_run_of_the_same_script_continues(kind, tmp_path, stream):
    interrupted(tmp_path / "run", stream, clone(kind))
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


@each_kind
def test_saving_what_was_loaded_gives_the_same_bytes(kind, tmp_path, stream):
    clone(kind).start(stream.y).consume(stream.X, checkpoint=tmp_path / "a")
    featstream.resume(tmp_path / "a").save(tmp_path / "b")
    (state,) = (tmp_path / "b").glob("state-*.npz")
    newest = max((tmp_path / "a").glob("state-*.npz"))
    assert state.read_bytes() == newest.read_bytes()


def test_features_that_arrive_later_join_the_run(tmp_path, stream):
    X, y = stream.X, stream.y
    names = [f"gene_{j}" for j in range(X.shape[1])]
    first = SAOLA(measure="su").start(y)
    first.consume(ArraySource(X[:, :100], names[:100]), checkpoint=tmp_path)
    second = featstream.resume(tmp_path)
    second.consume(ArraySource(X[:, 100:200], names[100:200]))
    third = featstream.resume(tmp_path)
    for j in range(200, X.shape[1]):
        third.update(X[:, j], name=names[j])
    third.save()
    whole = SAOLA(measure="su").start(y).consume(ArraySource(X, names))
    last = featstream.resume(tmp_path)
    assert checks.outcome(last) == checks.outcome(whole)
    assert last.result_.names == whole.result_.names
    assert last.explain("gene_150") == whole.explain("gene_150")
    sources = json.loads((tmp_path / "run.json").read_text())["sources"]
    assert [source["begin"] for source in sources] == [0, 100]
    table = (tmp_path / "selected.csv").read_text().splitlines()
    assert table[0] == "feature,index,relevance"


def test_the_same_data_in_another_storage_may_continue(tmp_path, stream):
    interrupted(tmp_path, stream, SAOLA(measure="su"))
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


REFUSALS = {
    "another y": (
        lambda s: (SAOLA(measure="su").start(1 - s.y), s.X),
        "y differs",
    ),
    "other samples": (
        lambda s: (SAOLA(measure="su").start(s.y[:-1]), s.X[:-1]),
        "120 samples; here are 119",
    ),
    "another parameter": (
        lambda s: (SAOLA(measure="su", bound="max").start(s.y), s.X),
        "bound='min'; here it is 'max'",
    ),
    "another measure": (
        lambda s: (SAOLA(measure=FisherZ(alpha=0.5)).start(s.y), s.X),
        r"measure='su'; here it is FisherZ\(alpha=0.5",
    ),
    "another width": (
        lambda s: (SAOLA(measure="su").start(s.y), s.X[:, 1:]),
        "another data set .* number of features was 240 and is 239",
    ),
    "other values": (
        lambda s: (SAOLA(measure="su").start(s.y), s.X[:, ::-1].copy()),
        "another data set .* checksum of some columns",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_a_run_is_refused_with(case, tmp_path, stream):
    interrupted(tmp_path, stream, SAOLA(measure="su"))
    before = (tmp_path / "run.json").read_bytes()
    make, message = REFUSALS[case]
    selector, X = make(stream)
    with pytest.raises(RunError, match=message):
        selector.consume(X, checkpoint=tmp_path)
    assert (tmp_path / "run.json").read_bytes() == before


def test_a_resumed_run_refuses_another_source_and_single_updates(tmp_path, stream):
    interrupted(tmp_path, stream, SAOLA(measure="su"))
    resumed = featstream.resume(tmp_path)
    with pytest.raises(RunError, match="another data set"):
        resumed.consume(stream.X[:, 5:])
    with pytest.raises(RunError, match="in the middle of a source"):
        resumed.update(stream.X[:, 0])


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


def test_an_iterator_may_be_created_again(tmp_path, stream):
    def columns():
        return ((f"f{j}", stream.X[:, j]) for j in range(stream.X.shape[1]))

    selector = SAOLA(measure="su").start(stream.y)
    with pytest.raises(Stop):
        selector.consume(columns(), checkpoint=tmp_path, every=0, progress=stop_at(1))
    resumed = featstream.resume(tmp_path).consume(columns())
    expected = SAOLA(measure="su").start(stream.y).consume(columns())
    assert checks.outcome(resumed) == checks.outcome(expected)


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
    assert complete_parameters(old) == new
