import datetime
from decimal import Decimal

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings

from featstream.errors import DataTypeError
from featstream.sources import FrameSource
from gather import gather

LIBRARIES = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "lazy polars": pl.LazyFrame,
    "pyarrow": pa.table,
}
DTYPES = ["i1", "u2", "i4", "i8", "f4", "f8", "?"]


@settings(deadline=None)
@given(
    st.sampled_from(sorted(LIBRARIES)),
    st.lists(st.sampled_from(DTYPES), min_size=1, max_size=12),
    st.integers(1, 600),
    st.integers(0, 12),
    st.integers(0, 2**32 - 1),
)
def test_columns_are_those_of_the_dense_array(
    library, dtypes, block_bytes, start, seed
):
    X = np.random.default_rng(seed).integers(0, 2, (7, len(dtypes)))
    data = {f"f{i}": X[:, i].astype(dtype) for i, dtype in enumerate(dtypes)}
    source = FrameSource(LIBRARIES[library](data), block_bytes=block_bytes)
    assert (source.n_samples, source.n_features) == X.shape
    columns, names, nominal = gather(source, start)
    np.testing.assert_array_equal(columns, X[:, start:])
    assert names == list(data)[start:]
    assert not nominal.any()


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
