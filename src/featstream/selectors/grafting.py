"""Grafting: features join a regularised logistic regression by its gradient.

Columns are standardised on the way. Zeros are counted, not visited, in dense as in
sparse columns, so that both are summed in the same order, to the same bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from featstream.errors import check_number
from featstream.estimators import estimator
from featstream.jit import inner, kernel
from featstream.measures.inputs import as_labels
from featstream.protocols import Block, Fate, FloatArray, IntArray
from featstream.runs.arrays import Arrays, Declared, check_arrays
from featstream.selectors import numeric
from featstream.selectors.base import StreamSelector
from featstream.selectors.result import TraceLevel
from featstream.selectors.stream import Stream, Verdict

_SAVED = ("arrival", "design", "weights", "objectives", "residuals")

_MARGIN = 1.0 + 1e-6
"""A copy of a feature in the model is exactly as steep as its price."""


@estimator
class Grafting(StreamSelector):
    """Grafting: features join a regularised model if its loss is steep enough.

    The model is a logistic regression with an L1 penalty. A feature that arrives
    would pay ``l1`` for each unit of weight; it is added if the loss falls faster
    than that. Then all weights are optimised again, and features whose weights
    return to zero leave.

    Parameters
    ----------
    l1 : float, default=0.1
        Price of a unit of weight, for features in units of their standard
        deviation; the loss is a mean over the samples.
    l2 : float, default=0.0
        Price of a squared unit of weight.
    l0 : float, default=0.0
        Price of a feature: what it must take off the objective to stay.

    Attributes
    ----------
    scores_ : ndarray of float
        Absolute weight of each; with several classes, the largest.
    objective_ : float
        Loss and penalties of the model, summed over the classes if there are more
        than two.
    result_ : SelectionResult
        Names, scores and history; the trace's relevance is the slope of the loss.

    Notes
    -----
    Features are standardised, and there is an intercept without a price. Features
    that were rejected do not come back: they are no longer there. With more than
    two classes there is a model for each class against the others; a feature is
    added if it is steep for one of them and leaves if it has no weight in any.

    References
    ----------
    .. [1] S. Perkins, J. Theiler: Online Feature Selection using Grafting. ICML 2003.
    .. [2] S. Perkins, K. Lacker, J. Theiler: Grafting: Fast, Incremental Feature
       Selection by Gradient Descent in Function Space. JMLR 3, 2003.

    Examples
    --------
    >>> from featstream import Grafting
    >>> from featstream.datasets import make_stream
    >>> stream = make_stream(n_features=300, kind="continuous", seed=0)
    >>> selector = Grafting(l1=0.1).fit(stream.X, stream.y)
    >>> set(stream.informative) & set(selector.selected_) != set()
    True
    """

    l1: float = 0.1
    l2: float = 0.0
    l0: float = 0.0
    trace: TraceLevel = "full"

    _numeric_target = ""

    @property
    def objective_(self) -> float:
        """Loss and penalties of the model."""
        return float(self._started().measure.objectives.sum())

    def _bind(self, y: Any) -> LogisticModels:
        owner = type(self).__name__
        l1 = check_number(self.l1, "l1", owner)
        l2 = check_number(self.l2, "l2", owner, closed="left")
        l0 = check_number(self.l0, "l0", owner, closed="left")
        return LogisticModels(y, l1, l2, l0)

    def _begin(self, stream: Stream) -> None:
        """Nothing: the model, which `_bind` made, holds the state."""

    def _kept(self) -> tuple[IntArray, FloatArray]:
        model: LogisticModels = self._started().measure
        return model.arrival, np.abs(model.weights[1:]).max(axis=1)

    def _state_arrays(self) -> dict[str, NDArray[Any]]:
        return {name: getattr(self._stream.measure, name) for name in _SAVED}

    def _restore(self, arrays: Arrays) -> None:
        self._stream.measure.restore(arrays, self._stream.n_seen)

    def _decide(self, block: Block, stream: Stream) -> Verdict:
        model: LogisticModels = stream.measure
        columns = numeric.as_numeric(block, model.n_samples, type(self).__name__)
        stored = numeric.parts_of(columns)
        slopes = np.zeros(block.n_columns)
        fate = np.zeros(block.n_columns, np.uint8)
        events: list[tuple[int, int]] = []
        done, price = 0, model.l1 * _MARGIN
        while True:
            rest = model.residuals
            found, mean, scale = graft(
                *stored, done, rest, rest.sum(axis=0), price, slopes
            )
            if found == block.n_columns:
                break
            done, arrival = found + 1, block.start + found
            column = (numeric.dense_column(columns, found) - mean) / scale
            if model.add(column, arrival):
                left = model.prune()
                fate[found] = Fate.IRRELEVANT if arrival in left else Fate.KEPT
                events += [(old, arrival) for old in left if old != arrival]
        gone, gone_by = np.array(events, np.int64).reshape(-1, 2).T
        return Verdict(fate, slopes, gone=gone, gone_by=gone_by)

    def _reason(
        self, arrival: int, fate: Fate, name: str, relevance: str, other: str
    ) -> str:
        return f"{name} was displaced: with {other} in the model its weight was zero."


class LogisticModels:
    """A logistic regression for each class against the others; one for two classes.

    The first column of ``design`` is ones, the first row of ``weights`` their weights;
    the others are those of the features in ``arrival``.
    """

    name = "logistic"

    def __init__(self, y: Any, l1: float, l2: float, l0: float) -> None:
        self.signs = 2.0 * numeric.class_indicators(as_labels(y)) - 1.0
        self.l1, self.l2, self.l0 = l1, l2, l0
        self.n_samples, k = self.signs.shape
        self.arrival: IntArray = np.empty(0, np.int64)
        self.design, self.weights = np.ones((self.n_samples, 1)), np.zeros((1, k))
        self.objectives = np.zeros(k)
        self.optimise()

    def optimise(self) -> None:
        """Fit all weights again, from the current ones."""
        for k in range(self.signs.shape[1]):
            signs, weights = self.signs[:, k], self.weights[:, k].copy()
            self.weights[:, k], self.objectives[k] = fit_logistic(
                self.design, signs, weights, self.l1, self.l2
            )
        share = expit(self.design @ self.weights)
        self.residuals: FloatArray = (self.signs + 1.0) / 2.0 - share

    def restore(self, arrays: Arrays, n_seen: int) -> None:
        """Restore the models that a run saved."""
        n, k = self.signs.shape
        first = {"arrival": Declared(np.int64, ("n_kept",), 0, n_seen)}
        own = check_arrays(arrays, first)
        n_columns = 1 + own["arrival"].size
        table = {
            "design": Declared(np.float64, (n, n_columns)),
            "weights": Declared(np.float64, (n_columns, k)),
            "objectives": Declared(np.float64, (k,)),
            "residuals": Declared(np.float64, (n, k)),
        }
        vars(self).update(own | check_arrays(arrays, table))

    def add(self, column: FloatArray, arrival: int) -> bool:
        """Add a column, unless it takes less than its price off the objective."""
        before = vars(self) | {"objectives": self.objectives.copy()}
        self.arrival = np.append(self.arrival, arrival)
        self.design = np.column_stack([self.design, column])
        self.weights = np.vstack([self.weights, np.zeros(self.weights.shape[1])])
        self.optimise()
        is_worth_it = before["objectives"].sum() - self.objectives.sum() >= self.l0
        if not is_worth_it:
            vars(self).update(before)
        return bool(is_worth_it)

    def prune(self) -> list[int]:
        """Drop the columns without weight; returns the arrivals of their features."""
        is_used = np.any(self.weights != 0.0, axis=1)
        is_used[0] = True
        left: list[int] = self.arrival[~is_used[1:]].tolist()
        self.arrival = self.arrival[is_used[1:]]
        self.design = np.ascontiguousarray(self.design[:, is_used])
        self.weights = self.weights[is_used]
        return left


@inner
def _gradient(values, rows, n, residuals, totals):
    """Largest slope of the loss along a standardised column, by its nonzeros."""
    size, mean, square = values.size, 0.0, 0.0
    for e in range(size):
        mean += values[e]
    mean /= n
    for e in range(size):
        square += (values[e] - mean) * (values[e] - mean)
    square += (n - size) * mean * mean
    if not square > 1e-24 * n * mean * mean:
        return 0.0, mean, 0.0
    scale, largest = np.sqrt(square / n), 0.0
    for t in range(totals.size):
        slope = 0.0
        for e in range(size):
            slope += values[e] * residuals[rows[e], t]
        slope = abs(slope - mean * totals[t]) / (n * scale)
        largest = max(largest, slope)
    return largest, mean, scale


@inner
def _find_nonzeros(columns, indptr, stored_rows, j, values, rows):
    """Write the nonzeros of a column, of an array or stored; how many there are."""
    size = 0
    if columns.ndim == 2:
        column = columns[:, j]
        for i in range(column.size):
            if column[i] != 0:
                values[size], rows[size] = column[i], i
                size += 1
    else:
        for e in range(indptr[j], indptr[j + 1]):
            if columns[e] != 0:
                values[size], rows[size] = columns[e], stored_rows[e]
                size += 1
    return size


@kernel(allocates=True)
def graft(columns, indptr, stored_rows, begin, residuals, totals, price, slopes):
    """Slopes of the columns from ``begin`` on; stops at the first above the price.

    ``columns`` is an array, or the values of sparse columns. Returns the position of
    that column with mean and scale, or the number of columns.
    """
    n = residuals.shape[0]
    values, rows = np.empty(n), np.empty(n, np.int32)
    for j in range(begin, slopes.size):
        size = _find_nonzeros(columns, indptr, stored_rows, j, values, rows)
        slopes[j], mean, scale = _gradient(
            values[:size], rows[:size], n, residuals, totals
        )
        if slopes[j] > price:
            return j, mean, scale
    return slopes.size, 0.0, 0.0


@kernel
def descend(gradient, hessian, weights, l1, l2, step):
    """Coordinate descent on the quadratic model of the loss with its penalties."""
    k = weights.size
    step[:] = 0.0
    for _ in range(1000):
        moved = 0.0
        for j in range(k):
            slope = gradient[j]
            for m in range(k):
                slope += hessian[j, m] * step[m]
            curvature = hessian[j, j] + 1e-12
            old = weights[j] + step[j]
            if j > 0:
                slope += 2.0 * l2 * old
                curvature += 2.0 * l2
            aim = curvature * old - slope
            penalty = l1 if j > 0 else 0.0
            new = 0.0
            if aim > penalty:
                new = (aim - penalty) / curvature
            elif aim < -penalty:
                new = (aim + penalty) / curvature
            step[j] += new - old
            moved = max(moved, abs(new - old))
        if moved <= 1e-12:
            break


def fit_logistic(
    design: FloatArray, signs: FloatArray, weights: FloatArray, l1: float, l2: float
) -> tuple[FloatArray, float]:
    """Weights that minimise the penalised logistic loss, from those given on.

    Proximal Newton: each round solves the quadratic model exactly, and halves the
    step until the objective falls. Returns the objective as well.
    """

    def lose(margins: FloatArray, weights: FloatArray) -> float:
        priced = weights[1:]  # not the intercept
        loss = np.logaddexp(0.0, -signs * margins).mean()
        return float(loss + l1 * np.abs(priced).sum() + l2 * priced @ priced)

    n, step, margins = signs.size, np.empty(weights.size), design @ weights
    best = lose(margins, weights)
    for _ in range(100):
        p = expit(-signs * margins)
        curvature = np.maximum(p * (1.0 - p), 1e-10) / n
        hessian = (design.T * curvature) @ design
        descend(-(signs * p) @ design / n, hessian, weights, l1, l2, step)
        for _ in range(40):
            trial = weights + step
            trial_margins = design @ trial
            value = lose(trial_margins, trial)
            if value <= best:
                break
            step /= 2.0
        if not value < best:
            break
        gain = best - value
        weights, margins, best = trial, trial_margins, value
        if gain <= 1e-14 * max(1.0, abs(best)):
            break
    return weights, best
