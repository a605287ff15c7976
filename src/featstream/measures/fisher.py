"""Fisher's Z: correlation with the target, and between continuous features."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special

from featstream.errors import check_alpha, check_choice
from featstream.estimators import Estimator, estimator
from featstream.measures.inputs import (
    LeftOut,
    as_labels,
    as_numbers,
    check_length,
    complain_of_values,
    refuse_text,
    register_measure,
    to_kernel_dtype,
)
from featstream.measures.permutation import (
    DenseSample,
    PermutationLaws,
    Sample,
    SparseSample,
    log_f_tail,
)
from featstream.measures.storages import dense_values, sparse_values
from featstream.measures.storages.dense_values import (
    DENSE_VALUES,
    DenseValues,
    sum_columns,
)
from featstream.measures.storages.dispatch import ConditionalRule, Rule
from featstream.measures.storages.moments import (
    MomentSums,
    WeightedTarget,
    empty_sums,
    score_columns,
)
from featstream.measures.storages.sparse_values import (
    SPARSE_VALUES,
    SparseValues,
    sum_sparse,
)
from featstream.parallel import ScratchPool
from featstream.protocols import (
    Block,
    BoolArray,
    FloatArray,
    IntArray,
    SparseColumns,
    Storage,
    read_only,
)
from featstream.sources.kernels.transpose import (
    CHUNK_BYTES,
    aligned,
    by_column,
    copy_columns,
    has_whole_rows,
)

_PAPERS_LEVEL = 0.01
_MOST_VALUES = 1 << 20
"""Values that are judged at once."""


@estimator
class FisherZ(Estimator):
    """Fisher's Z test of correlation, for continuous features.

    A feature's relevance is ``|r|``, its absolute correlation with the class,
    and so is its overlap with another feature. With more than two classes a
    numeric coding of the class has no meaning, and relevance is the correlation
    ratio eta, which equals ``|r|`` for two.

    Parameters
    ----------
    alpha : float, optional
        Significance level: a feature is relevant when its p-value is <= alpha. By
        default 0.01, the paper's, or 0.05 with a ``correction``. The test is Fisher's
        Z for two classes or a numeric target, the F-test for more classes. With a
        ``correction`` it is the F-test for all: at the small levels of corrected
        thresholds the p-values of Fisher's Z are too small (with 50 samples, 0.4e-6
        for 1e-6).
    target : {"auto", "nominal", "numeric"}, default="auto"
        What the target is: classes, or a quantity, with which features are correlated.
        By default it is classes; a selector refuses whole numbers that are more than
        20, or seven and more of which some are rare, until one of the two is chosen.

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

    alpha: float | None = None
    target: Literal["auto", "nominal", "numeric"] = "auto"

    def bind(self, y: Any) -> BoundFisherZ:
        """Prepare for the target ``y``."""
        alpha = None if self.alpha is None else check_alpha(self.alpha, "FisherZ")
        choices = ("auto", "nominal", "numeric")
        check_choice(self.target, "target", choices, "FisherZ")
        if self.target == "numeric":
            numbers = as_numbers(y)
            # A power of two changes no correlation, and keeps squares in range.
            _, exponent = np.frexp(np.abs(numbers).max())
            numbers = np.ldexp(numbers, -exponent)
            deviations = (numbers - np.median(numbers))[None, :]
            return BoundFisherZ(alpha, deviations, is_numeric=True)
        labels = as_labels(y)
        if labels.classes.size == 2:
            # The rarer class, or that of the first row: whatever the names are.
            counts = labels.counts
            chosen = labels.codes[0] if counts[0] == counts[1] else counts.argmin()
            indicator = (labels.codes == chosen).astype(np.float64)
            return BoundFisherZ(alpha, indicator[None, :])
        indicators = np.equal.outer(np.arange(labels.classes.size), labels.codes)
        return BoundFisherZ(alpha, indicators.astype(np.float64))


@dataclass(slots=True)
class EncodedMoments:
    """A checked block with the sums and scores of its columns.

    ``held`` is, for row-major blocks, the relevant columns (already transposed);
    ``room`` is, for a column that arrives alone, where to put its deviations.
    """

    values: NDArray[Any] | SparseColumns
    sums: MomentSums
    scores: FloatArray
    held: NDArray[Any] | None = None
    room: DenseValues | None = None


