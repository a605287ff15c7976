"""The command line as a user meets it."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys

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


SAOLA = ["--selector", "saola"]
SAOLA_OF = ["select", *SAOLA]


def test_select_prints_a_summary_and_the_features(data, capsys):
    assert (
        main([*SAOLA_OF, str(data), "--measure", "fisher-z", "--alpha", "0.001"]) == 0
    )
    out = capsys.readouterr().out
    assert "of 60 features selected (SAOLA, fisher-z, 200 samples" in out
    assert "dropped:" in out


def test_json_holds_what_python_gives(data, capsys):
    from featstream import SelectFromStream

    assert main(["select", str(data), "--json", "-q"]) == 0
    found = json.loads(capsys.readouterr().out)
    with np.load(data) as arrays:
        fitted = SelectFromStream().fit(arrays["X"], arrays["y"])
    assert [f["index"] for f in found["selected"]] == fitted.selected_.tolist()
    assert [f["relevance"] for f in found["selected"]] == fitted.scores_.tolist()
    assert found["measure"] == "fisher-z"
    assert found["n_features"] == 60


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".json"])
def test_output_has_the_format_of_its_suffix(data, tmp_path, suffix, capsys):
    out = tmp_path / f"selected{suffix}"
    assert main(["select", str(data), "--json", "-q", "-o", str(out)]) == 0
    selected = json.loads(capsys.readouterr().out)["selected"]
    if suffix == ".json":
        found = json.loads(out.read_text())["selected"]
    else:
        separator = "," if suffix == ".csv" else "\t"
        header, *lines = (line.split(separator) for line in out.read_text().split("\n"))
        assert header == ["feature", "index", "relevance"]
        found = [
            {"name": name, "index": int(index), "relevance": float(score)}
            for name, index, score in lines[:-1]
        ]
        scores = [feature["relevance"] for feature in found]
        assert scores == sorted(scores, reverse=True)
        found.sort(key=lambda feature: feature["index"])
    assert found == selected
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([data.name, out.name])
    (plain := tmp_path / "plain").touch()
    assert out.stat().st_mode == plain.stat().st_mode  # others may read it


@pytest.fixture
def table(tmp_path):
    """A CSV file, which could be taken for an output."""
    path = tmp_path / "k.csv"
    rows = [f"{i % 2},{i % 3},{'sick' if i % 2 else 'well'}" for i in range(30)]
    path.write_text("\n".join(["a,é日本,class", *rows, ""]), encoding="utf-8")
    return path


@pytest.mark.parametrize("spelling", ["same", "dotted", "symlink", "hard link"])
@pytest.mark.parametrize("flags", [[], ["--overwrite"]])
def test_the_input_is_never_overwritten(table, spelling, flags, capsys):
    before, other = table.read_bytes(), table.with_name("other.csv")
    if spelling == "symlink":
        other.symlink_to(table)
    elif spelling == "hard link":
        other.hardlink_to(table)
    dotted = f"{table.parent}/../{table.parent.name}/k.csv"
    out = {"same": str(table), "dotted": dotted}.get(spelling, str(other))
    assert main(["select", str(table), "-q", "-o", out, *flags]) == 1
    assert "would overwrite the input" in capsys.readouterr().err
    assert table.read_bytes() == before


def test_a_target_file_and_a_file_of_groups_are_inputs_too(tmp_path, capsys):
    np.save(tmp_path / "X.npy", np.eye(4))
    (tmp_path / "y.csv").write_text("y\n0\n1\n0\n1\n")
    (tmp_path / "g.csv").write_text("x0,a\nx1,a\nx2,b\nx3,b\n")
    begin = ["select", str(tmp_path / "X.npy"), "--groups", str(tmp_path / "g.csv")]
    for target in ("y.csv", "y.csv:y"):
        for out in ("y.csv", "g.csv"):
            flags = ["--target", str(tmp_path / target), "-o", str(tmp_path / out)]
            assert main([*begin, *flags, "--overwrite"]) == 1
            assert "would overwrite the input" in capsys.readouterr().err


def test_only_an_earlier_result_is_overwritten_and_only_if_asked(table, capsys):
    out = table.with_name("out.csv")
    command = ["select", str(table), "-q", "-o", str(out)]
    assert main(command) == 0
    first = out.read_bytes()
    assert main(command) == 1
    assert "exists. Choose another name" in capsys.readouterr().err
    assert main([*command, "--overwrite", "--max-features", "1"]) == 0
    assert out.read_bytes() != b""
    out.write_text("a,b\n1,2\n")
    assert main([*command, "--overwrite"]) == 1
    assert "is not a selection that featstream has written" in capsys.readouterr().err
    assert out.read_text() == "a,b\n1,2\n"
    assert first.startswith(b"feature,index,relevance")


@pytest.mark.parametrize(
    ("out", "sentence"),
    [
        ("out.xlsx", "not written as .xlsx"),
        ("out.parquet", "not written as .parquet"),
        ("nowhere/out.csv", "There is no folder"),
    ],
)
def test_an_output_that_cannot_be_is_refused_before_the_work(
    table, out, sentence, capsys
):
    before = sorted(table.parent.iterdir())
    assert main(["select", str(table), "-o", str(table.parent / out)]) == 1
    assert sentence in capsys.readouterr().err
    assert sorted(table.parent.iterdir()) == before


def test_a_dot_in_the_name_of_a_run_folder_is_no_suffix(table, capsys):
    for name in ("alpha-0.01", "run.2026", "v1.run/"):
        out = f"{table.parent}/{name}"
        assert main(["select", str(table), "-q", "-o", out]) == 0
        assert (table.with_name(name.strip("/")) / "run.json").exists()


def test_a_name_gets_out_in_any_encoding(table, monkeypatch):
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, "cp1252"))
    assert main(["info", str(table)]) == 0
    sys.stdout.flush()
    assert "é日本".encode("cp1252", "backslashreplace") in written.getvalue()


def test_the_target_and_its_classes_are_printed(table, capsys):
    assert main(["select", str(table), "-q"]) == 0
    assert "2 classes: sick (15), well (15)" in capsys.readouterr().out
    assert main(["select", str(table), "-q", "--json"]) == 0
    target = json.loads(capsys.readouterr().out)["target"]
    assert target["classes"] == {"sick": 15, "well": 15}


def test_the_measure_is_printed_with_the_reason_and_warnings_name_flags(
    tmp_path, capsys
):
    path = tmp_path / "mixed.csv"
    rows = [f"P{i},{i / 7:.3f},{'ab'[i % 2]},{i % 2}" for i in range(40)]
    path.write_text("\n".join(["id,age,city,class", *rows]))
    assert main(["select", str(path), "-q"]) == 0
    out, err = capsys.readouterr()
    assert "measure: su, because feature 'city' is text or categorical" in out
    (warning,) = [line for line in err.splitlines() if "'id'" in line]
    assert warning.startswith("featstream: warning: Feature 'id' has about one")
    assert "--measure su --identifiers keep" in warning
    flags = ["--measure", "su", "--identifiers", "keep"]
    assert main(["select", str(path), "-q", *flags]) == 0
    assert "'id'" not in capsys.readouterr().err


def test_flags_say_how_a_table_is_read(tmp_path, capsys):
    path = tmp_path / "k.csv"
    rows = [f"{i % 3};{'?' if i == 4 else i % 2};{'ab'[i % 2]}" for i in range(12)]
    path.write_text("\n".join(["u;v;class", *rows, "1;1;"]))
    command = ["select", str(path), "--measure", "su"]
    assert main(command) == 1
    assert "Pass --drop-unlabelled to leave them out" in capsys.readouterr().err
    command += ["--drop-unlabelled", "--separator", ";"]
    assert main(command) == 1
    assert "--na-values" in capsys.readouterr().err
    command += ["--na-values", "?,-"]
    assert main(command) == 1
    assert "--missing category" in capsys.readouterr().err
    assert main([*command, "--missing", "category", "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["n_samples"] == 12
    assert json.loads(out)["target"]["name"] == "class"
    assert "warning" not in err


def test_a_target_is_not_guessed(tmp_path, capsys):
    path = tmp_path / "k.csv"
    path.write_text("g1,g2,diagnosis,age\n1,2,x,30\n3,4,y,41\n5,1,x,52\n1,1,y,33\n")
    assert main(["info", str(path)]) == 0
    assert "target: none is called y, target, class or" in capsys.readouterr().out
    assert main(["select", str(path)]) == 1
    err = capsys.readouterr().err
    assert "Name it with --target" in err
    assert "'g1', 'g2', 'diagnosis', 'age'" in err
    flags = ["--target", "diagnosis", "--measure", "su", "-q"]
    assert main(["select", str(path), *flags]) == 0
    assert "target: 'diagnosis', 2 classes: x (2), y (2)" in capsys.readouterr().out


def test_names_that_occur_twice_are_numbered_on_request(tmp_path, capsys):
    names = np.array(["a", "a", "b"])
    np.savez(tmp_path / "k.npz", X=np.eye(3), y=[0, 1, 0], names=names)
    command = [*SAOLA_OF, str(tmp_path / "k.npz"), "--measure", "su", "-q"]
    assert main(command) == 1
    assert "--duplicates number" in capsys.readouterr().err
    assert main([*command, "--duplicates", "number"]) == 0
    assert "a#2" in capsys.readouterr().out


def test_a_control_character_in_a_name_does_not_reach_the_terminal(tmp_path, capsys):
    path = tmp_path / "k.csv"
    rows = [f"{i % 2},{i % 2}" for i in range(20)]
    path.write_text("\n".join(["a\x1b[2J,class", *rows]))
    assert main(["select", str(path), "-q"]) == 0
    assert main(["info", str(path)]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert out.count(r"a\x1b[2J") == 2


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


def test_info_describes_data_without_columns(tmp_path, capsys):
    np.savez(tmp_path / "none.npz", X=np.empty((4, 0)), y=[0, 1, 0, 1])
    assert main(["info", str(tmp_path / "none.npz")]) == 0
    out = capsys.readouterr().out
    assert "4 samples × 0 features" in out
    assert "2 classes: 0 (2), 1 (2)" in out


def test_a_numeric_target_is_a_flag(tmp_path, capsys):
    from featstream import FisherZ, SelectFromStream

    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 6))
    y = np.round(20 * X[:, 2] + 50)
    np.savez(tmp_path / "ages.npz", X=X, y=y)
    command = ["select", str(tmp_path / "ages.npz"), "-q", "--target-type", "numeric"]
    assert main([*command, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    fitted = SelectFromStream(measure=FisherZ(target="numeric")).fit(X, y)
    assert [f["index"] for f in found["selected"]] == fitted.selected_.tolist()
    assert found["target"]["high"] == y.max()
    assert main(command) == 0
    assert f"numeric, from {y.min():g} to {y.max():g}" in capsys.readouterr().out
    assert main([*command, "--measure", "su"]) == 1
    assert "--target-type numeric has no meaning" in capsys.readouterr().err


def test_info_describes_the_file(data, capsys):
    assert main(["info", str(data)]) == 0
    out = capsys.readouterr().out
    assert "200 samples × 60 features, dense float32" in out
    assert "measure: fisher-z, because feature 'x0'" in out
    assert main(["info", str(data), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["n_features"] == 60


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--measure", "fisherz"], "Did you mean 'fisher-z'?"),
        (
            ["--measure", "su", "--delta", "0.1"],
            "no meaning for the selector select-from",
        ),
        ([*SAOLA, "--measure", "fisher-z", "--delta", "0.1"], "--delta has no meaning"),
        ([*SAOLA, "--alpha", "0.1"], "Use it with --measure fisher-z or mi or su."),
        (
            ["--measure", "fisher-z", "--alpha", "5"],
            "For a 5% level write --alpha 0.05.",
        ),
        (["--target", "z"], "It holds: X, y."),
        (["--max-features", "0"], "--max-features must be an integer of at"),
        (["--selector", "soala"], "Did you mean 'saola'?"),
        (["--selector", "osfs", "--measure", "su"], "osfs. Use --test."),
        (["--selector", "osfs", "--group-size", "5"], "such as group-saola"),
        (["--selector", "ofs", "--alpha", "0.1"], "--alpha has no meaning for the"),
        (["--selector", "ofs", "--n-features", "0"], "--n-features must be an"),
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


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ([], "the following arguments are required: FILE"),
        (["d.npz", "--group-size", "5", "--max-features", "2"], "--max-features"),
        (["d.npz", "--selector", "osfs", "--bound", "max"], "--bound max"),
        (["d.npz", *SAOLA, "--bound", "mean"], "choose from"),
        (["d.npz", "--group-size", "5", "--interactions"], "not for group-saola"),
    ],
)
def test_usage_errors_exit_with_two(flags, sentence, capsys):
    with pytest.raises(SystemExit) as caught:
        main(["select", *flags])
    assert caught.value.code == 2
    assert sentence in capsys.readouterr().err


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
    began = os.times().children_user
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "select features of a data file" in done.stdout
    assert os.times().children_user - began < 1  # of the processor, on a busy machine
