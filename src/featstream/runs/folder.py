"""The folder of a run: what a selector has found so far, safe against any kill.

RUN/
run.json            what the rest is, with its checksum
state-000007.npz    the state of generation 7
previous.json       the same for the previous generation
state-000006.npz
finished.json       the generation before a source that is being consumed; it is kept
state-000005.npz    until that source is finished, so that the run can go back
selected.csv        the selection, once a source has been consumed
lock                held by the process that writes

A file is written under another name, synced, and renamed; ``run.json`` comes
last. So at every instant the folder holds a complete generation, and if that is
damaged afterwards, the previous one.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from filelock import FileLock, Timeout
from numpy.typing import NDArray

from featstream.errors import MissingFileError, RunError, explain_full_disk, printable
from featstream.runs.arrays import read_arrays, write_arrays
from featstream.sources.store_writer import sync_folder

FORMAT = "featstream run"
VERSION = 2  # 1 had other names for the arrays of kept columns; it is still read

_CURRENT, _PREVIOUS, _FINISHED = "run.json", "previous.json", "finished.json"
_LOCK = "lock"
_MAX_JSON = 16 << 20
_MODE = 0o600
SHARED = 0o666
"""The mode of results, less what the umask takes; run folders are private."""
_ADVICE = "the previous checkpoint is complete. Make room and resume"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Where and how often a run is saved.

    Attributes
    ----------
    path : str or path
        Folder of the run.
    every : float
        Seconds between checkpoints; 0 saves after each block. Saving takes at most
        a twentieth of the time: if it is slow, there are fewer checkpoints.
    data : dict, optional
        How to open the data again: ``path`` and ``target``, as for
        `featstream.sources.open_dataset`; for groups, ``groups`` with ``path``,
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
        """The number of times that the run had been saved, this time included."""
        return int(self.description["generation"])


def is_run(path: str | os.PathLike[str]) -> bool:
    """Whether there is a run in a folder, damaged or not."""
    return any((Path(path) / name).exists() for name in (_CURRENT, _PREVIOUS))


class RunFolder:
    """The files of a run, in a folder that is created when it is first locked."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._whole: tuple[int, bytes] | None = None  # a generation known to be whole

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other writers out."""
        self.path.mkdir(parents=True, exist_ok=True)
        if not is_run(self.path):
            refuse_other_files(self.path, (_LOCK, ".", "state-", _FINISHED), "run")
        with hold_lock(self.path / _LOCK):
            yield

    def begin(self, description: Mapping[str, Any]) -> None:
        """Write generation 0: a run whose data are still to be read."""
        with self.locked():
            self.begin_again(description)

    def begin_again(self, description: Mapping[str, Any]) -> None:
        """Write generation 0 in place of any other."""
        text = _sealed(description, 0)
        self.write(_CURRENT, text)
        self._whole = 0, text
        (self.path / _PREVIOUS).unlink(missing_ok=True)
        self._forget_states(set())

    def withdraw(self) -> None:
        """Remove generation 0, and the folder if nothing else is in it."""
        with suppress(OSError, RunError):
            if is_run(self.path) and self.load().generation == 0:
                for name in (_CURRENT, _LOCK):
                    (self.path / name).unlink(missing_ok=True)
                self.path.rmdir()

    def save(
        self, description: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
    ) -> int:
        """Write the next generation, and return its number."""
        if self._whole is None and is_run(self.path):
            self.load()
        # Above the highest number in use, so that nothing is written over.
        numbers = [p.stem.removeprefix("state-") for p in self.path.glob("state-*.npz")]
        generation = 1 + max([int(n) for n in numbers if n.isdecimal()], default=0)
        state = f"state-{generation:06d}.npz"
        write = partial(write_arrays, arrays=arrays)
        digest = replace_file(self.path / state, write, _ADVICE)
        text = _sealed(description, generation, {state: digest})
        needed = {state}
        if self._whole is not None and self._whole[0] > 0:
            before, old_text = self._whole
            self.write(_PREVIOUS, old_text)
            needed.add(f"state-{before:06d}.npz")
        self.write(_CURRENT, text)
        self._whole = generation, text
        self._forget_states(needed)
        return generation

    def _forget_states(self, needed: set[str]) -> None:
        """Remove the states of generations that are neither needed nor finished."""
        if self.has_finished:
            with suppress(RunError):
                description, _ = read_sealed(self.path / _FINISHED, FORMAT, VERSION)
                needed = needed | set(description["files"])
        for path in (*self.path.glob("state-*.npz"), *self.path.glob(".*.part")):
            if path.name not in needed:
                path.unlink(missing_ok=True)

    @property
    def has_finished(self) -> bool:
        """Whether the generation before an unfinished source has been kept."""
        return (self.path / _FINISHED).exists()

    def keep_finished(self) -> None:
        """Keep the current generation until `forget_finished`."""
        if self._whole is None:
            self.load()
        assert self._whole is not None
        self.write(_FINISHED, self._whole[1])

    def load_finished(self) -> Saved:
        """Read the generation that was kept; what is saved next comes after it."""
        return self._load(_FINISHED)

    def forget_finished(self) -> None:
        """Keep the generation no longer."""
        (self.path / _FINISHED).unlink(missing_ok=True)

    def load(self) -> Saved:
        """Read the newest generation that is whole; `RunError` if there is none."""
        if not is_run(self.path):
            if not self.path.exists():
                raise MissingFileError(
                    f"There is no run {printable(self.path, limit=400)} (working "
                    f"folder: {Path.cwd()}). Check the path."
                )
            raise RunError(f"{self.path} is not the folder of a run: no {_CURRENT}.")
        try:
            return self._load(_CURRENT)
        except LaterVersionError:
            raise
        except RunError as error:
            try:
                saved = self._load(_PREVIOUS)
            except RunError as other:
                raise RunError(
                    f"The run {self.path} cannot be read. {error} The previous "
                    f"generation cannot be read either: {other}"
                ) from error
            warnings.warn(
                f"{error} The run continues from the previous generation.", stacklevel=3
            )
            return saved

    def _load(self, name: str) -> Saved:
        description, text = read_sealed(self.path / name, FORMAT, VERSION)
        generation, files = description.get("generation"), description.get("files")
        if (
            type(generation) is not int
            or type(files) is not dict
            or list(files) != [f"state-{generation:06d}.npz"] * (generation > 0)
        ):
            raise RunError(f"{self.path / name} is damaged: it names no state file.")
        arrays: dict[str, NDArray[Any]] = {}
        for file, digest in files.items():
            path = self.path / file
            try:
                is_whole = _digest_of(path) == digest
            except OSError as error:
                raise RunError(f"{path} cannot be read: {error.strerror}.") from error
            if not is_whole:
                raise RunError(f"{path}: {_MISMATCH}.")
            arrays = read_arrays(path)
        self._whole = generation, text
        return Saved(description, arrays)

    def write(self, name: str, content: bytes) -> None:
        """Put a file in the folder in place of the one of that name."""
        replace_file(self.path / name, lambda file: file.write(content), _ADVICE)


def _sealed(description: Mapping[str, Any], generation: int, files: Any = ()) -> bytes:
    numbers = {"generation": generation, "files": dict(files)}
    return seal({"format": FORMAT, "version": VERSION, **description, **numbers})


_MISMATCH = "checksum mismatch: the file was changed or cut short"


class LaterVersionError(RunError):
    """Not damage: the previous generation will not help."""


def replace_file(
    path: Path,
    write: Callable[[BinaryIO], object],
    advice: str = "nothing was changed",
    mode: int = _MODE,
) -> str:
    """Put a file in place in one step, synced to disk, and return its checksum."""
    part = path.with_name(f".{path.name}.part")
    # A file that somebody else put there, or a link, is never written to.
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    part.unlink(missing_ok=True)  # of a writer that was killed
    try:
        with explain_full_disk(path, advice):
            with open(os.open(part, flags, mode), "w+b") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            digest = _digest_of(part)
            os.replace(part, path)
            sync_folder(path.parent)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    return digest


def seal(content: Mapping[str, Any]) -> bytes:
    """Return JSON that ends with a checksum of every byte before it."""
    try:
        plain = json.dumps(content, indent=1, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise RunError(f"This cannot be saved as JSON: {error}.") from error
    before = plain.removesuffix("\n}").encode()
    return before + _seal_of(before)


def _seal_of(before: bytes) -> bytes:
    return b',\n "sha256": "%s"\n}' % hashlib.sha256(before).hexdigest().encode()


def write_sealed(path: Path, content: Mapping[str, Any]) -> None:
    """Replace a JSON file, with ``format`` and ``version``, that has a checksum."""
    text = seal(content)
    replace_file(path, lambda file: file.write(text))


def read_sealed(
    path: Path, known_format: str, last_version: int
) -> tuple[dict[str, Any], bytes]:
    """Read what `write_sealed` wrote, and its bytes; `RunError` for anything else."""
    try:
        with open(path, "rb") as file:
            text = file.read(_MAX_JSON + 1)
        before = text[: -len(_seal_of(b""))]
        if text != before + _seal_of(before):
            raise ValueError(_MISMATCH)
        content = json.loads(text)
        del content["sha256"]
        version = content["version"]
        if content["format"] != known_format or type(version) is not int:
            raise ValueError(f"it is not a {known_format}")
    except OSError as error:
        raise RunError(f"{path} cannot be read: {error.strerror}.") from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise RunError(f"{path}: {printable(error, limit=200)}.") from error
    if version > last_version:
        raise LaterVersionError(
            f"{path} has version {version} of the format. This featstream reads up to "
            f"version {last_version}; install a newer one."
        )
    return content, text


@contextmanager
def hold_lock(path: Path) -> Iterator[None]:
    """Hold a lock file; `RunError` if another process or thread does.

    The file stays where it is: the operating system holds the lock, not the file,
    so that a process that dies frees it.
    """
    lock = FileLock(path, timeout=0, mode=_MODE)
    try:
        with explain_full_disk(path, "the run is as it was. Make room and resume"):
            lock.acquire()
    except Timeout:
        raise RunError(
            f"{path.parent} is being written by another process. Wait until it is done."
        ) from None
    try:
        yield
    finally:
        lock.release()


def refuse_other_files(path: Path, ours: tuple[str, ...], what: str) -> None:
    """Raise if a folder holds files whose names do not begin like ours."""
    others = [p.name for p in path.iterdir() if not p.name.startswith(ours)]
    if others:
        raise RunError(
            f"{path} is not the folder of a {what}, and holds {printable(others[0])}. "
            "Choose a folder that is new or empty."
        )


def _digest_of(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
