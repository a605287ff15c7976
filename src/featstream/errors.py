"""Errors, and the checks of parameters: what is wrong, what was given, what to do.

Every error derives from `FeatstreamError` *and* from the builtin that fits, so
that ``except ValueError`` keeps working. Nothing heavy is imported here.
"""

from __future__ import annotations

import errno
import math
import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from numbers import Integral, Number, Real
from os import PathLike
from typing import Any, Literal

_UNITS = ("", "K", "M", "G", "T")


class FeatstreamError(Exception):
    """Base of every error that featstream raises on purpose."""


class FeatstreamWarning(UserWarning):
    """Something worth knowing, said once per stream."""


class ParameterError(FeatstreamError, ValueError):
    """A parameter has a value that it cannot have."""


class DataError(FeatstreamError, ValueError):
    """The data, or the target, cannot be used as they are."""


class DataTypeError(FeatstreamError, TypeError):
    """The data, or the target, are of a kind that cannot be used."""


class ComplexDataError(DataTypeError, DataError):
    """Complex numbers: a TypeError to us, a ValueError to scikit-learn's checks."""


class MissingFileError(FeatstreamError, FileNotFoundError):
    """There is no such file."""


class MissingExtraError(FeatstreamError, ImportError):
    """Something needs a package that is not installed."""


class NotStartedError(FeatstreamError, AttributeError, ValueError):
    """A stream was used before ``start(y)`` or ``fit(X, y)``."""


class EngineError(FeatstreamError, ConnectionError):
    """The cluster that a scan runs on cannot continue it."""


class RunError(FeatstreamError, ValueError):
    """A saved run cannot be read, or does not fit what is asked of it."""


def printable(text: object, *, limit: int = 80) -> str:
    """Show a name or a value in a message: text quoted, control characters escaped.

    >>> printable("gene_17")
    "'gene_17'"
    >>> printable(17)
    '17'
    """
    if isinstance(text, (str, PathLike)):
        quoted = repr(str(text))
    else:
        quoted = str(text) if isinstance(text, Number) else repr(text)
    if len(quoted) <= limit:
        return quoted
    end = "...'" if quoted[0] == "'" else "..."
    return quoted[: limit - len(end)] + end


def unknown_name(what: str, name: object, known: Iterable[str]) -> ParameterError:
    """Error for a name that is not among the known ones, with a suggestion."""
    known = sorted(known)
    close = get_close_matches(str(name), known, n=1)
    close = close or get_close_matches(str(name).lower(), known, n=1)
    hint = f"Did you mean {close[0]!r}?" if close else f"Known: {', '.join(known)}."
    return ParameterError(f"Unknown {what} {printable(name)}. {hint}")


