"""How kernels are compiled: by documented options, cached if possible."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import time
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numba
import numpy as np
import pytest
from numba import TypingError

import featstream
from crash_runs import run_python
from featstream import jit

SOURCES = sorted(Path(featstream.__file__).parent.rglob("*.py"))


class Inside(NamedTuple):
    table: np.ndarray
    scale: float


class Outside(NamedTuple):
    values: np.ndarray
    inside: Inside
    count: np.ndarray


@jit.inner
def scaled(inside, i):
    return inside.table[i, 1] * inside.scale


@jit.kernel
def add_scaled(outside):
    total = 0.0
    for i in range(outside.values.size):
        if outside.values[i] > 1:
            total += scaled(outside.inside, i)
            outside.count[0] += 1
    return total


def test_kernels_read_and_write_the_arrays_of_named_tuples_wherever_they_lie():
    table = np.arange(8, dtype=np.float32).reshape(4, 2)
    count = np.zeros(1, np.int64)
    outside = Outside(np.arange(4)[::-1], Inside(table, 0.5), count)
    assert add_scaled(outside) == (1 + 3) * 0.5  # values 3 and 2 are above 1
    assert count[0] == 2
    other = outside._replace(values=np.arange(4), inside=Inside(table[::-1], 2.0))
    assert add_scaled(other) == (3 + 1) * 2.0  # rows 2 and 3 of what is reversed
    assert jit.plain(add_scaled)(other) == (3 + 1) * 2.0
    assert count[0] == 6


@jit.kernel
def call_a_kernel(outside):
    return 2 * add_scaled(outside)


def test_a_kernel_can_be_called_by_another():
    outside = Outside(np.arange(3), Inside(np.ones((3, 2)), 1.5), np.zeros(1, np.int64))
    assert call_a_kernel(outside) == 2 * add_scaled(outside) == 3.0


@jit.inner
def last(outside, i):
    return outside.values[-i]


at_place = jit.by_types(lambda first, _: {Inside: scaled, Outside: last}[first])


@jit.kernel
def find_at_place(given, i):
    return at_place(given, i)


def test_the_types_of_the_arguments_choose_among_functions():
    inside = Inside(np.arange(6.0).reshape(3, 2), 2.0)
    outside = Outside(np.arange(4), inside, np.zeros(1, np.int64))
    for call in (at_place, find_at_place):
        assert call(inside, 1) == 6.0
        assert call(outside, 1) == 3


@jit.kernel(allocates=True)
def make(n):
    return np.zeros(n)


@pytest.mark.jit_only
def test_a_kernel_that_creates_arrays_says_so():
    assert make(3).tolist() == [0.0, 0.0, 0.0]
    with pytest.raises(TypingError, match="zeros"):
        jit.kernel(lambda n: np.zeros(n).sum())(3)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_only_documented_parts_of_numba_are_imported(path):
    """Nothing below ``numba.core``, nothing of llvmlite, no name with an underscore."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            assert not name.startswith(("numba.core", "llvmlite", "numba._"))


def test_where_nothing_can_be_cached_kernels_run_and_it_is_said_once(monkeypatch):
    def refuse(**options):
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return numba.njit(**options)

    monkeypatch.setattr(jit, "numba", SimpleNamespace(njit=refuse))
    monkeypatch.setattr(jit, "_warned", [])
    with pytest.warns(RuntimeWarning, match="NUMBA_CACHE_DIR"):
        double = jit.kernel(lambda x: 2 * x)
    assert double(4) == 8
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jit.kernel(lambda x: x)


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
        if not jit._USES_KERNELS.search(path.read_bytes()):
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
    jit.kernel(lambda x: x)
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
