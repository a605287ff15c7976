"""Groups at random, from files and from names."""

import numpy as np
import pytest

from featstream import random_groups, read_groups


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
