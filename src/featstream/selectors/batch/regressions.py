"""Regressions with few weights: lasso, group lassos, and least angles (SPFS-LAR)."""

from __future__ import annotations

import warnings
from dataclasses import field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit
from sklearn.exceptions import ConvergenceWarning

from featstream.errors import check_number
from featstream.estimators import estimator
from featstream.measures.inputs import Labels
from featstream.protocols import BoolArray, Fate, FloatArray, IntArray
from featstream.selectors import numeric
from featstream.selectors.batch.base import (
    BatchGroupSelector,
    Selection,
    StandardSelector,
)
from featstream.selectors.result import TraceLevel
from featstream.selectors.stream import Stream

_MOST_STEPS = 20_000
_MOST_ROUNDS = 100

_NEGLIGIBLE = 1e-9
"""What is left of a column, or of the target, by rounding alone."""


class _LogisticSelector(StandardSelector):
    """Base of the three: the features with weights in a penalised regression.

    Parameters
    ----------
    penalty : float, default=0.05
        Price of a weight, in units of the mean loss per sample. A feature can have a
        weight if its covariance with what the others leave of the class, which is
        between 0 and 1, is above this.
    group_penalty : float, default=0.05
        Price of a group, times the square root of its size, in units of the mean loss
        per sample.
    tol : float, default=1e-6
        Precision of the slopes. Weights below it are zero.

    Attributes
    ----------
    selected_ : ndarray of int
        The features with a weight, the largest weight first.
    """

    penalty = 0.0
    group_penalty = 0.0
    tol: float

    def _begin(self, stream: Stream) -> None:
        super()._begin(stream)
        for name, value in self.get_params(deep=False).items():
            if name != "trace":
                check_number(value, name, type(self).__name__)

    def _choose(self, X: Any, labels: Labels, relevance: FloatArray) -> Selection:
        n, p = X.shape
        groups = np.zeros(p, np.int64)
        if isinstance(self, BatchGroupSelector):
            groups = self._group_numbers()
        columns = numeric.StandardColumns(X, np.sqrt(n))
        penalty = Penalty(groups, self.penalty, self.group_penalty)
        squares: FloatArray = np.zeros(p)
        for indicator in numeric.class_indicators(labels).T:
            signs = 2.0 * indicator - 1.0
            weights, _, has_converged = fit_logistic(columns, signs, penalty, self.tol)
            if not has_converged:
                warnings.warn(
                    f"{type(self).__name__} did not reach tol={self.tol:g}: the "
                    "selection is approximate. Raise tol or the penalty.",
                    ConvergenceWarning,
                    stacklevel=2,
                )
            squares += weights**2
        sizes = np.where(squares > self.tol**2, np.sqrt(squares), 0.0)
        order = numeric.largest(np.asarray(np.round(sizes, 6)), p)
        return Selection(order, relevance, fate=np.full(p, Fate.IRRELEVANT, np.uint8))

    def _why_irrelevant(self, relevance: str) -> str:
        return f"the penalty leaves it no weight; {relevance}"


@estimator
class LassoSelector(_LogisticSelector):
    """The features of a logistic regression with a lasso penalty.

    See Also
    --------
    SparseGroupLassoSelector : With groups; its notes apply here too.

    References
    ----------
    .. [1] R. Tibshirani: Regression Shrinkage and Selection via the Lasso. Journal of
       the Royal Statistical Society B 58(1), 1996.

    Examples
    --------
    >>> import numpy as np
    >>> from featstream import LassoSelector
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 1000))
    >>> y = 2 * X[:, 7] - X[:, 500] > 0
    >>> LassoSelector(penalty=0.1).fit(X, y).selected_
    array([  7, 500])
    """

    penalty: float = 0.05
    tol: float = 1e-6
    trace: TraceLevel = "full"


@estimator
class GroupLassoSelector(_LogisticSelector, BatchGroupSelector):
    """The groups of a logistic regression with a group lasso penalty.

    All features of a group have weights, or none has.

    See Also
    --------
    SparseGroupLassoSelector : Some features of some groups; its notes apply here too.

    References
    ----------
    .. [1] M. Yuan, Y. Lin: Model Selection and Estimation in Regression with Grouped
       Variables. Journal of the Royal Statistical Society B 68(1), 2006.

    Examples
    --------
    >>> import numpy as np
    >>> from featstream import GroupLassoSelector
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 60))
    >>> y = X[:, 7] - X[:, 8] > 0
    >>> selector = GroupLassoSelector(group_penalty=0.1)
    >>> selector.fit(X, y, groups=np.arange(60) // 3).selected_groups_
    array([2])
    >>> sorted(selector.selected_.tolist())
    [6, 7, 8]
    """

    group_penalty: float = 0.05
    tol: float = 1e-6
    trace: TraceLevel = "full"

    def _why_dropped(self, fate: Fate, its_features: str) -> str:
        return f"the penalty leaves none of {its_features} any weight"


