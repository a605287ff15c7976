"""Keeping a run folder up to date while a selector takes features in."""

from __future__ import annotations

import hashlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np

import featstream
from featstream.checkpoint import Checkpoint, RunFolder, Saved, is_run
from featstream.errors import DataError, ParameterError, RunError, printable
from featstream.protocols import Block, Source, SparseColumns
from featstream.selectors.state import (
    arrays_of,
    describe_selector,
    load_run,
    restore_state,
)

if TYPE_CHECKING:
    from featstream.selectors.single import StreamSelector

__all__ = ["Link", "Recorder", "as_checkpoint", "link_to", "recording", "save_once"]

_SHARE = 20  # saving takes at most one part in so many of the time
_SAMPLE = 16  # columns looked at, at each of three places


@dataclass(slots=True)
class Link:
    """Which run a selector is in: the folder, how far it is, and its sources.

    ``sources`` are descriptions with ``begin``, the number of features seen
    before, and ``is_done``; only the last one may not be done.
    """

    folder: RunFolder
    generation: int
    sources: list[dict[str, Any]]
    command: list[str] | None = None

    @property
    def unfinished(self) -> dict[str, Any] | None:
        """The source in the middle of which the run stopped."""
        if self.sources and not self.sources[-1]["is_done"]:
            return self.sources[-1]
        return None

    def refuse_unfinished(self) -> None:
        """Raise if a feature from elsewhere would come in the middle of a source."""
        if self.unfinished is not None:
            raise RunError(
                "The run stopped in the middle of a source. Consume that source "
                "first: it goes on where it stopped."
            )


class Recorder:
    """Saves a selector's state when it is time."""

    def __init__(self, selector: StreamSelector, link: Link, every: float) -> None:
        self._selector, self._link, self._every = selector, link, every
        self._saved_at, self._cost = time.monotonic(), 0.0
        self.is_interrupted = False

    @property
    def position(self) -> int:
        """How many features of the source have been taken in."""
        return self._selector._stream.n_seen - int(self._link.sources[-1]["begin"])

    def save(self) -> None:
        """Write a checkpoint now."""
        began = time.monotonic()
        save_state(self._selector, self._link)
        self._saved_at = time.monotonic()
        self._cost = self._saved_at - began

    def after_block(self) -> None:
        """Save if it is time, or if there was a Ctrl-C, which then takes effect."""
        if self.is_interrupted:
            self.save()
            raise KeyboardInterrupt
        wait = max(self._every, _SHARE * self._cost) if self._every else 0.0
        if time.monotonic() - self._saved_at >= wait:
            self.save()

    def finish(self) -> None:
        """The source has been taken in."""
        self._link.sources[-1]["is_done"] = True
        self.save()
        table = self._selector.result_.as_csv()
        self._link.folder.write_text("selected.csv", table)


def as_checkpoint(
    checkpoint: str | os.PathLike[str] | Checkpoint | None, every: float, source: Any
) -> Checkpoint | None:
    """What `consume` was told about checkpoints."""
    if checkpoint is None or isinstance(checkpoint, Checkpoint):
        return checkpoint
    data = None
    if isinstance(source, str | os.PathLike):
        data = {"path": os.path.abspath(source), "target": None}
    return Checkpoint(checkpoint, every, data)


@contextmanager
def recording(
    selector: StreamSelector, source: Source, checkpoint: Checkpoint | None
) -> Iterator[Recorder | None]:
    """Record the taking in of a source, in the run that the selector is in.

    A selector that has seen nothing takes over what the folder holds, if that is
    the same selector on the same target and data.
    """
    link = selector._run
    if checkpoint is None:
        if link is None:
            yield None
            return
        checkpoint = Checkpoint(link.folder.path)
    if not checkpoint.every >= 0:
        raise ParameterError(
            f"`every` must be a number of seconds. Got {checkpoint.every!r}."
        )
    folder = RunFolder(checkpoint.path)
    told = describe_source(source)
    if checkpoint.data is not None:
        told["data"] = dict(checkpoint.data)
    with folder.locked():
        link = _join(selector, link, folder)
        link.command = link.command or checkpoint.command
        _place(selector, link, told)
        recorder = Recorder(selector, link, checkpoint.every)
        with _patient(recorder):
            recorder.save()  # trouble with the folder shows now, not in ten seconds
            yield recorder
            recorder.finish()
        if recorder.is_interrupted:
            raise KeyboardInterrupt


