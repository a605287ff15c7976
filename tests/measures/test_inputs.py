"""Which measure a name means and which one "auto" takes; targets of every kind."""

import logging
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from featstream import (
    OGFS,
    SAOLA,
    AlphaInvesting,
    FastOSFS,
    FisherZ,
    MutualInformation,
    SymmetricalUncertainty,
)
from featstream.errors import DataError, FeatstreamWarning
from featstream.measures import FisherZTest, resolve_measure
from featstream.measures.inputs import as_labels, as_numbers
from featstream.sources import ArraySource

N = 24
Y = np.arange(N) % 2
FEW, MANY = np.arange(N) % 10, np.arange(N) % 11
TEXT = np.array(["red", "blue"])[Y]


@pytest.mark.parametrize(
    ("name", "kind"),
    [("su", SymmetricalUncertainty), ("mi", MutualInformation), ("fisher-z", FisherZ)],
)
def test_a_name_means_a_measure_with_its_defaults(name, kind):
    assert resolve_measure(name).get_params() == kind().get_params()
    assert SAOLA(measure=name).start(Y).measure_ == name
    assert SAOLA(measure=kind()).start(Y).measure_ == name


AUTO = {
    "booleans": (np.column_stack([Y, 1 - Y]).astype(bool), "su"),
    "few whole numbers": (np.column_stack([FEW, FEW]), "su"),
    "eleven whole numbers": (MANY[:, None], "fisher-z"),
    "few whole floats": (FEW[:, None].astype(float), "su"),
    "halves": (Y[:, None] / 2, "fisher-z"),
    "one continuous among few": (np.column_stack([FEW, FEW, MANY]), "fisher-z"),
    "sparse 0/1": (sparse.csc_array(Y[:, None]), "su"),
    "sparse counts": (sparse.csr_array(MANY[:, None]), "fisher-z"),
    "sparse fractions": (sparse.csc_array(Y[:, None] / 4), "fisher-z"),
    "text": (TEXT[:, None], "su"),
    "text beside numbers": (pd.DataFrame({"a": MANY / 7, "b": TEXT}), "su"),
    "categories": (pd.DataFrame({"a": pd.Categorical(TEXT)}), "su"),
    "pandas numbers": (pd.DataFrame({"a": MANY / 7}), "fisher-z"),
    "polars text": (pl.DataFrame({"a": TEXT.tolist()}), "su"),
    "polars numbers": (pl.DataFrame({"a": MANY}), "fisher-z"),
    "an iterator": ([("a", FEW), ("b", MANY)], "fisher-z"),
    "constants": (np.ones((N, 3)), "su"),
}


WHY = {
    "few whole numbers": "of the first 2 features has more than 10 distinct values",
    "eleven whole numbers": "feature 'x0' has 11 distinct values",
    "halves": "feature 'x0' has values that are not whole numbers",
    "categories": "feature 'a' is text or categorical",
}


@pytest.mark.parametrize("case", AUTO)
def test_auto_takes_the_measure_that_fits_the_data(case, caplog):
    X, expected = AUTO[case]
    with caplog.at_level(logging.INFO, logger="featstream"):
        selector = SAOLA().start(Y).consume(X)
    assert selector.measure_ == expected
    (message,) = (text for text in caplog.messages if "Compiling" not in text)
    assert message.startswith(f"'auto' took {expected!r}: ")
    assert message.endswith(WHY.get(case, ""))


def test_auto_decides_once_and_by_the_first_features_alone():
    selector = SAOLA().start(Y)
    assert selector.measure_ == "auto"
    selector.update(FEW)
    assert selector.measure_ == "su"
    selector.update(MANY / 7)
    assert selector.measure_ == "su"
    late = np.column_stack([FEW] * 256 + [MANY])
    assert SAOLA().fit(late, Y).measure_ == "su"
    assert SAOLA().fit(late[:, 1:], Y).measure_ == "fisher-z"


