"""A selector and its run folder: save while it consumes, resume, continue."""

from __future__ import annotations

import os
import shlex
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from types import FrameType
from typing import TYPE_CHECKING, Any, Self

from numpy.typing import NDArray

import featstream
from featstream.errors import (
    DataError,
    DataTypeError,
    FeatstreamError,
    ParameterError,
    RunError,
    check_number,
    printable,
)
from featstream.parallel import handling_interrupts, single_blas
from featstream.protocols import Source
from featstream.runs import state
from featstream.runs.folder import Checkpoint, RunFolder, Saved, is_run
from featstream.selectors.registry import SELECTORS
from featstream.sources.combined import sample_order_of
from featstream.sources.grouping import Layout

if TYPE_CHECKING:
    from featstream.selectors.base import OnlineSelector

REFUSED = (DataError, DataTypeError, ParameterError)
"""Errors of data that will not be consumed as they are, however often it is tried."""

_SELECTION = "selected.csv"
_SHARE = 20  # saving takes at most one twentieth of the time
_UNFIT = (
    *(FeatstreamError, ArithmeticError, AttributeError),
    *(LookupError, TypeError, ValueError),
)


@dataclass(slots=True)
class OpenRun:
    """The run that a selector is in: its folder, generation and sources.

    ``sources`` are descriptions with ``begin``, the number of features seen
    before, and ``is_done``; only the last one may not be done. ``n_saved`` is the
    number of features, or of samples, that had been seen when it was last saved.
    """

    folder: RunFolder
    generation: int
    sources: list[dict[str, Any]]
    command: list[str] | None = None
    n_saved: int = 0

    @classmethod
    def of(cls, folder: RunFolder, saved: Saved) -> OpenRun:
        """The run that was saved in a folder."""
        facts = saved.description
        sources = [dict(source) for source in facts["sources"]]
        command, n_saved = facts["command"], facts["n_seen"]
        return cls(folder, saved.generation, sources, command, n_saved)

    @property
    def unfinished(self) -> dict[str, Any] | None:
        """The source in the middle of which the run stopped."""
        if self.sources and not self.sources[-1]["is_done"]:
            return self.sources[-1]
        return None

    @property
    def way_back(self) -> str:
        """How to drop an unfinished source, if the run can."""
        if not self.folder.has_finished:
            return ""
        return (
            "Or drop what it has taken of it: featstream.resume(path, "
            "drop_unfinished=True) (command line: featstream resume RUN "
            "--drop-unfinished)."
        )

    def refuse_unfinished(self) -> None:
        """Raise if a feature from elsewhere would come in the middle of a source."""
        if self.unfinished is not None:
            raise RunError(
                "The run stopped in the middle of a source. Consume that source "
                f"first: it continues where it stopped. {self.way_back}".rstrip()
            )

    def is_in(self, folder: RunFolder) -> bool:
        """Whether the run is in this folder."""
        return os.path.realpath(self.folder.path) == os.path.realpath(folder.path)


class Savable(ABC):
    """A selector that a run folder can hold.

    A subclass describes itself in `_facts`, returns what it has learned in
    `_arrays`, and restores both in `_restore_state`.
    """

    _run: OpenRun | None = None

    @property
    @abstractmethod
    def n_seen_(self) -> int:
        """Number of features, or of samples, seen."""

    @abstractmethod
    def _facts(self) -> dict[str, Any]:
        """Describe the state in JSON, besides its arrays."""

    @abstractmethod
    def _arrays(self) -> dict[str, NDArray[Any]]:
        """Return the state: arrays of numbers with one or two axes, by name."""

    @abstractmethod
    def _restore_state(self, saved: Saved) -> None:
        """Restore a state, whose arrays may come from anyone."""

    def save(self, path: str | os.PathLike[str] | None = None) -> Self:
        """Save the state in a run folder, for `featstream.resume`.

        Parameters
        ----------
        path : str or path, optional
            The folder; by default that of the run the selector is in. `consume` with
            a checkpoint saves by itself; after single updates it is up to you.
        """
        self._facts()  # an error if there is nothing to save yet
        run = self._run
        if path is None:
            if run is None:
                raise ParameterError("`path` is needed: the selector is in no run yet.")
            path = run.folder.path
        folder = RunFolder(path)
        with folder.locked():
            if is_run(folder.path) and (run is None or not run.is_in(folder)):
                raise RunError(f"{folder.path} holds another run. Choose a new folder.")
            _save(self, _join(self, folder))
        return self

    def _restore_from(self, saved: Saved, run: OpenRun) -> None:
        """Restore the state of a run; `RunError` for one that cannot be right."""
        try:
            with single_blas:  # as everywhere: its threads change the last bit
                self._restore_state(saved)
            self._run = run
        except RunError:
            raise
        except _UNFIT as error:
            raise RunError(
                f"The run cannot be restored: {printable(error)}."
            ) from error


