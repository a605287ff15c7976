"""The folder of a run: what a selector has found so far, safe against any kill.

RUN/
run.json            what the rest is, with its checksum
state-000007.npz    the state of generation 7
previous.json       the same for the generation before
state-000006.npz
selected.csv        the selection, when a source has been taken in
lock                while a process writes

A file is written under another name, synced, and renamed; ``run.json`` comes
last. So at every instant the folder holds a whole generation, and if that is
damaged afterwards, the one before.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from numpy.typing import NDArray

from featstream.errors import (
    MissingFileError,
    RunError,
    explain_full_disk,
    printable,
)
from featstream.runs.arrays import read_arrays, write_arrays
from featstream.runs.lock import hold_lock

__all__ = ["Checkpoint", "RunFolder", "Saved", "is_run"]

FORMAT = "featstream run"
VERSION = 1

_CURRENT, _PREVIOUS, _LOCK = "run.json", "previous.json", "lock"
_MAX_JSON = 16 << 20
_PIECE = 1 << 20
_MODE = 0o600
_ADVICE = "the checkpoint before is whole. Make room and resume"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Where and how often a run is saved.

    Attributes
    ----------
    path : str or path
        Folder of the run.
    every : float
        Seconds between checkpoints. There are fewer if saving would otherwise
        take more than a twentieth of the time; 0 is after each block.
    data : dict, optional
        How to open the data again: ``path`` and ``target``, as for
        `featstream.sources.open_dataset`; of groups, ``groups`` with ``path``,
        ``size`` or ``pattern``, as for `featstream.read_groups`.
    command : list of str, optional
        The command line that began the run.
    """

    path: str | os.PathLike[str]
    every: float = 10.0
    data: Mapping[str, Any] | None = None
    command: list[str] | None = None


@dataclass(frozen=True, slots=True)
class Saved:
    """One generation of a run: its description, and arrays by name."""

    description: dict[str, Any]
    arrays: dict[str, NDArray[Any]] = field(repr=False)

    @property
    def generation(self) -> int:
        """How many times the run had been saved, this time included."""
        return int(self.description["generation"])


def is_run(path: str | os.PathLike[str]) -> bool:
    """Whether there is a run in a folder, damaged or not."""
    return any((Path(path) / name).exists() for name in (_CURRENT, _PREVIOUS))


