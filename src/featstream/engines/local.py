"""Threads of this machine: prepare blocks ahead, decide in order.

To check, encode and score a block needs nothing of the state of the stream, so
several blocks are prepared at once; what is decided about them is decided by
one thread, in order of arrival. Nothing can depend on the number of threads.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import TypeVar

from threadpoolctl import ThreadpoolController

from featstream.errors import ParameterError

__all__ = ["blas_threads", "count_threads", "prepared_ahead"]

Item = TypeVar("Item")
Prepared = TypeVar("Prepared")


def count_threads(n_jobs: int | None) -> int:
    """How many threads ``n_jobs`` means: None is one, -1 all cores.

    >>> count_threads(None)
    1
    """
    is_number = isinstance(n_jobs, int) and not isinstance(n_jobs, bool)
    if n_jobs is not None and (not is_number or n_jobs == 0):
        raise ParameterError(
            f"`n_jobs` must be an integer other than 0, or None for one thread. "
            f"Got {n_jobs!r}. Use -1 for all cores."
        )
    if n_jobs is None or n_jobs > 0:
        return n_jobs or 1
    return max(1, (os.cpu_count() or 1) + 1 + n_jobs)


def prepared_ahead(
    items: Iterator[Item], prepare: Callable[[Item], Prepared], n_threads: int
) -> Iterator[Prepared]:
    """Prepare items in threads, and give them in order.

    With one thread there is none but the caller's.

    >>> list(prepared_ahead(iter(range(5)), lambda i: i * i, n_threads=2))
    [0, 1, 4, 9, 16]
    """
    if n_threads == 1:
        yield from map(prepare, items)
        return
    with ThreadPoolExecutor(n_threads) as pool:
        waiting: deque[Future[Prepared]] = deque()
        try:
            for item in items:
                waiting.append(pool.submit(prepare, item))
                if len(waiting) > n_threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


@contextmanager
def blas_threads(n_threads: int) -> Iterator[None]:
    """Let matrix products use so many threads, and no more."""
    with _controller().limit(limits=n_threads, user_api="blas"):
        yield
