"""Compiled kernels do not check their indices; here they do."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.slow
@pytest.mark.jit_only
def test_no_kernel_reaches_beyond_an_array():
    environment = os.environ | {"NUMBA_BOUNDSCHECK": "1"}
    environment.pop("PYTEST_XDIST_WORKER", None)  # it is a run of its own
    folders = ["tests/measures", "tests/selectors/test_saola.py"]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", *folders],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-3000:]
