"""Groups of features: they are read, checked and assigned to those of a source."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from featstream.errors import (
    DataError,
    DataTypeError,
    ParameterError,
    RunError,
    check_count,
    printable,
)
from featstream.protocols import (
    Block,
    IndexedSource,
    IntArray,
    Source,
    Span,
    feature_name,
    names_of,
)
from featstream.sources.values import as_array, code_categories, is_missing

_HEADER = ["feature", "group"]

Runs: TypeAlias = tuple[Sequence[Hashable], IntArray, bool]
"""Labels of the groups in a block, where each ends, and whether the last is whole."""


def random_groups(n_features: int, n_groups: int, seed: int = 0) -> list[IntArray]:
    """Divide features at random into groups whose sizes differ by at most one.

    It is the protocol of Section 5.6 of the paper, which has no data with groups.

    Parameters
    ----------
    n_features : int
        Features to divide.
    n_groups : int
        Groups to make of them.
    seed : int, default=0
        The same seed gives the same groups.

    Returns
    -------
    list of ndarray of int
        The features of each group, in the order in which they arrive.

    Examples
    --------
    >>> from featstream import random_groups
    >>> [sorted(group.tolist()) for group in random_groups(6, 2)]
    [[2, 3, 5], [0, 1, 4]]
    """
    check_count(n_groups, "n_groups", "random_groups", most=n_features)
    order = np.random.default_rng(seed).permutation(n_features)
    return np.array_split(order, n_groups)


def read_groups(
    path: str | os.PathLike[str] | None = None,
    *,
    size: int | None = None,
    pattern: str | None = None,
    names: Sequence[str] | None = None,
    n_features: int | None = None,
    first: int = 0,
) -> dict[str, str] | list[str] | IntArray:
    """Groups from a file, by size or from the names of features.

    Exactly one of `path`, `size` and `pattern` is given.

    Parameters
    ----------
    path : str or path-like
        A text file with one label per line, in the order of the features; or a CSV
        file of two columns, feature and group, with or without that header.
    size : int
        Features in a group, in order; the last may have fewer.
    pattern : str
        A regular expression: the first group in parentheses, or else the whole
        match, is the label.
    names : sequence of str, optional
        Names of the features, for `pattern`.
    n_features : int, optional
        Number of features, for `size`; and for `pattern` if they have no names.
    first : int, default=0
        Number of the first group, for `size`: later features continue the numbers.

    Returns
    -------
    dict, list or ndarray
        What `GroupSAOLA.fit` takes for ``groups``.

    Examples
    --------
    >>> from featstream import read_groups
    >>> read_groups(size=2, n_features=5)
    array([0, 0, 1, 1, 2])
    >>> read_groups(pattern=r"(.*)_", names=["chr1_17", "chr1_40", "chrX_3"])
    ['chr1', 'chr1', 'chrX']
    """
    if sum(given is not None for given in (path, size, pattern)) != 1:
        raise ParameterError(
            "read_groups takes one of `path`, `size` and `pattern`. Got "
            f"path={path!r}, size={size!r}, pattern={pattern!r}."
        )
    if path is not None:
        return _read_file(Path(path))
    n_features = n_features if names is None else len(names)
    if n_features is None:
        raise ParameterError(
            "read_groups needs `n_features`, the number of features, or their `names`."
        )
    if pattern is not None:
        return _match(pattern, names or [feature_name(i) for i in range(n_features)])
    n_members: int = check_count(size, "size", "read_groups")
    return first + np.arange(n_features) // n_members


def _match(pattern: str, names: Sequence[str]) -> list[str]:
    try:
        expression = re.compile(pattern)
    except re.error as error:
        raise ParameterError(
            f"`pattern` of read_groups is not a regular expression: {error}. "
            f"Got {printable(pattern)}."
        ) from None
    labels = []
    for name in names:
        found = expression.search(name)
        label = found and found[min(1, expression.groups)]
        if label is None:
            raise DataError(
                f"Feature {printable(name)} is in no group: {printable(pattern)} does "
                "not match it. Every feature needs a group."
            )
        labels.append(label)
    return labels


def _read_file(path: Path) -> dict[str, str] | list[str]:
    """Read labels, or pairs of feature and group, and say which line is wrong."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not text in UTF-8: {error.reason}.") from None
    reader = csv.reader(text.splitlines(), strict=True)
    rows: list[list[str]] = []
    group_of: dict[str, str] = {}
    try:
        for row in filter(None, reader):
            cells = [cell.strip() for cell in row]
            expected = len(rows[0]) if rows else "one (group) or two (feature, group)"
            if len(cells) > 2 or (rows and len(cells) != expected):
                raise ValueError(f"{len(cells)} columns where {expected} are expected")
            if not cells[-1]:
                raise ValueError("the group is empty")
            rows.append(cells)
            feature, group = cells[0], cells[-1]
            is_header = len(rows) == 1 and [cell.lower() for cell in cells] == _HEADER
            if not is_header and group_of.setdefault(feature, group) != group:
                raise ValueError(
                    f"feature {printable(feature)} is in group {printable(group)} and, "
                    f"further up, in {printable(group_of[feature])}. Groups must not "
                    "overlap"
                )
    except (csv.Error, ValueError) as error:
        raise DataError(f"{path}, line {reader.line_num}: {error}.") from None
    if not group_of:
        raise DataError(
            f"{path} has no groups. Give one label per line, or feature,group."
        )
    return group_of if len(rows[0]) == 2 else [label for (label,) in rows]


