"""Comparing methods over data sets: ranks, Friedman, Nemenyi, and what they show.

Scores are arrays of shape (n_datasets, n_methods). Ranks need complete rows: a method
without a score on some data set cannot be ranked there. ``best`` is "high" or "low":
which scores are good.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress, permutations
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats
from scipy.special import gammaln

from featstream.errors import DataError, ParameterError, check_alpha, check_choice
from featstream.protocols import BoolArray, FloatArray

if TYPE_CHECKING:
    from featstream.evaluation.results import ScoreTable

Best = Literal["high", "low"]


def average_ranks(
    scores: ArrayLike,
    best: Best = "high",
    *,
    convention: Literal["demsar", "paper"] = "demsar",
) -> FloatArray:
    """Mean rank of each method over the data sets; ties share their ranks.

    Demšar [1]_ gives rank 1 to the best method; in the convention of the SAOLA paper
    ("paper") it goes to the worst: "the higher the average rank, the better the
    performance". The two add up to n_methods + 1.

    References
    ----------
    .. [1] Demšar, J. (2006). Statistical comparisons of classifiers over
       multiple data sets. Journal of Machine Learning Research 7, 1-30.

    Examples
    --------
    >>> accuracies = [[0.9, 0.8, 0.7], [0.6, 0.6, 0.5]]
    >>> average_ranks(accuracies)
    array([1.25, 1.75, 3.  ])
    >>> average_ranks(accuracies, convention="paper")
    array([2.75, 2.25, 1.  ])
    """
    check_choice(convention, "convention", ("demsar", "paper"))
    sign = sign_of(best) if convention == "paper" else -sign_of(best)
    ranks: FloatArray = stats.rankdata(sign * check_scores(scores), axis=1)
    return np.asarray(ranks.mean(axis=0))


@dataclass(frozen=True, slots=True)
class Friedman:
    """Result of a Friedman test.

    Attributes
    ----------
    chi2, chi2_p_value : float
        Friedman's statistic and its p-value, chi-squared with k - 1 degrees of
        freedom for k methods.
    f, p_value : float
        Iman and Davenport's less conservative F statistic, and its p-value
        with k - 1 and (k - 1)(n - 1) degrees of freedom for n data sets. Where all
        rank the methods alike, F is infinite and the p-value that of chance.
    n_datasets, n_methods : int
        What was compared.
    """

    chi2: float
    chi2_p_value: float
    f: float
    p_value: float
    n_datasets: int
    n_methods: int

    def is_rejected(self, alpha: float = 0.05) -> bool:
        """Whether "all methods perform alike" is rejected, by the F statistic."""
        return self.p_value < alpha


def friedman(scores: ArrayLike, *, correct_ties: bool = True) -> Friedman:
    """Friedman test of "all methods perform alike", for two methods or more.

    With ``correct_ties`` the variance of the ranks accounts for ties, as in
    `scipy.stats.friedmanchisquare`. Demšar's formula, and the authors' library, take
    the variance without ties and so reject less.

    >>> test = friedman([[0.9, 0.8, 0.7], [0.8, 0.7, 0.6], [0.7, 0.5, 0.6]])
    >>> round(test.chi2, 3), round(test.f, 3), test.is_rejected()
    (4.667, 7.0, True)
    """
    table = check_scores(scores, min_datasets=2)
    n, k = table.shape
    ranks = stats.rankdata(table, axis=1)
    spread = float(np.sum((ranks.mean(axis=0) - (k + 1) / 2) ** 2))
    variance = k * (k + 1) / 12
    if correct_ties:
        variance = float(np.sum((ranks - (k + 1) / 2) ** 2)) / (n * (k - 1))
    if variance == 0.0:  # every data set is one tie
        return Friedman(0.0, 1.0, 0.0, 1.0, n, k)
    chi2 = n * spread / variance
    chi2_p_value = float(stats.chi2.sf(chi2, k - 1))
    rest = n * (k - 1) - chi2
    if rest > 1e-9 * chi2:
        f = (n - 1) * chi2 / rest
        p_value = float(stats.f.sf(f, k - 1, (k - 1) * (n - 1)))
        return Friedman(chi2, chi2_p_value, f, p_value, n, k)
    # The probability that all others rank the methods as the first data set does.
    ties = np.unique(ranks[0], return_counts=True)[1]
    log_orders = gammaln(k + 1) - gammaln(ties + 1).sum()
    p_value = float(np.exp(-(n - 1) * log_orders))
    return Friedman(chi2, chi2_p_value, np.inf, p_value, n, k)


def critical_difference(n_methods: int, n_datasets: int, alpha: float = 0.05) -> float:
    """Difference of average ranks that the Nemenyi test calls significant.

    The quantile of the studentized range, over the square root of 2, times the
    standard error of a difference of ranks.

    >>> round(critical_difference(3, 10), 3), round(critical_difference(2, 14), 3)
    (1.048, 0.524)
    """
    if n_methods < 2 or n_datasets < 1:
        raise ParameterError(
            "A critical difference needs n_methods >= 2 and n_datasets >= 1. "
            f"Got {n_methods!r} and {n_datasets!r}. Count the columns and the rows "
            "of the table of scores."
        )
    check_alpha(alpha)
    q = stats.studentized_range.isf(alpha, n_methods, np.inf) / np.sqrt(2.0)
    return float(q * rank_error(n_methods, n_datasets))


@dataclass(frozen=True, slots=True, eq=False)
class Nemenyi:
    """Result of a Nemenyi test.

    Attributes
    ----------
    average_ranks : ndarray of shape (n_methods,)
        In Demšar's convention, 1 is the best.
    critical_difference : float
        Ranks that differ by at least this much differ significantly.
    p_values : ndarray of shape (n_methods, n_methods)
        For each pair of methods; 1 on the diagonal.
    is_different : ndarray of bool of shape (n_methods, n_methods)
        Pairs that differ significantly.
    """

    average_ranks: FloatArray
    critical_difference: float
    p_values: FloatArray
    is_different: BoolArray


def nemenyi(scores: ArrayLike, best: Best = "high", *, alpha: float = 0.05) -> Nemenyi:
    """Nemenyi's test of every pair of methods, after Friedman has rejected.

    ``alpha`` is the significance level for all pairs together.

    >>> result = nemenyi([[0.9, 0.8, 0.7]] * 6)
    >>> result.average_ranks
    array([1., 2., 3.])
    >>> result.is_different[0]
    array([False, False,  True])
    """
    ranks = average_ranks(scores, best)
    n, k = np.shape(scores)
    gaps = np.abs(ranks[:, None] - ranks)
    cd = critical_difference(k, n, alpha)
    in_errors = gaps / rank_error(k, n) * np.sqrt(2.0)
    p_values: FloatArray = stats.studentized_range.sf(in_errors, k, np.inf)
    np.fill_diagonal(p_values, 1.0)
    return Nemenyi(ranks, cd, p_values, gaps >= cd)


class WinTieLose(NamedTuple):
    """Numbers of data sets on which a method wins, ties and loses against a rival.

    >>> print(WinTieLose(5, 3, 2))
    5/3/2
    """

    win: int
    tie: int
    lose: int

    def __str__(self) -> str:
        return f"{self.win}/{self.tie}/{self.lose}"


def win_tie_lose(
    ours: ArrayLike,
    rival: ArrayLike,
    best: Best = "high",
    *,
    alpha: float = 0.05,
    margin: float = 0.01,
) -> WinTieLose:
    """Count the data sets on which a method wins, ties and loses.

    Parameters
    ----------
    ours, rival : array-like of shape (n_datasets, n_repeats) or (n_datasets,)
        Repeated scores on the same splits, compared by a two-sided paired t-test
        on each data set; or single scores, compared by `margin`. Pairs with a NaN
        are left out, and so are data sets with nothing else.
    best : {"high", "low"}, default="high"
        Which scores are good.
    alpha : float, default=0.05
        Significance level of the t-tests.
    margin : float, default=0.01
        Single scores that differ by at least this much are a win or a loss.

    Notes
    -----
    The SAOLA paper speaks of paired t-tests at 95%, but 26 of the 29 counts it
    prints are what a margin of 0.01 between its printed scores gives, and six of
    its data sets had a single run, of which no test could be made.

    Examples
    --------
    >>> str(win_tie_lose([0.95, 0.80, 0.61], [0.90, 0.85, 0.605]))
    '1/1/1'
    >>> str(win_tie_lose([[0.90, 0.91, 0.92]], [[0.80, 0.82, 0.81]]))
    '1/0/0'
    """
    first, second = np.asarray(ours, np.float64), np.asarray(rival, np.float64)
    if first.shape != second.shape or first.ndim not in (1, 2):
        raise DataError(
            "`ours` and `rival` must have one shape, (n_datasets,) or (n_datasets, "
            f"n_repeats). Got {first.shape} and {second.shape}. Scores are compared "
            "in pairs, on the same data sets and splits."
        )
    check_alpha(alpha)
    difference = sign_of(best) * (first - second)
    if difference.ndim == 1:
        known = difference[~np.isnan(difference)]
        # 0.85 - 0.84 is a little less than 0.01 in binary.
        signs = np.sign(known) * (np.abs(known) > margin - 1e-9)
    else:
        known_rows = [row[~np.isnan(row)] for row in difference]
        signs = np.array(
            [compare_repeats(row, alpha) for row in known_rows if row.size]
        )
    return WinTieLose(*(int(np.count_nonzero(signs == s)) for s in (1, 0, -1)))


def compare_repeats(difference: FloatArray, alpha: float) -> int:
    """Sign of the mean difference if a t-test finds it significant, else 0."""
    if difference.size < 2:
        raise DataError(
            "A paired t-test needs at least two repeats on every data set. Got "
            f"{difference.size}. Give single scores as an array of one dimension."
        )
    # No variance but of rounding: the statistic is infinite, or 0/0.
    if np.ptp(difference) < 1e-12:
        return int(np.sign(difference[0])) if abs(difference[0]) > 1e-12 else 0
    p_value = stats.ttest_1samp(difference, 0.0).pvalue
    return int(np.sign(difference.mean())) if p_value < alpha else 0


def rank_error(n_methods: int, n_datasets: int) -> float:
    """Standard error that the Nemenyi test gives to an average rank."""
    return float(np.sqrt(n_methods * (n_methods + 1) / (6.0 * n_datasets)))


def check_scores(scores: ArrayLike, *, min_datasets: int = 1) -> FloatArray:
    """Scores as a complete table of at least two methods."""
    table = np.asarray(scores, np.float64)
    if table.ndim != 2 or table.shape[0] < min_datasets or table.shape[1] < 2:
        raise DataError(
            "`scores` must have shape (n_datasets, n_methods), at least "
            f"({min_datasets}, 2). Got {table.shape}. Put data sets in rows and "
            "methods in columns."
        )
    is_incomplete = np.isnan(table).any(axis=1)
    if is_incomplete.any():
        raise DataError(
            f"`scores` lacks values in row {int(np.flatnonzero(is_incomplete)[0])} "
            f"({np.count_nonzero(is_incomplete)} of {len(table)} rows). Ranks need all "
            "scores: leave out these data sets or the methods that failed on them."
        )
    return table


def sign_of(best: str) -> int:
    """1 if high scores are good, -1 if low ones are."""
    return 1 if check_choice(best, "best", ("high", "low")) == "high" else -1


Repeats = Mapping[tuple[str, str], FloatArray]
"""The score in every split, by data set and selector."""


def conclude(
    scores: ArrayLike,
    methods: Sequence[str],
    *,
    what: str = "accuracy",
    best: Best = "high",
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
    p = "p < 0.001" if test.p_value < 0.001 else f"p = {test.p_value:.2g}"
    figures = f"F({k - 1}, {(k - 1) * (n - 1)}) = {test.f:.2f}, {p}"
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
    is_better = posthoc.is_different & (ranks[:, None] < ranks)
    by = (
        f"By the Nemenyi test at the {alpha:.0%} level (critical difference "
        f"{posthoc.critical_difference:.3f})"
    )
    if not is_better.any():
        return f"{by} no two methods differ significantly."
    found = enumerate_words(
        f"{methods[i]} is significantly better than "
        + enumerate_words(compress(methods, is_better[i]))
        for i in np.argsort(ranks, kind="stable")
        if is_better[i].any()
    )
    n_pairs = len(methods) * (len(methods) - 1) // 2
    others = "" if is_better.sum() == n_pairs else "; the other pairs do not differ"
    return f"{by} {found}{others}."


def enumerate_words(words: Iterable[str]) -> str:
    """``a, b and c``."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


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
    ranked: BoolArray = np.any(is_known, axis=0)
    complete: BoolArray = np.all(is_known[:, ranked], axis=1)
    selectors = tuple(compress(table.selectors, ranked))
    datasets = tuple(compress(table.datasets, complete))
    left_out = dict.fromkeys(
        compress(table.selectors, ~ranked), "no score on any data set"
    )
    for dataset, known in zip(table.datasets, is_known, strict=True):
        lost = list(compress(table.selectors, ranked & ~known))
        if lost:
            left_out[dataset] = f"no score of {enumerate_words(lost)}"
    # The same splits summed in another order differ in the last digit: that is a tie.
    scores = np.round(table.values[np.ix_(complete, ranked)], 12)
    wins = {}
    for ours, rival in permutations(table.selectors, 2):
        counts = np.zeros(3, np.int64)
        for dataset in table.datasets:
            both = np.array([repeats[dataset, ours], repeats[dataset, rival]])
            if not np.isnan(both).any():
                first, second = both if both.shape[1] == 1 else both[:, None]
                counts += win_tie_lose(first, second, table.best, alpha=alpha)
        wins[ours, rival] = WinTieLose(*counts.tolist())
    ranks: dict[str, float] = {}
    test: Friedman | None = None
    posthoc: Nemenyi | None = None
    if len(selectors) < 2:
        text = f"There are fewer than two selectors to compare in {table.what}."
    elif not datasets:
        text = f"No data set has scores of all selectors in {table.what}."
    else:
        found = average_ranks(scores, table.best).tolist()
        ranks = dict(zip(selectors, found, strict=True))
        if len(datasets) == 1:
            text = one_dataset_words(table, datasets[0], selectors, scores[0], wins)
        else:
            how: dict[str, Any] = {"best": table.best, "alpha": alpha}
            test, posthoc = friedman(scores), nemenyi(scores, **how)
            text = conclude(scores, selectors, what=table.what, **how)
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
