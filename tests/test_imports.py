"""What importing the package must not do."""

from __future__ import annotations

import os
import subprocess
import sys

IMPORT_ALL = """
import gc, importlib, pkgutil
import featstream
for module in pkgutil.walk_packages(featstream.__path__, "featstream."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
from numba.core.dispatcher import Dispatcher
ready = [
    d for d in gc.get_objects()
    if isinstance(d, Dispatcher) and d.py_func.__module__.startswith("featstream")
]
assert ready
print(*(d.py_func.__qualname__ for d in ready if d.overloads))
"""


def test_importing_all_modules_compiles_and_trains_nothing():
    found = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL],
        env={**os.environ, "NUMBA_DISABLE_JIT": "0"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert found.stderr == ""
    assert found.stdout.split() == []


def test_names_of_the_paper_are_loaded_when_they_are_asked_for():
    code = """
import sys
import featstream.datasets, featstream.evaluation
assert not [name for name in sys.modules if name.startswith("featstream.paper")]
for module in (featstream.datasets, featstream.evaluation):
    for name in module.__all__:
        getattr(module, name)
assert featstream.evaluation.J48.__module__ == "featstream.paper.j48"
assert featstream.datasets.load_dataset.__module__ == "featstream.paper.datasets"
assert not hasattr(featstream.datasets, "nothing")
assert not hasattr(featstream.evaluation, "nothing")
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.stderr == ""
