"""Neighbouring features put together into groups."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, count, groupby, repeat
from typing import Any

import numpy as np

from featstream.protocols import Block
from featstream.selectors.numeric import dense_column

__all__ = ["cut_into_groups", "join_columns"]


def cut_into_groups(
    blocks: Iterator[Block], groups: list[Any] | None, size: int
) -> Iterator[tuple[Any, Block]]:
    """Groups of a stream with their labels, whatever its blocks are."""
    labels: Iterator[Any]
    if groups is None:
        labels = chain.from_iterable(repeat(g, size) for g in count())
    else:
        labels = iter(groups)
    features = ((block, i) for block in blocks for i in range(block.n_columns))
    pairs = zip(labels, features, strict=False)
    for label, run in groupby(pairs, key=lambda pair: pair[0]):
        yield label, join_columns([feature for _, feature in run])


def join_columns(features: list[tuple[Block, int]]) -> Block:
    """Columns of one or more blocks as one dense block."""
    first = features[0][0]
    columns = [dense_column(b.columns, i) for b, i in features]
    names = None if first.names is None else [b.name(i) for b, i in features]
    nominal = np.array([b.nominal is not None and b.nominal[i] for b, i in features])
    return Block(
        np.asfortranarray(np.column_stack(columns)),
        0,
        names,
        nominal if nominal.any() else None,
    )
