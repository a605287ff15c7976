"""The experiments behind the paper's tables and figures, and their results."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from sklearn.dummy import DummyClassifier

from featstream import evaluation as ev
from featstream.errors import DataError
from featstream.evaluation import CellProgress, ExperimentResult
from featstream.paper import methods, tables
from featstream.paper.datasets import Benchmark, available_datasets, load_dataset
from featstream.paper.tables import Design, Exhibit, PaperClaim, PaperColumn
from featstream.protocols import FloatArray

Statistic: TypeAlias = Literal["single", "best", "mean"]

_COSTS = ("n_features", "n_groups", "seconds")


@dataclass(frozen=True, slots=True)
class Need:
    """Methods to run on a data set by a design, and the classifiers."""

    dataset: str
    design: Design
    methods: tuple[str, ...]
    classifiers: tuple[str, ...]


class PaperStudy:
    """The experiments behind some of the paper's tables and figures.

    ``data`` is the folder of the data sets, by default that in ``FEATSTREAM_DATA``;
    ``seed`` and limits are those of `Experiment`. With ``is_quick`` everything is
    repeated three times, instead of ten or thirty.
    """

    def __init__(
        self,
        exhibits: Iterable[Exhibit],
        data: str | os.PathLike[str] | None = None,
        *,
        seed: int = 0,
        time_limit: float | None = 60.0,
        memory_limit: str | int | None = None,
        is_quick: bool = False,
    ) -> None:
        self.exhibits, self.data = tuple(exhibits), data
        self.limits: Any = {"time_limit": time_limit, "memory_limit": memory_limit}
        self.seed, self.is_quick = seed, is_quick
        self.available = available_datasets(data)
        self.needs = tuple(gather_needs(self.exhibits, self.available))

    def run(
        self,
        folder: str | os.PathLike[str],
        *,
        n_jobs: int | None = None,
        progress: bool | Callable[[CellProgress], None] = False,
    ) -> Findings:
        """Run what is not in the folder yet; options are those of `Experiment.run`."""
        limit = self.limits["time_limit"]
        findings = Findings(list(self.available), self.is_quick, limit)
        with ev.cells_observed(progress) as observe:
            tally = _Tally(self.needs, observe)
            for dataset in dict.fromkeys(need.dataset for need in self.needs):
                needs = [need for need in self.needs if need.dataset == dataset]
                try:
                    data = load_dataset(dataset, self.data)
                    findings.about[dataset] = About.of(data)
                    for need in needs:
                        self._run_one(need, data, Path(folder), n_jobs, findings, tally)
                except DataError as error:  # the others can still be run
                    findings.unreadable[dataset] = str(error)
                    findings.about.pop(dataset, None)
                    findings.available.remove(dataset)
                    for need in needs:
                        tally.begin(need, 0)
        return findings

    def _run_one(
        self,
        need: Need,
        data: Benchmark,
        folder: Path,
        n_jobs: int | None,
        findings: Findings,
        tally: _Tally,
    ) -> None:
        """Run all methods once, then repeat those within the time limit.

        A method that exceeds the limit in the first run is a dash in the tables.
        """
        n_repeats = (3, 3) if self.is_quick else (10, 30)
        protocol = methods.protocol_for(data, need.design, n_repeats)
        first = methods.protocol_for(data, need.design, n_repeats=(1, 1))
        selectors = {
            method: methods.selector_for(method, data, need.design)
            for method in need.methods
        }
        classifiers = methods.classifiers_for(data)
        judges = {name.lower(): classifiers[name] for name in need.classifiers}
        judges = judges or {"nobody": DummyClassifier()}
        tasks = {data.name: ev.Task(data.X, data.y, data.X_test, data.y_test)}
        tally.begin(need, protocol.n_splits * len(selectors))

        def run(rows: ev.SplitProtocol) -> ExperimentResult:
            experiment = ev.Experiment(
                selectors, tasks, judges, rows, seed=self.seed, **self.limits
            )
            return experiment.run(folder, n_jobs=n_jobs, progress=tally.update)

        if protocol.n_splits > 1:
            for _, method, _, reason in run(first).failures():
                if reason.startswith("exceeded"):
                    reason += f" in the first of {protocol.n_splits} runs"
                    findings.given_up[need.design, data.name, method] = reason
                    del selectors[method]
            n_given_up = len(need.methods) - len(selectors)
            n_cells = protocol.n_splits * len(selectors) + n_given_up
            tally.begin(need, n_cells, n_again=len(selectors))
        if not selectors:
            return
        result = findings.results[need.design, data.name] = run(protocol)
        if need.design == "subsamples":
            # Continuous features are compared by correlation, as in their selection;
            # the paper does not say how it made them discrete.
            similarity = "su" if data.kind == "discrete" else "correlation"
            findings.stability |= result.stability("yu", similarity=similarity)


def gather_needs(
    exhibits: Iterable[Exhibit], available: Iterable[str]
) -> Iterator[Need]:
    """What the exhibits need of the available data sets, each once."""
    present, found = set(available), dict[tuple[str, Design], list[Exhibit]]()
    for exhibit in exhibits:
        for dataset in exhibit.datasets:
            if dataset in present:
                found.setdefault((dataset, exhibit.design), []).append(exhibit)
    for (dataset, design), own in found.items():
        wanted = dict.fromkeys(m for exhibit in own for m in exhibit.methods)
        judges = {c for exhibit in own for c in exhibit.classifiers}
        in_order = tuple(c for c in tables.CLASSIFIERS if c in judges)
        yield Need(dataset, design, tuple(wanted), in_order)


class _Tally:
    """One count of cells over many experiments."""

    def __init__(
        self, needs: Iterable[Need], observe: Callable[[CellProgress], None]
    ) -> None:
        self._observe = observe
        repeats = {"orders": 30, "subsamples": 30}  # a guess, until the data are read
        self._cells = {n: repeats.get(n.design, 10) * len(n.methods) for n in needs}
        self._before = self._last = CellProgress()
        self._n_again = 0

    def begin(self, need: Need, n_cells: int, n_again: int = 0) -> None:
        """Begin an experiment, which will find ``n_again`` cells that were counted."""
        self._cells[need], self._n_again = n_cells, n_again
        self._before = self._last

    def update(self, at: CellProgress) -> None:
        """Add one experiment's progress to that of those before."""
        before = self._before
        self._last = CellProgress(
            n_cells=sum(self._cells.values()),
            # Cells that failed in the first run, but not by a limit, are done again.
            n_kept=before.n_kept + max(0, at.n_kept - self._n_again),
            n_done=before.n_done + at.n_done,
            n_failed=before.n_failed + at.n_failed,
            running=list(at.running),
            last_failure=at.last_failure or before.last_failure,
        )
        self._observe(self._last)


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
        about = data.kind, data.origin.name, data.is_split, data.differs, data.notes
        return cls(shape, *about)


