"""OGFS: groups of features, pruned inside by a spectral score, between by a lasso."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self, cast

import numpy as np
from scipy import stats
from sklearn.linear_model import Lasso, MultiTaskLasso

from featstream.errors import DataError, ParameterError, printable
from featstream.measures.target import as_labels
from featstream.progress import Observer, Progress, observed
from featstream.protocols import (
    Block,
    BoundMeasure,
    Decision,
    Fate,
    FloatArray,
    GroupDecision,
    IntArray,
)
from featstream.selectors.grouping import cut_into_groups, join_columns
from featstream.selectors.numeric import (
    as_numeric,
    check_count,
    check_number,
    class_indicators,
    dense_column,
)
from featstream.selectors.single import StreamSelector
from featstream.selectors.stream import LastDecision, Stream
from featstream.sources import as_source
from featstream.trace import TraceLevel

__all__ = ["OGFS"]


class OGFS(StreamSelector):
    """Online group feature selection.

    Features arrive in groups. Inside a group, a feature is taken if it adds to how
    well the ones taken so far tell the classes apart, or does so otherwise than
    those do on average. Between groups, a lasso over the features kept so far and
    those taken of the new group decides who stays.

    Parameters
    ----------
    group_size : int, default=10
        Features in a group, where groups are not given.
    penalty : float, default=0.1
        Penalty of the lasso, in units of the correlation of a feature with what the
        others leave of the class.
    gain : float, default=0.001
        What a feature must add to the score of its group to be taken.
    criterion : {"difference", "t-test"}, default="difference"
        How a feature is taken that does not: its score differs from the mean of
        those taken by more than ``gain``, as in the authors' own program, or is
        significantly above it, by a one-sided t-test. The latter is strict: little
        is left for the lasso to decide.
    significance : float, default=0.05
        Level of the t-test.
    trace : {"full", "kept"} or None, default="full"
        What is remembered of dropped features.

    Attributes
    ----------
    selected_ : ndarray of int
        Kept features, in order of arrival.
    scores_ : ndarray of float
        The spectral score of each: variance between the classes over that within.
    support_ : ndarray of bool of shape (n_features,)
        Whether each feature is kept.
    selected_groups_ : list
        Groups with a kept feature, in order of arrival.
    result_ : SelectionResult
        Names, scores and history.

    Notes
    -----
    With the graphs of [1]_, in which samples of one class are joined by weights of
    one over its size, the spectral score of features in units of their standard
    deviation is the sum of their variances between the classes over the sum of
    those within. The class is a number of unit variance for the lasso, or, with
    several classes, an indicator for each that share the features they use.
    One group is made dense at a time, besides the kept features.

    References
    ----------
    .. [1] J. Wang, Z.-Q. Zhao, X. Hu, Y.-M. Cheung, M. Wang, X. Wu: Online Group
       Feature Selection. IJCAI 2013.
    .. [2] J. Wang, M. Wang, P. Li, L. Liu, Z. Zhao, X. Hu, X. Wu: Online Feature
       Selection with Group Structure Analysis. IEEE TKDE 27(11), 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from featstream import OGFS
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 40))
    >>> y = X[:, 12] + X[:, 15] > 0
    >>> selector = OGFS(group_size=10, penalty=0.2).fit(X, y)
    >>> selector.selected_
    array([12, 15])
    >>> selector.selected_groups_
    [1]
    """

    def __init__(
        self,
        *,
        group_size: int = 10,
        penalty: float = 0.1,
        gain: float = 0.001,
        criterion: Literal["difference", "t-test"] = "difference",
        significance: float = 0.05,
        trace: TraceLevel = "full",
    ) -> None:
        self.group_size = group_size
        self.penalty = penalty
        self.gain = gain
        self.criterion = criterion
        self.significance = significance
        self.trace = trace

    def fit(
        self, X: Any, y: Any = None, *, groups: Sequence[Any] | None = None
    ) -> Self:
        """Select from a whole data set: ``start(y).consume(X, groups=groups)``.

        Parameters
        ----------
        X : array, sparse matrix, data frame, path or Source
            Samples by features.
        y : array of shape (n_samples,)
            The class of each sample.
        groups : sequence of labels, optional
            As for `consume`.
        """
        self._groups = None if groups is None else list(groups)
        try:
            return super().fit(X, y)
        finally:
            del self._groups

    def consume(  # type: ignore[override]  # groups, and no runs yet
        self,
        source: Any,
        *,
        groups: Sequence[Any] | None = None,
        progress: bool | Observer = False,
    ) -> Self:
        """Decide about every group of a source.

        Parameters
        ----------
        source : anything that `as_source` takes
            Features in order of arrival; further calls continue the stream.
        groups : sequence of labels, optional
            The group of each feature; those of a group must be neighbours. By
            default ``group_size`` features are a group, numbered from 0.
        progress : bool or callable, default=False
            Show a live line, or call with a `Progress` after each group.
        """
        stream = self._started()
        source = as_source(source)
        groups = getattr(self, "_groups", None) if groups is None else list(groups)
        n_new = source.n_features
        n_features = None if n_new is None else stream.n_seen + n_new
        if groups is not None and n_new not in (None, len(groups)):
            raise DataError(
                f"`groups` has {len(groups)} labels and there are {n_new} features. "
                "Every feature needs one."
            )
        with observed(progress, type(self).__name__) as observe:
            for label, block in cut_into_groups(
                source.blocks(), groups, self.group_size
            ):
                if groups is None:
                    label = len(self._labels)
                self._take_group(label, block, stream)
                if observe is not None:
                    n_kept = self._arrivals.size
                    observe(Progress(stream.n_seen, n_features, n_kept))
        return self

    def update_group(
        self, X_group: Any, group: Hashable, names: Sequence[str] | None = None
    ) -> GroupDecision:
        """Decide about one group.

        Parameters
        ----------
        X_group : anything that `as_source` takes
            The features of the group.
        group : hashable
            Its label.
        names : sequence of str, optional
            Names of the features; by default those of ``X_group``.
        """
        stream = self._started()
        blocks = list(as_source(X_group).blocks())
        if not blocks:
            raise DataError(f"Group {printable(group)} has no features.")
        block = join_columns([(b, i) for b in blocks for i in range(b.n_columns)])
        if names is not None:
            block = replace(block, names=list(names))
        first, before = stream.n_seen, self.selected_groups_
        self._take_group(group, block, stream)
        features = tuple(
            Decision(stream.names[first + i], first + i, Fate(int(fate)), score)
            for i, (fate, score) in enumerate(self._verdict)
        )
        is_kept = any(feature.is_kept for feature in features)
        left = self.selected_groups_
        return GroupDecision(
            group,
            Fate.KEPT if is_kept else Fate.IRRELEVANT,
            features,
            tuple(stream.names[arrival] for arrival in self._gone),
            tuple(label for label in before if label not in left),
        )

    @property
    def selected_groups_(self) -> list[Any]:
        """Groups with a kept feature, in order of arrival."""
        self._started()
        return list(dict.fromkeys(self._labels[g] for g in self._group_of))

    def _bind(self, y: Any) -> BoundMeasure:
        labels = as_labels(y)
        indicators = class_indicators(labels)
        target = indicators - indicators.mean(axis=0)
        target /= target.std(axis=0)
        owner = type(self).__name__
        penalty = check_number(self.penalty, "penalty", owner)
        return cast(
            BoundMeasure,
            GroupModel(labels.codes, labels.counts, target, penalty, labels.codes.size),
        )

    def _begin(self, stream: Stream) -> None:
        owner = type(self).__name__
        check_count(self.group_size, "group_size", owner)
        check_number(self.gain, "gain", owner, is_zero_allowed=True)
        check_number(self.significance, "significance", owner)
        if self.criterion not in ("difference", "t-test"):
            raise ParameterError(
                f"`criterion` of {owner} must be 'difference' or 't-test'. "
                f"Got {printable(self.criterion)}."
            )
        n = cast(GroupModel, stream.measure).n_samples
        self._columns = np.empty((n, 0), order="F")
        self._arrivals: IntArray = np.empty(0, np.int64)
        self._scores: FloatArray = np.empty(0)
        self._group_of: IntArray = np.empty(0, np.int64)
        self._labels: list[Any] = []

    def _kept(self) -> tuple[IntArray, FloatArray]:
        return self._arrivals, self._scores

    def _take(self, piece: Block, decide: Callable[[], None], stream: Stream) -> None:
        """A feature that comes alone is a group."""
        super()._take(piece, decide, stream)
        self._labels.append(len(self._labels))
        (fate, score) = self._verdict[0]
        stream.last = LastDecision(Fate(int(fate)), score, displaced=tuple(self._gone))

    def _take_group(self, label: Any, block: Block, stream: Stream) -> None:
        began = time.perf_counter()
        if label in self._labels:
            raise DataError(
                f"Group {printable(label)} has come before. The features of a group "
                "must arrive together."
            )
        block = replace(block, start=stream.n_seen)
        super()._take(block, self._prepare(block, stream), stream)
        self._labels.append(label)
        stream.seconds += time.perf_counter() - began

    def _decide(self, block: Block, stream: Stream) -> None:
        model = cast(GroupModel, stream.measure)
        values = as_numeric(block, model.n_samples, type(self).__name__)
        group = _standardise(
            np.column_stack([dense_column(values, j) for j in range(block.n_columns)])
        )
        between, within = model.spread(group)
        scores = between / np.maximum(within, 1e-12)
        taken = self._choose(between, within, scores)
        fate = np.zeros(block.n_columns, np.uint8)
        columns = np.asfortranarray(np.column_stack([self._columns, group[:, taken]]))
        arrivals = np.concatenate([self._arrivals, block.start + taken])
        is_used = model.regress(columns)
        fate[taken[is_used[self._arrivals.size :]]] = Fate.KEPT
        self._gone = self._arrivals[~is_used[: self._arrivals.size]].tolist()
        self._columns = columns[:, is_used]
        self._scores = np.concatenate([self._scores, scores[taken]])[is_used]
        number = np.full(taken.size, len(self._labels))
        self._group_of = np.concatenate([self._group_of, number])[is_used]
        self._arrivals = arrivals[is_used]
        self._verdict = list(zip(fate.tolist(), scores.tolist(), strict=True))
        stream.trace.extend(fate, scores, np.full(block.n_columns, -1))
        last = block.start + block.n_columns - 1
        stream.trace.mark(
            np.array(self._gone, np.int64),
            np.full(len(self._gone), Fate.DISPLACED, np.uint8),
            np.full(len(self._gone), last),
        )

    def _choose(
        self, between: FloatArray, within: FloatArray, scores: FloatArray
    ) -> IntArray:
        """Inside the group: features by the two criteria, in order of arrival."""
        taken: list[int] = []
        sum_between = sum_within = 0.0
        for j in range(scores.size):
            before = sum_between / sum_within if sum_within > 0 else 0.0
            after = (sum_between + between[j]) / max(sum_within + within[j], 1e-12)
            is_better = after - before > self.gain
            if between[j] > 0 and (is_better or self._stands_out(scores, j, taken)):
                taken.append(j)
                sum_between += between[j]
                sum_within += within[j]
        return np.array(taken, np.int64)

    def _stands_out(self, scores: FloatArray, j: int, taken: list[int]) -> bool:
        """The second criterion: a score unlike those of the features taken."""
        if not taken:
            return False
        gap = float(scores[j] - scores[taken].mean())
        if self.criterion == "difference":
            return abs(gap) > self.gain
        if len(taken) < 2:
            return False
        error = float(scores[taken].std(ddof=1)) / np.sqrt(len(taken))
        if error == 0:
            return gap > 0
        return bool(stats.t.sf(gap / error, len(taken) - 1) < self.significance)

    def _reason(
        self, arrival: int, fate: Fate, name: str, relevance: str, other: str
    ) -> str:
        return (
            f"{name} was displaced: with the group that ends in {other} the lasso gave "
            f"it no weight; {relevance}."
        )


@dataclass(slots=True)
class GroupModel:
    """The target, for the two stages."""

    codes: Any
    counts: IntArray
    target: FloatArray
    penalty: float
    n_samples: int
    name: str = "spectral"

    def spread(self, columns: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Variance between the classes and within them, of standardised columns."""
        between = np.zeros(columns.shape[1])
        # By their first rows: the names of the classes must not matter.
        for c in np.argsort(np.unique(self.codes, return_index=True)[1]):
            mean = columns[self.codes == c].mean(axis=0)
            between += self.counts[c] / self.n_samples * mean**2
        whole = (columns**2).mean(axis=0)
        between = np.minimum(between, whole)
        return between, whole - between

    def regress(self, columns: FloatArray) -> Any:
        """Which columns a lasso gives weight."""
        if not columns.shape[1]:
            return np.zeros(0, dtype=bool)
        kind = Lasso if self.target.shape[1] == 1 else MultiTaskLasso
        model = kind(self.penalty, fit_intercept=False, tol=1e-8, max_iter=100_000)
        target = self.target[:, 0] if kind is Lasso else self.target
        weights = np.atleast_2d(model.fit(columns, target).coef_)
        return np.any(weights != 0.0, axis=0)


def _standardise(columns: FloatArray) -> FloatArray:
    """Columns of mean 0 and variance 1; constants become zero."""
    mean, scale = columns.mean(axis=0), columns.std(axis=0)
    is_varied = scale > 1e-12 * np.maximum(np.abs(mean), 1e-300)
    return np.where(is_varied, (columns - mean) / np.where(is_varied, scale, 1.0), 0.0)
