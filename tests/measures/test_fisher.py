"""Fisher's Z and the F-test: relevant is a p-value of at most alpha."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse, stats
from sklearn.feature_selection import f_classif
from threadpoolctl import threadpool_limits

from featstream import SAOLA, FisherZ
from featstream.errors import DataError
from featstream.jit import plain
from featstream.measures.storages.dense_values import write_deviations
from featstream.protocols import Block
from scores import relevances

STORAGES = [np.asarray, sparse.csc_array]


def fisher_z_p(r, n):
    """Two-sided p-value of Fisher's Z, as Section 3.4.2 describes it."""
    return 2 * stats.norm.sf(np.sqrt(n - 3) * np.arctanh(abs(r)))


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("target", ["nominal", "numeric"])
def test_two_classes_are_judged_by_fishers_z(storage, target):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 60)
    X = rng.normal(size=(60, 200)) + 0.4 * y[:, None]
    r = [stats.pearsonr(column, y).statistic for column in X.T]
    p = fisher_z_p(np.array(r), 60)
    for alpha in (0.001, 0.01, 0.05, 0.5):
        measure = FisherZ(alpha=alpha, target=target)
        scores = relevances(measure, storage(X), y)
        np.testing.assert_allclose(scores, np.abs(r), atol=1e-12)
        found = measure.bind(y).is_relevant(scores)
        assert found.tolist() == (p <= alpha).tolist()
        assert 0 < found.sum() < 200


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("n_classes", [3, 5])
def test_several_classes_are_judged_by_the_f_test(storage, n_classes):
    rng = np.random.default_rng(n_classes)
    y = rng.integers(0, n_classes, 90)
    X = rng.normal(size=(90, 200)) + 0.3 * y[:, None] ** 2
    f, p = f_classif(X, y)
    between, within = n_classes - 1, 90 - n_classes
    for alpha in (0.001, 0.01, 0.2):
        measure = FisherZ(alpha=alpha)
        scores = relevances(measure, storage(X), y)
        eta = np.sqrt(f * between / (f * between + within))
        np.testing.assert_allclose(scores, eta, atol=1e-12)
        found = measure.bind(y).is_relevant(scores)
        assert found.tolist() == (p <= alpha).tolist()
    assert len(np.unique(found)) <= 2


@pytest.mark.parametrize("n", [4, 5, 30, 1000])
@pytest.mark.parametrize("alpha", [0.001, 0.01, 0.05, 0.3])
def test_the_edge_is_where_the_p_value_is_alpha(n, alpha):
    bound = FisherZ(alpha=alpha).bind(np.arange(n) % 2)
    assert fisher_z_p(bound.critical, n) == pytest.approx(alpha, rel=1e-9)
    edge = np.array([bound.critical, np.nextafter(bound.critical, 0)])
    assert bound.is_relevant(edge).tolist() == [True, False]
    if n < 6:
        return
    bound = FisherZ(alpha=alpha).bind(np.arange(n) % 3)
    explained = bound.critical**2
    f = explained / 2 / ((1 - explained) / (n - 3))
    assert stats.f.sf(f, 2, n - 3) == pytest.approx(alpha, rel=1e-9)


def test_too_few_samples_for_a_test_leave_nothing_relevant():
    """Fisher's Z has n - 3 under a root, the F-test n - k degrees of freedom."""
    assert SAOLA(measure="fisher-z").fit([[0.0], [1.0], [1.0]], [0, 1, 1]).n_seen_ == 1
    for y in ([0, 1, 1], [0, 1, 2]):
        X = np.array(y, float)[:, None]
        assert SAOLA(measure="fisher-z").fit(X, y).selected_.tolist() == []


def test_with_several_classes_the_target_makes_a_difference():
    """The middle class stands out: seen by the ratio, not by the coding 0, 1, 2."""
    y = np.repeat([0, 1, 2], 20)
    X = (y == 1).astype(float)[:, None]
    assert relevances(FisherZ(), X, y)[0] == pytest.approx(1.0, abs=1e-12)
    assert relevances(FisherZ(target="numeric"), X, y)[0] == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_large_values_are_scored_right_or_refused(storage, n_classes):
    """Between squares that fit and sums of squares that do not lie some scales."""
    rng = np.random.default_rng(n_classes)
    y = np.arange(200) % n_classes
    X = rng.normal(size=(200, 1)) + 0.3 * y[:, None]
    expected = relevances(FisherZ(), storage(X), y)
    n_refused = 0
    for exponent in range(490, 515):  # squares overflow at 512
        try:
            found = relevances(FisherZ(), storage(X * 2.0**exponent), y)
        except DataError:
            n_refused += 1
            continue
        assert found.tolist() == expected.tolist()
        assert not n_refused  # the larger ones are refused, and no other
    assert n_refused


