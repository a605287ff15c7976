"""The commands that work on runs, and the store."""

import contextlib
import json
import os
import signal
import time

import numpy as np
import pytest
from scipy import sparse

import checks
import featstream
from crash_runs import start_command
from featstream import OFS, SAOLA, GroupSAOLA
from featstream.cli import main
from featstream.datasets import make_stream
from featstream.runs.folder import Checkpoint
from featstream.selectors import base
from featstream.sources import Dataset, SparseSource

SAOLA_ = ["--selector", "saola"]


@pytest.fixture(scope="module")
def stream():
    return make_stream(n_samples=80, n_features=200, seed=2)


def saved(path, X, y):
    np.savez(path, X=X, y=y)
    return str(path)


@pytest.fixture
def data(tmp_path, stream):
    return saved(tmp_path / "data.npz", stream.X[:, :150], stream.y)


@pytest.fixture
def more(tmp_path, stream):
    return saved(tmp_path / "more.npz", stream.X[:, 150:], stream.y)


def test_select_update_explain_and_info(
    tmp_path, data, more, stream, run, run_json, fail
):
    folder = tmp_path / "run"
    out = run("select", *SAOLA_, data, "--measure", "su", "-o", folder, "-q")
    assert "of 150 features selected" in out
    before = SAOLA(measure="su").fit(stream.X[:, :150], stream.y)
    assert run("explain", folder, "7") == f"{before.explain(7)}\n"  # by its arrival
    assert "150" in fail("explain", folder, "150")
    found = run_json("update", folder, more)
    expected = SAOLA(measure="su").fit(stream.X, stream.y)
    assert found["selected"] == expected.result_.to_dict()["selected"]
    reasons = {name: expected.explain(name) for name in ("x160", "x3")}
    assert run("explain", folder, *reasons).splitlines() == list(reasons.values())
    assert json.loads(run("explain", folder, *reasons, "--json")) == reasons
    out = run("info", folder)
    assert "a run of SAOLA (done)" in out
    assert f"featstream select --selector saola {data}" in out
    assert json.loads(run("info", folder, "--json"))["n_seen"] == 200
    assert "of 200 features selected" in run("resume", folder, "-q")
    table = (folder / "selected.csv").read_text().splitlines()
    assert len(table) == 1 + expected.selected_.size


def test_other_targets_and_parameters_are_refused(tmp_path, data, stream, run, fail):
    folder = tmp_path / "run"
    command = ["select", data, "-o", folder, "-q", "--measure"]
    run(*command, "su")
    other = saved(tmp_path / "other.npz", stream.X, 1 - stream.y)
    assert "y differs from the y that the run" in fail("update", folder, other)
    assert "--measure su" in fail(*command, "mi")


def test_update_takes_a_table_without_target(tmp_path, stream, run):
    pytest.importorskip("pyarrow")
    folder = tmp_path / "run"
    for name, columns in (("a", range(5)), ("b", range(5, 9)), ("c", range(9, 12))):
        header = [f"g{j}" for j in columns]
        values = stream.X[:, list(columns)]
        if name != "b":
            header, values = [*header, "class"], np.c_[values, stream.y]
        lines = [header, *values.astype(int).tolist()]
        text = "\n".join(",".join(map(str, line)) for line in lines)
        (tmp_path / f"{name}.csv").write_text(text)
    run("select", tmp_path / "a.csv", "--measure", "su", "-o", folder, "-q")
    run("update", folder, tmp_path / "b.csv")
    run("update", folder, tmp_path / "c.csv")
    assert featstream.resume(folder).n_seen_ == 12


def test_convert_makes_a_store(tmp_path, data, stream, run, run_json, fail):
    small, store = tmp_path / "small.svm", tmp_path / "data.cols"
    small.write_text("1 1:1 3:1\n-1 2:1\n")
    for name in ("small.svm", "out", "out.csv"):
        said = fail("convert", small, tmp_path / name)
        assert "whose name ends in .cols" in said
        assert {p.name for p in tmp_path.iterdir()} == {"small.svm", "data.npz"}
    command = ["convert", small, tmp_path / "small.cols", "--memory"]
    assert "--memory must be a size such as 500MB" in fail(*command, "lots")
    assert run_json(*command, "100MB")["n_features"] == 3
    assert "150 features" in run("convert", data, store)
    found = run_json("select", *SAOLA_, store)
    expected = SAOLA().fit(stream.X[:, :150], stream.y)
    assert found["selected"] == expected.result_.to_dict()["selected"]


# Groups -----------------------------------------------------------------------


def write_labels(path, labels):
    path.write_text("".join(f"{label}\n" for label in labels))
    return str(path)


def test_groups_are_selected_updated_and_explained(
    tmp_path, data, more, stream, run, run_json, fail
):
    folder = tmp_path / "run"
    labels = np.array([f"plate-{j % 20}" for j in range(150)])
    later = np.array([f"plate-{20 + j % 7}" for j in range(50)])
    one = write_labels(tmp_path / "one.txt", labels)
    two = write_labels(tmp_path / "two.txt", later)
    flags = ["--measure", "su", "-o", folder, "-q"]
    out = run("select", data, "--groups", one, *flags)
    assert "of 150 features selected (GroupSAOLA" in out
    assert "of 20 selected" in out
    found = run_json("update", folder, more, "--groups", two)
    assert found["n_groups"] == 27
    whole = GroupSAOLA(measure="su").start(stream.y)
    whole.consume(stream.X[:, :150], groups=labels)
    whole.consume(stream.X[:, 150:], groups=later)
    assert found["selected"] == whole.result_.to_dict()["selected"]
    reasons = whole.explain("x160"), whole.explain(group="plate-22")
    assert run("explain", folder, "x160", "plate-22").splitlines() == [*reasons]
    assert "No feature 'plate-99'" in fail("explain", folder, "plate-99")
    out = run("info", folder)
    assert "a run of GroupSAOLA (done)" in out
    assert f"{whole.selected_groups_.size} kept of 27 groups seen" in out
    assert "groups: labels" in out
    table = (folder / "selected.csv").read_text().splitlines()
    assert table[0] == "feature,index,relevance,group"


