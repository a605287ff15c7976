"""Alpha-investing: streamwise regression that spends and earns significance.

The model is an orthonormal basis of its columns, so a new column needs one pass:
its products with the basis and with the residuals. Zeros add nothing, and dense
and sparse columns are summed in the same order, to the same bit.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from featstream.errors import (
    DataError,
    ParameterError,
    check_choice,
    check_number,
    printable,
)
from featstream.estimators import estimator
from featstream.jit import inner, kernel
from featstream.measures.inputs import as_labels, as_numbers
from featstream.protocols import Block, Fate, FloatArray
from featstream.runs.arrays import Arrays, Declared, check_arrays
from featstream.selectors import numeric
from featstream.selectors.base import StreamSelector
from featstream.selectors.result import TraceLevel
from featstream.selectors.stream import Stream, Verdict

COLLINEAR = 1e-10
"""A share of a column's square that may be rounding: it adds nothing to the model."""

_NOTHING = 1e-20
"""Share of the first error that is rounding: there is nothing left to explain."""


@estimator
class AlphaInvesting(StreamSelector):
    """Alpha-investing: streamwise regression with an adaptive threshold.

    Features arrive one by one and are added to a regression if they explain enough
    of what is left. Each test spends some of a wealth, each feature added earns
    some; a wealth that shrinks lowers the threshold for all that follow. Features
    that were added are never removed.

    Parameters
    ----------
    wealth : float, default=0.5
        The wealth at the start.
    payout : float, default=0.5
        What a feature that is added earns.
    loss : {"linear", "logistic"}, default="linear"
        Least squares, or logistic regression for two classes.
    intercept : bool or "first-column", default=True
        Whether the model begins with a constant. "first-column" begins with the
        first feature, untested and whatever it is, as the authors of SAOLA did: it
        is meant for data whose first column is all ones.
    target : {"nominal", "numeric"}, default="nominal"
        Whether the target is classes or a number. Without an intercept the numbers
        that stand for two classes matter: 0 and 1 if "nominal", the more frequent
        class being 0.

    Attributes
    ----------
    scores_ : ndarray of float
        Share of the error left on arrival that each explained; with the logistic
        loss, the score statistic per sample.
    wealth_ : float
        The wealth that is left.

    Notes
    -----
    Feature ``i`` (from 1) may spend ``alpha = wealth / (2 i)``. It is added if
    ``exp((SSE_with - SSE_without) / (2 SSE_without / n)) < alpha``. The model is a QR
    factorisation that grows by a column; a column that is a linear function of the
    model, a constant for instance, is rejected, and so is every column once the
    fit is perfect. With more than two classes the error is that of all class
    indicators, each divided by the root of its class's size, and the tail that of
    chi-square with twice as many degrees of freedom as classes less one, which for
    two classes is the formula above. The logistic loss uses the score test, so that
    only features that are added need a fit.

    References
    ----------
    .. [1] J. Zhou, D. P. Foster, R. A. Stine, L. H. Ungar: Streamwise Feature
       Selection. JMLR 7, 2006.

    Examples
    --------
    >>> from featstream import AlphaInvesting
    >>> from featstream.datasets import make_stream
    >>> stream = make_stream(n_features=300, kind="continuous", seed=0)
    >>> selector = AlphaInvesting().fit(stream.X, stream.y)
    >>> set(stream.informative) <= set(selector.selected_)
    True
    >>> selector.wealth_ > 0.5
    True
    """

    wealth: float = 0.5
    payout: float = 0.5
    loss: Literal["linear", "logistic"] = "linear"
    intercept: bool | Literal["first-column"] = True
    target: Literal["nominal", "numeric"] = "nominal"
    trace: TraceLevel = "full"

    _numeric_target = "target='numeric'"

    @property
    def wealth_(self) -> float:
        """The wealth that is left."""
        self._started()
        return float(self._account[0])

    def _bind(self, y: Any) -> LinearModel | LogisticModel:
        owner = type(self).__name__
        check_choice(self.loss, "loss", ("linear", "logistic"), owner)
        check_choice(self.target, "target", ("nominal", "numeric"), owner)
        if self.intercept not in (True, False, "first-column"):
            raise ParameterError(
                f"`intercept` of {owner} must be True, False or 'first-column'. "
                f"Got {printable(self.intercept)}."
            )
        has_constant = self.intercept is True
        if self.loss == "logistic":
            return LogisticModel(y, has_constant=has_constant)
        return LinearModel(y, self.target, has_constant=has_constant)

    def _begin(self, stream: Stream) -> None:
        owner = type(self).__name__
        wealth = check_number(self.wealth, "wealth", owner)
        check_number(self.payout, "payout", owner, closed="left")
        self._account = np.array([wealth, 0.0])  # and the number of features tested

    def _state_arrays(self) -> dict[str, NDArray[Any]]:
        model = self._stream.measure
        own = {name: getattr(model, name) for name in model.saved}
        return {"account": self._account, **own}

    def _restore(self, arrays: Arrays) -> None:
        model, account = self._stream.measure, {"account": Declared(np.float64, (2,))}
        found = check_arrays(arrays, account | model.saved)
        self._account = found.pop("account")
        vars(model).update(found)
        model.linearise()

    def _decide(self, block: Block, stream: Stream) -> Verdict:
        model = stream.measure
        columns = numeric.as_numeric(block, model.n_samples, type(self).__name__)
        parts = numeric.parts_of(columns)
        statistics = np.zeros(block.n_columns)
        fate = np.zeros(block.n_columns, np.uint8)
        done, payout = 0, float(self.payout)
        if self.intercept == "first-column" and stream.n_seen == 0:
            model.add(numeric.dense_column(columns, 0))
            self._account[1] = 1.0
            fate[0], done = Fate.KEPT, 1
        while done < block.n_columns:
            found = invest(*parts, done, model.fit, self._account, payout, statistics)
            if found < block.n_columns:
                fate[found] = Fate.KEPT
                model.add(numeric.dense_column(columns, found))
            done = found + 1
        return Verdict(fate, statistics / model.n_samples)


