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
    """Score of every column with every other, in the order (newcomer, kept).

    A constant has no correlation: NaN. No selector compares one, as none is kept.
    """
    bound = measure.bind(y)
    (block,) = as_source(X).blocks()
    encoded = bound.encode(block)
    bound.relevance(encoded)
    columns, position = bound.columns(encoded, np.arange(block.n_columns))
    scratch = bound.scratch(is_sparse=block.is_sparse)
    found = np.empty((block.n_columns, block.n_columns))
    with np.errstate(divide="ignore", invalid="ignore"):
        for a, i in enumerate(position):
            settle(columns, i, scratch)
            for b, j in enumerate(position):
                found[a, b] = overlap(columns, i, columns, j, scratch)
            lift(columns, i, scratch)
    return found
