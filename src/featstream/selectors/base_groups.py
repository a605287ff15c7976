"""Selectors to which features arrive in groups."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from featstream.errors import (
    DataError,
    FeatstreamWarning,
    ParameterError,
    printable,
)
from featstream.parallel import clock
from featstream.protocols import (
    Block,
    Fate,
    GroupDecision,
    IndexedSource,
    IntArray,
    Source,
)
from featstream.runs.arrays import damaged
from featstream.runs.state import group_arrays, restore_groups
from featstream.selectors import base
from featstream.selectors.result import SelectionResult, appended, frame_of
from featstream.selectors.stream import Decide, Stream, Verdict
from featstream.sources import as_source
from featstream.sources.combined import sample_order_of
from featstream.sources.grouping import Batch, Layout, batches, lay_out
from featstream.sources.values import check_names


class GroupTrace:
    """What became of every group: its label, its size, its fate and what is left.

    The features of a group arrive one after the other, so a group is a range of
    arrivals.

    Examples
    --------
    >>> from featstream import GroupSAOLA
    >>> X = [[0, 0, 0], [0, 0, 1], [1, 1, 0], [1, 0, 1]]
    >>> selector = GroupSAOLA(measure="su").fit(X, [0, 0, 1, 1], groups=["a", "a", "b"])
    >>> groups = selector.result_.groups
    >>> groups.labels, groups.n_features.tolist(), groups.n_kept.tolist()
    (['a', 'b'], [2, 1], [1, 0])
    >>> str(groups.fate("b"))
    'irrelevant'
    """

    def __init__(self) -> None:
        self.labels: list[Hashable] = []
        self._number_of: dict[Hashable, int] = {}
        self._ends = np.empty(0, np.int64)
        self._fates = np.empty(0, np.uint8)
        self._n_kept = np.empty(0, np.int64)

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def ends(self) -> IntArray:
        """The arrival that comes after the last of each group."""
        return self._ends[: len(self)]

    @property
    def n_features(self) -> IntArray:
        """Number of features of each group."""
        return np.diff(self.ends, prepend=0)

    @property
    def n_kept(self) -> IntArray:
        """How many features of each group are kept."""
        return self._n_kept[: len(self)]

    @property
    def fates(self) -> NDArray[np.uint8]:
        """What became of each group."""
        return self._fates[: len(self)]

    def fate(self, label: Hashable) -> Fate:
        """What became of a group."""
        number = self.find(label)
        if number is None:
            raise DataError(
                f"No group {printable(label)} among the {len(self):,} seen."
            )
        return Fate(int(self._fates[number]))

    def find(self, label: Hashable) -> int | None:
        """The number of a group, from 0 in order of arrival, if there is one."""
        return self._number_of.get(label)

    def of(self, arrivals: IntArray) -> IntArray:
        """Numbers of the groups that features belong to."""
        return np.searchsorted(self.ends, arrivals, "right")

    def check_new(self, labels: Sequence[Hashable]) -> None:
        """Raise if one of the groups has arrived before."""
        seen: set[Hashable] = set()
        for label in labels:
            if label in self._number_of or label in seen:
                raise DataError(
                    f"Group {printable(label)} has already arrived. The features of a "
                    "group must arrive together: order them by group, or give an "
                    "array, a sparse matrix or a data frame, from which they can be "
                    "gathered."
                )
            seen.add(label)

    def extend(
        self, labels: Sequence[Hashable], sizes: IntArray, fates: Any, n_kept: IntArray
    ) -> None:
        """Record the next groups, in order of arrival."""
        begin, end = len(self), len(self) + len(labels)
        ends = np.cumsum(sizes) + (self._ends[begin - 1] if begin else 0)
        fates = np.broadcast_to(fates, ends.shape)
        self._ends = appended(self._ends, begin, ends)
        self._fates = appended(self._fates, begin, fates)
        self._n_kept = appended(self._n_kept, begin, n_kept)
        self._number_of.update(zip(labels, range(begin, end), strict=True))
        self.labels.extend(labels)

    def lose(self, arrivals: IntArray) -> None:
        """Note that kept features have left; a group without any is displaced."""
        numbers = self.of(arrivals)
        np.subtract.at(self._n_kept, numbers, 1)
        self._fates[numbers[self._n_kept[numbers] == 0]] = Fate.DISPLACED

    @property
    def kept(self) -> list[Hashable]:
        """Labels of the groups with a kept feature, in order of arrival."""
        return [self.labels[number] for number in np.flatnonzero(self.n_kept)]

    def counts(self) -> dict[str, int]:
        """Number of groups by fate."""
        found = np.bincount(self.fates, minlength=len(Fate))
        return {str(fate): int(found[fate]) for fate in Fate}


@dataclass(frozen=True, repr=False)
class GroupSelectionResult(SelectionResult):
    """The selected features and groups with the history behind them.

    As `SelectionResult`; ``indices`` are positions in the source, while the trace
    goes by arrival, group after group.

    Attributes
    ----------
    groups : GroupTrace
        The fate of every group.
    group_numbers : ndarray of int
        The group of each selected feature, by its place among ``groups``.

    Examples
    --------
    >>> from featstream import GroupSAOLA
    >>> X = [[0, 0, 0], [0, 0, 1], [1, 1, 0], [1, 0, 1]]
    >>> selector = GroupSAOLA(measure="su").fit(X, [0, 0, 1, 1], groups=["a", "a", "b"])
    >>> print(selector.result_.groups_frame("polars"))
    shape: (2, 5)
    ┌───────┬────────────┬────────┬────────────┬───────────┐
    │ group ┆ n_features ┆ n_kept ┆ fate       ┆ relevance │
    │ ---   ┆ ---        ┆ ---    ┆ ---        ┆ ---       │
    │ str   ┆ i64        ┆ i64    ┆ str        ┆ f64       │
    ╞═══════╪════════════╪════════╪════════════╪═══════════╡
    │ a     ┆ 2          ┆ 1      ┆ kept       ┆ 1.0       │
    │ b     ┆ 1          ┆ 0      ┆ irrelevant ┆ null      │
    └───────┴────────────┴────────┴────────────┴───────────┘
    """

    groups: GroupTrace = field(default_factory=GroupTrace, compare=False)
    group_numbers: IntArray = field(default_factory=lambda: np.empty(0, np.int64))

    def _counted(self) -> str:
        n_kept, n_groups = len(self.selected_groups), len(self.groups)
        return f"{super()._counted()} in {n_kept:,} of {n_groups:,} groups"

    @property
    def selected_groups(self) -> list[Any]:
        """Labels of the groups with a selected feature, in order of arrival."""
        return self.groups.kept

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and strings, as ``--json`` prints them."""
        plain = super().to_dict()
        for feature, number in zip(plain["selected"], self.group_numbers, strict=True):
            feature["group"] = self.groups.labels[number]
        return plain | {
            "n_groups": len(self.groups),
            "group_fates": self.groups.counts(),
            "selected_groups": self.selected_groups,
        }

    def groups_frame(self, backend: str = "pandas") -> Any:
        """Every group as a row of a data frame, in order of arrival.

        Its columns are ``group``, ``n_features``, ``n_kept``, ``fate`` and
        ``relevance``: the highest among its kept features, null if there are none.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, default="pandas"
            Which library's frame to make.
        """
        groups, best = self.groups, np.zeros(len(self.groups))
        np.maximum.at(best, self.group_numbers, self.scores)
        columns = {
            "group": list(groups.labels),
            "n_features": groups.n_features.tolist(),
            "n_kept": groups.n_kept.tolist(),
            "fate": [str(Fate(fate)) for fate in groups.fates.tolist()],
            "relevance": [
                score if n else None
                for score, n in zip(best.tolist(), groups.n_kept, strict=True)
            ],
        }
        return frame_of(columns, backend)

    def _columns(self) -> dict[str, list[Any]]:
        numbers = self.group_numbers[self._order()]
        return super()._columns() | {"group": [self.groups.labels[n] for n in numbers]}


