"""What every online selector has in common."""

from __future__ import annotations

import logging
import warnings
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import replace
from functools import partial
from itertools import chain
from numbers import Integral
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from narwhals.dependencies import is_pandas_dataframe
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import validate_data

from featstream.errors import (
    DataError,
    DataTypeError,
    FeatstreamWarning,
    NotStartedError,
    printable,
)
from featstream.jit import compile_clock
from featstream.measures.resolve import (
    MEASURES,
    Choice,
    propose_measure,
    resolve_measure,
)
from featstream.measures.target import as_labels, warn_of_many_classes
from featstream.parallel import single_blas
from featstream.progress import announce
from featstream.protocols import (
    Block,
    BoolArray,
    BoundMeasure,
    Fate,
    FloatArray,
    IntArray,
    Measure,
)
from featstream.runs.folder import Saved
from featstream.runs.saving import Savable
from featstream.selectors.result import SelectionResult
from featstream.selectors.state import arrays_of, facts_of, restore_state
from featstream.selectors.stream import Stream
from featstream.selectors.trace import Names, Trace
from featstream.sources import (
    as_source,
    check_has_features,
    open_dataset,
    open_features,
)
from featstream.sources.values import check_names

__all__ = ["OnlineSelector"]

_LOG = logging.getLogger("featstream")

announce_compilation = partial(
    announce,
    "Compiling kernels for the first use with data of this kind. This takes some "
    "seconds, once: they are kept for later.",
)
compile_clock.on_first = announce_compilation

_LOOK_AHEAD = 256
"""How many features measure="auto" looks at: blocks must not matter."""