@contextmanager
def explain_full_disk(path: str | PathLike[str], advice: str) -> Iterator[None]:
    """Add advice to the error that a full disk or quota raises."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        message = f"{error.strerror}; {advice}"
        raise OSError(error.errno, message, str(path)) from error


def check_choice(
    value: Any, name: str, choices: Collection[str | None], owner: str = ""
) -> Any:
    """Return a parameter that is one of a few words.

    >>> check_choice("mean", "bound", ("min", "max"), "SAOLA")
    Traceback (most recent call last):
    featstream.errors.ParameterError: `bound` of SAOLA must be 'min' or 'max'. Got
    'mean'.
    """
    if isinstance(value, str | None) and value in choices:
        return value
    words = [repr(choice) for choice in choices]
    listed = " or ".join([", ".join(words[:-1]), words[-1]] if words[1:] else words)
    close = get_close_matches(str(value), [c for c in choices if c], n=1)
    hint = f"Did you mean {close[0]!r}?" if close else ""
    raise _refused(name, owner, listed, value, hint)


def check_count(
    value: Any,
    name: str,
    owner: str = "",
    *,
    least: int = 1,
    most: int | None = None,
    none: str | None = None,
    hint: str = "",
) -> Any:
    """Return a whole number as an ``int``; or None, where `none` says what it means.

    >>> check_count(0, "max_features", "SAOLA", none="for no limit")
    Traceback (most recent call last):
    featstream.errors.ParameterError: `max_features` of SAOLA must be an integer of at
    least 1, or None for no limit. Got 0.
    """
    if value is None and none is not None:
        return None
    is_whole = isinstance(value, Integral) and not isinstance(value, bool)
    if is_whole and value >= least and (most is None or value <= most):
        return int(value)
    what = f"an integer of at least {least}"
    if most is not None:
        what = f"an integer from {least} to {most}"
    if none is not None:
        what += f", or None {none}"
    raise _refused(name, owner, what, value, hint)


def check_number(
    value: Any,
    name: str,
    owner: str = "",
    *,
    low: float = 0.0,
    high: float = math.inf,
    closed: Literal["left", "right", "both", "neither"] = "neither",
    hint: str = "",
) -> float:
    """Return a number in an interval as a ``float``.

    >>> check_number(1.0, "noise", "make_stream", high=1, closed="left")
    Traceback (most recent call last):
    featstream.errors.ParameterError: `noise` of make_stream must be a number in [0, 1).
    Got 1.0.
    """
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if is_number and math.isfinite(value):
        is_above = value > low or (value == low and closed in ("left", "both"))
        is_below = value < high or (value == high and closed in ("right", "both"))
        if is_above and is_below:
            return float(value)
    begin = "[" if closed in ("left", "both") else "("
    end = "]" if closed in ("right", "both") else ")"
    what = f"a number in {begin}{low:g}, {high:g}{end}"
    if high == math.inf:
        what = f"a number of at least {low:g}" if begin == "[" else "a positive number"
        if begin == "(" and low != 0:
            what = f"a number above {low:g}"
    raise _refused(name, owner, what, value, hint)


def check_alpha(alpha: Any, owner: str = "", name: str = "alpha") -> float:
    """Return a significance level as a ``float``.

    >>> check_alpha(5, "FisherZ")
    Traceback (most recent call last):
    featstream.errors.ParameterError: `alpha` of FisherZ must be a float in (0, 1). Got
    5. For a 5% level write alpha=0.05.
    """
    is_number = isinstance(alpha, Real) and not isinstance(alpha, bool)
    if is_number and 0 < alpha < 1:
        return float(alpha)
    hint = f"Use a small level such as {name}=0.01."
    if is_number and 1 <= alpha < 100:
        hint = f"For a {alpha:g}% level write {name}={alpha / 100:g}."
    raise _refused(name, owner, "a float in (0, 1)", alpha, hint)


def _refused(
    name: str, owner: str, what: str, value: Any, hint: str = ""
) -> ParameterError:
    """The sentence of every checker: the parameter, what it must be, the value."""
    of = f" of {owner}" if owner else ""
    text = f"`{name}`{of} must be {what}. Got {printable(value)}. {hint}"
    return ParameterError(text.rstrip())


def as_bytes(size: str | int, name: str = "memory_limit") -> int:
    """Number of bytes of a size such as ``"2GB"``, in powers of 1,024.

    >>> as_bytes("2GB") == 2 << 30
    True
    """
    pattern = r"([0-9]+(?:\.[0-9]+)?) ?([KMGT]?)(?:i?B)?"
    match = re.fullmatch(pattern, str(size), re.IGNORECASE)
    n_bytes = 0
    if match is not None and not isinstance(size, bool):
        n_bytes = int(float(match[1]) * 1024 ** _UNITS.index(match[2].upper()))
    if n_bytes < 1:
        raise _refused(name, "", "a size such as 500MB or 2GB", size)
    return n_bytes


def size_text(n_bytes: int) -> str:
    """A number of bytes in three digits and a unit.

    >>> size_text(2 << 30), size_text(1_572_864)
    ('2 GB', '1.5 MB')
    """
    size, power = float(n_bytes), 0
    while size >= 1024 and power < len(_UNITS) - 1:
        size, power = size / 1024, power + 1
    return f"{size:.3g} {_UNITS[power]}B"
