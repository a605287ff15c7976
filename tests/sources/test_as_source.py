from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

import featstream.sources
from featstream.sources import (
    ArraySource,
    FrameSource,
    IteratorSource,
    SparseSource,
    as_source,
)
from gather import gather

X = np.array([[1, 0], [0, 3], [5, 6]])


class ArrayLike:
    def __array__(self, dtype=None, copy=None):
        return np.array(X, dtype)


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (X, ArraySource),
        (np.matrix(X), ArraySource),
        (X.tolist(), ArraySource),
        (tuple(map(tuple, X)), ArraySource),
        (ArrayLike(), ArraySource),
        (sparse.csc_array(X), SparseSource),
        (sparse.csr_matrix(X), SparseSource),
        (pd.DataFrame(X), FrameSource),
        (pl.DataFrame(X), FrameSource),
        (pl.LazyFrame(X), FrameSource),
        (pa.table({"a": X[:, 0], "b": X[:, 1]}), FrameSource),
        ([("a", X[:, 0]), ("b", X[:, 1])], IteratorSource),
        ({"a": X[:, 0], "b": X[:, 1]}.items(), IteratorSource),
        (zip("ab", X.T, strict=True), IteratorSource),
        (
            ((name, column) for name, column in zip("ab", X.T, strict=True)),
            IteratorSource,
        ),
    ],
)
def test_everything_with_columns_is_a_source(given, kind):
    source = as_source(given)
    assert type(source) is kind
    assert as_source(source) is source
    np.testing.assert_array_equal(gather(source)[0], X)
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
