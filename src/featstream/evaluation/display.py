"""How far a comparison is: a live display on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from featstream.progress import clock, shown

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
    if callable(progress) or not progress:
        yield progress if callable(progress) else lambda at: None
        return
    since: dict[str, float] = {}
    n_failed = 0

    def describe(at: CellProgress, seconds: float) -> list[str]:
        now = time.monotonic()
        running = [
            f"  {name}  {now - since.get(name, now):.0f} s"
            for name in at.running[:_MAX_SHOWN]
        ]
        return [format_cells(at, seconds), *running]

    def observe(at: CellProgress) -> None:
        nonlocal n_failed, since
        now = time.monotonic()
        since = {name: since.get(name, now) for name in at.running}
        if at.n_failed > n_failed and at.last_failure is not None:
            display.print(f"failed: {at.last_failure}")
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
