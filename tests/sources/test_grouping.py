"""Groups laid over a source: every column once, in whole groups."""

import numpy as np
import pandas as pd
import polars as pl
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from featstream.sources import (
    ArraySource,
    FrameSource,
    IteratorSource,
    SparseSource,
    as_source,
)
from featstream.sources.grouping import Sized, batches, lay_out


def taken(source, groups):
    """Groups as they arrive: label, and the first row of their columns."""
    layout = lay_out(groups, source)
    order = layout.order
    blocks = source.blocks() if order is None else source.blocks_at(order)
    found = []
    for batch in batches(blocks, layout):
        columns = np.hstack([block.to_dense() for block in batch.blocks])
        assert columns.shape[1] == batch.ends[-1]
        pieces = np.split(columns[0], batch.ends[:-1])
        found += zip(batch.labels, (piece.tolist() for piece in pieces), strict=True)
    return found


@given(
    labels=st.lists(st.sampled_from("abcd"), min_size=1, max_size=20),
    width=st.integers(1, 6),
    kind=st.sampled_from(["array", "sparse", "pandas", "polars", "lazy"]),
)
def test_every_group_comes_whole_whatever_the_blocks(labels, width, kind):
    X = np.vstack([np.arange(1, len(labels) + 1)] * 2)
    names = [f"f{i}" for i in range(len(labels))]
    source = {
        "array": lambda: ArraySource(X, block_bytes=16 * width),
        "sparse": lambda: SparseSource(sparse.csc_array(X), block_columns=width),
        "pandas": lambda: FrameSource(pd.DataFrame(X), block_bytes=16 * width),
        "polars": lambda: FrameSource(
            pl.DataFrame(X, schema=names), block_bytes=16 * width
        ),
        "lazy": lambda: FrameSource(
            pl.LazyFrame(X, schema=names), block_bytes=16 * width
        ),
    }[kind]()
    expected = [
        (label, [i + 1 for i, other in enumerate(labels) if other == label])
        for label in dict.fromkeys(labels)
    ]
    assert taken(source, labels) == expected


@given(
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=6), width=st.integers(1, 5)
)
def test_names_of_an_endless_source_are_looked_up_as_they_come(sizes, width):
    labels = np.repeat(np.arange(len(sizes)), sizes).tolist()
    features = [(f"f{i}", np.array([i, i])) for i in range(len(labels))]
    group_of = {f"f{i}": label for i, label in enumerate(labels)}
    source = IteratorSource(iter(features), block_bytes=16 * width)
    found = taken(source, group_of)
    assert [label for label, _ in found] == list(range(len(sizes)))
    assert [len(members) for _, members in found] == sizes


def test_lists_of_positions_keep_their_order():
    source = ArraySource(np.arange(6).reshape(1, 6).repeat(2, axis=0))
    assert taken(source, [[4, 1], [0, 5, 2], range(3, 4)]) == [
        (0, [4, 1]),
        (1, [0, 5, 2]),
        (2, [3]),
    ]


def test_features_without_groups_are_groups_by_name():
    frame = pd.DataFrame({"age": [1, 1], "height": [2, 2]})
    assert taken(as_source(frame), None) == [("age", [1]), ("height", [2])]
    assert taken(ArraySource(np.ones((2, 1))), None) == [("x0", [1])]


def test_contiguous_groups_are_read_as_they_are():
    layout = lay_out(["b", "b", "a"], ArraySource(np.eye(3)))
    assert layout.order is None


def test_groups_of_equal_size_continue_their_numbers():
    layout = Sized(3).placed(10, 4)
    columns = np.arange(14).reshape(7, 2).T
    source = ArraySource(columns, block_bytes=32)
    found = list(batches(source.blocks(), layout))
    assert [list(batch.labels) for batch in found] == [[4], [5], [6]]
    later = list(batches(source.blocks(3), layout, 3))
    assert [list(batch.labels) for batch in later] == [[5], [6]]
    assert Sized(3).describe() != Sized(4).describe()


def test_the_same_groups_have_the_same_description():
    source = ArraySource(np.eye(4))
    lists = lay_out([[0, 2], [1, 3]], source).describe()
    labels = lay_out(np.array([0, 1, 0, 1]), source).describe()
    mapped = lay_out({"x0": 0, "x1": 1, "x2": 0, "x3": 1}, source).describe()
    assert lists == labels == mapped
    for other in ([0, 1, 1, 0], ["0", "1", "0", "1"], [1, 0, 1, 0], [0, 0, 1, 1]):
        assert lay_out(np.array(other), source).describe() != labels
