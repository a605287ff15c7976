"""Arrays, sparse matrices, frames and iterators: the columns are those of the array."""

import datetime
from decimal import Decimal

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis.extra import numpy as hnp
from scipy import sparse

from featstream.errors import DataError, DataTypeError
from featstream.protocols import IndexedSource
from featstream.sources import (
    ArraySource,
    FrameSource,
    IteratorSource,
    SparseSource,
    as_source,
)
from featstream.sources.kernels.transpose import by_column, copy_columns
from gather import gather
from strategies import examples

DTYPES = [
    *("?", "i1", "u1", "<i2", ">i4", "<u4", "i8", "u8", ">i8"),
    *("f2", ">f4", "f4", "f8", "g"),
]


@st.composite
def arrays(draw):
    """Arrays of any dtype, shape and memory order, or parts of them, or backwards."""
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    n, p = draw(st.integers(1, 150)), draw(st.integers(0, 200))
    bits = np.random.default_rng(n * p).integers(0, 100, (n, p))
    X = (bits % 2 if dtype.kind == "b" else bits).astype(dtype)
    X = np.asarray(X, order=draw(st.sampled_from("CF")))
    rows, columns = (draw(st.sampled_from([1, 1, 2, -1])) for _ in range(2))
    X = X[::rows, draw(st.integers(0, p)) :: columns]
    if draw(st.booleans()):
        X.flags.writeable = False
    return X


def names_for(X):
    return [f"g{j}" for j in range(X.shape[1])]


def check_columns(source, X, start):
    """In order, and in any order."""
    assert isinstance(source, IndexedSource)
    assert (source.n_samples, source.n_features) == X.shape
    order = np.random.default_rng(start).permutation(X.shape[1])
    for positions in (None, order):
        columns, names, nominal = gather(source, start, positions)
        expected = range(X.shape[1]) if positions is None else order
        np.testing.assert_array_equal(columns, X[:, expected[start:]])
        assert names == [f"g{j}" for j in expected[start:]]
        assert not nominal.any()


@settings(deadline=None)  # the first call compiles
@given(arrays(), st.integers(1, 3000), st.integers(0, 35))
def test_columns_are_those_of_the_array(X, block_bytes, start):
    before = X.copy()
    source = ArraySource(X, names_for(X), block_bytes=block_bytes)
    check_columns(source, X, start)
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_are_not_copied(order):
    X = np.asarray(np.arange(12.0).reshape(3, 4), order=order)
    assert all(np.shares_memory(block.columns, X) for block in ArraySource(X).blocks())


def test_tall_row_major_arrays_are_read_by_whole_cache_lines():
    X = np.zeros((1000, 40), np.int16)
    widths = [block.n_columns for block in ArraySource(X, block_bytes=1).blocks()]
    assert widths == [32, 8]


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
    ],
)
def test_everything_with_columns_is_a_source(given, kind):
    source = as_source(given)
    assert type(source) is kind
    assert as_source(source) is source
    np.testing.assert_array_equal(gather(source)[0], SMALL)
    assert repr(source).startswith(kind.__name__)


MIXED = np.array([[1, "b", 0.5, True], [2, None, None, False]], object)
WORDS = np.array([["b", "x"], ["a", "x"], ["c", "y"]])


@pytest.mark.parametrize(
    ("rows", "expected", "nominal"),
    [
        (WORDS, [[1, 0], [0, 0], [2, 1]], [1, 1]),
        (WORDS.astype("S1"), [[1, 0], [0, 0], [2, 1]], [1, 1]),
        (WORDS.astype(object), [[1, 0], [0, 0], [2, 1]], [1, 1]),
        (MIXED, [[1, 0, 0.5, 1], [2, -1, np.nan, 0]], [0, 1, 0, 0]),
        ([["a", "x"], ["b", "y"], ["a", "y"]], [[0, 0], [1, 1], [0, 1]], [1, 1]),
        ([["a", 10], ["b", 9]], [[0, 10], [1, 9]], [1, 0]),
        ([[2**63], [2**63 + 1], [-5]], [[1], [2], [0]], [1]),
    ],
)
def test_text_becomes_codes_in_sorted_order_and_numbers_stay(rows, expected, nominal):
    """Rows of two strings are no pairs; numpy makes text or floats of the others."""
    columns, _, found = gather(as_source(rows))
    np.testing.assert_array_equal(columns, expected)
    assert found.tolist() == [bool(flag) for flag in nominal]
    if not isinstance(rows, list):
        (last,) = gather(ArraySource(rows), 0, np.array([columns.shape[1] - 1]))[0].T
        np.testing.assert_array_equal(last, columns[:, -1])