@dataclass(slots=True, eq=False)
class Findings:
    """All results."""

    available: list[str]  # the data sets that can be read
    is_quick: bool = False
    time_limit: float | None = None
    about: dict[str, About] = field(default_factory=dict)  # the data sets, if used
    results: dict[tuple[Design, str], ExperimentResult] = field(default_factory=dict)
    given_up: dict[tuple[Design, str, str], str] = field(default_factory=dict)  # why
    stability: dict[tuple[str, str], ev.Stability | None] = field(default_factory=dict)
    unreadable: dict[str, str] = field(default_factory=dict)  # data sets, and why

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
        if dataset not in self.available:
            return Value(reason="no data")
        if (design, dataset, method) in self.given_up:
            return Value(reason=self.given_up[design, dataset, method])
        result = self.results.get((design, dataset))
        if result is None or method not in result.selectors:
            return Value(reason="not run")
        if metric == "stability":
            found = self.stability.get((dataset, method))
            if found is not None:
                return Value(found.value, "mean")
            _, reason = result.values("n_features", None, dataset, method)
            return Value(reason=reason or "fewer than two selections")

        def runs_of(metric: str, names: list[str]) -> tuple[FloatArray, list[str]]:
            found = [result.values(metric, name, dataset, method) for name in names]
            reasons = [reason for _, reason in found if reason is not None]
            return np.array([values for values, _ in found]), reasons

        if metric in _COSTS:
            runs, reasons = runs_of(metric, result.classifiers)
            accuracies, _ = runs_of("accuracy", result.classifiers)
            best = 0 if np.isnan(accuracies).all() else int(np.nanargmax(accuracies))
            which, place = divmod(best, accuracies.shape[1])
            runs = runs[which]
        else:
            names = [classifier.lower()] if classifier else result.classifiers
            key = {"auc": "auc_hard", "accuracy_sd": "accuracy"}.get(metric, metric)
            runs, reasons = runs_of(key, names)
            runs = runs.mean(axis=0)
            place = int(runs.argmax())
        if reasons:
            return Value(reason=reasons[0])
        if metric == "accuracy_sd":
            return Value(Value(runs=runs).deviation, "mean", runs)
        if runs.size > 1 and design not in ("split", "sweep"):
            return Value(float(runs.mean()), "mean", runs)
        return Value(float(runs[place]), "best" if runs.size > 1 else "single", runs)


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


