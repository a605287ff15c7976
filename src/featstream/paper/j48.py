"""C4.5 as Weka's J48 behaves, as a scikit-learn classifier."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from featstream.errors import ParameterError
from featstream.paper.c45 import Training, collapse, flatten, grow, prune
from featstream.paper.j48_kernels import TINY, tree_proba
from featstream.protocols import BoolArray, FloatArray

__all__ = ["J48"]


class J48(ClassifierMixin, BaseEstimator):
    """A C4.5 decision tree that behaves like Weka's J48.

    Splits maximise the gain ratio among the features of at least average
    information gain; numeric features split in two at a value of the training
    data, nominal ones into one branch for each category. The tree is then
    collapsed and pruned by expected errors.

    Parameters
    ----------
    confidence : float, default=0.25
        Confidence factor of pruning, in (0, 0.5]; smaller prunes more.
    min_leaf : int, default=2
        At least two branches of every split must hold this many rows.
    nominal : None, "all", array of bool or array of int, default=None
        Features whose values are categories: a mask, or their indices. By
        default all features are numeric, integers too, as in an ARFF file that
        declares them so.
    pruned : bool, default=True
        Whether to prune at all.
    subtree_raising : bool, default=True
        Whether pruning may replace a node by its largest branch.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class labels.
    n_leaves_, n_nodes_ : int
        Number of leaves, and of all nodes: Weka's "size of the tree".
    n_features_in_ : int
        Number of features seen in `fit`.

    Notes
    -----
    Missing values are NaN; rows that lack the value of a split go down all its
    branches with fractional weights. A category that `fit` has not seen counts
    as missing. As in Weka, values closer than 1e-5 are never separated and
    numbers closer than 1e-6 are equal: scale data that live below that. Where
    classes tie, the first in `classes_` wins.

    References
    ----------
    .. [1] Quinlan, J. R. (1993). C4.5: Programs for Machine Learning.
    .. [2] Quinlan, J. R. (1996). Improved use of continuous attributes in
       C4.5. Journal of Artificial Intelligence Research 4, 77-90.

    Examples
    --------
    >>> from featstream.evaluation import J48
    >>> X = [[1.0], [2.0], [3.0], [4.0]]
    >>> tree = J48().fit(X, ["no", "no", "yes", "yes"])
    >>> tree.n_nodes_
    3
    >>> [str(label) for label in tree.predict([[2.0], [2.1]])]
    ['no', 'yes']
    """

    def __init__(
        self,
        *,
        confidence: float = 0.25,
        min_leaf: int = 2,
        nominal: ArrayLike | None = None,
        pruned: bool = True,
        subtree_raising: bool = True,
    ) -> None:
        self.confidence = confidence
        self.min_leaf = min_leaf
        self.nominal = nominal
        self.pruned = pruned
        self.subtree_raising = subtree_raising

    def fit(self, X: Any, y: Any) -> J48:
        """Grow and prune the tree.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows; NaN is a missing value.
        y : array-like of shape (n_samples,)
            Their classes.

        Returns
        -------
        J48
            The fitted classifier.
        """
        self._check_parameters()
        X, y = validate_data(
            self, X, y, dtype=np.float64, order="F", ensure_all_finite="allow-nan"
        )
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        is_nominal = self._nominal_mask(X.shape[1])
        self._categories = {
            int(j): np.unique(X[~np.isnan(X[:, j]), j])
            for j in np.flatnonzero(is_nominal)
        }
        n_categories = np.zeros(X.shape[1], np.int64)
        for j, categories in self._categories.items():
            n_categories[j] = max(categories.size, 1)
        data = Training(self._encode(X), codes, n_categories, self.classes_.size)
        root = grow(data, self.min_leaf)
        collapse(root)
        if self.pruned:
            prune(root, data, self.confidence, subtree_raising=self.subtree_raising)
        self._tree = flatten(root, n_categories)
        self.n_nodes_ = self._tree.feature.size
        self.n_leaves_ = int(np.count_nonzero(self._tree.n_children == 0))
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Share of each class where the rows end.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to classify.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Shares, in the order of `classes_`.
        """
        check_is_fitted(self)
        X = validate_data(
            self,
            X,
            dtype=np.float64,
            order="F",
            ensure_all_finite="allow-nan",
            reset=False,
        )
        proba: FloatArray = tree_proba(self._encode(X), self._tree)
        return proba

    def predict(self, X: Any) -> NDArray[Any]:
        """Class of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to classify.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels out of `classes_`.
        """
        proba = self.predict_proba(X)
        best = np.full(proba.shape[0], -1.0)
        winner = np.zeros(proba.shape[0], np.intp)
        for c in range(proba.shape[1]):
            is_better = proba[:, c] - best > TINY
            best[is_better], winner[is_better] = proba[is_better, c], c
        labels: NDArray[Any] = self.classes_[winner]
        return labels

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _check_parameters(self) -> None:
        if not (
            isinstance(self.confidence, numbers.Real) and 0 < self.confidence <= 0.5
        ):
            raise ParameterError(
                "`confidence` of J48 must be a float in (0, 0.5]. "
                f"Got {self.confidence!r}. For a tree without pruning use pruned=False."
            )
        if not (isinstance(self.min_leaf, numbers.Integral) and self.min_leaf >= 1):
            raise ParameterError(
                f"`min_leaf` of J48 must be an integer >= 1. Got {self.min_leaf!r}. "
                "C4.5 uses 2."
            )

    def _nominal_mask(self, n_features: int) -> BoolArray:
        mask = np.zeros(n_features, np.bool_)
        if self.nominal is None:
            return mask
        if isinstance(self.nominal, str) and self.nominal == "all":
            return ~mask
        chosen = np.asarray(self.nominal)
        fits = chosen.ndim == 1 and (
            (chosen.dtype == np.bool_ and chosen.size == n_features)
            or (
                chosen.dtype.kind in "iu"
                and bool(np.all((chosen >= 0) & (chosen < n_features)))
            )
        )
        if not fits:
            raise ParameterError(
                '`nominal` of J48 must be None, "all", a mask of '
                f"{n_features} bools or indices below {n_features}. "
                f"Got {self.nominal!r}. Name the columns whose values are categories."
            )
        mask[chosen] = True
        return mask

    def _encode(self, X: FloatArray) -> FloatArray:
        """Categories as 0, 1, ...; unseen ones as missing."""
        if not self._categories:
            return X
        X = X.copy(order="F")
        for j, categories in self._categories.items():
            column = X[:, j]
            code = np.searchsorted(categories, column)
            known = np.isin(column, categories)
            X[:, j] = np.where(known, code, np.nan)
        return X
