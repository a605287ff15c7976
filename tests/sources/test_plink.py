"""Genotypes of PLINK: what the bits mean, and what is done about missing ones."""

import numpy as np
import pytest
from bed_reader import to_bed
from hypothesis import given
from hypothesis import strategies as st

from featstream import SAOLA, SymmetricalUncertainty
from featstream.errors import (
    DataError,
    DataTypeError,
    FeatstreamWarning,
    MissingFileError,
    ParameterError,
)
from featstream.sources import open_dataset, open_plink
from featstream.sources.plink import decode_genotypes, fill_with_mode
from gather import as_array, gather, refused
from science_files import write_plink

G = np.array([[0, 1, 2, -1], [1, 1, 0, 0], [2, 0, 0, 2], [0, 2, 1, 2], [1, 2, 2, -1]])
WHOLE = np.abs(G)
Y = np.array([1, 2, 1, 2, 2])


def test_another_reader_agrees(tmp_path):
    """bed-reader writes, we read; and so it is in `write_plink`."""
    values = np.random.default_rng(0).integers(0, 3, (23, 40)).astype(np.int8)
    to_bed(tmp_path / "theirs.bed", values, properties={"pheno": np.arange(23) % 2 + 1})
    dataset = open_plink(tmp_path / "theirs.bed")
    np.testing.assert_array_equal(gather(dataset.source)[0], values)
    assert dataset.y.tolist() == [1.0, 2.0] * 11 + [1.0]


def test_a_missing_genotype_is_an_error_or_takes_the_mode(tmp_path):
    path = write_plink(tmp_path / "d.bed", G, Y)
    message = "variant 'x3' has 2 missing .* sample 'fam s0'.*missing='mode'"
    with pytest.raises(DataError, match=message):
        list(open_plink(path).source.blocks())
    filled = gather(open_plink(path, missing="mode").source)
    expected = np.where(G < 0, 2, G)  # of x3: 0, 2, 2
    np.testing.assert_array_equal(filled[0], expected)
    assert not filled[2].any()


@pytest.mark.parametrize("missing", ["mode", "category"])
def test_variants_without_any_genotype_are_named_once(tmp_path, missing):
    """They are constants, so irrelevant: positions in the file stay as they are."""
    G = np.tile(np.array([[0, 1, 2], [1, 0, 2], [2, 1, 0], [0, 2, 1]]), (1, 4))
    G[:, [4, 7]] = -1
    path = write_plink(tmp_path / "d.bed", G, [1, 2, 1, 2])
    source = open_plink(path, missing=missing).source
    source.block_bytes = 8  # two variants
    with pytest.warns(FeatstreamWarning, match="2 of 12 .*: 'x4', 'x7'") as caught:
        columns = as_array(source)
    assert len(caught) == 1
    assert np.ptp(columns[:, [4, 7]], axis=0).tolist() == [0, 0]
    with pytest.warns(FeatstreamWarning, match="1 of 12 variants .*: 'x7'"):
        list(source.blocks_at(np.array([7, 0])))


def test_missing_genotypes_may_be_a_category(tmp_path):
    """Of a variant that is then no number: Fisher's Z refuses it, SU counts four."""
    path = write_plink(tmp_path / "d.bed", G, Y)
    dataset = open_dataset(path, missing="category")
    found, _, nominal = gather(dataset.source)
    np.testing.assert_array_equal(found, np.where(G < 0, 3, G))
    assert nominal.tolist() == [False, False, False, True]
    with pytest.raises(DataTypeError, match="'x3' is text or categorical"):
        SAOLA(measure="fisher-z").start(dataset.y).consume(dataset.source)
    measure = SymmetricalUncertainty(missing="category")
    floats = np.where(G < 0, np.nan, G)
    expected = SAOLA(measure=measure).fit(floats, Y)
    stream = SAOLA(measure="su").start(dataset.y).consume(dataset.source)
    assert stream.selected_.tolist() == expected.selected_.tolist()
    assert stream.scores_.tolist() == expected.scores_.tolist()


