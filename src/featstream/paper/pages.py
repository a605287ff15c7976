"""What `featstream paper run` writes: one page per table, figures, and a summary."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from featstream.markup import csv_text, markdown_table
from featstream.paper import tables
from featstream.paper.datasets import files_of_dataset
from featstream.paper.study import CheckedClaim, Findings, Pair, TableComparison
from featstream.paper.tables import METRICS, Exhibit, PaperColumn
from featstream.protocols import FloatArray
from featstream.reporting import plot_critical_difference, plot_dots, plot_sweep

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COUNTS = ("n_features", "n_groups")
_LOG = (*_COUNTS, "seconds")


@dataclass(slots=True)
class Written:
    """The files that were written, and the exhibits with nothing to show."""

    paths: list[Path] = field(default_factory=list)
    obstacles: dict[str, str] = field(default_factory=dict)  # and why


def write_paper(
    findings: Findings, wanted: Sequence[Exhibit], folder: Path, provenance: str
) -> Written:
    """Write tables as Markdown and CSV, figures as PNG, and ``README.md``."""
    written = Written()
    lines: dict[str, list[str]] = {"table": [], "figure": []}
    for exhibit in wanted:
        write = _write_table if exhibit.kind == "table" else _write_figure
        lines[exhibit.kind].append(write(exhibit, findings, folder, written))
    runs = [
        {"design": design} | row
        for (design, _), result in findings.results.items()
        for row in result.rows()
    ]
    summary = _summary(findings, wanted, lines, provenance)
    for name, text in (("results.csv", csv_text(runs)), ("README.md", summary)):
        (folder / name).write_text(text, encoding="utf-8")
        written.paths.append(folder / name)
    return written


def _write_table(
    exhibit: Exhibit, findings: Findings, folder: Path, written: Written
) -> str:
    """Write a table, and give its line in the summary."""
    comparison = TableComparison(exhibit, findings)
    page, numbers = folder / f"{exhibit.name}.md", folder / f"{exhibit.name}.csv"
    text = table_page(comparison)
    for i, checked in enumerate(comparison.claims()):
        if find_spec("matplotlib") is not None:
            path = folder / f"{exhibit.name}-ranks-{i + 1}.png"
            written.paths.append(save_figure(draw_claim(checked), path))
            text += f"\n![Average ranks]({path.name})\n"
    page.write_text(text, encoding="utf-8")
    numbers.write_text(csv_text(table_rows(comparison)), encoding="utf-8")
    written.paths += [page, numbers]
    pairs = [p for p in comparison.pairs.values() if np.isfinite(p.difference)]
    if not pairs:
        written.obstacles[exhibit.name] = f"no data of {', '.join(exhibit.datasets)}"
    n_cells = np.count_nonzero(np.isfinite(comparison.printed.values))
    result = f"{len(pairs)} of {n_cells} numbers compared"
    same = [
        abs(p.difference)
        for p in pairs
        if p.column.metric in ("accuracy", "auc")
        and not findings.about[p.dataset].differs
    ]
    if same:
        gap = float(np.mean(same))
        result += f"; on the paper's own data, mean difference {gap:.3f}"
    return f"- [{exhibit.heading}]({page.name}). {exhibit.title}: {result}."


def _write_figure(
    exhibit: Exhibit, findings: Findings, folder: Path, written: Written
) -> str:
    data, obstacle = FigureData(exhibit, findings), None
    title = f"{exhibit.heading}. {exhibit.title}"
    if not data.drawn:
        obstacle = f"no data of {', '.join(exhibit.datasets)}"
    elif find_spec("matplotlib") is None:
        obstacle = "needs matplotlib: pip install matplotlib"
    path = folder / f"{exhibit.name}.png"
    path.unlink(missing_ok=True)  # of an earlier run with more to show
    if obstacle is not None:
        written.obstacles[exhibit.name] = obstacle
        return f"- {title}: not drawn, {obstacle}."
    written.paths.append(save_figure(draw_figure(data), path))
    dashes = f" `-`: {gaps}." if (gaps := data.gaps()) else ""
    return f"- [{title}]({path.name}).{dashes}"


def _summary(
    findings: Findings,
    wanted: Iterable[Exhibit],
    lines: dict[str, list[str]],
    provenance: str,
) -> str:
    limit = findings.time_limit
    parts = [
        "# The SAOLA paper, run again",
        "Yu, Wu, Ding, Pei: *Scalable and Accurate Online Feature Selection for Big "
        "Data*, ACM TKDD 11(2), 2016. Tables and figures are numbered as printed.",
        provenance,
    ]
    if limit is not None:
        parts.append(
            f"A selection, and each classifier, may take {limit:g} s; what takes "
            "longer is `-`, with the reason below its table or figure."
        )
    top = headline(findings)
    if top:
        parts += ["## SAOLA on the published training and test parts", top]
    for kind, own in lines.items():
        if own:
            parts += [f"## {kind.capitalize()}s", "\n".join(own)]
    rows = []
    for name, about in findings.about.items():
        n, n_test, p = about.shape
        test = f" + {n_test:,}" if n_test else ""
        measure = "Fisher's Z" if about.kind == "continuous" else "SU"
        shown = _marked(name, findings), f"{n:,}{test}", f"{p:,}"
        rows.append([*shown, measure, about.origin])
    head = ["data set", "samples", "features", "measure", "file"]
    table = markdown_table(head, rows) if rows else "None of them is here."
    named = dict.fromkeys(d for exhibit in wanted for d in exhibit.datasets)
    notes = "\n".join(f"- {note}" for note in footnotes(findings, named))
    return "\n\n".join(filter(None, [*parts, "## Data sets", table, notes])) + "\n"


def headline(findings: Findings) -> str:
    """SAOLA on published parts, as a Markdown table; "" without such data sets."""
    columns = [PaperColumn("n_features", "SAOLA")]
    columns += [PaperColumn("accuracy", "SAOLA", name) for name in tables.CLASSIFIERS]
    head = ["data set"]
    for title in ("selected", *tables.CLASSIFIERS):
        head += [title, "paper"]
    rows = []
    for name, about in findings.about.items():
        is_run = ("split", name) in findings.results
        if about.differs or not (is_run and about.is_split):
            continue
        rows.append([name])
        for column in columns:
            metric, judge = column.metric, column.classifier
            ours = findings.value("split", name, "SAOLA", metric, judge).value
            numbers = ours, _printed(name, column)
            rows[-1] += [number_text(number, metric) for number in numbers]
    return markdown_table(head, rows) if rows else ""


def _printed(dataset: str, column: PaperColumn) -> float:
    """What the paper prints, in whichever table."""
    for table in tables.paper_tables():
        if column in table.columns and dataset in table.datasets:
            row = table.values[table.datasets.index(dataset)]
            return float(row[table.columns.index(column)])
    return float("nan")


def table_page(comparison: TableComparison) -> str:
    """A Markdown page about one table."""
    exhibit, findings = comparison.exhibit, comparison.findings
    n_here, n_all = len(comparison.datasets), len(exhibit.datasets)
    has_time = any(column.metric == "seconds" for column in comparison.printed.columns)
    parts = [
        f"# {exhibit.heading} (`{exhibit.label}`): {exhibit.title}",
        f"Section {exhibit.section} of the paper; {n_here} of its {n_all} data sets "
        "are here. Δ is ours less the paper's"
        + ("; for times, how many times faster." if has_time else "."),
    ]
    if comparison.datasets:
        parts += [_panel(panel, comparison) for panel in comparison.panels]
        parts += [_means(panel, comparison) for panel in comparison.panels]
        parts += _statistics(comparison)
    notes = dict.fromkeys(footnotes(findings, exhibit.datasets))
    for (dataset, column), pair in comparison.pairs.items():
        if pair.ours.reason and dataset in comparison.datasets:
            who = f"{column.classifier} after " if column.classifier else ""
            note = f"`-` {who}{column.method} on {dataset}: {pair.ours.reason}."
            notes[note] = None
    parts.append("\n".join(f"- {note}" for note in notes))
    return "\n\n".join(filter(None, parts)) + "\n"


def _title(panel: list[PaperColumn]) -> str:
    """What the columns of a panel compare."""
    metric, classifier = METRICS[panel[0].metric], panel[0].classifier
    return f"{metric}, {classifier}" if classifier else metric


def _panel(panel: list[PaperColumn], comparison: TableComparison) -> str:
    """The numbers of one metric and classifier, ours next to the paper's."""
    head = ["data set"]
    for column in panel:
        head += [_method_name(column), "paper", "Δ"]
    rows = []
    for dataset in comparison.datasets:
        rows.append([_marked(dataset, comparison.findings)])
        for column in panel:
            pair = comparison.pairs[dataset, column]
            is_mean = pair.ours.statistic == "mean"
            ours = number_text(pair.ours.value, column.metric, is_mean=is_mean)
            printed = number_text(pair.printed, column.metric)
            rows[-1] += [ours, printed, difference_text(pair)]
    return f"**{_title(panel)}**\n\n{markdown_table(head, rows)}"


