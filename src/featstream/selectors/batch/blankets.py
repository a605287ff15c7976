"""IAMB and MMMB: the Markov blanket of the target, by tests of independence."""

from __future__ import annotations

import time
import warnings
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from featstream.errors import (
    DataTypeError,
    FeatstreamWarning,
    check_choice,
    check_count,
    check_number,
    printable,
)
from featstream.estimators import estimator
from featstream.measures import ConditionalTest, FisherZTest, GTest
from featstream.measures.fisher import p_of_share
from featstream.measures.independence_correlations import COLLINEAR
from featstream.measures.inputs import as_labels, as_numbers
from featstream.parallel import count_threads
from featstream.protocols import Block, BoolArray, Fate, FloatArray, IntArray
from featstream.runs.arrays import Arrays, Declared, check_arrays
from featstream.selectors.batch.base import BatchSelector, Selection
from featstream.selectors.batch.encoded import DiscreteColumns, merge
from featstream.selectors.numeric import StandardColumns, join_values, left_of
from featstream.selectors.osfs.osfs import ConditionalSelector
from featstream.selectors.osfs.search import N_TESTS, N_UNRELIABLE
from featstream.selectors.result import TraceLevel
from featstream.selectors.stream import Stream

_DIGITS = 12
"""Correlations are compared to this many digits: copies are equally strong."""

_STOPPED = 2
"""Place in the tally, after tests run and not run: whether the budget was used up."""


class Tests(NamedTuple):
    """Results of tests of some columns; the p-value is 1 where none was run."""

    p_value: FloatArray
    effect: FloatArray
    is_dependent: BoolArray
    is_reliable: BoolArray

    def of(self, places: IntArray | BoolArray) -> Tests:
        """The results in some places."""
        parts: Any = (found[places] for found in self)
        return Tests(*parts)


class DiscreteVariables:
    """Discrete columns and classes, tested by G²: information given configurations.

    Columns are numbered; the number after the last is the target.
    """

    def __init__(self, parts: Sequence[Any], y: Any, test: GTest, n_threads: int):
        self._test, labels = test, as_labels(y)
        self._classes = labels.codes.astype(np.int64)
        arity = np.concatenate([part.arity for part in parts])
        self._arity = np.append(arity, labels.classes.size)
        self._columns = DiscreteColumns([part.tables for part in parts], n_threads)
        self._chosen, self._subset = np.arange(arity.size), self._columns

    def test(self, a: int, given: Sequence[int], which: IntArray) -> Tests:
        """Test variable ``a`` with the columns ``which``, given some variables."""
        n, rule = self._classes.size, self._test
        free = (self._arity[which] - 1.0) * (self._arity[a] - 1.0)
        n_possible = np.prod(self._arity[list(given)], dtype=np.float64)
        df = np.maximum(free * n_possible, 1.0)
        is_reliable = n >= rule.samples_per_df * df
        effect = np.zeros(which.size)
        if is_reliable.any():
            columns, codes = self._choose(which), self._codes(a)
            if given:
                members = self._codes(given[0])
                for member in given[1:]:
                    members = merge(members, self._codes(member))
                both = columns.information(merge(members, codes))
                found = np.maximum(both - columns.information(members), 0.0)
                if rule.arity == "occurring":
                    df = np.maximum(free * np.unique(members).size, 1.0)
            else:
                found = columns.information(codes)
            effect = np.where(is_reliable, found, 0.0)
        p_value = np.asarray(chdtrc(df, effect * (2.0 * n * np.log(2.0))))
        p_value = np.where(is_reliable, p_value, 1.0)
        return Tests(p_value, effect, p_value < rule.alpha, is_reliable)

    def _codes(self, v: int) -> IntArray:
        is_target = v == self._arity.size - 1
        return self._classes if is_target else self._columns.codes(v)

    def _choose(self, which: IntArray) -> DiscreteColumns:
        """The columns, which are copied when they are not those of the last test."""
        if not np.array_equal(which, self._chosen):
            self._chosen = which
            self._subset = self._columns.subset(which)
        return self._subset


