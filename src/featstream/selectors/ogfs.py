"""OGFS: groups of features, pruned inside by a spectral score, between by a lasso."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.linear_model import Lasso, MultiTaskLasso

from featstream.errors import check_choice, check_count, check_number
from featstream.estimators import estimator
from featstream.measures.inputs import as_labels
from featstream.protocols import Block, Decision, Fate, FloatArray, IntArray, Source
from featstream.runs.arrays import Arrays, Declared, check_arrays
from featstream.selectors import numeric
from featstream.selectors.base_groups import GroupSelector
from featstream.selectors.result import TraceLevel
from featstream.selectors.stream import Stream, Verdict
from featstream.sources.grouping import Batch, Layout, Sized
from featstream.sources.memory import block_of_one


@estimator
class OGFS(GroupSelector):
    """Online group feature selection.

    Features arrive in groups. Inside a group, a feature is taken if it adds to how
    well the ones taken so far tell the classes apart, or does so otherwise than
    those do on average. Between groups, a lasso over the features kept so far and
    those taken of the new group decides which ones stay.

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

    Attributes
    ----------
    scores_ : ndarray of float
        The spectral score of each: variance between the classes over that within.

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
    array([1])
    """

    group_size: int = 10
    penalty: float = 0.1
    gain: float = 0.001
    criterion: Literal["difference", "t-test"] = "difference"
    significance: float = 0.05
    trace: TraceLevel = "full"

    _numeric_target = ""

    def update(self, values: Any, name: str | None = None) -> Decision:
        """Decide about one feature, which is a group of its own.

        Parameters
        ----------
        values : array of shape (n_samples,)
            One value per sample; a sparse column will do.
        name : str, optional
            The feature's name; by default made from its arrival.
        """
        block = block_of_one(values, name, self.n_seen_)
        return self._update([block], len(self._groups)).features[0]

    def _lay_out(self, groups: Any, source: Source) -> Layout:
        if groups is None:
            size = self.group_size
            self._warn_of_no_groups(f"each {size:,} features in a row are one")
            return Sized(size)
        return super()._lay_out(groups, source)

    def _bind(self, y: Any) -> GroupModel:
        return GroupModel(y, check_number(self.penalty, "penalty", type(self).__name__))

    def _begin(self, stream: Stream) -> None:
        super()._begin(stream)
        owner = type(self).__name__
        check_count(self.group_size, "group_size", owner)
        check_number(self.gain, "gain", owner, closed="left")
        check_number(self.significance, "significance", owner)
        check_choice(self.criterion, "criterion", ("difference", "t-test"), owner)
        self._columns = np.empty((stream.measure.n_samples, 0), order="F")

    def _state_arrays(self) -> dict[str, NDArray[Any]]:
        return super()._state_arrays() | {"columns": self._columns.T}

    def _restore(self, arrays: Arrays) -> None:
        super()._restore(arrays)
        shape = (self._kept()[0].size, self._columns.shape[0])
        found = check_arrays(arrays, {"columns": Declared(np.float64, shape)})
        self._columns = np.asfortranarray(found["columns"].T)

    def _in_stream(self, given: Iterable[Batch]) -> Iterator[Batch]:
        """Groups one by one: what is kept of one decides about the next."""
        for batch in super()._in_stream(given):
            begin = first = batch.blocks[0].start
            for label, end in zip(batch.labels, first + batch.ends, strict=True):
                parts = [
                    block.part(max(begin - block.start, 0), end - block.start)
                    for block in batch.blocks
                    if block.start < end and block.start + block.n_columns > begin
                ]
                yield Batch(parts, [label], np.array([end - begin]))
                begin = end

    def _decide(self, batch: Batch, stream: Stream) -> Verdict:
        model: GroupModel = stream.measure
        owner, first = type(self).__name__, batch.blocks[0].start
        values = [
            numeric.as_numeric(block, model.n_samples, owner) for block in batch.blocks
        ]
        dense = numeric.join_values([Block(columns).to_dense() for columns in values])
        group = numeric.StandardColumns(dense, np.sqrt(model.n_samples)).values
        between, within = model.spread(group)
        scores = between / np.maximum(within, 1e-12)
        taken = self._choose(between, within, scores)
        columns = np.asfortranarray(np.column_stack([self._columns, group[:, taken]]))
        is_used = model.regress(columns)
        kept, fate = self._kept()[0], np.zeros(scores.size, np.uint8)
        fate[taken[is_used[kept.size :]]] = Fate.KEPT
        gone = kept[~is_used[: kept.size]]
        self._columns = columns[:, is_used]
        gone_by = np.full(gone.size, first + scores.size - 1)
        return Verdict(fate, scores, gone=gone, gone_by=gone_by)

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

    def _why_irrelevant(self, relevance: str) -> str:
        return (
            f"it adds nothing to its group, or the lasso gave it no weight; {relevance}"
        )

    def _why_dropped(self, fate: Fate, its_features: str) -> str:
        return f"the lasso gave none of {its_features} any weight"


class GroupModel:
    """The target, for the two stages."""

    name = "spectral"

    def __init__(self, y: Any, penalty: float) -> None:
        labels = as_labels(y)
        indicators = numeric.class_indicators(labels)
        target = indicators - indicators.mean(axis=0)
        self.target, self.penalty = target / target.std(axis=0), penalty
        self.codes, self.counts = labels.codes, labels.counts
        self.n_samples = labels.codes.size

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
