"""A comparison for readers: text for a terminal, Markdown, a page, figures, files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from featstream.errors import printable, visible
from featstream.markup import Html, markdown_table, tag
from featstream.reporting import charts
from featstream.reporting.page import cards, facts, page, table
from featstream.reporting.plots import (
    plot_critical_difference,
    plot_scores,
    stability_intervals,
)

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
    tables = comparison_tables(result)
    parts = [_targets(result)]
    parts += [table.lines(width) for table in tables if table.metric not in hidden]
    for *lines, conclusion in _conclusions(result):
        parts.append([*lines, fill(conclusion, width or _WIDTH)])
    parts += [_stability_lines(result), comparison_notes(result)]
    return "\n\n".join("\n".join(lines) for lines in parts if lines)


def comparison_markdown(result: ExperimentResult) -> str:
    """Tables, statistics, conclusions and provenance as a Markdown document."""
    heads, rows = _datasets(result)
    cells = [
        [*(f"{n:,}" if isinstance(n, int) else n for n in row[:-1]), f"`{row[-1]}`"]
        for row in rows
    ]
    parts = ["# Comparison of selectors", markdown_table(heads, cells)]
    parts += [table.to_markdown() for table in comparison_tables(result)]
    for title, *lines, conclusion in _conclusions(result):
        parts += [f"## {title}", _bullets(lines), conclusion]
    if stable := _stability_lines(result):
        parts += [f"## {stable[0]}", _bullets(stable[1:])]
    origin = [f"{name}: {value}" for name, value in _origin(result)]
    parts += ["## Provenance", _bullets(origin)]
    return "\n\n".join(parts) + "\n"


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
    """The target of each data set that has a name for it."""
    return [
        f"{name}: target {printable(facts['target'])}, {facts['n_classes']} classes"
        for name, facts in result.about["datasets"].items()
        if facts.get("target") is not None
    ]


def comparison_page(result: ExperimentResult) -> str:
    """The report of a comparison as HTML."""
    sections = [
        ("overview", "Overview", _overview(result)),
        ("accuracy", "Accuracy", list(_accuracy(result))),
        ("cost", "Accuracy, size and time", list(_costs(result))),
        ("stability", "Stability", _stability(result)),
        ("orders", "Order of the features", _orders(result)),
        ("tables", "Tables", _tables(result)),
        ("provenance", "Provenance", _provenance(result)),
    ]
    n_selectors, n_sets = len(result.selectors), len(result.datasets)
    title = f"{n_selectors} selectors on {n_sets} data set{'s' * (n_sets > 1)}"
    selectors, classifiers = (
        ", ".join(visible(name, 40) for name in names)
        for names in (result.selectors, result.classifiers)
    )
    lead = f"{selectors}; evaluated by {classifiers} on rows that no selector has seen."
    return page(title, lead, sections)


def _overview(result: ExperimentResult) -> list[Html]:
    n_splits = sum(result.table().n_splits)
    numbers = cards(
        ("Selectors", f"{len(result.selectors)}", ""),
        ("Data sets", f"{len(result.datasets)}", ""),
        ("Cells", f"{result.n_cells:,}", f"{n_splits:,} splits"),
        ("Failed", f"{len(result.failures()):,}", "reasons below the tables"),
    )
    items = [
        tag("li", tag("strong", title), *(tag("p", line) for line in lines))
        for title, *lines in _conclusions(result)
    ]
    return [numbers, tag("ul", *items, class_="alerts")]


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
        yield charts.dots_figure(
            f"accuracy-{k}",
            f"Accuracy of {name}",
            "Mean of the splits, with one standard deviation to each side.",
            intervals,
            scores.datasets,
            scores.selectors,
            "accuracy",
        )


def _costs(result: ExperimentResult) -> Iterator[Html]:
    classifier, selectors = result.classifiers[0], result.selectors
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
            for j, selector in enumerate(selectors)
            if np.isfinite(cost.values[i, j] + accuracy.values[i, j])
        ]
        if points or metric != "n_groups":
            yield charts.figure(
                f"scatter-{metric}",
                f"Accuracy against {label}",
                f"One mark per selector and data set; {visible(classifier, 40)}. Up "
                "and to the left is better.",
                charts.scatter(points, label),
                charts.legend_of(selectors),
            )


def _stability(result: ExperimentResult) -> list[Html]:
    datasets = split_by(result, "Subsamples")
    if not datasets:
        return []
    drawn = charts.dots_figure(
        "stability",
        "Stability of the selections",
        "Agreement of the features selected from subsamples, corrected for chance "
        "(Nogueira et al. 2018), with 95% intervals. 1 is always the same.",
        stability_intervals(result, datasets),
        datasets,
        result.selectors,
        "stability",
    )
    return [drawn]


def _orders(result: ExperimentResult) -> list[Html]:
    datasets, selectors = split_by(result, "FeatureOrders"), result.selectors
    titles = {"accuracy": "Accuracy", "n_features": "Number of selected features"}
    drawn = []
    for metric, title in titles.items() if datasets else ():
        intervals = np.full((3, len(datasets), len(selectors)), np.nan)
        for i, j in np.ndindex(intervals.shape[1:]):
            place = result.classifiers[0], datasets[i], selectors[j]
            own = result.values(metric, *place)[0]
            if np.isfinite(own).any():
                intervals[:, i, j] = np.nanquantile(own, [0.5, 0, 1])
        drawn.append(
            charts.dots_figure(
                f"orders-{metric}",
                f"{title} under other orders",
                "The features arrived in random orders: median, least and greatest "
                "value. A short line means that the order matters little.",
                intervals,
                datasets,
                selectors,
                title.lower(),
            )
        )
    return drawn


def _tables(result: ExperimentResult) -> list[Html]:
    parts = []
    for scores in comparison_tables(result):
        heads = ["data set", *(visible(s, 40) for s in scores.selectors)]
        rows = []
        for dataset in scores.datasets:
            places = [(dataset, selector) for selector in scores.selectors]
            cells = [(scores.value(*place), scores.text(*place)) for place in places]
            rows.append([visible(dataset, 80), *cells])
        body = table(heads, rows, label=scores.title)
        parts.append(tag("div", tag("h3", scores.title), body))
    notes = [
        tag("li", visible(note.removeprefix("- "), 600))
        for note in comparison_notes(result)
    ]
    return [*parts, tag("ul", *notes, class_="notes")] if notes else parts


def _provenance(result: ExperimentResult) -> list[Html]:
    heads, rows = _datasets(result)
    for row in rows:
        row[0], row[4] = visible(row[0], 80), visible(row[4], 80)
    heads = [head.capitalize() for head in heads]
    body = table(heads, rows, label="Data sets", minor=("Target", "Splits"))
    return [body, tag("div", facts(_origin(result)), class_="panel")]
