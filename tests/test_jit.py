"""How kernels are compiled: with the options numba knows, cached if possible."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import time
import warnings
from types import SimpleNamespace
from typing import NamedTuple

import numba
import numpy as np
import pytest

from crash_runs import run_python
from featstream import jit


@pytest.mark.jit_only
def test_this_numba_knows_all_options():
    assert {"_nrt", "forceinline", "no_cpython_wrapper"} <= jit.INNER.keys()


class Limits(NamedTuple):
    low: int
    is_strict: bool


@jit.by_reference
class Inside(NamedTuple):
    table: np.ndarray
    scale: float


@jit.by_reference
class Record(NamedTuple):
    values: np.ndarray
    inside: Inside
    limits: Limits
    count: np.ndarray


@jit.inner
def scaled(inside, i):
    return inside.table[i, 1] * inside.scale


@jit.lean
def add_large(record):
    total = 0.0
    for i in range(record.values.size):
        if record.limits.is_strict and record.values[i] > record.limits.low:
            total += scaled(record.inside, i)
            record.count[0] += 1
    return total


def test_kernels_read_and_write_the_arrays_of_a_record_wherever_they_lie():
    table = np.arange(8, dtype=np.float32).reshape(4, 2)
    count = np.zeros(1, np.int64)
    record = Record(np.arange(4)[::-1], Inside(table, 0.5), Limits(1, True), count)
    assert add_large(record) == (1 + 3) * 0.5  # values 3 and 2 are large
    assert count[0] == 2
    other = record._replace(values=np.arange(4), inside=Inside(table[::-1], 2.0))
    assert add_large(other) == (3 + 1) * 2.0  # rows 2 and 3 of what is reversed
    assert count[0] == 4


def test_a_kernel_may_be_compiled_into_the_function_that_unpacks_its_record():
    last = numba.njit(forceinline=True, **jit._LEAN)(lambda r: r.table[-1, 1] * r.scale)
    assert last(Inside(np.arange(6.0).reshape(3, 2), 0.5)) == 2.5


@pytest.mark.jit_only
def test_inner_kernels_are_optimised_by_numba_if_they_cannot_be_left_to_others(
    monkeypatch,
):
    assert jit.INNER["pipeline_class"] is not None
    monkeypatch.delattr("numba.core.codegen.JITCodeLibrary")
    assert jit._compiler_of_inner() == {}


@pytest.mark.jit_only
@pytest.mark.parametrize("part", ["_ARRAY", "_try"])
def test_kernels_run_if_numba_has_changed(part, monkeypatch):
    """Arrays are laid out in another way, or the kernel of the trial fails."""
    monkeypatch.setattr(jit, part, None)
    monkeypatch.setattr(jit, "_is_known", None)
    Pair = jit.by_reference(NamedTuple("Pair", [("values", np.ndarray), ("n", int)]))
    last = jit.inner(lambda pair: pair.values[-1])
    times = jit.lean(lambda pair: last(pair) * pair.n)
    with pytest.warns(RuntimeWarning, match=f"numba {numba.__version__} is not known"):
        assert times(Pair(np.array([1.0, 3.0]), 2)) == 6.0
    ((found,),) = times.signatures
    assert isinstance(found, numba.types.NamedTuple)


_REFUSE = """
from numba.core.cpu import CPUTargetOptions
for kind in CPUTargetOptions.__mro__:
    for name in {!r}:
        if name in vars(kind):
            delattr(kind, name)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        _REFUSE.format(["_nrt"]),
        _REFUSE.format(["forceinline", "no_cfunc_wrapper"]),
        "import featstream.jit\nfeatstream.jit._ARRAY = ()\n",
    ],
    ids=["arrays", "wrappers", "layout"],
)
def test_selections_are_the_same_without_private_parts(change, tmp_path):
    code = """
import numpy as np, scipy.sparse as sp, warnings
from featstream import SAOLA
from featstream.jit import INNER, is_numba_known
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X, y = rng.integers(0, 3, (80, 30)), rng.integers(0, 2, 80)
print(SAOLA(measure="fisher-z").fit(X, y).scores_.tolist())
for form in (X, sp.csc_array(X)):
    print(SAOLA(measure="su").fit(form, y).scores_.tolist())
print(is_numba_known() and len(INNER))
"""
    found = [
        run_python(program, NUMBA_CACHE_DIR=str(tmp_path / folder)).stdout.splitlines()
        for folder, program in (("plain", code), ("changed", change + code))
    ]
    assert found[0][:3] == found[1][:3]
    assert found[0][3] != found[1][3]


def test_where_nothing_can_be_cached_kernels_run_and_it_is_said_once(monkeypatch):
    def refuse(**options):
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return numba.njit(**options)

    monkeypatch.setattr(jit, "numba", SimpleNamespace(njit=refuse))
    monkeypatch.setattr(jit, "_warned", [])
    with pytest.warns(RuntimeWarning, match="NUMBA_CACHE_DIR"):
        double = jit.jit(lambda x: 2 * x)
    assert double(4) == 8
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jit.jit(lambda x: x)


def copy_of_the_package(folder):
    """A copy of the package; the environment in which Python imports it."""
    ignore = shutil.ignore_patterns("__pycache__", "novels")
    shutil.copytree(jit._PACKAGE, folder / "featstream", ignore=ignore)
    path = os.pathsep.join([str(folder), *sys.path])
    return folder / "featstream", {"PYTHONPATH": path, "NUMBA_CACHE_DIR": ""}


