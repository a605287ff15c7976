"""Numbers in disguise, marks of missing values, and sentinels among numbers."""

import warnings

import numpy as np
import pandas as pd
import pytest

from featstream.cli import main
from featstream.errors import DataError, FeatstreamWarning
from featstream.sources import FrameSource, open_dataset
from featstream.sources.sentinels import count_sentinel
from featstream.sources.text_values import is_disguised_number, refuse_hidden_numbers
from gather import as_array

DISGUISES = [
    *("1,234", "1,234.5", "-12.345.678", "1.234,5", "1'234", "1 234", "1\u00a0234"),
    *("1,5", ",5", "5.1%", "5.1 %", "$5", "-$5", "5 €", "<0.1", ">=30", "~7", "1.2*"),
    *("\u22123.5", "(1,234)", "12‰", "1_000"),
]
ORDINARY = [
    *("1", "-1.5e3", "+.5", "nan", "red", "2020-01-31", "12:30", "1.2.3", "A12", "12a"),
    *("1,23,4", "%", "<", "", "5-10", "10.0.0.1"),
]


@pytest.mark.parametrize("text", DISGUISES)
def test_a_number_in_disguise_is_recognised(text):
    assert is_disguised_number(text)


@pytest.mark.parametrize("text", ORDINARY)
def test_plain_numbers_and_words_are_not_disguised(text):
    assert not is_disguised_number(text)


def with_one(odd, n=300, row=7):
    """A table whose column ``a`` is numbers but for some rows."""
    values = [f"{i % 17}.5" for i in range(n)]
    for step in range(3):
        values[row + 50 * step] = odd
    lines = [f'"{value}",{"uv"[i % 2]}' for i, value in enumerate(values)]
    return "\n".join(["a,y", *lines])


def refusal(path, **options):
    with pytest.raises(DataError) as caught:
        list(open_dataset(path, **options).source.blocks())
    return caught.value


@pytest.mark.parametrize("odd", ["#DIV/0!", *DISGUISES])
def test_a_column_of_numbers_but_for_some_names_the_row_and_the_value(tmp_path, odd):
    (tmp_path / "d.csv").write_text(with_one(odd), encoding="utf-8")
    error = str(refusal(tmp_path / "d.csv"))
    first = "Feature 'a' has numbers, and "
    assert f"{first}{odd!r} at row 7, the first of 3 such values" in error


@pytest.mark.parametrize("is_cut", [False, True])
@pytest.mark.parametrize(
    ("odd", "options", "value"),
    [
        ("1,234", {"thousands": ","}, 1234),
        ("-1 234.5", {"thousands": " "}, -1234.5),
        ("#DIV/0!", {"na_values": "#DIV/0!"}, np.nan),
        ("<0.1", {"na_values": ["<0.1", "n"]}, np.nan),
    ],
)
def test_the_remedies_work(tmp_path, odd, options, value, is_cut, monkeypatch):
    if is_cut:
        monkeypatch.setattr("featstream.sources.values.LIMITS.csv_held", 0)
    (tmp_path / "d.csv").write_text(with_one(odd))
    column = as_array(open_dataset(tmp_path / "d.csv", **options).source)[:, 0]
    expected = np.array([i % 17 + 0.5 for i in range(300)])
    expected[[7, 57, 107]] = value
    np.testing.assert_array_equal(column, expected)


def test_a_decimal_comma_between_quotes_is_read_if_asked_for(tmp_path):
    lines = [f'"{i},{i % 10}",{i % 2}' for i in range(20)]
    (tmp_path / "d.csv").write_text("\n".join(["a,y", *lines]))
    assert "pass decimal=','" in str(refusal(tmp_path / "d.csv"))
    source = open_dataset(tmp_path / "d.csv", decimal=",").source
    assert as_array(source)[:, 0].tolist() == [i + i % 10 / 10 for i in range(20)]


def test_a_plus_before_a_number_changes_nothing(tmp_path):
    (tmp_path / "d.csv").write_text("a,b,y\n+1,+1.5,u\n-1,2,v\n")
    assert as_array(open_dataset(tmp_path / "d.csv").source).tolist() == [
        [1, 1.5],
        [-1, 2],
    ]


def test_python_and_the_shell_get_their_own_advice(tmp_path, capsys):
    path = tmp_path / "d.csv"
    path.write_text(with_one("1,234"))
    error = refusal(path)
    assert "pass thousands=','" in str(error)
    assert "--" not in str(error)
    assert main(["select", str(path), "-q"]) == 1
    shown = capsys.readouterr().err
    assert "pass --thousands ," in shown
    assert "thousands=" not in shown
    assert main(["info", str(path), "--thousands", ","]) == 0
    path.write_text(with_one("#DIV/0!"))
    assert main(["select", str(path), "-q"]) == 1
    assert "pass --na-values '#DIV/0!'" in capsys.readouterr().err
    assert main(["info", str(path), "--na-values", "#DIV/0!"]) == 0