def test_variants_without_identifier_are_named_by_place(tmp_path):
    names = ["rs1", ".", ".", "rs2"]
    dataset = open_plink(write_plink(tmp_path / "d.bed", WHOLE, Y, names))
    assert dataset.names == ["rs1", "1:101:A:G", "1:102:A:G", "rs2"]


def test_the_phenotype_is_that_of_the_family_file(tmp_path):
    cases = [
        (["1", "2", "1", "2", "2"], [1, 2, 1, 2, 2]),
        (["0", "1", "0", "1", "1"], [0, 1, 0, 1, 1]),  # 0 is missing beside 2 alone
        (["1.5", "2", "0", "7", "8"], [1.5, 2, 0, 7, 8]),
        ([*"abaaa"], [*"abaaa"]),
        (["-9"] * 5, None),
        (["0"] * 5, None),
        (["NA", "-9", "-9", "NA", "NA"], None),
        (["-9.0", "-9", "-9.00", "NA", "NA"], None),
    ]
    for phenotypes, expected in cases:
        y = open_plink(write_plink(tmp_path / "d.bed", WHOLE, phenotypes)).y
        assert expected is y is None or y.tolist() == expected


def test_a_missing_phenotype_names_the_sample(tmp_path):
    for lost in ("0", "-9", "-9.0", "-9.000", "NA"):
        values = ["1", "2", lost, "1", "2"]
        path = write_plink(tmp_path / "d.bed", WHOLE, values)
        message = r"1 of 5 .* 'column 6 of d\.fam', the first at row 2 \('fam s2'\)"
        with pytest.raises(DataError, match=message):
            open_dataset(path)
        dataset = open_dataset(path, drop_unlabelled=True)
        assert dataset.y.tolist() == [1, 2, 1, 2]
        assert dataset.samples == ["fam s0", "fam s1", "fam s3", "fam s4"]
        expected = np.delete(as_array(open_plink(path).source), 2, axis=0)
        np.testing.assert_array_equal(as_array(dataset.source), expected)


def test_phenotypes_come_from_a_file_in_any_order(tmp_path):
    path = write_plink(tmp_path / "d.bed", WHOLE, ["-9"] * 5)
    plain = "\n".join(f"fam s{i} {y}" for i, y in list(enumerate(Y))[::-1])
    (tmp_path / "plain.txt").write_text("other s9 2\n" + plain)
    assert open_plink(path, str(tmp_path / "plain.txt")).y.tolist() == Y.tolist()
    lines = [f"fam\ts{i}\t{10 * y}\tgroup{y}" for i, y in enumerate(Y)]
    table = tmp_path / "table.tsv"
    table.write_text("\n".join(["#FID\tIID\theight\tstatus", *lines]))
    assert open_plink(path, f"{table}:height").y.tolist() == (10 * Y).tolist()
    assert open_plink(path, f"{table}:status").y.tolist()[:2] == ["group1", "group2"]
    table.write_text("\n".join(lines))
    assert open_plink(path, f"{table}:3").y.tolist() == (10 * Y).tolist()


BAD_PHENOTYPES = {
    "fam s0 1\nfam s1 2\n": "its first pair of columns should name the samples, and 3 "
    "are not there: 'fam s2', 'fam s3'",
    "fam s0 1\nfam s0 2\n": "its first pair of columns has the sample 'fam s0' twice",
    "fam s0 1 2\n": "the target column is ambiguous. Write FILE:COLUMN, with one of: "
    "'3', '4'.",
    "FID IID bmi\nfam s0 1\n": "it has no column 'age' for a target. Its columns are: "
    "'bmi'.",
    "fam s0 1\nfam s1\n": "line 2 has 2 fields, and the first 3",
    "": "it has 0 columns. It needs family, person and phenotype",
}


