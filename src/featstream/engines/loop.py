"""The loop of every scan: blocks are prepared ahead, and decided in order.

What is prepared needs nothing of the state of a stream, so threads or the workers of an
engine may prepare several blocks at once. The caller decides about them one after the
other: nothing depends on where, or in which order, they were prepared.
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

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
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
    submit: Callable[[Item], Any],
    *,
    n_ahead: int,
) -> Iterator[tuple[Item, Any]]:
    """Items with the results of their futures, in their order.

    ``submit(item)`` returns the future of an item. At most ``n_ahead`` are under way:
    what has been sent and not come back takes memory, here and on the workers.
    """
    waiting: deque[tuple[Item, Any]] = deque()
    while True:
        for item in islice(items, n_ahead - len(waiting)):
            waiting.append((item, submit(item)))
        if not waiting:
            return
        item, future = waiting.popleft()
        yield item, engine.result(future)


def prepared_ahead(
    items: Iterator[Item], prepare: Callable[[Item], Prepared], n_threads: int
) -> Iterator[Prepared]:
    """Prepare items in threads, and yield the results in order.

    The caller's thread counts: it prepares items while it would wait for others.
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