class RunFolder:
    """The files of a run.

    Parameters
    ----------
    path : str or path
        The folder; made when it is first locked.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> folder = RunFolder(tempfile.mkdtemp())
    >>> with folder.locked():
    ...     folder.save({"n_seen": 2}, {"scores": np.array([0.5, 0.25])})
    1
    >>> folder.load().arrays["scores"]
    array([0.5 , 0.25])
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._whole: tuple[int, bytes] | None = None  # generation known to be whole

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other writers out."""
        self.path.mkdir(parents=True, exist_ok=True)
        _refuse_strangers(self.path)
        with hold_lock(self.path / _LOCK):
            yield

    def begin(self, description: Mapping[str, Any]) -> None:
        """Write generation 0: a run whose data are still to be read."""
        about = {"format": FORMAT, "version": VERSION, **description}
        text = seal({**about, "generation": 0, "files": {}})
        with self.locked():
            self._replace(_CURRENT, lambda file: _write(file, text))

    def withdraw(self) -> None:
        """Remove generation 0, and the folder if nothing else is in it."""
        with suppress(OSError, RunError):
            if self.load().generation == 0:
                for name in (_CURRENT, _LOCK):
                    (self.path / name).unlink(missing_ok=True)
                self.path.rmdir()

    def save(
        self, description: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
    ) -> int:
        """Write the next generation, and return its number."""
        if self._whole is None and is_run(self.path):
            self.load()
        generation = self._last_generation() + 1
        state = f"state-{generation:06d}.npz"
        digest = self._replace(state, lambda file: write_arrays(file, arrays))
        whole = {
            "format": FORMAT,
            "version": VERSION,
            **description,
            "generation": generation,
            "files": {state: digest},
        }
        text = seal(whole)
        needed = {state}
        if self._whole is not None and self._whole[0] > 0:
            before, old_text = self._whole
            self._replace(_PREVIOUS, lambda file: _write(file, old_text))
            needed.add(f"state-{before:06d}.npz")
        self._replace(_CURRENT, lambda file: _write(file, text))
        self._whole = generation, text
        for path in (*self.path.glob("state-*.npz"), *self.path.glob(".*.part")):
            if path.name not in needed:
                path.unlink(missing_ok=True)
        return generation

    def write_text(self, name: str, text: str) -> None:
        """Replace a file that people read."""
        self._replace(name, lambda file: _write(file, text.encode("utf-8")))

    def load(self) -> Saved:
        """The newest generation that is whole.

        Raises
        ------
        RunError
            If there is none, or it was written by a later version.
        """
        if not is_run(self.path):
            if not self.path.exists():
                raise MissingFileError(
                    f"There is no run {printable(self.path, limit=400)} (working "
                    f"folder: {Path.cwd()}). Check the path."
                )
            raise RunError(f"{self.path} is not the folder of a run: no {_CURRENT}.")
        try:
            return self._load(_CURRENT)
        except _LaterVersionError:
            raise
        except RunError as error:
            try:
                saved = self._load(_PREVIOUS)
            except RunError as other:
                raise RunError(
                    f"The run {self.path} cannot be read. {error} The generation "
                    f"before cannot either: {other}"
                ) from error
            warnings.warn(
                f"{error} The run goes on from the generation before.", stacklevel=3
            )
            return saved

    def read_description(self) -> dict[str, Any]:
        """What ``run.json`` says, without the state."""
        return self.load().description

    def _load(self, name: str) -> Saved:
        description, text = _read_sealed(self.path / name)
        arrays: dict[str, NDArray[Any]] = {}
        for file, digest in description["files"].items():
            path = self.path / file
            try:
                is_whole = _digest_of(path) == digest
            except OSError as error:
                raise RunError(f"{path} cannot be read: {error.strerror}.") from error
            if not is_whole:
                raise RunError(f"{path} is damaged: its checksum is another.")
            arrays |= read_arrays(path)
        saved = Saved(description, arrays)
        self._whole = saved.generation, text
        return saved

    def _last_generation(self) -> int:
        """Highest number in use, so that nothing whole is ever written over."""
        found = [
            path.stem.removeprefix("state-") for path in self.path.glob("state-*.npz")
        ]
        return max([int(number) for number in found if number.isdecimal()], default=0)

    def _replace(self, name: str, write: Callable[[BinaryIO], None]) -> str:
        """Put a file in place in one step, and return its checksum."""
        path, part = self.path / name, self.path / f".{name}.part"
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0)
        try:
            with explain_full_disk(path, _ADVICE):
                with open(os.open(part, flags, _MODE), "w+b") as file:
                    write(file)
                    file.flush()
                    os.fsync(file.fileno())
                digest = _digest_of(part)
                os.replace(part, path)
                _sync_folder(self.path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
        return digest


class _LaterVersionError(RunError):
    """Not damage: the generation before will not help."""


def seal(description: Mapping[str, Any]) -> bytes:
    """JSON that ends with a checksum of every byte before it."""
    try:
        plain = json.dumps(description, indent=1, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise RunError(f"The run cannot be described: {error}.") from error
    before = plain.removesuffix("\n}").encode()
    return before + _seal_of(before)


def _seal_of(before: bytes) -> bytes:
    return b',\n "sha256": "%s"\n}' % hashlib.sha256(before).hexdigest().encode()


def _read_sealed(path: Path) -> tuple[dict[str, Any], bytes]:
    try:
        with open(path, "rb") as file:
            text = file.read(_MAX_JSON + 1)
        if len(text) > _MAX_JSON:
            raise ValueError("not the description of a run")
        before = text[: -len(_seal_of(b""))]
        if text != before + _seal_of(before):
            raise ValueError("its checksum is another")
        description = json.loads(text)
        if type(description) is not dict:
            raise ValueError("not the description of a run")
        del description["sha256"]
        if description["format"] != FORMAT or type(description["version"]) is not int:
            raise ValueError("not the description of a run")
        if description["version"] > VERSION:
            raise _LaterVersionError(
                f"{path} has version {description['version']} of the format. This "
                f"featstream reads up to {VERSION}; install a newer one."
            )
        _check_files(description)
    except RunError:
        raise
    except OSError as error:
        raise RunError(f"{path} cannot be read: {error.strerror}.") from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise RunError(f"{path} is damaged: {printable(error)}.") from error
    return description, text


def _check_files(description: dict[str, Any]) -> None:
    generation, files = description["generation"], description["files"]
    if type(generation) is not int or generation < 0 or type(files) is not dict:
        raise ValueError("it does not say which generation it is")
    if list(files) != [f"state-{generation:06d}.npz"] * (generation > 0):
        raise ValueError("it names files that are not its own")


def _write(file: BinaryIO, content: bytes) -> None:
    file.write(content)


def _digest_of(path: Path) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while piece := file.read(_PIECE):
            digest.update(piece)
    return digest.hexdigest()


def _sync_folder(path: Path) -> None:
    if os.name != "posix":
        return
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _refuse_strangers(path: Path) -> None:
    """A folder that holds other things is not taken for a run."""
    if is_run(path):
        return
    ours = (_LOCK, ".", "state-")
    others = [p.name for p in path.iterdir() if not p.name.startswith(ours)]
    if others:
        raise RunError(
            f"{path} is not the folder of a run, and holds {printable(others[0])}. "
            "Choose a folder that is new or empty."
        )
