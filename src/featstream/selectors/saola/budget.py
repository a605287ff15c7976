"""Thresholds that are corrected for the number of features judged.

Each feature is judged at a level of its own, so that a whole stream, however long,
makes few false claims.

**Bonferroni** bounds the chance that any irrelevant feature passes. The features of a
source of known length share 95% of what is left; features that arrive one by one, or
from a source of unknown length, are paid from what is left in a series without end.

**Online FDR** bounds the expected share of irrelevant features among those that pass.
It is LORD++ [1]_: every feature that passes earns levels for those that follow. They
decline as the series of [2]_ does, log(j) / (j exp(sqrt(log j))), here as a mixture of
geometric series that follows it: the sum over all features that passed is then a few
numbers, and not one term for each of them. Half of the level is there from the
beginning: only the first feature that passes earns less for it.

.. [1] A. Ramdas, F. Yang, M. Wainwright, M. Jordan: Online control of the false
   discovery rate with decaying memory. NeurIPS, 2017.
.. [2] A. Javanmard, A. Montanari: Online rules for control of false discovery rate
   and false discovery exceedance. Annals of Statistics 46(2), 2018.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from featstream.errors import FeatstreamWarning, ParameterError, printable
from featstream.jit import kernel
from featstream.protocols import BoolArray, FloatArray, IntArray
from featstream.runs.arrays import Declared, check_arrays, damaged
from featstream.selectors.saola.kept import p_values_of

CORRECTIONS = ("none", "bonferroni", "online-fdr")
LEVEL = 0.05
_SHARE = 0.95
_WEALTH = 0.5
"""Share of the level that is shared out before any feature has passed."""

_MANY = 100
"""Features from which on a selection is compared with what chance gives."""

_LENGTHS = 2.0 ** np.arange(26)
"""Mean lengths of the geometric series, up to the 30 million features of the largest
streams that we know; each has the weight of the published series there."""

_WEIGHTS = np.log(np.maximum(_LENGTHS, 2.0)) / np.exp(np.sqrt(np.log(_LENGTHS)))
_SERIES = _WEIGHTS / _WEIGHTS.sum() / _LENGTHS
_DECAY = 1.0 - 1.0 / _LENGTHS


class Budget:
    """The levels at which the features of a stream are judged.

    The correction, one of `CORRECTIONS`, says what the level bounds: the error for
    each feature, the chance of any error, or the expected share of errors among the
    features that pass. By default the level is that of the measure, or 0.05.
    """

    def __init__(self, correction: str, level: float | None = None) -> None:
        self.correction = correction
        self._given = level
        self.level = LEVEL if level is None else level
        self._state: FloatArray = np.empty(0)
        self._is_bound = False
        self.to_open: int | None = None  # length of the source that is next, or 0
        self._n_judged = 0
        self._smallest = 2.0, 0.0  # a p-value and its level, while nothing passed

    def bind(self, measure: Any, owner: str) -> None:
        """Take the level from the measure, and let it find what may pass."""
        if self._is_bound or self.correction == "none":
            return
        if not hasattr(measure, "p_values"):
            raise ParameterError(
                f"{owner} with correction={self.correction!r} needs a measure with "
                f"p-values. {printable(measure.name)} has none. Use 'su', 'mi' or "
                "'fisher-z', or correction='none'."
            )
        if self._given is None and measure.alpha is not None:
            self.level = measure.alpha
        if hasattr(measure, "use_level"):
            measure.use_level(self.level)
        self._is_bound = True

    def _first_state(self) -> FloatArray:
        if self.correction == "bonferroni":
            return np.array([self.level, 0.0, 0.0, 0.0])
        return np.concatenate([_SERIES * (_WEALTH * self.level), np.zeros(2)])

    def _open(self, n_features: int) -> None:
        """Share out what is left among the features of a source."""
        self._state[2:] = 0.0
        if n_features:
            left = self._state[0]
            self._state[2], self._state[3] = _SHARE * left / n_features, n_features
            self._state[0] = left - _SHARE * left

    def screen(
        self, measure: Any, encoded: Any, scores: FloatArray
    ) -> tuple[FloatArray | None, IntArray]:
        """The p-values of some columns, and which of them may pass."""
        may_pass: BoolArray
        if self.correction != "none":
            p_values = measure.p_values(encoded, scores)
            may_pass = p_values <= self.level
            return p_values, may_pass.nonzero()[0]
        may_pass = measure.is_relevant(scores)
        if (
            getattr(measure, "alpha", None) is not None
            and hasattr(measure, "p_values")
            and not hasattr(measure, "use_level")
        ):  # its level comes on top of its threshold
            may_pass = may_pass & (measure.p_values(encoded, scores) <= measure.alpha)
        return None, may_pass.nonzero()[0]

    def judge(self, p_values: FloatArray) -> BoolArray:
        """Which of the next features pass, in order of arrival."""
        passes = np.zeros(p_values.size, np.bool_)
        if not self._state.size:
            self._state = self._first_state()
        if self.correction == "bonferroni":
            if self.to_open is not None:
                self._open(self.to_open)
                self.to_open = None
            _judge_all(p_values, self._state, passes)
        else:
            _judge_share(p_values, self._state, self.level, passes)
        self._remember_smallest(p_values)
        return passes

    def _remember_smallest(self, p_values: FloatArray) -> None:
        """Note the smallest p-value, and its level if nothing has passed before it."""
        if p_values.size:
            best = int(p_values.argmin())
            if p_values[best] < self._smallest[0]:
                place = self._n_judged + best
                if self.correction == "online-fdr":
                    level = _WEALTH * self.level * float(_SERIES @ _DECAY**place)
                else:  # that of its source, or about that of a series without end
                    level = float(self._state[2]) or self.level / (place + 1)
                self._smallest = float(p_values[best]), level
        self._n_judged += p_values.size

    def why_nothing(self, n_rows: int) -> str:
        """Why nothing was selected: the smallest p-value, and what it lacks."""
        p_value, level = self._smallest
        found = f"the smallest p-value of {self._n_judged:,} features is {p_value:.2g}"
        if p_value <= level or p_value > 0.5:
            return f"{found}."
        # The square of a normal variable grows with the number of rows.
        ratio = float((special.ndtri(level / 2) / special.ndtri(p_value / 2)) ** 2)
        return (
            f"{found}, and it would have needed {level:.2g}. A feature of that "
            f"strength would pass with about {math.ceil(ratio * n_rows):,} rows in "
            f"place of {n_rows:,}."
        )

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What `restore` needs."""
        return {"budget": self._state} if self._state.size else {}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take back what `arrays` gave."""
        if "budget" in arrays:
            if self.correction == "none":
                raise damaged("it has levels, and no correction")
            table = {"budget": Declared(np.float64, self._first_state().shape, 0)}
            self._state = check_arrays(arrays, table)["budget"].copy()


def warn_of_chance(stream: Any, kept: Any) -> None:
    """Warn, once, if Benjamini and Hochberg's procedure passes few kept features."""
    n_kept = 0 if kept is None else int(kept.size[0])
    has_test = hasattr(stream.measure, "p_of_kept")
    is_settled = stream.has_warned_of_chance or stream.n_seen < _MANY
    if is_settled or not has_test or not n_kept:
        return
    p_values = np.sort(p_values_of(kept, stream.measure))
    ranks = np.arange(1, n_kept + 1)
    passes = p_values <= LEVEL * ranks / stream.n_seen
    n_by_chance = n_kept - int(ranks[passes].max(initial=0))
    if 2 * n_by_chance > n_kept:
        stream.has_warned_of_chance = True
        warnings.warn(
            f"Of {n_kept:,} kept features, {n_by_chance:,} may be chance alone: they "
            "would not be significant if the threshold paid for the "
            f"{stream.n_seen:,} features that it judged. Use SelectFromStream, or "
            "correction='online-fdr'.",
            FeatstreamWarning,
            stacklevel=5,
        )


