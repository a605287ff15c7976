"""What the documents name must exist."""

from __future__ import annotations

import doctest
import re
import shlex
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import science_files
from featstream.cli import main

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


@pytest.fixture
def examples(tmp_path, monkeypatch):
    """The files that the page on sources opens, in a folder that is the current one."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (6, 3))
    kinds = np.array([0, 0, 1, 1, 1, 0])
    status = np.where(kinds, "ill", "well")
    samples = [f"s{i}" for i in range(6)]
    frame = pd.DataFrame(X, columns=["age", "gene_1", "gene_2"]).assign(status=status)
    frame.to_csv("patients.csv", index=False)
    frame.set_index(pd.Index(samples)).to_parquet("patients.parquet")
    pd.DataFrame({"id": samples, "status": status}).to_csv("labels.csv", index=False)
    pd.DataFrame(X.T, ["a", "b", "c"], samples).to_parquet("genes.parquet")
    science_files.write_zarr("expression.zarr", X.astype(float), (6, 2))
    obs, names = {"cell_type": (kinds, ["B", "T"])}, ["CD19", "CD3E", "CD8A"]
    layers = [("counts", 2 * X)]
    science_files.write_h5ad("cells.h5ad", X, obs, names, "csr", layers)
    people = [("f", name) for name in samples]
    X[0, 0] = -1
    science_files.write_plink(Path("cohort.bed"), X, kinds + 1, "xyz", people)
    lines = ["FID IID height", *(f"f {name} {i % 2}" for i, name in enumerate(samples))]
    Path("phenotypes.txt").write_text("\n".join(lines))
    Path("chromosomes").mkdir()
    for k in (1, 2):
        path = Path("chromosomes", f"chr{k}.bed")
        science_files.write_plink(path, X, kinds, [f"{k}{v}" for v in "xyz"], people)


def test_the_page_on_sources_runs(examples):
    page = ROOT / "docs" / "sources.md"
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    found = doctest.testfile(str(page), module_relative=False, optionflags=flags)
    assert found.attempted >= 7
    assert found.failed == 0


def test_the_page_on_interactions_runs():
    page = ROOT / "docs" / "interactions.md"
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    found = doctest.testfile(str(page), module_relative=False, optionflags=flags)
    assert found.attempted >= 12
    assert found.failed == 0


def test_the_commands_of_the_page_on_sources_run(examples, capsys):
    text = (ROOT / "docs" / "sources.md").read_text("utf-8")
    commands = re.findall(r"^    featstream (.+)$", text, re.M)
    assert len(commands) >= 8
    for command in commands:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert main(shlex.split(command)) == 0, command
        assert capsys.readouterr().out


def test_the_page_on_batch_selectors_runs():
    page = ROOT / "docs" / "batch.md"
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    found = doctest.testfile(str(page), module_relative=False, optionflags=flags)
    assert found.attempted >= 4
    assert found.failed == 0
