"""Scores of discrete columns against dictionaries of counts."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import reference
from featstream import MutualInformation, SymmetricalUncertainty, as_source
from featstream.measures.storages import tables
from scores import overlaps, relevances
from strategies import examples, generators

STORAGES = {"dense": np.asarray, "sparse": sparse.csc_array}
MEASURES = {
    "su": (
        SymmetricalUncertainty(max_categories=10**6),
        reference.symmetrical_uncertainty,
    ),
    "mi": (MutualInformation(max_categories=10**6), reference.mutual_information),
}


def check(name, X, y, storage):
    """Every score with the class and every pair, equal to the bit."""
    measure, score = MEASURES[name]
    table = reference.nlogn(len(y))
    columns, labels = X.T.tolist(), y.tolist()
    stored = STORAGES[storage](X)
    expected = [score(c, labels, table) for c in columns]
    assert relevances(measure, stored, y).tolist() == expected
    found = overlaps(measure, stored, y)
    assert np.array_equal(found, found.T)
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


@st.composite
def discrete(draw, arities=(2, 3, 5, 15, 16, 17, 40)):
    """Columns on both sides of the limits between planes, codes and rows."""
    rng, p, n = draw(generators(4, 69))
    n, p = n + 2, p + 1
    y = rng.integers(0, rng.choice([2, 3, 17]), n)
    y[:2] = [0, 1]
    X = rng.integers(0, rng.choice(arities, p), (n, p))
    for j in range(p):
        X[:, j] = rng.permutation(60)[X[:, j]] * (rng.random(n) < rng.choice([1, 0.3]))
        noisy = rng.random(n) < 0.5
        X[noisy, j] = y[noisy]
    return X, y


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("name", MEASURES)
@examples(25)
@given(data=discrete())
def test_scores_are_those_of_plain_counts(name, storage, data):
    check(name, *data, storage)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("gap", [1, 7, 14, 15, 16])
def test_few_rows_may_have_wide_gaps(storage, gap):
    """As many planes as codes in the range, however few the rows."""
    X = np.array([[0, gap, 0], [gap, 0, 1], [gap, gap, gap]])
    check("su", X, np.array([0, 1, 1]), storage)
    check("su", X - gap, np.array([0, 1, 2]), storage)


@pytest.mark.parametrize("storage", STORAGES)
def test_tables_with_more_cells_than_are_counted_agree_as_well(storage, monkeypatch):
    """Small tables take the way of large ones if there is little room."""
    rng = np.random.default_rng(0)
    n = 60
    X = rng.integers(0, 40, (n, 3))
    X[:, 2] = np.arange(n)
    y = np.arange(n) % 25
    X[:, 1] = rng.permutation(40)[y]  # every pair twice or more, the last one too
    monkeypatch.setattr(tables, "MAX_CELLS", 300)
    check("su", X, y, storage)
    check("mi", X, y, storage)


@pytest.mark.jit_only
@pytest.mark.parametrize("storage", STORAGES)
def test_arity_may_be_the_number_of_rows(storage):
    n = 1100  # the pair table would have 1.2 million cells, more than MAX_CELLS
    assert n * n > tables.MAX_CELLS
    rng = np.random.default_rng(0)
    labels = rng.permutation(n)
    half = labels // 2
    y = labels % 550
    X = np.column_stack([labels, half, rng.integers(0, 2, n)])
    check("su", X, y, storage)
    # By hand: H(labels) = log2 n, and the class is a function of the label.
    expected = 2 * math.log2(550) / (math.log2(n) + math.log2(550))
    (found,) = relevances(MEASURES["su"][0], STORAGES[storage](X[:, [0]]), y)
    assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("arity", [2, 3, 5, 7, 16, 17, 23])
@pytest.mark.parametrize("n_classes", [2, 3, 7, 16, 17])
def test_independent_tables_score_exactly_nothing(storage, arity, n_classes):
    """Every category meets every class equally often, or in fixed proportions."""
    pairs = list(itertools.product(range(arity), range(n_classes)))
    weights = [(1 + a % 3) * (1 + c % 2) for a, c in pairs]
    x, y = np.repeat(np.array(pairs), weights, axis=0).T
    (found,) = relevances(MEASURES["su"][0], STORAGES[storage](x[:, None]), y)
    assert found == 0.0
    # One row in another class, and there is something to tell.
    y = y.copy()
    y[0] = (y[0] + 1) % n_classes
    (found,) = relevances(MEASURES["su"][0], STORAGES[storage](x[:, None]), y)
    assert found > 0.0


@pytest.mark.parametrize("storage", STORAGES)
@examples(15)
@given(data=discrete(), seed=st.integers(0, 1000))
def test_a_bijection_scores_exactly_one(storage, data, seed):
    X, y = data
    rng = np.random.default_rng(seed)
    renamed = rng.permutation(100)[y][:, None] - 30
    su = MEASURES["su"][0]
    assert relevances(su, STORAGES[storage](renamed), y).tolist() == [1.0]
    varied = np.ptp(X, axis=0) > 0
    copies = np.column_stack([X, rng.permutation(100)[X] - 30])[:, np.tile(varied, 2)]
    if varied.any():
        found = overlaps(su, STORAGES[storage](copies), y)
        assert np.diagonal(found, varied.sum()).tolist() == [1.0] * int(varied.sum())


@examples(25)
@given(data=discrete())
def test_scores_are_within_their_bounds(data):
    """P9: 0 <= SU <= 1, and I(X;Y) is at most either entropy."""
    X, y = data
    su = overlaps(MEASURES["su"][0], X, y)
    assert ((su >= 0) & (su <= 1)).all()
    mi = overlaps(MEASURES["mi"][0], X, y)
    own = np.diagonal(mi)  # I(X;X) = H(X)
    slack = 1e-12
    assert (mi <= np.minimum.outer(own, own) + slack).all()


def test_the_table_of_logarithms_is_exact_to_half_a_unit():
    for n in (1, 2, 3, 100, 5000):
        found = tables.fixed_point_nlogn(n)
        assert found.tolist() == reference.nlogn(n)
        assert found[0] == 0
        assert n < 2 or found[1] == 0
        unit = 2.0 / found[2] if n >= 2 else 1.0
        exact = [k * math.log2(k) for k in range(1, n + 1)]
        assert np.abs(found[1:] * unit - exact).max() <= unit * (1 + 1e-9)
        assert found[-1] <= 2**51


def test_working_memory_is_clean_between_calls():
    """A stale count would change a later score: score twice, with one memory."""
    rng = np.random.default_rng(5)
    X, y = rng.integers(0, 25, (40, 6)), rng.integers(0, 4, 40)
    for storage in STORAGES.values():
        first = overlaps(MEASURES["su"][0], storage(X), y)
        again = overlaps(MEASURES["su"][0], storage(X[:, ::-1]), y)[::-1, ::-1]
        assert np.array_equal(first, again)


@pytest.mark.parametrize("storage", STORAGES)
def test_quantities_are_cut_alike_in_every_dtype(storage):
    """Negative ones too, and columns without a zero, at the limit of categories."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 60)
    X = np.clip(np.round(rng.normal(size=(60, 3)) * 40 + 20 * y[:, None]), -99, 99)
    X[:, 2] = 1 + np.arange(60) % 30  # 30 values are categories, 31 quantities
    expected = relevances(SymmetricalUncertainty(), X, y).tolist()
    for dtype in (np.int8, np.int16, np.int64, np.float32):
        values = STORAGES[storage](X.astype(dtype))
        assert relevances(SymmetricalUncertainty(), values, y).tolist() == expected


def test_only_columns_with_missing_values_have_a_category_for_them():
    X = np.random.default_rng(0).normal(size=(40, 2))
    X[::3], X[1, 1] = 0.0, np.nan
    su = SymmetricalUncertainty(binning="uniform", missing="category")
    bound = su.bind(np.arange(40) % 2)
    for storage in STORAGES.values():
        (block,) = as_source(storage(X)).blocks()
        assert bound.encode(block).arity.tolist() == [5, 6]
