"""Scores of a measure, by the way that selectors take: encode, score, compare."""

from __future__ import annotations

import numpy as np

from featstream import as_source
from featstream.kernels.storage import lift, overlap, settle


def relevances(measure, X, y):
    """Score of every column with the target."""
    bound = measure.bind(y)
    blocks = as_source(X).blocks()
    return np.concatenate([bound.relevance(bound.encode(block)) for block in blocks])


def overlaps(measure, X, y):
    """Score of every column with every other; NaN for a column that cannot be kept.

    A column that does not vary is never relevant, so no pair kernel meets it.
    """
    bound = measure.bind(y)
    (block,) = as_source(X).blocks()
    encoded = bound.encode(block)
    is_varied = bound.relevance(encoded) > 0
    chosen = np.flatnonzero(is_varied)
    columns, position = bound.columns(encoded, chosen)
    scratch = bound.scratch(is_sparse=block.is_sparse)
    found = np.full((block.n_columns, block.n_columns), np.nan)
    for a, i in zip(chosen, position, strict=True):
        settle(columns, i, scratch)
        for b, j in zip(chosen, position, strict=True):
            found[a, b] = overlap(columns, i, columns, j, scratch)
        lift(columns, i, scratch)
    return found