class ContinuousVariables:
    """Continuous columns and the target, tested by their partial correlation.

    The products of all columns with an orthonormal basis of the given variables, and
    of what is left of the tested one, give all correlations. Columns are numbered; the
    number after the last is the target.
    """

    def __init__(self, parts: Sequence[Any], y: Any, test: FisherZTest):
        self._columns = StandardColumns(join_values([part.values for part in parts]))
        self._alpha = test.alpha
        if test.target == "numeric":
            spanning = as_numbers(y)[:, None]
        else:
            labels = as_labels(y)
            # The last class is where all others are not.
            classes = np.arange(labels.classes.size - 1)
            spanning = np.equal.outer(labels.codes, classes).astype(np.float64)
        self._target = _orthonormal(spanning - spanning.mean(axis=0))

    def test(self, a: int, given: Sequence[int], which: IntArray) -> Tests:
        """Test variable ``a`` with the columns ``which``, given some variables."""
        n, columns = self._target.shape[0], self._columns
        members = [np.empty((n, 0)), *map(self._units, given)]
        basis = _orthonormal(np.concatenate(members, axis=1))
        own = self._units(a)
        left = _orthonormal(own - basis @ (basis.T @ own))
        if which.size < columns.shape[1]:
            columns = columns.take(which)
        dims, size = own.shape[1], basis.shape[1]
        shares = columns.products(np.concatenate([basis, left], axis=1)) ** 2
        rest = 1.0 - shares[:, :size].sum(axis=1)
        shared = shares[:, size:].sum(axis=1)
        is_left = rest > COLLINEAR
        effect = np.sqrt(np.where(is_left, shared / np.where(is_left, rest, 1.0), 0.0))
        effect = np.minimum(np.round(effect, _DIGITS), 1.0)
        is_reliable = np.full(which.size, n - size > (3 if dims == 1 else dims + 1))
        share = np.minimum(effect**2, 1.0 - 1e-15)
        p_value = p_of_share(share, n, dims, size, dims > 1)
        return Tests(p_value, effect, p_value <= self._alpha, is_reliable)

    def _units(self, v: int) -> FloatArray:
        """A variable as columns of length one and mean zero."""
        if v == self._columns.shape[1]:
            return self._target
        return self._columns.take(np.array([v])).to_dense()


def _orthonormal(columns: FloatArray) -> FloatArray:
    """A basis of the space of the columns; a rest that may be rounding is left out."""
    basis = np.empty((columns.shape[0], 0))
    for column in columns.T:
        left = left_of(column, basis)
        square = float(left @ left)
        if square > COLLINEAR * max(float(column @ column), COLLINEAR):
            basis = np.column_stack([basis, left / np.sqrt(square)])
    return basis


Variables = DiscreteVariables | ContinuousVariables


class OutOfBudget(Exception):  # noqa: N818 (it is no error: the search ends)
    """A search has used up its tests or its time."""


class Search:
    """Tests of variables that are counted, within the budget of a selector.

    ``target`` is the number of the target. The tally counts tests run and tests not
    run for want of samples.
    """

    def __init__(
        self, variables: Variables, target: int, selector: _BlanketSelector
    ) -> None:
        limit, seconds = selector.max_condition, selector.max_seconds
        self.variables, self.target, self.tally = variables, target, selector._tally
        self.max_condition = target if limit is None else limit
        self.max_tests = np.inf if selector.max_tests is None else selector.max_tests
        self.deadline = time.monotonic() + (np.inf if seconds is None else seconds)
        # Whether a test that is not run means independence.
        self.unreliable_separates = selector._test.unreliable == "independent"

    def test(self, a: int, given: Sequence[int], which: IntArray) -> Tests:
        """Test variable ``a`` with others, which increase, given some."""
        n_tests = int(self.tally[N_TESTS])
        if n_tests + which.size > self.max_tests or time.monotonic() > self.deadline:
            raise OutOfBudget
        if which.size and which[-1] == self.target:
            found = self.variables.test(a, given, which[:-1])
            last = self.variables.test(self.target, given, np.array([a]))
            both: Any = map(np.append, found, last)
            found = Tests(*both)
        else:
            found = self.variables.test(a, given, which)
        n_run = int(np.count_nonzero(found.is_reliable))
        self.tally[N_TESTS] += n_run
        self.tally[N_UNRELIABLE] += which.size - n_run
        return found

    def is_separated(self, found: Tests) -> BoolArray:
        """Which of the tested variables count as independent."""
        is_open = ~found.is_reliable & (not self.unreliable_separates)
        return ~found.is_dependent & ~is_open

    def separates(self, a: int, given: Sequence[int], column: int) -> bool:
        """Whether some variables make variable ``a`` and a column independent."""
        found = self.test(a, given, np.array([column]))
        return bool(self.is_separated(found)[0])


