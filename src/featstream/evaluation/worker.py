"""Processes that work on cells, each within a limit of time and of memory.

Every cell has a process of its own: what one leaks, breaks or is killed for is no
other's. Where the system can fork, processes come from a server that has imported
what all need, which saves two seconds each; elsewhere they are started afresh.

Memory is watched from outside, by the pages that a process holds for itself. A limit
on address space would not do: numba, BLAS and mapped files reserve far more than they
use.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
import types
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, wait
from typing import Any, Protocol

import numpy as np

from featstream.errors import ParameterError, RunError, size_text
from featstream.evaluation.cell import Job, reason_of, work
from featstream.evaluation.classifiers import as_classifier
from featstream.evaluation.cost import resident_bytes
from featstream.evaluation.entrants import as_message
from featstream.parallel import handling_interrupts, uninterrupted
from featstream.selectors import SAOLA

__all__ = ["Outcome", "Tagged", "run_jobs"]

_POLL_SECONDS = 0.05
_WARMING = "warming"  # kernels are compiled when they are first used, once and for all
_WARMING_SECONDS = 600.0
_PRELOADED = ["featstream.evaluation.worker"]
_WARM = "FEATSTREAM_WARM_KERNELS"
"""Set while the server of processes starts, which loads kernels; nobody else does."""


class Tagged(Protocol):
    """A job, and whatever the caller knows it by."""

    @property
    def job(self) -> Job:
        """What is to be done."""


@dataclass(slots=True)
class Outcome:
    """What came of a job.

    Attributes
    ----------
    cell : Tagged
        The job as it was given.
    selections : list of dict
        What was selected; one, unless it is the best of several.
    scores : dict of str to dict
        Scores by classifier, or a ``reason`` why there are none.
    reason : str or None
        Why nothing was selected, if so.
    limit : dict or None
        The limit that was exceeded, ``seconds`` or ``memory``, if that is the reason.
    warnings : list of str
        What the process warned of.
    """

    cell: Any
    selections: list[dict[str, Any]] = field(default_factory=list)
    scores: dict[str, dict[str, Any]] = field(default_factory=dict)
    reason: str | None = None
    limit: dict[str, float] | None = None
    warnings: list[str] = field(default_factory=list)

    def add(self, selection: dict[str, Any]) -> None:
        """Take a selection in, in place of one for the same value."""
        others = [s for s in self.selections if s["value"] != selection["value"]]
        self.selections = [*others, selection]


@dataclass(slots=True)
class _Running:
    """A process at work."""

    outcome: Outcome
    job: Job
    process: Any
    connection: Connection
    since: float
    step: str = _WARMING
    has_begun: bool = False
    spent: dict[str, float] = field(default_factory=dict)

    def enter(self, step: str) -> None:
        """Go on with another step, or with an earlier one."""
        self.spent[self.step], self.since = self.seconds(), time.monotonic()
        self.step = step

    def seconds(self) -> float:
        """What the present step has taken so far, all its parts together."""
        return self.spent.get(self.step, 0.0) + time.monotonic() - self.since


def run_jobs(
    cells: Iterable[Tagged],
    *,
    n_jobs: int,
    time_limit: float | None,
    memory_limit: int | None,
) -> Generator[Outcome]:
    """Work on cells, so many at a time, and yield what came of each as it ends.

    The limit of time is for the selection, and again for each classifier; where the
    best of several is chosen, for all of them together. On leaving, by whatever way,
    no process is left.
    """
    waiting = iter(cells)
    running: list[_Running] = []
    limits = _Limits(time_limit, memory_limit)
    context = None
    is_more = True
    try:
        while is_more or running:
            while is_more and len(running) < n_jobs:
                cell = next(waiting, None)
                if cell is None:
                    is_more = False
                else:
                    context, job = context or _context(), cell.job
                    outcome = Outcome(cell, list(job.known or ()))
                    with uninterrupted():  # a half-made process would complain
                        running.append(_start(context, outcome, job))
            if not running:
                continue
            wait([r.connection for r in running], _POLL_SECONDS)
            for r in list(running):
                is_done = _listen(r) or limits.stop(r)
                if not is_done:
                    continue
                _end(r)
                running.remove(r)
                rest = _rest_of(r)
                if rest is None:
                    yield r.outcome
                else:
                    with uninterrupted():
                        running.append(_start(context, r.outcome, rest))
    finally:
        for r in running:
            _end(r)


def _rest_of(r: _Running) -> Job | None:
    """What is still to do after a classifier failed to end."""
    left = {n: c for n, c in r.job.classifiers.items() if n not in r.outcome.scores}
    if r.outcome.reason is not None or not left:
        return None
    known = r.outcome.selections or None
    return replace(r.job, classifiers=left, known=known)


def _start(context: Any, outcome: Outcome, job: Job) -> _Running:
    message = as_message(job)
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs,))
    with _hidden_main(is_needed=b"__main__" in message):
        process.start()
    theirs.close()
    with suppress(BrokenPipeError):  # it is gone; `_listen` will find out
        ours.send_bytes(message)
    return _Running(outcome, job, process, ours, time.monotonic())


def _context() -> Any:
    """How processes are started: from a server that has loaded all, if possible."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    from multiprocessing import forkserver

    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    os.environ[_WARM] = "1"
    try:
        # A terminal sends Ctrl-C to all processes; the server ends when we do.
        with handling_interrupts(signal.SIG_IGN):
            forkserver.ensure_running()
    finally:
        del os.environ[_WARM]
    return context


