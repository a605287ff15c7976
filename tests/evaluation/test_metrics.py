import numpy as np
import pytest
from sklearn.datasets import load_iris

from featstream import evaluation as ev
from featstream.errors import DataError


def share_of_ordered_pairs(y, scores):
    """AUC as it is meant: a positive above a negative; ties count half."""
    positive, negative = scores[y], scores[~y]
    pairs = positive[:, None] - negative
    return np.mean((pairs > 0) + 0.5 * (pairs == 0))


@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_auc_is_the_mean_share_of_ordered_pairs(n_classes):
    """Each class against the rest; those that the test rows lack are left out."""
    rng = np.random.default_rng(0)
    y, scores = rng.integers(0, min(n_classes, 3), 60), rng.integers(0, 6, (60, 4))
    scores = scores[:, :n_classes]
    if n_classes == 2:
        scores[:, 0] = -scores[:, 1]
        assert ev.auc(y, scores) == ev.auc(y, scores[:, 1])
    expected = [share_of_ordered_pairs(y == c, scores[:, c]) for c in np.unique(y)]
    found = ev.auc(y, scores, classes=range(n_classes))
    assert found == pytest.approx(np.mean(expected))
    assert np.isnan(ev.auc([1, 1], [0.2, 0.3], classes=[0, 1]))


def test_auc_of_hard_predictions_is_the_balanced_accuracy():
    rng = np.random.default_rng(0)
    y, predicted = rng.random(50) < 0.2, rng.random(50) < 0.4
    assert ev.auc(y, predicted) == pytest.approx(ev.balanced_accuracy(y, predicted))


def test_balanced_accuracy_averages_over_the_true_classes():
    # Recalls 2/4 and 1/1; class 2 is predicted but never true.
    assert ev.balanced_accuracy([0, 0, 0, 0, 1], [0, 0, 1, 2, 1]) == pytest.approx(0.75)


def test_auc_says_which_shape_it_expects():
    with pytest.raises(DataError, match="one column for each class"):
        ev.auc([0, 1, 2], [[0.1, 0.2]] * 3)


@pytest.mark.parametrize("name", ev.CLASSIFIERS)
@pytest.mark.parametrize("n_classes", [1, 2, 3])
def test_every_named_classifier_can_be_evaluated(name, n_classes):
    if name == "svm" and n_classes == 1:
        pytest.skip("libsvm refuses a single class")
    X, y = load_iris(return_X_y=True)
    X, y = X[y < n_classes], y[y < n_classes]
    result = ev.evaluate(ev.as_classifier(name).fit(X[::2], y[::2]), X[1::2], y[1::2])
    assert set(result) == {"accuracy", "balanced_accuracy", "auc", "auc_hard"}
    assert result["accuracy"] > 0.9
    assert n_classes == 1 or result["auc"] > 0.9


def test_classifiers_have_the_parameters_that_their_names_promise():
    svm = ev.as_classifier("svm")
    assert (svm.kernel, svm.C) == ("linear", 1.0)
    j48 = ev.as_classifier("j48")
    assert (j48.confidence, j48.min_leaf, j48.subtree_raising) == (0.25, 2, True)


def test_a_classifier_may_be_given_and_is_not_touched():
    mine = ev.as_classifier("knn").fit([[0.0], [1.0]], [0, 1])
    fresh = ev.as_classifier(mine)
    assert fresh is not mine
    assert not hasattr(fresh, "classes_")
