"""Settings of the whole suite."""

from __future__ import annotations

import os
from pathlib import Path

import hypothesis
import numba
import pytest

import featstream

hypothesis.settings.register_profile(
    "featstream", deadline=None, derandomize=True, print_blob=True
)
hypothesis.settings.load_profile("featstream")


def pytest_configure(config):
    _forget_stale_kernels()


def _forget_stale_kernels():
    """A cached kernel does not notice when one that it calls has changed."""
    folder = Path(featstream.__file__).parent
    cached = [*folder.rglob("*.nbi"), *folder.rglob("*.nbc")]
    if not cached:
        return
    newest = max(path.stat().st_mtime for path in _with_kernels(folder))
    if newest > min(path.stat().st_mtime for path in cached):
        for path in cached:
            path.unlink(missing_ok=True)


def _with_kernels(folder):
    """The modules that hold kernels, and the one that compiles them."""
    for path in folder.rglob("*.py"):
        text = path.read_text("utf-8")
        if "featstream.jit" in text or path.name == "jit.py":
            yield path


@pytest.fixture
def has_jit():
    """Whether kernels are compiled in this run."""
    return not numba.config.DISABLE_JIT and os.environ.get("NUMBA_DISABLE_JIT") != "1"
