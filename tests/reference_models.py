"""Batch selectors that fit a model, slow and obvious: dense arrays and plain loops."""

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit


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


def penalised_fit(Z, signs, groups, l1, l2, tol=1e-13):
    """Weights and intercept of the least `penalised_objective`, by plain FISTA."""
    n = signs.size
    A = np.column_stack([Z, np.ones(n)])
    curvature = np.linalg.norm(A, 2) ** 2 / (4 * n)
    members = [np.flatnonzero(groups == g) for g in np.unique(groups)]

    def shrink(point):
        w = np.sign(point[:-1]) * np.maximum(np.abs(point[:-1]) - l1 / curvature, 0)
        for own in members:
            norm, price = np.linalg.norm(w[own]), l2 * np.sqrt(own.size) / curvature
            w[own] *= max(0.0, 1 - price / norm) if norm > 0 else 0.0
        return np.append(w, point[-1])

    here = ahead = np.zeros(A.shape[1])
    t = 1.0
    for _ in range(200_000):
        slope = A.T @ (-signs * expit(-signs * (A @ ahead))) / n
        there = shrink(ahead - slope / curvature)
        t_next = (1 + np.sqrt(1 + 4 * t * t)) / 2
        ahead = there + (t - 1) / t_next * (there - here)
        moved, here, t = np.abs(there - here).max(), there, t_next
        if moved < tol:
            break
    return here[:-1], here[-1]


def penalised_objective(Z, signs, groups, l1, l2, weights, intercept):
    """Mean logistic loss plus the sparse group penalty."""
    penalty = l1 * np.abs(weights).sum()
    for g in np.unique(groups):
        own = weights[groups == g]
        penalty += l2 * np.sqrt(own.size) * np.linalg.norm(own)
    return np.logaddexp(0, -signs * (Z @ weights + intercept)).mean() + penalty


def study(seed):
    """Ten factors of falling weight, six noisy copies of each."""
    rng = np.random.default_rng(seed)
    factors = rng.normal(size=(600, 10))
    y = factors @ np.linspace(2, 1, 10) > 0
    X = np.repeat(factors, 6, axis=1) + 0.3 * rng.normal(size=(600, 60))
    return X[:300], y[:300], X[300:], y[300:]
