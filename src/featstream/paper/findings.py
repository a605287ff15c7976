"""What the runs came to, as the paper reports it, next to the printed numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np

from featstream.evaluation import (
    ExperimentResult,
    Friedman,
    Stability,
    average_ranks,
    critical_difference,
    friedman,
    win_tie_lose,
)
from featstream.paper.datasets import Benchmark, files_of_dataset
from featstream.paper.exhibits import Design, Exhibit
from featstream.paper.tables import (
    PaperClaim,
    PaperColumn,
    PaperTable,
    paper_claims,
    paper_table,
)
from featstream.protocols import FloatArray

Statistic: TypeAlias = Literal["single", "best", "mean"]

_COSTS = ("n_features", "n_groups", "seconds")


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """One number of a table or figure."""

    value: float = np.nan  # as the paper reports it
    statistic: Statistic = "single"
    runs: FloatArray = field(default_factory=lambda: np.empty(0))
    reason: str | None = None  # why there is no value

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
    """A data set that was used."""

    shape: tuple[int, int, int]  # rows, test rows, features
    kind: str  # continuous or discrete
    origin: str  # the file it came from
    is_split: bool  # whether the paper uses published parts
    differs: str  # how it differs from the paper's; "" if it does not
    notes: tuple[str, ...]

    @classmethod
    def of(cls, data: Benchmark) -> About:
        """Facts of a data set, without the data."""
        n_test = 0 if data.y_test is None else data.y_test.size
        shape = data.y.size, n_test, data.X.shape[1]
        about = data.origin.name, data.is_split, data.differs, data.notes
        return cls(shape, data.kind, *about)


class Findings:
    """All results.

    Attributes
    ----------
    about : dict of str to About
        The data sets that were used.
    results : dict of (design, data set) to ExperimentResult
        The result of each experiment.
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
        """Leave out a data set that cannot be used."""
        self.unreadable[dataset] = reason
        self.about.pop(dataset, None)
        self.available = tuple(name for name in self.available if name != dataset)

    def add_stability(self, result: ExperimentResult, data: Benchmark) -> None:
        """Compare the selections of the subsamples while the data are loaded.

        Continuous features are compared by correlation, as in their selection; the
        paper does not say how it made them discrete.
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
        """A number as the paper reports it, or why there is none.

        Of ten random splits the best, with the number of features and the time of the
        run with the highest accuracy; of orders and groups the mean. Without a
        classifier, scores are the mean over all classifiers.
        """
        missing = self._missing(design, dataset, method)
        if missing is not None:
            return Value(reason=missing)
        if metric == "stability":
            return self._stability(dataset, method)
        result = self.results[design, dataset]
        names = [classifier.lower()] if classifier else result.classifiers
        if metric in _COSTS:
            return self._cost(result, dataset, method, metric, design)
        key = {"auc": "auc_hard", "accuracy_sd": "accuracy"}.get(metric, metric)
        found = [result.values(key, name, dataset, method) for name in names]
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
        """A cost of the selection, in the run with the highest accuracy."""
        names = result.classifiers
        _, reason = result.values(metric, names[0], dataset, method)
        if reason is not None:
            return Value(reason=reason)
        costs, accuracies = (
            np.array([result.values(m, name, dataset, method)[0] for name in names])
            for m in (metric, "accuracy")
        )
        best = 0 if np.isnan(accuracies).all() else int(np.nanargmax(accuracies))
        which, run = divmod(best, accuracies.shape[1])
        runs = costs[which]
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
        if dataset not in self.available:
            return "no data"
        if (design, dataset, method) in self.given_up:
            return self.given_up[design, dataset, method]
        if (design, dataset) not in self.results:
            return "not run"
        if method not in self.results[design, dataset].selectors:
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


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """A number of ours, and the paper's (NaN for "-")."""

    dataset: str
    column: PaperColumn
    ours: Value
    printed: float

    @property
    def difference(self) -> float:
        """Ours minus the paper's."""
        return self.ours.value - self.printed


@dataclass(frozen=True, slots=True)
class Panel:
    """The columns of one metric and one classifier, one per method."""

    metric: str
    classifier: str | None
    columns: tuple[PaperColumn, ...]


