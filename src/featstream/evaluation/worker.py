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
from itertools import chain, islice
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
from featstream.evaluation.entrants import as_classifier, as_message
from featstream.parallel import handling_interrupts, resident_bytes, uninterrupted
from featstream.selectors import SAOLA

Cell = TypeVar("Cell")

_POLL_SECONDS = 0.05
_WARMING = "warming"  # kernels are compiled at their first use
_WARMING_SECONDS = 600.0
_STARTING = threading.Lock()  # what hides the main script is the whole process's
_PRELOADED = ["featstream.evaluation.worker"]
_WARM = "FEATSTREAM_WARM_KERNELS"
"""Names the kernels that the server of processes loads when it starts: those that the
first cell needs. Processes inherit them."""


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

    def listen(self) -> bool:
        """Handle the messages of the process; True when it has ended."""
        while True:
            try:
                if not self.connection.poll():
                    return False
                message = self.connection.recv()
            except (EOFError, OSError):
                self.fail(self.cause_of_death())
                return True
            match message:
                case ("begun",):
                    self.has_begun = True
                case "step", step:
                    self.enter(step)
                case "selected", selection:
                    others = self.outcome.selections
                    others = [s for s in others if s["value"] != selection["value"]]
                    self.outcome.selections = [*others, selection]
                case "scored", classifier, scores:
                    self.outcome.scores[classifier] = scores
                case "failed", reason:
                    self.fail(reason)
                    return True
                case "done", warnings:
                    self.outcome.warnings += warnings
                    return True

    def cause_of_death(self) -> str:
        """Why the process ended before it was done."""
        self.process.join(5)
        code = self.process.exitcode
        if not self.has_begun:
            raise RunError(
                "A process could not begin its work; its own error is above. If the "
                "script that runs the experiment defines the selector itself, put the "
                'running part under: if __name__ == "__main__":'
            )
        if code is None or code >= 0:
            return f"its process ended with exit code {code}"
        with suppress(ValueError):
            code = signal.Signals(-code).name
        return f"its process was killed ({code})"

    def has_exceeded(self, seconds: float | None, memory: int | None) -> bool:
        """Whether the process has exceeded a limit, which is recorded."""
        spare = _WARMING_SECONDS if self.step == _WARMING else 0.0
        if seconds is not None and self.seconds() > seconds + spare:
            self.fail(f"exceeded {seconds:g} s", {"seconds": seconds})
        elif memory is not None and (resident_bytes(self.process.pid) or 0) > memory:
            self.fail(f"exceeded {size_text(memory)}", {"memory": memory})
        else:
            return False
        return True

    def fail(self, reason: str, limit: dict[str, float] | None = None) -> None:
        """Record why the current step has no result."""
        if self.step in (_WARMING, "selection"):
            self.outcome.reason, self.outcome.limit = reason, limit
        else:
            self.outcome.scores[self.step] = {"reason": reason, "limit": limit}

    def end(self) -> None:
        """End the process, if it has not ended."""
        with suppress(ValueError):  # it was closed before
            if self.process.is_alive():
                self.process.kill()
            self.process.join()
            self.connection.close()
            self.process.close()


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
    waiting = ((cell, job, CellOutcome(list(job.known))) for cell, job in cells)
    again: list[tuple[Cell, Job, CellOutcome]] = []  # with the classifiers left to try
    running: list[_Running] = []
    context = None
    try:
        while not is_over():
            n_free = n_jobs - len(running) - len(again)
            for cell, job, outcome in chain(again, islice(waiting, n_free)):
                context = context or _context(job)
                with uninterrupted():  # a half-made process would complain
                    running.append(_start(context, cell, job, outcome))
            again.clear()
            if not running:
                return
            wait([r.connection for r in running], _POLL_SECONDS)
            for r in list(running):
                if not (r.listen() or r.has_exceeded(time_limit, memory_limit)):
                    continue
                r.end()
                running.remove(r)
                done = r.outcome.scores
                rest = {n: c for n, c in r.job.classifiers.items() if n not in done}
                if rest and r.outcome.reason is None:
                    job = replace(r.job, classifiers=rest, known=r.outcome.selections)
                    again.append((r.cell, job, r.outcome))
                else:
                    yield r.cell, r.outcome
    finally:
        for r in running:
            r.end()


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
    """Compute one cell in a process of its own, unless it is cancelled."""
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


def _start(context: Any, cell: Any, job: Job, outcome: CellOutcome) -> _Running:
    message = as_message(job)
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs,))
    with _STARTING, _hidden_main(is_needed=b"__main__" in message):
        process.start()
    theirs.close()
    with suppress(BrokenPipeError):  # it has died, which `listen` will notice
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
    """Keep a new process from importing the user's script, if no cell needs it.

    A script that compares without ``if __name__ == "__main__"`` would start itself
    over and over.
    """
    main = sys.modules["__main__"]
    if not is_needed:
        sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


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
    """Load the kernels that most cells need, which takes a quarter of a second."""
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
