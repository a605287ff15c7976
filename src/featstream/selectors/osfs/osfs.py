"""OSFS and Fast-OSFS: online selection by tests of conditional independence."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from featstream.errors import FeatstreamWarning, check_count, printable
from featstream.estimators import estimator
from featstream.measures import ConditionalTest
from featstream.measures.independence import TESTS, BoundTest, Screening, resolve_test
from featstream.measures.independence_tables import CodedColumns, pack_plane
from featstream.measures.inputs import Choice
from featstream.measures.storages.dense_codes import unpack
from featstream.protocols import Block, Fate, FloatArray, IntArray
from featstream.runs.arrays import Arrays, Declared, check_arrays, damaged
from featstream.selectors.base import OnlineSelector, StreamSelector
from featstream.selectors.osfs.search import (
    CUT,
    N_TESTS,
    N_UNRELIABLE,
    Candidates,
    KeptSet,
    Outcome,
    judge_candidates,
)
from featstream.selectors.result import TraceLevel, appended
from featstream.selectors.stream import Stream, Verdict

_FEW = 16


class Separators:
    """The sets that separate dropped features from the class: an array.

    A row is the arrival of a feature and its set, which is filled up with -1.
    """

    def __init__(self, width: int) -> None:
        self._size, self._rows = 0, np.empty((0, 1 + width), np.int64)

    def add(self, rows: IntArray) -> None:
        """Record the sets of some features."""
        self._rows = appended(self._rows, self._size, rows)
        self._size += len(rows)

    def find(self, arrival: int) -> list[int]:
        """Members of the set for a feature, in order of arrival; none if unknown."""
        rows = self._rows[: self._size]
        members = rows[rows[:, 0] == arrival, 1:].ravel().tolist()
        return [member for member in members if member >= 0]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All that is recorded, by arrival, for `restore`."""
        rows = self._rows[: self._size].astype(np.int32)
        rows = rows[np.argsort(rows[:, 0])]
        return {"separated": rows[:, 0], "separators": rows[:, 1:]}

    def restore(self, arrays: Arrays, n_seen: int) -> None:
        """Restore what `arrays` returned."""
        shape = "n_sets", self._rows.shape[1] - 1
        table = {
            "separated": Declared(np.int32, shape[:1], 0, n_seen),
            "separators": Declared(np.int32, shape, -1, n_seen),
        }
        self.add(np.column_stack([*check_arrays(arrays, table).values()]))


def _empty_kept_set(test: BoundTest, capacity: int) -> KeptSet:
    pool, values = test.allocate(capacity)
    return KeptSet(
        pool=pool,
        score=np.zeros(capacity),
        arrival=np.zeros(capacity, np.int64),
        values=values,
        total=np.zeros(capacity),
        norm=np.zeros(capacity),
        slots=np.arange(capacity),
        size=np.zeros(1, np.int64),
    )


def _saved_arrays(kept: KeptSet, slots: Any) -> dict[str, NDArray[Any]]:
    """What a run saves of the features in some slots; views, if these are a slice."""
    pool, names = kept.pool, ["arrival", "score"]
    if isinstance(pool, CodedColumns):
        own = {"codes": pool.codes[slots], "arity": pool.arity[slots]}
    else:
        own = {"gram": pool.gram[slots][:, slots], "links": pool.links[slots]}
        names += ["values", "total", "norm"]
    return {name: getattr(kept, name)[slots] for name in names} | own


def pack_kept_set(kept: KeptSet | None) -> dict[str, NDArray[Any]]:
    """What the tests need to know of the kept features, in order of arrival."""
    if kept is None:
        return {}
    slots, pool = kept.slots[: kept.size[0]], kept.pool
    arrays = _saved_arrays(kept, slots)
    if isinstance(pool, CodedColumns):
        for row, slot in zip(arrays["codes"], slots, strict=True):
            if not pool.has_codes[slot]:
                unpack(pool.planes[slot : slot + 1], row)
    return arrays


