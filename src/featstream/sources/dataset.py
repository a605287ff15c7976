"""A data set on disk: what it is, and how trouble with its file is told."""

from __future__ import annotations

import errno
import os
import zipfile
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

from numpy.typing import NDArray

from featstream.errors import (
    DataError,
    DataTypeError,
    FeatstreamError,
    MissingExtraError,
    MissingFileError,
    printable,
)
from featstream.protocols import Source, sample_names_of

__all__ = [
    "FOLDERS",
    "TARGET_NAMES",
    "Dataset",
    "PathLike",
    "existing",
    "find_target",
    "format_suffix",
    "reading",
    "require",
    "shortened",
]

PathLike: TypeAlias = "str | os.PathLike[str]"

TARGET_NAMES = ("y", "target", "class", "label")

FOLDERS = (".cols", ".zarr")
"""Suffixes of data sets that are folders."""

COMPRESSED = (".gz", ".xz", ".bz2", ".zst")

UNREADABLE = (
    EOFError,
    KeyError,
    NotImplementedError,
    OSError,
    RuntimeError,
    ValueError,
    zipfile.BadZipFile,
    zlib.error,
)
"""What the readers of other libraries raise on a file that is not well formed."""

NOT_THE_FILE = (
    *(errno.EACCES, errno.EPERM, errno.EIO, errno.ENOMEM),
    *(errno.EMFILE, errno.ENFILE, errno.ENOSPC, errno.EDQUOT),
)
"""Trouble that is the system's, and to be told as such."""


@dataclass(frozen=True, slots=True)
class Dataset:
    """Features, and the target where the file holds one.

    Attributes
    ----------
    source : Source
        The features.
    y : ndarray of shape (n_samples,) or None
        The target.
    names : sequence of str or None
        The names of the features, where the file holds them.
    target_name : str or None
        The column, array or file that the target was read from; None if the format
        has one place for it.
    target_is_guessed : bool
        Whether the target was found by its name (``y``, ``target``, ``class`` or
        ``label``), not asked for.

    Examples
    --------
    >>> import numpy as np
    >>> from featstream.sources import ArraySource, Dataset
    >>> Dataset(ArraySource(np.eye(2)), np.array([0, 1]))
    Dataset(source=ArraySource(2 samples × 2 features, float64),
            y=array([0, 1]), names=None)
    """

    source: Source
    y: NDArray[Any] | None = None
    names: Sequence[str] | None = None
    target_name: str | None = field(default=None, repr=False)
    target_is_guessed: bool = field(default=False, repr=False)

    @property
    def samples(self) -> Sequence[str] | None:
        """The names of the samples, where they are known."""
        return sample_names_of(self.source)


def format_suffix(path: PathLike) -> str:
    """The suffix that tells the format: in small letters, before one of compression.

    >>> format_suffix("NEWS20.svm.gz"), format_suffix("data")
    ('.svm', '')
    """
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    if suffixes and suffixes[-1] in COMPRESSED:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def existing(path: PathLike) -> Path:
    """The path, if there is a data set at it."""
    path = Path(path)
    is_other_folder = path.is_dir() and format_suffix(path) not in FOLDERS
    if not path.exists() or is_other_folder:
        hint = "It is a folder." if path.is_dir() else "Check the path."
        raise MissingFileError(
            f"There is no file {printable(path, limit=400)} "
            f"(working folder: {Path.cwd()}). {hint}"
        )
    return path


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Say which file it was that could not be read."""
    try:
        yield
    except (DataError, DataTypeError) as error:
        raise type(error)(f"{path}: {error}") from error
    except FeatstreamError:  # a wrong parameter, or a package that is not installed
        raise
    except UNREADABLE as error:
        if isinstance(error, OSError) and error.errno in NOT_THE_FILE:
            raise
        raise DataError(
            f"{path} cannot be read as {path.suffix}: {str(error).rstrip('.')}. "
            "It may be truncated, or not what its name says."
        ) from error


def require(package: str, extra: str, path: PathLike) -> None:
    """Raise if a package that reads a file is not installed."""
    if find_spec(package) is None:
        raise MissingExtraError(
            f"Reading {path} needs {package} (extra {extra!r}). Install it: pip "
            f"install {package}"
        )


def find_target(names: Sequence[str], also: Collection[str] = ()) -> str | None:
    """The one name that is among ``also``, or else that a target has by custom.

    >>> find_target(["age", "Class"]), find_target(["age", "sex"])
    ('Class', None)
    """
    found = [name for name in names if name in also]
    found = found or [name for name in names if name.lower() in TARGET_NAMES]
    if len(found) > 1:
        raise DataError(
            f"which is the target: {' or '.join(map(printable, found))}? Name it with "
            "target=... (command line: --target)."
        )
    return found[0] if found else None


def shortened(names: Sequence[str], most: int = 20) -> str:
    """Names for a message, some of them if they are many.

    >>> shortened(["a", "b", "c"], most=2)
    "'a', 'b' and 1 more"
    """
    shown = ", ".join(printable(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most:,} more"
