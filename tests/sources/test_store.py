"""The column store: what goes in comes out, and damage is noticed."""

import hashlib
import json
import mmap
import os
import zlib

import numpy as np
import pandas as pd
import psutil
import pytest
from scipy.sparse import csc_array, random_array

from featstream.errors import DataError, DataTypeError, ParameterError
from featstream.protocols import Block, SparseColumns
from featstream.sources import ArraySource, ChainedSource, FrameSource, store
from featstream.sources.memory import in_storage
from featstream.sources.store import StoreSource, open_store
from featstream.sources.store_writer import write_store
from gather import Blocks, as_array, as_columns


def stored(tmp_path, *columns, y=None, **options):
    write_store(tmp_path / "x.cols", Blocks(*columns, **options), y)
    return open_store(tmp_path / "x.cols")


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([1, 1], None),
        ([1, 2], "u1"),
        ([-1, 127], "i1"),
        ([1, 256], "u2"),
        ([-1, 300], "i2"),
        ([1, 70_000], "i4"),
        ([1, 2**40], "f4"),
        ([0.5, 2], "f4"),
        ([0.1, 2], "f8"),
        ([np.nan, 1], "f4"),
        ([np.inf, 1], "f4"),
        (np.array([1, 2**40 + 1]), "i8"),
        (np.array([True, True]), None),
    ],
)
@pytest.mark.parametrize("is_sparse", [True, False])
def test_values_keep_their_value_in_the_smallest_type(
    tmp_path, values, dtype, is_sparse
):
    X = np.asarray(values, getattr(values, "dtype", float)).reshape(2, 1)
    read = stored(tmp_path, as_columns(X) if is_sparse else X)
    np.testing.assert_array_equal(as_array(read), X)
    assert read.dtype == np.dtype(dtype or "u1")
    if is_sparse:
        assert (tmp_path / "x.cols/values.npy").exists() == (dtype is not None)


def test_types_that_change_between_blocks_are_joined(tmp_path):
    blocks = [np.array([[1], [2]]), np.array([[0.1], [2]]), np.array([[True], [False]])]
    read = stored(tmp_path, *blocks)
    assert read.dtype == np.float64
    np.testing.assert_array_equal(as_array(read), [[1, 0.1, 1], [2, 2, 0]])


BIG = np.array([[2**60, 5], [2**60 + 1, 7], [2**60 + 2, -2]])
HUGE = np.array([[2**63], [2**64 - 1], [3]], np.uint64)
FLOATS = np.array([[0.5, 2], [np.nan, 0], [1e300, 3]])


@pytest.mark.parametrize("is_sparse", [True, False])
@pytest.mark.parametrize(
    ("blocks", "dtype"),
    [
        ([BIG], "<i8"),
        ([HUGE], "<u8"),
        ([HUGE, abs(BIG)], "<u8"),
        ([BIG, HUGE], "<f8"),
        ([BIG, FLOATS], "<f8"),
        ([FLOATS, BIG, BIG, HUGE, FLOATS], "<f8"),
    ],
)
def test_integers_keep_every_bit_beside_anything(tmp_path, blocks, dtype, is_sparse):
    """No type holds both halves and 2**60 + 1: such columns keep their own type."""
    read = stored(tmp_path, *(as_columns(b) if is_sparse else b for b in blocks))
    assert read.dtype == np.dtype(dtype)
    expected = [column for block in blocks for column in block.T.tolist()]
    for start in range(len(expected)):
        found = [c.tolist() for b in read.blocks(start) for c in b.to_dense().T]
        assert repr(found) == repr(expected[start:])  # also the types, and NaN
    read.verify()
    version = json.loads((tmp_path / "x.cols/meta.json").read_text())["version"]
    assert version == (1 if dtype == "<i8" else 2)


