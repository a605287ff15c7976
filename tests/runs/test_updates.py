"""Updates that are refused or killed: the run is as it was, or can be resumed."""

import multiprocessing
import os
import signal
import time

import numpy as np
import pytest
from fuzz.runs import KINDS
from sklearn.base import clone

import checks
import featstream
from crash_runs import narrow, stop_at
from featstream import OFS, SAOLA
from featstream.datasets import make_stream
from featstream.errors import DataError, FeatstreamError, RunError
from featstream.sources import ArraySource

fork_only = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
RUNS = [kind for kind, (selector, _) in KINDS.items() if not isinstance(selector, OFS)]
N_FIRST, N_LATER = 24, 60


@pytest.fixture(scope="module")
def stream():
    return make_stream(
        n_samples=40, n_features=N_FIRST + N_LATER, n_informative=4, seed=5
    )


def names(begin, stop):
    return [f"g{j}" for j in range(begin, stop)]


class Updated:
    """A run of one kind with one finished source, and what may be added to it."""

    def __init__(self, kind, stream, folder):
        self.selector, how = KINDS[kind]
        self.has_groups, self.folder, self.y = bool(how), folder, stream.y
        self.X = stream.X.astype(float)
        self.first = ArraySource(self.X[:, :N_FIRST], names(0, N_FIRST))
        clone(self.selector).start(self.y).consume(
            self.first, checkpoint=folder, **self.groups("a", N_FIRST)
        )
        self.before = self.now()

    def groups(self, prefix, n_features):
        labels = [f"{prefix}{j // 4}" for j in range(n_features)]
        return {"groups": labels} if self.has_groups else {}

    def now(self):
        """All that `resume` gives, and the table of the selection."""
        found = featstream.resume(self.folder)
        table = (self.folder / "selected.csv").read_bytes()
        return checks.state(found), checks.outcome(found), table

    def later(self):
        """The features of an update, a few at a time."""
        width = 8 * self.X.shape[0] * 4
        later = self.X[:, N_FIRST:]
        return ArraySource(later, names(N_FIRST, N_FIRST + N_LATER), block_bytes=width)

    def update(self, selector=None, source=None, **how):
        selector = featstream.resume(self.folder) if selector is None else selector
        source = self.later() if source is None else source
        how |= self.groups("b", source.n_features)
        return selector.consume(source, every=0, **how)

    def whole(self):
        """What the run gives if nothing goes wrong."""
        whole = clone(self.selector).start(self.y)
        whole.consume(self.first, **self.groups("a", N_FIRST))
        whole.consume(self.later(), **self.groups("b", N_LATER))
        return checks.outcome(whole)


def with_a_gap(X, given, at):
    X[3, at] = np.nan
    return ArraySource(X, given, block_bytes=8 * X.shape[0] * 4)


def with_an_old_name(X, given, at):
    return ArraySource(X, [*given[:at], "g1", *given[at + 1 :]])


def with_another_length(X, given, at):
    return ArraySource(X[:-1], given)


def infinite(X, given, at):
    X[0, at] = np.inf
    return ArraySource(X, given, block_bytes=8 * X.shape[0] * 4)


FAULTS = [with_a_gap, with_an_old_name, with_another_length, infinite]


def refuse(run, fault, at):
    X, given = run.X[:, N_FIRST:].copy(), names(N_FIRST, N_FIRST + N_LATER)
    selector = featstream.resume(run.folder)
    with pytest.raises(FeatstreamError):
        run.update(selector, fault(X, given, at))
    assert run.now() == run.before
    assert checks.outcome(selector) == run.before[1]  # in memory as well
    return selector


@pytest.mark.parametrize("kind", RUNS)
def test_a_refused_update_leaves_the_run_as_it_was(kind, stream, tmp_path):
    run = Updated(kind, stream, tmp_path / "run")
    for fault in FAULTS:
        selector = refuse(run, fault, at=50)
    run.update(selector)  # goes on in the same object
    assert run.now()[1] == run.whole()
    assert not (run.folder / "finished.json").exists()