def lay_out(groups: Any, source: Source) -> Layout:
    """Check a grouping of the features of a source, and put groups together.

    ``groups`` is one label per feature, a mapping of names to labels, one list of
    positions per group, or None for groups of one feature, labelled with its name.
    Groups arrive in the order in which they first appear, and the features of a
    group in the order of the source or, in a list of index lists, as listed.
    """
    if groups is None:
        return _Singles()
    if isinstance(groups, Mapping):
        names = names_of(source)
        if names is None and source.n_features is None:
            return _Mapped(groups)
        if names is None:
            names = [feature_name(i) for i in range(source.n_features or 0)]
        layout = _from_labels([label_of(name, groups) for name in names])
    elif isinstance(groups, (list, tuple)) and _are_lists(groups):
        layout = _from_lists(groups, source)
    else:
        layout = _from_labels(_as_labels(groups))
    if source.n_features is not None:
        layout.check_end(source.n_features)
    if layout.order is not None and not isinstance(source, IndexedSource):
        raise DataError(
            "The features of a group are scattered, and "
            f"{type(source).__name__} can only be read in order. Order its features "
            "by group, or give an array, a sparse matrix or a data frame, from which "
            "groups can be gathered."
        )
    return layout


def _are_lists(groups: Sequence[Any]) -> bool:
    """Whether they are index lists rather than labels."""
    kinds = (list, range, set, np.ndarray)
    return len(groups) > 0 and all(isinstance(group, kinds) for group in groups)


