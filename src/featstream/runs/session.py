"""Keeping a run folder up to date while a selector takes features in."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from types import FrameType
from typing import TYPE_CHECKING, Any

import featstream
from featstream.errors import ParameterError, RunError
from featstream.parallel import handling_interrupts
from featstream.protocols import Source
from featstream.runs.compatibility import (
    is_same_source,
    refuse_difference,
    refuse_other_source,
)
from featstream.runs.folder import Checkpoint, RunFolder, Saved, is_run
from featstream.runs.state import (
    describe_selector,
    describe_source,
    load_run,
)
from featstream.sources.layouts import Layout

if TYPE_CHECKING:
    from featstream.runs.saving import Savable
    from featstream.selectors.base import OnlineSelector
    from featstream.selectors.stream import Unfinished

__all__ = ["Link", "Recorder", "as_checkpoint", "link_to", "recording", "save_once"]

_SHARE = 20  # saving takes at most one part in so many of the time


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

    def __init__(self, selector: OnlineSelector, link: Link, every: float) -> None:
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
    checkpoint: str | os.PathLike[str] | Checkpoint | None,
    every: float,
    source: Any,
    link: Link | None,
) -> Checkpoint | None:
    """What `consume` was told about checkpoints; in a run, its folder is known."""
    if isinstance(checkpoint, Checkpoint):
        return checkpoint
    if checkpoint is None:
        if link is None:
            return None
        checkpoint = link.folder.path
    data: dict[str, Any] | None = None
    if isinstance(source, str | os.PathLike):
        data = {"path": os.path.abspath(source), "target": None}
    return Checkpoint(checkpoint, every, data)


@contextmanager
def recording(
    selector: OnlineSelector,
    source: Source,
    checkpoint: Checkpoint | None,
    layout: Layout | None = None,
) -> Iterator[Recorder | None]:
    """Record the taking in of a source, in the run that the selector is in.

    A selector that has seen nothing takes over what the folder holds, if that is
    the same selector on the same target and data.
    """
    if checkpoint is None:
        yield None
        return
    if not checkpoint.every >= 0:
        raise ParameterError(
            f"`every` must be a number of seconds. Got {checkpoint.every!r}."
        )
    folder = RunFolder(checkpoint.path)
    told = describe_source(source, layout)
    if checkpoint.data is not None:
        told["data"] = dict(checkpoint.data)
    with folder.locked():
        link = _join(selector, selector._run, folder)
        selector._stream.check_samples(source)
        link.command = link.command or checkpoint.command
        _place(selector, link, told)
        recorder = Recorder(selector, link, checkpoint.every)
        with _patient(recorder):
            recorder.save()  # trouble with the folder shows now, not in ten seconds
            yield recorder
            recorder.finish()
        if recorder.is_interrupted:
            raise KeyboardInterrupt


@contextmanager
def begun(selector: Savable, checkpoint: Checkpoint | None) -> Iterator[None]:
    """Begin a run before its data are read, which may take long.

    A kill or a Ctrl-C leaves a folder that says how to continue; an error leaves
    none.
    """
    if checkpoint is None or checkpoint.data is None or is_run(checkpoint.path):
        yield
        return
    folder = RunFolder(checkpoint.path)
    source = {"begin": 0, "is_done": False, "data": dict(checkpoint.data)}
    folder.begin(
        {
            **_provenance(selector),
            "n_seen": 0,
            "sources": [source],
            "command": checkpoint.command,
        }
    )
    try:
        yield
    except Exception:
        folder.withdraw()
        raise


def _provenance(selector: Savable) -> dict[str, Any]:
    return {
        "featstream": featstream.__version__,
        "saved_at": datetime.now(UTC).isoformat(timespec="seconds"),
        **describe_selector(selector),
    }


def find_begin(
    selector: OnlineSelector, source: Source, offered: Any, layout: Layout | None
) -> int:
    """Number of features seen before a source, which may have been left unfinished."""
    stream = selector._stream
    rest = stream.unfinished
    if rest is None:
        return stream.n_seen
    if rest.source.n_features is None:
        is_same = offered is rest.offered and not isinstance(offered, Iterator)
    else:
        old = describe_source(rest.source, rest.layout)
        is_same = is_same_source(old, describe_source(source, layout))
    if not is_same:
        stream.leave_unfinished()
        return stream.n_seen
    return rest.begin


@contextmanager
def noting_unfinished(selector: OnlineSelector, here: Unfinished) -> Iterator[None]:
    """Remember a source that is left in the middle, unless a run does."""
    try:
        yield
    except BaseException as error:
        if selector._run is None and hasattr(selector, "_stream"):
            here.is_interrupt = isinstance(error, KeyboardInterrupt)
            selector._stream.unfinished = here
        raise
    selector._stream.unfinished = None


def _join(selector: Savable, link: Link | None, folder: RunFolder) -> Link:
    n_seen = selector.n_seen_
    is_same = link is not None and _is_same(link.folder, folder)
    saved = load_run(folder) if is_run(folder.path) else None
    if saved is None or saved.generation == 0:
        sources: list[dict[str, Any]] = []
        if n_seen:
            sources = [*link.sources] if link is not None else _before(selector)
        link = Link(folder, 0, sources)
        selector._run = link
        return link
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
    mine = describe_selector(selector) | selector._facts()
    refuse_difference(mine, saved, folder)
    selector._restore_from(saved)
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


def _before(selector: Savable) -> list[dict[str, Any]]:
    """What is known of the features that came before the run was saved at all."""
    n_seen, sources = selector.n_seen_, []
    stream = getattr(selector, "_stream", None)
    rest = None if stream is None else stream.unfinished
    if rest is not None:
        n_seen = rest.begin
        found = describe_source(rest.source, rest.layout)
        sources = [{**found, "begin": n_seen, "is_done": False}]
    if n_seen:
        known = {"begin": 0, "is_done": True, "kind": "update"}
        sources.insert(0, known | {f"n_{selector._facts()['arrives']}": n_seen})
    return sources


def _place(selector: OnlineSelector, link: Link, told: dict[str, Any]) -> None:
    """Find the place of a source in the run: where it was left, or after the rest."""
    last = link.unfinished
    n_seen = selector._stream.n_seen
    if last is not None:
        refuse_other_source(last, told)
        last.update({"data": told["data"]} if "data" in told else {})
        return
    link.sources.append({**told, "begin": n_seen, "is_done": False})


def save_state(selector: Savable, link: Link) -> None:
    """Write the selector's state as the next generation."""
    description = {
        **_provenance(selector),
        **selector._facts(),
        "sources": link.sources,
        "command": link.command,
    }
    link.generation = link.folder.save(description, selector._arrays())


def save_once(selector: Savable, path: str | os.PathLike[str] | None) -> None:
    """Save a selector outside of any source: after single updates, say."""
    selector._facts()  # an error if there is nothing to save yet
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

    def note(number: int, frame: FrameType | None) -> None:
        if recorder.is_interrupted:
            raise KeyboardInterrupt
        recorder.is_interrupted = True

    with handling_interrupts(note):
        yield
