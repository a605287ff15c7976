"""On a real cluster the scan ends the same, whoever is killed."""

import json
import os
import signal
import threading
import time
from importlib.util import find_spec
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
import spies
from checks import state
from crash_runs import Stop, stop_at
from engines.problems import make_binary, solve
from featstream import SAOLA, Experiment, GroupSAOLA
from featstream.cli import main
from featstream.engines import DaskEngine, as_engine, local_cluster
from featstream.errors import (
    DataError,
    EngineError,
    MissingExtraError,
    ParameterError,
)
from featstream.evaluation import RandomSplits
from featstream.parallel import handling_interrupts
from featstream.selectors.saola import workers
from featstream.sources import ArraySource, as_source, open_store, write_store
from featstream.sources.parquet import FeatureTableSource
from science_files import write_feature_rows, write_zarr

distributed = pytest.importorskip("distributed")

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")


def test_an_engine_that_is_none_is_refused():
    with pytest.raises(ParameterError, match="must be 'dask', a Dask client"):
        as_engine("spark")
    with pytest.raises(ParameterError, match="of type int"):
        as_engine(3)
    with pytest.raises(ParameterError, match="there is none"):
        as_engine("dask")


@pytest.mark.parametrize("kind", ["store", "zarr", "parquet", "folder"])
def test_workers_read_the_data(kind, client, tmp_path, monkeypatch):
    """The tasks carry no values, and this process reads no more than the beginning."""
    X, y = make_binary(np.random.default_rng(0))
    names = [f"f{j}" for j in range(X.shape[1])]
    data = tmp_path / "x.cols"
    if kind == "store":
        write_store(data, ArraySource(X), y)
    elif kind == "zarr":
        data = write_zarr(tmp_path / "x.zarr", X, (120, 50))
    elif kind == "parquet":
        path = tmp_path / "x.parquet"
        write_feature_rows(path, X, names, has_lists=True, group=50)
        data = FeatureTableSource(path)
    else:
        data = tmp_path / "x"
        data.mkdir()
        for i, begin in enumerate(range(0, X.shape[1], 100)):
            part = ArraySource(np.asfortranarray(X[:, begin : begin + 100]))
            write_store(data / f"{i}.cols", part)
    local = solve(SAOLA(measure="su"), y, data)
    monkeypatch.setattr(workers, "_carriers", None)
    source = as_source(data)
    monkeypatch.setattr(type(source), "blocks", only_the_first(type(source).blocks))
    remote = solve(SAOLA(measure="su", engine="dask"), y, source)
    assert state(remote) == state(local)
    assert remote.n_seen_ == X.shape[1]


def only_the_first(blocks):
    """What reads the first block of a source, and then fails."""

    def read(self, start=0):
        yield next(blocks(self, start)).part(0, 1)
        raise AssertionError("this process reads on")

    return read


@pytest.mark.parametrize("chunks", [(120, 90), (50, -1)], ids=["columns", "rows"])
def test_a_dask_array_is_computed_and_its_blocks_are_sent(chunks, client):
    X, y = make_binary(np.random.default_rng(8))
    local = solve(SAOLA(measure="su"), y, X)
    lazy = da.from_array(X, chunks=chunks)
    remote = solve(SAOLA(measure="su", engine="dask"), da.from_array(y), lazy)
    assert state(remote) == state(local)


def test_groups_may_be_scattered(client):
    rng = np.random.default_rng(1)
    X, y = make_binary(rng)
    groups = rng.integers(0, 60, X.shape[1])
    local = solve(GroupSAOLA(measure="su"), y, X, groups=groups)
    for data in (X, da.from_array(X, chunks=(120, 90))):
        remote = solve(GroupSAOLA(measure="su"), y, data, groups=groups, engine=client)
        assert state(remote) == state(local)


def test_a_dask_array_is_fitted_and_transformed_as_dask_users_expect(client):
    X, y = make_binary(np.random.default_rng(2))
    lazy = da.from_array(X, chunks=(120, 100))
    selector = SAOLA(measure="su").fit(lazy, da.from_array(y))
    chosen = selector.transform(lazy)
    assert isinstance(chosen, da.Array)
    assert np.array_equal(chosen.compute(), X[:, selector.selected_])
    assert np.array_equal(selector.selected_, SAOLA(measure="su").fit(X, y).selected_)


def test_a_search_over_parameters_takes_a_dask_array(client):
    X, y = make_binary(np.random.default_rng(3), n_features=40)
    lazy, labels = da.from_array(X, chunks=(60, 20)), da.from_array(y, chunks=60)
    pipeline = make_pipeline(SAOLA(measure="su", engine="dask"), GaussianNB())
    searches = [
        GridSearchCV(clone(pipeline), {"saola__bound": ["min", "max"]}, cv=2).fit(*data)
        for data in ((X, y), (lazy, labels))
    ]
    first, second = (search.cv_results_["mean_test_score"] for search in searches)
    assert np.array_equal(first, second)
    best = searches[1].best_estimator_[0]
    assert best.engine == "dask"
    assert best.selected_.size


