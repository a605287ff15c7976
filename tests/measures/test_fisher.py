"""Fisher's Z and the F-test: scores, their precision, and relevance at a level."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from scipy import sparse, stats
from sklearn.feature_selection import f_classif
from threadpoolctl import threadpool_limits

import reference
from featstream import SAOLA, FisherZ
from featstream.errors import DataError
from featstream.jit import plain
from featstream.measures.storages.dense_values import LANES, write_deviations
from featstream.protocols import Block
from scores import overlaps, relevances
from strategies import continuous_data, examples

NUMERIC = FisherZ(target="numeric")
each_storage = pytest.mark.parametrize("storage", [np.asarray, sparse.csc_array])


def correlate(a, b):
    """Absolute correlation in numpy's extended precision, in two passes."""
    a, b = np.asarray(a, np.longdouble), np.asarray(b, np.longdouble)
    a, b = a - a.mean(), b - b.mean()
    return float(abs(a @ b) / np.sqrt((a @ a) * (b @ b)))


def fisher_z_p(r, n):
    """Two-sided p-value of Fisher's Z, as Section 3.4.2 describes it."""
    return 2 * stats.norm.sf(np.sqrt(n - 3) * np.arctanh(abs(r)))


@each_storage
@examples(25)
@given(data=continuous_data())
def test_scores_are_those_of_plain_sums(storage, data):
    X, y = data
    columns, labels = X.T.tolist(), y.tolist()
    for measure, score in (
        (NUMERIC, reference.correlation),
        (FisherZ(), reference.correlation_ratio),
    ):
        expected = [score(column, labels) for column in columns]
        found = relevances(measure, storage(X), y)
        np.testing.assert_allclose(found, expected, atol=1e-12)
    varied = np.flatnonzero(np.ptp(X, axis=0) > 0)
    found = overlaps(NUMERIC, storage(X), y)[np.ix_(varied, varied)]
    expected = [[correlate(columns[i], columns[j]) for j in varied] for i in varied]
    np.testing.assert_allclose(found, expected, atol=1e-12)


@each_storage
@pytest.mark.parametrize("alpha", [0.001, 0.01, 0.2])
@pytest.mark.parametrize(
    ("n_classes", "target"),
    [(2, "nominal"), (2, "numeric"), (3, "nominal"), (5, "nominal")],
)
def test_a_p_value_of_at_most_alpha_is_relevant(storage, n_classes, target, alpha):
    """By Fisher's Z for two classes, by the F-test for more."""
    rng = np.random.default_rng(n_classes)
    y = rng.integers(0, n_classes, 90)
    X = rng.normal(size=(90, 200)) + 0.8 / n_classes * y[:, None]
    f, p = f_classif(X, y)
    between, within = n_classes - 1, 90 - n_classes
    eta = np.sqrt(f * between / (f * between + within))
    p = fisher_z_p(eta, 90) if n_classes == 2 else p
    measure = FisherZ(alpha=alpha, target=target)
    scores = relevances(measure, storage(X), y)
    np.testing.assert_allclose(scores, eta, atol=1e-12)
    found = measure.bind(y).is_relevant(scores)
    assert found.tolist() == (p <= alpha).tolist()
    assert 0 < found.sum() < 200


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


@pytest.mark.parametrize("y", [[0, 1, 1], [0, 1, 2]])
def test_too_few_samples_for_a_test_leave_nothing_relevant(y):
    """Fisher's Z has n - 3 under a root, the F-test n - k degrees of freedom."""
    X = np.array(y, float)[:, None]
    assert SAOLA(measure="fisher-z").fit(X, y).selected_.tolist() == []


@each_storage
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


@each_storage
def test_the_scale_of_a_numeric_target_does_not_matter(storage):
    rng = np.random.default_rng(1)
    y = 1 + rng.normal(size=70)
    X = y[:, None] + rng.normal(size=(70, 5))
    expected = relevances(NUMERIC, storage(X), y)
    for exponent in (-1000, -600, -530, 400, 505, 511, 1020):
        found = relevances(NUMERIC, storage(X), y * 2.0**exponent)
        assert found.tolist() == expected.tolist()


