"""C4.5 as Weka's J48 behaves, as a scikit-learn classifier.

`grow` makes the tree, `collapse` and `prune` cut it back, `flatten` turns it into
arrays. Everything uses explicit stacks: a tree may be deep.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import norm
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.preprocessing import OrdinalEncoder
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from featstream.errors import ParameterError, check_count, check_number
from featstream.estimators import estimator
from featstream.paper.j48_kernels import (
    TINY,
    TreeArrays,
    score_splits,
    tree_proba,
    xlog2x_table,
)
from featstream.protocols import BoolArray, FloatArray, IntArray

_NUMBERS: dict[str, Any] = {
    "dtype": np.float64,
    "order": "F",
    "ensure_all_finite": "allow-nan",
}


@estimator
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

    confidence: float = 0.25
    min_leaf: int = 2
    nominal: ArrayLike | None = None
    pruned: bool = True
    subtree_raising: bool = True

    def fit(self, X: Any, y: Any) -> J48:
        """Grow and prune the tree; NaN in ``X`` is a missing value."""
        check_number(
            self.confidence,
            "confidence",
            "J48",
            high=0.5,
            closed="right",
            hint="For a tree without pruning use pruned=False.",
        )
        check_count(self.min_leaf, "min_leaf", "J48")
        X, y = validate_data(self, X, y, **_NUMBERS)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        self._is_nominal = self._nominal_mask(X.shape[1])
        n_categories = np.zeros(X.shape[1], np.int64)
        if self._is_nominal.any():
            # Categories that `fit` has not seen count as missing.
            unseen = {"handle_unknown": "use_encoded_value", "unknown_value": np.nan}
            self._encoder = OrdinalEncoder(**unseen).fit(X[:, self._is_nominal])
            n_categories[self._is_nominal] = [
                max(np.count_nonzero(~np.isnan(own)), 1)
                for own in self._encoder.categories_
            ]
        data = Training(self._encode(X), codes, n_categories, self.classes_.size)
        root = grow(data, self.min_leaf)
        collapse(root)
        if self.pruned:
            prune(root, data, self.confidence, subtree_raising=self.subtree_raising)
        self._tree = flatten(root)
        self.n_nodes_ = self._tree.feature.size
        self.n_leaves_ = int(np.count_nonzero(self._tree.n_children == 0))
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Share of each class in the leaf of each row, in the order of `classes_`."""
        check_is_fitted(self)
        X = validate_data(self, X, **_NUMBERS, reset=False)
        proba: FloatArray = tree_proba(self._encode(X), self._tree)
        return proba

    def predict(self, X: Any) -> NDArray[Any]:
        """Class of each row."""
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

    def _nominal_mask(self, n_features: int) -> BoolArray:
        mask = np.zeros(n_features, np.bool_)
        if self.nominal is None:
            return mask
        if isinstance(self.nominal, str) and self.nominal == "all":
            return ~mask
        chosen = np.asarray(self.nominal)
        is_mask = chosen.dtype == np.bool_ and chosen.size == n_features
        is_list = chosen.dtype.kind in "iu" and np.isin(chosen, range(n_features)).all()
        if chosen.ndim != 1 or not (is_mask or is_list):
            raise ParameterError(
                '`nominal` of J48 must be None, "all", a mask of '
                f"{n_features} bools or indices below {n_features}. "
                f"Got {self.nominal!r}. Name the columns whose values are categories."
            )
        mask[chosen] = True
        return mask

    def _encode(self, X: FloatArray) -> FloatArray:
        """Categories as 0, 1, ...; unseen ones as missing."""
        if self._is_nominal.any():
            X = X.copy(order="F")
            X[:, self._is_nominal] = self._encoder.transform(X[:, self._is_nominal])
        return X


Rows = NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class Training:
    """The training data: categories coded 0, 1, ... and NaN where missing."""

    X: FloatArray  # column-major
    codes: IntArray
    n_categories: IntArray  # 0 for numeric features
    n_classes: int

    def count(self, rows: Rows, weights: FloatArray) -> FloatArray:
        """Weight of each class among the rows."""
        return np.bincount(self.codes[rows], weights, self.n_classes).astype(float)


