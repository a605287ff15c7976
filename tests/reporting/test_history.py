import numpy as np
import pytest
from scipy import sparse, stats

from featstream import SAOLA, FisherZ, MutualInformation, SelectFromStream
from featstream.datasets import make_stream
from featstream.errors import DataError
from featstream.measures import SymmetricalUncertainty
from featstream.protocols import Fate
from featstream.reporting.history import (
    History,
    accuracy_curve,
    displaced_by,
    distribution,
    p_values,
    redundancy,
    removals,
    size_curve,
    timeline,
)
from scores import overlaps

REMOVED = (Fate.REDUNDANT, Fate.DISPLACED)


@pytest.fixture(scope="module")
def history(fitted):
    return History(fitted().result_)


def test_the_timeline_counts_every_feature_once_and_shows_lives(history, fitted):
    found = timeline(history)
    assert found.counts.sum() == 300
    for b in range(found.edges.size - 1):
        here = history.fates[found.edges[b] : found.edges[b + 1]]
        assert found.counts[:, b].tolist() == np.bincount(here, minlength=4).tolist()
    for arrival, end, by in zip(found.arrival, found.end, found.by, strict=True):
        if by >= 0:
            assert history.trace.witness(int(arrival)) == by == end
        else:
            assert history.trace.fate(int(arrival)) is Fate.KEPT
            assert end == 300
    kept = timeline(History(fitted(trace="kept").result_)).counts
    assert kept[Fate.KEPT].tolist() == found.counts[Fate.KEPT].tolist()
    assert kept[Fate.IRRELEVANT].sum() == 0


def test_the_size_is_that_of_the_kept_set_at_every_step(history):
    found = size_curve(history)
    fates, witness = history.fates, history.trace.records["witness"]
    for arrival, size in zip(found.arrivals, found.sizes, strict=True):
        came = np.arange(300) <= arrival
        kept = came & (fates == Fate.KEPT)
        stays = came & (fates == Fate.DISPLACED) & (witness > arrival)
        assert size == (kept | stays).sum()
    assert found.displaced.sum() == history.trace.counts()["displaced"]


def test_what_is_removed_belongs_to_the_kept_feature_at_the_end_of_its_chain(history):
    trace = history.trace

    def root(arrival):
        while trace.fate(arrival) in REMOVED:
            arrival = trace.witness(arrival)
        return arrival

    found = removals(history)
    expected = {int(a): [0, 0] for a in history.kept}
    for arrival in range(300):
        if trace.fate(arrival) in REMOVED:
            expected[root(arrival)][trace.fate(arrival) is Fate.REDUNDANT] += 1
    counts = np.transpose([found.n_displaced, found.n_redundant]).tolist()
    assert counts == list(expected.values())
    for family in found.families:
        assert {root(member) for member in family.members} == {family.arrival}
    for other, displaced in displaced_by(history).items():
        for arrival in displaced:  # by this feature itself
            assert trace.fate(arrival) is Fate.DISPLACED
            assert trace.witness(arrival) == other


@pytest.mark.parametrize(
    ("measure", "threshold"),
    [
        (SymmetricalUncertainty(threshold=0.02), 0.02),
        (MutualInformation(), 0.0),
        (FisherZ(alpha=0.05), np.tanh(stats.norm.isf(0.025) / np.sqrt(57))),
    ],
    ids=["su", "mi", "fisher-z"],
)
def test_the_threshold_is_found_by_asking_the_measure(measure, threshold, fitted):
    history = History(fitted(measure=measure).result_)
    assert history.threshold == pytest.approx(threshold, abs=1e-12)
    found = distribution(history)
    assert found.counts.sum() == 300
    assert found.threshold == history.threshold
    assert (np.diff(found.edges) > 0).all()


def test_a_corrected_threshold_is_shown_by_the_lowest_score_that_passed():
    stream = make_stream(200, 300, kind="continuous", seed=3)
    history = History(SelectFromStream().fit(stream.X, stream.y).result_)
    passed = history.trace.records["relevance"][history.fates != Fate.IRRELEVANT]
    found = distribution(history)
    assert history.threshold is None
    assert found.threshold == float(passed.min())
    assert found.said != "threshold"


@pytest.mark.parametrize("form", [np.asarray, sparse.csc_array])
@pytest.mark.parametrize("kind", [SymmetricalUncertainty, MutualInformation, FisherZ])
def test_overlaps_are_those_that_the_measure_computes(kind, form, data):
    X, y = data
    result = SAOLA(measure=kind()).fit(form(X), y).result_
    order, found = redundancy(History(result))
    pairs = np.tril_indices(order.size, -1)
    expected = overlaps(kind(), X[:, result.indices[order]], y)[pairs]
    np.testing.assert_allclose(found[pairs], expected, atol=1e-9)


def test_columns_with_many_categories_are_told_apart():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 90)
    X = rng.integers(0, 40, (90, 6)) + 20 * y[:, None]
    result = SAOLA(measure=SymmetricalUncertainty(max_categories=99)).fit(X, y).result_
    for row, position in zip(History(result).columns, result.indices, strict=True):
        same = np.equal.outer(X[:, position], X[:, position])
        assert np.array_equal(np.equal.outer(row, row), same)


def test_p_values_are_near_those_of_the_g_test_and_of_the_f_test(history, data, fitted):
    X, y = data
    indices = history.result.indices
    for p_value, position in zip(p_values(history), indices, strict=True):
        table = np.zeros((3, 2))
        np.add.at(table, (X[:, position], y), 1)
        options = {"correction": False, "lambda_": "log-likelihood"}
        expected = stats.chi2_contingency(table, **options).pvalue
        # Exact, or with Williams' correction of G².
        assert np.log(p_value) == pytest.approx(np.log(expected), rel=0.05, abs=0.3)
    result = fitted(measure=FisherZ(alpha=0.05)).result_
    assert (p_values(History(result)) <= 0.06).all()  # Fisher's Z, then the F-test
    X = np.random.default_rng(0).normal(size=(60, 200))
    kinds = np.arange(60) % 3  # three: the F-test
    result = SAOLA(measure=FisherZ(alpha=0.05)).fit(X, kinds).result_
    parts = [X[kinds == kind][:, result.indices] for kind in range(3)]
    expected = stats.f_oneway(*parts).pvalue
    found = p_values(History(result))
    assert np.all(found >= expected * (1 - 1e-9))
    np.testing.assert_allclose(np.log(found), np.log(expected), atol=1.0)


def test_accuracy_rises_with_a_perfect_feature():
    y = np.repeat([0, 1], 30)
    X = np.random.default_rng(0).integers(0, 2, (60, 20))
    X[:, 3] = y
    X[0, 3] = 1
    found = accuracy_curve(History(SAOLA(measure="su").fit(X, y).result_))
    assert found.sizes[0] == 1
    assert found.accuracy[0] == pytest.approx(59 / 60)
    assert found.baseline == 0.5


def test_a_stream_that_went_on_asks_for_a_new_result(data):
    X, y = data
    selector = SAOLA(measure="su").start(y).consume(X[:, :50])
    result = selector.result_
    selector.consume(X[:, 50:])
    with pytest.raises(DataError, match="Take result_ again"):
        History(result)
