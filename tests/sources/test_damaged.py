"""Files that are damaged, cut while they are read, or would fill the memory."""

import io
import os
import struct
import zipfile
import zlib

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from scipy import sparse

from featstream import SAOLA
from featstream.cli import main
from featstream.errors import DataError
from featstream.sources import (
    ArraySource,
    SparseSource,
    convert,
    iter_svmlight,
    open_dataset,
    open_features,
    write_store,
)
from featstream.sources.npy import read_header
from featstream.sources.values import LIMITS
from gather import as_array

HUGE = 2**40


def refusal(path, **options):
    with pytest.raises(DataError) as caught:
        list(open_features(path, **options).source.blocks())
    assert "\n" not in str(caught.value)
    assert main(["select", str(path), "-q"]) == 1
    return str(caught.value)


def npy_header(shape, dtype="<f8"):
    text = repr({"descr": dtype, "fortran_order": False, "shape": shape}) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode("latin-1")


def write_npz(path, **members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return path


def saved(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


# Arrays -------------------------------------------------------------------------


def test_an_array_that_claims_more_than_it_has_is_refused(tmp_path):
    content = npy_header((2, HUGE)) + bytes(64)
    path = write_npz(tmp_path / "d.npz", X=content, y=saved(np.arange(2)))
    assert "should be float64 of shape (2, 1099511627776)" in refusal(path)
    (tmp_path / "d.npy").write_bytes(content)
    assert "cannot be read as .npy" in refusal(tmp_path / "d.npy")


def test_an_archive_that_unpacks_to_very_much_is_refused_unless_trusted(tmp_path):
    X = np.zeros((64, 140_000))  # 72 MB in 70 kB, and 64 MB are allowed
    X[::2, 7] = 1
    y = np.arange(64) % 2
    path = tmp_path / "d.npz"
    np.savez_compressed(path, X=X, y=y)
    error = refusal(path)
    assert "its array 'X' unpacks to more than 64 MB" in error
    assert "pass max_bytes='512MB'" in error
    assert open_dataset(path, max_bytes="100MB").source.n_features == 140_000
    assert main(["info", str(path), "--max-bytes", "100MB"]) == 0


@pytest.mark.parametrize(
    "header",
    [
        *(b"{'descr': '<f8', 'shape': (", b"{'descr': ", b"[", b"((((((" * 99),
        b"{'descr': 'O?', 'fortran_order': False, 'shape': (1, 1)}",
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (-1, 1)}",
        b"{'descr': [('a', '?!')], 'fortran_order': False, 'shape': (2, 2)}",
        b"\xff" * 20,
    ],
)
def test_a_damaged_header_is_an_error_of_one_sentence(tmp_path, header):
    content = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bytes(32)
    with pytest.raises(DataError, match=r"has a header that cannot be read|shape"):
        read_header(io.BytesIO(content), "it")
    (tmp_path / "d.npy").write_bytes(content)
    refusal(tmp_path / "d.npy")
    refusal(write_npz(tmp_path / "d.npz", X=content))


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_an_array_of_objects_says_what_to_save_instead(tmp_path, suffix):
    X, path = np.array([["a", 1], ["b", 2]], object), tmp_path / f"d{suffix}"
    if suffix == ".npy":
        np.save(path, X)
    else:
        np.savez(path, X=np.eye(2), names=np.array(["a", "b"], object))
    error = refusal(path)
    assert "holds objects of Python" in error
    assert "array.astype(str)" in error


def test_a_mapped_array_that_is_cut_while_it_is_read_is_an_error(tmp_path):
    path = tmp_path / "d.npy"
    np.save(path, np.ones((1000, 5000)))
    blocks = open_features(path).source.blocks()
    next(blocks)
    os.truncate(path, 4096)
    with pytest.raises(DataError, match="was cut short while it was read: it has 4,0"):
        next(blocks)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_a_store_that_is_cut_while_it_is_read_is_an_error(tmp_path, is_sparse):
    X = np.ones((1000, 40_000), np.uint8)
    if is_sparse:
        X[:, ::2] = 0
    source = SparseSource(sparse.csc_array(X)) if is_sparse else ArraySource(X)
    write_store(tmp_path / "d.cols", source)
    blocks = open_features(tmp_path / "d.cols").source.blocks()
    next(blocks)
    os.truncate(tmp_path / "d.cols" / ("rows.npy" if is_sparse else "columns.npy"), 99)
    with pytest.raises(DataError, match="was cut short while it was read: it has 99"):
        next(blocks)


def test_genotypes_that_are_cut_while_they_are_read_are_an_error(tmp_path):
    path = tmp_path / "d.bed"
    path.write_bytes(b"\x6c\x1b\x01" + bytes(100 * 200_000))
    lines = (f"1 rs{j} 0 {j} A G\n" for j in range(200_000))
    path.with_suffix(".bim").write_text("".join(lines))
    lines = (f"fam s{i} 0 0 1 {1 + i % 2}\n" for i in range(400))
    path.with_suffix(".fam").write_text("".join(lines))
    blocks = open_features(path).source.blocks()
    next(blocks)
    os.truncate(path, 1000)
    with pytest.raises(
        DataError, match="was cut short while it was read: it has 1,000"
    ):
        next(blocks)


# Text ---------------------------------------------------------------------------


def test_svmlight_text_that_is_cut_while_it_is_read_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(LIMITS, "svmlight_chunk", 1 << 12)
    path = tmp_path / "d.svm"
    path.write_text("1 1:1 2:0.5\n-1 3:2\n" * 20_000)
    slices = iter_svmlight(path, n_jobs=1)
    next(slices)
    os.truncate(path, 9000)
    with pytest.raises(DataError, match="was cut short while it was read"):
        list(slices)


def test_a_greatest_index_without_its_columns_is_refused(tmp_path):
    """Where 2**31 columns begin would take 16 GiB."""
    path = tmp_path / "d.svm"
    path.write_text("1 2147483647:1\n-1 1:1\n")
    error = refusal(path)
    assert "2,147,483,647 features" in error
    assert "pass max_bytes='16GB'" in error
    with pytest.raises(DataError, match="2,147,483,647 features"):
        convert(path, tmp_path / "d.cols")
    path.write_text("1 3000000:1\n-1 1:1\n")
    assert open_dataset(path).source.n_features == 3_000_000


# Tables -------------------------------------------------------------------------


def test_a_column_of_parquet_that_unpacks_to_very_much_is_refused(tmp_path):
    """A value repeated 40 million times takes some hundred bytes on disk."""
    n = 40_000_000
    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, np.int8)), [1.5])
    path = tmp_path / "d.parquet"
    pq.write_table(pa.table({"a": column}), path)
    assert path.stat().st_size < 200_000
    error = refusal(path)
    assert "a column of 40,000,000 values takes more than 64 MB" in error
    assert open_features(path, max_bytes="1GB").source.n_samples == n


