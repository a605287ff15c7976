"""The shared words: blocks, sources, measures, decisions. Read this first.

A **source** yields **blocks** of consecutive columns. A **measure**, bound to
the target, encodes a block and scores every column in one call. A **selector**
walks the relevant columns against the kept ones and decides.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from featstream.errors import some_of, visible
from featstream.markup import small_table, tag

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """The array, or a view of it that cannot be written to.

    Kernels are compiled for read-only blocks, wherever these come from.
    """
    if not array.flags.writeable:
        return array
    view = array.view()
    view.flags.writeable = False
    return view


@dataclass(frozen=True, slots=True)
class SparseColumns:
    """Columns in compressed (CSC) form: what is not stored is zero.

    Rows increase strictly within a column; ``indptr`` need not begin at 0.
    """

    indptr: IntArray
    rows: NDArray[np.int32]
    values: NDArray[Any]
    n_samples: int

    def __post_init__(self) -> None:
        for name in ("indptr", "rows", "values"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    @property
    def shape(self) -> tuple[int, int]:
        """Number of samples and of columns."""
        return self.n_samples, self.indptr.size - 1

    def alone(self) -> SparseColumns:
        """The same without the entries of other columns: ``indptr`` begins at 0."""
        first, last = self.indptr[[0, -1]].tolist()
        rows, values = self.rows[first:last], self.values[first:last]
        return SparseColumns(self.indptr - first, rows, values, self.n_samples)


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive columns of a stream.

    Attributes
    ----------
    columns : ndarray of shape (n_samples, n_columns), or SparseColumns
        The values; bool, integer or floating; read-only. An array is column-major,
        or a view of a row-major one, which `by_column` of
        `featstream.sources.kernels.transpose` copies.
    start : int
        Position in the source of the first column, from 0.
    names : sequence of str or None
        One name per column, where names exist.
    nominal : ndarray of bool of shape (n_columns,) or None
        Columns whose numbers are codes of categories (text, categoricals);
        None if there are none. A missing category has the code -1.
    """

    columns: NDArray[Any] | SparseColumns
    start: int = 0
    names: Sequence[str] | None = None
    nominal: BoolArray | None = None

    def __post_init__(self) -> None:
        if isinstance(self.columns, np.ndarray):
            object.__setattr__(self, "columns", read_only(self.columns))

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

    def to_dense(self) -> NDArray[Any]:
        """The values as an array of shape (n_samples, n_columns)."""
        if not isinstance(self.columns, SparseColumns):
            return self.columns
        stored = self.columns.alone()
        dense = np.zeros(stored.shape, stored.values.dtype, order="F")
        of_entry = np.repeat(np.arange(self.n_columns), np.diff(stored.indptr))
        dense[stored.rows, of_entry] = stored.values
        return read_only(dense)

    def name(self, i: int) -> str:
        """Name of column ``i``, made from its position where it has none."""
        if self.names is None:
            return feature_name(self.start + i)
        return str(self.names[i])

    def part(self, begin: int, end: int) -> Block:
        """Columns ``begin`` to ``end`` as a block of their own, without a copy."""
        columns, names, nominal = self.columns, self.names, self.nominal
        if isinstance(columns, SparseColumns):
            columns = replace(columns, indptr=columns.indptr[begin : end + 1])
        else:
            columns = columns[:, begin:end]
        names = None if names is None else names[begin:end]
        nominal = None if nominal is None else nominal[begin:end]
        return Block(columns, self.start + begin, names, nominal)


class Span(NamedTuple):
    """Consecutive columns of a stream whose values are elsewhere; see `Block`."""

    start: int
    n_columns: int
    names: Sequence[str] | None = None

    def name(self, i: int) -> str:
        """Name of column ``i``, made from its position where it has none."""
        return feature_name(self.start + i) if self.names is None else self.names[i]


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


def names_of(source: Source) -> Sequence[str] | None:
    """One name per feature; None if the source has none."""
    names: Sequence[str] | None = getattr(source, "names", None)
    return names


def sample_names_of(source: Any) -> Sequence[str] | None:
    """One name per sample, in the order of the rows; None if the source has none."""
    names: Sequence[str] | None = getattr(source, "sample_names", None)
    return names


def text_columns_of(source: Source) -> Sequence[int] | None:
    """Positions of columns of text or categories; None if the types are not known.

    A source whose columns have types, such as a frame, lists them as ``text_columns``.
    """
    columns: Sequence[int] | None = getattr(source, "text_columns", None)
    return columns


