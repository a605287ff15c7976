"""Decimal text to float64, rounded as Python's ``float`` rounds.

A number of up to 18 digits becomes a mantissa and a power of ten. Most are then
exact in one operation [1]_; the rest go through a 128-bit product with a table
of powers of five [2]_, which needs no fallback for so few digits [3]_. Longer
numbers are left to the caller.

References
----------
.. [1] Clinger, "How to read floating point numbers accurately", PLDI 1990.
.. [2] Lemire, "Number parsing at a gigabyte per second", 2021.
.. [3] Mushtak and Lemire, "Fast number parsing without fallback", 2023.
"""

from __future__ import annotations

import math

import numpy as np

from featstream.jit import inner, kernel

GOOD, LONG, BAD = 0, 1, 2

MAX_DIGITS = 18  # 10**18 - 1 fits an int64
EXACT_MANTISSA = 1 << 53
EXACT_POWERS = 10.0 ** np.arange(23)
INTEGER_POWERS = 10 ** np.arange(9, dtype=np.int64)

_LOWEST, _HIGHEST = -342, 308  # powers of ten that reach the range of float64


def _powers_of_five():
    """128 leading bits of 5**q for every q of the range, high and low halves.

    Truncated, but for -27 <= q < 0 rounded up: there a decimal may lie halfway
    between two floats, and the product must not fall below it.
    """
    table = np.empty((_HIGHEST - _LOWEST + 1, 2), np.uint64)
    for q in range(_LOWEST, _HIGHEST + 1):
        power = 5 ** abs(q)
        if q < 0:
            extra = 127 if q >= -27 else 256
            power = (1 << (power.bit_length() + extra)) // power + 1
        excess = power.bit_length() - 128
        bits = power >> excess if excess > 0 else power << -excess
        table[q - _LOWEST] = bits >> 64, bits & (2**64 - 1)
    return table


_FIVES = _powers_of_five()

# Eight digits at once, in the bytes of a word. numba makes a float of a signed
# and an unsigned integer together, so every constant has its type.
_U = np.uint64
_ZEROS = _U(0x3030303030303030)
_LOW_BITS = _U(0x7F7F7F7F7F7F7F7F)
_HIGH_BITS = _U(0x8080808080808080)
_ABOVE_NINE = _U(0x7676767676767676)
_ONES = _U(0x0101010101010101)
_NIBBLES = _U(0x0F0F0F0F0F0F0F0F)
_PAIRS = _U(0x00FF00FF00FF00FF)
_QUADS = _U(0x0000FFFF0000FFFF)
_HALF = _U(0xFFFFFFFF)


@inner(allocates=True)
def is_digit(byte):
    """Whether a byte is an ASCII digit."""
    return (byte >= 48) & (byte <= 57)


@inner(allocates=True)
def count_digits(word):
    """How many bytes of a word, from the first, are digits."""
    word = word ^ _ZEROS
    marks = (((word & _LOW_BITS) + _ABOVE_NINE) | word) & _HIGH_BITS  # of non-digits
    if marks == _U(0):
        return np.int64(8)
    below = (marks & (~marks + _U(1))) - _U(1)
    return np.int64((below & _ONES) * _ONES >> _U(56)) - 1


@inner(allocates=True)
def first_digits(word, n):
    """Number that the first ``n`` bytes of a word spell, all digits; n > 0."""
    word = (word << _U(64 - 8 * n)) & _NIBBLES
    word = (word * _U(10) + (word >> _U(8))) & _PAIRS
    word = (word * _U(100) + (word >> _U(16))) & _QUADS
    return np.int64((word * _U(10000) + (word >> _U(32))) & _HALF)


@inner(allocates=True)
def _multiply_wide(a, b):
    """High and low halves of the product of two unsigned words."""
    a_high, a_low = a >> _U(32), a & _HALF
    b_high, b_low = b >> _U(32), b & _HALF
    low = a_low * b_low
    middle = a_high * b_low + (low >> _U(32))
    other = a_low * b_high + (middle & _HALF)
    high = a_high * b_high + (middle >> _U(32)) + (other >> _U(32))
    return high, (other << _U(32)) | (low & _HALF)


