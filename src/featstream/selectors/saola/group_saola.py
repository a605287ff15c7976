"""Group-SAOLA: Algorithm 2 of the paper."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from featstream.engines import Engine, prepared_ahead
from featstream.errors import ParameterError, check_choice, printable
from featstream.measures.storages.dispatch import (
    EARLIER,
    ConditionalRule,
    for_storage,
    storage_of,
)
from featstream.parallel import count_threads
from featstream.progress import Observer
from featstream.protocols import (
    Block,
    Decision,
    Fate,
    FloatArray,
    GroupDecision,
    IntArray,
    Measure,
    Source,
    Span,
)
from featstream.runs.folder import Checkpoint
from featstream.selectors.base_groups import GroupSelector
from featstream.selectors.result import TraceLevel
from featstream.selectors.saola.algorithm1 import Newcomers
from featstream.selectors.saola.algorithm2 import (
    Arriving,
    GroupOutcome,
    Workspace,
    as_newcomers,
    scan_groups,
)
from featstream.selectors.saola.budget import Budget, warn_of_chance
from featstream.selectors.saola.kept import (
    Kept,
    Tuning,
    arrivals_and_scores,
    columns_of,
    fit_index,
    make_room,
    pack_kept,
    start_group,
    start_kept,
    unpack_kept,
)
from featstream.selectors.saola.saola import bind_rule, make_rule, storages_in
from featstream.selectors.saola.spread import Spread, using
from featstream.selectors.stream import Stream, Verdict
from featstream.sources.grouping import Batch, Layout
from featstream.sources.memory import in_storage

_LIBRARY = {"ties": "keep", "pruning": "interleaved", "overlap": ">="}
"""Options that reading="library" decides, and their defaults."""


class GroupSAOLA(GroupSelector):
    """SAOLA for features that arrive in groups: sparse between and within them.

    A group is dropped if none of its features is relevant. Otherwise its own
    features are pruned as SAOLA prunes a stream, and those left are compared with
    the features of the kept groups, in both directions. A group stays for as long
    as one of its features does.

    Parameters
    ----------
    measure : {"auto", "su", "mi", "fisher-z"} or measure object, default="auto"
        How relevance and overlap are measured; as for `SAOLA`.
    reading : {"printed", "library"}, default="printed"
        How Algorithm 2 is read. "printed": what has been removed takes no further
        part. "library": as the authors' own library does, where features removed
        in the comparison of two groups still remove others, overlap must exceed
        its bound, and of equally relevant features the earlier goes between groups
        and the later within one. `ties`, `pruning` and `overlap` are for
        "printed" alone.
    bound : {"min", "max"}, default="min"
        What the overlap of two features must reach: the smaller of their
        relevances, or the larger.
    ties : {"keep", "drop"}, default="keep"
        Whether two features of exactly equal relevance never remove each other,
        or the earlier may make the later redundant.
    pruning : {"interleaved", "deferred"}, default="interleaved"
        Whether a feature removes others during its walk, even if it is itself
        removed later in the same walk, or only if it is not.
    overlap : {">=", ">"}, default=">="
        Whether overlap must reach its bound, as printed, or exceed it.
    redundancy : {"bound", "conditional"}, default="bound"
        How a feature is found redundant beside a more relevant one: by the paper's
        bound on their overlap, or by a test of the feature and the class given the
        other one.
    redundancy_alpha : float, default=0.05
        Level of that test: the feature is redundant if its p-value is above.
    correction : {"none", "bonferroni", "online-fdr"}, default="none"
        Whether thresholds pay for the number of features judged; as for `SAOLA`.
    trace : {"full", "kept"} or None, default="full"
        What is remembered of dropped features: why each was dropped (nine bytes
        per feature), only those once kept, or nothing.
    n_jobs : int, optional
        Number of threads that score blocks ahead of the scan. The selection does
        not depend on it.
    engine : {"dask"}, optional
        Where groups are read and scanned: on the cluster of the current Dask client,
        or in this process. The selection does not depend on it.

    Attributes
    ----------
    selected_ : ndarray of int
        Positions of the kept features, group after group in order of arrival.
    selected_groups_ : ndarray
        Labels of the groups with a kept feature, in order of arrival.
    scores_ : ndarray of float
        Relevance of the kept features.
    group_of_ : ndarray of shape (n_features,)
        Label of the group of each feature.
    support_ : ndarray of bool of shape (n_features,)
        Whether each feature is kept.
    measure_ : str
        The measure in use.
    result_ : GroupSelectionResult
        Names, scores and history of features and groups.

    See Also
    --------
    SAOLA : The same for features that arrive one by one.
    featstream.random_groups : The groups of the paper's experiments.

    Notes
    -----
    Groups arrive in the order in which they first appear, features in that of
    their group. If the features of a group are scattered they are gathered, from
    arrays, sparse matrices and data frames; other sources are read in order, and
    there the features of a group must be next to each other. A group costs memory
    for its own columns while it arrives, and then for the kept ones.

    Groups of one feature each give what `SAOLA` gives, with the same options.

    Algorithm 2 of [1]_ leaves irrelevant features of a relevant group in play; here
    they are dropped, as in the authors' library. The paper's numbers of groups and
    features are those of ``reading="library"``. ``docs/fidelity.md`` has the
    details.

    References
    ----------
    .. [1] K. Yu, X. Wu, W. Ding, J. Pei: Scalable and Accurate Online Feature
       Selection for Big Data. ACM TKDD 11(2), 2016.

    Examples
    --------
    >>> from featstream import GroupSAOLA
    >>> from featstream.datasets import make_stream
    >>> stream = make_stream(n_features=500, kind="continuous", seed=0)
    >>> groups = [f"plate-{i // 50}" for i in range(500)]
    >>> selector = GroupSAOLA().fit(stream.X, stream.y, groups=groups)
    >>> set(stream.blanket) <= set(selector.selected_)
    True

    Online, one group at a time:

    >>> selector = GroupSAOLA(measure="fisher-z").start(stream.y)
    >>> decision = selector.update_group(stream.X[:, :50], group="plate-0")
    >>> str(decision.fate), len(decision.features)
    ('kept', 50)
    >>> print(selector.explain(group="plate-0"))
    Group 'plate-0' is kept, with 3 of its 50 features.
    """

    _engine: Engine | None = None  # in use by `consume`
    _tuning = Tuning()

    def __init__(
        self,
        *,
        measure: str | Measure = "auto",
        reading: Literal["printed", "library"] = "printed",
        bound: Literal["min", "max"] = "min",
        ties: Literal["keep", "drop"] = "keep",
        pruning: Literal["interleaved", "deferred"] = "interleaved",
        overlap: Literal[">=", ">"] = ">=",
        redundancy: Literal["bound", "conditional"] = "bound",
        redundancy_alpha: float = 0.05,
        correction: Literal["none", "bonferroni", "online-fdr"] = "none",
        trace: TraceLevel = "full",
        n_jobs: int | None = None,
        engine: Literal["dask"] | None = None,
    ) -> None:
        self.measure = measure
        self.reading = reading
        self.bound = bound
        self.ties = ties
        self.pruning = pruning
        self.overlap = overlap
        self.redundancy = redundancy
        self.redundancy_alpha = redundancy_alpha
        self.correction = correction
        self.trace = trace
        self.n_jobs = n_jobs
        self.engine = engine

    def _begin(self, stream: Stream) -> None:
        super()._begin(stream)
        rule, tuning = make_rule(self), self._tuning
        check_choice(self.reading, "reading", ("printed", "library"), "GroupSAOLA")
        if self.reading == "library":
            for name, default in _LIBRARY.items():
                if getattr(self, name) != default:
                    raise ParameterError(
                        f"`{name}` of GroupSAOLA is decided by reading='library'. Got "
                        f"{printable(getattr(self, name))}. Leave it out, or use "
                        "reading='printed'."
                    )
            rule = rule._replace(needs_excess=True, tie_winner=EARLIER)
            tuning = tuning._replace(index_from=np.inf)  # it visits all kept features
        self._rule: Any = rule
        self._budget = Budget(self.correction)
        self._used_tuning = tuning
        self._state: Kept | None = None

    def _kept(self) -> tuple[IntArray, FloatArray]:
        return arrivals_and_scores(self._state)

    def _kept_columns(self) -> NDArray[Any] | None:
        return columns_of(self._state, len(self._stream.y))

    def _own_arrays(self) -> dict[str, NDArray[Any]]:
        return pack_kept(self._state) | self._budget.arrays()

    def _unpack(self, arrays: Mapping[str, NDArray[Any]]) -> Kept | None:
        """Kept features that were packed, here or elsewhere."""
        stream = self._stream
        arrays = self._budget.restore(arrays)
        if stream.measure is not None:
            self._bind_measure(stream.measure)
        storages = storages_in(stream.measure, stream.is_sparse)
        return unpack_kept(
            arrays, len(stream.y), storages, stream.measure, self._used_tuning
        )

    def _restore_own(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._state = self._unpack(arrays)

    def consume(
        self,
        source: Any,
        *,
        groups: Any = None,
        engine: Any = None,
        progress: bool | Observer = False,
        checkpoint: str | PathLike[str] | Checkpoint | None = None,
        every: float = 10.0,
    ) -> Self:
        """Decide about every group of a source.

        Parameters
        ----------
        source : anything that `as_source` takes
            Features; further calls continue the stream.
        groups : array of labels, mapping or list of index lists, optional
            One label per feature; or a mapping of the names of features to labels;
            or the positions of the features of each group, whose labels are then
            0, 1 and so on. Every feature is in one group. By default each feature
            is a group of its own, labelled with its name.
        engine : distributed.Client or "dask", optional
            The cluster to use, as for `SAOLA.consume`.
        progress : bool or callable, default=False
            Show a live line, or call with a `Progress` after each block.
        checkpoint : str, path or Checkpoint, optional
            Folder in which the run is saved between groups, now and then and at
            Ctrl-C, for `featstream.resume`. If it holds this very run,
            unfinished, that is continued. Later calls use the same folder.
        every : float, default=10.0
            Seconds between checkpoints.

        Notes
        -----
        An error ends a stream whose groups have to be gathered, unless it is saved
        in a run; otherwise what was decided before it stands, and a call with the
        same source and groups continues where it stopped. After a Ctrl-C nothing
        else is accepted until `start`.
        """
        options: Any = {"progress": progress, "checkpoint": checkpoint, "every": every}
        with using(self, engine):
            return super().consume(source, groups=groups, **options)

    def _decisions(
        self, source: Source, blocks: Iterator[Block], layout: Layout, position: int
    ) -> Iterator[Callable[[], Any]]:
        if self._engine is None:
            return super()._decisions(source, blocks, layout, position)
        return Spread(self, source, blocks, self._engine, layout).steps(position)

    @property
    def _needs_same_snapshot(self) -> bool:
        """Whether a feature that has met its witness may still displace others."""
        return self.reading == "library"

    def _kept_ends(self) -> IntArray:
        """The arrival after the last of each group of which something is kept."""
        arrivals, _ = arrivals_and_scores(self._state)
        return np.unique(self._groups.ends[self._groups.of(arrivals)])

    def _load(self, arrays: Mapping[str, NDArray[Any]], kept_ends: IntArray) -> None:
        unknown = np.zeros(kept_ends.size, np.int64)
        self._groups.restore(range(kept_ends.size), kept_ends, unknown, unknown)
        self._restore_own(arrays)

    def _judge(self, blocks: Sequence[Block], ends: IntArray | None) -> Verdict:
        """Decide about whole groups, and record nothing."""
        assert ends is not None
        self._bind_measure(self._stream.measure)
        groups = Batch(list(blocks), range(ends.size), ends)
        batch = _score(groups, self._stream, self._budget)
        outcome = self._scan(batch, self._stream)
        gone, by = displacements(outcome)
        fates = np.full(gone.size, Fate.DISPLACED, np.uint8)
        decided = outcome.fate, batch.scores, outcome.witness, outcome.overlap
        return Verdict(*decided, gone, by, fates)

    def _commit(
        self,
        span: Span,
        labels: Sequence[Hashable] | None,
        ends: IntArray | None,
        verdict: Verdict,
        keep: Callable[[Verdict], None],
    ) -> None:
        """Record what was decided elsewhere."""
        assert labels is not None
        assert ends is not None
        assert verdict.witness is not None
        block = ScoredBlock(span, None, verdict.scores, None, np.empty(0, np.int64))
        batch = ScoredBatch([block], list(labels), ends)
        outcome = _new_outcome(span.start, span.n_columns, verdict.gone.size)._replace(
            fate=verdict.fate,
            witness=verdict.witness,
            gone=verdict.gone,
            gone_by=verdict.gone_by,
            n_events=np.array([verdict.gone.size]),
        )
        if verdict.overlap is not None:
            outcome = outcome._replace(overlap=verdict.overlap)

        def scan() -> GroupOutcome:
            keep(verdict)
            return outcome

        self._take(batch, scan, self._stream)

    def _bind_measure(self, measure: Any) -> None:
        self._rule = bind_rule(self, self._rule, measure)
        self._budget.bind(measure, "GroupSAOLA")

    def _steps(
        self, source: Source, layout: Layout, position: int
    ) -> Iterator[Callable[[], Any]]:
        if not position:
            self._budget.open_source(source.n_features)
        return super()._steps(source, layout, position)

    def _warn_of_chance(self) -> None:
        if self.correction == "none":
            warn_of_chance(self._stream, self._state)

    def _score(self, batches: Iterator[Batch], stream: Stream) -> Iterator[ScoredBatch]:
        self._bind_measure(stream.measure)
        n_threads = count_threads(self.n_jobs)
        return score_ahead(batches, stream, self._budget, n_threads)

    def _decide(
        self, batch: ScoredBatch, stream: Stream
    ) -> tuple[GroupOutcome, list[Hashable]]:
        """Decide about whole groups; those that cannot be used change nothing.

        Returns what became of their features, and earlier groups that left.
        """
        return self._take(batch, lambda: self._scan(batch, stream), stream)

    def _take(
        self, batch: ScoredBatch, scan: Callable[[], GroupOutcome], stream: Stream
    ) -> tuple[GroupOutcome, list[Hashable]]:
        """Decide about the features of some groups, and record it."""
        self._groups.check_new(batch.labels)
        named = [
            scored.block for scored in batch.blocks if scored.block.names is not None
        ]
        names = [name for block in named for name in block.names or ()]
        stream.names.refuse_taken(stream.n_seen, names)
        outcome = scan()
        p_value = None
        if isinstance(self._rule, ConditionalRule):
            p_value = stream.measure.p_given(outcome.overlap)
        stream.trace.extend(outcome.fate, batch.scores, outcome.witness, p_value)
        self._record(batch, outcome)
        for block in named:
            stream.names.add(block.start, block.names or ())
        gone, by = displacements(outcome)
        fates = np.full(gone.size, Fate.DISPLACED, np.uint8)
        stream.trace.mark(gone, fates, by)
        if stream.trace.level != "full":
            for scored in batch.blocks:
                self._forget_names(stream, scored.block)
        return outcome, self._groups.lose(gone)

    def _scan(self, batch: ScoredBatch, stream: Stream) -> GroupOutcome:
        """Walk the relevant features of some groups through the kernel."""
        measure, first = stream.measure, stream.n_seen
        assert measure is not None
        batch = batch.judged(self._budget)
        kept_arrivals, _ = arrivals_and_scores(self._state)
        kept_ends = np.unique(self._groups.ends[self._groups.of(kept_arrivals)])
        ends = first + batch.ends
        n_relevant = sum(scored.relevant.size for scored in batch.blocks)
        n_events = kept_arrivals.size + n_relevant
        outcome = _new_outcome(first, int(batch.ends[-1]), n_events)
        blocks = [scored for scored in batch.blocks if scored.relevant.size]
        if not blocks:
            return outcome
        chosen = [measure.columns(scored.encoded, scored.relevant) for scored in blocks]
        arrivals = [scored.block.start + scored.relevant for scored in blocks]
        group = np.searchsorted(ends, np.concatenate(arrivals), "right")
        begins = np.flatnonzero(np.diff(group, prepend=-1))
        left = start_group(chosen, begins, self._used_tuning)
        group = np.append(group, -1)
        if self._state is None:
            columns, column = chosen[0]
            self._state = start_kept(columns, column, self._used_tuning)
        scratch = storage_of(chosen[0][0]).scratch(measure.n_samples)
        all_ends = np.concatenate([kept_ends, ends])
        how = all_ends, self._rule, self.reading == "library", scratch
        begin = 0
        for scored, arrival, (columns, column) in zip(
            blocks, arrivals, chosen, strict=True
        ):
            scores = scored.scores[scored.relevant]
            no_ceiling = np.empty((scores.size, 0), np.float32)
            newcomers = Newcomers(columns, column, scores, arrival, no_ceiling, 0.0)
            own_group = group[begin : begin + scores.size + 1]
            begin += scores.size
            self._scan_block(newcomers, own_group, left, how, outcome)
        return outcome

    def _scan_block(
        self,
        newcomers: Newcomers,
        group: IntArray,
        left: Kept,
        how: tuple[Any, ...],
        outcome: GroupOutcome,
    ) -> None:
        assert self._state is not None
        self._state = fit_index(self._state, self._used_tuning)
        done = 0
        while True:
            indexes = left.index, self._state.index
            run = for_storage(scan_groups, newcomers.columns, *indexes, self._rule)
            arriving = Arriving(left, as_newcomers(left))
            sets, work = (arriving, self._state), _workspace(left, self._state)
            done = run(newcomers, group, done, *sets, *how, work, outcome)
            if done == newcomers.column.size:
                break
            slot = int(left.live[outcome.n_added[0]])  # the next one to be added
            self._state = make_room(self._state, left.columns, slot, self._used_tuning)

    def _record(self, batch: ScoredBatch, outcome: GroupOutcome) -> None:
        """Note what became of the groups of a batch."""
        begins = np.concatenate([[0], batch.ends[:-1]])
        is_kept = outcome.fate == Fate.KEPT
        is_relevant = outcome.fate != Fate.IRRELEVANT
        n_kept = np.add.reduceat(is_kept, begins, dtype=np.int64)
        n_relevant = np.add.reduceat(is_relevant, begins, dtype=np.int64)
        fates = np.where(n_kept > 0, Fate.KEPT, Fate.REDUNDANT)
        fates[n_relevant == 0] = Fate.IRRELEVANT
        self._groups.extend(batch.labels, batch.ends - begins, fates, n_kept)

    def _describe(
        self,
        batch: ScoredBatch,
        decided: tuple[GroupOutcome, list[Hashable]],
        stream: Stream,
    ) -> GroupDecision:
        outcome, emptied = decided
        return GroupDecision(
            batch.labels[0],
            Fate(int(self._groups.fates[-1])),
            decisions(batch, outcome, stream, isinstance(self._rule, ConditionalRule)),
            tuple(stream.names[gone] for gone in displacements(outcome)[0].tolist()),
            tuple(emptied),
        )

    def _why_dropped(self, fate: Fate, its_features: str) -> str:
        if fate is Fate.IRRELEVANT:
            return f"none of {its_features} passes the threshold"
        return (
            f"what is relevant of {its_features} is redundant, within the group or "
            "beside those kept before"
        )


@dataclass(frozen=True, slots=True)
class ScoredBlock:
    """A block in the storage of its stream, with the scores of its columns."""

    block: Block | Span
    encoded: Any
    scores: FloatArray
    p_values: FloatArray | None
    relevant: IntArray


@dataclass(frozen=True, slots=True)
class ScoredBatch:
    """Whole groups, encoded and scored."""

    blocks: list[ScoredBlock]
    labels: list[Hashable]
    ends: IntArray

    def judged(self, budget: Budget) -> ScoredBatch:
        """The same with the features that pass the correction, if there is one."""
        if any(scored.p_values is None for scored in self.blocks):
            return self
        blocks = []
        for scored in self.blocks:
            assert scored.p_values is not None
            passes = np.flatnonzero(budget.judge(scored.p_values))
            blocks.append(replace(scored, relevant=passes))
        return replace(self, blocks=blocks)

    @property
    def scores(self) -> FloatArray:
        """Relevance of every feature."""
        return np.concatenate([scored.scores for scored in self.blocks])


def score_ahead(
    batches: Iterator[Batch], stream: Stream, budget: Budget, n_threads: int
) -> Iterator[ScoredBatch]:
    """Encode and score groups in order; with several threads, some in advance."""
    placed = _place(batches, stream)
    return prepared_ahead(
        placed, lambda batch: _score(batch, stream, budget), n_threads
    )


def _place(batches: Iterator[Batch], stream: Stream) -> Iterator[Batch]:
    """Number features by arrival; the first block decides how all are stored."""
    start = stream.n_seen
    for batch in batches:
        blocks = []
        for block in batch.blocks:
            blocks.append(replace(block, start=start))
            start += block.n_columns
        if stream.is_sparse is None:
            stream.is_sparse = blocks[0].is_sparse
        yield replace(batch, blocks=blocks)


def _score(batch: Batch, stream: Stream, budget: Budget) -> ScoredBatch:
    measure = stream.measure
    assert measure is not None
    blocks = []
    for block in batch.blocks:
        for part in in_storage(block, is_sparse=bool(stream.is_sparse)):
            encoded = measure.encode(part)
            scores = measure.relevance(encoded)
            found = budget.screen(measure, encoded, scores)
            blocks.append(ScoredBlock(part, encoded, scores, *found))
    return ScoredBatch(blocks, list(batch.labels), batch.ends)


def displacements(outcome: GroupOutcome) -> tuple[IntArray, IntArray]:
    """Arrivals that left earlier groups, and the arrivals that caused it."""
    n_events = int(outcome.n_events[0])
    return outcome.gone[:n_events], outcome.gone_by[:n_events]


def decisions(
    batch: ScoredBatch, outcome: GroupOutcome, stream: Stream, is_tested: bool
) -> tuple[Decision, ...]:
    """What was decided about each feature of a group.

    Their names are those of the blocks: the stream may have forgotten them.
    """
    own_names = [
        scored.block.name(i)
        for scored in batch.blocks
        for i in range(scored.scores.size)
    ]
    displaced: dict[int, list[str]] = {}
    for gone, by in zip(*displacements(outcome), strict=True):
        displaced.setdefault(int(by), []).append(stream.names[int(gone)])
    decided = []
    values = outcome.overlap
    if is_tested:
        values = stream.measure.p_given(values)
    for i, (name, score) in enumerate(zip(own_names, batch.scores, strict=True)):
        arrival, witness = outcome.first + i, int(outcome.witness[i])
        witness_name = None
        if witness >= outcome.first:
            witness_name = own_names[witness - outcome.first]
        elif witness >= 0:
            witness_name = stream.names[witness]
        value = None if witness < 0 else float(values[i])
        decided.append(
            Decision(
                name=name,
                arrival=arrival,
                fate=Fate(int(outcome.fate[i])),
                relevance=float(score),
                witness=witness_name,
                displaced=tuple(displaced.get(arrival, ())),
                overlap=None if is_tested else value,
                p_value=value if is_tested else None,
            )
        )
    return tuple(decided)


def _workspace(*sets: Any) -> Workspace:
    n_slots = max(kept.live.size for kept in sets)
    return Workspace(np.zeros(n_slots, np.int64), np.zeros(n_slots, np.bool_))


def _new_outcome(first: int, n_features: int, n_events: int) -> GroupOutcome:
    return GroupOutcome(
        first=first,
        fate=np.full(n_features, Fate.IRRELEVANT, np.uint8),
        witness=np.full(n_features, -1, np.int64),
        overlap=np.full(n_features, np.nan),
        gone=np.zeros(n_events, np.int64),
        gone_by=np.zeros(n_events, np.int64),
        n_events=np.zeros(1, np.int64),
        n_added=np.full(1, -1, np.int64),
    )
