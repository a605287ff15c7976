"""The commands that work on runs, and the store."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import featstream
from featstream import SAOLA
from featstream.cli import main
from featstream.datasets import make_stream


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
    assert main(["select", data, "--measure", "su", "-o", run, "-q"]) == 0
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
    assert f"featstream select {data}" in out
    assert main(["info", run, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["n_seen"] == 200
    assert main(["resume", run, "-q"]) == 0
    assert "of 200 features selected" in capsys.readouterr().out
    table = (tmp_path / "run" / "selected.csv").read_text().splitlines()
    assert len(table) == 1 + len(indices)


def test_a_csv_is_still_just_a_file(tmp_path, data, capsys):
    assert main(["select", data, "-o", str(tmp_path / "found.csv"), "-q"]) == 0
    assert (tmp_path / "found.csv").read_text().startswith("feature,index,relevance")


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
    assert "measure=Symm" in capsys.readouterr().err


def test_convert_makes_a_store(tmp_path, data, stream, capsys):
    (tmp_path / "small.svm").write_text("1 1:1 3:1\n-1 2:1\n")
    store = str(tmp_path / "small.cols")
    options = ["--memory", "100MB", "--json", "-q"]
    assert main(["convert", str(tmp_path / "small.svm"), store, *options]) == 0
    assert json.loads(capsys.readouterr().out)["n_features"] == 3
    assert main(["convert", data, str(tmp_path / "data.cols")]) == 0
    assert "150 features" in capsys.readouterr().out
    assert main(["select", str(tmp_path / "data.cols"), "--json", "-q"]) == 0
    found = json.loads(capsys.readouterr().out)
    expected = SAOLA().fit(stream.X[:, :150], stream.y)
    assert [f["index"] for f in found["selected"]] == expected.selected_.tolist()
    with pytest.raises(SystemExit):
        main(["convert", "a.svm", "b.cols", "--memory", "lots"])


def featstream_process(*arguments):
    return subprocess.Popen(
        [sys.executable, "-m", "featstream", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


@pytest.mark.skipif(os.name != "posix", reason="needs SIGINT")
def test_ctrl_c_saves_and_says_how_to_go_on(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (100, 300_000), np.int8)
    y = rng.integers(0, 2, 100)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    run = tmp_path / "run"
    process = featstream_process(
        "select",
        str(tmp_path / "X.npy"),
        *("--target", str(tmp_path / "y.npy"), "--measure", "su", "-o", str(run)),
    )
    deadline = time.monotonic() + 120
    while not (run / "run.json").exists():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130, errors
    assert f"to go on: featstream resume {run}" in errors
    stopped = featstream.resume(run)
    assert stopped.n_seen_ < X.shape[1]
    assert not (run / "lock").exists()
    assert main(["resume", str(run), "-q", "--json"]) == 0
    done = featstream.resume(run)
    expected = SAOLA(measure="su").fit(X, y)
    assert done.selected_.tolist() == expected.selected_.tolist()
    assert done.scores_.tolist() == expected.scores_.tolist()


def test_help_is_quick():
    """Heavy imports would take a second; the limit is generous for a busy machine."""
    heavy = ["numpy", "numba", "sklearn", "scipy", "pandas", "pyarrow"]
    code = (
        "import sys; from featstream.cli import _parser; _parser().format_help(); "
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=env
    )
    assert out.stdout.strip() == "[]", out.stderr
