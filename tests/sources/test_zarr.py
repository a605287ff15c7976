"""Arrays of zarr, however chunked, and damaged; nothing is unpickled."""

import json
import pickle
from types import SimpleNamespace

import numpy as np
import pytest
import zarr
from anndata.io import write_elem

from featstream.errors import DataError, DataTypeError, FeatstreamError
from featstream.sources import ChunkedArraySource, annotated, open_dataset, open_zarr
from gather import as_array, refused
from science_files import write_zarr

X = np.random.default_rng(0).normal(size=(24, 90)).astype(np.float32)


@pytest.mark.parametrize(
    "chunks", [(24, 1), (24, 7), (5, 30), (24, 90), (1, 90), (24, 50), (100, 200)]
)
@pytest.mark.parametrize("n_columns", [1, 8, 1000])
def test_any_chunks_give_the_columns(tmp_path, chunks, n_columns):
    path = write_zarr(tmp_path / "d.zarr", X, chunks, 3)
    array, read_bytes = zarr.open(path, mode="r"), n_columns * 24 * 4
    source = ChunkedArraySource(array, path, read_bytes=read_bytes)
    for start in (0, 1, 29, 89, 90):
        np.testing.assert_array_equal(as_array(source, start), X[:, start:])


class Counted:
    """An array that counts how often its chunks are unpacked."""

    def __init__(self, X, chunks):
        self.X, self.chunks, self.shape, self.dtype = X, chunks, X.shape, X.dtype
        self.n_unpacked = 0

    def __getitem__(self, where):
        where = where if isinstance(where, tuple) else (where, slice(None))
        sides = []
        for part, size, chunk in zip(where, self.shape, self.chunks, strict=True):
            begin, stop, _ = part.indices(size)
            sides.append(-(-stop // chunk) - begin // chunk)
        self.n_unpacked += sides[0] * sides[1]
        return self.X[where]


@pytest.mark.parametrize(
    ("chunks", "n_columns", "times"),
    [
        ((24, 10), 35, 1),  # three chunks at a time
        ((24, 45), 30, 2),  # a chunk in two blocks
        ((6, 90), 90, 1),
        ((6, 90), 30, 1),  # by rows: through a temporary file
        ((1, 90), 1, 1),
    ],
)
def test_chunks_are_unpacked_seldom(tmp_path, chunks, n_columns, times):
    counted = Counted(X, chunks)
    source = ChunkedArraySource(counted, tmp_path, read_bytes=n_columns * 24 * 4)
    np.testing.assert_array_equal(as_array(source), X)
    n_chunks = -(-24 // chunks[0]) * -(-90 // chunks[1])
    assert counted.n_unpacked <= times * n_chunks


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", ">i4", "f2", "float64"])
def test_any_numbers(tmp_path, dtype):
    values = (X > 0).astype(dtype)
    path = write_zarr(tmp_path / "d.zarr", values, (24, 20), 2)
    np.testing.assert_array_equal(as_array(open_zarr(path).source), values)
    path = tmp_path / "sharded.zarr"
    zarr.create_array(path, data=values, chunks=(8, 10), shards=(24, 30))
    np.testing.assert_array_equal(as_array(open_zarr(path).source), values)


def test_a_group_has_features_target_and_names(tmp_path):
    group = zarr.open_group(tmp_path / "d.zarr", mode="w")
    write_elem(group, "X", X)
    write_elem(group, "other", 2 * X)
    write_elem(group, "label", np.arange(24) % 2)
    write_elem(group, "status", np.array(["ill", "well"] * 12, object))
    write_elem(group, "feature_names", np.array([f"f{j}" for j in range(90)], object))
    assert open_dataset(tmp_path / "d.zarr").y.tolist() == [0, 1] * 12
    dataset = open_dataset(tmp_path / "d.zarr", "status", layer="other")
    assert dataset.y.tolist() == ["ill", "well"] * 12
    assert dataset.names[:2] == ["f0", "f1"]
    np.testing.assert_array_equal(as_array(dataset.source), 2 * X)


class Mark:
    """What runs if it is unpickled."""

    ran = False

    def __reduce__(self):
        return setattr, (Mark, "ran", True)


@pytest.mark.parametrize("place", ["compressor", "filters"])
def test_nothing_is_unpickled(tmp_path, place):
    """A codec that unpickles would run what the file says."""
    path = write_zarr(tmp_path / "d.zarr", np.zeros((4, 4)), (4, 4), 2)
    metadata = json.loads((path / ".zarray").read_text())
    codec = {"id": "pickle", "protocol": 5}
    metadata[place] = codec if place == "compressor" else [codec]
    (path / ".zarray").write_text(json.dumps(metadata))
    (path / "0.0").write_bytes(pickle.dumps(Mark()))
    with pytest.raises(DataError, match="pickle"):
        as_array(open_zarr(path).source)
    assert not Mark.ran


def test_a_codec_that_unpickles_is_refused_whatever_zarr_does():
    """Before zarr 3.1 it was for us to notice."""

    def array(metadata):
        described = SimpleNamespace(to_dict=lambda: metadata)
        return SimpleNamespace(metadata=described, path="X")

    annotated._refuse_pickle(array({"attributes": {"by": "pickle"}}))
    with pytest.raises(DataError, match="'X' is decoded with pickle, which runs what"):
        annotated._refuse_pickle(array({"compressor": {"id": "pickle"}}))


@pytest.mark.parametrize(
    "change",
    [
        *({"shape": ["many", 3]}, {"shape": [2, 3, 4]}, {"shape": [-1, 3]}),
        *({"codecs": []}, {"codecs": [{"name": "rot13"}]}, {"data_type": "float7"}),
        *({"zarr_format": 9}, '{"shape": ', "[1, 2]", None, b"junk", b""),
    ],
)
def test_bad_files_are_refused(tmp_path, change):
    """The description has other fields, is another text or missing; or a chunk is."""
    path = write_zarr(tmp_path / "d.zarr", X, (24, 90))
    description = path / "zarr.json"
    if change is None:
        description.unlink()
    elif isinstance(change, dict):
        description.write_text(json.dumps(json.loads(description.read_text()) | change))
    elif isinstance(change, str):
        description.write_text(change)
    else:
        (path / "c" / "0" / "0").write_bytes(change)
    with refused(path, ""):
        as_array(open_zarr(path).source)


def test_any_byte_of_the_description_may_change(tmp_path):
    path = write_zarr(tmp_path / "d.zarr", X, (24, 90))
    file = path / "zarr.json"
    content = file.read_bytes()
    rng = np.random.default_rng(0)
    outcomes = set()
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 1 << int(rng.integers(8))
        file.write_bytes(bytes(damaged))
        try:
            outcomes.add(as_array(open_zarr(path).source).shape)
        except FeatstreamError as error:
            outcomes.add(type(error).__name__)
    assert {X.shape, "DataError"} <= outcomes


def test_text_is_refused(tmp_path):
    group = zarr.open_group(tmp_path / "d.zarr", mode="w")
    write_elem(group, "X", np.array([["a", "b"], ["c", "d"]], object))
    with pytest.raises(DataTypeError, match="and not numbers"):
        open_zarr(tmp_path / "d.zarr")


def test_what_is_absent_is_answered_with_what_is_there(tmp_path):
    group = zarr.open_group(tmp_path / "d.zarr", mode="w")
    write_elem(group, "Z", X)
    with pytest.raises(DataError, match=r"it has no array 'X'. Its arrays are: 'Z'\."):
        open_zarr(tmp_path / "d.zarr")
    group.create_group("sub")
    with pytest.raises(DataError, match="'sub' in it is no array but a group"):
        open_zarr(tmp_path / "d.zarr", layer="sub")
    with pytest.raises(DataError, match="no array 'kind' for a target, and there is"):
        open_zarr(tmp_path / "d.zarr", "kind", layer="Z")
    path = write_zarr(tmp_path / "e.zarr", X, (24, 90))
    with pytest.raises(DataError, match="it is one array, and has no layer 'Z'"):
        open_zarr(path, layer="Z")
    (tmp_path / "f.zarr").write_text("not a folder")
    with pytest.raises(DataError, match=r"f\.zarr cannot be read as \.zarr"):
        open_zarr(tmp_path / "f.zarr")
