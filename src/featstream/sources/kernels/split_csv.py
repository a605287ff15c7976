"""Separated text cut into blocks, some columns of all rows each, and their numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from featstream.jit import inner_jit, jit
from featstream.sources.kernels.parse_decimal import GOOD, is_digit, scan_number

STATE, FIELD, ROWS, MISCOUNTED = 0, 1, 2, 3
"""What is carried from one chunk of text to the next: the state, fields passed in the
row, rows passed, and the number of fields of a row that has too few, or else one more
than it should."""

BEGIN, AFTER_CR, START, PLAIN, QUOTED, QUOTE = 0, 1, 2, 3, 4, 5
"""Before the first byte of a row; the same after a carriage return, whose line feed
may follow; before a field; in a plain one; in a quoted one; after a quote in it."""

NUMBER, FRACTION, MISSING, OTHER = 1, 2, 4, 8
"""What the fields of a column are; a column may have several of these."""

_QUOTE, _LF, _CR, _MINUS = 34, 10, 13, 45


@jit
def find_segments(
    text: Any, separator: int, n_fields: int, width: int, carried: Any, segments: Any
) -> int:
    """Divide a chunk of text into segments that each belong to one block.

    The rules are those of RFC 4180, as pyarrow reads it: quotes count at the start
    of a field alone, and are doubled within; empty lines are passed over.

    ``text`` may begin and end anywhere. ``n_fields`` and ``width`` are fields per row,
    and per block, but for the last one. ``carried``, four zeros at the beginning, is
    written to: state, field, rows, miscounted; it stops at a row that is miscounted.
    ``segments`` is filled with begin, end, block, and whether the last byte ends a row
    of the block; it has room for one per block and end of line, and two more. Returns
    their number.
    """
    state = carried[STATE]
    field = carried[FIELD]
    n_segments = 0
    begin = 0
    i = 0
    while i < text.size:
        byte = text[i]
        i += 1
        if state == AFTER_CR:
            state = BEGIN
            if byte == _LF:
                begin = i
                continue
        block = field // width
        is_end = False
        if state == QUOTED:
            while byte != _QUOTE and i < text.size:
                byte = text[i]
                i += 1
            state = QUOTE if byte == _QUOTE else QUOTED
        elif byte == _QUOTE and state != PLAIN:
            state = QUOTED
        elif byte == separator:
            state = START
            field += 1
            if field == n_fields:
                carried[MISCOUNTED] = field + 1
                break
            is_end = field % width == 0
        elif byte in (_LF, _CR):
            is_empty = state == BEGIN
            state = AFTER_CR if byte == _CR else BEGIN
            if is_empty:
                begin = i
                continue
            if field + 1 < n_fields:
                carried[MISCOUNTED] = field + 1
                break
            is_end = True
            carried[ROWS] += 1
            field = 0
        else:
            state = PLAIN
            while i < text.size and text[i] != separator and text[i] > _CR:
                i += 1
        if is_end:
            segments[n_segments] = begin, i, block, 1
            n_segments += 1
            begin = i
    if begin < i:
        segments[n_segments] = begin, i, field // width, 0
        n_segments += 1
    carried[STATE] = state
    carried[FIELD] = field
    return n_segments


@jit
def copy_segments(text: Any, segments: Any, place: Any, out: Any) -> None:
    """Copy segments to their blocks, with a newline at the end of each row.

    ``place`` has the position in ``out`` of the next byte of each block.
    """
    for k in range(segments.shape[0]):
        begin, end, block, is_end = segments[k]
        at = place[block]
        place[block] = at + end - begin
        out[at : place[block]] = text[begin:end]
        if is_end:
            out[place[block] - 1] = _LF


@inner_jit
def _scan_integer(text, i):
    """The number of at most 18 digits at ``i``, and the position after them."""
    begin = i
    number = np.int64(0)
    while is_digit(text[i]) and i - begin < 18:
        number = number * 10 + (np.int64(text[i]) - 48)
        i += 1
    return number, i


@jit
def parse_numbers(
    text: Any, i: int, separator: int, whole: Any, real: Any, kinds: Any
) -> bool:
    """Read the numbers of a block from position ``i`` on; False if a field is quoted.

    ``whole`` and ``real`` are of shape (n_rows, n_columns): every number is put into
    both, if it can be. ``kinds`` has flags for each column; one with ``OTHER`` has
    fields that are not plain numbers, and is not to be used.
    """
    n_rows, n_columns = whole.shape
    for row in range(n_rows):
        for column in range(n_columns):
            end_mark = separator if column < n_columns - 1 else _LF
            if text[i] == _QUOTE:
                return False
            if text[i] == end_mark:
                kinds[column] |= MISSING
                real[row, column] = math.nan
                whole[row, column] = 0
                i += 1
                continue
            is_negative = text[i] == _MINUS
            first = i + is_negative
            number, end = _scan_integer(text, first)
            kind = NUMBER
            value = 0.0
            if end == first or is_digit(text[end]):
                kind = OTHER
            elif text[end] == end_mark:
                whole[row, column] = -number if is_negative else number
                value = float(number)
            else:
                value, end, status = scan_number(text, first)
                is_plain = status == GOOD and is_digit(text[end - 1])
                if is_plain and text[end] == end_mark and not math.isinf(value):
                    kind = NUMBER | FRACTION
                else:
                    kind = OTHER
            if kind == OTHER:
                while text[end] != end_mark:
                    end += 1
            real[row, column] = -value if is_negative else value
            kinds[column] |= kind
            i = end + 1
    return True