@pytest.mark.parametrize(
    "given", [[1, 2, 3], [], pd.Series([1, 2]), pl.Series([1]), sparse.coo_array([1.0])]
)
def test_one_dimension_is_not_enough(given):
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array instead"):
        as_source(given)


FORMATS = ["csc", "csr", "coo", "lil", "dok", "dia", "bsr"]
SPARSE_DTYPES = [
    np.bool_,
    np.int8,
    np.uint16,
    np.int64,
    np.float32,
    np.float64,
    np.longdouble,
]


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
    source = SparseSource(make(X).asformat(fmt), names_for(X), block_columns=width)
    check_columns(source, X, start)


@pytest.mark.parametrize("is_lying", [False, True])
def test_unsorted_and_repeated_rows_are_put_right_on_a_copy(is_lying):
    """Whatever the flags say; stored zeros stay stored."""
    data, rows, pointers = [5.0, 1.0, 2.0, 0.0], [2, 0, 2, 1], [0, 3, 4]
    X = sparse.csc_matrix((data, rows, pointers), shape=(3, 2))
    if is_lying:
        X.has_sorted_indices = X.has_canonical_format = True
    source = SparseSource(X)
    assert gather(source)[0].tolist() == [[1, 0], [0, 0], [7, 0]]
    assert next(source.blocks()).columns.values.tolist() == [1, 7, 0]
    found = X.data.tolist(), X.indices.tolist(), X.indptr.tolist()
    assert found == (data, rows, pointers)


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


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr", "coo", "lil"])
@pytest.mark.parametrize("index", [-1, 2**20])
def test_an_index_outside_is_refused_before_scipy_converts(kind, index):
    """scipy would write outside its arrays: a double free, or a wrong answer."""
    X = sparse.random_array((30, 20), density=0.4, rng=0).asformat(kind)
    if kind == "coo":
        X.coords[1][3] = index
    elif kind == "lil":
        X.rows[3][3] = index
    else:
        X.indices[3] = index
    with pytest.raises(DataError, match=rf"not a valid sparse .*index:? {index}"):
        SparseSource(X)


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr"])
@pytest.mark.parametrize(
    ("place", "pointer", "n_entries", "reason"),
    [
        (-1, 1240, 240, "its indptr ends at 1,240 but 240 entries"),
        (2, 10**6, 240, "must begin with 0 and never decrease"),
        (-1, 240, 100, "its indptr ends at 240 but 100 entries"),
    ],
)
def test_pointers_outside_are_refused(kind, place, pointer, n_entries, reason):
    X = sparse.random_array((30, 20), density=0.4, rng=0).asformat(kind)
    X.indptr[place], X.data = pointer, X.data[:n_entries]
    with pytest.raises(DataError, match=reason):
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
    start %= X.shape[1]
    for _ in range(2):  # a list can be read again
        columns, names, _ = gather(source, start)
        np.testing.assert_array_equal(columns, X[:, start:])
        assert names == [f"f{i}" for i in range(start, X.shape[1])]


@pytest.mark.parametrize("power", [63, 80, 2000])
def test_integers_of_any_size_keep_their_differences(power):
    big = [2**power, 2**power + 1, -5]
    block = next(IteratorSource([("i", big)]).blocks())
    assert block.columns[:, 0].tolist() == [1, 2, 0]
    assert block.nominal.tolist() == [True]


def test_an_iterator_continues_from_where_it_was():
    source = IteratorSource((f"f{i}", [i, i]) for i in range(5))
    assert gather(source, 2)[1] == ["f2", "f3", "f4"]
    for start in (0, 4):
        with pytest.raises(DataError, match=f"given 5 .* back to position {start}"):
            source.blocks(start)
    assert list(source.blocks(5)) == []


