"""Tables of scores, and what can be concluded from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from featstream.evaluation.conclusion import conclude, enumerate_words
from featstream.evaluation.statistics import (
    Best,
    Friedman,
    Nemenyi,
    WinTieLose,
    average_ranks,
    friedman,
    nemenyi,
    win_tie_lose,
)
from featstream.protocols import FloatArray

__all__ = ["Comparison", "ScoreTable", "compare_scores"]

LOW_IS_BEST = ("n_features", "n_groups", "seconds", "memory")
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


@dataclass(frozen=True, slots=True, eq=False)
class ScoreTable:
    """Data sets by selectors.

    Attributes
    ----------
    metric, statistic : str
        What is shown.
    classifier : str or None
        Who judged, if that matters.
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
        return "low" if self.metric in LOW_IS_BEST else "high"

    @property
    def title(self) -> str:
        """What the table shows, in words."""
        by = f", {self.classifier}" if self.classifier else ""
        how = {
            "mean": "mean ± standard deviation of the splits",
            "sd": "standard deviation over the splits",
            "median": "median of the splits",
            "best": f"best of the splits, {self._best_words()}",
            "worst": f"worst of the splits, {self._best_words()}",
        }[self.statistic]
        if max(self.n_splits, default=1) == 1:
            how = "one split"
        return f"{TITLES[self.metric]}{by} ({how})"

    def _best_words(self) -> str:
        if self.metric in LOW_IS_BEST:
            return "by accuracy"
        return "not an estimate of what to expect"

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
        return [
            ["data set", *self.selectors],
            *(
                [dataset, *(self.text(dataset, s) for s in self.selectors)]
                for dataset in self.datasets
            ),
        ]

    def notes(self) -> list[str]:
        """What must be said below the table."""
        notes = [f"{selector}: {rule}" for selector, rule in self.rules.items()]
        notes += [
            f"- {selector} on {dataset}: {reason}"
            for (dataset, selector), reason in self.reasons.items()
        ]
        return notes

    def to_markdown(self) -> str:
        """The table for a document."""
        head, *body = (
            [cell.replace("|", "\\|") for cell in row] for row in self.cells()
        )
        lines = [f"**{self.title}**", "", "| " + " | ".join(head) + " |"]
        lines.append("| --- |" + " ---: |" * len(self.selectors))
        lines += ["| " + " | ".join(row) + " |" for row in body]
        notes = self.notes()
        if notes:
            lines += ["", *(f"{note}  " for note in notes)]
        return "\n".join(lines)

    def lines(self) -> list[str]:
        """Title and table for a terminal, without the notes."""
        rows = self.cells()
        widths = [max(len(row[j]) for row in rows) for j in range(len(rows[0]))]
        lines = [self.title]
        for row in rows:
            first, *others = row
            shown = [first.ljust(widths[0])]
            shown += [c.rjust(w) for c, w in zip(others, widths[1:], strict=True)]
            lines.append("  ".join(shown).rstrip())
        return lines

    def __str__(self) -> str:
        return "\n".join([*self.lines(), *self.notes()])


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """What a table of scores shows about the selectors.

    Attributes
    ----------
    metric, classifier : str
        What is compared.
    selectors, datasets : tuple of str
        Those that could be ranked.
    left_out : dict of str to str
        Data sets and selectors that could not be, and why.
    ranks, paper_ranks : dict of str to float
        Average ranks in Demšar's convention, 1 is best; and in the paper's, where
        the highest is.
    friedman : Friedman or None
        None with fewer than two data sets or selectors.
    nemenyi : Nemenyi or None
        Likewise.
    win_tie_lose : dict of (selector, rival) to WinTieLose
        On all data sets where both have scores of every split: by paired t-tests over
        the splits, or by a margin of 0.01 where there is one split only.
    conclusion : str
        A paragraph in plain words.
    """

    metric: str
    classifier: str | None
    selectors: tuple[str, ...]
    datasets: tuple[str, ...]
    left_out: Mapping[str, str]
    ranks: Mapping[str, float]
    paper_ranks: Mapping[str, float]
    friedman: Friedman | None
    nemenyi: Nemenyi | None
    win_tie_lose: Mapping[tuple[str, str], WinTieLose]
    conclusion: str

    def __str__(self) -> str:
        return self.conclusion