def _join(selector: StreamSelector, link: Link | None, folder: RunFolder) -> Link:
    n_seen = selector._started().n_seen
    is_same = link is not None and _is_same(link.folder, folder)
    if not is_run(folder.path):
        sources: list[dict[str, Any]] = []
        if n_seen:
            sources = [*link.sources] if link is not None else [_before(n_seen)]
        link = Link(folder, 0, sources)
        selector._run = link
        return link
    saved = load_run(folder)
    if link is not None and is_same:
        if saved.generation != link.generation:
            raise RunError(
                f"The run {folder.path} has been continued by another process since "
                "it was opened here. Call featstream.resume on it again."
            )
        link.folder = folder
        return link
    if n_seen:
        raise RunError(
            f"{folder.path} holds another run, of {saved.description['n_seen']:,} "
            "features. Choose a new folder, or go on with featstream.resume."
        )
    refuse_difference(selector, saved, folder)
    restore_state(selector, saved)
    link = link_to(folder, saved)
    if len(link.sources) > 1:
        raise RunError(
            f"The run {folder.path} has taken in {len(link.sources)} sources. Go on "
            "with featstream.resume, or choose a new folder."
        )
    for source in link.sources:
        source["is_done"] = False  # it is offered again, and compared
    selector._run = link
    return link


def link_to(folder: RunFolder, saved: Saved) -> Link:
    """The link of a selector restored from a run."""
    facts = saved.description
    sources = [dict(source) for source in facts["sources"]]
    return Link(folder, saved.generation, sources, facts["command"])


def _is_same(one: RunFolder, other: RunFolder) -> bool:
    return os.path.realpath(one.path) == os.path.realpath(other.path)


def _before(n_seen: int) -> dict[str, Any]:
    """What is known of features that came before the run was saved at all."""
    return {"begin": 0, "is_done": True, "kind": "update", "n_features": n_seen}


def _place(selector: StreamSelector, link: Link, told: dict[str, Any]) -> None:
    """Find the place of a source in the run: where it was left, or after the rest."""
    last = link.unfinished
    n_seen = selector._stream.n_seen
    if last is not None:
        refuse_other_source(last, told)
        last.update({"data": told["data"]} if "data" in told else {})
        return
    link.sources.append({**told, "begin": n_seen, "is_done": False})


def refuse_difference(
    selector: StreamSelector, saved: Saved, folder: RunFolder
) -> None:
    """Raise unless the run was begun by the same selector on the same target."""
    mine, theirs = describe_selector(selector), saved.description
    where = f"The run {folder.path}"
    if mine["selector"] != theirs["selector"]:
        raise RunError(
            f"{where} is one of {printable(theirs['selector'])}, not of "
            f"{mine['selector']}. Choose another folder."
        )
    for name in sorted({*mine["parameters"], *theirs["parameters"]} - {"n_jobs"}):
        one, other = mine["parameters"].get(name), theirs["parameters"].get(name)
        if one != other:
            raise RunError(
                f"{where} has {name}={_shown(other)}; here it is {_shown(one)}. Use "
                "the same parameters, or another folder."
            )
    refuse_other_target(theirs, mine, where)


def refuse_other_target(
    theirs: dict[str, Any], mine: dict[str, Any], where: str
) -> None:
    """Raise unless two descriptions have the same target."""
    if mine["n_samples"] != theirs["n_samples"]:
        raise RunError(
            f"{where} has {theirs['n_samples']:,} samples; here are "
            f"{mine['n_samples']:,}."
        )
    if mine["y_fingerprint"] != theirs["y_fingerprint"]:
        raise RunError(
            f"y differs from the y that {where[0].lower()}{where[1:]} was started "
            "with. Use the same target, or another folder."
        )


