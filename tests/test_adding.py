"""The pages on adding things, run as they stand."""

from __future__ import annotations

import doctest
import importlib
import re
import shlex
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import checks
import strategies
from featstream.cli import main
from featstream.datasets import make_stream
from featstream.selectors import SELECTORS

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "adding-a-selector.md"


@pytest.fixture
def top_k(tmp_path, monkeypatch):
    """The module of the page, importable from the current folder, and its data."""
    (code,) = re.findall(r"^```python\n(.+?)^```", PAGE.read_text("utf-8"), re.M | re.S)
    (tmp_path / "top_k.py").write_text(code)
    stream = make_stream(n_features=60, kind="continuous", seed=0)
    np.savez(tmp_path / "data.npz", X=stream.X, y=stream.y)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    known = dict(SELECTORS._known)
    yield importlib.import_module("top_k")
    SELECTORS._known = known
    sys.modules.pop("top_k")


def test_the_page_on_adding_a_selector_runs(top_k):
    methods = [name for name in vars(top_k.TopK) if name[:2] != "__"]
    own = [name for name in methods if callable(getattr(top_k.TopK, name))]
    assert len([name for name in own if not name.startswith("_abc")]) == 4
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    found = doctest.testfile(str(PAGE), module_relative=False, optionflags=flags)
    assert found.attempted >= 10
    assert found.failed == 0


def test_the_commands_of_that_page_run(top_k, capsys):
    """`test_modules_in_the_environment_register_their_selectors` has new processes."""
    text = PAGE.read_text("utf-8")
    commands = re.findall(r"^\$ featstream (.+)$", text, re.M)
    assert len(commands) == 3
    for command in commands:
        assert main(shlex.split(command)) == 0, command
        out = capsys.readouterr().out
        assert out, command
    assert "top-k" in out


@pytest.mark.hypothesis
@pytest.mark.parametrize("check", checks.STREAM_CHECKS, ids=lambda c: c.__name__[6:])
def test_the_selector_of_that_page_keeps_the_contracts(top_k, check):
    selector = top_k.TopK(max_features=3, measure="su")

    @settings(strategies.examples(4), suppress_health_check=list(HealthCheck))
    @given(strategies.discrete_data())
    def held(drawn):
        check(selector, *drawn)

    held()
