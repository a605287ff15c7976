"""The folder of a comparison: one file per finished cell, and the keys of cells.

OUT/
experiment.json     settings, data sets and provenance
cells/KEY.json      a cell; the key is a checksum of everything that determines it
data/               data sets, while processes need them
lock                while a process writes
"""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

import numpy as np

from featstream.errors import ParameterError, RunError, printable
from featstream.runs.folder import hold_lock, read_sealed, write_sealed

_HEAD: dict[str, Any] = {"format": "featstream comparison", "version": 2}

_ABOUT, _CELLS, _DATA, _LOCK = "experiment.json", "cells", "data", "lock"

_NOT_DECIDING = ("cli", "reporting")
"""Folders of the package that only show what was found."""


class CellStore:
    """The folder of a comparison, made when it is first locked."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other writers out; removes the data sets at the end."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise RunError(
                f"{printable(self.path)} cannot be the folder of a comparison: it, or "
                "something above it, is a file. Choose a folder that is new or empty."
            ) from None
        self._refuse_strangers()
        with hold_lock(self.path / _LOCK):
            shutil.rmtree(self.path / _DATA, ignore_errors=True)
            (self.path / _CELLS).mkdir(exist_ok=True)
            try:
                yield
            finally:
                shutil.rmtree(self.path / _DATA, ignore_errors=True)

    def data_folder(self, fingerprint: str) -> Path:
        """Where a data set is written for the processes."""
        return self.path / _DATA / fingerprint[:40]

    def drop_data(self, fingerprint: str) -> None:
        """Remove a data set that no process needs any more."""
        shutil.rmtree(self.data_folder(fingerprint), ignore_errors=True)

    def load(self, key: str) -> dict[str, Any] | None:
        """The record of a cell; None if there is none, or it is damaged."""
        return _read(self._cell(key))

    def save(self, key: str, cell: Mapping[str, Any]) -> None:
        """Write the record of a cell in one step."""
        write_sealed(self._cell(key), {**_HEAD, **cell})

    def about(self) -> dict[str, Any] | None:
        """Settings and data sets of the last comparison here."""
        return _read(self.path / _ABOUT)

    def save_about(self, about: Mapping[str, Any]) -> None:
        """Record settings and data sets."""
        write_sealed(self.path / _ABOUT, {**_HEAD, **about})

    def _cell(self, key: str) -> Path:
        return self.path / _CELLS / f"{key}.json"

    def _refuse_strangers(self) -> None:
        """Refuse a folder that holds other things."""
        if (self.path / _ABOUT).exists() or (self.path / _CELLS).is_dir():
            return
        ours = (_LOCK, ".")
        others = [p.name for p in self.path.iterdir() if not p.name.startswith(ours)]
        if others:
            raise RunError(
                f"{self.path} is not the folder of a comparison, and holds "
                f"{printable(others[0])}. Choose a folder that is new or empty."
            )


def _read(path: Path) -> dict[str, Any] | None:
    try:
        return read_sealed(path, _HEAD["format"], _HEAD["version"])[0]
    except RunError:
        return None


def key_of(description: Mapping[str, Any]) -> str:
    """Checksum of a description.

    >>> key_of({"a": 1, "b": [2]}) == key_of({"b": [2], "a": 1})
    True
    """
    plain = json.dumps(description, sort_keys=True)
    return hashlib.sha256(plain.encode()).hexdigest()[:40]


def describe(value: Any) -> Any:
    """A value as plain JSON, equal for equal values.

    >>> describe({"sizes": range(3)})
    {'sizes': [0, 1, 2]}
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        digest = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        return {"array": [value.dtype.str, list(value.shape), digest]}
    if isinstance(value, Mapping):
        return {str(k): describe(v) for k, v in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(map(repr, value))
    if isinstance(value, list | tuple | range):
        return [describe(v) for v in value]
    if isinstance(value, type) or inspect.isroutine(value):
        return {"code": code_of(value)}
    if isinstance(value, partial):
        return {"partial": describe([value.func, value.args, value.keywords])}
    known = {"class": code_of(type(value))}
    if hasattr(value, "get_params"):
        return known | {"parameters": describe(value.get_params(deep=False))}
    if type(value).__module__.partition(".")[0] == "featstream":
        names = getattr(value, "__slots__", None) or vars(value)
        state = {n: getattr(value, n) for n in names if not n.startswith("_")}
        return known | {"parameters": describe(state)}
    # All that is known is the message that would be sent to a process.
    return known | {"state": hashlib.sha256(as_message(value)).hexdigest()}


def as_message(value: Any) -> bytes:
    """The message that sends an object to another process."""
    try:
        return bytes(ForkingPickler.dumps(value))
    except Exception as error:
        raise ParameterError(
            f"A selector or classifier cannot be sent to another process: {error}. "
            "Define classes and functions at the top of a module, not inside another "
            "function."
        ) from error


def code_of(thing: Any) -> str:
    """Name and version of a class or function; a checksum where it has no version."""
    module = getattr(thing, "__module__", None) or "builtins"
    root = sys.modules.get(module.partition(".")[0])
    version = getattr(root, "__version__", None)
    if version is None:
        version = checksum_of_module(module)
    return f"{module}.{getattr(thing, '__qualname__', repr(thing))} {version}"


@cache
def checksum_of_module(name: str) -> str:
    """Checksum of the source of a module, so that changes of a script are noticed."""
    path = getattr(sys.modules.get(name), "__file__", None)
    if path is None or not Path(path).exists():
        return ""
    return checksum_of_files([Path(path)])


@cache
def checksum_of_library() -> str:
    """Checksum of the source that determines selections and scores.

    The version alone does not notice changes during development.
    """
    return checksum_of_files(deciding_files())


def deciding_files() -> list[Path]:
    """Every file of the package, except what only shows results."""
    root = Path(__file__).parents[1]
    return [
        path
        for path in sorted(root.rglob("*.py"))
        if path.relative_to(root).parts[0] not in _NOT_DECIDING
    ]


def checksum_of_files(paths: Iterable[Path]) -> str:
    """Checksum of the contents, one after the other."""
    digest = hashlib.sha256()
    for path in paths:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
