"""Symmetrical uncertainty and mutual information: what their parameters mean."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import mutual_info_score

from featstream import SAOLA, MutualInformation, SymmetricalUncertainty
from featstream.errors import ParameterError
from scores import overlaps, relevances

MEASURES = [SymmetricalUncertainty, MutualInformation]
STORAGES = [np.asarray, sparse.csc_array]

Y = np.repeat([0, 1], 4)
HALF = np.array([0, 0, 0, 1, 1, 1, 1, 0])  # agrees with Y in 6 of 8 rows


def entropy(*shares):
    return -sum(p * np.log2(p) for p in shares if p)


@pytest.mark.parametrize("storage", STORAGES)
def test_scores_by_hand(storage):
    """H(Y) = H(X) = 1 bit and H(X, Y) = H(3/8, 1/8, 1/8, 3/8)."""
    information = 2 - entropy(3 / 8, 1 / 8, 1 / 8, 3 / 8)
    X = storage(HALF[:, None])
    (found,) = relevances(MutualInformation(), X, Y)
    assert found == pytest.approx(information, abs=1e-14)
    (found,) = relevances(SymmetricalUncertainty(), X, Y)
    assert found == pytest.approx(2 * information / (1 + 1), abs=1e-14)


@pytest.mark.parametrize("storage", STORAGES)
def test_mutual_information_is_in_bits(storage):
    """A variable tells of itself its entropy: log2 of k for k equal categories."""
    for k in (2, 3, 8, 20):
        y = np.arange(5 * k) % k
        (found,) = relevances(MutualInformation(), storage(y[:, None]), y)
        assert found == pytest.approx(np.log2(k), abs=1e-12)
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 4, (90, 5)), rng.integers(0, 3, 90)
    expected = [mutual_info_score(column, y) / np.log(2) for column in X.T]
    np.testing.assert_allclose(
        relevances(MutualInformation(), storage(X), y), expected, atol=1e-12
    )
    pairs = [[mutual_info_score(a, b) / np.log(2) for a in X.T] for b in X.T]
    np.testing.assert_allclose(
        overlaps(MutualInformation(), storage(X), y), pairs, atol=1e-12
    )


@pytest.mark.parametrize("kind", MEASURES)
def test_a_score_must_exceed_the_threshold(kind):
    """delta is strict: a feature at the threshold is irrelevant."""
    X = HALF[:, None]
    (score,) = relevances(kind(), X, Y)
    below = float(np.nextafter(score, 0))
    assert SAOLA(measure=kind(threshold=score)).fit(X, Y).selected_.tolist() == []
    assert SAOLA(measure=kind(threshold=below)).fit(X, Y).selected_.tolist() == [0]
    independent = np.arange(8) % 2  # at 0, independence alone is irrelevant
    X = np.column_stack([independent, HALF])
    assert SAOLA(measure=kind()).fit(X, Y).selected_.tolist() == [1]


@pytest.mark.parametrize("kind", MEASURES)
@pytest.mark.parametrize("storage", STORAGES)
def test_missing_values_as_a_category_may_be_what_tells(kind, storage):
    telling = np.where(Y == 1, np.nan, 2.0)
    also = np.where(Y == 1, np.nan, 0.25)
    X = storage(np.column_stack([telling, also]))
    measure = kind(missing="category")
    assert relevances(measure, X, Y).tolist() == [1.0, 1.0]
    with pytest.raises(ValueError, match=r"'x0' has 4 missing values .* row 4"):
        SAOLA(measure=kind()).fit(X, Y)


@pytest.mark.parametrize("storage", STORAGES)
def test_missing_text_is_a_category_in_any_storage(storage):
    """Text has the code -1 where it is missing, even in a stream stored sparsely."""
    words = np.array(["a", "b", "a", None, "b", None, "a", "b"], object)
    y = [0, 1, 0, 1, 1, 1, 0, 1]
    measure = SymmetricalUncertainty(missing="category")
    stream = SAOLA(measure=measure).start(y)
    stream.consume(storage(np.eye(8)[:, :2]))
    named = np.array([{"a": 0, "b": 1, None: 2}[word] for word in words])
    (expected,) = relevances(measure, named[:, None], y)
    assert stream.update(words, name="word").relevance == expected
    stream = SAOLA(measure="su").start(y).consume(storage(np.eye(8)[:, :2]))
    with pytest.raises(ValueError, match=r"'word' has 2 missing values .* row 3"):
        stream.update(words, name="word")


@pytest.mark.parametrize("storage", STORAGES)
def test_only_numbers_that_are_not_whole_are_binned(storage):
    many = np.arange(32) % 16
    y = many % 4
    measure = SymmetricalUncertainty(n_bins=2)
    whole, halves = relevances(measure, storage(np.column_stack([many, many + 0.5])), y)
    # 16 categories tell the class; two bins of 8 consecutive values tell nothing.
    assert whole == pytest.approx(2 * 2 / (np.log2(16) + 2), abs=1e-12)
    assert halves == 0.0


@pytest.mark.parametrize("storage", STORAGES)
def test_whole_numbers_with_a_value_per_row_are_binned(storage):
    many = np.arange(40)
    y = many // 20
    X = storage(np.column_stack([many, np.random.default_rng(0).permutation(many)]))
    sorted_by_class, other = relevances(SymmetricalUncertainty(n_bins=2), X, y)
    assert sorted_by_class == 1.0  # the two bins are the two classes
    assert other < 0.1
    # As categories, 40 values tell the class of every row.
    scores = relevances(SymmetricalUncertainty(max_categories=40), X, y)
    assert scores == pytest.approx(2 * 1 / (np.log2(40) + 1), abs=1e-12)


@pytest.mark.parametrize("storage", STORAGES)
def test_max_categories_bins_whole_numbers_beyond_it(storage):
    values = np.arange(60) % 12  # twelve values, five rows each
    y = (values >= 6).astype(int)
    X = storage(values[:, None])
    (binned,) = relevances(SymmetricalUncertainty(max_categories=11, n_bins=2), X, y)
    (whole,) = relevances(SymmetricalUncertainty(max_categories=12, n_bins=2), X, y)
    assert binned == 1.0
    assert whole == pytest.approx(2 / (np.log2(12) + 1), abs=1e-12)


@pytest.mark.parametrize(
    "options", [{"max_categories": 1}, {"max_categories": True}, {"identifiers": "no"}]
)
def test_options_for_many_categories_are_checked(options):
    with pytest.raises(ParameterError, match=next(iter(options))):
        SymmetricalUncertainty(**options).bind([0, 1])


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize(
    ("binning", "expected"),
    [
        ("quantile", [0, 0, 0, 0, 1, 1, 1, 1]),
        ("uniform", [0, 0, 0, 0, 0, 0, 0, 1]),
        ("mdl", [0, 0, 0, 0, 0, 0, 0, 0]),  # too few rows to pay for a cut
        (None, [0, 1, 2, 3, 4, 5, 6, 7]),
    ],
)
def test_each_binning_cuts_where_it_says(storage, binning, expected):
    values = np.array([0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 100.0])
    y = np.array([0, 1, 0, 0, 1, 1, 0, 1])
    measure = SymmetricalUncertainty(binning=binning, n_bins=2)
    plain = relevances(measure, np.array(expected)[:, None], y)
    assert relevances(measure, storage(values[:, None]), y).tolist() == plain.tolist()


def test_binding_leaves_the_measure_as_it_was():
    measure = SymmetricalUncertainty(threshold=0.25, n_bins=3)
    before = measure.get_params()
    first, second = measure.bind([0, 1, 1]), measure.bind(list("abcd"))
    assert (first.n_samples, second.n_samples) == (3, 4)
    assert measure.get_params() == before
