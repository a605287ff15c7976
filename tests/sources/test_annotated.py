"""AnnData: as anndata writes it, as it is described, and damaged."""

import contextlib
import gzip
import time
from functools import partial
from pathlib import Path

import anndata
import h5py
import numpy as np
import pandas as pd
import pytest
from anndata.io import write_elem
from scipy import sparse

from featstream import SAOLA
from featstream.errors import DataError, DataTypeError
from featstream.sources import (
    RowsSource,
    as_source,
    open_anndata,
    open_dataset,
    open_h5ad,
)
from featstream.sources.values import LIMITS
from gather import as_array, refused
from science_files import write_h5ad

WRITTEN = Path(__file__).parents[1] / "data" / "anndata"
"""By anndata 0.12.19: 12 cells by 7 genes, with columns of every kind."""

X = np.array([[0, 1, 0, 2], [3, 0, 0, 0], [0, 0, 4, 5]], np.float32)
NAMES = ["a", "b", "c", "d"]
OBS = {"kind": (np.array([0, 1, 1]), ["B", "T"])}


@pytest.fixture
def path(tmp_path):
    return write_h5ad(tmp_path / "d.h5ad", X, OBS, NAMES)


@pytest.mark.parametrize("kind", ["csr", "csc", "dense"])
def test_files_of_anndata_are_read(tmp_path, kind):
    path = tmp_path / "d.h5ad"
    path.write_bytes(gzip.decompress((WRITTEN / f"{kind}.h5ad.gz").read_bytes()))
    expected = np.load(WRITTEN / "X.npy")
    targets = {
        "kind": ["B", "T", "NK", "T"] * 3,
        "word": ["x", "y"] * 6,
        "age": [*range(12)],
        "old": [False] * 6 + [True] * 6,
    }
    for target, y in targets.items():
        dataset = open_dataset(path, target)
        assert dataset.y.tolist() == y
        assert dataset.names == [f"GENE{j}" for j in range(7)]
        np.testing.assert_array_equal(as_array(dataset.source), expected)
    layer = open_dataset(path, layer="double").source
    np.testing.assert_array_equal(as_array(layer), 2 * expected)
    for target in ("some", "few"):
        assert open_h5ad(path, target).y[1] is None
        with pytest.raises(DataError, match=r"samples have no label .* row 1"):
            open_dataset(path, target)


def cells(make):
    X = np.random.default_rng(0).poisson(1.0, (40, 30)).astype(np.float32)
    names = [f"cell{i}" for i in range(40)]
    obs = pd.DataFrame({"kind": pd.Categorical(["B", "T"] * 20)}, index=names)
    var = pd.DataFrame(index=[f"gene{j}" for j in range(30)])
    adata = anndata.AnnData(make(X), obs, var)
    adata.layers["double"] = make(2 * X)
    adata.raw = anndata.AnnData(make(3 * X), obs, var.rename(index=str.upper))
    return adata, X


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array, sparse.csc_matrix])
@pytest.mark.parametrize("place", ["memory", "backed", "file", "zarr"])
def test_anndata_objects_and_files_give_the_columns(tmp_path, make, place):
    adata, X = cells(make)
    find = partial(open_anndata, adata)
    if place in ("backed", "file"):
        adata.write_h5ad(tmp_path / "d.h5ad")
        adata = anndata.read_h5ad(tmp_path / "d.h5ad", backed="r")
        find = partial(open_anndata, adata)
        if place == "file":
            find = partial(open_h5ad, tmp_path / "d.h5ad")
    elif place == "zarr":
        adata.write_zarr(tmp_path / "d.zarr")
        find = partial(open_dataset, tmp_path / "d.zarr")
    data = find("kind")
    if place in ("memory", "backed"):
        np.testing.assert_array_equal(as_array(as_source(adata)), X)
    if place == "memory":
        np.testing.assert_array_equal(as_array(as_source(adata[:30, 5:])), X[:30, 5:])
    assert data.y.tolist() == ["B", "T"] * 20
    assert data.names == [f"gene{j}" for j in range(30)]
    assert data.samples == [f"cell{i}" for i in range(40)]
    assert (data.target_name, data.target_is_guessed) == ("kind", False)
    np.testing.assert_array_equal(as_array(data.source), X)
    np.testing.assert_array_equal(as_array(find(layer="double").source), 2 * X)
    raw = find(layer="raw")
    assert raw.names[0] == "GENE0"
    np.testing.assert_array_equal(as_array(raw.source), 3 * X)
    with pytest.raises(DataError, match="layers are: 'double', 'raw'"):
        find(layer="x")


