"""SAOLA as a scikit-learn selector: its checks, and the company it keeps."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from featstream import (
    SAOLA,
    FisherZ,
    GroupSAOLA,
    MutualInformation,
    SymmetricalUncertainty,
)
from featstream.errors import DataError

CANCER = load_breast_cancer(as_frame=True)
X, Y = CANCER.data, CANCER.target


def test_a_pipeline_selects_before_it_learns():
    plain = make_pipeline(StandardScaler(), LogisticRegression())
    model = make_pipeline(SAOLA(), StandardScaler(), LogisticRegression())
    model.fit(X, Y)
    n_selected = model[0].support_.sum()
    assert 1 <= n_selected < X.shape[1]
    assert model[-1].n_features_in_ == n_selected
    scores = cross_val_score(model, X, Y, cv=3)
    assert scores.mean() > cross_val_score(plain, X, Y, cv=3).mean() - 0.08


def test_a_grid_searches_the_parameters_of_the_measure():
    selector = SAOLA(measure=FisherZ())
    model = make_pipeline(selector, StandardScaler(), LogisticRegression())
    grid = {"saola__measure__alpha": [1e-12, 0.01], "saola__bound": ["min", "max"]}
    search = GridSearchCV(model, grid, cv=2).fit(X, Y)
    assert set(search.best_params_) == set(grid)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    measures = {"saola__measure": ["su", "fisher-z", MutualInformation(n_bins=3)]}
    assert GridSearchCV(model, measures, cv=2).fit(X, Y).best_score_ > 0.8


@pytest.mark.parametrize(("library", "frame"), [("pandas", pd), ("polars", pl)])
def test_output_may_be_a_frame(library, frame):
    selector = SAOLA().set_output(transform=library).fit(X, Y)
    found = selector.transform(X)
    assert isinstance(found, frame.DataFrame)
    assert list(found.columns) == X.columns[selector.support_].tolist()
    np.testing.assert_array_equal(found.to_numpy(), X.to_numpy()[:, selector.support_])


def test_other_names_are_refused_and_names_of_an_earlier_fit_are_forgotten():
    selector = SAOLA().fit(X, Y)
    with pytest.raises(ValueError, match="feature names should match"):
        selector.transform(X[X.columns[::-1]])
    selector.fit(X.to_numpy()[:, :10], Y)
    assert not hasattr(selector, "feature_names_in_")
    assert selector.n_features_in_ == 10
    assert selector.transform(X.to_numpy()[:, :10]).shape[1] == selector.support_.sum()


@pytest.mark.parametrize("measure", ["su", "mi", "fisher-z"])
def test_several_classes_are_selected_for(measure):
    data, target = load_iris(return_X_y=True)
    selector = SAOLA(measure=measure).fit(data, target)
    _, best, _ = selector.result_.ranked()[0]
    assert best in (2, 3)  # the petals, as every tree of iris says


def test_frames_with_text_need_no_encoding():
    colour = np.where(Y == 1, "red", "blue")
    shape = np.tile(["round", "square"], 300)[: Y.size]
    frame = pd.DataFrame({"shape": shape, "colour": colour}).assign(
        size=pd.Categorical(np.where(np.arange(Y.size) % 3 == 0, "L", "S")),
        texture=X["mean texture"],
    )
    selector = SAOLA(measure="su").fit(frame, Y)
    assert selector.get_feature_names_out().tolist() == ["colour"]
    assert selector.transform(frame).shape == (Y.size, 1)
    assert SAOLA().fit(frame, Y).measure_ == "su"


@pytest.mark.parametrize("make", [np.asarray, pd.DataFrame])
def test_what_may_be_missing_in_fit_may_be_missing_in_transform(make):
    holed = X.to_numpy().copy()
    holed[::7, 3] = np.nan
    selector = SAOLA(measure=SymmetricalUncertainty(missing="category"))
    found = selector.fit(make(holed), Y).transform(make(holed))
    np.testing.assert_array_equal(found, holed[:, selector.support_])
    strict = SAOLA(measure="su").fit(make(X.to_numpy()), Y)
    with pytest.raises(ValueError, match="contains NaN"):
        strict.transform(make(holed))


def test_a_column_transformer_may_hold_it():
    part = ("selected", SAOLA(measure="fisher-z"), list(X.columns[:20]))
    model = ColumnTransformer([part], remainder="passthrough")
    found = model.fit_transform(X, Y)
    assert 10 < found.shape[1] < 30
    assert model.get_feature_names_out()[0].startswith("selected__")


@pytest.mark.parametrize(
    "make", [sparse.csr_array, sparse.csc_array, sparse.csr_matrix]
)
def test_sparse_goes_in_and_comes_out(make):
    stored = make((X.to_numpy() > X.to_numpy().mean(axis=0)).astype(float))
    selector = SAOLA(measure="su").fit(stored, Y)
    found = selector.transform(stored)
    assert sparse.issparse(found)
    expected = stored.toarray()[:, selector.support_]
    np.testing.assert_array_equal(found.toarray(), expected)


def test_nothing_selected_is_a_warning_and_an_empty_table():
    independent = np.tile([0.0, 1.0, 1.0, 0.0], 10)[:, None]
    y = np.tile([0, 0, 1, 1], 10)
    selector = SAOLA(measure="su").fit(independent, y)
    with pytest.warns(UserWarning, match="No features were selected"):
        assert selector.transform(independent).shape == (40, 0)


# Names ------------------------------------------------------------------------

CLASSES = np.repeat([0, 1], 30)
COLUMNS = {
    "noise": np.random.default_rng(0).normal(size=60),
    "signal": CLASSES + np.random.default_rng(1).normal(size=60) / 4,
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
    selector = SAOLA(measure="fisher-z").fit(make(), CLASSES)
    assert selector.feature_names_in_.tolist() == ["noise", "signal"]
    assert selector.get_feature_names_out().tolist() == ["signal"]


def test_names_that_scikit_learn_leaves_out_stay_out():
    selector = SAOLA(measure="fisher-z").fit(
        pd.DataFrame(dict(enumerate([CLASSES, CLASSES]))), CLASSES
    )
    assert not hasattr(selector, "feature_names_in_")


def test_a_word_of_a_vectorizer_is_explained_by_its_name():
    bad = ["bad film", "poor plot", "a bad one"] * 10
    good = ["good film", "good plot", "a good one"] * 10
    pipeline = make_pipeline(CountVectorizer(binary=True), SAOLA(measure="su"))
    pipeline.fit(bad + good, CLASSES)
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
    selector = GroupSAOLA(measure="fisher-z").fit(X, CLASSES, groups=[1, 0, 1])
    names = ["noise", "signal", "other"]
    assert "kept" in selector.explain("signal", input_features=names)
    assert "irrelevant" in selector.explain("other", input_features=names)
    assert selector.result_.with_names(names).names == ("signal",)
