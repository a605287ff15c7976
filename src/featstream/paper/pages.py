"""What `featstream paper run` writes: one page per table, figures, and a summary."""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from featstream.paper.exhibits import CLASSIFIERS, METRICS, Exhibit
from featstream.paper.figures import FigureData, draw_claim, draw_figure, save_figure
from featstream.paper.findings import Findings, Pair, Panel, TableComparison
from featstream.paper.tables import PaperColumn, paper_tables

_COUNTS = ("n_features", "n_groups")


def table_page(comparison: TableComparison) -> str:
    """A Markdown page about one table."""
    exhibit = comparison.exhibit
    n_here, n_all = len(comparison.datasets), len(exhibit.datasets)
    parts = [
        f"# {exhibit.heading} (`{exhibit.label}`): {exhibit.title}",
        f"Section {exhibit.section} of the paper; {n_here} of its {n_all} data sets "
        "are here. Δ is ours less the paper's"
        + ("; for times, how many times faster." if _has_time(comparison) else "."),
    ]
    if comparison.datasets:
        parts += [_panel_markdown(p, comparison) for p in comparison.panels()]
        parts += _means(comparison)
        parts += _statistics(comparison)
    notes = footnotes(comparison.findings, exhibit.datasets)
    notes += _reasons(comparison)
    parts.append("\n".join(f"- {note}" for note in notes))
    return "\n\n".join(parts) + "\n"


def _has_time(comparison: TableComparison) -> bool:
    return any(panel.metric == "seconds" for panel in comparison.panels())


def _panel_markdown(panel: Panel, comparison: TableComparison) -> str:
    head = ["data set"]
    for column in panel.columns:
        name = _method_name(column.method, column.alpha)
        head += [name, "paper", "Δ"]
    rows = []
    for dataset in comparison.datasets:
        row = [_marked(dataset, comparison.findings)]
        for column in panel.columns:
            pair = comparison.pairs[dataset, column]
            printed = number_text(pair.printed, panel.metric)
            is_mean = pair.ours.statistic == "mean"
            ours = number_text(pair.ours.value, panel.metric, is_mean=is_mean)
            row += [ours, printed, difference_text(pair)]
        rows.append(row)
    title = METRICS[panel.metric] + (f", {panel.classifier}" * bool(panel.classifier))
    return f"**{title}**\n\n{as_markdown_table(head, rows)}"


def _means(comparison: TableComparison) -> Iterator[str]:
    """Mean and deviation where the table shows the best of several runs."""
    for panel in comparison.panels():
        columns, rows = panel.columns, []
        for dataset in comparison.datasets:
            values = [comparison.pairs[dataset, c].ours for c in columns]
            if any(value.statistic == "best" for value in values):
                texts = (
                    "-"
                    if math.isnan(value.mean)
                    else f"{number_text(value.mean, panel.metric, is_mean=True)} ± "
                    f"{number_text(value.deviation, panel.metric, is_mean=True)}"
                    for value in values
                )
                rows.append([_marked(dataset, comparison.findings), *texts])
        if rows:
            n_runs = 3 if comparison.findings.is_quick else 10
            names = [_method_name(c.method, c.alpha) for c in columns]
            what = METRICS[panel.metric].lower() if panel.metric != "auc" else "AUC"
            what += f", {panel.classifier}" * bool(panel.classifier)
            yield (
                f"Above is the best of {n_runs} random splits, as in the paper. "
                f"Mean ± standard deviation of ours, {what}:\n\n"
                + as_markdown_table(["data set", *names], rows)
            )


def _statistics(comparison: TableComparison) -> Iterator[str]:
    claims, wins = list(comparison.claims()), list(comparison.wins())
    if claims:
        rows = [
            [
                ", ".join(c.claim.methods),
                c.claim.classifier or "mean AUC",
                str(len(c.datasets)),
                _ranks(c.ranks),
                _ranks(c.printed_ranks),
                _ranks(c.claim.ranks),
                f"{c.test.p_value:.3f}",
                _verdict(c.test.is_rejected()),
                _verdict(c.claim.is_rejected),
                f"{c.critical_difference:.3f}",
            ]
            for c in claims
        ]
        head = ["methods", "classifier", "data sets", "ranks, ours", "paper's, there"]
        head += ["printed, all", "Friedman p, ours", "ours", "the paper", "CD"]
        yield (
            "**Average ranks** (high is good, as in the paper) on the data sets where "
            "all have numbers, and the Friedman test without correction for ties:\n\n"
            + as_markdown_table(head, rows)
        )
    if wins:
        rows = [
            [
                f"{w.first} against {w.rival}",
                w.panel.classifier or METRICS[w.panel.metric],
                w.ours,
                w.printed_there,
                w.printed,
            ]
            for w in wins
        ]
        head = ["", "classifier", "ours", "paper's, there", "printed, all"]
        yield (
            "**Win / tie / lose** by a margin of 0.01, which is what the paper's "
            "counts are:\n\n" + as_markdown_table(head, rows)
        )


