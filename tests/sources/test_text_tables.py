"""Tables of text as other programs write them: encodings, comments, genes as rows."""

import gzip

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from featstream import SAOLA
from featstream.cli import main
from featstream.errors import DataError, FeatstreamWarning, ParameterError
from featstream.sources import as_source, open_dataset, open_features
from featstream.sources.values import LIMITS
from gather import as_array

TABLE = "a,b,y\n1,2.5,u\n3,4.5,v\n5,6.5,u\n"
VALUES = [[1, 2.5], [3, 4.5], [5, 6.5]]


def write(path, text, encoding="utf-8"):
    path.write_bytes(text.encode(encoding))
    return path


def check_table(dataset, names=("a", "b")):
    assert list(dataset.names) == list(names)
    assert as_array(dataset.source).tolist() == VALUES
    assert dataset.y.tolist() == ["u", "v", "u"]


def refusal(path, target=None, **options):
    with pytest.raises((DataError, ParameterError)) as caught:
        open_dataset(path, target, **options)
    return caught.value


@pytest.fixture(params=[False, True], ids=["held", "cut"])
def is_cut(request, monkeypatch):
    if request.param:
        monkeypatch.setattr(LIMITS, "csv_held", 0)
    return request.param


# Encodings ----------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_a_byte_order_mark_is_found(tmp_path, encoding, is_cut):
    check_table(open_dataset(write(tmp_path / "d.csv", TABLE, encoding)))


@pytest.mark.parametrize(
    ("encoding", "advice"), [("latin-1", "latin-1"), ("utf-16-le", "utf-16-le")]
)
def test_another_encoding_is_asked_for_and_read(tmp_path, encoding, advice, is_cut):
    path = write(tmp_path / "d.csv", TABLE.replace("a,b", "naïve,b"), encoding)
    error = refusal(path)
    assert f"pass encoding='{advice}'" in str(error)
    assert f"pass --encoding {advice}" in error.in_shell()
    check_table(open_dataset(path, encoding=encoding), names=("naïve", "b"))


def test_an_error_of_encoding_names_the_line(tmp_path):
    text = TABLE.replace("3,4.5,v", "3,4.5,café")
    error = refusal(write(tmp_path / "d.csv", text, "latin-1"))
    assert "line 3 is not written in utf-8: it has the byte 0xe9" in str(error)


def test_an_unknown_encoding_is_refused(tmp_path):
    error = refusal(write(tmp_path / "d.csv", TABLE), encoding="klingon")
    assert "`encoding` is unknown: 'klingon'" in str(error)


# Before the header --------------------------------------------------------------


def test_comments_before_the_header_are_skipped_and_said(tmp_path, is_cut):
    path = write(tmp_path / "d.csv", "# of March\n#, by hand\n" + TABLE)
    with pytest.warns(FeatstreamWarning, match="2 lines of comments .* are skipped"):
        check_table(open_dataset(path))


def test_a_header_may_be_a_comment(tmp_path):
    check_table(open_dataset(write(tmp_path / "d.csv", "#" + TABLE)))


@pytest.mark.parametrize("before", ["My table\n", "3 2\n", "My table\n\n"])
def test_a_title_is_refused_and_skipped_if_asked_for(tmp_path, before, is_cut):
    path = write(tmp_path / "d.csv", before + TABLE)
    error = refusal(path)
    assert "its first row has 1 value" in str(error)
    assert "pass skip_rows=1;" in str(error)
    assert "pass --skip-rows 1;" in error.in_shell()
    check_table(open_dataset(path, skip_rows=1))


def test_no_more_lines_are_skipped_than_there_are(tmp_path):
    error = refusal(write(tmp_path / "d.csv", TABLE), skip_rows=9)
    assert "it has 4 lines, and skip_rows=9 skips more" in str(error)


# R ------------------------------------------------------------------------------


@pytest.mark.parametrize("separator", [" ", "\t", ","])
def test_a_table_that_r_wrote_is_understood(tmp_path, separator, is_cut):
    """``write.table`` names the rows in a first column that the header leaves out."""
    lines = ['"a" "b" "y"', '"r1" 1 2.5 "u"', '"r2" 3 4.5 "v"', '"r3" 5 6.5 "u"']
    path = write(tmp_path / "d.txt", "\n".join(lines).replace(" ", separator))
    with pytest.warns(FeatstreamWarning, match="first column has no name"):
        dataset = open_dataset(path)
    check_table(dataset)
    assert list(dataset.samples) == ["r1", "r2", "r3"]


# Rows ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "found"), [("3,4.5", "2 values"), ("3", "1 value"), ("3,4,5,v", "4 values")]
)
def test_a_ragged_row_is_named_with_its_number(tmp_path, row, found):
    error = refusal(write(tmp_path / "d.csv", TABLE.replace("3,4.5,v", row)))
    assert f"row 2 has {found} but the header 3" in str(error)


# Kinds of files -----------------------------------------------------------------


@pytest.mark.parametrize("name", ["d.tab", "d.data", "d.txt", "d.TXT.gz"])
def test_tables_under_other_names_are_sniffed(tmp_path, name):
    content = TABLE.replace(",", "\t").encode()
    path = tmp_path / name
    path.write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    check_table(open_dataset(path))


@pytest.mark.parametrize("name", ["d.txt", "d.data"])
def test_svmlight_under_other_names_is_sniffed(tmp_path, name):
    path = write(tmp_path / name, "# comment\n1 qid:1 1:0.5 3:2\n-1 2:1\n")
    dataset = open_dataset(path)
    assert as_array(dataset.source).tolist() == [[0.5, 0, 2], [0, 1, 0]]
    assert dataset.y.tolist() == [1, -1]