class GroupedSelector(base.OnlineSelector):
    """Base of selectors whose features belong to groups, and the history of these.

    Attributes
    ----------
    selected_ : ndarray of int
        Positions of the kept features, group after group in order of arrival.
    selected_groups_ : ndarray
        Labels of the groups with a kept feature, in order of arrival.
    group_of_ : ndarray of shape (n_features,)
        Label of the group of each feature.
    result_ : GroupSelectionResult
        Names, scores and history of features and groups.
    """

    _groups: GroupTrace

    def fit(self, X: Any, y: Any = None, *, groups: Any = None) -> Self:
        """Select from a whole data set: ``start(y).consume(X, groups=groups)``.

        Parameters
        ----------
        X : array, sparse matrix, data frame, path or Source
            Samples by features.
        y : array of shape (n_samples,)
            The class of each sample.
        groups : array of labels, mapping or list of index lists, optional
            The group of each feature, as for `consume`.
        """
        return self._fit(X, y, groups=groups)

    def _lay_out(self, groups: Any, source: Source) -> Layout:
        """How the features of a source fall into groups."""
        if groups is None:
            self._warn_of_no_groups("each feature is one of its own")
        return lay_out(groups, source)

    def _warn_of_no_groups(self, what: str) -> None:
        warnings.warn(
            f"{type(self).__name__} has no groups: {what}. Pass groups= (command line: "
            "--groups, --group-size or --group-by).",
            FeatstreamWarning,
            stacklevel=3,
        )

    def _begin(self, stream: Stream) -> None:
        self._groups = GroupTrace()

    def _facts(self) -> dict[str, Any]:
        facts = super()._facts()  # an error before the stream has begun
        groups = self._groups
        return facts | {"n_groups": len(groups), "n_groups_kept": len(groups.kept)}

    def _state_arrays(self) -> dict[str, NDArray[Any]]:
        return super()._state_arrays() | group_arrays(self._groups)

    def _restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        restore_groups(self._groups, arrays, self._stream.n_seen)
        super()._restore(arrays)

    def explain(
        self,
        feature: str | int | None = None,
        *,
        group: Hashable = None,
        input_features: Any = None,
    ) -> str:
        """Why a feature or a group was kept or dropped, in a sentence.

        Parameters
        ----------
        feature : str or int
            The name of a feature, or its position in the source. The label of a
            group will do, if no feature has that name.
        group : hashable
            The label of a group.
        input_features : array of str, optional
            Names for features that came without one.
        """
        if input_features is not None:
            return self._with_names(input_features).explain(feature, group=group)
        stream = self._started()
        if (feature is None) == (group is None):
            raise ParameterError(
                "explain() takes a feature or a group. Write explain('gene_17'), or "
                "explain(group='plate-7')."
            )
        if isinstance(feature, str) and stream.names.find(feature) is None:
            group = feature if self._groups.find(feature) is not None else None
        if group is not None:
            return self._explain_group(group)
        assert feature is not None
        return super().explain(feature)

    def _explain_group(self, label: Hashable) -> str:
        groups, name = self._groups, printable(label)
        fate, number = groups.fate(label), groups.find(label)
        assert number is not None
        n_features, n_kept = int(groups.n_features[number]), int(groups.n_kept[number])
        its_features = f"its {n_features:,} feature" + "s" * (n_features > 1)
        if fate is Fate.KEPT:
            return f"Group {name} is kept, with {n_kept:,} of {its_features}."
        if fate is Fate.DISPLACED:
            return (
                f"Group {name} was displaced: what was kept of {its_features} gave way "
                "to features at least as relevant."
            )
        return f"Group {name} is {fate}: {self._why_dropped(fate, its_features)}."

    @abstractmethod
    def _why_dropped(self, fate: Fate, its_features: str) -> str:
        """Why nothing was kept of a group when it arrived."""

    def _shown(self, arrival: int, stream: Stream) -> str:
        name, groups = stream.names[arrival], self._groups
        label = groups.labels[int(groups.of(np.array([arrival]))[0])]
        if label == name:
            return printable(name)
        return f"{printable(name)} of group {printable(label)}"

    @property
    def selected_groups_(self) -> NDArray[Any]:
        """Labels of the groups with a kept feature, in order of arrival."""
        self._started()
        return _as_array(self._groups.kept)

    @property
    def group_of_(self) -> NDArray[Any]:
        """Label of the group of each feature, by its position.

        None for those that have not arrived, in a source that is not done.
        """
        stream, groups = self._started(), self._groups
        labels = np.repeat(_as_array(groups.labels), groups.n_features)
        n_positions = max(stream.n_seen, stream.names.order.size)
        if n_positions > stream.n_seen:
            labels = labels.astype(object)
        placed = np.empty(n_positions, labels.dtype)
        placed[stream.names.positions(np.arange(stream.n_seen))] = labels
        return placed

    @property
    def result_(self) -> GroupSelectionResult:
        """The selection with its scores and the history of features and groups."""
        fields, groups = self._result_fields(), self._groups
        numbers = groups.of(self._kept()[0])
        return GroupSelectionResult(**fields, groups=groups, group_numbers=numbers)


