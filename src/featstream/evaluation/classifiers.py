"""The classifiers that judge a selection, by name."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from sklearn.base import clone
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier as DecisionTree

from featstream.errors import ParameterError, unknown_name

__all__ = ["CLASSIFIERS", "DecisionTree", "as_classifier"]


def _make_j48() -> Any:
    """J48, which belongs to the paper and is loaded when it is asked for."""
    return import_module("featstream.paper.j48").J48()


CLASSIFIERS: dict[str, Callable[[], Any]] = {
    "decision-tree": lambda: DecisionTree(random_state=0),
    "j48": _make_j48,
    "knn": lambda: KNeighborsClassifier(n_neighbors=1),
    "svm": lambda: SVC(C=1.0, kernel="linear"),
}
"""The paper's three (J48; KNN with k = 1; libsvm's linear C-SVC with C = 1), and
scikit-learn's tree (CART), which is not C4.5 and has a name of its own."""


def as_classifier(classifier: Any) -> Any:
    """A fresh classifier from a name or from a scikit-learn classifier.

    Parameters
    ----------
    classifier : str or object
        ``"j48"``, ``"knn"``, ``"svm"``, ``"decision-tree"``, or an object with
        ``fit`` and ``predict``, which is cloned.

    Returns
    -------
    object
        An unfitted scikit-learn classifier.

    Examples
    --------
    >>> as_classifier("knn")
    KNeighborsClassifier(n_neighbors=1)
    """
    if isinstance(classifier, str):
        if classifier not in CLASSIFIERS:
            raise unknown_name("classifier", classifier, CLASSIFIERS)
        return CLASSIFIERS[classifier]()
    if isinstance(classifier, type) or not hasattr(classifier, "predict"):
        raise ParameterError(
            "A classifier must be a name or a scikit-learn classifier. "
            f"Got {classifier!r}. Known names: {', '.join(sorted(CLASSIFIERS))}."
        )
    return clone(classifier)
