"""OSFS and Fast-OSFS against the authors' own library, and against the paper.

LOFS counts the largest code as the arity of a column, takes class labels as
numbers for Fisher's Z, and skips columns that sum to zero. The first two are
options; the third is done to the data here.
"""

import numpy as np
import pytest
from scipy import stats

import golden
import reference_rivals as reference
from featstream import OSFS, FastOSFS, as_source
from featstream.measures import TARGET, ChiSquareTest, FisherZTest, GTest

pytestmark = pytest.mark.jit_only

TESTS = {"g2": GTest, "chi2": ChiSquareTest}
SINGULAR_SETS = {("bin_ties_80x60", "osfs_z"), ("pm1_100x40", "osfs_z")}
"""Runs in which LOFS drops features because a set of others is linearly dependent."""


def select(name, run):
    X, y = golden.data(name)
    params = run["params"]
    selector = FastOSFS if run["algorithm"].startswith("fast") else OSFS
    if run["algorithm"].endswith("_z"):
        test = FisherZTest(alpha=params["alpha"], target="numeric")
        return selector(test=test).fit(golden.without_zero_sums(X), y)
    test = TESTS[params["test"]](alpha=params["alpha"], arity="largest")
    X, y = X + params["x_shift"], y + params["y_shift"]
    return selector(test=test).fit(golden.without_zero_sums(X), y)


@pytest.mark.parametrize(
    ("algorithm", "n_runs"),
    [("osfs_d", 31), ("fast_osfs_d", 37), ("osfs_z", 19), ("fast_osfs_z", 24)],
)
def test_selections_are_those_of_the_authors(algorithm, n_runs):
    runs = golden.runs(algorithm)
    assert len(runs) == n_runs
    for name, run in runs:
        if (name, algorithm) not in SINGULAR_SETS:
            selected = select(name, run).selected_.tolist()
            assert selected == run["selected"], (name, run["params"])


@pytest.mark.parametrize(("name", "algorithm"), sorted(SINGULAR_SETS))
def test_a_dependent_set_drops_everything_in_lofs_and_nothing_here(name, algorithm):
    """The inverse of a singular matrix is NaN there, and NaN counts as redundant."""
    (run,) = [run for case, run in golden.runs(algorithm) if case == name]
    X, y = golden.data(name)
    X = golden.without_zero_sums(X)
    assert osfs_by_inverse(X, y, drops_on_singular=True) == run["selected"]
    ours = select(name, run).selected_.tolist()
    assert ours == osfs_by_inverse(X, y, drops_on_singular=False) != run["selected"]


def osfs_by_inverse(X, y, *, drops_on_singular, alpha=0.01):
    """OSFS with Fisher's Z; LOFS drops a feature given a set that has no inverse."""

    def separates(a, given):
        others = X[:, list(given)].T
        if given and np.linalg.matrix_rank(np.cov(others), hermitian=True) < len(given):
            return drops_on_singular
        r = reference.partial_correlation(X[:, a], y, others)
        W = np.sqrt(len(y) - len(given) - 3) * np.arctanh(min(r, 1 - 1e-15))
        return bool(stats.norm.isf(alpha / 2) > W)

    return reference.osfs(X.shape[1], lambda a: not separates(a, ()), separates)


def as_tested(name, measure):
    """A test of LOFS, done here."""
    X, y = golden.data(name)
    n_features, shift = X.shape[1], measure.get("x_shift", 0)
    chosen = [measure["x"], *measure["S"]]
    is_target = measure["y"] == n_features
    if not is_target:
        chosen.append(measure["y"])
    if measure["kind"] == "fisher_z":
        test = FisherZTest(alpha=measure["alpha"], target="numeric")
    else:
        test = TESTS[measure["kind"]](alpha=measure["alpha"], arity="largest")
    bound = test.bind(y + measure.get("y_shift", 0))
    block = next(iter(as_source(X[:, chosen] + shift).blocks()))
    columns = bound.gather(bound.encode(block), np.arange(len(chosen)))
    given = list(range(1, 1 + len(measure["S"])))
    return bound.test(columns, 0, TARGET if is_target else len(chosen) - 1, given)


@pytest.mark.parametrize(("kind", "n_tests"), [("g2", 80), ("chi2", 80)])
def test_statistics_and_p_values_are_those_of_the_authors(kind, n_tests):
    found = golden.measures(kind)
    assert len(found) == n_tests
    for name, measure in found:
        result = as_tested(name, measure)
        assert result.is_independent == bool(measure["independent"])
        assert result.p_value == pytest.approx(measure["p_value"], abs=1e-10)
        if not result.is_reliable:
            assert measure["dep"] == -1
            continue
        sign = -1 if result.is_independent else 1
        strength = sign * (2 + result.statistic / result.df)
        assert strength == pytest.approx(measure["dep"], rel=1e-10)


def test_partial_correlations_are_those_of_the_authors():
    found = golden.measures("fisher_z")
    assert len(found) == 168
    n_undefined = 0
    for name, measure in found:
        result = as_tested(name, measure)
        if measure["abs_r"] is None:  # a constant among the columns
            n_undefined += 1
            assert np.isfinite(result.effect)
            continue
        assert result.effect == pytest.approx(measure["abs_r"], abs=1e-10)
        assert result.is_independent == bool(measure["independent"])
        tail = min(measure["lower_tail"], 1 - measure["lower_tail"])
        assert result.p_value == pytest.approx(2 * tail, abs=1e-10)
    assert n_undefined == 5


def test_hiva_has_four_features_in_lofs_because_its_class_is_coded_1_and_3():
    """The paper's 5 comes out with the classes 1 and 2: the class has arity 2."""
    X, y = golden.data("real_hiva")
    codes = {"as shifted by 2": y + 2, "as 1 and 2": np.where(y > 0, 2, 1)}
    found = {
        how: len(FastOSFS(test=GTest(arity="largest")).fit(X + 1, labels).selected_)
        for how, labels in codes.items()
    }
    assert found == {"as shifted by 2": 4, "as 1 and 2": 5}