def footnotes(findings: Findings, datasets: Iterable[str]) -> list[str]:
    """What must be known of the data, and what is missing."""
    notes = []
    for name in datasets:
        about = findings.about.get(name)
        if about is None:
            continue
        if about.differs:
            notes.append(f"† {name} is not the paper's: {about.differs}.")
        notes += [f"{name}: {note}." for note in about.notes if note != about.differs]
    notes += [
        f"No data: {name}. Put there {files}."
        for name, files in findings.wanted(datasets).items()
    ]
    if findings.is_quick:
        notes.append("A quick run: three repetitions instead of ten or thirty.")
    return notes


def _reasons(comparison: TableComparison) -> list[str]:
    """Why cells are empty, each reason once."""
    found: dict[str, None] = {}
    for pair in comparison.pairs.values():
        method = pair.column.method
        if pair.dataset in comparison.datasets and pair.ours.reason:
            who = f"{pair.column.classifier} after " if pair.column.classifier else ""
            found[f"`-` {who}{method} on {pair.dataset}: {pair.ours.reason}."] = None
    return list(found)


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

    >>> from featstream.paper.findings import Value
    >>> from featstream.paper.tables import PaperColumn
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
    return [
        {
            "exhibit": comparison.exhibit.name,
            "dataset": pair.dataset,
            "method": _method_name(pair.column.method, pair.column.alpha),
            "classifier": pair.column.classifier,
            "metric": pair.column.metric,
            "statistic": pair.ours.statistic if pair.ours.reason is None else None,
            "ours": _blank(pair.ours.value),
            "mean": _blank(pair.ours.mean),
            "sd": pair.ours.deviation if pair.ours.runs.size else None,
            "runs": pair.ours.runs.size or None,
            "paper": _blank(pair.printed),
            "difference": _blank(pair.difference),
            "reason": pair.ours.reason,
        }
        for pair in comparison.pairs.values()
    ]


def csv_text(rows: Sequence[Mapping[str, object]]) -> str:
    """Rows with a heading; without rows, nothing."""
    text = io.StringIO(newline="")
    if rows:
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return text.getvalue()