def test_a_run_that_began_on_a_cluster_ends_on_one_machine(client, tmp_path):
    X, y = make_binary(np.random.default_rng(4))
    n_samples, n_features = X.shape
    X = ArraySource(np.asfortranarray(X), block_bytes=50 * n_samples)
    local = solve(SAOLA(measure="su"), y, X)

    selector = SAOLA(measure="su", engine="dask").start(y)
    options = {"checkpoint": tmp_path / "run", "every": 0.0}
    with pytest.raises(Stop):
        selector.consume(X, progress=stop_at(150), **options)
    begun = featstream.resume(tmp_path / "run")
    assert 0 < begun.n_seen_ < n_features
    begun.engine = None
    assert state(begun.consume(X)) == state(local)
    again = SAOLA(measure="su").start(y).consume(X, **options)  # the engine may differ
    assert state(again) == state(local)


def test_a_worker_without_the_files_is_an_error_that_says_so(client, tmp_path):
    X, y = make_binary(np.random.default_rng(5), n_features=30)
    write_store(tmp_path / "x.cols", ArraySource(X), y)
    source = open_store(tmp_path / "x.cols")
    source.reopener = lambda: lambda: open_store("/nowhere/x.cols")
    with pytest.raises(DataError, match="use shared storage"):
        SAOLA(measure="su").start(y).consume(source, engine=client)


def test_bad_data_are_the_same_error_as_in_this_process(client):
    X, y = make_binary(np.random.default_rng(6))
    X = X.astype(float)
    X[7, 333] = np.nan
    messages = []
    for engine in (None, client):
        with pytest.raises(DataError) as error:
            SAOLA(measure="su").start(y).consume(X, engine=engine)
        messages.append(str(error.value))
    assert messages[0] == messages[1]
    assert "x333" in messages[0]


def test_a_local_cluster_admits_only_who_has_its_key(client):
    """Any user of the machine can reach the port; code runs for its owner alone."""
    address = client.scheduler.address
    assert address.startswith("tls://127.0.0.1:")
    assert all(
        worker.startswith("tls://") for worker in client.scheduler_info()["workers"]
    )
    strangers = [
        (address.replace("tls", "tcp"), None),
        (address, distributed.Security.temporary()),  # a key, but of somebody else
    ]
    for place, security in strangers:
        with pytest.raises((OSError, TypeError)):
            distributed.Client(
                place, timeout="3s", security=security, set_as_default=False
            )
    with distributed.Client(
        address, security=client.security, set_as_default=False
    ) as friend:
        assert friend.submit(max, 3, 4).result() == 4


def test_a_local_cluster_without_cryptography_is_refused(monkeypatch):
    def find(name):
        return None if name == "cryptography" else find_spec(name)

    monkeypatch.setattr("featstream.engines.dask.find_spec", find)
    with pytest.raises(MissingExtraError, match="needs cryptography, for keys"):
        local_cluster(1).__enter__()


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


def test_the_command_line_refuses_schedulers_that_are_not_there(tmp_path, capsys):
    path = tmp_path / "x.npz"
    np.savez(path, X=np.eye(4), y=[0, 1, 0, 1])
    nowhere = ["--selector", "saola", "--scheduler", "nowhere"]
    assert main(["select", str(path), *nowhere]) == 1
    assert "There is no Dask scheduler at 'nowhere'" in capsys.readouterr().err
    for selector in ("fast-osfs", "ofs"):
        flags = ["--selector", selector, "--scheduler", "local"]
        assert main(["select", str(path), *flags]) == 1
        assert "--scheduler has no meaning" in capsys.readouterr().err


def make_experiment(**options):
    X, y = make_binary(np.random.default_rng(9), n_features=40)
    return Experiment(
        {"SAOLA": SAOLA(measure="su"), "first": spies.FirstFeatures(), **options},
        {"made": (X, y)},
        classifiers=["knn"],
        protocol=RandomSplits(n_runs=1),
        time_limit=4.0,
    )


def wait_until(is_so):
    deadline = time.monotonic() + 120
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_comparison_on_a_cluster_finds_what_it_finds_here(client, tmp_path):
    slow = {"slow": spies.FirstFeatures(3, seconds=600.0)}
    local = make_experiment().run()
    engine = DaskEngine(client)
    remote = make_experiment(**slow).run(tmp_path / "out", engine=engine)
    assert engine.n_messages == 3
    rows = spies.without_costs(remote)
    assert [row for row in rows if row["selector"] != "slow"] == spies.without_costs(
        local
    )
    reasons = {row["reason"] for row in rows if row["selector"] == "slow"}
    assert reasons == {"exceeded 4 s"}
    again = make_experiment(**slow).run(tmp_path / "out", engine=engine)
    assert engine.n_messages == 3
    assert spies.without_costs(again) == rows
    with pytest.raises(ParameterError, match="Leave one out"):
        make_experiment().run(engine=engine, n_jobs=2)


