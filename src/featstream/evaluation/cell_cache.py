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
from featstream.runs.folder import (
    hold_lock,
    read_sealed,
    refuse_other_files,
    write_sealed,
)

_HEAD: dict[str, Any] = {"format": "featstream comparison", "version": 2}

_ABOUT, _LOCK = "experiment", "lock"

_NOT_DECIDING = ("cli", "reporting")
"""Folders of the package that only show what was found."""


class CellStore:
    """The folder of a comparison, made when it is first locked."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.cells, self.data = self.path / "cells", self.path / "data"

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
        if not ((self.path / f"{_ABOUT}.json").exists() or self.cells.is_dir()):
            refuse_other_files(self.path, (_LOCK, "."), "comparison")
        with hold_lock(self.path / _LOCK):
            shutil.rmtree(self.data, ignore_errors=True)
            self.cells.mkdir(exist_ok=True)
            try:
                yield
            finally:
                shutil.rmtree(self.data, ignore_errors=True)

    def load(self, name: str = _ABOUT) -> dict[str, Any] | None:
        """A record, by default of the settings; None if it is absent or damaged."""
        path = self.path / f"{name}.json"
        try:
            return read_sealed(path, _HEAD["format"], _HEAD["version"])[0]
        except RunError:
            return None

    def save(self, content: Mapping[str, Any], name: str = _ABOUT) -> None:
        """Write a record in one step."""
        write_sealed(self.path / f"{name}.json", {**_HEAD, **content})


def key_of(value: Any) -> str:
    """Checksum of a value, by its description; the order of mappings is no matter."""
    plain = json.dumps(describe(value), sort_keys=True)
    return hashlib.sha256(plain.encode()).hexdigest()[:40]


def describe(value: Any) -> Any:
    """A value as plain JSON, equal for equal values."""
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
    return checksum_of_files([Path(path)]) if path and Path(path).exists() else ""


@cache
def checksum_of_library() -> str:
    """Checksum of the source: the version alone does not notice all changes."""
    return checksum_of_files(deciding_files())


def deciding_files() -> list[Path]:
    """Every file that determines selections and scores, or might."""
    root = Path(__file__).parents[1]
    paths = sorted(root.rglob("*.py"))
    return [p for p in paths if p.relative_to(root).parts[0] not in _NOT_DECIDING]


def checksum_of_files(paths: Iterable[Path]) -> str:
    """Checksum of the contents, one after the other."""
    content = b"".join(path.read_bytes() for path in paths)
    return hashlib.sha256(content).hexdigest()[:16]
