"""What the linters do not check of the package and of the tests."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import featstream

ROOT = Path(featstream.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
TESTS = sorted(Path(__file__).parent.rglob("*.py"))
MAX_LINES = 800


def test_no_file_is_long():
    lengths = {path: len(path.read_text("utf-8").splitlines()) for path in FILES}
    assert [path for path, length in lengths.items() if length > MAX_LINES] == []


def test_no_file_is_a_drawer_for_odds_and_ends():
    drawers = {"utils.py", "core.py", "helpers.py", "common.py"}
    assert not drawers & {path.name for path in FILES}


def test_packages_alone_list_their_names():
    """And `featstream.datasets`, which loads some of its names when they are used."""
    listing = [p for p in FILES if "\n__all__ = " in p.read_text("utf-8")]
    others = [p for p in listing if p.name not in ("__init__.py", "datasets.py")]
    assert others == []


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
