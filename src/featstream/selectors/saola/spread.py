"""One scan on many workers: they speculate, and the driver commits in order.

A worker takes a block through the ordinary scan, beginning with the features that
were kept when the block was dispatched: the *snapshot*. That may be out of date when
the turn of the block comes. The driver then accepts what is certain:

- A feature that is irrelevant is so whatever is kept.
- A feature that met its witness in the snapshot is redundant, with that witness, if
  the witness is still kept. Features kept since then arrived later, and features that
  have left only shorten the walk; so it ends at the same witness. The feature must not
  have displaced any that is still kept, and the worker must have compared it with all
  kept features that arrived before the witness.

All others of the block are *uncertain*. A worker walks them again, in order, from what
is kept now, and returns the columns of those that are kept at the end of the block. If
one of them displaces the witness of a certain feature, that feature is walked as well.
So every decision is that of the sequential scan, and only columns of kept features
come to the driver; blocks, windows and deaths of workers only change which worker
computes what.

For groups the same holds with two changes. What is pruned within a group is certain;
and if one feature of a group is uncertain, so are all that the group has left.

A corrected threshold depends on the p-values of all features before. A worker
guesses with the levels at the time of dispatch, and returns the p-values; the driver
judges them in order. A feature that the worker called relevant and that is not is
irrelevant, and one that it did not walk is uncertain. If a group has such a feature,
all of its relevant features are uncertain.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy, deepcopy
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array

from featstream.engines import Engine, in_order
from featstream.errors import DataError, FeatstreamError
from featstream.parallel import single_blas
from featstream.protocols import (
    Block,
    BoolArray,
    Fate,
    FloatArray,
    IndexedSource,
    IntArray,
    LazySource,
    Source,
    Span,
    SparseColumns,
    fingerprint_of,
    reopener_of,
)
from featstream.selectors.base import in_stream
from featstream.selectors.result import Trace
from featstream.selectors.saola.budget import Budget
from featstream.selectors.saola.kept import (
    arrivals_and_scores,
    only,
    pack_kept,
    rebuild,
)
from featstream.selectors.stream import Stream, Verdict
from featstream.sources import as_source
from featstream.sources.grouping import Batch, Layout, batches
from featstream.sources.values import as_sparse_columns

if TYPE_CHECKING:
    from featstream.selectors.saola.saola import PairwiseSelector

FIRST_WIDTH = 64
"""Features of the first block; each is twice as wide as the one before it."""

_PER_WORKER = 8
_SHARED = (
    "It was opened by a worker. All workers must see the same files at the same path: "
    "use shared storage, or give the data as a dask.array."
)
_NEVER = np.iinfo(np.int64).max

Arrays = dict[str, NDArray[Any]]


@dataclass
class Job:
    """What every task of a scan needs to know; sent once to each worker."""

    selector: PairwiseSelector
    y: Any
    is_sparse: bool
    reopen: Callable[[], Source] | None  # None if the values come with the tasks
    fingerprint: str | None  # of the source
    _source: Any = field(default=None, repr=False)
    _started: Any = field(default=None, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_source": None, "_started": None}

    @property
    def source(self) -> Source:
        """The source as this worker sees it, which must be the driver's."""
        assert self.reopen is not None
        if self._source is None:
            try:
                source = self.reopen()
            except (DataError, OSError) as error:
                raise DataError(f"{error} {_SHARED}") from error
            if fingerprint_of(source) != self.fingerprint:
                raise DataError(
                    f"{source!r} differs from that of the driver. {_SHARED}"
                )
            self._source = source
        return cast(Source, self._source)

    def resume(self, snapshot: Arrays, n_seen: int) -> Any:
        """A selector of its own that has kept what is in the snapshot."""
        if self._started is None:  # without a lock: a target of Dask is computed here
            from sklearn.base import clone

            with warnings.catch_warnings():  # the driver has warned
                warnings.simplefilter("ignore")
                self._started = clone(self.selector).start(self.y)
        selector = copy(self._started)
        stream = Stream(self.y, Trace(None), selector._stream.measure)
        stream.is_sparse, stream.trace.n_seen = self.is_sparse, n_seen
        selector._stream = stream
        selector._begin(stream)
        selector._load(snapshot)
        return selector


class AllRelevant(Budget):
    """Lets every feature pass: it is known that all are relevant."""

    def screen(
        self, measure: Any, encoded: Any, scores: FloatArray
    ) -> tuple[FloatArray | None, IntArray]:
        """No p-values, and all columns."""
        return None, np.arange(scores.size)


class Task(NamedTuple):
    """Some consecutive features of a stream."""

    first: int  # the arrival of the first of them
    positions: range | IntArray  # where they are in the source
    ends: IntArray | None = None  # where each group ends, counted from the first


class Appeal(NamedTuple):
    """Which features of a task to walk again, counted from its first.

    A certain feature is walked as well if its witness leaves before its turn, together
    with the others of its group.
    """

    uncertain: IntArray
    certain: IntArray
    witness: IntArray  # of the certain features
    group: IntArray  # of the certain features


class Report(NamedTuple):
    """What a worker found about all features of a task."""

    verdict: Verdict | None = None
    added: Arrays | None = None  # columns that were kept, as a run saves them
    names: list[str] | None = None
    p_values: FloatArray | None = None  # if the threshold is corrected
    left_out: dict[int, str] | None = None  # names of identifiers by arrival
    error: FeatstreamError | None = None  # raised when the turn of the block comes


def share(value: Any) -> Any:
    """Return what many tasks need, so that it is a task's result itself."""
    return value


def judge(
    job: Job, task: Task, snapshot: Arrays, budget: Budget, values: Any, ships: bool
) -> Report:
    """Take a block through the scan, from a snapshot of the kept features.

    If the snapshot is known to be up to date at the turn of the block, what is found
    is final, and ``ships`` the columns of the kept features with it.
    """
    try:
        with single_blas:
            selector = job.resume(snapshot, task.first)
            selector._budget = budget = deepcopy(budget)  # a task may run twice
            budget.judged = []
            with _blocks_of(job, task, values) as found:
                names = [name for block in found for name in block.names or ()]
                verdict = _walk(selector, found, task.ends)
                added = _pack_new(selector, task.first) if ships else None
    except FeatstreamError as error:
        return Report(error=error)
    left_out = getattr(selector._stream.measure, "left_out", None)
    others = {} if left_out is None else left_out.names
    end = task.first + len(task.positions)
    mine = {a: others.pop(a) for a in list(others) if task.first <= a < end}
    p_values = np.concatenate(budget.judged) if budget.judged else None
    return Report(verdict, added, names or None, p_values, mine)


def settle(
    job: Job, task: Task, snapshot: Arrays, values: Any, appeal: Appeal
) -> tuple[Verdict, IntArray, Arrays]:
    """Walk the uncertain features of a block, from what is kept at its beginning.

    Returns the verdict about the features walked, which these are, counted from the
    first of the task, and the columns of those that are kept.
    """
    which = appeal.uncertain
    while True:
        with single_blas:
            selector = job.resume(snapshot, task.first)
            selector._budget = AllRelevant("none")
            with _blocks_of(job, task, values) as found:
                blocks = _choose(found, which)
            ends = None
            if task.ends is not None:
                group = np.searchsorted(task.ends, which, "right")
                ends = np.flatnonzero(np.diff(group, append=-1)) + 1
            # The scan needs to know the order of arrivals, and no more: count them.
            verdict = _walk(selector, blocks, ends)
        gone, by, witness = (
            _arrivals(task.first, which, counted)
            for counted in (verdict.gone, verdict.gone_by, verdict.witness)
        )
        lost = appeal.group[_are_lost(appeal, task.first, gone, by)]
        victims = np.setdiff1d(appeal.certain[np.isin(appeal.group, lost)], which)
        if not victims.size:
            break
        which = np.union1d(which, victims)
    verdict = replace(verdict, witness=witness, gone=gone, gone_by=by)
    added = _pack_new(selector, task.first)
    if added:
        added["arrival"] = _arrivals(task.first, which, added["arrival"])
    return verdict, which, added


def _walk(
    selector: PairwiseSelector, blocks: list[Block], ends: IntArray | None
) -> Verdict:
    """Decide about blocks, or about the groups that they hold; record nothing."""
    stream = selector._stream
    placed: list[Any] = list(in_stream(blocks, stream))
    if ends is not None:
        placed = [Batch(placed, range(ends.size), ends)]
    verdicts = [selector._prepare(batch, stream)() for batch in placed]
    names = "fate", "scores", "witness", "gone", "gone_by", "gone_fate", "p_value"
    parts = {name: [getattr(verdict, name) for verdict in verdicts] for name in names}
    return Verdict(
        **{name: np.concatenate(x) for name, x in parts.items() if x[0] is not None}
    )


def _are_lost(appeal: Appeal, first: int, gone: IntArray, by: IntArray) -> BoolArray:
    """Which of the certain features have a witness that leaves before their turn."""
    left_at = dict(zip(gone.tolist(), by.tolist(), strict=True))
    leaves = np.array([left_at.get(w, _NEVER) for w in appeal.witness.tolist()], int)
    return leaves < first + appeal.certain


