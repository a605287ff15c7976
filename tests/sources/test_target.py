"""A target in a file of its own."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from featstream.errors import DataError, MissingFileError, ParameterError
from featstream.sources import open_npy, read_target


def test_every_format(tmp_path):
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


def test_names_of_samples_decide_the_order(tmp_path):
    (tmp_path / "y.csv").write_text("id,status\n3,c\n1,a\n2,b\n4,d\n")
    found = read_target(tmp_path / "y.csv", ["1", "2", "3"])
    assert found.tolist() == ["a", "b", "c"]
    (tmp_path / "y.csv").write_text("status\nx\ny\nz\n")
    assert read_target(tmp_path / "y.csv", ["1", "2", "3"]).tolist() == ["x", "y", "z"]


def test_a_colon_may_be_part_of_a_file_name(tmp_path):
    (tmp_path / "y:1.txt").write_text("5\n6\n")
    assert read_target(tmp_path / "y:1.txt").tolist() == [5, 6]


def test_an_array_takes_any_of_them(tmp_path):
    np.save(tmp_path / "X.npy", np.eye(2))
    (tmp_path / "y.csv").write_text("status\nx\ny\n")
    assert open_npy(tmp_path / "X.npy", tmp_path / "y.csv").y.tolist() == ["x", "y"]


@pytest.mark.parametrize(
    ("name", "text", "error", "reason"),
    [
        ("y.csv", "a,b\n1,2\n", DataError, "the target column is ambiguous. Write "
         "FILE:COLUMN, with one of: 'a', 'b'."),
        ("y.csv:c", "a,b\n1,2\n", DataError, "it has no column 'c' for a target. Its "
         "columns are: 'a', 'b'."),
        ("y.npy", "junk", DataError, "cannot be read as .npy"),
        ("y.txt:c", "1\n", ParameterError, "has no columns. Got the column 'c'."),
        ("y.xls", "1\n", ParameterError, "A target is read from .npy, .txt, .csv, "
         ".tsv, .parquet, .feather, .arrow. Got"),
    ],
)  # fmt: skip
def test_bad_files_are_explained(tmp_path, name, text, error, reason):
    (tmp_path / name.split(":")[0]).write_text(text)
    with pytest.raises(error) as caught:
        read_target(f"{tmp_path}/{name}")
    assert reason in str(caught.value)


def test_samples_that_are_not_there_are_named(tmp_path):
    (tmp_path / "y.csv").write_text("id,y\ns1,1\ns2,2\n")
    with pytest.raises(DataError) as caught:
        read_target(tmp_path / "y.csv", ["s1", "s3", "s4"])
    assert str(caught.value) == (
        f"{tmp_path}/y.csv: its first column 'id' should name the samples, and 2 are "
        "not there: 's3', 's4'. A file of one column is taken in the order of the "
        "samples."
    )
    (tmp_path / "y.csv").write_text("id,y\ns1,1\ns1,2\n")
    with pytest.raises(DataError, match="has the sample 's1' twice"):
        read_target(tmp_path / "y.csv", ["s1"])
    with pytest.raises(MissingFileError, match=r"no file '.*z\.csv:y'"):
        read_target(f"{tmp_path}/z.csv:y")