class LinearModel:
    """Least squares by a QR factorisation that grows.

    ``n_free`` is half the degrees of freedom of the tail of its statistic.
    """

    name = "linear"

    def __init__(self, y: Any, target: str, *, has_constant: bool) -> None:
        self.n_free, self.least = 1, 0.0
        if target == "numeric":
            self.residuals = as_numbers(y)[:, None]
        else:
            labels = as_labels(y)
            self.n_free = labels.classes.size - 1
            self.residuals = numeric.class_indicators(labels)
            if self.n_free > 1:
                self.residuals /= np.sqrt(self.residuals.sum(axis=0))
        self.n_samples = self.residuals.shape[0]
        self.basis = np.empty((self.n_samples, 0))
        if has_constant:
            self.add(np.ones(self.n_samples))
        self.least = _NOTHING * float(np.sum(self.residuals**2))
        self.saved = {
            "basis": Declared(np.float64, (self.n_samples, None)),
            "residuals": Declared(np.float64, self.residuals.shape),
        }
        self.linearise()

    def add(self, column: FloatArray) -> None:
        """Add a column; one that the others determine changes nothing."""
        left = numeric.left_of(column, self.basis)
        norm = float(np.linalg.norm(left))
        if norm**2 > COLLINEAR * float(column @ column):
            left /= norm
            self.basis = np.ascontiguousarray(np.column_stack([self.basis, left]))
            self.residuals = self.residuals - np.outer(left, left @ self.residuals)
        self.linearise()

    def linearise(self) -> None:
        """Find what the test needs of the current model."""
        error = float(np.sum(self.residuals**2))
        is_perfect = not error > self.least
        self.fit = Fit(
            np.ascontiguousarray(self.basis),
            np.ones(self.n_samples),
            np.ascontiguousarray(self.residuals),
            0.0 if is_perfect else self.n_samples * self.n_free / error,
            self.n_free,
        )


class LogisticModel:
    """Logistic regression, fitted again by Newton's method when a column is added."""

    name = "logistic"

    def __init__(self, y: Any, *, has_constant: bool) -> None:
        labels = as_labels(y)
        if labels.classes.size != 2:
            raise DataError(
                f"loss='logistic' of AlphaInvesting is for two classes, and y has "
                f"{labels.classes.size}. Use loss='linear'."
            )
        self.response, self.n_samples = numeric.class_indicators(labels)[:, 0], len(y)
        self.design = np.ones((self.n_samples, 1 if has_constant else 0))
        self.weights = np.zeros(self.design.shape[1])
        self.saved = {
            "design": Declared(np.float64, (self.n_samples, "n_columns")),
            "weights": Declared(np.float64, ("n_columns",)),
        }
        self._refit()

    def add(self, column: FloatArray) -> None:
        """Add a column and fit."""
        scale = float(np.abs(column).max())
        if scale > 0:
            design = np.column_stack([self.design, column / scale])
            self.design = np.ascontiguousarray(design)
            self.weights = np.append(self.weights, 0.0)
        self._refit()

    def _refit(self) -> None:
        """Newton's method with a tiny ridge penalty, which separable classes need."""
        design, w = self.design, self.weights
        ridge = 1e-6 * np.eye(w.size)
        for _ in range(50 if w.size else 0):
            mean = expit(np.clip(design @ w, -30.0, 30.0))
            curvature = mean * (1 - mean)
            gradient = design.T @ (self.response - mean) - 1e-6 * w
            hessian = design.T @ (curvature[:, None] * design) + ridge
            step = np.linalg.solve(hessian, gradient)
            step *= min(1.0, 5.0 / max(float(np.abs(step).max()), 1e-300))
            w = w + step
            if np.abs(step).max() <= 1e-10 * max(1.0, float(np.abs(w).max())):
                break
        self.weights = w
        self.linearise()

    def linearise(self) -> None:
        """Find what the score test needs of the current model."""
        design, w = self.design, self.weights
        mean = expit(np.clip(design @ w, -30.0, 30.0))
        root = np.sqrt(mean * (1 - mean))
        basis = np.linalg.qr(root[:, None] * design)[0] if w.size else design
        residuals = (self.response - mean)[:, None]
        is_perfect = float(np.abs(residuals).max()) < 1e-3
        self.fit = Fit(
            np.ascontiguousarray(root[:, None] * basis),
            root * root,
            np.ascontiguousarray(residuals),
            0.0 if is_perfect else 1.0,
            1,
        )


