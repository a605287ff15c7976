"""Kernels of the C4.5 tree: score every feature at a node, walk the tree.

``order`` holds, for each feature, the node's rows sorted by that feature with
the missing ones (NaN) last; ``codes`` are the classes, ``weight`` the rows'
weights, both indexed by row. Categories are coded 0, 1, ... in ``X``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from featstream.jit import inner, kernel

TINY = 1e-6  # numbers closer than this are equal, as in Weka
GAP = 1e-5  # values closer than this are not separated, as in Weka


class TreeArrays(NamedTuple):
    """A finished tree; the children of a node are numbered consecutively."""

    feature: NDArray[np.int64]
    threshold: NDArray[np.float64]  # NaN where the feature is nominal
    first_child: NDArray[np.int64]
    n_children: NDArray[np.int64]
    counts: NDArray[np.float64]


def xlog2x_table(n: int) -> NDArray[np.float64]:
    """Table of ``x * log2(x)`` for x = 0, 1, ..., n."""
    x = np.arange(n + 1, dtype=np.float64)
    x[1:] *= np.log2(x[1:])
    return x


@inner(allocates=True)
def xlog2x(x, table):
    """``x * log2(x)``, looked up where x is whole."""
    whole = int(x)
    if whole == x and whole < table.size:
        return table[whole]
    if x < TINY:
        return 0.0
    return x * np.log2(x)


@inner(allocates=True)
def entropy_before(counts, table):
    """Entropy of the classes, times the weight of the rows."""
    per_class = counts.sum(axis=0)
    result = xlog2x(per_class.sum(), table)
    for c in range(per_class.size):
        result -= xlog2x(per_class[c], table)
    return result


@inner(allocates=True)
def entropy_after(counts, table):
    """Entropy of the classes within the branches, times the weight of the rows."""
    result = 0.0
    for b in range(counts.shape[0]):
        size = 0.0
        for c in range(counts.shape[1]):
            size += counts[b, c]
            result -= xlog2x(counts[b, c], table)
        result += xlog2x(size, table)
    return result


@inner(allocates=True)
def information_gain(before, counts, known, total, table):
    """Gain in bits per row; rows whose value is missing gain nothing."""
    gain = known / total * (before - entropy_after(counts, table))
    return 0.0 if abs(gain) < TINY else gain / known


@inner(allocates=True)
def gain_ratio(gain, counts, known, total, table):
    """Gain over the entropy in bits of the branches; 0 where that is 0.

    The rows whose value is missing are one more branch.
    """
    entropy = xlog2x(total, table) - xlog2x(total - known, table)
    for b in range(counts.shape[0]):
        entropy -= xlog2x(counts[b].sum(), table)
    return 0.0 if abs(entropy) < TINY else gain / (entropy / total)


@inner(allocates=True)
def score_categories(values, rows, codes, weight, counts, min_leaf, total, table):
    """Gain and gain ratio of one branch for every category.

    A negative gain means that the split is not allowed: fewer than two
    branches hold ``min_leaf``.
    """
    known = 0.0
    for row in rows:
        if np.isnan(values[row]):
            break
        counts[int(values[row]), codes[row]] += weight[row]
        known += weight[row]
    n_large = 0
    for b in range(counts.shape[0]):
        if counts[b].sum() - min_leaf > -TINY:
            n_large += 1
    if n_large < 2:
        return -1.0, 0.0
    gain = information_gain(entropy_before(counts, table), counts, known, total, table)
    return gain, gain_ratio(gain, counts, known, total, table)


@inner(allocates=True)
def score_thresholds(values, rows, codes, weight, counts, min_leaf, total, table):
    """Gain, gain ratio and midpoint of the best threshold.

    The gain pays log2(number of thresholds tried) / weight for the choice, and
    is negative if nothing is left of it.
    """
    n_known = 0
    known = 0.0
    for row in rows:
        if np.isnan(values[row]):
            break
        counts[1, codes[row]] += weight[row]
        known += weight[row]
        n_known += 1
    smallest = 0.1 * known / counts.shape[1]
    if smallest - min_leaf < TINY:
        smallest = min_leaf
    elif smallest > 25.0 + TINY:
        smallest = 25.0
    if 2.0 * smallest - n_known > TINY:
        return -1.0, 0.0, np.nan

    before = entropy_before(counts, table)
    best = counts.copy()
    gain, cut, n_tried, below = 0.0, -1, 0, 0.0
    for i in range(n_known - 1):
        row = rows[i]
        counts[0, codes[row]] += weight[row]
        counts[1, codes[row]] -= weight[row]
        below += weight[row]
        if not values[row] + GAP < values[rows[i + 1]]:
            continue
        if below - smallest <= -TINY or known - below - smallest <= -TINY:
            continue
        n_tried += 1
        new = information_gain(before, counts, known, total, table)
        if new - gain > TINY:
            gain, cut = new, i
            best[:] = counts
    if n_tried == 0:
        return -1.0, 0.0, np.nan
    gain -= np.log2(n_tried) / total
    if gain < TINY:
        return -1.0, 0.0, np.nan
    low, high = values[rows[cut]], values[rows[cut + 1]]
    middle = (low + high) / 2.0
    if middle == high:
        middle = low
    return gain, gain_ratio(gain, best, known, total, table), middle


@kernel(allocates=True)
def score_splits(
    X: Any,
    order: Any,
    codes: Any,
    weight: Any,
    n_categories: Any,
    n_classes: int,
    min_leaf: float,
    table: Any,
) -> Any:
    """Gain, gain ratio and threshold of every feature's best split at a node.

    ``n_categories`` is 0 for numeric features. Gains of splits that are not
    allowed are negative.
    """
    n_features = order.shape[0]
    gains = np.full(n_features, -1.0)
    ratios = np.zeros(n_features)
    thresholds = np.full(n_features, np.nan)
    total = 0.0
    for row in order[0]:
        total += weight[row]
    for j in range(n_features):
        values, rows = X[:, j], order[j]
        if n_categories[j] > 0:
            counts = np.zeros((n_categories[j], n_classes))
            gains[j], ratios[j] = score_categories(
                values, rows, codes, weight, counts, min_leaf, total, table
            )
        else:
            counts = np.zeros((2, n_classes))
            gains[j], ratios[j], thresholds[j] = score_thresholds(
                values, rows, codes, weight, counts, min_leaf, total, table
            )
    return gains, ratios, thresholds


@inner(allocates=True)
def add_class_shares(proba, counts, weight):
    """Add the class shares of a node, times a weight."""
    total = counts.sum()
    if total > 0.0:
        for c in range(counts.size):
            proba[c] += weight * counts[c] / total


@kernel(allocates=True)
def tree_proba(X: Any, tree: TreeArrays) -> Any:
    """Class shares of every row, shape (n_rows, n_classes).

    A row without the value that a node asks for goes down every branch, with
    the branch's share of the training weight.
    """
    n_nodes = tree.feature.size
    result = np.zeros((X.shape[0], tree.counts.shape[1]))
    nodes = np.empty(n_nodes, np.int64)
    weights = np.empty(n_nodes)
    for i in range(X.shape[0]):
        nodes[0], weights[0], n_open = 0, 1.0, 1
        while n_open:
            n_open -= 1
            node, weight = nodes[n_open], weights[n_open]
            if tree.n_children[node] == 0:
                add_class_shares(result[i], tree.counts[node], weight)
                continue
            first = tree.first_child[node]
            value = X[i, tree.feature[node]]
            if np.isnan(value):
                total = tree.counts[node].sum()
                for child in range(first, first + tree.n_children[node]):
                    share = tree.counts[child].sum() / total
                    if share > 0.0:
                        nodes[n_open], weights[n_open] = child, weight * share
                        n_open += 1
                continue
            if np.isnan(tree.threshold[node]):
                child = first + int(value)
            else:
                child = first + int(value - tree.threshold[node] >= TINY)
            if tree.counts[child].sum() < TINY:  # nobody came here in training
                add_class_shares(result[i], tree.counts[node], weight)
            else:
                nodes[n_open], weights[n_open] = child, weight
                n_open += 1
    return result