def test_a_feather_file_that_is_cut_while_it_is_read_is_an_error(tmp_path):
    path = tmp_path / "d.feather"
    rng = np.random.default_rng(0)
    table = pa.table({f"g{j}": rng.normal(size=1000) for j in range(3000)})
    pyarrow.feather.write_feather(table, path, compression="uncompressed")
    blocks = open_features(path).source.blocks()
    next(blocks)
    os.truncate(path, 100_000)
    with pytest.raises((DataError, OSError)):
        list(blocks)


# Memory -------------------------------------------------------------------------


def test_too_little_memory_is_one_sentence(tmp_path, capsys, monkeypatch):
    def exhausted(self, source, *_, **__):
        raise MemoryError("Unable to allocate 9.00 TiB for an array")

    monkeypatch.setattr(SAOLA, "consume", exhausted)
    np.savez(tmp_path / "d.npz", X=np.eye(4), y=[0, 1, 0, 1])
    command = ["select", str(tmp_path / "d.npz"), "--selector", "saola", "-q"]
    assert main(command) == 1
    said = capsys.readouterr().err
    assert said.startswith("featstream: error: there is not enough memory for this")
    assert "9.00 TiB" in said
    assert "featstream convert DATA NEW.cols" in said
    assert said.count("\n") == 1


def test_a_store_keeps_nothing_of_a_conversion_that_was_killed(tmp_path):
    np.save(tmp_path / "d.npy", np.eye(3))
    dead = tmp_path / ".d.cols.0123abcd.tmp"
    dead.mkdir()
    (dead / "lock").touch()
    (dead / "columns.npy").write_bytes(bytes(100))
    other = tmp_path / ".e.cols.0123abcd.tmp"
    other.mkdir()
    (other / "lock").touch()
    assert main(["convert", str(tmp_path / "d.npy"), str(tmp_path / "d.cols")]) == 0
    assert not dead.exists()
    assert other.exists()  # of another store
    assert as_array(open_features(tmp_path / "d.cols").source).tolist() == [
        [1, 0, 0],
        [0, 1, 0],
        [0, 0, 1],
    ]
    assert sorted(p.name for p in (tmp_path / "d.cols").iterdir()) == [
        "chunks.npy",
        "columns.npy",
        "meta.json",
    ]


def test_a_conversion_that_is_still_going_on_is_left_alone(tmp_path):
    from filelock import FileLock

    alive = tmp_path / ".d.cols.0123abcd.tmp"
    alive.mkdir()
    with FileLock(alive / "lock"):
        np.save(tmp_path / "d.npy", np.eye(3))
        assert main(["convert", str(tmp_path / "d.npy"), str(tmp_path / "d.cols")]) == 0
    assert alive.exists()


def test_bits_that_flip_in_an_archive_are_found(tmp_path):
    path = write_npz(tmp_path / "d.npz", X=saved(np.eye(50)), y=saved(np.arange(50)))
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        middle = archive.infolist()[0].header_offset + 200
    content[middle] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises((DataError, zlib.error)):
        open_dataset(path)
