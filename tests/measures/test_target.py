"""Targets of every kind, as classes and as numbers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from featstream.measures.target import as_labels, as_numbers

CODES = [1, 0, 2, 1, 0]
SPELLINGS = {
    "list": [10, 3, 12, 10, 3],
    "negative": np.array([0, -5, 7, 0, -5]),
    "text": ["m", "a", "z", "m", "a"],
    "bytes": np.array([b"m", b"a", b"z", b"m", b"a"]),
    "objects": np.array(["m", "a", "z", "m", "a"], object),
    "whole floats": [2.0, 1.0, 3.0, 2.0, 1.0],
    "object floats": np.array([2.0, 1, 3, 2, 1], object),
    "pandas": pd.Series(["m", "a", "z", "m", "a"]),
    "pandas categories": pd.Series(["m", "a", "z", "m", "a"], dtype="category"),
    "pandas numbers": pd.Series([2, 1, 3, 2, 1], dtype="Int64"),
    "polars": pl.Series(["m", "a", "z", "m", "a"]),
    "polars numbers": pl.Series([2, 1, 3, 2, 1]),
    "a column": pd.Series([2, 1, 3, 2, 1], index=list("vwxyz")),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_labels_of_any_type_are_classes(spelling):
    labels = as_labels(SPELLINGS[spelling])
    assert labels.codes.tolist() == CODES
    assert labels.counts.tolist() == [2, 2, 1]
    assert labels.classes.size == 3


def test_booleans_are_two_classes():
    assert as_labels([True, False, True]).codes.tolist() == [1, 0, 1]
    assert as_labels(pd.Series([True, False, True])).codes.tolist() == [1, 0, 1]


def test_a_sparse_target_is_a_target():
    with pytest.warns(UserWarning, match="column-vector y"):
        labels = as_labels(sparse.csc_array([[1], [0], [1]]))
    assert labels.codes.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    "y", [[1, 2, 4], [1.0, 2.0, 4.0], pd.Series([1, 2, 4]), pl.Series([1, 2, 4])]
)
def test_numbers_are_taken_as_they_are(y):
    assert as_numbers(y).tolist() == [1.0, 2.0, 4.0]
    assert as_numbers([True, False]).tolist() == [1.0, 0.0]
