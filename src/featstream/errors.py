"""Errors and warnings: what is wrong, what was found, what to do next.

Every error derives from `FeatstreamError` *and* from the builtin that fits, so
that ``except ValueError`` keeps working.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from numbers import Number
from os import PathLike

__all__ = [
    "ComplexDataError",
    "DataError",
    "DataTypeError",
    "FeatstreamError",
    "FeatstreamWarning",
    "MissingExtraError",
    "MissingFileError",
    "NotStartedError",
    "ParameterError",
    "RunError",
    "printable",
    "telling_of_full_disk",
    "unknown_name",
]


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
def telling_of_full_disk(path: str | PathLike[str], advice: str) -> Iterator[None]:
    """Add to the error of a disk that is full what has become of the file."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        told = f"{error.strerror}; {advice}"
        raise OSError(error.errno, told, str(path)) from error
