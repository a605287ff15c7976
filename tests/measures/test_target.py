"""Targets of every kind, as classes and as numbers."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from featstream import OGFS, SAOLA, AlphaInvesting, FastOSFS, FisherZ
from featstream.errors import FeatstreamWarning
from featstream.measures import FisherZTest
from featstream.measures.inputs import as_labels, as_numbers

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
    "pyarrow": pa.array(["m", "a", "z", "m", "a"]),
    "pyarrow dictionary": pa.array(["m", "a", "z", "m", "a"]).dictionary_encode(),
    "pyarrow chunks": pa.chunked_array([["m", "a"], ["z", "m", "a"]]),
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


def start(selector, y):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        selector.start(y)
    return [str(w.message) for w in caught if w.category is FeatstreamWarning]


def test_a_quantity_taken_for_classes_is_said():
    ages = np.random.default_rng(0).permutation(np.repeat(np.arange(20, 80), 10))
    (message,) = start(SAOLA(), ages)
    assert "60 classes with 10 rows each" in message
    assert "FisherZ(target='numeric')" in message
    (message,) = start(FastOSFS(), ages)
    assert "FisherZTest(target='numeric')" in message
    (message,) = start(AlphaInvesting(), ages)
    assert "use target='numeric'" in message
    (message,) = start(OGFS(), ages)
    assert "bin it." in message


@pytest.mark.parametrize(
    "selector",
    [
        SAOLA(measure=FisherZ(target="numeric")),
        FastOSFS(test=FisherZTest(target="numeric")),
        AlphaInvesting(target="numeric"),
    ],
)
def test_a_quantity_given_as_one_selects_by_it(selector):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 20))
    y = np.round(50 + 10 * X[:, 3] + 3 * rng.normal(size=400)).astype(int)
    assert not start(selector, y)
    assert 3 in selector.fit(X, y).selected_
    assert selector.selected_.size < 5


@pytest.mark.parametrize(
    ("n_classes", "n_rows", "as_text", "expected"),
    [
        (20, 100, False, False),
        (21, 105, False, True),
        (21, 105, True, False),
        (3, 14, True, True),
        (3, 15, False, False),
        (2, 4, False, False),
    ],
)
def test_few_rows_per_class_are_said(n_classes, n_rows, as_text, expected):
    y = np.arange(n_rows) % n_classes
    y = y.astype(str) if as_text else y
    messages = start(SAOLA(), y)
    assert bool(messages) == expected
    assert not (as_text and messages and "numeric" in messages[0])
