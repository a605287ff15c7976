"""Columns of mean 0 and one length, dense or sparse, and selectors that use them."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from featstream.measures.fisher import BoundFisherZ, FisherZ
from featstream.measures.inputs import Labels, as_labels
from featstream.protocols import (
    Block,
    BoolArray,
    FloatArray,
    IntArray,
    SparseColumns,
)
from featstream.selectors.batch.base import BatchSelector, Selection, join_values
from featstream.selectors.numeric import as_numeric
from featstream.selectors.stream import Stream

_CONSTANT = 1e-12
"""Share of its values at which the spread of a column is rounding alone."""


class StandardColumns:
    """All columns of a matrix, centred and scaled to one length.

    Dense columns are standardised once. Sparse ones stay as they are: a product with
    standardised columns follows from that with the stored values, the means and the
    lengths. A constant column becomes zero.

    Parameters
    ----------
    X : ndarray or CSC array of shape (n_samples, n_features)
        Finite numbers.
    length : float, default=1.0
        The Euclidean length of a standardised column.

    Attributes
    ----------
    is_constant : ndarray of bool of shape (n_features,)
        Columns with one value.

    Examples
    --------
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
        if sparse.issparse(values):
            self.values, self.shifts = values, means * self.scales
        else:
            values *= self.scales
            self.values, self.shifts = values, np.zeros(means.size)
            self.scales = np.ones(means.size)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of samples and of columns."""
        n, p = self.values.shape
        return n, p

    def products(self, vectors: FloatArray) -> FloatArray:
        """The product of every column with one or more vectors: one pass."""
        found = self.values.T @ vectors
        if not sparse.issparse(self.values):
            return np.asarray(found)
        shape = (-1, *(1,) * (vectors.ndim - 1))
        totals = vectors.sum(axis=0)
        return np.asarray(
            found * self.scales.reshape(shape) - self.shifts.reshape(shape) * totals
        )

    def combine(self, weights: FloatArray) -> FloatArray:
        """The sum of the columns with weights, for one or more sets of them."""
        if not sparse.issparse(self.values):
            return np.asarray(self.values @ weights)
        shape = (-1, *(1,) * (weights.ndim - 1))
        found = self.values @ (weights * self.scales.reshape(shape))
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
        if not sparse.issparse(self.values):
            return np.asarray(self.values)
        return np.asarray(self.values.toarray() * self.scales - self.shifts)

    def correlations(self, others: StandardColumns) -> FloatArray:
        """The product of each of these columns with each of the others'."""
        if not sparse.issparse(self.values):
            return np.asarray(self.values.T @ others.values)
        found = (self.values.T @ others.values).toarray()
        n = self.values.shape[0]
        scaled = found * self.scales[:, None] * others.scales
        return np.asarray(scaled - n * np.outer(self.shifts, others.shifts))


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


@dataclass(slots=True)
class ScoredTarget:
    """The classes, and the relevance of features: correlation, or its ratio eta."""

    labels: Labels
    measure: BoundFisherZ
    n_samples: int
    name: str = "fisher-z"

    @classmethod
    def of(cls, y: Any) -> ScoredTarget:
        """The target that `start` was given."""
        labels = as_labels(y)
        return cls(labels, FisherZ().bind(y), labels.codes.size)


class _Part(NamedTuple):
    values: NDArray[Any] | SparseColumns
    relevance: FloatArray


class StandardSelector(BatchSelector):
    """Base of batch selectors that fit a model to standardised columns.

    A subclass chooses in `_choose`. The relevance of a feature is its absolute
    correlation with the class, or eta with several classes.
    """

    _numeric_target = ""

    @abstractmethod
    def _choose(self, X: Any, labels: Labels, relevance: FloatArray) -> Selection:
        """Choose among the columns of a matrix, dense or sparse (CSC)."""

    def _bind(self, y: Any) -> ScoredTarget:
        return ScoredTarget.of(y)

    def _prepare(self, block: Block, stream: Stream) -> _Part:
        target: ScoredTarget = stream.measure
        values = as_numeric(block, target.n_samples, type(self).__name__)
        measure = target.measure
        return _Part(values, measure.relevance(measure.encode(block)))

    def _select(self, parts: list[_Part], stream: Stream) -> Selection:
        relevance = np.concatenate([part.relevance for part in parts])
        X = join_values([part.values for part in parts])
        parts.clear()  # the matrix holds their values
        return self._choose(X, stream.measure.labels, relevance)
