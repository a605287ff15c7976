"""Data sets that are compared on: what is taken, and what is refused."""

import mmap

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris

from featstream.errors import DataError, DataTypeError, MissingFileError
from featstream.evaluation import Task, open_task
from featstream.evaluation.tasks import as_task, map_rows
from featstream.sources import ChainedSource, as_source

RNG = np.random.default_rng(0)
X, Y = RNG.integers(0, 3, (12, 4)), np.arange(12) % 2


@pytest.mark.parametrize(
    "data",
    [
        X,
        X.astype(np.uint8),
        np.asfortranarray(X.astype(np.float32)),
        sparse.csr_matrix(X),
        sparse.coo_array(X.astype(np.int16)),
    ],
    ids=["int", "uint8", "float32", "csr", "coo"],
)
def test_rows_are_mapped_as_they_were(tmp_path, data):
    rows = Task(data, Y).rows()
    rows.write(tmp_path)
    again = map_rows(tmp_path)
    values = again.X.toarray() if sparse.issparse(again.X) else again.X
    np.testing.assert_array_equal(values, X)
    np.testing.assert_array_equal(again.y, Y)
    assert again.X.dtype == rows.X.dtype == data.dtype
    assert sparse.issparse(again.X) == sparse.issparse(data)
    holder = again.X.data if sparse.issparse(again.X) else again.X
    while isinstance(holder, np.ndarray):
        holder = holder.base
    assert isinstance(holder, mmap.mmap)


def test_sparse_rows_have_the_short_indices_that_most_selectors_need():
    rows = Task(sparse.csr_matrix(X), Y, sparse.csr_matrix(X), Y).rows()
    assert rows.X.indices.dtype == rows.X.indptr.dtype == np.int32


def test_dense_and_sparse_columns_stay_in_order():
    parts = [X[:, :1], sparse.csc_array(X[:, 1:2]), X[:, 2:]]
    rows = Task(ChainedSource([as_source(part) for part in parts]), Y).rows()
    np.testing.assert_array_equal(rows.X.toarray(), X)


def test_missing_text_is_missing():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"city": ["Paris", None, "Rome", "Paris"], "n": range(4)})
    rows = Task(frame, pd.Series([0, 1, 0, 1])).rows()
    np.testing.assert_array_equal(rows.X, [[0, 0], [np.nan, 1], [1, 2], [0, 3]])
    assert rows.y.tolist() == [0, 1, 0, 1]
    assert rows.names == ["city", "n"]


def test_the_fingerprint_changes_with_everything():
    base = {"X_train": X, "y_train": Y, "groups": list("aabb"), "names": list("wxyz")}
    other = X.copy()
    other[3, 2] += 1
    changes = [
        {"X_train": other},
        {"X_train": X[:, ::-1]},
        {"y_train": 1 - Y},
        {"y_train": np.where(Y, "yes", "no")},
        {"groups": list("abab")},
        {"names": list("wxyv")},
        {"X_test": X[:2], "y_test": Y[:2]},
    ]
    found = {Task(**base).rows().fingerprint()}
    found |= {Task(**(base | change)).rows().fingerprint() for change in changes}
    assert len(found) == 1 + len(changes)
    assert Task(**base).rows().fingerprint() == Task(**base).rows().fingerprint()
    moved = Task(X[:8], Y[:8], X[8:], Y[8:]).rows()
    assert moved.fingerprint() != Task(X[:7], Y[:7], X[7:], Y[7:]).rows().fingerprint()


def test_what_users_have_becomes_a_task(tmp_path):
    np.savez(tmp_path / "a.npz", X=X, y=Y)
    for given in ([X, Y], lambda: (X, Y), lambda: open_task(tmp_path / "a.npz")):
        rows = as_task(given).rows()
        np.testing.assert_array_equal(rows.X, X)
        np.testing.assert_array_equal(rows.y, Y)
    assert as_task(load_iris()).rows().X.shape == (150, 4)
    assert as_task((X[:8], Y[:8], X[8:], Y[8:])).rows().n_train == 8
    with pytest.raises(DataTypeError, match="Cannot make a data set of int"):
        as_task(5)
    with pytest.raises(MissingFileError, match="There is no file"):
        as_task(tmp_path / "b.npz")


def test_tables_need_the_same_columns_in_both_parts(tmp_path):
    pytest.importorskip("pyarrow")

    def write(name, header, rows):
        lines = [",".join(map(str, row)) for row in (header, *rows)]
        (tmp_path / name).write_text("\n".join(lines) + "\n")
        return tmp_path / name

    numbers = [(1, 2.5, "yes"), (2, 3.5, "no"), (3, 1.5, "yes")]
    train = write("train.csv", ("a", "b", "class"), numbers)
    task = open_task(train, test=write("test.csv", ("a", "b", "class"), numbers[:2]))
    rows = task.rows()
    assert rows.y.tolist() == ["yes", "no", "yes", "yes", "no"]
    assert rows.names == ["a", "b"]
    assert rows.n_train == 3
    other = write("other.csv", ("a", "c", "class"), numbers[:2])
    with pytest.raises(DataError, match="Feature 1 is 'c' in X_test, and 'b' in X_tr"):
        open_task(train, test=other).rows()
    words = [("red", 2.5, "yes"), ("blue", 3.5, "no"), ("red", 1.5, "yes")]
    text = write("text.csv", ("a", "b", "class"), words)
    assert open_task(text).rows().X[:, 0].tolist() == [1, 0, 1]
    with pytest.raises(DataError, match="codes of its words need not be the same"):
        open_task(text, test=text).rows()


def test_a_file_without_target_is_refused(tmp_path):
    np.save(tmp_path / "a.npy", X)
    with pytest.raises(DataError, match="holds no target"):
        open_task(tmp_path / "a.npy")
