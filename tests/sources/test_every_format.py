"""Every format gives the answer of the data in memory, by every way in."""

import json
from functools import partial
from pathlib import Path
from tempfile import mkdtemp

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
import zarr
from anndata.io import write_elem
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

import checks
import science_files as write
from featstream import SAOLA
from featstream.cli import main
from featstream.datasets import make_stream
from featstream.errors import DataError, ParameterError, RunError
from featstream.runs.folder import Checkpoint
from featstream.sources import (
    ArraySource,
    ChainedSource,
    IteratorSource,
    SparseSource,
    open_dataset,
    open_store,
    write_store,
)
from featstream.sources.open import FORMATS as KNOWN
from featstream.sources.values import LIMITS
from gather import as_array, gather

STREAM = make_stream(n_samples=61, n_features=150, seed=3)
X, Y = np.clip(STREAM.X, 0, 2).astype(np.int8), STREAM.y
NAMES = [f"g{j}" for j in range(X.shape[1])]


def save_labels(folder):
    np.save(folder / "labels.npy", Y)
    return {"target": str(folder / "labels.npy")}


def as_npy(folder):
    np.save(folder / "d.npy", X)
    return folder / "d.npy", save_labels(folder)


def as_npz(folder):
    np.savez(folder / "d.npz", X=X, y=Y, names=NAMES)
    return folder / "d.npz", {}


def as_store(folder):
    write_store(folder / "d.cols", ArraySource(X, NAMES), Y)
    return folder / "d.cols", {}


def as_svmlight(folder):
    dump_svmlight_file(X * 1.0, Y, str(folder / "d.svm"), zero_based=False)
    return folder / "d.svm", {}


def as_text(folder, *, suffix, separator):
    header, path = separator.join([*NAMES, "class"]), folder / f"d.{suffix}"
    rows = np.column_stack([X, Y])
    np.savetxt(path, rows, "%d", separator, header=header, comments="")
    return path, {}


def as_table(folder, *, suffix):
    table = pa.table([Y, *X.T], names=["label", *NAMES])
    path = folder / f"d.{suffix}"
    if suffix == "parquet":
        pyarrow.parquet.write_table(table, path, row_group_size=20)
    else:
        pyarrow.feather.write_feather(table, path)
    return path, {}


def as_feature_rows(folder, *, has_lists):
    path = write.write_feature_rows(folder / "d.parquet", X, NAMES, has_lists=has_lists)
    return path, {"orient": "features", **save_labels(folder)}


def as_zarr(folder, *, version, chunks=(61, 20)):
    path = write.write_zarr(folder / "d.zarr", X, chunks, version)
    return path, save_labels(folder)


def as_zarr_group(folder):
    group = zarr.open_group(folder / "d.zarr", mode="w")
    group.create_array("counts", data=X, chunks=(30, 40))
    write_elem(group, "y", Y)
    write_elem(group, "names", np.array(NAMES, object))
    return folder / "d.zarr", {"layer": "counts"}


def as_h5ad(folder, *, kind, **options):
    obs = {"kind": (Y, ["B", "T"])}
    path = write.write_h5ad(folder / "d.h5ad", X, obs, NAMES, kind, **options)
    return path, {"target": "kind"}


def as_anndata_zarr(folder):
    root = zarr.open_group(folder / "d.zarr", mode="w")
    write.write_anndata(root, X, {"kind": (Y, ["B", "T"])}, NAMES, "csr")
    return folder / "d.zarr", {"target": "kind"}


def as_plink(folder):
    return write.write_plink(folder / "d.bed", X, Y + 1, NAMES), {}


FORMATS = {
    "npy": as_npy,
    "npz": as_npz,
    "cols": as_store,
    "svm": as_svmlight,
    "csv": partial(as_text, suffix="csv", separator=","),
    "tsv": partial(as_text, suffix="tsv", separator="\t"),
    "parquet": partial(as_table, suffix="parquet"),
    "feather": partial(as_table, suffix="feather"),
    "arrow": partial(as_table, suffix="arrow"),
    "parquet of features, wide": partial(as_feature_rows, has_lists=False),
    "parquet of features, lists": partial(as_feature_rows, has_lists=True),
    "zarr 2": partial(as_zarr, version=2),
    "zarr 3": partial(as_zarr, version=3),
    "zarr by rows": partial(as_zarr, version=3, chunks=(5, 150)),
    "zarr group": as_zarr_group,
    "h5ad, csr": partial(as_h5ad, kind="csr"),
    "h5ad, csc": partial(as_h5ad, kind="csc"),
    "h5ad, dense": partial(as_h5ad, kind="dense"),
    "h5ad, dense, packed": partial(
        as_h5ad, kind="dense", chunks=(16, 40), compression="gzip"
    ),
    "anndata in zarr": as_anndata_zarr,
    "plink": as_plink,
}
NAMELESS = {"npy", "svm", "zarr 2", "zarr 3", "zarr by rows"}
NAMED = set(FORMATS) - NAMELESS