def refuse_other_source(saved: dict[str, Any], told: dict[str, Any]) -> None:
    """Raise unless a source is the one that a run was reading."""
    words = {
        "n_samples": "the number of samples",
        "n_features": "the number of features",
        "fingerprint": "the fingerprint",
        "sample": "the checksum of some columns",
    }
    for name, word in words.items():
        one, other = saved.get(name), told.get(name)
        if one is not None and other is not None and one != other:
            raise RunError(
                f"This is another data set than the run was reading: {word} was "
                f"{_short(one)} and is {_short(other)}. Give the one it began with."
            )


def _short(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)[:12]


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        options = value.get("parameters", {})
        told = ", ".join(f"{key}={option!r}" for key, option in options.items())
        return f"{value.get('measure')}({told})"
    return repr(value)


def save_state(selector: StreamSelector, link: Link) -> None:
    """Write the selector's state as the next generation."""
    stream = selector._stream
    description = {
        "featstream": featstream.__version__,
        "saved_at": datetime.now(UTC).isoformat(timespec="seconds"),
        **describe_selector(selector),
        "measure": None if stream.measure is None else stream.measure.name,
        "is_sparse": stream.is_sparse,
        "n_seen": stream.n_seen,
        "n_kept": int(selector._kept()[0].size),
        "seconds": stream.seconds,
        "sources": link.sources,
        "command": link.command,
    }
    link.generation = link.folder.save(description, arrays_of(selector))


def save_once(selector: StreamSelector, path: str | os.PathLike[str] | None) -> None:
    """Save a selector outside of any source: after single updates, say."""
    link = selector._run
    if path is None:
        if link is None:
            raise ParameterError("`path` is needed: this selector is in no run yet.")
        path = link.folder.path
    folder = RunFolder(path)
    with folder.locked():
        if is_run(folder.path) and (link is None or not _is_same(link.folder, folder)):
            raise RunError(f"{folder.path} holds another run. Choose a new folder.")
        save_state(selector, _join(selector, link, folder))


@contextmanager
def _patient(recorder: Recorder) -> Iterator[None]:
    """Let Ctrl-C wait for the end of a block; a second one does not wait."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)

    def note(number: int, frame: FrameType | None) -> None:
        if recorder.is_interrupted:
            raise KeyboardInterrupt
        recorder.is_interrupted = True

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def describe_source(source: Source) -> dict[str, Any]:
    """What tells one data set from another, found without reading it all.

    ``fingerprint`` is the source's own, where it has one; ``sample`` is a checksum
    of some columns at the beginning, in the middle and at the end, the same
    however they are stored, or cut into blocks. A source that cannot be asked twice
    has neither.
    """
    n_features = source.n_features
    told: dict[str, Any] = {
        "kind": type(source).__name__,
        "n_samples": source.n_samples,
        "n_features": n_features,
        "fingerprint": getattr(source, "fingerprint", None),
        "sample": None,
    }
    if n_features:
        digest = hashlib.sha256()
        for start in sorted({0, n_features // 2, max(0, n_features - _SAMPLE)}):
            n_left = _SAMPLE
            for block in source.blocks(start):
                _add_columns(digest, block.part(0, min(n_left, block.n_columns)))
                n_left -= block.n_columns
                if n_left <= 0:
                    break
        told["sample"] = digest.hexdigest()
    return told


def _add_columns(digest: Any, block: Block) -> None:
    columns = block.columns
    for i in range(block.n_columns):
        if isinstance(columns, SparseColumns):
            begin, end = columns.indptr[i], columns.indptr[i + 1]
            rows, values = columns.rows[begin:end], columns.values[begin:end]
        else:
            rows, values = np.arange(block.n_samples, dtype=np.int32), columns[:, i]
        if values.dtype.kind not in "biuf":
            raise DataError(f"Column {block.name(i)} is of type {values.dtype}.")
        numbers = values.astype(np.float64)
        is_stored = numbers != 0
        digest.update(rows[is_stored].astype(np.int64).tobytes())
        digest.update((numbers[is_stored] + 0.0).tobytes())
        digest.update(block.name(i).encode("utf-8", "surrogatepass"))
