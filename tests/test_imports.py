"""What importing the package must not do."""

from __future__ import annotations

import os
import subprocess
import sys

LIGHT = """
import sys

def has(names):
    return set(names.split()) & set(sys.modules)

optional = "matplotlib pandas polars dask sklearn pyarrow h5py zarr anndata"
import featstream.cli
assert not has(f"{optional} numba scipy"), has(f"{optional} numba scipy")
from featstream.selectors.registry import SELECTORS
assert "saola" in SELECTORS
assert not has("numba sklearn numpy"), has("numba sklearn numpy")
import featstream.sources
assert not has(optional), has(optional)
"""


def run(code):
    """What a new process writes to its standard output; nothing to the other."""
    # Compiled kernels are what is looked for.
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "0"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True
    )
    assert done.stderr == ""
    return done.stdout


def test_nothing_is_imported_before_it_is_used():
    run(LIGHT)


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
    assert run(IMPORT_ALL).split() == []


def test_names_of_the_paper_are_loaded_when_they_are_asked_for():
    run("""
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
""")
