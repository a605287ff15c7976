"""A run folder exists before its data are read: a kill there loses nothing."""

import gzip
import json
import os
import shlex

import pytest

import checks
import featstream
from featstream import SAOLA
from featstream.cli import main
from featstream.datasets import make_stream
from featstream.errors import RunError
from featstream.runs.folder import is_run
from featstream.sources import open_dataset


@pytest.fixture(scope="module")
def stream():
    return make_stream(n_samples=24, n_features=30, n_redundant=5, seed=5)


@pytest.fixture
def data(tmp_path, stream):
    path = tmp_path / "data.svm.gz"
    with gzip.open(path, "wt") as file:
        for label, row in zip(stream.y, stream.X, strict=True):
            entries = [f"{j}:{row[j - 1]}" for j in range(1, 31) if row[j - 1]]
            print(label, *entries, file=file)
    return path


@pytest.fixture
def killed(tmp_path, data, monkeypatch, capsys):
    """The folder of a command that was stopped while it read its data."""
    run = tmp_path / "run"
    options = ["--selector", "saola", "--measure", "su", "-q", "-o", str(run)]
    command = ["select", str(data), *options]

    def stop(path, *rest, **how):
        assert is_run(run)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("featstream.sources.open_dataset", stop)
        assert main(command) == 130
    assert shlex.join(["featstream", "resume", str(run)]) in capsys.readouterr().err
    return run, command


def expected(data):
    whole = open_dataset(data)
    return checks.outcome(SAOLA(measure="su").fit(whole.source, whole.y))


@pytest.mark.parametrize("how", ["resume", "the same command"])
def test_a_killed_run_begins_again(how, killed, data):
    run, command = killed
    assert main(["resume", str(run), "-q"] if how == "resume" else command) == 0
    assert checks.outcome(featstream.resume(run)) == expected(data)


def test_it_is_said_what_happened_and_how_to_begin_again(killed, capsys):
    run, command = killed
    assert main(["info", str(run)]) == 0
    out = capsys.readouterr().out
    assert "stopped while its data were being read" in out
    assert f"featstream resume {run}" in out
    assert main(["info", str(run), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["generation"] == 0
    with pytest.raises(RunError, match="stopped while its data were being read") as no:
        featstream.resume(run)
    assert shlex.join(["featstream", *command]) in str(no.value)


def test_data_that_cannot_be_read_leave_no_folder(tmp_path, capsys):
    path = tmp_path / "bad.csv"
    path.write_text("a,y\n1,0\n2")
    options = ["--target", "y", "-q", "-o", str(tmp_path / "run")]
    assert main(["select", str(path), *options]) == 1
    assert "bad.csv" in capsys.readouterr().err
    assert os.listdir(tmp_path) == ["bad.csv"]


def test_a_path_given_to_consume_begins_a_run(tmp_path, data, stream, monkeypatch):
    run = tmp_path / "run"

    def stop(path):
        assert is_run(run)
        raise KeyboardInterrupt

    selector = SAOLA(measure="su").start(stream.y)
    with monkeypatch.context() as patch:
        patch.setattr("featstream.sources.as_source", stop)
        with pytest.raises(KeyboardInterrupt):
            selector.consume(data, checkpoint=run)
    with pytest.raises(RunError, match=r"Begin it again: consume\(\)"):
        featstream.resume(run)
    selector.consume(data, checkpoint=run)
    assert checks.outcome(featstream.resume(run)) == expected(data)


def test_a_folder_of_other_things_is_refused_before_data_are_read(tmp_path, data):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.tex").write_text("precious")
    selector = SAOLA(measure="su").start([0, 1])
    with pytest.raises(RunError, match=r"thesis\.tex"):
        selector.consume(data, checkpoint=tmp_path / "run")
