"""The shared words: blocks, sources, measures, decisions. Read this first.

A **source** yields **blocks** of consecutive columns. A **measure**, bound to
the target, encodes a block and scores every column in one call. A **selector**
walks the relevant columns against the kept ones and decides.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Block",
    "BoolArray",
    "BoundMeasure",
    "Decision",
    "Fate",
    "FloatArray",
    "GroupDecision",
    "IndexedSource",
    "IntArray",
    "Measure",
    "NamedSamples",
    "Source",
    "SparseColumns",
    "feature_name",
    "sample_names_of",
]

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class SparseColumns:
    """Columns in compressed (CSC) form: what is not stored is zero.

    Rows increase strictly within a column; ``indptr`` need not begin at 0.
    """

    indptr: IntArray
    rows: NDArray[np.int32]
    values: NDArray[Any]
    n_samples: int

    @property
    def shape(self) -> tuple[int, int]:
        """Number of samples and of columns."""
        return self.n_samples, self.indptr.size - 1


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive columns of a stream.

    Attributes
    ----------
    columns : ndarray of shape (n_samples, n_columns), or SparseColumns
        The values; bool, integer or floating. Never written to. An array is
        column-major, or a view of a row-major one, which `by_column` of
        `featstream.kernels.layout` copies.
    start : int
        Position in the source of the first column, from 0.
    names : sequence of str or None
        One name a column, where names exist.
    nominal : ndarray of bool of shape (n_columns,) or None
        Columns whose numbers are codes of categories (text, categoricals);
        None if there are none. A missing category has the code -1.
    """

    columns: NDArray[Any] | SparseColumns
    start: int = 0
    names: Sequence[str] | None = None
    nominal: BoolArray | None = None

    @property
    def n_samples(self) -> int:
        """Number of values in each column."""
        return int(self.columns.shape[0])

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return int(self.columns.shape[1])

    @property
    def is_sparse(self) -> bool:
        """Whether the columns are stored sparsely."""
        return isinstance(self.columns, SparseColumns)

    def name(self, i: int) -> str:
        """Name of column ``i``, made from its position where it has none."""
        if self.names is None:
            return feature_name(self.start + i)
        return str(self.names[i])

    def part(self, begin: int, end: int) -> Block:
        """Columns ``begin`` to ``end`` as a block of their own, without a copy."""
        columns = self.columns
        if isinstance(columns, SparseColumns):
            columns = replace(columns, indptr=columns.indptr[begin : end + 1])
        else:
            columns = columns[:, begin:end]
        return Block(
            columns,
            self.start + begin,
            None if self.names is None else self.names[begin:end],
            None if self.nominal is None else self.nominal[begin:end],
        )


def feature_name(arrival: int) -> str:
    """Name of a feature that came without one; scikit-learn's convention."""
    return f"x{arrival}"


@runtime_checkable
class Source(Protocol):
    """Anything that yields blocks of columns in a fixed order."""

    @property
    def n_samples(self) -> int | None:
        """Values per column; None if only the first block will tell."""

    @property
    def n_features(self) -> int | None:
        """Number of columns; None if open-ended."""

    def blocks(self, start: int = 0) -> Iterator[Block]:
        """Yield the columns from position ``start`` on."""


class NamedSamples(Protocol):
    """A source that may know the names of its samples.

    All features of a stream need the same samples in the same order: the names
    of two sources are compared where both have them.
    """

    @property
    def sample_names(self) -> Sequence[str] | None:
        """One name per sample, in the order of the rows; None if not known."""


def sample_names_of(source: Any) -> Sequence[str] | None:
    """Names of the samples of a source; None if it has none."""
    names: Sequence[str] | None = getattr(source, "sample_names", None)
    return names


@runtime_checkable
class IndexedSource(Source, Protocol):
    """A source whose columns can be read in any order."""

    def blocks_at(self, positions: IntArray, start: int = 0) -> Iterator[Block]:
        """Yield the columns at ``positions``, in that order, from ``start`` on.

        A block's ``start`` counts in ``positions``.
        """


class BoundMeasure(Protocol):
    """A measure that knows the target: ``Measure.bind(y)``."""

    name: str
    n_samples: int

    def encode(self, block: Block) -> Any:
        """Check a block and make it ready for the kernels."""

    def relevance(self, encoded: Any) -> FloatArray:
        """Score of every column with the target."""

    def is_relevant(self, scores: FloatArray) -> BoolArray:
        """Which scores pass the measure's threshold."""

    def columns(self, encoded: Any, which: IntArray) -> Any:
        """The chosen columns in the form that the pair kernels compare.

        Returns columns, and the position of each chosen one among them.
        """

    def scratch(self, *, is_sparse: bool) -> AbstractContextManager[Any]:
        """Lend working memory for the pair kernels, one a thread."""


class Measure(Protocol):
    """How alike two variables are; bound to a target before use."""

    def bind(self, y: Any) -> BoundMeasure:
        """Prepare for the target ``y``."""


class Fate(IntEnum):
    """What became of a feature."""

    IRRELEVANT = 0
    KEPT = 1
    REDUNDANT = 2
    DISPLACED = 3

    def __str__(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Decision:
    """What a selector decided about one feature on its arrival.

    Attributes
    ----------
    name : str
        The feature.
    arrival : int
        Its position in the stream, from 0.
    fate : Fate
        ``KEPT``, ``IRRELEVANT``, ``REDUNDANT``, or ``DISPLACED`` if it did not
        fit among the ``max_features`` most relevant.
    relevance : float
        Its score with the target.
    witness : str or None
        The kept feature that makes it redundant.
    overlap : float or None
        Its score with the witness.
    displaced : tuple of str
        Kept features that it removed.
    """

    name: str
    arrival: int
    fate: Fate
    relevance: float
    witness: str | None = None
    overlap: float | None = None
    displaced: tuple[str, ...] = field(default=())

    @property
    def is_kept(self) -> bool:
        """Whether the feature is part of the selection now."""
        return self.fate is Fate.KEPT


@dataclass(frozen=True, slots=True)
class GroupDecision:
    """What a selector decided about a group of features on its arrival.

    Attributes
    ----------
    group : hashable
        The label of the group.
    fate : Fate
        ``KEPT`` if some of its features are; ``IRRELEVANT`` if none is relevant;
        ``REDUNDANT`` if some are relevant, and all of these redundant.
    features : tuple of Decision
        What became of each feature, in order of arrival. The witness of a
        redundant one may be of its own group.
    displaced : tuple of str
        Features of earlier groups that it removed.
    displaced_groups : tuple of hashable
        Earlier groups of which nothing is left after that.
    """

    group: Hashable
    fate: Fate
    features: tuple[Decision, ...]
    displaced: tuple[str, ...] = field(default=())
    displaced_groups: tuple[Hashable, ...] = field(default=())

    @property
    def is_kept(self) -> bool:
        """Whether some of its features are part of the selection now."""
        return self.fate is Fate.KEPT
