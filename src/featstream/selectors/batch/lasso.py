"""Lasso, group lasso and sparse group lasso: logistic regressions with few weights."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning

from featstream.errors import check_number
from featstream.measures.inputs import Labels
from featstream.protocols import BoolArray, Fate, FloatArray, IntArray
from featstream.selectors.batch.base import BatchGroupSelector, Selection
from featstream.selectors.batch.standard_columns import (
    StandardColumns,
    StandardSelector,
    largest,
)
from featstream.selectors.numeric import class_indicators
from featstream.selectors.result import TraceLevel
from featstream.selectors.stream import Stream

_MOST_STEPS = 20_000
_MOST_ROUNDS = 100


class _LogisticSelector(StandardSelector):
    """Base of the three: the features with weights in a penalised regression."""

    tol: float

    @abstractmethod
    def _penalty(self, n_features: int) -> Penalty:
        """The penalty of the weights."""

    def _choose(self, X: Any, labels: Labels, relevance: FloatArray) -> Selection:
        n, p = X.shape
        columns, penalty = StandardColumns(X, np.sqrt(n)), self._penalty(p)
        squares: FloatArray = np.zeros(p)
        for indicator in class_indicators(labels).T:
            fit = fit_logistic(columns, 2.0 * indicator - 1.0, penalty, self.tol)
            if not fit.has_converged:
                warnings.warn(
                    f"{type(self).__name__} did not reach tol={self.tol:g}: the "
                    "selection is approximate. Raise tol or the penalty.",
                    ConvergenceWarning,
                    stacklevel=2,
                )
            squares += fit.weights**2
        sizes = np.where(squares > self.tol**2, np.sqrt(squares), 0.0)
        order = largest(np.asarray(np.round(sizes, 6)), p)
        fate = np.full(p, Fate.IRRELEVANT, np.uint8)
        return Selection(order, relevance, fate=fate)

    def _why_irrelevant(self, relevance: str) -> str:
        return f"the penalty leaves it no weight; {relevance}"


class LassoSelector(_LogisticSelector):
    """The features of a logistic regression with a lasso penalty.

    Parameters
    ----------
    penalty : float, default=0.05
        Price of a weight, in units of the mean loss per sample. A feature can have a
        weight if its covariance with what the others leave of the class, which is
        between 0 and 1, is above this.
    tol : float, default=1e-6
        Precision of the slopes. Weights below it are zero.
    trace : {"full", "kept"} or None, default="full"
        What is remembered of features that are not selected.

    Attributes
    ----------
    selected_ : ndarray of int
        The features with a weight, the largest weight first.
    scores_ : ndarray of float
        Their relevance: absolute correlation with the class, or eta with several.
    support_ : ndarray of bool of shape (n_features,)
        Whether each feature is selected.
    result_ : SelectionResult
        Names, scores and why each feature was selected or not.

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

    def __init__(
        self,
        *,
        penalty: float = 0.05,
        tol: float = 1e-6,
        trace: TraceLevel = "full",
    ) -> None:
        self.penalty = penalty
        self.tol = tol
        self.trace = trace

    def _begin(self, stream: Stream) -> None:
        owner = type(self).__name__
        check_number(self.penalty, "penalty", owner)
        check_number(self.tol, "tol", owner)

    def _penalty(self, n_features: int) -> Penalty:
        return Penalty.of(np.zeros(n_features, np.int64), self.penalty, 0.0)


