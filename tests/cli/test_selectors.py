"""Every selector at the command line: its options, run folders, resume, explain."""

import inspect
import json
import re

import numpy as np
import pytest

import featstream
from featstream import FCBF, IAMB, OSFS, SAOLA, SymmetricalUncertainty
from featstream.cli import main
from featstream.datasets import make_stream
from featstream.measures import GTest
from featstream.selectors import SELECTORS

FEW = {"n_features": 4}
TEST = {"test": "fisher-z", "max_condition": 2}
COUNTED = ("ofs", "spfs-lar", "mim", "jmi", "cmim", "disr", "cife")
OPTIONS = dict.fromkeys(COUNTED, FEW) | {
    "select-from-stream": {"redundancy_alpha": 0.2, "max_features": 3},
    "saola": {"bound": "max", "max_features": 3},
    "saola-max": {"max_features": 3},
    "saola-conditional": {"ties": "drop", "correction": "bonferroni"},
    "group-saola": {"reading": "library"},
    "osfs": TEST,
    "fast-osfs": {"test": "fisher-z"},
    "alpha-investing": {"wealth": 0.4, "intercept": False},
    "grafting": {"l1": 0.2},
    "ogfs": {"penalty": 0.2},
    "fcbf": {},
    "interactions": {"n_bins": 2, "memory": "1mb"},
    "fgm": {**FEW, "plane_size": 1},
    "gdm": {**FEW, "max_correlation": 0.5},
    "lasso": {"penalty": 0.1},
    "group-lasso": {"group_penalty": 0.1},
    "sparse-group-lasso": {"penalty": 0.1, "group_penalty": 0.02},
    "mrmr": {**FEW, "scheme": "quotient"},
    "iamb": TEST,
    "mmmb": TEST,
}
GROUPED = ("group-saola", "group-lasso", "sparse-group-lasso")


@pytest.fixture(scope="module")
def stream():
    stream = make_stream(n_samples=120, n_features=40, kind="continuous", seed=3)
    sign = np.where(stream.y == stream.y[0], 1, -1)  # of two features that interact
    stream.X[:, 30] = np.abs(stream.X[:, 30]) * np.sign(stream.X[:, 29]) * sign
    return stream


@pytest.fixture
def data(stream, tmp_path):
    np.savez(tmp_path / "d.npz", X=stream.X, y=stream.y, names=stream.names)
    return str(tmp_path / "d.npz")


@pytest.mark.parametrize(
    ("flags", "selector"),
    [
        (
            "--selector fcbf --measure su --set measure__n_bins=2",
            FCBF(measure=SymmetricalUncertainty(n_bins=2)),
        ),
        (
            "--selector iamb --set test=g2 --set test__n_bins=2 "
            "--set test__samples_per_df=20 --set test__arity=occurring",
            IAMB(test=GTest(n_bins=2, samples_per_df=20, arity="occurring")),
        ),
        ("--selector osfs --test g2 --set test__n_bins=3", OSFS(test=GTest(n_bins=3))),
        ("--selector saola --set bound=max", SAOLA(bound="max")),
        ("--selector saola-max", SAOLA(bound="max")),
    ],
)
def test_every_parameter_of_a_selector_and_its_parts_can_be_set(
    flags, selector, stream, data, run_json
):
    found = run_json("select", data, *flags.split())
    selector.fit(stream.X, stream.y)
    expected = {f"feature {j}" for j in selector.selected_}
    assert {f"feature {f['index']}" for f in found["selected"]} == expected
    assert expected


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--selector saola --set bound", "takes NAME=VALUE. Got 'bound'"),
        ("--selector saola --set bond=max", "Did you mean 'bound'?"),
        ("--selector iamb --set test__n_bins=2", "Name the test first"),
        ("--selector fcbf --measure su --set measure__bins=2", "Unknown parameter"),
        ("--selector ofs --jobs 2", "--jobs has no meaning for the selector ofs"),
    ],
)
def test_a_setting_that_means_nothing_is_refused(flags, message, data, capsys):
    assert main(["select", data, *flags.split()]) == 1
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("name", SELECTORS)
def test_a_selector_is_chosen_by_name_with_its_own_options(
    name, stream, data, tmp_path, run, run_json
):
    options, folder = OPTIONS[name], tmp_path / "run"
    flags = [
        word
        for option, value in options.items()
        for word in (f"--{option.replace('_', '-')}", str(value).lower())
    ]
    if name in GROUPED:
        flags += ["--group-size", "4"]
    found = run_json("select", data, "--selector", name, *flags, "-o", folder)
    groups = {"groups": np.arange(40) // 4} if name in GROUPED else {}
    fitted = SELECTORS[name](**options).fit(stream.X, stream.y, **groups)
    selected = {f["index"]: f["relevance"] for f in found["selected"]}
    expected = zip(fitted.selected_.tolist(), fitted.scores_, strict=True)
    assert selected == dict(expected)
    assert found["selector"] == type(fitted).__name__
    assert {f["name"] for f in found["selected"]} <= set(stream.names)
    assert run_json("resume", folder)["selected"] == found["selected"]
    kept = found["selected"][0]["name"]
    assert re.match(f"'{kept}'.* is kept", run("explain", folder, kept))
    assert featstream.resume(folder).get_params().items() >= options.items()


@pytest.mark.parametrize("name", ["iamb", "mmmb"])
def test_a_search_that_stops_at_its_budget_says_so(name, data, run_json, capsys):
    command = ["select", data, "--selector", name, "--test", "fisher-z"]
    assert main([*command, "--json", "-q", "--max-tests", "40"]) == 0
    out, err = capsys.readouterr()
    assert "stopped at --max-tests 40" in err
    assert "40 tests were run" in err
    assert json.loads(out)["is_complete"] is False
    assert run_json(*command)["is_complete"] is True


@pytest.mark.parametrize("name", SELECTORS)
def test_help_shows_the_options_of_a_selector(name, capsys):
    with pytest.raises(SystemExit):
        main(["select", "--selector", name, "--help"])
    out = capsys.readouterr().out
    for option in inspect.signature(SELECTORS[name]).parameters:
        flag = {"n_jobs": "jobs", "engine": "scheduler"}.get(option, option)
        assert option == "trace" or f"--{flag.replace('_', '-')}" in out