@dataclass(frozen=True, slots=True, eq=False)
class CheckedClaim:
    """Average ranks that the paper states, and those that follow from our numbers."""

    claim: PaperClaim
    datasets: tuple[str, ...]  # on which all methods have a number of ours
    ranks: FloatArray  # there, from our numbers; high is good
    printed_ranks: FloatArray  # there, from the paper's numbers
    test: Friedman  # the paper's test of our numbers
    critical_difference: float


@dataclass(frozen=True, slots=True)
class Wins:
    """Data sets won, tied and lost against a rival, where we have both numbers."""

    panel: Panel
    first: str
    rival: str
    ours: str
    printed_there: str  # from the paper's numbers on the same data sets
    printed: str  # as printed, for all data sets


class TableComparison:
    """A table of the paper next to our numbers."""

    def __init__(self, exhibit: Exhibit, findings: Findings) -> None:
        self.exhibit, self.findings = exhibit, findings
        self.printed: PaperTable = paper_table(exhibit.number)

    @cached_property
    def pairs(self) -> dict[tuple[str, PaperColumn], Pair]:
        """Every cell."""
        return {
            (dataset, column): Pair(
                dataset, column, self._ours(dataset, column), float(number)
            )
            for dataset, row in zip(
                self.printed.datasets, self.printed.values, strict=True
            )
            for column, number in zip(self.printed.columns, row, strict=True)
        }

    def _ours(self, dataset: str, column: PaperColumn) -> Value:
        method = column.method or ""
        if column.alpha is not None:
            method = f"{method} alpha={column.alpha:g}"
        return self.findings.value(
            self.exhibit.design, dataset, method, column.metric, column.classifier
        )

    @property
    def datasets(self) -> tuple[str, ...]:
        """The rows for which there are data."""
        present = self.findings.available
        return tuple(name for name in self.printed.datasets if name in present)

    def panels(self) -> Iterator[Panel]:
        """The columns, by metric and classifier."""
        keys = dict.fromkeys((c.metric, c.classifier) for c in self.printed.columns)
        for metric, classifier in keys:
            own = (
                c
                for c in self.printed.columns
                if (c.metric, c.classifier) == (metric, classifier)
            )
            yield Panel(metric, classifier, tuple(own))

    def claims(self) -> Iterator[CheckedClaim]:
        """The paper's statements about this table that can be checked."""
        for claim in paper_claims():
            if claim.table != self.printed.number:
                continue
            columns = [
                next(
                    c
                    for c in self.printed.columns
                    if (c.method, c.metric) == (method, claim.metric)
                    and c.classifier == claim.classifier
                )
                for method in claim.methods
            ]
            datasets, ours, printed = self._complete(columns)
            if len(datasets) < 2:
                continue
            ours = np.round(ours, 12)  # means that differ by rounding alone are ties
            yield CheckedClaim(
                claim=claim,
                datasets=datasets,
                ranks=average_ranks(ours, convention="paper"),
                printed_ranks=average_ranks(printed, convention="paper"),
                test=friedman(ours, correct_ties=False),
                critical_difference=critical_difference(len(columns), len(datasets)),
            )

    def wins(self) -> Iterator[Wins]:
        """Wins of the first method of each panel against the others, as printed.

        The paper's counts are those of a margin of 0.01.
        """
        if not self.printed.win_tie_lose:
            return
        for panel in self.panels():
            first, *rivals = panel.columns
            for rival in rivals:
                datasets, ours, printed = self._complete([first, rival])
                place = self.printed.columns.index(rival)
                counts = self.printed.win_tie_lose[place]
                if datasets and counts is not None:
                    yield Wins(
                        panel,
                        str(first.method),
                        str(rival.method),
                        str(win_tie_lose(ours[:, 0], ours[:, 1])),
                        str(win_tie_lose(printed[:, 0], printed[:, 1])),
                        counts,
                    )

    def _complete(
        self, columns: list[PaperColumn]
    ) -> tuple[tuple[str, ...], FloatArray, FloatArray]:
        """Data sets where we and the paper have all columns, and both numbers."""
        rows = {
            dataset: [
                (self.pairs[dataset, c].ours.value, self.pairs[dataset, c].printed)
                for c in columns
            ]
            for dataset in self.datasets
        }
        complete = {d: row for d, row in rows.items() if not np.isnan(row).any()}
        numbers = np.array(list(complete.values())).reshape(-1, len(columns), 2)
        return tuple(complete), numbers[:, :, 0], numbers[:, :, 1]
