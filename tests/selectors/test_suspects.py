"""The target among the columns, and columns that count the rows, are named."""

import json
import warnings

import numpy as np
import pytest
from scipy import sparse

import checks
import featstream
from featstream import (
    FCBF,
    JMI,
    MIM,
    OSFS,
    SAOLA,
    AlphaInvesting,
    FisherZ,
    Grafting,
    GroupSAOLA,
    SelectFromStream,
)
from featstream.cli import main
from featstream.errors import FeatstreamWarning, ParameterError
from featstream.selectors.suspects import (
    counts_the_rows,
    is_target_in_other_words,
    numbers_the_rows,
)
from featstream.sources import ArraySource, open_store, write_store

N = 60


@pytest.fixture(scope="module")
def data():
    """Features of which two are relevant, and the classes."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, N)
    X = rng.normal(size=(N, 30))
    X[:, :2] += y[:, None]
    return X, y


def said(caught, words="in other words"):
    found = [str(w.message) for w in caught if w.category is FeatstreamWarning]
    return [text for text in found if words in text]


def fit(selector, X, y, words="in other words", **how):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        selector.fit(X, y, **how)
    return said(caught, words)


def named(X, **columns):
    """A frame with further columns."""
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=[f"g{j}" for j in range(X.shape[1])])
    return frame.assign(**columns)


COPIES = {
    "equal": lambda y: y,
    "recoded": lambda y: np.array([7.0, 2.0, 11.0])[y],
    "negated": lambda y: -y,
    "text": lambda y: np.array(["low", "mid", "high"])[y],
}


@pytest.mark.parametrize("kind", COPIES)
@pytest.mark.parametrize(
    "selector",
    [
        SelectFromStream(measure="su"),
        SelectFromStream(measure="fisher-z"),
        SAOLA(measure="mi"),
        GroupSAOLA(measure="su"),
        FCBF(measure="su"),
        MIM(measure="mi"),
        JMI(measure="mi"),
        OSFS(test="g2"),
    ],
    ids=repr,
)
def test_the_target_among_the_columns_is_named(selector, kind, data):
    X, y = data
    is_text = kind == "text"
    if is_text and "fisher" in repr(selector):
        return  # which takes no text
    X = np.digitize(X, [-1, 1]) if "fisher" not in repr(selector) else X
    (text,) = fit(selector, named(X, copy=COPIES[kind](y)), y)
    assert text.startswith("'copy' is the target in other words")
    assert fit(selector, named(X), y) == []


@pytest.mark.parametrize("selector", [AlphaInvesting(wealth=5.0), Grafting(l1=0.05)])
def test_models_name_it_too(selector, data):
    X, y = data
    (text,) = fit(selector, named(X, copy=1 - (y > 0)), y > 0)
    assert text.startswith("'copy' is the target")


@pytest.mark.parametrize("change", [lambda y: y, lambda y: 3 - 2 * y, np.exp])
def test_a_numeric_target_among_the_columns_is_named(change, data):
    X, _ = data
    y = X[:, 0] + np.random.default_rng(1).normal(size=N)
    selector = SAOLA(measure=FisherZ(target="numeric"))
    (text,) = fit(selector, named(X, copy=change(y)), y)
    assert text.startswith("'copy'")
    assert fit(selector, named(X), y) == []


def test_every_way_of_reading_names_it(data, tmp_path):
    X, y = data
    codes = np.c_[np.digitize(X, [0.0]), y]
    write_store(tmp_path / "x.cols", ArraySource(codes), y)
    for source in (sparse.csc_array(codes), open_store(tmp_path / "x.cols"), codes):
        (text,) = fit(SAOLA(measure="su"), source, y)
        assert text.startswith("'x30' is the target")


def test_scattered_groups_and_later_sources_are_looked_at_in_their_place(data):
    X, y = data
    codes = np.digitize(X, [0.0])
    with_copy = np.c_[codes[:, :7], y, codes[:, 7:]]
    groups = np.arange(with_copy.shape[1]) % 5
    (text,) = fit(GroupSAOLA(measure="su"), with_copy, y, groups=groups)
    assert text.startswith("'x7' is the target")
    selector = SAOLA(measure="su").fit(codes, y)
    with pytest.warns(FeatstreamWarning, match="'x37' is the target"):
        selector.consume(with_copy)


def test_single_features_are_looked_at_too(data):
    X, y = data
    codes = np.digitize(X, [0.0])
    selector = SAOLA(measure="su").start(y)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for j in range(5):
            selector.update(codes[:, j], name=f"g{j}")
        selector.update(2 - y, name="copy")
    (text,) = said(caught)
    assert text.startswith("'copy' is the target")


def test_it_stays_unless_it_is_to_be_left_out(data):
    X, y = data
    codes = named(np.digitize(X, [-0.5, 0.5]), copy=2 - y)
    kept = SelectFromStream(measure="su")
    fit(kept, codes, y)
    assert "copy" in kept.result_.names
    dropped = SelectFromStream(measure="su", target_copies="drop")
    (text,) = fit(dropped, codes, y)
    assert text == ("Left out, with relevance 0: 'copy' is the target in other words.")
    others = SelectFromStream(measure="su").fit(codes.drop(columns="copy"), y)
    assert dropped.result_.names == others.result_.names
    assert len(others.result_.names) > 0
    assert "it is the target in other words, and was left out" in dropped.explain(
        "copy"
    )
    for storage in (sparse.csc_array(codes.to_numpy()), codes.to_numpy()):
        found = SelectFromStream(measure="su", target_copies="drop", n_jobs=2)
        fit(found, storage, y)
        assert found.selected_.tolist() == dropped.selected_.tolist()
    online = SelectFromStream(measure="su", target_copies="drop").start(y)
    decisions = [online.update(codes[name], name=name) for name in codes]
    assert not decisions[-1].is_kept


def test_a_run_remembers_what_was_left_out(data, tmp_path):
    X, y = data
    codes = named(np.digitize(X, [-0.5, 0.5]), copy=y)
    selector = SelectFromStream(measure="su", target_copies="drop").start(y)
    with pytest.warns(FeatstreamWarning, match="Left out"):
        selector.consume(codes, checkpoint=tmp_path / "run")
    resumed = featstream.resume(tmp_path / "run")
    assert resumed.explain("copy") == selector.explain("copy")
    assert checks.outcome(resumed) == checks.outcome(selector)


def test_the_option_is_checked(data):
    X, y = data
    with pytest.raises(ParameterError, match="target_copies"):
        SelectFromStream(target_copies="maybe").fit(X, y)


@pytest.mark.filterwarnings("always:.* the target in other words")
def test_the_command_line_names_it_and_leaves_it_out(data, tmp_path, capsys):
    X, y = data
    codes = np.c_[np.digitize(X, [-0.5, 0.5]), 5 - y]
    np.savez(tmp_path / "d.npz", X=codes, y=y)
    command = ["select", str(tmp_path / "d.npz"), "-q", "--measure", "su", "--json"]
    assert main(command) == 0
    out, err = capsys.readouterr()
    assert "'x30' is the target in other words" in err
    assert "--target-copies drop" in err
    assert "x30" in [f["name"] for f in json.loads(out)["selected"]]
    assert main([*command, "--target-copies", "drop"]) == 0
    out, err = capsys.readouterr()
    assert "Left out" in err
    assert "x30" not in [f["name"] for f in json.loads(out)["selected"]]


# Counters ---------------------------------------------------------------------


def sorted_by_class(n_rows=N):
    rng = np.random.default_rng(3)
    return rng.normal(size=(n_rows, 20)), np.sort(rng.integers(0, 2, n_rows))


@pytest.mark.parametrize("step", [1, -2.5])
@pytest.mark.parametrize("measure", ["fisher-z", "su"])
def test_a_counter_of_rows_is_named(step, measure):
    X, y = sorted_by_class()
    counter = 100 + step * np.arange(N)
    (text,) = fit(SAOLA(measure=measure), named(X, row=counter), y, "like a counter")
    assert text.startswith("'row' rises or falls with the number of the row")
    assert fit(SAOLA(measure=measure), named(X), y, "like a counter") == []


def test_whole_numbers_that_identify_rows_are_named():
    """Other ones in every class, but in no order."""
    X, y = sorted_by_class()
    rng = np.random.default_rng(0)
    ids = np.concatenate([rng.permutation((y == k).sum()) + 40 * k for k in (0, 1)])
    (text,) = fit(SAOLA(measure="fisher-z"), named(X, id=ids), y, "like a counter")
    assert text.startswith("'id' has another whole number in every row")


def test_measurements_are_not_taken_for_identifiers():
    rng = np.random.default_rng(0)
    assert not numbers_the_rows(rng.poisson(50, 200).astype(float))
    assert not numbers_the_rows(rng.choice(100_000, 200, replace=False))  # counts
    assert not numbers_the_rows(rng.normal(size=200))
    assert numbers_the_rows(rng.permutation(200) + 1000)
    assert not counts_the_rows(np.arange(5.0))  # too few rows to tell
    assert not counts_the_rows(np.r_[np.arange(20), 19])


def test_words_for_a_target_are_one_to_one():
    y = np.tile([0, 1, 2], 4)
    same = {"is_numeric": False}
    assert is_target_in_other_words(y * 3 % 7, y, **same)
    assert not is_target_in_other_words(np.minimum(y, 1), y, **same)
    assert not is_target_in_other_words(np.arange(12), y, **same)
    assert not is_target_in_other_words(np.r_[y[:-1], 1], y, **same)
    assert not is_target_in_other_words(y[:9], y[:9], **same)  # perhaps by chance
    assert not is_target_in_other_words(y * 2 % 3, y, is_numeric=True)