def unpack_kept_set(arrays: Arrays, test: BoundTest, n_seen: int) -> KeptSet:
    """The kept features from the arrays of `pack_kept_set`, or `RunError`.

    There is room for as many more.
    """
    size = arrays["arrival"].size
    kept = _empty_kept_set(test, max(_FEW, 2 * size))
    room, pool = _saved_arrays(kept, slice(size)), kept.pool
    limits = {"arrival": (0, n_seen), "codes": (0, test.n_samples), "arity": (1, None)}
    table = {
        name: Declared(array.dtype, array.shape, *limits.get(name, ()))
        for name, array in room.items()
    }
    found = check_arrays(arrays, table)
    for name, array in room.items():
        array[...] = found[name]
    kept.size[0] = size
    if isinstance(pool, CodedColumns):
        n_codes = found["codes"].max(axis=1, initial=0) + 1
        if (found["arity"] < n_codes).any():
            raise damaged("a kept feature has more categories than it can have")
        pool.has_codes[:size], pool.n_codes[:size] = True, n_codes
        for i in np.flatnonzero(n_codes == 2):
            pack_plane(pool.codes[i], pool.planes[i])
    return kept


@estimator
class ConditionalSelector(OnlineSelector):
    """Base of selectors that test independence given sets of other features.

    Parameters
    ----------
    test : {"auto", "g2", "chi2", "fisher-z"} or test object, default="auto"
        The test of independence. "auto" takes G² for discrete data and Fisher's Z
        for continuous data, judged by the first 256 features; see `measure_`.
    alpha : float, default=0.01
        Significance level of a test given by name; a test object has its own.
    max_condition : int, default=3
        Size of the largest set conditioned on.

    Attributes
    ----------
    scores_ : ndarray of float
        Their dependence on the target alone: absolute correlation, mutual
        information in bits, or chi-square per sample.
    measure_ : str
        The test in use.
    n_tests_ : int
        Number of tests run.
    n_unreliable_ : int
        Number of tests not run for want of samples.
    """

    test: Literal["auto", "g2", "chi2", "fisher-z"] | ConditionalTest = "auto"
    alpha: float = 0.01
    max_condition: int | None = 3
    max_tests: int | None = None
    trace: TraceLevel = "full"
    n_jobs: int | None = None

    _numeric_target = "FisherZTest(target='numeric')"
    _n_counters: ClassVar[int]
    """Length of the tally, which begins with `n_tests_` and `n_unreliable_`."""

    @property
    def n_tests_(self) -> int:
        """Number of tests run: by OSFS, of those given other features."""
        self._started()
        return int(self._tally[N_TESTS])

    @property
    def n_unreliable_(self) -> int:
        """Number of tests not run for want of samples, marginal ones included."""
        self._started()
        return int(self._tally[N_UNRELIABLE])

    def _adapt(self, test: ConditionalTest) -> Any:
        """The test as the selector uses it."""
        return test

    def _bind(self, y: Any) -> Any:
        test = resolve_test(self.test, self.alpha, type(self).__name__)
        return None if test is None else self._adapt(test).bind(y)

    def _measure_named(self, name: str, **options: Any) -> Any:
        return self._adapt(TESTS[name](alpha=self.alpha, **options))

    def _propose(self, blocks: list[Block]) -> Choice:
        choice = super()._propose(blocks)
        return choice if choice.name == "fisher-z" else choice._replace(name="g2")

    def _begin(self, stream: Stream) -> None:
        owner = type(self).__name__
        check_count(self.max_tests, "max_tests", owner, none="for no limit")
        self._tally = np.zeros(self._n_counters, np.int64)

    def _state_arrays(self) -> dict[str, NDArray[Any]]:
        return {"tally": self._tally}

    def _restore(self, arrays: Arrays) -> None:
        table = {"tally": Declared(np.int64, (self._n_counters,), 0)}
        self._tally = check_arrays(arrays, table)["tally"]


