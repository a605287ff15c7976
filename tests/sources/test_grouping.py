"""Groups at random, from files and from names; and laid over a source."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from featstream import random_groups, read_groups
from featstream.sources import (
    ArraySource,
    IteratorSource,
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
    kind=st.sampled_from(
        [np.asarray, sparse.csc_array, pd.DataFrame, pl.DataFrame, pl.LazyFrame]
    ),
)
def test_every_group_comes_whole_whatever_the_blocks(labels, width, kind):
    X = np.vstack([np.arange(1, len(labels) + 1)] * 2)
    source = as_source(kind(X))
    source.block_bytes, source.block_columns = 16 * width, width
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


def test_random_groups_hold_every_feature_once_in_equal_shares():
    groups = random_groups(1003, 100, seed=3)
    assert sorted(np.concatenate(groups).tolist()) == list(range(1003))
    assert {group.size for group in groups} == {10, 11}
    again = random_groups(1003, 100, seed=3)
    assert all(map(np.array_equal, groups, again))
    assert not all(map(np.array_equal, groups, random_groups(1003, 100, seed=4)))
    with pytest.raises(ValueError, match="an integer from 1 to 5"):
        random_groups(5, 6)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("feature,group\na,1\nb,2\n", {"a": "1", "b": "2"}),
        ('a,1\n"b,c",2\n\na,1\n', {"a": "1", "b,c": "2"}),
        ("\ufefffirst\nsecond\nfirst\n", ["first", "second", "first"]),
        ("Feature, Group\r\na, x y \r\n", {"a": "x y"}),
    ],
)
def test_a_file_holds_labels_or_pairs(tmp_path, text, expected):
    path = tmp_path / "groups.csv"
    path.write_text(text, encoding="utf-8")
    assert read_groups(path) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no groups"),
        ("a,b,c\n", "line 1: 3 columns"),
        ("a,1\nb\n", "line 2: 1 columns where 2 are expected"),
        ("a,1\nb, \n", "line 2: the group is empty"),
        ("a,1\nb,1\na,2\n", "line 3: feature 'a' is in group '2' and, further up"),
        ('a,1\n"b"c,2\n', "line 2: "),
    ],
)
def test_a_bad_file_is_refused_with_its_line(tmp_path, text, message):
    path = tmp_path / "groups.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_groups(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match="not text"):
        read_groups(path)


def test_a_pattern_takes_its_first_parentheses_or_the_whole_match():
    names = ["chr1:17", "chr2:5"]
    assert read_groups(pattern=r"chr(\d+)", names=names) == ["1", "2"]
    assert read_groups(pattern=r"chr\d+", names=names) == ["chr1", "chr2"]
    assert read_groups(pattern=r"\d$", n_features=12)[9:] == ["9", "0", "1"]
    with pytest.raises(ValueError, match="'chr2:5' is in no group"):
        read_groups(pattern="(1)", names=names)
    with pytest.raises(ValueError, match="not a regular expression"):
        read_groups(pattern="(", names=names)


def test_groups_of_a_size_follow_each_other():
    assert read_groups(size=4, n_features=10).tolist() == [0] * 4 + [1] * 4 + [2] * 2
    assert read_groups(size=2, names=["a", "b", "c"]).tolist() == [0, 0, 1]
    with pytest.raises(ValueError, match="at least 1"):
        read_groups(size=0, n_features=3)
    with pytest.raises(ValueError, match="needs `n_features`"):
        read_groups(size=3)
    with pytest.raises(ValueError, match="takes one of"):
        read_groups(size=3, pattern="a", n_features=3)
