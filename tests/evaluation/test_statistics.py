import json

import numpy as np
import pytest
from scipy import stats

from featstream import evaluation as ev
from featstream.errors import DataError, ParameterError
from shared import shared


def table_with_ties(n, k, seed=0):
    return np.random.default_rng(seed).integers(0, 5, (n, k)) / 5


@pytest.mark.parametrize(
    ("best", "convention", "expected"),
    [
        # Rows 3 1 2 and 5 5 0: ranks from the top 1 3 2 and 1.5 1.5 3.
        ("high", "demsar", [1.25, 2.25, 2.5]),
        ("high", "paper", [2.75, 1.75, 1.5]),
        ("low", "demsar", [2.75, 1.75, 1.5]),
        ("low", "paper", [1.25, 2.25, 2.5]),
    ],
)
def test_ranks_are_averaged_in_both_conventions(best, convention, expected):
    ranks = ev.average_ranks([[3, 1, 2], [5, 5, 0]], best, convention=convention)
    np.testing.assert_array_equal(ranks, expected)


@pytest.mark.parametrize("shape", [(5, 3), (10, 4), (30, 7)])
def test_friedman_is_scipys_and_its_f_the_analysis_of_variance_of_the_ranks(shape):
    scores = table_with_ties(*shape)
    expected, test = stats.friedmanchisquare(*scores.T), ev.friedman(scores)
    assert test.chi2 == pytest.approx(expected.statistic)
    assert test.chi2_p_value == pytest.approx(expected.pvalue)
    ranks, n = stats.rankdata(scores, axis=1), len(scores)
    between = n * np.sum((ranks.mean(axis=0) - ranks.mean()) ** 2)
    within = np.sum((ranks - ranks.mean()) ** 2) - between
    assert test.f == pytest.approx(between / (within / (n - 1)))


@pytest.mark.parametrize(
    ("scores", "p_value"),
    [
        # Three data sets follow the first, each with one of 3! orders.
        ([[3, 2, 1]] * 4, 1 / 6**3),
        # Two data sets agree on two methods half of the time.
        ([[2, 1]] * 2, 1 / 2),
        # A tie leaves three orders.
        ([[2, 2, 1]] * 3, 1 / 9),
        ([[1, 1, 1]] * 4, 1.0),
    ],
)
def test_friedman_of_identical_rankings_is_as_sure_as_chance_allows(scores, p_value):
    test = ev.friedman(scores)
    assert test.p_value == pytest.approx(p_value)
    assert test.f == (np.inf if p_value < 1 else 0.0)
    assert test.is_rejected() == (p_value < 0.05)


def test_lofs_statistics_come_out_in_its_convention():
    golden = json.loads(shared("golden", "lofs_golden.json").read_text())
    for case in golden["statistics"]:
        scores = np.array(case["values"])
        ranks = ev.average_ranks(scores, convention="paper")
        np.testing.assert_allclose(ranks, case["mean_ranks"], atol=1e-12)
        test = ev.friedman(scores, correct_ties=False)
        expected = np.inf if case["F"] is None else case["F"]
        assert test.f == pytest.approx(expected, rel=1e-9, abs=1e-9)
        if case["tail_p"] is not None:
            assert test.p_value == pytest.approx(case["tail_p"], abs=1e-9)
        n, k = scores.shape
        for alpha, cd in case["cd"].items():
            if cd is not None:  # its table of quantiles has three digits
                found = ev.critical_difference(k, n, float(alpha))
                assert found == pytest.approx(cd, rel=2e-3)


def test_nemenyi_of_two_methods_is_a_test_of_a_normal_difference():
    # Average ranks of two methods have the standard error sqrt(2 * 3 / (6 n)).
    result = ev.nemenyi([[1, 0]] * 7 + [[0, 1]] * 2)
    gap = result.average_ranks[1] - result.average_ranks[0]
    assert gap == pytest.approx(5 / 9)
    expected = 2 * stats.norm.sf(gap / np.sqrt(1 / 9))
    np.testing.assert_allclose(result.p_values, [[1, expected], [expected, 1]])


def test_nemenyi_calls_different_what_has_a_small_p_value():
    result = ev.nemenyi(np.arange(5) + table_with_ties(15, 5))
    np.testing.assert_array_equal(result.is_different, result.p_values <= 0.05)
    assert 0 < result.is_different.sum() < 20


def test_win_tie_lose_of_repeats_is_a_paired_t_test_on_each_data_set():
    rng = np.random.default_rng(1)
    ours = rng.normal(0.80, 0.02, (40, 10))
    rival = rng.normal(0.79, 0.02, (40, 10))
    tests = stats.ttest_rel(ours, rival, axis=1)
    signs = np.where(tests.pvalue < 0.05, np.sign(tests.statistic), 0)
    expected = tuple(np.count_nonzero(signs == sign) for sign in (1, 0, -1))
    assert ev.win_tie_lose(ours, rival) == expected
    assert ev.win_tie_lose(ours, rival, best="low") == expected[::-1]


def test_constant_differences_are_decided_without_a_variance():
    ours = [[0.75, 0.5], [0.5, 0.5], [0.25, 0.5]]
    rival = [[0.5, 0.25], [0.5, 0.5], [0.5, 0.75]]
    assert str(ev.win_tie_lose(ours, rival)) == "1/1/1"


def test_single_scores_win_by_the_margin_itself():
    assert str(ev.win_tie_lose([0.85, 0.849, 0.83], [0.84] * 3)) == "1/1/1"
    assert str(ev.win_tie_lose([0.85, np.nan], [0.84, 0.5])) == "1/0/0"
    assert str(ev.win_tie_lose([0.85], [0.84], margin=0.02)) == "0/1/0"


def test_conclusion_names_ranks_tests_and_pairs():
    # Six data sets rank a, b, c alike: F is infinite, and the critical
    # difference 1.353 separates only ranks 1 and 3.
    text = ev.conclude([[0.9, 0.8, 0.7]] * 6, ["a", "b", "c"], what="AUC")
    assert "In AUC on 6 data sets" in text
    assert "a 1.00, b 2.00 and c 3.00" in text
    assert "rejects" in text
    assert "p < 0.001" in text
    assert "(critical difference 1.353) a is significantly better than c;" in text


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: ev.average_ranks([1, 2, 3]), DataError, "n_datasets, n_methods"),
        (lambda: ev.average_ranks([[1, 2]], "up"), ParameterError, "'high' or 'low'"),
        (lambda: ev.friedman([[1, 2], [np.nan, 2]]), DataError, "row 1"),
        (lambda: ev.friedman([[1, 2]]), DataError, r"at least \(2, 2\)"),
        (lambda: ev.critical_difference(1, 5), ParameterError, "n_methods"),
        (lambda: ev.critical_difference(3, 5, 5), ParameterError, "alpha=0.05"),
        (lambda: ev.win_tie_lose([1, 2], [1]), DataError, "one shape"),
        (lambda: ev.win_tie_lose([[1.0]], [[2.0]]), DataError, "two repeats"),
        (lambda: ev.conclude([[1, 2], [2, 1]], ["a"]), DataError, "1 names for 2"),
    ],
)
def test_wrong_input_is_answered_with_what_to_do(call, error, words):
    with pytest.raises(error, match=words):
        call()
