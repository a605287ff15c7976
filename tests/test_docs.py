"""What the documents name must exist, and what they show must run."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import science_files
from pages import run_page

ROOT = Path(__file__).parents[1]
DOCUMENTS = [*sorted(ROOT.glob("docs/*.md")), ROOT / "README.md"]
RUN_ELSEWHERE = {
    "adding-a-measure.md": "tests/measures/test_adding_a_measure.py",
    "adding-a-selector.md": "tests/test_adding.py",
    "cluster.md": "a session of some minutes, on a cluster",
    "paper.md": "needs the data sets of the paper",
}
RUN_HERE = [path for path in DOCUMENTS if path.name not in RUN_ELSEWHERE]
DEFINED = set()
for file in ROOT.glob("tests/**/*.py"):
    DEFINED |= set(re.findall(r"def ((?:test|check)_\w+)", file.read_text("utf-8")))


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_every_test_file_and_page_that_a_document_names_exists(path):
    text = path.read_text("utf-8")
    named = re.findall(r"`((?:test|check)_\w+)`", text)
    assert [name for name in named if name not in DEFINED] == []
    named = re.findall(r"`((?:tests|src|docs|benchmarks)/[\w/.-]+)`", text)
    assert [name for name in named if not (ROOT / name).exists()] == []
    links = re.findall(r"\]\(([^)#:]+)(?:#[\w-]+)?\)", text)
    missing = [link for link in links if not (path.parent / link).exists()]
    assert [link for link in missing if not link.startswith("gallery/")] == []


def test_the_page_on_fidelity_says_where_to_look():
    text = (ROOT / "docs" / "fidelity.md").read_text("utf-8")
    assert len(re.findall(r"`(?:test|check)_\w+`", text)) >= 8
    for option in ("ties", "pruning", "overlap", "bound", "max_features", "threshold"):
        assert f"`{option}" in text


def write_files_of_every_format():
    """Write the files that the page on sources opens, into the current folder."""
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


@pytest.mark.parametrize("path", RUN_HERE, ids=lambda path: path.name)
def test_what_a_page_shows_runs(path, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    if path.name == "sources.md":
        write_files_of_every_format()
    run_page(path, capsys)


def test_what_is_not_run_here_exists():
    assert set(RUN_ELSEWHERE) <= {path.name for path in DOCUMENTS}


@pytest.mark.parametrize("path", RUN_HERE, ids=lambda path: path.name)
def test_every_page_has_a_place_in_the_site(path):
    """Sphinx says so too, but not within seconds."""
    trees = "\n".join(
        tree
        for page in ROOT.glob("docs/*.md")
        for tree in re.findall(r"{toctree}\n(.+?)```", page.read_text("utf-8"), re.S)
    )
    assert path.stem in ("index", "README", *trees.split())


SLOW = pytest.mark.slow
EXAMPLES = [
    "novels",
    "timeline",
    pytest.param("compare", marks=SLOW),
    pytest.param("group_study", marks=SLOW),
]


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_examples_of_the_gallery_run(name, tmp_path, monkeypatch):
    script = ROOT / "examples" / f"plot_{name}.py"
    monkeypatch.chdir(tmp_path)
    plt.switch_backend("Agg")
    monkeypatch.setattr(sys, "argv", [str(script)])
    plt.close("all")
    runpy.run_path(str(script))
    assert plt.get_fignums()
    plt.close("all")


def test_every_example_is_run():
    named = {getattr(entry, "values", (entry,))[0] for entry in EXAMPLES}
    assert {f"plot_{name}" for name in named} == {
        path.stem for path in ROOT.glob("examples/*.py")
    }


@pytest.mark.slow
def test_the_site_is_built_without_warnings_and_loads_nothing(tmp_path):
    options = ["-W", "-q", "-b", "html", "-D", "plot_gallery=0"]
    command = [sys.executable, "-m", "sphinx", *options, "docs", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    pages = sorted(tmp_path.rglob("*.html"))
    assert len(pages) > 50
    far = r"(?:https?:)?//"
    loading = r"<(?:script|img|link|iframe|source)\b[^>]*(?:src|href)=\"" + far
    assert [page for page in pages if re.search(loading, page.read_text("utf-8"))] == []
    for sheet in tmp_path.rglob("*.css"):
        assert not re.search(
            r"(?:url\(|@import )[\"']?(?:https?:)?//", sheet.read_text()
        )
