"""Ctrl-C that waits for a good moment."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["handling_interrupts", "uninterrupted"]


@contextmanager
def handling_interrupts(
    handler: Callable[[int, FrameType | None], None] | signal.Handlers,
) -> Iterator[None]:
    """Another handler of Ctrl-C, where we may set one."""
    before = signal.getsignal(signal.SIGINT)
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or before is None:
        yield
        return
    signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Let Ctrl-C wait for the end of what must be done as a whole.

    It then takes effect as it would have before. A second one does not wait.
    """
    noted: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        if noted:
            raise KeyboardInterrupt
        noted.append(number)

    with handling_interrupts(note):
        yield
    if noted:
        signal.raise_signal(signal.SIGINT)