def resume(path: str | os.PathLike[str], *, drop_unfinished: bool = False) -> Any:
    """Open a run, to look at it or to continue it.

    Parameters
    ----------
    path : str or path
        Folder given as ``checkpoint`` to `consume`, to `save`, or to ``select -o``.
    drop_unfinished : bool, default=False
        Whether a run that stopped in the middle of a source goes back to what it was
        before that source, for good. By default that source must be given again.

    Returns
    -------
    selector : the selector of the run
        As it was when the run was last saved. If the run was interrupted in the
        middle of a source, `consume` must be given the same source, in the same
        groups, and continues there; otherwise it consumes further features. Both
        save in the same folder. `OFS`, which learns from rows, continues with
        `partial_fit`, and is saved with `save`.

    Raises
    ------
    RunError
        If the folder is no run, or both of its generations are damaged.

    Notes
    -----
    Nothing in the folder is executed: it holds JSON and plain arrays, which are
    checked. Selectors and measures are found by name among those imported.

    Examples
    --------
    >>> import tempfile, featstream
    >>> from featstream.datasets import make_stream
    >>> stream = make_stream(n_features=300, seed=0)
    >>> selector = featstream.SAOLA(measure="su").start(stream.y)
    >>> run = tempfile.mkdtemp()
    >>> _ = selector.consume(stream.X[:, :200], checkpoint=run)
    >>> later = featstream.resume(run).consume(stream.X[:, 200:])
    >>> later.n_seen_
    300
    """
    if drop_unfinished:
        _drop_unfinished(RunFolder(path))
    selector, saved = _open(path)
    if saved.generation == 0:
        command = shlex.join(saved.description["command"] or [])
        raise RunError(
            f"The run {path} stopped while its data were being read, before the first "
            "feature. Begin it again: "
            + (f"featstream resume {path}, or {command}" if command else "consume()")
        )
    selector._restore_from(saved, selector._run)
    return selector


def _drop_unfinished(folder: RunFolder) -> None:
    """Let a run go back to what it was before the source that it is in."""
    state.load_run(folder)  # an error if there is none, before a folder is made
    with folder.locked():
        run = OpenRun.of(folder, state.load_run(folder))
        if run.unfinished is None:
            return
        if not folder.has_finished:
            raise RunError(
                f"The run {folder.path} has finished no source that it could go back "
                "to. Give it the source that it began with, or remove the folder."
            )
        _go_back(folder)


def _go_back(folder: RunFolder) -> Saved:
    """Save the generation before the unfinished source as the next one."""
    saved = state.check_description(folder.load_finished(), folder)
    folder.save(saved.description, saved.arrays)
    folder.forget_finished()
    return state.load_run(folder)


def begin_again(path: str | os.PathLike[str]) -> Any:
    """Return the selector of a run that stopped before its first feature, or None.

    It has not been started; its run says where its data are.
    """
    selector, saved = _open(path)
    return None if saved.generation > 0 else selector


def _open(path: str | os.PathLike[str]) -> tuple[Any, Saved]:
    """The selector of a run as it was made, in its run, and what was saved of it."""
    folder = RunFolder(path)
    saved = state.load_run(folder)
    name, parameters = saved.description["selector"], saved.description["parameters"]
    found = SELECTORS.find_class(name)
    if found is None:
        raise RunError(
            f"The run {folder.path} is one of {printable(name)}, which is not among "
            f"the selectors here: {', '.join(sorted(SELECTORS))}. If it is your own, "
            "import it and call featstream.selectors.register."
        )
    try:
        selector = found(**state.load_parameters(parameters))
    except RunError:
        raise
    except (FeatstreamError, TypeError, LookupError) as error:
        raise RunError(f"The run's selector cannot be made: {error}.") from error
    selector._run = OpenRun.of(folder, saved)
    return selector, saved