def replace_in(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


PARSE = """
import numpy as np
from featstream.sources.csv import parse_numbers
text = np.frombuffer(b"1.5,2.5\\n", np.uint8)
whole, real = np.empty((1, 2), np.int64, "F"), np.empty((1, 2), order="F")
parse_numbers(text, 0, 44, whole, real, np.zeros(2, np.int64))
print(real.tolist())
"""


@pytest.mark.jit_only
def test_compiled_code_is_not_older_than_a_kernel_that_it_calls(tmp_path):
    """The caller's own file is the same, so that numba alone would not notice."""
    package, environment = copy_of_the_package(tmp_path)
    assert run_python(PARSE, **environment).stdout == "[[1.5, 2.5]]\n"
    called = package / "sources" / "kernels" / "parse_decimal.py"
    before, moment = called.read_text(), called.stat()
    old = "return -value if is_negative else value, i, GOOD"
    replace_in(called, old, old.replace("value, i", "value + 1000.0, i"))
    assert run_python(PARSE, **environment).stdout == "[[1001.5, 1002.5]]\n"
    called.write_text(before)  # as git does, within the same second
    os.utime(called, ns=(moment.st_atime_ns, moment.st_mtime_ns))
    caches = list((package / "__pycache__").glob("featstream-*"))
    assert run_python(PARSE, **environment).stdout == "[[1.5, 2.5]]\n"
    assert sorted((package / "__pycache__").glob("featstream-*")) == sorted(caches)
    assert len(caches) == 2


def test_the_checksum_follows_what_kernels_see_and_nothing_else(tmp_path, monkeypatch):
    package, _ = copy_of_the_package(tmp_path)
    before = jit.source_checksum(package)
    assert before == jit.source_checksum(jit._PACKAGE)
    with open(package / "cli" / "main.py", "a") as file:
        file.write("\n# another help text\n")
    assert jit.source_checksum(package) == before
    values = package / "sources" / "values.py"  # has constants, and no kernel
    replace_in(values, "EXACT_IN_FLOAT = 2**53", "EXACT_IN_FLOAT = 2**52")
    assert jit.source_checksum(package) != before
    replace_in(values, "EXACT_IN_FLOAT = 2**52", "EXACT_IN_FLOAT = 2**53")
    monkeypatch.setenv("NUMBA_BOUNDSCHECK", "1")
    assert jit.source_checksum(package) != before


def test_constants_of_kernels_are_defined_where_they_are_imported_from():
    """Otherwise the checksum would miss the file that does define them."""
    root, n_checked = jit._PACKAGE, 0
    for path in root.rglob("*.py"):
        if "featstream.jit" not in path.read_text():
            continue
        for node in ast.parse(path.read_text()).body:
            if not isinstance(node, ast.ImportFrom) or node.module is None:
                continue
            place = root.joinpath(*node.module.split(".")[1:])
            home = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
            constants = [alias.name for alias in node.names if alias.name.isupper()]
            for name in constants:
                if node.module.startswith("featstream."):
                    defined = rf"(?m)^(class |[\w, ]*)\b{name}\b"
                    assert re.search(defined, home.read_text()), name
                    n_checked += 1
    assert n_checked > 5


def caches_of(place):
    return {path.name for path in place.iterdir()}


@pytest.fixture
def find_folder(monkeypatch, tmp_path):
    """The cache folder that would be used if these were the sources and settings."""
    package = tmp_path / "package"
    package.mkdir()
    (package / "jit.py").write_text("")
    monkeypatch.setattr(jit, "_PACKAGE", package)
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    return jit._cache_folder.__wrapped__


def test_the_cache_is_beside_the_sources_or_where_the_user_wants_it(
    find_folder, tmp_path, monkeypatch
):
    assert find_folder().parent == tmp_path / "package" / "__pycache__"
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "given"))
    assert find_folder().parent == tmp_path / "given"


def test_a_read_only_installation_caches_in_the_users_folder(
    find_folder, tmp_path, monkeypatch
):
    (tmp_path / "package" / "__pycache__").write_text("")  # no folder can be here
    assert find_folder().parent == tmp_path / "home" / "featstream"
    shutil.rmtree(tmp_path / "home")
    (tmp_path / "home").write_text("")
    with pytest.raises(RuntimeError, match="cannot cache"):
        find_folder()


def test_old_caches_are_removed_but_for_a_few(find_folder, tmp_path):
    own = find_folder()
    others = [own.with_name(f"featstream-{i}") for i in range(9)]
    for age, other in enumerate(others, start=1):
        other.mkdir()
        moment = time.time() - 7200 * age
        os.utime(other, (moment, moment))
    recent = own.with_name("featstream-recent")
    recent.mkdir()
    (own.parent / "numba.py").write_text("of others")
    os.utime(own, (1, 1))  # used again after a long time
    assert find_folder() == own
    kept = {own.name, recent.name, others[0].name, others[1].name, "numba.py"}
    assert caches_of(own.parent) == kept


def test_kernels_of_others_are_cached_where_they_were(monkeypatch):
    seen = []

    def njit(**options):
        seen.append(numba.config.CACHE_DIR)
        return lambda function: function

    monkeypatch.setattr(numba.config, "CACHE_DIR", "theirs")
    monkeypatch.setattr(jit, "numba", SimpleNamespace(njit=njit))
    jit.jit(lambda x: x)
    assert seen == [str(jit._cache_folder())]
    assert numba.config.CACHE_DIR == "theirs"


@pytest.mark.jit_only
def test_two_processes_may_start_and_compile_at_once(tmp_path):
    _, environment = copy_of_the_package(tmp_path)
    command = [sys.executable, "-c", PARSE]
    both = [
        subprocess.Popen(command, stdout=subprocess.PIPE, env=os.environ | environment)
        for _ in range(2)
    ]
    assert {process.communicate()[0] for process in both} == {b"[[1.5, 2.5]]\n"}
    assert run_python(PARSE, **environment).stdout == "[[1.5, 2.5]]\n"
