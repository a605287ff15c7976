"""The commands that work on runs, and the store."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import signal
import time
from importlib import import_module

import numpy as np
import pytest
from scipy import sparse

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


@pytest.fixture
def data(tmp_path, stream):
    path = tmp_path / "data.npz"
    np.savez(path, X=stream.X[:, :150], y=stream.y)
    return str(path)


@pytest.fixture
def more(tmp_path, stream):
    path = tmp_path / "more.npz"
    np.savez(path, X=stream.X[:, 150:], y=stream.y)
    return str(path)


def test_select_update_explain_and_info(tmp_path, data, more, stream, capsys):
    run = str(tmp_path / "run")
    assert main(["select", *SAOLA_, data, "--measure", "su", "-o", run, "-q"]) == 0
    assert "of 150 features selected" in capsys.readouterr().out
    assert main(["update", run, more, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    expected = SAOLA(measure="su").fit(stream.X, stream.y)
    indices = [feature["index"] for feature in found["selected"]]
    assert indices == expected.selected_.tolist()
    assert main(["explain", run, "x160", "x3"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out == [expected.explain("x160"), expected.explain("x3")]
    assert main(["explain", run, "x3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"x3": expected.explain("x3")}
    assert main(["info", run]) == 0
    out = capsys.readouterr().out
    assert "a run of SAOLA (done)" in out
    assert f"featstream select --selector saola {data}" in out
    assert main(["info", run, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["n_seen"] == 200
    assert main(["resume", run, "-q"]) == 0
    assert "of 200 features selected" in capsys.readouterr().out
    table = (tmp_path / "run" / "selected.csv").read_text().splitlines()
    assert len(table) == 1 + len(indices)


def test_a_feature_is_explained_by_its_arrival(tmp_path, data, stream, capsys):
    run = str(tmp_path / "run")
    assert main(["select", *SAOLA_, data, "--measure", "su", "-o", run, "-q"]) == 0
    capsys.readouterr()
    assert main(["explain", run, "7"]) == 0
    expected = SAOLA(measure="su").fit(stream.X[:, :150], stream.y).explain(7)
    assert capsys.readouterr().out == f"{expected}\n"
    assert main(["explain", run, "150"]) == 1
    assert "150" in capsys.readouterr().err


@pytest.mark.parametrize("store", ["small.svm", "out", "out.csv"])
def test_convert_writes_nothing_but_a_store(tmp_path, store, capsys):
    (tmp_path / "small.svm").write_text("1 1:1 3:1\n-1 2:1\n")
    output = str(tmp_path / store)
    assert main(["convert", str(tmp_path / "small.svm"), output]) == 1
    assert "whose name ends in .cols" in capsys.readouterr().err
    assert [p.name for p in tmp_path.iterdir()] == ["small.svm"]


def test_update_refuses_another_target(tmp_path, data, stream, capsys):
    run = str(tmp_path / "run")
    assert main(["select", data, "-o", run, "-q"]) == 0
    np.savez(tmp_path / "other.npz", X=stream.X, y=1 - stream.y)
    assert main(["update", run, str(tmp_path / "other.npz")]) == 1
    assert "y differs from the y that the run" in capsys.readouterr().err


def test_update_takes_a_table_without_target(tmp_path, stream, capsys):
    pytest.importorskip("pyarrow")
    run = str(tmp_path / "run")
    for name, columns in (("a", range(5)), ("b", range(5, 9)), ("c", range(9, 12))):
        header = [f"g{j}" for j in columns]
        values = stream.X[:, list(columns)]
        if name != "b":
            header, values = [*header, "class"], np.c_[values, stream.y]
        np.savetxt(
            tmp_path / f"{name}.csv",
            values,
            fmt="%d",
            delimiter=",",
            header=",".join(header),
            comments="",
        )
    table = [str(tmp_path / f"{name}.csv") for name in "abc"]
    assert main(["select", table[0], "--measure", "su", "-o", run, "-q"]) == 0
    assert main(["update", run, table[1]]) == 0
    assert main(["update", run, table[2]]) == 0
    assert featstream.resume(run).n_seen_ == 12
    capsys.readouterr()


def test_other_parameters_are_refused(tmp_path, data, capsys):
    run = str(tmp_path / "run")
    assert main(["select", data, "--measure", "su", "-o", run, "-q"]) == 0
    assert main(["select", data, "--measure", "mi", "-o", run, "-q"]) == 1
    assert "--measure su" in capsys.readouterr().err


def test_convert_makes_a_store(tmp_path, data, stream, capsys):
    (tmp_path / "small.svm").write_text("1 1:1 3:1\n-1 2:1\n")
    store = str(tmp_path / "small.cols")
    options = ["--memory", "100MB", "--json", "-q"]
    assert main(["convert", str(tmp_path / "small.svm"), store, *options]) == 0
    assert json.loads(capsys.readouterr().out)["n_features"] == 3
    assert main(["convert", data, str(tmp_path / "data.cols")]) == 0
    assert "150 features" in capsys.readouterr().out
    assert main(["select", *SAOLA_, str(tmp_path / "data.cols"), "--json", "-q"]) == 0
    found = json.loads(capsys.readouterr().out)
    expected = SAOLA().fit(stream.X[:, :150], stream.y)
    assert [f["index"] for f in found["selected"]] == expected.selected_.tolist()
    with pytest.raises(SystemExit):
        main(["convert", "a.svm", "b.cols", "--memory", "lots"])


# Groups -----------------------------------------------------------------------


def write_labels(path, labels):
    path.write_text("".join(f"{label}\n" for label in labels))
    return str(path)


def test_groups_are_selected_updated_and_explained(
    tmp_path, data, more, stream, capsys
):
    run = str(tmp_path / "run")
    labels = np.array([f"plate-{j % 20}" for j in range(150)])
    later = np.array([f"plate-{20 + j % 7}" for j in range(50)])
    one = write_labels(tmp_path / "one.txt", labels)
    two = write_labels(tmp_path / "two.txt", later)
    flags = ["--measure", "su", "-o", run, "-q"]
    assert main(["select", data, "--groups", one, *flags]) == 0
    out = capsys.readouterr().out
    assert "of 150 features selected (GroupSAOLA" in out
    assert "of 20 selected" in out
    assert main(["update", run, more, "--groups", two, "--json", "-q"]) == 0
    found = json.loads(capsys.readouterr().out)
    whole = GroupSAOLA(measure="su").start(stream.y)
    whole.consume(stream.X[:, :150], groups=labels)
    whole.consume(stream.X[:, 150:], groups=later)
    assert found["selected"] == whole.result_.to_dict()["selected"]
    assert found["n_groups"] == 27
    assert main(["explain", run, "x160", "plate-3", "plate-22"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        whole.explain("x160"),
        whole.explain(group="plate-3"),
        whole.explain(group="plate-22"),
    ]
    assert main(["explain", run, "plate-99"]) == 1
    assert "No feature 'plate-99'" in capsys.readouterr().err
    assert main(["info", run]) == 0
    out = capsys.readouterr().out
    assert "a run of GroupSAOLA (done)" in out
    assert f"{whole.selected_groups_.size} kept of 27 groups seen" in out
    assert "groups: labels" in out
    table = (tmp_path / "run" / "selected.csv").read_text().splitlines()
    assert table[0] == "feature,index,relevance,group"
    assert len(table) == 1 + whole.selected_.size


def test_groups_by_size_are_numbered_on(tmp_path, data, more, stream, capsys):
    run = str(tmp_path / "run")
    size = ["--group-size", "10", "-q"]
    assert main(["select", data, "--measure", "su", "-o", run, *size]) == 0
    assert main(["update", run, more, *size]) == 0
    whole = GroupSAOLA(measure="su").fit(
        stream.X, stream.y, groups=np.arange(200) // 10
    )
    resumed = featstream.resume(run)
    assert resumed.selected_.tolist() == whole.selected_.tolist()
    assert resumed.result_.groups.labels == list(range(20))
    capsys.readouterr()
    assert main(["explain", run, "17"]) == 0
    assert capsys.readouterr().out.strip() == whole.explain(group=17)


@pytest.mark.parametrize(
    ("flags", "has_moved"),
    [
        (("--groups", "labels.txt"), True),
        (("--group-size", "7"), True),
        (("--group-by", "x.?"), False),
    ],
)
def test_an_interrupted_run_of_groups_is_resumed(
    flags, has_moved, tmp_path, data, stream, capsys, monkeypatch
):
    """With the flags that it was begun with, or with those for where things are now."""
    monkeypatch.chdir(tmp_path)
    labels = write_labels(tmp_path / "labels.txt", [f"g{j % 9}" for j in range(150)])
    run, flag = tmp_path / "run", list(flags)
    monkeypatch.setattr(base, "observed", interrupting(at=60))
    from featstream.cli.main import run_checkpoint

    for module in ("runs", "select"):
        module = import_module(f"featstream.cli.{module}")
        monkeypatch.setattr(module, "run_checkpoint", often(run_checkpoint))
    narrow = SparseSource(sparse.csc_array(stream.X[:, :150]), block_columns=10)
    opened = Dataset(narrow, stream.y)
    monkeypatch.setattr("featstream.sources.open_dataset", lambda *a: opened)
    command = ["select", data, "--measure", "su", "-o", str(run), *flag]
    assert main(command) == 130
    assert f"to continue: featstream resume {run}" in capsys.readouterr().err
    monkeypatch.undo()
    stopped = featstream.resume(run)
    assert 0 < stopped.n_seen_ < 150
    again = ["resume", str(run), "-q"]
    if has_moved:
        os.rename(data, tmp_path / "moved.npz")
        os.rename(labels, tmp_path / "moved.txt")
        again += ["--data", str(tmp_path / "moved.npz")]
        if flag[0] == "--groups":
            assert main(again) == 1
            assert "labels.txt" in capsys.readouterr().err
            again += ["--groups", str(tmp_path / "moved.txt")]
    assert main(again) == 0
    whole = {
        "--groups": [f"g{j % 9}" for j in range(150)],
        "--group-size": np.arange(150) // 7,
        "--group-by": [f"x{j}"[:2] for j in range(150)],
    }[flag[0]]
    expected = GroupSAOLA(measure="su").fit(stream.X[:, :150], stream.y, groups=whole)
    found = featstream.resume(run)
    assert found.selected_.tolist() == expected.selected_.tolist()
    assert found.selected_groups_.tolist() == expected.selected_groups_.tolist()


def interrupting(at):
    """What `observed` is replaced by: Ctrl-C after `at` features."""

    @contextlib.contextmanager
    def observed(progress, label):
        def observe(progress):
            if progress.n_seen >= at:
                raise KeyboardInterrupt

        yield observe

    return observed


def often(run_checkpoint):
    """The same checkpoint, after every block."""
    return lambda *given: dataclasses.replace(run_checkpoint(*given), every=0.0)


def test_groups_in_the_wrong_place_are_an_error(tmp_path, data, more, stream, capsys):
    groups, single = str(tmp_path / "groups"), str(tmp_path / "single")
    assert main(["select", data, "--group-size", "5", "-o", groups, "-q"]) == 0
    assert main(["select", *SAOLA_, data, "-o", single, "-q"]) == 0
    capsys.readouterr()
    assert main(["update", groups, more]) == 1
    assert "Say how these features fall into groups" in capsys.readouterr().err
    assert main(["update", single, more, "--group-size", "5"]) == 1
    assert "The run is one of SAOLA. Leave the groups out." in capsys.readouterr().err
    assert main(["select", *SAOLA_, data, "-o", groups, "-q"]) == 1
    assert "is one of 'GroupSAOLA', not of SAOLA" in capsys.readouterr().err
    halfway = GroupSAOLA(measure="su").start(stream.y)
    labels = np.arange(150) % 7
    saving = Checkpoint(tmp_path / "half", data={"path": data, "target": None})
    with pytest.raises(ZeroDivisionError):
        halfway.consume(
            stream.X[:, :150],
            groups=labels,
            checkpoint=saving,
            progress=lambda at: 1 / 0,
        )
    assert main(["resume", str(tmp_path / "half"), "-q"]) == 1
    assert "does not say how to find its groups" in capsys.readouterr().err


def test_a_run_of_rows_is_for_python(tmp_path, capsys, stream):
    OFS(5).fit(stream.X, stream.y).save(tmp_path / "rows")
    run = str(tmp_path / "rows")
    assert main(["info", run]) == 0
    out = capsys.readouterr().out
    assert "a run of OFS (done)" in out
    assert "5 kept of 200 features, 80 samples seen" in out
    assert main(["update", run, run]) == 1
    assert "OFS, which learns from rows" in capsys.readouterr().err


@pytest.mark.skipif(os.name != "posix", reason="needs SIGINT")
def test_ctrl_c_saves_and_says_how_to_continue(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (100, 300_000), np.int8)
    y = rng.integers(0, 2, 100)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    run = tmp_path / "run"
    process = start_command(
        "select",
        *SAOLA_,
        str(tmp_path / "X.npy"),
        *("--target", str(tmp_path / "y.npy"), "--measure", "su", "-o", str(run)),
    )
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
    done = featstream.resume(run)
    expected = SAOLA(measure="su").fit(X, y)
    assert done.selected_.tolist() == expected.selected_.tolist()
    assert done.scores_.tolist() == expected.scores_.tolist()
