"""Group-SAOLA: Algorithm 2 of the paper."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Hashable, Iterable, Iterator
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from featstream.engines import count_threads
from featstream.errors import DataError, ParameterError, printable
from featstream.kernels.group_scan import GroupOutcome
from featstream.progress import Observer, Progress, observed
from featstream.protocols import (
    Fate,
    FloatArray,
    GroupDecision,
    IntArray,
    Measure,
)
from featstream.result import GroupSelectionResult
from featstream.selectors.base import OnlineSelector
from featstream.selectors.group_stream import (
    GroupStream,
    ScoredBatch,
    decisions,
    displacements,
    score_ahead,
)
from featstream.selectors.online.saola import make_rule
from featstream.selectors.stream import Stream
from featstream.sources import as_source
from featstream.sources.columns import check_names
from featstream.sources.groups import Batch, batches, lay_out
from featstream.trace import TraceLevel

__all__ = ["GroupSAOLA"]

_LIBRARY = {"ties": "keep", "pruning": "interleaved", "overlap": ">="}
"""Options that reading="library" decides, and their defaults."""


class GroupSAOLA(OnlineSelector):
    """SAOLA for features that arrive in groups: sparse between and within them.

    A group is dropped if none of its features is relevant. Otherwise its own
    features are pruned as SAOLA prunes a stream, and those left are compared with
    the features of the kept groups, in both directions. A group stays for as long
    as one of its features does.

    Parameters
    ----------
    measure : {"auto", "su", "mi", "fisher-z"} or measure object, default="auto"
        How relevance and overlap are measured; as for `SAOLA`.
    reading : {"printed", "library"}, default="printed"
        How Algorithm 2 is read. "printed": what has been removed takes no further
        part. "library": as the authors' own library does, where features removed
        in the comparison of two groups still remove others, overlap must exceed
        its bound, and of equally relevant features the earlier goes between groups
        and the later within one. `ties`, `pruning` and `overlap` are for
        "printed" alone.
    bound : {"min", "max"}, default="min"
        What the overlap of two features must reach: the smaller of their
        relevances, or the larger.
    ties : {"keep", "drop"}, default="keep"
        Whether two features of exactly equal relevance never remove each other,
        or the earlier may make the later redundant.
    pruning : {"interleaved", "deferred"}, default="interleaved"
        Whether a feature removes others during its walk, even if it is itself
        removed later in the same walk, or only if it is not.
    overlap : {">=", ">"}, default=">="
        Whether overlap must reach its bound, as printed, or exceed it.
    trace : {"full", "kept"} or None, default="full"
        What is remembered of dropped features: why each was dropped (nine bytes
        a feature), only those once kept, or nothing.
    n_jobs : int, optional
        Number of threads that score blocks ahead of the scan. The selection does
        not depend on it.

    Attributes
    ----------
    selected_ : ndarray of int
        Positions of the kept features, group after group in order of arrival.
    selected_groups_ : ndarray
        Labels of the groups with a kept feature, in order of arrival.
    scores_ : ndarray of float
        Relevance of the kept features.
    group_of_ : ndarray of shape (n_features,)
        Label of the group of each feature.
    support_ : ndarray of bool of shape (n_features,)
        Whether each feature is kept.
    measure_ : str
        The measure in use.
    result_ : GroupSelectionResult
        Names, scores and history of features and groups.

    See Also
    --------
    SAOLA : The same for features that arrive one by one.
    featstream.random_groups : The groups of the paper's experiments.

    Notes
    -----
    Groups arrive in the order in which they first appear, features in that of
    their group. If the features of a group are scattered they are gathered, from
    arrays, sparse matrices and data frames; other sources are read in order, and
    there the features of a group must be next to each other. A group costs memory
    for its own columns while it arrives, and then for the kept ones.

    Groups of one feature each give what `SAOLA` gives, with the same options.

    Algorithm 2 of [1]_ leaves irrelevant features of a relevant group in play; here
    they are dropped, as in the authors' library. The paper's numbers of groups and
    features are those of ``reading="library"``. ``docs/fidelity.md`` has the
    details.

    References
    ----------
    .. [1] K. Yu, X. Wu, W. Ding, J. Pei: Scalable and Accurate Online Feature
       Selection for Big Data. ACM TKDD 11(2), 2016.

    Examples
    --------
    >>> from featstream import GroupSAOLA
    >>> from featstream.datasets import make_stream
    >>> stream = make_stream(n_features=500, kind="continuous", seed=0)
    >>> groups = [f"plate-{i // 50}" for i in range(500)]
    >>> selector = GroupSAOLA().fit(stream.X, stream.y, groups=groups)
    >>> set(stream.blanket) <= set(selector.selected_)
    True

    Online, a group at a time:

    >>> selector = GroupSAOLA(measure="fisher-z").start(stream.y)
    >>> decision = selector.update_group(stream.X[:, :50], group="plate-0")
    >>> str(decision.fate), len(decision.features)
    ('kept', 50)
    >>> print(selector.explain(group="plate-0"))
    Group 'plate-0' is kept, with 3 of its 50 features.
    """

    def __init__(
        self,
        *,
        measure: str | Measure = "auto",
        reading: Literal["printed", "library"] = "printed",
        bound: Literal["min", "max"] = "min",
        ties: Literal["keep", "drop"] = "keep",
        pruning: Literal["interleaved", "deferred"] = "interleaved",
        overlap: Literal[">=", ">"] = ">=",
        trace: TraceLevel = "full",
        n_jobs: int | None = None,
    ) -> None:
        self.measure = measure
        self.reading = reading
        self.bound = bound
        self.ties = ties
        self.pruning = pruning
        self.overlap = overlap
        self.trace = trace
        self.n_jobs = n_jobs

    def _begin(self, stream: Stream) -> None:
        rule = make_rule(self)
        if self.reading not in ("printed", "library"):
            raise ParameterError(
                "`reading` of GroupSAOLA must be 'printed' or 'library'. "
                f"Got {printable(self.reading)}."
            )
        if self.reading == "library":
            for name, default in _LIBRARY.items():
                if getattr(self, name) != default:
                    raise ParameterError(
                        f"`{name}` of GroupSAOLA is decided by reading='library'. Got "
                        f"{printable(getattr(self, name))}. Leave it out, or use "
                        "reading='printed'."
                    )
            rule = rule._replace(needs_excess=True, drops_ties=True)
        self._state = GroupStream(rule, is_frozen=self.reading == "library")

    def _kept(self) -> tuple[IntArray, FloatArray]:
        return self._state.arrivals_and_scores()

    def fit(self, X: Any, y: Any = None, *, groups: Any = None) -> Self:
        """Select from a whole data set: ``start(y).consume(X, groups=groups)``.

        Parameters
        ----------
        X : array, sparse matrix, data frame, path or Source
            Samples by features.
        y : array of shape (n_samples,)
            The class of each sample.
        groups : array of labels, mapping or list of index lists, optional
            The group of each feature, as for `consume`. By default each feature is
            a group of its own.
        """
        return self._fit(X, y, groups=groups)

    def consume(
        self, source: Any, *, groups: Any = None, progress: bool | Observer = False
    ) -> Self:
        """Decide about every group of a source.

        Parameters
        ----------
        source : anything that `as_source` takes
            Features; further calls continue the stream.
        groups : array of labels, mapping or list of index lists, optional
            One label a feature; or a mapping of the names of features to labels;
            or the positions of the features of each group, whose labels are then
            0, 1 and so on. Every feature is in one group. By default each feature
            is a group of its own, labelled with its name.
        progress : bool or callable, default=False
            Show a live line, or call with a `Progress` after each block.

        Notes
        -----
        An error ends a stream whose groups have to be gathered; otherwise what was
        decided before it stands.
        """
        stream, began = self._started(), time.perf_counter()
        source = as_source(source)
        n_before, n_new = stream.n_seen, source.n_features
        layout = lay_out(groups, source, n_before)
        n_features = None if n_new is None else n_before + n_new
        try:
            if layout.order is None:
                blocks = source.blocks()
            else:
                blocks = source.blocks_at(layout.order)
                stream.names.reorder(n_before, layout.order)
            if stream.measure is None:
                blocks = self._look_ahead(blocks, stream)
            with observed(progress, type(self).__name__) as observe:
                for batch in self._score(batches(blocks, layout), stream):
                    self._decide(batch, stream)
                    if observe is not None:
                        n_kept = self._kept()[0].size
                        observe(Progress(stream.n_seen, n_features, n_kept))
        except BaseException:
            if layout.order is not None:
                del self._stream  # it has positions for features that never came
            raise
        finally:
            stream.seconds += time.perf_counter() - began
        return self

    def update_group(
        self, X_group: Any, group: Hashable, names: Iterable[str] | None = None
    ) -> GroupDecision:
        """Decide about one group.

        Parameters
        ----------
        X_group : anything that `as_source` takes
            The features of the group.
        group : hashable
            Its label, which no group before it has had.
        names : iterable of str, optional
            Names of the features; by default those of ``X_group``, or made from
            their arrivals.
        """
        stream, began = self._started(), time.perf_counter()
        blocks = list(as_source(X_group).blocks())
        ends = np.cumsum([block.n_columns for block in blocks])
        if group is None:
            raise DataError("A group needs a label other than None.")
        if not blocks:
            raise DataError(f"Group {printable(group)} has no features.")
        if names is not None:
            listed = check_names(names, int(ends[-1]))
            begins = ends - [block.n_columns for block in blocks]
            blocks = [
                dataclasses.replace(block, names=listed[begin:end])
                for block, begin, end in zip(blocks, begins, ends, strict=True)
            ]
        if stream.measure is None:
            self._choose_measure(blocks, stream)
        batch = Batch(blocks, [group], ends[-1:])
        (scored,) = self._score(iter([batch]), stream)
        outcome, emptied = self._decide(scored, stream)
        stream.seconds += time.perf_counter() - began
        return GroupDecision(
            group,
            Fate(int(self._state.groups.fates[-1])),
            decisions(scored, outcome, stream),
            tuple(stream.names[gone] for gone in displacements(outcome)[0].tolist()),
            tuple(emptied),
        )

    def _score(self, batches: Iterator[Batch], stream: Stream) -> Iterator[ScoredBatch]:
        return score_ahead(batches, stream, count_threads(self.n_jobs))

    def _decide(
        self, batch: ScoredBatch, stream: Stream
    ) -> tuple[GroupOutcome, list[Hashable]]:
        """Decide about whole groups, and forget the names that need not be known."""
        decided = self._state.decide(batch, stream)
        if stream.trace.level != "full":
            for piece in batch.pieces:
                self._forget_names(stream, piece.block)
        return decided

    def explain(
        self, feature: str | int | None = None, *, group: Hashable = None
    ) -> str:
        """Why a feature or a group was kept or dropped, in a sentence.

        Parameters
        ----------
        feature : str or int
            The name of a feature, or its position in the source. The label of a
            group will do, if no feature has that name.
        group : hashable
            The label of a group.
        """
        stream = self._started()
        if (feature is None) == (group is None):
            raise ParameterError(
                "explain() takes a feature or a group. Write explain('gene_17'), or "
                "explain(group='plate-7')."
            )
        if group is not None:
            return self._explain_group(group)
        assert feature is not None
        if (
            isinstance(feature, str)
            and stream.names.find(feature) is None
            and self._state.groups.find(feature) is not None
        ):
            return self._explain_group(feature)
        return super().explain(feature)

    def _explain_group(self, label: Hashable) -> str:
        groups, name = self._state.groups, printable(label)
        fate, number = groups.fate(label), groups.find(label)
        assert number is not None
        n_features, n_kept = int(groups.n_features[number]), int(groups.n_kept[number])
        its_features = f"its {n_features:,} feature" + "s" * (n_features > 1)
        if fate is Fate.KEPT:
            return f"Group {name} is kept, with {n_kept:,} of {its_features}."
        if fate is Fate.IRRELEVANT:
            return (
                f"Group {name} is irrelevant: none of {its_features} passes the "
                "threshold."
            )
        if fate is Fate.REDUNDANT:
            return (
                f"Group {name} is redundant: what is relevant of {its_features} is "
                "redundant, within the group or beside those kept before."
            )
        return (
            f"Group {name} was displaced: features of later groups have displaced what "
            f"was kept of {its_features}."
        )

    def _shown(self, arrival: int, stream: Stream) -> str:
        name, groups = stream.names[arrival], self._state.groups
        label = groups.labels[int(groups.of(np.array([arrival]))[0])]
        if label == name:
            return printable(name)
        return f"{printable(name)} of group {printable(label)}"

    @property
    def selected_groups_(self) -> NDArray[Any]:
        """Labels of the groups with a kept feature, in order of arrival."""
        self._started()
        kept = np.flatnonzero(self._state.groups.n_kept)
        return _as_array([self._state.groups.labels[number] for number in kept])

    @property
    def group_of_(self) -> NDArray[Any]:
        """Label of the group of each feature seen, by its position."""
        positions = self._started().names.positions(np.arange(self.n_seen_))
        groups = self._state.groups
        labels = np.repeat(_as_array(groups.labels), groups.n_features)
        placed = np.empty_like(labels)
        placed[positions] = labels
        return placed

    @property
    def result_(self) -> GroupSelectionResult:
        """The selection with its scores and the history of features and groups."""
        fields, groups = self._result_fields(), self._state.groups
        numbers = groups.of(self._kept()[0])
        return GroupSelectionResult(**fields, groups=groups, group_numbers=numbers)


def _as_array(labels: list[Hashable]) -> NDArray[Any]:
    """Labels as an array of integers or text, or else of objects."""
    for kind in (int, str):
        if labels and all(type(label) is kind for label in labels):
            return np.array(labels)
    return np.fromiter(labels, dtype=object, count=len(labels))
