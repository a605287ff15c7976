"""The svmlight reader: the matrix of scikit-learn, the errors of nobody else."""

import bz2
import gzip
import lzma
import math
import os
import struct
import subprocess
import sys
from functools import partial

import numpy as np
import pyarrow
import pytest
from fuzz.mutation import mutate
from fuzz.targets import Svmlight
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_svmlight_file

import reference_svmlight as reference
from featstream.errors import DataError, ParameterError
from featstream.sources import text_file
from featstream.sources.kernels.parse_decimal import (
    GOOD,
    LONG,
    round_decimal,
    scan_number,
)
from featstream.sources.svmlight import iter_svmlight, read_svmlight
from featstream.sources.values import LIMITS
from gather import refused

quick = settings(
    deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture
def write(tmp_path):
    def write(data, name="file.svm"):
        path = tmp_path / name
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return path

    return write


@pytest.fixture
def tiny_chunks(monkeypatch):
    monkeypatch.setattr(LIMITS, "svmlight_chunk", 16)


def dense(path, **options):
    X, y = read_svmlight(path, **options)
    return X.toarray().tolist(), y.tolist()


@pytest.mark.parametrize("digits", [1, 6, 8, 9, 16, 17, 25])
@pytest.mark.parametrize("n_jobs", [1, 3])
def test_the_matrix_is_that_of_scikit_learn_to_the_bit(
    write, monkeypatch, digits, n_jobs
):
    monkeypatch.setattr(LIMITS, "svmlight_chunk", 5000)
    path = write(reference.random_text(100, 150, digits, digits=digits))
    X, y = read_svmlight(path, n_jobs=n_jobs)
    expected, labels = load_svmlight_file(str(path))
    assert X.shape == expected.shape
    assert X.data.tobytes() == expected.data.tobytes()
    assert X.indices.tolist() == expected.indices.tolist()
    assert X.indptr.tolist() == expected.indptr.tolist()
    assert y.tolist() == labels.tolist()
    X.check_format(full_check=True)


def test_comments_blanks_tabs_and_line_ends_are_read(write):
    text = (
        "# head: 1:2\r\n\r\n  +1\tqid:3 1:1\t 3:-2.5 \t# tail\r\n\n-1 2:0#x:y\n \t\n2"
    )
    assert dense(write(text)) == ([[1, 0, -2.5], [0, 0, 0], [0, 0, 0]], [1, -1, 2])


def test_the_base_of_indices_is_found_or_given(write):
    one, zero = write("1 1:5\n", "one"), write("1 1:5\n1 0:3\n", "zero")
    assert dense(one)[0] == [[5]]
    assert dense(one, zero_based=True)[0] == [[0, 5]]
    assert dense(zero)[0] == [[0, 5], [3, 0]]
    assert dense(zero, zero_based=True)[0] == [[0, 5], [3, 0]]
    with pytest.raises(DataError, match=r"zero, line 2: index 0 in a one-based file"):
        read_svmlight(zero, zero_based=False)


def test_the_number_of_features_can_be_given(write):
    path = write("1 3:5\n")
    assert read_svmlight(path, n_features=7)[0].shape == (1, 7)
    with pytest.raises(DataError, match="has 3 columns but n_features=2"):
        read_svmlight(path, n_features=2)


def test_a_byte_order_mark_is_skipped(write):
    mark = b"\xef\xbb\xbf"
    assert dense(write(mark + b"1 1:2\n")) == ([[2]], [1])
    assert dense(write(gzip.compress(mark + b"1 1:2\n"))) == ([[2]], [1])


@pytest.mark.parametrize("text", ["", "\n", "# nothing\n", "\n\n  "])
def test_a_file_without_rows_is_an_empty_matrix(write, text):
    for data in (text, gzip.compress(text.encode())):
        X, y = read_svmlight(write(data))
        assert X.shape == (0, 0)
        assert y.shape == (0,)


@pytest.mark.parametrize("index", [1, 2**31 - 1])
def test_the_greatest_index_is_allowed(write, index):
    X, _ = read_svmlight(write(f"1 {index}:1\n"))
    assert X.shape == (1, index)


REFUSED = {
    "1 9:1 5:1": "index 5 after 9; indices must increase",
    "1 5:1 5:1": "index 5 occurs twice; indices must increase",
    "1 -3:1": "index -3 is negative",
    "1 2147483648:1": "index 2147483648 is above 2147483647",
    "1 99999999999999999999:1": "index 99999999999999999999 is above 2147483647",
    "1 1_0:1": "index '1_0' is not a whole number",
    "1 +1:1": "index '+1' is not a whole number",
    "1 :1": "index '' is not a whole number",
    "1 5": "'5' has no colon",
    "1 x": "'x' has no colon",
    "1 5:": "value '' of index 5 is not a number",
    "1 5:1_0": "value '1_0' of index 5 is not a number",
    "1 5:0x1p3": "value '0x1p3' of index 5 is not a number",
    "1 5:--1": "value '--1' of index 5 is not a number",
    "1 5:1e+": "value '1e+' of index 5 is not a number",
    "1 5:-.": "value '-.' of index 5 is not a number",
    "1 5:1,5": "value '1,5' of index 5 is not a number",
    "1 5:1:2": "value '1:2' of index 5 is not a number",
    "1 5:nan": "value 'nan' of index 5 is not finite. Leave the entry out",
    "1 5:-Inf": "value '-Inf' of index 5 is not finite",
    "1 5:1e999": "'5:1e999' is too large for a float",
    "1 5:" + "9" * 400: "is too large for a float",
    "1,2 1:1": "several labels, '1,2'",
    "a,b 1:1": "several labels, 'a,b'",
    "1:1 2:1": "'1:1' where the label should be",
    "nan 1:1": "label 'nan' is not finite",
    "-inf 1:1": "label '-inf' is not finite",
    "1_0 1:1": "label '1_0' is neither a number nor a word",
    "0x1 1:1": "label '0x1' is neither a number nor a word",
    "a\x7fb 1:1": r"x7fb' is neither",
    "1e999 1:1": "'1e999' is too large for a float",
    "w" * 256 + " 1:1": "is longer than 255 bytes",
    "1 qid:x 1:1": "'qid:x' is out of place or no whole number",
    "1 qid: 1:1": "'qid:' is out of place or no whole number",
    "1 qi:3 1:1": "'qi:3' is out of place or no whole number",
    "1 qid:1234567890123456789 1:1": "is out of place or no whole number",
    "1 1:1 qid:3": "'qid:3' is out of place",
    "1 1:1\x00": "NUL byte",
    "1 1:1 # \x00": "NUL byte",
    "1 1:1\r2:1": "carriage return inside the line",
    "1 1:1\r 2:1": "carriage return inside the line",
    "1 1:1\x0b2:1": "is not a number",
}


@pytest.mark.parametrize("bad", REFUSED)
@pytest.mark.parametrize("before", [2, 40])
def test_a_bad_line_is_named_with_its_reason(write, tiny_chunks, bad, before):
    path = write("# head\n" * (before - 1) + bad + "\n1 5:x\n")
    with refused(f"{path}, line {before}: ", REFUSED[bad]):
        read_svmlight(path)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"\n1 1:1\n# x\n2 1:1\nspam 1:1\n", "5: label 'spam' after labels of another"),
        (b"ham 1:1\nsp\xffm 1:1\n", r"2: label 'sp\\\\xffm' is neither"),
    ],
)
def test_labels_are_of_one_kind_and_utf8(write, tiny_chunks, text, reason):
    with pytest.raises(DataError, match=f"line {reason}"):
        read_svmlight(write(text))