def _means(panel: list[PaperColumn], comparison: TableComparison) -> str:
    """Mean and deviation where the table shows the best of several runs."""
    rows = []
    for dataset in comparison.datasets:
        values = [comparison.pairs[dataset, column].ours for column in panel]
        if any(value.statistic == "best" for value in values):
            rows.append([_marked(dataset, comparison.findings)])
            for value in values:
                numbers = value.mean, value.deviation
                texts = [number_text(x, panel[0].metric, is_mean=True) for x in numbers]
                rows[-1].append("-" if math.isnan(value.mean) else " ± ".join(texts))
    if not rows:
        return ""
    n_runs = 3 if comparison.findings.is_quick else 10
    title = _title(panel)
    what = title if title.startswith("AUC") else title[0].lower() + title[1:]
    head = ["data set", *map(_method_name, panel)]
    return (
        f"Above is the best of {n_runs} random splits, as in the paper. Mean ± "
        f"standard deviation of ours, {what}:\n\n{markdown_table(head, rows)}"
    )


def _statistics(comparison: TableComparison) -> Iterator[str]:
    def listed(ranks: Iterable[float]) -> str:
        return " / ".join(f"{rank:.2f}" for rank in ranks)

    verdict = {True: "rejected", False: "not rejected"}
    ranks = [
        [
            ", ".join(c.claim.methods),
            c.claim.classifier or "mean AUC",
            str(len(c.datasets)),
            listed(c.ranks),
            listed(c.printed_ranks),
            listed(c.claim.ranks),
            f"{c.test.p_value:.3f}",
            verdict[c.test.is_rejected()],
            verdict[c.claim.is_rejected],
            f"{c.critical_difference:.3f}",
        ]
        for c in comparison.claims()
    ]
    if ranks:
        head = ["methods", "classifier", "data sets", "ranks, ours", "paper's, there"]
        head += ["printed, all", "Friedman p, ours", "ours", "the paper", "CD"]
        yield (
            "**Average ranks** (high is good, as in the paper) on the data sets where "
            "all have numbers, and the Friedman test without correction for ties:\n\n"
            + markdown_table(head, ranks)
        )
    wins = list(comparison.wins())
    if wins:
        head = ["", "classifier", "ours", "paper's, there", "printed, all"]
        yield (
            "**Win / tie / lose** by a margin of 0.01, which is what the paper's "
            "counts are:\n\n" + markdown_table(head, wins)
        )


