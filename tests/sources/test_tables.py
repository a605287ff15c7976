"""Wide tables: read by column, never whole."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from featstream.errors import DataError, DataTypeError, MissingFileError, ParameterError
from featstream.sources import (
    FeatureTableSource,
    open_dataset,
    open_feature_table,
    open_table,
    read_target,
)
from featstream.sources.parquet import ParquetTable
from gather import as_array, gather, refused
from science_files import write_feature_rows


def write(path, columns, **options):
    pq.write_table(pa.table(columns), path, **options)
    return path


@pytest.fixture
def wide(tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 2500))
    columns = {f"g{j}": X[:, j] for j in range(2500)}
    path = write(tmp_path / "d.parquet", {"y": np.arange(40) % 2, **columns})
    return path, X


def test_only_the_columns_of_a_block_are_read(wide, monkeypatch):
    path, X = wide
    source = open_table(path).source
    widths = []
    real = ParquetTable.read

    def noted(self, positions):
        widths.append(len(positions))
        return real(self, positions)

    monkeypatch.setattr(ParquetTable, "read", noted)
    before = pa.total_allocated_bytes()
    np.testing.assert_array_equal(as_array(source), X)
    assert widths == [1024, 1024, 452]
    assert pa.total_allocated_bytes() - before < X.nbytes / 2
    widths.clear()
    np.testing.assert_array_equal(as_array(source, 2490), X[:, 2490:])
    assert widths == [10]


def test_names_with_dots_are_kept_apart(tmp_path):
    """By name, the reader would give a.1 along with a."""
    path = write(tmp_path / "d.parquet", {"a": [1, 2], "a.1": [3, 4], "b": [5, 6]})
    dataset = open_table(path, "a")
    assert dataset.names == ["a.1", "b"]
    assert dataset.y.tolist() == [1, 2]
    assert as_array(dataset.source).tolist() == [[3, 5], [4, 6]]


def test_the_index_of_pandas_is_no_feature(tmp_path):
    frame = pd.DataFrame({"a": [1, 2], "y": [3, 4]}, index=["s1", "s2"])
    frame.to_parquet(tmp_path / "d.parquet")
    frame.to_feather(tmp_path / "d.feather")
    for suffix in ("parquet", "feather"):
        dataset = open_dataset(tmp_path / f"d.{suffix}")
        assert dataset.names == ["a"]
        assert dataset.source.sample_names == ["s1", "s2"]
        assert dataset.y.tolist() == [3, 4]


def test_lists_are_refused_with_a_hint(tmp_path):
    path = write(tmp_path / "d.parquet", {"gene": ["a", "b"], "values": [[1], [2]]})
    message = r"'values' has dtype list<.* neither numbers nor text.*orient='features'"
    with pytest.raises(DataTypeError, match=message):
        open_table(path)
    path = write(tmp_path / "d.parquet", {"a": [1], "b": [{"c": 1}]})
    with pytest.raises(DataTypeError, match="Give each of its fields as a feature"):
        open_table(path)


def test_damage_is_reported_wherever_it_is(wide):
    """In the footer when it is opened; in a column when that is read."""
    path, _ = wide
    content = path.read_bytes()
    for length in (0, 4, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:length])
        with pytest.raises(DataError, match=r"d\.parquet cannot be read as \.parquet"):
            open_table(path)
    path.write_bytes(content[:5000] + bytes(3000) + content[8000:])
    with pytest.raises(DataError, match=r"d\.parquet cannot be read as \.parquet"):
        as_array(open_table(path).source)


def test_a_target_is_read_from_every_format(tmp_path):
    np.save(tmp_path / "y.npy", [1, 2, 1])
    (tmp_path / "y.txt").write_text("1\n 2 \n1\n")
    (tmp_path / "words.txt").write_text("ill\nwell\nill")
    (tmp_path / "y.csv").write_text("status\n1\n2\n1\n")
    (tmp_path / "many.csv").write_text("a,Label,b\n7,1,x\n8,2,y\n9,1,z\n")
    pq.write_table(pa.table({"a": [7, 8, 9], "t": [1, 2, 1]}), tmp_path / "y.parquet")
    for name in ("y.npy", "y.txt", "y.csv", "many.csv", "y.parquet:t"):
        assert read_target(f"{tmp_path}/{name}").tolist() == [1, 2, 1]
    assert read_target(tmp_path / "words.txt").tolist() == ["ill", "well", "ill"]
    assert read_target(f"{tmp_path}/many.csv:a").tolist() == [7, 8, 9]
    assert read_target(f"{tmp_path}/many.csv:b").tolist() == ["x", "y", "z"]
    assert read_target(f"{tmp_path}/many.csv", ["9", "8"]).tolist() == [1, 2]
    assert read_target(f"{tmp_path}/y.csv", ["3", "2", "1"]).tolist() == [1, 2, 1]
    (tmp_path / "y:1.txt").write_text("5\n6\n")
    assert read_target(tmp_path / "y:1.txt").tolist() == [5, 6]


@pytest.mark.parametrize(
    ("name", "text", "error", "reason"),
    [
        ("y.csv", "a,b\n1,2\n", DataError, "the target column is ambiguous. Write "
         "FILE:COLUMN, with one of: 'a', 'b'."),
        ("y.csv:c", "a,b\n1,2\n", DataError, "it has no column 'c' for a target. Its "
         "columns are: 'a', 'b'."),
        ("y.csv:outcme", "id,outcome\n1,2\n", DataError,
         "it has no column 'outcme' for a target. Did you mean 'outcome'?"),
        ("y.npy", "junk", DataError, "cannot be read as .npy"),
        ("y.txt:c", "1\n", ParameterError, "has no columns. Got the column 'c'."),
        ("y.xls", "1\n", ParameterError, "A target is read from .npy, .txt, .csv, "
         ".tsv, .tab, .parquet, .feather, .arrow. Got"),
    ],
)  # fmt: skip
def test_bad_targets_are_explained(tmp_path, name, text, error, reason):
    (tmp_path / name.split(":")[0]).write_text(text)
    with refused("", reason, error):
        read_target(f"{tmp_path}/{name}")


def test_samples_that_are_not_there_are_named(tmp_path):
    (tmp_path / "y.csv").write_text("id,y\ns1,1\ns2,2\n")
    message = r"y\.csv: its first column 'id' .* 2 are not there: 's3', 's4'\. A file"
    with pytest.raises(DataError, match=message):
        read_target(tmp_path / "y.csv", ["s1", "s3", "s4"])
    (tmp_path / "y.csv").write_text("id,y\ns1,1\ns1,2\n")
    with pytest.raises(DataError, match="has the sample 's1' twice"):
        read_target(tmp_path / "y.csv", ["s1"])
    with pytest.raises(MissingFileError, match=r"no file '.*z\.csv:y'"):
        read_target(f"{tmp_path}/z.csv:y")


X = np.random.default_rng(0).normal(size=(9, 50)).astype(np.float32)
NAMES = [f"gene{j}" for j in range(50)]


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


@pytest.mark.parametrize(
    "values",
    [
        {"v": [["x", "y", None], ["b", "b", "a"]]},
        {"s0": ["x", "b"], "s1": ["y", "b"], "s2": [None, "a"]},
    ],
)
def test_text_becomes_codes_of_each_feature(tmp_path, values):
    path = write(tmp_path / "d.parquet", {"name": ["f", "g"], **values})
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


def test_the_names_may_be_in_any_column_or_in_the_index(tmp_path):
    columns = {"s1": [1, 2], "s2": [3, 4], "gene": ["a", "b"], "s3": [5, 6]}
    (tmp_path / "y.csv").write_text("id,age,kind\ns3,30,x\ns9,90,y\ns1,10,y\ns2,20,x\n")
    path = write(tmp_path / "d.parquet", columns)
    dataset = open_feature_table(path, f"{tmp_path}/y.csv:age")
    source = dataset.source
    assert dataset.y.tolist() == [10, 20, 30]
    assert source.sample_names == ["s1", "s2", "s3"]
    assert as_array(source).tolist() == [[1, 2], [3, 4], [5, 6]]
    lists = {"v": [[1, 2], [3, 4]], "length": [7, 9], "gene": ["a", "b"]}
    source = open_feature_table(write(tmp_path / "d.parquet", lists)).source
    assert as_array(source).tolist() == [[1, 3], [2, 4]]
    assert list(source.names) == ["a", "b"]
    frame = pd.DataFrame({"s1": [1.0, 2.0], "s2": [3.0, 4.0]}, index=["TP53", "MYC"])
    frame.to_parquet(tmp_path / "d.parquet")
    dataset = open_dataset(tmp_path / "d.parquet", orient="features")
    assert list(dataset.names) == ["TP53", "MYC"]
    assert as_array(dataset.source).tolist() == [[1, 2], [3, 4]]


EMPTY_LISTS = pa.array([[]], pa.list_(pa.int8()))
NOTHING = {"gene": pa.array([], pa.string()), "v": EMPTY_LISTS[:0]}
DATES = np.array(["2024-01-01"], "M8[ms]")
LISTS = "one column of lists, .* it has {} columns of lists"
BAD_FILES = [
    ({"a": [1], "b": [2]}, DataError, "none of its columns is text"),
    ({"gene": ["a"]}, DataError, LISTS.format(0)),
    ({"gene": ["a"], "v": [[1]], "w": [[2]]}, DataError, LISTS.format(2)),
    ({"gene": ["a"], "b": ["c"], "s1": [1]}, DataTypeError, "column 'b' is text"),
    ({"gene": ["a"], "s1": DATES}, DataTypeError, r"'s1' has dtype timestamp\[ms\]"),
    ({"gene": ["a"], "v": [{"x": 1}]}, DataTypeError, "'v' has dtype struct"),
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
    with pytest.raises(ParameterError, match=r"`layer` has no meaning for \.csv"):
        open_dataset(tmp_path / "d.csv", layer="X")