@dataclass(slots=True, eq=False)
class Node:
    """A node, its training rows and their weights; a leaf has no children."""

    rows: Rows
    weights: FloatArray
    counts: FloatArray
    feature: int = -1
    threshold: float = np.nan
    children: list[Node] = field(default_factory=list)

    @property
    def n_wrong(self) -> float:
        """Weight of the rows outside the majority class."""
        return float(self.counts.sum() - self.counts.max())

    def subtree(self) -> Iterator[Node]:
        """The node and all below it, parents first."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children))


def grow(data: Training, min_leaf: float) -> Node:
    """Grow the full tree."""
    n = data.X.shape[0]
    order = np.argsort(data.X, axis=0, kind="stable").T.astype(np.int32, order="C")
    sorted_rows = order  # of all rows: a threshold is a value of the training set
    how = data.n_categories, data.n_classes, float(min_leaf), xlog2x_table(n)
    weight_of_row = np.zeros(n)
    is_kept = np.zeros(n, dtype=np.bool_)
    rows, weights = np.arange(n, dtype=np.int32), np.ones(n)
    root = Node(rows, weights, data.count(rows, weights))
    stack = [(root, order)] if is_splittable(root, min_leaf) else []
    while stack:
        node, order = stack.pop()
        weight_of_row[node.rows] = node.weights
        scores = score_splits(data.X, order, data.codes, weight_of_row, *how)
        gains, ratios, thresholds = scores
        feature = choose_feature(gains, ratios, data.n_categories, n)
        if feature < 0:
            continue
        node.feature = feature
        if data.n_categories[feature] == 0:
            column = data.X[sorted_rows[feature], feature]
            last = np.searchsorted(column, thresholds[feature], side="right") - 1
            node.threshold = float(column[last])
        for rows, weights in partition(node, data, node.rows, node.weights):
            child = Node(rows, weights, data.count(rows, weights))
            node.children.append(child)
            if is_splittable(child, min_leaf):
                is_kept[rows] = True
                stack.append((child, order[is_kept[order]].reshape(-1, rows.size)))
                is_kept[rows] = False
    return root


def is_splittable(node: Node, min_leaf: float) -> bool:
    """Whether a node has two leaves' worth of rows and more than one class."""
    return bool(node.counts.sum() - 2 * min_leaf > -TINY and node.n_wrong >= TINY)


def choose_feature(
    gains: FloatArray, ratios: FloatArray, n_categories: IntArray, n_rows: int
) -> int:
    """Feature of the best gain ratio among those of at least average gain; or -1."""
    is_allowed = gains >= 0.0
    # Features with many categories do not count in the average, unless all have many.
    is_ordinary = (n_categories == 0) | (n_categories - 0.3 * n_rows < -TINY)
    counted = is_allowed & is_ordinary if is_ordinary.any() else is_allowed
    if not counted.any():
        return -1
    enough = gains[counted].sum() / np.count_nonzero(counted) - 1e-3
    best, feature = 0.0, -1
    for j in np.flatnonzero(is_allowed & (gains >= enough)):
        if ratios[j] - best > TINY:
            best, feature = ratios[j], int(j)
    return feature


def partition(
    node: Node, data: Training, rows: Rows, weights: FloatArray
) -> list[tuple[Rows, FloatArray]]:
    """Rows and weights of each branch; rows without the value go into every branch."""
    values = data.X[rows, node.feature]
    n_branches = max(int(data.n_categories[node.feature]), 2)
    is_missing = np.isnan(values)
    branch = values
    if not data.n_categories[node.feature]:
        branch = (values - node.threshold >= TINY).astype(np.float64)
    branch[is_missing] = -1.0
    masks = [branch == b for b in range(n_branches)]
    if not is_missing.any():
        return [(rows[k], weights[k]) for k in masks]
    known = ~is_missing
    sizes = np.bincount(branch[known].astype(np.intp), weights[known], n_branches)
    total = sizes.sum()
    shares = sizes / total if total > 0.0 else np.full(n_branches, 1.0 / n_branches)
    result = []
    for share, k in zip(shares, masks, strict=True):
        also = is_missing & (share > TINY)
        own = np.append(weights[k], share * weights[also])
        result.append((np.append(rows[k], rows[also]), own))
    return result


