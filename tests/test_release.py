"""What a release is made of says the same everywhere."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import featstream

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
COLLECT = ROOT / "changelog.d" / "collect.py"


def read(path):
    return (ROOT / path).read_text("utf-8")


def test_every_file_names_the_same_version():
    cited = re.search(r"(?m)^version: (.*)$", read("CITATION.cff"))[1]
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
    command = re.search(r"(?m)^PYTEST := \$\(BIN\)/(.*)$", read("Makefile"))[1]
    assert f"- run: {command}\n" in text


def test_the_changelog_has_every_fragment():
    run = [sys.executable, COLLECT, "1.2.3"]
    done = subprocess.run(run, capture_output=True, check=True, encoding="utf-8")
    assert done.stdout.startswith("# Changelog\n\n## 1.2.3\n\n### Added\n\n- ")
    lines = done.stdout.splitlines()
    for fragment in sorted((ROOT / "changelog.d").glob("*.md")):
        first = fragment.read_text("utf-8").strip().splitlines()[0]
        assert f"- {first}" in lines
