"""Tables with one row a feature."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from block_sources import as_array
from featstream.errors import DataError, DataTypeError, ParameterError
from featstream.sources import FeatureTableSource, open_dataset, open_feature_table
from gather import gather
from science_files import write_feature_rows

X = np.random.default_rng(0).normal(size=(9, 50)).astype(np.float32)
NAMES = [f"gene{j}" for j in range(50)]


def write(path, columns):
    pq.write_table(pa.table(columns), path)
    return path


@pytest.mark.parametrize("has_lists", [False, True])
@pytest.mark.parametrize("group", [1, 7, 50])
@pytest.mark.parametrize("block_bytes", [1, 8 * 9 * 4, 1 << 20])
def test_rows_are_columns(tmp_path, has_lists, group, block_bytes):
    path = tmp_path / "d.parquet"
    write_feature_rows(path, X, NAMES, has_lists=has_lists, group=group)
    source = FeatureTableSource(path, block_bytes=block_bytes)
    for start in (0, 6, 7, 30, 49):
        found, names, _ = gather(source, start)
        np.testing.assert_array_equal(found, X[:, start:])
        assert found.dtype == np.float32
        assert names == NAMES[start:]
    assert not list(source.blocks(50))


@pytest.mark.parametrize("make", [pa.list_, pa.large_list, lambda t: pa.list_(t, 3)])
@pytest.mark.parametrize(
    ("kind", "rows"),
    [
        (pa.int8(), [[1, 2, 3], [4, 5, 6]]),
        (pa.bool_(), [[True, False, True], [False, False, True]]),
        (pa.float64(), [[1.5, None, 2], [3, 4, 5]]),
        (pa.int32(), [[1, None, 2], [3, 4, 5]]),
        (pa.int64(), [[1, None, 2], [3, 4, 5]]),
        (pa.bool_(), [[True, None, False], [True, True, False]]),
        (pa.decimal128(5, 2), [[Decimal("1.5"), Decimal(2), None], [None] * 3]),
    ],
)
def test_numbers_of_every_kind(tmp_path, make, kind, rows):
    lists = pa.array(rows, make(kind))
    path = write(tmp_path / "d.parquet", {"name": ["a", "b"], "v": lists})
    found, _, nominal = gather(open_feature_table(path).source)
    expected = [[np.nan if v is None else float(v) for v in row] for row in rows]
    np.testing.assert_array_equal(found.T.astype(float), expected)
    assert not nominal.any()


@pytest.mark.parametrize("has_lists", [False, True])
def test_text_becomes_codes_of_each_feature(tmp_path, has_lists):
    rows = [["x", "y", None], ["b", "b", "a"]]
    columns = {"name": ["f", "g"]}
    if has_lists:
        columns["v"] = rows
    else:
        columns |= {f"s{i}": [row[i] for row in rows] for i in range(3)}
    path = write(tmp_path / "d.parquet", columns)
    found, _, nominal = gather(open_feature_table(path).source)
    assert found.T.tolist() == [[0, 1, -1], [1, 1, 0]]
    assert nominal.all()


def test_large_integers_stay_apart(tmp_path):
    """Beside a float they would become equal."""
    columns = {"name": ["a", "b"], "s1": [2**60, 1], "s2": [2**60 + 1, 2]}
    path = write(tmp_path / "d.parquet", {**columns, "s3": [0.5, 0.5]})
    found, _, nominal = gather(open_feature_table(path).source)
    assert found[:, 0].tolist() == [1, 2, 0]
    assert nominal.tolist() == [True, False]
    path = write(tmp_path / "d.parquet", columns)
    assert gather(open_feature_table(path).source)[0][0, 0] == 2**60


def test_a_row_group_is_not_held(tmp_path):
    """Forty megabytes in one, of which a block takes half of one."""
    X = np.random.default_rng(0).normal(size=(1000, 10_000)).astype(np.float32)
    names = [f"g{j}" for j in range(10_000)]
    path = tmp_path / "d.parquet"
    write_feature_rows(path, X, names, has_lists=True, group=10_000)
    before = pa.total_allocated_bytes()
    for start in (0, 9_000):
        blocks = FeatureTableSource(path, block_bytes=1 << 19).blocks(start)
        np.testing.assert_array_equal(next(blocks).columns[:, 0], X[:, start])
        assert pa.total_allocated_bytes() - before < 20 << 20
        blocks.close()


def test_the_names_may_be_in_any_column(tmp_path):
    columns = {"s1": [1, 2], "s2": [3, 4], "gene": ["a", "b"], "s3": [5, 6]}
    source = open_feature_table(write(tmp_path / "d.parquet", columns)).source
    assert source.samples == ["s1", "s2", "s3"]
    assert as_array(source).tolist() == [[1, 2], [3, 4], [5, 6]]
    lists = {"v": [[1, 2], [3, 4]], "length": [7, 9], "gene": ["a", "b"]}
    source = open_feature_table(write(tmp_path / "d.parquet", lists)).source
    assert as_array(source).tolist() == [[1, 3], [2, 4]]
    assert list(source.names) == ["a", "b"]


def test_a_frame_of_pandas_with_genes_for_index(tmp_path):
    frame = pd.DataFrame({"s1": [1.0, 2.0], "s2": [3.0, 4.0]}, index=["TP53", "MYC"])
    frame.to_parquet(tmp_path / "d.parquet")
    dataset = open_dataset(tmp_path / "d.parquet", orient="features")
    assert list(dataset.names) == ["TP53", "MYC"]
    assert as_array(dataset.source).tolist() == [[1, 2], [3, 4]]


def test_the_target_is_matched_by_the_names_of_the_samples(tmp_path):
    path = write(tmp_path / "d.parquet", {"g": ["a"], "s1": [1], "s2": [2], "s3": [3]})
    target = tmp_path / "samples.csv"
    target.write_text("id,age,status\ns3,30,ill\ns9,90,odd\ns1,10,well\ns2,20,ill\n")
    for column, expected in (("age", [10, 20, 30]), ("status", ["well", "ill", "ill"])):
        dataset = open_feature_table(path, f"{target}:{column}")
        assert dataset.y.tolist() == expected


EMPTY_LISTS = pa.array([[]], pa.list_(pa.int8()))
NOTHING = {"gene": pa.array([], pa.string()), "v": EMPTY_LISTS[:0]}
DATES = np.array(["2024-01-01"], "M8[ms]")
LISTS = "one column of lists, .* it has {} columns of lists"
BAD_FILES = [
    ({"a": [1], "b": [2]}, DataError, "none of its columns is text"),
    ({"gene": ["a"]}, DataError, LISTS.format(0)),
    ({"gene": ["a"], "v": [[1]], "w": [[2]]}, DataError, LISTS.format(2)),
    ({"gene": ["a"], "b": ["c"], "s1": [1]}, DataTypeError, "column 'b' is text"),
    ({"gene": ["a"], "s1": DATES}, DataTypeError, r"'s1' have dtype timestamp\[ms\]"),
    ({"gene": ["a"], "v": [{"x": 1}]}, DataTypeError, "'v' have dtype struct"),
    ({"gene": [*"aba"], "s1": [1, 2, 3]}, DataError, "'a' already seen"),
    ({"gene": ["a", None], "s1": [1, 2]}, DataTypeError, "Got None .* position 1"),
    (NOTHING, DataError, "no rows"),
    ({"gene": ["a", "b"], "v": [None, [1]]}, DataError, "first row has no list"),
    ({"gene": [*"ab"], "v": [[1, 2], [5]]}, DataError, "'b' has 1 values .* has 2"),
    ({"gene": [*"ab"], "v": [[1, 2], None]}, DataError, "'b' has no values"),
    ({"gene": ["a"], "v": EMPTY_LISTS}, DataError, r"0 sample\(s\)"),
]


@pytest.mark.parametrize(("columns", "error", "reason"), BAD_FILES)
def test_bad_files_are_refused(tmp_path, columns, error, reason):
    path = write(tmp_path / "d.parquet", columns)
    with pytest.raises(error, match=reason) as caught:
        as_array(open_feature_table(path).source)
    assert str(path) in str(caught.value)


def test_a_wrong_option_is_refused(tmp_path):
    path = write(tmp_path / "d.parquet", {"a": [1]})
    with pytest.raises(ParameterError, match=r"must be 'samples' or 'features'\. Got"):
        open_dataset(path, orient="columns")
    (tmp_path / "d.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ParameterError, match=r"`orient` has no meaning for \.csv"):
        open_dataset(tmp_path / "d.csv", orient="features")
