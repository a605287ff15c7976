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

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from scipy import sparse

import golden
from featstream import SAOLA, FisherZ, SymmetricalUncertainty
from scores import overlaps, relevances
from shared import shared

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
CASES = [
    "bin_sparse_1000x2000",
    "bin_sparse_500x300",
    "bin_ties_80x60",
    "cont_blocks_300x200",
    "cont_fourclass_250x120",
    "cont_quirks_200x80",
    "cont_small_60x20",
    "cont_wide_120x1500",
    "disc_mixed_200x100",
    "disc_multiclass_300x150",
    "disc_small_60x20",
    "lofs_spect",
    "lofs_wdbc",
    "micro_class_copy_40x6",
    "micro_duplicates_60x6",
    "micro_ghost_40x8",
    "micro_orphan_40x6",
    "micro_zero_sum_40x4",
    "pm1_100x40",
    "real_dexter",
    "real_dorothea",
    "real_hiva",
]


def open_case(name):
    with np.load(shared("golden", f"{name}.npz"), allow_pickle=False) as arrays:
        return arrays["X"], arrays["y"].astype(float)


def runs_of(name):
    return [run for case, run in golden.runs(*N_RUNS) if case == name]


def scores_of(name):
    found = [m for case, m in golden.measures(*N_MEASURES) if case == name]
    return [measure for measure in found if not measure["S"]]


def select_as_lofs(run, X, y):
    X = np.where(X.sum(axis=0) == 0, X.dtype.type(0), X)
    if run["algorithm"] == "saola_mi":
        delta = run["params"]["delta"]
        measure = SymmetricalUncertainty(threshold=delta, binning=None)
        cut = np.floor(X) if X.dtype.kind == "f" else X
        return SAOLA(measure=measure, overlap=">").fit(cut, y)
    measure = FisherZ(alpha=run["params"]["alpha"], target="numeric")
    return SAOLA(measure=measure, overlap=">", ties="drop").fit(X, y)


def key(name, run):
    return name, run["algorithm"], next(iter(run["params"].values()))


def test_no_case_is_left_out():
    """The tests below go by name, so that they exist where the files do not."""
    assert sorted(golden.cases()) == CASES
    found = Counter(run["algorithm"] for name in CASES for run in runs_of(name))
    assert found == N_RUNS
    measures = Counter(m["kind"] for name in CASES for m in scores_of(name))
    assert measures == N_MEASURES


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.jit_only] if name in HEAVY else [])
        for name in CASES
    ],
)
def test_selection_is_that_of_the_authors_library(name):
    X, y = open_case(name)
    runs = runs_of(name)
    assert len(runs) >= 2
    for run in runs:
        found = select_as_lofs(run, X, y).selected_.tolist()
        differing = ROUNDED.get(key(name, run), set())
        assert set(found) ^ set(run["selected"]) == differing
        if not differing:
            assert found == run["selected"]
        else:
            assert run["tie_sensitive"]


def test_where_it_differs_the_authors_library_separates_complements():
    """Equal in exact arithmetic, so here too; the earlier or both stay."""
    X, y = open_case("bin_ties_80x60")
    assert set(ROUNDED) <= {
        key("bin_ties_80x60", run) for run in runs_of("bin_ties_80x60")
    }
    for first, second, measure in (
        (0, 2, SymmetricalUncertainty()),
        (15, 17, FisherZ(target="numeric")),
    ):
        assert np.array_equal(X[:, first], 1 - X[:, second])
        scores = relevances(measure, X[:, [first, second]], y)
        assert scores[0] == scores[1]


def test_the_printed_rules_differ_from_the_authors_where_they_should():
    """Without the options the same data tell the two apart: the options matter."""
    X, y = open_case("micro_class_copy_40x6")
    printed = SAOLA(measure="su").fit(X, y)
    assert printed.selected_.tolist() == [0, 5]  # both copies of the class
    runs = {run["algorithm"]: run for run in runs_of("micro_class_copy_40x6")}
    assert runs["saola_mi"]["selected"] == [0, 1, 2, 3, 4, 5]

    X, y = open_case("micro_duplicates_60x6")
    runs = {run["algorithm"]: run for run in runs_of("micro_duplicates_60x6")}
    z = FisherZ(alpha=0.05, target="numeric")
    kept = SAOLA(measure=z, overlap=">", ties="keep").fit(X, y)
    assert len(kept.selected_) > len(runs["saola_z"]["selected"])

    X, y = open_case("micro_zero_sum_40x4")
    skipped = set(np.flatnonzero(X.sum(axis=0) == 0))
    runs = {run["algorithm"]: run for run in runs_of("micro_zero_sum_40x4")}
    assert not skipped & set(runs["saola_mi"]["selected"])
    assert skipped & set(SAOLA(measure="su", overlap=">").fit(X, y).selected_.tolist())


@pytest.mark.parametrize("name", CASES)
def test_scores_are_those_of_the_authors_library(name):
    wanted = scores_of(name)
    if not wanted:
        assert name.startswith(("real", "micro"))
        return
    X, y = open_case(name)
    for measure in wanted:
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
    for storage in (np.asarray, sparse.csc_array):
        (found,) = relevances(su, storage(column), other)
        assert found == pytest.approx(measure["su"], rel=0, abs=1e-12)
        if not is_class:
            pair = np.column_stack([column[:, 0], other])
            found = overlaps(su, storage(pair), y)
            assert found[0, 1] == pytest.approx(measure["su"], rel=0, abs=1e-12)
            assert found[1, 0] == found[0, 1]


def check_fisher_z(measure, column, y):
    z = FisherZ(alpha=measure["alpha"], target="numeric")
    for storage in (np.asarray, sparse.csc_array):
        scores = relevances(z, storage(column), y)
        if measure["abs_r"] is None:  # a constant: 0/0 there, nothing here
            assert scores.tolist() == [0.0]
            continue
        assert scores[0] == pytest.approx(measure["abs_r"], rel=0, abs=1e-12)
        is_relevant = bool(z.bind(y).is_relevant(scores)[0])
        assert is_relevant == (not measure["independent"])
