"""Tiny files in each format as published, and the shared data sets."""

import bz2
import gzip
import lzma
import re

import numpy as np
import pytest
from scipy import sparse

from featstream.datasets import (
    available_datasets,
    dataset_names,
    files_of_dataset,
    load_dataset,
)
from featstream.errors import DataError, MissingFileError, ParameterError
from featstream.evaluation import paper_table
from featstream.paper.datasets import catalogue, sample_of_svmlight
from featstream.sources.values import LIMITS
from shared import shared

RNG = np.random.default_rng(0)


def dense(X):
    return X.toarray() if sparse.issparse(X) else np.asarray(X)


def lines(rows, sep=" ", end="\n"):
    return "".join(sep.join(map(str, row)) + end for row in rows)


def pairs(row):
    return (f"{i + 1}:{v}" for i, v in enumerate(row) if v)


def parts(n_features, largest=2):
    """A part of four and one of three rows: random whole numbers, and two classes."""
    return [
        (RNG.integers(0, largest, (n, n_features)), np.resize([-1, 1], n))
        for n in (4, 3)
    ]


def write_challenge(folder, name, spell):
    """Write both parts as the challenges of NIPS distribute them."""
    written = parts(catalogue()[name].n_features, 2 if name == "dorothea" else 100)
    for part, (X, y) in zip(("train", "valid"), written, strict=True):
        text = lines(map(spell, X), end=" \n")  # a blank at the end
        folder.joinpath(f"{name}_{part}.data").write_text(text)
        folder.joinpath(f"{name}_{part}.labels").write_text(lines(y[:, None]))
    return written


@pytest.mark.parametrize(
    ("name", "spell"),
    [
        *((name, list) for name in ("madelon", "arcene", "hiva", "gisette")),
        ("dexter", pairs),
        ("dorothea", lambda row: np.flatnonzero(row) + 1),
    ],
)
def test_challenge_files_are_read_as_they_are_downloaded(tmp_path, name, spell):
    folder = tmp_path / name.upper()  # as the archive unpacks
    folder.mkdir()
    written = write_challenge(folder, name, spell)
    found = load_dataset(name, tmp_path)
    read = (found.X, found.y), (found.X_test, found.y_test)
    for (X, y), (expected, labels) in zip(read, written, strict=True):
        np.testing.assert_array_equal(dense(X), expected)
        np.testing.assert_array_equal(y, labels)
    assert sparse.issparse(found.X) == (spell is not list)
    assert (found.differs, found.notes) == ("", ())
    assert found.origin == folder / f"{name}_train.data"


def test_a_training_part_alone_is_said_to_be_alone(tmp_path):
    write_challenge(tmp_path, "madelon", list)
    (tmp_path / "madelon_valid.labels").unlink()
    found = load_dataset("madelon", tmp_path)
    assert (found.X_test, found.y_test) == (None, None)
    assert found.notes == ("no test part",)
    assert repr(found) == "Benchmark(madelon: 4 samples × 500 continuous)"


def svmlight_text(X, y):
    labels = (f"{label:+d}" for label in y)
    return lines((label, *pairs(row)) for label, row in zip(labels, X, strict=True))


PACK = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}

LIBSVM = [
    ("madelon", "madelon", "madelon.t"),
    ("gisette", "gisette_scale", "gisette_scale.t"),
    ("leukemia", "leu", "leu.t"),
    ("ijcnn1", "ijcnn1", "ijcnn1.t"),
    ("poker", "poker", "poker.t"),
    ("url1", "Day1.svm", "Day2.svm"),
    ("covtype", "covtype.libsvm.binary", None),
    ("connect-4", "connect-4", None),
    ("real-sim", "real-sim", None),
    ("kdd2010", "kddb", None),
    ("kdd2010", "kdda", None),
    ("webspam", "webspam_wc_normalized_trigram.svm", None),
    ("ohsumed", "ohsumed.svm", None),
]


@pytest.mark.parametrize(
    ("name", "train", "test", "suffix"),
    [
        *((*case, "") for case in LIBSVM),
        *((*LIBSVM[0], suffix) for suffix in PACK if suffix),
    ],
)
def test_libsvm_files_are_read_plain_or_packed(tmp_path, name, train, test, suffix):
    """Few of the features are used; the others are zero."""
    written = parts(10)[: 1 if test is None else 2]
    for file, part in zip((train, test), written, strict=False):
        text = svmlight_text(*part).encode()
        (tmp_path / f"{file}{suffix}").write_bytes(PACK[suffix](text))
    found = load_dataset(name, tmp_path)
    if test and not found.is_split:  # the paper draws its parts from all rows
        both = zip(*written, strict=True)
        written = [tuple(map(np.concatenate, both))]
    X, y = written[0]
    n_features = 20_216_830 if train == "kdda" else catalogue()[name].n_features
    assert found.X.shape == (len(X), n_features)
    np.testing.assert_array_equal(found.X[:, :10].toarray(), X)
    np.testing.assert_array_equal(found.y, y)
    assert found.X.nnz == np.count_nonzero(X)
    if test and found.is_split:
        np.testing.assert_array_equal(found.X_test[:, :10].toarray(), written[1][0])
    is_other = train in ("leu", "kdda", "covtype.libsvm.binary")
    assert bool(found.differs) == is_other


