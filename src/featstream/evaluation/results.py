"""What an experiment found: tidy rows, tables, statistics."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, Literal

import numpy as np

from featstream.errors import DataError, MissingExtraError, unknown_name, visible
from featstream.evaluation.stability import Stability, stability
from featstream.evaluation.statistics import Best, Comparison, compare_scores
from featstream.evaluation.tasks import as_task
from featstream.markup import csv_text, markdown_table, small_table, tag
from featstream.protocols import FloatArray, IntArray
from featstream.selectors.result import Written, frame_of

SCORES = ("accuracy", "balanced_accuracy", "auc", "auc_hard")
COSTS = ("n_features", "n_groups", "seconds", "memory")
METRICS = (*SCORES, *COSTS)
"""What is measured: the first four of predictions, the others of the selection."""

TITLES = {
    "accuracy": "Accuracy",
    "balanced_accuracy": "Balanced accuracy",
    "auc": "AUC",
    "auc_hard": "AUC of the predictions",
    "n_features": "Number of selected features",
    "n_groups": "Number of selected groups",
    "seconds": "Seconds of selection",
    "memory": "Peak memory of selection (MB)",
}

Statistic = Literal["mean", "sd", "median", "best", "worst"]


STATISTICS = {
    "mean": "mean ± standard deviation of the splits",
    "sd": "standard deviation over the splits",
    "median": "median of the splits",
    "best": "best of the splits",
    "worst": "worst of the splits",
}


@dataclass(frozen=True, slots=True, eq=False)
class ScoreTable:
    """Data sets by selectors.

    Attributes
    ----------
    metric, statistic : str
        What is shown.
    classifier : str or None
        The classifier, if it matters.
    datasets, selectors : tuple of str
        Rows and columns.
    values : ndarray of shape (n_datasets, n_selectors)
        NaN where a selector failed.
    spreads : ndarray of shape (n_datasets, n_selectors)
        Standard deviations over splits, beside a mean.
    n_splits : tuple of int
        Splits of each data set.
    reasons : dict of (dataset, selector) to str
        Why a value is missing.
    rules : dict of selector to str
        How a parameter was chosen, where one was.
    """

    metric: str
    classifier: str | None
    statistic: str
    datasets: tuple[str, ...]
    selectors: tuple[str, ...]
    values: FloatArray
    spreads: FloatArray
    n_splits: tuple[int, ...]
    reasons: Mapping[tuple[str, str], str] = field(default_factory=dict)
    rules: Mapping[str, str] = field(default_factory=dict)

    @property
    def best(self) -> Best:
        """Whether high or low values are good."""
        return "low" if self.metric in COSTS else "high"

    @property
    def title(self) -> str:
        """What the table shows, in words."""
        how = STATISTICS[self.statistic]
        if self.statistic in ("best", "worst"):
            is_cost = self.metric in COSTS
            how += ", by accuracy" if is_cost else ", not an estimate of what to expect"
        if max(self.n_splits, default=1) == 1:
            how = "one split"
        by = f", {self.classifier}" if self.classifier else ""
        return f"{TITLES[self.metric]}{by} ({how})"

    @property
    def what(self) -> str:
        """What was measured, within a sentence."""
        name = TITLES[self.metric]
        name = name if name.startswith("AUC") else name[0].lower() + name[1:]
        return f"{name} of {self.classifier}" if self.classifier else name

    def value(self, dataset: str, selector: str) -> float:
        """One value; NaN if there is none."""
        place = self.datasets.index(dataset), self.selectors.index(selector)
        return float(self.values[place])

    def text(self, dataset: str, selector: str) -> str:
        """One value as it is printed."""
        i, j = self.datasets.index(dataset), self.selectors.index(selector)
        value, spread = self.values[i, j], self.spreads[i, j]
        if np.isnan(value):
            return "-"
        if self.statistic != "mean" or self.n_splits[i] == 1:
            return self._number(value, is_mean=False)
        return f"{self._number(value)} ± {self._number(spread)}"

    def _number(self, value: float, *, is_mean: bool = True) -> str:
        if self.metric in ("n_features", "n_groups"):
            return f"{value:,.1f}" if is_mean else f"{value:,.0f}"
        if self.metric == "memory":
            return f"{value / 2**20:,.1f}"
        if self.metric == "seconds":
            return f"{value:,.3f}" if value < 10 else f"{value:,.1f}"
        return f"{value:.4f}"

    def cells(self) -> list[list[str]]:
        """The table as text, with a heading row and column."""
        body = ([d, *(self.text(d, s) for s in self.selectors)] for d in self.datasets)
        return [["data set", *self.selectors], *body]

    def notes(self) -> list[str]:
        """Lines below the table: chosen parameters, and why values are missing."""
        notes = [f"{selector}: {rule}" for selector, rule in self.rules.items()]
        for (dataset, selector), reason in self.reasons.items():
            notes.append(f"- {selector} on {dataset}: {reason}")
        return notes

    def to_markdown(self) -> str:
        """The table for a document."""
        head, *body = self.cells()
        lines = [f"**{self.title}**", "", markdown_table(head, body)]
        notes = [f"{note}  " for note in self.notes()]
        return "\n".join([*lines, "", *notes] if notes else lines)

    def lines(self, width: int | None = None) -> list[str]:
        """Title and table for a terminal, without the notes.

        A table that is wider than ``width`` is cut into several, some selectors each.
        """
        rows = self.cells()
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines, first = [self.title], 1
        while first < len(widths):
            end, used = first + 1, widths[0] + 2 + widths[first]
            while width and end < len(widths) and used + 2 + widths[end] <= width:
                used, end = used + 2 + widths[end], end + 1
            end = end if width else len(widths)
            lines += [""] * (first > 1)
            for row in rows:
                cells = (row[j].rjust(widths[j]) for j in range(first, end))
                lines.append("  ".join([row[0].ljust(widths[0]), *cells]).rstrip())
            first = end
        return lines

    def __str__(self) -> str:
        return "\n".join([*self.lines(), *self.notes()])


class ExperimentResult(Written):
    """What an `Experiment` found.

    Attributes
    ----------
    selectors, datasets, classifiers : list of str
        What was compared.
    about : dict
        Settings, data sets and provenance.
    """

    def __init__(
        self,
        records: Sequence[Mapping[str, Any]],
        classifiers: Mapping[str, str],
        about: Mapping[str, Any],
        tasks: Mapping[str, Any] | None = None,
    ) -> None:
        self._cells: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
        for record in records:
            place = record["dataset"], record["selector"]
            self._cells.setdefault(place, []).append(record)
        self.datasets = list(dict.fromkeys(dataset for dataset, _ in self._cells))
        self.selectors = list(dict.fromkeys(selector for _, selector in self._cells))
        self.classifiers, self._keys = list(classifiers), dict(classifiers)
        self.about, self._tasks = dict(about), dict(tasks or {})

    def __repr__(self) -> str:
        return (
            f"ExperimentResult({len(self.selectors)} selectors × {len(self.datasets)} "
            f"data sets · {self.n_cells} cells, {len(self.failures())} failed)"
        )

    def _repr_html_(self) -> str:
        table = self.table("accuracy", self.classifiers[0])
        head, *rows = ([visible(c, 40) for c in row] for row in table.cells())
        return small_table(tag("b", f"{self!r}: {table.title}"), head, rows)

    @property
    def n_cells(self) -> int:
        """Number of cells: data sets × splits × selectors."""
        return sum(map(len, self._cells.values()))

    def rows(self) -> list[dict[str, Any]]:
        """One tidy row per data set, split, selector and classifier."""
        return [
            self._row(record, classifier)
            for dataset in self.datasets
            for selector in self.selectors
            for record in self._cells[dataset, selector]
            for classifier in self.classifiers
        ]

    def _row(self, record: Mapping[str, Any], classifier: str) -> dict[str, Any]:
        scores = record["scores"].get(self._keys[classifier], {})
        selection = selection_behind(record, scores)
        return {
            "dataset": record["dataset"],
            "selector": record["selector"],
            "split": record["split"],
            "classifier": classifier,
            **{metric: scores.get(metric) for metric in SCORES},
            **{metric: selection.get(metric) for metric in COSTS},
            "chosen": selection.get("value"),
            "rule": record["label"],
            "measure": selection.get("measure"),
            "reason": record["reason"] or scores.get("reason"),
            "note": scores.get("note"),
        }

    def frame(self, backend: str = "pandas") -> Any:
        """The tidy rows as a data frame of "pandas", "polars" or "pyarrow"."""
        rows = self.rows()
        return frame_of(
            {name: [row[name] for row in rows] for name in rows[0]}, backend
        )

    def as_csv(self) -> str:
        """The tidy rows as text."""
        return csv_text(self.rows())

    def _page(self) -> str:
        from featstream.reporting.comparison import comparison_page

        return comparison_page(self)

    def to_parquet(self, path: str | PathLike[str]) -> None:
        """Write the tidy rows, with settings and provenance in the file's metadata."""
        try:
            import pyarrow.parquet as pq
        except ImportError:
            raise MissingExtraError(
                "Writing parquet needs pyarrow. Install it: pip install pyarrow, or "
                "use to_csv."
            ) from None
        about = {"featstream": json.dumps(self.about)}
        pq.write_table(self.frame("pyarrow").replace_schema_metadata(about), path)

    def failures(self) -> list[tuple[str, str, int, str]]:
        """Data set, selector, split and reason of the cells without a selection."""
        return [
            (r["dataset"], r["selector"], r["split"], r["reason"])
            for records in self._cells.values()
            for r in records
            if r["reason"]
        ]

    def selections(
        self, dataset: str, selector: str, classifier: str | None = None
    ) -> list[IntArray]:
        """The selected features of each split that did not fail.

        For the best of several values, those that ``classifier`` chose (by default
        the first classifier).
        """
        check_known(dataset, "data set", self.datasets)
        check_known(selector, "selector", self.selectors)
        key = self._keys[self._classifier(classifier)]
        return [
            np.array(selection_behind(r, r["scores"].get(key, {}))["selected"], int)
            for r in self._cells[dataset, selector]
            if not r["reason"]
        ]

    def values(
        self, metric: str, classifier: str | None, dataset: str, selector: str
    ) -> tuple[FloatArray, str | None]:
        """A metric in every split (NaN where it is missing), and why some are missing.

        Parameters are those of `table`.
        """
        chosen = self._classifier(classifier)
        rows = [self._row(r, chosen) for r in self._cells[dataset, selector]]
        found = np.array([row[metric] for row in rows], float)  # None is NaN
        lost = [row["reason"] or "not measured" for row in rows if row[metric] is None]
        if not lost:
            return found, None
        reason = "; ".join(dict.fromkeys(lost))
        if len(lost) < len(rows):
            reason = f"{len(lost)} of {len(rows)} splits failed: {reason}"
        return found, reason

    def table(
        self,
        metric: str = "accuracy",
        classifier: str | None = None,
        statistic: Statistic = "mean",
    ) -> ScoreTable:
        """Data sets by selectors.

        Parameters
        ----------
        metric : str, default="accuracy"
            One of `METRICS`.
        classifier : str, optional
            The first by default. For metrics of the selection it matters only where
            the best of several values is chosen.
        statistic : {"mean", "sd", "median", "best", "worst"}, default="mean"
            Over the splits. The best and worst of time, memory and number of
            features are those of the split with the best and worst accuracy, as in
            the paper.

        Returns
        -------
        ScoreTable
            A selector that failed in some split of a data set has no value there
            ("-"), and a reason.
        """
        check_known(metric, "metric", METRICS)
        check_known(statistic, "statistic", STATISTICS)
        chosen = self._classifier(classifier)
        shape = len(self.datasets), len(self.selectors)
        values, spreads = np.full((2, *shape), np.nan)
        reasons: dict[tuple[str, str], str] = {}
        for i, j in np.ndindex(shape):
            names = self.datasets[i], self.selectors[j]
            found, reason = self.values(metric, chosen, *names)
            by = found
            if metric in COSTS and statistic in ("best", "worst"):
                by, other = self.values("accuracy", chosen, *names)
                reason = reason or other
            if reason is not None:
                reasons[names] = reason
                continue
            deviation = np.std(found, ddof=1) if found.size > 1 else 0.0
            values[i, j] = {
                "mean": found.mean(),
                "sd": deviation,
                "median": np.median(found),
                "best": found[by.argmax()],
                "worst": found[by.argmin()],
            }[statistic]
            if statistic == "mean":
                spreads[i, j] = deviation
        first = [self._cells[self.datasets[0], s][0] for s in self.selectors]
        n_splits = [len(self._cells[d, self.selectors[0]]) for d in self.datasets]
        return ScoreTable(
            metric=metric,
            classifier=chosen if metric in SCORES else None,
            statistic=statistic,
            datasets=tuple(self.datasets),
            selectors=tuple(self.selectors),
            values=values,
            spreads=spreads,
            n_splits=tuple(n_splits),
            reasons=reasons,
            rules={r["selector"]: r["label"] for r in first if r["label"] is not None},
        )

    def statistics(
        self,
        metric: str = "accuracy",
        classifier: str | None = None,
        statistic: Statistic = "mean",
        *,
        alpha: float = 0.05,
    ) -> Comparison:
        """Ranks, Friedman, Nemenyi, win/tie/lose, and a conclusion in words.

        Parameters are those of `table`; ``alpha`` is the significance level. Data sets
        on which some selector failed are left out of the ranks, and selectors that
        failed everywhere.
        """
        table = self.table(metric, classifier, statistic)
        repeats = {
            (dataset, selector): self.values(metric, classifier, dataset, selector)[0]
            for dataset in self.datasets
            for selector in self.selectors
        }
        return compare_scores(table, repeats, alpha)

    def stability(
        self,
        method: Literal["yu", "nogueira"] = "yu",
        classifier: str | None = None,
        **options: Any,
    ) -> dict[tuple[str, str], Stability | None]:
        """How much selections agree from split to split; for `Subsamples`.

        Parameters
        ----------
        method : {"yu", "nogueira"}, default="yu"
            As in `featstream.evaluation.stability`.
        classifier : str, optional
            As in `selections`.
        **options
            Further options of `featstream.evaluation.stability`.

        Returns
        -------
        dict of (dataset, selector) to Stability or None
            None where fewer than two splits gave a selection.
        """
        found: dict[tuple[str, str], Stability | None] = {}
        for dataset in self.datasets:
            X = None
            if method == "yu":
                if dataset not in self._tasks:
                    raise DataError(
                        f"Stability by 'yu' compares the values of {dataset!r}, which "
                        "are not at hand. Run the experiment again in the same folder, "
                        "or use method='nogueira'."
                    )
                X = as_task(self._tasks[dataset]).rows().X
            options["n_features"] = self.about["datasets"][dataset]["n_features"]
            for selector in self.selectors:
                sets: list[Any] = self.selections(dataset, selector, classifier)
                found[dataset, selector] = (
                    stability(sets, X, method=method, **options)
                    if len(sets) > 1
                    else None
                )
        return found

    def _classifier(self, name: str | None) -> str:
        if name is None:
            return self.classifiers[0]
        return check_known(name, "classifier", self.classifiers)


def check_known(name: str, what: str, known: Sequence[str] | Mapping[str, Any]) -> str:
    """The name, if it is one of the known ones."""
    if name not in known:
        raise unknown_name(what, name, known)
    return name


def selection_behind(
    record: Mapping[str, Any], scores: Mapping[str, Any]
) -> Mapping[str, Any]:
    """The selection of a cell that was scored: one of several for `BestOf`."""
    for selection in record["selections"]:
        if selection["value"] == scores.get("value", selection["value"]):
            return dict(selection)
    return {}
