"""The state of a stream of features, and what is decided about its blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from featstream.errors import RunError
from featstream.measures.inputs import Choice
from featstream.protocols import (
    Decision,
    Fate,
    FloatArray,
    IntArray,
    Source,
)
from featstream.selectors.result import Names, Trace
from featstream.sources.grouping import Layout
from featstream.sources.samples import (
    SampleHashes,
    hash_samples,
    index_names,
    is_reordered,
    refuse_other_samples,
)

_FATES = tuple(Fate)

_KEPT = int(Fate.KEPT)  # arrays compare faster with a plain number


_PER_COLUMN = ("fate", "witness", "overlap", "p_value")
"""What a verdict says of each column, besides its score."""


@dataclass(slots=True)
class Verdict:
    """What was decided about the columns of a block.

    Attributes
    ----------
    fate : ndarray of uint8 of shape (n_columns,)
        One `Fate` per column.
    scores : ndarray of float of shape (n_columns,)
        The relevance of each column.
    witness, overlap : ndarray of shape (n_columns,), optional
        The arrival that makes a column redundant, or -1; their overlap.
    gone, gone_by, gone_fate : ndarray, optional
        Arrivals that are no longer kept, the arrivals that displaced them, and
        their fates, by default ``Fate.DISPLACED``.
    recalled, recalled_by, recalled_scores : ndarray, optional
        Arrivals that are kept from now on though they had been dropped, the arrivals
        because of which they are, and their scores.
    p_value : ndarray of shape (n_columns,), optional
        What a test of a redundant column and the class, given its witness, found.
    """

    fate: NDArray[np.uint8]
    scores: FloatArray
    witness: IntArray | None = None
    overlap: FloatArray | None = None
    gone: IntArray = field(default_factory=lambda: np.empty(0, np.int64))
    gone_by: IntArray = field(default_factory=lambda: np.empty(0, np.int64))
    gone_fate: NDArray[np.uint8] | None = None
    recalled: IntArray | None = None
    recalled_by: IntArray | None = None
    recalled_scores: FloatArray | None = None
    p_value: FloatArray | None = None

    def without(self, which: IntArray) -> Verdict:
        """The same, with some of the columns irrelevant."""
        if not which.size:
            return self
        nothing = np.full(which.size, np.nan)
        irrelevant = np.full(which.size, Fate.IRRELEVANT, np.uint8)
        nobody = np.full(which.size, -1)
        other = Verdict(irrelevant, nothing, nobody, nothing, p_value=nothing)
        return self.updated(which, other)

    def updated(self, which: IntArray, other: Verdict) -> Verdict:
        """The same, with what another says about some of the columns."""
        changed = {}
        for name in _PER_COLUMN:
            mine, new = getattr(self, name), getattr(other, name)
            if mine is not None and new is not None:
                changed[name] = mine.copy()
                changed[name][which] = new
        return replace(self, **changed)


def join_verdicts(verdicts: Sequence[Verdict]) -> Verdict:
    """What was decided about the columns of several blocks, in order."""
    if len(verdicts) == 1:
        return verdicts[0]
    fates = [
        np.full(verdict.gone.size, Fate.DISPLACED, np.uint8)
        if verdict.gone_fate is None
        else verdict.gone_fate
        for verdict in verdicts
    ]
    witnesses = [
        np.full(verdict.fate.size, -1) if verdict.witness is None else verdict.witness
        for verdict in verdicts
    ]
    p_values = [verdict.p_value for verdict in verdicts if verdict.p_value is not None]
    return Verdict(
        fate=np.concatenate([verdict.fate for verdict in verdicts]),
        scores=np.concatenate([verdict.scores for verdict in verdicts]),
        witness=np.concatenate(witnesses),
        gone=np.concatenate([verdict.gone for verdict in verdicts]),
        gone_by=np.concatenate([verdict.gone_by for verdict in verdicts]),
        gone_fate=np.concatenate(fates),
        p_value=np.concatenate(p_values) if p_values else None,
    )


@dataclass(slots=True)
class Unfinished:
    """A source in the middle of which `consume` stopped, outside of any run.

    ``offered`` is what the caller gave for it, and ``begin`` the number of
    features seen before it.
    """

    offered: Any
    source: Source
    layout: Layout | None
    begin: int
    is_interrupt: bool = False


@dataclass(slots=True)
class Stream:
    """What is known of a stream, apart from what its selector keeps.

    ``measure`` is the measure, test or model of the selector, bound to the target.
    It is None until the first features show which one fits, and ``choice`` says why
    that was chosen; ``is_sparse`` is None until the first block has come, and then
    decides how all columns are stored. ``samples`` are the names of the samples,
    from the first source that has names. ``kept`` has the scores of the kept
    features by arrival; it is empty unless the stream ``keeps`` them, because the
    selector does not hold them itself.
    """

    y: Any
    trace: Trace
    measure: Any = None
    choice: Choice | None = None
    is_sparse: bool | None = None
    names: Names = field(default_factory=Names)
    keeps: bool = True
    kept: dict[int, float] = field(default_factory=dict)
    samples: SampleHashes | None = None
    seconds: float = 0.0
    peak_memory: int | None = None  # of the process, in bytes
    has_warned_of_chance: bool = False
    index: Any = None  # of the last pandas series that was compared
    unfinished: Unfinished | None = None

    @property
    def n_seen(self) -> int:
        """Number of features decided about."""
        return self.trace.n_seen

    def record(self, start: int, verdict: Verdict) -> None:
        """Record what was decided about the features from an arrival on."""
        self.trace.record(verdict)
        if self.keeps:
            kept = np.flatnonzero(verdict.fate == _KEPT)
            arrivals = (start + kept).tolist()
            self.kept.update(zip(arrivals, verdict.scores[kept].tolist(), strict=True))
            for gone in verdict.gone.tolist():
                self.kept.pop(gone, None)

    def decision(self, verdict: Verdict) -> Decision:
        """The decision about the newest feature, which arrived alone."""
        arrival, fate = self.trace.n_seen - 1, _FATES[verdict.fate[0]]
        witness, overlap, p_value = None, None, None
        displaced: tuple[str, ...] = ()
        recalled: tuple[str, ...] = ()
        if verdict.gone.size:
            gone = sorted(verdict.gone.tolist())
            displaced = tuple(self.names[a] for a in gone if a != arrival)
            fate = Fate.DISPLACED if arrival in gone else fate
        if verdict.recalled is not None:
            recalled = tuple(self.names[a] for a in verdict.recalled.tolist())
        if verdict.witness is not None and verdict.witness[0] >= 0:
            witness = self.names[int(verdict.witness[0])]
            if fate is Fate.REDUNDANT and verdict.overlap is not None:
                overlap = float(verdict.overlap[0])
            if fate is Fate.REDUNDANT and verdict.p_value is not None:
                p_value = float(verdict.p_value[0])
        return Decision(
            name=self.names[arrival],
            arrival=arrival,
            fate=fate,
            relevance=float(verdict.scores[0]),
            witness=witness,
            overlap=overlap,
            displaced=displaced,
            recalled=recalled,
            p_value=p_value,
        )

    def leave_unfinished(self) -> None:
        """Raise if a Ctrl-C left a source in the middle; after an error, forget it."""
        rest = self.unfinished
        if rest is not None and rest.is_interrupt:
            n_features = rest.source.n_features
            total = "" if n_features is None else f" of {n_features:,}"
            raise RunError(
                f"consume() was interrupted after {self.n_seen - rest.begin:,}{total} "
                "features of a source. Give it the same source to continue there, or "
                "call start(y) to begin again."
            )
        self.unfinished = None

    def check_index(self, values: Any) -> None:
        """The same for the values of one feature, if they are a pandas series."""
        if not nw.dependencies.is_pandas_series(values):
            return
        if self.index is None or not values.index.equals(self.index):
            self.check_names(index_names(values), "This feature")
            self.index = values.index

    def check_names(self, names: Sequence[str] | None, what: str) -> None:
        """Raise unless the samples that something has are those of the stream."""
        if names is None:
            return
        if self.samples is not None:
            refuse_other_samples(self.samples, names, what, "the data before it")
            return
        found, index = hash_samples(names), index_names(self.y)
        if index is not None and is_reordered(hash_samples(index), found):
            refuse_other_samples(hash_samples(index), names, what, "y")
        self.samples = found