class Recorder:
    """Saves a selector while it consumes a source, before which it saw ``begin``."""

    def __init__(self, selector: OnlineSelector, begin: int, every: float) -> None:
        self._selector, self.begin, self._every = selector, begin, every
        self._saved_at, self._cost = time.monotonic(), 0.0
        self.is_interrupted = False

    def save(self) -> None:
        """Write a checkpoint now."""
        began = time.monotonic()
        assert self._selector._run is not None
        _save(self._selector, self._selector._run)
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

    def note_interrupt(self, number: int, frame: FrameType | None) -> None:
        """Let Ctrl-C wait for the end of a block; a second one does not wait."""
        if self.is_interrupted:
            raise KeyboardInterrupt
        self.is_interrupted = True


@contextmanager
def saving(
    selector: Savable,
    given: str | os.PathLike[str] | Checkpoint | None,
    every: float = 10.0,
    source: Any = None,
) -> Iterator[Checkpoint]:
    """Where `consume` saves; a selector in a run stays in its folder.

    A run begins before its data are read, which may take long: a kill or a Ctrl-C
    leaves a folder that says how to continue. An error leaves none.
    """
    if given is None:
        assert selector._run is not None
        given = selector._run.folder.path
    if not isinstance(given, Checkpoint):
        is_path = isinstance(source, str | os.PathLike)
        data = {"path": os.path.abspath(source), "target": None} if is_path else None
        given = Checkpoint(given, every, data)
    folder = RunFolder(given.path)
    is_new = not is_run(given.path)
    if is_new and given.data is not None:
        first = {"begin": 0, "is_done": False, "data": dict(given.data)}
        facts = {"n_seen": 0, "sources": [first], "command": given.command}
        folder.begin(_provenance(selector) | facts)
    try:
        yield given
    except Exception:
        if is_new:
            folder.withdraw()
        raise


@contextmanager
def recording(
    selector: OnlineSelector,
    source: Source,
    checkpoint: Checkpoint,
    layout: Layout | None = None,
) -> Iterator[Recorder]:
    """Save a selector that consumes a source, from where that was left.

    A selector that has seen nothing is restored from the folder,
    if that holds the same selector on the same target and data.
    """
    check_number(checkpoint.every, "every", closed="left")
    folder = RunFolder(checkpoint.path)
    found = state.describe_source(source, layout)
    if checkpoint.data is not None:
        found["data"] = dict(checkpoint.data)
    with folder.locked():
        run = _join(selector, folder)
        stream, n_samples = selector._stream, source.n_samples
        stream.check_samples(sample_order_of(source), "This source")
        if n_samples is not None and n_samples != len(stream.y):
            raise DataError(
                f"This source has {n_samples:,} samples, but the target has "
                f"{len(stream.y):,}. Every feature needs one value per sample."
            )
        run.command = run.command or checkpoint.command
        last = run.unfinished
        if last is None:
            n_seen = selector.n_seen_
            if n_seen and (run.generation == 0 or n_seen != run.n_saved):
                _save(selector, run)  # what came before this source
            if n_seen:
                folder.keep_finished()
            last = {**found, "begin": n_seen, "is_done": False}
            run.sources.append(last)
        else:
            difference = state.find_difference(last, found)
            if difference is not None:
                given = "Give what it began with."
                raise RunError(f"{difference} {given} {run.way_back}".rstrip())
            last.update({"data": found["data"]} if "data" in found else {})
        recorder = Recorder(selector, int(last["begin"]), checkpoint.every)
        can_wait = selector._saves_between_blocks
        with (
            handling_interrupts(recorder.note_interrupt) if can_wait else nullcontext()
        ):
            recorder.save()  # trouble with the folder shows now, not in ten seconds
            try:
                yield recorder
            except REFUSED:
                _take_back(selector, run)
                raise
            last["is_done"] = True
            recorder.save()
            folder.forget_finished()
            _write_selection(selector, folder)
        if recorder.is_interrupted:
            raise KeyboardInterrupt