@pytest.mark.parametrize(
    ("name", "file", "n_features", "first", "n_train", "n_test"),
    [
        ("news20", "news20.binary.bz2", 1_355_191, 0, 9_996, 10_000),
        # Day 0 has 16,000 rows, days 1 and 2 have 20,000 each.
        ("url1", "url_combined", 3_231_961, 16_000, 20_000, 20_000),
    ],
)
def test_parts_are_cut_from_one_file(
    tmp_path, name, file, n_features, first, n_train, n_test
):
    """Row i has its one in column i; news20 has no more rows, url1 some more."""
    n_rows = first + n_train + n_test + (4_000 if first else 0)
    text = "".join(f"{1 - 2 * (i % 2):+d} {i + 1}:1\n" for i in range(n_rows)).encode()
    (tmp_path / file).write_bytes(PACK[".bz2" * file.endswith(".bz2")](text))
    found = load_dataset(name, tmp_path)
    for X, y, begin, n in (
        (found.X, found.y, first, n_train),
        (found.X_test, found.y_test, first + n_train, n_test),
    ):
        assert X.shape == (n, n_features)
        assert X[0, begin] == X[-1, begin + n - 1] == 1
        assert y.tolist() == [1 - 2 * (i % 2) for i in range(begin, begin + n)]


