"""Names of features, from whatever gives them."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

from featstream import SAOLA, GroupSAOLA
from featstream.errors import DataError

Y = np.repeat([0, 1], 30)
COLUMNS = {
    "noise": np.random.default_rng(0).normal(size=60),
    "signal": Y + np.random.default_rng(1).normal(size=60) / 4,
}


@pytest.mark.parametrize(
    "make",
    [
        lambda: iter(COLUMNS.items()),
        lambda: pl.DataFrame(COLUMNS).lazy(),
        lambda: pa.RecordBatch.from_pydict(COLUMNS),
        lambda: pa.table(COLUMNS),
        lambda: pl.DataFrame(COLUMNS),
        lambda: pd.DataFrame(COLUMNS),
    ],
    ids=["iterator", "LazyFrame", "RecordBatch", "Table", "polars", "pandas"],
)
def test_names_of_any_table_come_out(make):
    selector = SAOLA(measure="fisher-z").fit(make(), Y)
    assert selector.feature_names_in_.tolist() == ["noise", "signal"]
    assert selector.get_feature_names_out().tolist() == ["signal"]


def test_names_that_scikit_learn_leaves_out_stay_out():
    selector = SAOLA(measure="fisher-z").fit(pd.DataFrame(dict(enumerate([Y, Y]))), Y)
    assert not hasattr(selector, "feature_names_in_")


@pytest.fixture
def reviews():
    good = ["good film", "good plot", "a good one"] * 10
    bad = ["bad film", "poor plot", "a bad one"] * 10
    return good + bad, [1] * 30 + [0] * 30


def test_a_word_of_a_vectorizer_is_explained_by_its_name(reviews):
    texts, y = reviews
    pipeline = make_pipeline(CountVectorizer(binary=True), SAOLA(measure="su"))
    pipeline.fit(texts, y)
    words, selector = pipeline[:-1].get_feature_names_out(), pipeline[-1]
    with pytest.raises(DataError, match="No feature 'good'"):
        selector.explain("good")
    expected = "'good' is kept: its relevance is 1."
    assert selector.explain("good", input_features=words) == expected
    assert "'good'" in selector.explain("bad", input_features=words)  # its witness
    result = selector.result_.with_names(words)
    assert list(result.names) == pipeline.get_feature_names_out().tolist()
    with pytest.raises(DataError, match="1 names for 6 features"):
        selector.result_.with_names(["good"])
    with pytest.raises(DataError):
        selector.explain("good", input_features=["good"])


def test_given_names_follow_features_that_arrived_in_groups():
    X = np.column_stack([*COLUMNS.values(), COLUMNS["noise"][::-1]])
    selector = GroupSAOLA(measure="fisher-z").fit(X, Y, groups=[1, 0, 1])
    names = ["noise", "signal", "other"]
    assert "kept" in selector.explain("signal", input_features=names)
    assert "irrelevant" in selector.explain("other", input_features=names)
    assert selector.result_.with_names(names).names == ("signal",)
