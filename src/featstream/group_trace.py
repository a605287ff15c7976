"""What became of every group of features."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from featstream.errors import DataError, printable
from featstream.protocols import Fate, IntArray

__all__ = ["GroupTrace"]


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
        """A group arrives once, with all its features."""
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
        if end > self._ends.size:
            capacity = max(end, self._ends.size * 3 // 2, 64)
            self._ends = np.resize(self._ends, capacity)
            self._fates = np.resize(self._fates, capacity)
            self._n_kept = np.resize(self._n_kept, capacity)
        first = self._ends[begin - 1] if begin else 0
        self._ends[begin:end] = first + np.cumsum(sizes)
        self._fates[begin:end], self._n_kept[begin:end] = fates, n_kept
        self._number_of.update(zip(labels, range(begin, end), strict=True))
        self.labels.extend(labels)

    def restore(
        self, labels: Sequence[Hashable], ends: IntArray, fates: Any, n_kept: IntArray
    ) -> None:
        """Take over what was recorded before."""
        self.labels = list(labels)
        self._number_of = {label: number for number, label in enumerate(labels)}
        self._ends, self._fates, self._n_kept = ends, fates, n_kept

    def lose(self, arrivals: IntArray) -> list[Hashable]:
        """Note that kept features have left; the labels of groups now empty."""
        numbers = self.of(arrivals)
        np.subtract.at(self._n_kept, numbers, 1)
        emptied = np.unique(numbers[self._n_kept[numbers] == 0])
        self._fates[emptied] = Fate.DISPLACED
        return [self.labels[number] for number in emptied]

    def counts(self) -> dict[str, int]:
        """How many groups met each fate."""
        found = np.bincount(self.fates, minlength=len(Fate))
        return {str(fate): int(found[fate]) for fate in Fate}