@pytest.mark.parametrize(
    ("pairs", "error", "message"),
    [
        ([("a", 1, 2)], DataTypeError, "Got a tuple of length 3 at position 0"),
        ([("a", [[1], [2, 3]])], DataTypeError, "'a' is a ragged sequence"),
        ([("a", [])], DataError, r"0 sample\(s\) \(shape=\(0, 1\)\)"),
    ],
)
def test_unusable_features_say_why(pairs, error, message):
    with pytest.raises(error, match=message):
        list(IteratorSource(pairs).blocks())


# Transposing blocks.


@examples(60)
@given(arrays())
def test_columns_are_the_same_wherever_they_lie(x):
    before = x.copy()
    found = by_column(x)
    assert found.flags.f_contiguous
    assert found.dtype == x.dtype
    np.testing.assert_array_equal(found, before)
    np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize("dtype", ["u1", "u2", "u4", "u8"])
@pytest.mark.parametrize("shape", [(64, 128), (65, 130), (15, 15), (200, 700)])
def test_nothing_is_written_beyond_the_edges(dtype, shape):
    n, p = shape
    x = np.arange(n * p, dtype=dtype).reshape(n, p)
    canvas = np.full((p + 4, n + 6), 77, dtype)
    copy_columns(x, canvas[2:-2, 3:-3])
    np.testing.assert_array_equal(canvas[2:-2, 3:-3], x.T)
    canvas[2:-2, 3:-3] = 77
    assert (canvas == 77).all()


def test_what_is_column_major_is_not_copied():
    x = np.asfortranarray(np.arange(12.0).reshape(3, 4))
    assert by_column(x) is x


# Data frames.

LIBRARIES = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "lazy polars": pl.LazyFrame,
    "pyarrow": pa.table,
}


@settings(deadline=None)
@given(
    st.sampled_from(sorted(LIBRARIES)),
    st.lists(
        st.sampled_from(["i1", "u2", "i4", "i8", "f4", "f8", "?"]),
        min_size=1,
        max_size=12,
    ),
    st.integers(1, 600),
    st.integers(0, 12),
    st.integers(0, 2**32 - 1),
)
def test_columns_of_frames_are_those_of_the_dense_array(
    library, dtypes, block_bytes, start, seed
):
    X = np.random.default_rng(seed).integers(0, 2, (7, len(dtypes)))
    data = {f"g{i}": X[:, i].astype(dtype) for i, dtype in enumerate(dtypes)}
    source = FrameSource(LIBRARIES[library](data), block_bytes=block_bytes)
    check_columns(source, X, start)


@pytest.mark.parametrize("library", LIBRARIES)
def test_text_is_coded_and_what_is_missing_is_marked(library):
    data = {
        "text": ["b", None, "a"],
        "bool": [True, None, False],
        "int": [7, None, 3],
        "float": [0.5, None, 1.5],
        "whole": [1, 2, 3],
        "flag": [True, False, True],
        "money": [Decimal("1.50"), None, Decimal("2.25")],
    }
    columns, names, nominal = gather(FrameSource(LIBRARIES[library](data)))
    nan = np.nan
    np.testing.assert_array_equal(
        columns,
        [
            [1, 1, 7, 0.5, 1, 1, 1.5],
            [-1, nan, nan, nan, 2, 0, nan],
            [0, 0, 3, 1.5, 3, 1, 2.25],
        ],
    )
    assert names == list(data)
    assert nominal.tolist() == [True] + [False] * 6


CATEGORICAL = {
    "pandas": pd.DataFrame({"c": pd.Categorical(["lo", None, "hi", "lo"])}),
    "ordered pandas": pd.DataFrame(
        {"c": pd.Categorical(["lo", None, "hi", "lo"], ["lo", "mid", "hi"], True)}
    ),
    "numbers in pandas": pd.DataFrame({"c": pd.Categorical([2, None, 1, 2])}),
    "polars": pl.DataFrame({"c": ["lo", None, "hi", "lo"]}, {"c": pl.Categorical}),
    "polars enum": pl.DataFrame(
        {"c": ["lo", None, "hi", "lo"]}, {"c": pl.Enum(["lo", "mid", "hi"])}
    ),
    "pyarrow": pa.table({"c": pa.array(["lo", None, "hi", "lo"]).dictionary_encode()}),
}


