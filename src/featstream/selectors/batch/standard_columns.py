"""Columns of mean 0 and one length, dense or sparse, and selectors that use them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from featstream.measures.fisher import BoundFisherZ, FisherZ
from featstream.measures.inputs import Labels, as_labels
from featstream.protocols import Block, BoolArray, FloatArray, IntArray, SparseColumns
from featstream.selectors.batch.base import BatchSelector, Selection
from featstream.selectors.numeric import as_numeric
from featstream.selectors.stream import Stream

_CONSTANT = 1e-12
"""Share of its values at which the spread of a column is rounding alone."""


def join_values(parts: list[NDArray[Any] | SparseColumns]) -> Any:
    """All columns as one matrix of float64: column-major, or of scipy (CSC).

    The matrix of a single dense part is read-only.

    >>> join_values([np.ones((2, 1)), np.zeros((2, 2))]).shape
    (2, 3)
    """
    stored = [part.alone() for part in parts if isinstance(part, SparseColumns)]
    if not stored:
        dense = [part for part in parts if isinstance(part, np.ndarray)]
        return np.asfortranarray(np.hstack(dense), dtype=np.float64)
    lengths = np.concatenate([np.diff(part.indptr) for part in stored])
    values = np.concatenate([part.values for part in stored]).astype(np.float64)
    rows = np.concatenate([part.rows for part in stored])
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    shape = stored[0].n_samples, lengths.size
    return sparse.csc_array((values, rows, indptr), shape=shape)


class StandardColumns:
    """All columns of a matrix of finite numbers, centred and scaled to one length.

    Dense columns are standardised once. Sparse ones (CSC) stay as they are: a product
    with standardised columns follows from that with the stored values, the means and
    the lengths. A constant column becomes zero.

    >>> X = np.array([[1.0, 5.0], [3.0, 5.0]])
    >>> StandardColumns(sparse.csc_array(X)).products(np.array([-1.0, 1.0]))
    array([1.41421356, 0.        ])
    """

    values: Any
    shifts: FloatArray  # mean times scale
    scales: FloatArray  # one over the length
    is_constant: BoolArray

    def __init__(self, X: Any, length: float = 1.0) -> None:
        n = X.shape[0]
        if sparse.issparse(X):
            values = sparse.csc_array(X, dtype=np.float64)
            means = np.asarray(values.sum(axis=0)).ravel() / n
            counts = np.diff(values.indptr)
            deviations = values.data - np.repeat(means, counts)
            of_entry = np.repeat(np.arange(counts.size), counts)
            squares = np.bincount(of_entry, deviations**2, counts.size)
            squares += (n - counts) * means**2
        else:
            values = np.asfortranarray(X, dtype=np.float64)
            means = values.mean(axis=0)
            values = values - means
            squares = np.einsum("ij,ij->j", values, values)
        norms = np.sqrt(squares)
        self.is_constant = norms <= _CONSTANT * np.sqrt(n) * np.abs(means)
        self.is_constant |= norms == 0
        self.scales = np.where(self.is_constant, 0.0, length)
        self.scales /= np.where(self.is_constant, 1.0, norms)
        self.values, self.shifts = values, means * self.scales
        if not sparse.issparse(values):
            self.values *= self.scales
            self.shifts, self.scales = np.zeros(means.size), np.ones(means.size)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of samples and of columns."""
        n, p = self.values.shape
        return n, p

    def products(self, vectors: FloatArray) -> FloatArray:
        """The product of every column with one or more vectors: one pass."""
        found = (self.values.T @ vectors).T * self.scales
        found -= np.multiply.outer(vectors.sum(axis=0), self.shifts)
        return np.asarray(found.T)

    def combine(self, weights: FloatArray) -> FloatArray:
        """The sum of the columns with weights, for one or more sets of them."""
        found = self.values @ (weights.T * self.scales).T
        return np.asarray(found - self.shifts @ weights)

    def take(self, which: IntArray) -> StandardColumns:
        """Some of the columns."""
        part = object.__new__(StandardColumns)
        part.values = self.values[:, which]
        part.shifts, part.scales = self.shifts[which], self.scales[which]
        part.is_constant = self.is_constant[which]
        return part

    def to_dense(self) -> FloatArray:
        """The columns as an array; for few of them."""
        return np.asarray(_dense(self.values) * self.scales - self.shifts)

    def correlations(self, others: StandardColumns) -> FloatArray:
        """The product of each of these columns with each of the others'."""
        found = _dense(self.values.T @ others.values)
        scaled = found * self.scales[:, None] * others.scales
        n = self.values.shape[0]
        return np.asarray(scaled - n * np.outer(self.shifts, others.shifts))