def test_plain_numbers_are_stored_as_before(tmp_path):
    """The fingerprint of version 1, computed from its description alone."""
    folder = tmp_path / "x.cols"
    stored(tmp_path, np.array([[1, 2], [3, 400]]), np.array([[0.5], [2]]), y=[0, 1])
    meta = json.loads((folder / "meta.json").read_text())
    checksums = {
        f"{name}.npy": f"{zlib.crc32(values.tobytes()):08x}"
        for name, values in {
            "columns": np.array([1, 3, 2, 400, 0.5, 2], "<f4"),
            "y": np.array([0, 1], "<i8"),
        }.items()
    }
    first = {
        "format": "featstream columns",
        "version": 1,
        "n_samples": 2,
        "n_features": 3,
        "n_entries": None,
        "dtype": "<f4",
        "names": None,
        "nominal": False,
        "y": {"dtype": "<i8"},
        "checksums": checksums,
    }
    content = json.dumps(first, sort_keys=True).encode()
    assert meta.pop("creator").startswith("featstream")
    assert meta.pop("chunks")["n"] == 2  # one chunk of each file
    assert meta.pop("fingerprint") == hashlib.sha256(content).hexdigest()
    assert meta == first


def test_a_sparse_block_is_made_dense_in_parts():
    """At once, this one would take 320 MB."""
    rows, values = np.zeros(2_000, np.int32), np.ones(2_000)
    block = Block(SparseColumns(np.arange(2_001), rows, values, 20_000))
    parts = list(in_storage(block, is_sparse=False))
    assert max(part.columns.nbytes for part in parts) <= 1 << 24
    assert [part.start for part in parts] == list(range(0, 2_000, parts[0].n_columns))
    assert sum(part.columns[0].sum() for part in parts) == 2_000


def test_dense_and_sparse_blocks_mix_into_what_came_first(tmp_path):
    X = np.array([[0, 1.5], [2, 0]])
    for blocks, n_entries in ([X, as_columns(X)], None), ([as_columns(X), X], 4):
        write_store(tmp_path / f"{n_entries}.cols", Blocks(*blocks))
        read = open_store(tmp_path / f"{n_entries}.cols")
        assert read.n_entries == n_entries
        np.testing.assert_array_equal(as_array(read), np.hstack([X, X]))


def test_blocks_are_bounded_and_can_begin_anywhere(tmp_path):
    X = random_array((30, 40), density=0.3, rng=np.random.default_rng(0))
    read = stored(tmp_path, as_columns(X))
    for max_columns, max_entries in [(7, 10**6), (1000, 20), (1000, 1), (1, 1)]:
        read.block_columns, read.block_entries = max_columns, max_entries
        for block in read.blocks():
            assert block.n_columns <= max_columns
            assert block.columns.rows.size <= max_entries or block.n_columns == 1
        for start in (0, 1, 17, 39):
            np.testing.assert_array_equal(as_array(read, start), X.toarray()[:, start:])
    assert list(read.blocks(40)) == []
    with pytest.raises(ParameterError, match="start"):
        list(read.blocks(41))


@pytest.mark.skipif(not hasattr(mmap, "MADV_DONTNEED"), reason="pages are kept")
@pytest.mark.parametrize("make", [np.asarray, as_columns])
def test_a_block_holds_no_memory_when_reading_has_ended(tmp_path, make):
    """Nor if only one was read: workers of a cluster read one here and one there."""
    columns = make(np.ones((200_000, 20), np.uint8))
    write_store(tmp_path / "x.cols", Blocks(columns, columns))
    source = StoreSource(tmp_path / "x.cols", block_columns=20)

    def resident():
        maps = psutil.Process().memory_maps()
        return sum(m.rss for m in maps if "x.cols" in m.path)

    blocks = source.blocks(20)
    assert next(blocks).to_dense().all()
    held = resident()
    assert held >= 20 * 200_000
    blocks.close()
    assert resident() < held / 4  # pages beside it are read ahead