class GroupLassoSelector(_LogisticSelector, BatchGroupSelector):
    """The groups of a logistic regression with a group lasso penalty.

    All features of a group have weights, or none has.

    Parameters
    ----------
    group_penalty : float, default=0.05
        Price of a group, times the square root of its size, in units of the mean loss
        per sample.
    tol : float, default=1e-6
        Precision of the slopes. Weights below it are zero.
    trace : {"full", "kept"} or None, default="full"
        What is remembered of features that are not selected.

    Attributes
    ----------
    selected_ : ndarray of int
        The features with a weight, the largest weight first.
    scores_ : ndarray of float
        Their relevance: absolute correlation with the class, or eta with several.
    support_ : ndarray of bool of shape (n_features,)
        Whether each feature is selected.
    selected_groups_ : ndarray
        Labels of the groups with a selected feature, in order of arrival.
    group_of_ : ndarray of shape (n_features,)
        Label of the group of each feature.
    result_ : GroupSelectionResult
        Names, scores and history of features and groups.

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

    def __init__(
        self,
        *,
        group_penalty: float = 0.05,
        tol: float = 1e-6,
        trace: TraceLevel = "full",
    ) -> None:
        self.group_penalty = group_penalty
        self.tol = tol
        self.trace = trace

    def _begin(self, stream: Stream) -> None:
        super()._begin(stream)
        owner = type(self).__name__
        check_number(self.group_penalty, "group_penalty", owner)
        check_number(self.tol, "tol", owner)

    def _penalty(self, n_features: int) -> Penalty:
        return Penalty.of(self._group_numbers(), 0.0, self.group_penalty)

    def _why_dropped(self, fate: Fate, its_features: str) -> str:
        return f"the penalty leaves none of {its_features} any weight"


class SparseGroupLassoSelector(GroupLassoSelector):
    """Some features of some groups: a logistic regression with both penalties.

    Parameters
    ----------
    penalty : float, default=0.05
        Price of a weight, in units of the mean loss per sample (the first lambda of
        the paper, which takes 0.01 to 0.1).
    group_penalty : float, default=0.01
        Price of a group, times the square root of its size (the second lambda).
    tol : float, default=1e-6
        Precision of the slopes. Weights below it are zero.
    trace : {"full", "kept"} or None, default="full"
        What is remembered of features that are not selected.

    Attributes
    ----------
    selected_ : ndarray of int
        The features with a weight, the largest weight first.
    scores_ : ndarray of float
        Their relevance: absolute correlation with the class, or eta with several.
    support_ : ndarray of bool of shape (n_features,)
        Whether each feature is selected.
    selected_groups_ : ndarray
        Labels of the groups with a selected feature, in order of arrival.
    group_of_ : ndarray of shape (n_features,)
        Label of the group of each feature.
    result_ : GroupSelectionResult
        Names, scores and history of features and groups.

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

    def __init__(
        self,
        *,
        penalty: float = 0.05,
        group_penalty: float = 0.01,
        tol: float = 1e-6,
        trace: TraceLevel = "full",
    ) -> None:
        super().__init__(group_penalty=group_penalty, tol=tol, trace=trace)
        self.penalty = penalty

    def _begin(self, stream: Stream) -> None:
        super()._begin(stream)
        check_number(self.penalty, "penalty", type(self).__name__)

    def _penalty(self, n_features: int) -> Penalty:
        return Penalty.of(self._group_numbers(), self.penalty, self.group_penalty)


@dataclass(frozen=True, slots=True)
class Penalty:
    """``l1 * |w|₁ + l2 * sum over the groups of sqrt(size) * |w of the group|₂``.

    Attributes
    ----------
    l1, l2 : float
        Price of a weight, and of a group.
    groups : ndarray of int of shape (n_features,)
        The group of each feature, from 0.
    prices : ndarray of float of shape (n_groups,)
        ``l2 * sqrt(size)`` of each group.
    """

    l1: float
    l2: float
    groups: IntArray
    prices: FloatArray

    @classmethod
    def of(cls, groups: IntArray, l1: float, l2: float) -> Penalty:
        """The penalty for groups whose prices follow from their sizes."""
        return cls(l1, l2, groups, l2 * np.sqrt(np.bincount(groups)))

    def shrink(self, weights: FloatArray, step: float, which: IntArray) -> FloatArray:
        """The proximal step for the weights of some features."""
        weights = np.sign(weights) * np.maximum(np.abs(weights) - step * self.l1, 0.0)
        if self.l2 == 0:
            return weights
        groups = self.groups[which]
        norms = np.sqrt(np.bincount(groups, weights**2, self.prices.size))
        with np.errstate(divide="ignore", invalid="ignore"):
            factors = np.maximum(1.0 - step * self.prices / norms, 0.0)
        return np.where(weights == 0, 0.0, weights * factors[groups])

    def value(self, weights: FloatArray) -> float:
        """The penalty of all weights."""
        norms = np.sqrt(np.bincount(self.groups, weights**2, self.prices.size))
        return float(self.l1 * np.abs(weights).sum() + self.prices @ norms)

    def excess(self, slopes: FloatArray, weights: FloatArray) -> FloatArray:
        """By how much a feature without weight exceeds its price; 0 if it does not.

        A group without weights is worth its price if the slopes of its features,
        each less ``l1``, have a norm above that. A feature in a group with weights
        has to exceed ``l1`` alone.
        """
        above = np.maximum(np.abs(slopes) - self.l1, 0.0)
        if self.l2 > 0:
            norms = np.sqrt(np.bincount(self.groups, above**2, self.prices.size))
            is_used = np.bincount(self.groups, weights != 0, self.prices.size) > 0
            with np.errstate(divide="ignore", invalid="ignore"):
                share = np.where(is_used, 1.0, np.maximum(1.0 - self.prices / norms, 0))
            above *= np.where(norms > 0, share, 0.0)[self.groups]
        return np.where(weights == 0, above, 0.0)


