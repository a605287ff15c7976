"""The nearest neighbour against a loop over all rows."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.utils.estimator_checks import check_estimator

from featstream.evaluation import NearestNeighbour


def nearest_by_loop(train, classes, test):
    """The class of the first of the nearest rows, for each test row."""
    predicted = []
    for row in test:
        distances = [sum((row - other) ** 2) for other in train]
        least = min(distances)
        first = next(i for i, d in enumerate(distances) if d <= least * (1 + 1e-9))
        predicted.append(int(classes[first]))
    return predicted


def problem(seed):
    """Few values, so that many rows are equally near: whole numbers and others."""
    rng = np.random.default_rng(seed)
    n_train, n_test, n_columns = rng.integers((4, 1, 1), (50, 25, 41))
    train = rng.integers(0, 3, (n_train, n_columns)).astype(float)
    test = rng.integers(0, 3, (n_test, n_columns)).astype(float)
    if seed % 3 == 1:  # the same ties in units that are no binary fractions
        train, test = train / 3 + 0.1, test / 3 + 0.1
    if seed % 3 == 2:
        train, test = np.round(train - rng.random(), 1), np.round(test, 1)
    classes = rng.integers(0, 3, n_train)
    classes[:2] = [0, 1]
    return train, classes, test


@pytest.mark.parametrize("seed", range(0, 300, 50))
def test_the_first_of_the_nearest_rows_wins(seed):
    n_ties = 0
    for number in range(seed, seed + 50):
        train, classes, test = problem(number)
        expected = nearest_by_loop(train, classes, test)
        n_ties += expected != nearest_by_loop(train[::-1], classes[::-1], test)
        for form in (np.asarray, sparse.csr_array, sparse.csc_array):
            model = NearestNeighbour().fit(form(train), classes)
            assert model.predict(form(test)).tolist() == expected
    assert n_ties >= 10  # the rule decides


def test_far_rows_are_compared_as_exactly_as_near_ones():
    """Of two rows 1e9 away one is nearer by 1e-7, far below an error of a product."""
    train = np.array([[1e9, 0.5000001], [1e9, 0.5]])
    assert NearestNeighbour().fit(train, [0, 1]).predict([[1e9, 0.0]]).tolist() == [1]


def test_columns_in_another_order_change_nothing():
    train, classes, test = problem(1)
    model = NearestNeighbour().fit(train, classes)
    turned = NearestNeighbour().fit(train[:, ::-1], classes)
    assert model.predict(test).tolist() == turned.predict(test[:, ::-1]).tolist()


def test_probabilities_are_those_of_one_neighbour():
    model = NearestNeighbour().fit([[0], [2], [2]], ["a", "b", "c"])
    assert model.predict_proba([[1], [2]]).tolist() == [[1, 0, 0], [0, 1, 0]]


def test_it_is_an_estimator_of_scikit_learn():
    check_estimator(NearestNeighbour())
