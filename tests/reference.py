"""The algorithms as printed, slow and obvious: the truth that kernels must meet.

Nothing here is shared with the library. Scores of discrete data are exact
rationals of logarithms in high precision where ties matter: `SU` is built from
integer counts with ``fractions``-free arithmetic on one table, as the library
promises, but by counting in dictionaries.
"""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
from scipy import stats

# Measures ---------------------------------------------------------------------


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


# Given another feature ----------------------------------------------------------


def information_given(a, classes, given, table):
    """Information of a column on the class within the categories of another one.

    In fixed point, with the degrees of freedom of its test: of each category, those
    of the table of what occurs in it.
    """
    information, df = 0, 0
    for value in set(given):
        rows = [i for i, g in enumerate(given) if g == value]
        inside = [a[i] for i in rows]
        inside_classes = [classes[i] for i in rows]
        joint = Counter(zip(inside, inside_classes, strict=True))
        information += table[len(rows)] + sum(table[c] for c in joint.values())
        for counts in (Counter(inside), Counter(inside_classes)):
            information -= sum(table[c] for c in counts.values())
        df += (len(set(inside)) - 1) * (len(set(inside_classes)) - 1)
    return information, df


def g_square_tail(information, df, table):
    """The p-value of that information, by the chi-square law of G²."""
    g_square = 2 * math.log(2) * max(information, 0) / (table[2] / 2)
    return stats.chi2.sf(g_square, df) if df else 1.0


def mid_p(ones, both, n_1, n, table):
    """Probability of more information given the margins, and half that of the same."""

    def joint(k):
        counts = (k, ones - k, n_1 - k, n - n_1 - ones + k)
        return sum(table[count] for count in counts)

    support = range(max(0, ones + n_1 - n), min(ones, n_1) + 1)
    chance = {k: stats.hypergeom.pmf(k, n, n_1, ones) for k in support}
    more = sum(chance[k] for k in support if joint(k) > joint(both))
    return more + sum(chance[k] for k in support if joint(k) == joint(both)) / 2


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


# Algorithm 1 ------------------------------------------------------------------


def saola(
    relevance,
    overlap,
    is_relevant,
    *,
    bound="min",
    ties="keep",
    pruning="interleaved",
    comparison=">=",
    max_features=None,
    is_redundant=None,
):
    """Algorithm 1 over scores given as a list and a function of two arrivals.

    ``is_redundant(loser, winner)``, if it is given, takes the place of the bound.
    Returns the kept arrivals in order, and for each feature its fate and witness.
    """
    kept, fates = [], {}
    for i, f in enumerate(relevance):
        if not is_relevant(f):  # Steps 5 to 8
            fates[i] = ("irrelevant", None)
            continue
        witness, displaced = None, []
        for j in list(kept):  # Step 9
            g = relevance[j]
            if is_redundant is None:
                limit = min(f, g) if bound == "min" else max(f, g)
                value = overlap(i, j)
                reaches = value >= limit if comparison == ">=" else value > limit
            else:
                reaches = is_redundant(*((j, i) if f > g else (i, j)))
            if not reaches:
                continue
            if g > f or (g == f and ties == "drop"):  # Step 11
                witness = j
                break
            if f > g:  # Step 16
                displaced.append(j)
        if witness is None or pruning == "interleaved":
            for j in displaced:
                kept.remove(j)
                fates[j] = ("displaced", i)
        if witness is not None:
            fates[i] = ("redundant", witness)
            continue
        kept.append(i)  # Step 20
        fates[i] = ("kept", None)
        if max_features is not None and len(kept) > max_features:
            least = min(kept, key=lambda j: (relevance[j], -j))
            kept.remove(least)
            fates[least] = ("displaced", i)
    return kept, fates


# Categories ---------------------------------------------------------------------


def categories(values, classes, binning="quantile", n_bins=5):
    """What stands for each value: itself, or the number of cut points below it."""
    present = [v for v in values if v == v]
    if binning is None or all(float(v).is_integer() for v in present):
        return ["missing" if v != v else v for v in values]
    known = [c for v, c in zip(values, classes, strict=True) if v == v]
    cuts = CUTS[binning](present, known, n_bins)
    return ["missing" if v != v else sum(c < v for c in cuts) for v in values]


