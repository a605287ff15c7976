"""The state of a stream of features that every selector keeps."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import sparse

from featstream.errors import DataTypeError, FeatstreamWarning, printable
from featstream.measures.resolve import Choice
from featstream.protocols import (
    Block,
    BoundMeasure,
    Decision,
    Fate,
    SparseColumns,
    feature_name,
)
from featstream.sources import IteratorSource
from featstream.trace import Names, Trace

__all__ = ["LastDecision", "Stream", "block_of_one", "in_storage", "in_stream"]

_DENSE_BYTES = 1 << 24

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
class Stream:
    """What is known of a stream, apart from what its selector keeps.

    ``measure`` is None until the first features show which one fits, and
    ``choice`` says why that was chosen; ``is_sparse`` is None until the first block
    has come, and then decides how all columns are stored.
    """

    y: Any
    trace: Trace
    measure: BoundMeasure | None = None
    choice: Choice | None = None
    is_sparse: bool | None = None
    names: Names = field(default_factory=Names)
    seconds: float = 0.0
    last: LastDecision | None = None
    has_warned: bool = False

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
        stored = block.columns
        width = max(1, _DENSE_BYTES // (8 * max(1, block.n_samples)))
        for begin in range(0, block.n_columns, width):
            end = min(begin + width, block.n_columns)
            first, last = stored.indptr[begin], stored.indptr[end]
            dense = sparse.csc_array(
                (
                    stored.values[first:last],
                    stored.rows[first:last],
                    stored.indptr[begin : end + 1] - first,
                ),
                shape=(block.n_samples, end - begin),
            ).toarray(order="F")
            yield replace(
                block,
                columns=dense,
                start=block.start + begin,
                names=None if block.names is None else block.names[begin:end],
            )
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
