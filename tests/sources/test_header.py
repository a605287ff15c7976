"""A table of text that begins with data is refused, or read as such if that is said."""

import csv
import json

import numpy as np
import pytest

from featstream.cli import main
from featstream.errors import DataError
from featstream.sources import open_dataset
from featstream.sources.csv_dialect import looks_like_data

pytest.importorskip("pyarrow")

IRIS = """5.1,3.5,1.4,0.2,setosa
4.9,3.0,1.4,0.2,setosa
7.0,3.2,4.7,1.4,versicolor
6.4,3.2,4.5,1.5,versicolor
"""
IDENTIFIED = "s1,0.5,1\ns2,0.7,0\ns3,0.1,1\n"
COUNTS = "0,3,0,1\n1,0,2,0\n0,0,1,1\n2,1,0,0\n"


def rows(text):
    return list(csv.reader(text.splitlines()))


@pytest.mark.parametrize(
    "text",
    [
        IRIS,
        COUNTS,
        "s1,0.5,1\ns2,0.7,0\ns3,0.1,1\n",
        "1,0\n0,0\n1,1\n",
        ",3\n1,2\n1,4\n",
    ],
    ids=["words", "counts", "identified", "two", "gap"],
)
def test_data_look_like_data(text):
    assert looks_like_data(rows(text))
    n_columns = len(rows(text)[0])
    header = ",".join(f"g{i}" for i in range(n_columns))
    assert not looks_like_data(rows(f"{header}\n{text}"))


@pytest.mark.parametrize(
    "header",
    ["1,2,3,4,class", "400,402.5,405,407.5,class", "1017,5594,207,2064,class"],
    ids=["counted", "wavelengths", "identifiers of genes"],
)
def test_numbers_may_be_names(header):
    assert not looks_like_data(rows(f"{header}\n{IRIS}"))


def test_few_rows_do_not_tell():
    assert not looks_like_data(rows("1,0\n0,1\n"))
    assert not looks_like_data([])


def test_a_first_row_of_data_is_refused_with_the_remedy(tmp_path, capsys):
    path = tmp_path / "iris.csv"
    path.write_text(IRIS)
    message = r"first row looks like data.*'5\.1', '3\.5'.*no_header=True.*last one x4"
    with pytest.raises(DataError, match=message):
        open_dataset(path, "setosa")
    data = open_dataset(path, "x4", no_header=True)
    assert data.names == ["x0", "x1", "x2", "x3"]
    assert data.y.tolist() == ["setosa"] * 2 + ["versicolor"] * 2
    assert next(data.source.blocks()).columns[0].tolist() == [5.1, 3.5, 1.4, 0.2]


def test_the_label_of_the_first_row_is_no_name_of_a_target(tmp_path, capsys):
    """The case of a user who counts columns, or has no header."""
    path = tmp_path / "counts.csv"
    rng = np.random.default_rng(0)
    np.savetxt(path, rng.integers(0, 3, (40, 6)), fmt="%d", delimiter=",")
    assert main(["select", str(path), "--target", "1", "-q"]) == 1
    assert "--no-header" in capsys.readouterr().err
    command = ["select", str(path), "--target", "x5", "--no-header", "-q", "--json"]
    assert main(command) == 0
    assert json.loads(capsys.readouterr().out)["n_samples"] == 40


def test_a_run_without_a_header_is_resumed_and_other_separators_do(tmp_path, capsys):
    path = tmp_path / "iris.csv"
    path.write_text("# measured in cm\n" + IRIS.replace(",", ";"))
    run = str(tmp_path / "run")
    command = ["select", str(path), "--target", "x4", "--no-header", "-o", run, "-q"]
    assert main([*command, "--measure", "su"]) == 0
    assert main(["resume", run, "-q"]) == 0
    assert open_dataset(path, "x4", no_header=True).source.n_samples == 4
