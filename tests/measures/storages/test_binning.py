"""Cut points against plain ones, and Fayyad and Irani by recursion."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
from featstream.measures.storages.binning import (
    MDL,
    QUANTILE,
    UNIFORM,
    cut_column,
    distinct_values,
)
from featstream.measures.storages.tables import fixed_point_nlogn
from strategies import examples, generators

METHODS = {"quantile": QUANTILE, "uniform": UNIFORM, "mdl": MDL}


def cut(values, classes, method, n_bins=5, *, n_zeros_apart=0):
    """Cuts by the kernels, with some of the zeros given as not stored."""
    values, classes = np.asarray(values, float), np.asarray(classes, np.int32)
    zeros = np.flatnonzero(values == 0)[:n_zeros_apart]
    stored = np.delete(np.arange(values.size), zeros)
    n_classes = int(classes.max()) + 1
    zero_classes = np.bincount(classes[zeros], minlength=n_classes).astype(np.int64)
    distinct, table = distinct_values(
        values[stored], classes[stored], zeros.size, zero_classes, n_classes
    )
    nlogn = fixed_point_nlogn(values.size)
    unit = 2.0 / nlogn[2]
    return cut_column(distinct, table, METHODS[method], n_bins, nlogn, unit).tolist()


@st.composite
def columns(draw):
    """Values in which some repeat and many are zero, with two to four classes."""
    rng, n = draw(generators(99))
    n += 2
    classes = rng.integers(0, rng.integers(2, 5), n)
    grain = rng.choice([0.5, 2.0, 64.0])
    values = np.round(grain * (rng.normal(size=n) + rng.integers(0, 4) * classes))
    values /= 64.0
    values[rng.random(n) < rng.choice([0.0, 0.5])] = 0.0
    return values.tolist(), classes.tolist()


@pytest.mark.parametrize("method", METHODS)
@examples(30)
@given(
    column=columns(), n_bins=st.integers(2, 7), n_zeros_apart=st.sampled_from([0, 9])
)
def test_cuts_are_the_plain_ones(method, column, n_bins, n_zeros_apart):
    values, classes = column
    expected = reference.CUTS[method](values, classes, n_bins)
    found = cut(values, classes, method, n_bins, n_zeros_apart=n_zeros_apart)
    assert found == expected


@pytest.mark.parametrize(
    ("method", "values", "expected"),
    [
        ("quantile", np.arange(100.0) + 0.5, [19.5, 39.5, 59.5, 79.5]),  # equal sizes
        ("uniform", [0, 0.5, 1.5, 2.5, 7, 10], [2, 4, 6, 8]),  # equal widths
        ("quantile", [0.5, 0.5, 1.5, 2.5, 2.5], [0.5, 1.5]),  # few values are kept
        ("uniform", [0.5, 0.5, 1.5, 2.5, 2.5], [0.5, 1.5]),
    ],
)
def test_cuts_by_hand(method, values, expected):
    assert cut(values, np.arange(len(values)) % 2, method) == expected


def test_description_length_cuts_where_the_class_changes_and_nowhere_else():
    values = np.arange(40) / 8
    classes = np.repeat([0, 1], 20)
    assert cut(values, classes, "mdl") == [values[19]]
    alternating = np.arange(40) % 2
    assert cut(values, alternating, "mdl") == []


def test_description_length_pays_for_many_classes():
    """The price has log2(3**k - 2), which no float holds for 700 classes."""
    classes = np.tile(np.arange(700), 4)
    values = np.where(classes < 350, 0.25, 0.75)
    # Cutting saves n bits and costs about 700 log2(3) + log2(n) - 700, far fewer.
    assert cut(values, classes, "mdl") == [0.25]