def test_other_entries_and_stored_zeros_are_left_out(tmp_path):
    """The pointers of sparse columns need not begin at 0."""
    rows, values = np.array([0, 0, 1, 1], np.int32), np.array([7, 0.0, 2, -0.0])
    read = stored(tmp_path, SparseColumns(np.array([1, 3, 4]), rows, values, 2))
    assert read.n_entries == 1
    np.testing.assert_array_equal(as_array(read), [[0, 0], [2, 0]])


def test_names_and_kinds_come_back(tmp_path):
    names = ["gene", "", "größe\n", "</script>"]
    X, samples = np.eye(4), ["s1", "größe", "", "s4"]
    source = Blocks(X[:, :2], X[:, 2:], names=names, nominal=[0, 0, 1, 0])
    source.sample_names = samples
    write_store(tmp_path / "x.cols", source)
    read = open_store(tmp_path / "x.cols")
    assert (list(read.names), read.sample_names) == (names, samples)
    assert read.names[-1] == names[-1]
    (block,) = read.blocks(1)
    assert list(block.names) == names[1:]
    assert block.nominal.tolist() == [False, True, False]


def test_names_that_begin_late_are_filled_up(tmp_path):
    late = FrameSource(pd.DataFrame({"a": ["u", "v"], "b": [0, 1]}))
    source = ChainedSource([ArraySource(np.eye(2)), late])
    write_store(tmp_path / "x.cols", source)
    read = open_store(tmp_path / "x.cols")
    assert list(read.names) == ["x0", "x1", "a", "b"]
    (block,) = read.blocks()
    assert block.nominal.tolist() == [False, False, True, False]


@pytest.mark.parametrize(
    "y",
    [
        [1, 2, 3],
        [0.5, 1, 2],
        ["ham", "spam", "größe"],
        [True, False, True],
        np.array([2**63 + 1, 5, 2**64 - 1], np.uint64),
        None,
    ],
)
def test_the_target_comes_back(tmp_path, y):
    read = stored(tmp_path, np.eye(3), y=y)
    assert (None if y is None else read.y.tolist()) == (y if y is None else [*y])


def test_what_cannot_be_stored_is_refused(tmp_path):
    path = tmp_path / "x.cols"
    unsorted = SparseColumns(
        np.array([0, 2]), np.array([1, 0], np.int32), np.array([1, 1]), 2
    )
    cases = [
        (Blocks(np.eye(2)), [1, 2, 3], DataError, "target has shape"),
        (Blocks(np.eye(2)), [1j, 2], DataTypeError, "numbers or words"),
        (Blocks(np.eye(2)), [None, "a"], DataTypeError, "numbers or words"),
        (Blocks(np.eye(2, dtype=complex)), None, DataTypeError, "holds numbers"),
        (Blocks(np.eye(2), np.eye(3)), None, DataError, "3 values but the first"),
        (Blocks(unsorted), None, DataError, "do not increase"),
        (Blocks(np.empty((3, 0))), None, DataError, "no columns"),
    ]
    for source, y, error, message in cases:
        with pytest.raises(error, match=message):
            write_store(path, source, y)
        assert os.listdir(tmp_path) == []  # not even a trace
    path.mkdir()
    with pytest.raises(ParameterError, match="exists"):
        write_store(path, Blocks(np.eye(2)))


def test_the_files_are_readable_with_numpy_alone(tmp_path):
    X = random_array((5, 6), density=0.5, rng=np.random.default_rng(0))
    stored(tmp_path, as_columns(X))
    folder = tmp_path / "x.cols"
    parts = [np.load(folder / f"{n}.npy") for n in ("values", "rows", "indptr")]
    assert (csc_array(tuple(parts), shape=(5, 6)) != X).nnz == 0


def test_the_fingerprint_is_that_of_the_content(tmp_path):
    prints = set()
    for i, (X, y) in enumerate([(1, 0), (1, 0), (2, 0), (1, 1)]):
        write_store(tmp_path / f"{i}", Blocks(X * np.eye(2)), [y, 2])
        prints.add(open_store(tmp_path / f"{i}").fingerprint)
    assert len(prints) == 3