class _OnlineConditionalSelector(ConditionalSelector, StreamSelector):
    """Base of OSFS and Fast-OSFS, which differ in the order of their two searches.

    Parameters
    ----------
    max_tests : int, optional
        Conditional tests that one arrival may cost. A search that needs more is cut
        short: the features that it was about stay, and a warning says so once.

    Attributes
    ----------
    n_cut_short_ : int
        Number of arrivals whose search was cut short by ``max_tests``.
    """

    _is_fast: ClassVar[bool]
    _n_counters = 4

    @property
    def n_cut_short_(self) -> int:
        """Number of arrivals whose search was cut short by ``max_tests``."""
        self._started()
        return int(self._tally[CUT])

    def separating_set(self, feature: str | int) -> tuple[str, ...]:
        """Features given which a dropped one is independent of the class.

        Parameters
        ----------
        feature : str or int
            Its name, or its arrival. The set of a feature that is kept, irrelevant,
            or not in the trace is empty.
        """
        stream = self._started()
        members = self._separators.find(self._find(feature, stream))
        return tuple(stream.names[member] for member in members)

    def _begin(self, stream: Stream) -> None:
        super()._begin(stream)
        owner = type(self).__name__
        self._limit = check_count(self.max_condition, "max_condition", owner)
        self._state: KeptSet | None = None
        self._separators = Separators(self._limit)

    def _kept(self) -> tuple[IntArray, FloatArray]:
        if self._state is None:
            return np.empty(0, np.int64), np.empty(0)
        slots = self._state.slots[: self._state.size[0]]
        return self._state.arrival[slots], self._state.score[slots]

    def _state_arrays(self) -> dict[str, NDArray[Any]]:
        own = self._separators.arrays() | pack_kept_set(self._state)
        return super()._state_arrays() | own

    def _restore(self, arrays: Arrays) -> None:
        super()._restore(arrays)
        stream = self._stream
        self._separators.restore(arrays, stream.n_seen)
        if stream.measure is not None and "arrival" in arrays:
            self._state = unpack_kept_set(arrays, stream.measure, stream.n_seen)

    def _prepare(self, block: Block, stream: Stream) -> Callable[[], Verdict]:
        test = stream.measure
        encoded = test.encode(block)
        screening = test.screen(encoded)
        relevant = np.flatnonzero(screening.is_dependent)
        columns, positions, arity, links = test.newcomers(encoded, relevant)
        scores, arrivals = screening.effect[relevant], block.start + relevant
        new = Candidates(columns, positions, scores, arrivals, arity, links)
        return partial(self._decide_about, screening, relevant, new, stream)

    def _decide_about(
        self, screening: Screening, relevant: IntArray, new: Candidates, stream: Stream
    ) -> Verdict:
        self._tally[N_UNRELIABLE] += np.count_nonzero(~screening.is_reliable)
        outcome = self._judge(new, stream.measure)
        fate = np.zeros(screening.effect.size, np.uint8)
        witness = np.full(screening.effect.size, -1, np.int64)
        fate[relevant], witness[relevant] = outcome.fate, outcome.sets[:, 1]
        gone = slice(outcome.n_gone[0])
        gone_sets, gone_by = outcome.gone_sets[gone], outcome.gone_by[gone]
        if stream.trace.level == "full":
            self._separators.add(outcome.sets[outcome.fate == Fate.REDUNDANT])
            self._separators.add(gone_sets)
        left = {"gone": gone_sets[:, 0], "gone_by": gone_by}
        return Verdict(fate, screening.effect, witness, **left)

    def _judge(self, new: Candidates, test: BoundTest) -> Outcome:
        """Run the kernel on the candidates, with room for all that stay."""
        kept = _empty_kept_set(test, _FEW) if self._state is None else self._state
        n_new, n_cut, limit = new.column.size, int(self._tally[CUT]), self._limit
        most_events = n_new + int(kept.size[0])
        outcome = Outcome(
            fate=np.zeros(n_new, np.uint8),
            sets=np.full((n_new, 1 + limit), -1, np.int64),
            gone_sets=np.full((most_events, 1 + limit), -1, np.int64),
            gone_by=np.zeros(most_events, np.int64),
            n_gone=np.zeros(1, np.int64),
        )
        rule, work, done = test.rule(limit), test.work(limit), 0
        budget = np.iinfo(np.int64).max if self.max_tests is None else self.max_tests
        while done < n_new:
            given = new, done, kept, self._is_fast, rule, work
            done = judge_candidates(*given, self._tally, budget, outcome)
            if done < n_new:
                n_seen = int(new.arrival[done])
                kept = unpack_kept_set(pack_kept_set(kept), test, n_seen)
        self._state = kept
        if n_cut == 0 and self._tally[CUT] > 0:
            warnings.warn(
                f"{type(self).__name__} needed more than max_tests={budget} tests for "
                "a feature: what they did not show to be redundant stays. Raise "
                "max_tests or lower max_condition; n_cut_short_ counts such features.",
                FeatstreamWarning,
                stacklevel=5,
            )
        return outcome

    _is_reason_general = False  # it names the set that separates

    def _reason(
        self, arrival: int, fate: Fate, name: str, relevance: str, other: str
    ) -> str:
        names, members = self._started().names, self._separators.find(arrival)
        given = ", ".join(printable(names[m]) for m in members) or other
        was_kept = fate is not Fate.REDUNDANT
        how = f"was displaced by {other}" if was_kept else "is redundant"
        return (
            f"{name} {how}: given {given} it is independent of the target; {relevance}."
        )


