"""What text in a table means: a missing value, a number, or a number in disguise.

A column of numbers that a reader could not take as numbers is text, and text is
categories: one thousands separator, or three cells with ``#DIV/0!``, would turn a
measurement into names. Such a column is refused.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from featstream.errors import DataError, ParameterError, Setting, printable

MISSING = (
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND"),
    *("1.#QNAN", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
)
"""Missing in every column of a text file, as in ``pandas.read_csv``."""

_MARKS = {"", "?", "??", ".", "..", "-", "--", "*", "#"}
"""Marks that are not words: they cannot be class labels either."""

_SUSPECTS = {
    *_MARKS,
    *(word.casefold() for word in MISSING),
    *("missing", "n.a.", "n.a", "none", "nil", "unknown", "unk", "undefined"),
    *("not available", "not applicable", "no data", "nd", "n.d.", "void", "blank"),
}
"""Words that mean a missing value if they stand among numbers."""

_MOST_ODD = 0.1
"""A column of text is meant as numbers if no larger share of it is anything else."""

_FEW_LABELS = 10
"""A target of no more distinct values may be digits beside words."""

_PLAIN = re.compile(
    r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?(?:nan|inf|infinity)",
    re.IGNORECASE,
)
_ACCENTS = str.maketrans({"\u2212": "-", "\u2013": "-", "\u00a0": " ", "\u202f": " "})
_BEFORE = re.compile(r"[<>≤≥~≈±]=?|[$€£¥]|-[$€£¥]")
_AFTER = re.compile(r"[%‰*†‡$€£¥]+")
_GROUPED = re.compile(
    r"[+-]?[0-9]{1,3}(?:([,.' ’_])[0-9]{3})(?:\1[0-9]{3})*([.,][0-9]+)?"
)
_COMMA = re.compile(r"[+-]?[0-9]*,[0-9]+(?:[eE][+-]?[0-9]+)?")


def is_number(text: str) -> bool:
    """Whether `float` takes the text."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def is_plain_number(text: str) -> bool:
    """Whether text is a number as every reader understands it.

    >>> is_plain_number(" -1.5e3"), is_plain_number("1_000"), is_plain_number("1,5")
    (True, False, False)
    """
    return _PLAIN.fullmatch(text.strip()) is not None


def is_disguised_number(text: str) -> bool:
    """Whether text is a number but for separators, signs or marks that people add.

    >>> [is_disguised_number(t) for t in ("1,234.5", "5.1 %", "$5", "<0.1", "1.2*")]
    [True, True, True, True, True]
    >>> is_disguised_number("1.5"), is_disguised_number("2020-01-31")
    (False, False)
    """
    bare = text.strip().translate(_ACCENTS)
    if bare[:1] == "(" and bare[-1:] == ")":  # a debit, as accountants write it
        bare = bare[1:-1]
    if (match := _BEFORE.match(bare)) is not None:
        bare = bare[match.end() :].lstrip()
    if (match := _AFTER.search(bare)) is not None and match.end() == len(bare):
        bare = bare[: match.start()].rstrip()
    is_bare = (
        _PLAIN.fullmatch(bare) or _GROUPED.fullmatch(bare) or _COMMA.fullmatch(bare)
    )
    return is_bare is not None and not is_plain_number(text)


def as_na_values(na_values: str | Iterable[str] | None) -> tuple[str, ...]:
    """The further spellings of a missing value, as given by a user."""
    if na_values is None:
        return ()
    listed = (na_values,) if isinstance(na_values, str) else tuple(na_values)
    for value in listed:
        if not isinstance(value, str):
            raise ParameterError(
                "`na_values` must be text, as the file writes it. Got "
                f"{printable(value)} of type {type(value).__name__}. Write "
                f"na_values=[{str(value)!r}]."
            )
    return listed


def refuse_hidden_numbers(
    values: Sequence[Any], what: str, *, is_target: bool = False, is_label: bool = False
) -> None:
    """Raise if text is numbers, but for marks of missing values, or in disguise.

    That is so if at least nine in ten values that are not missing are numbers, plain or
    disguised. A target may be digits beside words, but no mark; and what was said to be
    categories (``is_label``) may be numbers in disguise.
    """
    counts = Counter(value for value in values if isinstance(value, str))
    suspects = {text for text in counts if text.strip().casefold() in _SUSPECTS}
    others = counts.keys() - suspects
    odd = {text for text in others if not is_plain_number(text)}
    if not others or not (suspects or odd):
        return
    n_others = sum(counts[text] for text in others)
    is_few = is_target and len(others) <= _FEW_LABELS
    if odd and not is_label and not is_few:
        disguised = set(filter(is_disguised_number, odd))
        # Plain ones must be among them: "<50" and ">=50" by themselves are categories.
        is_bounds = all(text.strip()[:1] in "<>≤≥" for text in others)
        n_odd = sum(counts[text] for text in odd - disguised)
        if n_odd <= _MOST_ODD * n_others and not is_bounds:
            raise _hidden(values, suspects | odd, what)
    if suspects and not odd:
        raise _hidden(values, suspects, what)
    marks = {text for text in suspects if text.strip() in _MARKS}
    if is_target and marks:
        raise _hidden(values, marks, what, "labels")


def _hidden(
    values: Sequence[Any], texts: set[str], what: str, kind: str = "numbers"
) -> DataError:
    """The error for a text that keeps a column from being numbers, or a label."""
    row = next(i for i, value in enumerate(values) if value in texts)
    found = values[row]
    n_rows = sum(value in texts for value in values)
    where = f"at row {row}"
    if n_rows > 1:
        where += f", the first of {n_rows:,} such values"
    beginning = f"{what} has {kind}, and {found!r} {where}. "
    bare = found.strip().translate(_ACCENTS)
    if not is_disguised_number(found) or kind == "labels":
        return DataError(
            beginning + "If that means a missing value, pass ",
            Setting("na_values", [found]),
            ", or put a missing value (NaN, None) in its place.",
        )
    advice: list[Any] = []
    if (grouped := _GROUPED.fullmatch(bare)) is not None:
        separator = next(c for c in found.strip() if c not in "+-\u22120123456789")
        advice += [f"If {separator!r} separates thousands, pass "]
        advice += [Setting("thousands", separator), ". "]
        if grouped[2] and grouped[2][0] == ",":
            advice[-1:] = [" and ", Setting("decimal", ","), ". "]
    if _COMMA.fullmatch(bare) is not None:
        advice += ["If ',' is the decimal point, pass ", Setting("decimal", ","), ". "]
    if set(found) & set("\u2212\u2013"):
        advice += [f"Write a plain minus (-) in place of {found.strip()[0]!r}. "]
    if advice:
        advice += ["Otherwise write plain numbers."]
    else:
        advice += ["Write plain numbers such as 1234.5 or -0.5, or, if it means a "]
        advice += ["missing value, pass ", Setting("na_values", [found]), ". "]
        advice += ["If these are categories, write them as words."]
    return DataError(beginning, *advice)
