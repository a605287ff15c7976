"""On a real cluster the scan ends the same, whoever is killed."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from urllib.error import HTTPError
from urllib.request import urlopen

import numpy as np
import psutil
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

import featstream
from engines.problems import OPTIONS, outcome, solve
from featstream import SAOLA, FisherZ, GroupSAOLA
from featstream.cli import main
from featstream.engines import DaskEngine, as_engine, local_cluster
from featstream.errors import DataError, EngineError, ParameterError
from featstream.sources import ArraySource, open_store, write_store

pytest.importorskip("distributed")

da = pytest.importorskip("dask.array")


@pytest.fixture(scope="module")
def client():
    with local_cluster(2, "1GiB") as connected:
        yield connected


def make_data(rng, n_features=400, n_samples=120):
    """Binary columns, each a noisy copy of the class or of a column before it."""
    y = rng.integers(0, 2, n_samples)
    X = rng.integers(0, 2, (n_samples, n_features)).astype(np.uint8)
    for j in range(n_features):
        origin = y if rng.random() < 0.3 or not j else X[:, rng.integers(0, j)]
        X[:, j] = np.where(rng.random(n_samples) < rng.random(), X[:, j], origin)
    return X, y


def test_an_engine_that_is_none_is_refused():
    with pytest.raises(ParameterError, match="must be 'dask', a Dask client"):
        as_engine("spark")
    with pytest.raises(ParameterError, match="of type int"):
        as_engine(3)
    with pytest.raises(ParameterError, match="there is none"):
        as_engine("dask")


def test_every_kind_of_source_ends_as_in_this_process(client, tmp_path):
    X, y = make_data(np.random.default_rng(0))
    local = solve(SAOLA(measure="su"), y, X)
    write_store(tmp_path / "x.cols", ArraySource(X), y)
    for data in (
        X,
        tmp_path / "x.cols",
        da.from_array(X, chunks=(60, 90)),
        open_store(tmp_path / "x.cols"),
    ):
        remote = solve(SAOLA(measure="su", engine="dask"), y, data)
        assert outcome(remote) == outcome(local)


def test_groups_may_be_scattered(client):
    rng = np.random.default_rng(1)
    X, y = make_data(rng)
    groups = rng.integers(0, 60, X.shape[1])
    for data in (X, da.from_array(X, chunks=(120, 90))):
        local, remote = (
            GroupSAOLA(measure="su")
            .start(y)
            .consume(data, groups=groups, engine=engine)
            for engine in (None, client)
        )
        assert outcome(remote) == outcome(local)


def test_a_dask_array_is_fitted_and_transformed_as_dask_users_expect(client):
    X, y = make_data(np.random.default_rng(2))
    lazy = da.from_array(X, chunks=(120, 100))
    selector = SAOLA(measure="su").fit(lazy, da.from_array(y))
    chosen = selector.transform(lazy)
    assert isinstance(chosen, da.Array)
    assert np.array_equal(chosen.compute(), X[:, selector.selected_])
    assert np.array_equal(selector.selected_, SAOLA(measure="su").fit(X, y).selected_)


def test_a_search_over_parameters_uses_the_cluster(client):
    X, y = make_data(np.random.default_rng(3), n_features=40)
    pipeline = make_pipeline(SAOLA(measure="su", engine="dask"), GaussianNB())
    search = GridSearchCV(pipeline, {"saola__bound": ["min", "max"]}, cv=2)
    assert clone(pipeline).fit(X, y)[0].engine == "dask"
    assert search.fit(X, y).best_estimator_[0].selected_.size


def test_a_run_that_began_on_a_cluster_ends_on_one_machine(client, tmp_path):
    X, y = make_data(np.random.default_rng(4))
    local = solve(SAOLA(measure="su"), y, X)

    class Stop(Exception):
        pass

    def stop(progress):
        if progress.n_seen > 150:
            raise Stop

    selector = SAOLA(measure="su", engine="dask").start(y)
    options = {"checkpoint": tmp_path / "run", "every": 0.0}
    with pytest.raises(Stop):
        selector.consume(X, progress=stop, **options)
    begun = featstream.resume(tmp_path / "run")
    assert 0 < begun.n_seen_ < X.shape[1]
    begun.engine = None
    assert outcome(begun.consume(X)) == outcome(local)
    again = SAOLA(measure="su").start(y).consume(X, **options)  # the engine may differ
    assert outcome(again) == outcome(local)


def test_a_worker_without_the_files_is_an_error_that_says_so(client, tmp_path):
    X, y = make_data(np.random.default_rng(5), n_features=30)
    write_store(tmp_path / "x.cols", ArraySource(X), y)
    source = open_store(tmp_path / "x.cols")
    source.reopener = lambda: lambda: open_store("/nowhere/x.cols")
    with pytest.raises(DataError, match="use shared storage"):
        SAOLA(measure="su").start(y).consume(source, engine=client)


def test_bad_data_are_the_same_error_as_in_this_process(client):
    X, y = make_data(np.random.default_rng(6))
    X = X.astype(float)
    X[7, 333] = np.nan
    messages = []
    for engine in (None, client):
        with pytest.raises(DataError) as error:
            SAOLA(measure="su").start(y).consume(X, engine=engine)
        messages.append(str(error.value))
    assert messages[0] == messages[1]
    assert "x333" in messages[0]


def test_a_local_cluster_listens_on_loopback_and_serves_no_pages(client):
    workers = client.scheduler_info()["workers"]
    for process in [psutil.Process(), *psutil.Process().children(recursive=True)]:
        for socket in process.net_connections():
            if socket.status == psutil.CONN_LISTEN:
                assert socket.laddr.ip == "127.0.0.1"
    for worker in workers.values():
        assert worker["memory_limit"] == 2**30
        address = f"http://127.0.0.1:{worker['services']['dashboard']}"
        for page in ("", "/info", "/metrics", "/status"):
            with pytest.raises(HTTPError, match="404"):
                urlopen(address + page)


def test_the_command_line_takes_the_address_of_a_scheduler(client, tmp_path, capsys):
    X, y = make_data(np.random.default_rng(7), n_features=200)
    path = tmp_path / "x.cols"
    write_store(path, ArraySource(X), y)
    found = []
    for flags in ([], ["--scheduler", client.scheduler.address]):
        assert (
            main(["select", "--selector", "saola", str(path), "--json", "-q", *flags])
            == 0
        )
        found.append(json.loads(capsys.readouterr().out)["selected"])
    assert found[0] == found[1]
    nowhere = ["--selector", "saola", "--scheduler", "nowhere"]
    assert main(["select", str(path), *nowhere]) == 1
    assert "There is no Dask scheduler at 'nowhere'" in capsys.readouterr().err
    for selector in ("fast-osfs", "ofs"):
        flags = ["--selector", selector, "--scheduler", "local"]
        assert main(["select", str(path), *flags]) == 1
        assert "--scheduler has no meaning" in capsys.readouterr().err


def test_a_lost_scheduler_and_lost_workers_are_errors():
    with local_cluster(1) as client:
        engine = DaskEngine(client, patience=0.1)
        assert engine.result(engine.submit(max, 1, 2)) == 2
        client.cluster.scale(0)
        with pytest.raises(EngineError, match="no workers"):
            engine.result(engine.submit(max, 1, 2))
        future = engine.submit(max, 1, 2)
        client.cluster.close()
        with pytest.raises(EngineError, match="lost"):
            engine.result(future)


def kill_some(client, n_kills, rng):
    """Kill a worker process now and then."""
    for _ in range(n_kills):
        time.sleep(float(rng.uniform(0.05, 0.6)))
        pids = [pid for pid in client.run(os.getpid).values() if pid != os.getpid()]
        if pids:
            os.kill(int(rng.choice(pids)), signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(50))
def test_killed_workers_change_nothing(seed, tmp_path):
    """Between one and three of them; every third run has groups."""
    rng = np.random.default_rng(seed)
    X, y = make_data(rng, n_features=1200)
    options = {name: rng.choice(values).item() for name, values in OPTIONS.items()}
    kind, given = SAOLA, {}
    if seed % 3 == 2:
        kind, given = GroupSAOLA, {"groups": np.arange(1200) // 7}
    measure = "su" if seed % 2 else FisherZ(alpha=0.05)
    selector = kind(measure=measure, **options)
    write_store(tmp_path / "x.cols", ArraySource(X), y)
    source = open_store(tmp_path / "x.cols")
    local = clone(selector).start(y).consume(source, **given)
    with local_cluster(2, "1GiB") as client:  # a kill may take its supervisor along
        killer = threading.Thread(
            target=kill_some, args=(client, int(rng.integers(1, 4)), rng)
        )
        killer.start()
        remote = selector.start(y).consume(source, engine=client, **given)
        killer.join()
    assert outcome(remote) == outcome(local)
