"""The tool that makes small wrong changes makes those, and nothing else."""

import ast
from pathlib import Path

import pytest
from fuzz.mutants import PACKAGE, ROOT, applied, nearest_tests, parts, places, slips


def all_changes(source):
    """The source with each slip that can be made in it."""
    tree = ast.parse(source)
    return {
        applied(source, node, changed)
        for node in parts(tree)
        for changed in slips(node)
    }


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a < b", {"(a <= b)"}),
        ("a is None", {"(a is not None)"}),
        ("é + (a == b)", {"(é - (a == b))", "é + ((a != b))"}),
        ("x = a and not b", {"x = (a or not b)", "x = a and (b)"}),
        ("x[3] = 0.5", {"pass", "x[(4)] = 0.5", "x[(2)] = 0.5", "x[3] = (1.0)"}),
        ("f(a, b, c)", {"(f(b, a, c))", "pass"}),
        ("if a:\n    n += b", {"if a:\n    pass"}),
        (
            "def f(a: A[1], b=True): raise E(a < b)",
            {
                "def f(a: A[1], b=(False)): raise E(a < b)",
                "def f(a: A[1], b=True): pass",
            },
        ),
        ("'text'; f'{a + 1}'; import a.b", set()),
    ],
)
def test_slips_are_the_usual_ones(source, expected):
    assert all_changes(source) == expected


def test_there_are_slips_all_over_the_hub_and_each_is_python():
    found = places(ROOT)
    assert len({module for module, _ in found}) > 30
    for module, node in found[::50]:
        source = (ROOT / module).read_text("utf-8")
        for changed in slips(node):
            ast.parse(applied(source, node, changed))


@pytest.mark.parametrize(
    ("module", "named", "folder"),
    [
        ("runs/folder.py", ["tests/runs/test_folder.py"], "tests/runs"),
        (
            "selectors/saola/kept.py",
            ["tests/selectors/test_kept.py", "tests/selectors/test_saola.py"],
            "tests/selectors",
        ),
        ("measures/storages/tables.py", [], "tests/measures/storages"),
        ("errors.py", ["tests/test_errors.py"], "tests"),
    ],
)
def test_the_nearest_tests_mirror_the_module(module, named, folder):
    found, near = nearest_tests(ROOT, PACKAGE / module)
    assert found == named
    assert near[: len(named)] == named
    assert {str(Path(path).parent) for path in near} == {folder}
