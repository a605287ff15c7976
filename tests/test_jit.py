"""How kernels are compiled: with the options numba knows, cached if possible."""

from __future__ import annotations

import os
import sys
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


PAIR = "from typing import Any, NamedTuple\nclass Pair(NamedTuple):\n    a: Any\n"
FIRST = "from featstream import jit\n@jit.inner\ndef first(a):\n    return a[0]\n"
OF_PAIR = """
jit.by_reference(Pair)
@jit.lean
def run(pair):
    return pair.a[0]
print(run(Pair(np.ones(2))))
"""
OF_FIRST = """
@jit.lean
def run(a):
    return first(a)
print(run(np.ones(2)))
"""


@pytest.mark.jit_only
@pytest.mark.parametrize(
    ("named_by", "lost", "kernel"),
    [
        ("kernels", PAIR, f"from gone import Pair{OF_PAIR}"),
        ("between", FIRST, f"from between import first{OF_FIRST}"),
    ],
    ids=["index", "code"],
)
def test_a_cache_that_names_a_lost_module_counts_as_empty(
    named_by, lost, kernel, tmp_path
):
    """As after an upgrade in place."""
    cache, path = tmp_path / "cache", os.pathsep.join([str(tmp_path), *sys.path])
    heading = "import numpy as np\nfrom featstream import jit\n"
    (tmp_path / "between.py").write_text("from gone import *\n")
    (tmp_path / "kernels.py").write_text(heading + kernel)
    (tmp_path / "gone.py").write_text(lost)

    def run():
        how = {"NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": path}
        return run_python("import kernels", **how).stdout

    assert run() == "1.0\n"
    assert list(cache.rglob("kernels*.nbi"))
    (tmp_path / "gone.py").rename(tmp_path / "elsewhere.py")
    naming = tmp_path / f"{named_by}.py"
    # Of another length: Python knows old bytecode by the size and the second.
    naming.write_text(naming.read_text().replace("gone", "elsewhere"))
    assert run() == "1.0\n"