def test_the_norm_of_a_numeric_target_does_not_depend_on_threads():
    rng = np.random.default_rng(2)
    for n in (20_000, 50_001, 1_000_000):
        y, norms = rng.normal(size=n), set()
        for n_threads in (1, 2, 3):
            with threadpool_limits(n_threads, user_api="blas"):
                norms.add(NUMERIC.bind(y)._target.norm)
        assert len(norms) == 1


@each_storage
@pytest.mark.parametrize("offset", [0.0, 1.0, -1e6, 1e9])
@pytest.mark.parametrize("n", [5, LANES - 1, LANES, LANES + 1, 2 * LANES, 1000])
def test_offsets_cost_no_precision(storage, offset, n):
    rng = np.random.default_rng(n)
    y, number = np.arange(n) % 2, rng.normal(size=n)
    X = offset + rng.normal(size=(n, 4)) + 0.5 * (y + number)[:, None]
    X[0, 0] += 100.0  # an odd first row
    stored = storage(X)
    centred, three = (X - offset).T.tolist(), np.arange(n) % 3
    pairs = [[correlate(a, b) for b in X.T] for a in X.T]
    for found, expected in (
        (relevances(FisherZ(), stored, y), [correlate(a, y) for a in X.T]),
        (relevances(NUMERIC, stored, number), [correlate(a, number) for a in X.T]),
        (overlaps(FisherZ(), stored, y), pairs),
        (
            relevances(FisherZ(), stored, three),
            [reference.correlation_ratio(a, three.tolist()) for a in centred],
        ),
    ):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)


@each_storage
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "value",
    [0.0, 0.1, 1 / 3, -1e9, 1e-300, 2.0**600, np.float32(0.1), np.float32(1 / 3)],
)
def test_a_constant_scores_exactly_nothing(storage, n_classes, value):
    """0.1 is not a binary fraction: its mean is not 0.1, its deviation is 0."""
    X, y = np.full((101, 1), value), np.arange(101) % n_classes
    assert relevances(FisherZ(), storage(X), y).tolist() == [0.0]
    number = np.random.default_rng(4).normal(size=101)
    assert relevances(NUMERIC, storage(X), number).tolist() == [0.0]


SLOW_DTYPES = [pytest.param(t, marks=pytest.mark.slow) for t in (np.int16, np.bool_)]


@each_storage
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, *SLOW_DTYPES])
def test_whole_numbers_score_alike_in_every_dtype_and_order(storage, dtype):
    rng = np.random.default_rng(2)
    X = rng.integers(0, 2 if dtype is np.bool_ else 90, (150, 5))
    y, order = rng.integers(0, 2, 150), rng.permutation(150)
    stored = storage(X.astype(dtype)[order])
    for score in (relevances, overlaps):
        expected = score(FisherZ(), X.astype(float), y)
        assert score(FisherZ(), stored, y[order]).tolist() == expected.tolist()


@each_storage
@pytest.mark.parametrize("n", [50, 51])
def test_the_names_of_two_classes_do_not_matter_to_the_bit(storage, n):
    """Also where both are equally frequent, and neither is the rarer one."""
    rng = np.random.default_rng(n)
    X, y = rng.normal(size=(n, 40)), rng.permutation(np.arange(n) % 2)
    expected = relevances(FisherZ(), storage(X), y).tolist()
    assert relevances(FisherZ(), storage(X), 1 - y).tolist() == expected


@each_storage
def test_scores_do_not_exceed_one(storage):
    """Rounding may carry a perfect correlation past 1."""
    rng = np.random.default_rng(0)
    y = np.arange(37) % 2
    X = rng.normal(size=50) + np.outer(y, rng.normal(size=50))
    found = relevances(FisherZ(), storage(X), y)
    assert found.max() <= 1.0
    np.testing.assert_allclose(found, 1.0, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, *SLOW_DTYPES])
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
        for name in ("values", "total", "norm"):
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
