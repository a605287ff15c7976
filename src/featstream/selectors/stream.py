"""The state of a stream of features that every selector keeps."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import narwhals as nw
import numpy as np
from scipy import sparse

from featstream.errors import DataTypeError, FeatstreamWarning, RunError, printable
from featstream.measures.resolve import Choice
from featstream.protocols import (
    Block,
    BoundMeasure,
    Decision,
    Fate,
    Source,
    SparseColumns,
    feature_name,
    sample_names_of,
)
from featstream.selectors.trace import Names, Trace
from featstream.sources import IteratorSource
from featstream.sources.layouts import Layout
from featstream.sources.samples import (
    SampleHashes,
    hash_samples,
    index_names,
    is_reordered,
    refuse_other_samples,
)

__all__ = ["LastDecision", "Stream", "block_of_one", "in_storage", "in_stream"]

_DENSE_BYTES = 1 << 24
_BEFORE = "the data before it"

_FEW_NAMES = 5
"""How many identifiers a warning names."""


@dataclass(slots=True)
class LastDecision:
    """The decision about the newest feature, by arrivals."""

    fate: Fate
    relevance: float
    witness: int | None = None
    overlap: float | None = None
    displaced: tuple[int, ...] = ()


@dataclass(slots=True)
class Unfinished:
    """A source in the middle of which `consume` stopped, outside of any run.

    ``offered`` is what the caller gave for it, and ``begin`` the number of
    features seen before it.
    """

    offered: Any
    source: Source
    layout: Layout | None
    begin: int
    is_interrupt: bool = False


@dataclass(slots=True)
class Stream:
    """What is known of a stream, apart from what its selector keeps.

    ``measure`` is None until the first features show which one fits, and
    ``choice`` says why that was chosen; ``is_sparse`` is None until the first block
    has come, and then decides how all columns are stored. ``samples`` are the names
    of the samples, from the first source that has names.
    """

    y: Any
    trace: Trace
    measure: BoundMeasure | None = None
    choice: Choice | None = None
    is_sparse: bool | None = None
    names: Names = field(default_factory=Names)
    samples: SampleHashes | None = None
    seconds: float = 0.0
    last: LastDecision | None = None
    has_warned: bool = False
    index: Any = None  # of the last pandas series that was compared
    unfinished: Unfinished | None = None

    @property
    def n_seen(self) -> int:
        """Number of features decided about."""
        return self.trace.n_seen

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
        if not nw.dependencies.is_pandas_series(values):
            return
        if self.index is None or not values.index.equals(self.index):
            self._check_names(index_names(values), "This feature")
            self.index = values.index

    def _check_names(self, names: Sequence[str] | None, what: str) -> None:
        if names is None:
            return
        if self.samples is not None:
            refuse_other_samples(self.samples, names, what, _BEFORE)
            return
        found, index = hash_samples(names), index_names(self.y)
        if index is not None and is_reordered(hash_samples(index), found):
            refuse_other_samples(hash_samples(index), names, what, "y")
        self.samples = found

    def last_decision(self) -> Decision:
        """The decision about the newest feature, by names."""
        last, arrival = self.last, self.n_seen - 1
        assert last is not None
        return Decision(
            name=self.names[arrival],
            arrival=arrival,
            fate=last.fate,
            relevance=last.relevance,
            witness=None if last.witness is None else self.names[last.witness],
            overlap=last.overlap,
            displaced=tuple(self.names[gone] for gone in last.displaced),
        )


def block_of_one(values: Any, name: str | None, arrival: int) -> Block:
    """A feature that arrives alone, as a block."""
    if name is not None and not isinstance(name, str):
        raise DataTypeError(
            f"A feature name must be a string. Got {printable(name)} of type "
            f"{type(name).__name__}."
        )
    shown = feature_name(arrival) if name is None else name
    (block,) = IteratorSource([(shown, values)]).blocks()
    return block if name is not None else replace(block, names=None)


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
    """The block in the storage of its stream, in pieces if it has to be densified."""
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
