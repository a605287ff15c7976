"""Labels of groups as text, and back."""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from featstream.errors import RunError, printable

__all__ = ["read_labels", "write_labels"]


def write_labels(labels: Sequence[Hashable]) -> str:
    """Labels as JSON; `RunError` for one that is not text, number or tuple of such.

    >>> write_labels(["a", 7, ("chr1", 2.5)])
    '["a", 7, ["chr1", 2.5]]'
    """
    try:
        return json.dumps(list(labels), default=_plain)
    except (TypeError, ValueError) as error:
        raise RunError(
            f"The groups have a label that cannot be saved: {error}. Use text, "
            "numbers, or tuples of these."
        ) from None


def _plain(label: Any) -> Any:
    if isinstance(label, np.generic):
        return label.item()
    raise TypeError(f"{printable(label)} is of type {type(label).__name__}")


def read_labels(text: str) -> list[Hashable]:
    """The labels that `write_labels` wrote; `RunError` for any other text.

    >>> read_labels('["a", 7, ["chr1", 2.5]]')
    ['a', 7, ('chr1', 2.5)]
    """
    try:
        found = json.loads(text)
        if type(found) is not list:
            raise ValueError("not a list")
        return [_label(label) for label in found]
    except (ValueError, RecursionError) as error:
        raise RunError(
            f"The run is damaged in the labels of its groups: {printable(error)}."
        ) from None


def _label(found: Any) -> Hashable:
    if isinstance(found, list):
        return tuple(_label(part) for part in found)
    if not isinstance(found, str | int | float):
        raise ValueError(f"a label is {printable(found)}")
    return found
