"""The state of a stream of features, and what is decided about its blocks."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from featstream.errors import DataTypeError, FeatstreamWarning, RunError, printable
from featstream.measures.inputs import Choice
from featstream.protocols import (
    Block,
    Decision,
    Fate,
    FloatArray,
    IntArray,
    SparseColumns,
    feature_name,
    sample_names_of,
)
from featstream.runs.session import Unfinished
from featstream.selectors.trace import Names, Trace
from featstream.sources import IteratorSource
from featstream.sources.samples import (
    SampleHashes,
    hash_samples,
    index_names,
    is_reordered,
    refuse_other_samples,
)

_DENSE_BYTES = 1 << 24
_FATES = tuple(Fate)
_FEW_NAMES = 5
"""How many identifiers a warning names."""

_KEPT = int(Fate.KEPT)  # arrays compare faster with a plain number

_PLAIN = "?bBhilqfd"
"""Types of values that kernels take as they are."""


_PER_COLUMN = ("fate", "witness", "overlap", "p_value")
"""What a verdict says of each column, besides its score."""


@dataclass(slots=True)
class Verdict:
    """What was decided about the columns of a block.

    Attributes
    ----------
    fate : ndarray of uint8 of shape (n_columns,)
        One `Fate` per column.
    scores : ndarray of float of shape (n_columns,)
        The relevance of each column.
    witness, overlap : ndarray of shape (n_columns,), optional
        The arrival that makes a column redundant, or -1; their overlap.
    gone, gone_by, gone_fate : ndarray, optional
        Arrivals that are no longer kept, the arrivals that displaced them, and
        their fates, by default ``Fate.DISPLACED``.
    recalled, recalled_by, recalled_scores : ndarray, optional
        Arrivals that are kept from now on though they had been dropped, the arrivals
        because of which they are, and their scores.
    p_value : ndarray of shape (n_columns,), optional
        What a test of a redundant column and the class, given its witness, found.
    """

    fate: NDArray[np.uint8]
    scores: FloatArray
    witness: IntArray | None = None
    overlap: FloatArray | None = None
    gone: IntArray = field(default_factory=lambda: np.empty(0, np.int64))
    gone_by: IntArray = field(default_factory=lambda: np.empty(0, np.int64))
    gone_fate: NDArray[np.uint8] | None = None
    recalled: IntArray = field(default_factory=lambda: np.empty(0, np.int64))
    recalled_by: IntArray = field(default_factory=lambda: np.empty(0, np.int64))
    recalled_scores: FloatArray = field(default_factory=lambda: np.empty(0))
    p_value: FloatArray | None = None

    def updated(self, which: IntArray, other: Verdict) -> Verdict:
        """The same, with what another says about some of the columns."""
        changed = {}
        for name in _PER_COLUMN:
            mine, new = getattr(self, name), getattr(other, name)
            if mine is not None and new is not None:
                changed[name] = mine.copy()
                changed[name][which] = new
        return replace(self, **changed)


def join_verdicts(verdicts: Sequence[Verdict]) -> Verdict:
    """What was decided about the columns of several blocks, in order."""
    if len(verdicts) == 1:
        return verdicts[0]
    fates = [
        np.full(verdict.gone.size, Fate.DISPLACED, np.uint8)
        if verdict.gone_fate is None
        else verdict.gone_fate
        for verdict in verdicts
    ]
    witnesses = [
        np.full(verdict.fate.size, -1) if verdict.witness is None else verdict.witness
        for verdict in verdicts
    ]
    p_values = [verdict.p_value for verdict in verdicts if verdict.p_value is not None]
    return Verdict(
        fate=np.concatenate([verdict.fate for verdict in verdicts]),
        scores=np.concatenate([verdict.scores for verdict in verdicts]),
        witness=np.concatenate(witnesses),
        gone=np.concatenate([verdict.gone for verdict in verdicts]),
        gone_by=np.concatenate([verdict.gone_by for verdict in verdicts]),
        gone_fate=np.concatenate(fates),
        p_value=np.concatenate(p_values) if p_values else None,
    )


@dataclass(slots=True)
class Stream:
    """What is known of a stream, apart from what its selector keeps.

    ``measure`` is the measure, test or model of the selector, bound to the target.
    It is None until the first features show which one fits, and ``choice`` says why
    that was chosen; ``is_sparse`` is None until the first block has come, and then
    decides how all columns are stored. ``samples`` are the names of the samples,
    from the first source that has names. ``kept`` has the scores of the kept
    features by arrival; it is empty unless the stream ``keeps`` them, because the
    selector does not hold them itself.
    """

    y: Any
    trace: Trace
    measure: Any = None
    choice: Choice | None = None
    is_sparse: bool | None = None
    names: Names = field(default_factory=Names)
    keeps: bool = True
    kept: dict[int, float] = field(default_factory=dict)
    samples: SampleHashes | None = None
    seconds: float = 0.0
    peak_memory: int | None = None  # of the process, in bytes
    has_warned: bool = False
    has_warned_of_chance: bool = False
    index: Any = None  # of the last pandas series that was compared
    unfinished: Unfinished | None = None

    @property
    def n_seen(self) -> int:
        """Number of features decided about."""
        return self.trace.n_seen

    def record(self, start: int, verdict: Verdict) -> None:
        """Record what was decided about the features from an arrival on."""
        fate, witness = verdict.fate, verdict.witness
        if witness is None:
            witness = np.full(fate.size, -1)
        self.trace.extend(fate, verdict.scores, witness, verdict.p_value)
        if self.keeps:
            kept = np.flatnonzero(fate == _KEPT)
            arrivals = (start + kept).tolist()
            self.kept.update(zip(arrivals, verdict.scores[kept].tolist(), strict=True))
        if verdict.gone.size:
            fates = verdict.gone_fate
            if fates is None:
                fates = np.full(verdict.gone.size, Fate.DISPLACED, np.uint8)
            self.trace.mark(verdict.gone, fates, verdict.gone_by)
            for gone in verdict.gone.tolist():
                self.kept.pop(gone, None)
        if verdict.recalled.size:
            scores, by = verdict.recalled_scores, verdict.recalled_by
            self.trace.recall(verdict.recalled, scores, by)

    def decision(self, verdict: Verdict) -> Decision:
        """The decision about the newest feature, which arrived alone."""
        arrival, fate = self.n_seen - 1, _FATES[verdict.fate[0]]
        gone = verdict.gone.tolist()
        witness, overlap, p_value = None, None, None
        if verdict.witness is not None and verdict.witness[0] >= 0:
            witness = self.names[int(verdict.witness[0])]
            if fate is Fate.REDUNDANT and verdict.overlap is not None:
                overlap = float(verdict.overlap[0])
            if fate is Fate.REDUNDANT and verdict.p_value is not None:
                p_value = float(verdict.p_value[0])
        return Decision(
            name=self.names[arrival],
            arrival=arrival,
            fate=Fate.DISPLACED if arrival in gone else fate,
            relevance=float(verdict.scores[0]),
            witness=witness,
            overlap=overlap,
            displaced=tuple(self.names[a] for a in sorted(gone) if a != arrival),
            recalled=tuple(self.names[a] for a in verdict.recalled.tolist()),
            p_value=p_value,
        )

    def warn_of_identifiers(self) -> None:
        """Name the columns that the measure left out as identifiers, once."""
        left_out = getattr(self.measure, "left_out", None)
        if self.has_warned or left_out is None or not left_out.names:
            return
        self.has_warned = True
        names = [printable(name) for _, name in sorted(left_out.names.items())]
        shown = ", ".join(names[:_FEW_NAMES])
        if len(names) > _FEW_NAMES:
            shown += f" and {len(names) - _FEW_NAMES:,} more"
        one = len(names) == 1
        warnings.warn(
            f"{'Feature' if one else 'Features'} {shown} {'has' if one else 'have'} "
            "about one category per row, like a name or an identifier, and "
            f"{'was' if one else 'were'} left out: relevance 0. To score such columns "
            "pass a measure with identifiers='keep', such as "
            "SymmetricalUncertainty(identifiers='keep').",
            FeatstreamWarning,
            stacklevel=3,
        )

    def leave_unfinished(self) -> None:
        """Raise if a Ctrl-C left a source in the middle; after an error, forget it."""
        rest = self.unfinished
        if rest is not None and rest.is_interrupt:
            n_features = rest.source.n_features
            total = "" if n_features is None else f" of {n_features:,}"
            raise RunError(
                f"consume() was interrupted after {self.n_seen - rest.begin:,}{total} "
                "features of a source. Give it the same source to continue there, or "
                "call start(y) to begin again."
            )
        self.unfinished = None

    def check_samples(self, source: Any) -> None:
        """Raise unless the samples of a source are those of the stream, in order."""
        self._check_names(sample_names_of(source), "This source")

    def check_index(self, values: Any) -> None:
        """The same for the values of one feature, if they are a pandas series."""
        if type(values) is np.ndarray or not nw.dependencies.is_pandas_series(values):
            return
        if self.index is None or not values.index.equals(self.index):
            self._check_names(index_names(values), "This feature")
            self.index = values.index

    def _check_names(self, names: Sequence[str] | None, what: str) -> None:
        if names is None:
            return
        if self.samples is not None:
            refuse_other_samples(self.samples, names, what, "the data before it")
            return
        found, index = hash_samples(names), index_names(self.y)
        if index is not None and is_reordered(hash_samples(index), found):
            refuse_other_samples(hash_samples(index), names, what, "y")
        self.samples = found


def _is_plain_column(values: Any) -> bool:
    """Whether values are a column as it is, without any conversion."""
    return (
        type(values) is np.ndarray
        and values.ndim == 1
        and values.size > 0
        and values.dtype.char in _PLAIN
        and values.dtype.isnative
        and values.flags.c_contiguous
    )


def block_of_one(values: Any, name: str | None, arrival: int) -> Block:
    """A feature that arrives alone, as a block."""
    if name is not None and not isinstance(name, str):
        raise DataTypeError(
            f"A feature name must be a string. Got {printable(name)} of type "
            f"{type(name).__name__}."
        )
    if _is_plain_column(values):
        return Block(values[:, None], arrival, None if name is None else [name])
    shown = feature_name(arrival) if name is None else name
    (block,) = IteratorSource([(shown, values)]).blocks()
    names = None if name is None else block.names
    return Block(block.columns, arrival, names, block.nominal)


def in_stream(blocks: Iterator[Block], stream: Stream) -> Iterator[Block]:
    """The blocks in the storage of the stream, positioned in it."""
    arrival = stream.n_seen
    for block in blocks:
        if stream.is_sparse is None:
            stream.is_sparse = block.is_sparse
        placed = replace(block, start=arrival)
        yield from in_storage(placed, is_sparse=stream.is_sparse)
        arrival += block.n_columns


def in_storage(block: Block, *, is_sparse: bool) -> Iterator[Block]:
    """The block in the storage of its stream, in parts if it has to be densified."""
    if block.is_sparse == is_sparse:
        yield block
    elif isinstance(block.columns, SparseColumns):
        width = max(1, _DENSE_BYTES // (8 * max(1, block.n_samples)))
        for begin in range(0, block.n_columns, width):
            part = block.part(begin, min(begin + width, block.n_columns))
            stored = part.columns
            assert isinstance(stored, SparseColumns)
            first, last = stored.indptr[0], stored.indptr[-1]
            entries = slice(first, last)
            dense = sparse.csc_array(
                (stored.values[entries], stored.rows[entries], stored.indptr - first),
                shape=part.columns.shape,
            ).toarray(order="F")
            yield replace(part, columns=dense)
    else:
        stored_columns = sparse.csc_array(np.asarray(block.columns))
        yield replace(
            block,
            columns=SparseColumns(
                stored_columns.indptr.astype(np.int64),
                stored_columns.indices.astype(np.int32),
                stored_columns.data,
                block.n_samples,
            ),
        )