def test_categoricals_of_anndata_0_7(path):
    """Codes beside a reference to their categories."""
    change(path, "obs/kind", np.array([1, 0, -1], np.int8))
    with h5py.File(path, "a") as file:
        file["obs/__categories/kind"] = ["no", "yes"]
        file["obs/kind"].attrs["categories"] = file["obs/__categories/kind"].ref
        file["obs"].attrs["encoding-version"] = "0.1.0"
    assert open_h5ad(path, "kind").y.tolist() == ["yes", "no", None]


@pytest.mark.parametrize("kind", ["csr", "csc"])
@pytest.mark.parametrize("index_type", [np.int32, np.int64, np.uint32])
def test_entries_out_of_order_are_put_in_order(path, kind, index_type, monkeypatch):
    """And those of one place are added, as scipy has it."""
    monkeypatch.setattr(LIMITS, "sparse_held", 0)
    monkeypatch.setattr(LIMITS, "sparse_block", 2)
    expected = np.array([[0, 3, 5], [0, 0, 0], [4, 0, 1.5], [0, 0, 2]])
    parts = {
        "csr": ([1, 2, 5, 1.5, 4, 2], [1, 1, 2, 2, 0, 2], [0, 3, 3, 5, 6]),
        "csc": ([4, 2, 1, 1.5, 2, 5], [2, 0, 0, 2, 3, 0], [0, 1, 3, 6]),
    }[kind]
    make = sparse.csr_array if kind == "csr" else sparse.csc_array
    write_h5ad(path, make(parts, shape=(4, 3)), {}, [*"abc"], kind)
    change(path, "X/indices", np.array(parts[1], index_type))
    is_transposed = kind == "csr"
    with pytest.warns() if is_transposed else contextlib.nullcontext():
        found = as_array(open_h5ad(path).source)
    np.testing.assert_array_equal(found, expected)


def test_rows_are_transposed_once_and_the_store_is_removed(path, monkeypatch):
    monkeypatch.setattr(LIMITS, "sparse_held", 0)
    source = open_h5ad(path).source
    assert isinstance(source, RowsSource)
    with pytest.warns(UserWarning, match=r"d\.h5ad is stored by rows.*convert"):
        assert np.array_equal(as_array(source), X)
    assert np.array_equal(as_array(source, 2), X[:, 2:])  # which would warn again
    folder = source._columns.path.parent
    assert folder.exists()
    del source
    assert not folder.exists()


def test_integers_beyond_floats_are_refused(tmp_path, monkeypatch):
    big = np.array([[2**53 + 1, 0], [0, 1]])
    path = write_h5ad(tmp_path / "d.h5ad", big, {"y": np.arange(2)}, ["a", "b"])
    assert as_array(open_h5ad(path).source)[0, 0] == 2**53 + 1
    monkeypatch.setattr(LIMITS, "sparse_held", 0)
    with (
        pytest.raises(DataError, match=r"d\.h5ad: its .* beyond 2\*\*53"),
        pytest.warns(),
    ):
        as_array(open_h5ad(path).source)


def change(path, name, values):
    """Replace a part of the file; delete it if there are no ``values``."""
    with h5py.File(path, "a") as file:
        del file[name]
        if values is not None:
            file[name] = values


def check_refused(path, reason):
    with refused(path, reason, (DataError, DataTypeError)):
        as_array(open_h5ad(path, "kind").source)


