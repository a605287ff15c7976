"""What a comparison found: tidy rows, tables, statistics."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, Literal

import numpy as np

from featstream.errors import DataError, MissingExtraError, ParameterError, unknown_name
from featstream.evaluation.score_table import Comparison, ScoreTable, compare_scores
from featstream.evaluation.stability import Stability, stability
from featstream.evaluation.tasks import as_task
from featstream.protocols import FloatArray, IntArray

__all__ = ["METRICS", "ExperimentResult"]

SCORES = ("accuracy", "balanced_accuracy", "auc", "auc_hard")
COSTS = ("n_features", "n_groups", "seconds", "memory")
METRICS = (*SCORES, *COSTS)
"""What is measured: of predictions, and of the selection alone."""

Statistic = Literal["mean", "sd", "median", "best", "worst"]
STATISTICS = ("mean", "sd", "median", "best", "worst")


class ExperimentResult:
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
        *,
        selectors: Sequence[str],
        datasets: Sequence[str],
        classifiers: Mapping[str, str],
        about: Mapping[str, Any],
        tasks: Mapping[str, Any] | None = None,
    ) -> None:
        self.selectors, self.datasets = list(selectors), list(datasets)
        self.classifiers = list(classifiers)
        self.about = dict(about)
        self._keys = dict(classifiers)
        self._tasks = dict(tasks or {})
        self._cells: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
        for record in records:
            place = record["dataset"], record["selector"]
            self._cells.setdefault(place, []).append(record)

    def __repr__(self) -> str:
        return (
            f"ExperimentResult({len(self.selectors)} selectors × {len(self.datasets)} "
            f"data sets · {self.n_cells} cells, {len(self.failures())} failed)"
        )

    @property
    def n_cells(self) -> int:
        """How many times features were to be selected."""
        return sum(map(len, self._cells.values()))

    def rows(self) -> list[dict[str, Any]]:
        """One row for each data set, split, selector and classifier, tidy."""
        return [
            self._row(record, classifier)
            for dataset in self.datasets
            for selector in self.selectors
            for record in self._cells[dataset, selector]
            for classifier in self.classifiers
        ]

    def _row(self, record: Mapping[str, Any], classifier: str) -> dict[str, Any]:
        scores = record["scores"].get(self._keys[classifier], {})
        selection = chosen_of(record, scores)
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
        """The tidy rows as a data frame.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, default="pandas"
            Which library's frame to make.
        """
        import narwhals as nw

        columns = as_columns(self.rows())
        return nw.from_dict(columns, backend=backend).to_native()  # type: ignore[arg-type]

    def as_csv(self) -> str:
        """The tidy rows as text."""
        text = io.StringIO(newline="")
        rows = self.rows()
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return text.getvalue()

    def to_csv(self, path: str | PathLike[str]) -> None:
        """Write the tidy rows."""
        with open(path, "w", newline="", encoding="utf-8") as file:
            file.write(self.as_csv())

    def to_parquet(self, path: str | PathLike[str]) -> None:
        """Write the tidy rows, with settings and provenance in the file's metadata."""
        import json

        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError:
            raise MissingExtraError(
                "Writing parquet needs pyarrow. Install it: pip install "
                "featstream[frames], or use to_csv."
            ) from None
        table = pa.table(as_columns(self.rows()))
        pq.write_table(
            table.replace_schema_metadata({"featstream": json.dumps(self.about)}), path
        )

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
        """What was selected in each split that did not fail.

        Parameters
        ----------
        dataset, selector : str
            Which.
        classifier : str, optional
            Whose choice, for the best of several; the first by default.
        """
        self._check(dataset, "data set", self.datasets)
        self._check(selector, "selector", self.selectors)
        key = self._keys[self._classifier(classifier)]
        return [
            np.array(chosen_of(r, r["scores"].get(key, {}))["selected"], np.int64)
            for r in self._cells[dataset, selector]
            if not r["reason"]
        ]

    def values(
        self, metric: str, classifier: str | None, dataset: str, selector: str
    ) -> tuple[FloatArray, str | None]:
        """A metric in every split, and why some are missing if so.

        Parameters
        ----------
        metric, classifier : as in `table`
            What.
        dataset, selector : str
            Where.

        Returns
        -------
        values : ndarray of shape (n_splits,)
            NaN where it is missing.
        reason : str or None
            Why, if any is.
        """
        rows = [
            self._row(record, self._classifier(classifier))
            for record in self._cells[dataset, selector]
        ]
        found = np.array(
            [math.nan if row[metric] is None else row[metric] for row in rows], float
        )
        reasons = [
            row["reason"] or "not measured"
            for row, value in zip(rows, found, strict=True)
            if math.isnan(value)
        ]
        if not reasons:
            return found, None
        reason = "; ".join(dict.fromkeys(reasons))
        if len(reasons) < len(rows):
            reason = f"{len(reasons)} of {len(rows)} splits failed: {reason}"
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
            Who judged; the first by default. Of the selection's own figures it
            matters for the best of several only.
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
        self._check(metric, "metric", METRICS)
        self._check(statistic, "statistic", STATISTICS)
        classifier = self._classifier(classifier)
        shape = len(self.datasets), len(self.selectors)
        values, spreads = np.full(shape, np.nan), np.full(shape, np.nan)
        reasons: dict[tuple[str, str], str] = {}
        for i, dataset in enumerate(self.datasets):
            for j, selector in enumerate(self.selectors):
                found, reason = self.values(metric, classifier, dataset, selector)
                by = found
                if metric in COSTS and statistic in ("best", "worst"):
                    by, other = self.values("accuracy", classifier, dataset, selector)
                    reason = reason or other
                if reason is not None:
                    reasons[dataset, selector] = reason
                    continue
                values[i, j] = summarise(found, statistic, by)
                if statistic == "mean":
                    spreads[i, j] = deviation(found)
        return ScoreTable(
            metric=metric,
            classifier=classifier if metric in SCORES else None,
            statistic=statistic,
            datasets=tuple(self.datasets),
            selectors=tuple(self.selectors),
            values=values,
            spreads=spreads,
            n_splits=tuple(
                len(self._cells[d, self.selectors[0]]) for d in self.datasets
            ),
            reasons=reasons,
            rules=self._rules(),
        )

    def _rules(self) -> dict[str, str]:
        """Selectors whose parameter was chosen, and how."""
        first = self.datasets[0]
        rules = {s: self._cells[first, s][0]["label"] for s in self.selectors}
        return {s: rule for s, rule in rules.items() if rule is not None}

    def statistics(
        self,
        metric: str = "accuracy",
        classifier: str | None = None,
        statistic: Statistic = "mean",
        *,
        alpha: float = 0.05,
    ) -> Comparison:
        """Ranks, Friedman, Nemenyi, win/tie/lose, and what they come to.

        Data sets on which some selector failed are left out of the ranks, and
        selectors that failed everywhere.

        Parameters
        ----------
        metric, classifier, statistic : as in `table`
            What is compared.
        alpha : float, default=0.05
            Significance level.
        """
        table = self.table(metric, classifier, statistic)
        repeats = {
            (dataset, selector): self.values(metric, classifier, dataset, selector)[0]
            for dataset in self.datasets
            for selector in self.selectors
        }
        return compare_scores(table, repeats, alpha=alpha)

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
                X = self._matrix(dataset)
            n_features = self.about["datasets"][dataset]["n_features"]
            for selector in self.selectors:
                sets = self.selections(dataset, selector, classifier)
                found[dataset, selector] = None
                if len(sets) > 1:
                    found[dataset, selector] = stability(
                        [s.tolist() for s in sets],
                        X,
                        method=method,
                        n_features=n_features,
                        **options,
                    )
        return found

    def _matrix(self, dataset: str) -> Any:
        if dataset not in self._tasks:
            raise DataError(
                f"The values of {dataset!r} are not at hand, which stability by 'yu' "
                "compares. Run the experiment again in the same folder, or use "
                "method='nogueira'."
            )
        return as_task(self._tasks[dataset]).rows().X

    def _classifier(self, name: str | None) -> str:
        if name is None:
            return self.classifiers[0]
        self._check(name, "classifier", self.classifiers)
        return name

    def _check(self, name: Any, what: str, known: Sequence[str]) -> None:
        if name not in known:
            raise unknown_name(what, name, known)


def chosen_of(
    record: Mapping[str, Any], scores: Mapping[str, Any]
) -> Mapping[str, Any]:
    """The selection that scores are about."""
    for selection in record["selections"]:
        if selection["value"] == scores.get("value", selection["value"]):
            return dict(selection)
    return {}


def deviation(values: FloatArray) -> float:
    """Standard deviation of a sample; 0 for a single value."""
    return float(np.std(values, ddof=1)) if values.size > 1 else 0.0


def summarise(values: FloatArray, statistic: Statistic, by: FloatArray) -> float:
    """One number for the splits; the best and worst are those of ``by``."""
    if statistic == "best":
        return float(values[np.argmax(by)])
    if statistic == "worst":
        return float(values[np.argmin(by)])
    if statistic == "sd":
        return deviation(values)
    return float(np.median(values) if statistic == "median" else np.mean(values))


def as_columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Rows turned on their side."""
    if not rows:
        raise ParameterError("There are no results.")
    return {name: [row[name] for row in rows] for name in rows[0]}