@pytest.mark.parametrize(("first", "later"), [("1.0", "spam"), ("ham", "-1")])
def test_the_kind_of_labels_is_not_forgotten_over_a_chunk_of_comments(
    write, tiny_chunks, first, later
):
    """A chunk without rows has labels of no kind."""
    comments = "# of sixteen bytes\n" * 3
    text = f"{first} 1:1\n{comments}{later} 1:1\n".encode()
    for data in (text, gzip.compress(text)):
        with pytest.raises(DataError, match=f"line 5: label '{later}' after labels of"):
            read_svmlight(write(data), n_jobs=2)


PACKED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"(\xb5/\xfd")
PACKERS = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": partial(pyarrow.compress, codec="zstd", asbytes=True),
}


@pytest.mark.parametrize("kind", PACKERS)
def test_compressed_text_is_read_alike_or_refused_if_damaged(write, monkeypatch, kind):
    monkeypatch.setattr(LIMITS, "svmlight_chunk", 1000)
    text = reference.random_text(60, 200, 1).encode().rstrip()
    X, y = read_svmlight(write(text))
    packed = PACKERS[kind](text)
    Z, z = read_svmlight(write(packed, "packed"))
    assert (X != Z).nnz == 0
    assert y.tolist() == z.tolist()
    for cut in (0.3, 0.9):
        broken = write(packed[: int(cut * len(packed))])
        with pytest.raises(DataError, match="damaged or cut short"):
            read_svmlight(broken)