@pytest.mark.parametrize("case", CATEGORICAL)
def test_categories_are_coded(case):
    columns, _, nominal = gather(FrameSource(CATEGORICAL[case]))
    assert columns[:, 0].tolist() == [1, -1, 0, 1]
    assert nominal.tolist() == [True]


def test_pandas_columns_of_every_kind():
    frame = pd.DataFrame(
        {
            "nullable": pd.array([1, None, 3], "Int32"),
            "arrow": pd.array([1, None, 3], "int64[pyarrow]"),
            "sparse": pd.arrays.SparseArray([0, 0, 2]),
            "half": np.array([1, 2, 3], np.float16),
            "objects": np.array([1, 2.5, None], object),
            "string": pd.array(["b", pd.NA, "a"], "string"),
            "boolean": pd.array([True, pd.NA, False], "boolean"),
        }
    )
    before = frame.copy(deep=True)
    columns, _, nominal = gather(FrameSource(frame))
    nan = np.nan
    np.testing.assert_array_equal(
        columns,
        [
            [1, 1, 0, 1, 1, 1, 1],
            [nan, nan, 0, 2, 2.5, -1, nan],
            [3, 3, 2, 3, nan, 0, 0],
        ],
    )
    assert nominal.tolist() == [False] * 5 + [True, False]
    pd.testing.assert_frame_equal(frame, before)


@pytest.mark.parametrize("library", LIBRARIES)
def test_integers_beyond_the_reach_of_floats_keep_their_differences(library):
    big = [2**60, 2**60 + 1, 5]
    data = {"f": [0.5, 1.5, 2.5], "i": big, "small": [1, 2, 3]}
    blocks = list(FrameSource(LIBRARIES[library](data)).blocks())
    assert [block.columns.dtype for block in blocks] == [np.float64, np.int64]
    assert blocks[1].columns[:, 0].tolist() == big


WIDE = pl.DataFrame({"i": [2**100, None, 2**100 + 1, 5]}, {"i": pl.Int128})


@pytest.mark.parametrize("library", ["polars", "lazy polars", "pyarrow", "wide"])
def test_large_integers_become_codes_where_some_are_missing(library):
    data = {"i": [2**60, None, 2**60 + 1, 5]}
    frame = WIDE if library == "wide" else LIBRARIES[library](data)
    columns, _, nominal = gather(FrameSource(frame))
    assert columns[:, 0].tolist() == [1, -1, 2, 0]
    assert nominal.tolist() == [True]


def test_uniform_pandas_frames_are_not_copied():
    X = np.asfortranarray(np.arange(12.0).reshape(3, 4))
    frame = pd.DataFrame(X, columns=list("abcd"), copy=False)
    assert np.shares_memory(next(FrameSource(frame).blocks()).columns, X)


@pytest.mark.parametrize("names", [[0, 1], [("a", 1), ("a", 2)], [5, 5]])
def test_names_that_are_not_text_are_no_names(names):
    source = FrameSource(pd.DataFrame([[1, "u"], [2, "v"]], columns=names))
    assert source.names is None
    assert gather(source)[1] == ["x0", "x1"]


@pytest.mark.parametrize(
    ("value", "dtype", "remedy"),
    [
        (datetime.date(2020, 1, 1), "Date", "days since"),
        (datetime.datetime(2020, 1, 1), "Datetime", "days since"),
        (datetime.timedelta(1), "Duration", "days since"),
        ([1, 2], "List", "each of its fields"),
    ],
)
@pytest.mark.parametrize("library", [pl.DataFrame, pa.table])
def test_unusable_columns_say_why(library, value, dtype, remedy):
    frame = library({"a": [1], "when": [value]})
    with pytest.raises(DataTypeError, match=f"'when' has dtype {dtype}.*{remedy}"):
        list(FrameSource(frame).blocks())