def _subsets(members: Sequence[int], limit: int) -> Iterator[tuple[int, ...]]:
    """Subsets of at most ``limit`` members, the small ones first."""
    for size in range(min(limit, len(members)) + 1):
        yield from combinations(members, size)


@dataclass(slots=True)
class Blanket:
    """What a search has found so far: members, and what separates the others."""

    members: list[int] = field(default_factory=list)
    separators: dict[int, tuple[int, ...]] = field(default_factory=dict)


@estimator
class _BlanketSelector(ConditionalSelector, BatchSelector):
    """Base of IAMB and MMMB, which differ in the search.

    Parameters
    ----------
    test : {"auto", "g2", "fisher-z"} or test object, default="auto"
        The test of independence. "auto" takes G² for discrete data and Fisher's Z
        for continuous data.
    max_tests : int, optional
        Number of tests after which the search stops, with a warning and what it has
        found until then.
    max_seconds : float, optional
        Seconds after which the search stops, with a warning. What is found then
        depends on the machine.

    Attributes
    ----------
    is_complete_ : bool
        Whether the search ended by itself.
    """

    test: Literal["auto", "g2", "fisher-z"] | ConditionalTest = "auto"
    max_seconds: float | None = None
    trace: TraceLevel = "full"

    _n_counters = 3

    @abstractmethod
    def _search(self, search: Search, blanket: Blanket) -> None:
        """Find the blanket of the target, which holds what is known at any time."""

    @property
    def is_complete_(self) -> bool:
        """Whether the search ended within ``max_tests`` and ``max_seconds``."""
        self._started()
        return not self._tally[_STOPPED]

    def _adapt(self, test: ConditionalTest) -> Any:
        """The test for the screening; the given one is kept for `_select`."""
        is_table = isinstance(test, GTest) and test.arity != "largest"
        if not is_table and not isinstance(test, FisherZTest):
            raise DataTypeError(
                f"{type(self).__name__} needs the test G², not with arity='largest', "
                f"or Fisher's Z. Got {printable(test)}. Use test='g2' (discrete) or "
                "test='fisher-z' (continuous)."
            )
        self._test: Any = test
        if isinstance(test, GTest):
            test = copy(test)
            test.arity = "observed"  # the others matter to `DiscreteVariables` alone
        return test

    def _begin(self, stream: Stream) -> None:
        super()._begin(stream)
        owner, none = type(self).__name__, "for no limit"
        check_count(self.max_condition, "max_condition", owner, none=none)
        if self.max_seconds is not None:
            check_number(self.max_seconds, "max_seconds", owner)

    def _prepare(self, block: Block, stream: Stream) -> tuple[Any, FloatArray]:
        encoded = stream.measure.encode(block)
        return encoded, stream.measure.screen(encoded).effect

    def _select(self, parts: list[Any], stream: Stream) -> Selection:
        encoded, effects = zip(*parts, strict=True)
        relevance, given = np.concatenate(effects), (encoded, stream.y, self._test)
        variables: Variables
        if isinstance(self._test, FisherZTest):
            variables = ContinuousVariables(*given)
        else:
            variables = DiscreteVariables(*given, count_threads(self.n_jobs))
        blanket = Blanket()
        try:
            self._search(Search(variables, relevance.size, self), blanket)
        except OutOfBudget:
            self._tally[_STOPPED] = 1
            limits = {"max_tests": self.max_tests, "max_seconds": self.max_seconds}
            named = [f"{k}={v:g}" for k, v in limits.items() if v is not None]
            warnings.warn(
                f"{type(self).__name__} stopped at {' or '.join(named)}, before a step "
                f"that would exceed it: {self._tally[N_TESTS]:,} tests were run, and "
                f"{len(blanket.members)} of {relevance.size:,} features found. The "
                "search is not complete. Raise the limit, or lower max_condition.",
                FeatstreamWarning,
                stacklevel=2,
            )
        fate = np.full(relevance.size, Fate.REDUNDANT, np.uint8)
        witness = np.full(relevance.size, -1)
        for column, separator in blanket.separators.items():
            if separator:
                witness[column] = separator[0]
            else:
                fate[column] = Fate.IRRELEVANT
        order = np.array(blanket.members, np.int64)
        return Selection(order, relevance, fate=fate, witness=witness)

    def _reason(
        self, arrival: int, fate: Fate, name: str, relevance: str, other: str
    ) -> str:
        if not other:
            return f"{name} is not selected: the search did not admit it; {relevance}."
        return (
            f"{name} is redundant: given features such as {other} it is independent of "
            f"the target; {relevance}."
        )


