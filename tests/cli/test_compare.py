"""``featstream compare``, as a user would call it."""

import csv
import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

import featstream
from featstream import SAOLA, GroupSAOLA
from featstream.cli import main
from featstream.datasets import make_stream
from featstream.evaluation import RandomSplits, TaskShape

STREAMS = [make_stream(n_samples=90, n_features=40, seed=seed) for seed in (1, 2)]


@pytest.fixture
def files(tmp_path):
    paths = []
    for i, stream in enumerate(STREAMS):
        paths.append(str(tmp_path / f"stream{i}.npz"))
        np.savez(paths[-1], X=stream.X, y=stream.y)
    return paths


KNN = ["--classifiers", "knn"]
QUICK = ["--selectors", "saola,alpha-investing", *KNN, "-q"]


def test_parameters_of_the_selectors_can_be_set(files, run_json, capsys):
    command = ["compare", files[0], *KNN, "--runs", "1"]
    command += ["--selectors", "saola,saola-max"]

    def scores(*settings):
        rows = run_json(*command, *settings)["results"]
        return [(row["n_features"], row["auc"]) for row in rows]

    plain, equal = scores(), scores("--set", "saola.bound=max")
    assert plain[0] != plain[1]
    assert equal == [plain[1], plain[1]]
    for wrong in ("bound=max", "osfs.alpha=0.1"):
        assert main([*command, "--set", wrong]) == 1
        assert "SELECTOR.NAME=VALUE" in capsys.readouterr().err


def test_a_comparison_prints_and_writes_everything(tmp_path, files, run, run_json):
    out = tmp_path / "out"
    command = ["compare", *files, *QUICK, "-o", out, "--runs", "3"]
    text = run(*command)
    for expected in (
        "Accuracy, knn (mean ± standard deviation of the splits)",
        "Accuracy, knn (best of the splits, not an estimate of what to expect)",
        "Number of selected features",
        "Seconds of selection",
        "Friedman: chi2 = ",
        "Nemenyi: critical difference",
        "saola wins/ties/loses against: alpha-investing",
        "In accuracy of knn on 2 data sets the average ranks are",
        "results.csv",
    ):
        assert expected in text
    with open(out / "results.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * 2 * 3
    assert {row["dataset"] for row in rows} == {"stream0", "stream1"}
    assert all(0 <= float(row["accuracy"]) <= 1 for row in rows)
    tables = (out / "tables.md").read_text()
    assert "| stream0 | 90 | 40 | 2 | y | `RandomSplits(n_runs=3" in tables
    assert "Balanced accuracy, knn" in tables
    assert f"featstream {featstream.__version__}" in tables
    for name in ("accuracy-knn.png", "critical-difference-knn.png"):
        assert (out / name).read_bytes().startswith(b"\x89PNG")

    before = (out / "results.csv").read_bytes()
    found = run_json(*command)
    assert len(found["results"]) == len(rows)
    ranks = found["statistics"]["knn"]["average_ranks"]
    assert ranks.keys() == {"saola", "alpha-investing"}
    assert found["settings"]["seed"] == 0
    assert found["datasets"]["stream0"]["n_features"] == 40
    assert "versions" in found["provenance"]
    assert (out / "results.csv").read_bytes() == before  # seconds and all


def test_the_target_that_was_found_by_its_name_is_named(tmp_path, run):
    rows = [f"{i % 2},{i * i % 7},{'ab'[i % 2]}" for i in range(30)]
    path = tmp_path / "patients.csv"
    path.write_text("\n".join(["x,z,class", *rows]) + "\n")
    out = run("compare", path, "--selectors", "saola", *KNN, "-q", "--runs", "1")
    assert "patients: target 'class', 2 classes" in out


def test_a_given_test_part_is_used(tmp_path, run_json):
    stream = STREAMS[0]
    parts = {"X_train": stream.X[:60], "y_train": stream.y[:60]}
    test = {"X_test": stream.X[60:], "y_test": stream.y[60:]}
    np.savez(tmp_path / "both.npz", **parts, **test)
    np.savez(tmp_path / "train.npz", **parts)
    np.savez(tmp_path / "test.npz", X=stream.X[60:], y=stream.y[60:])
    kept = SAOLA().fit(stream.X[:60], stream.y[:60]).selected_
    for given in (["both.npz"], ["train.npz", "--test", tmp_path / "test.npz"]):
        found = run_json("compare", tmp_path / given[0], *given[1:], *QUICK)
        assert found["results"][0]["n_features"] == kept.size
        (about,) = found["datasets"].values()
        assert (about["n_samples"], about["protocol"]) == (90, "GivenSplit()")


def test_svmlight_parts_may_end_at_different_features(tmp_path, run_json):
    rng = np.random.default_rng(0)
    for name, width in (("train", 6), ("test", 8)):
        lines = []
        for i in range(30):
            others = [f"{j}:{rng.integers(1, 3)}" for j in range(2, width)]
            lines.append(f"{i % 2} 1:{i % 2} {' '.join(others)}\n")
        (tmp_path / f"{name}.svm").write_text("".join(lines))
    test = ["--test", tmp_path / "test.svm"]
    found = run_json("compare", tmp_path / "train.svm", *QUICK, *test)
    assert found["results"][0]["accuracy"] == 1.0
    assert found["datasets"]["train"]["n_features"] == 7


@pytest.mark.parametrize(
    ("flags", "protocol"),
    [
        ("--protocol cv --folds 3", "CrossValidation(n_folds=3, n_repeats=1)"),
        ("--folds 2 --runs 2", "CrossValidation(n_folds=2, n_repeats=2)"),
        ("--runs 2 --test-size 30", "RandomSplits(n_runs=2, test_size=30,"),
        ("--protocol orders --runs 2", "FeatureOrders(n=2, rows=None)"),
        ("--n-groups 5 --runs 2", "RandomGroups(n_groups=5, n_runs=2,"),
    ],
)
def test_protocols_by_flags(files, flags, protocol, run_json):
    found = run_json("compare", files[0], *QUICK, *flags.split(), "--scale")
    assert found["datasets"]["stream0"]["protocol"].startswith(protocol)
    assert "StandardScaler" in json.dumps(found["settings"]["classifiers"])


def test_subsamples_show_how_stable_selections_are(tmp_path, files, run):
    command = ["compare", *files, *QUICK, "--protocol", "subsamples", "--runs"]
    text = run(*command, "3", "-o", tmp_path / "out")
    assert "Stability of the selections (Nogueira et al. 2018)" in text
    assert re.search(r"stream1: saola \d\.\d\d \[.*\], alpha-investing \d\.", text)
    assert "## Stability" in (tmp_path / "out" / "tables.md").read_text()
    assert "Stability" not in run(*command, "1")  # one selection has none


def test_groups_by_flags(tmp_path, files, run_json):
    X, y = STREAMS[0].X, STREAMS[0].y
    groups = tmp_path / "groups.csv"
    groups.write_text("".join(f"x{j},{'ab'[j % 2]}\n" for j in range(X.shape[1])))
    command = ["compare", files[0], "--selectors", "group-saola,saola", *KNN]
    for flag, value, most in (
        ("--groups", groups, 2),
        ("--group-size", 10, 4),
        ("--group-by", "x[0-3]?", 5),
    ):
        rows = run_json(*command, "--runs", "2", flag, value)["results"]
        assert all(1 <= row["n_groups"] <= most for row in rows)
    (split,) = (r for r in rows if r["selector"] == "group-saola" and r["split"] == 0)
    labels = np.array([re.match("x[0-3]?", f"x{j}")[0] for j in range(X.shape[1])])
    train = RandomSplits(n_runs=2).split(0, TaskShape(y, len(y), X.shape[1]), 0).train
    kept = GroupSAOLA().fit(X[train], y[train], groups=labels).selected_
    assert split["n_features"] == kept.size


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        ("--classifiers svn", "Unknown classifier 'svn'. Did you mean 'svm'?"),
        ("--protocol given", "Data set 'stream0': A given split needs a test part"),
        ("--protocol cv --test-size 9", "--test-size has no meaning with"),
        ("--memory-limit lots", "--memory-limit must be a size such as"),
        ("--layer raw", "--layer has no meaning for .npz files"),
        ("--runs 0", "--runs must be an integer of at least 1"),
        ("b.npz --test a.npz", "--test belongs to a single data file. Got 2"),
        ("b.npz --groups g", "--groups belongs to a single data file. Got 2"),
        ("--protocol orders --folds 3", "--folds has no meaning with"),
        ("--classifiers knn,svm,knn", "--classifiers has 'knn' 2 times"),
        ("a.npz a.npz", "FILE has 'a.npz' 2 times"),
        ("--n-groups 3 --group-size 4", "--protocol groups draws groups at"),
    ],
)
def test_mistakes_are_said_in_a_line(files, flags, text, fail):
    err = fail("compare", files[0], *flags.split())
    assert err.startswith("featstream: error: ")
    assert text in err
    assert len(err.splitlines()) == 1


