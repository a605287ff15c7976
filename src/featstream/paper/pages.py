"""What `featstream paper run` writes: a page a table, figures, and a summary."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from featstream.evaluation.conclusion import enumerate_words
from featstream.paper.comparison import TableComparison
from featstream.paper.exhibits import CLASSIFIERS, Exhibit
from featstream.paper.figures import (
    FigureData,
    draw_claim,
    draw_figure,
    save_figure,
)
from featstream.paper.findings import Findings
from featstream.paper.methods import ABSENT
from featstream.paper.table_pages import (
    CSV_COLUMNS,
    as_markdown_table,
    csv_text,
    footnotes,
    number_text,
    table_csv,
    table_page,
)
from featstream.paper.tables import PaperColumn, paper_tables

__all__ = ["Written", "headline", "write_paper"]


@dataclass(slots=True)
class Written:
    """What became of the tables and figures.

    Attributes
    ----------
    paths : list of Path
        Files that were written.
    obstacles : dict of str to str
        Tables and figures of which nothing could be shown, and why.
    """

    paths: list[Path] = field(default_factory=list)
    obstacles: dict[str, str] = field(default_factory=dict)


def write_paper(
    findings: Findings,
    wanted: Iterable[Exhibit],
    folder: str | os.PathLike[str],
    *,
    provenance: str = "",
) -> Written:
    """Write tables as Markdown and CSV, figures as PNG, and ``README.md``.

    Parameters
    ----------
    findings : Findings
        What was found.
    wanted : iterable of Exhibit
        What is to be shown.
    folder : str or path
        Where to.
    provenance : str
        A line that says how all this came about.

    Returns
    -------
    Written
        The files, and what could not be shown.
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
    numbers.write_text(csv_text(table_csv(comparison), CSV_COLUMNS), encoding="utf-8")
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
        obstacle = "needs matplotlib: pip install featstream[report]"
    path = folder / f"{exhibit.name}.png"
    path.unlink(missing_ok=True)  # of an earlier run with more to show
    if obstacle is not None:
        written.obstacles[exhibit.name] = obstacle
        return f"- {title}: not drawn, {obstacle}."
    written.paths.append(save_figure(draw_figure(data), path))
    absent = [m for m in exhibit.methods if m in ABSENT]
    without = f" Without {enumerate_words(absent)}." if absent else ""
    gaps = data.gaps()
    dashes = f" `-`: {gaps}." if gaps else ""
    return f"- [{title}]({path.name}).{without}{dashes}"


def headline(findings: Findings) -> str:
    """SAOLA on the parts that the paper uses as they were published.

    Parameters
    ----------
    findings : Findings
        What was found.

    Returns
    -------
    str
        A Markdown table; "" if there is no such data set.
    """
    head = ["data set", "selected", "paper"]
    for judge in CLASSIFIERS:
        head += [judge, "paper"]
    rows = []
    for name, about in findings.about.items():
        is_run = ("split", name) in findings.results
        if about.differs or not (is_run and about.is_split):
            continue
        row = [name]
        for column in (
            PaperColumn("n_features", "SAOLA"),
            *(PaperColumn("accuracy", "SAOLA", judge) for judge in CLASSIFIERS),
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
    methods = dict.fromkeys(m for e in wanted for m in e.methods)
    notes = footnotes(findings, named, methods)
    parts.append("\n".join(f"- {note}" for note in notes))
    return "\n\n".join(part for part in parts if part) + "\n"


def _datasets(findings: Findings) -> str:
    head = ["data set", "samples", "features", "measure", "file"]
    rows = []
    for name, about in findings.about.items():
        n, n_test, p = about.shape
        test = f" + {n_test:,}" if n_test else ""
        measure = "Fisher's Z" if about.kind == "continuous" else "SU"
        shown = f"{name} †" if about.differs else name
        rows.append([shown, f"{n:,}{test}", f"{p:,}", measure, about.origin])
    return as_markdown_table(head, rows) if rows else "None of them is here."


def _tidy(findings: Findings) -> str:
    """Every run of every experiment."""
    rows: list[list[object]] = []
    columns: list[str] = ["design"]
    for (design, _), result in findings.results.items():
        for row in result.rows():
            columns = ["design", *row]
            rows.append([design, *row.values()])
    return csv_text(rows, columns)