@estimator
class SparseGroupLassoSelector(GroupLassoSelector):
    """Some features of some groups: a logistic regression with both penalties.

    Parameters
    ----------
    penalty : float, default=0.05
        Price of a weight, in units of the mean loss per sample (the first lambda of
        the paper, which takes 0.01 to 0.1).
    group_penalty : float, default=0.01
        Price of a group, times the square root of its size (the second lambda).

    Notes
    -----
    Minimised is the mean logistic loss plus ``penalty * sum |w|`` plus
    ``group_penalty * sum of sqrt(size) * norm(w)`` over the groups, with columns of
    mean 0 and variance 1 and an intercept that costs nothing. With several classes
    there is a regression for each class against the others, and a feature is selected
    if one of them gives it a weight.

    The solver is our own: those of scikit-learn have no groups, and those of skglm with
    groups and logistic loss need dense data. It is FISTA on the features that exceed
    their price; one pass over all columns then shows whether others do. Sparse data
    stay sparse, their columns are centred only in products.

    References
    ----------
    .. [1] J. Friedman, T. Hastie, R. Tibshirani: A Note on the Group Lasso and a Sparse
       Group Lasso. arXiv:1001.0736, 2010.
    .. [2] A. Beck, M. Teboulle: A Fast Iterative Shrinkage-Thresholding Algorithm for
       Linear Inverse Problems. SIAM Journal on Imaging Sciences 2(1), 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from featstream import SparseGroupLassoSelector
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 60))
    >>> y = X[:, 7] - X[:, 8] > 0
    >>> selector = SparseGroupLassoSelector(penalty=0.1, group_penalty=0.02)
    >>> selector.fit(X, y, groups=np.arange(60) // 3).selected_groups_
    array([2])
    >>> sorted(selector.selected_.tolist())
    [7, 8]
    """

    penalty: float = 0.05
    group_penalty: float = 0.01


class Penalty:
    """``l1 * |w|₁ + l2 * sum over the groups of sqrt(size) * |w of the group|₂``.

    Feature j is in group ``groups[j]``; ``prices`` are ``l2 * sqrt(size)`` of groups.
    """

    def __init__(self, groups: IntArray, l1: float, l2: float) -> None:
        self.groups, self.l1, self.l2 = groups, l1, l2
        self.prices = l2 * np.sqrt(np.bincount(groups))

    def _shares(self, weights: FloatArray, groups: IntArray, step: float) -> FloatArray:
        """Share of the norm of each group that is left after its price times a step."""
        norms = np.sqrt(np.bincount(groups, weights**2, self.prices.size))
        norms[norms == 0.0] = np.nan
        return np.nan_to_num(np.maximum(1.0 - step * self.prices / norms, 0.0))

    def shrink(self, point: FloatArray, step: float, which: IntArray) -> FloatArray:
        """The proximal step for the weights of some features; the intercept is last."""
        weights, groups = point[:-1], self.groups[which]
        weights = np.sign(weights) * np.maximum(np.abs(weights) - step * self.l1, 0.0)
        if self.l2 > 0:
            weights *= self._shares(weights, groups, step)[groups]
        return np.append(weights, point[-1])

    def excess(self, slopes: FloatArray, weights: FloatArray) -> FloatArray:
        """By how much a feature without weight exceeds its price; 0 if it does not.

        A group without weights is worth its price if the slopes of its features,
        each less ``l1``, have a norm above that. A feature in a group with weights
        has to exceed ``l1`` alone.
        """
        above = np.maximum(np.abs(slopes) - self.l1, 0.0)
        if self.l2 > 0:
            is_used = np.bincount(self.groups, weights != 0, self.prices.size) > 0
            shares = self._shares(above, self.groups, 1.0)
            above *= np.where(is_used, 1.0, shares)[self.groups]
        return np.where(weights == 0, above, 0.0)


