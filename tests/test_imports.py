"""What importing the package must not do."""

from crash_runs import run_python

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
foreign = "matplotlib pandas polars dask pyarrow h5py zarr anndata"
assert not has(foreign), has(foreign)

import featstream.datasets, featstream.evaluation
assert not [name for name in sys.modules if name.startswith("featstream.paper")]
for module in (featstream.datasets, featstream.evaluation):
    for name in module.__all__:
        getattr(module, name)
    assert not hasattr(module, "nothing")
assert featstream.evaluation.J48.__module__ == "featstream.paper.j48"
assert featstream.datasets.load_dataset.__module__ == "featstream.paper.datasets"
"""


def run(code):
    """Run code with compiled kernels; it must write no warning."""
    done = run_python(code, NUMBA_DISABLE_JIT="0")
    assert done.stderr == ""
    return done.stdout


def test_nothing_is_imported_before_it_is_used():
    """Nor is what `datasets` and `evaluation` take from the paper's package."""
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
