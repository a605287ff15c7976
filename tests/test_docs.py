"""What the documents name must exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted(ROOT.glob("docs/*.md"))
DEFINED = set()
for file in ROOT.glob("tests/**/*.py"):
    DEFINED |= set(re.findall(r"def ((?:test|check)_\w+)", file.read_text("utf-8")))


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_every_test_that_a_document_names_exists(path):
    named = re.findall(r"`((?:test|check)_\w+)`", path.read_text("utf-8"))
    assert [name for name in named if name not in DEFINED] == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_every_file_that_a_document_names_exists(path):
    named = re.findall(r"`((?:tests|src|docs|benchmarks)/[\w/.-]+)`", path.read_text())
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_the_page_on_fidelity_says_where_to_look():
    text = (ROOT / "docs" / "fidelity.md").read_text("utf-8")
    assert len(re.findall(r"`(?:test|check)_\w+`", text)) >= 8
    for option in ("ties", "pruning", "overlap", "bound", "max_features", "threshold"):
        assert f"`{option}" in text
