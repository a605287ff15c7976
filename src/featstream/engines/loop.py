"""The loop of every scan: blocks are prepared ahead, and decided in order.

What is prepared for a block may depend on what was kept when it was dispatched, so it
may be out of date when its turn comes. The loop only promises the order; whoever
consumes it validates.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, Protocol, TypeVar

Item = TypeVar("Item")


class Engine(Protocol):
    """Runs functions somewhere. They must be pure: one may be run twice, or again."""

    @property
    def n_workers(self) -> int:
        """How many functions run at once."""

    def submit(
        self, function: Callable[..., Any], *arguments: Any, is_urgent: bool = False
    ) -> Any:
        """Run a function; returns its future. Futures may be given as arguments."""

    def result(self, future: Any) -> Any:
        """Wait for a future; returns or raises what its function did."""

    def first_done(self, futures: Sequence[Any]) -> Any:
        """Wait until one of several functions has ended; returns its future."""

    def cancel(self, futures: Sequence[Any]) -> None:
        """Forget functions whose results nobody needs, and stop them if possible."""


def in_order(
    engine: Engine,
    items: Iterator[Item],
    dispatch: Callable[[Item, int], Any],
    *,
    first: int,
    most: int,
) -> Iterator[tuple[Item, Any]]:
    """Items with the results of their futures, in their order.

    ``dispatch(item, n_ahead)`` returns the future of an item, before which ``n_ahead``
    others are under way. At first there are ``first`` of them, then one more after
    each item, up to ``most``: at the beginning of a stream much is kept, and what is
    prepared far ahead would be out of date.

    >>> from featstream.engines import ThreadEngine
    >>> with ThreadEngine(2) as engine:
    ...     square = lambda i, n_ahead: engine.submit(pow, i, 2)
    ...     [s for _, s in in_order(engine, iter(range(5)), square, first=1, most=4)]
    [0, 1, 4, 9, 16]
    """
    waiting: deque[tuple[Item, Any]] = deque()
    window = first
    while True:
        for item in islice(items, window - len(waiting)):
            waiting.append((item, dispatch(item, len(waiting))))
        if not waiting:
            return
        item, future = waiting.popleft()
        yield item, engine.result(future)
        window = min(window + 1, most)
