from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra import numpy as hnp
from scipy import sparse

from featstream.errors import DataError
from featstream.sources import SparseSource
from gather import gather

FORMATS = ["csc", "csr", "coo", "lil", "dok", "dia", "bsr"]
DTYPES = [np.bool_, np.int8, np.uint16, np.int64, np.float32, np.float64]


@given(
    hnp.arrays(
        np.int8,
        hnp.array_shapes(min_dims=2, max_dims=2, max_side=12),
        elements=st.integers(0, 2),
    ),
    st.sampled_from(FORMATS),
    st.sampled_from(DTYPES),
    st.booleans(),
    st.integers(1, 12),
    st.integers(0, 12),
)
def test_columns_are_those_of_the_dense_array(X, fmt, dtype, is_array, width, start):
    X = X.astype(dtype)
    make = sparse.coo_array if is_array else sparse.coo_matrix
    source = SparseSource(make(X).asformat(fmt), block_columns=width)
    assert (source.n_samples, source.n_features) == X.shape
    columns, _, nominal = gather(source, start)
    np.testing.assert_array_equal(columns, X[:, start:])
    assert not nominal.any()


def unsorted():
    """Two columns: rows 2, 0 with a duplicate; and a stored zero."""
    data = np.array([5.0, 1.0, 2.0, 0.0])
    rows = np.array([2, 0, 2, 1], np.int32)
    return sparse.csc_matrix((data, rows, np.array([0, 3, 4], np.int32)), shape=(3, 2))


def test_unsorted_and_repeated_rows_are_put_right_on_a_copy():
    X = unsorted()
    before = X.data.copy(), X.indices.copy(), X.indptr.copy()
    columns, _, _ = gather(SparseSource(X))
    assert columns.tolist() == [[1, 0], [0, 0], [7, 0]]
    for array, original in zip((X.data, X.indices, X.indptr), before, strict=True):
        np.testing.assert_array_equal(array, original)


def test_flags_that_lie_are_not_believed():
    X = unsorted()
    X.has_sorted_indices = True
    X.has_canonical_format = True
    assert gather(SparseSource(X))[0].tolist() == [[1, 0], [0, 0], [7, 0]]


def test_stored_zeros_stay_stored():
    block = next(SparseSource(unsorted()).blocks())
    assert block.columns.values.tolist() == [1, 7, 0]


def test_columns_by_column_are_views():
    X = sparse.random_array((50, 20), density=0.2, format="csc", rng=0)
    for block in SparseSource(X, block_columns=7).blocks():
        assert np.shares_memory(block.columns.values, X.data)
        assert np.shares_memory(block.columns.rows, X.indices)


def test_wide_indices_are_narrowed_block_by_block():
    X = sparse.random_array((50, 20), density=0.2, format="csc", rng=0)
    dense = X.toarray()
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    source = SparseSource(X, block_columns=7)
    np.testing.assert_array_equal(gather(source, 3)[0], dense[:, 3:])
    assert X.indices.dtype == np.int64


def test_blocks_are_bounded_by_stored_entries():
    counts = np.array([4, 6, 0, 1, 25, 3])
    indptr = np.concatenate([[0], np.cumsum(counts)])
    rows = np.concatenate([np.arange(count) for count in counts])
    X = sparse.csc_array((np.ones(rows.size), rows, indptr), shape=(30, 6))
    source = SparseSource(X, block_entries=10)
    # 4 + 6 + 0 = 10; 1, as 25 more would not fit; 25, which no block could hold; 3
    assert [block.n_columns for block in source.blocks()] == [3, 1, 1, 1]
    np.testing.assert_array_equal(gather(source)[0], X.toarray())


def test_names_follow_their_columns():
    source = SparseSource(sparse.eye_array(3), ["a", "b", "c"])
    assert gather(source, 1)[1] == ["b", "c"]


def test_extended_precision_becomes_double():
    X = sparse.csc_array(np.eye(3, dtype=np.longdouble))
    assert next(SparseSource(X).blocks()).columns.values.dtype == np.float64


def out_of_range():
    X = sparse.csc_array(np.eye(3))
    X.indices = np.array([0, 1, 7], X.indices.dtype)
    return X


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (sparse.csc_array(np.eye(2) * 1j), "Complex data not supported"),
        (sparse.csc_array((0, 3)), r"0 sample\(s\) \(shape=\(0, 3\)\)"),
        (sparse.coo_array([1.0, 0.0]), "Expected 2D array, got 1D array"),
        (out_of_range(), r"row index 7 is outside \[0, 3\)"),
    ],
)
def test_unusable_matrices_say_why(X, message):
    with pytest.raises(DataError, match=message):
        SparseSource(X)


def broken(kind, field, change):
    X = sparse.random_array((30, 20), density=0.4, rng=0).asformat(kind)
    parts = X.coords if field == "coords" else [getattr(X, field)]
    change(parts[-1])
    return X


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr", "coo"])
@pytest.mark.parametrize("index", [-1, 2**20])
def test_an_index_outside_is_refused_before_scipy_converts(kind, index):
    """scipy would write outside its arrays: a double free, or a wrong answer."""
    field = "coords" if kind == "coo" else "indices"
    X = broken(kind, field, lambda part: part.__setitem__(3, index))
    with pytest.raises(DataError, match=rf"index {index} is outside \[0, (20|30)\)"):
        SparseSource(X)


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr"])
def test_pointers_outside_are_refused_before_scipy_converts(kind):
    X = broken(kind, "indptr", lambda indptr: indptr.__setitem__(-1, indptr[-1] + 1000))
    with pytest.raises(DataError, match="its indptr ends at 1,240 but 240 entries"):
        SparseSource(X)
    X = broken(kind, "indptr", lambda indptr: indptr.__setitem__(2, 10**6))
    with pytest.raises(DataError, match="must begin with 0 and never decrease"):
        SparseSource(X)
    X = broken(kind, "data", lambda data: None)
    X.data = X.data[:100]
    with pytest.raises(DataError, match="its indptr ends at 240 but 100 entries"):
        SparseSource(X)


def test_a_list_of_lists_with_a_bad_index_is_refused():
    X = sparse.lil_array(np.eye(4))
    X.rows[1] = [9]
    with pytest.raises(DataError, match=r"not a valid sparse matrix: .*index 9"):
        SparseSource(X)
