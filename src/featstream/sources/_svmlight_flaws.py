"""Why a token of svmlight text is refused, in words."""

from __future__ import annotations

import re

from featstream.errors import printable
from featstream.sources.kernels import parse_svmlight as grammar

__all__ = ["MAX_INDEX", "explain"]

MAX_INDEX = 2**31 - 1

_TOKEN = re.compile(rb"[^ \t\r\n#]*")
_NOT_FINITE = {"nan", "inf", "infinity"}
_NOTATION = "Write plain decimals such as 12, -0.5 or 1e-3"


def explain(flaw: int, text: bytes, previous: int = -1) -> str:
    """Reason why the token at the beginning of ``text`` is refused.

    Parameters
    ----------
    flaw : int
        Kind of the flaw, from `featstream.sources.kernels.parse_svmlight`.
    text : bytes
        The text from the token on, to the end of the line at least.
    previous : int
        Index before the token, if the flaw is one of order.

    Examples
    --------
    >>> explain(grammar.ENTRY, b"-3:1 4:1")
    'index -3 is negative. Indices are whole numbers from 0 or 1 up'
    """
    match = _TOKEN.match(text)
    token = match[0].decode("utf-8", "backslashreplace") if match else ""
    if flaw == grammar.ENDING and text[:1] == b"\r":
        return "there is a carriage return inside the line. End lines with a newline"
    if flaw == grammar.ENDING or "\0" in token:
        return "there is a NUL byte. This is not plain text; UTF-16 perhaps, or binary"
    if flaw in (grammar.LABEL, grammar.MIXED):
        return _explain_label(flaw, token)
    if flaw == grammar.OVERFLOW:
        return f"{printable(token)} is too large for a float"
    if flaw == grammar.QID or token.startswith("qid:"):
        return (
            f"{printable(token)} is out of place or no whole number. Write qid:12 "
            "once, right after the label"
        )
    return _explain_entry(flaw, token, previous)


def _explain_label(flaw: int, token: str) -> str:
    shown = printable(token)
    if flaw == grammar.MIXED:
        return (
            f"label {shown} after labels of another kind. Labels are all numbers or "
            "all words"
        )
    if ":" in token:
        return f"{shown} where the label should be. Every row begins with its label"
    if "," in token:
        return f"several labels, {shown}. There must be one label a row"
    if token.lower().lstrip("+-") in _NOT_FINITE:
        return f"label {shown} is not finite. Leave out rows without a label"
    if len(token) > 255:
        return f"label {shown} is longer than 255 bytes"
    return (
        f"label {shown} is neither a number nor a word. {_NOTATION}; words begin with "
        "a letter"
    )


def _explain_entry(flaw: int, token: str, previous: int) -> str:
    index, colon, value = token.partition(":")
    if not colon:
        return f"{printable(token)} has no colon. Entries are written index:value"
    if re.fullmatch(r"-\d+", index):
        return (
            f"index {index[:20]} is negative. Indices are whole numbers from 0 or 1 up"
        )
    if not re.fullmatch(r"[0-9]+", index):
        return f"index {printable(index)} is not a whole number"
    if len(index) > 10 or int(index) > MAX_INDEX:
        return f"index {index[:20]} is above {MAX_INDEX}"
    if flaw == grammar.ORDER and previous > 0:
        again = "occurs twice" if int(index) == previous else f"after {previous}"
        return f"index {index} {again}; indices must increase"
    if flaw == grammar.ORDER:
        return f"index {index} in a one-based file. Pass zero_based=True or 'auto'"
    if value.lower().lstrip("+-") in _NOT_FINITE:
        return (
            f"value {printable(value)} of index {index} is not finite. Leave the entry "
            "out, or write a number for it"
        )
    return f"value {printable(value)} of index {index} is not a number. {_NOTATION}"
