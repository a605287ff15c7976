"""What the documents name must exist, and what they show must run."""

import doctest
import importlib
import re
import runpy
import shlex
import subprocess
import sys
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings

import checks
import science_files
import strategies
from featstream.cli import main
from featstream.datasets import make_stream
from featstream.selectors import SELECTORS

FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
ROOT = Path(__file__).parents[1]
DOCUMENTS = [*sorted(ROOT.glob("docs/*.md")), ROOT / "README.md"]
RUN_ELSEWHERE = {
    "adding-a-measure.md": "tests/measures/test_adding_a_measure.py",
    "adding-a-selector.md": "below, as a module",
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
    pd.DataFrame(X.T, ["a", "b", "c"], samples).to_csv("genes.tsv", sep="\t")
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


def examples_of(text):
    """Language, code and line of every example of a page, in order.

    Fenced blocks have a language: ``python`` and ``pycon`` are run in one namespace,
    ``console`` holds commands after ``$``. All else is not run: ``text`` marks a
    transcript. An indented line that begins with ``featstream`` is a command.
    """
    fenced, indented = r"^(```+)(\S*)\n(.*?)^\1$", r"^    (featstream [^\n]*)$"
    for found in re.finditer(f"{fenced}|{indented}", text, re.M | re.S):
        _, language, code, command = found.groups()
        line = text.count("\n", 0, found.start()) + 1
        yield (language, code, line) if code else ("console", f"$ {command}", line)


def run_session(code, names, where):
    test = doctest.DocTestParser().get_doctest(code, names, where, where, 0)
    failures = []
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    runner.run(test, out=failures.append, clear_globs=False)
    assert not failures, "".join(failures)
    names.update(test.globs)


def run_commands(code, where, capsys):
    """Run ``$ featstream ...`` lines; lines below a command are what it prints."""
    assert code.startswith("$ "), where
    for part in re.split(r"^\$ ", code, flags=re.M)[1:]:
        command, _, expected = part.partition("\n")
        program, *words = shlex.split(command, comments=True)
        assert program == "featstream", (where, command)
        capsys.readouterr()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert main(words) == 0, (where, command, capsys.readouterr().err)
        printed = capsys.readouterr().out
        assert printed, (where, command)
        if expected.strip():
            is_equal = doctest.OutputChecker().check_output(expected, printed, FLAGS)
            assert is_equal, f"{where}: {command}\n{printed}"


@pytest.mark.parametrize("path", RUN_HERE, ids=lambda path: path.name)
def test_what_a_page_shows_runs(path, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    if path.name == "sources.md":
        write_files_of_every_format()
    names = {"__name__": path.stem}
    for language, code, line in examples_of(path.read_text("utf-8")):
        where = f"{path.name}:{line}"
        if language in ("python", "pycon") and ">>> " in code:
            run_session(code, names, where)
        elif language in ("python", "pycon"):
            exec(compile(code, where, "exec"), names)
        elif language == "console":
            run_commands(code, where, capsys)


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


def test_the_page_on_adding_a_selector_runs(top_k, capsys):
    """`test_modules_in_the_environment_register_their_selectors` has new processes."""
    own = [name for name, value in vars(top_k.TopK).items() if callable(value)]
    assert len([name for name in own if name[:2] != "__"]) == 4
    found = doctest.testfile(str(PAGE), module_relative=False, optionflags=FLAGS)
    assert found.attempted >= 10
    assert found.failed == 0
    commands = re.findall(r"^\$ featstream .+$", PAGE.read_text("utf-8"), re.M)
    assert len(commands) == 3
    for command in commands:
        run_commands(command, PAGE.name, capsys)


@pytest.mark.hypothesis
@pytest.mark.parametrize("check", checks.STREAM_CHECKS, ids=lambda c: c.__name__[6:])
def test_the_selector_of_that_page_keeps_the_contracts(top_k, check):
    selector = top_k.TopK(max_features=3, measure="su")

    @settings(strategies.examples(4), suppress_health_check=list(HealthCheck))
    @given(strategies.discrete_data())
    def held(drawn):
        check(selector, *drawn)

    held()


@pytest.mark.parametrize("path", RUN_HERE, ids=lambda path: path.name)
def test_every_page_has_a_place_in_the_site(path):
    """Sphinx says so too, but not within seconds."""
    trees = "\n".join(
        tree
        for page in ROOT.glob("docs/*.md")
        for tree in re.findall(r"{toctree}\n(.+?)```", page.read_text("utf-8"), re.S)
    )
    assert path.stem in ("index", "README", *trees.split())


SLOW = ("plot_compare", "plot_group_study")
EXAMPLES = [
    pytest.param(
        path, marks=pytest.mark.slow if path.stem in SLOW else (), id=path.stem
    )
    for path in sorted(ROOT.glob("examples/*.py"))
]


@pytest.mark.parametrize("script", EXAMPLES)
def test_the_examples_of_the_gallery_run(script, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(script)])
    plt.close("all")
    runpy.run_path(str(script))
    assert plt.get_fignums()
    plt.close("all")


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
    imported = r"(?:url\(|@import )[\"']?" + far
    for sheet in tmp_path.rglob("*.css"):
        assert not re.search(imported, sheet.read_text())
