"""Arrays, sparse matrices and iterators: the columns are those of the array."""

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis.extra import numpy as hnp
from scipy import sparse

import featstream.sources
from featstream.errors import DataError, DataTypeError
from featstream.protocols import Source
from featstream.sources import (
    ArraySource,
    FrameSource,
    IteratorSource,
    SparseSource,
    as_source,
    check_has_features,
)
from gather import check_block, dense, gather

DTYPES = ["?", "i1", "u1", "<i2", ">i4", "<u4", "i8", "u8", "f2", ">f4", "f4", "f8"]


@st.composite
def arrays(draw):
    """Arrays of any dtype, shape and memory order, some of them with odd strides."""
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    shape = draw(st.tuples(st.integers(1, 40), st.integers(0, 30)))
    seed = draw(st.integers(0, 2**32 - 1))
    bits = np.random.default_rng(seed).integers(0, 100, shape)
    X = (bits % 2 if dtype.kind == "b" else bits).astype(dtype)
    X = draw(st.sampled_from([np.ascontiguousarray, np.asfortranarray]))(X)
    if draw(st.booleans()):
        X = X[::-1, ::2]
    if draw(st.booleans()):
        X = X[::2, ::-1]
    if draw(st.booleans()):
        X.flags.writeable = False
    return X


@settings(deadline=None)  # the first call compiles
@given(arrays(), st.integers(1, 3000), st.integers(0, 35))
def test_columns_are_those_of_the_array(X, block_bytes, start):
    before = X.copy()
    source = ArraySource(X, block_bytes=block_bytes)
    assert isinstance(source, Source)
    assert (source.n_samples, source.n_features) == X.shape
    columns, names, nominal = gather(source, start)
    np.testing.assert_array_equal(columns, X[:, start:])
    assert names == [f"x{i}" for i in range(start, X.shape[1])]
    assert not nominal.any()
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_are_not_copied(order):
    X = np.asarray(np.arange(12.0).reshape(3, 4), order=order)
    assert all(np.shares_memory(block.columns, X) for block in ArraySource(X).blocks())


def test_tall_row_major_arrays_are_read_by_whole_cache_lines():
    X = np.zeros((1000, 40), np.int16)
    widths = [block.n_columns for block in ArraySource(X, block_bytes=1).blocks()]
    assert widths == [32, 8]


@pytest.mark.parametrize("make", [ArraySource, SparseSource])
def test_extended_precision_becomes_double(make):
    X = np.array([[1, 2], [3, 4]], np.longdouble)
    X = sparse.csc_array(X) if make is SparseSource else X
    columns, _, _ = gather(make(X))
    assert columns.dtype == np.float64
    assert columns.tolist() == [[1, 2], [3, 4]]


def test_mapped_arrays_are_read_in_place(tmp_path):
    np.save(tmp_path / "x.npy", np.asfortranarray(np.eye(5)))
    X = np.load(tmp_path / "x.npy", mmap_mode="r")
    block = next(ArraySource(X).blocks())
    assert np.shares_memory(block.columns, X)
    assert not block.columns.flags.writeable


@pytest.mark.parametrize("dtype", [object, "U1", "S1"])
def test_text_becomes_codes_in_sorted_order(dtype):
    X = np.array([["b", "x"], ["a", "x"], ["c", "y"]], dtype)
    columns, _, nominal = gather(ArraySource(X))
    assert columns.tolist() == [[1, 0], [0, 0], [2, 1]]
    assert nominal.tolist() == [True, True]


def test_objects_are_numbers_or_text_column_by_column():
    X = np.array([[1, "b", 0.5, True], [2, None, None, False]], object)
    columns, names, nominal = gather(ArraySource(X, ["a", "b", "c", "d"]))
    np.testing.assert_array_equal(columns, [[1, 0, 0.5, 1], [2, -1, np.nan, 0]])
    assert nominal.tolist() == [False, True, False, False]
    assert names == ["a", "b", "c", "d"]


