"""Labels that are spellings of others, or missing ones: named with their counts."""

import warnings

import numpy as np
import pytest

from featstream import OFS, SAOLA
from featstream.errors import DataError, FeatstreamWarning
from featstream.measures.inputs import as_labels
from featstream.measures.labels import check_labels


def classes(**counts):
    """Labels that occur these numbers of times."""
    return np.repeat(list(counts), list(counts.values()))


def said_about(y):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_labels(as_labels(y))
    return [str(warning.message) for warning in caught]


def test_spellings_of_one_label_are_named():
    y = np.repeat(["yes", "Yes", "yes ", "no", "a  b", "a b"], [40, 3, 1, 50, 2, 9])
    (said,) = said_about(y)
    assert "'Yes' (3), 'yes' (40), 'yes ' (1)" in said
    assert "'a  b' (2), 'a b' (9)" in said
    assert "'no'" not in said
    assert said_about(np.repeat(["yes", "no"], 9)) == []


@pytest.mark.parametrize("word", ["", "nan", "NaN", "<NA>", " "])
def test_missing_labels_as_text_are_refused(word):
    y = np.array(["a", "b", word, "a", word])
    with pytest.raises(DataError, match=r"y has 2 missing labels: .* first at row 2"):
        check_labels(as_labels(y))
    with pytest.raises(DataError, match="missing label"):
        SAOLA().start(y)


@pytest.mark.parametrize("word", ["unknown", "None", "NA", "Missing", "?", "n/a"])
def test_words_for_a_missing_label_are_named(word):
    (said,) = said_about(np.repeat(["ill", "well", word], [30, 20, 7]))
    assert f"the class '{word}' (7) beside 'ill' (30), 'well' (20)" in said
    assert said_about(np.repeat(["ill", word], [30, 20])) == []  # two classes


@pytest.mark.parametrize(
    ("labels", "odd"),
    [
        ([0, 1, -9], "-9"),
        ([1, 2, -9], "-9"),
        ([0, 1, 99], "99"),
        ([0, 1, -1], "-1"),
        ([0.0, 1.0, -999.0], "-999"),
    ],
)
def test_numbers_for_a_missing_label_are_named(labels, odd):
    y = np.repeat(labels, [400, 390, 17])
    (said,) = said_about(y)
    assert f"the class {odd} (17) beside" in said
    assert "(400)" in said
    assert said_about(np.repeat(labels[1:], [390, 17])) == []


@pytest.mark.parametrize(
    ("labels", "counts"),
    [
        ([-1, 0, 1], [300, 310, 290]),  # three classes, none rare
        ([97, 98, 99], [30, 30, 30]),
        ([-9, -8, 8], [30, 30, 30]),
        ([0, 1, 9], [30, 30, 5]),
        ([-1, 1], [300, 5]),
    ],
)
def test_numbers_among_others_like_them_are_not(labels, counts):
    assert said_about(np.repeat(labels, counts)) == []


def test_it_is_said_once_per_stream_and_by_every_selector(recwarn):
    rng = np.random.default_rng(0)
    y = np.repeat(["ill", "well", "unknown"], [30, 20, 7])
    X = rng.integers(0, 3, (57, 5))
    SAOLA(measure="su").fit(X, y).consume(X)
    OFS(2).fit(X.astype(float), y)
    found = [str(w.message) for w in recwarn if w.category is FeatstreamWarning]
    assert sum("the class 'unknown' (7)" in text for text in found) == 2


def test_labels_with_spaces_are_quoted(tmp_path, capsys):
    from featstream.cli import main

    X = np.random.default_rng(0).integers(0, 3, (30, 5))
    np.savez(tmp_path / "d.npz", X=X, y=np.repeat(["ill ", "well"], 15))
    assert main(["info", str(tmp_path / "d.npz")]) == 0
    assert "2 classes: 'ill ' (15), well (15)" in capsys.readouterr().out