def fit_logistic(
    columns: numeric.StandardColumns, signs: FloatArray, penalty: Penalty, tol: float
) -> tuple[FloatArray, float, bool]:
    """Minimise the mean logistic loss and the penalty; the intercept costs nothing.

    Only features that exceed their price take part. When these have their weights,
    one pass over all columns shows which others do now. Returns the weights, the
    intercept and whether the search has converged.
    """
    n, p = columns.shape
    weights, intercept = np.zeros(p), float(logit((signs > 0).mean()))
    is_active: BoolArray = np.zeros(p, dtype=np.bool_)
    has_converged = False
    for _ in range(_MOST_ROUNDS):
        active = np.flatnonzero(is_active)
        outputs = np.full(n, intercept)
        if active.size:
            outputs += columns.take(active).combine(weights[active])
        pull = -signs * expit(-signs * outputs) / n
        excess = penalty.excess(columns.products(pull), weights)
        excess[is_active] = 0.0
        if float(excess.max(initial=0.0)) <= tol:
            has_converged = True
            break
        # The worst first: most of the others will no longer exceed theirs.
        room = max(100, 2 * active.size)
        order = np.argsort(-excess, kind="stable")[:room]
        is_active[order[excess[order] > 0]] = True
        active = np.flatnonzero(is_active)
        start = np.append(weights[active], intercept)
        point, has_settled = _descend(
            start, columns.take(active), signs, penalty, active, tol
        )
        weights[active], intercept = point[:-1], float(point[-1])
        if not has_settled:
            break
    return weights, intercept, has_converged


def _descend(
    start: FloatArray,
    columns: numeric.StandardColumns,
    signs: FloatArray,
    penalty: Penalty,
    which: IntArray,
    tol: float,
) -> tuple[FloatArray, bool]:
    """Fit the weights of some features, and the intercept, from the current ones."""

    def slope(outputs: FloatArray) -> FloatArray:
        pull = -signs * expit(-signs * outputs) / signs.size
        return np.append(columns.products(pull), pull.sum())

    return numeric.minimise(
        start,
        predict=lambda point: columns.combine(point[:-1]) + point[-1],
        loss=lambda outputs: float(np.logaddexp(0.0, -signs * outputs).mean()),
        slope=slope,
        shrink=partial(penalty.shrink, which=which),
        is_settled=lambda _, move, curvature: bool(
            curvature * np.abs(move).max() <= 0.1 * tol
        ),
        curvature=0.25,
        slack=1e-14,
        most_steps=_MOST_STEPS,
    )


@estimator
class SPFSLAR(StandardSelector):
    """Similarity preserving feature selection by least-angle regression.

    Samples of one class are similar. The selected features are those from which a
    linear model builds this similarity with few features: least-angle regression of
    all eigenvectors of the similarity matrix at once, in which a feature enters when
    it is as correlated with what is left of them as the features of the model are.
    A feature that repeats what the model knows does not enter.

    Attributes
    ----------
    selected_ : ndarray of int
        The selected features, in the order in which they entered.

    Notes
    -----
    The similarity of two samples is one over the size of their class if they share
    it, else zero; columns are centred and have length 1. The first feature is then
    the one with the highest F-value. With two classes this is least-angle regression
    of the class. Fewer than ``n_features`` are selected when they explain all that
    the columns can. A linear combination of features in the model is redundant.
    Every step makes one pass over the data; sparse data stay sparse.

    References
    ----------
    .. [1] Z. Zhao, L. Wang, H. Liu, J. Ye: On Similarity Preserving Feature Selection.
       IEEE TKDE 25(3), 2013.
    .. [2] B. Efron, T. Hastie, I. Johnstone, R. Tibshirani: Least Angle Regression.
       Annals of Statistics 32(2), 2004.

    Examples
    --------
    The second feature is nearly a copy of the first; the third is weaker, but new.

    >>> import numpy as np
    >>> from featstream import SPFSLAR
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 40))
    >>> y = 3 * X[:, 0] + X[:, 2] > 0
    >>> X[:, 1] = X[:, 0] + 0.1 * rng.normal(size=300)
    >>> SPFSLAR(n_features=2).fit(X, y).selected_
    array([0, 2])
    """

    _why_no_more = "these explain all that the columns can"

    n_features: int = field(default=10, kw_only=False)
    trace: TraceLevel = "full"

    def _choose(self, X: Any, labels: Labels, relevance: FloatArray) -> Selection:
        columns, targets = numeric.StandardColumns(X), class_similarity(labels.codes)
        entered, dependent = least_angle_path(columns, targets, self.n_features)
        witness = np.full(relevance.size, -1)
        witness[list(dependent)] = list(dependent.values())
        return Selection(np.array(entered, np.int64), relevance, witness=witness)

    def _reason(
        self, arrival: int, fate: Fate, name: str, relevance: str, other: str
    ) -> str:
        if fate is Fate.REDUNDANT:
            return (
                f"{name} is redundant: it is a combination of features that entered "
                f"before, of which {other} is most like it; {relevance}."
            )
        return super()._reason(arrival, fate, name, relevance, other)


