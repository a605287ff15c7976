"""What every selector of a stream of features has in common."""

from __future__ import annotations

import dataclasses
import logging
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from os import PathLike
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import validate_data

from featstream.engines import blas_threads, count_threads, prepared_ahead
from featstream.errors import DataError, NotStartedError, printable
from featstream.measures import choose_measure, resolve_measure
from featstream.measures.target import as_labels
from featstream.progress import Observer, Progress, observed
from featstream.protocols import (
    Block,
    BoolArray,
    BoundMeasure,
    Decision,
    Fate,
    FloatArray,
    IntArray,
    Measure,
    feature_name,
)
from featstream.result import SelectionResult
from featstream.selectors.stream import Stream, in_storage
from featstream.sources import (
    IteratorSource,
    as_source,
    check_has_features,
    open_dataset,
)
from featstream.trace import Trace

__all__ = ["StreamSelector"]

_LOG = logging.getLogger("featstream")

_LOOK_AHEAD = 256
"""How many features measure="auto" looks at: blocks must not matter."""


class StreamSelector(SelectorMixin, BaseEstimator):
    """Base of selectors to which features arrive one after the other.

    A subclass decides about a block of encoded columns in `_decide`; this class
    takes data from any source, keeps time, names and trace, and is a
    scikit-learn selector.
    """

    measure: str | Measure
    trace: Any

    @abstractmethod
    def _decide(self, block: Block, stream: Stream) -> None:
        """Decide about every column of a block and record it in the stream."""

    def _prepare(self, block: Block, stream: Stream) -> Callable[[], None]:
        """Do what can be done for a block ahead of its turn, perhaps in a thread.

        Returns what decides about it when its turn has come.
        """
        return partial(self._decide, block, stream)

    @abstractmethod
    def _begin(self, stream: Stream) -> None:
        """Check the parameters and set up the state of an empty stream."""

    @abstractmethod
    def _kept(self) -> tuple[IntArray, FloatArray]:
        """Arrivals and scores of the kept features, in order of arrival."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Select from a whole data set: ``start(y).consume(X)``.

        Parameters
        ----------
        X : array, sparse matrix, data frame, path or Source
            Samples by features.
        y : array of shape (n_samples,)
            The class of each sample; by default what the file of ``X`` holds.
        """
        if isinstance(X, str | PathLike):
            dataset = open_dataset(X)
            return self.fit(dataset.source, dataset.y if y is None else y)
        source = as_source(X)
        is_stored = source is X
        if not is_stored:
            validate_data(self, X, skip_check_array=True)
        check_has_features(source)
        self.start(y).consume(source)
        self.n_features_in_ = self._stream.n_seen
        if is_stored:
            self.__dict__.pop("feature_names_in_", None)
            if len(self._stream.names) == self.n_features_in_:
                names = self._stream.names.listed()
                self.feature_names_in_ = np.array(names, dtype=object)
        return self

    def start(self, y: Any) -> Self:
        """Begin a stream of features for the target ``y``, which is all there is yet.

        Parameters
        ----------
        y : array of shape (n_samples,)
            The class of each sample, in the order of every feature's values.
        """
        stream = Stream(y, Trace(self.trace), self._bind(y))
        if stream.measure is None:
            as_labels(y)  # a bad target is an error now, not at the first feature
        self._stream = stream
        self._begin(stream)
        return self

    def _bind(self, y: Any) -> BoundMeasure | None:
        """The measure, bound to the target; None if the first features will tell."""
        measure = resolve_measure(self.measure)
        return None if measure is None else measure.bind(y)

    def update(self, values: Any, name: str | None = None) -> Decision:
        """Decide about one feature.

        Parameters
        ----------
        values : array of shape (n_samples,)
            One value per sample; a sparse column will do.
        name : str, optional
            The feature's name; by default made from its arrival.
        """
        stream = self._started()
        shown = feature_name(stream.n_seen) if name is None else name
        (block,) = IteratorSource([(shown, values)]).blocks()
        if name is None:
            block = dataclasses.replace(block, names=None)
        if stream.measure is None:
            self._choose_measure([block], stream)
        began = time.perf_counter()
        for piece in _pieces(iter([block]), stream):
            self._take(piece, self._prepare(piece, stream), stream)
        stream.seconds += time.perf_counter() - began
        return self._last_decision(stream)

    def consume(self, source: Any, *, progress: bool | Observer = False) -> Self:
        """Decide about every feature of a source.

        Parameters
        ----------
        source : anything that `as_source` takes
            Features in order of arrival; further calls continue the stream.
        progress : bool or callable, default=False
            Show a live line, or call with a `Progress` after each block.
        """
        stream = self._started()
        source = as_source(source)
        blocks = source.blocks()
        if stream.measure is None:
            blocks = self._look_ahead(blocks, stream)
        n_before, n_new = stream.n_seen, source.n_features
        n_features = None if n_new is None else n_before + n_new
        n_threads = count_threads(getattr(self, "n_jobs", None))
        pieces = _pieces(blocks, stream)
        began = time.perf_counter()
        with (
            observed(progress, type(self).__name__) as observe,
            blas_threads(n_threads),
        ):
            for piece, decide in prepared_ahead(
                pieces, lambda piece: (piece, self._prepare(piece, stream)), n_threads
            ):
                self._take(piece, decide, stream)
                stream.seconds += time.perf_counter() - began
                if observe is not None:
                    n_kept = self._kept()[0].size
                    observe(Progress(stream.n_seen, n_features, n_kept))
                began = time.perf_counter()
        return self

    def _look_ahead(self, blocks: Iterator[Block], stream: Stream) -> Iterator[Block]:
        """Choose the measure by the first features, and give them all back."""
        first: list[Block] = []
        for block in blocks:
            first.append(block)
            if sum(b.n_columns for b in first) >= _LOOK_AHEAD:
                break
        if first:
            self._choose_measure(first, stream)
        return chain(first, blocks)

    def _choose_measure(self, blocks: list[Block], stream: Stream) -> None:
        measure, reason = self._propose(blocks)
        stream.measure = measure.bind(stream.y)
        _LOG.info("'auto' took %r: %s", stream.measure.name, reason)

    def _propose(self, blocks: list[Block]) -> tuple[Any, str]:
        """A measure for a stream that begins with these blocks, and why."""
        return choose_measure(blocks, _LOOK_AHEAD)

    def _take(self, piece: Block, decide: Callable[[], None], stream: Stream) -> None:
        """Decide about the features of a block, and keep their names."""
        if piece.names is not None:
            stream.names.check(piece.start, piece.names)
        decide()
        if piece.names is not None:
            stream.names.add(piece.start, piece.names)
            if stream.trace.level != "full":
                self._forget_names(stream, piece)

    def _forget_names(self, stream: Stream, piece: Block) -> None:
        """Names are kept for the features that the trace knows, and no more."""
        kept = set(self._kept()[0].tolist())
        for arrival in range(piece.start, piece.start + piece.n_columns):
            if arrival not in kept and not stream.trace.knows(arrival):
                stream.names.forget(arrival)

    def _last_decision(self, stream: Stream) -> Decision:
        last, arrival = stream.last, stream.n_seen - 1
        assert last is not None
        return Decision(
            name=stream.names[arrival],
            arrival=arrival,
            fate=last.fate,
            relevance=last.relevance,
            witness=None if last.witness is None else stream.names[last.witness],
            overlap=last.overlap,
            displaced=tuple(stream.names[gone] for gone in last.displaced),
        )

    def explain(self, feature: str | int) -> str:
        """Why a feature was kept or dropped, in a sentence.

        Parameters
        ----------
        feature : str or int
            Its name, or its arrival.
        """
        stream = self._started()
        arrival = self._find(feature, stream)
        name, trace = printable(stream.names[arrival]), stream.trace
        kept, scores = self._kept()
        if arrival in kept:
            score = scores[np.flatnonzero(kept == arrival)[0]]
            return f"{name} is kept: its relevance is {score:.6g}."
        fate, witness = trace.fate(arrival), trace.witness(arrival)
        relevance = f"its relevance {trace.relevance(arrival):.6g}"
        if fate is Fate.IRRELEVANT:
            return f"{name} is irrelevant: {relevance} does not pass the threshold."
        assert witness is not None
        other = printable(stream.names[witness])
        return self._reason(arrival, fate, name, relevance, other)

    def _reason(
        self, arrival: int, fate: Fate, name: str, relevance: str, other: str
    ) -> str:
        """Why a relevant feature was dropped; ``other`` is its witness."""
        trace = self._started().trace
        if fate is Fate.REDUNDANT:
            return (
                f"{name} is redundant: {relevance} is below that of {other}, with "
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

    def _find(self, feature: str | int, stream: Stream) -> int:
        if isinstance(feature, str):
            arrival = stream.names.find(feature)
        else:
            arrival = int(feature)
        if arrival is None or not 0 <= arrival < stream.n_seen:
            raise DataError(
                f"No feature {printable(feature)} among the {stream.n_seen:,} seen."
            )
        if not stream.trace.knows(arrival) and arrival not in self._kept()[0]:
            raise DataError(
                f"Feature {printable(feature)} was dropped, and the trace does not "
                "say why. Use trace='full' to record every feature."
            )
        return arrival

    @property
    def selected_(self) -> IntArray:
        """Arrivals of the kept features, in the order in which they were kept."""
        self._started()
        return self._kept()[0]

    @property
    def scores_(self) -> FloatArray:
        """Relevance of the kept features, in the order of `selected_`."""
        self._started()
        return self._kept()[1]

    @property
    def support_(self) -> BoolArray:
        """Whether each feature seen is kept."""
        support = np.zeros(self._started().n_seen, dtype=bool)
        support[self._kept()[0]] = True
        return support

    @property
    def n_seen_(self) -> int:
        """Number of features seen."""
        return self._started().n_seen

    @property
    def measure_(self) -> str:
        """Name of the measure in use; that is, what ``"auto"`` chose."""
        stream = self._started()
        return "auto" if stream.measure is None else stream.measure.name

    @property
    def result_(self) -> SelectionResult:
        """The selection with its scores and history."""
        stream = self._started()
        kept, scores = self._kept()
        return SelectionResult(
            names=tuple(stream.names[arrival] for arrival in kept.tolist()),
            indices=kept,
            scores=scores,
            n_features=stream.n_seen,
            n_samples=len(stream.y),
            selector=type(self).__name__,
            measure=self.measure_,
            parameters={
                name: value if isinstance(value, int | str | None) else repr(value)
                for name, value in self.get_params(deep=False).items()
            },
            seconds=stream.seconds,
            trace=stream.trace,
        )

    def _started(self) -> Stream:
        if not hasattr(self, "_stream"):
            raise NotStartedError(
                f"This {type(self).__name__} has seen no target. Call start(y) before "
                "update or consume, or fit(X, y)."
            )
        return self._stream

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_stream")

    def _get_support_mask(self) -> BoolArray:
        return self.support_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        return tags


def _pieces(blocks: Iterator[Block], stream: Stream) -> Iterator[Block]:
    """The blocks in the storage of the stream, positioned in it."""
    arrival = stream.n_seen
    for block in blocks:
        if stream.is_sparse is None:
            stream.is_sparse = block.is_sparse
        placed = dataclasses.replace(block, start=arrival)
        yield from in_storage(placed, is_sparse=stream.is_sparse)
        arrival += block.n_columns