def footnotes(findings: Findings, datasets: Iterable[str]) -> list[str]:
    """What must be known of the data, and what is missing."""
    notes = []
    for name in (name for name in datasets if name in findings.about):
        about = findings.about[name]
        if about.differs:
            notes.append(f"† {name} is not the paper's: {about.differs}.")
        notes += [f"{name}: {note}." for note in about.notes if note != about.differs]
    notes += [
        f"No data: {name}. Put there {files_of_dataset(name)}."
        for name in datasets
        if name not in findings.available
    ]
    if findings.is_quick:
        notes.append("A quick run: three repetitions instead of ten or thirty.")
    return notes


def number_text(value: float, metric: str, *, is_mean: bool = False) -> str:
    """A number as a table prints it.

    >>> number_text(0.76, "accuracy"), number_text(float("nan"), "accuracy")
    ('.7600', '-')
    >>> number_text(21.0, "n_features"), number_text(0.0312, "seconds")
    ('21', '0.031')
    """
    if math.isnan(value):
        return "-"
    if metric in _COUNTS:
        return f"{value:,.1f}" if is_mean else f"{value:,.0f}"
    if metric == "seconds":
        return f"{value:,.0f}" if value >= 100 else f"{value:.2g}"
    return f"{value:.4f}".removeprefix("0")


