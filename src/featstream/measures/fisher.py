"""Fisher's Z: correlation with the target, and between continuous features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.base import BaseEstimator

from featstream.errors import ParameterError, printable
from featstream.kernels.moments import (
    DenseMoments,
    MomentScratch,
    SparseMoments,
    deviate_sparse,
    eta,
    moment_scratch,
    sum_dense,
    sum_sparse,
)
from featstream.measures.checks import (
    check_length,
    complain_of_values,
    refuse_text,
    to_kernel_dtype,
)
from featstream.measures.target import as_labels, as_numbers
from featstream.protocols import Block, BoolArray, FloatArray, IntArray, SparseColumns

__all__ = ["BoundFisherZ", "FisherZ"]

_TINY = 1e-280
_NO_UNITS = np.empty((0, 0), np.float32)


class FisherZ(BaseEstimator):
    """Fisher's Z test of correlation, for continuous features.

    A feature's relevance is ``|r|``, its absolute correlation with the class,
    and so is its overlap with another feature. With more than two classes a
    numeric coding of the class has no meaning, and relevance is the correlation
    ratio eta, which equals ``|r|`` for two.

    Parameters
    ----------
    alpha : float, default=0.01
        Significance level: a feature is relevant when its p-value is <= alpha.
        The test is Fisher's Z for two classes or a numeric target, the F-test
        for more classes.
    target : {"nominal", "numeric"}, default="nominal"
        "numeric" correlates with the target as a number, whatever its values.

    Notes
    -----
    Equation 30 of [1]_ lacks the square root in its denominator; we divide by
    ``sqrt(P_ii * P_jj)``. Its Section 3.4.2 compares signed correlations; we
    compare absolute ones, as the authors' own library does.

    References
    ----------
    .. [1] K. Yu, X. Wu, W. Ding, J. Pei: Scalable and Accurate Online Feature
       Selection for Big Data. ACM TKDD 11(2), 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from featstream import SAOLA, FisherZ
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1], 50)
    >>> X = rng.normal(size=(100, 3))
    >>> X[:, 1] += 2 * y
    >>> SAOLA(measure=FisherZ(alpha=0.001)).fit(X, y).selected_
    array([1])
    """

    def __init__(
        self,
        *,
        alpha: float = 0.01,
        target: Literal["nominal", "numeric"] = "nominal",
    ) -> None:
        self.alpha = alpha
        self.target = target

    def bind(self, y: Any) -> BoundFisherZ:
        """Prepare for the target ``y``."""
        alpha = self.alpha
        is_number = isinstance(alpha, int | float | np.number)
        if not is_number or isinstance(alpha, bool) or not 0 < alpha < 1:
            hint = "Use a small level such as alpha=0.01."
            if is_number and 1 <= alpha < 100:
                hint = f"For a {alpha:g}% level write alpha={alpha / 100:g}."
            raise ParameterError(
                f"`alpha` of FisherZ must be a float in (0, 1). Got {alpha!r}. {hint}"
            )
        if self.target == "numeric":
            numbers = as_numbers(y)
            shifted = numbers - np.median(numbers)
            return BoundFisherZ(float(alpha), shifted[None, :], None)
        if self.target != "nominal":
            raise ParameterError(
                f"`target` of FisherZ must be 'nominal' or 'numeric'. "
                f"Got {printable(self.target)}."
            )
        labels = as_labels(y)
        if labels.classes.size == 2:
            # The rarer class, or that of the first row: whatever the names are.
            counts = labels.counts
            chosen = labels.codes[0] if counts[0] == counts[1] else counts.argmin()
            indicator = (labels.codes == chosen).astype(np.float64)
            return BoundFisherZ(float(alpha), indicator[None, :], None)
        indicators = np.equal.outer(np.arange(labels.classes.size), labels.codes)
        return BoundFisherZ(float(alpha), indicators.astype(np.float64), labels.counts)


@dataclass(slots=True)
class EncodedMoments:
    """A checked block with the sums of its columns."""

    values: NDArray[Any] | SparseColumns
    pivots: FloatArray
    totals: FloatArray
    squared_norms: FloatArray
    products: FloatArray


class BoundFisherZ:
    """`FisherZ` that knows the target.

    ``weights`` has one row: an indicator of one of two classes, or the numeric
    target; or, with ``class_counts``, an indicator of each of several classes.
    """

    name = "fisher-z"

    def __init__(
        self, alpha: float, weights: FloatArray, class_counts: IntArray | None
    ) -> None:
        self._weights = np.ascontiguousarray(weights)
        self._weight_totals = weights.sum(axis=1)
        self._class_counts = class_counts
        self.n_samples = weights.shape[1]
        self.critical = _critical_value(alpha, self.n_samples, class_counts)

    def encode(self, block: Block) -> EncodedMoments:
        """Check a block and sum its columns."""
        check_length(block, self.n_samples)
        refuse_text(block, "FisherZ")
        m, n_targets = block.n_columns, self._weights.shape[0]
        pivots, totals, squares = np.empty(m), np.empty(m), np.empty(m)
        products = np.empty((n_targets, m))
        values: NDArray[Any] | SparseColumns
        if isinstance(block.columns, SparseColumns):
            stored = to_kernel_dtype(block.columns.values)
            values = SparseColumns(
                block.columns.indptr, block.columns.rows, stored, self.n_samples
            )
            sum_sparse(
                values.indptr,
                values.rows,
                stored,
                self.n_samples,
                self._weights,
                self._weight_totals,
                pivots,
                totals,
                squares,
                products,
            )
        else:
            values = np.asfortranarray(to_kernel_dtype(block.columns))
            sum_dense(values, self._weights, pivots, totals, squares, products)
        # Deviations so small that their squares vanish would pass for a constant.
        is_varied = (totals != 0) | products.any(axis=0)
        is_bad = ~np.isfinite(squares) | ((squares < _TINY) & is_varied)
        if is_bad.any():
            raise complain_of_values(
                block,
                int(is_bad.argmax()),
                "Fill them in, drop the feature, or use "
                "measure=SymmetricalUncertainty(missing='category').",
            )
        squared_norms = self.n_samples * squares - totals * totals
        return EncodedMoments(values, pivots, totals, squared_norms, products)

    def relevance(self, encoded: EncodedMoments) -> FloatArray:
        """Absolute correlation, or eta, of every column with the target."""
        n = self.n_samples
        if self._class_counts is not None:
            scores = np.empty(encoded.totals.size)
            eta(
                encoded.products,
                encoded.totals,
                encoded.squared_norms,
                self._class_counts,
                n,
                scores,
            )
            return scores
        total = self._weight_totals[0]
        squared_norm = n * float(self._weights[0] @ self._weights[0]) - total * total
        covariance = np.abs(n * encoded.products[0] - total * encoded.totals)
        is_varied = encoded.squared_norms > 0
        norms = np.sqrt(np.where(is_varied, encoded.squared_norms, 1.0))
        scores = covariance / (norms * np.sqrt(squared_norm))
        return np.where(is_varied, np.minimum(scores, 1.0), 0.0)

    @property
    def n_spanning(self) -> int:
        """Number of variables that span the target: one less than classes."""
        return max(1, int(self._weights.shape[0]) - 1)

    def span(self, encoded: EncodedMoments) -> FloatArray:
        """Signed correlations with orthonormal variables that span the target.

        There is one row a column of the block. The sum of squares of a row is the
        squared relevance.
        """
        n = self.n_samples
        gaps = n * encoded.products - np.outer(self._weight_totals, encoded.totals)
        is_varied = encoded.squared_norms > 0
        gaps /= np.sqrt(np.where(is_varied, encoded.squared_norms, 1.0))
        gaps[:, ~is_varied] = 0.0
        if self._class_counts is None:
            total = self._weight_totals[0]
            square = float(self._weights[0] @ self._weights[0])
            return np.ascontiguousarray(gaps.T / np.sqrt(n * square - total * total))
        roots = np.sqrt(self._class_counts)
        # Orthonormal contrasts of the classes: what is orthogonal to the constant.
        contrasts = np.linalg.qr(np.column_stack([roots, np.eye(roots.size)]))[0]
        basis = contrasts[:, 1 : roots.size] / (roots[:, None] * np.sqrt(n))
        return np.ascontiguousarray(gaps.T @ basis)

    def is_relevant(self, scores: FloatArray) -> BoolArray:
        """Whether the p-value is at most alpha: the score is past a critical value."""
        return scores >= self.critical

    def columns(
        self, encoded: EncodedMoments, which: IntArray
    ) -> tuple[DenseMoments | SparseMoments, IntArray]:
        """Deviations of the chosen columns, and their positions among them."""
        if isinstance(encoded.values, SparseColumns):
            indptr = encoded.values.indptr
            length = np.diff(indptr)[which]
            offset = np.concatenate([[0], np.cumsum(length)])
            values = np.empty(int(offset[-1]))
            rows = np.empty(values.size, np.int32)
            deviate_sparse(
                indptr,
                encoded.values.rows,
                encoded.values.values,
                which,
                encoded.pivots,
                offset,
                rows,
                values,
            )
            return SparseMoments(
                encoded.totals[which],
                np.sqrt(encoded.squared_norms[which]),
                -encoded.pivots[which],
                offset[:-1],
                length,
                rows,
                values,
                self.n_samples,
            ), np.arange(which.size)
        norm = np.sqrt(np.maximum(encoded.squared_norms, 0.0))
        return DenseMoments(
            encoded.totals, norm, encoded.pivots, encoded.values.T, _NO_UNITS
        ), which

    def scratch(self, *, is_sparse: bool) -> MomentScratch:
        """Working memory for the pair kernels, one a thread."""
        return moment_scratch(self.n_samples, is_sparse=is_sparse)


def _critical_value(alpha: float, n: int, class_counts: IntArray | None) -> float:
    """Smallest score whose p-value is at most ``alpha``; infinite without a test."""
    if class_counts is None:
        if n <= 3:
            return np.inf
        return float(np.tanh(stats.norm.isf(alpha / 2) / np.sqrt(n - 3)))
    between, within = class_counts.size - 1, n - class_counts.size
    if within <= 0:
        return np.inf
    f = stats.f.isf(alpha, between, within)
    return float(np.sqrt(f * between / (f * between + within)))