def quantile_cuts(values, classes, n_bins):
    """The largest value of each bin: the first at or past each part of the rows."""
    distinct = sorted(set(values))
    if len(distinct) <= n_bins:
        return distinct[:-1]
    ordered, n = sorted(values), len(values)
    cuts = {ordered[-(-q * n // n_bins) - 1] for q in range(1, n_bins)}
    return sorted(cuts - {distinct[-1]})


def uniform_cuts(values, classes, n_bins):
    distinct = sorted(set(values))
    if len(distinct) <= n_bins:
        return distinct[:-1]
    low, high = distinct[0], distinct[-1]
    return [low + (high - low) * (q / n_bins) for q in range(1, n_bins)]


def description_length_cuts(values, classes, n_bins=None):
    """Fayyad and Irani (1993), Section 3, by recursion; n_bins plays no part."""
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
    counts = Counter(c for _, c in pairs)
    return -math.fsum(
        m / len(pairs) * math.log2(m / len(pairs)) for m in counts.values()
    )


CUTS = {
    "quantile": quantile_cuts,
    "uniform": uniform_cuts,
    "mdl": description_length_cuts,
}


# Algorithm 2 ------------------------------------------------------------------


def group_saola(
    groups,
    relevance,
    overlap,
    is_relevant,
    *,
    bound="min",
    ties="keep",
    pruning="interleaved",
    comparison=">=",
    irrelevant="drop",
):
    """Algorithm 2 over groups, which are lists of features in order of arrival.

    Loops are nested as printed, and what has been removed takes no further part.
    Returns what is left of each kept group, by its number, and for each feature
    its fate and witness. ``irrelevant="stay"`` leaves irrelevant features of a
    relevant group in play, as the print does to the letter.
    """
    fates, kept, place = {}, {}, {}
    for group in groups:
        for feature in group:
            place[feature] = len(place)

    def loser(a, b):
        """Which of two features must go, if any; None for neither."""
        f, g = relevance[a], relevance[b]
        limit = min(f, g) if bound == "min" else max(f, g)
        value = overlap(a, b)
        reaches = value >= limit if comparison == ">=" else value > limit
        if not reaches or (f == g and ties == "keep"):
            return None
        if f == g:
            return max(a, b, key=place.get)
        return a if f < g else b

    for number, group in enumerate(groups):
        for feature in group:
            fates[feature] = ("irrelevant", None)
        if not any(is_relevant(relevance[f]) for f in group):  # Steps 5 to 8
            continue
        new = [f for f in group if irrelevant == "stay" or is_relevant(relevance[f])]
        if pruning == "interleaved":
            _prune_within(new, loser, fates)
            _prune_between(new, kept, loser, fates)
        else:
            left = []
            for f in new:
                _walk_deferred(f, {number: left}, loser, fates, "redundant")
            new = list(left)
            older = {m: list(old) for m, old in kept.items()}
            for f in list(new):
                if not _walk_deferred(f, older, loser, fates, "displaced", add=False):
                    new.remove(f)
            kept = {m: old for m, old in older.items() if old}
        for f in new:
            fates[f] = ("kept", None)
        if new:  # Steps 36 to 38
            kept[number] = new
    return kept, fates


def _prune_within(new, loser, fates):
    """Steps 10 to 19: every feature against every other of its group."""
    for f in list(new):
        for y in list(new):
            if f not in new or y not in new or y == f:
                continue
            out = loser(f, y)
            if out is not None:  # Step 11 or Step 16
                new.remove(out)
                fates[out] = ("redundant", y if out == f else f)


def _prune_between(new, kept, loser, fates):
    """Steps 21 to 35: the features of each kept group against those of the new one."""
    for number in list(kept):
        old = kept[number]
        for f in list(new):
            for k in list(old):
                if f not in new or k not in old:
                    continue
                out = loser(f, k)
                if out == k:  # Step 22
                    old.remove(k)
                    fates[k] = ("displaced", f)
                elif out == f:  # Step 26
                    new.remove(f)
                    fates[f] = ("redundant", k)
        if not old:
            del kept[number]
        if not new:
            break


def _walk_deferred(f, groups, loser, fates, fate, *, add=True):
    """One feature along others; it removes some only if none removes it."""
    weaker = []
    for members in groups.values():
        for y in members:
            out = loser(f, y)
            if out == f:
                fates[f] = ("redundant", y)
                return False
            if out == y:
                weaker.append((members, y))
    for members, y in weaker:
        members.remove(y)
        fates[y] = (fate, f)
    if add:
        next(iter(groups.values())).append(f)
    return True


def group_saola_of_the_library(groups, relevance, overlap, is_relevant, bound="min"):
    """Group-SAOLA as the authors' own library does it.

    Lists are frozen while two groups are compared: removed features still act.
    Returns what is left of each kept group, by its number.
    """

    def covers(a, b):
        f, g = relevance[a], relevance[b]
        return overlap(a, b) > (min(f, g) if bound == "min" else max(f, g))

    kept = {}
    for number, group in enumerate(groups):
        new = []
        for f in group:
            if not is_relevant(relevance[f]):
                continue
            for y in list(new):
                if relevance[y] >= relevance[f] and covers(f, y):
                    break
                if relevance[f] > relevance[y] and covers(f, y):
                    new.remove(y)
            else:
                new.append(f)
        gone = set()
        for old in kept.values():
            for f in new:
                for k in old:
                    if relevance[k] > relevance[f] and covers(f, k):
                        gone.add(f)
                        break
                    if relevance[f] >= relevance[k] and covers(f, k):
                        gone.add(k)
        kept[number] = new
        kept = {m: [f for f in left if f not in gone] for m, left in kept.items()}
        kept = {m: left for m, left in kept.items() if left}
    return kept


# Pairs ------------------------------------------------------------------------


def interaction(a, b, y):
    """G² of the interaction of two columns with the class, and whether it is a test.

    ``2 n (I(A,B;C) - I(A;C) - I(B;C))`` in nats. There is something to test if more
    cells of the table of the two have five rows than their margins need.
    """
    n, table = len(y), nlogn(len(y))

    def shared(values):
        counts, classes = Counter(values), Counter(y)
        joint = sum(table[c] for c in Counter(zip(values, y, strict=True)).values())
        own = sum(table[c] for c in counts.values())
        return table[n] + joint - own - sum(table[c] for c in classes.values())

    pair = list(zip(a, b, strict=True))
    total = shared(pair) - shared(a) - shared(b)
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