def test_names_follow_their_columns():
    X, names = np.zeros((2, 50)), [f"g{i}" for i in range(50)]
    dense = ArraySource(X, names, block_bytes=1)
    for source in (dense, SparseSource(sparse.csc_array(X), names, block_columns=3)):
        assert gather(source, 20)[1] == names[20:]


def test_a_source_without_features_is_legal_but_cannot_be_fitted():
    source = ArraySource(np.empty((12, 0)))
    assert list(source.blocks()) == []
    with pytest.raises(DataError, match=r"0 feature\(s\) \(shape=\(12, 0\)\)"):
        check_has_features(source)


@pytest.mark.parametrize(
    ("names", "error", "message"),
    [
        (["a", "b"], DataError, "Got 2 names for 3 features"),
        (["a", "b", "a"], DataError, r"'a' already seen at position 0 \(now 2\)"),
        (["a", "b", 3], DataTypeError, "Got 3 of type int at position 2"),
    ],
)
def test_bad_names_are_refused(names, error, message):
    with pytest.raises(error, match=message):
        ArraySource(np.zeros((2, 3)), names)


SMALL = np.array([[1, 0], [0, 3], [5, 6]])


class ArrayLike:
    def __array__(self, dtype=None, copy=None):
        return np.array(SMALL, dtype)


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (SMALL, ArraySource),
        (np.matrix(SMALL), ArraySource),
        (SMALL.tolist(), ArraySource),
        (tuple(map(tuple, SMALL)), ArraySource),
        (ArrayLike(), ArraySource),
        (sparse.csc_array(SMALL), SparseSource),
        (sparse.csr_matrix(SMALL), SparseSource),
        (pd.DataFrame(SMALL), FrameSource),
        (pl.DataFrame(SMALL), FrameSource),
        (pl.LazyFrame(SMALL), FrameSource),
        (pa.table({"a": SMALL[:, 0], "b": SMALL[:, 1]}), FrameSource),
        ([("a", SMALL[:, 0]), ("b", SMALL[:, 1])], IteratorSource),
        ({"a": SMALL[:, 0], "b": SMALL[:, 1]}.items(), IteratorSource),
        (zip("ab", SMALL.T, strict=True), IteratorSource),
        (
            ((name, column) for name, column in zip("ab", SMALL.T, strict=True)),
            IteratorSource,
        ),
    ],
)
def test_everything_with_columns_is_a_source(given, kind):
    source = as_source(given)
    assert type(source) is kind
    assert as_source(source) is source
    np.testing.assert_array_equal(gather(source)[0], SMALL)
    assert repr(source).startswith(kind.__name__)


def test_rows_of_two_strings_are_rows_and_not_pairs():
    columns, _, nominal = gather(as_source([["a", "x"], ["b", "y"], ["a", "y"]]))
    assert columns.tolist() == [[0, 0], [1, 1], [0, 1]]
    assert nominal.all()


def test_large_integers_in_a_list_keep_their_differences():
    columns, _, _ = gather(as_source([[2**63], [2**63 + 1], [-5]]))
    assert columns.tolist() == [[1], [2], [0]]


def test_numbers_beside_text_in_a_list_stay_numbers():
    columns, _, nominal = gather(as_source([["a", 10], ["b", 9]]))
    assert columns.tolist() == [[0, 10], [1, 9]]
    assert nominal.tolist() == [True, False]


@pytest.mark.parametrize("given", [[1, 2, 3], [], pd.Series([1, 2]), pl.Series([1])])
def test_one_dimension_is_not_enough(given):
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array instead"):
        as_source(given)


def test_exports_are_sorted():
    assert featstream.sources.__all__ == sorted(featstream.sources.__all__)


FORMATS = ["csc", "csr", "coo", "lil", "dok", "dia", "bsr"]
SPARSE_DTYPES = [np.bool_, np.int8, np.uint16, np.int64, np.float32, np.float64]