def collapse(root: Node) -> None:
    """Cut subtrees that make as many training errors as their root alone."""
    errors: dict[int, float] = {}
    nodes = list(root.subtree())
    for node in reversed(nodes):
        below = sum(errors[id(child)] for child in node.children)
        errors[id(node)] = below if node.children else node.n_wrong
    for node in nodes:
        if node.children and errors[id(node)] >= node.n_wrong - 1e-3:
            node.children = []


def expected_errors(counts: FloatArray, confidence: float, z: float) -> float:
    """Errors to expect of a leaf; ``z`` is the normal quantile of ``1 - confidence``.

    The upper end of a confidence interval for a binomial share: exact for no error, by
    the normal approximation from one error on, linear in between.
    """
    n = float(counts.sum())
    if n < TINY:
        return 0.0
    wrong = n - float(counts.max())
    if wrong >= 1.0:
        return upper_errors(n, wrong, z)
    none = n * float(1.0 - confidence ** (1.0 / n))
    return none + wrong * (upper_errors(n, 1.0, z) - none) if wrong else none


def upper_errors(n: float, wrong: float, z: float) -> float:
    """Upper confidence limit of the number of errors among ``n``."""
    if wrong + 0.5 >= n:
        return max(n, wrong)
    share = (wrong + 0.5) / n
    spread = z * np.sqrt(share / n - share**2 / n + z**2 / (4.0 * n**2))
    return float(n * (share + z**2 / (2.0 * n) + spread) / (1.0 + z**2 / n))


def prune(
    root: Node, data: Training, confidence: float, *, subtree_raising: bool
) -> None:
    """Replace subtrees by leaves, or by their largest branch, bottom up."""
    z = float(norm.ppf(1.0 - confidence))

    def errors_of_leaf(node: Node) -> float:
        return expected_errors(node.counts, confidence, z)

    def errors_with_rows(branch: Node, rows: Rows, weights: FloatArray) -> float:
        """Expected errors of a subtree if these rows came to it."""
        errors = 0.0
        stack: list[tuple[Node, Rows, FloatArray]] = [(branch, rows, weights)]
        while stack:
            node, rows, weights = stack.pop()
            if not node.children:
                counts = data.count(rows, weights)
                errors += expected_errors(counts, confidence, z)
                continue
            parts = partition(node, data, rows, weights)
            stack.extend((c, *p) for c, p in zip(node.children, parts, strict=True))
        return errors

    stack = [(root, False)]
    while stack:
        node, children_done = stack.pop()
        if not node.children:
            continue
        if not children_done:
            stack.append((node, True))
            stack.extend((child, False) for child in node.children)
            continue
        leaves = (below for below in node.subtree() if not below.children)
        as_leaf, as_tree = errors_of_leaf(node), sum(map(errors_of_leaf, leaves))
        as_largest = np.inf
        if subtree_raising:
            largest = largest_branch(node)
            as_largest = errors_with_rows(largest, node.rows, node.weights)
        if as_leaf < as_tree + 0.1 + TINY and as_leaf < as_largest + 0.1 + TINY:
            node.children = []
        elif as_largest < as_tree + 0.1 + TINY:
            node.feature, node.threshold = largest.feature, largest.threshold
            node.children = largest.children
            assign_rows(node, data)
            stack.append((node, False))


def largest_branch(node: Node) -> Node:
    """The child with the most weight, the last of equals."""
    best = node.children[0]
    for child in node.children[1:]:
        if child.counts.sum() - best.counts.sum() > -TINY:
            best = child
    return best


def assign_rows(top: Node, data: Training) -> None:
    """Send the rows of a node down the subtree that it has been given."""
    for node in top.subtree():
        if not node.children:
            continue
        parts = partition(node, data, node.rows, node.weights)
        for child, (rows, weights) in zip(node.children, parts, strict=True):
            child.rows, child.weights = rows, weights
            child.counts = data.count(rows, weights)


def flatten(root: Node) -> TreeArrays:
    """Number the nodes level by level, so that siblings are neighbours."""
    nodes = [root]
    first_child = []
    for node in nodes:  # grows while it is walked
        first_child.append(len(nodes))
        nodes.extend(node.children)
    return TreeArrays(
        feature=np.array([n.feature for n in nodes]),
        threshold=np.array([n.threshold for n in nodes]),
        first_child=np.array(first_child),
        n_children=np.array([len(n.children) for n in nodes]),
        counts=np.array([n.counts for n in nodes]),
    )
