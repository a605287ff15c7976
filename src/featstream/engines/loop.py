"""The loop of every scan: blocks are prepared ahead, and decided in order.

What is prepared for a block may depend on what was kept when it was dispatched, so it
may be out of date when its turn comes. The loop only guarantees the order; its caller
validates the results.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Any, Protocol, TypeVar

Item = TypeVar("Item")
Prepared = TypeVar("Prepared")


class Engine(Protocol):
    """Runs functions somewhere. They must be pure: a function may be run twice."""

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


def prepared_ahead(
    items: Iterator[Item], prepare: Callable[[Item], Prepared], n_threads: int
) -> Iterator[Prepared]:
    """Prepare items in threads, and yield the results in order.

    To check, encode and score a block needs nothing of the state of the stream, so
    several blocks are prepared at once. What is decided about them is decided by one
    thread, in order of arrival: nothing can depend on the number of threads. The
    caller's thread counts: it prepares items while it would wait for others.
    """
    if n_threads == 1:
        yield from map(prepare, items)
        return
    waiting: deque[tuple[Item, Future[Prepared]]] = deque()
    pool = ThreadPoolExecutor(n_threads - 1)
    try:
        while True:
            for item in islice(items, 2 * n_threads - len(waiting)):
                waiting.append((item, pool.submit(prepare, item)))
            if not waiting:
                return
            for place, (item, future) in enumerate(waiting):
                if waiting[0][1].done():
                    break
                if future.cancel():  # no thread has begun it
                    waiting[place] = item, _run(prepare, item)
            yield waiting.popleft()[1].result()
    finally:
        pool.shutdown(cancel_futures=True)


def _run(function: Callable[[Item], Prepared], item: Item) -> Future[Prepared]:
    """Run a function in this thread; its future raises what the function raised."""
    future: Future[Prepared] = Future()
    try:
        future.set_result(function(item))
    except Exception as error:
        future.set_exception(error)
    return future