def warn_of_nothing(stream: Any, kept: Any, budget: Budget) -> None:
    """Say, once, why no feature was selected at a corrected level."""
    n_kept = 0 if kept is None else int(kept.size[0])
    if n_kept or stream.has_warned_of_chance or stream.n_seen < _MANY:
        return
    stream.has_warned_of_chance = True
    warnings.warn(
        f"Nothing was selected: {budget.why_nothing(len(stream.y))}",
        FeatstreamWarning,
        stacklevel=5,
    )


@kernel(allocates=True)
def _judge_all(p_values, state, passes):
    """Bonferroni.

    ``state`` is the level that is left, the number of features paid one by one, and
    the level and the number of features that a source of known length still has.
    """
    for i in range(p_values.size):
        if state[3] > 0.0:
            level = state[2]
            state[3] -= 1.0
        else:
            state[1] += 1.0
            rest = (1.0 + np.log2(state[1])) / (1.0 + np.log2(state[1] + 1.0))
            level = state[0] * (1.0 - rest)
            state[0] -= level
        passes[i] = p_values[i] <= level


@kernel(allocates=True)
def _judge_share(p_values, state, alpha, passes):
    """LORD++.

    ``state`` has the sum of each series, the number of features that passed, and the
    number of features since the sums were last brought up to date.
    """
    n_series = state.size - 2
    for i in range(p_values.size):
        state[n_series + 1] += 1.0
        if p_values[i] > alpha:  # no level exceeds alpha: the sums can wait
            continue
        n_before, level = state[n_series + 1] - 1.0, 0.0
        for k in range(n_series):
            state[k] *= _DECAY[k] ** n_before
            level += state[k]
        state[n_series + 1] = 1.0
        if p_values[i] <= level:
            earned = alpha if state[n_series] else (1.0 - _WEALTH) * alpha
            for k in range(n_series):
                state[k] = state[k] * _DECAY[k] + earned * _SERIES[k]
            state[n_series] += 1.0
            state[n_series + 1] = 0.0
            passes[i] = True