def test_nine_in_ten_is_the_least_share_of_numbers():
    words = ["red", "blue"]
    refuse_hidden_numbers([*map(str, range(17)), *words], "It")  # 17 of 19 is less
    with pytest.raises(DataError, match="'red' at row 18"):
        refuse_hidden_numbers([*map(str, range(18)), *words], "It")


def test_bounds_by_themselves_are_categories():
    refuse_hidden_numbers(["<50", ">=50"] * 10, "It")
    with pytest.raises(DataError, match=r"'<0\.1' at row 1"):
        refuse_hidden_numbers(["3.5", "<0.1"] * 10, "It")


def test_what_was_said_to_be_categories_may_be_disguised_numbers():
    frame = pd.DataFrame({"a": pd.Categorical(["1,5", "2,5"] * 3)})
    assert as_array(FrameSource(frame)).tolist() == [[0], [1]] * 3
    with pytest.raises(DataError, match="'1,5' at row 0"):
        list(FrameSource(frame.astype(str)).blocks())


def test_a_target_of_digits_and_words_is_classes():
    labels = ["0", "1", "2"] * 20 + ["other"]
    refuse_hidden_numbers(labels, "The target", is_target=True)
    numbers = [*map(str, range(60)), "#DIV/0!"]
    with pytest.raises(DataError, match="#DIV/0!"):
        refuse_hidden_numbers(numbers, "The target", is_target=True)


# Sentinels ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("others", "value", "n"),
    [
        ([0.5, 3.0, 20.0], -999, 2),
        ([18, 35, 60, 97], 99, 0),  # 2 from 97, which is 79 from 18
        ([0, 1], 99, 0),  # too few other values to be far from
        ([1, 2, 3], 99999, 1),  # not repeated
        ([-50.0, 10.0, 70.0], 999, 3),
    ],
)
def test_a_sentinel_is_repeated_and_far_outside(others, value, n):
    times = max(n, 2) if n != 1 else 1
    column = np.array([*others, *[value] * times], float)
    assert count_sentinel(column, value) == (n if n != 1 else 0)


@pytest.mark.parametrize("kind", ["frame", "csv", "parquet"])
def test_sentinels_are_a_warning_with_their_count(tmp_path, kind):
    frame = pd.DataFrame(
        {"a": [1.5, 2.5, -999, 4.5, -999, 3.0], "b": [9999, 9999, 9999, 7, 5, 6]}
    )
    frame["y"] = list("uvuvuv")
    if kind == "frame":
        source = FrameSource(frame.drop(columns="y"))
    else:
        path = tmp_path / f"d.{kind}"
        getattr(frame, f"to_{kind}")(path, index=False)
        source = open_dataset(path).source
    with pytest.warns(FeatstreamWarning) as caught:
        list(source.blocks())
    (said,) = [str(w.message) for w in caught if "Far outside" in str(w.message)]
    assert "'a' (-999, 2 times)" in said
    assert "'b' (9999, 3 times)" in said
    assert "na_values=['-999', '9999']" in said
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        list(source.blocks())  # said once


def test_the_advice_about_sentinels_works_in_the_shell(tmp_path, capsys):
    path = tmp_path / "d.csv"
    rows = [f"{i % 7}.5,{i % 5},{'uv'[i % 2]}" for i in range(60)]
    path.write_text("\n".join(["a,b,y", *rows, *["-999,9999,u"] * 2]))
    assert main(["select", str(path), "-q"]) == 0
    said = capsys.readouterr().err
    assert "pass --na-values=-999,9999 for a file" in said
    flags = ["--na-values=-999,9999", "--measure", "su", "--missing", "category"]
    assert main(["select", str(path), "-q", *flags]) == 0
    assert "Far outside" not in capsys.readouterr().err


def test_a_sentinel_is_found_beside_infinity():
    values = [-np.inf, 9999, 1.5, 2.5, 9999, 3.5]
    source = FrameSource(pd.DataFrame({"a": values}))
    with pytest.warns(FeatstreamWarning, match=r"'a' \(9999, 2 times\)"):
        list(source.blocks())


def test_sentinels_become_missing_if_asked_for(tmp_path):
    (tmp_path / "d.csv").write_text("a,y\n1.5,u\n-999,v\n2.5,u\n-999,v\n7.5,u\n")
    dataset = open_dataset(tmp_path / "d.csv", na_values="-999")
    column = as_array(dataset.source)[:, 0]
    np.testing.assert_array_equal(column, [1.5, np.nan, 2.5, np.nan, 7.5])
