"""A comparison for readers: text for a terminal, Markdown, figures, all in files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from featstream.errors import printable
from featstream.reporting.plots import plot_critical_difference, plot_scores

if TYPE_CHECKING:
    from featstream.evaluation import Comparison, ExperimentResult, ScoreTable

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
    for comparison in _comparisons(result):
        *lines, conclusion = statistics_lines(comparison)
        parts.append("\n".join([*lines, fill(conclusion, width or _WIDTH)]))
    for lines in (_stability_lines(result), comparison_notes(result)):
        parts += ["\n".join(lines)] if lines else []
    return "\n\n".join(parts)


def comparison_markdown(result: ExperimentResult) -> str:
    """Tables, statistics, conclusions and provenance as a Markdown document."""
    about = result.about
    settings, origin = about["settings"], about["provenance"]
    parts = ["# Comparison of selectors", _datasets_markdown(about["datasets"])]
    parts += [table.to_markdown() for table in comparison_tables(result)]
    for comparison in _comparisons(result):
        title, *lines, conclusion = statistics_lines(comparison)
        parts += [f"## {title}", "\n".join(f"- {line}" for line in lines), conclusion]
    stability = _stability_lines(result)
    if stability:
        title, *lines = stability
        parts += [f"## {title}", "\n".join(f"- {line}" for line in lines)]
    versions = ", ".join(f"{name} {v}" for name, v in origin["versions"].items())
    limits = settings["time_limit"], settings["memory_limit"]
    parts += [
        "## Provenance",
        f"{origin['date']}, {origin['platform']}, {origin['n_cores']} cores, "
        f"{origin['n_jobs']} cells at a time; {versions}; seed {settings['seed']}; "
        f"limits: {limits[0] or 'no'} s, {limits[1] or 'no'} bytes.",
    ]
    return "\n\n".join(parts) + "\n"


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
    for kind in ("accuracy", "critical-difference"):
        for path in folder.glob(f"{kind}-*.png"):  # of an earlier run
            path.unlink()
    for classifier in result.classifiers:
        name = "".join(c if c.isalnum() or c in "-_" else "-" for c in classifier)
        ax = plot_scores(result.table("accuracy", classifier))
        yield _save(ax, folder / f"accuracy-{name}.png")
        comparison = result.statistics("accuracy", classifier)
        if comparison.nemenyi is not None:
            posthoc = comparison.nemenyi
            ax = plot_critical_difference(
                posthoc.average_ranks,
                posthoc.critical_difference,
                comparison.selectors,
            )
            yield _save(ax, folder / f"critical-difference-{name}.png")


def _save(ax: Any, path: Path) -> Path:
    import matplotlib.pyplot as plt

    figure = ax.get_figure()
    figure.savefig(path, dpi=150, bbox_inches="tight")
    plt.close(figure)
    return path


def _comparisons(result: ExperimentResult) -> list[Comparison]:
    return [result.statistics("accuracy", name) for name in result.classifiers]


def statistics_lines(comparison: Comparison) -> list[str]:
    """Title, figures, and the conclusion last."""
    lines = [f"Accuracy of {comparison.classifier}: what follows"]
    if comparison.friedman is not None and comparison.nemenyi is not None:
        test = comparison.friedman
        lines.append(
            f"Friedman: chi2 = {test.chi2:.3f} (p = {test.chi2_p_value:.3g}), "
            f"F = {test.f:.3f} (p = {test.p_value:.3g})"
        )
        cd = comparison.nemenyi.critical_difference
        lines.append(f"Nemenyi: critical difference {cd:.3f}")
    if len(comparison.selectors) > 1:
        first = comparison.selectors[0]
        wins = ", ".join(
            f"{rival} {comparison.win_tie_lose[first, rival]}"
            for rival in comparison.selectors[1:]
        )
        lines.append(f"{first} wins/ties/loses against: {wins}")
    return [*lines, comparison.conclusion]


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
    table = result.table()
    notes = [f"{name}: {rule}" for name, rule in table.rules.items()]
    reasons: dict[str, None] = {}
    for classifier in result.classifiers:
        for (dataset, selector), reason in result.table(
            "accuracy", classifier
        ).reasons.items():
            has_failed = (dataset, selector) in result.table("n_features").reasons
            who = selector if has_failed else f"{classifier} after {selector}"
            reasons[f"- {who} on {dataset}: {reason}"] = None
    n_empty = sum(row["note"] is not None for row in result.rows())
    if n_empty:
        n_rows = len(result.rows())
        notes.append(
            f"{n_empty} of {n_rows} scores are of an empty selection, scored as the "
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


def _datasets_markdown(datasets: dict[str, Any]) -> str:
    head = "| data set | samples | features | classes | target | splits |"
    lines = [head, "| --- | ---: | ---: | ---: | --- | --- |"]
    lines += [
        f"| {name} | {facts['n_samples']:,} | {facts['n_features']:,} | "
        f"{facts['n_classes']} | {facts.get('target') or '-'} | "
        f"`{facts['protocol']}` |"
        for name, facts in datasets.items()
    ]
    return "\n".join(lines)
