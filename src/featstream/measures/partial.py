"""Fisher's Z test of partial correlation, for continuous features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from scipy import stats

from featstream.kernels.osfs import Candidates, KeptSet, fill_correlations, keep_values
from featstream.kernels.partial import (
    Correlations,
    PartialRule,
    PartialWork,
    begin_partial,
    measure_partial,
    partial_work,
)
from featstream.measures.conditional import (
    TARGET,
    BoundTest,
    ConditionalTest,
    Screening,
    TestResult,
    check_alpha,
    check_unreliable,
)
from featstream.measures.fisher import BoundFisherZ, EncodedMoments, FisherZ
from featstream.protocols import Block, FloatArray, IntArray

__all__ = ["BoundPartialTest", "FisherZTest"]


class FisherZTest(ConditionalTest):
    """Fisher's Z test of (partial) correlation, for continuous features.

    The partial correlation ``r`` of two variables given a set comes from a Cholesky
    factor that grows with the set, and ``W = sqrt(n - |S| - 3) atanh(r)`` is
    compared with the normal distribution. With more than two classes the test is
    the F-test of the classes in a regression on the set.

    Parameters
    ----------
    alpha : float, default=0.01
        Significance level: dependent when the p-value is at most alpha.
    target : {"nominal", "numeric"}, default="nominal"
        "numeric" correlates with the target as a number, whatever its values.
    unreliable : {"independent", "skip"}, default="independent"
        What a search makes of a set for which there are too few samples:
        independence, or nothing.

    Notes
    -----
    A column that is a linear function of the given ones is independent of
    everything, and so is everything of a target that they determine. A set that
    is itself linearly dependent is passed over: its independent part has been
    tried before. (The authors' own library inverts a singular matrix there.)

    Examples
    --------
    >>> import numpy as np
    >>> from featstream.measures import FisherZTest
    >>> from featstream.protocols import Block
    >>> rng = np.random.default_rng(0)
    >>> cause = rng.normal(size=200)
    >>> y = cause + rng.normal(size=200) > 0
    >>> X = np.c_[cause, cause + rng.normal(size=200)]
    >>> test = FisherZTest().bind(y)
    >>> columns = test.gather(test.encode(Block(np.asfortranarray(X))), np.arange(2))
    >>> test.test(columns, 1).is_independent
    False
    >>> test.test(columns, 1, given=[0]).is_independent
    True
    """

    def __init__(
        self,
        *,
        alpha: float = 0.01,
        target: Literal["nominal", "numeric"] = "nominal",
        unreliable: Literal["independent", "skip"] = "independent",
    ) -> None:
        self.alpha = alpha
        self.target = target
        self.unreliable = unreliable

    def bind(self, y: Any) -> BoundPartialTest:
        """Prepare for the target ``y``."""
        owner = type(self).__name__
        alpha = check_alpha(self.alpha, owner)
        separates = check_unreliable(self.unreliable, owner)
        measure = FisherZ(alpha=alpha, target=self.target).bind(y)
        return BoundPartialTest(measure, alpha, separates)


class BoundPartialTest(BoundTest):
    """`FisherZTest` that knows the target."""

    name = "fisher-z"

    def __init__(
        self,
        measure: BoundFisherZ,
        alpha: float,
        unreliable_separates: bool,
    ) -> None:
        self._measure = measure
        self._n_targets = measure.n_spanning
        self._alpha = alpha
        self._unreliable_separates = unreliable_separates
        self.n_samples = measure.n_samples
        self.left_out = measure.left_out

    def encode(self, block: Block) -> EncodedMoments:
        """Check a block and sum its columns."""
        return self._measure.encode(block)

    def screen(self, encoded: EncodedMoments) -> Screening:
        """Test every column with the target."""
        scores = self._measure.relevance(encoded)
        is_reliable = np.full(scores.size, np.isfinite(self._measure.critical))
        return Screening(scores, self._measure.is_relevant(scores), is_reliable)

    def gather(self, encoded: EncodedMoments, which: IntArray) -> Correlations:
        """The chosen columns by their correlations."""
        columns, positions = self._measure.columns(encoded, which)
        values = np.empty((positions.size, self.n_samples))
        for row, i in zip(values, positions, strict=True):
            keep_values(columns, i, row)
        total, norm = columns.total[positions], columns.norm[positions]
        gram = np.empty((positions.size, positions.size))
        fill_correlations(values, total, norm, gram)
        return Correlations(gram, self._measure.span(encoded)[which])

    def test(
        self, columns: Correlations, a: int, b: int = TARGET, given: Sequence[int] = ()
    ) -> TestResult:
        """Test columns ``a`` and ``b`` given others."""
        size = len(given)
        rule, paired, work = self._pair(columns, b, size)
        n_targets = paired.links.shape[1]
        begin_partial(paired, a, rule, work)
        path = np.array([*given, 0], np.int64)
        effect, _ = measure_partial(paired, path, size, 0, rule, work)
        n, is_singular = self.n_samples, bool(np.isnan(effect))
        df = n - size - (3 if n_targets == 1 else n_targets + 1)
        if df <= 0 or is_singular:
            return TestResult(np.nan, df, 1.0, False, not is_singular, effect)
        if n_targets == 1:
            statistic = float(np.sqrt(df) * np.arctanh(min(effect, 1 - 1e-16)))
            p_value = float(2 * stats.norm.sf(statistic))
        else:
            share = min(effect**2, 1 - 1e-16)
            statistic = share / (1 - share) * df / n_targets
            p_value = float(stats.f.sf(statistic, n_targets, df))
        is_independent = bool(effect < rule.critical[size])
        return TestResult(statistic, df, p_value, True, is_independent, effect)

    def rule(self, max_size: int) -> PartialRule:
        """The test as the kernels want it."""
        return self._rule(self._n_targets, max_size)

    def work(self, max_size: int) -> PartialWork:
        """Working memory for one search."""
        return partial_work(self._n_targets, max_size)

    def candidates(
        self, encoded: EncodedMoments, which: IntArray, scores: FloatArray, start: int
    ) -> Candidates:
        """The chosen columns as newcomers of a stream."""
        columns, positions = self._measure.columns(encoded, which)
        return Candidates(
            columns,
            positions,
            scores[which],
            start + which,
            np.zeros(which.size, np.int64),
            self._measure.span(encoded)[which],
        )

    def allocate(self, capacity: int) -> KeptSet:
        """An empty kept set of so many slots."""
        links = np.zeros((capacity, self._n_targets))
        return KeptSet(
            pool=Correlations(np.zeros((capacity, capacity)), links),
            score=np.zeros(capacity),
            arrival=np.zeros(capacity, np.int64),
            values=np.zeros((capacity, self.n_samples)),
            total=np.zeros(capacity),
            norm=np.zeros(capacity),
            size=np.zeros(1, np.int64),
        )

    def _rule(self, n_targets: int, max_size: int) -> PartialRule:
        sizes = np.arange(max_size + 1.0)
        if n_targets == 1:
            left = self.n_samples - sizes - 3
            scale = np.sqrt(np.where(left > 0, left, np.nan))
            critical = np.tanh(stats.norm.isf(self._alpha / 2) / scale)
        else:
            left = self.n_samples - sizes - n_targets - 1
            left = np.where(left > 0, left, np.nan)
            f = stats.f.isf(self._alpha, n_targets, left) * n_targets
            critical = np.sqrt(f / (f + left))
        return PartialRule(critical, max_size, self._unreliable_separates)

    def _pair(
        self, columns: Correlations, b: int, max_size: int
    ) -> tuple[PartialRule, Correlations, PartialWork]:
        if b == TARGET:
            return self.rule(max_size), columns, self.work(max_size)
        paired = columns._replace(links=columns.gram[:, b : b + 1].copy())
        return self._rule(1, max_size), paired, partial_work(1, max_size)
