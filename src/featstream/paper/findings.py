"""What the runs came to, as the paper reports it: best of ten, or mean."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np

from featstream.evaluation.results import ExperimentResult
from featstream.evaluation.stability import Stability
from featstream.paper.datasets import Benchmark, files_of_dataset
from featstream.paper.exhibits import Design
from featstream.paper.methods import ABSENT
from featstream.protocols import FloatArray

__all__ = ["About", "Findings", "Statistic", "Value"]

Statistic: TypeAlias = Literal["single", "best", "mean"]

_COSTS = ("n_features", "n_groups", "seconds")


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """One number of a table or figure.

    Attributes
    ----------
    value : float
        As the paper reports it; NaN if there is none.
    statistic : {"single", "best", "mean"}
        What that is: the only run, the best of several, their mean.
    runs : ndarray
        The number in each run.
    reason : str or None
        Why there is none.
    """

    value: float = np.nan
    statistic: Statistic = "single"
    runs: FloatArray = field(default_factory=lambda: np.empty(0))
    reason: str | None = None

    @property
    def mean(self) -> float:
        """Mean over the runs."""
        return float(self.runs.mean()) if self.runs.size else np.nan

    @property
    def deviation(self) -> float:
        """Standard deviation over the runs; 0 for one."""
        return float(self.runs.std(ddof=1)) if self.runs.size > 1 else 0.0


@dataclass(frozen=True, slots=True)
class About:
    """A data set that was used.

    Attributes
    ----------
    shape : tuple of int
        Rows, test rows and features.
    kind : str
        Continuous or discrete.
    origin : str
        The file it came from.
    is_split : bool
        Whether the paper uses parts as they were published.
    differs : str
        How it differs from the paper's; "" if it does not.
    notes : tuple of str
        What else there is to know.
    """

    shape: tuple[int, int, int]
    kind: str
    origin: str
    is_split: bool
    differs: str
    notes: tuple[str, ...]

    @classmethod
    def of(cls, data: Benchmark) -> About:
        """Facts of a data set, without the data."""
        n_test = 0 if data.y_test is None else data.y_test.size
        shape = data.y.size, n_test, data.X.shape[1]
        return cls(
            shape,
            data.kind,
            data.origin.name,
            data.is_split,
            data.differs,
            data.notes,
        )


class Findings:
    """All that was found.

    Attributes
    ----------
    about : dict of str to About
        The data sets that were used.
    results : dict of (design, data set) to ExperimentResult
        What came of each experiment.
    unreadable : dict of str to str
        Data sets whose files cannot be read or used, and why.
    """

    def __init__(
        self, available: Iterable[str], *, is_quick: bool = False, **limits: Any
    ) -> None:
        self.available = tuple(available)
        self.is_quick, self.limits = is_quick, limits
        self.about: dict[str, About] = {}
        self.results: dict[tuple[Design, str], ExperimentResult] = {}
        self.given_up: dict[tuple[Design, str, str], str] = {}
        self.stability: dict[tuple[str, str], Stability | None] = {}
        self.unreadable: dict[str, str] = {}

    def leave_out(self, dataset: str, reason: str) -> None:
        """Do without a data set that cannot be used, as if it were not there."""
        self.unreadable[dataset] = reason
        self.about.pop(dataset, None)
        self.available = tuple(name for name in self.available if name != dataset)

    def take(self, design: Design, dataset: str, result: ExperimentResult) -> None:
        """Keep what came of an experiment."""
        self.results[design, dataset] = result

    def give_up(self, design: Design, dataset: str, method: str, reason: str) -> None:
        """Note why a method was not run to the end."""
        self.given_up[design, dataset, method] = reason

    def take_stability(self, result: ExperimentResult, data: Benchmark) -> None:
        """Compare the selections of the subsamples while the data are at hand.

        Continuous features are alike by their correlation, which is what selected
        them; the paper does not say how it made them discrete.
        """
        similarity = "su" if data.kind == "discrete" else "correlation"
        self.stability.update(result.stability("yu", similarity=similarity))

    def value(
        self,
        design: Design,
        dataset: str,
        method: str,
        metric: str,
        classifier: str | None = None,
    ) -> Value:
        """A number as the paper reports it.

        Parameters
        ----------
        design : Design
            How it comes about.
        dataset, method : str
            As the paper spells them.
        metric : str
            ``accuracy``, ``accuracy_sd``, ``auc``, ``n_features``, ``n_groups``,
            ``seconds`` or ``stability``.
        classifier : str, optional
            Who judged; without one, scores are the mean of all that did.

        Returns
        -------
        Value
            Of ten random splits the best, with the number of features and the time of
            the run with the highest accuracy; of orders and groups the mean.
        """
        missing = self._missing(design, dataset, method)
        if missing is not None:
            return Value(reason=missing)
        if metric == "stability":
            return self._stability(dataset, method)
        result = self.results[design, dataset]
        judges = [classifier.lower()] if classifier else result.classifiers
        if metric in _COSTS:
            return self._cost(result, dataset, method, metric, design)
        key = {"auc": "auc_hard", "accuracy_sd": "accuracy"}.get(metric, metric)
        found = [result.values(key, judge, dataset, method) for judge in judges]
        reasons = [reason for _, reason in found if reason is not None]
        if reasons:
            return Value(reason=reasons[0])
        runs = np.mean([values for values, _ in found], axis=0)
        value = Value(runs=runs, statistic=self._statistic(design, runs.size))
        if metric == "accuracy_sd":
            return Value(value.deviation, "mean", runs)
        number = runs.max() if value.statistic == "best" else runs.mean()
        return Value(float(number), value.statistic, runs)

    def _cost(
        self,
        result: ExperimentResult,
        dataset: str,
        method: str,
        metric: str,
        design: Design,
    ) -> Value:
        """A number of the selection, in the run that a classifier scores highest."""
        judges = result.classifiers
        _, reason = result.values(metric, judges[0], dataset, method)
        if reason is not None:
            return Value(reason=reason)
        costs, accuracies = (
            np.array([result.values(m, judge, dataset, method)[0] for judge in judges])
            for m in (metric, "accuracy")
        )
        best = 0 if np.isnan(accuracies).all() else int(np.nanargmax(accuracies))
        judge, run = divmod(best, accuracies.shape[1])
        runs = costs[judge]
        statistic = self._statistic(design, runs.size)
        number = runs.mean() if statistic == "mean" else runs[run]
        return Value(float(number), statistic, runs)

    def _stability(self, dataset: str, method: str) -> Value:
        found = self.stability.get((dataset, method))
        if found is None:
            result = self.results["subsamples", dataset]
            _, reason = result.values("n_features", None, dataset, method)
            return Value(reason=reason or "fewer than two selections")
        return Value(found.value, "mean")

    def _missing(self, design: Design, dataset: str, method: str) -> str | None:
        if method in ABSENT:
            return f"{method} is not in this library"
        if dataset not in self.available:
            return "no data"
        if (design, dataset, method) in self.given_up:
            return self.given_up[design, dataset, method]
        if (design, dataset) not in self.results:
            return "not run"
        return None

    @staticmethod
    def _statistic(design: Design, n_runs: int) -> Statistic:
        if n_runs == 1:
            return "single"
        return "best" if design in ("split", "sweep") else "mean"

    def wanted(self, datasets: Iterable[str]) -> dict[str, str]:
        """Data sets that are not there, and the files to put there."""
        return {
            name: files_of_dataset(name)
            for name in datasets
            if name not in self.available
        }