class Fit(NamedTuple):
    """A fitted model, as the kernel reads it.

    ``basis`` and ``residuals``, the gradient of the loss, have one row per sample; the
    former is orthonormal, times the root of ``weights``, the curvature of the loss.
    ``scale`` turns a squared product with the residuals into a statistic (0: there is
    nothing left to explain), whose tail has ``2 n_free`` degrees of freedom.
    """

    basis: np.ndarray
    weights: np.ndarray
    residuals: np.ndarray
    scale: float
    n_free: int


@inner
def _decide(square, inner, products, fit, account, payout):
    """Spend on one column: whether it is accepted, and its statistic."""
    account[1] += 1.0
    alpha = account[0] / (2.0 * account[1])
    left, gain = square, 0.0
    for k in range(inner.size):
        left -= inner[k] * inner[k]
    for t in range(products.size):
        gain += products[t] * products[t]
    statistic, p_value = 0.0, 1.0
    if left > COLLINEAR * square:
        statistic = fit.scale * gain / left
        half, term = statistic / 2.0, 1.0
        for k in range(1, fit.n_free):  # chi-square with 2 n_free degrees of freedom
            term *= half / k
            p_value += term
        p_value *= np.exp(-half)
    if p_value < alpha:
        account[0] += payout - alpha
        return True, statistic
    account[0] -= alpha
    return False, statistic


@inner
def _add(value, row, inner, products, basis, residuals):
    for k in range(inner.size):
        inner[k] += basis[row, k] * value
    for t in range(products.size):
        products[t] += residuals[row, t] * value


@inner
def _add_four(a, b, c, d, row, total, table):
    """Four rows at once, added one after the other: zeros do not change a sum."""
    first, second = table[row], table[row + 1]
    third, fourth = table[row + 2], table[row + 3]
    for k in range(total.size):
        total[k] = (
            ((total[k] + first[k] * a) + second[k] * b) + third[k] * c
        ) + fourth[k] * d


@kernel(allocates=True)
def invest(columns, indptr, rows, begin, fit, account, payout, statistics):
    """Test columns from ``begin`` on until one is accepted; its place, or their number.

    ``columns`` is an array, or the values of sparse columns; ``account`` the wealth
    and the number of features tested.
    """
    basis, residuals, weights = fit.basis, fit.residuals, fit.weights
    inner, products = np.empty(basis.shape[1]), np.empty(residuals.shape[1])
    n_whole = residuals.shape[0] - residuals.shape[0] % 4
    for j in range(begin, statistics.size):
        square = 0.0
        inner[:] = 0.0
        products[:] = 0.0
        if columns.ndim == 2:
            column = columns[:, j]
            for row in range(column.size):
                value = np.float64(column[row])
                square += weights[row] * value * value
            for row in range(0, n_whole, 4):
                a, b = np.float64(column[row]), np.float64(column[row + 1])
                c, d = np.float64(column[row + 2]), np.float64(column[row + 3])
                if a != 0.0 or b != 0.0 or c != 0.0 or d != 0.0:
                    _add_four(a, b, c, d, row, inner, basis)
                    _add_four(a, b, c, d, row, products, residuals)
            for row in range(n_whole, column.size):
                _add(np.float64(column[row]), row, inner, products, basis, residuals)
        else:
            for e in range(indptr[j], indptr[j + 1]):
                value = np.float64(columns[e])
                square += weights[rows[e]] * value * value
                _add(value, rows[e], inner, products, basis, residuals)
        is_accepted, statistics[j] = _decide(
            square, inner, products, fit, account, payout
        )
        if is_accepted:
            return j
    return statistics.size
