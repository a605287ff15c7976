"""What happened in a selection, as small tables: figures and the report draw them.

Every table is bounded, whatever the number of features.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from featstream.errors import DataError, FeatstreamError, label_text, visible
from featstream.measures.fisher import p_of_share
from featstream.measures.information import (
    MutualInformation,
    SymmetricalUncertainty,
    score_pairs,
)
from featstream.measures.inputs import as_labels
from featstream.protocols import Fate, FloatArray, IntArray
from featstream.selectors.saola.kept import p_values_of

if TYPE_CHECKING:
    from featstream.selectors.result import SelectionResult

MOST_BINS = 120
MOST_FAMILIES = 24
MOST_MEMBERS = 20
MOST_PAIRS = 40
"""Kept features in the heat map."""
_MOST_ROWS = 2_000
_SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
INFORMATION = ("su", "mi")
_REMOVED = (Fate.DISPLACED, Fate.REDUNDANT)


class History:
    """A result and what its selector knows besides: target, names, threshold.

    A result without an origin, as a selector of rows has it, has no trace either.
    """

    def __init__(self, result: SelectionResult) -> None:
        self.result, self.trace, self.origin = result, result.trace, result.origin
        self.stream: Any = getattr(self.origin, "_stream", None)
        self.run: Any = getattr(self.origin, "_run", None)
        if self.is_traced and self.trace.n_seen != result.n_features:
            raise DataError(
                f"The stream has gone on to {self.trace.n_seen:,} features since this "
                f"result was taken, after {result.n_features:,}. Take result_ again."
            )

    @cached_property
    def best(self) -> IntArray:
        """Places of the selected features in ``result.names``, the best first."""
        return np.array(self.result._order(), np.int64)

    @property
    def is_traced(self) -> bool:
        """Whether at least the features that were ever kept are recorded."""
        return self.trace.level is not None

    @property
    def has_course(self) -> bool:
        """Whether features were decided about one after the other."""
        return self.is_traced and len(self.trace) > 0 and not self.result.is_ranked

    def require(self, *, course: bool = False) -> None:
        """Raise if there is no trace to draw, or no course of arrivals."""
        if not self.is_traced:
            raise DataError(
                "This result has no trace to draw. Select with trace='full' or 'kept'."
            )
        if course and self.result.is_ranked:
            raise DataError(
                f"{self.result.selector} reads all features before it selects: there "
                "is no course of arrivals to draw."
            )

    @cached_property
    def fates(self) -> NDArray[np.uint8]:
        """The `Fate` of each recorded feature."""
        stored: NDArray[np.uint8] = np.ascontiguousarray(self.trace.records["fate"])
        return np.minimum(stored, np.uint8(Fate.DISPLACED))

    @cached_property
    def kept(self) -> IntArray:
        """Arrivals of the selected features, in the order of ``result.names``."""
        arrivals: IntArray = self.origin._kept()[0]
        return arrivals

    def name(self, arrival: int | None, limit: int = 300) -> str:
        """The name of a feature in visible characters; "others" for None."""
        name = "others" if arrival is None else self.stream.names[int(arrival)]
        return visible(name, limit)

    @cached_property
    def threshold(self) -> float | None:
        """The least score that is relevant; None where no single score decides.

        Found by asking the measure, so that any measure has one. A corrected
        threshold changes with every feature that is judged.
        """
        measure = getattr(self.stream, "measure", None)
        is_relevant = getattr(measure, "is_relevant", None)
        largest = float(np.max(self.result.scores, initial=0.0))
        if self.is_corrected or is_relevant is None or not largest:
            return None
        low, high = 0.0, largest
        try:
            if not is_relevant(np.array([largest]))[0]:
                return None
            for _ in range(60):
                middle = (low + high) / 2
                is_below = is_relevant(np.array([middle]))[0]
                low, high = (low, middle) if is_below else (middle, high)
        except (FeatstreamError, TypeError, ValueError, NotImplementedError):
            return None
        return high if high > largest * 1e-12 else 0.0

    @property
    def is_corrected(self) -> bool:
        """Whether the threshold pays for the number of features judged."""
        return getattr(self.origin, "correction", "none") != "none"

    @cached_property
    def classes(self) -> dict[str, int] | None:
        """The classes of the target and their sizes; None for a quantity."""
        if self.origin is None or self.is_numeric:
            return None
        labels = as_labels(self.stream.y)
        found = zip(labels.classes.tolist(), labels.counts.tolist(), strict=True)
        return {label_text(value): count for value, count in found}

    @property
    def is_numeric(self) -> bool:
        """Whether the target is a quantity."""
        return self.origin is not None and self.origin._has_numeric_target

    @cached_property
    def columns(self) -> NDArray[Any] | None:
        """The kept columns, one row each, where the selector holds them."""
        return None if self.origin is None else self.origin._kept_columns()


class Timeline(NamedTuple):
    """How many features met each fate along the stream, and when some were kept.

    ``counts`` has one row per `Fate` and one column per bin of arrivals. A feature
    that is shown was kept from ``arrival`` (its own, unless a pair recalled it later)
    to ``end``, when the feature that arrived at ``by`` displaced it, or to the end of
    the stream (``by`` is -1). ``n_left_out`` others were kept at some time.
    """

    edges: IntArray
    counts: IntArray
    feature: IntArray
    arrival: IntArray
    end: IntArray
    relevance: FloatArray
    by: IntArray
    n_left_out: int


def timeline(history: History, most: tuple[int, int] = (150, 250)) -> Timeline:
    """Count fates by bins of arrival, and list features that were ever kept.

    ``most`` limits how many are listed: of those kept in the end the most relevant,
    of the displaced ones those that were kept longest.
    """
    history.require(course=True)
    trace, fates, edges = history.trace, history.fates, _edges(history)
    ends = edges if trace.level == "full" else np.searchsorted(trace.arrivals, edges)
    counts = np.array(
        [
            [np.count_nonzero(is_met[a:b]) for a, b in pairwise(ends.tolist())]
            for is_met in (fates == fate for fate in Fate)
        ]
    )
    witness, relevance = trace.records["witness"], trace.records["relevance"]
    kept, gone = (np.flatnonzero(fates == f) for f in (Fate.KEPT, Fate.DISPLACED))
    life = witness[gone] - trace.arrivals_at(gone)
    listed = _largest(relevance[kept], most[0], kept), _largest(life, most[1], gone)
    shown = np.concatenate(listed)
    has_left = fates[shown] == Fate.DISPLACED
    other = witness[shown].astype(np.int64)
    arrival = trace.arrivals_at(shown)
    return Timeline(
        edges=edges,
        counts=counts,
        feature=arrival,
        arrival=np.where(has_left, arrival, np.maximum(arrival, other)),
        end=np.where(has_left, other, edges[-1]),
        relevance=relevance[shown].astype(np.float64),
        by=np.where(has_left, other, -1),
        n_left_out=int(kept.size + gone.size - shown.size),
    )


class SizeCurve(NamedTuple):
    """Size of the kept set after some arrivals, and displacements per bin of them."""

    arrivals: IntArray
    sizes: IntArray
    edges: IntArray
    displaced: IntArray


def size_curve(history: History) -> SizeCurve:
    """The size of the kept set, in at most a few hundred steps."""
    history.require(course=True)
    edges = _edges(history)
    n_bins, n = edges.size - 1, int(edges[-1])
    changed, sizes = history.trace.sizes()
    if changed.size > 4 * MOST_BINS:  # the last change of each bin
        place = changed * (4 * MOST_BINS) // n
        last = np.flatnonzero(np.diff(place, append=-1))
        changed, sizes = changed[last], sizes[last]
    left = history.trace.records["witness"][history.fates == Fate.DISPLACED]
    displaced = np.bincount(left.astype(np.int64) * n_bins // n, minlength=n_bins)
    now = sizes[-1] if sizes.size else 0  # nothing was ever kept
    arrivals, sizes = np.append(changed, n), np.append(sizes, now)
    return SizeCurve(arrivals, sizes, edges, displaced)


class Family(NamedTuple):
    """A kept feature and those that it removed; ``members`` are the most relevant.

    A feature that was displaced by one that was itself displaced later belongs to
    the family of the last in the chain.
    """

    arrival: int
    n_displaced: int
    n_redundant: int
    members: list[int]


class Removals(NamedTuple):
    """Which kept features removed which others: families, the largest first.

    ``n_displaced`` and ``n_redundant`` count for every kept feature, in the order of
    ``result.names``, what it removed, itself or through others.
    """

    families: tuple[Family, ...]
    n_displaced: IntArray
    n_redundant: IntArray


def removals(history: History) -> Removals:
    """Follow every removed feature to the kept one at the end of the chain."""
    history.require()
    trace, fates = history.trace, history.fates
    records, arrivals = trace.records, trace.arrivals
    is_gone = np.isin(fates, _REMOVED)
    parent = np.arange(arrivals.size)
    witness = records["witness"][is_gone].astype(np.int64)
    place = np.searchsorted(arrivals, witness)
    is_known = (witness >= 0) & (place < arrivals.size)
    is_known[is_known] = arrivals[place[is_known]] == witness[is_known]
    parent[is_gone] = np.where(is_known, place, np.flatnonzero(is_gone))
    while not np.array_equal(parent, grand := parent[parent]):
        parent = grand
    places = np.searchsorted(arrivals, history.kept)
    counts = np.array(
        [
            np.bincount(parent[fates == fate], minlength=arrivals.size)[places]
            for fate in _REMOVED
        ]
    )
    relevance, total = records["relevance"], counts.sum(axis=0)
    order = np.lexsort((-relevance[places], -total))[:MOST_FAMILIES]
    families = []
    for i in order[total[order] > 0]:
        own = np.flatnonzero((parent == places[i]) & is_gone)
        by_fate = (own[fates[own] == fate] for fate in _REMOVED)
        listed = [_largest(relevance[o], MOST_MEMBERS, o) for o in by_fate]
        members = arrivals[np.concatenate(listed)].tolist()
        n_displaced, n_redundant = counts[:, i].tolist()
        families.append(Family(int(history.kept[i]), n_displaced, n_redundant, members))
    return Removals(tuple(families), *counts)


def displaced_by(history: History) -> dict[int, list[int]]:
    """The arrivals that each feature displaced itself, by its own arrival."""
    found: dict[int, list[int]] = {}
    if history.is_traced:
        trace, witness = history.trace, history.trace.records["witness"]
        gone = np.flatnonzero((history.fates == Fate.DISPLACED) & (witness >= 0))
        arrivals = trace.arrivals_at(gone).tolist()
        for arrival, other in zip(arrivals, witness[gone].tolist(), strict=True):
            found.setdefault(other, []).append(arrival)
    return found


class Distribution(NamedTuple):
    """How many features of each fate have which relevance.

    ``edges`` has one number more than there are bins; ``counts`` has one row per
    `Fate`; ``threshold`` is the least relevant score, or the lowest score that passed
    a corrected threshold, and ``said`` what it is called.
    """

    edges: FloatArray
    counts: IntArray
    threshold: float | None
    said: str = "threshold"


def distribution(history: History) -> Distribution:
    """Count the features in bins of relevance."""
    history.require()
    n_bins = 48
    scores = history.trace.records["relevance"].astype(np.float64)
    finite = scores[np.isfinite(scores)]
    low, high = finite.min(initial=0.0), finite.max(initial=0.0)
    reach = low, high if high > low else low + 1.0
    edges = np.histogram_bin_edges(scores, n_bins, reach)
    counts = np.array(
        [np.histogram(scores[history.fates == f], n_bins, reach)[0] for f in Fate]
    )
    if not history.is_corrected:
        return Distribution(edges, counts, history.threshold)
    passed = scores[np.isfinite(scores) & (history.fates != Fate.IRRELEVANT)]
    lowest = float(passed.min()) if passed.size else None
    return Distribution(edges, counts, lowest, "lowest that passed:")


def redundancy(history: History, X: Any = None) -> tuple[IntArray, FloatArray] | None:
    """How much the kept features overlap, by the measure that selected them.

    Returns the places of the most relevant ones in ``result.names``, the best first,
    and the overlap of every pair of them. None where neither the selector holds the
    kept columns nor ``X`` is given, or the measure compares columns in its own way.
    """
    measure, order = history.result.measure, history.best[:MOST_PAIRS]
    is_known = measure in (*INFORMATION, "fisher-z", "g2", "chi2")
    columns = _columns_of(history, X)
    if columns is None or not is_known or order.size < 2:
        return None
    chosen = columns[order]
    if measure == "fisher-z":
        return order, np.abs(np.nan_to_num(np.corrcoef(chosen)))
    made = MutualInformation if measure == "mi" else SymmetricalUncertainty
    return order, score_pairs(made(binning=None), chosen.T)


def _columns_of(history: History, X: Any) -> NDArray[Any] | None:
    """The kept columns, one row each: of a matrix, or as the selector holds them."""
    if X is None:
        return history.columns
    indices = history.result.indices
    if hasattr(X, "tocsc"):
        X, indices = X.tocsc()[:, indices].toarray(), np.arange(indices.size)
    return np.ascontiguousarray(np.asarray(X)[:, indices].T)


def p_values(history: History) -> FloatArray | None:
    """For each kept feature, how probable its score is without any relation.

    By the laws that judge corrected thresholds; by the F-test for correlations where
    the selector does not hold the kept columns. None where the measure has no such
    test, or the columns are not at hand.
    """
    result, stream = history.result, history.stream
    if stream is None or not len(result):
        return None
    has_columns = history.columns is not None
    if result.measure in (*INFORMATION, "fisher-z") and has_columns:
        return p_values_of(history.origin._state, stream.measure)
    if result.measure == "fisher-z" and hasattr(stream.measure, "critical"):
        n, n_spanning = len(stream.y), stream.measure.n_spanning
        share = np.minimum(result.scores, 1) ** 2
        return p_of_share(share, n, n_spanning, 0, always_f=True)
    return None


class AccuracyCurve(NamedTuple):
    """Accuracy with the most relevant 1, 2, … kept features.

    ``spreads`` are standard deviations over the folds; ``baseline`` is the share of
    the largest class; ``classifier`` says how it was found.
    """

    sizes: IntArray
    accuracy: FloatArray
    spreads: FloatArray
    baseline: float
    classifier: str


def accuracy_curve(history: History, X: Any = None) -> AccuracyCurve | None:
    """Cross-validated accuracy with the most relevant kept features, more and more.

    The features were selected from all rows, test rows included, so that this is
    higher than what new data will show; it tells how many features are worth having.
    None for a quantity, or where the columns are not at hand.
    """
    from sklearn.model_selection import StratifiedKFold, cross_val_score
    from sklearn.neighbors import KNeighborsClassifier

    result, n_folds = history.result, 5
    columns = _columns_of(history, X)
    if columns is None or history.classes is None or not len(result):
        return None
    y, rows = as_labels(history.stream.y).codes, np.arange(columns.shape[1])
    if rows.size > _MOST_ROWS:
        rows = np.sort(np.random.default_rng(0).permutation(rows)[:_MOST_ROWS])
    sizes_of_classes = np.bincount(y[rows], minlength=len(history.classes))
    if sizes_of_classes.min() < n_folds:
        return None
    order = history.best[: _SIZES[-1]]
    chosen = columns[order][:, rows]
    if chosen.dtype.kind == "i":
        design, begins = _indicators(chosen)
    else:
        spread = chosen.std(axis=1, keepdims=True)
        design, begins = chosen / np.where(spread > 0, spread, 1), np.arange(order.size)
    ends = np.append(begins, len(design))
    sizes = [*(size for size in _SIZES if size < order.size), order.size]
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=0)
    model = KNeighborsClassifier(5)
    designs = [design[: ends[size]].T for size in sizes]
    with threadpool_limits(1):  # many small products
        found = np.array(
            [cross_val_score(model, X, y[rows], cv=folds) for X in designs]
        )
    return AccuracyCurve(
        np.array(sizes),
        found.mean(axis=1),
        found.std(axis=1, ddof=1),
        float(sizes_of_classes.max() / rows.size),
        f"5 nearest neighbours, {n_folds}-fold cross-validation",
    )


def _indicators(rows: NDArray[Any]) -> tuple[FloatArray, IntArray]:
    """One row of zeros and ones per category, and where those of each row begin."""
    found = [(row == np.unique(row)[:, None]).astype(np.float64) for row in rows]
    return np.vstack(found), np.cumsum([0, *map(len, found[:-1])])


def _edges(history: History) -> IntArray:
    """Arrivals at which bins along the stream begin, and the end."""
    n = max(1, history.result.n_features)
    n_bins = min(MOST_BINS, n)
    edges: IntArray = -(-np.arange(n_bins + 1) * n // n_bins)
    return edges


def _largest(values: NDArray[Any], most: int, of: IntArray) -> IntArray:
    """The items of ``of`` with the largest values, in order; all if there are few."""
    if of.size <= most:
        return of
    return np.sort(of[np.argpartition(-values, most)[:most]])
