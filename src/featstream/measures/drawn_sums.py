"""The tail of the sum over rows that are drawn from a column at random.

- If few draws are possible, as from a column with few values that are not zero, they
  are counted.
- Otherwise it is the double saddlepoint approximation (Robinson 1982, Skovgaard 1987).
  Values that are large against the spread of the sum are told apart: the tail is that
  of the rest, given which of them are drawn. For values with ties it is taken half a
  step nearer to the mean. Where Newton's method fails, Chernoff's bound takes its
  place.

References
----------
J. Robinson: Saddlepoint approximations for permutation tests and confidence intervals.
JRSS B 44, 1982. I. Skovgaard: Saddlepoint expansions for conditional distributions.
Journal of Applied Probability 24, 1987.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from scipy import special

from featstream.measures.exact_laws import (
    MOST_DRAWS,
    count_draws,
    log_tail_of_draws,
)
from featstream.protocols import FloatArray, IntArray

_TIED = 0.1
"""Values that are shared by this part of the rows, without the commonest value, count
as a lattice."""

_OUTLYING = 0.5
_MOST_OUTLIERS = 2
"""How many values are told apart, of more than this many standard deviations of the
sum."""

_MOST_DISTINCT = 64
_RESOLUTION = 0.1
"""More values than this are merged where they are near each other, but for a quarter as
many at both ends; the resolution is in standard deviations, or a share of larger
values."""

_ROUNDING = 1e-9
_BATCH = 1 << 17
_MOST_STEPS = 60


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
    result: FloatArray = np.minimum(np.maximum(found, floor) + factor, 0.0)
    return result


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
    bound = -exponent - log_chance_of_rows(n, n_drawn)
    is_known = law.has_converged & np.isfinite(log_tail) & (w > 1e-4)
    log_tail = np.where(is_known, np.minimum(log_tail, bound), bound)
    found: FloatArray = np.minimum(log_tail, 0.0)
    return found


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
        self.height, self.hessian = (
            np.zeros(everything.size),
            np.zeros((3, tilt.shape[0])),
        )
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
        found: FloatArray = np.einsum("ij,ij->i", terms, self._counts[which])
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


def _log_binomial(n: Any, k: Any) -> Any:
    n, k = np.asarray(n, np.float64), np.asarray(k, np.float64)
    found = special.gammaln(n + 1.0) - special.gammaln(k + 1.0)
    return found - special.gammaln(n - k + 1.0)


def log_chance_of_rows(n: Any, n_drawn: Any) -> Any:
    """Log chance that independent draws of each row take as many as are expected."""
    share = n_drawn / n
    found = _log_binomial(n, n_drawn) + special.xlogy(n_drawn, share)
    return found + special.xlog1py(n - n_drawn, -share)
