"""Why a feature was kept or dropped, in a sentence."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from featstream.errors import DataError, DataTypeError, printable
from featstream.protocols import Fate, FloatArray, IntArray
from featstream.selectors.result import Names
from featstream.selectors.stream import Stream
from featstream.sources.values import check_names


class Explained:
    """A selector of features that says why it kept or dropped each."""

    _stream: Stream

    if TYPE_CHECKING:

        def _started(self) -> Stream: ...

        def _kept(self) -> tuple[IntArray, FloatArray]: ...

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
                    f"{name} is redundant: it adds nothing once {other} is "
                    f"known{found}."
                )
            if not trace.is_over_limit(arrival):
                return (
                    f"{name} was displaced by {other}, which is more relevant and "
                    f"beside which it adds nothing; {relevance}."
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