def class_similarity(codes: NDArray[Any]) -> FloatArray:
    """Eigenvectors of the centred class similarity, times the roots of its values.

    The similarity of two samples is one over the size of their class if they share
    it, and zero otherwise. One eigenvector per class but one. Classes are numbered.

    >>> class_similarity(np.array([0, 0, 1, 1])).round(3).ravel().tolist()
    [0.5, 0.5, -0.5, -0.5]
    """
    _, first, counts = np.unique(codes, return_index=True, return_counts=True)
    order = np.argsort(first)  # the names of the classes must not matter
    indicators = np.equal.outer(codes, order) / np.sqrt(counts[order])
    centred = indicators - indicators.mean(axis=0)
    values, vectors = np.linalg.eigh(centred.T @ centred)
    is_real = values > _NEGLIGIBLE
    found = centred @ vectors[:, is_real]
    return np.asarray(found * np.where(found[0] < 0, -1.0, 1.0))


def least_angle_path(
    columns: numeric.StandardColumns, targets: FloatArray, n_features: int
) -> tuple[list[int], dict[int, int]]:
    """Least-angle regression of several targets, until `n_features` have entered.

    All features in the model have the same correlation with what is left of the
    targets (the norm over these). The fit moves towards the least-squares fit on
    them until another feature has as much, which enters. Returns the features in the
    order in which they entered, and those that are a combination of these, each with
    the one that is nearest to it.
    """
    entered: list[int] = []
    dependent: dict[int, int] = {}
    rest = targets.copy()
    products = columns.products(rest)
    is_out = columns.is_constant.copy()
    basis = np.empty((rest.shape[0], 0))  # of the features entered, orthonormal
    sizes = np.where(is_out, 0.0, np.linalg.norm(products, axis=1))
    level = float(sizes.max(initial=0.0))
    least = _NEGLIGIBLE * float(np.linalg.norm(targets))
    newcomer = int(sizes.astype(np.float32).argmax()) if sizes.size else -1
    while level > least and len(entered) < n_features:
        is_out[newcomer] = True
        column = columns.take(np.array([newcomer])).to_dense()[:, 0]
        own = numeric.left_of(column, basis)
        norm = float(np.linalg.norm(own))
        if norm > np.sqrt(_NEGLIGIBLE):
            entered.append(newcomer)
            basis = np.column_stack([basis, own / norm])
        else:
            shared = columns.take(np.array(entered)).products(column)
            dependent[newcomer] = entered[int(numeric.largest(np.abs(shared), 1)[0])]
        if is_out.all():
            break
        direction = basis @ (basis.T @ rest)
        moves = columns.products(direction)
        steps = _steps(products, moves, level)
        steps[is_out] = np.inf
        newcomer = int(np.round(steps, 9).argmin())  # the first of equals
        step = min(1.0, float(steps[newcomer]))
        rest -= step * direction
        products -= step * moves
        level *= 1.0 - step
    return entered, dependent


def _steps(products: FloatArray, moves: FloatArray, level: float) -> FloatArray:
    """How far the fit can move until each feature has the level of those entered.

    The smallest root in [0, 1] of ``|c - g a|² = (1 - g)² level²``: the difference is
    not above 0 at g = 0 and not below 0 at g = 1, so that there is one.
    """
    square = level * level
    lead = np.einsum("ij,ij->i", moves, moves) - square
    half = square - np.einsum("ij,ij->i", products, moves)
    last = np.minimum(np.einsum("ij,ij->i", products, products) - square, 0.0)
    root = np.sqrt(np.maximum(half * half - lead * last, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        steps = np.where(half >= 0, -last / (half + root), (root - half) / lead)
    # 0/0: a feature that moves with those entered reaches their level at the end.
    return np.asarray(np.clip(np.nan_to_num(steps, nan=1.0, posinf=1.0), 0.0, 1.0))
