"""Columns as numbers, checked and standardised, for selectors that fit models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from featstream.measures.inputs import (
    Labels,
    check_length,
    complain_of_values,
    refuse_text,
    to_kernel_dtype,
)
from featstream.protocols import Block, BoolArray, FloatArray, IntArray, SparseColumns
from featstream.sources.kernels.transpose import by_column

_LARGEST = 1e150
"""Squares beyond this overflow."""

_CONSTANT = 1e-12
"""Share of its values at which the spread of a column is rounding alone."""

_NONE = np.empty(0, np.int64)


def as_numeric(
    block: Block, n_samples: int, owner: str
) -> NDArray[Any] | SparseColumns:
    """The columns of a block, checked: finite numbers, one per sample."""
    check_length(block, n_samples)
    refuse_text(block, f"{owner} fits a model to numbers: encode its categories")
    columns = block.columns
    if isinstance(columns, SparseColumns):
        columns = columns.alone()
        columns = replace(columns, values=to_kernel_dtype(columns.values))
        bad = np.flatnonzero(_is_bad(columns.values))
        bad = np.searchsorted(columns.indptr, bad, side="right") - 1
    else:
        columns = by_column(to_kernel_dtype(columns))
        bad = np.flatnonzero(_is_bad(columns).any(axis=0))
    if bad.size:
        remedy = "Fill them in or drop the feature."
        raise complain_of_values(block, int(bad[0]), remedy)
    return columns


def _is_bad(values: NDArray[Any]) -> BoolArray:
    """Missing, infinite, or of a square that overflows."""
    if values.dtype.kind != "f":
        return np.zeros(values.shape, dtype=np.bool_)
    largest = min(_LARGEST, float(np.finfo(values.dtype).max))
    return np.asarray(~(np.abs(values) <= largest))


def dense_column(columns: NDArray[Any] | SparseColumns, j: int) -> FloatArray:
    """A column with all its zeros."""
    return Block(columns).part(j, j + 1).to_dense()[:, 0].astype(np.float64)


def parts_of(columns: NDArray[Any] | SparseColumns) -> tuple[Any, ...]:
    """What kernels read: an array and nothing else, or values, ``indptr`` and rows."""
    if isinstance(columns, SparseColumns):
        return columns.values, columns.indptr, columns.rows
    return columns, _NONE, _NONE


def class_indicators(labels: Labels) -> FloatArray:
    """One column for two classes, otherwise one for each, whatever their names.

    Of two classes it is the rarer one, or that of the first row; several come in the
    order of their first rows.
    """
    codes, counts = labels.codes, labels.counts
    if counts.size == 2:
        chosen = codes[0] if counts[0] == counts[1] else counts.argmin()
        return np.asarray(codes == chosen, dtype=np.float64)[:, None]
    first = np.unique(codes, return_index=True)[1]
    return np.equal.outer(codes, np.argsort(first)).astype(np.float64)


def join_values(parts: Sequence[NDArray[Any] | SparseColumns]) -> Any:
    """All columns as one matrix of float64: column-major, or of scipy (CSC).

    The matrix of a single dense part is read-only.

    >>> join_values([np.ones((2, 1)), np.zeros((2, 2))]).shape
    (2, 3)
    """
    stored = [part.alone() for part in parts if isinstance(part, SparseColumns)]
    if not stored:
        return np.asfortranarray(np.hstack(parts), dtype=np.float64)  # type: ignore[arg-type]
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
        self.values: Any = values
        self.shifts: FloatArray = means * self.scales
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


def left_of(column: FloatArray, basis: FloatArray) -> FloatArray:
    """What is left of a column beside an orthonormal basis."""
    for _ in range(2):  # the second time for what rounding left
        column = column - basis @ (basis.T @ column)
    return column


def largest(scores: FloatArray, count: int) -> IntArray:
    """Positions of the largest scores above 0, decreasing.

    Scores that differ by rounding alone are equal, and come in order of position.

    >>> largest(np.array([0.3, 0.1 + 0.2, 0.5, 0.0]), 4)
    array([2, 0, 1])
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
    """Minimise a loss of outputs plus a penalty; the point, and whether it settled.

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
