"""Tables as people have them: marks for missing values, any separator, an index."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet
import pytest
from scipy import sparse

from featstream import SAOLA
from featstream.errors import DataError, FeatstreamWarning, ParameterError
from featstream.sources import (
    FrameSource,
    SampleSubset,
    as_source,
    open_dataset,
    open_features,
    read_target,
)
from featstream.sources.values import LIMITS
from gather import as_array, gather, refused

MARKS = ["?", ".", "-", "missing", "N.A.", "unknown", "none", " ?", "Missing"]


@pytest.fixture(params=[False, True], ids=["held", "cut"])
def is_cut(request, monkeypatch):
    """Text is held, or cut into blocks of one column each."""
    if request.param:
        monkeypatch.setattr(LIMITS, "csv_held", 0)
        monkeypatch.setattr(LIMITS, "csv_block", 1)
    return request.param


def write(folder, text, name="d.csv"):
    (folder / name).write_text(text)
    return folder / name


@pytest.mark.parametrize("mark", MARKS)
def test_a_mark_among_numbers_is_refused_and_can_be_declared(tmp_path, mark, is_cut):
    path = write(tmp_path, f"a,b,y\n1,1.5,0\n2,{mark},1\n3,-2e3,0\n")
    place = f"{path}: Feature 'b' has numbers, and {mark!r} at row 1"
    with refused(place, f"pass na_values=[{mark!r}]"):
        gather(open_dataset(path).source)
    columns, _, nominal = gather(open_dataset(path, na_values=[mark]).source)
    np.testing.assert_array_equal(columns, [[1, 1.5], [2, np.nan], [3, -2000]])
    assert not nominal.any()


@pytest.mark.parametrize(
    "make",
    [
        pd.DataFrame,
        lambda data: pd.DataFrame(data, dtype="category"),
        pl.DataFrame,
        pl.LazyFrame,
        pa.table,
        lambda data: np.array([*data.values()], object).T,
        lambda data: np.array([*data.values()]).T,
    ],
)
def test_a_mark_among_numbers_is_refused_in_memory(make):
    with pytest.raises(DataError, match=r"has numbers, and '\?' at row 2"):
        gather(as_source(make({"a": ["1", "2.5", "?"]})))
    columns, _, nominal = gather(as_source(make({"a": ["red", "?", "blue"]})))
    assert nominal.all()
    assert columns[:, 0].tolist() == [2, 0, 1]


def test_values_that_mean_missing_do_so_in_every_column(tmp_path, is_cut):
    frame = pl.DataFrame(
        {
            "whole": [1, -99, 3],
            "real": [0.5, 1.5, -99.0],
            "byte": pl.Series([1, 2, 3], dtype=pl.UInt8),
            "text": ["1", "?", "-99"],
            "word": ["red", "?", "blue"],
            "y": [0, 1, 0],
        }
    )
    frame.write_csv(tmp_path / "d.csv")
    text = (tmp_path / "d.csv").read_text().replace("-99.0", "-99")
    write(tmp_path, text)
    frame.write_parquet(tmp_path / "d.parquet")
    frame.write_ipc(tmp_path / "d.arrow")
    for suffix in ("csv", "parquet", "arrow"):
        dataset = open_dataset(tmp_path / f"d.{suffix}", na_values=["?", "-99"])
        columns, _, nominal = gather(dataset.source)
        expected = [
            [1, 0.5, 1, 1, 1],
            [np.nan, 1.5, 2, np.nan, -1],
            [3, np.nan, 3, np.nan, 0],
        ]
        np.testing.assert_array_equal(columns, expected)
        assert nominal.tolist() == [False] * 4 + [True]


def test_missing_text_is_no_category(tmp_path, is_cut):
    """As the same file is read by pandas."""
    path = write(tmp_path, 'a,b,y\nred,1,0\n,2,1\nNA,3,0\n"",4,1\nblue,5,0\n')
    columns, _, nominal = gather(open_dataset(path).source)
    expected = gather(FrameSource(pd.read_csv(path)[["a", "b"]]))
    assert columns[:, 0].tolist() == expected[0][:, 0].tolist() == [1, -1, -1, -1, 0]
    assert nominal.tolist() == expected[2].tolist() == [True, False]
    with pytest.raises(DataError, match=r"'a' has .*missing"):
        SAOLA(measure="su").fit(path)


def test_samples_without_a_label_are_refused_or_left_out(tmp_path, monkeypatch):
    """Samples 1 and 4, in every place where a target may be."""
    monkeypatch.chdir(tmp_path)
    X, kept = np.random.default_rng(0).integers(0, 3, (6, 4)), [0, 2, 3, 5]
    words = ["sick", None, "well", "well", None, "sick"]
    numbers = np.array([0, np.nan, 1, 1, np.nan, 0])
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=words)
    frame.to_csv("d.csv", index=False)
    frame.to_parquet("d.parquet")
    np.savez("d.npz", X=X, y=numbers)
    np.save("x.npy", X)
    (tmp_path / "folder").mkdir()
    for name, part in (("a", X[:, :3]), ("b", X[:, 3:])):
        np.savez(f"folder/{name}.npz", X=part, y=numbers)
    write(tmp_path, "".join(f"{word or ''}\n" for word in words), "words.txt")
    write(tmp_path, "\n".join(map(str, numbers)), "numbers.txt")
    frame[["y"]].to_csv("t.csv")
    message = r"2 of 6 samples have no label.* row 1\. Pass drop_unlabelled=True"
    for path, target in [
        *(("d.csv", None), ("d.parquet", None), ("d.npz", None), ("folder", None)),
        *(("x.npy", "words.txt"), ("x.npy", "numbers.txt"), ("x.npy", "t.csv")),
    ]:
        with pytest.raises(DataError, match=message):
            open_dataset(path, target)
        dataset = open_dataset(path, target, drop_unlabelled=True)
        assert dataset.source.n_samples == len(dataset.y) == 4
        assert len(set(dataset.y.tolist())) == 2
        assert dataset.y[0] == dataset.y[3] != dataset.y[1] == dataset.y[2]
        np.testing.assert_array_equal(as_array(dataset.source), X[kept])
        np.testing.assert_array_equal(as_array(dataset.source, 2), X[kept, 2:])


@pytest.mark.parametrize("make", [np.asarray, sparse.csc_array])
def test_a_subset_of_samples_has_their_values(make):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (40, 60))
    is_chosen = rng.random(40) < 0.7
    subset = SampleSubset(as_source(make(X)), is_chosen)
    np.testing.assert_array_equal(as_array(subset, 7), X[is_chosen, 7:])
    (block,) = subset.blocks_at(np.array([5, 2, 9]), 1)
    np.testing.assert_array_equal(block.to_dense(), X[is_chosen][:, [2, 9]])


@pytest.mark.parametrize("mark", ["?", "-", "."])
def test_a_mark_is_no_class(tmp_path, mark):
    path = write(tmp_path, f"a,y\n1,sick\n2,{mark}\n3,well\n")
    with pytest.raises(DataError, match=r"The target 'y' has labels, and '.' at row 1"):
        open_dataset(path)
    dataset = open_dataset(path, na_values=mark, drop_unlabelled=True)
    assert dataset.y.tolist() == ["sick", "well"]
    write(tmp_path, f"sick\n{mark}\nwell\n", "y.txt")
    with pytest.raises(DataError, match="The target has labels"):
        read_target(tmp_path / "y.txt")
    assert read_target(tmp_path / "y.txt", na_values=mark)[1] is None


def test_the_target_is_guessed_by_its_name_alone(tmp_path):
    path = write(tmp_path, "g1,g2,diagnosis,age\n1,2,0,50\n3,4,1,60\n")
    with pytest.raises(DataError, match=r"is the target\? .* 'g1', 'g2', 'diagnosis'"):
        open_dataset(path)
    dataset = open_dataset(path, "diagnosis")
    assert (dataset.target_name, dataset.target_is_guessed) == ("diagnosis", False)
    assert open_features(path).names == ["g1", "g2", "diagnosis", "age"]
    found = SAOLA(measure="su").fit(path, [0, 1])
    assert found.n_features_in_ == 4
    path = write(tmp_path, "Class,g1\n1,2\n3,4\n")
    dataset = open_dataset(path)
    assert (dataset.target_name, dataset.target_is_guessed) == ("Class", True)
    path = write(tmp_path, "y,g1,CLASS\n1,2,3\n3,4,5\n")
    for opened in (open_dataset, open_features):
        with pytest.raises(DataError, match="which is the target: 'y' or 'CLASS'"):
            opened(path)
    assert open_features(path, ["y"]).target_name == "y"


def test_large_whole_numbers_stay_apart(tmp_path, is_cut):
    large = [2**64 - 1, 2**64 - 2, 2**63 + 1, 2**63]
    path = write(
        tmp_path,
        "u,n,x,f,y\n"
        + "".join(f"{v},-{v},{v},{v}.5,{v % 2}\n" for v in large[:3])
        + f"{large[3]},NA,1.5,1e300,0\n",
    )
    columns, names, nominal = gather(open_dataset(path).source)
    assert names == list("unxf")
    source = open_dataset(path).source
    first = next(iter(source.blocks())).columns[:, 0]
    assert first.dtype == np.uint64
    assert first.tolist() == large
    assert len(set(columns[:3, 1].tolist())) == 3  # too small for int64: codes
    assert columns[3, 1] == -1
    assert len(set(columns[:, 2].tolist())) == 4
    assert nominal.tolist() == [False, True, True, False]


@pytest.mark.parametrize(
    ("index", "samples"),
    [
        ([0, 1, 2], None),
        ([1, 2, 3], None),
        ([7, 3, 5], ["7", "3", "5"]),
        (["s1", "s2", "s3"], ["s1", "s2", "s3"]),
    ],
)
def test_an_index_that_pandas_wrote_is_left_out(tmp_path, index, samples, is_cut):
    frame = pd.DataFrame({"a": [1, 2, 3], "y": [0, 1, 0]}, index=index)
    frame.to_csv(tmp_path / "d.csv")
    with pytest.warns(FeatstreamWarning, match="the first column has no name and"):
        dataset = open_dataset(tmp_path / "d.csv")
    assert dataset.names == ["a"]
    assert dataset.samples == samples
    if samples is None:
        frame.rename_axis("Unnamed: 0").to_csv(tmp_path / "again.csv")
        with pytest.warns(FeatstreamWarning, match="counts the rows"):
            assert open_dataset(tmp_path / "again.csv").names == ["a"]


@pytest.mark.parametrize(
    ("text", "position"),
    [
        (",a,y\n0.5,1,0\n0.7,2,1\n", 1),
        (",a,y\n5,1,0\n5,2,1\n", 1),
        ("a,,y\n1,2,0\n", 2),
    ],
)
def test_a_column_without_a_name_is_refused(tmp_path, text, position):
    with pytest.raises(DataError, match=f"its column {position} has no name"):
        open_dataset(write(tmp_path, text))


COMMAS = "a,b,y\n1.5,red,0\n2.5,blue,1\n"


@pytest.mark.parametrize(
    ("name", "text", "columns", "said"),
    [
        ("d.csv", COMMAS.replace(",", ";"), [[1.5, 1], [2.5, 0]], "by semicolons"),
        ("d.csv", COMMAS.replace(",", "\t"), [[1.5, 1], [2.5, 0]], "by tabs"),
        ("d.csv", COMMAS.replace(",", "|"), [[1.5, 1], [2.5, 0]], "by bars"),
        ("d.csv", "a;b;y\n1,5;1;0\n-2,25;2;1\n", [[1.5, 1], [-2.25, 2]], "a comma"),
        ("d.csv", "a;b;y\n1,5;1.5;0\nx;2.5;1\n", [[0, 1.5], [1, 2.5]], "semicolons"),
        ("d.tsv", "a\tb\ty\n1\tx,3\t0\n4\t\t1\n", [[1, 0], [4, -1]], None),
    ],
)
def test_the_separator_is_found_and_said(tmp_path, name, text, columns, said, is_cut):
    """And a comma as the decimal point; tabs are usual in a ``.tsv``."""
    path = write(tmp_path, text, name)
    with warnings.catch_warnings(record=True) as caught:
        dataset = open_dataset(path)
    assert [said in str(warning.message) for warning in caught] == [True] * bool(said)
    assert dataset.names == ["a", "b"]
    assert as_array(dataset.source).tolist() == columns


@pytest.mark.parametrize("separator", ["", ";;", "é", '"', "\n"])
def test_a_separator_is_one_character(tmp_path, separator):
    path = write(tmp_path, "a;y\n1;0\n")
    with pytest.raises(ParameterError, match="`separator` must be one character"):
        open_dataset(path, separator=separator)
    for right, name in ((";", ";"), ("\t", "tab")):
        path = write(tmp_path, f"a{right}y\n1{right}0\n")
        assert open_dataset(path, separator=name).names == ["a"]


def test_values_for_missing_are_text(tmp_path):
    with pytest.raises(ParameterError, match=r"Got -99 of type int. Write na_values="):
        open_dataset(write(tmp_path, "a,y\n1,0\n"), na_values=[-99])
    np.savez(tmp_path / "d.npz", X=np.eye(2))
    with pytest.raises(ParameterError, match=r"`na_values` has no meaning for .npz"):
        open_dataset(tmp_path / "d.npz", na_values=["?"])


@pytest.mark.parametrize("kind", ["lz4", "zstd", "uncompressed", "stream", "batches"])
def test_arrow_files(tmp_path, kind):
    X = np.random.default_rng(0).normal(size=(20, 9))
    table = pa.table({"y": np.arange(20) % 2, **{f"g{j}": X[:, j] for j in range(9)}})
    path = tmp_path / "d.arrow"
    if kind in ("stream", "batches"):
        create = pa.ipc.new_stream if kind == "stream" else pa.ipc.new_file
        with create(path, table.schema) as file:
            file.write_table(table, max_chunksize=7)
    else:
        pa.feather.write_feather(table, path, compression=kind)
    dataset = open_dataset(path)
    assert dataset.y.tolist() == table["y"].to_pylist()
    np.testing.assert_array_equal(as_array(dataset.source), X)
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(DataError, match=r"cannot be read as .arrow"):
        open_dataset(path)
