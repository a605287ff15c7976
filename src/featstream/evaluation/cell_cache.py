"""What a comparison has found so far: one file a cell, whole or not there.

OUT/
experiment.json     what was compared, and with what
cells/KEY.json      a cell; the key is a checksum of all that decides it
data/               data sets, while processes need them
lock                while a process writes
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from featstream.errors import RunError, printable
from featstream.runs.folder import hold_lock

__all__ = ["CellStore", "key_of"]

FORMAT = "featstream comparison"
VERSION = 1

_ABOUT, _CELLS, _DATA, _LOCK = "experiment.json", "cells", "data", "lock"


def key_of(description: Mapping[str, Any]) -> str:
    """Checksum of a description, the same for the same one.

    >>> key_of({"a": 1, "b": [2]}) == key_of({"b": [2], "a": 1})
    True
    """
    plain = json.dumps(description, sort_keys=True)
    return hashlib.sha256(plain.encode()).hexdigest()[:40]


class CellStore:
    """The folder of a comparison.

    Parameters
    ----------
    path : str or path
        The folder; made when it is first locked.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other writers out; afterwards no data set is left."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise RunError(
                f"{printable(self.path)} cannot be the folder of a comparison: it, or "
                "something above it, is a file. Choose a folder that is new or empty."
            ) from None
        self._refuse_strangers()
        with hold_lock(self.path / _LOCK):
            self._clear_data()
            (self.path / _CELLS).mkdir(exist_ok=True)
            try:
                yield
            finally:
                self._clear_data()

    def data_folder(self, fingerprint: str) -> Path:
        """Where a data set is written for the processes."""
        return self.path / _DATA / fingerprint[:40]

    def drop_data(self, fingerprint: str) -> None:
        """Remove a data set that no process needs any more."""
        shutil.rmtree(self.data_folder(fingerprint), ignore_errors=True)

    def load(self, key: str) -> dict[str, Any] | None:
        """A cell, or None if it is not there or damaged."""
        return read_sealed(self._cell(key))

    def save(self, key: str, cell: Mapping[str, Any]) -> None:
        """Write a cell in one step."""
        write_sealed(self._cell(key), cell)

    def about(self) -> dict[str, Any] | None:
        """What was compared here last."""
        return read_sealed(self.path / _ABOUT)

    def save_about(self, about: Mapping[str, Any]) -> None:
        """Note what is compared here."""
        write_sealed(self.path / _ABOUT, about)

    def _cell(self, key: str) -> Path:
        return self.path / _CELLS / f"{key}.json"

    def _clear_data(self) -> None:
        shutil.rmtree(self.path / _DATA, ignore_errors=True)

    def _refuse_strangers(self) -> None:
        """A folder that holds other things is not taken for a comparison."""
        if (self.path / _ABOUT).exists() or (self.path / _CELLS).is_dir():
            return
        ours = (_LOCK, ".")
        others = [p.name for p in self.path.iterdir() if not p.name.startswith(ours)]
        if others:
            raise RunError(
                f"{self.path} is not the folder of a comparison, and holds "
                f"{printable(others[0])}. Choose a folder that is new or empty."
            )


def write_sealed(path: Path, content: Mapping[str, Any]) -> None:
    """Replace a JSON file that carries a checksum of itself."""
    whole = {"format": FORMAT, "version": VERSION, **content}
    text = json.dumps({**whole, "sha256": seal_of(whole)}, indent=1)
    part = path.with_name(f".{path.name}.part")
    try:
        with open(part, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def read_sealed(path: Path) -> dict[str, Any] | None:
    """What `write_sealed` wrote; None if there is nothing, or not all of it."""
    try:
        whole = json.loads(path.read_bytes())
        seal = whole.pop("sha256")
        is_ours = (whole["format"], whole["version"]) == (FORMAT, VERSION)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return whole if is_ours and seal == seal_of(whole) else None


def seal_of(whole: Mapping[str, Any]) -> str:
    """Checksum of the content of a file."""
    plain = json.dumps(whole, sort_keys=True)
    return hashlib.sha256(plain.encode()).hexdigest()
