"""The command line as a user meets it."""

import io
import json
import os
import sys

import numpy as np
import pytest

from crash_runs import run_python
from featstream import FisherZ, SelectFromStream
from featstream.cli import main
from featstream.datasets import make_stream

pytestmark = pytest.mark.jit_only

SAOLA = ["--selector", "saola"]


@pytest.fixture
def data(tmp_path):
    stream = make_stream(n_samples=200, n_features=60, kind="continuous", seed=1)
    path = tmp_path / "data.npz"
    np.savez(path, X=stream.X, y=stream.y)
    return path


def indices(found):
    return [feature["index"] for feature in found["selected"]]


def test_select_prints_what_python_gives(data, run, run_json):
    """`test_a_selector_is_chosen_by_name_with_its_own_options` compares scores."""
    out = run("select", *SAOLA, data, "--measure", "fisher-z", "--alpha", "0.001")
    assert "of 60 features selected (SAOLA, fisher-z, 200 samples" in out
    assert "dropped:" in out
    with np.load(data) as arrays:
        fitted = SelectFromStream().fit(arrays["X"], arrays["y"])
    assert indices(run_json("select", data)) == fitted.selected_.tolist()


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".json"])
def test_output_has_the_format_of_its_suffix(data, tmp_path, suffix, run_json):
    out = tmp_path / f"selected{suffix}"
    selected = run_json("select", data, "-o", out)["selected"]
    text = out.read_text()
    if suffix == ".json":
        assert json.loads(text)["selected"] == selected
    else:
        best_first = sorted(selected, key=lambda feature: -feature["relevance"])
        rows = [["feature", "index", "relevance"], *(f.values() for f in best_first)]
        separator = "," if suffix == ".csv" else "\t"
        assert text == "".join(separator.join(map(str, row)) + "\n" for row in rows)
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
def test_the_input_is_never_overwritten(table, spelling, flags, fail):
    before, other = table.read_bytes(), table.with_name("other.csv")
    if spelling == "symlink":
        other.symlink_to(table)
    elif spelling == "hard link":
        other.hardlink_to(table)
    dotted = f"{table.parent}/../{table.parent.name}/k.csv"
    out = {"same": table, "dotted": dotted}.get(spelling, other)
    assert "would overwrite the input" in fail("select", table, "-o", out, *flags)
    assert table.read_bytes() == before


@pytest.mark.parametrize("target", ["y.csv", "y.csv:y"])
@pytest.mark.parametrize("out", ["y.csv", "g.csv"])
def test_a_target_file_and_a_file_of_groups_are_inputs_too(target, out, tmp_path, fail):
    np.save(tmp_path / "X.npy", np.eye(4))
    (tmp_path / "y.csv").write_text("y\n0\n1\n0\n1\n")
    (tmp_path / "g.csv").write_text("x0,a\nx1,a\nx2,b\nx3,b\n")
    flags = ["--target", tmp_path / target, "--groups", tmp_path / "g.csv"]
    flags += ["-o", tmp_path / out, "--overwrite"]
    assert "would overwrite the input" in fail("select", tmp_path / "X.npy", *flags)


@pytest.mark.parametrize("suffix", [".csv", ".json"])
def test_only_an_earlier_result_is_overwritten_and_only_if_asked(
    table, suffix, run, fail
):
    out = table.with_name(f"out{suffix}")
    command = ["select", table, "-q", "-o", out]
    run(*command)
    first = out.read_bytes()
    assert "exists. Choose another name" in fail(*command)
    assert out.read_bytes() == first
    run(*command, "--overwrite")
    out.write_bytes(b"")
    run(*command, "--overwrite")
    assert out.read_bytes()[:50] == first[:50]
    for other in ("a,b\n1,2\n", "[[1]]", '{"selected": []}'):
        out.write_text(other)
        said = fail(*command, "--overwrite")
        assert "is not a selection that featstream has written" in said
        assert out.read_text() == other


def test_an_output_that_cannot_be_is_refused_first(table, run, fail):
    folder = table.parent
    for out, sentence in {
        "out.xlsx": "not written as .xlsx",
        "out.parquet": "not written as .parquet",
        "nowhere/out.csv": "There is no folder",
    }.items():
        assert sentence in fail("select", table, "-o", folder / out)
        assert list(folder.iterdir()) == [table]
    for name in ("alpha-0.01", "run.2026", "v1.run/"):  # a dot is no suffix there
        run("select", table, "-q", "-o", f"{folder}/{name}")
        assert (folder / name / "run.json").exists()


def test_a_name_gets_out_in_any_encoding(table, monkeypatch):
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, "cp1252"))
    assert main(["info", str(table)]) == 0
    sys.stdout.flush()
    assert "é日本".encode("cp1252", "backslashreplace") in written.getvalue()


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
    assert "'id' has about one category per row" in warning
    assert "--measure su --identifiers keep" in warning
    flags = ["--measure", "su", "--identifiers", "keep"]
    assert main(["select", str(path), "-q", *flags]) == 0
    assert "'id'" not in capsys.readouterr().err