def fingerprint_of(source: Source) -> str | None:
    """Text that changes with the data, so that a run resumes on the same; or None."""
    fingerprint: str | None = getattr(source, "fingerprint", None)
    return fingerprint


def reopener_of(source: Source) -> Callable[[], Source] | None:
    """What opens a source again in a process that sees the same files; or None.

    A source whose data are in files has a method ``reopener``, which returns it.
    """
    reopener = getattr(source, "reopener", None)
    return None if reopener is None else reopener()


@runtime_checkable
class IndexedSource(Source, Protocol):
    """A source whose columns can be read in any order."""

    def blocks_at(self, positions: IntArray, start: int = 0) -> Iterator[Block]:
        """Yield the columns at ``positions``, in that order, from ``start`` on.

        A block's ``start`` counts in ``positions``.
        """


class SavedField(NamedTuple):
    """What an array must be like when it is read from a run folder.

    A length in ``shape``, or ``stop``, may be a name: for kept columns "kept" is their
    number and "samples" the number of samples. None is any length, or no limit. All
    values are at least ``low`` and below ``stop``; floats are finite. An optional array
    is left out if it is empty.
    """

    dtype: Any
    shape: tuple[int | str | None, ...] = ("kept",)
    low: float | None = None
    stop: int | str | None = None
    is_optional: bool = False


def _nothing(new, i, scratch):  # type: ignore[no-untyped-def]
    pass


def _all_candidates(new, i, score, kept, index, rule):  # type: ignore[no-untyped-def]
    return -1


def _end_walk(new, index):  # type: ignore[no-untyped-def]
    pass


def _enter_nothing(columns, index, slot, score):  # type: ignore[no-untyped-def]
    pass


def _leave_nothing(columns, index, left):  # type: ignore[no-untyped-def]
    pass


def _no_spare_slots(like: Any) -> int:
    return 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Storage:
    """How columns are held, compared, copied and saved.

    Columns are a NamedTuple of arrays that hold any number of columns. Newcomers and
    kept columns have the same type. Kept ones lie in pools: arrays with room for
    more, of which ``kept.used`` says how much is taken. The functions of the first
    group are compiled into the scan, so that they must be what numba can compile,
    unless ``is_compiled`` is false: then the scan runs as plain Python.
    """

    name: str
    """What it is called in run folders."""
    columns: type
    """The NamedTuple."""
    overlap: Callable[..., Any]
    """``overlap(new, i, kept, slot, is_listed, scratch)``: score of column ``i`` of
    ``new`` with column ``slot`` of ``kept.columns``."""
    has_room: Callable[..., Any]
    """``has_room(new, i, kept)``: whether the pools of ``kept.columns`` can take column
    ``i``."""
    copy_column: Callable[..., Any]
    """``copy_column(new, i, kept, slot, used)``: copy column ``i`` to ``slot``."""
    load_newcomer: Callable[..., Any] = _nothing
    """``load_newcomer(new, i, scratch)``: prepare the scratch buffers for a newcomer
    before it is compared with many."""
    unload_newcomer: Callable[..., Any] = _nothing
    """``unload_newcomer(new, i, scratch)``: clear them."""
    list_candidates: Callable[..., Any] = _all_candidates
    """``list_candidates(new, i, score, kept, index, rule)``: fill ``index.shortlist``
    with the slots of the kept columns that can matter to a newcomer, in order of
    arrival, and return their number; or -1, if all can matter."""
    end_walk: Callable[..., Any] = _end_walk
    """``end_walk(new, index)``: clear what `list_candidates` gathered."""
    enter_index: Callable[..., Any] = _enter_nothing
    """``enter_index(columns, index, slot, score)``: add a kept column to the index.
    This and what lists candidates is called only if there is an index."""
    leave_index: Callable[..., Any] = _leave_nothing
    """``leave_index(columns, index, slot)``: remove it from the index."""
    clear_index: Callable[..., Any] = _leave_nothing
    """``clear_index(columns, index, kept)``: remove all."""

    demand: Callable[..., Any]
    """``demand(columns, which)``: what each chosen column takes of the two pools; shape
    (2, n)."""
    allocate: Callable[..., Any]
    """``allocate(like, n_slots, first, second)``: empty columns with that many slots
    and pools of these sizes."""
    spare_slots: Callable[[Any], int] = _no_spare_slots
    """``spare_slots(like)``: slots to allocate beyond need, to avoid frequent
    reallocation."""
    allocate_index: Callable[..., Any] | None = None
    """``allocate_index(like, n_slots, n_nodes, largest_memo)``."""
    scratch: Callable[[int], Any]
    """``scratch(n_samples)``: buffers for the comparison of columns."""
    saved: dict[str, SavedField]
    """The arrays that are saved, by name. The rest can be computed from them."""
    restore: Callable[..., Any]
    """``restore(arrays, n_samples, measure)``: the columns again; ValueError if that
    cannot be. The arrays have passed the checks of ``saved``."""
    pool_of: dict[str, int] = field(default_factory=dict)
    """Which pool the length of a saved array counts in, where it is not one entry per
    column."""
    is_independent: Callable[..., Any] | None = None
    """``is_independent(new, i, kept, slot, winner, known, rule, scratch)``: whether the
    class and the loser of the two columns are independent given the winner, and the
    p-value, which may be NaN if they are not. ``known`` is a number near their
    correlation, how far off it can be, the relevance of the loser, and whether the slot
    is listed."""
    fill_classes: Callable[..., Any] | None = None
    """``fill_classes(columns, i, cells, target, scratch)``: count (category, class) in
    a discrete column."""
    decode_column: Callable[..., Any] | None = None
    """``decode_column(columns, i, codes)``: write the categories of all its rows."""
    units: Callable[..., Any] | None = None
    """``units(columns, which)``: columns as unit vectors in single precision whose
    products are near the overlaps, and how wrong these can be."""
    as_rows: Callable[..., NDArray[Any]] | None = None
    """``as_rows(columns, which, n_samples)``: the chosen columns as plain numbers, one
    row per column: categories or deviations. For figures."""
    read_only: tuple[str, ...] = ()
    """The arrays that are read-only in newcomers, where they belong to the block."""
    old_names: tuple[str, ...] = ()
    """What it was called in older run folders."""
    is_compiled: bool = True
    is_sparse: bool = False


