"""The command line as a user meets it."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import numpy as np
import pytest

from featstream.cli import main
from featstream.datasets import make_stream

pytestmark = pytest.mark.jit_only


@pytest.fixture
def data(tmp_path):
    stream = make_stream(n_samples=200, n_features=60, kind="continuous", seed=1)
    path = tmp_path / "data.npz"
    np.savez(path, X=stream.X, y=stream.y)
    return path


def test_select_prints_a_summary_and_the_features(data, capsys):
    assert main(["select", str(data), "--measure", "fisher-z", "--alpha", "0.001"]) == 0
    out = capsys.readouterr().out
    assert "of 60 features selected (SAOLA, fisher-z, 200 samples" in out
    assert "dropped:" in out


def test_json_holds_what_python_gives(data, capsys):
    from featstream import SAOLA

    assert main(["select", str(data), "--json", "-q"]) == 0
    found = json.loads(capsys.readouterr().out)
    with np.load(data) as arrays:
        fitted = SAOLA().fit(arrays["X"], arrays["y"])
    assert [f["index"] for f in found["selected"]] == fitted.selected_.tolist()
    assert [f["relevance"] for f in found["selected"]] == fitted.scores_.tolist()
    assert found["measure"] == "fisher-z"
    assert found["n_features"] == 60


def test_output_is_a_csv_of_the_selection(data, tmp_path, capsys):
    out = tmp_path / "selected.csv"
    assert main(["select", str(data), "-q", "-o", str(out)]) == 0
    header, *rows = out.read_text().splitlines()
    assert header == "feature,index,relevance"
    scores = [float(row.split(",")[2]) for row in rows]
    assert scores == sorted(scores, reverse=True)


def test_every_format_gives_the_same_selection(tmp_path, capsys):
    pytest.importorskip("pyarrow")
    from pyarrow import csv, parquet
    from pyarrow import table as make_table
    from sklearn.datasets import dump_svmlight_file

    stream = make_stream(n_samples=100, n_features=30, seed=2)
    X, y = stream.X, stream.y
    np.savez(tmp_path / "d.npz", X=X, y=y)
    np.save(tmp_path / "d.npy", X)
    np.save(tmp_path / "y.npy", y)
    dump_svmlight_file(X.astype(float), y, str(tmp_path / "d.svm"), zero_based=False)
    columns = {f"x{j}": X[:, j] for j in range(30)} | {"class": y}
    csv.write_csv(make_table(columns), tmp_path / "d.csv")
    parquet.write_table(make_table(columns), tmp_path / "d.parquet")
    found = {}
    for name in ("d.npz", "d.npy", "d.svm", "d.csv", "d.parquet"):
        target = ["--target", str(tmp_path / "y.npy")] if name == "d.npy" else []
        flags = ["--measure", "su", "--delta", "0.01", "--json", "-q"]
        assert main(["select", str(tmp_path / name), *flags, *target]) == 0
        selected = json.loads(capsys.readouterr().out)["selected"]
        found[name] = [(f["index"], f["relevance"]) for f in selected]
    assert len(set(map(tuple, found.values()))) == 1
    assert found["d.npz"]


@pytest.mark.parametrize("flag", ["--groups", "--group-size", "--group-by"])
def test_groups_are_read_from_a_file_by_size_or_by_name(data, flag, tmp_path, capsys):
    from featstream import GroupSAOLA

    labels = {
        "--groups": [j % 7 for j in range(60)],
        "--group-size": [j // 5 for j in range(60)],
        "--group-by": [f"x{j}"[:2] for j in range(60)],
    }[flag]
    listed = tmp_path / "groups.txt"
    listed.write_text("".join(f"{label}\n" for label in labels))
    value = {"--groups": str(listed), "--group-size": "5", "--group-by": "x."}[flag]
    assert main(["select", str(data), flag, value, "--json", "-q"]) == 0
    found = json.loads(capsys.readouterr().out)
    with np.load(data) as arrays:
        fitted = GroupSAOLA().fit(arrays["X"], arrays["y"], groups=labels)
    assert [f["index"] for f in found["selected"]] == fitted.result_.indices.tolist()
    assert found["n_groups"] == len(set(labels))


def test_info_describes_the_file(data, capsys):
    assert main(["info", str(data)]) == 0
    out = capsys.readouterr().out
    assert "200 samples × 60 features, dense float32" in out
    assert "measure: FisherZ, because feature 'x0'" in out
    assert main(["info", str(data), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["n_features"] == 60


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--measure", "fisherz"], "Did you mean 'fisher-z'?"),
        (["--measure", "su", "--alpha", "0.1"], "--alpha has no meaning for the"),
        (["--measure", "fisher-z", "--delta", "0.1"], "--delta has no meaning for"),
        (["--alpha", "0.1"], "--alpha and --delta belong to a measure."),
        (["--measure", "fisher-z", "--alpha", "5"], "For a 5% level write alpha=0.05."),
        (["--target", "z"], "It holds: X, y."),
        (["--max-features", "0"], "must be an integer of at least 1"),
        (["--group-size", "5", "--max-features", "2"], "has no meaning for groups"),
    ],
)
def test_a_wrong_flag_is_an_error_with_a_remedy(data, flags, sentence, capsys):
    assert main(["select", str(data), *flags]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("featstream: error: ")
    assert sentence in captured.err


def test_a_missing_file_is_an_error(capsys):
    assert main(["select", "nowhere.npz"]) == 1
    assert "There is no file 'nowhere.npz'" in capsys.readouterr().err


def test_usage_errors_exit_with_two(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["select"])
    assert caught.value.code == 2
    assert "the following arguments are required: FILE" in capsys.readouterr().err


def test_an_interrupt_exits_with_130(data, monkeypatch, capsys):
    from featstream.selectors import SAOLA

    def interrupt(self, *args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(SAOLA, "consume", interrupt)
    assert main(["select", str(data)]) == 130
    assert "interrupted" in capsys.readouterr().err


def test_help_imports_nothing_heavy_and_is_quick():
    code = (
        "import sys\n"
        "from featstream.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'numba', 'sklearn', 'scipy', 'rich'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    began = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "select features of a data file" in done.stdout
    assert time.perf_counter() - began < 5  # a wide margin: nothing heavy is imported


def test_the_demo_finds_the_known_answer(capsys):
    assert main(["demo", "--features", "3000"]) == 0
    out = capsys.readouterr().out
    assert "5 were found" in out
    assert "is redundant: its relevance" in out
