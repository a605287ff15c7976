"""How far a comparison is: a live display on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TextIO

__all__ = ["CellProgress", "cells_observed", "format_cells"]

_PLAIN_SECONDS = 10.0
_MAX_SHOWN = 8


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
    """Give the observer that ``progress`` asks for, and close it at the end.

    >>> with cells_observed(False) as observe:
    ...     observe(CellProgress(n_cells=3))
    """
    if callable(progress):
        yield progress
    elif not progress:
        yield lambda at: None
    elif sys.stderr.isatty():
        with _live() as observe:
            yield observe
    else:
        yield _PlainLines(sys.stderr)


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
        left = int(seconds / at.n_done * (at.n_cells - ended))
        line += f"  eta {left // 60}:{left % 60:02d}"
    return line


class _PlainLines:
    """A line every ten seconds, at each failure and at the end, for logs."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._began = self._shown = time.monotonic()
        self._n_failed = 0

    def __call__(self, at: CellProgress) -> None:
        now = time.monotonic()
        if at.n_failed > self._n_failed:
            self._n_failed = at.n_failed
            if at.last_failure is not None:
                print(f"failed: {at.last_failure}", file=self._stream, flush=True)
        is_done = at.n_done > 0 and at.n_kept + at.n_done == at.n_cells
        if is_done or now - self._shown >= _PLAIN_SECONDS:
            self._shown = now
            print(format_cells(at, now - self._began), file=self._stream, flush=True)


@contextmanager
def _live() -> Iterator[Callable[[CellProgress], None]]:
    """A bar, and the cells at work with the time that they have taken."""
    from rich.console import Console, Group
    from rich.live import Live
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    began = time.monotonic()
    since: dict[str, float] = {}
    last = CellProgress()

    class Display:
        """Drawn anew whenever it is looked at."""

        def __rich__(self) -> Group:
            now = time.monotonic()
            ended = last.n_kept + last.n_done
            bar = ProgressBar(max(last.n_cells, 1), ended, width=30)
            first = Table.grid(padding=(0, 1))
            first.add_row(bar, format_cells(last, now - began))
            lines = [
                Text(f"  {name}  {now - since.get(name, now):.0f} s")
                for name in last.running[:_MAX_SHOWN]
            ]
            if last.last_failure is not None:
                lines.append(Text(f"  failed: {last.last_failure}", style="yellow"))
            return Group(first, *lines)

    with Live(Display(), console=Console(stderr=True), refresh_per_second=4) as live:

        def observe(at: CellProgress) -> None:
            nonlocal last
            last = at
            now = time.monotonic()
            for name in at.running:
                since.setdefault(name, now)
            for name in set(since) - set(at.running):
                del since[name]

        yield observe
        live.refresh()
