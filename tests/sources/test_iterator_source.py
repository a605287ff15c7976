from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis.extra import numpy as hnp
from scipy import sparse

from featstream.errors import DataError, DataTypeError
from featstream.sources import IteratorSource
from gather import check_block, dense, gather

FORMS = [np.asarray, list, pd.Series, lambda v: sparse.csc_array(v[:, None])]


@given(
    hnp.arrays(np.int64, hnp.array_shapes(min_dims=2, max_dims=2, max_side=9)),
    st.lists(st.sampled_from(FORMS), min_size=1, max_size=9),
    st.integers(1, 500),
    st.integers(0, 9),
)
def test_columns_are_those_of_the_dense_array(X, forms, block_bytes, start):
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


def test_text_becomes_codes():
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