class BoundMeasure(Protocol):
    """A measure that knows the target: ``Measure.bind(y)``."""

    name: str
    n_samples: int

    @property
    def storages(self) -> tuple[Storage, ...]:
        """What `columns` returns: one storage, or one for dense and one for sparse."""

    def encode(self, block: Block) -> Any:
        """Check a block and make it ready to be scored."""

    def relevance(self, encoded: Any) -> FloatArray:
        """Score of every column with the target."""

    def is_relevant(self, scores: FloatArray) -> BoolArray:
        """Which scores pass the measure's threshold."""

    def columns(self, encoded: Any, which: IntArray) -> tuple[Any, IntArray]:
        """The chosen columns in a storage, which knows how two are compared.

        Returns columns, and the position of each chosen one among them.
        """


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
    p_value : float or None
        What a test of it and the class, given the witness, found.
    """

    name: str
    arrival: int
    fate: Fate
    relevance: float
    witness: str | None = None
    overlap: float | None = None
    displaced: tuple[str, ...] = ()
    p_value: float | None = None

    @property
    def is_kept(self) -> bool:
        """Whether the feature is part of the selection now."""
        return self.fate is Fate.KEPT

    def _repr_html_(self) -> str:
        heads = ["arrival", "fate", "relevance", "witness", "overlap", "displaced"]
        overlap = "" if self.overlap is None else f"{self.overlap:.4g}"
        witness = visible(self.witness or "", 80)
        gone = some_of([visible(name, 40) for name in self.displaced], 5)
        relevance = f"{self.relevance:.4g}"
        row = [f"{self.arrival:,}", self.fate, relevance, witness, overlap, gone]
        return small_table(tag("b", visible(self.name)), heads, [row])


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
    displaced: tuple[str, ...] = ()
    displaced_groups: tuple[Hashable, ...] = ()

    @property
    def is_kept(self) -> bool:
        """Whether some of its features are part of the selection now."""
        return self.fate is Fate.KEPT

    def _repr_html_(self) -> str:
        heads = ["feature", "fate", "relevance"]
        rows = [
            [visible(feature.name, 80), feature.fate, f"{feature.relevance:.4g}"]
            for feature in self.features[:10]
        ]
        more = len(self.features) - len(rows)
        title = f"group {visible(self.group)}: {self.fate}" + (
            f"; the first 10 of {len(self.features):,} features" if more else ""
        )
        return small_table(tag("b", title), heads, rows)
