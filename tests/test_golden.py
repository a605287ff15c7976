"""SAOLA and its measures against LOFS, the library of the paper's authors.

LOFS departs from the print in ways that are all options here or said here:

- overlap must exceed its bound: ``overlap=">"``;
- with Fisher's Z a newcomer of equal relevance is discarded: ``ties="drop"``
  (with symmetrical uncertainty it stays, as printed);
- labels are numbers: ``FisherZ(target="numeric")``;
- values are cut at integers before they are counted: ``np.floor``;
- each integer is a category, however many there are: ``binning=None``;
- a column that sums to exactly 0 is skipped. That is no rule of selection but a
  filter on the data, and it is applied to the data here: such columns are made
  constant, hence irrelevant.
"""

from collections import Counter

import numpy as np
import pytest

import golden
from featstream import SAOLA, FisherZ, SymmetricalUncertainty
from scores import overlaps, relevances

# Runs in which LOFS tells apart what is equal: the scores of a column and of its
# complement come out different in their last bit.
ROUNDED = {
    ("bin_ties_80x60", "saola_mi", 0.05): {2},
    ("bin_ties_80x60", "saola_mi", 0): {2},
    ("bin_ties_80x60", "saola_z", 0.01): {15, 17},
    ("bin_ties_80x60", "saola_z", 0.05): {15, 17},
}
N_RUNS = {"saola_mi": 38, "saola_z": 41}
N_MEASURES = {"su": 128, "fisher_z": 42}
HEAVY = {"real_hiva", "real_dexter", "real_dorothea", "bin_sparse_1000x2000"}


@pytest.mark.parametrize(
    "is_heavy", [False, pytest.param(True, marks=pytest.mark.jit_only)]
)
def test_selection_is_that_of_the_authors_library(is_heavy):
    runs, left = golden.runs(*N_RUNS), dict(ROUNDED)
    assert Counter(run["algorithm"] for _, run in runs) == N_RUNS
    for name, run in runs:
        if (name in HEAVY) != is_heavy:
            continue
        X, y, measure = golden.as_lofs_sees(name, run)
        ties = "keep" if run["algorithm"] == "saola_mi" else "drop"
        found = SAOLA(measure=measure, overlap=">", ties=ties).fit(X, y).selected_
        key = (name, run["algorithm"], next(iter(run["params"].values())))
        differing = left.pop(key, set())
        assert set(found) ^ set(run["selected"]) == differing, key
        if not differing:
            assert found.tolist() == run["selected"], key
        else:
            assert run["tie_sensitive"]
    assert is_heavy or not left


def test_where_it_differs_the_authors_library_separates_complements():
    """Equal in exact arithmetic, so here too; the earlier or both stay."""
    X, y = golden.data("bin_ties_80x60")
    for first, second, measure in (
        (0, 2, SymmetricalUncertainty()),
        (15, 17, FisherZ(target="numeric")),
    ):
        assert np.array_equal(X[:, first], 1 - X[:, second])
        scores = relevances(measure, X[:, [first, second]], y)
        assert scores[0] == scores[1]


def test_the_printed_rules_differ_from_the_authors_where_they_should():
    """Without the options the same data tell the two apart: the options matter."""

    def selected(name, algorithm):
        runs = [run for case, run in golden.runs(algorithm) if case == name]
        return runs[-1]["selected"]

    X, y = golden.data("micro_class_copy_40x6")
    printed = SAOLA(measure="su").fit(X, y)
    assert printed.selected_.tolist() == [0, 5]  # both copies of the class
    assert selected("micro_class_copy_40x6", "saola_mi") == [0, 1, 2, 3, 4, 5]

    X, y = golden.data("micro_duplicates_60x6")
    z = FisherZ(alpha=0.05, target="numeric")
    kept = SAOLA(measure=z, overlap=">", ties="keep").fit(X, y).selected_
    assert len(kept) > len(selected("micro_duplicates_60x6", "saola_z"))

    X, y = golden.data("micro_zero_sum_40x4")
    skipped = set(np.flatnonzero(X.sum(axis=0) == 0))
    assert not skipped & set(selected("micro_zero_sum_40x4", "saola_mi"))
    assert skipped & set(SAOLA(measure="su", overlap=">").fit(X, y).selected_)


def test_scores_are_those_of_the_authors_library():
    found = [pair for pair in golden.measures(*N_MEASURES) if not pair[1]["S"]]
    assert Counter(measure["kind"] for _, measure in found) == N_MEASURES
    for name, measure in found:
        X, y = golden.data(name)
        column = X[:, [measure["x"]]]
        is_class = measure["y"] == X.shape[1]
        other = y if is_class else X[:, measure["y"]]
        if measure["kind"] == "su":
            check_su(measure, column, other, y, is_class)
        else:
            assert is_class
            check_fisher_z(measure, column, y)


def check_su(measure, column, other, y, is_class):
    su = SymmetricalUncertainty(binning=None)
    column, other = np.floor(column), np.floor(other)
    if np.ptp(other) == 0:
        assert measure["su"] in (0, None)
        return
    (found,) = relevances(su, column, other)
    assert found == pytest.approx(measure["su"], rel=0, abs=1e-12)
    if not is_class:
        found = overlaps(su, np.column_stack([column[:, 0], other]), y)
        assert found[0, 1] == pytest.approx(measure["su"], rel=0, abs=1e-12)


def check_fisher_z(measure, column, y):
    z = FisherZ(alpha=measure["alpha"], target="numeric")
    scores = relevances(z, column, y)
    if measure["abs_r"] is None:  # a constant: 0/0 there, nothing here
        assert scores.tolist() == [0.0]
        return
    assert scores[0] == pytest.approx(measure["abs_r"], rel=0, abs=1e-12)
    is_relevant = bool(z.bind(y).is_relevant(scores)[0])
    assert is_relevant == (not measure["independent"])