def test_a_bomb_is_refused_while_it_decompresses(write, monkeypatch):
    monkeypatch.setattr(text_file, "_ALWAYS_ALLOWED", 1000)
    path = write(gzip.compress(b"1 1:1\n" * 1_000_000))
    with pytest.raises(DataError, match="decompresses to more than"):
        read_svmlight(path)
    small = write(gzip.compress(b"1 1:1\n" * 10), "small")
    with pytest.raises(DataError, match="decompresses to more than 59 B"):
        read_svmlight(small, max_bytes=59)


def test_a_label_may_begin_like_an_archive(write):
    assert read_svmlight(write("BZh91 1:1\n"))[1].tolist() == ["BZh91"]


def test_parameters_are_checked(write):
    path = write("1 1:1\n")
    with pytest.raises(ParameterError, match="zero_based"):
        read_svmlight(path, zero_based="maybe")
    with pytest.raises(ParameterError, match="n_jobs"):
        read_svmlight(path, n_jobs=0)
    with pytest.raises(FileNotFoundError):
        read_svmlight(path.with_name("missing"))


def test_slices_add_up_to_the_whole(write, monkeypatch):
    monkeypatch.setattr(LIMITS, "svmlight_chunk", 3000)
    path = write(reference.random_text(100, 50, 2))
    progress = []
    seen = list(iter_svmlight(path, progress=lambda *a: progress.append(a)))
    X, y = read_svmlight(path)
    assert len(seen) > 3
    whole = {"values": X.data, "indices": X.indices, "y": y}
    for name, expected in whole.items():
        found = np.concatenate([getattr(rows, name) for rows in seen])
        assert found.tolist() == expected.tolist()
    assert progress[-1] == (path.stat().st_size,) * 2


# Property tests against the twin.

NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.integers(-(10**20), 10**20).map(str),
    st.from_regex(r"[+-]?[0-9]{0,20}\.?[0-9]{0,20}(e[+-]?[0-9]{1,4})?", fullmatch=True),
)
TOKENS = st.one_of(
    st.builds("{}:{}".format, st.integers(0, 30), NUMBERS),
    NUMBERS,
    st.text("ab1:.,#_-+e \t\r\x00é", max_size=6),
    st.sampled_from(["qid:1", "qid:", "nan", "1:inf", "spam", "3:nan", "\xff", "1:"]),
)
LINES = st.lists(TOKENS, max_size=6).map(" ".join)
TEXTS = st.lists(LINES, max_size=8).map("\n".join).map(str.encode)


def check_against_twin(path, data, zero_based="auto"):
    try:
        expected = reference.parse(data, base=int(zero_based is False))
    except reference.Malformed as malformed:
        with pytest.raises(DataError, match=f"line {malformed.line}:"):
            read_svmlight(path, zero_based=zero_based, n_jobs=2)
        return False
    X, y = read_svmlight(path, zero_based=zero_based, n_jobs=2)
    lowest = min((j for _, row in expected for j, _ in row), default=1)
    shift = {True: 0, False: 1, "auto": int(lowest > 0)}[zero_based]
    assert y.tolist() == [label for label, _ in expected]
    for i, (_, row) in enumerate(expected):
        entries = slice(X.indptr[i], X.indptr[i + 1])
        assert X.indices[entries].tolist() == [j - shift for j, _ in row]
        assert X.data[entries].tobytes() == np.array([v for _, v in row]).tobytes()
    return True