@contextmanager
def _hidden_main(*, is_needed: bool) -> Iterator[None]:
    """Keep a new process from running the user's script again.

    Python has every new process import the main script, lest something be defined
    there; a script that compares without ``if __name__ == "__main__"`` would then
    start itself over and over. Most define nothing that a cell needs.
    """
    main = sys.modules["__main__"]
    if is_needed:
        yield
        return
    nobody = types.ModuleType("__main__")
    sys.modules["__main__"] = nobody
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _listen(r: _Running) -> bool:
    """Take in what a process has said; whether it has ended."""
    while True:
        try:
            if not r.connection.poll():
                return False
            message = r.connection.recv()
        except (EOFError, OSError):
            _note_death(r)
            return True
        kind = message["kind"]
        if kind == "begun":
            r.has_begun = True
        elif kind == "step":
            r.enter(message["step"])
        elif kind == "selected":
            r.outcome.add(message["selection"])
        elif kind == "scored":
            r.outcome.scores[message["classifier"]] = message["scores"]
        elif kind == "failed":
            _fail(r, message["reason"])
            return True
        elif kind == "done":
            r.outcome.warnings += message["warnings"]
            return True


def _note_death(r: _Running) -> None:
    """A process is gone that had not said it was done."""
    r.process.join(5)
    code = r.process.exitcode
    if not r.has_begun:
        raise RunError(
            "A process could not begin its work; its own error is above. If the "
            "script that runs the experiment defines the selector itself, put the "
            'running part under: if __name__ == "__main__":'
        )
    if code is not None and code < 0:
        with suppress(ValueError):
            code = signal.Signals(-code).name
        reason = f"its process was killed ({code})"
    else:
        reason = f"its process ended with exit code {code}"
    _fail(r, reason)


def _fail(r: _Running, reason: str, limit: dict[str, float] | None = None) -> None:
    if r.step in (_WARMING, "selection"):
        r.outcome.reason, r.outcome.limit = reason, limit
    else:
        r.outcome.scores[r.step] = {"reason": reason, "limit": limit}


@dataclass(frozen=True, slots=True)
class _Limits:
    seconds: float | None
    memory: int | None

    def stop(self, r: _Running) -> bool:
        """Whether a process has exceeded a limit, which is noted."""
        if self.seconds is not None:
            is_warm = r.step != _WARMING
            allowed = self.seconds if is_warm else self.seconds + _WARMING_SECONDS
            if r.seconds() > allowed:
                _fail(r, f"exceeded {self.seconds:g} s", {"seconds": self.seconds})
                return True
        held = None if self.memory is None else resident_bytes(r.process.pid)
        if held is not None and self.memory is not None and held > self.memory:
            reason = f"exceeded {size_text(self.memory)}"
            _fail(r, reason, {"memory": self.memory})
            return True
        return False


def _end(r: _Running) -> None:
    with suppress(ValueError):  # it has been ended before
        if r.process.is_alive():
            r.process.kill()
        r.process.join()
        r.connection.close()
        r.process.close()


def _serve(connection: Connection) -> None:
    """What a process does: one job."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the one who asked is told
    threading.Thread(target=_die_with_parent, daemon=True).start()
    with suppress(OSError):  # nobody is listening any more
        connection.send({"kind": "begun"})
        try:
            work(_receive(connection), connection.send)
        except BrokenPipeError:
            raise
        except Exception as error:
            connection.send({"kind": "failed", "reason": reason_of(error)})


def _receive(connection: Connection) -> Job:
    try:
        job: Job = connection.recv()
    except (AttributeError, ImportError) as error:
        raise ParameterError(
            f"another process cannot find its class ({error}). Define it in a module "
            "that can be imported, not in a notebook."
        ) from error
    return job


def _die_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def load_kernels() -> None:
    """Select from and judge a few numbers, as most cells do.

    Numba takes a quarter of a second to load its first kernel, in every process anew.
    What the server has loaded, the processes forked from it inherit.
    """
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 4)), np.arange(20) % 2
    as_classifier("j48").fit(X, y).predict(X)
    SAOLA(measure="fisher-z").fit(X, y)
    SAOLA(measure="su").fit((X > 0).astype(np.uint8), y)


if os.environ.pop(_WARM, ""):
    with suppress(Exception):  # without it cells are slower, and no more
        load_kernels()