def _take_back(selector: OnlineSelector, run: OpenRun) -> None:
    """Let a run, and its selector, be as before a source that was refused."""
    folder, first = run.folder, run.sources[-1]
    if folder.has_finished:
        saved = _go_back(folder)
        selector._restore_from(saved, OpenRun.of(folder, saved))
    elif not first["begin"]:
        facts = {"n_seen": 0, "sources": [first], "command": run.command}
        folder.begin_again(_provenance(selector) | facts)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the target; they have been shown
            selector.start(selector._stream.y)


def write_selection(selector: OnlineSelector) -> None:
    """Write the selection of a finished run again, if a kill came before it."""
    run = selector._run
    if run is None or run.unfinished is not None:
        return
    path = run.folder.path / _SELECTION
    if not path.exists() or path.read_bytes() != _selection_of(selector):
        with run.folder.locked():
            _write_selection(selector, run.folder)


def _write_selection(selector: OnlineSelector, folder: RunFolder) -> None:
    folder.write(_SELECTION, _selection_of(selector))


def _selection_of(selector: OnlineSelector) -> bytes:
    return selector.result_.as_csv().encode("utf-8")


def _join(selector: Savable, folder: RunFolder) -> OpenRun:
    """Bring a selector into the run of a folder, new or saved."""
    run, n_seen = selector._run, selector.n_seen_
    saved = state.load_run(folder) if is_run(folder.path) else None
    if saved is None or saved.generation == 0:
        sources = _sources_before(selector) if run is None else [*run.sources]
        run = selector._run = OpenRun(folder, 0, sources if n_seen else [])
        return run
    if run is not None and run.is_in(folder):
        if saved.generation != run.generation:
            raise RunError(
                f"The run {folder.path} has been continued by another process since "
                "it was opened here. Call featstream.resume on it again."
            )
        run.folder = folder
        return run
    if n_seen:
        raise RunError(
            f"{folder.path} holds another run, of {saved.description['n_seen']:,} "
            "features. Choose a new folder, or continue it with featstream.resume."
        )
    mine = state.describe_selector(selector) | selector._facts()
    theirs = saved.description["parameters"]
    saved.description["parameters"] = state.complete_parameters(theirs, selector)
    state.refuse_difference(mine, saved, f"The run {folder.path}")
    run = OpenRun.of(folder, saved)
    if len(run.sources) > 1:
        raise RunError(
            f"The run {folder.path} has consumed {len(run.sources)} sources. Continue "
            "it with featstream.resume, or choose a new folder."
        )
    if run.unfinished is None:
        folder.keep_finished()
    for source in run.sources:
        source["is_done"] = False  # it is offered again, and compared
    selector._restore_from(saved, run)
    return run


def _sources_before(selector: Savable) -> list[dict[str, Any]]:
    """Describe what came before the run was saved at all."""
    n_seen, sources = selector.n_seen_, []
    rest = getattr(getattr(selector, "_stream", None), "unfinished", None)
    if rest is not None:
        n_seen = rest.begin
        found = state.describe_source(rest.source, rest.layout)
        sources = [{**found, "begin": n_seen, "is_done": False}]
    if n_seen:
        known = {"begin": 0, "is_done": True, "kind": "update"}
        sources.insert(0, known | {f"n_{selector._facts()['arrives']}": n_seen})
    return sources


def _provenance(selector: Savable) -> dict[str, Any]:
    return {
        "featstream": featstream.__version__,
        "saved_at": datetime.now(UTC).isoformat(timespec="seconds"),
        **state.describe_selector(selector),
    }


def _save(selector: Savable, run: OpenRun) -> None:
    """Write the selector's state as the next generation."""
    description = {
        **_provenance(selector),
        **selector._facts(),
        "sources": run.sources,
        "command": run.command,
    }
    run.generation = run.folder.save(description, selector._arrays())
    run.n_saved = selector.n_seen_
