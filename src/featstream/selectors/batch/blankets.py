"""IAMB and MMMB: the Markov blanket of the target, by tests of independence."""

from __future__ import annotations

import time
import warnings
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from featstream.errors import (
    DataTypeError,
    FeatstreamWarning,
    check_count,
    check_number,
    printable,
)
from featstream.measures import ConditionalTest, FisherZTest, GTest
from featstream.measures.independence import TESTS, resolve_test
from featstream.measures.inputs import Choice
from featstream.parallel import count_threads
from featstream.protocols import Block, BoolArray, Fate, FloatArray, IntArray
from featstream.runs.arrays import Declared, check_arrays
from featstream.selectors.batch.base import BatchSelector, Selection
from featstream.selectors.batch.variables import (
    ContinuousTests,
    DiscreteTests,
    Tests,
    Variables,
)
from featstream.selectors.result import TraceLevel
from featstream.selectors.stream import Stream

TestName = Literal["auto", "g2", "fisher-z"]
_N_TESTS, _N_UNRELIABLE, _STOPPED = 0, 1, 2


class OutOfBudget(Exception):  # noqa: N818 (it is no error: the search ends)
    """A search has used up its tests or its time."""


@dataclass(slots=True)
class Search:
    """Tests of variables that are counted, within a budget.

    ``tally`` counts tests run and tests not run for want of samples.
    """

    variables: Variables
    separates: bool  # whether a test that cannot be run counts as independence
    max_condition: int
    max_tests: float
    deadline: float
    tally: NDArray[np.int64]

    @property
    def target(self) -> int:
        """The number of the target."""
        return self.variables.n_columns

    def test(self, a: int, given: Sequence[int], which: IntArray) -> Tests:
        """Test variable ``a`` with others, given some."""
        n_tests = int(self.tally[_N_TESTS])
        if n_tests + which.size > self.max_tests or time.monotonic() > self.deadline:
            raise OutOfBudget
        found = self.variables.test(a, given, which)
        n_run = int(np.count_nonzero(found.is_reliable))
        self.tally[_N_TESTS] += n_run
        self.tally[_N_UNRELIABLE] += which.size - n_run
        return found

    def is_separated(self, found: Tests) -> BoolArray:
        """Which of the tested variables count as independent."""
        is_open = ~found.is_reliable & (not self.separates)
        return ~found.is_dependent & ~is_open

    def subsets(self, members: Sequence[int], limit: int) -> Iterator[tuple[int, ...]]:
        """Subsets of at most ``limit`` members, the small ones first."""
        for size in range(min(limit, len(members)) + 1):
            yield from combinations(members, size)


@dataclass(slots=True)
class Blanket:
    """What a search has found so far: members, and what separates the others."""

    members: list[int] = field(default_factory=list)
    separators: dict[int, tuple[int, ...]] = field(default_factory=dict)