@dataclass(frozen=True, slots=True, eq=False)
class CheckedClaim:
    """Average ranks that the paper states, and those that follow from our numbers."""

    claim: PaperClaim
    datasets: tuple[str, ...]  # on which all methods have a number of ours
    ranks: FloatArray  # there, from our numbers; high is good
    printed_ranks: FloatArray  # there, from the paper's numbers
    test: ev.Friedman  # the paper's test of our numbers
    critical_difference: float


class TableComparison:
    """A table of the paper next to our numbers."""

    def __init__(self, exhibit: Exhibit, findings: Findings) -> None:
        self.exhibit, self.findings = exhibit, findings
        self.printed = tables.paper_table(exhibit.number)
        self.datasets = tuple(  # for which there are data
            name for name in self.printed.datasets if name in findings.available
        )

    @cached_property
    def pairs(self) -> dict[tuple[str, PaperColumn], Pair]:
        """Every cell."""
        ours, printed = self._ours, self.printed
        rows = zip(printed.datasets, printed.values, strict=True)
        return {
            (dataset, column): Pair(dataset, column, ours(dataset, column), number)
            for dataset, row in rows
            for column, number in zip(printed.columns, row.tolist(), strict=True)
        }

    def _ours(self, dataset: str, column: PaperColumn) -> Value:
        method = column.method or ""
        if column.alpha is not None:
            method = f"{method} alpha={column.alpha:g}"
        return self.findings.value(
            self.exhibit.design, dataset, method, column.metric, column.classifier
        )

    @cached_property
    def panels(self) -> list[list[PaperColumn]]:
        """The columns of each metric and classifier, one per method."""
        found: dict[tuple[str, str | None], list[PaperColumn]] = {}
        for column in self.printed.columns:
            found.setdefault((column.metric, column.classifier), []).append(column)
        return list(found.values())

    def claims(self) -> Iterator[CheckedClaim]:
        """The paper's statements about this table that can be checked."""
        for claim in tables.paper_claims():
            if claim.table != self.printed.number:
                continue
            kind = claim.metric, claim.classifier
            columns = [PaperColumn(kind[0], m, kind[1]) for m in claim.methods]
            datasets, ours, printed = self._complete(columns)
            if len(datasets) < 2:
                continue
            ours = np.round(ours, 12)  # means that differ by rounding alone are ties
            yield CheckedClaim(
                claim=claim,
                datasets=datasets,
                ranks=ev.average_ranks(ours, convention="paper"),
                printed_ranks=ev.average_ranks(printed, convention="paper"),
                test=ev.friedman(ours, correct_ties=False),
                critical_difference=ev.critical_difference(len(columns), len(datasets)),
            )

    def wins(self) -> Iterator[list[str]]:
        """Wins, ties and losses of the first method of each panel against the others.

        Both methods, what is compared, and the counts of our numbers, of the paper's
        on the same data sets, and as printed for all.
        """
        printed_counts = self.printed.win_tie_lose or [None] * len(self.printed.columns)
        counts = dict(zip(self.printed.columns, printed_counts, strict=True))
        for first, *rivals in self.panels:
            for rival in rivals:
                datasets, *numbers = self._complete([first, rival])
                as_printed = counts[rival]
                if datasets and as_printed is not None:
                    both = f"{first.method} against {rival.method}"
                    what = first.classifier or tables.METRICS[first.metric]
                    found = (str(ev.win_tie_lose(*scores.T)) for scores in numbers)
                    yield [both, what, *found, as_printed]

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
