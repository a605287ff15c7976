"""The batch selectors as they are published: slow and obvious.

Columns are integer codes. Entropies are in bits, of rows that are counted by numpy.
"""

import numpy as np
from scipy.optimize import brentq
from scipy.stats import chi2, f_oneway, norm

from reference_rivals import degrees, g_square, partial_correlation, subsets


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
    return f_oneway(*(x[y == c] for c in np.unique(y))).statistic


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


def _together(x, z, y):
    """What two variables say about a third: I(X, Z; Y)."""
    return entropy(x, z) + entropy(y) - entropy(x, z, y)


def jmi(X, y, chosen, j):
    """The sum of I(X_j, X_k; Y)."""
    if not chosen:
        return information(X[:, j], y)
    return sum(_together(X[:, j], z, y) for z in X[:, chosen].T)


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
    return sum(_together(x, z, y) / entropy(x, z, y) for z in X[:, chosen].T)


def cife(X, y, chosen, j):
    """I(X_j; Y), less the sum of I(X_j; X_k), plus that of I(X_j; X_k | Y)."""
    x = X[:, j]
    return information(x, y) + sum(
        conditional_information(x, z, y) - information(x, z) for z in X[:, chosen].T
    )


# Markov blankets, by a function that tests two variables given others -------------


def g_test(X, y, alpha=0.01, samples_per_df=5, occurring=False):
    """A test of variables: columns of X, and the target as the number after them.

    It gives the p-value and the effect. With ``occurring`` the degrees of freedom are
    those of the configurations of the given variables that occur.
    """
    data = [*X.T.tolist(), y.tolist()]

    def test(a, b, given):
        members = [data[m] for m in given]
        df = degrees(data[a], data[b], members)
        if len(y) < samples_per_df * df:
            return 1.0, 0.0
        if occurring and members:
            n_occurring = len(set(zip(*members, strict=True)))
            df = max(1, degrees(data[a], data[b]) * n_occurring)
        statistic = g_square(data[a], data[b], members)
        return chi2.sf(statistic, df), statistic

    test.alpha, test.target = alpha, X.shape[1]
    return test


def fisher_test(X, y, alpha=0.01):
    """The same by partial correlations: those of the residuals of two regressions."""
    data = np.column_stack([X, y]).astype(float)

    def test(a, b, given):
        r = partial_correlation(data[:, a], data[:, b], data[:, list(given)].T)
        statistic = np.sqrt(len(y) - len(given) - 3) * np.arctanh(r)
        return 2 * norm.sf(statistic), r

    test.alpha, test.target = alpha, X.shape[1]
    return test


def strongest(scored):
    """The variable of the smallest p-value; of equals, of the largest effect."""
    return min(scored, key=lambda v: (scored[v][0], -scored[v][1], v))


def iamb(test):
    """Tsamardinos, Aliferis and Statnikov (FLAIRS 2003)."""
    target, blanket = test.target, []
    while True:
        others = set(range(target)) - set(blanket)
        tested = {v: test(v, target, blanket) for v in others}
        dependent = {v: found for v, found in tested.items() if found[0] < test.alpha}
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
        for v in set(range(test.target + 1)) - {a, *found, *separators}:
            sets = [(), *subsets(found, most)]
            tested = {given: test(v, a, given) for given in sets}
            separating = [g for g, (p, _) in tested.items() if not p < test.alpha]
            if separating:
                separators[v] = separating[0]
            else:
                p_values, effects = zip(*tested.values(), strict=True)
                weakest[v] = max(p_values), min(effects)
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


# Models of dense arrays, by plain loops -------------------------------------------


def standardise(X, length=1.0):
    """Columns of mean 0 and one length; constants become zero."""
    centred = X - X.mean(axis=0)
    norms = np.linalg.norm(centred, axis=0)
    return centred * np.where(norms > 1e-9, length / np.maximum(norms, 1e-300), 0.0)


def least_angles(Z, Y, n_features):
    """Features in the order in which they enter a least-angle regression."""
    entered, fitted = [], np.zeros_like(Y)
    while len(entered) < n_features:
        sizes = np.linalg.norm(Z.T @ (Y - fitted), axis=1)
        sizes[entered] = -1.0
        level = float(sizes.max())
        if level < 1e-9:
            break
        entered.append(int(sizes.argmax()))
        used = Z[:, entered]
        goal = used @ np.linalg.lstsq(used, Y, rcond=None)[0]
        moves, step = goal - fitted, 1.0
        for j in set(range(Z.shape[1])) - set(entered):
            gap = lambda g, j=j: (  # noqa: E731
                np.linalg.norm(Z[:, j] @ (Y - fitted - g * moves)) - (1 - g) * level
            )
            if gap(0.0) < -1e-12 and gap(1.0) > 1e-12:
                step = min(step, brentq(gap, 0.0, 1.0, xtol=1e-14))
        fitted = fitted + step * moves
    return entered


def machine_gap(Z, signs, weights, intercept, norm, cost, plane_size):
    """Value of the sparse machine, and how far from the optimum it can be.

    ``norm`` is the sum of the norms of its groups. The bound is weak duality: no
    machine is better than the dual value of any point.
    """
    losses = np.maximum(0.0, 1.0 - signs * (Z @ weights + intercept))
    value = norm**2 / 2 + cost / 2 * (losses**2).sum()
    dual = cost * losses
    worst = np.sort((Z.T @ (dual * signs)) ** 2)[::-1][:plane_size].sum()
    bound = dual.sum() - (dual**2).sum() / (2 * cost) - worst / 2
    return value, value - bound


def study(seed):
    """Ten factors of falling weight, six noisy copies of each."""
    rng = np.random.default_rng(seed)
    factors = rng.normal(size=(600, 10))
    y = factors @ np.linspace(2, 1, 10) > 0
    X = np.repeat(factors, 6, axis=1) + 0.3 * rng.normal(size=(600, 60))
    return X[:300], y[:300], X[300:], y[300:]
