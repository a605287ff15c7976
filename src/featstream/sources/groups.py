"""Which features arrive together: groups laid over the columns of a source."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from featstream.errors import DataError, DataTypeError, printable
from featstream.protocols import Block, IntArray, Source, feature_name

__all__ = ["Batch", "Layout", "batches", "lay_out"]

Runs: TypeAlias = tuple[Sequence[Hashable], IntArray, bool]
"""Labels of the groups in a block, where each ends, and whether the last is whole."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Some whole groups, in order of arrival.

    Attributes
    ----------
    blocks : list of Block
        Their columns.
    labels : sequence of hashable
        Their labels.
    ends : ndarray of int
        Where each group ends, counted in columns of the batch.
    """

    blocks: list[Block]
    labels: Sequence[Hashable]
    ends: IntArray


class Layout(Protocol):
    """How the features of a source fall into groups."""

    @property
    def order(self) -> IntArray | None:
        """Positions in order of arrival; None if that is the order of the source."""

    def runs(self, block: Block) -> Runs:
        """The groups in a block."""

    def check_end(self, n_seen: int) -> None:
        """Raise if the source has ended in the midst of things."""


def lay_out(groups: Any, source: Source, first: int = 0) -> Layout:
    """Check a grouping of the features of a source, and put groups together.

    Groups arrive in the order in which they first appear, and the features of a
    group in the order of the source or, in a list of index lists, as listed.

    Parameters
    ----------
    groups : array of labels, mapping of names to labels, list of index lists, or None
        One label a feature, or one list of positions a group. None makes each
        feature a group of its own, labelled with its name.
    source : Source
        The features.
    first : int, default=0
        How many features arrived before those of the source.

    Returns
    -------
    Layout
        The groups in order of arrival.

    Examples
    --------
    >>> import numpy as np
    >>> from featstream.sources import ArraySource
    >>> lay_out(["a", "b", "a"], ArraySource(np.eye(3))).order
    array([0, 2, 1])
    """
    if groups is None:
        return _Singles(first)
    if isinstance(groups, Mapping):
        names = getattr(source, "names", None)
        if names is None and source.n_features is None:
            return _Mapped(groups)
        if names is None:
            names = [feature_name(i) for i in range(source.n_features or 0)]
        layout = _from_labels([_label_of(name, groups) for name in names])
    elif _holds_lists(groups):
        layout = _from_lists(groups, source)
    else:
        layout = _from_labels(_as_labels(groups))
    n_features = layout.n_features
    if source.n_features is not None and source.n_features != n_features:
        raise DataError(
            f"`groups` has {n_features:,} labels for {source.n_features:,} features. "
            "Give one label a feature."
        )
    if layout.order is not None and not hasattr(source, "blocks_at"):
        raise DataError(
            "The features of a group are scattered, and "
            f"{type(source).__name__} can only be read in order. Order its features "
            "by group, or give an array, a sparse matrix or a data frame, from which "
            "groups can be gathered."
        )
    return layout


def batches(blocks: Iterator[Block], layout: Layout) -> Iterator[Batch]:
    """Cut blocks where groups end, so that each piece is made of whole groups.

    A group that spans blocks is held until its last feature has come.
    """
    held: list[Block] = []
    n_held = n_seen = 0
    open_label: Hashable = None
    for block in blocks:
        labels, ends, is_whole = layout.runs(block)
        n_seen += block.n_columns
        if held and labels[0] != open_label:
            labels, ends = [open_label, *labels], np.concatenate([[0], ends])
        ends = ends + n_held
        n_whole = len(labels) if is_whole else len(labels) - 1
        cut = int(ends[n_whole - 1]) - n_held if n_whole else 0
        if n_whole:
            whole = [*held, block.part(0, cut)] if cut else held
            yield Batch(whole, labels[:n_whole], ends[:n_whole])
            held, n_held = [], 0
        if cut < block.n_columns:
            held.append(block.part(cut, block.n_columns))
            n_held += block.n_columns - cut
            open_label = labels[-1]
    layout.check_end(n_seen)
    if held:
        yield Batch(held, [open_label], np.array([n_held]))


class _Singles:
    """Each feature is a group of its own."""

    order = None

    def __init__(self, first: int) -> None:
        self._first = first

    def runs(self, block: Block) -> Runs:
        first, n = self._first + block.start, block.n_columns
        labels = block.names or [feature_name(first + i) for i in range(n)]
        return labels, np.arange(1, n + 1), True

    def check_end(self, n_seen: int) -> None:
        pass


class _Mapped:
    """Groups by name, for a source that tells names only as features come."""

    order = None

    def __init__(self, group_of: Mapping[str, Hashable]) -> None:
        self._group_of = group_of

    def runs(self, block: Block) -> Runs:
        found = [
            _label_of(block.name(i), self._group_of) for i in range(block.n_columns)
        ]
        ends = [i for i in range(1, len(found)) if found[i] != found[i - 1]]
        ends.append(len(found))
        return [found[end - 1] for end in ends], np.array(ends), False

    def check_end(self, n_seen: int) -> None:
        pass


@dataclass(frozen=True, slots=True)
class _Planned:
    """Groups known in advance: labels, and the arrival after the last of each."""

    labels: list[Hashable]
    ends: IntArray
    order: IntArray | None

    @property
    def n_features(self) -> int:
        return int(self.ends[-1]) if self.ends.size else 0

    def runs(self, block: Block) -> Runs:
        begin, end = block.start, block.start + block.n_columns
        if end > self.n_features:
            self._complain(f"more than {self.n_features:,}")
        low = int(np.searchsorted(self.ends, begin, "right"))
        high = int(np.searchsorted(self.ends, end))
        ends = np.minimum(self.ends[low : high + 1], end) - begin
        return self.labels[low : high + 1], ends, bool(self.ends[high] == end)

    def check_end(self, n_seen: int) -> None:
        if n_seen != self.n_features:
            self._complain(f"{n_seen:,}")

    def _complain(self, found: str) -> None:
        raise DataError(
            f"`groups` has labels for {self.n_features:,} features, but the source has "
            f"{found}. Give one label a feature."
        )


def _label_of(name: str, group_of: Mapping[str, Hashable]) -> Hashable:
    label = group_of.get(name)
    if isinstance(label, (list, tuple, set)):
        raise DataError(
            f"`groups` maps {printable(name)} to {printable(label)}. Groups must not "
            "overlap: map each feature to one label."
        )
    if _is_absent(label):
        raise DataError(
            f"Feature {printable(name)} is in no group. Every feature needs one: map "
            "it to a label, of its own if need be."
        )
    return label


def _is_absent(label: Any) -> bool:
    """None, NaN and the missing values of data frames."""
    return label is None or label != label or str(label) in ("<NA>", "NaT")


def _holds_lists(groups: Any) -> bool:
    """Whether it is a list of index lists rather than of labels."""
    return (
        isinstance(groups, (list, tuple))
        and len(groups) > 0
        and all(isinstance(group, (list, range, set, np.ndarray)) for group in groups)
    )


def _as_labels(groups: Any) -> NDArray[Any]:
    if hasattr(groups, "to_numpy"):
        groups = groups.to_numpy()
    if not isinstance(groups, (np.ndarray, list, tuple, range)):
        raise DataTypeError(
            "`groups` must be an array of labels, a mapping of feature names to "
            f"labels, or a list of index lists. Got {type(groups).__name__}."
        )
    labels = np.asarray(groups)
    if labels.dtype.kind in "US" and not isinstance(groups, np.ndarray):
        labels = np.empty(len(groups), object)  # numpy makes text of numbers
        labels[:] = groups
    if labels.ndim != 1:
        raise DataError(
            f"`groups` has the shape {labels.shape}. Give one label a feature, in one "
            "dimension, or a list of index lists."
        )
    return labels


def _from_labels(labels: NDArray[Any] | list[Hashable]) -> _Planned:
    """Features in order of the first appearance of their label."""
    if isinstance(labels, np.ndarray) and labels.dtype.kind in "biu":
        found, begins, codes = np.unique(labels, return_index=True, return_inverse=True)
        by_appearance = np.argsort(begins)
        codes = np.argsort(by_appearance)[codes]
        names = found[by_appearance].tolist()
    else:
        number_of: dict[Hashable, int] = {}
        coded = np.empty(len(labels), np.int64)
        listed = labels.tolist() if isinstance(labels, np.ndarray) else labels
        for i, label in enumerate(listed):
            if _is_absent(label):
                raise DataError(
                    f"Feature {i} is in no group: its label is {label}. Every feature "
                    "needs one, of its own if need be."
                )
            coded[i] = number_of.setdefault(label, len(number_of))
        codes, names = coded, list(number_of)
    ends = np.cumsum(np.bincount(codes, minlength=len(names)))
    is_contiguous = bool(np.all(codes[:-1] <= codes[1:]))
    order = None if is_contiguous else np.argsort(codes, kind="stable")
    return _Planned(names, ends, order)


def _from_lists(groups: Sequence[Any], source: Source) -> _Planned:
    """Groups numbered from 0, their features as listed."""
    lists = [np.array(sorted(g) if isinstance(g, set) else g) for g in groups]
    for number, members in enumerate(lists):
        if not members.size:
            raise DataError(f"Group {number} of `groups` has no features.")
        if members.ndim != 1 or members.dtype.kind not in "iu":
            raise DataTypeError(
                f"Group {number} of `groups` is not a list of positions. Give "
                "integers, or map feature names to labels."
            )
    order = np.concatenate(lists).astype(np.int64)
    sizes = np.array([members.size for members in lists])
    n_features = order.size if source.n_features is None else source.n_features
    if order.min() < 0 or order.max() >= n_features:
        wrong = order[(order < 0) | (order >= n_features)][0]
        raise DataError(
            f"`groups` has the position {wrong} for {n_features:,} features, which are "
            "counted from 0."
        )
    times = np.bincount(order, minlength=n_features)
    if times.max() > 1:
        position = int(times.argmax())
        holders = np.repeat(np.arange(len(lists)), sizes)[order == position]
        raise DataError(
            f"Feature {position} is in the groups {' and '.join(map(str, holders))}. "
            "Groups must not overlap: leave it in one of them."
        )
    if times.min() == 0:
        raise DataError(
            f"Feature {int(times.argmin())} is in no group, as are "
            f"{int((times == 0).sum()) - 1:,} others. Every feature needs one: add "
            "them, or leave them out of the data."
        )
    is_in_order = bool(np.all(order == np.arange(order.size)))
    return _Planned(
        list(range(len(lists))), np.cumsum(sizes), None if is_in_order else order
    )