@pytest.mark.parametrize(
    ("name", "values", "reason"),
    [
        ("obs", None, "it has no table 'obs', so that it is not AnnData"),
        ("obs", np.zeros(3), "'obs' is as anndata wrote it before"),
        ("X", None, "it has no X. Choose a layer: none"),
        ("var/_index", None, "anndata cannot read its table 'var': "),
        ("var/_index", [*"abca"], "Feature name 'a' already seen"),
        ("var/_index", [*"abc"], "it has 3 variables, but"),
        ("X/data", None, "cannot be read as .h5ad"),
        ("X/indptr", [0, 3, 2, 5], "its indptr must begin with 0 and never decrease"),
        ("X/indptr", [0, 1, 2, 4], "its indptr ends at 4 of 5 entries"),
        ("X/indices", np.arange(4), "4 indices for 5 values"),
        ("X/indices", [0, 9, 1, 2, 3], "column index 9 is outside [0, 4)"),
        ("X/indices", [0, -1, 1, 2, 3], "column index -1 is outside [0, 4)"),
        ("obs/kind/codes", np.array([0, 1, 2], "i1"), "cannot read its table 'obs': "),
        ("X", np.array([[b"x"] * 4] * 3), "neither numbers nor text"),
        ("X", np.ones((3, 5)), "Got 4 names for 5 features"),
    ],
)
def test_bad_files_are_refused_with_the_reason(path, name, values, reason):
    change(path, name, values)
    check_refused(path, reason)


def test_files_that_are_not_anndata_are_refused(path):
    with h5py.File(path, "a") as file:
        file["X"].attrs["encoding-type"] = "awkward"
    check_refused(path, "its matrix is stored as 'awkward', and not as an array")
    with h5py.File(path, "a") as file:
        file["obs"].attrs.clear()
    check_refused(path, "its table 'obs' is not marked as one")
    write_h5ad(path, X, OBS, NAMES)
    with h5py.File(path, "a") as file:
        write_elem(file, "obs", pd.DataFrame(index=[*"abcde"]))
    check_refused(path, "it has 5 observations, but a matrix of 3 rows")


def test_what_is_absent_is_answered_with_what_is_there(path):
    with pytest.raises(DataError, match=r"no column 'x' .*Its columns are: 'kind'\."):
        open_h5ad(path, "x")
    with pytest.raises(DataError, match=r"no layer 'counts'. Its layers are: none\."):
        open_h5ad(path, layer="counts")
    assert open_dataset(path).y is None


def test_a_file_cut_short_is_refused_at_any_length(path):
    """HDF5 looks for its end first. Of other damage it may make anything."""
    content = path.read_bytes()
    for length in range(0, len(content), 97):
        path.write_bytes(content[:length])
        check_refused(path, "cannot be read as .h5ad")


@pytest.mark.parametrize("is_sparse", [False, True])
def test_what_was_fitted_on_anndata_transforms_it(is_sparse):
    """The result is AnnData as well: a view, made without looking at the values."""
    rng = np.random.default_rng(0)
    y = np.arange(700) % 2
    X = rng.normal(size=(700, 765))
    X[:, 5] += 3 * y
    names = [f"g{j}" for j in range(765)]
    cells = anndata.AnnData(
        sparse.csr_matrix(X) if is_sparse else X,
        pd.DataFrame(index=[f"c{i}" for i in range(700)]),
        pd.DataFrame(index=names),
    )
    selector = SAOLA(measure="fisher-z").fit(cells, y)
    began = time.process_time()
    chosen = selector.transform(cells)
    assert time.process_time() - began < 5  # iterating over an AnnData takes minutes
    assert isinstance(chosen, anndata.AnnData)
    assert chosen.var_names.tolist() == selector.get_feature_names_out().tolist()
    assert "g5" in chosen.var_names
    with pytest.raises(DataError, match="are not the features that SAOLA was fitted"):
        selector.transform(cells[:, ::-1])