def difference_text(pair: Pair) -> str:
    """Ours against the paper's.

    >>> from featstream.paper.study import Value
    >>> difference_text(Pair("dexter", PaperColumn("accuracy"), Value(0.76), 0.75))
    '+.0100'
    >>> difference_text(Pair("dexter", PaperColumn("accuracy"), Value(0.75), 0.75001))
    '+.0000'
    >>> difference_text(Pair("dexter", PaperColumn("seconds"), Value(0.03), 3.0))
    '100×'
    """
    metric, difference = pair.column.metric, pair.difference
    if math.isnan(difference):
        return ""
    if metric == "seconds":
        ratio = pair.printed / max(pair.ours.value, 1e-9)
        return f"{ratio:,.0f}×" if ratio >= 10 else f"{ratio:.2g}×"
    if metric in _COUNTS:
        is_whole = float(difference).is_integer()
        return f"{difference:+,.0f}" if is_whole else f"{difference:+,.1f}"
    return f"{round(difference, 4) + 0.0:+.4f}".replace("0.", ".", 1)  # never -0


def table_rows(comparison: TableComparison) -> list[dict[str, object]]:
    """One row per cell of a table, also for those without data."""

    def blank(value: float) -> float | None:
        return None if math.isnan(value) else value

    return [
        {
            "exhibit": comparison.exhibit.name,
            "dataset": pair.dataset,
            "method": _method_name(pair.column),
            "classifier": pair.column.classifier,
            "metric": pair.column.metric,
            "statistic": pair.ours.statistic if pair.ours.reason is None else None,
            "ours": blank(pair.ours.value),
            "mean": blank(pair.ours.mean),
            "sd": pair.ours.deviation if pair.ours.runs.size else None,
            "runs": pair.ours.runs.size or None,
            "paper": blank(pair.printed),
            "difference": blank(pair.difference),
            "reason": pair.ours.reason,
        }
        for pair in comparison.pairs.values()
    ]


def _marked(dataset: str, findings: Findings) -> str:
    about = findings.about.get(dataset)
    return f"{dataset} †" if about is not None and about.differs else dataset


def _method_name(column: PaperColumn) -> str:
    alpha = "" if column.alpha is None else f", α = {column.alpha:g}"
    return f"{column.method}{alpha}"


class FigureData:
    """The numbers that a figure shows, of the data sets that are here."""

    def __init__(self, exhibit: Exhibit, findings: Findings) -> None:
        self.exhibit, self.findings = exhibit, findings
        self.methods = exhibit.methods
        self.datasets = tuple(d for d in exhibit.datasets if d in findings.about)
        self.drawn = self.datasets
        pairs = product(exhibit.metrics, exhibit.classifiers or [None])
        if self.datasets:
            numbers = np.hstack([self.numbers(*pair) for pair in pairs])
            has_number = np.isfinite(numbers).any(axis=1)
            places = np.flatnonzero(has_number)
            self.drawn = tuple(self.datasets[place] for place in places)

    def numbers(
        self, metric: str, classifier: str | None, kind: str = "value"
    ) -> FloatArray:
        """As the paper reports them, or "mean" or "deviation" over the runs.

        A row for each data set that is drawn, and a column for each method.
        """
        value, design = self.findings.value, self.exhibit.design
        rows = [
            [value(design, dataset, m, metric, classifier) for m in self.methods]
            for dataset in self.drawn
        ]
        return np.array([[getattr(number, kind) for number in row] for row in rows])

    def gaps(self) -> str:
        """Why values are missing, by reason and data set; "" if none are."""
        found: dict[str, dict[str, dict[str, None]]]
        found = defaultdict(lambda: defaultdict(dict))
        exhibit = self.exhibit
        for metric, classifier, dataset, method in product(
            exhibit.metrics, exhibit.classifiers or [None], self.datasets, self.methods
        ):
            number = exhibit.design, dataset, method, metric, classifier
            reason = self.findings.value(*number).reason
            if reason is not None:
                found[reason][dataset][method] = None
        return "; ".join(
            f"{reason} ({', '.join(map(self._who, own, own.values()))})"
            for reason, own in found.items()
        )

    def _who(self, dataset: str, methods: Collection[str]) -> str:
        is_all = len(methods) == len(self.methods)
        return dataset if is_all else f"{dataset}: {' and '.join(methods)}"


