"""Whoever is killed: the same answer, the same answer later, or an error."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial

import numpy as np
import pytest
from sklearn.base import clone

import featstream
from checks import state
from engines.problems import make_binary, make_options, solve
from featstream import SAOLA, FisherZ, GroupSAOLA, SelectFromStream
from featstream.engines import DaskEngine
from featstream.errors import EngineError
from featstream.sources import ArraySource, open_store, write_store

distributed = pytest.importorskip("distributed")

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


def open_deadly(path, folder):
    """A store; who reads it dies as the files of a folder say."""
    source = open_store(path)
    read = source.blocks

    def blocks(start=0):
        die(folder, start)
        yield from read(start)

    source.blocks = blocks
    return source


def die(folder, start):
    """Kill this process, for each file ``POSITION-NTH-MILLISECONDS.kill`` once.

    The kill comes that number of milliseconds after the process has begun, for the nth
    time, to read from the position or a later one. Features are read again if the
    worker that read them has died.
    """
    with (folder / "reads").open("a") as log:
        log.write(f"{start}\n")
    n_reads = (folder / "reads").read_text().split().count(str(start))
    for order in sorted(folder.glob("*.kill")):
        position, nth, milliseconds = map(int, order.stem.split("-"))
        if start < position or n_reads < nth:
            continue
        with suppress(FileNotFoundError):  # another worker was quicker
            order.unlink()
            if not milliseconds:
                os.kill(os.getpid(), signal.SIGKILL)
            command = f"sleep {milliseconds / 1000}; kill -9 {os.getpid()}"
            subprocess.Popen(["sh", "-c", command], stderr=subprocess.DEVNULL)


SLOW = [pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 51)]


@pytest.mark.parametrize("seed", [0, *SLOW])
def test_killed_workers_change_nothing(seed, client, tmp_path):
    """One to three of them: the first in the middle of a task, others near one."""
    rng = np.random.default_rng(seed)
    X, y = make_binary(rng, n_features=1200)
    measure = "su" if rng.random() < 0.5 else FisherZ(alpha=0.05)
    given = {}
    if seed % 3 == 0:
        selector = SelectFromStream(measure=measure)
    elif seed % 3 == 1:
        selector = GroupSAOLA(measure=measure, **make_options(rng))
        given = {"groups": np.arange(1200) // 7}
    else:
        selector = SAOLA(measure=measure, **make_options(rng))
    path = tmp_path / "x.cols"
    write_store(path, ArraySource(X), y)
    source = open_store(path)
    local = clone(selector).start(y).consume(source, **given)
    first = rng.integers(0, 600)
    (tmp_path / f"{first}-1-0.kill").touch()
    for _ in range(rng.integers(0, 3)):  # not later: what the first kills is read again
        where, nth, delay = rng.integers(0, [first + 1, 2, 50])
        (tmp_path / f"{where}-{nth + 1}-{delay}.kill").touch()
    source.reopener = lambda: partial(open_deadly, path, tmp_path)
    client.wait_for_workers(2, timeout=300)  # all that were killed before are back
    engine = DaskEngine(client, patience=300.0)  # of a busy machine
    remote = selector.start(y).consume(source, engine=engine, **given)
    assert not list(tmp_path.glob("*.kill"))
    assert state(remote) == state(local)


@pytest.fixture
def cluster(tmp_path):
    """The file and the process of a scheduler with one worker."""
    file = tmp_path / "scheduler.json"
    dask = [sys.executable, "-m", "dask"]
    at = ["--scheduler-file", str(file)]
    own = os.environ | {"DASK_TEMPORARY_DIRECTORY": str(tmp_path)}
    start = partial(subprocess.Popen, stderr=subprocess.DEVNULL, env=own)
    scheduler = start([*dask, "scheduler", *LOOPBACK, "--port", "0", *at])
    while not file.exists():
        time.sleep(0.1)
    one = ["--nthreads", "1", "--no-nanny", "--death-timeout", "20"]
    worker = start([*dask, "worker", *LOOPBACK, *one, *at])
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


@pytest.mark.slow
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
    assert state(selector) == state(local)


@pytest.mark.slow
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
    client.wait_for_workers(1, timeout=300)
    engine = DaskEngine(client, patience=300.0)
    with pytest.raises(EngineError, match=r"featstream\.resume continues it"):
        selector.consume(
            source, engine=engine, progress=kill, checkpoint=run, every=0.0
        )
    client.close(timeout=2)
    selector = featstream.resume(run)
    assert 0 < selector.n_seen_ < source.n_features
    assert state(selector.consume(source)) == state(local)
