"""Names of samples: in the same order wherever both sides have them, or an error."""

import json
from functools import partial

import numpy as np
import pytest

import featstream
from featstream import SAOLA, GroupSAOLA
from featstream.cli import main
from featstream.datasets import make_stream
from featstream.errors import DataError, FeatstreamWarning
from featstream.sources import ArraySource, ChainedSource, open_dataset
from science_files import write_plink

pd = pytest.importorskip("pandas")


@pytest.fixture
def run(capsys):
    """Run a command, and return what it said."""

    def run(*words, code=0):
        assert main([str(word) for word in words]) == code
        return "".join(capsys.readouterr())

    return run


@pytest.fixture
def fail(run):
    return partial(run, code=1)


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


# Numbers of rows are an order too -----------------------------------------------


@pytest.fixture
def numbered(stream):
    """A frame that pandas has numbered, and its target."""
    X = frame(stream.X, range(stream.y.size))
    return X, pd.Series(stream.y, index=X.index)


def fit(X, y):
    return SAOLA(measure="su").fit(X, y)


def test_a_shuffled_target_is_refused(numbered):
    X, y = numbered
    with pytest.raises(DataError, match=r"in another order: .*y\.loc\[X\.index\]"):
        fit(X, y.sample(frac=1, random_state=0))
    with pytest.raises(DataError, match="in another order"):
        fit(X.sample(frac=1, random_state=0), y)
    both = X.assign(y=y).sample(frac=1, random_state=0)
    fit(both.drop(columns="y"), both["y"])
    fit(X, pd.Series(y.to_numpy(), index=np.arange(1, y.size + 1)))  # both only count
    fit(X.to_numpy(), y.sample(frac=1, random_state=0))  # an array names no rows


def test_rows_that_are_only_in_part_the_same_are_refused(numbered):
    """As with a target that was cut by other rows than the features."""
    X, y = numbered
    message = r"12 of 16 are in both, and sample 0 is '0', .*y\.to_numpy\(\)"
    with pytest.raises(DataError, match=message):
        fit(X[:16], y[4:20])
    fit(X[4:20], y[4:20])
    fit(X[:16], y[4:20].to_numpy())


def test_rows_that_are_named_otherwise_are_trusted(numbered, names):
    X, y = numbered
    fit(X, y.set_axis(names))  # one side only counts
    fit(X.set_axis(names), y)
    fit(X, y.set_axis(np.arange(y.size) + 1000))
    with pytest.warns(
        FeatstreamWarning, match="order of the rows was trusted"
    ) as found:
        fit(X.set_axis(names), y.set_axis([f"Q{i}" for i in range(y.size)]))
    assert len(found) == 1


def test_counted_rows_do_not_stand_for_names(numbered, names, stream):
    """Later data with names decide; and numbers in another order are refused."""
    X, y = numbered
    selector = SAOLA(measure="su").start(y)
    selector.consume(X)
    selector.consume(frame(stream.X, names, "b"))
    selector.consume(frame(stream.X, range(y.size), "c"))
    with pytest.raises(DataError, match="other samples than the data before it"):
        selector.consume(frame(stream.X, [f"Q{i}" for i in range(y.size)], "d"))
    selector = SAOLA(measure="su").start(stream.y).consume(X)
    with pytest.raises(DataError, match="in another order"):
        selector.consume(frame(stream.X, range(y.size)[::-1], "b"))
    with pytest.raises(DataError, match="in another order"):
        selector.update(pd.Series(stream.X[:, 0], range(y.size)[::-1]), "more")


def shuffled(table):
    return table.sample(frac=1, random_state=0)


def write(table, path):
    """A table in the format of a suffix, with the index that pandas writes."""
    if path.suffix == ".csv":
        table.to_csv(path)
    else:
        table.to_parquet(path)
    return str(path)


@pytest.mark.filterwarnings("ignore:.*the first column has no name")
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_shuffled_files_are_refused(suffix, tmp_path, numbered, stream, run, fail):
    """In a folder, and by update: the second file, or the first."""
    X, y = numbered
    later = frame(stream.X, X.index, "b")
    one = write(X.assign(y=y), tmp_path / f"a{suffix}")
    two = write(shuffled(later), tmp_path / f"b{suffix}")
    folder = tmp_path / "run"
    with pytest.raises(DataError, match="in another order"):
        open_dataset(tmp_path)
    run("select", one, "-o", folder, "--measure", "su", "-q")
    assert "in another order" in fail("update", folder, two, "-q")
    write(later, tmp_path / f"b{suffix}")
    assert open_dataset(tmp_path / f"b{suffix}", "b0").source.n_features == 11
    run("update", folder, two, "-q")
    assert featstream.resume(folder).n_seen_ == 24
    first = write(shuffled(X.assign(y=y)), tmp_path / f"c{suffix}")
    other = tmp_path / "other"
    run("select", first, "-o", other, "--measure", "su", "-q")
    assert "in another order" in fail("update", other, two, "-q")


