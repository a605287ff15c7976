"""P-values of continuous columns given their values: the law over all orders of rows.

The F-test supposes normal laws. At small levels it promises too much if a class is rare
and a column is skewed or mostly one value: a few large values that happen to lie in the
rare class suffice. Given the values, the sum over the rows of a class is that of a
random draw of as many rows, whatever the law of the column:

- if few draws are possible, as for a column with few values that are not zero, its tail
  is counted in full;
- otherwise it is the double saddlepoint approximation (Skovgaard 1987, Robinson 1982).
  For values with ties it is taken half a step nearer to the mean.

With several classes each is compared with the rest; a numeric target is replaced by its
normal scores, or cut in two at several places, and p-values are multiplied by the number
of classes or cuts. The p-value is never smaller than that of the F-test. Where it can be
seen that the F-test is right, by the third and fourth moments, or that the p-value is
below any level that matters, the F-test is all that is asked.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from featstream.measures.exact_laws import (
    MOST_DRAWS,
    count_draws,
    log_tail_of_draws,
)
from featstream.protocols import FloatArray, IntArray

_CLOSE = 0.25
"""Natural logarithm of the factor by which the F-test may be wrong."""

_SURE = math.log(1e-10)
"""P-values certainly below this need not be exact: no level is that small."""

_MOST_CLASSES_ASKED = 3
_CUTS = (0.02, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98)
"""Shares of the rows below which a numeric target is cut."""

_TIED = 0.1
"""Values that are shared by this part of the rows, without the commonest value, count
as a lattice."""

_OUTLYING = 0.5
_MOST_OUTLIERS = 2
"""Values of more standard deviations of the sum than this are told apart, and how many.
"""

_MOST_DISTINCT = 64
_RESOLUTION = 0.1
"""More values than this are merged where they are near each other, but for a quarter as
many at both ends; the resolution is in standard deviations, or a share of larger values.
"""

_ROUNDING = 1e-9
_IN_CACHE = 1 << 14
_BATCH = 1 << 17
_MOST_STEPS = 60


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
        found: FloatArray = self.values @ weights.T
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
        sums = np.append(0.0, np.cumsum(entries))
        return np.diff(sums[self.indptr]) if entries.size else np.diff(self.indptr) * 0.0

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
    return np.nan_to_num(found, nan=0.0, posinf=0.0)


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
        log_rows = _log_chance_of_rows(n, share * n)
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
        shape = self._shape_of(scores[None, :])
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


@dataclass(frozen=True, slots=True)
class DrawnSum:
    """The sum over ``n_drawn`` of the rows of a column, which is to be judged.

    ``counts`` rows have each of the ``values``, which increase. ``half_step`` is half
    the distance of sums that are next to each other, if many values are equal.
    """

    column: int
    values: FloatArray
    counts: IntArray
    n_drawn: int
    total: float
    half_step: float = 0.0

    def mirrored(self) -> DrawnSum:
        """The same of the negative values."""
        own = -self.values[::-1], self.counts[::-1]
        return replace(self, values=own[0], counts=own[1], total=-self.total)

    def standardised(self) -> DrawnSum:
        """The same with values of mean 0 and variance 1."""
        n = int(self.counts.sum())
        mean = float(self.values @ self.counts) / n
        values = self.values - mean
        deviation = math.sqrt(float((values * values) @ self.counts) / n)
        if deviation == 0.0:
            return replace(self, values=values, total=0.0)
        return replace(
            self,
            values=values / deviation,
            total=(self.total - self.n_drawn * mean) / deviation,
            half_step=self.half_step / deviation,
        )

    def least(self) -> float:
        """The smallest sum that can be drawn."""
        before = self.counts.cumsum() - self.counts
        drawn = np.minimum(self.counts, np.maximum(self.n_drawn - before, 0))
        return float(self.values @ drawn)

    def largest(self) -> tuple[float, float]:
        """The largest sum that can be drawn, and the log of its probability."""
        after = self.counts[::-1].cumsum()[::-1] - self.counts
        drawn = np.minimum(self.counts, np.maximum(self.n_drawn - after, 0))
        ways = _log_binomial(self.counts, drawn).sum()
        chance = ways - _log_binomial(int(self.counts.sum()), self.n_drawn)
        return float(self.values @ drawn), float(chance)

    def compressed(self) -> DrawnSum:
        """The same with values that are near each other replaced by their mean."""
        size = self.values.size
        if size <= _MOST_DISTINCT:
            return self
        key = np.rint(np.arcsinh(self.values) / _RESOLUTION)
        key[-_MOST_DISTINCT // 4 :] += np.arange(1, 1 + _MOST_DISTINCT // 4)
        key[: _MOST_DISTINCT // 4] -= np.arange(_MOST_DISTINCT // 4, 0, -1)
        begins = np.flatnonzero(np.append(True, np.diff(key) != 0.0))
        counts = np.add.reduceat(self.counts, begins)
        values = np.add.reduceat(self.values * self.counts, begins) / counts
        return replace(self, values=values, counts=counts)


def log_tails(tests: list[DrawnSum]) -> FloatArray:
    """Log probabilities of sums at least as far from the mean, on either side.

    By the saddlepoint it is twice that of the side observed, unless sums as far on the
    other side are impossible.
    """
    found = np.zeros(len(tests))
    factor, floor = np.zeros(len(tests)), np.full(len(tests), -np.inf)
    parts: list[DrawnSum] = []
    log_weights: list[float] = []
    for k, given in enumerate(tests):
        test = replace(given, column=k).standardised()
        test = test.mirrored() if test.total < 0.0 else test
        known = _count_tail(test)
        if known is not None:
            found[k] = known
            continue
        found[k] = -np.inf
        if test.least() <= -(1.0 - _ROUNDING) * test.total:
            factor[k] = math.log(2.0)
        # No tail is smaller than the chance of the largest sum that can be drawn.
        largest, floor[k] = test.largest()
        if test.total >= (1.0 - _ROUNDING) * largest:
            continue
        test = replace(test, half_step=_half_step(test.values, test.counts))
        near = test.compressed()
        near = near if test.total < 0.9 * near.largest()[0] else test
        for log_weight, part in _given_outliers(near):
            log_weights.append(log_weight)
            parts.append(part)
    if parts:
        logs = np.array(log_weights) + _upper_tails(parts)
        np.logaddexp.at(found, [part.column for part in parts], logs)
    return np.minimum(np.maximum(found, floor) + factor, 0.0)


def _count_tail(test: DrawnSum) -> float | None:
    """Both tails by counting all draws; None if there are too many."""
    order = np.argsort(test.counts, kind="stable")
    sizes = test.counts[order]
    if count_draws(sizes[:-1], test.n_drawn) > MOST_DRAWS:
        return None
    begins = np.append(0, np.cumsum(sizes + 1))
    drawn = np.arange(begins[-1]) - np.repeat(begins[:-1], sizes + 1)
    log_weights = _log_binomial(np.repeat(sizes, sizes + 1), drawn)
    parts = drawn * np.repeat(test.values[order], sizes + 1)
    slack = _ROUNDING * max(1.0, test.total)
    margins = parts, log_weights, begins, test.n_drawn
    return float(log_tail_of_draws(*margins, -test.total, test.total, slack))


def _given_outliers(test: DrawnSum) -> Iterator[tuple[float, DrawnSum]]:
    """What is left to be drawn given which of the largest values are.

    A single value that is large against the spread of the sum leaves a gap in its law,
    which the saddlepoint does not see. Yields the log probability of each case.
    """
    n, n_drawn = int(test.counts.sum()), test.n_drawn
    spread = math.sqrt(n_drawn * (n - n_drawn) / n)
    n_out = 0
    while n_out < _MOST_OUTLIERS:
        place = test.values.size - 1 - n_out
        is_outlier = test.values[place] > _OUTLYING * spread
        if not (is_outlier and test.counts[place] == 1):
            break
        n_out += 1
    n_left = test.values.size - n_out
    outliers = test.values[n_left:]
    rest = replace(test, values=test.values[:n_left], counts=test.counts[:n_left])
    all_ways = _log_binomial(n, n_drawn)
    for chosen in product((0, 1), repeat=n_out):
        n_more = n_drawn - sum(chosen)
        if 0 <= n_more <= n - n_out:
            total = test.total - float(np.dot(chosen, outliers))
            log_weight = _log_binomial(n - n_out, n_more) - all_ways
            yield float(log_weight), replace(rest, n_drawn=n_more, total=total)


def _upper_tails(tests: list[DrawnSum]) -> FloatArray:
    """Log probabilities of sums that are no smaller, on whichever side of the mean."""
    found = np.zeros(len(tests))
    asked: list[tuple[int, DrawnSum]] = []
    for k, given in enumerate(tests):
        if given.n_drawn == 0:
            found[k] = 0.0 if given.total <= _ROUNDING else -np.inf
            continue
        test = given.standardised()
        if test.total <= 0.0 and test.total <= (1.0 - _ROUNDING) * test.least():
            continue  # no sum is smaller
        asked.append((k, test))
    asked.sort(key=lambda pair: pair[1].values.size)
    for batch in _batches(asked):
        which = [k for k, _ in batch]
        logs = _saddlepoints([test for _, test in batch])
        is_below = np.array([test.total < 0.0 for _, test in batch])
        with np.errstate(divide="ignore"):
            found[which] = np.where(is_below, np.log1p(-np.exp(logs)), logs)
    return found


def _batches(
    asked: list[tuple[int, DrawnSum]],
) -> Iterator[list[tuple[int, DrawnSum]]]:
    """Tests of about the same number of values, as many as memory allows."""
    batch: list[tuple[int, DrawnSum]] = []
    for pair in asked:
        if batch and (len(batch) + 1) * pair[1].values.size > _BATCH:
            yield batch
            batch = []
        batch.append(pair)
    if batch:
        yield batch


def _saddlepoints(tests: list[DrawnSum]) -> FloatArray:
    """Log tails beyond standardised sums, on the side of each, by the saddlepoint.

    Each row is drawn with probability ``share``, independently, given that ``n_drawn``
    are drawn in all: the law of the sum given the number. ``s`` and ``t`` tilt both.
    Where Newton's method fails, the tail is Chernoff's bound at the point reached,
    which is never too small.
    """
    width = max(test.values.size for test in tests)
    values, counts = np.zeros((2, len(tests), width))
    totals, n_drawn, n = np.empty((3, len(tests)))
    for k, test in enumerate(tests):
        here, side = slice(test.values.size), math.copysign(1.0, test.total)
        values[k, here] = test.values * side
        counts[k, here] = test.counts
        # The sum itself belongs to the upper tail.
        totals[k] = abs(test.total) - side * test.half_step
        n_drawn[k] = test.n_drawn
        n[k] = test.counts.sum()
    share = n_drawn / n
    variance = n * share * (1.0 - share)
    totals = np.maximum(totals, 1e-3 * np.sqrt(variance))
    tilt = np.column_stack([totals / variance, np.zeros(len(tests))])
    log_odds = np.log(share / (1.0 - share))
    law = _TiltedLaw(values, counts, totals, n_drawn, log_odds)
    law.solve(tilt)
    s, exponent = law.tilt[:, 0], np.maximum(-law.height, 0.0)
    w = np.sqrt(2.0 * exponent)
    determinant = law.hessian[0] * law.hessian[2] - law.hessian[1] ** 2
    v = s * np.sqrt(np.maximum(determinant, 0.0) / variance)
    with np.errstate(divide="ignore", invalid="ignore"):
        mills = math.sqrt(math.pi / 2.0) * special.erfcx(w / math.sqrt(2.0))
        log_tail = np.log(mills + 1.0 / v - 1.0 / w)
    log_tail -= exponent + 0.5 * math.log(2.0 * math.pi)
    bound = -exponent - _log_chance_of_rows(n, n_drawn)
    is_known = law.has_converged & np.isfinite(log_tail) & (w > 1e-4)
    return np.minimum(np.where(is_known, np.minimum(log_tail, bound), bound), 0.0)


class _TiltedLaw:
    """Newton's method for the tilts of many sums at once."""

    def __init__(
        self,
        values: FloatArray,
        counts: FloatArray,
        totals: FloatArray,
        n_drawn: FloatArray,
        log_odds: FloatArray,
    ) -> None:
        self._values, self._counts = values, counts
        self._totals, self._n_drawn = totals, n_drawn
        self._log_odds = log_odds[:, None]
        self._log_rest = -np.logaddexp(0.0, self._log_odds)

    def solve(self, tilt: FloatArray) -> None:
        """Find the tilts under which the sums and the numbers drawn are as observed."""
        self.tilt = tilt
        everything = np.arange(tilt.shape[0])
        self.height, self.hessian = np.zeros(everything.size), np.zeros((3, tilt.shape[0]))
        self.has_converged = np.zeros(everything.size, np.bool_)
        self.height[:] = self._height(everything, tilt)
        # From no tilt at all, if the first guess is worse than that.
        is_worse = ~(self.height <= 0.0)
        self.tilt[is_worse], self.height[is_worse] = 0.0, 0.0
        active = everything
        for _ in range(_MOST_STEPS):
            gradient, hessian = self._slopes(active)
            self.hessian[:, active] = hessian
            a, b, d = hessian
            determinant = a * d - b * b
            # There is no step where no tilt reaches the sum, or all is rounding.
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                step = np.column_stack(
                    [
                        (b * gradient[1] - d * gradient[0]) / determinant,
                        (b * gradient[0] - a * gradient[1]) / determinant,
                    ]
                )
                decrement = -(step[:, 0] * gradient[0] + step[:, 1] * gradient[1])
            is_done = decrement < 1e-10
            self.has_converged[active[is_done]] = True
            goes_on = ~is_done & np.isfinite(step).all(axis=1) & (decrement > 0.0)
            active, step, decrement = active[goes_on], step[goes_on], decrement[goes_on]
            if not active.size:
                return
            active = self._advance(active, step, decrement)

    def _advance(
        self, active: IntArray, step: FloatArray, decrement: FloatArray
    ) -> IntArray:
        """Take steps, halved until they go down; returns where that was possible."""
        size, pending = np.ones(active.size), np.arange(active.size)
        for _ in range(40):
            here = active[pending]
            tilt = self.tilt[here] + size[pending, None] * step[pending]
            height = self._height(here, tilt)
            limit = self.height[here] - 1e-4 * size[pending] * decrement[pending]
            is_lower = height <= limit
            self.tilt[here[is_lower]] = tilt[is_lower]
            self.height[here[is_lower]] = height[is_lower]
            pending = pending[~is_lower]
            if not pending.size:
                break
            size[pending] /= 2.0
        moved = np.ones(active.size, np.bool_)
        moved[pending] = False
        return active[moved]

    def _exponents(self, which: IntArray, tilt: FloatArray) -> FloatArray:
        return tilt[:, :1] * self._values[which] + tilt[:, 1:] + self._log_odds[which]

    def _height(self, which: IntArray, tilt: FloatArray) -> FloatArray:
        """The cumulant function less what is observed: the log of Chernoff's bound."""
        terms = np.logaddexp(0.0, self._exponents(which, tilt)) + self._log_rest[which]
        found = np.einsum("ij,ij->i", terms, self._counts[which])
        found -= tilt[:, 0] * self._totals[which] + tilt[:, 1] * self._n_drawn[which]
        return found

    def _slopes(self, which: IntArray) -> tuple[FloatArray, FloatArray]:
        values, counts = self._values[which], self._counts[which]
        chance = special.expit(self._exponents(which, self.tilt[which]))
        drawn = counts * chance
        spread = drawn * (1.0 - chance)
        gradient = np.array(
            [
                np.einsum("ij,ij->i", drawn, values) - self._totals[which],
                drawn.sum(axis=1) - self._n_drawn[which],
            ]
        )
        weighted = spread * values
        hessian = np.array(
            [
                np.einsum("ij,ij->i", weighted, values),
                weighted.sum(axis=1),
                spread.sum(axis=1),
            ]
        )
        return gradient, hessian


