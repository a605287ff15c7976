"""The svmlight grammar, slow and obvious: the twin of the kernels in `parse_svmlight`.

    file    = line*
    line    = blank* [label [blank+ qid] (blank+ entry)*] blank* [comment] end
    label   = number | word                  all of one kind in a file
    entry   = index ":" number               indices increase

`parse` takes the bytes of a file and returns its rows, or raises `Malformed`
with the number of the first line that does not follow the grammar.
"""

from __future__ import annotations

import math
import re

import numpy as np

NUMBER = re.compile(rb"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
WORD = re.compile(rb"[A-Za-z_\x80-\xff][^\x00-\x20#,:\x7f]{0,254}")
NOT_FINITE = re.compile(rb"nan|inf|infinity", re.IGNORECASE)
QID = re.compile(rb"qid:[0-9]{1,18}")
ENTRY = re.compile(rb"([0-9]{1,10}):(.*)", re.DOTALL)
BLANKS = re.compile(rb"[ \t]+")


class Malformed(Exception):
    def __init__(self, line: int) -> None:
        super().__init__(line)
        self.line = line


def parse(data: bytes, base: int = 0):
    """Rows as (label, [(index, value), ...]); labels are floats or strings."""
    rows = []
    kind = None
    lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    for number, line in enumerate(lines, 1):
        try:
            row = parse_line(line.removesuffix(b"\r"), base)
            if row is None:
                continue
            if kind not in (None, type(row[0])):
                raise ValueError("labels of two kinds")
        except ValueError:
            raise Malformed(number) from None
        kind = type(row[0])
        rows.append(row)
    return rows


def parse_line(line: bytes, base: int):
    if b"\0" in line:
        raise ValueError("NUL")
    content, _, _ = line.partition(b"#")
    # A carriage return before the comment is inside the line.
    if b"\r" in content:
        raise ValueError("carriage return")
    tokens = [token for token in BLANKS.split(content) if token]
    if not tokens:
        return None
    label = parse_label(tokens.pop(0))
    if tokens and QID.fullmatch(tokens[0]):
        tokens.pop(0)
    entries = []
    previous = base - 1
    for token in tokens:
        match = ENTRY.fullmatch(token)
        if match is None:
            raise ValueError("entry")
        index = int(match[1])
        if not previous < index <= 2**31 - 1:
            raise ValueError("index")
        entries.append((index, parse_number(match[2])))
        previous = index
    return label, entries


def parse_label(token: bytes):
    if NUMBER.fullmatch(token):
        return parse_number(token)
    if not WORD.fullmatch(token) or NOT_FINITE.fullmatch(token):
        raise ValueError("label")
    return token.decode("utf-8")  # UnicodeDecodeError is a ValueError


def parse_number(token: bytes) -> float:
    if not NUMBER.fullmatch(token):
        raise ValueError("number")
    value = float(token)
    if math.isinf(value):
        raise ValueError("too large")
    return value


def random_text(n_rows, n_features, seed, *, digits=6, values=None, base=1):
    """Rows with entries in three of ten columns: real numbers, or ``values``."""
    rng = np.random.default_rng(seed)
    lines = []
    for _ in range(n_rows):
        columns = np.flatnonzero(rng.random(n_features) < 0.3) + base
        numbers = [f"{v:.{digits}g}" for v in rng.normal(size=columns.size)]
        if values is not None:
            numbers = rng.choice(values, columns.size)
        row = " ".join(f"{j}:{v}" for j, v in zip(columns, numbers, strict=True))
        lines.append(f"{rng.choice([-1, 1])} {row}\n")
    return "".join(lines)
