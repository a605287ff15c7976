"""Settings of the whole suite: tests, and the doctests of src."""

import os
import shutil
import signal
import tempfile
from multiprocessing.util import Finalize, get_temp_dir
from pathlib import Path

import hypothesis
import pytest
from filelock import FileLock
from hypothesis.database import DirectoryBasedExampleDatabase

ROOT = Path(__file__).parent
WORKER = os.environ.get("PYTEST_XDIST_WORKER")
_OF_SMALL_DATA = (
    r"Of .* kept features, .* may be chance alone",
    r"y has .* rows each on average",
    r"\w+ selects .* fewer than n_features=",
    r"\w+ has no groups",
    r".* the target in other words",
    r".* like a counter or an identifier",
)
os.environ.setdefault("MPLBACKEND", "Agg")

hypothesis.settings.register_profile(
    "fixed", max_examples=40, deadline=None, derandomize=True, print_blob=True
)
# Where the variable CI is set, Hypothesis derandomizes and keeps no examples, unless a
# profile says otherwise.
hypothesis.settings.register_profile(
    "random",
    max_examples=1000,
    deadline=None,
    print_blob=True,
    derandomize=False,
    database=DirectoryBasedExampleDatabase(ROOT / ".hypothesis" / "examples"),
)
hypothesis.settings.load_profile("fixed")


def _compile_once():
    """Let one process compile a kernel, and the others wait and load it.

    The lock also keeps numba's index of a kernel whole: numba reads it and writes it
    again, and of two processes that do so at once one could load the code of the other.
    """
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.dispatcher import Dispatcher

    compile_kernel, locks = Dispatcher.compile, {}

    def compile_alone(self, signature):
        file = getattr(self._cache, "_cache_file", None)
        if file is None:
            return compile_kernel(self, signature)
        path = f"{file._index_path}.lock"
        # In this order: a thread that compiles a caller of this kernel has the first.
        with global_compiler_lock, locks.setdefault(path, FileLock(path)):
            return compile_kernel(self, signature)

    Dispatcher.compile = compile_alone


def _use_own_temporary_folder():
    """Collect all temporary files in one folder, to see what is left behind.

    It is removed at the exit; to look at files of a failed test use ``--basetemp``.
    """
    if WORKER is None:
        folder = tempfile.mkdtemp(prefix="fs-")
    else:
        folder = os.path.join(os.environ["TMPDIR"], WORKER)
        os.mkdir(folder)
    os.environ["TMPDIR"] = tempfile.tempdir = folder
    get_temp_dir()  # multiprocessing makes its folder now, and not within a test
    last = -101  # multiprocessing removes its folder at -100
    Finalize(None, shutil.rmtree, (folder, True), exitpriority=last)


_compile_once()
_use_own_temporary_folder()


ORDER = ["measures", "selectors", "sources", "runs", "src"]
"""What is tested first: kernels are compiled there, and not in many processes later."""


def pytest_collection_modifyitems(items):
    """Follow the data: kernels and selectors first, what starts processes last."""

    def place(item):
        folders = item.path.relative_to(ROOT).parts[:-1]
        first = [ORDER.index(name) for name in folders if name in ORDER]
        return first[0] if first else len(ORDER)

    items.sort(key=place)


def pytest_configure(config):
    """Listen to Ctrl-C, which is ignored in the background and by all children.

    Small data make selectors warn in most tests; those that are about a warning ask
    for it.
    """
    for start in _OF_SMALL_DATA:
        config.addinivalue_line("filterwarnings", f"ignore:{start}")
    config.addinivalue_line("filterwarnings", "error::numba.core.errors.NumbaWarning")
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _temporary_files():
    """What is there now, except what others remove at the exit."""
    others = ("pytest-of-", "sklearn_testing_")
    expected = (*others, os.path.basename(get_temp_dir()))
    names = os.listdir(os.environ["TMPDIR"])
    return {name for name in names if not name.startswith(expected)}


@pytest.fixture(scope="session")
def _left_behind():
    """Temporary files and the tests that made them; in the end, none may be left."""
    made_by = {}
    yield made_by
    assert {name: made_by.get(name) for name in _temporary_files()} == {}


@pytest.fixture(autouse=True)
def _blame(request, _left_behind):
    yield
    for name in _temporary_files():
        _left_behind.setdefault(name, request.node.nodeid)


@pytest.fixture(autouse=True)
def _doctest_folder(request, monkeypatch):
    """Give each docstring's examples a folder, and remove it: they do not tidy up."""
    if not isinstance(request.node, pytest.DoctestItem):
        yield
        return
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield
