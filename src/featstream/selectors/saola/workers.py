"""Steps 5 to 8 on the workers of an engine.

A worker reads consecutive features, scores them all, and returns the scores and the
columns of those that may pass, each once. That needs nothing of what is kept. So a task
is a pure function of its features, which runs again if its worker dies; and the
process that started the scan (the driver) takes the columns that pass through the walk
in order of arrival, as it does with those that it has scored itself.

If the threshold is corrected, whether a feature passes depends on those before it. A
worker then returns the p-values, and the columns below the level that no corrected
threshold exceeds; the driver judges them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from featstream.engines import Engine, in_order
from featstream.errors import DataError, FeatstreamError
from featstream.parallel import single_blas
from featstream.protocols import (
    Block,
    IndexedSource,
    IntArray,
    Source,
    Span,
    SparseColumns,
    fingerprint_of,
    read_only,
    reopener_of,
)
from featstream.selectors.base import in_stream
from featstream.selectors.saola.algorithm1 import Scored
from featstream.selectors.saola.kept import copy_columns
from featstream.selectors.stream import Stream
from featstream.sources.grouping import Batch, Layout, batches

_LEAST_WIDTH = 64
"""Features of a task, unless the stream is shorter."""

_PER_WORKER = 8
"""Tasks for each worker, at least: the last ones should end at about the same time."""

_SHARED = (
    "It was opened by a worker. All workers must see the same files at the same path: "
    "use shared storage."
)


class Task(NamedTuple):
    """Consecutive features of a stream, to be read and scored by a worker.

    ``positions`` says where they are in the source. ``blocks`` has their values if the
    worker cannot open the source; ``ends`` is where each group ends, counted from the
    first feature, and ``labels`` what the groups are called if that is known before.
    """

    first: int
    positions: range | IntArray
    blocks: list[Block] | None = None
    ends: IntArray | None = None
    labels: Sequence[Any] | None = None


class ScoredPart(NamedTuple):
    """A scored block as it travels: arrays in place of the columns of newcomers."""

    scored: Scored
    columns: dict[str, NDArray[Any]]
    names: list[str] | None


class Reply(NamedTuple):
    """What a worker found about the features of a task.

    ``left_out`` and ``copies`` are names, by arrival, of identifiers and of copies of
    the target. An error is raised when the turn of the task comes.
    """

    parts: list[ScoredPart]
    left_out: dict[int, str]
    copies: dict[int, str]
    error: FeatstreamError | None = None


class Scoring(NamedTuple):
    """A stream for the features of one task, and what scores a batch of them."""

    stream: Stream
    score: Callable[[Any], list[Scored]]


@dataclass
class Scorer:
    """What every task needs: how to score, and where the features are.

    It is sent to each worker once, which then keeps the source open. ``start`` begins a
    stream there, and returns what makes a `Scoring` for each task. ``reopen`` is None
    if the values come with the tasks.
    """

    start: Callable[[], Callable[[], Scoring]]
    reopen: Callable[[], Source] | None
    fingerprint: str | None
    _source: Source | None = field(default=None, repr=False)
    _started: Callable[[], Scoring] | None = field(default=None, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_source": None, "_started": None}

    @property
    def source(self) -> Source:
        """The source as this worker sees it, which must be the driver's."""
        assert self.reopen is not None, "otherwise the blocks come with the task"
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
        return self._source

    def scoring(self) -> Scoring:
        """How to score the features of one task."""
        if self._started is None:
            with warnings.catch_warnings():  # the driver has warned
                warnings.simplefilter("ignore")
                self._started = self.start()
        return self._started()


def share(value: Any) -> Any:
    """Return what many tasks need, so that it is a task's result itself."""
    return value


def score_task(scorer: Scorer, task: Task) -> Reply:
    """Score the features of a task, in a worker."""
    try:
        with single_blas:
            scoring = scorer.scoring()
            parts = list(_score_parts(scoring, scorer, task))
    except FeatstreamError as error:
        return Reply([], {}, {}, error)
    stream = scoring.stream
    return Reply(parts, _take_left_out(stream.measure, task), stream.copies)


def _score_parts(scoring: Scoring, scorer: Scorer, task: Task) -> Iterator[ScoredPart]:
    stream, score = scoring
    given = _read(scorer, task) if task.blocks is None else iter(task.blocks)
    if task.ends is None:
        for block in in_stream(given, stream, task.first):
            names = None if block.names is None else list(block.names)
            (scored,) = score(block)
            yield _to_send(scored, names)
        return
    own = (_with_own_names(block) for block in given)  # the next one may replace them
    blocks = list(in_stream(own, stream, task.first))
    batch = Batch(blocks, range(task.ends.size), task.ends)
    for block, scored in zip(blocks, score(batch), strict=True):
        yield _to_send(scored, None if block.names is None else list(block.names))


def _read(scorer: Scorer, task: Task) -> Iterator[Block]:
    """Read the features of a task from the source that the worker opens."""
    positions, source = task.positions, scorer.source
    if isinstance(positions, np.ndarray):
        assert isinstance(source, IndexedSource), "checked by lay_out"
        yield from source.blocks_at(positions)
        return
    at = positions.start
    for block in source.blocks(at):
        part = block.part(0, min(block.n_columns, positions.stop - at))
        at += part.n_columns
        yield part
        if at >= positions.stop:
            return
    raise DataError(f"The source ended after {at:,} of {positions.stop:,} features.")


