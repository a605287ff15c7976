"""Progress of a stream: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TextIO, TypeAlias

__all__ = ["Observer", "Progress", "observed"]


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
    """

    n_seen: int
    n_features: int | None
    n_kept: int


Observer: TypeAlias = Callable[[Progress], None]

_LIVE_SECONDS = 0.1
_PLAIN_SECONDS = 10.0


@contextmanager
def observed(progress: bool | Observer, label: str) -> Iterator[Observer | None]:
    """Give the observer that ``progress`` asks for, and close its line at the end.

    >>> seen = []
    >>> with observed(seen.append, "SAOLA") as observe:
    ...     observe(Progress(5, 10, 2))
    >>> seen
    [Progress(n_seen=5, n_features=10, n_kept=2)]
    """
    if callable(progress):
        yield progress
    elif not progress:
        yield None
    elif sys.stderr.isatty():
        with _live_line(label) as observe:
            yield observe
    else:
        yield _PlainLines(label, sys.stderr)


def format_line(label: str, at: Progress, seconds: float) -> str:
    """One line about a stream that has run for some seconds.

    >>> format_line("SAOLA", Progress(812_004, 1_355_191, 41), 13.0)
    'SAOLA  812,004/1,355,191  62.5k feat/s  |S*| 41  eta 0:08'
    """
    rate = at.n_seen / seconds if seconds > 0 else 0.0
    of = "" if at.n_features is None else f"/{at.n_features:,}"
    line = f"{label}  {at.n_seen:,}{of}  {_short(rate)} feat/s  |S*| {at.n_kept:,}"
    if at.n_features is not None and rate > 0:
        minutes, rest = divmod(int((at.n_features - at.n_seen) / rate), 60)
        line += f"  eta {minutes}:{rest:02d}"
    return line


def _short(rate: float) -> str:
    for size, suffix in ((1e6, "M"), (1e3, "k")):
        if rate >= size:
            return f"{rate / size:.1f}{suffix}"
    return f"{rate:.0f}"


class _PlainLines:
    """A line every ten seconds, for logs."""

    def __init__(self, label: str, stream: TextIO) -> None:
        self._label, self._stream = label, stream
        self._began = self._shown = time.monotonic()

    def __call__(self, at: Progress) -> None:
        now = time.monotonic()
        if now - self._shown >= _PLAIN_SECONDS:
            self._shown = now
            line = format_line(self._label, at, now - self._began)
            print(line, file=self._stream, flush=True)


@contextmanager
def _live_line(label: str) -> Iterator[Observer]:
    """One line that changes in place."""
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    began = time.monotonic()
    shown = 0.0
    last: Progress | None = None
    with Live(console=Console(stderr=True), auto_refresh=False) as live:

        def show(at: Progress, now: float) -> None:
            live.update(Text(format_line(label, at, now - began)), refresh=True)

        def observe(at: Progress) -> None:
            nonlocal shown, last
            now, last = time.monotonic(), at
            if now - shown >= _LIVE_SECONDS:
                shown = now
                show(at, now)

        yield observe
        if last is not None:
            show(last, time.monotonic())