def compare_scores(
    table: ScoreTable,
    repeats: Mapping[tuple[str, str], FloatArray],
    *,
    alpha: float = 0.05,
) -> Comparison:
    """Rank and test the selectors of a table.

    Parameters
    ----------
    table : ScoreTable
        One score of each selector on each data set.
    repeats : dict of (dataset, selector) to ndarray
        The scores of every split.
    alpha : float, default=0.05
        Significance level.

    Returns
    -------
    Comparison
        Ranks, tests, and a paragraph.
    """
    is_known = ~np.isnan(table.values)
    ranked = np.flatnonzero(is_known.any(axis=0))
    complete = np.flatnonzero(is_known[:, ranked].all(axis=1))
    left_out = {
        s: "no score on any data set"
        for j, s in enumerate(table.selectors)
        if j not in ranked
    }
    for i, dataset in enumerate(table.datasets):
        if i not in complete and ranked.size:
            lost = [table.selectors[j] for j in ranked if not is_known[i, j]]
            left_out[dataset] = f"no score of {enumerate_words(lost)}"
    selectors = tuple(table.selectors[j] for j in ranked)
    datasets = tuple(table.datasets[i] for i in complete)
    # The same splits summed in another order differ in the last digit: that is a tie.
    scores = np.round(table.values[np.ix_(complete, ranked)], 12)
    ranks = paper = np.array([])
    if len(selectors) > 1 and datasets:
        ranks = average_ranks(scores, table.best)
        paper = average_ranks(scores, table.best, convention="paper")
    test: Friedman | None = None
    posthoc: Nemenyi | None = None
    if len(selectors) > 1 and len(datasets) > 1:
        test, posthoc = friedman(scores), nemenyi(scores, table.best, alpha=alpha)
    duels = duels_of(table, repeats, alpha)
    return Comparison(
        metric=table.metric,
        classifier=table.classifier,
        selectors=selectors,
        datasets=datasets,
        left_out=left_out,
        ranks=dict(zip(selectors, ranks.tolist(), strict=False)),
        paper_ranks=dict(zip(selectors, paper.tolist(), strict=False)),
        friedman=test,
        nemenyi=posthoc,
        win_tie_lose=duels,
        conclusion=in_words(table, selectors, datasets, scores, duels, left_out, alpha),
    )


def duels_of(
    table: ScoreTable, repeats: Mapping[tuple[str, str], FloatArray], alpha: float
) -> dict[tuple[str, str], WinTieLose]:
    """Win, tie and lose of every ordered pair of selectors."""
    duels = {}
    for ours in table.selectors:
        for rival in table.selectors:
            if ours != rival:
                counts = [
                    duel(repeats[d, ours], repeats[d, rival], table, alpha)
                    for d in table.datasets
                ]
                sums = np.sum(counts, axis=0).tolist() if counts else [0, 0, 0]
                duels[ours, rival] = WinTieLose(*sums)
    return duels


def duel(
    ours: FloatArray, rival: FloatArray, table: ScoreTable, alpha: float
) -> WinTieLose:
    """On one data set; no count if either failed in some split."""
    if np.isnan(ours).any() or np.isnan(rival).any():
        return WinTieLose(0, 0, 0)
    if ours.size == 1:
        return win_tie_lose(ours, rival, table.best, alpha=alpha)
    return win_tie_lose(ours[None], rival[None], table.best, alpha=alpha)


def in_words(
    table: ScoreTable,
    selectors: tuple[str, ...],
    datasets: tuple[str, ...],
    scores: FloatArray,
    duels: Mapping[tuple[str, str], WinTieLose],
    left_out: Mapping[str, str],
    alpha: float,
) -> str:
    """The conclusion, with what it leaves out."""
    what = TITLES[table.metric]
    what = what if what.startswith("AUC") else what[0].lower() + what[1:]
    if table.classifier:
        what += f" of {table.classifier}"
    if len(selectors) < 2:
        text = f"There are fewer than two selectors to compare in {what}."
    elif len(datasets) < 2:
        text = one_dataset_words(table, what, selectors, datasets, scores, duels)
    else:
        text = conclude(scores, selectors, what=what, best=table.best, alpha=alpha)
    if left_out:
        omitted = "; ".join(f"{name} ({why})" for name, why in left_out.items())
        text += f" Left out: {omitted}."
    return text


def one_dataset_words(
    table: ScoreTable,
    what: str,
    selectors: tuple[str, ...],
    datasets: tuple[str, ...],
    scores: FloatArray,
    duels: Mapping[tuple[str, str], Any],
) -> str:
    """What one data set can tell, which is about that data set."""
    if not datasets:
        return f"No data set has scores of all selectors in {what}."
    sign = 1 if table.best == "low" else -1
    order = np.argsort(sign * scores[0], kind="stable")
    first = selectors[order[0]]
    listed = enumerate_words(
        f"{selectors[j]} {table.text(datasets[0], selectors[j])}" for j in order
    )
    beaten = [s for s in selectors if s != first and duels[first, s].win]
    text = f"In {what} on {datasets[0]}: {listed}."
    if table.n_splits[table.datasets.index(datasets[0])] > 1:
        text += (
            f" By paired t-tests over the splits {first} is significantly better than "
            f"{enumerate_words(beaten)}."
            if beaten
            else f" By paired t-tests over the splits {first} is not significantly "
            "better than any other."
        )
    return f"{text} One data set says nothing about others; ranks need at least two."
