"""The conclusion of a comparison, in plain words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from featstream.errors import DataError
from featstream.evaluation.statistics import Nemenyi, friedman, nemenyi

__all__ = ["conclude"]


def conclude(
    scores: ArrayLike,
    methods: Sequence[str],
    *,
    what: str = "accuracy",
    best: Literal["high", "low"] = "high",
    alpha: float = 0.05,
) -> str:
    """Say in a paragraph what a table of scores shows.

    Parameters
    ----------
    scores : array-like of shape (n_datasets, n_methods)
        One score of each method on each data set.
    methods : sequence of str
        Names of the methods.
    what : str, default="accuracy"
        What the scores measure.
    best : {"high", "low"}, default="high"
        Which scores are good.
    alpha : float, default=0.05
        Significance level.

    Returns
    -------
    str
        Ranks, the Friedman test, and what the Nemenyi test adds if it rejects.

    Examples
    --------
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