def _dense(matrix: Any) -> Any:
    return matrix.toarray() if sparse.issparse(matrix) else matrix


def largest(scores: FloatArray, count: int) -> IntArray:
    """Positions of the largest scores above 0, decreasing.

    Scores that differ by rounding alone are equal, and come in order of position.

    >>> largest(np.array([0.5, 2.0, 0.0, 2.0]), 2)
    array([1, 3])
    """
    rounded = scores.astype(np.float32)
    found = np.flatnonzero(rounded > 0)
    if count < found.size:
        kth = found.size - count
        found = found[rounded[found] >= np.partition(rounded[found], kth)[kth]]
    return found[np.argsort(-rounded[found], kind="stable")][:count]


def minimise(
    here: FloatArray,
    *,
    predict: Callable[[FloatArray], FloatArray],
    loss: Callable[[FloatArray], float],
    slope: Callable[[FloatArray], FloatArray],
    shrink: Callable[[FloatArray, float], FloatArray],
    is_settled: Callable[[FloatArray, FloatArray, float], bool],
    curvature: float,
    slack: float,
    most_steps: int,
) -> tuple[FloatArray, bool]:
    """Minimise a loss of outputs and a penalty from a point on; whether it settled.

    By accelerated proximal gradients (FISTA), which start again when they overshoot.
    ``predict`` gives the outputs of a point, ``shrink`` is the proximal step of the
    penalty, and ``is_settled`` judges a point, the last move and the curvature.
    ``slack`` is what rounding may add to the loss, as a share.
    """
    outputs = predict(here)
    ahead, outputs_ahead, momentum = here, outputs, 1.0
    for _ in range(most_steps):
        value, steepness = loss(outputs_ahead), slope(outputs_ahead)
        while True:
            there = shrink(ahead - steepness / curvature, 1.0 / curvature)
            outputs_there, move = predict(there), there - ahead
            bound = value + slack * max(1.0, value) + float((steepness * move).sum())
            if loss(outputs_there) <= bound + curvature / 2 * float((move**2).sum()):
                break
            curvature *= 2.0
        past = there - here
        if float((move * past).sum()) < 0:  # it overshoots
            momentum = 1.0
        faster = (1.0 + np.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
        pace = (momentum - 1.0) / faster
        ahead = there + pace * past
        outputs_ahead = outputs_there + pace * (outputs_there - outputs)
        here, outputs, momentum = there, outputs_there, faster
        if is_settled(here, move, curvature):
            return here, True
    return here, False


class StandardSelector(BatchSelector):
    """Base of batch selectors that fit a model to standardised columns.

    A subclass chooses in `_choose`.

    Attributes
    ----------
    scores_ : ndarray of float
        Their relevance: absolute correlation with the class, or eta with several.
    """

    _numeric_target = ""

    @abstractmethod
    def _choose(self, X: Any, labels: Labels, relevance: FloatArray) -> Selection:
        """Choose among the columns of a matrix, dense or sparse (CSC)."""

    def _bind(self, y: Any) -> BoundFisherZ:
        return FisherZ().bind(y)

    def _prepare(self, block: Block, stream: Stream) -> tuple[Any, FloatArray]:
        measure: BoundFisherZ = stream.measure
        values = as_numeric(block, measure.n_samples, type(self).__name__)
        return values, measure.relevance(measure.encode(block))

    def _select(self, parts: list[tuple[Any, FloatArray]], stream: Stream) -> Selection:
        values, relevance = map(list, zip(*parts, strict=True))
        parts.clear()  # the matrix holds their values
        X = join_values(values)
        values.clear()
        return self._choose(X, as_labels(stream.y), np.concatenate(relevance))