def _to_send(scored: Scored, names: list[str] | None) -> ScoredPart:
    """A scored block with the columns of its newcomers, and no others.

    What all columns of a stream share, such as a table of logarithms, is left out.
    """
    newcomers = scored.newcomers
    if newcomers is None:
        return ScoredPart(scored, {}, names)
    given = newcomers.columns._asdict()
    copied = copy_columns(newcomers.columns, newcomers.column)._asdict()
    own = {name: copied[name] for name in copied if copied[name] is not given[name]}
    light = newcomers._replace(columns=None, column=np.arange(newcomers.column.size))
    return ScoredPart(scored._replace(newcomers=light), own, names)


def _received(part: ScoredPart, like: Any) -> Scored:
    """The scored block again; ``like`` is that of `received`."""
    newcomers = part.scored.newcomers
    if newcomers is None:
        return part.scored
    # Kernels are compiled for arrays that are aligned, and read-only in one way.
    own = {}
    for name, array in part.columns.items():
        if getattr(like, name).flags.writeable:
            own[name] = np.require(array, requirements=["A", "W"])
        else:
            own[name] = read_only(np.require(array, requirements=["A"]))
    columns = like._replace(**own)
    return part.scored._replace(newcomers=newcomers._replace(columns=columns))


def _take_left_out(measure: Any, task: Task) -> dict[int, str]:
    """The identifiers of a task; threads of a worker note theirs in the same place."""
    left_out = getattr(measure, "left_out", None)
    if left_out is None:
        return {}
    names, end = left_out.names, task.first + len(task.positions)
    mine = [arrival for arrival in list(names) if task.first <= arrival < end]
    return {arrival: names.pop(arrival) for arrival in mine}


def replies(
    engine: Engine, scorer: Scorer, tasks: Iterator[Task]
) -> Iterator[tuple[Task, Reply]]:
    """Have tasks done, some at a time; what was found, in their order."""
    shared = engine.submit(share, scorer)
    for task, reply in in_order(
        engine,
        tasks,
        lambda task: engine.submit(score_task, shared, task),
        n_ahead=2 * engine.n_workers,
    ):
        if reply.error is not None:
            raise reply.error
        yield task, reply


def received(
    task: Task, reply: Reply, layout: Layout | None, position: int, like: Any
) -> Iterator[tuple[Any, list[Scored]]]:
    """The batches of a task, without values, and what is known of them now.

    ``position`` is where the task begins in the source. ``like`` are columns that this
    process has encoded: what all columns of a stream share is taken from them.
    """
    scored = [_received(part, like) for part in reply.parts]
    spans: list[Any] = [  # blocks without their values
        Span(part.scored.start, part.scored.scores.size, part.names)
        for part in reply.parts
    ]
    if task.ends is None:
        yield from ((span, [one]) for span, one in zip(spans, scored, strict=True))
        return
    labels = task.labels
    if labels is None:
        assert layout is not None
        names = [name for span in spans for name in span.names or ()]
        labels, _, _ = layout.runs(Span(position, len(task.positions), names or None))
    yield Batch(spans, labels, task.ends), scored


def tasks_for(
    source: Source,
    first: Block,
    blocks: Iterator[Block],
    layout: Layout | None,
    position: int,
    begin: int,
    n_workers: int,
) -> Iterator[Task]:
    """Tasks for the features of a source from a position on, the first of ``blocks``.

    ``begin`` is the arrival of the first feature of the source. Of a source that
    workers can open, ``blocks`` are not read; ``first`` is the first of them.
    """
    n_features = source.n_features
    if reopener_of(source) is None or n_features is None:
        return _carriers(begin, position, chain([first], blocks), layout)
    most = max(_LEAST_WIDTH, n_features // (_PER_WORKER * n_workers))
    width = min(first.n_columns, most)
    return _places(begin, position, n_features, width, layout)


def _places(
    begin: int,
    position: int,
    n_features: int,
    width: int,
    layout: Layout | None,
) -> Iterator[Task]:
    """Tasks that say where features are: they end where blocks do, and groups."""
    while position < n_features:
        stop = min((position // width + 1) * width, n_features)
        positions: range | IntArray = range(position, stop)
        ends = None
        if layout is not None:
            stop = layout.end_near(position, stop)
            positions = range(position, stop)
            _, ends, _ = layout.runs(Span(position, stop - position))
            if layout.order is not None:
                positions = layout.order[position:stop]
        yield Task(begin + position, positions, ends=ends)
        position = stop


def _carriers(
    begin: int, position: int, blocks: Iterator[Block], layout: Layout | None
) -> Iterator[Task]:
    """Tasks with the values, for sources that only this process can read."""
    if layout is None:
        for block in blocks:
            stop = position + block.n_columns
            yield Task(begin + position, range(position, stop), [_alone(block)])
            position = stop
        return
    for batch in batches(blocks, layout, position):
        stop = position + int(batch.ends[-1])
        own = [_alone(block) for block in batch.blocks]
        places = range(position, stop)
        yield Task(begin + position, places, own, batch.ends, batch.labels)
        position = stop


def _alone(block: Block) -> Block:
    """The block without the entries of other columns, of which it may be a view."""
    columns = block.columns
    if isinstance(columns, SparseColumns):
        columns = columns.alone()
    return replace(_with_own_names(block), columns=columns)


def _with_own_names(block: Block) -> Block:
    """The block with names that stay when the next one is read."""
    return block if block.names is None else replace(block, names=list(block.names))
