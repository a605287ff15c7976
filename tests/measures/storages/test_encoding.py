"""From values to categories, dense and sparse, against the plain ones."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import reference
from featstream import SymmetricalUncertainty
from featstream.measures.storages import dense_codes, sparse_codes
from featstream.protocols import SparseColumns
from scores import categories, numbered
from strategies import examples, generators

STORAGES = {"dense": np.asarray, "sparse": sparse.csc_array}


def measure(binning="quantile", n_bins=5):
    return SymmetricalUncertainty(
        binning=binning, n_bins=n_bins, missing="category", max_categories=10**6
    )


@st.composite
def tables(draw):
    """Columns of every sort: whole, not whole, missing, few values and many."""
    rng, p, n = draw(generators(6, 49))
    n, p = n + 2, p + 1
    y = rng.integers(0, 3, n)
    y[:2] = [0, 1]
    X = rng.normal(size=(n, p)) + y[:, None]
    for j in range(p):
        grain = rng.choice([1.0, 4.0, 0.1, 1000.0])
        X[:, j] = np.round(grain * X[:, j]) * rng.choice([1.0, 1.0, 1 / 16])
        X[rng.random(n) < rng.choice([0.0, 0.6]), j] = 0.0
        X[rng.random(n) < rng.choice([0.0, 0.0, 0.2, 1.0]), j] = np.nan
    return X, y


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("binning", ["quantile", "uniform", "mdl", None])
@examples(20)
@given(data=tables(), n_bins=st.integers(2, 20))
def test_categories_are_the_plain_ones(storage, binning, data, n_bins):
    X, y = data
    found = categories(measure(binning, n_bins), STORAGES[storage](X), y)
    for column, codes in zip(X.T.tolist(), found, strict=True):
        expected = reference.categories(column, y.tolist(), binning, n_bins)
        assert codes == numbered(expected)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize(
    "labels",
    [
        [0, 5, 9, 5, 0, 9],  # gaps
        [-3, -1, -3, 7, -1, 7],  # negative
        [0, 10**6, -(10**6), 0, 10**6, -(10**6)],  # a range longer than any column
        [2**60, 2**60 + 1, 0, 2**60, 2**60 + 1, 0],  # equal as float64
        [-(2**60), 1 - 2**60, 0, -(2**60), 1 - 2**60, 0],
        [2**64 - 1, 2**64 - 2, 0, 1, 2**64 - 1, 2**64 - 2],  # unsigned
        [0, 1, 2, 3, 4, 5],  # as many as rows
        [7, 7, 7, 7, 7, 7],  # one
    ],
)
def test_whole_numbers_are_labels_whatever_they_are(storage, labels):
    X = np.array(labels, np.uint64 if max(labels) >= 2**63 else np.int64)[:, None]
    y = [0, 1, 0, 1, 0, 1]
    assert categories(measure(), STORAGES[storage](X), y) == [numbered(labels)]


@pytest.mark.parametrize(
    ("binning", "values", "expected"),
    [
        ("quantile", np.arange(100.0) + 0.5, np.arange(100) // 20),  # equal sizes
        ("uniform", [0, 0.5, 1.5, 2.5, 7, 10], [0, 0, 0, 1, 3, 4]),  # equal widths
        ("quantile", [0.5, 0.5, 1.5, 2.5, 2.5], [0, 0, 1, 2, 2]),  # few are kept
        ("uniform", [0.5, 0.5, 1.5, 2.5, 2.5], [0, 0, 1, 2, 2]),
        ("mdl", np.arange(40) / 8, np.arange(40) * 0),  # no cut pays
    ],
)
def test_bins_by_hand(binning, values, expected):
    y = np.arange(len(values)) % 2
    found = categories(measure(binning), np.reshape(values, (-1, 1)), y)
    assert found == [numbered(list(expected))]


def test_description_length_pays_for_many_classes():
    """The price has log2(3**k - 2), which no float holds for 700 classes.

    Cutting saves n bits and costs about 700 log2(3) + log2(n) - 700, far fewer.
    """
    y = np.tile(np.arange(700), 4)
    X = np.where(y < 350, 0.25, 0.75)[:, None]
    assert categories(measure("mdl"), X, y) == [(y >= 350).tolist()]


@pytest.mark.parametrize("arity", [15, 16, 17, 18])
def test_the_number_of_planes_has_a_limit_and_categories_none(arity):
    values = np.arange(3 * arity) % arity
    y = np.arange(3 * arity) % 2
    for storage in STORAGES.values():
        for X in (values, values + 0.5, np.where(values == 0, np.nan, values)):
            bare = measure(None)
            found = categories(bare, storage(X[:, None]), y)
            assert found == [numbered(values.tolist())]


@examples(15)
@given(data=tables(), seed=st.integers(0, 100))
def test_summaries_are_those_of_numpy(data, seed):
    X, _ = data
    rng = np.random.default_rng(seed)
    X[rng.random(X.shape) < rng.choice([0.0, 0.05])] = rng.choice([np.inf, -np.inf])
    m = X.shape[1]
    dense = dense_codes.summarise(np.asfortranarray(X))
    csc = sparse.csc_array(X)
    stored = SparseColumns(csc.indptr.astype(np.int64), csc.indices, csc.data, len(X))
    found = sparse_codes.summarise(stored)
    for j in range(m):
        present = X[~np.isnan(X[:, j]), j]
        finite = present[np.isfinite(present)]
        for summary in (dense, found):
            assert summary.is_missing[j] == np.isnan(X[:, j]).any()
            assert summary.is_infinite[j] == np.isinf(present).any()
        assert found.is_whole[j] == np.all(finite == np.floor(finite))
        if present.size:
            assert (dense.low[j], dense.high[j]) == (present.min(), present.max())
        else:
            assert dense.low[j] > dense.high[j]
        stored = X[X[:, j] != 0, j]
        if found.is_plain[j]:
            assert np.unique(stored).size <= 1
        elif not np.isnan(stored).any():
            assert np.unique(stored).size > 1 or not found.is_whole[j]