def test_no_cell_outlives_a_comparison_that_is_interrupted(client, tmp_path):
    seen = tmp_path / "seen"
    seen.mkdir()
    slow = {"slow": spies.FirstFeatures(folder=seen, seconds=600.0)}

    def interrupt():
        wait_until(lambda: list(seen.iterdir()))
        os.kill(os.getpid(), signal.SIGINT)

    with handling_interrupts(signal.default_int_handler):
        threading.Thread(target=interrupt).start()
        with pytest.raises(KeyboardInterrupt):
            make_experiment(**slow).run(tmp_path / "out", engine=client)
    pids = [int(path.stem.split("-")[1]) for path in seen.iterdir()]
    wait_until(lambda: not any(psutil.pid_exists(pid) for pid in pids))


@pytest.mark.slow
def test_a_cell_whose_worker_dies_is_computed_again(tmp_path):
    local = make_experiment().run()
    (tmp_path / "seen").mkdir()
    selector = spies.FirstFeatures(folder=tmp_path / "seen", seconds=1.0)
    with local_cluster(2, "1GiB") as client:

        def kill():
            wait_until(lambda: list((tmp_path / "seen").iterdir()))
            for pid in client.run(os.getpid).values():
                os.kill(pid, signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        remote = make_experiment(first=selector).run(tmp_path / "out", engine=client)
        killer.join()
    assert spies.without_costs(remote) == spies.without_costs(local)


@pytest.fixture
def keys(client):
    """The keys of the cluster in Dask's configuration, where commands look for them."""
    security = client.security
    given = {
        "ca-file": security.tls_ca_file,
        "client.key": security.tls_client_key,
        "client.cert": security.tls_client_cert,
    }
    names = {f"distributed.comm.tls.{name}": key for name, key in given.items()}
    with dask.config.set(names):
        yield


def test_a_command_without_the_keys_of_a_cluster_says_so(client, tmp_path, capsys):
    np.savez(tmp_path / "x.npz", X=np.eye(4), y=[0, 1, 0, 1])
    address = client.scheduler.address
    assert main(["select", str(tmp_path / "x.npz"), "--scheduler", address]) == 1
    said = capsys.readouterr().err
    assert "speaks TLS, and Dask's configuration has no keys" in said


@pytest.mark.usefixtures("keys")
def test_commands_run_on_a_cluster(client, tmp_path, capsys):
    """``select`` with its default selector, and ``compare``."""
    X, y = make_binary(np.random.default_rng(7), n_features=60)
    address = ["--scheduler", client.scheduler.address]
    store = str(tmp_path / "x.cols")
    write_store(store, ArraySource(X), y)
    found = []
    for flags in ([], address):
        assert main(["select", store, "--json", "-q", *flags]) == 0
        found.append(json.loads(capsys.readouterr().out)["selected"])
    assert found[0] == found[1]
    compare = ["compare", store, "--selectors", "saola", "--runs", "1"]
    compare += ["--classifiers", "knn", "--json", "-q"]
    accuracies = []
    for flags in ([], address):
        assert main([*compare, *flags]) == 0
        rows = json.loads(capsys.readouterr().out)["results"]
        accuracies.append([row["accuracy"] for row in rows])
    assert accuracies[0] == accuracies[1]
    assert main([*compare, *address, "--jobs", "2"]) == 1
    assert "Leave one out" in capsys.readouterr().err


def test_a_lost_scheduler_and_lost_workers_are_errors():
    with local_cluster(1) as client:
        engine = DaskEngine(client, patience=0.1)
        assert engine.result(engine.submit(max, 1, 2)) == 2
        done = engine.submit(max, 1, 2)
        assert engine.first_done([done]) is done
        client.cluster.scale(0)
        wait_until(lambda: not engine._workers())
        for future in (done, engine.submit(max, 3, 4)):  # a result dies with its worker
            with pytest.raises(EngineError, match="no workers"):
                engine.result(future)
        future = engine.submit(max, 1, 2)
        client.cluster.close()
        with pytest.raises(EngineError, match="lost"):
            engine.result(future)


def test_workers_that_are_paused_are_no_workers():
    keep_full = {"distributed.worker.memory.terminate": False}
    with dask.config.set(keep_full), local_cluster(1, "64MiB") as client:
        engine = DaskEngine(client, patience=0.1)
        wait_until(lambda: not engine._can_work())
        with pytest.raises(EngineError, match="paused"):
            engine.result(engine.submit(max, 1, 2))


@pytest.mark.parametrize(
    ("workers", "can_work"),
    [
        ([], False),
        ([("running", {})], True),
        ([("paused", {"ready": 1})], False),
        ([("paused", {"executing": 1})], True),
        ([("paused", {"ready": 1}), ("running", {"memory": 3})], False),
        ([("paused", {"ready": 1}), ("running", {"ready": 1})], True),
    ],
)
def test_what_waits_at_a_paused_worker_waits_for_ever(
    workers, can_work, client, monkeypatch
):
    """Although others have nothing to do: Dask does not move it."""
    known = [
        {"status": status, "metrics": {"task_counts": counts}}
        for status, counts in workers
    ]
    monkeypatch.setattr(DaskEngine, "_workers", lambda self: known)
    assert DaskEngine(client)._can_work() == can_work
