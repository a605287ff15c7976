"""Text cut into blocks, against a regular expression for a field."""

from __future__ import annotations

import re

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from featstream.sources.kernels import split_csv
from strategies import examples

FIELD = re.compile(rb'(?:"(?:[^"]|"")*"(?!")[^,\r\n]*|(?!")[^,\r\n]*)([,\r\n])')


def rows_of(text):
    """Rows of fields as they are written; None if a quote is never closed."""
    rows, row, place = [], [], 0
    while place < len(text):
        if not row and text[place : place + 1] in (b"\n", b"\r"):
            place += 1  # an empty line, or the rest of an end of line
            continue
        match = FIELD.match(text, place)
        if match is None:
            return None
        row.append(text[place : match.end() - 1])
        place = match.end()
        if match[1] != b",":
            rows.append(row)
            row = []
    return rows


def cut(text, n_fields, width, cuts=()):
    """Blocks by the kernels, the text given in pieces; and what they carried."""
    carried = np.zeros(4, np.int64)
    n_blocks = -(-n_fields // width)
    found = [b""] * n_blocks
    for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
        piece = np.frombuffer(text[begin:end], np.uint8)
        n_ends = int(np.isin(piece, [10, 13]).sum())
        room = min(piece.size, (n_ends + 1) * n_blocks) + 2
        segments = np.empty((room, 4), np.int64)
        n = split_csv.find_segments(piece, ord(","), n_fields, width, carried, segments)
        if carried[split_csv.MISCOUNTED]:
            break
        segments = segments[:n]
        sizes = np.zeros(n_blocks, np.int64)
        np.add.at(sizes, segments[:, 2], segments[:, 1] - segments[:, 0])
        bounds = np.concatenate([[0], np.cumsum(sizes)])
        out = np.empty(bounds[-1], np.uint8)
        split_csv.copy_segments(piece, segments, bounds[:-1].copy(), out)
        for k in range(n_blocks):
            found[k] += out[bounds[k] : bounds[k + 1]].tobytes()
    return found, carried


TEXTS = st.lists(st.sampled_from([b"a", b"1", b",", b'"', b"\n", b"\r", b"\r\n"]))


@examples(150)
@given(TEXTS, st.integers(1, 5), st.integers(1, 5), st.data())
def test_any_text_is_cut_as_it_is_read(parts, n_fields, width, data):
    text = b"".join(parts) + b"\n"
    width = min(width, n_fields)
    place = st.integers(0, len(text))
    cuts = sorted(data.draw(st.lists(place, max_size=3)))
    found, carried = cut(text, n_fields, width, cuts)
    rows = rows_of(text)
    if rows is None:
        is_open = carried[split_csv.STATE] in (split_csv.QUOTED, split_csv.QUOTE)
        assert is_open or carried[split_csv.MISCOUNTED]
        return
    odd = [k for k, row in enumerate(rows) if len(row) != n_fields]
    if odd:
        n_found = min(len(rows[odd[0]]), n_fields + 1)
        assert carried[split_csv.MISCOUNTED] == n_found
        assert carried[split_csv.ROWS] == odd[0]
        return
    assert carried.tolist()[1:] == [0, len(rows), 0]
    for k in range(len(found)):
        own = slice(k * width, (k + 1) * width)
        lines = [b",".join(row[own]) + b"\n" for row in rows]
        assert found[k] == b"".join(lines)


def test_text_may_be_cut_anywhere():
    """The kernel carries all that it needs from one piece to the next."""
    text = b'a,"b\n,""",c\r\n1,2,\r\n\n\r\n"x,",y"z",3\r4,5,6\n'
    expected = [b'a,"b\n,"""\n1,2\n"x,",y"z"\n4,5\n', b"c\n\n3\n6\n"]
    for place in range(len(text) + 1):
        found, carried = cut(text, 3, 2, [place])
        assert found == expected
        assert carried[split_csv.ROWS] == 4
