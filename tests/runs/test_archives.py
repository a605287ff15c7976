"""What was written once is read for ever."""

import zipfile

import numpy as np
import pytest
from fuzz.runs import KINDS, go_on, save_run
from scipy import sparse

import archives
import featstream
from featstream import SAOLA
from featstream.datasets import make_stream
from featstream.errors import RunError
from featstream.runs import state
from featstream.sources import open_store
from gather import as_array

VERSIONS = sorted(archives.FOLDER.glob("version-*.zip"))

pytestmark = pytest.mark.jit_only

each_version = pytest.mark.parametrize("path", VERSIONS, ids=lambda path: path.stem)


@pytest.fixture
def folder(path, tmp_path):
    with zipfile.ZipFile(path) as archive:
        archive.extractall(tmp_path)
    return tmp_path


@pytest.fixture
def data(folder):
    with np.load(folder / "data.npz", allow_pickle=False) as arrays:
        return arrays["X"], arrays["y"]


def test_the_version_of_today_is_kept():
    newest = archives.FOLDER / f"version-{archives.VERSION}.zip"
    assert newest in VERSIONS, "run tests/archives.py, and keep what it writes"


def test_an_archive_can_be_made(tmp_path):
    archives.write_archive(tmp_path)
    assert {path.name for path in (tmp_path / "runs").iterdir()} == {*KINDS}


@each_version
def test_runs_are_resumed(path, folder, data, tmp_path):
    """To what a run of today finds in the same data; and they continue."""
    runs = sorted((folder / "runs").iterdir())
    assert len(runs) >= 13
    for run in runs:
        old = featstream.resume(run)
        save_run(run.name, tmp_path / run.name, data[0])
        new = featstream.resume(tmp_path / run.name)
        # Since version 1, OFS draws the features that it explores in another way.
        if (path.stem, run.name) != ("version-1", "OFS-partial"):
            assert old.selected_.tolist() == new.selected_.tolist()
            np.testing.assert_allclose(old.scores_, new.scores_, rtol=0, atol=1e-9)
        assert old.get_params().keys() == new.get_params().keys()
        go_on(old)


@each_version
def test_stores_are_opened(path, folder, data):
    X, y = data
    stores = {path.stem: open_store(path) for path in (folder / "stores").iterdir()}
    np.testing.assert_array_equal(as_array(stores["dense"]), X)
    np.testing.assert_array_equal(as_array(stores["real"]), X / 3)
    np.testing.assert_array_equal(as_array(stores["sparse"]), X)
    np.testing.assert_array_equal(as_array(stores["ones"]), X > 0)
    if path.stem != "version-1":
        large = as_array(stores["large"])
        np.testing.assert_array_equal(large, X.astype(np.uint64) + 2**63)
    assert list(stores["dense"].names) == [f"gene_{j}" for j in range(X.shape[1])]
    assert (stores["dense"].y == "ill").tolist() == (y == 1).tolist()
    assert stores["sparse"].y.tolist() == y.tolist()
    assert stores["sparse"].n_entries == sparse.csc_array(X).nnz
    for store in stores.values():
        store.verify()


def save_with_interactions(folder, value, monkeypatch):
    """A run of SAOLA as it was saved when it had this parameter."""
    describe = state.describe_selector

    def with_interactions(selector):
        described = describe(selector)
        described["parameters"]["interactions"] = value
        return described

    stream = make_stream(n_features=300, seed=0)
    with monkeypatch.context() as patch:
        patch.setattr(state, "describe_selector", with_interactions)
        SAOLA(measure="su").start(stream.y).consume(stream.X, checkpoint=folder)
    return stream


def test_a_run_saved_without_interactions_is_resumed(tmp_path, monkeypatch):
    stream = save_with_interactions(tmp_path / "run", False, monkeypatch)
    expected = SAOLA(measure="su").fit(stream.X, stream.y)
    assert featstream.resume(tmp_path / "run").selected_.tolist() == (
        expected.selected_.tolist()
    )
    again = SAOLA(measure="su").start(stream.y)  # a folder that has its answer
    again.consume(stream.X, checkpoint=tmp_path / "run")
    assert again.selected_.tolist() == expected.selected_.tolist()


@pytest.mark.parametrize(
    "value", [True, {"selector": "InteractionScreen", "parameters": {"n_bins": 2}}]
)
def test_a_run_saved_with_interactions_says_what_to_do(value, tmp_path, monkeypatch):
    stream = save_with_interactions(tmp_path / "run", value, monkeypatch)
    with pytest.raises(RunError, match="once with InteractionScreen"):
        featstream.resume(tmp_path / "run")
    begun = SAOLA(measure="su").start(stream.y)
    with pytest.raises(RunError, match="once with InteractionScreen"):
        begun.consume(stream.X, checkpoint=tmp_path / "run")