def test_auto_does_not_depend_on_the_blocks():
    X = np.column_stack([FEW] * 100 + [MANY] * 100).astype(float)
    for width in (1, 30, 99, 100, 101, 200):
        source = ArraySource(X, block_bytes=width * X.itemsize * N)
        assert SAOLA().fit(source, Y).measure_ == "fisher-z"


WORDS = list("mazma")
SPELLINGS = {
    "list": [10, 3, 12, 10, 3],
    "negative": np.array([0, -5, 7, 0, -5]),
    "text": WORDS,
    "bytes": np.array([b"m", b"a", b"z", b"m", b"a"]),
    "objects": np.array(WORDS, object),
    "whole floats": [2.0, 1.0, 3.0, 2.0, 1.0],
    "object floats": np.array([2.0, 1, 3, 2, 1], object),
    "pandas": pd.Series(WORDS, index=list("vwxyz")),
    "pandas categories": pd.Series(WORDS, dtype="category"),
    "pandas numbers": pd.Series([2, 1, 3, 2, 1], dtype="Int64"),
    "polars": pl.Series(WORDS),
    "polars numbers": pl.Series([2, 1, 3, 2, 1]),
    "pyarrow": pa.array(WORDS),
    "pyarrow dictionary": pa.array(WORDS).dictionary_encode(),
    "pyarrow chunks": pa.chunked_array([WORDS[:2], WORDS[2:]]),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_labels_of_any_type_are_classes(spelling):
    labels = as_labels(SPELLINGS[spelling])
    assert labels.codes.tolist() == [1, 0, 2, 1, 0]
    assert labels.counts.tolist() == [2, 2, 1]
    assert labels.classes.size == 3


@pytest.mark.parametrize("kind", [list, pd.Series])
def test_booleans_are_two_classes(kind):
    assert as_labels(kind([True, False, True])).codes.tolist() == [1, 0, 1]


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


@pytest.mark.parametrize(
    ("selector", "remedy"),
    [
        (SAOLA(measure="su"), "FisherZ(target='numeric')"),
        (SAOLA(measure=FisherZ(target="nominal")), "FisherZ(target='numeric')"),
        (FastOSFS(), "FisherZTest(target='numeric')"),
        (AlphaInvesting(), "use target='numeric'"),
        (OGFS(), "bin it."),
    ],
)
def test_a_quantity_taken_for_classes_is_said(selector, remedy):
    (message,) = start(selector, np.tile(np.arange(20, 80), 10))
    assert "60 classes with 10 rows each" in message
    assert remedy in message


@pytest.mark.parametrize("measure", ["auto", "fisher-z", FisherZ()])
@pytest.mark.parametrize(
    ("y", "said"),
    [
        (np.tile(np.arange(21), 10), "21 different whole numbers, 0 to 20"),
        (np.repeat(np.arange(7), [50, 40, 30, 20, 10, 5, 4]), "the rarest has 4 rows"),
    ],
)
def test_whole_numbers_that_may_be_counts_are_asked_about(measure, y, said):
    selector = SAOLA(measure=measure)
    with pytest.raises(DataError, match=said) as caught:
        selector.start(y)
    assert "FisherZ(target='numeric')" in str(caught.value)
    selector.set_params(measure=FisherZ(target="nominal"))
    with pytest.warns(FeatstreamWarning):
        selector.start(y)
    selector.set_params(measure=measure).start(y.astype(str))  # text is classes


def test_frequent_classes_that_may_be_counts_are_said_aloud():
    (message,) = start(SAOLA(), np.tile(np.arange(10), 50))
    assert "10 different whole numbers, 0 to 9, which are taken as classes" in message
    assert "FisherZ(target='numeric')" in message
    assert not start(SAOLA(), np.tile(np.arange(6), 50))


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
        (6, 100, False, False),
        (7, 100, False, True),
        (20, 100, True, False),
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
