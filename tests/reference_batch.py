"""The batch selectors as they are published: slow and obvious.

Columns are integer codes. Entropies are in bits, of rows that are counted by numpy.
"""

from itertools import combinations

import numpy as np
from scipy.stats import chi2, norm

from reference_rivals import partial_correlation


def entropy(*columns):
    """Joint entropy of some columns."""
    counts = np.unique(np.column_stack(columns), axis=0, return_counts=True)[1]
    shares = counts / counts.sum()
    return float(-(shares * np.log2(shares)).sum())


def information(a, b):
    return entropy(a) + entropy(b) - entropy(a, b)


def conditional_information(a, b, c):
    return entropy(a, c) + entropy(b, c) - entropy(a, b, c) - entropy(c)


def symmetrical_uncertainty(a, b):
    both = entropy(a) + entropy(b)
    return 2 * information(a, b) / both if both else 0.0


def fcbf(X, y, threshold=0.0):
    """FCBF, with the list operations of the published pseudo-code.

    Yu and Liu (2004), Algorithm 1. Scores are rounded to ten digits: copies tie.
    """

    def su(a, b):
        return round(symmetrical_uncertainty(a, b), 10)

    relevance = [su(X[:, i], y) for i in range(X.shape[1])]
    listed = [i for i in range(X.shape[1]) if relevance[i] > threshold]
    listed.sort(key=lambda i: -relevance[i])
    place = 0
    while place < len(listed):  # F_p
        p = listed[place]
        follower = place + 1
        while follower < len(listed):  # F_q
            q = listed[follower]
            if su(X[:, p], X[:, q]) >= relevance[q]:
                listed.remove(q)
            else:
                follower += 1
        place += 1
    return listed


def f_statistic(x, y):
    """One-way analysis of variance of a column over classes."""
    groups = [x[y == c] for c in np.unique(y)]
    between = sum(g.size * (g.mean() - x.mean()) ** 2 for g in groups)
    within = sum(((g - g.mean()) ** 2).sum() for g in groups)
    return (between / (len(groups) - 1)) / (within / (x.size - len(groups)))


def correlation(a, b):
    return abs(np.corrcoef(a, b)[0, 1])


def mrmr(X, y, chosen, j, relevance, overlap, scheme):
    """Peng, Long and Ding (2005), and the quotient of Ding and Peng (2005)."""
    relevant = relevance(X[:, j], y)
    if not chosen:
        return relevant
    overlaps = [overlap(X[:, j], X[:, k]) for k in chosen]
    if scheme == "difference":
        return relevant - np.mean(overlaps)
    return relevant / np.mean(np.maximum(overlaps, 1e-3))


def jmi(X, y, chosen, j):
    """The sum of I(X_j, X_k; Y)."""
    if not chosen:
        return information(X[:, j], y)
    x = X[:, j]
    return sum(entropy(x, z) + entropy(y) - entropy(x, z, y) for z in X[:, chosen].T)


def cmim(X, y, chosen, j):
    """The least of I(X_j; Y | X_k), and of I(X_j; Y)."""
    x = X[:, j]
    given = [conditional_information(x, y, z) for z in X[:, chosen].T]
    return min([information(x, y), *given])


def disr(X, y, chosen, j):
    """The sum of I(X_j, X_k; Y) / H(X_j, X_k, Y)."""
    if not chosen:
        return information(X[:, j], y)
    x = X[:, j]
    return sum(
        (entropy(x, z) + entropy(y) - entropy(x, z, y)) / entropy(x, z, y)
        for z in X[:, chosen].T
    )


def cife(X, y, chosen, j):
    """I(X_j; Y), less the sum of I(X_j; X_k), plus that of I(X_j; X_k | Y)."""
    x = X[:, j]
    return information(x, y) + sum(
        conditional_information(x, z, y) - information(x, z) for z in X[:, chosen].T
    )


# Markov blankets, by a function that tests two variables given others -------------


