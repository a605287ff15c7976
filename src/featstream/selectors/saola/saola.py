"""SAOLA: Algorithm 1 of the paper."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from featstream.engines import Engine, as_engine
from featstream.errors import (
    ParameterError,
    check_alpha,
    check_choice,
    check_count,
    printable,
)
from featstream.estimators import estimator
from featstream.measures.storages.dispatch import (
    EARLIER,
    LATER,
    NEITHER,
    ConditionalRule,
    Rule,
    for_storage,
    storage_of,
)
from featstream.parallel import uninterrupted
from featstream.protocols import (
    Block,
    BoolArray,
    FloatArray,
    IntArray,
    Measure,
    Source,
    Span,
    Storage,
    fingerprint_of,
    reopener_of,
)
from featstream.selectors.base import (
    SequentialSelector,
    Steps,
    StreamSelector,
    in_stream,
)
from featstream.selectors.result import TraceLevel
from featstream.selectors.saola import workers
from featstream.selectors.saola.algorithm1 import (
    KEPT,
    Newcomers,
    Outcome,
    Scored,
    new_outcome,
    scan,
)
from featstream.selectors.saola.budget import (
    CORRECTIONS,
    Budget,
    warn_of_chance,
    warn_of_nothing,
)
from featstream.selectors.saola.kept import (
    Kept,
    Tuning,
    arrivals_and_scores,
    columns_of,
    fit_index,
    make_room,
    pack_kept,
    start_kept,
    unpack_kept,
)
from featstream.selectors.saola.shortcuts import (
    FIRST_BATCH,
    Ceilings,
    Snapshot,
    find_ceilings,
    next_batch,
    take_snapshot,
    with_ceilings,
)
from featstream.selectors.saola.workers import Scoring
from featstream.selectors.stream import Decide, Stream, Verdict
from featstream.selectors.suspects import without_copies
from featstream.sources import is_dask_array

_IRRELEVANT, _NOBODY, _UNKNOWN = (
    np.zeros(1, np.uint8),
    np.full(1, -1),
    np.full(1, np.nan),
)


@estimator
class PairwiseSelector(SequentialSelector):
    """Base of SAOLA and Group-SAOLA: features that are compared two by two.

    Parameters
    ----------
    measure : {"auto", "su", "mi", "fisher-z"} or measure object, default="auto"
        How relevance and overlap are measured. "auto" takes symmetrical
        uncertainty for discrete data and Fisher's Z for continuous data, judged
        by the first 256 features; see `measure_` for what it took.
    bound : {"min", "max"}, default="min"
        What the overlap of two features must reach: the smaller of their
        relevances, or the larger (SAOLA-max).
    ties : {"keep", "drop"}, default="keep"
        Whether two features of exactly equal relevance never remove each other,
        as printed, or the earlier may make the later redundant.
    pruning : {"interleaved", "deferred", "newcomers"}, default="interleaved"
        Whether a newcomer displaces kept features during the walk, as printed
        (they stay gone even if it is itself found redundant later in the walk),
        only once it is kept, as the text describes, or never (without Step 16, which
        the paper's numbers of SAOLA-max on discrete data are).
    overlap : {">=", ">"}, default=">="
        Whether overlap must reach its bound, as printed, or exceed it, as in the
        authors' own library.
    redundancy : {"bound", "conditional"}, default="bound"
        How a feature is found redundant beside a more relevant one: by the paper's
        bound on their overlap, or by a test of the feature and the class given the
        other one, which the bound approximates. ``bound`` and ``overlap`` are about
        the bound alone.
    redundancy_alpha : float, default=0.05
        Level of the conditional test: a feature is redundant if its p-value is above. A
        smaller value keeps fewer features.
    correction : {"none", "bonferroni", "online-fdr"}, default="none"
        Whether thresholds pay for the number of features judged. Relevance is then
        judged by the p-value, at a level that bounds the chance that any irrelevant
        feature passes, or the expected share of irrelevant ones among those that
        pass (false discovery rate). The level is the ``alpha`` of the measure, 0.05
        if none is given.
    engine : {"dask"}, optional
        Where features are read and scored: on the cluster of the current Dask client,
        or in this process. The selection does not depend on it.

    Attributes
    ----------
    measure_ : str
        The measure in use.
    """

    measure: str | Measure = "auto"
    bound: Literal["min", "max"] = "min"
    ties: Literal["keep", "drop"] = "keep"
    pruning: Literal["interleaved", "deferred", "newcomers"] = "interleaved"
    overlap: Literal[">=", ">"] = ">="
    redundancy: Literal["bound", "conditional"] = "bound"
    redundancy_alpha: float = 0.05
    correction: Literal["none", "bonferroni", "online-fdr"] = "none"
    trace: TraceLevel = "full"
    n_jobs: int | None = None
    engine: Literal["dask"] | None = None

    _tuning = Tuning()  # tests and benchmarks compare with the plain scan

    def _begin(self, stream: Stream) -> None:
        self._rule: Any = make_rule(self)
        self._budget = Budget(self.correction, getattr(self, "alpha", None))
        self._state: Kept | None = None
        self._snapshot: Snapshot | None = None  # read by the threads that prepare

    def _bind_measure(self, measure: Any) -> None:
        """Let the measure decide about the rule and the level, once it is known."""
        owner, is_bound = type(self).__name__, self.redundancy == "bound"
        if not is_bound and not isinstance(self._rule, ConditionalRule):
            if not hasattr(measure, "conditional_rule"):
                raise ParameterError(
                    f"{owner} with redundancy='conditional' needs a measure that tests "
                    f"features given others. {printable(measure.name)} does not. Use "
                    "'su', 'mi' or 'fisher-z', or redundancy='bound'."
                )
            level = float(self.redundancy_alpha)
            self._rule = measure.conditional_rule(level, self._rule)
        self._budget.bind(measure, owner)

    def _kept(self) -> tuple[IntArray, FloatArray]:
        return arrivals_and_scores(self._state)

    def _kept_columns(self) -> NDArray[Any] | None:
        return columns_of(self._state, len(self._stream.y))

    def _state_arrays(self) -> dict[str, NDArray[Any]]:
        own = pack_kept(self._state) | self._budget.arrays()
        return super()._state_arrays() | own

    def _unpack(self, arrays: Mapping[str, NDArray[Any]]) -> Kept | None:
        """Kept features that were packed, here or elsewhere."""
        stream, measure = self._stream, self._stream.measure
        self._budget.restore(arrays)
        storages: tuple[Storage, ...] = ()
        if measure is not None:
            self._bind_measure(measure)
            storages = measure.storages
        if len(storages) > 1:  # the first block decides
            storages = tuple(s for s in storages if s.is_sparse == stream.is_sparse)
        return unpack_kept(arrays, len(stream.y), storages, measure, self._tuning)

    def _as_engine(self, engine: Any) -> Engine | None:
        return as_engine(engine)

    def _decisions(
        self, source: Source, blocks: Iterator[Block], layout: Any, position: int
    ) -> Steps:
        if not position:
            self._budget.to_open = source.n_features or 0
        if self._engine is None:
            return super()._decisions(source, blocks, layout, position)
        return self._decide_scored(self._engine, source, blocks, layout, position)

    def _decide_scored(
        self,
        engine: Engine,
        source: Source,
        blocks: Iterator[Block],
        layout: Any,
        position: int,
    ) -> Steps:
        """Functions that decide about what the workers of an engine have scored."""
        stream, first = self._stream, next(blocks, None)
        if first is None:
            return
        begin, like = stream.n_seen - position, self._no_columns(first)
        tasks = workers.tasks_for(
            source, first, blocks, layout, position, begin, engine.n_workers
        )
        scorer = workers.Scorer(
            self._on_workers(), reopener_of(source), fingerprint_of(source)
        )
        for task, reply in workers.replies(engine, scorer, tasks):
            if reply.left_out:
                stream.measure.left_out.names.update(reply.left_out)
            stream.copies.update(reply.copies)
            at = task.first - begin
            for batch, scored in workers.received(task, reply, layout, at, like):
                yield partial(self._take, batch, self._deciding(batch, scored), stream)

    def _no_columns(self, first: Block) -> Any:
        """No columns of a block, as the measure of this stream encodes them."""
        (one,) = in_stream([first.part(0, 1)], self._stream)
        measure = self._stream.measure
        self._bind_measure(measure)
        return measure.columns(measure.encode(one), np.empty(0, np.int64))[0]

    def _on_workers(self) -> Callable[[], Callable[[], Scoring]]:
        """A function for workers, which begins such a stream as this one."""
        stream = self._stream
        mine = clone(self).set_params(engine=None, trace=None, n_jobs=None)
        if stream.choice is not None:  # all take what this process chose
            choice = stream.choice
            mine.measure = self._measure_named(choice.name, **choice.options)
        y = np.asarray(stream.y) if is_dask_array(stream.y) else stream.y
        return partial(mine._start_scoring, y, is_sparse=stream.is_sparse)

    def _start_scoring(self, y: Any, *, is_sparse: bool) -> Callable[[], Scoring]:
        """Begin a stream to score features in; other threads may do so as well."""
        started = clone(self).start(y)
        started._stream.is_sparse = is_sparse
        found: Callable[[], Scoring] = started._scoring
        return found

    def _scoring(self) -> Scoring:
        """How to score the features of one task, whose copies of y it notes apart."""
        own = copy(self)
        own._stream = replace(self._stream, copies={})
        return Scoring(own._stream, own._score_batch)

    def _prepare(self, batch: Any, stream: Stream) -> Decide:
        """Steps 5 to 8 for a batch, and a function that decides about the rest."""
        return self._deciding(batch, self._score_batch(batch))

    def _score_batch(self, batch: Any) -> list[Scored]:
        """Steps 5 to 8 for all features of a batch, which need nothing that is kept."""
        raise NotImplementedError

    def _deciding(self, batch: Any, scored: list[Scored]) -> Decide:
        """A function that takes a batch through the steps that follow."""
        raise NotImplementedError

    def _restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        super()._restore(arrays)
        self._state = self._unpack(arrays)

    def _score(self, block: Block) -> Scored:
        """Steps 5 to 8 for all features of a block."""
        measure, newcomers = self._stream.measure, None
        self._bind_measure(measure)
        encoded = measure.encode(block)
        scores = measure.relevance(encoded)
        p_values, relevant = self._budget.screen(measure, encoded, scores)
        which = self._taking_part(relevant, scores.size)
        if which.size:
            columns, column = measure.columns(encoded, which)
            newcomers = Newcomers(columns, column, scores[which], block.start + which)
        return Scored(block.start, scores, p_values, relevant, newcomers)

    def _taking_part(self, relevant: IntArray, n_features: int) -> IntArray:
        """Positions of the features of a block that may take part after Step 8."""
        return relevant

    def _judge(self, scored: Scored) -> BoolArray | None:
        """Which of the newcomers pass; None if all of them do."""
        if scored.p_values is None:
            return None
        passes = self._budget.judge(scored.p_values)
        new = scored.newcomers
        return None if new is None else passes[new.arrival - scored.start]

    def _verdict(self, outcome: Outcome, scores: FloatArray) -> Verdict:
        """What a kernel decided about features of these scores."""
        overlap: Any = outcome.overlap
        left, p_value = slice(outcome.n_events[0]), None
        if self.redundancy == "conditional":
            overlap, p_value = None, self._stream.measure.p_given(overlap)
        return Verdict(
            outcome.fate,
            scores,
            outcome.witness,
            overlap,
            outcome.gone[left],
            outcome.gone_by[left],
            outcome.gone_fate[left],
            p_value=p_value,
        )

    def _warn_of_chance(self) -> None:
        if self.correction == "none":
            warn_of_chance(self._stream, self._state)
        else:
            warn_of_nothing(self._stream, self._state, self._budget)


@estimator
class SAOLA(PairwiseSelector, StreamSelector):
    """Scalable and accurate online feature selection.

    Features arrive one by one. A feature is dropped if it is irrelevant to the
    class, or redundant: a kept feature is more relevant and overlaps with it at
    least as much as the class does. A feature that stays may displace kept ones
    in the same way. One pass, and pairs only: the cost is the number of features
    times the number kept.

    Parameters
    ----------
    max_features : int, optional
        Keep at most this number: after each arrival the least relevant leaves.

    Notes
    -----
    The defaults are those of Algorithm 1 in [1]_, which reproduce the numbers of
    features that the paper reports; ``docs/fidelity.md`` compares the variants.

    References
    ----------
    .. [1] K. Yu, X. Wu, W. Ding, J. Pei: Scalable and Accurate Online Feature
       Selection for Big Data. ACM TKDD 11(2), 2016.

    Examples
    --------
    >>> from featstream import SAOLA
    >>> from featstream.datasets import make_stream
    >>> stream = make_stream(n_features=500, kind="continuous", seed=0)
    >>> selector = SAOLA().fit(stream.X, stream.y)
    >>> set(stream.blanket) <= set(selector.selected_)
    True

    Online, one feature at a time:

    >>> selector = SAOLA(measure="fisher-z").start(stream.y)
    >>> decision = selector.update(stream.X[:, stream.blanket[0]], name="gene_17")
    >>> decision.is_kept
    True
    >>> print(selector.explain("gene_17"))
    'gene_17' is kept: its relevance is 0.39671.
    """

    max_features: int | None = None

    _uses_blas = False  # not for single features

    def _begin(self, stream: Stream) -> None:
        super()._begin(stream)
        self._scratch: Any = None
        self._alone: Any = None  # the outcome of the last single feature
        self._batch = FIRST_BATCH

    @property
    def _drops_copies(self) -> bool:
        """Whether features that are the target in other words are left out."""
        return getattr(self, "target_copies", "keep") == "drop"

    def _restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        super()._restore(arrays)
        if self._state is not None and storage_of(self._state.columns).units:
            self._snapshot = take_snapshot(self._state, self._tuning)

    def _score_batch(self, batch: Block) -> list[Scored]:
        if self._drops_copies:
            is_numeric = self._has_numeric_target
            batch = without_copies(batch, self._stream, is_numeric=is_numeric)
        return [self._score(batch)]

    def _deciding(self, batch: Any, scored: list[Scored]) -> Decide:
        (only,) = scored
        newcomers, found, tuning = only.newcomers, None, self._tuning
        if (
            newcomers is not None
            and newcomers.column.size >= tuning.ceilings_from
            and storage_of(newcomers.columns).units
        ):
            found = find_ceilings(newcomers, self._snapshot, self._rule, tuning)
        return partial(self._decide_about, only, found)

    def _decide_plain(
        self, values: NDArray[Any], names: Sequence[str] | None, stream: Stream
    ) -> Verdict | None:
        """All steps for one column, in the memory of the one before it."""
        measure = stream.measure
        encode = getattr(measure, "encode_alone", None)
        if self._drops_copies:
            return None
        has_walked = self._state is not None and self._scratch is not None
        if encode is None or not has_walked:
            return None
        encoded = None if stream.is_sparse else encode(values)
        if encoded is None:
            return None
        span = Span(stream.trace.n_seen, 1, names)
        scores = measure.relevance(encoded)
        screened = self._budget.screen(measure, encoded, scores)
        with uninterrupted():
            decide = partial(self._decide_alone, span.start, encoded, scores, *screened)
            return self._take(span, decide, stream)

    def _decide_alone(
        self,
        arrival: int,
        encoded: Any,
        scores: FloatArray,
        p_values: FloatArray | None,
        relevant: IntArray,
    ) -> Verdict:
        kept = self._state
        assert kept is not None
        passes = p_values is None or self._budget.judge(p_values)[0]
        if not (relevant.size and passes):
            unknown = _UNKNOWN if self.redundancy == "conditional" else None
            return Verdict(_IRRELEVANT, scores, _NOBODY, p_value=unknown)
        columns, column = self._stream.measure.columns(encoded, relevant)
        if self._alone is None or self._alone.gone.size <= kept.live.size:
            self._alone = new_outcome(arrival, 1, 1 + kept.live.size)
        outcome = Outcome(arrival, *self._alone[1:])
        outcome.n_events[0] = 0
        newcomers = Newcomers(columns, column, scores, np.array([arrival]))
        self._scan(newcomers, outcome)
        self._snapshot = None
        return self._verdict(outcome, scores)

    def _decide_about(self, scored: Scored, found: Ceilings | None) -> Verdict:
        """Steps 9 to 20 for the relevant features of a block, in order."""
        n_events = 0 if self._state is None else int(self._state.size[0])
        newcomers, passes = scored.newcomers, self._judge(scored)
        if newcomers is not None:
            if passes is not None:
                newcomers = newcomers.part(passes)
                found = None if found is None else found.part(passes)
            n_events += newcomers.column.size
        outcome = new_outcome(scored.start, scored.scores.size, n_events)
        if newcomers is not None and newcomers.column.size:
            self._walk(newcomers, found, outcome)
        return self._verdict(outcome, scored.scores)

    def _walk(
        self, newcomers: Newcomers, found: Ceilings | None, outcome: Outcome
    ) -> None:
        """Take newcomers through Algorithm 1, in batches where ceilings pay."""
        columns, column, tuning = newcomers.columns, newcomers.column, self._tuning
        if self._state is None:
            self._state = start_kept(columns, column, tuning)
        else:
            self._state = fit_index(self._state, tuning)
        if self._scratch is None:
            n_samples = self._stream.measure.n_samples
            self._scratch = storage_of(columns).scratch(n_samples)
        if found is None:
            self._scan(newcomers, outcome)
            self._snapshot = None
            return
        n_done = 0
        while n_done < column.size:
            here = slice(n_done, n_done + self._batch)
            batch, own = newcomers.part(here), found.part(here)
            batch = with_ceilings(batch, own, self._state, self._rule, tuning)
            self._scan(batch, outcome)
            fates = outcome.fate[batch.arrival - outcome.first]
            n_added = int(np.count_nonzero(fates == KEPT))
            n_done += self._batch
            self._batch = next_batch(self._batch, n_added, self._state, tuning)
        if outcome.n_events[0] or (outcome.fate == KEPT).any():
            self._snapshot = take_snapshot(self._state, tuning)

    def _scan(self, newcomers: Newcomers, outcome: Outcome) -> None:
        assert self._state is not None
        given = newcomers, self._state, self._rule, self._scratch, self._tuning
        self._state = scan_all(*given, outcome)


def scan_all(
    newcomers: Newcomers,
    kept: Kept,
    rule: Any,
    scratch: Any,
    tuning: Tuning,
    outcome: Outcome,
) -> Kept:
    """Take all newcomers through the scan; return ``kept``, grown if need be."""
    done, column = 0, newcomers.column
    while True:
        run = for_storage(scan, newcomers.columns)
        displaced = np.empty(kept.live.size, np.int64)
        done = run(newcomers, done, kept, rule, scratch, displaced, outcome)
        if done == column.size:
            return kept
        kept = make_room(kept, newcomers.columns, int(column[done]), tuning)


def make_rule(selector: Any) -> Rule:
    """Check the options that Algorithms 1 and 2 share."""
    owner = type(selector).__name__
    choices = {
        "bound": ("min", "max"),
        "ties": ("keep", "drop"),
        "pruning": ("interleaved", "deferred", "newcomers"),
        "overlap": (">=", ">"),
        "redundancy": ("bound", "conditional"),
        "correction": CORRECTIONS,
    }
    for name, known in choices.items():
        value = getattr(selector, name)
        check_choice(value, name, known, owner)
        is_of_bound = name in ("bound", "overlap") and value != known[0]
        if is_of_bound and selector.redundancy == "conditional":
            raise ParameterError(
                f"`{name}` of {owner} belongs to redundancy='bound'. Got "
                f"{printable(value)} with redundancy='conditional'. Leave it out."
            )
    for name in ("alpha", "redundancy_alpha"):
        if hasattr(selector, name):
            check_alpha(getattr(selector, name), owner, name)
    limit = getattr(selector, "max_features", None)
    check_count(limit, "max_features", owner, none="for no limit")
    return Rule(
        uses_max_bound=selector.bound == "max",
        needs_excess=selector.overlap == ">",
        tie_winner=EARLIER if selector.ties == "drop" else NEITHER,
        displacer=NEITHER if selector.pruning == "newcomers" else LATER,
        is_deferred=selector.pruning == "deferred",
        limit=np.iinfo(np.int64).max if limit is None else int(limit),
    )
