"""Which measure a name means, and which one "auto" takes."""

import logging

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from featstream import SAOLA, FisherZ, MutualInformation, SymmetricalUncertainty
from featstream.measures import MEASURES, resolve_measure

N = 24
Y = np.arange(N) % 2
FEW, MANY = np.arange(N) % 10, np.arange(N) % 11
TEXT = np.array(["red", "blue"])[Y]


@pytest.mark.parametrize(
    ("name", "kind"),
    [("su", SymmetricalUncertainty), ("mi", MutualInformation), ("fisher-z", FisherZ)],
)
def test_a_name_means_a_measure_with_its_defaults(name, kind):
    found = resolve_measure(name)
    assert type(found) is kind is MEASURES[name]
    assert found.get_params() == kind().get_params()
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
    from featstream.sources import ArraySource

    X = np.column_stack([FEW] * 100 + [MANY] * 100).astype(float)
    for width in (1, 30, 99, 100, 101, 200):
        source = ArraySource(X, block_bytes=width * X.itemsize * N)
        assert SAOLA().fit(source, Y).measure_ == "fisher-z"
