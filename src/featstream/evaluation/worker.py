"""Worker processes: one per cell, with limits on time and memory.

Every cell has a process of its own: leaks, crashes and kills stay confined to one
process. Where the system can fork, processes come from a server that has imported
what all need, which saves two seconds each; elsewhere each starts from scratch.

Memory is watched from outside, by the pages that belong to the process alone. A limit
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
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar

import numpy as np

from featstream.engines import Engine, is_cancelled
from featstream.errors import (
    DataError,
    EngineError,
    ParameterError,
    RunError,
    printable,
    size_text,
)
from featstream.evaluation.cell import Job, reason_of, work
from featstream.evaluation.cell_cache import as_message
from featstream.evaluation.entrants import as_classifier
from featstream.parallel import handling_interrupts, resident_bytes, uninterrupted
from featstream.selectors import SAOLA

Cell = TypeVar("Cell")

_POLL_SECONDS = 0.05
_WARMING = "warming"  # kernels are compiled at their first use
_WARMING_SECONDS = 600.0
_STARTING = threading.Lock()  # what hides the main script is the whole process's
_PRELOADED = ["featstream.evaluation.worker"]
_WARM = "FEATSTREAM_WARM_KERNELS"
"""Set while the server of processes starts: only the server loads kernels, and only
those that the first cell needs, which may have to be compiled."""


@dataclass(slots=True)
class CellOutcome:
    """The selections and scores of a cell, or why there are none."""

    selections: list[dict[str, Any]] = field(default_factory=list)  # one per value
    scores: dict[str, dict[str, Any]] = field(default_factory=dict)  # by classifier
    reason: str | None = None  # why nothing was selected
    limit: dict[str, float] | None = None  # "seconds" or "memory", if exceeded
    warnings: list[str] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class _Running:
    """A process at work."""

    cell: Any
    job: Job
    outcome: CellOutcome
    process: Any
    connection: Connection
    since: float = field(default_factory=time.monotonic)
    step: str = _WARMING
    has_begun: bool = False
    spent: dict[str, float] = field(default_factory=dict)

    def enter(self, step: str) -> None:
        """Begin a step, or continue an earlier one."""
        self.spent[self.step], self.since = self.seconds(), time.monotonic()
        self.step = step

    def seconds(self) -> float:
        """Seconds spent in the current step, earlier visits included."""
        return self.spent.get(self.step, 0.0) + time.monotonic() - self.since


def run_jobs(
    cells: Iterable[tuple[Cell, Job]],
    n_jobs: int,
    time_limit: float | None,
    memory_limit: int | None,
    is_over: Callable[[], bool] = lambda: False,
) -> Generator[tuple[Cell, CellOutcome]]:
    """Compute cells, ``n_jobs`` at a time, and yield the outcome of each as it ends.

    A cell is whatever its caller knows it by; its job is taken when it is started. The
    time limit holds for the selection, and again for each classifier; for `BestOf`,
    for all its values together. However this ends, no process is left.
    """
    waiting, context = iter(cells), None
    running: list[_Running] = []
    try:
        while not is_over():
            for cell, job in islice(waiting, n_jobs - len(running)):
                context = context or _context(job)
                outcome = CellOutcome(list(job.known))
                with uninterrupted():  # a half-made process would complain
                    running.append(_start(context, cell, job, outcome))
            if not running:
                return
            wait([r.connection for r in running], _POLL_SECONDS)
            for r in list(running):
                if not (_listen(r) or _is_stopped(r, time_limit, memory_limit)):
                    continue
                _end(r)
                running.remove(r)
                rest = _rest_of(r)
                if rest is None:
                    yield r.cell, r.outcome
                else:
                    with uninterrupted():
                        running.append(_start(context, r.cell, rest, r.outcome))
    finally:
        for r in running:
            _end(r)


def run_on(
    engine: Engine,
    cells: Iterable[tuple[Cell, Job]],
    time_limit: float | None,
    memory_limit: int | None,
) -> Generator[tuple[Cell, CellOutcome]]:
    """Compute cells on the workers of an engine; yield the outcome of each as it ends.

    Each worker starts a process per cell, with the same limits as here. A cell whose
    worker dies is computed again by another. However this ends, no process is left.
    """
    waiting, running = iter(cells), dict[Any, Cell]()
    try:
        while True:
            for cell, job in islice(waiting, max(0, engine.n_workers - len(running))):
                job = replace(job, folder=job.folder.absolute())
                future = engine.submit(compute_cell, job, time_limit, memory_limit)
                running[future] = cell
            if not running:
                return
            future = engine.first_done(list(running))
            outcome = engine.result(future)
            yield running.pop(future), outcome
    finally:
        engine.cancel(list(running))


def compute_cell(
    job: Job, time_limit: float | None, memory_limit: int | None
) -> CellOutcome:
    """Compute one cell in a process of its own, for as long as somebody wants it."""
    if not job.folder.is_dir():
        raise DataError(
            f"A worker does not see the data of the comparison in "
            f"{printable(str(job.folder), limit=400)}. Save the comparison in a folder "
            "on storage that all workers share."
        )
    # Workers of Dask are daemons, which must not have processes of their own. This
    # one ends its process itself, and the process ends if this one is killed.
    multiprocessing.current_process().daemon = False
    cells = [(None, job)]
    for _, outcome in run_jobs(cells, 1, time_limit, memory_limit, is_cancelled):
        return outcome
    raise EngineError("The comparison has ended, and the cell with it.")


def _rest_of(r: _Running) -> Job | None:
    """The job without the classifiers that are done; None if nothing is left."""
    left = {n: c for n, c in r.job.classifiers.items() if n not in r.outcome.scores}
    if r.outcome.reason is not None or not left:
        return None
    return replace(r.job, classifiers=left, known=r.outcome.selections)


def _start(context: Any, cell: Any, job: Job, outcome: CellOutcome) -> _Running:
    message = as_message(job)
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs,))
    with _STARTING, _hidden_main(is_needed=b"__main__" in message):
        process.start()
    theirs.close()
    with suppress(BrokenPipeError):  # it has died, which `_listen` will notice
        ours.send_bytes(message)
    return _Running(cell, job, outcome, process, ours)


def _context(job: Job) -> Any:
    """How processes are started: from a server with everything loaded, if possible."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    from multiprocessing import forkserver

    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    used = f"{job.selector!r} {job.classifiers!r}"
    os.environ[_WARM] = ",".join(name for name in ("J48", "SAOLA") if name in used)
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

    Python lets every new process import the main script, in case classes are defined
    there; a script that compares without ``if __name__ == "__main__"`` would then
    start itself over and over. Most define nothing that a cell needs.
    """
    main = sys.modules["__main__"]
    if not is_needed:
        sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _listen(r: _Running) -> bool:
    """Handle the messages of a process; True when it has ended."""
    while True:
        try:
            if not r.connection.poll():
                return False
            message = r.connection.recv()
        except (EOFError, OSError):
            _note_death(r)
            return True
        match message:
            case ("begun",):
                r.has_begun = True
            case "step", step:
                r.enter(step)
            case "selected", selection:
                others = r.outcome.selections
                others = [s for s in others if s["value"] != selection["value"]]
                r.outcome.selections = [*others, selection]
            case "scored", classifier, scores:
                r.outcome.scores[classifier] = scores
            case "failed", reason:
                _fail(r, reason)
                return True
            case "done", warnings:
                r.outcome.warnings += warnings
                return True


def _note_death(r: _Running) -> None:
    """Record that a process died before it was done."""
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


def _is_stopped(r: _Running, seconds: float | None, memory: int | None) -> bool:
    """Whether a process has exceeded a limit, which is recorded."""
    spare = _WARMING_SECONDS if r.step == _WARMING else 0.0
    if seconds is not None and r.seconds() > seconds + spare:
        _fail(r, f"exceeded {seconds:g} s", {"seconds": seconds})
    elif memory is not None and (resident_bytes(r.process.pid) or 0) > memory:
        _fail(r, f"exceeded {size_text(memory)}", {"memory": memory})
    else:
        return False
    return True


def _end(r: _Running) -> None:
    with suppress(ValueError):  # ended before
        if r.process.is_alive():
            r.process.kill()
        r.process.join()
        r.connection.close()
        r.process.close()


def _serve(connection: Connection) -> None:
    """Run one job in a process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the main process handles it
    threading.Thread(target=_die_with_parent, daemon=True).start()

    def say(*message: Any) -> None:
        connection.send(message)

    with suppress(OSError):  # the main process is gone
        say("begun")
        try:
            work(_receive(connection), say)
        except BrokenPipeError:
            raise
        except Exception as error:
            say("failed", reason_of(error))


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


def load_kernels(names: list[str]) -> None:
    """Select and classify a few numbers, as most cells do.

    Numba takes a quarter of a second to load its first kernel, in every process anew;
    processes inherit what the server has loaded.
    """
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 4)), np.arange(20) % 2
    if "J48" in names:
        as_classifier("j48").fit(X, y).predict(X)
    if "SAOLA" in names:
        SAOLA(measure="fisher-z").fit(X, y)
        SAOLA(measure="su").fit((X > 0).astype(np.uint8), y)


if _WARM in os.environ:
    with suppress(Exception):  # only saves time
        load_kernels(os.environ.pop(_WARM).split(","))
