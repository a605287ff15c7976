"""Wide text by blocks gives the columns that pyarrow gives of the whole."""

import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from featstream.sources import csv as csv_reader
from featstream.sources.csv import CsvTable
from featstream.sources.tables import TableSource, open_table
from featstream.sources.values import LIMITS
from gather import as_array, refused
from strategies import examples

PLAIN = ["1", "-2", "3.5", "", "NA", "x", "true", " 7", "1e400", "é", "2024-01-01"]
NUMBERS = [
    *("-0", "007", "5.", ".5", "+5", "-1e5", "2E-3", "0x1F", "--1", "1.5.2", "1_000"),
    *("1e", "4.9e-324", "1.7976931348623157e308", "0.1234567890123456789012345", "-.5"),
]
LARGE = ["9223372036854775807", "-9223372036854775808", "123456789012345678", "1.5"]
QUOTED = ['"a,b"', '"say ""no"""', '"two\nlines"', '5"', '"open"shut']
KINDS = st.sampled_from(
    [
        *([*PLAIN, *QUOTED, *NUMBERS], ["1", "-2", "30"], ["1.5", "-2", "1e-7"]),
        *(["", "7"], NUMBERS, LARGE),
    ]
)
COLUMNS = KINDS.flatmap(
    lambda cells: st.lists(st.sampled_from(cells), min_size=5, max_size=5)
)


def in_blocks(path, block_bytes=1, held_bytes=0, chunk_bytes=1 << 20):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LIMITS, "csv_held", held_bytes)
        patch.setattr(LIMITS, "csv_block", block_bytes)
        patch.setattr(LIMITS, "csv_chunk", chunk_bytes)
        return CsvTable(path)


@examples(80)
@given(
    columns=st.lists(COLUMNS, min_size=1, max_size=6),
    n_rows=st.integers(0, 5),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    is_ended=st.booleans(),
    block_bytes=st.integers(1, 60),
    chunk_bytes=st.integers(1, 9),
)
def test_blocks_are_read_as_the_whole_is(
    tmp_path_factory, columns, n_rows, end, is_ended, block_bytes, chunk_bytes
):
    """Quotes, line ends of all three kinds, missing values, blocks of any width.

    To the bit, with the same types. The text is read in chunks that end anywhere; the
    header is in the first ones. By fuzzing, the whole is compared with pyarrow.
    """
    n_fields = len(columns)
    header = [f'"n{j}"' if j % 2 else f"n{j}" for j in range(n_fields)]
    rows = [header, *list(zip(*columns, strict=True))[:n_rows]]
    lines = [",".join(row) for row in rows if row != ("",)]  # an empty line is none
    path = tmp_path_factory.mktemp("csv") / "d.csv"
    text = end.join(lines) + end * (is_ended or len(lines) == 1)
    path.write_bytes(text.encode())
    whole = CsvTable(path)
    table = in_blocks(path, block_bytes, len(lines[0]) + 2, chunk_bytes)
    assert (table.names, table.n_rows) == (whole.names, whole.n_rows)
    for order in (range(n_fields), range(n_fields)[::-1]):
        found, expected = table.read(order), whole.read(order)
        assert found.schema == expected.schema
        assert repr(found.to_pydict()) == repr(expected.to_pydict())


def write_wide(path, n_rows=30, n_columns=50):
    X = np.random.default_rng(0).integers(-9, 9, (n_rows, n_columns))
    names = [f"g{j}" for j in range(n_columns)]
    lines = [",".join(names), *(",".join(map(str, row)) for row in X)]
    path.write_text("\n".join(lines))
    return X


def test_few_columns_are_parsed_at_a_time(tmp_path, monkeypatch):
    """However short they are: each takes the parser ten kilobytes."""
    X = write_wide(tmp_path / "d.csv")
    monkeypatch.setattr(LIMITS, "csv_columns", 8)
    table = CsvTable(tmp_path / "d.csv")
    assert (table._width, table._spill.n_parts) == (8, 7)
    np.testing.assert_array_equal(as_array(TableSource(table)), X)


def test_each_block_is_parsed_once(tmp_path, monkeypatch):
    write_wide(tmp_path / "d.csv")
    table = in_blocks(tmp_path / "d.csv", block_bytes=400)
    parsed = []
    real = csv_reader._parse_block
    monkeypatch.setattr(
        csv_reader, "_parse_block", lambda *a, **k: parsed.append(1) or real(*a, **k)
    )
    list(TableSource(table, block_bytes=3 * 8 * 30).blocks())
    assert len(parsed) == table._spill.n_parts > 3


def test_compressed_text(tmp_path, monkeypatch):
    X = write_wide(tmp_path / "d.csv")
    path = tmp_path / "d.csv.gz"
    path.write_bytes(gzip.compress((tmp_path / "d.csv").read_bytes()))
    monkeypatch.setattr(LIMITS, "csv_block", 200)
    for held in (0, 1 << 20):
        monkeypatch.setattr(LIMITS, "csv_held", held)
        found = as_array(open_table(path, "g49").source)
        np.testing.assert_array_equal(found, X[:, :-1])


def test_odd_names_do_not_matter(tmp_path):
    """pyarrow would take a byte order mark from the first name of a block.

    That of the file is no part of its first name.
    """
    path = tmp_path / "d.csv"
    path.write_text('\ufeffa,\ufeffb,c,"d\ne"\n1,x,2.5,3\n2,y,,4\n')
    table = in_blocks(path)
    assert table.names == ["a", "\ufeffb", "c", "d\ne"]
    found = table.read(range(4))
    assert found.to_pydict() == CsvTable(path).read(range(4)).to_pydict()


def test_the_fingerprint_is_of_the_text(tmp_path):
    write_wide(tmp_path / "a.csv")
    whole, cut = CsvTable(tmp_path / "a.csv"), in_blocks(tmp_path / "a.csv")
    assert whole.fingerprint == cut.fingerprint
    text = (tmp_path / "a.csv").read_text()
    (tmp_path / "b.csv").write_text(text[:-1] + "7")
    assert CsvTable(tmp_path / "b.csv").fingerprint != whole.fingerprint


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a,b,c\n1,2,3\n4,5\n", "row 2 has 2 values but the header 3."),
        ("a,b,c\n1,2,3,4\n", "row 1 has more than 3 values but the header 3."),
        ("a,b\n1\n", "row 1 has 1 value but the header 2."),
        ('a,b\n1,"2\n3,4\n', "row 1 has a quote that is never closed."),
        ("a,b,a\n1,2,3\n", "Feature name 'a' already seen at position 0 (now 2)."),
        ("a" * 300, "its first 300 bytes hold no end of a line."),
        ("\n\n", "it is empty."),
        ('a,"b\n1,2\n', "row 0 has a quote that is never closed."),
        ("a," + "b" * 200_000 + "\n1,2\n", "its header cannot be read: field larger"),
    ],
)
def test_bad_text_is_explained(tmp_path, monkeypatch, text, reason):
    monkeypatch.setattr(LIMITS, "csv_held", 0)
    monkeypatch.setattr(LIMITS, "csv_block", 1)
    path = tmp_path / "d.csv"
    path.write_text(text)
    with refused(f"{path}: {reason}", reason):
        open_table(path, optional=())
