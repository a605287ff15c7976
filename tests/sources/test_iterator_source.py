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


def test_an_iterator_goes_on_from_where_it_was():
    source = IteratorSource((f"f{i}", [i, i]) for i in range(5))
    assert gather(source, 2)[1] == ["f2", "f3", "f4"]
    with pytest.raises(DataError) as caught:
        source.blocks()
    assert str(caught.value) == (
        "This generator has already given 5 features and cannot go back to position 0. "
        "Give a list, or make the iterator anew."
    )


def test_an_empty_iterator_gives_nothing():
    assert list(IteratorSource(iter(())).blocks()) == []


BAD = {
    "not a pair": (
        [("a", [1, 2]), np.zeros(2)],
        DataTypeError,
        "An iterator of features must give pairs (name, values). Got a ndarray at "
        "position 1.",
    ),
    "three": (
        [("a", 1, 2)],
        DataTypeError,
        "An iterator of features must give pairs (name, values). Got a tuple of length "
        "3 at position 0.",
    ),
    "name": (
        [(7, [1, 2])],
        DataTypeError,
        "An iterator of features must give pairs (name, values) with a string for a "
        "name. Got 7 of type int at position 0.",
    ),
    "length": (
        [("f2", np.zeros(100)), ("f3", np.zeros(99))],
        DataError,
        "Feature 'f3' has 99 values but the features before it have 100. Every "
        "feature needs one value per sample.",
    ),
    "two-dimensional": (
        [("a", np.zeros((3, 2)))],
        DataError,
        "Feature 'a' has shape (3, 2). Give one value a sample, in one dimension.",
    ),
    "scalar": (
        [("a", 3.0)],
        DataError,
        "Feature 'a' has shape (). Give one value a sample, in one dimension.",
    ),
    "ragged": (
        [("a", [[1], [2, 3]])],
        DataTypeError,
        "Feature 'a' is a ragged sequence: its items have different lengths. Give one "
        "value for each feature and sample.",
    ),
    "sparse": (
        [("a", sparse.eye_array(3, format="csr"))],
        DataError,
        "Feature 'a' has 3 columns. A sparse feature must have exactly one column.",
    ),
    "no samples": (
        [("a", [])],
        DataError,
        "Found array with 0 sample(s) (shape=(0, 1)) while a minimum of 1 is required.",
    ),
    "date": (
        [("when", np.zeros(3, "M8[D]"))],
        DataTypeError,
        "Feature 'when' has dtype datetime64[D]: a date or a duration is not a number. "
        "Convert it to a number, for instance of days since a fixed date.",
    ),
    "complex": (
        [("a", [1j, 2])],
        DataTypeError,
        "Complex data not supported: Feature 'a' has dtype complex128. Give the real "
        "and imaginary parts, or the modulus, as features.",
    ),
    "mixed": (
        [("a", [1.5, "x"])],
        DataTypeError,
        "Feature 'a' has dtype object and mixes float (row 0) with str (row 1). Make "
        "all of its values numbers, or all of them text.",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_unusable_features_say_why(case):
    pairs, kind, sentence = BAD[case]
    with pytest.raises(kind) as caught:
        list(IteratorSource(pairs).blocks())
    assert str(caught.value) == sentence
