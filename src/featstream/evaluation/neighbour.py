"""The nearest neighbour, with a rule for neighbours that are equally near.

On a few discrete features most rows have many nearest neighbours, often of several
classes, and the one that is taken decides the score. `KNeighborsClassifier` takes any
of them: which one depends on the search tree, on the number of columns and on the
storage. Here it is the first training row.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from featstream.protocols import FloatArray, IntArray

_MOST_DISTANCES = 1 << 22
"""Distances, or differences of values, that are held at a time."""

_LARGEST_EXACT = 2.0**51
"""Products and sums of whole numbers are exact in float64 while they are below this."""

_EQUAL = 1.0 + 1e-9
"""Squared distances of no more than this times the least are equal to it."""


class NearestNeighbour(ClassifierMixin, BaseEstimator):
    """The class of the nearest training row; of equally near rows, the first.

    Distances are Euclidean. Two are equal if their squares differ by less than a share
    of 1e-9: that is more than rounding leaves of distances that are equal on paper. So
    dense and sparse data, any number of columns and any unit give the same answer.

    Examples
    --------
    >>> model = NearestNeighbour().fit([[0], [2], [2]], ["a", "b", "c"])
    >>> model.predict([[1], [2]])
    array(['a', 'b'], dtype='<U1')
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Remember the training rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,)
            Their classes.
        """
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
        check_classification_targets(y)
        self.classes_, self._codes = np.unique(y, return_inverse=True)
        self._rows = X
        self._squared_norms = _squared_norms(X)
        self._is_whole = _is_whole(X)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of the nearest training row, for each row of ``X``."""
        nearest = self._find_nearest(X)
        predicted: NDArray[Any] = self.classes_[self._codes[nearest]]
        return predicted

    def predict_proba(self, X: Any) -> FloatArray:
        """1 for the predicted class, and 0 for the others."""
        nearest = self._find_nearest(X)
        return np.eye(self.classes_.size)[self._codes[nearest]]

    def _find_nearest(self, X: Any) -> IntArray:
        """Index of the nearest training row, for each row of ``X``."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        norms = _squared_norms(X)
        largest = 2 * (norms.max() + self._squared_norms.max())
        is_exact = self._is_whole and _is_whole(X) and largest < _LARGEST_EXACT
        nearest = np.empty(X.shape[0], np.int64)
        step = max(1, _MOST_DISTANCES // self._rows.shape[0])
        for begin in range(0, X.shape[0], step):
            block = slice(begin, min(begin + step, X.shape[0]))
            distances = euclidean_distances(
                X[block],
                self._rows,
                X_norm_squared=norms[block],
                Y_norm_squared=self._squared_norms,
                squared=True,
            )
            least = distances.min(axis=1)
            nearest[block] = (distances <= _EQUAL * least[:, None]).argmax(axis=1)
            if is_exact:
                continue
            # The rounding error of the product grows with the norms, not the distance.
            error = 4 * (X.shape[1] + 4) * np.finfo(np.float64).eps
            slack = error * (norms[block] + self._squared_norms.max())
            may_be_nearest = distances <= (_EQUAL * (least + 2 * slack))[:, None]
            for i in np.flatnonzero(may_be_nearest.sum(axis=1) > 1):
                candidates = may_be_nearest[i].nonzero()[0]
                nearest[begin + i] = self._compare(X[[begin + i]], candidates)
        return nearest

    def _compare(self, row: Any, candidates: IntArray) -> int:
        """The first of the nearest among some training rows, by differences."""
        distances = np.empty(candidates.size)
        values = _dense(row)
        step = max(1, _MOST_DISTANCES // row.shape[1])
        for begin in range(0, candidates.size, step):
            block = slice(begin, begin + step)
            differences = _dense(self._rows[candidates[block]]) - values
            distances[block] = (differences**2).sum(axis=1)
        is_nearest = distances <= _EQUAL * distances.min()
        return int(candidates[is_nearest.argmax()])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _squared_norms(X: Any) -> FloatArray:
    squares = X.multiply(X) if sparse.issparse(X) else X**2
    return np.asarray(squares.sum(axis=1), np.float64).ravel()


def _is_whole(X: Any) -> bool:
    values = X.data if sparse.issparse(X) else X
    return bool((values == np.rint(values)).all())


def _dense(X: Any) -> FloatArray:
    return np.asarray(X.toarray() if sparse.issparse(X) else X)
