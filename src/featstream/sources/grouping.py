"""How the columns of a stream fall into groups, and the whole groups of its blocks."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from featstream.errors import DataError, printable
from featstream.protocols import Block, IntArray, feature_name
from featstream.sources.labels import write_labels
from featstream.sources.missing import is_missing

__all__ = [
    "Batch",
    "Layout",
    "Mapped",
    "Planned",
    "Singles",
    "Sized",
    "batches",
    "label_of",
]

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


class Layout(ABC):
    """How the features of a source fall into groups."""

    order: IntArray | None = None
    """Positions in order of arrival; None if that is the order of the source."""

    @abstractmethod
    def runs(self, block: Block) -> Runs:
        """The groups in a block."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """What tells one grouping from another, in plain words and numbers."""

    def placed(self, n_features: int, n_groups: int) -> Layout:
        """The same in a stream that has seen so many features and groups before."""
        return self

    def may_end_at(self, n_seen: int) -> bool:
        """Whether the first so many features can be whole groups."""
        return True

    def check_end(self, n_seen: int) -> None:
        """Raise if the source has ended in the midst of things."""
        return


def batches(
    blocks: Iterator[Block], layout: Layout, n_seen: int = 0
) -> Iterator[Batch]:
    """Cut blocks where groups end, so that each piece is made of whole groups.

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
class Singles(Layout):
    """Each feature is a group of its own."""

    first: int = 0

    def runs(self, block: Block) -> Runs:
        """Groups labelled with the names of their features."""
        first, n = self.first + block.start, block.n_columns
        labels = block.names or [feature_name(first + i) for i in range(n)]
        return labels, np.arange(1, n + 1), True

    def placed(self, n_features: int, n_groups: int) -> Layout:
        """Features without names are called by their arrival."""
        return Singles(n_features)

    def describe(self) -> dict[str, Any]:
        """Nothing more to say."""
        return {"kind": "single features"}


@dataclass(frozen=True)
class Sized(Layout):
    """So many features in order are a group; the last may have fewer."""

    size: int
    first: int = 0

    def runs(self, block: Block) -> Runs:
        """Groups labelled with their numbers."""
        begin, end = block.start, block.start + block.n_columns
        numbers = np.arange(begin // self.size, (end - 1) // self.size + 1)
        ends = np.minimum((numbers + 1) * self.size, end) - begin
        return (self.first + numbers).tolist(), ends, end % self.size == 0

    def placed(self, n_features: int, n_groups: int) -> Layout:
        """The numbers go on."""
        return Sized(self.size, n_groups)

    def describe(self) -> dict[str, Any]:
        """How large they are."""
        return {"kind": f"{self.size} features each"}


@dataclass(frozen=True)
class Mapped(Layout):
    """Groups by name, for a source that tells names only as features come."""

    group_of: Mapping[str, Hashable]

    def runs(self, block: Block) -> Runs:
        """Neighbours with the same label; more of the last one may follow."""
        found = [label_of(block.name(i), self.group_of) for i in range(block.n_columns)]
        ends = [i for i in range(1, len(found)) if found[i] != found[i - 1]]
        ends.append(len(found))
        return [found[end - 1] for end in ends], np.array(ends), False

    def describe(self) -> dict[str, Any]:
        """A checksum of names and labels."""
        pairs = [(name, self.group_of[name]) for name in sorted(self.group_of)]
        return {"kind": "by name", "fingerprint": _digest(write_labels(pairs).encode())}


@dataclass(frozen=True)
class Planned(Layout):
    """Groups known in advance: labels, and the arrival after the last of each."""

    labels: list[Hashable]
    ends: IntArray
    order: IntArray | None

    @property
    def n_features(self) -> int:
        """Number of features in all of them."""
        return int(self.ends[-1]) if self.ends.size else 0

    def runs(self, block: Block) -> Runs:
        """The groups between two arrivals."""
        begin, end = block.start, block.start + block.n_columns
        if end > self.n_features:
            self._complain(f"more than {self.n_features:,}")
        low = int(np.searchsorted(self.ends, begin, "right"))
        high = int(np.searchsorted(self.ends, end))
        ends = np.minimum(self.ends[low : high + 1], end) - begin
        return self.labels[low : high + 1], ends, bool(self.ends[high] == end)

    def check_end(self, n_seen: int) -> None:
        """All of them must have come."""
        if n_seen != self.n_features:
            self._complain(f"{n_seen:,}")

    def may_end_at(self, n_seen: int) -> bool:
        """Where a group ends."""
        return n_seen == 0 or n_seen in self.ends

    def describe(self) -> dict[str, Any]:
        """A checksum of labels, sizes and order."""
        order = b"" if self.order is None else self.order.astype("<i8").tobytes()
        labels = write_labels(self.labels).encode()
        return {
            "kind": "labels",
            "n_groups": len(self.labels),
            "fingerprint": _digest(labels, self.ends.astype("<i8").tobytes(), order),
        }

    def _complain(self, found: str) -> None:
        raise DataError(
            f"`groups` has labels for {self.n_features:,} features, but the source has "
            f"{found}. Give one label a feature."
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
