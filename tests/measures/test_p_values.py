"""P-values of tables: G² where counts are large, exact or by permutation else."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse, stats
from sklearn.feature_selection import f_classif

import reference
from featstream import SAOLA, FisherZ, SymmetricalUncertainty, as_source
from strategies import examples, generators


def p_values(measure, X, y):
    bound, found = measure.bind(y), []
    for block in as_source(X).blocks():
        encoded = bound.encode(block)
        found.append(bound.p_values(encoded, bound.relevance(encoded)))
    return np.concatenate(found)


@st.composite
def binary_data(draw):
    rng, n, p = draw(generators(60, 8))
    n, p = n + 8, p + 1
    y = (rng.random(n) < rng.choice([0.1, 0.5])).astype(int)
    y[:2] = [0, 1]
    X = (rng.random((n, p)) < rng.choice([0.05, 0.2, 0.9], p)).astype(np.uint8)
    return X, y


@examples(30)
@given(data=binary_data(), is_sparse=st.booleans())
def test_rare_binary_columns_have_exact_p_values(data, is_sparse):
    X, y = data
    n, n_1, table = len(y), int(y.sum()), reference.nlogn(len(y))
    found = p_values(
        SymmetricalUncertainty(), sparse.csc_array(X) if is_sparse else X, y
    )
    for column, p in zip(X.T, found, strict=True):
        ones = int(column.sum())
        if ones in (0, n):
            assert p == 1.0
            continue
        smallest = min(ones, n - ones) * min(n_1, n - n_1)
        joint = reference.information(column.tolist(), y.tolist(), table)[0]
        if smallest >= 5 * n:
            expected = reference.g_square_tail(joint, 1, table)
        else:
            expected = reference.mid_p(ones, int(column @ y), n_1, n, table)
        # Rounding leaves a trace of information where there is none.
        tolerance = 1e-9 if expected < 0.99 else 1e-5
        assert p == pytest.approx(expected, rel=tolerance)


def test_every_order_of_the_rows_gives_the_mean_and_variance_that_are_used():
    """X² over all orders of the labels of seven rows, and the law fitted to it."""
    column, y = [0, 0, 0, 1, 1, 2, 2], [0, 0, 1, 1, 2, 2, 2]

    def x_square(order):
        counts = stats.contingency.crosstab(column, order)[1]
        return stats.chi2_contingency(counts, correction=False).statistic

    seen = [x_square(order) for order in set(permutations(y))]
    mean, variance = np.mean(seen), np.var(seen)
    expected = stats.gamma.sf(x_square(y), mean**2 / variance, scale=variance / mean)
    X = np.array([column]).T
    (found,) = p_values(SymmetricalUncertainty(), X, y)
    assert found == pytest.approx(expected, rel=1e-9)


def test_an_identifier_is_not_significant():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 50)
    X = np.column_stack([rng.permutation(100), y])
    measure = SymmetricalUncertainty(binning=None, alpha=0.05)
    assert p_values(measure, X, y)[0] == 1.0
    assert SAOLA(measure=measure).fit(X, y).selected_.tolist() == [1]
    paper = SymmetricalUncertainty(binning=None)
    assert SAOLA(measure=paper).fit(X[:, :1], y).selected_.tolist() == [0]


@pytest.mark.jit_only
def test_p_values_of_irrelevant_columns_are_not_too_small():
    """At every level, at most what the level allows, and what chance adds."""
    rng = np.random.default_rng(0)
    n, p = 300, 20_000
    y = (rng.random(n) < 0.1).astype(int)
    rates = rng.choice([0.005, 0.02, 0.1, 0.5], p)
    X = rng.binomial(1, rates, (n, p)) + rng.binomial(2, rates / 2, (n, p))
    found = p_values(SymmetricalUncertainty(), X, y)
    for level in (0.1, 0.01, 0.001):
        spread = np.sqrt(level * p)
        assert np.count_nonzero(found <= level) <= level * p + 4 * spread


@pytest.mark.parametrize("n_classes", [2, 4])
def test_fisher_z_gives_the_p_values_of_the_f_test(n_classes):
    rng = np.random.default_rng(0)
    y = np.arange(60) % n_classes
    X = rng.normal(size=(60, 5)) + 0.3 * y[:, None]
    found = p_values(FisherZ(), X, y)
    assert found == pytest.approx(f_classif(X, y)[1], rel=1e-9)
