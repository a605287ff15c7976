"""P-values of continuous columns given their values: the law over all orders of rows.

The F-test supposes normal laws. At small levels it promises too much if a class is rare
and a column is skewed or mostly one value: a few large values that happen to lie in the
rare class suffice. Given the values, the sum over the rows of a class is that of a
random draw of as many rows, whatever the law of the column.

With several classes each is compared with the rest; a numeric target is replaced by its
normal scores, or cut in two at several places, and p-values are multiplied by the
number of classes or cuts. The p-value is never smaller than that of the F-test. Where
it can be seen that the F-test is right, by the third and fourth moments, or that the
p-value is below any level that matters, the F-test is all that is asked.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from featstream.measures.drawn_sums import DrawnSum, log_chance_of_rows, log_tails
from featstream.protocols import FloatArray, IntArray

_CLOSE = 0.25
"""Natural logarithm of the factor by which the F-test may be wrong."""

_SURE = math.log(1e-10)
"""P-values certainly below this need not be exact: no level is that small."""

_NEARLY_NORMAL = 0.2
"""Skewness and excess kurtosis of normal scores with few ties are below this."""

_MOST_CLASSES_ASKED = 3
_CUTS = (0.02, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98)
"""Shares of the rows below which a numeric target is cut."""

_IN_CACHE = 1 << 14


@dataclass(frozen=True, slots=True)
class DenseSample:
    """Some columns with a value for every row, one row of ``values`` each."""

    values: FloatArray

    def moments(self) -> FloatArray:
        """Mean, standard deviation, skewness and excess kurtosis; shape (4, n)."""
        # Few columns at a time, so that deviations stay in the cache.
        width = max(1, _IN_CACHE // self.values.shape[1])
        found = np.empty((4, self.values.shape[0]))
        for first in range(0, self.values.shape[0], width):
            here = slice(first, first + width)
            values = self.values[here]
            mean = values.mean(axis=1)
            deviations = values - mean[:, None]
            squares = deviations * deviations
            m2 = squares.mean(axis=1)
            m3 = np.einsum("ij,ij->i", squares, deviations) / values.shape[1]
            m4 = np.einsum("ij,ij->i", squares, squares) / values.shape[1]
            found[:, here] = _standard_moments(mean, m2, m3, m4)
        return found

    def sums(self, weights: FloatArray) -> FloatArray:
        """Sums of weight times value: shape (columns, weights)."""
        # A matrix product would add in an order of the machine's own.
        found: FloatArray = np.einsum("in,kn->ik", self.values, weights)
        return found

    def distinct(self, i: int) -> tuple[FloatArray, IntArray]:
        """The values of a column, in increasing order, and how many rows have them."""
        found = np.unique(self.values[i], return_counts=True)
        return found[0], found[1].astype(np.int64)


@dataclass(frozen=True, slots=True)
class SparseSample:
    """Some columns by their stored rows; the other rows are zero."""

    indptr: IntArray
    rows: NDArray[Any]
    values: FloatArray
    n_rows: int

    def moments(self) -> FloatArray:
        """Mean, standard deviation, skewness and excess kurtosis; shape (4, n)."""
        n, lengths = self.n_rows, np.diff(self.indptr)
        mean = self._add(self.values) / n
        deviations = self.values - np.repeat(mean, lengths)
        powers = [
            (self._add(deviations**k) + (n - lengths) * (-mean) ** k) / n
            for k in (2, 3, 4)
        ]
        return _standard_moments(mean, *powers)

    def _add(self, entries: FloatArray) -> FloatArray:
        """The sum over the stored rows of each column."""
        is_stored = np.diff(self.indptr) > 0
        sums = np.zeros(is_stored.size)
        if entries.size:
            sums[is_stored] = np.add.reduceat(entries, self.indptr[:-1][is_stored])
        return sums

    def sums(self, weights: FloatArray) -> FloatArray:
        """Sums of weight times value: shape (columns, weights)."""
        of_rows = (self._add(self.values * row[self.rows]) for row in weights)
        return np.column_stack(list(of_rows))

    def distinct(self, i: int) -> tuple[FloatArray, IntArray]:
        """The values of a column, in increasing order, and how many rows have them."""
        stored = self.values[self.indptr[i] : self.indptr[i + 1]]
        values, counts = np.unique(stored, return_counts=True)
        n_rest = self.n_rows - stored.size
        if n_rest:
            place = int(np.searchsorted(values, 0.0))
            if place < values.size and values[place] == 0.0:
                counts[place] += n_rest
            else:
                values = np.insert(values, place, 0.0)
                counts = np.insert(counts, place, n_rest)
        return values, counts.astype(np.int64)


Sample = DenseSample | SparseSample


def _standard_moments(
    mean: FloatArray, m2: FloatArray, m3: FloatArray, m4: FloatArray
) -> FloatArray:
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.array([mean, np.sqrt(m2), m3 / m2**1.5, m4 / m2**2 - 3.0])
    result: FloatArray = np.nan_to_num(found, nan=0.0, posinf=0.0)
    return result


class PermutationLaws:
    """The laws of continuous columns over all orders of the rows of one target.

    ``weights`` are the target: a row of indicators for each class, one for one of two
    classes, or the numbers of a numeric target.
    """

    def __init__(self, weights: FloatArray, *, is_numeric: bool) -> None:
        self.n = weights.shape[1]
        self._is_numeric = is_numeric
        self._classes = weights
        self._scores: FloatArray | None = None
        if is_numeric:
            self._scores = _normal_scores(weights[0])
            self._classes = _cut(weights[0])
        self._skewness, self._kurtosis = self._shape_of(weights)
        self._n_tests = self._classes.shape[0]

    @staticmethod
    def _shape_of(weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        moments = DenseSample(weights).moments()
        return moments[2], moments[3]

    def may_be_wrong(self, log_p: FloatArray, r: FloatArray | None) -> IntArray:
        """The columns of which more must be known than the F-test.

        ``log_p`` are the p-values of the F-test; ``r`` the correlations, or None for
        several classes.
        """
        n, z = self.n, _as_z(log_p, r, self.n)
        is_close = np.zeros(log_p.size, np.bool_)
        kurtosis = self._kurtosis.max()
        if kurtosis < -0.5:
            # Whatever the column is: the largest value of the expansion in
            # `_log_factor`, for a kurtosis of at least skewness² - 2.
            skewness = np.abs(self._skewness).max()
            most = skewness**2 * z**2 / (6.0 * -kurtosis)
            most += -self._kurtosis.min() * z**4 / (12.0 * n)
            is_close = most <= _CLOSE
        if r is not None and not self._is_numeric:
            is_close |= self._log_bound(r) <= _SURE
        return np.flatnonzero(~is_close)

    def _log_bound(self, r: FloatArray) -> FloatArray:
        """A bound of the log p-value that holds for any column, with two classes.

        It is Chernoff's, with the variance proxy of Kearns and Saul for each row.
        """
        n, share = self.n, float(self._classes[0].mean())
        share = min(share, 1.0 - share)
        if share == 0.5:
            proxy = 0.25
        else:
            proxy = (1.0 - 2.0 * share) / (2.0 * math.log((1.0 - share) / share))
        square = r * r * share * (1.0 - share) / proxy
        log_rows = log_chance_of_rows(n, share * n)
        found: FloatArray = math.log(2.0) - n * square / 2.0 - log_rows
        return found

    def log_p_values(
        self, sample: Sample, log_p: FloatArray, r: FloatArray | None
    ) -> FloatArray:
        """Log p-values of columns: those of the F-test, or larger ones.

        ``r`` are signed or absolute correlations, or None for several classes.
        """
        moments = sample.moments()
        z = _as_z(log_p, r, self.n)
        factor = self._log_factor(moments, z, self._skewness, self._kurtosis)
        which = np.flatnonzero((factor > _CLOSE) & (moments[1] > 0.0))
        log_p = log_p.copy()
        if self._scores is not None and which.size:
            log_p, which = self._by_scores(sample, moments, log_p, which)
        if which.size:
            found = self._by_classes(sample, moments, which)
            log_p[which] = np.maximum(log_p[which], found)
        return log_p

    def _log_factor(
        self,
        moments: FloatArray,
        z: FloatArray,
        skewness: FloatArray,
        kurtosis: FloatArray,
    ) -> FloatArray:
        """Log of the factor by which the F-test promises too much, about.

        The third and fourth cumulants of the correlation, over all orders of the rows,
        differ from those of the F-test by the products of the cumulants of both sides.
        """
        third = np.abs(moments[2]) * np.abs(skewness).max() / math.sqrt(self.n)
        fourth = np.maximum(
            moments[3] * kurtosis.max() / self.n, moments[3] * kurtosis.min() / self.n
        )
        found: FloatArray = third * z**3 / 6.0 + np.maximum(fourth, 0.0) * z**4 / 24.0
        return found

    def _by_scores(
        self, sample: Sample, moments: FloatArray, log_p: FloatArray, which: IntArray
    ) -> tuple[FloatArray, IntArray]:
        """The larger of two p-values, with the target and with its normal scores.

        And the columns for which that is not enough either.
        """
        scores = self._scores
        assert scores is not None
        n = self.n
        centred = scores - scores.mean()
        covariance = sample.sums(centred[None, :])[which, 0]
        spread = math.sqrt(float(centred @ centred) * n)
        r = np.minimum(np.abs(covariance) / (moments[1][which] * spread), 1.0)
        found = log_f_tail(r * r, 1, n - 2)
        log_p[which] = np.maximum(log_p[which], found)
        shape = skewness, kurtosis = self._shape_of(scores[None, :])
        if abs(skewness[0]) < _NEARLY_NORMAL and kurtosis[0] < _NEARLY_NORMAL:
            return log_p, which[:0]  # the F-test of normal scores holds for any column
        z = _as_z(found, r, n)
        factor = self._log_factor(moments[:, which], z, *shape)
        return log_p, which[factor > _CLOSE]

    def _by_classes(
        self, sample: Sample, moments: FloatArray, which: IntArray
    ) -> FloatArray:
        """Log p-values of columns by each class against the rest."""
        n, classes = self.n, self._classes
        sizes = classes.sum(axis=1)
        sums = sample.sums(classes)[which]
        mean, deviation = moments[0][which], moments[1][which]
        gaps = (sums - np.outer(mean, sizes)) / deviation[:, None]
        z = gaps / np.sqrt(sizes * (n - sizes) / n)
        n_asked = min(self._n_tests, _MOST_CLASSES_ASKED)
        asked = np.argsort(-np.abs(z), axis=1, kind="stable")[:, :n_asked]
        tests = []
        for k, i in enumerate(which.tolist()):
            values, counts = sample.distinct(i)
            values = (values - mean[k]) / deviation[k]
            for c in asked[k].tolist():
                n_drawn, gap = int(sizes[c]), float(gaps[k, c])
                if 2 * n_drawn > n:
                    n_drawn, gap = n - n_drawn, -gap
                tests.append(DrawnSum(k, values, counts, n_drawn, gap))
        least = np.zeros(which.size)
        for test, found in zip(tests, log_tails(tests), strict=True):
            least[test.column] = min(least[test.column], found)
        return np.minimum(least + math.log(self._n_tests), 0.0)


def _as_z(log_p: FloatArray, r: FloatArray | None, n: int) -> FloatArray:
    """How many standard deviations a p-value, or a correlation, is away from zero."""
    if r is not None:
        return np.abs(r) * math.sqrt(n - 1.0)
    found: FloatArray = -special.ndtri_exp(np.minimum(log_p, 0.0) - math.log(2.0))
    return np.maximum(found, 0.0)


def _normal_scores(numbers: FloatArray) -> FloatArray:
    """Normal scores of the ranks (Blom's); tied values share the mean of theirs."""
    n = numbers.size
    order = np.argsort(numbers, kind="stable")
    scores = np.empty(n)
    scores[order] = special.ndtri((np.arange(1.0, n + 1.0) - 0.375) / (n + 0.25))
    _, codes, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    found: FloatArray = (np.bincount(codes, scores) / counts)[codes]
    return found


def _cut(numbers: FloatArray) -> FloatArray:
    """Indicators of the rows above some cuts, at about the shares `_CUTS`."""
    values, counts = np.unique(numbers, return_counts=True)
    below = np.cumsum(counts)[:-1]
    places = [int(np.abs(below - share * numbers.size).argmin()) for share in _CUTS]
    return np.array([numbers > values[place] for place in sorted(set(places))], float)


def log_f_tail(share: FloatArray, df: int, left: int) -> FloatArray:
    """Log p-values of the F-test for explained shares of the variance.

    There are ``df`` degrees of freedom for what is explained and ``left`` for the rest;
    without any left the p-value is 1.
    """
    share = np.asarray(share, np.float64)
    if left <= 0:
        return np.where(np.isnan(share), np.nan, 0.0)
    a, b = left / 2.0, df / 2.0
    rest = np.clip(1.0 - share, 0.0, 1.0)
    with np.errstate(divide="ignore"):
        found: FloatArray = np.log(special.betainc(a, b, rest))
    is_far = (found < -650.0) & (rest > 0.0)
    if is_far.any():
        found[is_far] = _log_beta_tail(a, b, rest[is_far])
    return found


def _log_beta_tail(a: float, b: float, x: FloatArray) -> FloatArray:
    """Log of the incomplete beta function where it underflows.

    By its continued fraction, which converges at once so far out.
    """
    fraction = np.ones(x.size)
    for m in range(30, 0, -1):
        even = m * (b - m) / ((a + 2 * m - 1.0) * (a + 2 * m))
        k = m - 1
        odd = -(a + k) * (a + b + k) / ((a + 2 * k) * (a + 2 * k + 1.0))
        fraction = 1.0 + odd * x / (1.0 + even * x / fraction)
    front = a * np.log(x) + b * np.log1p(-x) - math.log(a) - special.betaln(a, b)
    found: FloatArray = front - np.log(fraction)
    return found