@given(
    hnp.arrays(
        np.int8,
        hnp.array_shapes(min_dims=2, max_dims=2, max_side=12),
        elements=st.integers(0, 2),
    ),
    st.sampled_from(FORMATS),
    st.sampled_from(SPARSE_DTYPES),
    st.booleans(),
    st.integers(1, 12),
    st.integers(0, 12),
)
def test_sparse_columns_are_those_of_the_dense_array(
    X, fmt, dtype, is_array, width, start
):
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


FORMS = [np.asarray, list, pd.Series, lambda v: sparse.csc_array(v[:, None])]


@given(
    hnp.arrays(np.int64, hnp.array_shapes(min_dims=2, max_dims=2, max_side=9)),
    st.lists(st.sampled_from(FORMS), min_size=1, max_size=9),
    st.integers(1, 500),
    st.integers(0, 9),
)
def test_features_that_arrive_one_by_one_are_columns(X, forms, block_bytes, start):
    pairs = [(f"f{i}", forms[i % len(forms)](X[:, i])) for i in range(X.shape[1])]
    source = IteratorSource(pairs, block_bytes=block_bytes)
    assert source.n_features is None
    for _ in range(2):  # a list can be read again
        got = [column for block in source.blocks(start) for column in _columns(block)]
        assert [name for name, _ in got] == [f"f{i}" for i in range(start, X.shape[1])]
        for (_, values), column in zip(got, X[:, start:].T, strict=True):
            np.testing.assert_array_equal(values, column)


def _columns(block):
    check_block(block, block.start)
    values = dense(block)
    return [(block.name(i), values[:, i]) for i in range(block.n_columns)]


def test_text_that_arrives_becomes_codes():
    pairs = [("a", ["y", "x", None]), ("b", pl.Series(["n", "m", "n"]))]
    columns, _, nominal = gather(IteratorSource(pairs))
    assert columns.tolist() == [[1, 1], [0, 0], [-1, 1]]
    assert nominal.all()


def test_integers_beyond_the_reach_of_floats_keep_their_differences():
    big = [2**60, 2**60 + 1, 5]
    source = IteratorSource([("f", [0.5, 1.5, 2.5]), ("i", big), ("g", [0.5, 1, 2])])
    blocks = list(source.blocks())
    assert [block.columns.dtype.kind for block in blocks] == ["f", "i", "f"]
    assert blocks[1].columns[:, 0].tolist() == big


@pytest.mark.parametrize("power", [63, 80, 2000])
def test_integers_of_any_size_keep_their_differences(power):
    big = [2**power, 2**power + 1, -5]
    block = next(IteratorSource([("i", big)]).blocks())
    assert block.columns[:, 0].tolist() == [1, 2, 0]
    assert block.nominal.tolist() == [True]


def test_an_iterator_continues_from_where_it_was():
    source = IteratorSource((f"f{i}", [i, i]) for i in range(5))
    assert gather(source, 2)[1] == ["f2", "f3", "f4"]
    with pytest.raises(DataError, match="already given 5 features"):
        source.blocks()


def test_an_empty_iterator_gives_nothing():
    assert list(IteratorSource(iter(())).blocks()) == []


@pytest.mark.parametrize(
    ("pairs", "error", "message"),
    [
        ([("a", 1, 2)], DataTypeError, "Got a tuple of length 3 at position 0"),
        ([(7, [1, 2])], DataTypeError, "Got 7 of type int at position 0"),
        ([("a", np.zeros((3, 2)))], DataError, r"'a' has shape \(3, 2\)"),
        ([("a", [[1], [2, 3]])], DataTypeError, "'a' is a ragged sequence"),
        ([("a", sparse.eye_array(3))], DataError, "'a' has 3 columns"),
        ([("a", [])], DataError, r"0 sample\(s\) \(shape=\(0, 1\)\)"),
    ],
)
def test_unusable_features_say_why(pairs, error, message):
    with pytest.raises(error, match=message):
        list(IteratorSource(pairs).blocks())
