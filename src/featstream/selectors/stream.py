"""The state of a stream of features, what is decided about its blocks, and why."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any, Self, TypeAlias

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from featstream.errors import (
    DataError,
    DataTypeError,
    FeatstreamWarning,
    RunError,
    printable,
)
from featstream.measures.inputs import Choice
from featstream.protocols import Decision, Fate, FloatArray, IntArray, Source
from featstream.selectors.result import Names, Trace
from featstream.sources.combined import (
    SampleOrder,
    index_names,
    refuse_other_samples,
    refuse_unlike_samples,
)
from featstream.sources.grouping import Layout
from featstream.sources.values import check_names

_FATES = tuple(Fate)

_KEPT = int(Fate.KEPT)  # arrays compare faster with a plain number


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
    p_value: FloatArray | None = None


Decide: TypeAlias = Callable[[], Verdict]


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
    samples: SampleOrder | None = None
    seconds: float = 0.0
    peak_memory: int | None = None  # of the process, in bytes
    has_warned_of_chance: bool = False
    target_samples: SampleOrder | None = None  # once they have been looked for
    has_warned_of_names: bool = False
    copies: dict[int, str] = field(default_factory=dict)  # of the target, left out
    has_warned_of_copies: bool = False
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

    def decision(
        self, verdict: Verdict, names: Sequence[str] | None = None, i: int = 0
    ) -> Decision:
        """The decision about one of the newest features, all of a verdict.

        ``names`` are theirs, which the stream may have forgotten.
        """
        first = self.trace.n_seen - verdict.fate.size
        arrival, fate = first + i, _FATES[verdict.fate[i]]
        more: dict[str, Any] = {}
        if verdict.gone.size:
            gone = sorted(verdict.gone[verdict.gone_by == arrival].tolist())
            more["displaced"] = tuple(self.names[a] for a in gone if a != arrival)
            fate = Fate.DISPLACED if arrival in gone else fate
        if verdict.witness is not None and verdict.witness[i] >= 0:
            other = int(verdict.witness[i])
            more["witness"] = self.names[other]
            if names is not None and other >= first:
                more["witness"] = names[other - first]
            if fate is Fate.REDUNDANT and verdict.overlap is not None:
                more["overlap"] = float(verdict.overlap[i])
            if fate is Fate.REDUNDANT and verdict.p_value is not None:
                more["p_value"] = float(verdict.p_value[i])
        name = self.names[arrival] if names is None else names[i]
        return Decision(name, arrival, fate, float(verdict.scores[i]), **more)

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
        """Raise unless a pandas series has the samples of the stream."""
        if not nw.dependencies.is_pandas_series(values):
            return
        if self.index is None or not values.index.equals(self.index):
            names = index_names(values)
            found = None if names is None else SampleOrder(names)
            self.check_samples(found, "This feature")
            self.index = values.index

    def check_samples(self, found: SampleOrder | None, what: str) -> None:
        """Raise unless the samples that something has can be those of the stream."""
        if found is None:
            return
        known = self.samples
        if known is not None:
            refuse_unlike_samples(known, found, what, "the data before it")
        of_target = self.target_samples
        if of_target is None:
            self.target_samples = of_target = SampleOrder(index_names(self.y))
        if len(of_target):
            can_be = refuse_other_samples(of_target, found, what, "y")
            is_trusted = of_target.is_counted or found.is_counted
            if not can_be and not is_trusted and found.column is None:
                self._warn_of_other_names(of_target, found)
        if known is None or (known.is_counted and not found.is_counted):
            self.samples = found

    def _warn_of_other_names(self, of_target: SampleOrder, found: SampleOrder) -> None:
        if self.has_warned_of_names:
            return
        self.has_warned_of_names = True
        warnings.warn(
            f"y and the features name their samples otherwise ({of_target.name(0)!r} "
            f"and {found.name(0)!r} are the first): the order of the rows was trusted.",
            FeatstreamWarning,
            stacklevel=4,
        )


class Explained:
    """A selector of features that says why it kept or dropped each."""

    _stream: Stream

    @abstractmethod
    def _started(self) -> Stream:
        """The stream; an error if there is none yet."""

    @abstractmethod
    def _kept(self) -> tuple[IntArray, FloatArray]:
        """Arrivals and scores of the kept features, in order of arrival."""

    def explain(self, feature: str | int, *, input_features: Any = None) -> str:
        """Why a feature was kept or dropped, in a sentence.

        Parameters
        ----------
        feature : str or int
            Its name, or its position in the source.
        input_features : array of str, optional
            Names for features that came without one, as `get_feature_names_out` of
            the step before gives them.
        """
        if input_features is not None:
            return self._with_names(input_features).explain(feature)
        stream = self._started()
        arrival = self._find(feature, stream)
        name, trace = self._shown(arrival, stream), stream.trace
        kept, scores = self._kept()
        if arrival in kept:
            score = scores[np.flatnonzero(kept == arrival)[0]]
            return f"{name} is kept{self._why_kept(arrival, float(score))}."
        fate, witness = trace.fate(arrival), trace.witness(arrival)
        relevance = f"its relevance {trace.relevance(arrival):.6g}"
        left_out = getattr(stream.measure, "left_out", None)
        if left_out is not None and arrival in left_out.names:
            return (
                f"{name} is irrelevant: it has about one category per row, like an "
                "identifier, and was left out."
            )
        if arrival in stream.copies:
            return (
                f"{name} is irrelevant: it is the target in other words, and was left "
                "out."
            )
        if fate is Fate.IRRELEVANT:
            return f"{name} is irrelevant: {self._why_irrelevant(relevance)}."
        other = "" if witness is None else self._shown(witness, stream)
        return self._reason(arrival, fate, name, relevance, other)

    def _with_names(self, input_features: Any) -> Self:
        """The same selector, its features called by other names."""
        stream = self._started()
        listed = check_names(input_features, stream.trace.n_seen)
        names = Names()
        names.order = stream.names.order
        positions = names.positions(np.arange(stream.trace.n_seen))
        names.add(0, [listed[position] for position in positions.tolist()])
        named = copy(self)
        named._stream = replace(stream, names=names)
        return named

    def _why_kept(self, arrival: int, score: float) -> str:
        return f": its relevance is {score:.6g}"

    def _why_irrelevant(self, relevance: str) -> str:
        return f"{relevance} does not pass the threshold"

    def _reason(
        self, arrival: int, fate: Fate, name: str, relevance: str, other: str
    ) -> str:
        """Why a relevant feature was dropped; ``other`` is its witness."""
        trace = self._started().trace
        if getattr(self, "redundancy", "bound") == "conditional":
            p_value = trace.p_value(arrival)
            found = "" if p_value is None else f": p = {p_value:.2g}"
            if fate is Fate.REDUNDANT:
                return (
                    f"{name} is redundant: no evidence that it adds anything once "
                    f"{other} is known{found}."
                )
            if not trace.is_over_limit(arrival):
                return (
                    f"{name} was displaced by {other}, which is more relevant and "
                    f"beside which there is no evidence that it adds anything; "
                    f"{relevance}."
                )
        if fate is Fate.REDUNDANT:
            drops_ties = getattr(self, "ties", "keep") == "drop"
            how = "not above" if drops_ties else "below"
            return (
                f"{name} is redundant: {relevance} is {how} that of {other}, with "
                "which it overlaps at least as much as with the target."
            )
        if trace.is_over_limit(arrival):
            return (
                f"{name} was displaced: with {other} there were more than "
                f"max_features, and {relevance} was the lowest."
            )
        return (
            f"{name} was displaced by {other}, which is more relevant and overlaps "
            f"with it at least as much as it does with the target; {relevance}."
        )

    def _shown(self, arrival: int, stream: Stream) -> str:
        """What a feature is called in an explanation."""
        return printable(stream.names[arrival])

    def _find(self, feature: str | int, stream: Stream) -> int:
        if isinstance(feature, str):
            arrival = stream.names.find(feature)
        elif isinstance(feature, Integral) and not isinstance(feature, bool):
            arrival = stream.names.arrival(int(feature))
        else:
            raise DataTypeError(
                "A feature is found by its name, a string, or its arrival, an integer. "
                f"Got {printable(feature)}."
            )
        if arrival is None or not 0 <= arrival < stream.trace.n_seen:
            close = stream.names.closest(feature)
            hint = f"Did you mean {printable(close)}?"
            if close is None:
                hint = f"Give its name, or an arrival below {stream.trace.n_seen:,}."
            raise DataError(
                f"No feature {printable(feature)} among the {stream.trace.n_seen:,} "
                f"seen. {hint}"
            )
        if not stream.trace.knows(arrival) and arrival not in self._kept()[0]:
            raise DataError(
                f"Feature {printable(feature)} was dropped, and the trace does not "
                "say why. Use trace='full' to record every feature."
            )
        return arrival