@pytest.mark.parametrize(
    ("suffix", "code"),
    [
        (".mtx", "scipy.io.mmread('d.mtx')"),
        (".mat", "scipy.io.loadmat('d.mat')"),
        (".h5", "h5py.File('d.h5')"),
        (".arff", "scipy.io.arff.loadarff('d.arff')"),
        (".xlsx", "pandas.read_excel('d.xlsx').to_parquet('NEW.parquet')"),
        (".vcf", "plink2 --vcf 'd.vcf' --make-bed"),
    ],
)
def test_files_of_other_kinds_get_a_line_that_converts_them(tmp_path, suffix, code):
    error = refusal(write(tmp_path / f"d{suffix}", ""))
    assert f"Files of the kind {suffix} are not read" in str(error)
    assert code in str(error)


# Targets in files ---------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_folder_of_tables_takes_a_target_file(tmp_path, suffix):
    labels = write(tmp_path / "l.csv", "status\nu\nv\nu\n")
    folder = tmp_path / "parts"
    folder.mkdir()
    frame = pd.DataFrame(VALUES, columns=["a", "b"])
    for name in ("a", "b"):
        getattr(frame[[name]], f"to_{suffix}")(folder / f"{name}.{suffix}", index=False)
    dataset = open_dataset(folder, str(labels))
    assert as_array(dataset.source).tolist() == VALUES
    assert dataset.y.tolist() == ["u", "v", "u"]
    assert main(["select", str(folder), "--target", str(labels), "-q"]) == 0


def test_a_target_file_may_lie_in_the_folder(tmp_path):
    labels = write(tmp_path / "l.csv", "status\nu\nv\nu\n")
    write(tmp_path / "d.csv", "a,b\n1,2.5\n3,4.5\n5,6.5\n")
    dataset = open_dataset(tmp_path, str(labels))
    assert as_array(dataset.source).tolist() == VALUES


# Genes as rows ------------------------------------------------------------------

GENES = [[1, np.nan, 7], [2, 4.5, 8], [3.5, 6, -9]]
"""Three samples of three genes."""


@pytest.mark.parametrize("header", ["gene,s1,s2,s3", ",s1,s2,s3", "s1,s2,s3"])
@pytest.mark.parametrize("separator", [",", "\t"])
@pytest.mark.parametrize("quote", ["", '"'])
def test_genes_may_be_rows(tmp_path, header, separator, quote):
    lines = [header, "TP53,1,2,3.5", "MYC,NA,4.5,6", "007,7,8,-9"]
    fields = [[*line.split(",")] for line in lines]
    for row in fields[1:]:
        row[0] = f"{quote}{row[0]}{quote}"
    text = "\r\n".join(separator.join(row) for row in fields)
    path = write(tmp_path / "d.csv", text)
    labels = write(tmp_path / "l.csv", "id,y\ns2,b\ns1,a\ns3,b\n")
    dataset = open_dataset(path, str(labels), orient="features")
    assert list(dataset.names) == ["TP53", "MYC", "007"]
    assert list(dataset.samples) == ["s1", "s2", "s3"]
    assert dataset.y.tolist() == ["a", "b", "b"]
    np.testing.assert_array_equal(as_array(dataset.source), GENES)


def test_a_gene_table_of_many_chunks_is_that_of_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(LIMITS, "csv_chunk", 2000)
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 9, (30, 200)) / 4, np.arange(30) % 2
    X[:, 11] += 3 * y
    frame = pd.DataFrame(X.T, [f"g{j}" for j in range(200)])
    frame.columns = [f"s{i}" for i in range(30)]
    frame.to_csv(tmp_path / "d.tsv", sep="\t")
    source = open_features(tmp_path / "d.tsv", orient="features").source
    np.testing.assert_array_equal(as_array(source), X)
    assert next(block.start for block in source.blocks(150)) == 150
    expected = SAOLA().fit(X, y).selected_
    np.testing.assert_array_equal(SAOLA().fit(source, y).selected_, expected)
    again = source.reopener()()
    assert again.fingerprint == source.fingerprint
    np.testing.assert_array_equal(as_array(again), X)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "g,s1,s2\nA,1,x\nB,2,3\n",
            "the column 's2' has text, 'x' for the feature 'A'",
        ),
        ("g,about,s1\nA,words,1\nB,more,3\n", "the column 'about' has text"),
        ("g,s1,s2\nA,1\nB,2,3\n", "row 1 has 2 values but the header 3"),
        ("g,s1,s2\nA,1,2\nA,2,3\n", "'A' already seen"),
        ("g\nA\nB\n", "its rows have no values"),
        ("g,s1\n,1\nB,2\n", "row 1 has no name"),
        ("", "it is empty"),
    ],
)
def test_a_bad_gene_table_is_explained(tmp_path, text, reason):
    with pytest.raises(DataError, match=reason):
        open_features(write(tmp_path / "d.csv", text), orient="features")


def test_a_table_of_genes_is_suspected_where_there_is_no_target(tmp_path):
    error = refusal(write(tmp_path / "d.csv", ",s1,s2\nTP53,1,2\nMYC,3,4\n"))
    assert "If a row is a feature and not a sample, pass orient='features'" in str(
        error
    )


# Frames -------------------------------------------------------------------------


def test_a_frame_of_dask_keeps_its_names():
    frame = pd.DataFrame(VALUES, columns=["a", "b"])
    source = as_source(dd.from_pandas(frame, npartitions=2))
    assert list(source.names) == ["a", "b"]
    assert as_array(source).tolist() == VALUES
