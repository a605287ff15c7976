"""What the linters do not check: the package, the tests, and what a release says."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import featstream

ROOT = Path(__file__).parents[1]
FILES = sorted((ROOT / "src" / "featstream").rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def test_no_file_is_a_drawer_for_odds_and_ends():
    texts = {path: path.read_text("utf-8") for path in FILES}
    drawers = {"utils.py", "core.py", "helpers.py", "common.py"}
    assert not drawers & {path.name for path in FILES}
    listing = {path.name for path in FILES if "\n__all__ = " in texts[path]}
    # The last loads some of its names when they are used.
    assert listing <= {"__init__.py", "datasets.py"}


def test_what_is_public_exists():
    for name in featstream.__all__:
        assert getattr(featstream, name).__doc__
    assert set(featstream.__all__) <= set(dir(featstream))
    with pytest.raises(AttributeError, match="no attribute 'SAOLO'"):
        featstream.SAOLO


def test_arrays_are_loaded_without_pickle():
    calls = {}
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call):
                allowed = [k for k in node.keywords if k.arg == "allow_pickle"]
                if allowed or ast.unparse(node.func) in ("np.load", "numpy.load"):
                    place = f"{path}:{node.lineno}"
                    calls[place] = [ast.unparse(k.value) for k in allowed]
    assert calls
    assert {place for place, value in calls.items() if value != ["False"]} == set()


def test_no_assertion_is_its_own_message():
    """``assert a, b == c`` compares nothing."""
    for path in TESTS:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Assert) and node.msg is not None:
                parts = ast.walk(node.msg)
                is_compared = any(isinstance(part, ast.Compare) for part in parts)
                assert not is_compared, f"{path}:{node.lineno}"


def test_every_file_names_the_same_version():
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    cited = re.search(r"(?m)^version: (.*)$", citation)[1]
    assert cited == PROJECT["version"] == featstream.__version__


def test_the_workflow_tests_what_the_package_claims():
    workflow = ROOT / ".github" / "workflows" / "test.yml"
    if not workflow.exists():
        pytest.skip("a source archive has no workflow")
    text = workflow.read_text("utf-8")
    tested = re.findall(r'"(3\.\d+)"', re.search(r"python: \[(.*)\]", text)[1])
    start = "Programming Language :: Python :: 3."
    claimed = [c[-4:] for c in PROJECT["classifiers"] if c.startswith(start)]
    assert tested == claimed
    assert PROJECT["requires-python"] == f">={tested[0]}"
    makefile = (ROOT / "Makefile").read_text("utf-8")
    command = re.search(r"(?m)^PYTEST := \$\(BIN\)/(.*)$", makefile)[1]
    assert f"- run: {command}\n" in text


def test_workflows_run_targets_that_exist():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"(?m)^([a-z-]+):", makefile))
    for workflow in sorted((ROOT / ".github" / "workflows").glob("*.yml")):
        run = re.findall(r"(?m)^ *- run: make (.*)$", workflow.read_text("utf-8"))
        assert set(run) <= targets, workflow


def test_random_examples_are_random_and_kept_in_continuous_integration():
    """Where the variable CI is set, Hypothesis' own default is neither."""
    code = (
        "import conftest, hypothesis\n"
        "chosen = hypothesis.settings.get_profile('random')\n"
        "print(chosen.derandomize, chosen.database.path, sep='\\n')\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={k: v for k, v in os.environ.items() if "XDIST" not in k} | {"CI": "true"},
        capture_output=True,
        check=True,
        encoding="utf-8",
    )
    place = ROOT / ".hypothesis" / "examples"
    assert run.stdout.splitlines() == ["False", str(place)]
