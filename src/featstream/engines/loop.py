"""The loop of every scan: blocks are prepared ahead, and decided in order.

What is prepared for a block may depend on what was kept when it was dispatched, so it
may be out of date when its turn comes. The loop only promises the order; whoever
consumes it validates. The engine is threads of this process, or one like them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Protocol, Self, TypeVar

Item = TypeVar("Item")
Prepared = TypeVar("Prepared")


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


@dataclass(slots=True, eq=False)
class _Task:
    """A function with its arguments, and what becomes of it."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    future: Future[Any] = field(default_factory=Future)

    def run(self) -> None:
        """Run it here."""
        self.future = Future()
        try:
            self.future.set_result(self.function(*self.arguments))
        except Exception as error:  # raised again when its result is asked for
            self.future.set_exception(error)


class ThreadEngine:
    """Runs functions in ``n_workers`` threads.

    The caller's thread is one of them: it runs functions while it would wait for
    others. With one thread nothing runs before its result is asked for.

    Examples
    --------
    >>> with ThreadEngine(2) as engine:
    ...     engine.result(engine.submit(max, 3, 4))
    4
    """

    def __init__(self, n_workers: int) -> None:
        self.n_workers = n_workers
        self._pool = ThreadPoolExecutor(n_workers - 1) if n_workers > 1 else None
        self._waiting: deque[_Task] = deque()

    def submit(
        self, function: Callable[..., Any], *arguments: Any, is_urgent: bool = False
    ) -> _Task:
        """Run a function, sooner or later; futures among the arguments are awaited."""
        arguments = tuple(
            self.result(a) if isinstance(a, _Task) else a for a in arguments
        )
        task = _Task(function, arguments)
        if self._pool is not None:
            task.future = self._pool.submit(function, *arguments)
        self._waiting.append(task)
        return task

    def result(self, task: _Task) -> Any:
        """Wait for a function, and run others meanwhile."""
        while not task.future.done() and self._help():
            pass
        if task in self._waiting:
            self._waiting.remove(task)
        return task.future.result()

    def first_done(self, tasks: Sequence[_Task]) -> _Task:
        """Wait until one of several functions has ended; returns its task."""
        while True:
            for task in tasks:
                if task.future.done():
                    return task
            if not self._help():
                wait([task.future for task in tasks], return_when=FIRST_COMPLETED)

    def cancel(self, tasks: Sequence[_Task]) -> None:
        """Do not begin functions whose results nobody needs."""
        for task in tasks:
            task.future.cancel()
            self._waiting.remove(task)

    def _help(self) -> bool:
        """Run the first function that no thread has begun; whether there was one."""
        for task in self._waiting:
            if task.future.cancel():
                task.run()
                return True
        return False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._waiting.clear()
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)


def prepared_ahead(
    items: Iterator[Item], prepare: Callable[[Item], Prepared], n_threads: int
) -> Iterator[Prepared]:
    """Prepare items in threads, and give them in order.

    To check, encode and score a block needs nothing of the state of the stream, so
    several blocks are prepared at once. What is decided about them is decided by one
    thread, in order of arrival: nothing can depend on the number of threads.

    >>> list(prepared_ahead(iter(range(5)), lambda i: i * i, n_threads=2))
    [0, 1, 4, 9, 16]
    """
    window = 2 * n_threads if n_threads > 1 else 1
    with ThreadEngine(n_threads) as engine:
        for _, prepared in in_order(
            engine,
            items,
            lambda item, n_ahead: engine.submit(prepare, item),
            first=window,
            most=window,
        ):
            yield prepared
