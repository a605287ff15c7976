"""The column store, and the way from rows to columns."""

import gzip
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.sparse import csc_array, random_array

from featstream.errors import DataError, DataTypeError, ParameterError
from featstream.protocols import Block, Source, SparseColumns
from featstream.sources import _svmlight_rows, store, transpose
from featstream.sources._store_writer import write_store
from featstream.sources.store import open_store
from featstream.sources.svmlight import read_svmlight
from featstream.sources.transpose import convert

quick = settings(
    deadline=None,
    max_examples=40,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


class Blocks:
    """A source of given blocks."""

    n_features = None

    def __init__(self, *columns, names=None, nominal=None):
        self.columns = columns
        self.names = names
        self.nominal = nominal
        self.n_samples = columns[0].shape[0]

    def blocks(self, start=0):
        position = 0
        for columns in self.columns:
            span = slice(position, position + columns.shape[1])
            names = None if self.names is None else self.names[span]
            nominal = None if self.nominal is None else np.array(self.nominal[span])
            yield Block(columns, position, names, nominal)
            position = span.stop


def as_columns(X):
    X = csc_array(X)
    indptr = X.indptr.astype(np.int64)
    return SparseColumns(indptr, X.indices.astype(np.int32), X.data, X.shape[0])


def as_array(source, start=0):
    """All columns of a source, dense; checks that blocks follow each other."""
    parts = []
    for block in source.blocks(start):
        assert block.start == start
        start += block.n_columns
        columns = block.columns
        if block.is_sparse:
            compressed = (columns.values, columns.rows, columns.indptr)
            columns = csc_array(compressed, shape=columns.shape).toarray()
        parts.append(columns)
    return np.concatenate(parts, axis=1)


def stored(tmp_path, *columns, y=None, **options):
    write_store(tmp_path / "x.cols", Blocks(*columns, **options), y)
    return open_store(tmp_path / "x.cols")


def test_a_store_is_a_source(tmp_path):
    assert isinstance(stored(tmp_path, np.eye(3)), Source)


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


def test_dense_and_sparse_blocks_mix_into_what_came_first(tmp_path):
    X = np.array([[0, 1.5], [2, 0]])
    write_store(tmp_path / "a.cols", Blocks(X, as_columns(X)))
    write_store(tmp_path / "b.cols", Blocks(as_columns(X), X))
    dense, sparse = open_store(tmp_path / "a.cols"), open_store(tmp_path / "b.cols")
    assert dense.n_entries is None
    assert sparse.n_entries == 4
    np.testing.assert_array_equal(as_array(dense), np.hstack([X, X]))
    np.testing.assert_array_equal(as_array(sparse), np.hstack([X, X]))


def test_blocks_are_bounded_and_can_begin_anywhere(tmp_path, monkeypatch):
    X = random_array((30, 40), density=0.3, rng=np.random.default_rng(0))
    read = stored(tmp_path, as_columns(X))
    for max_columns, max_entries in [(7, 10**6), (1000, 20), (1000, 1), (1, 1)]:
        monkeypatch.setattr(store, "_MAX_COLUMNS", max_columns)
        monkeypatch.setattr(store, "_MAX_ENTRIES", max_entries)
        for block in read.blocks():
            assert block.n_columns <= max_columns
            assert block.columns.rows.size <= max_entries or block.n_columns == 1
        for start in (0, 1, 17, 39):
            np.testing.assert_array_equal(as_array(read, start), X.toarray()[:, start:])
    assert list(read.blocks(40)) == []
    with pytest.raises(ParameterError, match="start"):
        list(read.blocks(41))


def test_an_indptr_need_not_begin_at_zero(tmp_path):
    whole = as_columns(np.array([[1, 0, 3], [4, 5, 0]]))
    part = SparseColumns(whole.indptr[1:], whole.rows, whole.values, 2)
    np.testing.assert_array_equal(as_array(stored(tmp_path, part)), [[0, 3], [5, 0]])


def test_stored_zeros_are_left_out(tmp_path):
    columns = SparseColumns(
        np.array([0, 2, 3]), np.array([0, 1, 1], np.int32), np.array([0.0, 2, -0.0]), 2
    )
    read = stored(tmp_path, columns)
    assert read.n_entries == 1
    np.testing.assert_array_equal(as_array(read), [[0, 0], [2, 0]])


def test_names_and_kinds_come_back(tmp_path):
    names = ["gene", "", "größe\n", "</script>"]
    read = stored(
        tmp_path, np.eye(4)[:, :2], np.eye(4)[:, 2:], names=names, nominal=[0, 0, 1, 0]
    )
    assert list(read.names) == names
    assert read.names[-1] == names[-1]
    (block,) = read.blocks(1)
    assert list(block.names) == names[1:]
    assert block.nominal.tolist() == [False, True, False]


def test_names_that_begin_late_are_filled_up(tmp_path):
    class Late(Blocks):
        def blocks(self, start=0):
            yield Block(np.eye(2), 0)
            yield Block(np.eye(2), 2, ["a", "b"], np.array([True, False]))

    write_store(tmp_path / "x.cols", Late(np.eye(2)))
    read = open_store(tmp_path / "x.cols")
    assert list(read.names) == ["x0", "x1", "a", "b"]
    (block,) = read.blocks()
    assert block.nominal.tolist() == [False, False, True, False]


@pytest.mark.parametrize(
    "y",
    [[1, 2, 3], [0.5, 1, 2], ["ham", "spam", "größe"], [True, False, True], None],
)
def test_the_target_comes_back(tmp_path, y):
    read = stored(tmp_path, np.eye(3), y=y)
    assert (None if y is None else read.y.tolist()) == y


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
    return as_array(read), read.y, list(read.names)


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


def test_lies_of_the_description_are_noticed(folder):
    path = folder / "meta.json"
    meta = json.loads(path.read_text())
    lies = {
        "format": ["other", 3],
        "version": [2, "x"],
        "n_samples": [10, -1, 2**31, 2.5, None],
        "n_features": [29, 31, 2**60, "30"],
        "n_entries": [1, 10**12, None],
        "dtype": ["<f4", "|O", "<U5", "ones", None],
        "names": [1, -1, [3]],
        "y": [{"n_bytes": 3}, {"dtype": "|O"}, {}, 3, "dtype"],
        "checksums": [None],
        "fingerprint": [1],
    }
    for field, values in lies.items():
        for value in values:
            path.write_text(json.dumps(meta | {field: value}))
            if (field, value) == ("dtype", "ones"):
                continue  # true of the files that are there
            with pytest.raises(DataError):
                read_all(folder)
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


# Conversion.


def random_text(n_rows, n_features, seed, values="real", base=1):
    rng = np.random.default_rng(seed)
    lines = []
    for _ in range(n_rows):
        columns = np.flatnonzero(rng.random(n_features) < 0.3) + base
        if values == "real":
            numbers = [f"{v:.6g}" for v in rng.normal(size=columns.size)]
        else:
            numbers = rng.choice(values, columns.size)
        row = " ".join(f"{j}:{v}" for j, v in zip(columns, numbers, strict=True))
        lines.append(f"{rng.choice([-1, 1])} {row}\n")
    return "".join(lines)


def check_conversion(path, out, **options):
    X, y = read_svmlight(path, zero_based=options.get("zero_based", "auto"))
    read = convert(path, out, **options)
    np.testing.assert_array_equal(as_array(read), X.toarray())
    assert read.y.tolist() == y.tolist()
    assert read.n_entries == np.count_nonzero(X.data)
    assert not list(read.path.glob("*.scratch"))
    return read


@quick
@given(
    n_rows=st.integers(1, 60),
    n_features=st.integers(1, 40),
    seed=st.integers(0, 99),
    max_entries=st.sampled_from([1, 7, 50, 10**6]),
    max_columns=st.sampled_from([1, 3, 10**6]),
    piece=st.sampled_from([16, 300, 10**6]),
    base=st.integers(0, 1),
)
def test_any_cut_gives_the_same_store(
    tmp_path_factory, n_rows, n_features, seed, max_entries, max_columns, piece, base
):
    folder = tmp_path_factory.mktemp("cut")
    path = folder / "x.svm"
    path.write_text(
        f"1 {n_features}:1\n" + random_text(n_rows, n_features, seed, base=base)
    )
    memory = transpose._LEAST_MEMORY
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_svmlight_rows, "PIECE", piece)
        patch.setattr(transpose, "_BYTES_PER_ENTRY", memory // max_entries)
        patch.setattr(transpose, "_BYTES_PER_COLUMN", memory // max_columns)
        check_conversion(path, folder / "x.cols", memory=memory)


@pytest.mark.parametrize(
    ("values", "dtype"), [(["1"], "u1"), (["1", "0"], "u1"), (["-3", "0.5"], "f4")]
)
def test_the_type_is_found_while_converting(tmp_path, values, dtype):
    path = tmp_path / "x.svm"
    path.write_text(random_text(20, 10, 0, values=values))
    assert check_conversion(path, tmp_path / "x.cols").dtype == np.dtype(dtype)


def test_columns_far_apart_and_columns_without_entries(tmp_path):
    path = tmp_path / "x.svm"
    path.write_text("a 1:1 3000000:2\nb\n")
    read = convert(path, tmp_path / "x.cols", memory=64 << 20)
    assert read.shape == (2, 3_000_000)
    assert sum(block.columns.rows.size for block in read.blocks()) == 2
    assert read.y.tolist() == ["a", "b"]


def test_columns_that_appear_late_are_split_off(tmp_path, monkeypatch):
    """The sample of a compressed file is its beginning: here it knows column 1."""
    monkeypatch.setattr(_svmlight_rows, "PIECE", 100)
    monkeypatch.setattr(transpose, "_BYTES_PER_ENTRY", (64 << 20) // 100)
    path = tmp_path / "x.svm.gz"
    rows = ["1 1:1"] * 50 + [f"1 {j}:{j} {j + 500}:2" for j in range(2, 500)]
    path.write_bytes(gzip.compress("\n".join(rows).encode()))
    check_conversion(path, tmp_path / "x.cols", memory=64 << 20)


def test_a_source_is_converted_too(tmp_path):
    read = convert(Blocks(np.eye(3)), tmp_path / "x.cols", y=[1, 2, 3])
    assert read.y.tolist() == [1, 2, 3]


def test_progress_is_told(tmp_path):
    path = tmp_path / "x.svm"
    path.write_text(random_text(20, 10, 0))
    seen = []
    convert(path, tmp_path / "x.cols", progress=lambda *step: seen.append(step))
    size = path.stat().st_size
    assert seen == [("reading", size, size), ("writing", 10, 10)]


def test_a_failed_conversion_leaves_nothing(tmp_path):
    path = tmp_path / "x.svm"
    for text, message in [
        ("1 1:1\n1 1:x\n", "line 2"),
        ("1\n", "no columns"),
        ("", "no"),
    ]:
        path.write_text(text)
        with pytest.raises(DataError, match=message):
            convert(path, tmp_path / "x.cols")
        assert os.listdir(tmp_path) == ["x.svm"]
    with pytest.raises(ParameterError, match="memory"):
        convert(path, tmp_path / "x.cols", memory=1)
    with pytest.raises(ParameterError, match="y"):
        convert(path, tmp_path / "x.cols", y=[1])


def test_a_full_disk_leaves_nothing(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_store(tmp_path / "x.cols", Blocks(np.eye(3)))
    assert os.listdir(tmp_path) == []


CHILD = """
import sys
from featstream.sources.transpose import convert
print("started", flush=True)
convert(sys.argv[1], sys.argv[2], memory=64 << 20)
print("finished", flush=True)
"""


@pytest.mark.slow
def test_a_killed_conversion_leaves_no_store(tmp_path):
    path = tmp_path / "x.svm"
    path.write_text(random_text(2000, 300, 0) * 5)
    landed = 0
    for attempt in range(20):
        out = tmp_path / f"{attempt}.cols"
        command = [sys.executable, "-c", CHILD, str(path), str(out)]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert child.stdout.readline() == "started\n"
        time.sleep(0.05 * attempt)
        child.send_signal(signal.SIGKILL)
        if "finished" not in child.communicate()[0]:
            landed += 1
        if out.exists():  # the rename may have happened already
            assert as_array(open_store(out)).shape == (10_000, 300)
    assert landed > 0


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_columns(tmp_path):
    peaks = []
    for n_features in (200_000, 1_600_000):
        out = tmp_path / f"{n_features}.cols"

        class Wide:
            n_samples = 20_000

            def __init__(self, n_features):
                self.n_features = n_features

            def blocks(self, start=0):
                rng = np.random.default_rng(0)
                for begin in range(0, self.n_features, 20_000):
                    rows = np.sort(rng.integers(0, 2000, (20_000, 10))) * 10
                    rows = (rows + np.arange(10)).astype(np.int32).ravel()
                    indptr = np.arange(0, 200_001, 10)
                    yield Block(
                        SparseColumns(indptr, rows, rng.normal(size=200_000), 20_000),
                        begin,
                    )

        write_store(out, Wide(n_features))
        script = (
            "import resource, sys; from featstream.sources.store import open_store;"
            "n = sum(b.columns.rows.sum() + b.columns.values.sum() > 0"
            " for b in open_store(sys.argv[1]).blocks());"
            "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
        )
        run = [sys.executable, "-c", script, str(out)]
        done = subprocess.run(run, check=True, capture_output=True, text=True)
        peaks.append(int(done.stdout))
    assert peaks[1] < 1.1 * peaks[0]