class OnlineSelector(Savable, SelectorMixin, BaseEstimator):
    """Base of selectors that decide about features as they arrive.

    It holds the state of a stream, says what became of each feature, and is a
    scikit-learn selector. A subclass takes features from a source in `consume`.
    """

    measure: str | Measure
    trace: Any
    _scores_are_relevances: ClassVar[bool] = True
    _numeric_target: ClassVar[str] = "FisherZ(target='numeric')"
    """How a quantity is given as the target; empty if it cannot be."""

    @abstractmethod
    def _begin(self, stream: Stream) -> None:
        """Check the parameters and set up the state of an empty stream."""

    @abstractmethod
    def _kept(self) -> tuple[IntArray, FloatArray]:
        """Arrivals and scores of the kept features, in order of arrival."""

    @abstractmethod
    def consume(self, source: Any) -> Self:
        """Decide about every feature of a source."""

    @abstractmethod
    def _state_arrays(self) -> dict[str, NDArray[Any]]:
        """What `_restore` needs to go on to the bit: plain arrays by name.

        Of numbers or booleans, with one or two axes. Target, names, trace and
        measure are saved by others.
        """

    @abstractmethod
    def _restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take over what `_state_arrays` gave, after `_begin`.

        The stream has its target, names, trace and measure again. The arrays may
        come from anyone: `RunError` for what cannot be right.
        """

    def _measure_named(self, name: str, **options: Any) -> Any:
        """The measure that ``"auto"`` chose, by its name."""
        return MEASURES[name](**options)

    def _facts(self) -> dict[str, Any]:
        return facts_of(self)

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return arrays_of(self)

    def _take_over(self, saved: Saved) -> None:
        restore_state(self, saved)

    def _fit(self, X: Any, y: Any, **options: Any) -> Self:
        """Select from a whole data set; the options are those of `consume`."""
        if isinstance(X, str | PathLike):
            if y is not None:
                return self._fit(open_features(X).source, y, **options)
            dataset = open_dataset(X)
            return self._fit(dataset.source, dataset.y, **options)
        source = as_source(X)
        is_stored = source is X
        if not is_stored:
            validate_data(self, X, skip_check_array=True)
        check_has_features(source)
        self.start(y).consume(source, **options)
        if not self._stream.n_seen:  # an iterator, of which it could not be known
            raise DataError(
                f"Found array with 0 feature(s) (shape=({len(self._stream.y)}, 0)) "
                "while a minimum of 1 is required."
            )
        self.n_features_in_ = self._stream.n_seen
        if is_stored:
            self.__dict__.pop("feature_names_in_", None)
        # Of pandas, scikit-learn has taken the names, or has left them on purpose.
        is_named = hasattr(self, "feature_names_in_") or is_pandas_dataframe(X)
        if not is_named and len(self._stream.names) == self.n_features_in_:
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
        with single_blas:  # a model of the target may be fitted
            stream = Stream(y, Trace(self.trace), self._bind(y))
        if not self._takes_numeric_target():
            # A bad target is an error now, not at the first feature.
            warn_of_many_classes(as_labels(y), self._numeric_target)
        self._stream = stream
        self._run = None
        self._begin(stream)
        return self

    def _takes_numeric_target(self) -> bool:
        """Whether the target is a quantity, and not a class."""
        owners = (self, getattr(self, "measure", None), getattr(self, "test", None))
        return any(getattr(owner, "target", None) == "numeric" for owner in owners)

    def _bind(self, y: Any) -> BoundMeasure | None:
        """The measure, bound to the target; None if the first features will tell."""
        measure = resolve_measure(self.measure)
        return None if measure is None else measure.bind(y)

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
        choice = self._propose(blocks)
        stream.measure = self._measure_named(choice.name, **choice.options).bind(
            stream.y
        )
        stream.choice = choice
        _LOG.info("'auto' took %r: %s", choice.name, choice.reason)
        if choice.is_guess:
            warnings.warn(
                f"'auto' took {choice.name!r}: {choice.reason}. Name the measure to "
                "choose otherwise.",
                FeatstreamWarning,
                stacklevel=2,
            )

    def _propose(self, blocks: list[Block]) -> Choice:
        """A measure for a stream that begins with these blocks, and why."""
        return propose_measure(blocks, _LOOK_AHEAD)

    def _forget_names(self, stream: Stream, piece: Block) -> None:
        """Names are kept for the features that the trace knows, and no more."""
        kept = set(self._kept()[0].tolist())
        for arrival in range(piece.start, piece.start + piece.n_columns):
            if arrival not in kept and not stream.trace.knows(arrival):
                stream.names.forget(arrival)

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
            return f"{name} is kept: its relevance is {score:.6g}."
        fate, witness = trace.fate(arrival), trace.witness(arrival)
        relevance = f"its relevance {trace.relevance(arrival):.6g}"
        left_out = getattr(stream.measure, "left_out", None)
        if left_out is not None and arrival in left_out.names:
            return (
                f"{name} is irrelevant: it has about one category per row, like an "
                "identifier, and was left out."
            )
        if fate is Fate.IRRELEVANT:
            return f"{name} is irrelevant: {self._why_irrelevant(relevance)}."
        assert witness is not None
        other = self._shown(witness, stream)
        return self._reason(arrival, fate, name, relevance, other)

    def _with_names(self, input_features: Any) -> Self:
        """The same selector, its features called by other names."""
        stream = self._started()
        listed = check_names(input_features, stream.n_seen)
        names = Names()
        names.order = stream.names.order
        positions = names.positions(np.arange(stream.n_seen))
        names.add(0, [listed[position] for position in positions.tolist()])
        named = copy(self)
        named._stream = replace(stream, names=names)
        return named

    def _why_irrelevant(self, relevance: str) -> str:
        return f"{relevance} does not pass the threshold"

    def _reason(
        self, arrival: int, fate: Fate, name: str, relevance: str, other: str
    ) -> str:
        """Why a relevant feature was dropped; ``other`` is its witness."""
        trace = self._started().trace
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
        if arrival is None or not 0 <= arrival < stream.n_seen:
            close = stream.names.closest(feature)
            hint = f"Did you mean {printable(close)}?"
            if close is None:
                hint = f"Give its name, or an arrival below {stream.n_seen:,}."
            raise DataError(
                f"No feature {printable(feature)} among the {stream.n_seen:,} seen. "
                + hint
            )
        if not stream.trace.knows(arrival) and arrival not in self._kept()[0]:
            raise DataError(
                f"Feature {printable(feature)} was dropped, and the trace does not "
                "say why. Use trace='full' to record every feature."
            )
        return arrival

    @property
    def selected_(self) -> IntArray:
        """Positions of the kept features, in the order in which they were kept."""
        return self._started().names.positions(self._kept()[0])

    @property
    def scores_(self) -> FloatArray:
        """Relevance of the kept features, in the order of `selected_`."""
        self._started()
        return self._kept()[1]

    @property
    def support_(self) -> BoolArray:
        """Whether each feature seen is kept."""
        stream = self._started()
        n_positions = max(stream.n_seen, stream.names.order.size)
        support = np.zeros(n_positions, dtype=bool)
        support[self.selected_] = True
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
    def measure_reason_(self) -> str | None:
        """Why ``"auto"`` chose `measure_`; None if the measure was given."""
        choice = self._started().choice
        return None if choice is None else choice.reason

    @property
    def result_(self) -> SelectionResult:
        """The selection with its scores and history."""
        return SelectionResult(**self._result_fields())

    def _result_fields(self) -> dict[str, Any]:
        stream = self._started()
        kept, scores = self._kept()
        return {
            "names": tuple(stream.names[arrival] for arrival in kept.tolist()),
            "indices": stream.names.positions(kept),
            "scores": scores,
            "n_features": stream.n_seen,
            "n_samples": len(stream.y),
            "selector": type(self).__name__,
            "measure": self.measure_,
            "measure_reason": self.measure_reason_,
            "parameters": {
                name: value if isinstance(value, int | str | None) else repr(value)
                for name, value in self.get_params(deep=False).items()
            },
            "seconds": stream.seconds,
            "trace": stream.trace,
        }

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
        # Without this, transform would refuse the missing values that fit took.
        measure = getattr(self, "measure", getattr(self, "test", None))
        tags.input_tags.allow_nan = getattr(measure, "missing", "") == "category"
        return tags