@pytest.mark.parametrize("storage", STORAGES)
def test_the_scale_of_a_numeric_target_does_not_matter(storage):
    rng = np.random.default_rng(1)
    y = 1 + rng.normal(size=70)
    X = y[:, None] + rng.normal(size=(70, 5))
    expected = relevances(FisherZ(target="numeric"), storage(X), y)
    r = [abs(np.corrcoef(column, y)[0, 1]) for column in X.T]
    np.testing.assert_allclose(expected, r, atol=1e-12)
    for exponent in (-1000, -600, -530, 400, 505, 511, 1020):
        found = relevances(FisherZ(target="numeric"), storage(X), y * 2.0**exponent)
        assert found.tolist() == expected.tolist()


def test_the_norm_of_a_numeric_target_does_not_depend_on_threads():
    rng = np.random.default_rng(2)
    for n in (20_000, 50_001, 1_000_000):
        y, norms = rng.normal(size=n), set()
        for n_threads in (1, 2, 3):
            with threadpool_limits(n_threads, user_api="blas"):
                norms.add(FisherZ(target="numeric").bind(y)._target.norm)
        assert len(norms) == 1


@pytest.mark.parametrize("storage", STORAGES)
def test_offsets_cost_no_precision_with_a_numeric_target(storage):
    """All rows are stored: a constant is one, whatever the target sums to."""
    rng = np.random.default_rng(4)
    y = rng.normal(size=90)
    X = np.column_stack([y + rng.normal(size=90), np.full(90, 1.0)])
    X = np.round(X * 2.0**10)
    expected = relevances(FisherZ(target="numeric"), X, y)
    assert expected[1] == 0
    found = relevances(FisherZ(target="numeric"), storage(X + 2.0**40), y)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    huge = np.full((90, 1), 2.0**600)
    assert relevances(FisherZ(target="numeric"), storage(huge), y) == 0


@pytest.mark.parametrize(
    "dtype",
    [
        np.float32,
        np.float64,
        *(pytest.param(t, marks=pytest.mark.slow) for t in (np.int16, np.bool_)),
    ],
)
def test_row_major_blocks_give_the_same_numbers(dtype):
    rng = np.random.default_rng(0)
    y = np.arange(130) % 3
    X = 3 * rng.normal(size=(130, 400)) + np.outer(y, np.arange(400) % 7)
    X = X > 2 if dtype is np.bool_ else X.astype(dtype)
    measure = FisherZ(alpha=0.3).bind(y)
    by_row, by_column = (
        measure.encode(Block(np.asarray(X, order=order))) for order in "CF"
    )
    assert by_row.scores.tobytes() == by_column.scores.tobytes()
    for sums in zip(by_row.sums, by_column.sums, strict=True):
        assert sums[0].tobytes() == sums[1].tobytes()
    relevant = np.flatnonzero(measure.is_relevant(by_row.scores))
    assert 0 < relevant.size < 400
    for which in (relevant, relevant[1:], np.arange(400), np.arange(0)):
        own, own_places = measure.columns(by_row, which)
        other, places = measure.columns(by_column, which)
        for i in range(which.size):
            plain(write_deviations)(own, i)
            plain(write_deviations)(other, i)
        np.testing.assert_array_equal(own.values[own_places], other.values[places])
        for name in ("total", "norm"):
            found = getattr(own, name)[own_places]
            np.testing.assert_array_equal(found, getattr(other, name)[places])


def test_few_tall_rows_need_no_more_memory_than_they_have():
    X = np.ones((5_000, 16), np.float32)
    y = np.arange(5_000) % 2
    FisherZ().bind(y).encode(Block(X))  # kernels are compiled once
    measure = FisherZ().bind(y)
    tracemalloc.start()
    measure.encode(Block(X))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * X.nbytes  # to transpose it, and for what is relevant