def g_test(X, y, alpha=0.01, samples_per_df=5, occurring=False):
    """A test of variables: columns of X, and the target as the number after them.

    With ``occurring`` the degrees of freedom are those of the configurations of the
    given variables that occur.
    """
    data = np.column_stack([X, y])
    arity = [np.unique(column).size for column in data.T]

    def test(a, b, given):
        """The p-value, whether there are enough samples, and the effect in bits."""
        members = [data[:, m] for m in given]
        if members:
            found = conditional_information(
                data[:, a], data[:, b], np.column_stack(members)
            )
        else:
            found = information(data[:, a], data[:, b])
        df = max(
            1, (arity[a] - 1) * (arity[b] - 1) * np.prod([arity[m] for m in given])
        )
        if len(y) < samples_per_df * df:
            return 1.0, False, 0.0
        if occurring and members:
            n_occurring = np.unique(np.column_stack(members), axis=0).shape[0]
            df = max(1, (arity[a] - 1) * (arity[b] - 1) * n_occurring)
        return chi2.sf(max(found, 0.0) * 2 * len(y) * np.log(2), df), True, found

    test.alpha, test.target = alpha, X.shape[1]
    return test


def fisher_test(X, y, alpha=0.01):
    """The same by partial correlations: those of the residuals of two regressions."""
    data = np.column_stack([X, y]).astype(float)

    def test(a, b, given):
        r = partial_correlation(data[:, a], data[:, b], data[:, list(given)].T)
        statistic = np.sqrt(len(y) - len(given) - 3) * np.arctanh(r)
        return 2 * norm.sf(statistic), True, r

    test.alpha, test.target = alpha, X.shape[1]
    return test


def strongest(scored):
    """The variable of the smallest p-value; of equals, of the largest effect."""
    return min(scored, key=lambda v: (scored[v][0], -scored[v][1], v))


def iamb(test):
    """Tsamardinos, Aliferis and Statnikov (FLAIRS 2003)."""
    target, blanket = test.target, []
    while True:
        dependent = {}
        for v in range(target):
            p, _, effect = test(v, target, blanket)
            if v not in blanket and p < test.alpha:
                dependent[v] = (p, effect)
        if not dependent:
            break
        blanket.append(strongest(dependent))
    for v in list(blanket):
        others = [w for w in blanket if w != v]
        if not test(v, target, others)[0] < test.alpha:
            blanket.remove(v)
    return blanket


def mmpc(test, a, most):
    """MMPC of [Tsamardinos, Brown and Aliferis 2006], without the symmetric step."""
    found, separators = [], {}
    while True:
        weakest = {}
        for v in range(test.target + 1):
            if v == a or v in found or v in separators:
                continue
            results = []
            for given in subsets(found, most):
                p, _, effect = test(v, a, given)
                if not p < test.alpha:
                    separators[v] = given
                    break
                results.append((p, effect))
            else:
                weakest[v] = max(p for p, _ in results), min(e for _, e in results)
        if not weakest:
            break
        found.append(strongest(weakest))
    for v in list(found):
        for given in subsets([w for w in found if w != v], most):
            if not test(v, a, given)[0] < test.alpha:
                found.remove(v)
                separators[v] = given
                break
    return found, separators


def subsets(members, most):
    for size in range(min(most, len(members)) + 1):
        yield from combinations(members, size)


def mmmb(test, most=3, symmetric=False):
    """MMMB: parents, children, and spouses through a common child."""
    target = test.target
    blanket, separators = mmpc(test, target, most)
    candidates = {child: mmpc(test, child, most)[0] for child in blanket}
    if symmetric:
        blanket = [v for v in blanket if target in candidates[v]]
    for child in list(blanket):
        for spouse in candidates[child]:
            given = separators.get(spouse)
            if spouse == target or spouse in blanket or given is None or child in given:
                continue
            if test(spouse, target, [*given, child])[0] < test.alpha:
                blanket.append(spouse)
    return blanket
