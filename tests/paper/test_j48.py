"""J48 by hand; `test_j48_weka.py` compares it with Weka."""

from itertools import pairwise
from math import log2

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from featstream.errors import ParameterError
from featstream.evaluation import J48
from featstream.paper.j48 import expected_errors
from featstream.paper.j48_kernels import score_splits, xlog2x_table


def reasons(tree):
    if tree.nominal is None:
        return {}
    why = "numbers that are all different are no categories to split on"
    return {"check_classifiers_train": why}


@parametrize_with_checks([J48(), J48(nominal="all")], expected_failed_checks=reasons)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def entropy(counts):
    total = sum(counts)
    return -sum(c / total * log2(c / total) for c in counts if c)


def by_class(y):
    return [np.sum(y == c) for c in (0, 1, 2)]


def naive_split(x, y, n_categories, min_leaf):
    """Gain, gain ratio and threshold of one feature; gain -1 if it cannot split."""
    known = ~np.isnan(x)
    share, x, y = known.mean(), x[known], y[known]
    total = known.size

    def split(branch):
        branches = [y[branch == b] for b in np.unique(branch)]
        after = sum(b.size / y.size * entropy(by_class(b)) for b in branches)
        information = entropy([*(b.size for b in branches), total - y.size])
        return share * (entropy(by_class(y)) - after), information, branches

    if n_categories:
        gain, information, branches = split(x)
        if sum(b.size >= min_leaf for b in branches) < 2:
            return -1, 0, np.nan
        return gain, gain / information if information > 1e-9 else 0, np.nan

    smallest = min(max(0.1 * y.size / 3, min_leaf), 25)
    best, n_tried = (0, 0, np.nan), 0
    values = np.unique(x)
    for low, high in pairwise(values):
        below = np.sum(x <= low)
        if min(below, y.size - below) >= smallest:
            n_tried += 1
            gain, information, _ = split(x <= low)
            if gain > best[0] + 1e-6:
                best = (gain, information, (low + high) / 2)
    if n_tried == 0 or best[0] - log2(n_tried) / total <= 1e-6:
        return -1, 0, np.nan
    gain = best[0] - log2(n_tried) / total
    return gain, gain / best[1], best[2]


@pytest.mark.parametrize("holes", [0.0, 0.2])
@pytest.mark.parametrize("n", [12, 60, 400])
def test_splits_score_as_the_definitions_say(n, holes):
    rng = np.random.default_rng(n)
    n_categories = np.array([0, 0, 0, 2, 5])
    fine, coarse = rng.normal(size=n).round(4), rng.normal(size=n).round(1)
    X = np.c_[fine, coarse, rng.integers(0, [4, 2, 5], (n, 3))]
    y = (X[:, 0] > 0.5).astype(int) + (X[:, 4] > rng.integers(0, 5, n))
    X[rng.random(X.shape) < holes] = np.nan
    X = np.asfortranarray(X)
    order = np.argsort(X, axis=0).T.astype(np.int32, order="C")
    ours = score_splits(X, order, y, np.ones(n), n_categories, 3, 2.0, xlog2x_table(n))
    expected = [naive_split(X[:, j], y, n_categories[j], 2) for j in range(5)]
    np.testing.assert_allclose(np.transpose(ours), expected, atol=1e-9)


def test_expected_errors_are_quinlans_and_rise_linearly_to_one():
    z = 0.6744897501960817
    # C4.5, section 4.2: U25%(0, 6) = .206, U25%(0, 9) = .143, U25%(0, 1) = .750.
    for n, share in [(6, 0.206), (9, 0.143), (1, 0.750)]:
        errors = expected_errors(np.array([n, 0.0]), 0.25, z)
        assert errors / n == pytest.approx(share, abs=5e-4)
    none, one, some = (
        expected_errors(np.array([10 - e, e]), 0.25, z) for e in (0.0, 1.0, 0.3)
    )
    assert some == pytest.approx(none + 0.3 * (one - none))
    share, n = 1.5 / 10, 10
    upper = (
        share + z**2 / (2 * n) + z * np.sqrt(share * (1 - share) / n + (z / n) ** 2 / 4)
    )
    assert one == pytest.approx(n * upper / (1 + z**2 / n))
    assert expected_errors(np.array([1.0, 1.0, 1.0]), 0.25, z) < 3
    assert expected_errors(np.zeros(2), 0.25, z) == 0.0