class BoundFisherZ:
    """`FisherZ` that knows the target.

    ``weights`` has one row, an indicator of one of two classes or the numeric target,
    or an indicator of each of several classes.
    """

    name = "fisher-z"
    storages: ClassVar[tuple[Storage, ...]] = (DENSE_VALUES, SPARSE_VALUES)
    is_split = False
    """Whether columns are prepared for `conditional_rule`."""

    def __init__(
        self, alpha: float | None, weights: FloatArray, *, is_numeric: bool = False
    ) -> None:
        totals, norm = weights.sum(axis=1), 0.0
        self.n_samples = n = weights.shape[1]
        if totals.size == 1:
            # A matrix product would add in an order of the machine's own.
            square = math.fsum(weights[0] * weights[0])
            norm = float(np.sqrt(n * square - totals[0] * totals[0]))
        self._target = WeightedTarget(aligned(weights), totals, norm)
        self.n_spanning = max(1, totals.size - 1)
        """Number of variables that span the target: the number of classes less one."""
        self._make_laws = partial(PermutationLaws, weights, is_numeric=is_numeric)
        self._pool = ScratchPool()
        self._alone: EncodedMoments | None = None
        self.left_out = LeftOut()
        self.alpha = alpha
        level = _PAPERS_LEVEL if alpha is None else alpha
        self.use_level(level, always_f=False)

    def use_level(self, alpha: float, always_f: bool = True) -> None:
        """Call features relevant whose `p_values` are at most this level."""
        share = critical_share(alpha, self.n_samples, self.n_spanning, 0, always_f)
        self.critical = float(np.sqrt(np.nan_to_num(share, nan=np.inf)))

    @cached_property
    def _laws(self) -> PermutationLaws:
        """What judges columns for which the F-test may promise too much."""
        return self._make_laws()

    def p_values(self, encoded: Any, scores: FloatArray) -> FloatArray:
        """P-values of all columns.

        They are those of the F-test; of columns that it calls relevant, no smaller than
        the law over all orders of the rows has it.
        """
        return np.exp(self.log_p_values(encoded, scores))

    def log_p_values(self, encoded: EncodedMoments, scores: FloatArray) -> FloatArray:
        """Natural logarithms of `p_values`, which order what would underflow."""
        log_p = self._log_p_of_f(scores)
        relevant = self.is_relevant(scores).nonzero()[0]
        return self._judge_again(
            log_p, relevant, scores, partial(self._sample, encoded)
        )

    def p_of_kept(
        self, columns: Any, which: IntArray, scores: FloatArray
    ) -> FloatArray:
        """P-values of kept columns, by the same laws."""

        def sample(chosen: IntArray) -> Sample:
            return _sample_of_kept(columns, which[chosen], self.n_samples)

        log_p, everything = self._log_p_of_f(scores), np.arange(which.size)
        return np.exp(self._judge_again(log_p, everything, scores, sample))

    def _log_p_of_f(self, scores: FloatArray) -> FloatArray:
        left = self.n_samples - self.n_spanning - 1
        return log_f_tail(scores**2, self.n_spanning, left)

    def _judge_again(
        self,
        log_p: FloatArray,
        which: IntArray,
        scores: FloatArray,
        sample: Callable[[IntArray], Sample],
    ) -> FloatArray:
        """P-values of the F-test, larger where the law over all orders has it so.

        ``sample`` gives the values of some columns; ``which`` are to be judged.
        """
        if not which.size:
            return log_p
        r = scores if self._target.totals.size == 1 else None
        known = log_p[which], None if r is None else r[which]
        which = which[self._laws.may_be_wrong(*known)]
        width = max(1, _MOST_VALUES // self.n_samples)
        for first in range(0, which.size, width):
            here = which[first : first + width]
            known = log_p[here], None if r is None else r[here]
            log_p[here] = self._laws.log_p_values(sample(here), *known)
        return log_p

    def _sample(self, encoded: EncodedMoments, which: IntArray) -> Sample:
        """The values of some of the columns that a block has."""
        values = encoded.values
        if isinstance(values, SparseColumns):
            return _sparse_sample(
                values.indptr[which],
                np.diff(values.indptr)[which],
                values.rows,
                values.values,
                self.n_samples,
            )
        if encoded.held is not None:
            relevant = self.is_relevant(encoded.scores).nonzero()[0]
            chosen = encoded.held[np.searchsorted(relevant, which)]
        else:
            chosen = values.T[which]
        return DenseSample(np.ascontiguousarray(chosen, np.float64))

    def encode(self, block: Block) -> EncodedMoments:
        """Check a block, sum its columns and score them."""
        check_length(block, self.n_samples)
        block = self.left_out.strip(block)
        refuse_text(block, "FisherZ needs a number: encode it or use measure='su'")
        sums = empty_sums(self._target.totals.size, block.n_columns)
        scores, held = np.empty(block.n_columns), None
        values: NDArray[Any] | SparseColumns
        if isinstance(block.columns, SparseColumns):
            own = block.columns.alone()
            values = replace(own, values=to_kernel_dtype(own.values))
            entries = values.indptr, values.rows, values.values
            sum_sparse(*entries, self._target, sums)
            bad = self._score(sums, scores)
        else:
            values = read_only(to_kernel_dtype(block.columns))
            if has_whole_rows(values):
                bad, held = self._screen_rows(values, sums, scores)
            else:
                values = read_only(by_column(values))
                bad = self._screen_columns(values.T, sums, scores)
        if bad >= 0:
            raise complain_of_values(
                block,
                bad,
                "Fill them in, drop the feature, or use "
                "measure=SymmetricalUncertainty(missing='category').",
            )
        return EncodedMoments(values, sums, scores, held)

    def encode_alone(self, values: NDArray[Any]) -> EncodedMoments | None:
        """The same for one plain column, in the memory of the one before it.

        None if `encode` has to look at it.
        """
        if values.dtype.kind != "f" or values.size != self.n_samples:
            return None
        encoded = self._alone
        if encoded is None:
            sums, n = empty_sums(self._target.totals.size, 1), self.n_samples
            room = dense_values.room_for(1, n)
            encoded = EncodedMoments(values, sums, np.empty(1), room=room)
            self._alone = encoded
        row = values[None, :]
        row.flags.writeable = False
        if self._screen_columns(row, encoded.sums, encoded.scores) >= 0:
            return None
        encoded.values = row.T
        return encoded

    def _screen_columns(
        self, columns: NDArray[Any], sums: MomentSums, scores: FloatArray
    ) -> int:
        """Sum and score columns, one row each. The first that is bad, or -1."""
        sum_columns(columns, self._target, sums)
        return self._score(sums, scores)

    def _score(self, sums: MomentSums, scores: FloatArray) -> int:
        """Score columns by their sums. The first that is bad, or -1."""
        return int(score_columns(self._target, sums, scores))

    def _screen_rows(
        self, values: NDArray[Any], sums: MomentSums, scores: FloatArray
    ) -> tuple[int, NDArray[Any]]:
        """The same for a row-major block, and its relevant columns.

        They are transposed a chunk at a time, and screened while in the cache.
        """
        width, n_held = CHUNK_BYTES // values.itemsize, 0
        held = dense_values.memory.empty(values.shape[::-1], values.dtype)
        shape = min(width, scores.size), self.n_samples
        with self._pool.borrow(np.empty, shape, values.dtype) as chunk:
            for first in range(0, scores.size, width):
                here = slice(first, first + width)
                columns = chunk[: scores[here].size]
                copy_columns(values[:, here], columns)
                part = read_only(columns), _choose(sums, here), scores[here]
                bad = self._screen_columns(*part)
                if bad >= 0:
                    return first + bad, held
                relevant = self.is_relevant(scores[here]).nonzero()[0]
                held[n_held : n_held + relevant.size] = columns[relevant]
                n_held += relevant.size
        return -1, held[:n_held]

    def relevance(self, encoded: EncodedMoments) -> FloatArray:
        """Absolute correlation, or eta, of every column with the target."""
        return encoded.scores

    def span(self, sums: MomentSums) -> FloatArray:
        """Signed correlations with orthonormal variables that span the target.

        One row per column; the sum of its squares is the squared relevance.
        """
        n, target = self.n_samples, self._target
        products = np.ascontiguousarray(sums.product.T)
        gaps = n * products - np.outer(target.totals, sums.total)
        is_varied = sums.squared_norm > 0
        gaps /= np.sqrt(np.where(is_varied, sums.squared_norm, 1.0))
        gaps[:, ~is_varied] = 0.0
        if target.totals.size == 1:
            return np.ascontiguousarray(gaps.T / target.norm)
        roots = np.sqrt(target.totals)
        # Orthonormal contrasts of the classes: what is orthogonal to the constant.
        contrasts = np.linalg.qr(np.column_stack([roots, np.eye(roots.size)]))[0]
        basis = contrasts[:, 1 : roots.size] / (roots[:, None] * np.sqrt(n))
        span = np.zeros((gaps.shape[1], basis.shape[1]))
        for gap, weights in zip(gaps, basis, strict=True):
            span += np.outer(gap, weights)  # a matrix product has an order of its own
        return span

    def is_relevant(self, scores: FloatArray) -> BoolArray:
        """Whether the p-value is at most alpha: the score is past a critical value."""
        return scores >= self.critical

    def columns(
        self, encoded: EncodedMoments, which: IntArray
    ) -> tuple[DenseValues | SparseValues, IntArray]:
        """Deviations of the chosen columns, and their positions among them."""
        sums, values = encoded.sums, encoded.values
        positions, held = np.arange(which.size), encoded.held
        columns: DenseValues | SparseValues
        if isinstance(values, SparseColumns):
            columns = sparse_values.deviations(values, which, sums)
        elif held is None:
            columns = dense_values.deviations(values.T, which, sums, encoded.room)
        else:
            relevant = np.flatnonzero(self.is_relevant(encoded.scores))
            if not np.array_equal(which, relevant):
                is_held = np.isin(which, relevant).all()
                rows = held[np.searchsorted(relevant, which)] if is_held else None
                held = by_column(values[:, which]).T if rows is None else rows
            chosen, rows = _choose(sums, which), read_only(held)
            columns = dense_values.deviations(rows, positions, chosen)
        if self.is_split:
            columns = columns._replace(span=self.span(_choose(sums, which)))
        return columns, positions

    def conditional_rule(self, alpha: float, rule: Rule) -> ConditionalRule:
        """The rule by which partial correlation decides at a level."""
        self.is_split = True
        critical = critical_share(alpha, self.n_samples, self.n_spanning, 1)
        critical = np.nan_to_num(critical, nan=1.0)
        options = rule.tie_winner, rule.displacer, rule.is_deferred, rule.limit
        return ConditionalRule(*options, alpha, np.atleast_1d(critical), ())

    def p_given(self, values: FloatArray) -> FloatArray:
        """P-values of the conditional test, from what the scan recorded."""
        share = np.clip(values, 0.0, 1.0)
        return p_of_share(share, self.n_samples, self.n_spanning, 1)


def _choose(sums: MomentSums, which: IntArray | slice) -> MomentSums:
    return MomentSums(*(array[which] for array in sums))


def _sparse_sample(
    offset: IntArray,
    length: IntArray,
    rows: NDArray[Any],
    values: NDArray[Any],
    n_rows: int,
) -> SparseSample:
    """Columns that lie in larger arrays, each from an offset on."""
    indptr = np.append(0, np.cumsum(length))
    entries = np.arange(indptr[-1]) + np.repeat(offset - indptr[:-1], length)
    return SparseSample(indptr, rows[entries], values[entries].astype(float), n_rows)


def _sample_of_kept(columns: Any, which: IntArray, n_rows: int) -> Sample:
    """The values of some kept columns, less a number of each."""
    if isinstance(columns, SparseValues):
        offset, length = columns.offset[which], columns.length[which]
        pools = columns.rows, columns.values
        found = _sparse_sample(offset, length, *pools, n_rows)
        found.values[:] -= np.repeat(columns.background[which], length)
        return found
    as_rows: Any = DENSE_VALUES.as_rows
    return DenseSample(as_rows(columns, which, n_rows))


def critical_share(
    alpha: float, n: int, n_spanning: int, n_given: Any, always_f: bool = False
) -> Any:
    """Least squared correlation, given some columns, that is significant at a level.

    The test is Fisher's Z or, if several variables span the target or ``always_f``, the
    F-test. NaN if there are too few samples.
    """
    by_f_test = always_f or n_spanning > 1
    left = n - np.asarray(n_given, np.float64) - n_spanning - (1 if by_f_test else 2)
    left = np.where(left > 0, left, np.nan)
    if not by_f_test:
        return np.tanh(-special.ndtri(alpha / 2) / np.sqrt(left)) ** 2
    f = special.fdtri(n_spanning, left, 1 - alpha) * n_spanning
    return f / (f + left)


def p_of_share(
    share: FloatArray, n: int, n_spanning: int, n_given: int, always_f: bool = False
) -> FloatArray:
    """P-values of squared correlations by these tests; 1 with too few samples."""
    by_f_test = always_f or n_spanning > 1
    left = n - n_given - n_spanning - (1 if by_f_test else 2)
    if left <= 0:
        return np.where(np.isnan(share), np.nan, 1.0)
    p_values: FloatArray
    with np.errstate(divide="ignore"):
        if by_f_test:
            f = share / n_spanning * left / (1 - share)
            p_values = special.fdtrc(n_spanning, left, f)
        else:
            z = np.arctanh(np.sqrt(share)) * np.sqrt(left)
            p_values = 2 * special.ndtr(-z)
    return p_values


register_measure("fisher-z", FisherZ)