def test_files_of_one_name_are_named_by_their_paths(tmp_path, files, run_json):
    (tmp_path / "b").mkdir()
    other = str(tmp_path / "b" / "stream0.npz")
    Path(files[1]).rename(other)
    found = run_json("compare", files[0], other, *QUICK, "--runs", "1")
    assert set(found["datasets"]) == {files[0], other}


def test_other_settings_in_one_folder_are_said(tmp_path, files, run, capsys):
    out = tmp_path / "out"
    command = ["compare", files[0], "--selectors", "saola", "-o", str(out), "--runs"]
    run(*command, "2", *KNN)
    assert main([*command, "3", *KNN, "--seed", "0"]) == 0
    err = capsys.readouterr().err
    assert "holds a comparison with other settings (protocols)" in err
    assert "3/3 cells  2 kept from before" in err
    run(*command, "2", "--classifiers", "j48", "-q")
    assert [path.name for path in out.glob("*.png")] == ["accuracy-j48.png"]


def test_failed_cells_are_shown_with_their_reasons(tmp_path, run, fail):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 5)), np.arange(60) % 2
    X[3, 2] = np.nan  # in the training rows of the first split only
    np.savez(tmp_path / "holes.npz", X=X, y=y)
    command = ["compare", tmp_path / "holes.npz", "--selectors", "saola,ofs", *KNN]
    out = run(*command, "--runs", "2", "-q")
    few = "1 of 2 splits failed: "
    assert f"- saola on holes: {few}DataError: Feature 'x2' has 1 missing" in out
    assert "- ofs on holes: ValueError: Input X contains NaN." in out
    assert "There are fewer than two selectors to compare" in out
    X[:, 2] = np.nan
    np.savez(tmp_path / "holes.npz", X=X, y=y)
    assert "nothing could be selected" in fail(*command, "--runs", "2", "-q")


def test_ctrl_c_says_how_to_continue(tmp_path, files, run, monkeypatch):
    def interrupt(*_, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(featstream.Experiment, "run", interrupt)
    command = ["compare", *files, "-o", str(tmp_path / "my out"), *QUICK]
    shown = shlex.join(["featstream", *command])
    text = f"what is done is kept. To continue: {shown}\n"
    assert run(*command, code=130) == f"featstream: interrupted; {text}"
    assert "nothing is kept without -o" in run("compare", *files, code=130)