def test_thresholds_are_values_of_the_training_set():
    # The midpoint of 2 and 6 is 4; the largest training value below it is 2.
    tree = J48().fit([[1], [2], [6], [7]], [0, 0, 1, 1])
    np.testing.assert_array_equal(tree.predict([[2.0], [2.1], [3.9]]), [0, 1, 1])


def test_categories_get_a_branch_each():
    X = [[3], [3], [5], [5], [9], [9]]
    y = ["a", "a", "b", "b", "a", "a"]
    tree = J48(nominal=[0]).fit(X, y)
    assert (tree.n_nodes_, tree.n_leaves_) == (4, 3)
    np.testing.assert_array_equal(tree.predict([[3], [5], [9]]), ["a", "b", "a"])


@pytest.mark.parametrize("nominal", [None, "all"])
def test_missing_and_unseen_values_take_all_branches_in_proportion(nominal):
    tree = J48(nominal=nominal).fit([[1], [1], [1], [5], [5]], [0, 0, 0, 1, 1])
    unseen = [[3]] if nominal else []
    found = tree.predict_proba([[5], [np.nan], *unseen])
    np.testing.assert_allclose(found, [[0, 1], *[[0.6, 0.4]] * (1 + len(unseen))])


def test_rows_with_missing_values_are_shared_out_in_training():
    # Known: three rows left (class 0), two right (class 1). The sixth row, of
    # class 1, counts 3/5 left and 2/5 right.
    X = [[1], [1], [1], [5], [5], [np.nan]]
    tree = J48(pruned=False).fit(X, [0, 0, 0, 1, 1, 1])
    np.testing.assert_allclose(
        tree.predict_proba([[1], [5]]), [[3 / 3.6, 0.6 / 3.6], [0, 1]]
    )


def test_a_branch_that_nobody_took_answers_for_its_node():
    # Under 1 of the first feature there is no 2 in the second.
    X = [[0, 0], [0, 0], [0, 1], [0, 2], [1, 0], [1, 0], [1, 0], [1, 1], [1, 1]]
    y = [0, 0, 0, 0, 1, 1, 1, 2, 2]
    tree = J48(nominal="all", pruned=False).fit(X * 2, y * 2)
    assert tree.n_nodes_ == 6
    np.testing.assert_allclose(tree.predict_proba([[1, 2]]), [[0, 0.6, 0.4]])


def test_the_first_class_wins_a_tie():
    assert J48().fit([[1], [1]], ["b", "a"]).predict([[1]]) == ["a"]


def test_a_split_that_corrects_nothing_is_collapsed():
    # Both sides of any cut keep class 0 in the majority.
    X = np.arange(20).reshape(-1, 1)
    y = np.r_[np.zeros(12), [0, 1, 0, 1, 0, 0, 1, 0]]
    assert J48(pruned=False).fit(X, y).n_nodes_ == 1


def test_smaller_confidence_prunes_more():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5))
    y = X[:, 0] + rng.normal(size=300) > 0
    sizes = [J48(confidence=c).fit(X, y).n_nodes_ for c in (0.001, 0.25)]
    sizes.append(J48(pruned=False).fit(X, y).n_nodes_)
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1]


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"confidence": 0.0}, "pruned=False"),
        ({"confidence": 25}, r"\(0, 0.5\]"),
        ({"min_leaf": 0}, "at least 1"),
        ({"nominal": [7]}, "indices below 1"),
        ({"nominal": [True, False]}, "a mask of 1"),
        ({"nominal": "none"}, "categories"),
    ],
)
def test_wrong_parameters_are_answered_with_what_to_do(parameters, words):
    with pytest.raises(ParameterError, match=words):
        J48(**parameters).fit([[0.0], [1.0]], [0, 1])