def _half_step(values: FloatArray, counts: IntArray) -> float:
    """Half of the step between the commonest value and the nearest common one.

    0 if no two values are common.
    """
    commonest = int(counts.argmax())
    n_others = int(counts.sum() - counts[commonest])
    is_common = counts >= max(2.0, _TIED * n_others)
    is_common[commonest] = False
    if not is_common.any():
        return 0.0
    distances = np.abs(values[is_common] - values[commonest])
    return float(distances.min()) / 2.0


def _as_z(log_p: FloatArray, r: FloatArray | None, n: int) -> FloatArray:
    """How many standard deviations a p-value, or a correlation, is away from zero."""
    if r is not None:
        return np.abs(r) * math.sqrt(n - 1.0)
    found: FloatArray = -special.ndtri_exp(np.minimum(log_p, 0.0) - math.log(2.0))
    return np.maximum(found, 0.0)


def _log_binomial(n: Any, k: Any) -> Any:
    n, k = np.asarray(n, np.float64), np.asarray(k, np.float64)
    found = special.gammaln(n + 1.0) - special.gammaln(k + 1.0)
    return found - special.gammaln(n - k + 1.0)


def _log_chance_of_rows(n: Any, n_drawn: Any) -> Any:
    """Log chance that independent draws of each row take as many as are expected."""
    share = n_drawn / n
    found = _log_binomial(n, n_drawn) + special.xlogy(n_drawn, share)
    return found + special.xlog1py(n - n_drawn, -share)


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
