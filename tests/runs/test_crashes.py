"""Kills, damage and full disks: the old state or the new one, never neither."""

import errno
import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
from fuzz.runs import newest_state
from sklearn.base import clone

import checks
import featstream
from crash_runs import Killer
from featstream import (
    OGFS,
    OSFS,
    SAOLA,
    AlphaInvesting,
    FastOSFS,
    Fate,
    Grafting,
    GroupSAOLA,
    InteractionScreen,
    random_groups,
)
from featstream.datasets import make_stream
from featstream.errors import RunError
from featstream.runs import folder as run_files
from featstream.runs.folder import RunFolder, seal

fork_only = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@pytest.fixture(scope="module")
def small():
    return make_stream(n_samples=24, n_features=40, n_informative=4, seed=5)


@pytest.fixture
def run(tmp_path, small):
    """A finished run of two generations."""
    folder = tmp_path / "run"
    SAOLA(measure="su").start(small.y).consume(small.X[:, :20], checkpoint=folder)
    featstream.resume(folder).consume(small.X[:, 20:])
    return folder


def kill_until(n_kills, tmp_path, longest, selector=None, X=None, y=None, **how):
    """Kill children until ``n_kills`` have landed; the result is always the same.

    Returns how many landed in the middle of a write.
    """
    selector = SAOLA(measure="su") if selector is None else selector
    if X is None:
        stream = make_stream(n_samples=60, n_features=800, seed=1)
        X, y = stream.X, stream.y
    killer = Killer(selector, X, y, **how)
    expected = checks.state(clone(selector).start(y).consume(X, **how))
    n_killed = n_writing = 0
    folder = tmp_path / "run-0"
    for attempt in range(20 * n_kills):
        if killer.kill_one(folder, longest):
            n_killed += 1
            n_writing += any(folder.glob(".*.part"))
            featstream.resume(folder)
        if n_killed == n_kills or attempt % 5 == 4:
            assert checks.state(killer.select(folder)) == expected
            assert not any(folder.glob(".*.part"))
            folder = tmp_path / f"run-{attempt + 1}"
        if n_killed == n_kills:
            return n_writing
    raise AssertionError(f"only {n_killed} kills landed")


@fork_only
def test_five_kills_change_nothing(tmp_path):
    kill_until(5, tmp_path, longest=0.3)


@fork_only
def test_kills_change_nothing_beyond_the_paper(tmp_path):
    """Conditional test and error budget together: both are in the state."""
    stream = make_stream(n_samples=200, n_features=400, seed=1)
    X, y = stream.X.copy(), stream.y
    X[:, 30] = y == y[0]
    X[:, 300] = np.where(np.arange(y.size) % 10, X[:, 30], 0)  # adds nothing to that
    selector = SAOLA(measure="su", redundancy="conditional", correction="online-fdr")
    whole = clone(selector).fit(X, y)
    fates = whole.result_.trace.records["fate"]
    assert {Fate.IRRELEVANT, Fate.REDUNDANT, Fate.KEPT} <= set(fates.tolist())
    kill_until(3, tmp_path, 0.3, selector, X, y)


@fork_only
def test_kills_change_nothing_of_pairs(tmp_path):
    stream = make_stream(n_samples=200, n_features=400, seed=1)
    X, y = stream.X.copy(), stream.y
    X[:, 20] = np.random.default_rng(0).integers(0, 2, y.size)
    X[:, 390] = X[:, 20] ^ (y == y[0])  # the pair tells the class, neither alone does
    selector = InteractionScreen()
    whole = clone(selector).fit(X, y)
    assert (20, 390) in [(pair.first, pair.second) for pair in whole.pairs_]
    kill_until(3, tmp_path, 0.3, selector, X, y)


@fork_only
@pytest.mark.slow
def test_a_hundred_kills_change_nothing(tmp_path):
    n_writing = kill_until(100, tmp_path, longest=0.5)
    assert n_writing >= 10  # some must land inside a write


GROUPS = {"groups": random_groups(800, 90, seed=2)}
OTHERS = [
    (GroupSAOLA(measure="su"), GROUPS),
    (GroupSAOLA(measure="fisher-z", reading="library"), GROUPS),
    (OGFS(penalty=0.05), GROUPS),
    (FastOSFS(test="g2", alpha=0.05), {}),
    (OSFS(test="fisher-z", alpha=0.05), {}),
    (AlphaInvesting(wealth=5.0), {}),
    (Grafting(l1=0.1), {}),
]


@fork_only
@pytest.mark.slow
@pytest.mark.parametrize(("selector", "how"), OTHERS, ids=lambda a: type(a).__name__)
def test_twenty_kills_change_nothing_for(selector, how, tmp_path):
    assert kill_until(20, tmp_path, 0.5, selector, **how) >= 1


def outcomes_of_damage(folder, name, contents):
    """What resume makes of a file with other contents: states, or clean errors."""
    found = set()
    original = (folder / name).read_bytes()
    for content in contents:
        (folder / name).write_bytes(content)
        try:
            found.add(featstream.resume(folder).n_seen_)
        except RunError:
            found.add("error")
    (folder / name).write_bytes(original)
    return found


