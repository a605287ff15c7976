"""What a table of scores shows about the selectors, in figures and in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike

from featstream.errors import DataError
from featstream.evaluation.statistics import (
    Friedman,
    Nemenyi,
    WinTieLose,
    average_ranks,
    friedman,
    nemenyi,
    win_tie_lose,
)
from featstream.protocols import FloatArray

if TYPE_CHECKING:
    from featstream.evaluation.results import ScoreTable

Repeats = Mapping[tuple[str, str], FloatArray]
"""The score in every split, by data set and selector."""


def conclude(
    scores: ArrayLike,
    methods: Sequence[str],
    *,
    what: str = "accuracy",
    best: Literal["high", "low"] = "high",
    alpha: float = 0.05,
) -> str:
    """Say in a paragraph what a table of scores shows.

    The ranks, the Friedman test, and the Nemenyi test if that rejects. Options are
    those of `nemenyi`; ``what`` names what the scores measure.

    >>> print(conclude([[0.9, 0.8], [0.7, 0.8]], ["SAOLA", "OFS"]))
    In accuracy on 2 data sets the average ranks are SAOLA 1.50 and OFS 1.50
    (1 is best). The Friedman test does not reject that all perform alike
    (F(1, 1) = 0.00, p = 1): these data do not show a difference, which is not
    to say that there is none.
    """
    test = friedman(scores)
    posthoc = nemenyi(scores, best, alpha=alpha)
    if len(methods) != test.n_methods:
        raise DataError(
            f"`methods` has {len(methods)} names for {test.n_methods} columns of "
            "scores. Give one name for each column."
        )
    ranks = posthoc.average_ranks
    listed = enumerate_words(
        f"{methods[j]} {ranks[j]:.2f}" for j in np.argsort(ranks, kind="stable")
    )
    k, n = test.n_methods, test.n_datasets
    figures = f"F({k - 1}, {(k - 1) * (n - 1)}) = {test.f:.2f}, {p_words(test.p_value)}"
    opening = f"In {what} on {n} data sets the average ranks are {listed} (1 is best)."
    if not test.is_rejected(alpha):
        return (
            f"{opening} The Friedman test does not reject that all perform alike "
            f"({figures}): these data do not show a difference, which is not to say "
            "that there is none."
        )
    return (
        f"{opening} The Friedman test rejects that all perform alike ({figures}). "
        f"{posthoc_words(posthoc, methods, alpha)}"
    )


def posthoc_words(posthoc: Nemenyi, methods: Sequence[str], alpha: float) -> str:
    """Which pairs the Nemenyi test tells apart."""
    ranks = posthoc.average_ranks
    pairs = [
        (i, j) if ranks[i] < ranks[j] else (j, i)
        for i, j in combinations(range(len(methods)), 2)
        if posthoc.is_different[i, j]
    ]
    by = (
        f"By the Nemenyi test at the {alpha:.0%} level (critical difference "
        f"{posthoc.critical_difference:.3f})"
    )
    if not pairs:
        return f"{by} no two methods differ significantly."
    found = enumerate_words(
        f"{methods[i]} is significantly better than "
        + enumerate_words(methods[b] for a, b in pairs if a == i)
        for i in sorted({a for a, _ in pairs}, key=lambda i: float(ranks[i]))
    )
    n_pairs = len(methods) * (len(methods) - 1) // 2
    others = "" if len(pairs) == n_pairs else "; the other pairs do not differ"
    return f"{by} {found}{others}."


def enumerate_words(words: Iterable[str]) -> str:
    """``a, b and c``."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def p_words(p_value: float) -> str:
    """A p-value as it is written."""
    return "p < 0.001" if p_value < 0.001 else f"p = {p_value:.2g}"


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


def compare_scores(table: ScoreTable, repeats: Repeats, alpha: float) -> Comparison:
    """Rank and test the selectors of a table; ``repeats`` has every split."""
    is_known = ~np.isnan(table.values)
    ranked = np.flatnonzero(is_known.any(axis=0))
    complete = np.flatnonzero(is_known[:, ranked].all(axis=1))
    selectors = tuple(table.selectors[j] for j in ranked)
    datasets = tuple(table.datasets[i] for i in complete)
    left_out = {
        selector: "no score on any data set"
        for selector in table.selectors
        if selector not in selectors
    }
    for i, dataset in enumerate(table.datasets):
        if dataset not in datasets and selectors:
            lost = [table.selectors[j] for j in ranked if not is_known[i, j]]
            left_out[dataset] = f"no score of {enumerate_words(lost)}"
    # The same splits summed in another order differ in the last digit: that is a tie.
    scores = np.round(table.values[np.ix_(complete, ranked)], 12)
    ranks: dict[str, float] = {}
    test: Friedman | None = None
    posthoc: Nemenyi | None = None
    if len(selectors) > 1 and datasets:
        found = average_ranks(scores, table.best).tolist()
        ranks = dict(zip(selectors, found, strict=True))
    if len(selectors) > 1 and len(datasets) > 1:
        test, posthoc = friedman(scores), nemenyi(scores, table.best, alpha=alpha)
    wins = {
        pair: count_wins(*pair, table, repeats, alpha)
        for pair in permutations(table.selectors, 2)
    }
    if len(selectors) < 2:
        text = f"There are fewer than two selectors to compare in {table.what}."
    elif not datasets:
        text = f"No data set has scores of all selectors in {table.what}."
    elif len(datasets) == 1:
        text = one_dataset_words(table, datasets[0], selectors, scores[0], wins)
    else:
        text = conclude(
            scores, selectors, what=table.what, best=table.best, alpha=alpha
        )
    if left_out:
        omitted = "; ".join(f"{name} ({why})" for name, why in left_out.items())
        text += f" Left out: {omitted}."
    return Comparison(
        metric=table.metric,
        classifier=table.classifier,
        selectors=selectors,
        datasets=datasets,
        left_out=left_out,
        ranks=ranks,
        paper_ranks={s: len(selectors) + 1 - rank for s, rank in ranks.items()},
        friedman=test,
        nemenyi=posthoc,
        win_tie_lose=wins,
        conclusion=text,
    )


def count_wins(
    ours: str, rival: str, table: ScoreTable, repeats: Repeats, alpha: float
) -> WinTieLose:
    """Over the data sets in which neither failed in any split."""
    counts = np.zeros(3, np.int64)
    for dataset in table.datasets:
        first, second = repeats[dataset, ours], repeats[dataset, rival]
        if np.isnan(first).any() or np.isnan(second).any():
            continue
        if first.size > 1:
            first, second = first[None], second[None]
        counts += win_tie_lose(first, second, table.best, alpha=alpha)
    return WinTieLose(*counts.tolist())


def one_dataset_words(
    table: ScoreTable,
    dataset: str,
    selectors: Sequence[str],
    scores: FloatArray,
    wins: Mapping[tuple[str, str], WinTieLose],
) -> str:
    """The conclusion from one data set, which is about that data set only."""
    order = np.argsort(scores if table.best == "low" else -scores, kind="stable")
    first = selectors[order[0]]
    listed = enumerate_words(
        f"{selectors[j]} {table.text(dataset, selectors[j])}" for j in order
    )
    text = f"In {table.what} on {dataset}: {listed}."
    if table.n_splits[table.datasets.index(dataset)] > 1:
        beaten = [s for s in selectors if s != first and wins[first, s].win]
        text += f" By paired t-tests over the splits {first} is "
        if beaten:
            text += f"significantly better than {enumerate_words(beaten)}."
        else:
            text += "not significantly better than any other."
    return f"{text} One data set says nothing about others; ranks need at least two."
