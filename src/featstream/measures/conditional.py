"""Tests of independence given other features: what they share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from featstream.errors import ParameterError, printable
from featstream.kernels.osfs import Candidates, KeptSet
from featstream.kernels.subsets import LEFT, separate
from featstream.measures.checks import LeftOut
from featstream.protocols import Block, BoolArray, FloatArray, IntArray

__all__ = [
    "TARGET",
    "BoundTest",
    "ConditionalTest",
    "Screening",
    "TestResult",
    "check_alpha",
    "check_unreliable",
]

TARGET = -1
"""Stands for the target where a test asks for two columns."""


@dataclass(frozen=True, slots=True)
class TestResult:
    """What a test of independence found.

    Attributes
    ----------
    statistic : float
        The statistic; NaN if the test was not run.
    df : int
        Its degrees of freedom.
    p_value : float
        How often independence gives a statistic as extreme; 1 if not run.
    is_reliable : bool
        Whether there were enough samples. If not, the test was not run.
    is_independent : bool
        The verdict; of a test that was not run, what its rule says.
    effect : float
        The strength of the dependence: absolute (partial) correlation,
        (conditional) mutual information in bits, or chi-square per sample.
    """

    __test__: ClassVar[bool] = False

    statistic: float
    df: int
    p_value: float
    is_reliable: bool
    is_independent: bool
    effect: float


class Screening(NamedTuple):
    """Every column of a block tested with the target alone."""

    effect: FloatArray
    is_dependent: BoolArray
    is_reliable: BoolArray


class ConditionalTest(BaseEstimator):
    """A test of independence given other features; bound to a target before use."""

    @abstractmethod
    def bind(self, y: Any) -> BoundTest:
        """Prepare for the target ``y``."""


class BoundTest(ABC):
    """A test that knows the target.

    ``encode`` checks a block and makes it ready for the kernels, ``screen`` tests
    all its columns with the target, ``gather`` puts chosen columns into the form
    in which `test` and `find_separator` take them.
    """

    name: str
    n_samples: int
    left_out: LeftOut

    @abstractmethod
    def encode(self, block: Block) -> Any:
        """Check a block and make it ready for the kernels."""

    @abstractmethod
    def screen(self, encoded: Any) -> Screening:
        """Test every column with the target."""

    @abstractmethod
    def gather(self, encoded: Any, which: IntArray) -> Any:
        """The chosen columns as `test` wants them."""

    @abstractmethod
    def test(
        self, columns: Any, a: int, b: int = TARGET, given: Sequence[int] = ()
    ) -> TestResult:
        """Test columns ``a`` and ``b`` given others.

        Parameters
        ----------
        columns : from `gather`
            The columns.
        a, b : int
            Positions among them; ``b`` may be ``TARGET``.
        given : sequence of int
            Positions of the columns conditioned on.
        """

    def find_separator(
        self,
        columns: Any,
        a: int,
        b: int = TARGET,
        among: Iterable[int] = (),
        *,
        max_size: int = 3,
    ) -> tuple[int, ...] | None:
        """First set of at most ``max_size`` columns that separates ``a`` from ``b``.

        Sets are tried by size, then in lexicographic order of ``among``. The empty
        set is not tried. None if no set separates them.
        """
        rule, paired, work = self._pair(columns, b, max_size)
        found = np.zeros(max(1, max_size), np.int64)
        candidates = np.fromiter(among, np.int64)
        tally = np.zeros(4, np.int64)
        tally[LEFT] = np.iinfo(np.int64).max
        size = separate(paired, a, candidates, -1, rule, work, found, tally)
        return tuple(found[:size].tolist()) if size else None

    @abstractmethod
    def rule(self, max_size: int) -> Any:
        """The test as the kernels want it, for sets of at most ``max_size``."""

    @abstractmethod
    def work(self, max_size: int) -> Any:
        """Working memory for one search."""

    @abstractmethod
    def candidates(
        self, encoded: Any, which: IntArray, scores: FloatArray, start: int
    ) -> Candidates:
        """The chosen columns as newcomers of a stream."""

    @abstractmethod
    def allocate(self, capacity: int) -> KeptSet:
        """An empty kept set of so many slots."""

    @abstractmethod
    def _pair(self, columns: Any, b: int, max_size: int) -> tuple[Any, Any, Any]:
        """Rule, columns and memory for tests with ``b`` in place of the target."""


def check_alpha(alpha: Any, owner: str) -> float:
    """A significance level in (0, 1)."""
    is_number = isinstance(alpha, int | float | np.number)
    if is_number and not isinstance(alpha, bool) and 0 < alpha < 1:
        return float(alpha)
    hint = "Use a small level such as alpha=0.01."
    if is_number and 1 <= alpha < 100:
        hint = f"For a {alpha:g}% level write alpha={alpha / 100:g}."
    raise ParameterError(
        f"`alpha` of {owner} must be a float in (0, 1). Got {alpha!r}. {hint}"
    )


def check_unreliable(value: Any, owner: str) -> bool:
    """Whether a test that cannot be run counts as independence."""
    if value not in ("independent", "skip"):
        raise ParameterError(
            f"`unreliable` of {owner} must be 'independent' or 'skip'. "
            f"Got {printable(value)}."
        )
    return bool(value == "independent")