class _BlanketSelector(BatchSelector):
    """What the methods share: all but the search."""

    _numeric_target = "FisherZTest(target='numeric')"

    def __init__(
        self,
        *,
        test: TestName | ConditionalTest = "auto",
        alpha: float = 0.01,
        max_condition: int | None = None,
        max_tests: int | None = None,
        max_seconds: float | None = None,
        trace: TraceLevel = "full",
        n_jobs: int | None = None,
    ) -> None:
        self.test = test
        self.alpha = alpha
        self.max_condition = max_condition
        self.max_tests = max_tests
        self.max_seconds = max_seconds
        self.trace = trace
        self.n_jobs = n_jobs

    @abstractmethod
    def _search(self, search: Search, blanket: Blanket) -> None:
        """Find the blanket of the target; it holds what is known at any time."""

    @property
    def n_tests_(self) -> int:
        """Number of tests run, those with the target alone included."""
        self._started()
        return int(self._tally[_N_TESTS])

    @property
    def n_unreliable_(self) -> int:
        """Number of tests not run for want of samples."""
        self._started()
        return int(self._tally[_N_UNRELIABLE])

    @property
    def is_complete_(self) -> bool:
        """Whether the search ended within ``max_tests`` and ``max_seconds``."""
        self._started()
        return not self._tally[_STOPPED]

    def _bind(self, y: Any) -> Any:
        test = resolve_test(self.test, self.alpha, type(self).__name__)
        return None if test is None else _Binder(test, type(self).__name__).bind(y)

    def _measure_named(self, name: str, **options: Any) -> Any:
        return _Binder(TESTS[name](alpha=self.alpha, **options), type(self).__name__)

    def _propose(self, blocks: list[Block]) -> Choice:
        choice = super()._propose(blocks)
        return choice if choice.name == "fisher-z" else choice._replace(name="g2")

    def _begin(self, stream: Stream) -> None:
        owner, none = type(self).__name__, "for no limit"
        check_count(self.max_condition, "max_condition", owner, none=none)
        check_count(self.max_tests, "max_tests", owner, none=none)
        if self.max_seconds is not None:
            check_number(self.max_seconds, "max_seconds", owner)
        self._tally = np.zeros(3, np.int64)

    def _state_arrays(self) -> dict[str, NDArray[Any]]:
        return {"tally": self._tally}

    def _restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        table = {"tally": Declared(np.int64, (3,), 0)}
        self._tally = check_arrays(arrays, table)["tally"]

    def _prepare(self, block: Block, stream: Stream) -> Any:
        return stream.measure.encode(block)

    def _select(self, parts: list[Any], stream: Stream) -> Selection:
        variables = stream.measure.gather(parts, count_threads(self.n_jobs))
        limit, seconds = self.max_condition, self.max_seconds
        search = Search(
            variables,
            separates=stream.measure.separates,
            max_condition=variables.n_columns if limit is None else limit,
            max_tests=np.inf if self.max_tests is None else self.max_tests,
            deadline=time.monotonic() + (np.inf if seconds is None else seconds),
            tally=self._tally,
        )
        blanket = Blanket()
        try:
            self._search(search, blanket)
        except OutOfBudget:
            self._tally[_STOPPED] = 1
            self._warn(blanket, variables.n_columns)
        order = np.array(blanket.members, np.int64)
        relevance: FloatArray = variables.effects
        fate = np.full(relevance.size, Fate.REDUNDANT, np.uint8)
        witness = np.full(relevance.size, -1)
        for column, given in blanket.separators.items():
            if given:
                witness[column] = given[0]
            else:
                fate[column] = Fate.IRRELEVANT
        return Selection(order, relevance, fate=fate, witness=witness)

    def _warn(self, blanket: Blanket, n_columns: int) -> None:
        limits = {"max_tests": self.max_tests, "max_seconds": self.max_seconds}
        given = [f"{k}={v:g}" for k, v in limits.items() if v is not None]
        warnings.warn(
            f"{type(self).__name__} stopped at {' or '.join(given)}, before a step "
            f"that would exceed it: {self._tally[_N_TESTS]:,} tests were run, and "
            f"{len(blanket.members)} of {n_columns:,} features found. The search is "
            "not complete. Raise the limit, or lower max_condition.",
            FeatstreamWarning,
            stacklevel=2,
        )

    def _reason(
        self, arrival: int, fate: Fate, name: str, relevance: str, other: str
    ) -> str:
        if not other:
            return f"{name} is not selected: the search did not admit it; {relevance}."
        return (
            f"{name} is redundant: given features such as {other} it is independent of "
            f"the target; {relevance}."
        )


@dataclass(frozen=True, slots=True)
class _Binder:
    """A test that becomes one of many columns at once."""

    test: ConditionalTest
    owner: str

    def bind(self, y: Any) -> DiscreteTests | ContinuousTests:
        test = self.test
        if isinstance(test, FisherZTest):
            return ContinuousTests(test, y)
        if isinstance(test, GTest) and test.arity != "largest":
            return DiscreteTests(test, y)
        raise DataTypeError(
            f"{self.owner} needs the test G², not with arity='largest', or Fisher's Z. "
            f"Got {printable(test)}. Use test='g2' (discrete) or test='fisher-z' "
            "(continuous)."
        )


def _strongest(tests: Tests) -> int:
    """The place of the smallest p-value; of equals, of the strongest effect."""
    return int(np.lexsort((-tests.effect, tests.p_value))[0])