def _arrivals(first: int, which: IntArray, counted: Any) -> IntArray:
    """Arrivals of features that are counted from ``first`` on, where they are new."""
    new: IntArray = first + which[np.maximum(counted - first, 0)]
    return np.where(counted < first, counted, new)


def _pack_new(selector: PairwiseSelector, first: int) -> Arrays:
    """The columns of the features that arrived from ``first`` on."""
    if selector._state is None:
        return {}
    arrivals, _ = arrivals_and_scores(selector._state)
    return pack_kept(only(selector._state, arrivals >= first))


@contextmanager
def _blocks_of(job: Job, task: Task, values: Any) -> Iterator[list[Block]]:
    """The blocks of a task: those that came with it, or from the source."""
    if isinstance(values, list):
        yield values
    elif values is not None:
        yield list(as_source(values).blocks())
    elif isinstance(task.positions, np.ndarray):
        assert isinstance(job.source, IndexedSource), "checked by lay_out"
        yield list(job.source.blocks_at(task.positions))
    else:
        found = job.source.blocks(task.positions.start)
        yield take_range(found, task.positions)
        del found  # not before: a source that ends releases the memory of its blocks


def take_range(found: Iterator[Block], positions: range) -> list[Block]:
    """The blocks from a position on, up to another."""
    blocks, at = [], positions.start
    for block in found:
        part = block.part(0, min(block.n_columns, positions.stop - at))
        blocks.append(_own(part))
        at += part.n_columns
        if at >= positions.stop:
            return blocks
    raise DataError(f"The source ended after {at:,} of {positions.stop:,} features.")


def _own(block: Block) -> Block:
    """The block, with names that stay when the next one is read."""
    return block if block.names is None else replace(block, names=list(block.names))


def _to_send(block: Block) -> Block:
    """The block without the entries of other columns, of which it may be a view."""
    columns = block.columns
    if isinstance(columns, SparseColumns):
        columns = columns.alone()
    return replace(_own(block), columns=columns)


def _choose(blocks: Sequence[Block], which: IntArray) -> list[Block]:
    """Some columns of the blocks, counted through them all."""
    chosen, begin = [], 0
    for block in blocks:
        end = begin + block.n_columns
        mine = which[np.searchsorted(which, begin) : np.searchsorted(which, end)]
        if mine.size:
            chosen.append(_take_columns(block, mine - begin))
        begin = end
    return chosen


def _take_columns(block: Block, which: IntArray) -> Block:
    columns = block.columns
    if isinstance(columns, SparseColumns):
        own = columns.alone()
        parts = own.values, own.rows, own.indptr
        columns = as_sparse_columns(csc_array(parts, own.shape)[:, which])
    else:
        columns = np.asfortranarray(columns[:, which])
    nominal = None if block.nominal is None else block.nominal[which]
    return Block(columns, nominal=nominal)


@dataclass(slots=True)
class Item:
    """A task, and what the driver needs to submit it and to commit its outcome."""

    task: Task
    values: Any = None  # blocks, or a future of them
    version: int = -1  # of the kept features when the task was dispatched
    is_final: bool = False  # whether they cannot change until its turn comes


