"""From values to categories, dense and sparse, against the plain ones."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import reference
from featstream import SymmetricalUncertainty
from featstream.measures.storages.dense_codes import count_common, pack, unpack
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
    X, y = np.reshape(values, (-1, 1)), np.arange(len(values)) % 2
    assert categories(measure(binning), X, y) == [numbered(list(expected))]


@pytest.mark.parametrize(("most", "expected"), [(4, [0, 1, 2, 3]), (3, [0, 0, 1, 1])])
def test_a_stored_zero_counts_as_a_value(most, expected):
    """A sparse column that stores all rows: three other values, and zeros."""
    values, y = [0, 1, 2, 3] * 2, [0, 1] * 4
    stored = sparse.csc_array((np.array(values), np.arange(8), [0, 8]), shape=(8, 1))
    binned = SymmetricalUncertainty(n_bins=2, max_categories=most)
    for X in (stored, np.reshape(values, (-1, 1))):
        assert categories(binned, X, y) == [expected * 2]


def test_description_length_pays_for_many_classes():
    """The price has log2(3**k - 2), which no float holds for 700 classes.

    Cutting saves n bits and costs about 700 log2(3) + log2(n) - 700, far fewer.
    """
    y = np.tile(np.arange(700), 4)
    X = np.where(y < 350, 0.25, 0.75)[:, None]
    assert categories(measure("mdl"), X, y) == [(y >= 350).tolist()]


@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 127, 128, 129, 1000])
@pytest.mark.parametrize("arity", [2, 3, 16])
def test_planes_have_the_rows_of_each_code(n, arity):
    codes = np.random.default_rng(n).integers(0, arity, (3, n)).astype(np.uint8)
    codes[1] = 0  # no plane
    planes, sizes = pack(codes, np.array([arity, 1, arity]))
    found = np.full((2, n), -1, np.int32)
    for row, own in zip(found, np.split(planes, 2), strict=True):
        unpack(own, row)
    assert found.tolist() == codes[::2].tolist()
    assert sizes.tolist() == [
        (row == c).sum() for row in found for c in range(1, arity)
    ]
    both = (codes[0] == 1) & (codes[2] == 1)
    assert count_common(planes[0], planes[arity - 1]) == both.sum()
