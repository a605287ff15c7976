"""The report of a comparison: one HTML file with ranks, scores, costs, stability."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from featstream.markup import Html, joined, tag, visible
from featstream.reporting import charts
from featstream.reporting.markdown import (
    comparison_notes,
    comparison_tables,
    split_by,
    statistics_lines,
)
from featstream.reporting.page import cards, facts, figures, page, scrolled, table

if TYPE_CHECKING:
    from featstream.evaluation import ExperimentResult


def comparison_page(result: ExperimentResult) -> str:
    """The report of a comparison as HTML."""
    parts = [
        ("overview", "Overview", _overview(result)),
        ("accuracy", "Accuracy", figures(*_accuracy(result))),
        ("cost", "Accuracy, size and time", figures(*_costs(result))),
    ]
    for name, title, drawing in (
        ("stability", "Stability", _stability(result)),
        ("orders", "Order of the features", _orders(result)),
        ("groups", "Groups", _groups(result)),
    ):
        drawn = list(drawing)
        if drawn:
            parts.append((name, title, figures(*drawn)))
    parts.append(("tables", "Tables", _tables(result)))
    parts.append(("provenance", "Provenance", _provenance(result)))
    title = (
        f"{len(result.selectors)} selectors on {len(result.datasets)} data "
        f"set{'s' * (len(result.datasets) > 1)}"
    )
    lead = (
        f"{', '.join(visible(s, 40) for s in result.selectors)}; evaluated by "
        f"{', '.join(visible(c, 40) for c in result.classifiers)} on rows that no "
        "selector has seen."
    )
    return page(title, lead, parts)


def _overview(result: ExperimentResult) -> Html:
    table_ = result.table("accuracy", result.classifiers[0])
    n_failed = len(result.failures())
    entries = [
        ("Selectors", f"{len(result.selectors)}", "", None),
        ("Data sets", f"{len(result.datasets)}", "", None),
        ("Cells", f"{result.n_cells:,}", f"{sum(table_.n_splits):,} splits", None),
        ("Failed", f"{n_failed:,}", "reasons below the tables", None),
    ]
    items = []
    for classifier in result.classifiers:
        title, *lines = statistics_lines(result.statistics("accuracy", classifier))
        said = [tag("p", line) for line in lines]
        items.append(tag("li", tag("strong", title), *said))
    return figures(cards(entries, "cards"), tag("ul", *items, class_="alerts"))


def _accuracy(result: ExperimentResult) -> Iterator[Html]:
    for k, classifier in enumerate(result.classifiers):
        found = result.statistics("accuracy", classifier)
        if found.nemenyi is not None:
            yield charts.ranks_figure(
                f"ranks-{k}",
                f"Average ranks, {visible(classifier, 40)}",
                "Rank 1 is best. Selectors that a bar joins do not differ "
                "significantly (Nemenyi).",
                found.nemenyi.average_ranks,
                found.selectors,
                found.nemenyi.critical_difference,
            )
        scores = result.table("accuracy", classifier)
        yield charts.dots_figure(
            f"accuracy-{k}",
            f"Accuracy of {visible(classifier, 40)}",
            "Mean of the splits, with one standard deviation to each side.",
            scores.values,
            scores.datasets,
            scores.selectors,
            scores.values - scores.spreads,
            scores.values + scores.spreads,
            "accuracy",
        )


def _costs(result: ExperimentResult) -> Iterator[Html]:
    classifier = result.classifiers[0]
    accuracy = result.table("accuracy", classifier)
    words = {"n_features": "selected features", "seconds": "seconds of selection"}
    for metric, label in words.items():
        cost = result.table(metric, classifier)
        points = [
            (
                float(cost.values[i, j]),
                float(accuracy.values[i, j]),
                j,
                f"{visible(selector, 40)} on {visible(dataset, 40)}: accuracy "
                f"{accuracy.text(dataset, selector)}, {label} "
                f"{cost.text(dataset, selector)}",
            )
            for i, dataset in enumerate(result.datasets)
            for j, selector in enumerate(result.selectors)
            if np.isfinite(cost.values[i, j]) and np.isfinite(accuracy.values[i, j])
        ]
        yield charts.scatter_figure(
            f"scatter-{metric}",
            f"Accuracy against {label}",
            f"One mark per selector and data set; {visible(classifier, 40)}. Up and "
            "to the left is better.",
            points,
            result.selectors,
            label,
        )


Interval = tuple[float, float, float]


def _intervals(
    result: ExperimentResult,
    datasets: list[str],
    interval: Callable[[str, str], Interval],
) -> dict[str, Any]:
    """Data sets, selectors, and a value, the lowest and the highest of each pair."""
    found = [[interval(d, s) for s in result.selectors] for d in datasets]
    values, low, high = np.moveaxis(np.array(found, float), 2, 0)
    names = {"rows": datasets, "methods": result.selectors}
    return {"values": values, "low": low, "high": high, **names}


def _stability(result: ExperimentResult) -> Iterator[Html]:
    datasets = split_by(result, "Subsamples")
    if not datasets:
        return
    found = result.stability("nogueira")

    def interval(dataset: str, selector: str) -> Interval:
        own = found[dataset, selector]
        if own is None or own.lower is None or own.upper is None:
            return np.nan, np.nan, np.nan
        return own.value, own.lower, own.upper

    yield charts.dots_figure(
        "stability",
        "Stability of the selections",
        "Agreement of the features selected from subsamples, corrected for chance "
        "(Nogueira et al. 2018), with 95% intervals. 1 is always the same.",
        **_intervals(result, datasets, interval),
        label="stability",
    )


def _orders(result: ExperimentResult) -> Iterator[Html]:
    datasets = split_by(result, "FeatureOrders")
    titles = {"accuracy": "Accuracy", "n_features": "Number of selected features"}

    def interval(metric: str, dataset: str, selector: str) -> Interval:
        own, _ = result.values(metric, result.classifiers[0], dataset, selector)
        own = own[np.isfinite(own)]
        if not own.size:
            return np.nan, np.nan, np.nan
        return float(np.median(own)), float(own.min()), float(own.max())

    for metric, title in titles.items() if datasets else ():
        yield charts.dots_figure(
            f"orders-{metric}",
            f"{title} under other orders",
            "The features arrived in random orders: median, least and greatest value. "
            "A short line means that the order matters little.",
            **_intervals(result, datasets, partial(interval, metric)),
            label=title.lower(),
        )


def _groups(result: ExperimentResult) -> Iterator[Html]:
    """Groups kept against accuracy, as in Figures 18 and 19 of the paper."""
    classifier = result.classifiers[0]
    points = []
    for row in result.rows():
        if row["n_groups"] is None or row["accuracy"] is None:
            continue
        if row["classifier"] == classifier:
            who = f"{visible(row['selector'], 40)} on {visible(row['dataset'], 40)}"
            tip = f"{who}: {row['n_groups']:,} groups, accuracy {row['accuracy']:.4f}"
            method = result.selectors.index(row["selector"])
            points.append((float(row["n_groups"]), row["accuracy"], method, tip))
    if points:
        yield charts.scatter_figure(
            "groups",
            "Accuracy against groups kept",
            f"One mark per selector, data set and split; {visible(classifier, 40)}.",
            points,
            result.selectors,
            "groups kept",
        )


def _tables(result: ExperimentResult) -> Html:
    parts = []
    for scores in comparison_tables(result):
        rows = [
            [
                visible(dataset, 80),
                *(
                    (scores.value(dataset, selector), scores.text(dataset, selector))
                    for selector in scores.selectors
                ),
            ]
            for dataset in scores.datasets
        ]
        heads = ["data set", *(visible(s, 40) for s in scores.selectors)]
        body = scrolled(table(heads, rows, can_sort=True), scores.title)
        parts.append(tag("div", tag("h3", scores.title), body))
    notes = [
        tag("li", visible(note.removeprefix("- "), 600))
        for note in comparison_notes(result)
    ]
    if notes:
        parts.append(tag("ul", *notes, class_="notes"))
    return figures(*parts)


def _provenance(result: ExperimentResult) -> Html:
    settings, origin = result.about["settings"], result.about["provenance"]
    versions = ", ".join(f"{name} {v}" for name, v in origin["versions"].items())
    rows = [
        [
            visible(name, 80),
            about["n_samples"],
            about["n_features"],
            about["n_classes"],
            visible(about.get("target") or "–", 80),
            about["protocol"],
        ]
        for name, about in result.about["datasets"].items()
    ]
    heads = ["Data set", "Samples", "Features", "Classes", "Target", "Splits"]
    limits = [
        f"{settings[name]:,} {unit}"
        for name, unit in (("time_limit", "s"), ("memory_limit", "bytes"))
        if settings[name]
    ]
    return joined(
        [
            scrolled(table(heads, rows, minor=(4, 5)), "Data sets"),
            tag(
                "div",
                facts(
                    [
                        ("Date", origin["date"]),
                        ("Machine", f"{origin['platform']}, {origin['n_cores']} cores"),
                        ("Cells at a time", origin["n_jobs"]),
                        ("Seed", settings["seed"]),
                        ("Limits of a cell", ", ".join(limits) or "none"),
                        ("Versions", versions),
                    ]
                ),
                class_="panel",
            ),
        ]
    )