def cuts(content, step):
    """The first bytes of a file, of many lengths."""
    return [content[:length] for length in {*range(0, len(content), step)}]


def flips(content, n_flips):
    """A file with another bit, for many bits."""
    n_bits = 8 * len(content)
    places = np.random.default_rng(0).choice(n_bits, n_flips or n_bits, replace=False)
    for place in places.tolist():
        damaged = bytearray(content)
        damaged[place // 8] ^= 1 << (place % 8)
        yield bytes(damaged)


@pytest.mark.filterwarnings("ignore:.*previous generation")
@pytest.mark.parametrize(
    ("damage", "how_many"),
    [
        (cuts, 13),
        pytest.param(cuts, 1, marks=pytest.mark.slow, id="every length"),
        (flips, 300),
        pytest.param(flips, None, marks=pytest.mark.slow, id="every bit"),
    ],
)
def test_damage_gives_the_generation_before(run, damage, how_many):
    for name in (newest_state(run).name, "run.json"):
        content = (run / name).read_bytes()
        damaged = [*damage(content, how_many), content[:-1]]
        assert outcomes_of_damage(run, name, damaged) == {20}
    assert featstream.resume(run).n_seen_ == 40


def test_a_damaged_generation_is_reported_and_left_behind(run, small):
    newest_state(run).write_bytes(b"nothing")
    with pytest.warns(UserWarning, match="from the previous generation"):
        resumed = featstream.resume(run)
    with pytest.warns(UserWarning, match="from the previous generation"):
        resumed.consume(small.X[:, 20:])
    expected = SAOLA(measure="su").fit(small.X, small.y)
    assert checks.outcome(featstream.resume(run)) == checks.outcome(expected)
    for path in run.glob("state-*.npz"):
        path.write_bytes(b"nothing")
    with pytest.raises(RunError, match="The previous generation cannot be read either"):
        featstream.resume(run)


def test_a_later_version_is_not_damage(run):
    facts = json.loads((run / "run.json").read_text())
    del facts["sha256"]
    (run / "run.json").write_bytes(seal({**facts, "version": 99}))
    with pytest.raises(RunError, match="install a newer one"):
        featstream.resume(run)


def test_what_is_no_run_is_said(tmp_path):
    with pytest.raises(FileNotFoundError, match="There is no run"):
        featstream.resume(tmp_path / "nowhere")
    with pytest.raises(RunError, match="not the folder of a run"):
        featstream.resume(tmp_path)


@pytest.mark.parametrize("n_bytes", [0, 100, 2000])
def test_a_full_disk_leaves_the_old_state(run, small, monkeypatch, n_bytes):
    """A stand-in: the file system takes some bytes, and no more."""
    real = run_files.write_arrays
    before = checks.outcome(featstream.resume(run))
    resumed = featstream.resume(run)

    def full(file, arrays):
        real(file, arrays)
        if file.tell() > n_bytes:
            file.truncate(n_bytes)
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(run_files, "write_arrays", full)
    with pytest.raises(OSError, match="the previous checkpoint is complete") as caught:
        resumed.consume(small.X)
    assert caught.value.errno == errno.ENOSPC
    assert "state-" in caught.value.filename
    monkeypatch.undo()
    assert checks.outcome(featstream.resume(run)) == before
    assert not list(run.glob(".*"))


def test_two_writers_are_one_too_many(run, small):
    """The lock of a dead process is free, on any system, whatever its file holds."""
    held = "import sys, time\nfrom filelock import FileLock\n"
    held += "with FileLock(sys.argv[1]):\n"
    held += "    print('held', flush=True)\n    time.sleep(600)\n"
    command = [sys.executable, "-c", held, str(run / "lock")]
    refused = pytest.raises(RunError, match="is being written by another process")
    with subprocess.Popen(command, stdout=subprocess.PIPE) as owner:
        assert owner.stdout.readline() == b"held\n"
        with refused:
            featstream.resume(run).consume(small.X)
        owner.kill()
    with RunFolder(run).locked(), refused:
        featstream.resume(run).consume(small.X)
    of_an_earlier_version = {"pid": os.getpid(), "host": "elsewhere", "since": None}
    (run / "lock").write_text(json.dumps(of_an_earlier_version))
    assert featstream.resume(run).consume(small.X).n_seen_ == 2 * small.X.shape[1]


def test_a_moved_run_continues(run, tmp_path, small):
    shutil.move(run, tmp_path / "moved")
    assert featstream.resume(tmp_path / "moved").n_seen_ == 40


def test_what_cannot_be_saved_is_said(tmp_path, small):
    class Odd(SAOLA):
        def _state_arrays(self):
            return {"what": np.array(["text"], dtype=object)}

    with pytest.raises(RunError, match="its type is object"):
        Odd(measure="su").start(small.y).consume(small.X, checkpoint=tmp_path)