def test_features_before_a_gap_do_not_stay(stream, tmp_path):
    """They were decided and saved before the gap was found."""
    run = Updated("SAOLA-su", stream, tmp_path / "run")
    seen = []
    selector = featstream.resume(run.folder)
    bad = with_a_gap(run.X[:, N_FIRST:].copy(), None, at=50)
    with pytest.raises(DataError, match="missing value"):
        run.update(selector, bad, progress=lambda at: seen.append(at.n_seen))
    assert max(seen) > N_FIRST
    assert selector.n_seen_ == N_FIRST
    assert run.now() == run.before


def test_a_first_source_that_is_refused_leaves_no_run(stream, tmp_path):
    run, X = tmp_path / "run", stream.X.astype(float)
    bad = with_a_gap(X.copy(), None, at=50)
    selector = SAOLA(measure="su").start(stream.y)
    with pytest.raises(DataError, match="missing value"):
        selector.consume(bad, checkpoint=run, every=0)
    assert not run.exists()
    selector.consume(X, checkpoint=run)
    expected = SAOLA(measure="su").fit(X, stream.y)
    assert checks.outcome(featstream.resume(run)) == checks.outcome(expected)


def test_single_features_before_a_refused_source_stay(stream, tmp_path):
    run, X = tmp_path / "run", stream.X.astype(float)
    selector = SAOLA(measure="su").start(stream.y)
    for j in range(5):
        selector.update(X[:, j])
    selector.consume(X[:, 5:10], checkpoint=run)
    selector.update(X[:, 10])  # not saved yet
    with pytest.raises(DataError):
        selector.consume(with_a_gap(X[:, 11:].copy(), None, at=20))
    assert selector.n_seen_ == featstream.resume(run).n_seen_ == 11
    selector.consume(X[:, 11:])
    expected = SAOLA(measure="su").fit(X, stream.y)
    assert checks.outcome(featstream.resume(run)) == checks.outcome(expected)


