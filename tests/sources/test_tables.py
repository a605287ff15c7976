"""Wide tables: read by column, never whole."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from block_sources import as_array
from featstream.errors import DataError, DataTypeError
from featstream.sources import FrameSource, open_dataset, open_table
from featstream.sources.parquet import ParquetTable
from featstream.sources.tables import TableSource
from gather import gather


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
    np.testing.assert_array_equal(as_array(source), X)
    assert widths == [1024, 1024, 452]
    widths.clear()
    np.testing.assert_array_equal(as_array(source, 2490), X[:, 2490:])
    assert widths == [10]


def test_the_file_is_not_held(tmp_path):
    X = np.random.default_rng(0).normal(size=(1000, 2000))
    columns = {f"g{j}": X[:, j] for j in range(2000)}
    path = write(tmp_path / "d.parquet", columns)
    before = pa.total_allocated_bytes()
    source = TableSource(ParquetTable(path), block_bytes=1 << 19)
    for block in source.blocks():
        np.testing.assert_array_equal(block.columns[:, 0], X[:, block.start])
        assert pa.total_allocated_bytes() - before < 4 << 20


def test_a_block_is_as_large_as_asked(wide):
    path, X = wide
    source = TableSource(ParquetTable(path), without=0, block_bytes=7 * 8 * 40)
    assert {block.n_columns for block in source.blocks()} == {7, 2500 % 7}
    np.testing.assert_array_equal(as_array(source, 3), X[:, 3:])


def test_names_with_dots_are_kept_apart(tmp_path):
    """By name, the reader would give a.1 along with a."""
    path = write(tmp_path / "d.parquet", {"a": [1, 2], "a.1": [3, 4], "b": [5, 6]})
    dataset = open_table(path, "a")
    assert dataset.names == ["a.1", "b"]
    assert dataset.y.tolist() == [1, 2]
    assert as_array(dataset.source).tolist() == [[3, 5], [4, 6]]


def test_every_kind_of_column_is_read_as_in_memory(tmp_path):
    frame = pl.DataFrame(
        {
            "small": pl.Series([1, None, 3], dtype=pl.Int8),
            "large": [2**60, 2**60 + 1, None],
            "word": ["b", None, "a"],
            "flag": [True, False, None],
            "kind": pl.Series(["x", "y", "x"], dtype=pl.Categorical),
            "real": [1.5, None, float("nan")],
            "plain": [1, 2, 3],
        }
    )
    frame.write_parquet(tmp_path / "d.parquet")
    found = gather(open_table(tmp_path / "d.parquet", optional=()).source)
    expected = gather(FrameSource(frame.to_arrow()))
    np.testing.assert_array_equal(found[0], expected[0])
    assert found[1] == expected[1] == frame.columns
    assert found[2].tolist() == expected[2].tolist()


def test_the_index_of_pandas_is_no_feature(tmp_path):
    frame = pd.DataFrame({"a": [1, 2], "y": [3, 4]}, index=["s1", "s2"])
    frame.to_parquet(tmp_path / "d.parquet")
    frame.to_feather(tmp_path / "d.feather")
    for suffix in ("parquet", "feather"):
        dataset = open_dataset(tmp_path / f"d.{suffix}")
        assert dataset.names == ["a"]
        assert dataset.source.sample_names == ["s1", "s2"]
        assert dataset.y.tolist() == [3, 4]


def test_the_fingerprint_is_that_of_the_footer(tmp_path):
    path = write(tmp_path / "a.parquet", {"a": [1, 2], "y": [0, 1]})
    first = open_table(path).source.fingerprint
    (tmp_path / "copy.parquet").write_bytes(path.read_bytes())
    assert open_table(tmp_path / "copy.parquet").source.fingerprint == first
    write(path, {"a": [1, 9], "y": [0, 1]})
    assert open_table(path).source.fingerprint != first


def test_lists_are_refused_with_a_hint(tmp_path):
    path = write(tmp_path / "d.parquet", {"gene": ["a", "b"], "values": [[1], [2]]})
    with pytest.raises(DataTypeError) as caught:
        open_table(path)
    assert str(caught.value).startswith(f"{path}: Feature 'values' has dtype list<")
    assert str(caught.value).endswith(
        "which is neither numbers nor text. If each row is a feature, and not a "
        "sample: orient='features'."
    )
    path = write(tmp_path / "d.parquet", {"a": [1], "b": [{"c": 1}]})
    with pytest.raises(DataTypeError, match="Give each of its fields as a feature"):
        open_table(path)


def test_a_date_is_refused_when_it_is_reached(tmp_path):
    dates = np.array(["2024-01-01", "2024-01-02"], "M8[D]")
    path = write(tmp_path / "d.parquet", {"when": dates, "y": [0, 1]})
    with pytest.raises(DataTypeError, match="'when' has dtype Date"):
        as_array(open_table(path).source)


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
