"""The rivals of SAOLA as published, slow and obvious: the truth to be met."""

from itertools import chain, combinations

import numpy as np
from scipy.special import xlogy
from scipy.stats.contingency import crosstab, expected_freq

# Tests of conditional independence ----------------------------------------------


def tables(a, b, given):
    """The counts of (a, b) within each configuration of the given columns."""
    found = {}
    for row in zip(a, b, *given, strict=True):
        found.setdefault(row[2:], []).append(row[:2])
    return [crosstab(*zip(*pairs, strict=True)).count for pairs in found.values()]


def g_square(a, b, given=()):
    found = tables(a, b, given)
    return sum(2 * xlogy(n, n / expected_freq(n)).sum() for n in found)


def chi_square(a, b, given=()):
    """Pearson's, with half a count off where fewer than ten are expected."""
    total = 0.0
    for table in tables(a, b, given):
        expected = expected_freq(table)
        gap = np.abs(table - expected) - 0.5 * (expected < 10)
        total += (gap**2 / expected).sum()
    return total


def degrees(a, b, given=()):
    df = (len(set(a)) - 1) * (len(set(b)) - 1)
    for column in given:
        df *= len(set(column))
    return max(df, 1)


def partial_correlation(a, b, given=()):
    """Correlation of the residuals of two least squares fits on the given columns."""
    design = np.column_stack([np.ones(len(a)), *given])
    left, right = (
        v - design @ np.linalg.lstsq(design, v, rcond=None)[0]
        for v in (np.asarray(a, float), np.asarray(b, float))
    )
    scale = np.linalg.norm(left) * np.linalg.norm(right)
    return 0.0 if scale == 0 else float(abs(left @ right) / scale)


# OSFS and Fast-OSFS -------------------------------------------------------------


def subsets(candidates, max_size):
    return chain.from_iterable(
        combinations(candidates, size) for size in range(1, max_size + 1)
    )


def osfs(n_features, is_relevant, separates, max_size=3, *, is_fast=False):
    """Over a test of each feature, and one of a feature given a set of others."""

    def is_redundant(feature, others, must=()):
        return any(
            separates(feature, given)
            for given in subsets(others, max_size)
            if set(must) <= set(given)
        )

    kept = []
    for new in range(n_features):
        if not is_relevant(new):
            continue
        if is_fast and is_redundant(new, kept):
            continue
        kept.append(new)
        must = (new,) if is_fast else ()
        for feature in list(kept):
            if is_fast and feature == new:
                continue
            if is_redundant(feature, [k for k in kept if k != feature], must):
                kept.remove(feature)
    return kept


# Alpha-investing ----------------------------------------------------------------


def squared_error(columns, y):
    """Of the least squares fit of ``y`` on the columns, by a pseudo-inverse."""
    if not columns:
        return float(y @ y)
    design = np.column_stack(columns)
    return float(np.sum((y - design @ (np.linalg.pinv(design) @ y)) ** 2))


def alpha_investing(X, y, *, start, first, wealth=0.5, payout=0.5):
    """As published; ``start`` is the model's first columns, ``first`` the first index.

    The count of features continues from the number of columns before ``first``.
    """
    model, kept, n = list(start), [], len(y)
    for i in range(first, X.shape[1]):
        alpha = wealth / (2 * (i + 1))
        before = squared_error(model, y)
        after = squared_error([*model, X[:, i]], y)
        p_value = 1.0 if before < 1e-18 else np.exp((after - before) * n / (2 * before))
        if p_value < alpha:
            model.append(X[:, i])
            kept.append(i)
            wealth += payout - alpha
        else:
            wealth -= alpha
    return kept, wealth


# OFS ----------------------------------------------------------------------------


def ofs(X, y, n_kept, step=0.2, regularization=0.01):
    """Algorithm 2 for classes -1 and +1: weights and mistakes."""
    w, mistakes = np.zeros(X.shape[1]), 0
    for x, sign in zip(X, y, strict=True):
        margin = sign * (w @ x)
        mistakes += margin <= 0
        w = (1 - regularization * step) * w
        if margin <= 1:
            w = w + step * sign * x
            w = w * min(1.0, 1 / np.sqrt(regularization) / np.linalg.norm(w))
            w[np.argsort(-np.abs(w), kind="stable")[n_kept:]] = 0.0
    return w, mistakes
