"""Tables with numbers, text and identifiers of rows."""

import warnings

import numpy as np
import pandas as pd
import pytest

from featstream import (
    OSFS,
    SAOLA,
    FastOSFS,
    GroupSAOLA,
    MutualInformation,
    SymmetricalUncertainty,
    resume,
)
from featstream.errors import FeatstreamWarning
from featstream.measures import ChiSquareTest, GTest
from featstream.measures.inputs import LeftOut, are_identifiers
from featstream.protocols import Block
from featstream.sources.memory import in_storage
from featstream.sources.values import LIMITS
from gather import as_columns

N = 150


@pytest.fixture
def numbers():
    """Normal columns of which g17 is informative, and the class."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 40))
    y = (X[:, 17] + 0.5 * rng.normal(size=N) > 0).astype(int)
    return pd.DataFrame(X, columns=[f"g{i}" for i in range(40)]), y


@pytest.fixture
def patients(numbers):
    """The same with a name for each row."""
    frame, y = numbers
    frame.insert(0, "patient_id", [f"P{i}" for i in range(N)])
    return frame, y


@pytest.mark.parametrize("make", [SAOLA, FastOSFS, OSFS, GroupSAOLA])
def test_an_identifier_changes_nothing_but_is_named(make, patients, tmp_path):
    frame, y = patients
    expected = make().fit(frame.drop(columns="patient_id"), y).result_.names
    assert "g17" in expected
    with pytest.warns(FeatstreamWarning, match="'patient_id' has about one category"):
        selector = make().fit(frame, y)
    assert selector.result_.names == expected
    assert selector.measure_ == "fisher-z"
    assert "left out" in selector.explain("patient_id")
    selector.save(tmp_path / "run")
    explained = resume(tmp_path / "run").explain("patient_id")
    assert explained == selector.explain("patient_id")


@pytest.mark.parametrize(
    ("selector", "option"),
    [
        (SAOLA(measure=SymmetricalUncertainty()), "measure__identifiers"),
        (SAOLA(measure=MutualInformation()), "measure__identifiers"),
        (GroupSAOLA(measure=SymmetricalUncertainty()), "measure__identifiers"),
        (OSFS(test=GTest()), "test__identifiers"),
        (FastOSFS(test=ChiSquareTest(samples_per_df=1)), "test__identifiers"),
    ],
)
def test_discrete_measures_leave_identifiers_out_or_keep_them(
    selector, option, patients
):
    with pytest.warns(FeatstreamWarning, match="patient_id") as caught:
        selector.fit(*patients)
    assert len([w for w in caught if "patient_id" in str(w.message)]) == 1
    assert selector.result_.trace.relevance(0) == 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("error", FeatstreamWarning)
        warnings.filterwarnings("ignore", r"\w+ has no groups")
        selector.set_params(**{option: "keep"}).fit(*patients)
    assert selector.result_.trace.relevance(0) > 0


def test_a_stream_of_updates_warns_once(numbers):
    _, y = numbers
    selector = SAOLA(measure="su").start(y)
    with pytest.warns(FeatstreamWarning, match="'id0' has"):
        selector.update([f"P{i}" for i in range(N)], name="id0")
    with warnings.catch_warnings():
        warnings.simplefilter("error", FeatstreamWarning)
        assert not selector.update([f"Q{i}" for i in range(N)], name="id1").is_kept


def test_a_warning_names_five_identifiers_and_counts_the_rest(numbers):
    frame, y = numbers
    ids = {f"id{i}": [f"P{i}-{row}" for row in range(N)] for i in range(8)}
    with pytest.warns(FeatstreamWarning, match="'id4' and 3 more have"):
        SAOLA().fit(pd.concat([frame, pd.DataFrame(ids)], axis=1), y)


def test_text_and_numbers_are_each_taken_as_what_they_are(patients, tmp_path):
    frame, y = patients
    rng = np.random.default_rng(1)
    frame.insert(1, "age", rng.integers(20, 90, N))
    frame.insert(2, "stage", np.where(y == 1, "late", "early"))
    frame.loc[:20, "stage"] = "unknown"
    with pytest.warns(FeatstreamWarning, match="'auto' took 'su'"):
        selector = SAOLA().start(y).consume(frame.iloc[:, :30], checkpoint=tmp_path)
    assert selector.measure_ == "su"
    assert "'stage' is text" in selector.measure_reason_
    assert selector.result_.measure_reason == selector.measure_reason_
    assert {"stage", "g17"} <= set(selector.result_.names)
    # Whole numbers of many values are binned: as 70 categories they would score high.
    assert selector.result_.trace.relevance(1) < 0.05
    later = resume(tmp_path)
    assert later.measure_reason_ == selector.measure_reason_
    later.consume(frame[["age"]].rename(columns={"age": "again"}))
    trace = later.result_.trace
    assert trace.relevance(30) == trace.relevance(1)


def test_a_named_measure_has_no_reason(numbers):
    frame, y = numbers
    assert SAOLA(measure="fisher-z").fit(frame, y).measure_reason_ is None


@pytest.mark.parametrize(
    ("n_rows", "n_categories", "n_missing", "expected"),
    [
        *((30, 30, 0, True), (30, 16, 0, True), (30, 15, 0, False)),
        *((10, 10, 0, False), (11, 11, 0, True), (12, 12, 30, True)),
    ],
)
def test_an_identifier_has_fewer_than_two_rows_per_category(
    n_rows, n_categories, n_missing, expected
):
    """Rows without a category do not count."""
    codes = np.r_[np.arange(n_rows) % n_categories, np.full(n_missing, -1)] * 1.0
    block = Block(codes[:, None], nominal=np.array([True]))
    assert are_identifiers(block).tolist() == [expected]
    assert not are_identifiers(Block(codes[:, None])).any()  # numbers are not text


def test_identifiers_are_found_in_sparse_columns():
    dense = np.column_stack([np.arange(30.0), np.arange(30.0) % 3])
    block = Block(as_columns(dense), 7, nominal=np.array([True, True]))
    left_out = LeftOut()
    stripped = left_out.strip(block)
    assert left_out.names == {7: "x7"}
    assert stripped.nominal.tolist() == [False, True]
    assert np.array_equal(stripped.to_dense(), dense * [0, 1])


def test_parts_of_a_sparse_block_keep_their_own_categories(monkeypatch):
    monkeypatch.setattr(LIMITS, "dense_block", 8 * 4 * 2)
    X = np.arange(16.0).reshape(4, 4)
    nominal = np.array([True, False, False, True])
    block = Block(as_columns(X), 0, ["a", "b", "c", "d"], nominal)
    parts = list(in_storage(block, is_sparse=False))
    assert [part.names for part in parts] == [["a", "b"], ["c", "d"]]
    assert [part.nominal.tolist() for part in parts] == [[True, False], [False, True]]
    assert np.array_equal(np.hstack([p.columns for p in parts]), X)