def test_an_index_that_was_saved_twice_and_shuffled_is_no_feature(tmp_path, numbered):
    X, y = numbered
    path = tmp_path / "a.csv"
    shuffled(X.assign(y=y)).rename_axis("Unnamed: 0").to_csv(path)
    with pytest.warns(FeatstreamWarning, match="names the samples; it is left out"):
        data = open_dataset(path)
    assert data.source.n_features == 12
    assert list(data.samples) == [str(i) for i in shuffled(X).index]


@pytest.fixture
def patients(tmp_path, stream, names):
    """Three tables with a column of names: the first, a later one, a shuffled one."""

    def save(name, prefix, order=slice(None), **more):
        table = frame(stream.X, names, prefix).rename_axis("patient").reset_index()
        table = table.assign(**more).iloc[order]
        table.to_csv(tmp_path / f"{name}.csv", index=False)
        return str(tmp_path / f"{name}.csv")

    order = np.random.default_rng(0).permutation(stream.y.size)
    later, wrong = save("b", "b"), save("c", "c", order)
    return save("a", "a", y=stream.y), later, wrong


@pytest.mark.filterwarnings("ignore:Left out")
def test_a_named_column_of_names_is_compared_where_both_files_have_it(
    patients, tmp_path, run, fail
):
    one, later, wrong = patients
    folder = tmp_path / "run"
    flags = ["--selector", "saola", "--measure", "su", "-q"]
    run("select", one, "-o", folder, *flags)
    said = fail("update", folder, wrong, "-q")
    assert "in another order" in said
    assert "'P0'" in said
    run("update", folder, later, "-q")
    found = featstream.resume(folder)
    assert found.n_seen_ == 1 + 12 + 12  # patient is a feature, once
    assert found._stream.samples.column == "patient"


@pytest.mark.filterwarnings("ignore:Left out")
def test_a_folder_compares_a_named_column_of_names(patients, tmp_path):
    with pytest.raises(DataError, match=r"c\.csv has the same samples as .*a\.csv"):
        open_dataset(tmp_path)
    (tmp_path / "c.csv").unlink()
    with pytest.warns(FeatstreamWarning, match="'patient' names the samples, as in"):
        data = open_dataset(tmp_path)
    assert data.source.n_features == 25
    SAOLA(measure="su").fit(data.source, data.y)


def test_other_columns_of_words_are_not_names_of_the_same(tmp_path, stream, run):
    words = [f"w{i}" for i in range(stream.y.size)]
    for name, column, more in (("a", "patient", {"y": stream.y}), ("b", "comment", {})):
        table = frame(stream.X, words[:: 1 if name == "a" else -1], name)
        table = table.rename_axis(column).reset_index().assign(**more)
        if name == "b":
            table[column] = [f"{word}!" for word in table[column]]
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    flags = ["--selector", "saola", "--measure", "su", "-q"]
    run("select", tmp_path / "a.csv", "-o", tmp_path / "run", *flags)
    run("update", tmp_path / "run", tmp_path / "b.csv", "-q")
    assert featstream.resume(tmp_path / "run").n_seen_ == 26


def test_labels_with_names_beside_data_without_are_trusted_aloud(tmp_path, stream):
    np.save(tmp_path / "X.npy", stream.X)
    ids = [f"P{i}" for i in range(stream.y.size)]
    labels = pd.DataFrame({"id": ids, "status": stream.y})
    labels.to_csv(tmp_path / "y.csv", index=False)
    with pytest.warns(FeatstreamWarning, match="'id'.* order of the rows was trusted"):
        data = open_dataset(tmp_path / "X.npy", f"{tmp_path / 'y.csv'}:status")
    assert data.y.tolist() == stream.y.tolist()


def test_plain_frames_are_stored_without_names(tmp_path, numbered):
    X, y = numbered
    source = featstream.sources.as_source(X)
    featstream.sources.write_store(tmp_path / "x.cols", source, y)
    assert featstream.sources.open_store(tmp_path / "x.cols").sample_names is None
