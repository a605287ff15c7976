"""Names of samples: in the same order wherever both sides have them, or an error."""

import json

import numpy as np
import pytest

import featstream
from featstream import SAOLA, GroupSAOLA
from featstream.cli import main
from featstream.datasets import make_stream
from featstream.errors import DataError
from featstream.sources import ArraySource, ChainedSource, open_dataset
from science_files import write_plink

pd = pytest.importorskip("pandas")

SWAPPED = "sample 0 is 'P1', but 'P0' in"


@pytest.fixture(scope="module")
def stream():
    return make_stream(
        n_samples=24, n_features=12, n_informative=2, n_redundant=2, seed=5
    )


def frame(X, names, prefix="a"):
    return pd.DataFrame(
        X, index=names, columns=[f"{prefix}{j}" for j in range(X.shape[1])]
    )


@pytest.fixture
def names(stream):
    return [f"P{i}" for i in range(stream.y.size)]


@pytest.fixture
def swapped(names):
    return [names[1], names[0], *names[2:]]


@pytest.fixture
def begun(stream, names):
    """A selector that has seen samples with names."""
    selector = SAOLA(measure="su").start(stream.y)
    return selector.consume(frame(stream.X, names))


def test_another_order_is_refused(begun, stream, names, swapped):
    with pytest.raises(DataError, match=SWAPPED):
        begun.consume(frame(stream.X, swapped, "b"))
    assert begun.n_seen_ == stream.X.shape[1]
    begun.update(pd.Series(stream.X[:, 0], index=names), name="first")
    with pytest.raises(DataError, match=SWAPPED):
        begun.update(pd.Series(stream.X[:, 1], index=swapped), name="second")
    selector = GroupSAOLA(measure="su").start(stream.y)
    selector.update_group(frame(stream.X[:, :3], names), "one")
    with pytest.raises(DataError, match=SWAPPED):
        selector.update_group(frame(stream.X[:, 3:], swapped, "b"), "two")


def test_other_samples_are_refused(begun, stream, names):
    other = [*names[:3], "Q", *names[4:]]
    with pytest.raises(DataError, match=r"other samples .* sample 3 is 'Q'"):
        begun.consume(frame(stream.X, other, "b"))


def test_names_on_one_side_only_are_not_compared(begun, stream, names):
    begun.consume(frame(stream.X, range(len(names)), "b"))
    begun.consume(ArraySource(stream.X))
    begun.consume(frame(stream.X, names, "c"))
    assert begun.n_seen_ == 4 * stream.X.shape[1]


def test_a_target_in_another_order_is_refused(stream, names, swapped):
    y = pd.Series(stream.y, index=names)
    SAOLA(measure="su").fit(frame(stream.X, names), y)
    with pytest.raises(DataError, match=r"sample 0 is 'P1', but 'P0' in y"):
        SAOLA(measure="su").fit(frame(stream.X, swapped), y)


def test_a_run_remembers_its_samples(tmp_path, stream, names, swapped):
    run = tmp_path / "run"
    selector = SAOLA(measure="su").start(stream.y)
    selector.consume(frame(stream.X, names), checkpoint=run)
    before = (run / "run.json").read_bytes()
    with pytest.raises(DataError, match=SWAPPED):
        featstream.resume(run).consume(frame(stream.X, swapped, "b"))
    assert (run / "run.json").read_bytes() == before
    featstream.resume(run).consume(frame(stream.X, names, "b"))
    assert featstream.resume(run).n_seen_ == 2 * stream.X.shape[1]


def test_a_chain_of_sources_needs_one_order(stream, names, swapped):
    one, other = frame(stream.X, names), frame(stream.X, swapped, "b")
    sources = [featstream.sources.as_source(part) for part in (one, other)]
    with pytest.raises(DataError, match="Source 1 has the same samples as Source 0"):
        ChainedSource(sources)
    assert list(ChainedSource([sources[0], sources[0]]).sample_names) == names


def write_h5ad(path, X, y, names, prefix):
    anndata = pytest.importorskip("anndata")
    obs = pd.DataFrame({"y": y}, index=names)
    var = pd.DataFrame(index=[f"{prefix}{j}" for j in range(X.shape[1])])
    anndata.AnnData(X.astype(float), obs=obs, var=var).write_h5ad(path)


def test_h5ad_and_plink_give_the_names_of_samples(tmp_path, stream, names):
    write_h5ad(tmp_path / "a.h5ad", stream.X, stream.y, names, "a")
    source = open_dataset(tmp_path / "a.h5ad").source
    assert list(source.sample_names) == names
    genotypes, people = stream.X[:, :1].clip(0, 2), [(name, name) for name in names]
    write_plink(tmp_path / "a.bed", genotypes, stream.y + 1, samples=people)
    source = open_dataset(tmp_path / "a.bed").source
    assert source.sample_names == [f"{name} {name}" for name in names]


def test_files_need_one_order(tmp_path, stream, names, swapped, capsys):
    """In a folder, and for a run: the labels agree, so that nothing else would tell."""
    y = np.array([0, 0, *stream.y[2:]])
    a, b, c = (str(tmp_path / f"{prefix}.h5ad") for prefix in "abc")
    write_h5ad(a, stream.X, y, names, "a")
    write_h5ad(b, stream.X, y, swapped, "b")
    with pytest.raises(DataError, match=r"b\.h5ad has the same samples as .*a\.h5ad"):
        open_dataset(tmp_path)
    write_h5ad(c, stream.X, y, names, "c")
    run = str(tmp_path / "run")
    assert main(["select", a, "-o", run, "--measure", "su", "-q", "--json"]) == 0
    assert main(["update", run, b, "-q"]) == 1
    assert SWAPPED in capsys.readouterr().err
    assert main(["update", run, c, "-q", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["n_features"] == 2 * stream.X.shape[1]