@estimator
class OSFS(_OnlineConditionalSelector):
    """Online streaming feature selection.

    Features arrive one by one. A feature that depends on the class is added; then
    every selected feature, the oldest first and the newcomer last, is dropped if
    some set of other selected features makes it independent of the class.

    See Also
    --------
    FastOSFS : Asks about the newcomer first, which is faster.

    Notes
    -----
    Sets are tried by size, then in order of arrival. Of a feature that was kept
    before, only sets with the newcomer are tried: it has survived all others.
    ``docs/fidelity-rivals.md`` compares the selections with those of the authors'
    own library.

    References
    ----------
    .. [1] X. Wu, K. Yu, W. Ding, H. Wang, X. Zhu: Online Feature Selection with
       Streaming Features. IEEE TPAMI 35(5), 2013.

    Examples
    --------
    >>> from featstream import OSFS
    >>> from featstream.datasets import make_stream
    >>> stream = make_stream(n_features=200, kind="continuous", seed=0)
    >>> selector = OSFS().fit(stream.X, stream.y)
    >>> set(stream.blanket) <= set(selector.selected_)
    True
    >>> selector.measure_
    'fisher-z'
    """

    _is_fast = False


@estimator
class FastOSFS(_OnlineConditionalSelector):
    """Fast online streaming feature selection.

    As `OSFS`, but the newcomer is judged first: if a set of selected features makes
    it independent of the class it is dropped at once. Only if it is admitted are
    the older features judged again, by the sets that contain it.

    References
    ----------
    .. [1] X. Wu, K. Yu, W. Ding, H. Wang, X. Zhu: Online Feature Selection with
       Streaming Features. IEEE TPAMI 35(5), 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from featstream import FastOSFS
    >>> rng = np.random.default_rng(0)
    >>> cause = rng.normal(size=300)
    >>> y = cause + rng.normal(size=300) > 0
    >>> selector = FastOSFS(test="fisher-z").start(y)
    >>> selector.update(cause + rng.normal(size=300), name="effect").is_kept
    True
    >>> selector.update(cause, name="cause").displaced
    ('effect',)
    >>> print(selector.explain("effect"))
    'effect' was displaced by 'cause': given 'cause' it is independent of ...
    """

    _is_fast = True
