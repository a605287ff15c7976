"""OFS: rows arrive, and a linear model of few weights learns from each.

Weights are one row a feature, one column a class. Only the features with weights
and those of the newcomer are visited: time is in stored entries, never in features.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from featstream.jit import inner_jit, jit


class RowModel(NamedTuple):
    """The weights, and which features have any.

    ``support[:counts[0]]`` are the features with weights, ``is_in`` says the same by
    feature; ``counts[1]`` are the rows seen and ``counts[2]`` the mistakes.
    """

    weights: np.ndarray
    support: np.ndarray
    is_in: np.ndarray
    counts: np.ndarray


class RowRule(NamedTuple):
    """The options of the algorithm, as the kernel wants them.

    With ``exploration`` below zero all values of a row are seen; otherwise those of
    the features with weights, or of ``n_kept`` random ones.
    """

    n_kept: int
    step: float
    decay: float
    radius: float
    exploration: float


@inner_jit
def _truncate(model, candidates, n, rule):
    """Keep the largest of the candidates; of equals, those that come first."""
    sizes = np.zeros(n)
    for c in range(n):
        for k in range(model.weights.shape[1]):
            weight = model.weights[candidates[c], k]
            sizes[c] += weight * weight
    least, n_spare = 0.0, n
    if n > rule.n_kept:
        least = np.partition(sizes, n - rule.n_kept)[n - rule.n_kept]
        n_spare = rule.n_kept
        for c in range(n):
            n_spare -= sizes[c] > least
    size = 0
    for c in range(n):
        feature = candidates[c]
        is_kept = sizes[c] > least
        if sizes[c] == least and sizes[c] > 0.0 and n_spare > 0:
            is_kept = True
            n_spare -= 1
        model.is_in[feature] = is_kept
        if is_kept:
            model.support[size] = feature
            size += 1
        else:
            model.weights[feature] = 0.0
    model.counts[0] = size


@inner_jit
def _project(model, candidates, n, radius):
    """Shorten the weights of each class to the radius."""
    for k in range(model.weights.shape[1]):
        square = 0.0
        for c in range(n):
            square += model.weights[candidates[c], k] ** 2
        if square > radius * radius:
            for c in range(n):
                model.weights[candidates[c], k] *= radius / np.sqrt(square)


@inner_jit
def _is_mistaken(margins, signs):
    """Whether the row is put into another class than its own."""
    if margins.size == 1:
        return margins[0] * signs[0] <= 0.0
    best = np.argmax(margins)
    return signs[best] < 0.0 or not margins[best] > 0.0


@jit
def learn_rows(indptr, columns, values, signs, model, rule, explored, seen):
    """Learn from rows in their order.

    ``explored[i]`` is the row of ``seen`` that holds the features looked at in row
    ``i``, or -1 for those with weights; both are empty if all values are seen.
    """
    weights = model.weights
    n_features, n_classes = weights.shape
    is_partial = rule.exploration >= 0.0
    margins = np.empty(n_classes)
    candidates = np.empty(n_features, np.int64)
    is_visible = np.zeros(n_features if is_partial else 0, np.bool_)
    for i in range(indptr.size - 1):
        if is_partial and explored[i] >= 0:
            for c in range(seen.shape[1]):
                is_visible[seen[explored[i], c]] = True
        margins[:] = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            j = columns[e]
            if not is_partial or explored[i] < 0 or is_visible[j]:
                for k in range(n_classes):
                    margins[k] += weights[j, k] * values[e]
        model.counts[1] += 1
        model.counts[2] += _is_mistaken(margins, signs[i])
        n = model.counts[0]
        for c in range(n):
            candidates[c] = model.support[c]
            for k in range(n_classes):
                weights[candidates[c], k] *= rule.decay
        has_loss = False
        for k in range(n_classes):
            has_loss = has_loss or margins[k] * signs[i, k] <= 1.0
        if has_loss:
            for e in range(indptr[i], indptr[i + 1]):
                j, value = columns[e], values[e]
                if is_partial:
                    if (explored[i] >= 0 and not is_visible[j]) or (
                        explored[i] < 0 and not model.is_in[j]
                    ):
                        continue
                    chance = rule.exploration * seen.shape[1] / n_features
                    if model.is_in[j]:
                        chance += 1.0 - rule.exploration
                    value /= chance
                if value == 0.0:
                    continue
                for k in range(n_classes):
                    if margins[k] * signs[i, k] <= 1.0:
                        weights[j, k] += rule.step * signs[i, k] * value
                if not model.is_in[j]:
                    candidates[n] = j
                    n += 1
            _project(model, candidates, n, rule.radius)
            _truncate(model, np.sort(candidates[:n]), n, rule)
        if is_partial and explored[i] >= 0:
            for c in range(seen.shape[1]):
                is_visible[seen[explored[i], c]] = False