# Damage.


@pytest.fixture
def folder(tmp_path):
    X = random_array((20, 30), density=0.4, rng=np.random.default_rng(0))
    names = [f"name {j}" for j in range(30)]
    stored(tmp_path, as_columns(X), y=["a", "b"] * 10, names=names, nominal=[True] * 30)
    return tmp_path / "x.cols"


def read_all(folder):
    read = open_store(folder)
    return as_array(read), read.y, list(read.names), read.sample_names


def test_every_file_cut_short_or_missing_is_noticed(folder):
    for path in folder.iterdir():
        whole = path.read_bytes()
        for size in {0, 1, 60, 127, 128, len(whole) // 2, len(whole) - 1}:
            path.write_bytes(whole[:size])
            with pytest.raises(DataError):
                read_all(folder)
        path.unlink()
        with pytest.raises(DataError):
            read_all(folder)
        path.write_bytes(whole)
    read_all(folder)


def test_no_flipped_bit_of_the_structure_crashes(folder):
    rng = np.random.default_rng(0)
    for name in ("indptr", "rows", "name_ends", "y_ends", "names"):
        path = folder / f"{name}.npy"
        whole = bytearray(path.read_bytes())
        for bit in rng.choice(8 * len(whole), 150, replace=False):
            damaged = whole.copy()
            damaged[bit // 8] ^= 1 << (bit % 8)
            path.write_bytes(damaged)
            try:
                read_all(folder)
            except DataError:
                continue
        path.write_bytes(whole)


def change_byte(path, place):
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)


def as_before_chunks(folder):
    """The store as an earlier version wrote it."""
    (folder / "chunks.npy").unlink()
    path = folder / "meta.json"
    meta = json.loads(path.read_text())
    del meta["chunks"]
    path.write_text(json.dumps(meta))


@pytest.mark.parametrize("is_old", [False, True])
def test_a_changed_value_is_found_while_reading(folder, is_old):
    if is_old:
        as_before_chunks(folder)
    before = read_all(folder)[0]
    open_store(folder).verify()
    change_byte(folder / "values.npy", -1)
    mismatch = pytest.raises(DataError, match=r"values\.npy is damaged: checksum mism")
    with mismatch:
        read_all(folder)
    with mismatch:
        open_store(folder).verify()
    unverified = as_array(open_store(folder, verify=False))
    assert (unverified != before).sum() == 1


def test_a_checksum_goes_on_from_chunk_to_chunk(folder, monkeypatch):
    """A large file is read a part at a time; here every file has several parts."""
    monkeypatch.setattr(store, "CHUNK_BYTES", 7)
    open_store(folder).verify()
    change_byte(folder / "values.npy", -1)
    with pytest.raises(DataError, match=r"values\.npy is damaged: checksum mismatch"):
        open_store(folder).verify()


@pytest.mark.parametrize("number", [3, 255])
def test_a_type_that_does_not_exist_is_damage(tmp_path, number):
    """There are three, numbered from 0."""
    stored(tmp_path, FLOATS, BIG, HUGE)
    path = tmp_path / "x.cols" / "kinds.npy"
    data = bytearray(path.read_bytes())
    assert data[-5:] == bytes([0, 0, 1, 1, 2])
    data[-1] = number
    path.write_bytes(data)
    with pytest.raises(DataError, match="it names an unknown type"):
        open_store(tmp_path / "x.cols", verify=False)


def test_every_changed_byte_is_found(folder):
    """In any file, wherever it is; but for what numpy writes into a header."""
    for path in folder.glob("*.npy"):
        for place in range(128, path.stat().st_size, 7):
            change_byte(path, place)
            with pytest.raises(DataError):
                read_all(folder)
            change_byte(path, place)
    read_all(folder)


def test_each_chunk_that_is_read_is_compared_and_no_other(tmp_path, monkeypatch):
    monkeypatch.setattr("featstream.sources.store.CHECKED_BYTES", 64)
    X = np.arange(40.0).reshape(4, 10) + 0.1  # 32 bytes per column, 2 columns per chunk
    stored(tmp_path, X[:, :7], X[:, 7:])
    folder = tmp_path / "x.cols"
    np.testing.assert_array_equal(as_array(open_store(folder)), X)
    change_byte(folder / "columns.npy", 128 + 5 * 32)  # column 5, with 4 in a chunk
    narrow = StoreSource(folder, block_columns=1)
    for first in (0, 1, 2, 3, 6, 7, 9):
        assert next(narrow.blocks(first)).columns[:, 0].tolist() == X[:, first].tolist()
    for first in (4, 5):
        with pytest.raises(DataError, match="checksum mismatch at byte 128"):
            next(narrow.blocks(first))
    with pytest.raises(DataError, match="checksum mismatch"):
        next(narrow.reopener()().blocks(5))


def test_an_old_store_is_compared_once_and_not_by_workers(folder, monkeypatch):
    as_before_chunks(folder)
    count = []
    verify = StoreSource.verify
    monkeypatch.setattr(StoreSource, "verify", lambda s: (count.append(s), verify(s)))
    store = open_store(folder)
    for first in (0, 3, 0):
        next(store.blocks(first))
    next(store.reopener()().blocks())
    assert count == [store]


def test_checksums_that_do_not_fit_are_noticed(folder):
    path = folder / "meta.json"
    meta = json.loads(path.read_text())
    facts = meta["chunks"]
    names = list(facts["begins"])
    for wrong in (
        {"n": -1},
        {"n": facts["n"] + 1},
        {"size": 7},
        {"checksum": "00000000"},
        {"begins": {}},
        {"begins": dict.fromkeys(names, 0)},
        {"begins": facts["begins"] | {names[0]: 10**9}},
        {"begins": 3},
    ):
        path.write_text(json.dumps(meta | {"chunks": facts | wrong}))
        with pytest.raises(DataError):
            read_all(folder)
    path.write_text(json.dumps(meta | {"chunks": 3}))
    with pytest.raises(DataError):
        read_all(folder)


def test_a_wrong_description_is_noticed(folder):
    path = folder / "meta.json"
    meta = json.loads(path.read_text())
    wrong = {
        "format": ["other", 3],
        "version": [3, "x"],
        "n_samples": [10, -1, 2**31, 2.5, None],
        "n_features": [29, 31, 2**60, "30"],
        "n_entries": [1, 10**12, None],
        "dtype": ["<f4", "|O", "<U5", "ones", None],
        "names": [1, -1, [3]],
        "y": [{"n_bytes": 3}, {"dtype": "|O"}, {}, 3, "dtype"],
        "kinds": [True, 1],
        "samples": [1, -1, "x"],
        "checksums": [None],
        "fingerprint": [1],
    }
    for field, values in wrong.items():
        for value in values:
            path.write_text(json.dumps(meta | {field: value}))
            if (field, value) == ("dtype", "ones"):
                continue  # true of the files that are there
            with pytest.raises(DataError):
                read_all(folder)
        if field in ("kinds", "samples"):
            continue  # which need not be there
        path.write_text(json.dumps({k: v for k, v in meta.items() if k != field}))
        with pytest.raises(DataError):
            read_all(folder)
    for text in ["", "[]", "[" * 100_000, "nul", " " * (1 << 20) + "{}"]:
        path.write_text(text)
        with pytest.raises(DataError):
            read_all(folder)


def test_a_folder_without_a_description_is_no_store(tmp_path):
    with pytest.raises(DataError, match="never finished"):
        open_store(tmp_path)
    with pytest.raises(FileNotFoundError):
        open_store(tmp_path / "missing")


def test_a_full_disk_leaves_nothing(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_store(tmp_path / "x.cols", Blocks(np.eye(3)))
    assert os.listdir(tmp_path) == []