def as_markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of which all columns but the first are numbers."""
    lines = [f"| {' | '.join(head)} |", "| --- |" + " ---: |" * (len(head) - 1)]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def _blank(value: float) -> float | None:
    return None if math.isnan(value) else value


def _marked(dataset: str, findings: Findings) -> str:
    about = findings.about.get(dataset)
    return f"{dataset} †" if about is not None and about.differs else dataset


def _method_name(method: str | None, alpha: float | None) -> str:
    return f"{method}" if alpha is None else f"{method}, α = {alpha:g}"


def _ranks(ranks: Iterable[float]) -> str:
    return " / ".join(f"{rank:.2f}" for rank in ranks)


def _verdict(is_rejected: bool) -> str:
    return "rejected" if is_rejected else "not rejected"


@dataclass(slots=True)
class Written:
    """The files that were written, and the exhibits with nothing to show."""

    paths: list[Path] = field(default_factory=list)
    obstacles: dict[str, str] = field(default_factory=dict)  # and why


def write_paper(
    findings: Findings,
    wanted: Iterable[Exhibit],
    folder: str | os.PathLike[str],
    *,
    provenance: str = "",
) -> Written:
    """Write tables as Markdown and CSV, figures as PNG, and ``README.md``.

    ``provenance`` is a line about how the results were made.
    """
    folder, wanted = Path(folder), tuple(wanted)
    folder.mkdir(parents=True, exist_ok=True)
    written = Written()
    lines = []
    for exhibit in wanted:
        write = _write_table if exhibit.kind == "table" else _write_figure
        lines.append(write(exhibit, findings, folder, written))
    summary = _summary(findings, wanted, lines, provenance)
    for name, text in (("results.csv", _tidy(findings)), ("README.md", summary)):
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
    scores = [p for p in pairs if p.column.metric in ("accuracy", "auc")]
    same = [p for p in scores if not findings.about[p.dataset].differs]
    if same:
        gap = float(np.mean([abs(p.difference) for p in same]))
        result += f"; on the paper's own data, mean difference {gap:.3f}"
    return f"- [{exhibit.heading}]({page.name}). {exhibit.title}: {result}."


def _write_figure(
    exhibit: Exhibit, findings: Findings, folder: Path, written: Written
) -> str:
    data = FigureData(exhibit, findings)
    title = f"{exhibit.heading}. {exhibit.title}"
    obstacle = data.obstacle
    if obstacle is None and find_spec("matplotlib") is None:
        obstacle = "needs matplotlib: pip install matplotlib"
    path = folder / f"{exhibit.name}.png"
    path.unlink(missing_ok=True)  # of an earlier run with more to show
    if obstacle is not None:
        written.obstacles[exhibit.name] = obstacle
        return f"- {title}: not drawn, {obstacle}."
    written.paths.append(save_figure(draw_figure(data), path))
    gaps = data.gaps()
    dashes = f" `-`: {gaps}." if gaps else ""
    return f"- [{title}]({path.name}).{dashes}"


def headline(findings: Findings) -> str:
    """SAOLA on published parts, as a Markdown table; "" without such data sets."""
    head = ["data set", "selected", "paper"]
    for classifier in CLASSIFIERS:
        head += [classifier, "paper"]
    rows = []
    for name, about in findings.about.items():
        is_run = ("split", name) in findings.results
        if about.differs or not (is_run and about.is_split):
            continue
        row = [name]
        for column in (
            PaperColumn("n_features", "SAOLA"),
            *(
                PaperColumn("accuracy", "SAOLA", classifier)
                for classifier in CLASSIFIERS
            ),
        ):
            ours = findings.value(
                "split", name, "SAOLA", column.metric, column.classifier
            )
            row.append(number_text(ours.value, column.metric))
            row.append(number_text(_printed(name, column), column.metric))
        rows.append(row)
    return as_markdown_table(head, rows) if rows else ""


def _printed(dataset: str, column: PaperColumn) -> float:
    """What the paper prints, in whichever table."""
    for table in paper_tables():
        if column in table.columns and dataset in table.datasets:
            row = table.values[table.datasets.index(dataset)]
            return float(row[table.columns.index(column)])
    return float("nan")


def _summary(
    findings: Findings, wanted: tuple[Exhibit, ...], lines: list[str], provenance: str
) -> str:
    limit = findings.limits.get("time_limit")
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
    tables = [line for line, e in zip(lines, wanted, strict=True) if e.kind == "table"]
    figures = [line for line, e in zip(lines, wanted, strict=True) if e.kind != "table"]
    for title, own in (("Tables", tables), ("Figures", figures)):
        if own:
            parts += [f"## {title}", "\n".join(own)]
    parts += ["## Data sets", _datasets(findings)]
    named = dict.fromkeys(d for e in wanted for d in e.datasets)
    notes = footnotes(findings, named)
    parts.append("\n".join(f"- {note}" for note in notes))
    return "\n\n".join(part for part in parts if part) + "\n"


def _datasets(findings: Findings) -> str:
    head = ["data set", "samples", "features", "measure", "file"]
    rows = []
    for name, about in findings.about.items():
        n, n_test, p = about.shape
        test = f" + {n_test:,}" if n_test else ""
        measure = "Fisher's Z" if about.kind == "continuous" else "SU"
        shown = _marked(name, findings), f"{n:,}{test}", f"{p:,}"
        rows.append([*shown, measure, about.origin])
    return as_markdown_table(head, rows) if rows else "None of them is here."


def _tidy(findings: Findings) -> str:
    """Every run of every experiment, as CSV."""
    results = findings.results.items()
    rows = [
        {"design": key[0]} | row for key, result in results for row in result.rows()
    ]
    return csv_text(rows)