def test_flags_say_how_a_table_is_read(tmp_path, fail, capsys):
    path = tmp_path / "k.csv"
    rows = [f"{i % 3};{'?' if i == 4 else i % 2};{'ab'[i % 2]}" for i in range(12)]
    path.write_text("\n".join(["u;v;class", *rows, "1;1;"]))
    command = ["select", str(path), "--measure", "su"]
    assert "Pass --drop-unlabelled to leave them out" in fail(*command)
    command += ["--drop-unlabelled", "--separator", ";"]
    assert "--na-values" in fail(*command)
    command += ["--na-values", "?,-"]
    assert "--missing category" in fail(*command)
    assert main([*command, "--missing", "category", "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["n_samples"] == 12
    assert json.loads(out)["target"]["name"] == "class"
    assert "warning" not in err


def test_a_target_is_printed_and_not_guessed(table, tmp_path, run, run_json, fail):
    classes = run_json("select", table)["target"]["classes"]
    assert classes == {"sick": 15, "well": 15}
    path = tmp_path / "other.csv"
    path.write_text("g1,g2,diagnosis,age\n1,2,x,30\n3,4,y,41\n5,1,x,52\n1,1,y,33\n")
    assert "target: none is called y, target, class or" in run("info", path)
    err = fail("select", path)
    assert "Name it with --target" in err
    assert "'g1', 'g2', 'diagnosis', 'age'" in err
    out = run("select", path, "--target", "diagnosis", "--measure", "su")
    assert "target: 'diagnosis', 2 classes: x (2), y (2)" in out


def test_names_that_occur_twice_are_numbered_and_escaped(tmp_path, run, fail):
    """No control character reaches the terminal."""
    names = np.array(["a\x1b[2J", "a\x1b[2J", "b"])
    np.savez(tmp_path / "k.npz", X=np.eye(3), y=[0, 1, 0], names=names)
    flags = [tmp_path / "k.npz", "--duplicates", "number"]
    assert "--duplicates number" in fail("select", flags[0])
    for command in (["select", *SAOLA, *flags, "--measure", "su"], ["info", *flags]):
        out = run(*command)
        assert "\x1b" not in out
        assert out.count(r"a\x1b[2J#2") == 1


def test_a_numeric_target_is_a_flag(tmp_path, run, run_json, fail):
    X = np.random.default_rng(0).normal(size=(80, 6))
    y = np.round(20 * X[:, 2] + 50)
    np.savez(tmp_path / "ages.npz", X=X, y=y)
    command = ["select", tmp_path / "ages.npz", "--target-type", "numeric"]
    found = run_json(*command)
    fitted = SelectFromStream(measure=FisherZ(target="numeric")).fit(X, y)
    assert indices(found) == fitted.selected_.tolist()
    assert found["target"]["high"] == y.max()
    assert f"numeric, from {y.min():g} to {y.max():g}" in run(*command)
    said = fail(*command, "--measure", "su")
    assert "--target-type numeric has no meaning" in said


def test_info_describes_the_file(data, tmp_path, run, run_json):
    out = run("info", data)
    assert "200 samples × 60 features, dense float32" in out
    assert "measure: fisher-z, because feature 'x0'" in out
    assert json.loads(run("info", data, "--json"))["n_features"] == 60
    np.savez(tmp_path / "none.npz", X=np.empty((4, 0)), y=[0, 1, 0, 1])
    out = run("info", tmp_path / "none.npz")
    assert "4 samples × 0 features" in out
    assert "2 classes: 0 (2), 1 (2)" in out


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ("--measure fisherz", "Did you mean 'fisher-z'?"),
        ("--delta 0.1", "no meaning for the selector select-from"),
        ("--selector saola --measure fisher-z --delta 0.1", "--delta has no meaning"),
        ("--selector saola --alpha 0.1", "with --measure fisher-z or mi or su."),
        ("--measure fisher-z --alpha 5", "For a 5% level write --alpha 0.05."),
        ("--target z", "It holds: 'X', 'y'."),
        ("--max-features 0", "--max-features must be an integer of at"),
        ("--selector soala", "Did you mean 'saola'?"),
        ("--selector osfs --measure su", "osfs. Use --test."),
        ("--selector osfs --group-size 5", "such as group-saola"),
        ("--selector ofs --alpha 0.1", "--alpha has no meaning for the"),
        ("--selector ofs --n-features 0", "--n-features must be an"),
        ("--selector ofs --live", "--live has no meaning for ofs"),
        ("--overwrite", "--overwrite goes with -o"),
    ],
)
def test_a_wrong_flag_is_an_error_with_a_remedy(data, flags, sentence, capsys):
    assert main(["select", str(data), *flags.split()]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("featstream: error: ")
    assert sentence in captured.err


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ("", "the following arguments are required: FILE"),
        ("d.npz --group-size x", "invalid int value"),
        ("d.npz --group-size 5 --wealth 2", "--wealth"),
        ("d.npz --selector osfs --bound max", "--bound max"),
        ("d.npz --selector saola --bound mean", "choose from"),
        ("d.npz --memory 1GB", "--memory"),
        ("d.npz --group-size 5 --interactions", "--interactions"),
    ],
)
def test_usage_errors_exit_with_two(flags, sentence, capsys):
    with pytest.raises(SystemExit) as caught:
        main(["select", *flags.split()])
    assert caught.value.code == 2
    assert sentence in capsys.readouterr().err


HELP = """
import sys
from featstream.cli import main
try: main(['--help'])
except SystemExit: pass
heavy = {'numpy', 'numba', 'sklearn', 'scipy', 'rich'} & set(sys.modules)
assert not heavy, heavy
"""


def test_help_imports_nothing_heavy_and_is_quick():
    began = os.times().children_user
    assert "select features of a data file" in run_python(HELP).stdout
    assert os.times().children_user - began < 1  # of the processor, on a busy machine
