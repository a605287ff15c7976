"""OFS: online selection where the rows arrive, not the features.

Weights have one row per feature, one column per class. Only the features with weights
and those of the newcomer are visited: time is in stored entries, never in features.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_random_state
from sklearn.utils.random import sample_without_replacement
from sklearn.utils.validation import validate_data

from featstream.errors import (
    DataError,
    NotStartedError,
    ParameterError,
    check_choice,
    check_count,
    check_number,
    printable,
)
from featstream.estimators import Selector, estimator, whole_or_not_at_all
from featstream.jit import inner, kernel
from featstream.measures.inputs import as_labels
from featstream.measures.labels import check_labels
from featstream.protocols import BoolArray, FloatArray, IntArray
from featstream.runs.arrays import Declared, check_arrays, join_text, split_text
from featstream.runs.folder import Saved
from featstream.runs.session import Savable
from featstream.runs.state import target_arrays, target_from

_KEYS = 624  # the words of the state of a Mersenne twister


@estimator
class OFS(Savable, Selector):
    """Online feature selection: a linear model of few weights learns row by row.

    All features are known; samples arrive one by one. A sample with a loss moves
    the weights by a step of gradient descent, they are drawn back into a ball, and
    all but the largest ``n_features`` are set to zero.

    Parameters
    ----------
    n_features : int, default=10
        Number of weights that are kept.
    step_size : float, default=0.2
        Length of a step.
    regularization : float, default=0.01
        Weights shrink by this times ``step_size`` at every sample, and are drawn
        into a ball of radius ``1 / sqrt(regularization)``. Full information only.
    information : {"full", "partial"}, default="full"
        Whether all values of a sample are seen, or of ``n_features`` features only:
        those with weights, or, to explore, random ones.
    exploration : float, default=0.2
        How often random features are seen. Partial information only.
    radius : float, default=10.0
        Radius of the ball. Partial information only.
    random_state : int, RandomState or None, default=None
        For the exploration. Partial information only.

    Attributes
    ----------
    selected_ : ndarray of int
        Features with weights, increasing.
    scores_ : ndarray of float
        Absolute weight of each; with several classes, the norm of its weights.
    support_ : ndarray of bool of shape (n_features,)
        Whether each feature has a weight.
    coef_ : ndarray of shape (1 or n_classes, n_features)
        The weights.
    classes_ : ndarray
        The classes.
    n_seen_, n_mistakes_ : int
        Samples learned from, and how many of them were misclassified before that.
    n_features_in_ : int
        Number of features.

    Notes
    -----
    ``fit`` makes one pass over the rows in their order, ``partial_fit`` continues
    with more of them. The hinge loss and the steps are those of Algorithms 2 and 3 in
    [1]_. With more than two classes there is a model for each class against the
    others, and the features kept are those whose weights have the largest norm.
    Features should have similar scales. Rows may be sparse; the time is then in
    their stored entries.

    There is no stream of features here, and so no `consume` and no trace. `save`
    writes what has been learned (weights, counters, the state of the random
    numbers), not the rows; after `featstream.resume`, further calls of
    `partial_fit` learn what they would have learned without the interruption, to
    the bit. A ``random_state`` that is neither None nor a number cannot be saved.

    References
    ----------
    .. [1] J. Wang, P. Zhao, S. C. H. Hoi, R. Jin: Online Feature Selection and Its
       Applications. IEEE TKDE 26(3), 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from featstream import OFS
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 50))
    >>> y = X[:, 7] - X[:, 30] > 0
    >>> selector = OFS(n_features=2).fit(X, y)
    >>> selector.selected_
    array([ 7, 30])

    Rows that come another day:

    >>> import tempfile, featstream
    >>> run = tempfile.mkdtemp()
    >>> _ = OFS(n_features=2).partial_fit(X[:900], y[:900]).save(run)
    >>> later = featstream.resume(run).partial_fit(X[900:], y[900:])
    >>> np.array_equal(later.coef_, selector.coef_)
    True
    """

    n_features: int = field(default=10, kw_only=False)
    step_size: float = 0.2
    regularization: float = 0.01
    information: Literal["full", "partial"] = "full"
    exploration: float = 0.2
    radius: float = 10.0
    random_state: Any = None

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from all rows, in their order, once.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            The samples.
        y : array of shape (n_samples,)
            The class of each sample.
        """
        with whole_or_not_at_all(self):
            self.__dict__.pop("_model", None)
            self._run = None
            return self.partial_fit(X, y)

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None) -> Self:
        """Learn from more rows.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            The next samples.
        y : array of shape (n_samples,)
            The class of each sample.
        classes : array, optional
            All classes, if the first rows do not show them; for the first call.
        """
        is_first = not hasattr(self, "_model")
        if y is None:
            as_labels(y)
        rows = validate_data(
            self, X, accept_sparse="csr", dtype=np.float64, reset=is_first
        )
        if is_first:
            self._start(y if classes is None else classes)
        stored = sparse.csr_array(rows)
        stored.sum_duplicates()
        indptr, columns = (a.astype(np.int64) for a in (stored.indptr, stored.indices))
        signs = self._signs(y, stored.shape[0])
        learned = self._model, self._rule, *self._explore(stored.shape[0])
        learn_rows(indptr, columns, stored.data, signs, *learned)
        return self

    def _start(self, y: Any) -> None:
        """Check the parameters and begin without weights."""
        owner = type(self).__name__
        limit = check_count(self.n_features, "n_features", owner)
        check_choice(self.information, "information", ("full", "partial"), owner)
        step = check_number(self.step_size, "step_size", owner)
        decay, chance = 1.0, -1.0
        if self.information == "full":
            price = check_number(self.regularization, "regularization", owner)
            decay, radius = 1.0 - price * step, 1.0 / float(np.sqrt(price))
            if price * step >= 1:
                raise ParameterError(
                    f"`regularization` times `step_size` of {owner} must be below 1. "
                    f"Got {price * step:g}."
                )
        else:
            most: Any = {"high": 1, "closed": "right"}
            chance = check_number(self.exploration, "exploration", owner, **most)
            radius = check_number(self.radius, "radius", owner)
        self._rule = RowRule(limit, step, decay, radius, chance)
        self._rng = check_random_state(self.random_state)
        labels = as_labels(y)
        check_labels(labels)
        self.classes_ = labels.classes
        d, k = self.n_features_in_, self.classes_.size
        self._model = RowModel(
            weights=np.zeros((d, 1 if k == 2 else k)),
            support=np.zeros(d, np.int64),
            is_in=np.zeros(d, np.bool_),
            counts=np.zeros(3, np.int64),
        )

    def _signs(self, y: Any, n_rows: int) -> FloatArray:
        """Plus one for the class of a column, minus one for the others."""
        labels = np.asarray(y).ravel()
        if labels.size != n_rows:
            raise DataError(
                f"X has {n_rows} samples and y has {labels.size} labels. Every sample "
                "needs one label."
            )
        codes = np.searchsorted(self.classes_, labels)
        codes = np.minimum(codes, self.classes_.size - 1)
        is_new = self.classes_[codes] != labels
        if is_new.any():
            raise DataError(
                f"The class {printable(labels[is_new.argmax()])} was not among the "
                "first rows. Pass all classes to the first partial_fit."
            )
        is_own = np.equal.outer(codes, np.arange(self.classes_.size))
        if self.classes_.size == 2:
            is_own = np.ascontiguousarray(is_own[:, 1:])
        return np.where(is_own, 1.0, -1.0)

    def _explore(self, n_rows: int) -> tuple[IntArray, IntArray]:
        """The rows of which random features are seen, and these features."""
        if self.information == "full":
            return np.empty(0, np.int64), np.empty((0, 0), np.int64)
        d = self.n_features_in_
        size = min(self._rule.n_kept, d)
        is_explored = self._rng.uniform(size=n_rows) < self._rule.exploration
        explored = np.where(is_explored, np.cumsum(is_explored) - 1, -1)
        # By rejection the cost is that of the draw, not of all features.
        method = "tracking_selection" if 2 * size <= d else "auto"
        seen = [
            sample_without_replacement(d, size, method=method, random_state=self._rng)
            for _ in range(is_explored.sum())
        ]
        return explored, np.array(seen, np.int64).reshape(-1, size)

    @property
    def selected_(self) -> IntArray:
        """Features with weights, increasing."""
        model = self._fitted()
        return np.sort(model.support[: model.counts[0]])

    @property
    def scores_(self) -> FloatArray:
        """Size of their weights, in the order of `selected_`."""
        norms = np.linalg.norm(self._fitted().weights[self.selected_], axis=1)
        return np.asarray(norms)

    @property
    def support_(self) -> BoolArray:
        """Whether each feature has a weight."""
        return self._fitted().is_in.copy()

    @property
    def coef_(self) -> FloatArray:
        """The weights."""
        return self._fitted().weights.T.copy()

    @property
    def n_seen_(self) -> int:
        """Number of samples learned from."""
        return int(self._fitted().counts[1])

    @property
    def n_mistakes_(self) -> int:
        """How many samples were misclassified before they were learned from."""
        return int(self._fitted().counts[2])

    def _facts(self) -> dict[str, Any]:
        model = self._fitted()
        return {
            "arrives": "rows",
            "n_seen": int(model.counts[1]),
            "n_features": self.n_features_in_,
            "n_kept": int(model.counts[0]),
        }

    def _arrays(self) -> dict[str, NDArray[Any]]:
        model = self._fitted()
        support = model.support[: model.counts[0]]
        text, ends = join_text(list(getattr(self, "feature_names_in_", ())))
        arrays = {
            **target_arrays(self.classes_),
            "support": support,
            "weights": model.weights[support],
            "counts": model.counts,
            "names": text,
            "name_ends": ends,
        }
        if self.information == "partial":
            _, keys, place, has_normal, normal = self._rng.get_state()
            arrays["random_keys"] = keys
            arrays["random_place"] = np.array([place, has_normal])
            arrays["random_normal"] = np.array([normal])
        return arrays

    def _restore_state(self, saved: Saved) -> None:
        facts, arrays = saved.description, saved.arrays
        self.n_features_in_ = d = facts["n_features"]
        self._start(target_from(arrays))
        model = self._model
        table = {
            "counts": Declared(np.int64, (3,), 0),
            "support": Declared(np.int64, ("n_kept",), 0, d),
            "weights": Declared(np.float64, ("n_kept", model.weights.shape[1])),
            "names": Declared(np.uint8, (None,)),
            "name_ends": Declared(np.int64, (None,)),
        }
        found = check_arrays(arrays, table)
        support, model.counts[:] = found["support"], found["counts"]
        model.counts[0] = support.size
        model.support[: support.size] = support
        model.weights[support], model.is_in[support] = found["weights"], True
        if self.information == "partial":
            table = {
                "random_keys": Declared(np.uint32, (_KEYS,)),
                "random_place": Declared(np.int64, (2,), 0, _KEYS + 1),
                "random_normal": Declared(np.float64, (1,)),
            }
            keys, place, normal = check_arrays(arrays, table).values()
            state = "MT19937", keys, *place.tolist(), float(normal[0])
            self._rng = np.random.RandomState()
            self._rng.set_state(state)
        names = split_text(found["names"], found["name_ends"])
        if names:
            self.feature_names_in_ = np.array(names, dtype=object)

    def _fitted(self) -> RowModel:
        if not hasattr(self, "_model"):
            raise NotStartedError(
                "This OFS has seen no samples. Call fit(X, y) or partial_fit(X, y)."
            )
        return self._model

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_model")

    def _get_support_mask(self) -> BoolArray:
        return self.support_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        tags.non_deterministic = self.information == "partial"
        return tags