def _as_labels(groups: Any) -> NDArray[Any]:
    if hasattr(groups, "to_numpy"):
        groups = groups.to_numpy()
    if not isinstance(groups, (np.ndarray, list, tuple, range)):
        raise DataTypeError(
            "`groups` must be an array of labels, a mapping of feature names to "
            f"labels, or a list of index lists. Got {type(groups).__name__}."
        )
    labels = as_array(groups, "`groups`")
    if labels.ndim != 1:
        raise DataError(
            f"`groups` has the shape {labels.shape}. Give one label per feature, in "
            "one dimension, or a list of index lists."
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
        listed = labels.tolist() if isinstance(labels, np.ndarray) else labels
        names = list(dict.fromkeys(listed))
        for label in filter(is_missing, names):
            i = listed.index(label)
            raise DataError(
                f"Feature {i} is in no group: its label is {label}. Every feature "
                "needs one, of its own if need be."
            )
        codes = code_categories(listed, names)
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
    numbers, ends = list(range(len(lists))), np.cumsum(sizes)
    return _Planned(numbers, ends, None if is_in_order else order)


@dataclass(frozen=True, slots=True)
class Batch:
    """Some whole groups, in order of arrival."""

    blocks: list[Block]
    labels: Sequence[Hashable]
    ends: IntArray  # where each group ends, counted in columns of the batch


class Layout(ABC):
    """How the features of a source are divided into groups."""

    order: IntArray | None = None
    """Positions in order of arrival; None if that is the order of the source."""

    @abstractmethod
    def runs(self, block: Block | Span) -> Runs:
        """The groups in a block."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """What identifies the grouping, as JSON values."""

    def placed(self, n_features: int, n_groups: int) -> Layout:
        """The layout of features that follow others, which were in some groups."""
        return self

    def may_end_at(self, n_seen: int) -> bool:
        """Whether the first ``n_seen`` features can be whole groups."""
        return True

    def end_near(self, begin: int, end: int) -> int:
        """The last end of a group up to ``end``, or else the first after ``begin``."""
        return end

    def check_end(self, n_seen: int) -> None:
        """Raise if the source has ended too early or too late."""
        return


def batches(
    blocks: Iterator[Block], layout: Layout, n_seen: int = 0
) -> Iterator[Batch]:
    """Cut blocks where groups end, so that each batch is made of whole groups.

    A group that spans blocks is held until its last feature has come. The blocks
    come after the first ``n_seen`` features of their source.
    """
    held: list[Block] = []
    n_held = 0
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


@dataclass(frozen=True)
class _Singles(Layout):
    """Each feature is a group of its own, labelled with its name or arrival."""

    first: int = 0

    def runs(self, block: Block | Span) -> Runs:
        first, n = self.first + block.start, block.n_columns
        labels = block.names or [feature_name(first + i) for i in range(n)]
        return labels, np.arange(1, n + 1), True

    def placed(self, n_features: int, n_groups: int) -> Layout:
        return _Singles(n_features)

    def describe(self) -> dict[str, Any]:
        return {"kind": "single features"}


@dataclass(frozen=True)
class Sized(Layout):
    """Groups of ``size`` consecutive features; the last may have fewer."""

    size: int
    first: int = 0

    def runs(self, block: Block | Span) -> Runs:
        """Groups labelled with their numbers."""
        begin, end = block.start, block.start + block.n_columns
        numbers = np.arange(begin // self.size, (end - 1) // self.size + 1)
        ends = np.minimum((numbers + 1) * self.size, end) - begin
        return (self.first + numbers).tolist(), ends, end % self.size == 0

    def placed(self, n_features: int, n_groups: int) -> Layout:
        """Group numbers continue after those of earlier groups."""
        return Sized(self.size, n_groups)

    def describe(self) -> dict[str, Any]:
        """The size of a group."""
        return {"kind": f"{self.size} features each"}


@dataclass(frozen=True)
class _Mapped(Layout):
    """Groups by name, for a source whose names are known only as features come."""

    group_of: Mapping[str, Hashable]

    def runs(self, block: Block | Span) -> Runs:
        found = [label_of(block.name(i), self.group_of) for i in range(block.n_columns)]
        ends = [i for i in range(1, len(found)) if found[i] != found[i - 1]]
        ends.append(len(found))
        return [found[end - 1] for end in ends], np.array(ends), False

    def describe(self) -> dict[str, Any]:
        pairs = [(name, self.group_of[name]) for name in sorted(self.group_of)]
        return {"kind": "by name", "fingerprint": _digest(write_labels(pairs).encode())}


@dataclass(frozen=True)
class _Planned(Layout):
    """Groups known in advance: labels, and the arrival after the last of each."""

    labels: Sequence[Hashable]
    ends: IntArray
    order: IntArray | None

    @property
    def n_features(self) -> int:
        return int(self.ends[-1]) if self.ends.size else 0

    def runs(self, block: Block | Span) -> Runs:
        begin, end = block.start, block.start + block.n_columns
        if end > self.n_features:
            self._refuse(f"more than {self.n_features:,}")
        low = int(np.searchsorted(self.ends, begin, "right"))
        high = int(np.searchsorted(self.ends, end))
        ends = np.minimum(self.ends[low : high + 1], end) - begin
        return self.labels[low : high + 1], ends, bool(self.ends[high] == end)

    def check_end(self, n_seen: int) -> None:
        if n_seen != self.n_features:
            self._refuse(f"{n_seen:,}")

    def may_end_at(self, n_seen: int) -> bool:
        return n_seen == 0 or n_seen in self.ends

    def end_near(self, begin: int, end: int) -> int:
        next_one = np.searchsorted(self.ends, begin, "right")
        last = np.searchsorted(self.ends, end, "right") - 1
        return int(self.ends[max(next_one, last)])

    def describe(self) -> dict[str, Any]:
        order = b"" if self.order is None else self.order.astype("<i8").tobytes()
        labels = write_labels(self.labels).encode()
        return {
            "kind": "labels",
            "n_groups": len(self.labels),
            "fingerprint": _digest(labels, self.ends.astype("<i8").tobytes(), order),
        }

    def _refuse(self, found: str) -> None:
        raise DataError(
            f"`groups` has labels for {self.n_features:,} features, but the source has "
            f"{found}. Give one label per feature."
        )


def _digest(*parts: bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.hexdigest()


def label_of(name: str, group_of: Mapping[str, Hashable]) -> Hashable:
    """The group of a feature; an error if there is none, or more than one."""
    label = group_of.get(name)
    if isinstance(label, (list, tuple, set)):
        raise DataError(
            f"`groups` maps {printable(name)} to {printable(label)}. Groups must not "
            "overlap: map each feature to one label."
        )
    if is_missing(label):
        raise DataError(
            f"Feature {printable(name)} is in no group. Every feature needs one: map "
            "it to a label, of its own if need be."
        )
    return label


def write_labels(labels: Sequence[Hashable]) -> str:
    """Labels as JSON; `RunError` for one that is not text, number or tuple of such."""
    try:
        return json.dumps(list(labels), default=_plain)
    except (TypeError, ValueError) as error:
        raise RunError(
            f"The groups have a label that cannot be saved: {error}. Use text, "
            "numbers, or tuples of these."
        ) from None


def _plain(label: Any) -> Any:
    if isinstance(label, np.generic):
        return label.item()
    raise TypeError(f"{printable(label)} is of type {type(label).__name__}")


def read_labels(text: str) -> list[Hashable]:
    """The labels that `write_labels` wrote; `RunError` for any other text."""
    try:
        found = json.loads(text)
        if type(found) is not list:
            raise ValueError("not a list")
        return [_label(label) for label in found]
    except (ValueError, RecursionError) as error:
        raise RunError(
            f"The run is damaged in the labels of its groups: {printable(error)}."
        ) from None


def _label(found: Any) -> Hashable:
    if isinstance(found, list):
        return tuple(_label(part) for part in found)
    if not isinstance(found, str | int | float):
        raise ValueError(f"a label is {printable(found)}")
    return found
