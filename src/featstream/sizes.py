"""Amounts of memory as people write them."""

from __future__ import annotations

import re

from featstream.errors import ParameterError, printable

__all__ = ["as_bytes", "size_text"]

_UNITS = ("", "K", "M", "G", "T")


def as_bytes(size: str | int, name: str = "memory_limit") -> int:
    """Number of bytes.

    Parameters
    ----------
    size : str or int
        Such as ``"2GB"``, in powers of 1,024.
    name : str, default="memory_limit"
        What the parameter is called in an error.

    Returns
    -------
    int
        At least 1.

    Examples
    --------
    >>> as_bytes("2GB") == 2 << 30
    True
    """
    pattern = r"([0-9]+(?:\.[0-9]+)?) ?([KMGT]?)(?:i?B)?"
    match = re.fullmatch(pattern, str(size), re.IGNORECASE)
    n_bytes = 0
    if match is not None and not isinstance(size, bool):
        n_bytes = int(float(match[1]) * 1024 ** _UNITS.index(match[2].upper()))
    if n_bytes < 1:
        raise ParameterError(
            f"`{name}` must be a size such as 500MB or 2GB. Got {printable(size)}."
        )
    return n_bytes


def size_text(n_bytes: int) -> str:
    """A size as people write it.

    Parameters
    ----------
    n_bytes : int
        Bytes.

    Returns
    -------
    str
        Three digits and a unit.

    Examples
    --------
    >>> size_text(2 << 30), size_text(1_572_864)
    ('2 GB', '1.5 MB')
    """
    size, power = float(n_bytes), 0
    while size >= 1024 and power < len(_UNITS) - 1:
        size, power = size / 1024, power + 1
    return f"{size:.3g} {_UNITS[power]}B"
