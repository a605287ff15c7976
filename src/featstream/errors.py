"""Errors, checks of parameters, and names as they are shown in messages.

Every error derives from `FeatstreamError` *and* from the builtin that fits, so
that ``except ValueError`` keeps working. Nothing heavy is imported here.
"""

from __future__ import annotations

import errno
import math
import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from numbers import Integral, Number, Real
from os import PathLike
from typing import Any, Literal, NamedTuple

_UNITS = ("", "K", "M", "G", "T")
_MOST_COMPARED = 100_000
"""Names that are compared for a suggestion: about a second."""


class Setting(NamedTuple):
    """A parameter in a piece of advice, which Python and the shell write differently.

    >>> advice = Setting("na_values", ["?"])
    >>> str(advice), advice.in_shell()
    ("na_values=['?']", "--na-values '?'")
    """

    parameter: str
    value: Any = ...

    def __str__(self) -> str:
        value = "..." if self.value is ... else repr(self.value)
        return f"{self.parameter}={value}"

    def in_shell(self) -> str:
        """The flag that sets the parameter."""
        flag = "--" + self.parameter.replace("_", "-")
        if self.value is ... or self.value is True:
            return flag
        value = self.value
        text = ",".join(value) if isinstance(value, list | tuple) else str(value)
        # argparse would take -999,9999 for a flag.
        return f"{flag}{'=' if text.startswith('-') else ' '}{shlex.quote(text)}"


class _Advising:
    """A message made of parts: text, and settings that Python and the shell write."""

    args: tuple[Any, ...]

    def __str__(self) -> str:
        return "".join(map(str, self.args)) if len(self.args) > 1 else super().__str__()

    def in_shell(self) -> str:
        """The message with flags in place of parameters."""
        if len(self.args) < 2:
            return str(self)
        parts = (p.in_shell() if isinstance(p, Setting) else str(p) for p in self.args)
        return "".join(parts)


class FeatstreamError(_Advising, Exception):
    """Base of every error that featstream raises on purpose."""


class FeatstreamWarning(_Advising, UserWarning):
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


def printable(text: object, *, limit: int | None = None) -> str:
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
    limit = limit or (400 if isinstance(text, PathLike) else 80)
    if len(quoted) <= limit:
        return quoted
    end = "...'" if quoted[0] == "'" else "..."
    return quoted[: limit - len(end)] + end


def visible(text: object, limit: int = 300) -> str:
    r"""Show a name with at most ``limit`` characters, all of them visible.

    Control characters, marks of direction and the like are written as escapes.

    >>> visible("gene\u202e17")
    'gene\\u202e17'
    >>> visible("x" * 400, limit=10)
    'xxxxxxxxx…'
    """
    found = str(text)[: limit + 1]
    if not found.isprintable():
        found = "".join(
            c if c.isprintable() else c.encode("unicode_escape").decode() for c in found
        )
    return found if len(found) <= limit else found[: limit - 1] + "…"


def some_of(names: Sequence[str], most: int) -> str:
    """List the first names, and say how many more there are.

    >>> some_of(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    n_more = len(names) - most
    return ", ".join(names[:most]) + (f" and {n_more:,} more" if n_more > 0 else "")


def label_text(label: object) -> str:
    """A class label as people write it: whole numbers without a decimal point."""
    is_whole = isinstance(label, float) and label.is_integer()
    return f"{label:.0f}" if is_whole else str(label)


def unknown_name(what: str, name: object, known: Iterable[str]) -> ParameterError:
    """Error for a name that is not among the known ones, with a suggestion."""
    known = sorted(known)
    close = closest(str(name), known) or closest(str(name).lower(), known)
    hint = f"Did you mean {close!r}?" if close else f"Known: {', '.join(known)}."
    return ParameterError(f"Unknown {what} {printable(name)}. {hint}")


def closest(name: str, known: Collection[str]) -> str | None:
    """The known name that was probably meant; None if too many would be compared."""
    if len(known) > _MOST_COMPARED:
        return None
    return next(iter(get_close_matches(name, known, n=1)), None)


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
    value: Any, name: str, choices: Collection[str | bool | None], owner: str = ""
) -> Any:
    """Return a parameter that is one of a few words."""
    if isinstance(value, str | bool | None) and value in choices:
        return value
    words = [repr(choice) for choice in choices]
    listed = " or ".join([", ".join(words[:-1]), words[-1]] if words[1:] else words)
    close = closest(str(value), [c for c in choices if isinstance(c, str)])
    hint = f"Did you mean {close!r}?" if close else ""
    raise _refused(name, owner, listed, value, hint)


def check_count(
    value: Any,
    name: str,
    owner: str = "",
    *,
    least: int = 1,
    most: int | None = None,
    none: str | None = None,
) -> Any:
    """Return a whole number as an ``int``; or None, where `none` says what it means."""
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
    raise _refused(name, owner, what, value)


def check_number(
    value: Any,
    name: str,
    owner: str = "",
    *,
    low: float = 0.0,
    high: float = math.inf,
    closed: Literal["left", "right", "neither"] = "neither",
    hint: str = "",
) -> float:
    """Return a number in an interval as a ``float``."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    end = {"left": low, "right": high}.get(closed)
    if is_number and (low < float(value) < high or float(value) == end):
        return float(value)
    has_low, has_high = closed == "left", closed == "right"
    what = f"a number {'of at least' if has_low else 'above'} {low:g}"
    if high < math.inf:
        begin, stop = "[" if has_low else "(", "]" if has_high else ")"
        what = f"a number in {begin}{low:g}, {high:g}{stop}"
    elif low == 0 and not has_low:
        what = "a positive number"
    raise _refused(name, owner, what, value, hint)


def check_alpha(alpha: Any, owner: str = "", name: str = "alpha") -> float:
    """Return a significance level as a ``float``."""
    hint = f"Use a small level such as {name}=0.01."
    if isinstance(alpha, int | float) and 1 <= alpha < 100:
        hint = f"For a {alpha:g}% level write {name}={alpha / 100:g}."
    return check_number(alpha, name, owner, high=1, hint=hint)


def _refused(
    name: str, owner: str, what: str, value: Any, hint: str = ""
) -> ParameterError:
    """The error of every checker: the parameter, what it must be, and the value."""
    of = f" of {owner}" if owner else ""
    text = f"`{name}`{of} must be {what}. Got {printable(value)}. {hint}"
    return ParameterError(text.rstrip())


def as_bytes(size: str | int, name: str = "memory_limit") -> int:
    """Number of bytes of a size such as ``"2GB"``, in powers of 1,024."""
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