every_format = pytest.mark.parametrize("kind", FORMATS)


@pytest.fixture(params=[False, True], ids=["held", "spilled"])
def is_spilled(request, monkeypatch):
    """Every limit of what is held in memory may be tiny."""
    if request.param:
        monkeypatch.setattr(LIMITS, "csv_held", 0)
        monkeypatch.setattr(LIMITS, "csv_block", 1000)
        monkeypatch.setattr(LIMITS, "array_read", 7 * 61)
        monkeypatch.setattr(LIMITS, "sparse_held", 0)
        monkeypatch.setattr(LIMITS, "sparse_block", 100)
    return request.param


pytestmark = pytest.mark.filterwarnings("ignore:.* is stored by rows")


def test_every_suffix_is_there(tmp_path):
    """A new format joins `FORMATS`."""
    written = [make(Path(mkdtemp(dir=tmp_path)))[0] for make in FORMATS.values()]
    twins = {".svmlight": ".svm", ".libsvm": ".svm"}
    twins |= dict.fromkeys((".txt", ".data", ".tab"), ".csv")
    known = {twins.get(suffix, suffix) for suffix in KNOWN}
    assert known == {path.suffix for path in written}


@every_format
def test_all_columns_are_there_from_any_start(tmp_path, kind, is_spilled):
    path, options = FORMATS[kind](tmp_path)
    dataset = open_dataset(path, **options)
    assert (dataset.source.n_samples, dataset.source.n_features) == X.shape
    if kind in NAMED:
        assert list(dataset.names) == NAMES
    else:
        assert dataset.names is None
    assert len(set(zip(dataset.y.tolist(), Y.tolist(), strict=True))) == 2
    for start in (0, 1, 7, 20, 39, 149):
        found = as_array(dataset.source, start)
        np.testing.assert_array_equal(found, X[:, start:])
        assert found.dtype.itemsize <= 8
    assert not list(dataset.source.blocks(150))
    if hasattr(dataset.source, "blocks_at"):
        order = np.random.default_rng(0).permutation(X.shape[1])
        for start in (0, 40):
            found = gather(dataset.source, start, order)[0]
            np.testing.assert_array_equal(found, X[:, order[start:]])


@every_format
def test_the_selection_is_that_of_memory(tmp_path, kind, is_spilled):
    measure = "fisher-z" if is_spilled else "su"
    path, options = FORMATS[kind](tmp_path)
    dataset = open_dataset(path, **options)
    names = NAMES if kind in NAMED else None
    checks.check_data_set_agrees(SAOLA(measure=measure), dataset, X, Y, names)


@every_format
def test_a_run_resumes_from_the_file(tmp_path, kind, is_spilled):
    path, options = FORMATS[kind](tmp_path)
    open_again = partial(open_dataset, path, **options)
    checks.check_data_set_resumes(SAOLA(measure="su"), open_again, cut=70, width=23)


@every_format
def test_another_file_is_refused(tmp_path, monkeypatch, kind):
    path, options = FORMATS[kind](tmp_path)
    dataset = open_dataset(path, **options)
    stream = SAOLA(measure="su").start(dataset.y)
    stream.consume(dataset.source, checkpoint=tmp_path / "run")
    (tmp_path / "other").mkdir()
    monkeypatch.setitem(globals(), "X", np.ascontiguousarray(X[:, ::-1]))
    path, options = FORMATS[kind](tmp_path / "other")
    again = SAOLA(measure="su").start(dataset.y)
    with pytest.raises(RunError, match="This is a different data set"):
        again.consume(open_dataset(path, **options).source, checkpoint=tmp_path / "run")


@pytest.mark.parametrize("kind", sorted(NAMED - {"cols"}))
def test_names_that_occur_twice_may_be_numbered(tmp_path, monkeypatch, kind):
    twice = ["a", "b", "a", *NAMES[3:]]
    monkeypatch.setitem(globals(), "NAMES", twice)
    path, options = FORMATS[kind](tmp_path)
    with pytest.raises(DataError, match=r"'a' already seen .*duplicates='number'"):
        open_dataset(path, **options)
    dataset = open_dataset(path, **options, duplicates="number")
    assert list(dataset.names) == ["a", "b", "a#2", *twice[3:]]
    np.testing.assert_array_equal(as_array(dataset.source), X)
    with pytest.raises(ParameterError, match="`duplicates` must be 'error' or 'number"):
        open_dataset(path, **options, duplicates="drop")


def flags(options):
    return [word for name, v in options.items() for word in (f"--{name}", v)]


