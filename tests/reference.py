"""The algorithms as printed, slow and obvious: the truth that kernels must meet.

Nothing here is shared with the library. Scores of discrete data are made of integers
from one table of n log n, as the library promises, but by counting in dictionaries.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import stats


def nlogn(n):
    """Table of k log2 k in fixed point: the integers of which scores are made."""
    values = [0.0] + [k * math.log2(k) for k in range(1, n + 1)]
    shift = 51 - math.ceil(math.log2(max(values[-1], 1.0)))
    return [round(math.ldexp(v, shift)) for v in values]


def information(a, b, table):
    """Mutual information and the two entropies, in fixed point."""
    n = len(a)
    count_a, count_b, joint = Counter(a), Counter(b), Counter(zip(a, b, strict=True))
    own_a = sum(table[c] for c in count_a.values())
    own_b = sum(table[c] for c in count_b.values())
    both = sum(table[c] for c in joint.values())
    shared = table[n] + both - own_a - own_b
    is_independent = all(
        n * joint[p, q] == count_a[p] * count_b[q] for p in count_a for q in count_b
    )
    if is_independent:
        shared = 0
    return shared, table[n] - own_a, table[n] - own_b


def symmetrical_uncertainty(a, b, table):
    shared, entropy_a, entropy_b = information(a, b, table)
    if entropy_a + entropy_b == 0:
        return 0.0
    return 2 * max(shared, 0) / (entropy_a + entropy_b)


def mutual_information(a, b, table):
    shared, _, _ = information(a, b, table)
    return max(shared, 0) / (len(a) * (table[2] // 2))


def correlation(a, b):
    """Absolute correlation, in exact integers until the last step for integer data."""
    n = len(a)
    sum_a, sum_b = math.fsum(a), math.fsum(b)
    cross = n * math.fsum(x * y for x, y in zip(a, b, strict=True)) - sum_a * sum_b
    square_a = n * math.fsum(x * x for x in a) - sum_a * sum_a
    square_b = n * math.fsum(x * x for x in b) - sum_b * sum_b
    if square_a <= 0 or square_b <= 0:
        return 0.0
    return abs(cross) / (math.sqrt(square_a) * math.sqrt(square_b))


def correlation_ratio(a, classes):
    """Square root of the variance between classes over the whole variance."""
    mean = math.fsum(a) / len(a)
    whole = math.fsum((x - mean) ** 2 for x in a)
    if whole == 0:
        return 0.0
    between = 0.0
    for c in set(classes):
        members = [x for x, k in zip(a, classes, strict=True) if k == c]
        between += len(members) * (math.fsum(members) / len(members) - mean) ** 2
    return math.sqrt(between / whole)


def information_given(a, classes, given, table):
    """Information of a column on the class within the categories of another one.

    In fixed point, with the degrees of freedom of its test: of each category, those
    of the table of what occurs in it.
    """
    total, df = 0, 0
    for value in set(given):
        rows = [i for i, g in enumerate(given) if g == value]
        inside = [a[i] for i in rows]
        inside_classes = [classes[i] for i in rows]
        total += information(inside, inside_classes, table)[0]
        df += (len(set(inside)) - 1) * (len(set(inside_classes)) - 1)
    return total, df


def g_square_tail(information, df, table):
    """The p-value of that information, by the chi-square law of G²."""
    g_square = 2 * math.log(2) * max(information, 0) / (table[2] / 2)
    return stats.chi2.sf(g_square, df) if df else 1.0


def fisher_exact(ones, both, n_1, n):
    """Probability, given the margins, of all tables that are no more probable."""
    support = range(max(0, ones + n_1 - n), min(ones, n_1) + 1)
    chance = {k: stats.hypergeom.pmf(k, n, n_1, ones) for k in support}
    limit = chance[both] * (1 + 1e-7)
    return min(1.0, sum(p for p in chance.values() if p <= limit))


def lord(p_values, alpha):
    """LORD++ as printed: one term for every rejection.

    The series is a mixture of geometric ones of mean length 1, 2, 4 to 2²⁵; each has
    the weight that log(j) / exp(sqrt(log j)) has at its length.
    """
    lengths = [2.0**k for k in range(26)]
    weights = [
        math.log(max(j, 2.0)) / math.exp(math.sqrt(math.log(j))) for j in lengths
    ]

    def gamma(j):
        terms = zip(weights, lengths, strict=True)
        return sum(w / m * (1 - 1 / m) ** (j - 1) for w, m in terms) / sum(weights)

    times = []
    for t, p in enumerate(p_values, start=1):
        level = alpha / 2 * gamma(t)
        for order, time in enumerate(times):
            level += (alpha / 2 if order == 0 else alpha) * gamma(t - time)
        if p <= level:
            times.append(t)
    return [t in times for t in range(1, len(p_values) + 1)]


def is_thin(columns):
    """Whether the table of some columns has fewer than five samples per cell."""
    n_cells = math.prod(len(set(column)) for column in columns)
    return 5 * n_cells > len(columns[0]) or n_cells > 4096


def explained_given(a, classes, given):
    """Share of a column's variance that the class explains, beyond another column.

    By two regressions: on the other column, and on the class as well.
    """
    constant = np.ones(len(a))
    dummies = [[k == c for k in classes] for c in sorted(set(classes))[1:]]
    less = np.column_stack([constant, given])
    more = np.column_stack([constant, given, *np.array(dummies, float)])
    left = [np.sum((a - x @ np.linalg.lstsq(x, a)[0]) ** 2) for x in (less, more)]
    return 1 - left[1] / left[0]


class Scores(NamedTuple):
    """What the algorithms ask about features, which are numbered as they arrive."""

    relevance: list[float]
    overlap: Callable[[int, int], float] | None
    is_relevant: Callable[[float], bool]


def discrete_scores(X, y, score, threshold=0.0):
    columns, classes, table = X.T.tolist(), y.tolist(), nlogn(len(y))
    return Scores(
        [score(column, classes, table) for column in columns],
        lambda i, j: score(columns[i], columns[j], table),
        lambda f: f > threshold,
    )


def loser(a, b, scores, bound="min", ties="keep", overlap=">=", is_redundant=None):
    """Which of two features must go (Steps 11 and 16); None for neither.

    ``is_redundant(loser, winner)``, if it is given, takes the place of the bound.
    """
    f, g = scores.relevance[a], scores.relevance[b]
    if f == g and ties == "keep":
        return None
    out = max(a, b) if f == g else a if f < g else b
    if is_redundant is not None:
        return out if is_redundant(out, a + b - out) else None
    limit = min(f, g) if bound == "min" else max(f, g)
    value = scores.overlap(a, b)
    reaches = value >= limit if overlap == ">=" else value > limit
    return out if reaches else None


def saola(scores, *, pruning="interleaved", max_features=None, **rule):
    """Algorithm 1: each feature's fate and witness; the rule is that of `loser`."""
    kept, fates = [], {}
    for i, f in enumerate(scores.relevance):
        fates[i] = ("irrelevant", None)
        if not scores.is_relevant(f):  # Steps 5 to 8
            continue
        witness, displaced = None, []
        for j in list(kept):  # Step 9
            out = loser(i, j, scores, **rule)
            if out == i:  # Step 11
                witness = j
                break
            if out == j and pruning != "newcomers":  # Step 16
                displaced.append(j)
        if witness is None or pruning != "deferred":
            for j in displaced:
                kept.remove(j)
                fates[j] = ("displaced", i)
        if witness is not None:
            fates[i] = ("redundant", witness)
            continue
        kept.append(i)  # Step 20
        fates[i] = ("kept", None)
        if max_features is not None and len(kept) > max_features:
            least = min(kept, key=lambda j: (scores.relevance[j], -j))
            kept.remove(least)
            fates[least] = ("displaced", i)
    return fates


