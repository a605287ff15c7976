"""Symmetrical uncertainty and mutual information against dictionaries of counts."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.metrics import mutual_info_score

import reference
from featstream import SAOLA, MutualInformation, SymmetricalUncertainty, as_source
from featstream.errors import ParameterError
from featstream.measures.storages import tables
from scores import overlaps, relevances
from strategies import examples, generators

SU, MI = SymmetricalUncertainty, MutualInformation
SCORES = {SU: reference.symmetrical_uncertainty, MI: reference.mutual_information}
each_measure = pytest.mark.parametrize("kind", SCORES)
each_storage = pytest.mark.parametrize("storage", [np.asarray, sparse.csc_array])

Y = np.repeat([0, 1], 4)
HALF = np.array([0, 0, 0, 1, 1, 1, 1, 0])  # agrees with Y in 6 of 8 rows


def check(kind, X, y, storage):
    """Every score with the class and every pair, equal to the bit."""
    measure, score = kind(max_categories=10**6), SCORES[kind]
    columns, labels, table = X.T.tolist(), y.tolist(), reference.nlogn(len(y))
    expected = [score(c, labels, table) for c in columns]
    assert relevances(measure, storage(X), y).tolist() == expected
    found = overlaps(measure, storage(X), y)
    assert np.array_equal(found, found.T)
    assert found.min() >= 0
    assert kind is MI or found.max() <= 1
    for i, j in itertools.product(range(len(columns)), repeat=2):
        assert_equal_or_nothing(found[i, j], columns[i], columns[j], score, table)


def assert_equal_or_nothing(found, a, b, score, table):
    """Exact; but what an independent pair shares may be a few units of rounding."""
    expected = score(a, b, table)
    if expected:
        assert found == expected
    else:
        n_cells = (len(set(a)) + 1) * (len(set(b)) + 1)
        least = max(table[len(a)] - sum(table[c] for c in counts(v)) for v in (a, b))
        assert found * max(least, 1) <= 2 * n_cells


def counts(values):
    return [values.count(v) for v in set(values)]


@each_storage
@pytest.mark.parametrize("k", range(5000, 5010))
def test_hardly_dependent_columns_score_more_than_nothing(storage, k):
    """The information is about 1e-12 bits, less than the rounding of logarithms.

    The counts are k and k + 1 in one class, k + 1 and k + 2 in the other: dependent,
    since k (k + 2) is one less than (k + 1) squared.
    """
    x, y = np.repeat([0, 1, 0, 1], [k, k + 1, k + 1, k + 2]), np.arange(4 * k + 4)
    y = (y >= 2 * k + 1).astype(int)
    (score,) = relevances(SU(), storage(x[:, None]), y)
    assert score > 0.0


@st.composite
def discrete(draw, arities=(2, 3, 5, 15, 16, 17, 40)):
    """Columns on both sides of the limits between planes, codes and rows.

    The last one renames the classes.
    """
    rng, p, n = draw(generators(4, 69))
    n, p = n + 2, p + 1
    y = rng.integers(0, rng.choice([2, 3, 17]), n)
    y[:2] = [0, 1]
    X = rng.integers(0, rng.choice(arities, p), (n, p))
    for j in range(p):
        X[:, j] = rng.permutation(60)[X[:, j]] * (rng.random(n) < rng.choice([1, 0.3]))
        noisy = rng.random(n) < 0.5
        X[noisy, j] = y[noisy]
    return np.column_stack([X, rng.permutation(100)[y] - 30]), y


@each_storage
@each_measure
@examples(25)
@given(data=discrete())
def test_scores_are_those_of_plain_counts(kind, storage, data):
    X, y = data
    check(kind, X, y, storage)
    if kind is SU:
        assert relevances(kind(max_categories=10**6), storage(X), y)[-1] == 1.0


@each_storage
@pytest.mark.parametrize("gap", [1, 7, 14, 15, 16])
def test_few_rows_may_have_wide_gaps(storage, gap):
    """As many planes as codes in the range, however few the rows."""
    X = np.array([[0, gap, 0], [gap, 0, 1], [gap, gap, gap]])
    check(SU, X, np.array([0, 1, 1]), storage)
    check(SU, X - gap, np.array([0, 1, 2]), storage)


@each_storage
@each_measure
def test_tables_with_more_cells_than_are_counted_agree(kind, storage, monkeypatch):
    """Small tables take the way of large ones if there is little room."""
    rng = np.random.default_rng(0)
    n = 60
    X = rng.integers(0, 40, (n, 3))
    X[:, 2] = np.arange(n)
    y = np.arange(n) % 25
    X[:, 1] = rng.permutation(40)[y]  # every pair twice or more, the last one too
    monkeypatch.setattr(tables, "MAX_CELLS", 300)
    check(kind, X, y, storage)


@each_storage
@pytest.mark.parametrize("arity", [2, 3, 5, 7, 16, 17, 23])
@pytest.mark.parametrize("n_classes", [2, 3, 7, 16, 17])
def test_independent_tables_score_exactly_nothing(storage, arity, n_classes):
    """Every category meets every class equally often, or in fixed proportions."""
    pairs = list(itertools.product(range(arity), range(n_classes)))
    weights = [(1 + a % 3) * (1 + c % 2) for a, c in pairs]
    x, y = np.repeat(np.array(pairs), weights, axis=0).T
    measure = SU(max_categories=10**6)
    assert relevances(measure, storage(x[:, None]), y) == 0.0
    y = y.copy()
    y[0] = (y[0] + 1) % n_classes  # one row in another class
    assert relevances(measure, storage(x[:, None]), y) > 0.0


def test_the_table_of_logarithms_is_exact_to_half_a_unit():
    for n in (2, 3, 100, 5000):
        found = tables.fixed_point_nlogn(n)
        assert found.tolist() == reference.nlogn(n)
        unit = 2.0 / found[2]
        exact = [k * math.log2(k) for k in range(1, n + 1)]
        assert np.abs(found[1:] * unit - exact).max() <= unit * (1 + 1e-9)
        assert found[-1] <= 2**51


@each_storage
def test_mutual_information_is_in_bits(storage):
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 4, (90, 5)), rng.integers(0, 3, 90)
    expected = [mutual_info_score(column, y) / np.log(2) for column in X.T]
    np.testing.assert_allclose(relevances(MI(), storage(X), y), expected, atol=1e-12)


@each_measure
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


@each_storage
def test_missing_text_is_a_category_in_any_storage(storage):
    """Text has the code -1 where it is missing, even in a stream stored sparsely."""
    words = np.array(["a", "b", "a", None, "b", None, "a", "b"], object)
    y = [0, 1, 0, 1, 1, 1, 0, 1]
    measure = SU(missing="category")
    stream = SAOLA(measure=measure).start(y)
    stream.consume(storage(np.eye(8)[:, :2]))
    named = np.array([{"a": 0, "b": 1, None: 2}[word] for word in words])
    (expected,) = relevances(measure, named[:, None], y)
    assert stream.update(words, name="word").relevance == expected
    stream = SAOLA(measure="su").start(y).consume(storage(np.eye(8)[:, :2]))
    with pytest.raises(ValueError, match=r"'word' has 2 missing values .* row 3"):
        stream.update(words, name="word")


@each_storage
def test_only_columns_with_missing_values_have_a_category_for_them(storage):
    X = np.random.default_rng(0).normal(size=(40, 2))
    X[::3], X[1, 1] = 0.0, np.nan
    bound = SU(binning="uniform", missing="category").bind(np.arange(40) % 2)
    (block,) = as_source(storage(X)).blocks()
    assert bound.encode(block).arity.tolist() == [5, 6]


@each_storage
@pytest.mark.parametrize(
    ("n_values", "most"),
    [(12, 11), (12, 12), (31, None), (30, None)],  # 30 is one value per two rows
)
def test_whole_numbers_of_too_many_values_are_binned(storage, n_values, most):
    values = np.arange(60) * n_values // 60
    y = (values >= n_values // 2).astype(int)
    (found,) = relevances(
        SU(max_categories=most, n_bins=2), storage(values[:, None]), y
    )
    if n_values > (most or 30):
        assert found > 0.9  # the two bins are nearly the two classes
    else:
        check(SU, values[:, None], y, storage)
        assert found < 0.5


@each_storage
def test_text_is_never_binned(storage):
    (block,) = as_source(storage(np.arange(60)[:, None] % 20)).blocks()
    bound = SU(max_categories=5).bind(np.arange(60) % 2)
    assert bound.encode(block).arity.tolist() == [5]
    text = replace(block, nominal=np.array([True]))
    assert bound.encode(text).arity.tolist() == [20]


@each_storage
def test_quantities_are_cut_alike_in_every_dtype(storage):
    """Negative ones too, and columns without a zero, at the limit of categories."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 60)
    X = np.clip(np.round(rng.normal(size=(60, 3)) * 40 + 20 * y[:, None]), -99, 99)
    X[:, 2] = 1 + np.arange(60) % 30  # 30 values are categories, 31 quantities
    expected = relevances(SU(), X, y).tolist()
    for dtype in (np.int8, np.int16, np.int64, np.float32):
        assert relevances(SU(), storage(X.astype(dtype)), y).tolist() == expected


@pytest.mark.parametrize(
    "options", [{"max_categories": 1}, {"max_categories": True}, {"identifiers": "no"}]
)
def test_options_for_many_categories_are_checked(options):
    with pytest.raises(ParameterError, match=next(iter(options))):
        SU(**options).bind([0, 1])