class GroupSelector(GroupedSelector, base.SequentialSelector):
    """Base of selectors to which features arrive in groups.

    A subclass decides about whole groups in `_decide`, or `_prepare`.
    """

    def _read(
        self, source: Source, layout: Layout, position: int
    ) -> tuple[Iterator[Block], Layout]:
        stream = self._stream
        first, order = stream.n_seen - position, layout.order
        known = stream.names.order[first:] - first
        is_known = np.array_equal(known, [] if order is None else order)
        if not layout.may_end_at(position) or not (
            is_known or position == known.size == 0
        ):
            raise damaged(
                "it stopped where no group ends, or took its features in another order"
            )
        n_groups = int(np.searchsorted(self._groups.ends, first, "right"))
        placed = layout.placed(first, n_groups)
        if order is None:
            return source.blocks(position), placed
        stream.names.reorder(first, order)
        assert isinstance(source, IndexedSource), "checked by lay_out"
        return source.blocks_at(order, position), placed

    def _batches(
        self, blocks: Iterator[Block], layout: Layout, position: int
    ) -> Iterator[Batch]:
        return self._in_stream(batches(blocks, layout, position))

    def _in_stream(self, given: Iterable[Batch]) -> Iterator[Batch]:
        """Whole groups in the storage of the stream, placed in it."""
        arrival = self._stream.n_seen
        for batch in given:
            blocks = list(base.in_stream(batch.blocks, self._stream, arrival))
            yield replace(batch, blocks=blocks)
            arrival += int(batch.ends[-1])

    def _take(self, batch: Batch, decide: Decide, stream: Stream) -> Verdict:
        groups, first = self._groups, stream.n_seen
        groups.check_new(batch.labels)
        named = [(block, block.names) for block in batch.blocks if block.names]
        names = [name for _, listed in named for name in listed]
        stream.names.refuse_taken(first, names)
        verdict = decide()
        stream.record(first, verdict)
        begins = np.append(0, batch.ends[:-1])
        n_kept, n_relevant = (
            np.add.reduceat(which, begins, dtype=np.int64)
            for which in (verdict.fate == Fate.KEPT, verdict.fate != Fate.IRRELEVANT)
        )
        fates = np.where(n_kept > 0, Fate.KEPT, Fate.REDUNDANT)
        fates[n_relevant == 0] = Fate.IRRELEVANT
        groups.extend(batch.labels, batch.ends - begins, fates, n_kept)
        groups.lose(verdict.gone)
        for block, listed in named:
            stream.names.add(block.start, listed)
            if stream.trace.level != "full":
                self._forget_names(stream, block)
        return verdict

    def update_group(
        self, X_group: Any, group: Hashable, names: Iterable[str] | None = None
    ) -> GroupDecision:
        """Decide about one group.

        Parameters
        ----------
        X_group : anything that `as_source` takes
            The features of the group.
        group : hashable
            Its label, which no group before it has had. Runs are saved with labels
            that are text, numbers, or tuples of these.
        names : iterable of str, optional
            Names of the features; by default those of ``X_group``, or made from
            their arrivals.
        """
        source = as_source(X_group)
        self._started().check_samples(sample_order_of(source), "This source")
        blocks = list(source.blocks())
        if group is None:
            raise DataError("A group needs a label other than None.")
        if not blocks:
            raise DataError(f"Group {printable(group)} has no features.")
        if names is not None:
            listed = check_names(names, sum(block.n_columns for block in blocks))
            blocks = [
                replace(block, names=listed[block.start :][: block.n_columns])
                for block in blocks
            ]
        return self._update(blocks, group)

    def _update(self, blocks: list[Block], group: Hashable) -> GroupDecision:
        """Decide about the columns of some blocks as one group."""
        stream, began = self._begun(), clock()
        if stream.measure is None:
            self._choose_measure(blocks, stream)
        ends = np.array([sum(block.n_columns for block in blocks)])
        (batch,) = self._in_stream([Batch(blocks, [group], ends)])
        verdict = self._decide_now(batch, stream)
        stream.seconds += max(0.0, clock() - began)
        base.warn_of_identifiers(stream)
        names = [b.name(i) for b in batch.blocks for i in range(b.n_columns)]
        touched = np.unique(self._groups.of(verdict.gone))
        emptied = touched[self._groups.n_kept[touched] == 0]
        return GroupDecision(
            group,
            Fate(int(self._groups.fates[-1])),
            tuple(stream.decision(verdict, names, i) for i in range(len(names))),
            tuple(stream.names[gone] for gone in verdict.gone.tolist()),
            tuple(self._groups.labels[number] for number in emptied),
        )


def _as_array(labels: list[Hashable]) -> NDArray[Any]:
    """Labels as an array of integers or text, or else of objects."""
    for kind in (int, str):
        if labels and all(type(label) is kind for label in labels):
            return np.array(labels)
    return np.fromiter(labels, dtype=object, count=len(labels))
