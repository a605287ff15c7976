"""The number parser against float(), and what the grammar's kernels promise."""

import math
import os
import struct
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from featstream.sources.kernels.parse_decimal import (
    BAD,
    GOOD,
    LONG,
    round_decimal,
    scan_number,
)
from featstream.sources.kernels.parse_svmlight import count_marks

unhurried = settings(deadline=None)  # the first call compiles


def scan(token):
    text = np.frombuffer(token.encode() + b"\n", np.uint8)
    with np.errstate(over="ignore"):
        return scan_number(text, 0)


def assert_same_float(token):
    value, end, status = scan(token)
    assert status == GOOD
    assert end == len(token)
    assert struct.pack("d", value) == struct.pack("d", float(token))


@unhurried
@given(st.floats(allow_nan=False, allow_infinity=False))
@example(5e-324)
@example(-0.0)
@example(1.7976931348623157e308)
@example(2.2250738585072014e-308)
@example(2.2250738585072011e-308)
def test_shortest_and_17_digit_spellings_read_back(x):
    assert_same_float(repr(x))
    assert_same_float(f"{x:.17g}")


@unhurried
@given(
    digits=st.integers(0, 10**17 - 1),
    point=st.integers(0, 17),
    exponent=st.integers(-400, 400),
    sign=st.sampled_from(["", "+", "-"]),
)
@example(9007199254740993, 0, 0, "")  # halfway between two floats
@example(74862769151406615, 1, 0, "")
@example(99999999999999999, 0, 308, "")
def test_any_17_digits_round_like_float(digits, point, exponent, sign):
    spelled = str(digits).zfill(point + 1)
    cut = len(spelled) - point
    assert_same_float(f"{sign}{spelled[:cut]}.{spelled[cut:]}e{exponent}")


@unhurried
@given(st.integers(2**52, 2**53 - 1), st.integers(-27, 23))
def test_halfway_cases_go_to_the_even_neighbour(mantissa, exponent):
    # mantissa + 1/2 lies halfway; 10 * that is a whole number of at most 18 digits
    token = f"{mantissa * 10 + 5}e{exponent - 1}"
    assert_same_float(token)


@pytest.mark.parametrize(
    "token",
    ["1", "1.", ".5", "+.5e1", "0", "-0", "1E+05", "00012", "1e-400", "0e99999"],
)
def test_every_decimal_notation_is_read(token):
    assert_same_float(token)


@pytest.mark.parametrize(
    "token", ["", "+", ".", "e5", "1e", "1e+", "-.", "nan", "inf", "x", "--1"]
)
def test_what_is_no_number_is_refused(token):
    assert scan(token)[2] == BAD


@pytest.mark.parametrize("token", ["1_0", "0x1p3", "1.5f", "1,5", "1e5.0"])
def test_scanning_stops_where_the_number_ends(token):
    assert scan(token)[1] < len(token)


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


@unhurried
@given(st.binary(max_size=400))
def test_newlines_and_colons_are_counted(data):
    text = np.frombuffer(data, np.uint8)
    assert count_marks(text) == (data.count(b"\n"), data.count(b":"))


@pytest.mark.slow
def test_no_kernel_reads_past_its_buffer(tmp_path):
    """Run the property tests of the reader with numba's bounds checks on."""
    env = dict(os.environ, NUMBA_BOUNDSCHECK="1", NUMBA_CACHE_DIR=str(tmp_path))
    files = [__file__, os.path.join(os.path.dirname(__file__), "test_svmlight.py")]
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    subprocess.run([*command, *files], env=env, check=True)
