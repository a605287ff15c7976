"""Other processes, and runs that are stopped or killed after any block."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time

import numpy as np
from sklearn.base import clone

from featstream.runs.folder import is_run
from featstream.sources import ArraySource


class Stop(Exception):
    """Stands for a kill, where a real one would be slow."""


def stop_at(n, error=Stop):
    """An observer of `consume` that stops it after ``n`` features."""

    def observe(progress):
        if progress.n_seen >= n:
            raise error

    return observe


def narrow(X, n_columns=20):
    """A source in blocks of ``n_columns`` columns."""
    columns = np.asfortranarray(X)
    width = n_columns * columns.itemsize * columns.shape[0]
    return ArraySource(columns, block_bytes=width)


def run_python(code, *arguments, **environment):
    """Run code in a new process that must succeed; what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=os.environ | environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done


def start_command(*arguments, **options):
    """The command line in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "featstream", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        **options,
    )


class Killer:
    """Runs children on one data set, and kills them at random moments."""

    def __init__(self, selector, X, y, **how):
        self.selector, self.how, self.X, self.y = selector, how, X, y
        self.rng = np.random.default_rng(0)
        self.context = multiprocessing.get_context("fork")

    def select(self, folder):
        selector = clone(self.selector).start(self.y)
        source = narrow(self.X, 8)
        return selector.consume(source, checkpoint=folder, every=0, **self.how)

    def kill_one(self, folder, longest):
        """Whether a child was killed, and not done before.

        The wait begins when there is a checkpoint of this child's own.
        """
        before = self.saved(folder)
        child = self.context.Process(target=self._child, args=(folder,))
        child.start()
        deadline = time.monotonic() + 60
        while self.saved(folder) == before and child.is_alive():
            assert time.monotonic() < deadline
            time.sleep(0.001)
        time.sleep(float(self.rng.uniform(0, longest)))
        os.kill(child.pid, signal.SIGKILL)
        child.join()
        assert is_run(folder)
        return child.exitcode == -signal.SIGKILL

    def saved(self, folder):
        path = folder / "run.json"  # the last file of a generation
        return path.read_bytes() if path.exists() else None

    def _child(self, folder):
        self.select(folder)
        os._exit(0)