def categories(values, classes, binning="quantile", n_bins=5):
    """What stands for each value: itself, or the number of cut points below it."""
    present = [v for v in values if v == v]
    if binning is None or all(float(v).is_integer() for v in present):
        return ["missing" if v != v else v for v in values]
    ordered, distinct, n = sorted(present), sorted(set(present)), len(present)
    low, high = distinct[0], distinct[-1]
    if binning == "mdl":
        known = [c for v, c in zip(values, classes, strict=True) if v == v]
        cuts = description_length_cuts(present, known)
    elif len(distinct) <= n_bins:
        cuts = distinct[:-1]
    elif binning == "uniform":
        cuts = [low + (high - low) * (q / n_bins) for q in range(1, n_bins)]
    else:  # the largest value of each bin: the first at or past each part of the rows
        cuts = {ordered[-(-q * n // n_bins) - 1] for q in range(1, n_bins)} - {high}
    return ["missing" if v != v else sum(c < v for c in cuts) for v in values]


def description_length_cuts(values, classes):
    """Fayyad and Irani (1993), Section 3, by recursion."""
    pairs = sorted(zip(values, classes, strict=True))
    n, k = len(pairs), len(set(classes))
    splits = [i for i in range(1, n) if pairs[i - 1][0] != pairs[i][0]]
    if not splits or k < 2:
        return []

    def class_information(i):
        left, right = pairs[:i], pairs[i:]
        return (i * class_entropy(left) + (n - i) * class_entropy(right)) / n

    cost = {i: class_information(i) for i in splits}
    least = min(cost.values())
    best = next(i for i in splits if cost[i] <= least + 1e-12)
    left, right = pairs[:best], pairs[best:]
    whole = class_entropy(pairs)
    k_left, k_right = len({c for _, c in left}), len({c for _, c in right})
    spared = k * whole - k_left * class_entropy(left) - k_right * class_entropy(right)
    price = (math.log2(n - 1) + math.log2(3**k - 2) - spared) / n
    if whole - cost[best] <= price:
        return []
    return [
        *description_length_cuts(*zip(*left, strict=True)),
        left[-1][0],
        *description_length_cuts(*zip(*right, strict=True)),
    ]


def class_entropy(pairs):
    shares = [m / len(pairs) for m in Counter(c for _, c in pairs).values()]
    return -math.fsum(share * math.log2(share) for share in shares)


def group_saola(
    groups,
    scores,
    *,
    pruning="interleaved",
    reading="relevant",
    max_features=None,
    **rule,
):
    """Algorithm 2 over groups, lists of features: for each its fate and witness.

    Loops are nested as printed, and what has been removed takes no further part. To
    the letter, Steps 5 to 8 drop no single feature of a group.
    """
    fates, kept = {}, []
    for group in groups:
        fates |= dict.fromkeys(group, ("irrelevant", None))
        new = [f for f in group if scores.is_relevant(scores.relevance[f])]
        if new and reading == "literal":  # Steps 5 to 8
            new = list(group)
        if pruning != "deferred":
            displaces = pruning == "interleaved"
            _prune_within(new, scores, rule, fates, displaces)
            _prune_between(new, kept, scores, rule, fates, displaces)
        else:
            left = []
            for f in new:
                if _walk_deferred(f, [left], scores, rule, fates, "redundant"):
                    left.append(f)
            new = [
                f
                for f in left
                if _walk_deferred(f, kept, scores, rule, fates, "displaced")
            ]
        fates |= dict.fromkeys(new, ("kept", None))
        kept = [old for old in (*kept, new) if old]  # Steps 36 to 38
        while max_features is not None and sum(map(len, kept)) > max_features:
            every = [f for old in kept for f in old]
            least = min(every, key=lambda f: (scores.relevance[f], -f))
            fates[least] = ("displaced", new[-1])
            kept = [[f for f in old if f != least] for old in kept]
            kept = [old for old in kept if old]
    return fates


def _prune_within(new, scores, rule, fates, displaces):
    """Steps 10 to 19: every feature against every other of its group."""
    for f in list(new):
        for y in list(new):
            if f not in new or y not in new or y == f:
                continue
            out = loser(f, y, scores, **rule)
            if out is not None and (displaces or out == max(f, y)):  # Steps 11 and 16
                new.remove(out)
                fates[out] = ("redundant", y if out == f else f)


def _prune_between(new, kept, scores, rule, fates, displaces):
    """Steps 21 to 35: the features of each kept group against those of the new one."""
    for old in kept:
        for f in list(new):
            for k in list(old):
                if f not in new or k not in old:
                    continue
                out = loser(f, k, scores, **rule)
                if out == k and not displaces:
                    continue
                if out == k:  # Step 22
                    old.remove(k)
                    fates[k] = ("displaced", f)
                elif out == f:  # Step 26
                    new.remove(f)
                    fates[f] = ("redundant", k)


def _walk_deferred(f, groups, scores, rule, fates, fate):
    """One feature along others; it removes some only if none removes it."""
    weaker = []
    for members in groups:
        for y in members:
            out = loser(f, y, scores, **rule)
            if out == f:
                fates[f] = ("redundant", y)
                return False
            if out == y:
                weaker.append((members, y))
    for members, y in weaker:
        members.remove(y)
        fates[y] = (fate, f)
    return True


def group_saola_of_the_library(groups, scores, bound="min"):
    """Group-SAOLA as the authors' own library does it: what is left of each group.

    Lists are frozen while two groups are compared: removed features still act.
    """
    relevance = scores.relevance

    def covers(a, b):
        f, g = relevance[a], relevance[b]
        return scores.overlap(a, b) > (min(f, g) if bound == "min" else max(f, g))

    kept = []
    for group in groups:
        new = []
        for f in group:
            if not scores.is_relevant(relevance[f]):
                continue
            for y in list(new):
                if relevance[y] >= relevance[f] and covers(f, y):
                    break
                if relevance[f] > relevance[y] and covers(f, y):
                    new.remove(y)
            else:
                new.append(f)
        gone = set()
        for old in kept:
            for f in new:
                for k in old:
                    if relevance[k] > relevance[f] and covers(f, k):
                        gone.add(f)
                        break
                    if relevance[f] >= relevance[k] and covers(f, k):
                        gone.add(k)
        kept = [[f for f in left if f not in gone] for left in (*kept, new)]
    return kept


def interaction(a, b, y):
    """G² of the interaction of two columns with the class, and whether it is a test.

    ``2 n (I(A,B;C) - I(A;C) - I(B;C))`` in nats. There is something to test if more
    cells of the table of the two have five rows than their margins need.
    """
    table, pair = nlogn(len(y)), list(zip(a, b, strict=True))
    both, first, second = (information(v, y, table)[0] for v in (pair, a, b))
    total = both - first - second
    n_thick = sum(count >= 5 for count in Counter(pair).values())
    g2 = total * 2 * math.log(2) / (table[2] / 2)
    return g2, n_thick > len(set(a)) + len(set(b)) - 1


def level_of_pairs(n_before, n_tests, alpha):
    """Level of each of the next tests: what is left before less what is after."""

    def left(m):
        return 1 / math.log2(2 + m / 100_000)

    return alpha * (left(n_before) - left(n_before + n_tests)) / n_tests


def partition(values):
    """The sets of rows with one value."""
    return frozenset(
        frozenset(i for i, value in enumerate(values) if value == wanted)
        for wanted in set(values)
    )


def interaction_screen(columns, y, alpha, p_value, n_features=None):
    """All pairs, one after the other, in the order of arrival.

    Returns the kept features with their partners, the kept pairs, and the number of
    pairs tested. Copies of kept features do not enter.
    """
    n_classes, n_tested, pairs, partners = len(set(y)), 0, [], {}
    for j, new in enumerate(columns):
        tests = []
        for i, old in enumerate(columns[:j]):
            g2, is_test = interaction(old, new, y)
            if is_test:
                df = (len(set(old)) - 1) * (len(set(new)) - 1) * (n_classes - 1)
                tests.append((p_value(df, g2), -g2, i))
        if not tests:
            continue
        level = level_of_pairs(n_tested, len(tests), alpha)
        if n_features is not None:
            level = alpha / math.comb(n_features, 2)
        n_tested += len(tests)
        for p, _, i in sorted(tests):
            entering = [k for k in (i, j) if k not in partners]
            known = {partition(columns[k]) for k in partners}
            if p > level or any(partition(columns[k]) in known for k in entering):
                continue
            pairs.append((i, j))
            partners |= {k: i + j - k for k in entering}
    return partners, pairs, n_tested