@dataclass(slots=True)
class Fit:
    """Weights of a logistic regression on standardised columns."""

    weights: FloatArray
    objective: float
    has_converged: bool


def fit_logistic(
    columns: StandardColumns, signs: FloatArray, penalty: Penalty, tol: float
) -> Fit:
    """Minimise the mean logistic loss and the penalty; the intercept costs nothing.

    Only features that exceed their price take part. When these have their weights,
    one pass over all columns shows which others do now.
    """
    n, p = columns.shape
    weights, intercept = np.zeros(p), _logit(float((signs > 0).mean()))
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
        own = columns.take(active), signs, penalty, active, weights[active]
        weights[active], intercept, has_settled = _descend(*own, intercept, tol)
        if not has_settled:
            break
    loss = float(np.logaddexp(0.0, -signs * outputs).mean())
    return Fit(weights, loss + penalty.value(weights), has_converged)


def _descend(
    columns: StandardColumns,
    signs: FloatArray,
    penalty: Penalty,
    which: IntArray,
    weights: FloatArray,
    intercept: float,
    tol: float,
) -> tuple[FloatArray, float, bool]:
    """Fit the weights of some features from where they are, by FISTA with restarts."""
    n = signs.size

    def loss(outputs: FloatArray) -> float:
        return float(np.logaddexp(0.0, -signs * outputs).mean())

    here, here_0 = weights, intercept
    outputs = columns.combine(here) + here_0
    ahead, ahead_0, outputs_ahead = here, here_0, outputs
    momentum, curvature = 1.0, 0.25
    for _ in range(_MOST_STEPS):
        pull = -signs * expit(-signs * outputs_ahead) / n
        slope, slope_0 = columns.products(pull), float(pull.sum())
        value = loss(outputs_ahead)
        while True:
            there = penalty.shrink(ahead - slope / curvature, 1.0 / curvature, which)
            there_0 = ahead_0 - slope_0 / curvature
            outputs_there = columns.combine(there) + there_0
            move, move_0 = there - ahead, there_0 - ahead_0
            square = float(move @ move) + move_0 * move_0
            bound = value + float(slope @ move) + slope_0 * move_0
            bound += curvature / 2 * square
            if loss(outputs_there) <= bound + 1e-14:
                break
            curvature *= 2.0
        step = max(float(np.abs(move).max(initial=0.0)), abs(move_0))
        has_settled = curvature * step <= 0.1 * tol
        past, past_0 = there - here, there_0 - here_0
        if float(move @ past) + move_0 * past_0 < 0:  # it overshoots
            momentum = 1.0
        faster = (1.0 + np.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
        pace = (momentum - 1.0) / faster
        ahead, ahead_0 = there + pace * past, there_0 + pace * past_0
        outputs_ahead = outputs_there + pace * (outputs_there - outputs)
        here, here_0, outputs, momentum = there, there_0, outputs_there, faster
        if has_settled:
            return here, here_0, True
    return here, here_0, False


def _logit(share: float) -> float:
    return float(np.log(share / (1.0 - share)))