class RowModel(NamedTuple):
    """The weights, and which features have any.

    ``support[:counts[0]]`` are the features with weights, ``is_in`` says the same by
    feature; ``counts[1]`` are the rows seen and ``counts[2]`` the mistakes.
    """

    weights: np.ndarray
    support: np.ndarray
    is_in: np.ndarray
    counts: np.ndarray


class RowRule(NamedTuple):
    """The options of the algorithm, as the kernel reads them.

    With ``exploration`` below zero all values of a row are seen; otherwise those of
    the features with weights, or of ``n_kept`` random ones.
    """

    n_kept: int
    step: float
    decay: float
    radius: float
    exploration: float


@inner(allocates=True)
def _truncate(model, candidates, n, rule):
    """Keep the largest of the candidates; of equals, those that come first."""
    sizes = np.zeros(n)
    for c in range(n):
        for k in range(model.weights.shape[1]):
            weight = model.weights[candidates[c], k]
            sizes[c] += weight * weight
    least, n_spare = 0.0, n
    if n > rule.n_kept:
        least = np.partition(sizes, n - rule.n_kept)[n - rule.n_kept]
        n_spare = rule.n_kept
        for c in range(n):
            n_spare -= sizes[c] > least
    size = 0
    for c in range(n):
        feature = candidates[c]
        is_kept = sizes[c] > least
        if sizes[c] == least and sizes[c] > 0.0 and n_spare > 0:
            is_kept = True
            n_spare -= 1
        model.is_in[feature] = is_kept
        if is_kept:
            model.support[size] = feature
            size += 1
        else:
            model.weights[feature] = 0.0
    model.counts[0] = size


