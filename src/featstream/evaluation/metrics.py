"""Scores of predictions, by scikit-learn: accuracy, balanced accuracy, AUC."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn import metrics as sk

from featstream.errors import DataError
from featstream.protocols import FloatArray


def accuracy(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """Share of rows predicted right.

    >>> accuracy([0, 0, 0, 1], [0, 0, 0, 0])
    0.75
    """
    return float(sk.accuracy_score(y_true, y_pred))


def balanced_accuracy(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """Mean over the classes of the share of their rows predicted right.

    For two classes it equals the `auc` of hard predictions, and that is what the
    SAOLA paper's AUC is: on its balanced sets, dexter and gisette, it equals the
    accuracy for all three classifiers (Tables 14-16).

    >>> balanced_accuracy([0, 0, 0, 1], [0, 0, 0, 0])
    0.5
    """
    classes = np.unique(y_true)  # predictions may hold others
    return float(sk.recall_score(y_true, y_pred, labels=classes, average="macro"))


def auc(
    y_true: ArrayLike, scores: ArrayLike, classes: ArrayLike | None = None
) -> float:
    """Area under the ROC curve; with more than two classes, one-vs-rest mean.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True classes.
    scores : array-like of shape (n_samples,) or (n_samples, n_classes)
        The higher, the likelier the class; one column means that of the last
        of two classes.
    classes : array-like of shape (n_classes,), optional
        Classes of the columns of `scores`, sorted; by default those in `y_true`.

    Returns
    -------
    float
        Between 0 and 1. Classes that `y_true` lacks, or that it has alone, have
        no curve and are left out; NaN if none is left.

    Examples
    --------
    >>> auc([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    0.75
    """
    truth, table = np.asarray(y_true), np.asarray(scores, np.float64)
    labels = np.unique(truth) if classes is None else np.asarray(classes)
    if table.ndim == 1:
        table = np.column_stack([-table, table])
    if table.shape != (truth.size, labels.size):
        raise DataError(
            f"`scores` has shape {np.shape(scores)} for {truth.size} samples and "
            f"{labels.size} classes. Give one column for each class, in sorted order, "
            "or one score for two classes."
        )
    # With two classes both curves have the same area.
    columns = [1] if labels.size == 2 else range(labels.size)
    areas = [
        sk.roc_auc_score(truth == labels[c], table[:, c])
        for c in columns
        if 0 < np.count_nonzero(truth == labels[c]) < truth.size
    ]
    return float(np.mean(areas)) if areas else float("nan")


def class_scores(classifier: Any, X: Any) -> FloatArray:
    """Scores that `auc` understands, from any fitted scikit-learn classifier.

    Probabilities where the classifier has them, else its decision function; of shape
    (n_samples, n_classes) or (n_samples,).

    >>> from sklearn.svm import SVC
    >>> svm = SVC(kernel="linear").fit([[0], [1], [3], [4]], [0, 0, 1, 1])
    >>> class_scores(svm, [[2]]).shape
    (1,)
    """
    if hasattr(classifier, "predict_proba"):
        return np.asarray(classifier.predict_proba(X), np.float64)
    return np.asarray(classifier.decision_function(X), np.float64)


def evaluate(classifier: Any, X: Any, y: ArrayLike) -> dict[str, float]:
    """All metrics of a fitted classifier on test rows.

    ``auc_hard`` is the AUC of the predictions taken as scores, which is what the
    SAOLA paper reports.

    >>> from featstream.evaluation import as_classifier
    >>> knn = as_classifier("knn").fit([[0], [1], [8], [9]], ["a", "a", "b", "b"])
    >>> evaluate(knn, [[2], [7]], ["a", "b"])
    {'accuracy': 1.0, 'balanced_accuracy': 1.0, 'auc': 1.0, 'auc_hard': 1.0}
    """
    predicted = classifier.predict(X)
    classes = classifier.classes_
    hard = (predicted[:, None] == classes).astype(np.float64)
    scores = class_scores(classifier, X) if classes.size > 1 else hard
    return {
        "accuracy": accuracy(y, predicted),
        "balanced_accuracy": balanced_accuracy(y, predicted),
        "auc": auc(y, scores, classes),
        "auc_hard": auc(y, hard, classes),
    }