def draw_figure(data: FigureData) -> Figure:
    """Draw a figure of which some data are here."""
    import matplotlib.pyplot as plt

    exhibit, names = data.exhibit, [_marked(d, data.findings) for d in data.drawn]
    n_panels, is_sweep = len(exhibit.metrics), exhibit.drawing == "sweep"
    height = 1.1 + len(data.drawn) * (0.2 + 0.13 * len(data.methods))
    if is_sweep:
        n_panels, height = len(exhibit.classifiers), 3.0
    figure, ((*axes,),) = plt.subplots(
        1,
        n_panels,
        figsize=(6.4 if n_panels == 1 else 7.4, height),
        layout="constrained",
        squeeze=False,
        sharey=not is_sweep,
    )
    if is_sweep:
        deltas = [float(m.partition("=")[2]) for m in data.methods]
        for ax, classifier in zip(axes, exhibit.classifiers, strict=True):
            lines = data.numbers("accuracy", classifier)
            label = f"accuracy, {classifier}"
            plot_sweep(deltas, lines, names, x_label="δ", label=label, ax=ax)
    else:
        for ax, metric in zip(axes, exhibit.metrics, strict=True):
            _draw_dots(data, metric, names, ax)
        for ax in axes[1:]:  # the methods are named once
            ax.get_legend().remove()
    figure.suptitle(f"{exhibit.heading}. {exhibit.title}", x=0.01, ha="left", size=11)
    return figure


def _draw_dots(data: FigureData, metric: str, names: list[str], ax: Axes) -> None:
    """One panel: values with the bars that the paper's figure has."""
    exhibit, label, spreads = data.exhibit, METRICS[metric], None
    classifier = exhibit.classifiers[0] if len(exhibit.classifiers) == 1 else None
    if exhibit.drawing == "error bars":
        values = data.numbers(metric, classifier, "mean")
        spreads = data.numbers(metric, classifier, "deviation")
        label += f", {classifier}: mean ± sd, cut at 1"
    elif metric == "auc":
        found = [data.numbers(metric, name) for name in exhibit.classifiers]
        values, spreads = np.mean(found, axis=0), np.std(found, axis=0, ddof=1)
        label += ": mean ± standard deviation of three classifiers, cut at 1"
    else:
        values = data.numbers(metric, classifier)
        label += f", {classifier}" * (bool(classifier) and metric == "accuracy")
    plot_dots(
        values,
        names,
        data.methods,
        spreads=spreads,
        label=label,
        is_log=metric in _LOG,
        largest=np.inf if metric in _LOG else 1.0,
        ax=ax,
    )


def draw_claim(checked: CheckedClaim) -> Figure:
    """The critical-difference diagram of our numbers for a claim of the paper."""
    import matplotlib.pyplot as plt

    claim, distance = checked.claim, checked.critical_difference
    # The paper counts ranks from below, the diagram from the best.
    ranks = len(claim.methods) + 1 - checked.ranks
    figure, ax = plt.subplots(figsize=(6.4, 1.9), layout="constrained")
    plot_critical_difference(ranks, distance, claim.methods, ax=ax)
    what, n = claim.classifier or "mean AUC", len(checked.datasets)
    title = f"Table {claim.table}, {what}, {n} data sets"
    figure.suptitle(title, x=0.01, ha="left", size=11)
    return figure


def save_figure(figure: Figure, path: Path) -> Path:
    """Write a figure, and free its memory."""
    import matplotlib.pyplot as plt

    figure.savefig(path, dpi=150, bbox_inches="tight")
    plt.close(figure)
    return path
