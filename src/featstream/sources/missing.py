"""How text says that a value is missing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from featstream.errors import DataError, ParameterError, printable

MISSING = (
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND"),
    *("1.#QNAN", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
)
"""Missing in every column of a text file, as in ``pandas.read_csv``."""

_MARKS = {"", "?", "??", ".", "..", "-", "--", "*", "#"}
"""Marks that are no word, so that they cannot be a class either."""

_SUSPECTS = {
    *_MARKS,
    *(word.casefold() for word in MISSING),
    *("missing", "n.a.", "n.a", "none", "nil", "unknown", "unk", "undefined"),
    *("not available", "not applicable", "no data", "nd", "n.d.", "void", "blank"),
}
"""Words that mean a missing value if they stand among numbers."""


def is_missing(value: Any) -> bool:
    """None, NaN, and the missing values of pandas, which need not be installed."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (float, np.floating)) and bool(value != value)


def as_na_values(na_values: str | Iterable[str] | None) -> tuple[str, ...]:
    """The further spellings of a missing value, as given by a user.

    >>> as_na_values("?"), as_na_values(["-99", "?"])
    (('?',), ('-99', '?'))
    """
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


def refuse_hidden_missing(
    values: Sequence[Any], what: str, *, is_target: bool = False
) -> None:
    """Raise if text is numbers but for a usual spelling of a missing value.

    In a target a bare mark, such as a question mark, is refused among words too.

    >>> refuse_hidden_missing(["red", "unknown", "blue"], "Feature 'colour'")
    >>> refuse_hidden_missing(["1.5", "?", "2"], "Feature 'age'")
    Traceback (most recent call last):
        ...
    featstream.errors.DataError: Feature 'age' has numbers, and '?' at row 1. If that
    means a missing value, pass na_values=['?'] (command line: --na-values '?'), or
    put a missing value (NaN, None) in its place.
    """
    distinct = {value for value in set(values) if isinstance(value, str)}
    suspects = {value for value in distinct if value.strip().casefold() in _SUSPECTS}
    others = distinct - suspects
    if not suspects or not others:
        return
    kind = "numbers"
    if not all(map(is_number, others)):
        suspects = {value for value in suspects if value.strip() in _MARKS}
        if not is_target or not suspects:
            return
        kind = "labels"
    row = next(i for i, value in enumerate(values) if value in suspects)
    found = repr(values[row])
    raise DataError(
        f"{what} has {kind}, and {found} at row {row}. If that means a missing value, "
        f"pass na_values=[{found}] (command line: --na-values {found}), or put a "
        "missing value (NaN, None) in its place."
    )


def is_number(text: str) -> bool:
    """Whether Python reads a number in it."""
    try:
        float(text)
    except ValueError:
        return False
    return True
