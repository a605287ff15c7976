"""Scores of a measure, by the way that selectors take: encode, score, compare."""

from __future__ import annotations

import numpy as np

import reference
from featstream import FisherZ, MutualInformation, SymmetricalUncertainty, as_source
from featstream.measures.storages.dispatch import for_storage, storage_of
from featstream.selectors.batch.encoded import join_columns
from featstream.selectors.batch.greedy import _find_overlaps
from featstream.selectors.saola.kept import Tuning, start_kept
from reference import Scores

DISCRETE = {
    SymmetricalUncertainty: reference.symmetrical_uncertainty,
    MutualInformation: reference.mutual_information,
}


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
    columns = join_columns([bound.columns(encoded, np.arange(block.n_columns))])
    kept = start_kept(columns, np.empty(0, np.int64), Tuning())
    kept = kept._replace(columns=columns)
    scratch = storage_of(columns).scratch(bound.n_samples)
    found = np.empty((block.n_columns, block.n_columns))
    with np.errstate(divide="ignore", invalid="ignore"):
        for i, row in enumerate(found):
            for_storage(_find_overlaps, columns)(columns, i, kept, 0, scratch, row)
    return found


def scores_of(measure, X, y):
    """The library's own scores, for the algorithms of ``reference.py``."""
    relevance, pairs = relevances(measure, X, y).tolist(), overlaps(measure, X, y)
    is_relevant = measure.bind(y).is_relevant
    return Scores(
        relevance, lambda i, j: pairs[i, j], lambda f: is_relevant(np.array([f]))[0]
    )


def expected_scores(measure, X, y, make=np.asarray):
    """The scores as ``reference.py`` computes them; correlations are the library's own.

    Those may differ in the last bit, and decisions must follow from them exactly.
    """
    if not isinstance(measure, FisherZ):
        score = DISCRETE[type(measure)]
        return reference.discrete_scores(X, y, score, measure.threshold)
    classes, found = y.tolist(), scores_of(measure, make(X), y)
    several = len(set(classes)) > 2
    score = reference.correlation_ratio if several else reference.correlation
    expected = [score(column, classes) for column in X.T.tolist()]
    np.testing.assert_allclose(found.relevance, expected, rtol=0, atol=1e-12)
    return found


def categories(measure, X, y):
    """The category of every row, for each column; numbered by first appearance."""
    bound = measure.bind(y)
    (block,) = as_source(X).blocks()
    encoded = bound.encode(block)
    which = np.arange(block.n_columns)
    rows = storage_of(encoded).as_rows(encoded, which, bound.n_samples)
    assert (rows >= 0).all()
    assert (rows < encoded.arity[:, None]).all()
    return [numbered(row) for row in rows.tolist()]


def numbered(labels):
    """The labels replaced by 0, 1, ... in the order in which they first appear."""
    order = {}
    return [order.setdefault(label, len(order)) for label in labels]
