"""The svmlight grammar: bytes in, rows out.

    file    = line*
    line    = blank* [label [blank+ qid] (blank+ entry)*] blank* [comment] end
    label   = number | word                  all of one kind in a file
    word    = (letter | "_" | byte >= 128) any*      up to 255 bytes, no "," or ":"
    qid     = "qid:" digit{1,18}             read and left out
    entry   = index ":" number
    index   = digit{1,10}                    at most 2**31 - 1, increasing
    number  = [+-] (digit+ ["." digit*] | "." digit+) [(e|E) [+-] digit+]
    comment = "#" any*                       any byte but NUL
    blank   = space | tab        end = newline, or carriage return and newline

A chunk of text always ends in a newline. No token contains one, so that every
loop over the bytes of a token stops there and none needs to ask for the end. The
room for the rows was counted in the text; that it is kept to is checked all the
same, in case someone writes to the file meanwhile.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from featstream.jit import inner, kernel
from featstream.sources.kernels import parse_decimal as decimal

# What is wrong with the token at which parsing stopped.
FINE, LABEL, MIXED, QID, ENTRY, ORDER, OVERFLOW, ENDING = range(8)

# Kinds of labels.
UNKNOWN, NUMBERS, WORDS = range(3)

MAX_INDEX = 2**31 - 1
_MAX_WORD = 255
_U = np.uint64
_ONE = _U(1)
_NAN_BITS = 0x7FF8000000000000  # a quiet NaN
POSITION = (1 << 51) - 1  # the part of it that is free to hold a position


class Rows(NamedTuple):
    """The arrays that the rows of a chunk of text are written to."""

    labels: NDArray[np.float64]  # NaN for a word, and for a number left to the caller
    label_spans: NDArray[np.int64]  # begin and end of each label in the text
    ends: NDArray[np.int64]  # entries up to the end of each row
    indices: NDArray[np.int32]
    values: NDArray[np.float64]  # NaN for a number left to the caller
    bits: NDArray[np.int64]  # the same memory; such a NaN holds its position


class Parsed(NamedTuple):
    """What `parse_rows` found."""

    n_rows: int
    n_entries: int
    lowest: int  # least and greatest index, after the shift
    highest: int
    kind: int  # of the labels
    n_long: int  # numbers left to the caller
    flaw: int
    position: int  # of the token with the flaw
    previous: int  # index before it, if the flaw is one of order


@kernel(allocates=True)
def count_marks(text: NDArray[np.uint8]) -> tuple[int, int]:
    """Newlines and colons in a chunk of text."""
    newlines = 0
    colons = 0
    whole = text.size - text.size % 128
    for begin in range(0, whole, 128):  # sums of 128 fit a byte: 16 lanes and more
        few_newlines = np.uint8(0)
        few_colons = np.uint8(0)
        for i in range(begin, begin + 128):
            few_newlines = np.uint8(few_newlines + np.uint8(text[i] == 10))
            few_colons = np.uint8(few_colons + np.uint8(text[i] == 58))
        newlines += int(few_newlines)
        colons += int(few_colons)
    for i in range(whole, text.size):
        newlines += text[i] == 10
        colons += text[i] == 58
    return newlines, colons


@inner(allocates=True)
def _is_end(byte):
    """Whether a token ends before this byte."""
    return (byte == 32) | (byte == 10) | (byte == 9) | (byte == 13) | (byte == 35)


@inner(allocates=True)
def _skip_blanks(text, i):
    while (text[i] == 32) | (text[i] == 9):
        i += 1
    return i


@inner(allocates=True)
def _skip_to_newline(text, i):
    """Position of the newline, or of a byte that is not allowed before it."""
    if text[i] == 13:
        i += text[i + 1] == 10
    elif text[i] == 35:
        while (text[i] != 10) & (text[i] != 0):
            i += 1
    return i


@inner(allocates=True)
def _spells(text, i, word):
    """Whether the letters at ``i`` are those of ``word``, in either case."""
    same = True
    for j in range(len(word)):
        same &= text[i + j] | 32 == word[j]
    return same


@inner(allocates=True)
def _skip_word(text, i):
    """Position after the word at ``i``; ``i`` itself if there is none."""
    begin = i
    first = text[i]
    good = (97 <= first | 32 <= 122) | (first == 95) | (first >= 128)
    while good and not _is_end(text[i]):
        byte = text[i]
        good = (byte >= 32) & (byte != 127) & (byte != 44) & (byte != 58)
        i += 1
    n = i - begin
    if n == 3:
        good = good and not _spells(text, begin, b"nan")
        good = good and not _spells(text, begin, b"inf")
    elif n == 8:
        good = good and not _spells(text, begin, b"infinity")
    return i if good and n <= _MAX_WORD else begin


@inner(allocates=True)
def _skip_qid(text, i):
    """Position after ``qid:12`` at ``i``; ``i`` itself if it is malformed."""
    begin = i
    for byte in b"qid:":
        i += text[i] == byte
    first = i
    while 48 <= text[i] <= 57:
        i += 1
    good = first - begin == 4 and 1 <= i - first <= 18 and _is_end(text[i])
    return i if good else begin


@inner(allocates=True)
def _parse_entries(text, words, i, previous, shift, entry, indices, values, bits):
    """Parse the entries of a row, from ``i`` to its end or to the first flaw.

    Written for speed. The common number, ``-12.345``, is read here and not in a
    helper, since numba counts a reference to every array that a helper takes.
    Positions are unsigned, since numba lets signed ones count from the end; all
    that is added to them must then be unsigned too.
    """
    i = _U(i)
    entry = _U(entry)
    n_words = _U(words.size)
    n_room = _U(indices.size)
    begin = i
    n_long = 0
    flaw = FINE
    while decimal.is_digit(text[i]) and entry < n_room:
        begin = i
        index = np.int64(0)
        while decimal.is_digit(text[i]):
            index = index * 10 + (np.int64(text[i]) - 48)
            i += _ONE
        if text[i] != 58 or i - begin > _U(10) or index > MAX_INDEX:
            flaw = ENTRY
            break
        if index <= previous:
            flaw = ORDER
            break
        previous = index
        indices[entry] = index - shift
        i += _ONE
        number = i
        is_negative = text[i] == 45
        i += _U(is_negative)
        mark = i
        mantissa = np.int64(0)
        while decimal.is_digit(text[i]):
            mantissa = mantissa * 10 + (np.int64(text[i]) - 48)
            i += _ONE
        n_digits = np.int64(i - mark)
        n_places = 0
        if text[i] == 46:
            i += _ONE
            mark = i
            n = 8
            while n == 8 and i < n_words:
                n = decimal.count_digits(words[i])
                if n > 0:
                    mantissa *= decimal.INTEGER_POWERS[n]
                    mantissa += decimal.first_digits(words[i], n)
                    i += _U(n)
            if i >= n_words:
                while decimal.is_digit(text[i]):
                    mantissa = mantissa * 10 + (np.int64(text[i]) - 48)
                    i += _ONE
            n_places = np.int64(i - mark)
            n_digits += n_places
        if (text[i] == 32 or _is_end(text[i])) and 0 < n_digits <= decimal.MAX_DIGITS:
            if mantissa < decimal.EXACT_MANTISSA:
                value = mantissa / decimal.EXACT_POWERS[n_places]
            else:
                value = decimal.round_decimal(mantissa, -n_places)
            values[entry] = -value if is_negative else value
        else:
            value, end, status = decimal.scan_number(text, np.int64(number))
            i = _U(end)
            if status == decimal.BAD or not _is_end(text[i]):
                flaw = ENTRY
                break
            if np.isinf(value):
                flaw = OVERFLOW
                break
            values[entry] = value
            if status == decimal.LONG:
                bits[entry] = _NAN_BITS | np.int64(number)
                n_long += 1
        entry += _ONE
        while text[i] == 32 or text[i] == 9:
            i += _ONE
    if flaw == FINE and not _is_end(text[i]):
        begin = i
        flaw = ENTRY
    return np.int64(i), np.int64(begin), previous, np.int64(entry), n_long, flaw


@kernel(allocates=True)
def parse_rows(
    text: NDArray[np.uint8],
    words: NDArray[np.uint64],
    base: int,
    shift: int,
    rows: Rows,
) -> Parsed:
    """Parse a chunk of text that ends in a newline: all rows, or those before a flaw.

    ``words`` has every eight consecutive bytes of ``text``, overlapping. ``base`` is
    the least index allowed, 0 or 1; ``shift`` is subtracted from every index.
    ``rows`` has room for one row per newline and one entry per colon.
    """
    labels, label_spans, ends, indices, values, bits = rows
    i = begin = row = entry = n_long = 0
    lowest, highest, previous = MAX_INDEX, -1, -1
    kind = UNKNOWN
    flaw = FINE
    while i < text.size:
        i = _skip_blanks(text, i)
        if not _is_end(text[i]):
            begin = i
            label, i, status = decimal.scan_number(text, i)
            found = NUMBERS
            if status == decimal.BAD:
                label, i, found = np.nan, _skip_word(text, begin), WORDS
            if i == begin or not _is_end(text[i]) or row == labels.size:
                flaw = LABEL
                break
            if np.isinf(label):
                flaw = OVERFLOW
                break
            if kind == UNKNOWN:
                kind = found
            elif kind != found:
                flaw = MIXED
                break
            n_long += status == decimal.LONG
            labels[row] = label
            label_spans[row, 0] = begin
            label_spans[row, 1] = i
            i = _skip_blanks(text, i)
            if text[i] == 113:
                begin = i
                i = _skip_qid(text, i)
                if i == begin:
                    flaw = QID
                    break
                i = _skip_blanks(text, i)
            first = entry
            i, begin, previous, entry, n, flaw = _parse_entries(
                text, words, i, base - 1, shift, entry, indices, values, bits
            )
            n_long += n
            if flaw != FINE:
                break
            if entry > first:
                lowest = min(lowest, indices[first])
                highest = max(highest, indices[entry - 1])
            ends[row] = entry
            row += 1
        begin = i
        i = _skip_to_newline(text, i)
        if text[i] != 10:
            flaw = ENDING
            break
        i += 1
    return Parsed(row, entry, lowest, highest, kind, n_long, flaw, begin, previous)
