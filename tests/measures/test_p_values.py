"""P-values by which features are judged at corrected levels."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.feature_selection import f_classif

import reference
from featstream import (
    SAOLA,
    FisherZ,
    SelectFromStream,
    SymmetricalUncertainty,
    as_source,
)
from featstream.measures import resolve_measure
from featstream.selectors.saola.kept import p_values_of
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
    n, n_1 = len(y), int(y.sum())
    found = p_values(
        SymmetricalUncertainty(), sparse.csc_array(X) if is_sparse else X, y
    )
    for column, p in zip(X.T, found, strict=True):
        ones = int(column.sum())
        if ones in (0, n):
            assert p == 1.0
            continue
        expected = reference.fisher_exact(ones, int(column @ y), n_1, n)
        assert p == pytest.approx(expected, rel=1e-9)


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


KINDS = {
    "lognormal": lambda rng, shape: rng.lognormal(0, 2, shape),
    "t3": lambda rng, shape: rng.standard_t(3, shape),
    "tf-idf": lambda rng, shape: sparse.csc_array(
        np.where(rng.random(shape) < 0.02, rng.exponential(size=shape), 0.0)
    ),
}


@pytest.mark.jit_only
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("target", ["a class of 5", "a class of 20", "a quantity"])
def test_nothing_is_selected_from_skewed_noise(kind, target):
    """By the F-test alone each of these selects something in nearly every run."""
    rng = np.random.default_rng(1)
    X = KINDS[kind](rng, (1000, 1000))
    if target == "a quantity":
        y, measure = rng.lognormal(0, 2, 1000), FisherZ(target="numeric")
    else:
        y, measure = (np.arange(1000) < int(target.split()[-1])) * 1, "auto"
    assert SelectFromStream(measure=measure).fit(X, y).selected_.size == 0


@pytest.mark.jit_only
def test_nothing_is_selected_from_rare_words_of_many_classes():
    rng = np.random.default_rng(0)
    y, ones = np.arange(1000) % 20, rng.integers(3, 11, 1000)
    X = np.argsort(rng.random((1000, 1000)), axis=0) < ones
    assert SelectFromStream().fit(X.astype(np.uint8), y).selected_.size == 0


@pytest.mark.parametrize("measure", ["su", "fisher-z"])
def test_kept_columns_have_the_p_values_that_they_were_judged_by(measure):
    rng = np.random.default_rng(0)
    y = (np.arange(300) < 20).astype(int)
    X = rng.poisson(0.2, (300, 40)) + 3 * (rng.random((300, 40)) < 0.3 * y[:, None])
    for data in (X, sparse.csc_array(X)):
        selector = SAOLA(measure=measure, correction="online-fdr").fit(data, y)
        kept = selector.selected_
        assert kept.size > 1
        own = p_values(resolve_measure(measure), data, y)[kept]
        np.testing.assert_allclose(
            p_values_of(selector._state, selector._stream.measure), own, rtol=1e-9
        )
