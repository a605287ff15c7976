"""Separated text cut into blocks: some columns of all rows each."""

from __future__ import annotations

from typing import Any

from featstream.jit import jit

STATE, FIELD, ROWS, MISCOUNTED = 0, 1, 2, 3
"""What is carried from one chunk of text to the next: the state, fields passed in the
row, rows passed, and the number of fields of a row that has too few, or else one more
than it should."""

BEGIN, AFTER_CR, START, PLAIN, QUOTED, QUOTE = 0, 1, 2, 3, 4, 5
"""Before the first byte of a row; the same after a carriage return, whose line feed
may follow; before a field; in a plain one; in a quoted one; after a quote in it."""

_QUOTE, _LF, _CR = 34, 10, 13


@jit
def find_segments(
    text: Any, separator: int, n_fields: int, width: int, carried: Any, segments: Any
) -> int:
    """Divide a chunk of text into segments that each belong to one block.

    The rules are those of RFC 4180, as pyarrow reads it: quotes count at the start
    of a field alone, and are doubled within; empty lines are passed over.

    Parameters
    ----------
    text : ndarray of uint8
        A chunk; it may begin and end anywhere.
    separator : int
        The byte between two fields.
    n_fields, width : int
        Fields per row, and per block, but for the last one.
    carried : ndarray of int64 of shape (4,)
        State, field, rows, miscounted: zeros at the beginning. Written to. It stops
        at a row that is miscounted.
    segments : ndarray of int64 of shape (n, 4)
        Filled with begin, end, block, and whether the last byte ends a row of the
        block. There is room for one per block and end of line, and two more.

    Returns
    -------
    n_segments : int
        The number of segments.
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