def test_groups_by_size_are_numbered_on(tmp_path, data, more, stream, run):
    folder, size = tmp_path / "run", ["--group-size", "10", "-q"]
    run("select", data, "--measure", "su", "-o", folder, *size)
    run("update", folder, more, *size)
    groups = np.arange(200) // 10
    whole = GroupSAOLA(measure="su").fit(stream.X, stream.y, groups=groups)
    assert featstream.resume(folder).result_.groups.labels == list(range(20))
    assert run("explain", folder, "17").strip() == whole.explain(group=17)


@contextlib.contextmanager
def interrupting(progress, label):
    """An observer that stands for a Ctrl-C after some features."""

    def observe(progress):
        if progress.n_seen >= 60:
            signal.raise_signal(signal.SIGINT)

    yield observe


@pytest.mark.parametrize("flag", ["--groups", "--group-size", "--group-by"])
def test_an_interrupted_run_of_groups_is_resumed(
    flag, tmp_path, data, stream, run, fail, monkeypatch
):
    """With the flags that it was begun with, or with those for where things are now."""
    value, groups = {
        "--groups": ("labels.txt", [f"g{j % 9}" for j in range(150)]),
        "--group-size": (7, np.arange(150) // 7),
        "--group-by": ("x.?", [f"x{j}"[:2] for j in range(150)]),
    }[flag]
    monkeypatch.chdir(tmp_path)
    write_labels(tmp_path / "labels.txt", groups)
    narrow = SparseSource(sparse.csc_array(stream.X[:, :150]), block_columns=10)
    opened = Dataset(narrow, stream.y)
    with monkeypatch.context() as patched:
        patched.setattr(base, "observed", interrupting)
        patched.setattr("featstream.sources.open_dataset", lambda *a: opened)
        said = run(
            "select", data, "--measure", "su", "-o", "run", flag, value, code=130
        )
    assert "to continue: featstream resume run" in said
    assert 0 < featstream.resume("run").n_seen_ < 150
    again = ["resume", "run", "-q"]
    if flag != "--group-by":
        os.rename(data, "moved.npz")
        again += ["--data", "moved.npz"]
    if flag == "--groups":
        os.rename("labels.txt", "moved.txt")
        assert "labels.txt" in fail(*again)
        again += ["--groups", "moved.txt"]
    run(*again)
    expected = GroupSAOLA(measure="su").fit(stream.X[:, :150], stream.y, groups=groups)
    assert checks.outcome(featstream.resume("run")) == checks.outcome(expected)


def test_groups_in_the_wrong_place_fail(tmp_path, data, more, stream, run, fail):
    groups, single = tmp_path / "groups", tmp_path / "single"
    run("select", data, "--group-size", "5", "-o", groups, "-q")
    run("select", *SAOLA_, data, "-o", single, "-q")
    assert "Say how these features fall into groups" in fail("update", groups, more)
    wrong = fail("update", single, more, "--group-size", "5")
    assert "The run is one of SAOLA. Leave the groups out." in wrong
    wrong = fail("select", *SAOLA_, data, "-o", groups, "-q")
    assert "is one of 'GroupSAOLA', not of SAOLA" in wrong
    halfway = GroupSAOLA(measure="su").start(stream.y)
    saving = Checkpoint(tmp_path / "half", data={"path": data, "target": None})
    options = {"groups": np.arange(150) % 7, "progress": lambda at: 1 / 0}
    with pytest.raises(ZeroDivisionError):
        halfway.consume(stream.X[:, :150], checkpoint=saving, **options)
    said = fail("resume", tmp_path / "half", "-q")
    assert "does not say how to find its groups" in said


def test_a_run_of_rows_is_for_python(tmp_path, stream, run, fail):
    folder = tmp_path / "rows"
    OFS(5).fit(stream.X, stream.y).save(folder)
    out = run("info", folder)
    assert "a run of OFS (done)" in out
    assert "5 kept of 200 features, 80 samples seen" in out
    assert "OFS, which learns from rows" in fail("update", folder, folder)


@pytest.mark.skipif(os.name != "posix", reason="needs SIGINT")
def test_ctrl_c_saves_and_says_how_to_continue(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 3, (100, 300_000), np.int8), rng.integers(0, 2, 100)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    run = tmp_path / "run"
    flags = ["--target", tmp_path / "y.npy", "--measure", "su", "-o", run]
    process = start_command("select", *SAOLA_, tmp_path / "X.npy", *flags)
    deadline = time.monotonic() + 120
    while not any(run.glob("state-*.npz")):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130, errors
    assert f"to continue: featstream resume {run}" in errors
    stopped = featstream.resume(run)
    assert stopped.n_seen_ < X.shape[1]
    assert main(["resume", str(run), "-q", "--json"]) == 0
    expected = checks.outcome(SAOLA(measure="su").fit(X, y))
    assert checks.outcome(featstream.resume(run)) == expected
