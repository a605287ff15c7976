"""AnnData: as anndata writes it, as it is described, and damaged."""

from __future__ import annotations

import contextlib
import gzip
from pathlib import Path

import h5py
import numpy as np
import pytest

from block_sources import as_array
from featstream import SAOLA
from featstream.errors import (
    DataError,
    DataTypeError,
    MissingExtraError,
    ParameterError,
)
from featstream.sources import RowsSource, compressed, open_dataset, open_h5ad
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
    for target, first in (("some", 1), ("few", 1)):
        y = open_dataset(path, target).y
        assert y[first] is None
        with pytest.raises(DataError, match=f"missing labels .*first at row {first}"):
            SAOLA().start(y)


def test_the_target_is_found_by_its_name(tmp_path):
    obs = {"batch": np.arange(3), "Label": np.array([1, 2, 2])}
    path = write_h5ad(tmp_path / "d.h5ad", X, obs, NAMES)
    assert open_dataset(path).y.tolist() == [1, 2, 2]
    assert open_dataset(path, "batch").y.tolist() == [0, 1, 2]
    path = write_h5ad(tmp_path / "d.h5ad", X, OBS, NAMES)
    assert open_dataset(path).y is None


def test_categoricals_of_anndata_0_7(path):
    """Codes beside a reference to their categories."""
    with h5py.File(path, "a") as file:
        file["obs/old"] = np.array([1, 0, -1], np.int8)
        file["obs/__categories/old"] = ["no", "yes"]
        reference = file["obs/__categories/old"].ref
        file["obs/old"].attrs["categories"] = reference
    assert open_h5ad(path, "old").y.tolist() == ["yes", "no", None]


def test_fixed_length_text_is_text(path):
    with h5py.File(path, "a") as file:
        file["obs/code"] = np.array([b"x", b"yy", b"x"])
    assert open_h5ad(path, "code").y.tolist() == ["x", "yy", "x"]


@pytest.mark.parametrize("kind", ["csr", "csc"])
@pytest.mark.parametrize("index_type", [np.int32, np.int64, np.uint32])
def test_entries_out_of_order_are_put_in_order(path, kind, index_type, monkeypatch):
    """And those of one place are added, as scipy has it."""
    monkeypatch.setattr(compressed, "HELD_ENTRIES", 0)
    monkeypatch.setattr(compressed, "MAX_ENTRIES", 2)
    expected = np.array([[0, 3, 5], [0, 0, 0], [4, 0, 1.5], [0, 0, 2]])
    data = np.array([1, 2, 5, 1.5, 4, 2])
    if kind == "csr":
        indices, indptr = [1, 1, 2, 2, 0, 2], [0, 3, 3, 5, 6]
    else:
        data = np.array([4, 2, 1, 1.5, 2, 5])
        indices, indptr = [2, 0, 0, 2, 3, 0], [0, 1, 3, 6]
    with h5py.File(path, "w") as file:
        file["obs/_index"], file["var/_index"] = [*"wxyz"], [*"abc"]
        file["X/data"], file["X/indptr"] = data, np.array(indptr)
        file["X/indices"] = np.array(indices, index_type)
        file["X"].attrs["encoding-type"] = f"{kind}_matrix"
        file["X"].attrs["shape"] = [4, 3]
    is_turned = kind == "csr"
    with pytest.warns() if is_turned else contextlib.nullcontext():
        found = as_array(open_h5ad(path).source)
    np.testing.assert_array_equal(found, expected)


def test_rows_are_turned_once_and_the_store_is_removed(path, monkeypatch):
    monkeypatch.setattr(compressed, "HELD_ENTRIES", 0)
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
    monkeypatch.setattr(compressed, "HELD_ENTRIES", 0)
    with (
        pytest.raises(DataError, match=r"d\.h5ad: its .* beyond 2\*\*53"),
        pytest.warns(),
    ):
        as_array(open_h5ad(path).source)


def edit(change):
    def write(path):
        with h5py.File(path, "a") as file:
            change(file)

    return write


def replace(name, values):
    def change(file):
        del file[name]
        file[name] = values

    return edit(change)


def no_longer(name):
    return edit(lambda file: file.__delitem__(name))


def describe(name, **attributes):
    return edit(lambda file: file[name].attrs.update(attributes))


def cut(path):
    path.write_bytes(path.read_bytes()[:3000])


