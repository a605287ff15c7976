import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats

from featstream.errors import DataError, ParameterError
from featstream.evaluation import stability

# Columns 0 and 1 are copies, 2 is independent of them, 3 is constant.
X = np.array([[0, 0, 0, 7], [0, 0, 1, 7], [1, 1, 0, 7], [1, 1, 1, 7]])
BY_CORRELATION = {"similarity": "correlation"}


@pytest.mark.parametrize(
    ("selections", "value"),
    [
        ([[0], [1]], 1.0),
        ([[0], [2]], 0.0),
        ([[0, 2], [1, 2]], 1.0),
        ([[0], [1], [2]], 1 / 3),  # {0},{1} 1; {0},{2} 0; {1},{2} 0
        ([[3], [3]], 1.0),  # a constant feature is like itself only
        ([[3], [0]], 0.0),
        ([[], []], 1.0),
        ([[], [0]], 0.0),
    ],
)
def test_copies_of_features_are_as_good_as_the_features(selections, value):
    assert stability(selections, X).value == pytest.approx(value)
    assert stability(selections, sp.csr_matrix(X)).value == pytest.approx(value)


def test_matching_is_the_best_one_not_the_first():
    likeness = np.array(
        # Greedy takes 0-2 (0.9) and is left with 1-3 (0.0); best is 0.8 + 0.7.
        [[1, 0, 0.9, 0.8], [0, 1, 0.7, 0], [0.9, 0.7, 1, 0], [0.8, 0, 0, 1]]
    )
    value = stability([[0, 1], [2, 3]], X, similarity=lambda columns: likeness).value
    assert value == pytest.approx((0.8 + 0.7) / 2)


def test_symmetrical_uncertainty_is_that_of_plain_entropies():
    rng = np.random.default_rng(3)
    data = rng.integers(0, [2, 3, 7, 40], (300, 4))
    data[:, 1] = (data[:, 0] + rng.integers(0, 2, 300)) * 5 - 3  # with gaps
    for i, j in [(0, 1), (1, 2), (2, 3), (0, 3)]:
        h_i, h_j, h_both = (
            stats.entropy(np.unique(data[:, k], axis=0, return_counts=True)[1])
            for k in ([i], [j], [i, j])
        )
        expected = 2 * (h_i + h_j - h_both) / (h_i + h_j)
        value = stability([[i], [j]], data).value
        assert value == pytest.approx(expected, abs=1e-12)


def test_correlation_compares_continuous_features():
    data = np.random.default_rng(0).normal(size=(50, 2))
    expected = abs(stats.pearsonr(data[:, 0], data[:, 1]).statistic)
    value = stability([[0], [1]], data, **BY_CORRELATION).value
    assert value == pytest.approx(expected)
    with pytest.raises(DataError, match="discrete"):
        stability([[0], [1]], data)


def nogueira_by_the_book(sets, d):
    """Stability and variance from the whole selection matrix."""
    Z = np.zeros((len(sets), d))
    for row, chosen in zip(Z, sets, strict=True):
        row[list(chosen)] = 1
    m = len(Z)
    p, k = Z.mean(axis=0), Z.sum(axis=1)
    q = k.mean() / d
    phi = 1 - np.mean(m / (m - 1) * p * (1 - p)) / (q * (1 - q))
    phi_i = (
        (Z * p).mean(axis=1)
        - k * k.mean() / d**2
        + phi / 2 * (2 * k.mean() * k / d**2 - k / d - q + 1)
    ) / (q * (1 - q))
    return phi, 4 / m**2 * np.sum((phi_i - phi_i.mean()) ** 2)


def test_nogueira_is_its_formula_on_the_selection_matrix():
    rng = np.random.default_rng(2)
    sets = [rng.choice(30, rng.integers(2, 9), replace=False) for _ in range(12)]
    value, variance = nogueira_by_the_book(sets, 30)
    result = stability(sets, method="nogueira", n_features=30, alpha=0.1)
    assert result.value == pytest.approx(value)
    reach = stats.norm.isf(0.05) * np.sqrt(variance)
    assert (result.lower, result.upper) == pytest.approx((value - reach, value + reach))


@pytest.mark.parametrize(
    ("selections", "n_features", "value"),
    [
        # p = 1/2 everywhere, s^2 = 2 * 1/4 = 1/2, chance 1/4: 1 - 2 = -1.
        ([[0, 1], [2, 3]], 4, -1.0),
        ([[1, 2]] * 3, 4, 1.0),
        ([[]] * 3, 4, 1.0),
        ([[5, 10**9]] * 2, 10**12, 1.0),  # features never selected cost nothing
    ],
)
def test_nogueira_by_hand(selections, n_features, value):
    result = stability(selections, method="nogueira", n_features=n_features)
    assert float(result) == result.value == pytest.approx(value)


@pytest.mark.parametrize(
    ("selections", "options", "error", "words"),
    [
        ([[0]], {"X": X}, DataError, "two or more"),
        ([[0], [1]], {}, ParameterError, "needs X"),
        ([[0], [4]], {"X": X}, DataError, "Feature 4 was selected"),
        ([[0], [-1]], {"X": X}, DataError, r"Selection 1 .* Got \[-1\]"),
        ([X[0] > 0] * 2, {"X": X}, DataError, "indices=True"),
        ([[0], [1]], {"X": X, "alpha": 5}, ParameterError, "alpha=0.05"),
        ([[0], [1]], {"X": X * np.nan, **BY_CORRELATION}, DataError, "0 to others is"),
        ([[0], [1]], {"X": X, "method": "yo"}, ParameterError, "or 'nogueira'"),
        ([[0], [9]], {"X": X, "method": "nogueira"}, ParameterError, "number of feat"),
        ([[0], [1]], {"X": X, "similarity": "us"}, ParameterError, "or 'su'"),
    ],
)
def test_wrong_input_is_answered_with_what_to_do(selections, options, error, words):
    with pytest.raises(error, match=words):
        stability(selections, **options)
