"""A driver or a scheduler that is killed: the same answer later, or an error."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import featstream
from engines.problems import outcome, solve
from featstream import SelectFromStream
from featstream.engines import DaskEngine
from featstream.errors import EngineError
from featstream.sources import ArraySource, open_store, write_store

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.slow

LOOPBACK = ["--host", "127.0.0.1", "--no-dashboard"]
DRIVER = """
import os, signal, sys
from distributed import Client
from featstream import SelectFromStream
from featstream.sources import open_store

store, run, scheduler = sys.argv[1:]

def kill(progress):
    if progress.n_seen >= 500:
        os.kill(os.getpid(), signal.SIGKILL)

source = open_store(store)
selector = SelectFromStream(measure="su").start(source.y)
client = Client(scheduler_file=scheduler)
selector.consume(source, engine=client, progress=kill, checkpoint=run, every=0.0)
"""


@pytest.fixture
def cluster(tmp_path):
    """The file and the process of a scheduler with one worker."""
    file = tmp_path / "scheduler.json"
    dask = [sys.executable, "-m", "dask"]
    at = ["--scheduler-file", str(file)]
    own = os.environ | {"DASK_TEMPORARY_DIRECTORY": str(tmp_path)}
    scheduler = subprocess.Popen(
        [*dask, "scheduler", *LOOPBACK, "--port", "0", *at],
        stderr=subprocess.DEVNULL,
        env=own,
    )
    while not file.exists():
        time.sleep(0.1)
    one = ["--nthreads", "1", "--no-nanny", "--death-timeout", "20"]
    worker = subprocess.Popen(
        [*dask, "worker", *LOOPBACK, *one, *at],
        stderr=subprocess.DEVNULL,
        env=own,
    )
    yield file, scheduler
    for process in (worker, scheduler):
        process.kill()
        process.wait()


@pytest.fixture
def problem(tmp_path):
    """A store, and what is selected from it in this process."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    X = rng.integers(0, 2, (200, 3000)).astype(float)
    X[:, ::50] = np.where(rng.random((200, 60)) < 0.4, y[:, None], X[:, ::50])
    write_store(tmp_path / "x.cols", ArraySource(X), y)
    source = open_store(tmp_path / "x.cols")
    return source, solve(SelectFromStream(measure="su"), source.y, source)


def test_a_driver_that_is_killed_is_resumed(cluster, problem, tmp_path):
    source, local = problem
    file, _ = cluster
    run = tmp_path / "run"
    arguments = [str(tmp_path / "x.cols"), str(run), str(file)]
    done = subprocess.run([sys.executable, "-c", DRIVER, *arguments], check=False)
    assert done.returncode == -signal.SIGKILL
    selector = featstream.resume(run)
    assert 0 < selector.n_seen_ < source.n_features
    with distributed.Client(scheduler_file=str(file)) as client:
        selector.consume(source, engine=client)
    assert outcome(selector) == outcome(local)


def test_a_scheduler_that_is_killed_is_an_error(cluster, problem, tmp_path):
    source, local = problem
    file, scheduler = cluster
    run = tmp_path / "run"

    def kill(progress):
        if progress.n_seen >= 500 and scheduler.poll() is None:
            scheduler.kill()
            scheduler.wait()

    client = distributed.Client(scheduler_file=str(file), timeout=5)
    selector = SelectFromStream(measure="su").start(source.y)
    engine = DaskEngine(client, patience=5.0)
    with pytest.raises(EngineError, match=r"featstream\.resume continues it"):
        selector.consume(
            source, engine=engine, progress=kill, checkpoint=run, every=0.0
        )
    client.close(timeout=2)
    selector = featstream.resume(run)
    assert 0 < selector.n_seen_ < source.n_features
    assert outcome(selector.consume(source)) == outcome(local)