class IAMB(_BlanketSelector):
    """Incremental association Markov blanket.

    The feature that depends most on the target, given those found so far, is added
    while one does. Then every feature that is independent of the target given the
    others is dropped.

    Parameters
    ----------
    test : {"auto", "g2", "fisher-z"} or test object, default="auto"
        The test of independence. "auto" takes G² for discrete data and Fisher's Z
        for continuous data.
    alpha : float, default=0.01
        Significance level of a test given by name; a test object has its own.
    max_condition : int, optional
        Size of the largest set conditioned on; no more features are added then.
    max_tests : int, optional
        Number of tests after which the search stops, with a warning and what it has
        found until then.
    max_seconds : float, optional
        Seconds after which the search stops, with a warning. What is found then
        depends on the machine.
    trace : {"full", "kept"} or None, default="full"
        What is remembered of features that are not selected.
    n_jobs : int, optional
        Number of threads. The selection does not depend on it.

    Attributes
    ----------
    selected_ : ndarray of int
        The selected features, in the order in which they were added.
    scores_ : ndarray of float
        Their dependence on the target alone: absolute correlation, or mutual
        information in bits.
    support_ : ndarray of bool of shape (n_features,)
        Whether each feature is selected.
    measure_ : str
        The test in use.
    n_tests_, n_unreliable_ : int
        Tests run, and tests not run for want of samples.
    is_complete_ : bool
        Whether the search ended by itself.
    result_ : SelectionResult
        Names, scores and what became of each feature.

    See Also
    --------
    MMMB : Conditions on small sets, and needs fewer samples.

    Notes
    -----
    All found features are conditioned on at once, and a G² test needs
    ``samples_per_df=5`` samples per degree of freedom: the number of binary features
    that can be found is about the binary logarithm of a fifth of the samples. The
    strongest dependence is the smallest p-value, and of equal ones the largest mutual
    information or correlation. Each step takes a pass over all columns, sparse ones in
    time of their stored entries.

    References
    ----------
    .. [1] I. Tsamardinos, C. F. Aliferis, A. Statnikov: Algorithms for Large Scale
       Markov Blanket Discovery. FLAIRS 2003.

    Examples
    --------
    >>> import numpy as np
    >>> from featstream import IAMB
    >>> rng = np.random.default_rng(0)
    >>> cause = rng.normal(size=500)
    >>> y = cause + rng.normal(size=500) > 0
    >>> X = np.c_[cause + rng.normal(size=500), cause, rng.normal(size=500)]
    >>> IAMB().fit(X, y).selected_
    array([1])
    """

    def _search(self, search: Search, blanket: Blanket) -> None:
        everything, members = np.arange(search.target), blanket.members
        found = search.test(search.target, (), everything)
        blanket.separators = {int(j): () for j in np.flatnonzero(~found.is_dependent)}
        while found.is_dependent.any():  # grow
            chosen = np.flatnonzero(found.is_dependent)
            best = _strongest(found.of(chosen))
            members.append(int(everything[chosen[best]]))
            if len(members) > search.max_condition:
                break
            everything = np.setdiff1d(everything, members[-1:])
            found = search.test(search.target, members, everything)
        for member in tuple(members):  # shrink
            others = [other for other in members if other != member]
            alone = search.test(search.target, others, np.array([member]))
            if others and search.is_separated(alone)[0]:
                members.remove(member)
        for column in everything.tolist():
            blanket.separators.setdefault(column, tuple(members))