def _strongest(tests: Tests) -> int:
    """The place of the smallest p-value; of equals, of the strongest effect."""
    return int(np.lexsort((-tests.effect, tests.p_value))[0])


@estimator
class IAMB(_BlanketSelector):
    """Incremental association Markov blanket.

    The feature that depends most on the target, given those found so far, is added
    while one does. Then every feature that is independent of the target given the
    others is dropped.

    Parameters
    ----------
    max_condition : int, optional
        Size of the largest set conditioned on; no more features are added then.

    Attributes
    ----------
    selected_ : ndarray of int
        The selected features, in the order in which they were added.

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

    max_condition: int | None = None

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
            if others and search.separates(search.target, others, member):
                members.remove(member)
        for column in everything.tolist():
            blanket.separators.setdefault(column, tuple(members))


@estimator
class MMMB(_BlanketSelector):
    """Max-min Markov blanket: parents, children and spouses of the target.

    Candidates for parents and children are added by the max-min heuristic: the one
    whose weakest dependence on the target, given any set of those found so far, is
    the strongest. A candidate stays if no set of the others makes it independent of
    the target. Spouses are found among the candidates of these: features that become
    dependent on the target given a common child.

    Parameters
    ----------
    symmetric : bool, default=False
        Whether a parent or child must in turn have the target among its candidates:
        the correction of [2]_, which drops false ones. Without it the method is that
        of [1]_, which the SAOLA paper compares with.

    Attributes
    ----------
    selected_ : ndarray of int
        The selected features: parents and children in the order in which they were
        found, then spouses.
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

    symmetric: bool = False

    @property
    def n_neighbours_(self) -> int:
        """How many of the selected features are parents or children."""
        self._started()
        return int(self._n_neighbours[0])

    def _begin(self, stream: Stream) -> None:
        super()._begin(stream)
        check_choice(self.symmetric, "symmetric", (False, True), "MMMB")
        self._n_neighbours = np.zeros(1, np.int64)

    def _state_arrays(self) -> dict[str, NDArray[Any]]:
        return super()._state_arrays() | {"n_neighbours": self._n_neighbours}

    def _restore(self, arrays: Arrays) -> None:
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
        for others in _subsets(members, search.max_condition - 1):
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
        for given in _subsets(rest, search.max_condition):
            if given and search.separates(a, given, member):
                members.remove(member)
                separators[member] = given
                break