BAD_FILES = {
    "junk": (lambda path: path.write_bytes(b"junk" * 99), "cannot be read as .h5ad: "),
    "empty": (lambda path: path.write_bytes(b""), "cannot be read as .h5ad: "),
    "cut short": (cut, "cannot be read as .h5ad: "),
    "no obs": (no_longer("obs"), "it has no table 'obs', so that it is not AnnData."),
    "an old obs": (
        replace("obs", np.zeros(3)),
        "its table 'obs' is as anndata wrote it before version 0.7. Read it with "
        "anndata, and write it again.",
    ),
    "no X": (no_longer("X"), "it has no X. Choose a layer: none."),
    "no index": (
        no_longer("var/_index"),
        "its table 'var' has no index '_index'.",
    ),
    "names twice": (
        replace("var/_index", ["a", "b", "c", "a"]),
        "its var_names are not unique: 'a' occurs twice. Call "
        "adata.var_names_make_unique() and write it again.",
    ),
    "too few names": (
        replace("var/_index", ["a", "b", "c"]),
        "it has 3 variables, but a matrix of 4 columns.",
    ),
    "too few names, dense": (
        lambda path: (replace("X", X)(path), replace("var/_index", ["a"])(path)),
        "names must have one name a feature. Got 1 names for 4 features.",
    ),
    "too many cells": (
        replace("obs/_index", [*"vwxyz"]),
        "it has 5 observations, but a matrix of 3 rows.",
    ),
    "an unknown form": (
        describe("X", **{"encoding-type": "awkward"}),
        "its matrix is stored as 'awkward', and not as an array, csr_matrix or "
        "csc_matrix.",
    ),
    "half a matrix": (no_longer("X/data"), "cannot be read as .h5ad: "),
    "pointers that fall": (
        replace("X/indptr", np.array([0, 3, 2, 5])),
        "its sparse matrix is not valid: its indptr must begin with 0 and never",
    ),
    "pointers that end early": (
        replace("X/indptr", np.array([0, 1, 2, 4])),
        "its sparse matrix is not valid: its indptr ends at 4 of 5 entries.",
    ),
    "too few indices": (
        replace("X/indices", np.arange(4)),
        "its sparse matrix is not valid: 4 indices for 5 values.",
    ),
    "codes of nothing": (
        replace("obs/kind/codes", np.array([0, 1, 2], np.int8)),
        "it has categorical codes beyond its categories.",
    ),
    "a table for a column": (
        replace("obs/kind/codes", np.zeros((3, 2), np.int8)),
        "a column of it has the shape (3, 2), and not one axis.",
    ),
    "an unknown column": (
        describe("obs/kind", **{"encoding-type": "rec-array"}),
        "column 'kind' of its obs is stored as 'rec-array', which is neither numbers, "
        "text nor categories.",
    ),
}


@pytest.mark.parametrize("about", BAD_FILES)
def test_bad_files_are_told(path, about):
    write, reason = BAD_FILES[about]
    write(path)
    with pytest.raises(DataError) as caught:
        as_array(open_h5ad(path, "kind").source)
    start = f"{path} " if reason.startswith("cannot") else f"{path}: "
    assert str(caught.value).startswith(start + reason)


@pytest.mark.parametrize("wrong", [9, -1])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_entries_outside_are_refused(path, wrong, dtype):
    replace("X/indices", np.array([0, wrong, 1, 2, 3], dtype))(path)
    with pytest.raises(DataError, match=rf"column index {wrong} is outside \[0, 4\)"):
        as_array(open_h5ad(path).source)


def test_text_for_a_matrix_is_refused(path):
    replace("X", np.array([[b"x"] * 4] * 3))(path)
    with pytest.raises(DataTypeError, match="neither numbers nor text"):
        open_h5ad(path)
    replace("X", np.zeros((3, 4), complex))(path)
    with pytest.raises(DataTypeError, match="Complex data not supported"):
        open_h5ad(path)


def test_what_is_not_there_is_told_with_what_is(path):
    with pytest.raises(DataError) as caught:
        open_h5ad(path, "cell_type")
    assert str(caught.value) == (
        f"{path}: its obs has no column 'cell_type' for a target. Its columns are: "
        "'kind'."
    )
    with pytest.raises(DataError, match=r"no layer 'counts'. Its layers are: none\."):
        open_h5ad(path, layer="counts")
    with pytest.raises(ParameterError, match=r"no meaning for \.h5ad files; it is"):
        open_dataset(path, missing="mode")


def test_h5py_is_asked_for(path, monkeypatch):
    monkeypatch.setattr("featstream.sources.dataset.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"needs h5py.*featstream\[science\]"):
        open_dataset(path)


def test_a_file_cut_short_is_told_at_any_length(path):
    """HDF5 looks for its end first. Of other damage it may make anything."""
    content = path.read_bytes()
    for length in range(0, len(content), 97):
        path.write_bytes(content[:length])
        with pytest.raises(DataError, match=r"d\.h5ad cannot be read as \.h5ad"):
            open_h5ad(path)