@kernel(allocates=True)
def round_decimal(mantissa, exponent):
    """Float nearest to ``mantissa * 10**exponent``; infinite if too large.

    The mantissa lies in [0, 10**18).
    """
    if (mantissa >= EXACT_MANTISSA) | (exponent < -22) | (exponent > 22):
        value = round_product(mantissa, exponent)
    elif exponent < 0:
        value = mantissa / EXACT_POWERS[-exponent]
    else:
        value = mantissa * EXACT_POWERS[exponent]
    return value


@inner(allocates=True)
def round_product(mantissa, exponent):
    """The same through a 128-bit product; the algorithm and names of [2]_."""
    if mantissa == 0 or exponent < _LOWEST:
        return 0.0
    if exponent > _HIGHEST:
        return math.inf
    word = _U(mantissa)
    leading = 0
    for step in (32, 16, 8, 4, 2, 1):
        if word >> _U(64 - step) == _U(0):
            word = word << _U(step)
            leading += step
    row = exponent - _LOWEST
    high, low = _multiply_wide(word, _FIVES[row, 0])
    if high & _U(0x1FF) == _U(0x1FF):
        carry, _ = _multiply_wide(word, _FIVES[row, 1])
        low = low + carry
        if carry > low:
            high = high + _U(1)
    upper = int(high >> _U(63))
    bits = high >> _U(upper + 9)
    power = ((217706 * exponent) >> 16) + 63 + upper - leading + 1023
    if power <= 0:  # subnormal
        if power < -62:
            return 0.0
        bits = bits >> _U(1 - power)
        return math.ldexp(float((bits + (bits & _U(1))) >> _U(1)), -1074)
    halfway = low <= _U(1) and -4 <= exponent <= 23 and bits & _U(3) == _U(1)
    if halfway and bits << _U(upper + 9) == high:
        bits = bits & ~_U(1)  # ties go to the even neighbour
    bits = (bits + (bits & _U(1))) >> _U(1)
    if power + int(bits >> _U(53)) >= 2047:  # the rounding may have carried
        return math.inf
    return math.ldexp(float(bits), int(power - 1075))


@inner(allocates=True)
def _append_digits(text, i, number, n_digits):
    """Append the digits at ``i`` to a number; count all but leading zeros."""
    while is_digit(text[i]):
        number = number * 10 + (np.int64(text[i]) - 48)
        n_digits += number != 0
        i += 1
    return number, n_digits, i


@kernel(allocates=True)
def scan_number(text, i):
    """Read the decimal number that begins at ``i``.

    ``text`` must hold, at or after ``i``, a byte that cannot be part of a number.

    Returns the number, NaN unless ``GOOD``; the position after it; and ``GOOD``,
    ``LONG`` if it has too many digits to be exact here, or ``BAD``.
    """
    is_negative = text[i] == 45
    if is_negative or text[i] == 43:
        i += 1
    begin = i
    mantissa, n_digits, i = _append_digits(text, i, np.int64(0), 0)
    has_digits = i > begin
    exponent = 0
    if text[i] == 46:
        begin = i + 1
        mantissa, n_digits, i = _append_digits(text, begin, mantissa, n_digits)
        has_digits |= i > begin
        exponent = begin - i
    if not has_digits:
        return math.nan, i, BAD
    if text[i] | 32 == 101:
        i += 1
        is_below = text[i] == 45
        if is_below or text[i] == 43:
            i += 1
        begin = i
        power, n_power_digits, i = _append_digits(text, i, np.int64(0), 0)
        if i == begin:
            return math.nan, i, BAD
        if n_power_digits > MAX_DIGITS:
            return math.nan, i, LONG
        exponent += -power if is_below else power
    if n_digits > MAX_DIGITS:
        return math.nan, i, LONG
    value = round_decimal(mantissa, exponent)
    return -value if is_negative else value, i, GOOD
