"""Progress of select, convert, compare: live on a terminal, plain lines elsewhere."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

_PLAIN_SECONDS = 10.0
_live: list[Any] = []  # the live display, if there is one


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a stream has come.

    Attributes
    ----------
    n_seen : int
        Features decided about.
    n_features : int or None
        Features there will be, where that is known.
    n_kept : int
        Size of the selection now.
    seconds : float
        Time spent on the features seen, compilation excluded.
    """

    n_seen: int
    n_features: int | None
    n_kept: int
    seconds: float = 0.0


Observer: TypeAlias = Callable[[Progress], None]
Describe: TypeAlias = Callable[[Any, float], Sequence[str]]
"""A state, and the seconds until it was reached, as lines; logs show the first one."""


class Display:
    """Shows the latest state that it is called with, as `describe` puts it."""

    def __init__(self, describe: Describe) -> None:
        self._describe = describe
        self._began = self._updated = self._shown = time.monotonic()
        self._state: Any = None

    def __call__(self, state: Any, *, at_once: bool = False) -> None:
        """Note a state; a log gets a line every ten seconds, or at once if asked."""
        now = self._updated = time.monotonic()
        self._state = state
        if not _live and (at_once or now - self._shown >= _PLAIN_SECONDS):
            self._shown = now
            say(self._lines()[0])

    def _lines(self) -> Sequence[str]:
        if self._state is None:
            return ()
        return self._describe(self._state, self._updated - self._began)

    def __rich__(self) -> str:
        from rich.markup import escape

        return escape("\n".join(self._lines()))


@contextmanager
def shown(describe: Describe) -> Iterator[Display]:
    """Give a display: live on a terminal, plain lines on stderr elsewhere."""
    display = Display(describe)
    if _live or not sys.stderr.isatty():
        yield display
        return
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True, highlight=False)
    with Live(display, console=console, refresh_per_second=8) as live:
        _live.append(live)
        try:
            yield display
        finally:
            _live.remove(live)
            live.refresh()


@contextmanager
def observed(progress: bool | Observer, label: str) -> Iterator[Observer | None]:
    """Give the observer of a stream that ``progress`` asks for."""
    if callable(progress):
        yield progress
    elif not progress:
        yield None
    else:
        first: Progress | None = None

        def observe(at: Progress) -> None:
            nonlocal first
            first = first or at
            display(at)

        with shown(lambda at, seconds: [format_line(label, at, first)]) as display:
            yield observe


def say(text: str) -> None:
    """Print a line that stays, above the live display if there is one."""
    if _live:
        _live[-1].console.print(text, markup=False, highlight=False)
    else:
        print(text, file=sys.stderr, flush=True)


def announce(text: str) -> None:
    """Say something on a terminal; elsewhere, log it."""
    if _live or sys.stderr.isatty():
        say(text)
    else:
        logging.getLogger("featstream").info(text)


def format_line(label: str, at: Progress, first: Progress | None = None) -> str:
    """One line about a stream, with its rate since a first state.

    What came before that, such as to start the workers of a cluster, says nothing about
    what is to come; nor does less than a hundredth of the features.
    """
    of = "" if at.n_features is None else f"/{at.n_features:,}"
    line, rate = f"{label}  {at.n_seen:,}{of}", 0.0
    if first is not None and at.seconds > first.seconds:
        rate = (at.n_seen - first.n_seen) / (at.seconds - first.seconds)
        line += f"  {_short(rate)} feat/s"
    line += f"  |S*| {at.n_kept:,}"
    if rate and at.n_features is not None and 100 * at.n_seen >= at.n_features:
        line += f"  eta {clock((at.n_features - at.n_seen) / rate)}"
    return line


@dataclass(slots=True)
class CellProgress:
    """How far a comparison is.

    Attributes
    ----------
    n_cells : int
        Cells in all.
    n_kept : int
        Cells that an earlier run had done.
    n_done : int
        Cells that this run has done, the failed ones included.
    n_failed : int
        Cells of this run without a selection.
    running : list of str
        Cells at work.
    last_failure : str or None
        The last failed cell, and why.
    """

    n_cells: int = 0
    n_kept: int = 0
    n_done: int = 0
    n_failed: int = 0
    running: list[str] = field(default_factory=list)
    last_failure: str | None = None


@contextmanager
def cells_observed(
    progress: bool | Callable[[CellProgress], None],
) -> Iterator[Callable[[CellProgress], None]]:
    """Give the observer of a comparison that ``progress`` asks for."""
    if callable(progress) or not progress:
        yield progress if callable(progress) else lambda at: None
        return
    since: dict[str, float] = {}
    n_failed = 0

    def describe(at: CellProgress, seconds: float) -> list[str]:
        now = time.monotonic()
        running = [
            f"  {name}  {now - since.get(name, now):.0f} s" for name in at.running[:8]
        ]
        return [format_cells(at, seconds), *running]

    def observe(at: CellProgress) -> None:
        nonlocal n_failed, since
        now = time.monotonic()
        since = {name: since.get(name, now) for name in at.running}
        if at.n_failed > n_failed and at.last_failure is not None:
            say(f"failed: {at.last_failure}")
        n_failed = at.n_failed
        is_done = at.n_done > 0 and at.n_kept + at.n_done == at.n_cells
        display(at, at_once=is_done)

    with shown(describe) as display:
        yield observe


def format_cells(at: CellProgress, seconds: float) -> str:
    """One line about a comparison that has run for some seconds.

    >>> format_cells(CellProgress(n_cells=40, n_kept=10, n_done=20), 30.0)
    '30/40 cells  10 kept from before  eta 0:15'
    """
    ended = at.n_kept + at.n_done
    line = f"{ended}/{at.n_cells} cells"
    if at.n_kept:
        line += f"  {at.n_kept} kept from before"
    if at.n_failed:
        line += f"  {at.n_failed} failed"
    if at.n_done and ended < at.n_cells:
        line += f"  eta {clock(seconds / at.n_done * (at.n_cells - ended))}"
    return line


def clock(seconds: float) -> str:
    """Minutes and seconds."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}:{rest:02d}"


def _short(rate: float) -> str:
    for size, suffix in ((1e6, "M"), (1e3, "k")):
        if rate >= size:
            return f"{rate / size:.1f}{suffix}"
    return f"{rate:.0f}"
