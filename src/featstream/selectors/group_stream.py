"""The state of a stream of groups, and how a batch of groups changes it."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from featstream.kernels.group_scan import (
    Arriving,
    GroupOutcome,
    Workspace,
    as_newcomers,
    scan_groups,
)
from featstream.kernels.pools import (
    fit_index,
    make_room,
    start_kept,
    start_kept_for,
)
from featstream.kernels.rule import Rule
from featstream.kernels.scan import Kept, Newcomers
from featstream.parallel import prepared_ahead
from featstream.protocols import Block, Decision, Fate, FloatArray, IntArray
from featstream.selectors.stream import Stream, in_storage
from featstream.selectors.trace import GroupTrace
from featstream.sources.grouping import Batch

__all__ = ["GroupStream", "ScoredBatch", "decisions", "displacements", "score_ahead"]


@dataclass(frozen=True, slots=True)
class Piece:
    """A block in the storage of its stream, with the scores of its columns."""

    block: Block
    encoded: Any
    scores: FloatArray
    relevant: IntArray


@dataclass(frozen=True, slots=True)
class ScoredBatch:
    """Whole groups, encoded and scored."""

    pieces: list[Piece]
    labels: list[Hashable]
    ends: IntArray

    @property
    def scores(self) -> FloatArray:
        """Relevance of every feature."""
        return np.concatenate([piece.scores for piece in self.pieces])


def score_ahead(
    batches: Iterator[Batch], stream: Stream, n_threads: int
) -> Iterator[ScoredBatch]:
    """Encode and score groups in order; with several threads, some in advance."""
    placed = _place(batches, stream)
    return prepared_ahead(placed, lambda batch: _score(batch, stream), n_threads)


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


def _score(batch: Batch, stream: Stream) -> ScoredBatch:
    measure = stream.measure
    assert measure is not None
    pieces = []
    for block in batch.blocks:
        for part in in_storage(block, is_sparse=bool(stream.is_sparse)):
            encoded = measure.encode(part)
            scores = measure.relevance(encoded)
            relevant = np.flatnonzero(measure.is_relevant(scores))
            pieces.append(Piece(part, encoded, scores, relevant))
    return ScoredBatch(pieces, list(batch.labels), batch.ends)


class GroupStream:
    """The kept features of a stream of groups, and the history of the groups.

    Parameters
    ----------
    groups : GroupTrace
        Where the fates of groups are recorded.
    rule : Rule
        When one of two features makes the other redundant.
    is_frozen : bool
        Whether removed features still act while groups are compared.
    """

    def __init__(self, groups: GroupTrace, rule: Rule, *, is_frozen: bool) -> None:
        self.groups = groups
        self.kept: Kept | None = None
        self._rule = rule
        self._is_frozen = is_frozen

    def arrivals_and_scores(self) -> tuple[IntArray, FloatArray]:
        """Of the kept features, in order of arrival."""
        if self.kept is None:
            return np.empty(0, np.int64), np.empty(0)
        live = self.kept.live[: self.kept.size[0]]
        return self.kept.arrival[live], self.kept.score[live]

    def decide(
        self, batch: ScoredBatch, stream: Stream
    ) -> tuple[GroupOutcome, list[Hashable]]:
        """Decide about whole groups; those that cannot be used change nothing.

        Returns what became of their features, and earlier groups that left.
        """
        self.groups.check_new(batch.labels)
        named = [p.block for p in batch.pieces if p.block.names is not None]
        names = [name for block in named for name in block.names or ()]
        stream.names.refuse_taken(stream.n_seen, names)
        outcome = self._scan(batch, stream)
        stream.trace.extend(outcome.fate, batch.scores, outcome.witness)
        self._record(batch, outcome)
        for block in named:
            stream.names.add(block.start, block.names or ())
        gone, by = displacements(outcome)
        fates = np.full(gone.size, Fate.DISPLACED, np.uint8)
        stream.trace.mark(gone, fates, by)
        return outcome, self.groups.lose(gone)

    def _scan(self, batch: ScoredBatch, stream: Stream) -> GroupOutcome:
        """Walk the relevant features of some groups through the kernel."""
        measure, first = stream.measure, stream.n_seen
        assert measure is not None
        kept_arrivals, _ = self.arrivals_and_scores()
        kept_ends = np.unique(self.groups.ends[self.groups.of(kept_arrivals)])
        ends = first + batch.ends
        n_relevant = sum(piece.relevant.size for piece in batch.pieces)
        n_events = kept_arrivals.size + n_relevant
        outcome = _new_outcome(first, int(batch.ends[-1]), n_events)
        pieces = [piece for piece in batch.pieces if piece.relevant.size]
        if not pieces:
            return outcome
        chosen = [measure.columns(p.encoded, p.relevant) for p in pieces]
        arrivals = [piece.block.start + piece.relevant for piece in pieces]
        group = np.searchsorted(ends, np.concatenate(arrivals), "right")
        left = start_kept_for(chosen, np.flatnonzero(np.diff(group, prepend=-1)))
        group = np.append(group, -1)
        if self.kept is None:
            self.kept = start_kept(chosen[0][0])
        how = np.concatenate([kept_ends, ends]), self._rule, self._is_frozen
        begin = 0
        with measure.scratch(is_sparse=bool(stream.is_sparse)) as scratch:
            for piece, arrival, (columns, column) in zip(
                pieces, arrivals, chosen, strict=True
            ):
                scores = piece.scores[piece.relevant]
                no_ceiling = np.empty((scores.size, 0), np.float32)
                newcomers = Newcomers(columns, column, scores, arrival, no_ceiling, 0.0)
                own_group = group[begin : begin + scores.size + 1]
                begin += scores.size
                self._scan_piece(newcomers, own_group, left, (*how, scratch), outcome)
        return outcome

    def _scan_piece(
        self,
        newcomers: Newcomers,
        group: IntArray,
        left: Kept,
        how: tuple[Any, ...],
        outcome: GroupOutcome,
    ) -> None:
        assert self.kept is not None
        if not self._is_frozen:
            self.kept = fit_index(self.kept)
        done = 0
        while True:
            arriving = Arriving(left, as_newcomers(left))
            sets, work = (arriving, self.kept), _workspace(left, self.kept)
            done = scan_groups(newcomers, group, done, *sets, *how, work, outcome)
            if done == newcomers.column.size:
                break
            self._make_room(left, outcome)

    def _make_room(self, left: Kept, outcome: GroupOutcome) -> None:
        """Let the kept features grow by the next one of the arriving group."""
        assert self.kept is not None
        slot, may_index = left.live[outcome.n_added[0]], not self._is_frozen
        self.kept = make_room(self.kept, left.columns, slot, may_index=may_index)

    def _record(self, batch: ScoredBatch, outcome: GroupOutcome) -> None:
        """Note what became of the groups of a batch."""
        begins = np.concatenate([[0], batch.ends[:-1]])
        is_kept = outcome.fate == Fate.KEPT
        is_relevant = outcome.fate != Fate.IRRELEVANT
        n_kept = np.add.reduceat(is_kept, begins, dtype=np.int64)
        n_relevant = np.add.reduceat(is_relevant, begins, dtype=np.int64)
        fates = np.where(n_kept > 0, Fate.KEPT, Fate.REDUNDANT)
        fates[n_relevant == 0] = Fate.IRRELEVANT
        self.groups.extend(batch.labels, batch.ends - begins, fates, n_kept)


def displacements(outcome: GroupOutcome) -> tuple[IntArray, IntArray]:
    """Arrivals that left earlier groups, and the arrivals that caused it."""
    n_events = int(outcome.n_events[0])
    return outcome.gone[:n_events], outcome.gone_by[:n_events]


def decisions(
    batch: ScoredBatch, outcome: GroupOutcome, stream: Stream
) -> tuple[Decision, ...]:
    """What was decided about each feature of a group.

    Their names are those of the blocks: the stream may have forgotten them.
    """
    own_names = [
        piece.block.name(i) for piece in batch.pieces for i in range(piece.scores.size)
    ]
    displaced: dict[int, list[str]] = {}
    for gone, by in zip(*displacements(outcome), strict=True):
        displaced.setdefault(int(by), []).append(stream.names[int(gone)])
    decided = []
    for i, (name, score) in enumerate(zip(own_names, batch.scores, strict=True)):
        arrival, witness = outcome.first + i, int(outcome.witness[i])
        witness_name = None
        if witness >= outcome.first:
            witness_name = own_names[witness - outcome.first]
        elif witness >= 0:
            witness_name = stream.names[witness]
        decided.append(
            Decision(
                name=name,
                arrival=arrival,
                fate=Fate(int(outcome.fate[i])),
                relevance=float(score),
                witness=witness_name,
                overlap=None if witness < 0 else float(outcome.overlap[i]),
                displaced=tuple(displaced.get(arrival, ())),
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
