"""A comparison for readers: text for a terminal, Markdown, a page, figures, files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from featstream.errors import printable, visible
from featstream.markup import Html, joined, tag
from featstream.reporting import charts
from featstream.reporting.page import cards, facts, figures, page, scrolled, table
from featstream.reporting.plots import plot_critical_difference, plot_scores

if TYPE_CHECKING:
    from featstream.evaluation import ExperimentResult, ScoreTable


_WIDTH = 88


def comparison_tables(result: ExperimentResult) -> Iterator[ScoreTable]:
    """The tables of a comparison, in the order in which they are shown."""
    is_repeated = any(n > 1 for n in result.table().n_splits)
    for classifier in result.classifiers:
        yield result.table("accuracy", classifier)
        if is_repeated:
            yield result.table("accuracy", classifier, "best")
    for classifier in result.classifiers:
        yield result.table("balanced_accuracy", classifier)
    costs = ["n_features", "seconds", "memory"]
    if any(row["n_groups"] is not None for row in result.rows()):
        costs.insert(1, "n_groups")
    for metric in costs:
        yield result.table(metric)


def comparison_text(result: ExperimentResult, width: int | None = None) -> str:
    """Tables, statistics and conclusions for a terminal of some width.

    Balanced accuracy and memory are only in the files of `write_comparison`.
    """
    hidden = ("balanced_accuracy", "memory")
    parts = _targets(result)
    parts += [
        "\n".join(table.lines(width))
        for table in comparison_tables(result)
        if table.metric not in hidden
    ]
    for *lines, conclusion in _conclusions(result):
        parts.append("\n".join([*lines, fill(conclusion, width or _WIDTH)]))
    for lines in (_stability_lines(result), comparison_notes(result)):
        parts += ["\n".join(lines)] if lines else []
    return "\n\n".join(parts)


def comparison_markdown(result: ExperimentResult) -> str:
    """Tables, statistics, conclusions and provenance as a Markdown document."""
    heads, rows = _datasets(result)
    cells = [heads, ["---", *["---:"] * 3, "---", "---"]]
    cells += [[*map(_cell, row[:-1]), f"`{row[-1]}`"] for row in rows]
    listed = "\n".join(f"| {' | '.join(line)} |" for line in cells)
    parts = ["# Comparison of selectors", listed]
    parts += [table.to_markdown() for table in comparison_tables(result)]
    for title, *lines, conclusion in _conclusions(result):
        parts += [f"## {title}", _bullets(lines), conclusion]
    title, *lines = _stability_lines(result) or [""]
    if title:
        parts += [f"## {title}", _bullets(lines)]
    origin = [f"{name}: {value}" for name, value in _origin(result)]
    parts += ["## Provenance", _bullets(origin)]
    return "\n\n".join(parts) + "\n"


def _cell(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _bullets(lines: list[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _datasets(result: ExperimentResult) -> tuple[list[str], list[list[Any]]]:
    """A table of the data sets: heads, and one row each."""
    rows = []
    for name, about in result.about["datasets"].items():
        sizes = [about[size] for size in ("n_samples", "n_features", "n_classes")]
        rows.append([name, *sizes, about.get("target") or "–", about["protocol"]])
    return ["data set", "samples", "features", "classes", "target", "splits"], rows


def _origin(result: ExperimentResult) -> list[tuple[str, object]]:
    """Where, when and how the comparison was made."""
    settings, origin = result.about["settings"], result.about["provenance"]
    limits = [
        f"{settings[name]:,} {unit}"
        for name, unit in (("time_limit", "s"), ("memory_limit", "bytes"))
        if settings[name]
    ]
    return [
        ("Date", origin["date"]),
        ("Machine", f"{origin['platform']}, {origin['n_cores']} cores"),
        ("Cells at a time", origin["n_jobs"]),
        ("Seed", settings["seed"]),
        ("Limits of a cell", ", ".join(limits) or "none"),
        ("Versions", ", ".join(f"{k} {v}" for k, v in origin["versions"].items())),
    ]


def write_comparison(
    result: ExperimentResult, folder: str | os.PathLike[str]
) -> list[Path]:
    """Write ``results.csv`` and ``tables.md``, and return the paths.

    With pyarrow also ``results.parquet``; with matplotlib also figures.
    """
    folder = Path(folder)
    written = [folder / "results.csv", folder / "tables.md"]
    result.to_csv(written[0])
    written[1].write_text(comparison_markdown(result), encoding="utf-8")
    if find_spec("pyarrow") is not None:
        written.append(folder / "results.parquet")
        result.to_parquet(written[-1])
    if find_spec("matplotlib") is not None:
        written += _write_figures(result, folder)
    return written


def _write_figures(result: ExperimentResult, folder: Path) -> Iterator[Path]:
    import matplotlib.pyplot as plt

    def save(ax: Any, path: Path) -> Path:
        figure = ax.get_figure()
        figure.savefig(path, dpi=150, bbox_inches="tight")
        plt.close(figure)
        return path

    for kind in ("accuracy", "critical-difference"):
        for path in folder.glob(f"{kind}-*.png"):  # of an earlier run
            path.unlink()
    for classifier in result.classifiers:
        name = "".join(c if c.isalnum() or c in "-_" else "-" for c in classifier)
        ax = plot_scores(result.table("accuracy", classifier))
        yield save(ax, folder / f"accuracy-{name}.png")
        found = result.statistics("accuracy", classifier)
        if (test := found.nemenyi) is not None:
            ranks, distance = test.average_ranks, test.critical_difference
            ax = plot_critical_difference(ranks, distance, found.selectors)
            yield save(ax, folder / f"critical-difference-{name}.png")


def _conclusions(result: ExperimentResult) -> Iterator[list[str]]:
    """Title, figures and the conclusion, by each classifier."""
    for classifier in result.classifiers:
        found = result.statistics("accuracy", classifier)
        lines = [f"Accuracy of {classifier}: what follows"]
        if found.friedman is not None and found.nemenyi is not None:
            test, distance = found.friedman, found.nemenyi.critical_difference
            lines.append(
                f"Friedman: chi2 = {test.chi2:.3f} (p = {test.chi2_p_value:.3g}), "
                f"F = {test.f:.3f} (p = {test.p_value:.3g})"
            )
            lines.append(f"Nemenyi: critical difference {distance:.3f}")
        rivals = found.selectors[1:]
        if rivals:
            first = found.selectors[0]
            wins = [f"{rival} {found.win_tie_lose[first, rival]}" for rival in rivals]
            lines.append(f"{first} wins/ties/loses against: {', '.join(wins)}")
        yield [*lines, found.conclusion]


def split_by(result: ExperimentResult, protocol: str) -> list[str]:
    """The data sets that were split in this way."""
    about = result.about["datasets"]
    return [name for name in about if about[name]["protocol"].startswith(protocol)]


def _stability_lines(result: ExperimentResult) -> list[str]:
    """Title, and a line for each data set of which subsamples were taken, if any."""
    lines: dict[str, list[str]] = {}
    datasets = split_by(result, "Subsamples")
    stability = result.stability("nogueira") if datasets else {}
    for (dataset, selector), found in stability.items():
        if found is not None and dataset in datasets:
            interval = f"[{found.lower:.2f}, {found.upper:.2f}]"
            text = f"{selector} {found.value:.2f} {interval}"
            lines.setdefault(dataset, []).append(text)
    if not lines:
        return []
    title = "Stability of the selections (Nogueira et al. 2018) with 95% intervals"
    return [title, *(f"{name}: {', '.join(own)}" for name, own in lines.items())]


def comparison_notes(result: ExperimentResult) -> list[str]:
    """The notes below all tables, each once."""
    notes = [f"{name}: {rule}" for name, rule in result.table().rules.items()]
    failed, reasons = result.table("n_features").reasons, dict[str, None]()
    for classifier in result.classifiers:
        table = result.table("accuracy", classifier)
        for (dataset, selector), reason in table.reasons.items():
            has_failed = (dataset, selector) in failed
            who = selector if has_failed else f"{classifier} after {selector}"
            reasons[f"- {who} on {dataset}: {reason}"] = None
    rows = result.rows()
    n_empty = sum(row["note"] is not None for row in rows)
    if n_empty:
        notes.append(
            f"{n_empty} of {len(rows)} scores are of an empty selection, scored as the "
            "majority class."
        )
    return [*notes, *reasons]


def _targets(result: ExperimentResult) -> list[str]:
    """One paragraph with the target of each data set that has a name for it."""
    lines = [
        f"{name}: target {printable(facts['target'])}, {facts['n_classes']} classes"
        for name, facts in result.about["datasets"].items()
        if facts.get("target") is not None
    ]
    return ["\n".join(lines)] if lines else []


def comparison_page(result: ExperimentResult) -> str:
    """The report of a comparison as HTML."""
    parts = [
        ("overview", "Overview", _overview(result)),
        ("accuracy", "Accuracy", figures(*_accuracy(result))),
        ("cost", "Accuracy, size and time", figures(*_costs(result))),
    ]
    stability, orders = list(_stability(result)), list(_orders(result))
    if stability:
        parts.append(("stability", "Stability", figures(*stability)))
    if orders:
        parts.append(("orders", "Order of the features", figures(*orders)))
    parts.append(("tables", "Tables", _tables(result)))
    parts.append(("provenance", "Provenance", _provenance(result)))
    n_selectors, n_sets = len(result.selectors), len(result.datasets)
    title = f"{n_selectors} selectors on {n_sets} data set{'s' * (n_sets > 1)}"
    lead = (
        f"{', '.join(visible(s, 40) for s in result.selectors)}; evaluated by "
        f"{', '.join(visible(c, 40) for c in result.classifiers)} on rows that no "
        "selector has seen."
    )
    return page(title, lead, parts)


def _overview(result: ExperimentResult) -> Html:
    table_ = result.table("accuracy", result.classifiers[0])
    n_splits = f"{sum(table_.n_splits):,} splits"
    numbers = cards(
        ("Selectors", f"{len(result.selectors)}", ""),
        ("Data sets", f"{len(result.datasets)}", ""),
        ("Cells", f"{result.n_cells:,}", n_splits),
        ("Failed", f"{len(result.failures()):,}", "reasons below the tables"),
    )
    items = [
        tag("li", tag("strong", title), *(tag("p", line) for line in lines))
        for title, *lines in _conclusions(result)
    ]
    return figures(numbers, tag("ul", *items, class_="alerts"))


def _accuracy(result: ExperimentResult) -> Iterator[Html]:
    for k, classifier in enumerate(result.classifiers):
        found, name = result.statistics("accuracy", classifier), visible(classifier, 40)
        if (test := found.nemenyi) is not None:
            ranks, distance = test.average_ranks, test.critical_difference
            yield charts.figure(
                f"ranks-{k}",
                f"Average ranks, {name}",
                "Rank 1 is best. Selectors that a bar joins do not differ "
                "significantly (Nemenyi).",
                charts.rank_diagram(ranks, found.selectors, distance),
            )
        scores = result.table("accuracy", classifier)
        intervals = scores.values + [[[0]], [[-1]], [[1]]] * scores.spreads
        yield charts.figure(
            f"accuracy-{k}",
            f"Accuracy of {name}",
            "Mean of the splits, with one standard deviation to each side.",
            charts.dots(intervals, scores.datasets, scores.selectors, "accuracy"),
        )


def _costs(result: ExperimentResult) -> Iterator[Html]:
    classifier = result.classifiers[0]
    accuracy = result.table("accuracy", classifier)
    for metric, label in (
        ("n_features", "selected features"),
        ("seconds", "seconds of selection"),
        ("n_groups", "selected groups"),
    ):
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
        if points or metric != "n_groups":
            yield charts.figure(
                f"scatter-{metric}",
                f"Accuracy against {label}",
                f"One mark per selector and data set; {visible(classifier, 40)}. Up "
                "and to the left is better.",
                charts.scatter(points, result.selectors, label),
            )


Interval = tuple[float, float, float]
_NOTHING = (np.nan, np.nan, np.nan)


def _intervals(
    result: ExperimentResult,
    datasets: list[str],
    label: str,
    interval: Callable[[str, str], Interval],
) -> charts.Draw:
    """Draw value, lowest and highest, for each data set and selector."""
    found = [[interval(d, s) for s in result.selectors] for d in datasets]
    values = np.moveaxis(np.array(found, float), 2, 0)
    return charts.dots(values, datasets, result.selectors, label)


def _stability(result: ExperimentResult) -> Iterator[Html]:
    datasets = split_by(result, "Subsamples")
    if not datasets:
        return
    found = result.stability("nogueira")

    def interval(dataset: str, selector: str) -> Interval:
        own = found[dataset, selector]
        if own is None or own.lower is None or own.upper is None:
            return _NOTHING
        return own.value, own.lower, own.upper

    yield charts.figure(
        "stability",
        "Stability of the selections",
        "Agreement of the features selected from subsamples, corrected for chance "
        "(Nogueira et al. 2018), with 95% intervals. 1 is always the same.",
        _intervals(result, datasets, "stability", interval),
    )


def _orders(result: ExperimentResult) -> Iterator[Html]:
    datasets = split_by(result, "FeatureOrders")
    titles = {"accuracy": "Accuracy", "n_features": "Number of selected features"}

    def interval(metric: str, dataset: str, selector: str) -> Interval:
        own, _ = result.values(metric, result.classifiers[0], dataset, selector)
        own = own[np.isfinite(own)]
        if not own.size:
            return _NOTHING
        return float(np.median(own)), float(own.min()), float(own.max())

    for metric, title in titles.items() if datasets else ():
        yield charts.figure(
            f"orders-{metric}",
            f"{title} under other orders",
            "The features arrived in random orders: median, least and greatest value. "
            "A short line means that the order matters little.",
            _intervals(result, datasets, title.lower(), partial(interval, metric)),
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
    heads, rows = _datasets(result)
    for row in rows:
        row[0], row[4] = visible(row[0], 80), visible(row[4], 80)
    body = table([head.capitalize() for head in heads], rows, minor=(4, 5))
    origin = tag("div", facts(_origin(result)), class_="panel")
    return joined([scrolled(body, "Data sets"), origin])
