"""The house: imports point one way, files stay short, nothing unsafe is called."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import featstream

ROOT = Path(featstream.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
NAMES = [str(path.relative_to(ROOT)) for path in FILES]

# From the bottom up. Parts of one layer do not know each other, except that a
# report may show an evaluation.
LAYERS = [
    {"errors", "protocols"},
    {"kernels"},
    {"sources"},
    {"measures"},
    {"group_trace", "trace"},
    {"result"},
    {"progress"},
    {"engines"},
    {"lock", "statefile"},
    {"checkpoint"},
    {"selectors"},
    {"datasets", "groups"},
    {"evaluation", "reporting"},
    {"cli_paper"},
    {"cli", "__main__"},
]
RANK = {part: rank for rank, layer in enumerate(LAYERS) for part in layer}
NEIGHBOURS = {
    ("reporting", "evaluation"),
    ("__main__", "cli"),
    ("protocols", "errors"),
}

OPTIONAL = {
    "matplotlib",
    "pandas",
    "polars",
    "pyarrow",
    "h5py",
    "zarr",
    "anndata",
    "bed_reader",
    "dask",
    "distributed",
    "jinja2",
}
UNSAFE_MODULES = {"pickle", "dill", "cloudpickle", "shelve", "marshal", "joblib"}
UNSAFE_CALLS = {"eval", "exec", "compile", "__import__"}
MAX_LINES = 400


def parse(path):
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def part_of(path):
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imports(tree, *, skips_type_checking=False):
    """(module, name, line, whether at the top level) of every import."""
    found = []

    def visit(node, is_top):
        if skips_type_checking and is_type_checking(node):
            return
        if isinstance(node, ast.Import):
            found.extend(
                (alias.name, None, node.lineno, is_top) for alias in node.names
            )
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"a relative import at line {node.lineno}"
            for alias in node.names:
                found.append((node.module, alias.name, node.lineno, is_top))
        is_deferred = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        is_deferred |= is_type_checking(node)
        for child in ast.iter_child_nodes(node):
            visit(child, is_top and not is_deferred)

    visit(tree, True)
    return found


def is_type_checking(node):
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def parts_imported(path):
    """Parts of featstream that a file knows, wherever in the file it says so."""
    is_init = path == ROOT / "__init__.py"
    for module, name, line, _ in imports(parse(path), skips_type_checking=is_init):
        pieces = module.split(".")
        if pieces[0] != "featstream":
            continue
        if len(pieces) > 1:
            yield pieces[1], line
        elif name is not None and name in RANK:
            yield name, line
        elif name is not None:
            yield "__init__", line


def test_every_part_has_its_layer():
    assert {part_of(path) for path in FILES} <= {*RANK, "__init__"}


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_imports_point_down(path):
    here = part_of(path)
    wrong = []
    for part, line in parts_imported(path):
        if part == here or here == "__init__":
            continue
        is_below = part in RANK and RANK[part] < RANK[here]
        # Only the command line may ask for the package as a whole.
        is_top = part == "__init__" and here in ("cli", "__main__")
        if not (is_below or is_top or (here, part) in NEIGHBOURS):
            wrong.append(f"line {line}: {here} imports {part}")
    assert wrong == []


def test_the_check_of_imports_can_fail(tmp_path, monkeypatch):
    """A kernel that knew a selector would be found, even inside a function."""
    (tmp_path / "kernels").mkdir()
    bad = tmp_path / "kernels" / "bad.py"
    bad.write_text("def f():\n    from featstream.selectors import SAOLA\n")
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    with pytest.raises(AssertionError, match="kernels imports selectors"):
        test_imports_point_down(bad)


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_optional_packages_are_imported_when_used(path):
    for module, _, line, is_top in imports(parse(path)):
        is_optional = module.split(".")[0] in OPTIONAL
        assert not (is_optional and is_top), f"line {line}: {module}"


HEAVY = "matplotlib pandas polars dask sklearn numba scipy pyarrow h5py zarr"


@pytest.mark.parametrize("module", ["featstream", "featstream.cli"])
def test_importing_the_package_imports_nothing_heavy(module):
    code = (
        f"import sys, {module}; print(*sorted(set({HEAVY.split()}) & set(sys.modules)))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == ""


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_no_file_is_long(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MAX_LINES


def test_no_file_is_a_drawer_for_odds_and_ends():
    assert not {"utils.py", "core.py", "helpers.py", "common.py"} & {
        path.name for path in FILES
    }


def sort_key(name):
    """ruff's order: constants, then classes, then the rest."""
    return (not name.isupper(), not name[:1].isupper(), name)


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_what_is_public_is_listed_in_order(path):
    listed = [
        ast.literal_eval(node.value)
        for node in parse(path).body
        if isinstance(node, ast.Assign)
        and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets)
    ]
    for names in listed:
        assert names == sorted(names, key=sort_key)
        assert len(set(names)) == len(names)
        assert not any(name.startswith("_") for name in names)


def test_what_is_listed_exists():
    for name in featstream.__all__:
        assert getattr(featstream, name).__doc__
    assert set(featstream.__all__) <= set(dir(featstream))
    with pytest.raises(AttributeError, match="no attribute 'SAOLO'"):
        featstream.SAOLO


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_nothing_that_runs_foreign_code_is_called(path):
    """No pickle at rest, no eval: Section 8 of the list of promises."""
    tree = parse(path)
    for module, name, line, _ in imports(tree):
        assert module.split(".")[0] not in UNSAFE_MODULES, f"line {line}: {module}"
        assert (module, name) != ("yaml", "load")
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        assert called not in UNSAFE_CALLS, f"line {node.lineno}: {called}"
        assert not called.endswith((".read_pickle", "yaml.load", "joblib.load"))
        for keyword in node.keywords:
            value = ast.unparse(keyword.value)
            assert (keyword.arg, value) not in {
                ("allow_pickle", "True"),
                ("shell", "True"),
            }, f"line {node.lineno}"
        if called in ("np.load", "numpy.load"):
            passed = {
                keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords
            }
            assert passed.get("allow_pickle") == "False", f"line {node.lineno}"