@inner(allocates=True)
def _project(model, candidates, n, radius):
    """Shorten the weights of each class to the radius."""
    for k in range(model.weights.shape[1]):
        square = 0.0
        for c in range(n):
            square += model.weights[candidates[c], k] ** 2
        if square > radius * radius:
            for c in range(n):
                model.weights[candidates[c], k] *= radius / np.sqrt(square)


@inner(allocates=True)
def _is_mistaken(margins, signs):
    """Whether the row is put into another class than its own."""
    if margins.size == 1:
        return margins[0] * signs[0] <= 0.0
    best = np.argmax(margins)
    return signs[best] < 0.0 or not margins[best] > 0.0


@kernel(allocates=True)
def learn_rows(indptr, columns, values, signs, model, rule, explored, seen):
    """Learn from rows in their order.

    ``explored[i]`` is the row of ``seen`` that holds the features looked at in row
    ``i``, or -1 for those with weights; both are empty if all values are seen.
    """
    weights = model.weights
    n_features, n_classes = weights.shape
    is_partial = rule.exploration >= 0.0
    margins = np.empty(n_classes)
    candidates = np.empty(n_features, np.int64)
    is_visible = np.zeros(n_features if is_partial else 0, np.bool_)
    for i in range(indptr.size - 1):
        if is_partial and explored[i] >= 0:
            for c in range(seen.shape[1]):
                is_visible[seen[explored[i], c]] = True
        margins[:] = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            j = columns[e]
            if not is_partial or explored[i] < 0 or is_visible[j]:
                for k in range(n_classes):
                    margins[k] += weights[j, k] * values[e]
        model.counts[1] += 1
        model.counts[2] += _is_mistaken(margins, signs[i])
        n = model.counts[0]
        for c in range(n):
            candidates[c] = model.support[c]
            for k in range(n_classes):
                weights[candidates[c], k] *= rule.decay
        has_loss = False
        for k in range(n_classes):
            has_loss = has_loss or margins[k] * signs[i, k] <= 1.0
        if has_loss:
            for e in range(indptr[i], indptr[i + 1]):
                j, value = columns[e], values[e]
                if is_partial:
                    if (explored[i] >= 0 and not is_visible[j]) or (
                        explored[i] < 0 and not model.is_in[j]
                    ):
                        continue
                    chance = rule.exploration * seen.shape[1] / n_features
                    if model.is_in[j]:
                        chance += 1.0 - rule.exploration
                    value /= chance
                if value == 0.0:
                    continue
                for k in range(n_classes):
                    if margins[k] * signs[i, k] <= 1.0:
                        weights[j, k] += rule.step * signs[i, k] * value
                if not model.is_in[j]:
                    candidates[n] = j
                    n += 1
            _project(model, candidates, n, rule.radius)
            _truncate(model, np.sort(candidates[:n]), n, rule)
        if is_partial and explored[i] >= 0:
            for c in range(seen.shape[1]):
                is_visible[seen[explored[i], c]] = False