class Spread:
    """The driver of a scan on workers, by a selector that knows its measure.

    ``blocks`` are for workers that cannot open the source themselves.
    """

    def __init__(
        self,
        selector: PairwiseSelector,
        source: Source,
        blocks: Iterator[Block],
        engine: Engine,
        layout: Layout | None = None,
    ) -> None:
        self.selector, self.source, self.engine = selector, source, engine
        self.blocks, self.layout = blocks, layout
        self.n_columns = self.n_blocks = self._version = 0  # columns come here if kept
        self._begin = 0  # the arrival of the first feature of the source
        self._snapshot: tuple[int, Any] = (-1, None)

    def steps(self, position: int) -> Iterator[Callable[[], object]]:
        """What commits the decisions about each block, in order of arrival."""
        stream = self.selector._stream
        first = next(self.blocks, None)
        if first is None:
            return
        if stream.is_sparse is None:
            stream.is_sparse = first.is_sparse
        n_workers, self._begin = self.engine.n_workers, stream.n_seen - position
        hold = getattr(self.engine, "hold", None)
        if isinstance(self.source, LazySource) and hold is not None:
            self.source = self.source.by_column(hold)
        if reopener_of(self.source) or isinstance(self.source, LazySource):
            items = self._cut(position, first.n_columns, n_workers)
        else:
            items = self._carry(chain([first], self.blocks), position)
        self.selector._bind_measure(stream.measure)  # its levels are sent
        job = self.engine.submit(share, self._job())
        dispatch = partial(self._dispatch, job)
        for item, report in in_order(
            self.engine, items, dispatch, first=1, most=2 * n_workers
        ):
            yield self._commit_of(job, item, report)

    def _job(self) -> Job:
        """What the workers need to know, with the measure that the data chose."""
        from sklearn.base import clone

        selector, stream = self.selector, self.selector._stream
        mine = clone(selector).set_params(engine=None, trace=None, n_jobs=None)
        if stream.choice is not None:
            choice = stream.choice
            mine.measure = selector._measure_named(choice.name, **choice.options)
        assert stream.is_sparse is not None
        described = reopener_of(self.source), fingerprint_of(self.source)
        return Job(mine, stream.y, stream.is_sparse, *described)

    def _cut(self, position: int, width: int, n_workers: int) -> Iterator[Item]:
        """Tasks for a source that workers read: ranges, wider and wider.

        They end where the blocks of the source end, and where groups do.
        """
        n_features, layout = self.source.n_features, self.layout
        assert n_features is not None, "a source that can be opened again knows it"
        width = min(width, max(FIRST_WIDTH, n_features // (_PER_WORKER * n_workers)))
        grown = FIRST_WIDTH
        while position < n_features:
            stop = min(position + grown, (position // width + 1) * width, n_features)
            ends = None
            if layout is not None:
                stop = layout.end_near(position, stop)
                _, ends, _ = layout.runs(Span(position, stop - position))
            positions: range | IntArray = range(position, stop)
            if layout is not None and layout.order is not None:
                positions = layout.order[position:stop]
            values = None
            if isinstance(self.source, LazySource):
                values = self.engine.submit(share, self.source.lazy(positions))
            yield Item(Task(self._begin + position, positions, ends), values)
            position, grown = stop, 2 * grown

    def _carry(self, given: Iterator[Block], position: int) -> Iterator[Item]:
        """Tasks that carry their blocks, for a source that only the driver can read."""
        if self.layout is not None:
            for batch in batches(given, self.layout, position):
                stop = position + int(batch.ends[-1])
                task = Task(self._begin + position, range(position, stop), batch.ends)
                yield Item(task, [_to_send(block) for block in batch.blocks])
                position = stop
            return
        grown = FIRST_WIDTH
        for block in given:
            begin = 0
            while begin < block.n_columns:
                part = block.part(begin, min(begin + grown, block.n_columns))
                stop = position + part.n_columns
                task = Task(self._begin + position, range(position, stop))
                yield Item(task, [_to_send(part)])
                begin, position, grown = begin + part.n_columns, stop, 2 * grown

    def _dispatch(self, job: Any, item: Item, n_ahead: int) -> Any:
        item.version, item.is_final = self._version, n_ahead == 0
        known = self._kept_now(), self.selector._budget
        return self.engine.submit(
            judge, job, item.task, *known, item.values, item.is_final
        )

    def _kept_now(self) -> Any:
        """A future of the kept features, submitted again whenever they change."""
        version, future = self._snapshot
        if version != self._version:
            future = self.engine.submit(share, self.selector._packed())
            self._snapshot = self._version, future
        return future

    def _commit_of(self, job: Any, item: Item, report: Report) -> Callable[[], object]:
        """What commits a block, once all of its decisions are certain."""
        if report.error is not None:
            raise report.error
        verdict, added = report.verdict, report.added
        assert verdict is not None
        budget = deepcopy(self.selector._budget)  # until the block is committed
        passes = guessed = verdict.fate != Fate.IRRELEVANT
        if report.p_values is not None:
            passes = budget.judge(report.p_values)
        if not item.is_final or (passes != guessed).any():
            verdict, added = self._validate(job, item, verdict, passes)
        return partial(self._commit, item, report, verdict, added, budget)

    def _validate(
        self, job: Any, item: Item, verdict: Verdict, passes: BoolArray
    ) -> tuple[Verdict, Arrays | None]:
        """Accept what is certain, and have the rest walked again."""
        first, ends = item.task.first, item.task.ends
        live, _ = arrivals_and_scores(self.selector._state)
        uncertain, certain = find_certain(verdict, first, live, ends, passes)
        # A feature that has met its witness may still displace others.
        is_library = getattr(self.selector, "reading", "relevant") == "library"
        if is_library and (uncertain.size or item.version != self._version):
            uncertain, certain = np.flatnonzero(passes), np.empty(0, np.int64)
        verdict = _changed(verdict, ~passes, Fate.IRRELEVANT, -1, np.nan)
        if not uncertain.size:
            nothing = np.empty(0, np.int64)
            return replace(verdict, gone=nothing, gone_by=nothing, gone_fate=None), None
        assert verdict.witness is not None
        group = certain if ends is None else np.searchsorted(ends, certain, "right")
        appeal = Appeal(uncertain, certain, verdict.witness[certain], group)
        given = job, item.task, self._kept_now(), item.values, appeal
        future = self.engine.submit(settle, *given, is_urgent=True)
        found, walked, added = self.engine.result(future)
        gone = {n: getattr(found, n) for n in ("gone", "gone_by", "gone_fate")}
        changed = _changed(verdict, walked, found.fate, found.witness, found.p_value)
        return replace(changed, **gone), added

    def _commit(
        self,
        item: Item,
        report: Report,
        verdict: Verdict,
        added: Arrays | None,
        budget: Budget,
    ) -> None:
        """Record a block, and change what is kept."""
        selector, task = self.selector, item.task
        batch: Any = Span(task.first, verdict.fate.size, report.names)
        if self.layout is not None:
            position = task.first - self._begin
            labels, _, _ = self.layout.runs(batch._replace(start=position))
            assert task.ends is not None
            batch = Batch([batch], labels, task.ends)
        keep = partial(self._keep, added, budget, verdict)
        selector._take(batch, keep, selector._stream)
        if report.left_out:
            selector._stream.measure.left_out.names.update(report.left_out)
        self.n_blocks += 1

    def _keep(self, added: Arrays | None, budget: Budget, verdict: Verdict) -> Verdict:
        """Remove what has left the kept features, and add what has come."""
        selector = self.selector
        selector._budget = budget
        new = selector._unpack(added) if added else None
        if new is None and not verdict.gone.size:
            return verdict
        kept = selector._state
        if kept is None:
            selector._state = new
        else:
            stays = ~np.isin(arrivals_and_scores(kept)[0], verdict.gone)
            sets = [only(kept, stays), *([] if new is None else [new])]
            selector._state = rebuild(sets, kept.columns, selector._tuning)
        self.n_columns += 0 if new is None else int(new.size[0])
        self._version += 1
        return verdict


def _changed(
    verdict: Verdict, which: Any, fate: Any, witness: Any, p_value: Any
) -> Verdict:
    """A verdict in which some of the features have other fates."""
    new = {"fate": fate, "witness": witness, "p_value": p_value}
    changed = {
        n: getattr(verdict, n).copy() for n in new if getattr(verdict, n) is not None
    }
    for name, array in changed.items():
        array[which] = new[name]
    return replace(verdict, **changed)


def find_certain(
    verdict: Verdict,
    first: int,
    live: IntArray,
    ends: IntArray | None,
    passes: BoolArray,
) -> tuple[IntArray, IntArray]:
    """Which features of a block must be walked again, and which are redundant for sure.

    ``verdict`` was reached from an older snapshot, ``live`` is kept now, and ``first``
    the arrival of the first feature; in groups, these end at ``ends``. ``passes`` says
    which features are relevant. What is neither is irrelevant, or redundant within its
    group.
    """
    assert verdict.witness is not None
    redundant = np.flatnonzero(verdict.fate == Fate.REDUNDANT)
    witness = verdict.witness[redundant]
    is_lost = ~np.isin(witness, live)
    has_left = np.isin(verdict.gone, live)  # for the worker, but not in truth
    if has_left.any():
        gone, by = verdict.gone[has_left], verdict.gone_by[has_left]
        earliest = np.append(np.minimum.accumulate(gone), _NEVER)
        n_before = np.searchsorted(by, first + redundant)
        is_lost |= earliest[n_before - 1] < witness  # it was not compared with these
        is_lost |= np.isin(first + redundant, by)  # it displaces some
    is_misjudged = passes != (verdict.fate != Fate.IRRELEVANT)
    uncertain = (verdict.fate == Fate.KEPT) | is_misjudged
    uncertain[redundant] |= is_lost
    is_within = np.zeros(uncertain.size, bool)
    if ends is not None:
        group = np.searchsorted(ends, np.arange(uncertain.size), "right")
        begins = np.append(0, ends)[group]
        is_within = verdict.witness >= first + begins
        is_within &= ~np.isin(group, group[is_misjudged])
        uncertain = np.isin(group, group[uncertain & ~is_within]) & ~is_within
    uncertain &= passes
    is_certain = (verdict.fate == Fate.REDUNDANT) & passes & ~uncertain & ~is_within
    return np.flatnonzero(uncertain), np.flatnonzero(is_certain)