@every_format
def test_the_command_line_knows_it(tmp_path, kind, capsys):
    path, options = FORMATS[kind](tmp_path)
    data = [str(path), *flags(options)]
    expected = SAOLA(measure="su").fit(X, Y).selected_.tolist()

    assert main(["info", *data, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["n_samples"], facts["n_features"]) == X.shape
    assert sorted(facts["target"]["classes"].values()) == sorted(np.bincount(Y))

    select = ["select", "--selector", "saola", "--measure", "su", "--json", "-q"]
    assert main([*select, *data]) == 0
    found = json.loads(capsys.readouterr().out)["selected"]
    assert [feature["index"] for feature in found] == expected

    store = str(tmp_path / "out.cols")
    assert main(["convert", *data, store, "-q"]) == 0
    capsys.readouterr()
    np.testing.assert_array_equal(as_array(open_store(store)), X)
    if kind in NAMED:
        assert list(open_store(store).names) == NAMES
    assert main([*select, store]) == 0
    found = json.loads(capsys.readouterr().out)["selected"]
    assert [feature["index"] for feature in found] == expected


@every_format
def test_resume_opens_the_file_again(tmp_path, kind, capsys, monkeypatch):
    """From another folder, with the options that it was opened with."""
    path, options = FORMATS[kind](tmp_path)
    monkeypatch.chdir(tmp_path)
    dataset = open_dataset(path, **options)
    run = str(tmp_path / "run")
    assert main(["select", path.name, *flags(options), "-o", run, "-q"]) == 0
    data = json.loads((tmp_path / "run" / "run.json").read_text())["sources"][0]["data"]

    def stop(progress):
        raise KeyboardInterrupt

    stream = SAOLA(measure="su").start(dataset.y)
    with pytest.raises(KeyboardInterrupt):
        stream.consume(
            checks.Recut(dataset.source, 40),
            checkpoint=Checkpoint(tmp_path / "cut", every=0, data=data),
            progress=stop,
        )
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    capsys.readouterr()
    assert main(["resume", str(tmp_path / "cut"), "--json", "-q"]) == 0
    found = json.loads(capsys.readouterr().out)["selected"]
    expected = SAOLA(measure="su").fit(X, Y).selected_.tolist()
    assert [feature["index"] for feature in found] == expected


def test_a_folder_of_every_format_is_one_stream(tmp_path):
    """Variants of some chromosomes, a table and a matrix, of the same samples."""
    folder = tmp_path / "data"
    folder.mkdir()
    names = [f"chr1_{j}" for j in range(50)]
    write.write_plink(folder / "a.bed", X[:, :50], Y, names)
    write.write_zarr(folder / "b.zarr", X[:, 50:90], (61, 9))
    path = write.write_h5ad(folder / "c.h5ad", X[:, 90:], {"class": Y}, NAMES[90:])
    (folder / ".hidden").touch()
    with pytest.raises(DataError, match="has other samples than"):
        open_dataset(folder)
    with h5py.File(path, "a") as file:  # as the variants name them
        file["obs/_index"][:] = [f"fam s{i}" for i in range(len(Y))]
    dataset = open_dataset(folder)
    assert dataset.y.tolist() == Y.tolist()
    np.testing.assert_array_equal(as_array(dataset.source), X)


def test_a_folder_takes_its_target_from_a_file(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    for chromosome in (1, 2):
        part = X[:, 75 * (chromosome - 1) : 75 * chromosome]
        names = [f"chr{chromosome}_{j}" for j in range(75)]
        write.write_plink(folder / f"chr{chromosome}.bed", part, ["-9"] * 61, names)
    lines = [f"fam s{i} {y}" for i, y in enumerate(Y)]
    (tmp_path / "pheno.txt").write_text("\n".join(lines[::-1]))
    dataset = open_dataset(folder, str(tmp_path / "pheno.txt"))
    assert dataset.y.tolist() == Y.tolist()
    np.testing.assert_array_equal(as_array(dataset.source), X)


def test_a_chain_of_sources_begins_anywhere():
    X = np.arange(60).reshape(4, 15)
    source = ChainedSource(
        [
            ArraySource(X[:, :5]),
            SparseSource(sparse.csc_array(X[:, 5:6])),
            ArraySource(X[:, 6:], block_bytes=64),
        ]
    )
    assert source.n_features == 15
    for start in range(16):
        np.testing.assert_array_equal(gather(source, start)[0], X[:, start:])


def test_a_source_that_does_not_know_its_length_is_counted():
    rest = IteratorSource([("a", [1, 2]), ("b", [3, 4])])
    source = ChainedSource([rest, ArraySource(np.ones((2, 3)))])
    assert source.n_features is None
    assert as_array(source).shape == (2, 5)


def test_files_that_disagree_are_refused(tmp_path):
    np.savez(tmp_path / "a.npz", X=np.eye(2), y=[0, 1])
    np.savez(tmp_path / "b.npz", X=np.eye(2), y=[1, 0])
    with pytest.raises(DataError, match=r"b\.npz has another target"):
        open_dataset(tmp_path)
    np.savez(tmp_path / "b.npz", X=np.eye(3))
    with pytest.raises(DataError, match="same number of samples"):
        open_dataset(tmp_path)
