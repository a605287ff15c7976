"""Small wrong changes to the hub, one at a time: which do the tests not notice?

Each slip is made in a copy of the project. The tests named like its module run as plain
Python, because to compile a changed kernel takes minutes; then the contracts of the
selectors; then, compiled, all tests of the nearest folder. A slip that survives changes
nothing that matters, or a test is missing.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = Path("src", "featstream")
HUB = (
    *("protocols.py", "errors.py", "parallel.py", "measures/fisher.py"),
    *("measures/information.py", "measures/inputs.py", "measures/labels.py"),
    *("measures/storages/*.py", "selectors/base*.py", "selectors/result.py"),
    *("selectors/stream.py", "selectors/suspects.py", "selectors/saola/*.py"),
    *("runs/*.py", "sources/memory.py", "sources/npy.py", "sources/values.py"),
    *("sources/store*.py", "sources/rows_to_columns.py", "sources/grouping.py"),
    *("cli/main.py", "cli/runs.py", "cli/select.py"),
)
COPIED = ("src", "tests", "fuzz", "docs", "examples", "conftest.py", "pyproject.toml")
CONTRACTS = "tests/selectors/test_contracts.py"
OTHER_SIGN = {
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt},
    **{ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is},
    **{ast.And: ast.Or, ast.Or: ast.And, ast.Add: ast.Sub, ast.Sub: ast.Add},
}
TOO_LONG = "more than"
NOT_RUN = ("annotation", "returns", "decorator_list", "type_params")


def parts(node: ast.AST) -> Iterator[ast.AST]:
    """A node and those below it that run; without what only words a message."""
    if isinstance(node, ast.JoinedStr | ast.Assert | ast.Import | ast.ImportFrom):
        return
    yield node
    if isinstance(node, ast.Raise):
        return
    for name, value in ast.iter_fields(node):
        if name not in NOT_RUN:
            for part in value if isinstance(value, list) else [value]:
                if isinstance(part, ast.AST):
                    yield from parts(part)


def slips(node: ast.AST) -> Iterator[ast.AST]:
    """The node with one small mistake, in each way that suits it."""
    other = copy.deepcopy(node)
    match other:
        case ast.Compare(ops=[sign]) | ast.BinOp(op=sign) | ast.BoolOp(op=sign):
            if type(sign) in OTHER_SIGN:
                changed = OTHER_SIGN[type(sign)]()
                if isinstance(other, ast.Compare):
                    other.ops = [changed]
                else:
                    other.op = changed
                yield other
        case ast.UnaryOp(op=ast.Not()):
            yield other.operand
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield from (ast.Constant(value + 1), ast.Constant(value - 1))
        case ast.Constant(value=float(value)):
            yield ast.Constant(2.0 * value + (value == 0.0))
        case ast.Call(args=[first, second, *_]) if type(first) is type(second):
            if ast.dump(first) != ast.dump(second):
                other.args[:2] = second, first
                yield other
        case ast.AugAssign() | ast.Raise() | ast.Expr(value=ast.Call()):
            yield ast.Pass()
        case ast.Assign(targets=[ast.Subscript() | ast.Attribute()]):
            yield ast.Pass()
        case ast.Continue() | ast.Break():
            yield ast.Pass()


def places(root: Path) -> list[tuple[Path, ast.AST]]:
    """All nodes in the hub in which a slip can be made, each with its module."""
    package = root / PACKAGE
    modules = sorted({path for pattern in HUB for path in package.glob(pattern)})
    return [
        (path.relative_to(root), node)
        for path in modules
        for node in parts(ast.parse(path.read_text("utf-8")))
        if next(slips(node), None) is not None
    ]


def applied(source: str, node: ast.AST, changed: ast.AST) -> str:
    """The source with one node replaced; the rest stays as it is."""
    lines = source.encode().splitlines(keepends=True)  # columns are counted in bytes
    begin = sum(map(len, lines[: node.lineno - 1])) + node.col_offset
    end = sum(map(len, lines[: node.end_lineno - 1])) + node.end_col_offset
    text = ast.unparse(changed)
    if isinstance(node, ast.expr):
        text = f"({text})"
    whole = source.encode()
    return (whole[:begin] + text.encode() + whole[end:]).decode()


def nearest_tests(root: Path, module: Path) -> tuple[list[str], list[str]]:
    """Tests named like a module; and all of the nearest folder, these first."""
    inside = module.relative_to(PACKAGE)
    folder, names = Path("tests") / inside.parent, [inside.stem]
    while not list((root / folder).glob("test_*.py")):
        names.append(folder.name)
        folder = folder.parent
    found = sorted(path.relative_to(root) for path in (root / folder).glob("test_*.py"))
    named = [str(p) for p in found if p.stem in [f"test_{name}" for name in names]]
    others = [str(p) for p in found if str(p) not in [*named, CONTRACTS]]
    return named, named + others


class Copy:
    """A copy of the project, in which one slip at a time is made."""

    def __init__(self, folder: Path, limit: float) -> None:
        self.folder, self.limit = folder, limit
        self.unfit: list[str] = []  # tests that fail in the copy without any slip
        without = shutil.ignore_patterns("__pycache__")
        for part in COPIED:
            if (ROOT / part).is_dir():
                shutil.copytree(ROOT / part, folder / part, ignore=without)
            else:
                shutil.copy2(ROOT / part, folder / part)

    def judge(self, module: Path, node: ast.AST, changed: ast.AST) -> str:
        """What notices a slip: a test, the time limit, or nothing."""
        path, verdict = self.folder / module, ""
        source = path.read_text("utf-8")
        named, near = nearest_tests(self.folder, module)
        stages = (named or near, False), ([CONTRACTS], False), (near, True)
        for tests, is_compiled in stages:
            while True:  # again without a test that fails in any case
                path.write_text(applied(source, node, changed), "utf-8")
                failed = self.first_failure(tests, is_compiled)
                path.write_text(source, "utf-8")
                if not failed or failed.startswith(TOO_LONG):
                    verdict = failed or verdict
                    break
                if "::" not in failed or not self.first_failure([failed], is_compiled):
                    return failed
                self.unfit.append(failed)
        return verdict

    def first_failure(self, tests: list[str], is_compiled: bool) -> str:
        """The first test that fails; or that they take too long, or cannot start."""
        marks = "not slow and not network" + " and not jit_only" * (not is_compiled)
        command = [sys.executable, "-m", "pytest", "-x", "-q", "--tb=no", "-m", marks]
        command += ["-p", "no:cacheprovider", *(f"--deselect={t}" for t in self.unfit)]
        own = {"PYTHONPATH": "src", "NUMBA_CACHE_DIR": str(self.folder / "cache")}
        own["NUMBA_DISABLE_JIT"] = "0" if is_compiled else "1"
        with subprocess.Popen(
            [*command, *tests],
            cwd=self.folder,
            env=os.environ | own,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,  # to end those that it starts as well
        ) as process:
            try:
                output, _ = process.communicate(timeout=self.limit)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                return f"{TOO_LONG} {self.limit:.0f} s"
        if process.returncode in (0, 5):  # 5: all tests are left out by their marks
            return ""
        failed = re.findall(r"(?m)^(?:FAILED|ERROR) (\S+\.py::.+?)(?: - .*)?$", output)
        return failed[0] if failed else "an error outside the tests"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz.mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, default=900.0, help="seconds per stage")
    arguments = parser.parse_args()
    rng, found = random.Random(arguments.seed), places(ROOT)
    survivors = []
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        project = Copy(Path(folder), arguments.limit)
        for module, node in rng.sample(found, arguments.count):
            changed = rng.choice(list(slips(node)))
            place = f"{module.relative_to(PACKAGE)}:{node.lineno}"
            slip = f"{place}  {ast.unparse(node)}  ->  {ast.unparse(changed)}"
            noticed = project.judge(module, node, changed)
            print(f"{slip}\n    {noticed or 'SURVIVED'}", flush=True)
            if not noticed or noticed.startswith(TOO_LONG):
                survivors.append(slip)
    n_survived = f"{len(survivors)} survived or took too long"
    print(f"\n{arguments.count} slips at {len(found):,} places; {n_survived}:")
    print("".join(f"  {slip}\n" for slip in survivors), end="")
    print("".join(f"Fails without a slip, too: {test}\n" for test in project.unfit))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