class MMMB(_BlanketSelector):
    """Max-min Markov blanket: parents, children and spouses of the target.

    Candidates for parents and children are added by the max-min heuristic: the one
    whose weakest dependence on the target, given any set of those found so far, is
    the strongest. A candidate stays if no set of the others makes it independent of
    the target. Spouses are found among the candidates of these: features that become
    dependent on the target given a common child.

    Parameters
    ----------
    test : {"auto", "g2", "fisher-z"} or test object, default="auto"
        The test of independence. "auto" takes G² for discrete data and Fisher's Z
        for continuous data.
    alpha : float, default=0.01
        Significance level of a test given by name; a test object has its own.
    max_condition : int, default=3
        Size of the largest set conditioned on.
    symmetric : bool, default=False
        Whether a parent or child must in turn have the target among its candidates:
        the correction of [2]_, which drops false ones. Without it the method is that
        of [1]_, which the SAOLA paper compares with.
    max_tests : int, optional
        Number of tests after which the search stops, with a warning and what it has
        found until then.
    max_seconds : float, optional
        Seconds after which the search stops, with a warning. What is found then
        depends on the machine.
    trace : {"full", "kept"} or None, default="full"
        What is remembered of features that are not selected.
    n_jobs : int, optional
        Number of threads. The selection does not depend on it.

    Attributes
    ----------
    selected_ : ndarray of int
        The selected features: parents and children in the order in which they were
        found, then spouses.
    scores_, support_, measure_, n_tests_, n_unreliable_, is_complete_, result_
        As of `IAMB`.
    n_neighbours_ : int
        How many of the selected features, the first ones, are parents or children.

    Notes
    -----
    A set for which a test has too few samples counts as one that separates, as the
    authors have it; ``GTest(unreliable="skip")`` passes over it. A test given a set is
    run on all candidates at once.

    References
    ----------
    .. [1] I. Tsamardinos, C. F. Aliferis, A. Statnikov: Time and Sample Efficient
       Discovery of Markov Blankets and Direct Causal Relations. KDD 2003.
    .. [2] I. Tsamardinos, L. E. Brown, C. F. Aliferis: The Max-Min Hill-Climbing
       Bayesian Network Structure Learning Algorithm. Machine Learning 65, 2006.

    Examples
    --------
    The target and a spouse are the causes of a common effect:

    >>> import numpy as np
    >>> from featstream import MMMB
    >>> rng = np.random.default_rng(0)
    >>> target, spouse = rng.integers(0, 2, (2, 2000))
    >>> effect = np.where(rng.random(2000) < 0.9, target | spouse, 0)
    >>> X = np.c_[rng.integers(0, 2, 2000), effect, spouse]
    >>> MMMB().fit(X, target).selected_
    array([1, 2])
    """

    def __init__(
        self,
        *,
        test: TestName | ConditionalTest = "auto",
        alpha: float = 0.01,
        max_condition: int | None = 3,
        symmetric: bool = False,
        max_tests: int | None = None,
        max_seconds: float | None = None,
        trace: TraceLevel = "full",
        n_jobs: int | None = None,
    ) -> None:
        self.symmetric = symmetric
        super().__init__(
            test=test,
            alpha=alpha,
            max_condition=max_condition,
            max_tests=max_tests,
            max_seconds=max_seconds,
            trace=trace,
            n_jobs=n_jobs,
        )

    @property
    def n_neighbours_(self) -> int:
        """How many of the selected features are parents or children."""
        self._started()
        return int(self._n_neighbours[0])

    def _begin(self, stream: Stream) -> None:
        super()._begin(stream)
        self._n_neighbours = np.zeros(1, np.int64)

    def _state_arrays(self) -> dict[str, NDArray[Any]]:
        return super()._state_arrays() | {"n_neighbours": self._n_neighbours}

    def _restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        super()._restore(arrays)
        table = {"n_neighbours": Declared(np.int64, (1,), 0)}
        self._n_neighbours = check_arrays(arrays, table)["n_neighbours"]

    def _search(self, search: Search, blanket: Blanket) -> None:
        target = search.target
        find_neighbours(search, target, blanket)
        self._n_neighbours[0] = len(blanket.members)
        candidates: dict[int, list[int]] = {}
        for member in tuple(blanket.members):
            own = Blanket()
            find_neighbours(search, member, own)
            if self.symmetric and target not in own.members:
                blanket.members.remove(member)
                self._n_neighbours[0] -= 1
            else:
                candidates[member] = [other for other in own.members if other != target]
        for child, others in candidates.items():
            for spouse in others:
                given = blanket.separators.get(spouse)
                if spouse in blanket.members or given is None or child in given:
                    continue
                together = (*given, child)
                found = search.test(target, together, np.array([spouse]))
                if found.is_dependent[0]:
                    blanket.members.append(spouse)


def find_neighbours(search: Search, a: int, blanket: Blanket) -> None:
    """MMPC: candidates for parents and children of a variable.

    The target is a candidate for every other variable. ``blanket`` holds what is
    known when the budget ends.
    """
    left = np.setdiff1d(np.arange(search.target + 1), [a])
    found = search.test(a, (), left)
    members, separators = blanket.members, blanket.separators
    separators.update({int(v): () for v in left[~found.is_dependent]})
    chosen = np.flatnonzero(found.is_dependent)
    left, weakest = left[chosen], found.of(chosen)
    while left.size:  # forward
        best = _strongest(weakest)
        newest = int(left[best])
        is_left = np.arange(left.size) != best
        for others in search.subsets(members, search.max_condition - 1):
            if not is_left.any():
                break
            given = (*others, newest)
            places = np.flatnonzero(is_left)
            found = search.test(a, given, left[places])
            separated = places[search.is_separated(found)]
            separators.update({int(v): given for v in left[separated]})
            is_left[separated] = False
            run, found = places[found.is_reliable], found.of(found.is_reliable)
            weakest.p_value[run] = np.maximum(weakest.p_value[run], found.p_value)
            weakest.effect[run] = np.minimum(weakest.effect[run], found.effect)
        members.append(newest)
        chosen = np.flatnonzero(is_left)
        left, weakest = left[chosen], weakest.of(chosen)
    for member in tuple(members):  # backward
        rest = [other for other in members if other != member]
        for given in search.subsets(rest, search.max_condition):
            if not given:
                continue
            found = search.test(a, given, np.array([member]))
            if search.is_separated(found)[0]:
                members.remove(member)
                separators[member] = given
                break
