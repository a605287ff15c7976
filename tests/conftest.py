"""Settings of the whole suite."""

from __future__ import annotations

import os
from pathlib import Path

import hypothesis
import numba
import pytest

import featstream.kernels

hypothesis.settings.register_profile(
    "featstream", deadline=None, derandomize=True, print_blob=True
)
hypothesis.settings.load_profile("featstream")


def pytest_configure(config):
    _forget_stale_kernels()


def _forget_stale_kernels():
    """A cached kernel does not notice when one that it calls has changed."""
    folder = Path(featstream.kernels.__file__).parent
    cached = [*folder.glob("__pycache__/*.nbi"), *folder.glob("__pycache__/*.nbc")]
    if not cached:
        return
    newest = max(path.stat().st_mtime for path in folder.glob("*.py"))
    if newest > min(path.stat().st_mtime for path in cached):
        for path in cached:
            path.unlink(missing_ok=True)


@pytest.fixture
def has_jit():
    """Whether kernels are compiled in this run."""
    return not numba.config.DISABLE_JIT and os.environ.get("NUMBA_DISABLE_JIT") != "1"