@quick
@given(TEXTS, st.sampled_from([True, False, "auto"]))
def test_the_reader_agrees_with_its_twin(write, tiny_chunks, data, zero_based):
    check_against_twin(write(data), data, zero_based)


@pytest.mark.parametrize("n", [300, pytest.param(20_000, marks=pytest.mark.slow)])
def test_mutated_files_are_read_like_the_twin_reads_them(write, n):
    rng = np.random.default_rng(n)
    corpus = [reference.random_text(3, 30, n, digits=9).encode()]
    is_accepted = []
    for _ in range(n):
        data = mutate(corpus, Svmlight.words, rng)
        if not data.startswith(PACKED):
            is_accepted.append(check_against_twin(write(data), data))
    assert 0.02 < np.mean(is_accepted) < 0.98


def scan(token):
    text = np.frombuffer(token.encode() + b"\n", np.uint8)
    with np.errstate(over="ignore"):
        return scan_number(text, 0)


def assert_same_float(token):
    value, end, status = scan(token)
    assert status == GOOD
    assert end == len(token)
    assert struct.pack("d", value) == struct.pack("d", float(token))


FLOATS = st.floats(allow_nan=False, allow_infinity=False)
DIGITS = r"[+-]?[0-9]{1,8}[.][0-9]{0,9}([eE][+-]?[0-9]{1,3})?"
HALFWAY = st.builds(  # 2 ** 52 + k + 1/2, and powers of ten of it: 17 digits
    "{}5e{}".format, st.integers(2**52, 2**53 - 1), st.integers(-28, 22)
)


@quick
@given(
    st.one_of(
        FLOATS.map(repr),
        FLOATS.map("{:.17g}".format),
        st.from_regex(DIGITS, fullmatch=True),
        HALFWAY,
    )
)
def test_any_17_digits_round_like_float(token):
    assert_same_float(token)


@pytest.mark.parametrize(
    "token",
    [
        *("1", "1.", ".5", "+.5e1", "0", "-0", "-0.0", "1E+05", "00012", "0e99999"),
        *("1e-400", "5e-324", "2.2250738585072014e-308", "2.2250738585072011e-308"),
        *("1.7976931348623157e308", "99999999999999999e308"),
        *("9007199254740993", "7486276915140661.5"),  # halfway between two floats
        # The last powers of ten and of five that floats and words hold, and the next.
        *("1e22", "1e23", "2e22", "2e23", "1e27", "1e28", "1e-22", "1e-23"),
    ],
)
def test_every_decimal_notation_is_read(token):
    assert_same_float(token)


def test_leading_zeros_are_not_digits_and_more_than_18_are_left_to_the_caller():
    assert_same_float("0." + "0" * 40 + "12345678901234567")
    assert scan("1234567890123456789")[2] == LONG
    assert scan("0." + "0" * 50 + "1e" + "9" * 19)[2] == LONG


def test_too_large_is_infinite_and_too_small_is_zero():
    assert scan("1e309")[0] == math.inf
    assert scan("-1e309")[0] == -math.inf
    assert scan("1e-500")[0] == 0.0
    assert round_decimal(17976931348623158, 292) == float("17976931348623158e292")
    assert round_decimal(17976931348623159, 292) == math.inf


@pytest.mark.slow
def test_no_kernel_reads_past_its_buffer(tmp_path):
    """Run the property tests of the reader with numba's bounds checks on."""
    env = dict(os.environ, NUMBA_BOUNDSCHECK="1", NUMBA_CACHE_DIR=str(tmp_path))
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    subprocess.run([*command, __file__], env=env, check=True)