def stop_update(run, n_features=20):
    """Stop an update after some features, as a Ctrl-C would."""
    stop = stop_at(N_FIRST + n_features, KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        run.update(progress=stop)


@pytest.mark.parametrize("kind", RUNS)
def test_an_unfinished_source_may_be_dropped(kind, stream, tmp_path):
    run = Updated(kind, stream, tmp_path / "run")
    stop_update(run)
    assert featstream.resume(run.folder)._run.unfinished is not None
    with pytest.raises(RunError, match="drop_unfinished=True"):
        run.update(source=narrow(run.X[:, :7]))
    dropped = featstream.resume(run.folder, drop_unfinished=True)
    assert checks.outcome(dropped) == run.before[1]
    assert run.now() == run.before
    featstream.resume(run.folder, drop_unfinished=True)  # there is nothing to drop
    assert run.now() == run.before
    run.update(dropped)
    assert run.now()[1] == run.whole()


def test_a_run_that_has_finished_nothing_cannot_go_back(stream, tmp_path):
    selector = SAOLA(measure="su").start(stream.y)
    source = narrow(stream.X, 10)
    stop = stop_at(20, KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        selector.consume(source, checkpoint=tmp_path / "run", every=0, progress=stop)
    with pytest.raises(RunError, match="has finished no source"):
        featstream.resume(tmp_path / "run", drop_unfinished=True)
    with pytest.raises(FileNotFoundError):
        featstream.resume(tmp_path / "nowhere", drop_unfinished=True)
    assert not (tmp_path / "nowhere").exists()
    assert featstream.resume(tmp_path / "run").consume(source).n_seen_ == 84


def test_a_refused_source_is_dropped_after_a_kill_too(stream, tmp_path):
    """Killed before the gap, resumed in another process, refused there."""
    run = Updated("SAOLA-su", stream, tmp_path / "run")
    X = run.X[:, N_FIRST:].copy()
    bad = with_a_gap(X, None, at=50)
    with pytest.raises(KeyboardInterrupt):
        run.update(source=bad, progress=stop_at(N_FIRST + 8, KeyboardInterrupt))
    with pytest.raises(DataError, match="missing value"):
        run.update(source=bad)
    assert run.now() == run.before


def test_a_finished_run_that_is_offered_again_and_refused_stays(stream, tmp_path):
    """The sample of columns that is compared does not show the change."""
    X, run = np.tile(stream.X.astype(float), (1, 2)), tmp_path / "run"
    SAOLA(measure="su").start(stream.y).consume(X, checkpoint=run)
    before = checks.state(featstream.resume(run))
    again = SAOLA(measure="su").start(stream.y)
    again.consume(X.copy(), checkpoint=run)
    assert checks.state(featstream.resume(run)) == before


def kill_update(run, rng):
    """Kill an update at a random moment; whether the kill landed."""
    context = multiprocessing.get_context("fork")
    child = context.Process(target=lambda: (run.update(), os._exit(0)))
    begin = (run.folder / "run.json").read_bytes()
    child.start()
    if rng.random() < 0.8:  # some are killed before they have saved anything
        deadline = time.monotonic() + 60
        while (run.folder / "run.json").read_bytes() == begin and child.is_alive():
            assert time.monotonic() < deadline
            time.sleep(0.001)
    time.sleep(float(rng.uniform(0, 0.15)))
    os.kill(child.pid, signal.SIGKILL)
    child.join()
    return child.exitcode == -signal.SIGKILL


def kill_and_refuse(n_each, kinds, stream, tmp_path):
    """Kill and refuse updates of runs of all kinds; what was found, by how often.

    Afterwards the run is unchanged, or can be resumed to what it would have been, or
    can drop what it has taken.
    """
    rng = np.random.default_rng(0)
    count = dict.fromkeys(("refused", "unchanged", "resumed", "dropped", "done"), 0)
    runs = {}
    n_killed = n_tried = 0
    while n_killed < n_each or count["refused"] < n_each:
        kind = kinds[n_tried % len(kinds)]
        n_tried += 1
        if kind not in runs:
            runs[kind] = Updated(kind, stream, tmp_path / f"run-{n_tried}")
        run = runs[kind]
        if count["refused"] < n_each:
            fault = FAULTS[rng.integers(len(FAULTS))]
            refuse(run, fault, at=int(rng.integers(N_LATER)))
            count["refused"] += 1
        if n_killed < n_each and kill_update(run, rng):
            found = what_a_kill_left(run, rng)
            count[found] += 1
            n_killed += 1
        if featstream.resume(run.folder).n_seen_ > N_FIRST:
            del runs[kind]  # it is finished
    return count


def what_a_kill_left(run, rng):
    """Check that nothing was lost; what was done about it."""
    found = featstream.resume(run.folder)
    if found._run.unfinished is None and found.n_seen_ == N_FIRST:
        assert run.now() == run.before
        return "unchanged"
    if found._run.unfinished is None:
        assert checks.outcome(found) == run.whole()
        return "done"
    if rng.random() < 0.5:
        dropped = featstream.resume(run.folder, drop_unfinished=True)
        assert checks.outcome(dropped) == run.before[1]
        assert run.now() == run.before
        return "dropped"
    run.update(found)
    assert run.now()[1] == run.whole()
    return "resumed"


@fork_only
def test_killed_and_refused_updates_lose_nothing(stream, tmp_path):
    kinds = ["SAOLA-su", "groups", "FastOSFS-fisher-z"]
    count = kill_and_refuse(6, kinds, stream, tmp_path)
    assert count["refused"] == 6
    assert sum(count.values()) == 12


@fork_only
@pytest.mark.slow
def test_two_hundred_killed_and_two_hundred_refused_updates_lose_nothing(
    stream, tmp_path
):
    count = kill_and_refuse(200, RUNS, stream, tmp_path)
    print(count)
    assert count["refused"] == 200
    assert sum(count.values()) == 400
    assert count["resumed"] >= 20
    assert count["dropped"] >= 20