def test_a_sample_of_a_large_file_is_of_the_right_size_and_without_order(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(LIMITS, "svmlight_chunk", 1 << 14)  # many
    text = "".join(f"{i % 2} {i + 1}:1\n" for i in range(20_000))
    (tmp_path / "all").write_text(text)
    ((X, y),) = sample_of_svmlight([tmp_path / "all"], 20_000, (1_000,))
    assert X.shape == (1_000, 20_000)
    rows = X.tocsr().indices  # row i has its one in column i
    assert (np.diff(rows) > 0).all()
    np.testing.assert_array_equal(y, rows % 2)
    # Of 1,000 rows out of 20,000 the mean index has a deviation of 180.
    assert abs(rows.mean() - 10_000) < 1_000


GENES = {"leukemia": ("AMLALL", 7_129), "lung-cancer": ("lungCancer", 12_533)}
POKER = ["poker-hand-training-true.data", "poker-hand-testing.data"]
TABLES = [  # data set, files, rows, classes
    ("covtype", ["covtype.data"], [[*range(54)], [0] * 54], [7, 2]),
    ("connect-4", ["connect-4.data"], ["b" * 42, "x" * 41 + "o"], ["win", "draw"]),
    ("poker", POKER, [[1] * 10, [2] * 10], [9, 0]),
]
for name, (begin, n) in GENES.items():
    files = [f"{begin}_train.data", f"{begin}_test.data"]
    TABLES.append((name, files, [[1.5] * n, [-2] * n], ["ALL", "AML"]))


@pytest.mark.parametrize(("name", "files", "X", "y"), TABLES)
def test_tables_with_commas_have_the_class_at_the_end(tmp_path, name, files, X, y):
    """One row in each of two files, or both in one."""
    rows = [[*row, label] for row, label in zip(X, y, strict=True)]
    for file, own in zip(files, [rows[:1], rows[1:]], strict=False):
        text = lines(own if len(files) > 1 else rows, ",", "\r\n")
        (tmp_path / file).write_text(text)
    found = load_dataset(name, tmp_path)
    if name == "connect-4":  # 126 indicators
        X = [[value == s for value in board for s in "box"] for board in X]
    np.testing.assert_array_equal(found.X, X)
    assert found.y.tolist() == y


def test_thrombin_with_and_without_its_test_part(tmp_path):
    X = RNG.integers(0, 2, (4, 139_351))
    rows = [",".join(map(str, row)) for row in X]
    (tmp_path / "thrombin.data").write_text(f"A,{rows[0]}\nI,{rows[1]}\n")
    found = load_dataset("thrombin", tmp_path)
    np.testing.assert_array_equal(found.X.toarray(), X[:2])
    assert found.y.tolist() == [1, -1]
    assert found.differs == "without the rows of Thrombin.testset and ThrombinKey"
    (tmp_path / "Thrombin.testset").write_text(f"?,{rows[2]}\n?,{rows[3]}\n")
    (tmp_path / "ThrombinKey").write_text("I\nA\n")
    found = load_dataset("thrombin", tmp_path)
    np.testing.assert_array_equal(found.X.toarray(), X)
    assert found.y.tolist() == [1, -1, -1, 1]
    assert found.differs == ""


def test_npz_with_parts_and_without(tmp_path):
    (X, y), (X_test, y_test) = parts(500)
    path = tmp_path / "madelon.npz"
    np.savez(path, X_train=X, y_train=y, X_test=X_test, y_test=y_test)
    assert load_dataset("madelon", tmp_path).X_test.shape == (3, 500)
    np.savez(path, X=X, y=y)
    assert load_dataset("madelon", tmp_path).X_test is None
    np.savez(path, X=X)
    with pytest.raises(DataError, match="no array y"):
        load_dataset("madelon", tmp_path)
    np.savez(path, X=X[:, 1:], y=y)
    with pytest.raises(DataError, match=r"\(4, 499\), and not 500 features"):
        load_dataset("madelon", tmp_path)


@pytest.mark.parametrize(
    ("file", "text", "labels", "words"),
    [
        ("madelon_train.data", "1 2 3\n", "1\n", "line 1: it has 3 values and not 500"),
        ("madelon_train.data", "1 " * 499 + "x\n", "1\n", "line 1: could not convert"),
        (
            "dexter_train.data",
            "1:2\n3\n",
            "1\n1\n",
            "line 2: a word is not of the",
        ),
        ("dexter_train.data", "1:2\n20001:1\n", "1\n1\n", "data, line 2: index 20001 "),
        ("dorothea_train.data", "5 5\n", "1\n", "an index occurs twice"),
        ("dorothea_train.data", "5\n7\n", "1\n", r"2 rows but .* shape \(1,\)"),
        ("dorothea_train.data", "5\n", "0.5\n", "label 0.5 is not a whole number"),
        ("thrombin.data", "A,0,2\n", None, "neither 0 nor 1"),
        ("thrombin.data", "A,0,1\n", None, "2 values and not 139,351"),
        ("connect-4.data", "b,xo,win\n", None, "single letter"),
        ("connect-4.data", "b,x,win\nb,win\n", None, "line 2: it has 1 values and not"),
        ("news20.binary", "1 1355192:1\n", None, "1,355,192.* 1,355,191 feat"),
        ("news20.binary", "", None, "is empty"),
        ("poker", "1 11:1\n", None, "11 columns"),
        ("ijcnn1.npz", "hello", None, "not an archive of arrays"),
    ],
)
def test_damaged_files_are_named_with_the_line(tmp_path, file, text, labels, words):
    (tmp_path / file).write_text(text)
    if labels is not None:
        (tmp_path / file).with_suffix(".labels").write_text(labels)
    with pytest.raises(DataError, match=words):
        load_dataset(re.split(r"[._]", file)[0], tmp_path)


def test_a_missing_data_set_says_what_to_put_where(tmp_path, monkeypatch):
    with pytest.raises(MissingFileError, match=r"dexter_train.data and .*UCI has it"):
        load_dataset("dexter", tmp_path)
    with pytest.raises(ParameterError, match="Did you mean 'dexter'"):
        load_dataset("dextre", tmp_path)
    with pytest.raises(MissingFileError, match=r"no folder .*nowhere"):
        load_dataset("dexter", tmp_path / "nowhere")
    monkeypatch.delenv("FEATSTREAM_DATA", raising=False)
    with pytest.raises(ParameterError, match="set FEATSTREAM_DATA"):
        load_dataset("dexter")
    monkeypatch.setenv("FEATSTREAM_DATA", str(tmp_path))
    assert available_datasets() == ()


def test_every_data_set_of_the_tables_is_in_the_catalogue():
    named = {name for n in (2, *range(3, 24)) for name in paper_table(n).datasets}
    assert named == set(dataset_names())
    sizes = paper_table(2)
    for name, n_features in zip(sizes.datasets, sizes.values[:, 0], strict=True):
        assert catalogue()[name].n_features == n_features
        assert files_of_dataset(name)


SMALL = ["madelon", "dexter", "dorothea", "arcene", "gisette", "hiva", "leukemia"]
SMALL += ["lung-cancer"]
LARGE = ["thrombin", "news20", "connect-4", "ijcnn1", "covtype", "poker"]


@pytest.mark.parametrize(
    "name", [*SMALL, *(pytest.param(name, marks=pytest.mark.slow) for name in LARGE)]
)
def test_the_shared_data_sets_are_read(name):
    found = load_dataset(name, shared("data"))
    with_test = ("madelon", "dexter", "dorothea", "arcene", "news20")
    assert (found.X_test is not None) == (name in with_test)
    others = ("gisette", "thrombin", "news20", "poker")
    assert bool(found.differs) == (name in others)


def test_the_shared_data_sets_are_those_that_are_available():
    assert set(available_datasets(shared("data"))) == {*SMALL, *LARGE}