@pytest.mark.parametrize("text", BAD_PHENOTYPES)
def test_bad_phenotypes_are_refused(tmp_path, text):
    path = write_plink(tmp_path / "d.bed", WHOLE, ["-9"] * 5)
    (tmp_path / "p.txt").write_text(text)
    column = ":age" if "bmi" in text else ""
    reason = f"{tmp_path}/p.txt: {BAD_PHENOTYPES[text]}"
    with refused(reason, reason):
        open_plink(path, f"{tmp_path}/p.txt{column}")


BAD_FILES = [
    ("bed", lambda c: b"PK" + c[2:], "first bytes are not those of a PLINK .bed"),
    ("bed", lambda c: c[:2] + b"\0" + c[3:], "by sample.* --make-bed"),
    ("bed", lambda c: c[:2] + b"\7" + c[3:], "third byte is 7"),
    ("bed", lambda c: c[:-1], r"10 bytes long, but 4 variants .* take\s11. It is cut"),
    ("bim", lambda c: b"", "11 bytes long, but 0 variants"),
    ("fam", lambda c: b"", r"0 sample\(s\)"),
    ("bim", lambda c: c + b"1 rs9 0 17\n", r"d\.bim: line 5 has 4 fields, and not 6"),
    ("fam", lambda c: c + b"f s9 0 0 1 1 1\n", r"d\.fam: line 6 has 7 fields"),
    ("bim", lambda c: c.replace(b"x3", b"x1"), r"'x1' already .* position 1 \(now 3\)"),
    ("bim", lambda c: b"\xff\xfe" + c, r"d\.bim cannot be read as \.bim: 'utf-8'"),
    ("bim", None, r"no file '.*d\.bim'"),
    ("fam", None, r"no file '.*d\.fam'"),
]


@pytest.mark.parametrize(("suffix", "damage", "reason"), BAD_FILES)
def test_bad_files_are_refused(tmp_path, suffix, damage, reason):
    write_plink(tmp_path / "d.bed", WHOLE, Y)
    path = tmp_path / f"d.{suffix}"
    content = path.read_bytes()
    path.unlink()
    if damage is not None:
        path.write_bytes(damage(content))
    with pytest.raises((DataError, MissingFileError), match=reason) as caught:
        open_plink(tmp_path / "d.bed")
    assert str(tmp_path) in str(caught.value)


def test_a_wrong_option_is_refused(tmp_path):
    path = write_plink(tmp_path / "d.bed", WHOLE, Y)
    with pytest.raises(ParameterError, match="must be 'error', 'mode' or 'category'"):
        open_plink(path, missing="mean")


@given(st.lists(st.lists(st.sampled_from([-1, 0, 1, 2]), min_size=1, max_size=13)))
def test_genotypes_are_unpacked_and_the_mode_is_the_commonest(rows):
    """Against the table of the format, for every number of samples modulo four."""
    bits = {2: 0b00, -1: 0b01, 1: 0b10, 0: 0b11}
    for row in rows:
        n_bytes = -(-len(row) // 4)
        packed = np.full((1, n_bytes), 0xFF, np.uint8)  # what is beyond is not read
        for i, copies in enumerate(row):
            shift = 2 * (i % 4)
            packed[0, i // 4] &= ~(3 << shift) & 0xFF
            packed[0, i // 4] |= bits[copies] << shift
        found = np.empty((1, len(row)), np.int8)
        counts = np.empty((1, 4), np.int64)
        decode_genotypes(packed, len(row), found, counts)
        assert found[0].tolist() == [3 if copies < 0 else copies for copies in row]
        assert counts[0].tolist() == [row.count(copies) for copies in (0, 1, 2, -1)]
        fill_with_mode(found, counts)
        mode = max(range(3), key=row.count)  # the fewer copies if equally common
        assert found[0].tolist() == [mode if copies < 0 else copies for copies in row]
