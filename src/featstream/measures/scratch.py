"""Scratch buffers that are used again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class ScratchPool:
    """Keeps buffers that were borrowed and given back, for the next borrower.

    Megabytes of fresh memory for every block would cost more than the work on a
    small block. Several threads may borrow at once. A copy, and what is read back
    from a pickle, begins with nothing.

    Examples
    --------
    >>> pool = ScratchPool()
    >>> with pool.borrow(list) as first:
    ...     pass
    >>> with pool.borrow(list) as second:
    ...     first is second
    True
    """

    def __init__(self) -> None:
        self._free: dict[Any, list[Any]] = {}

    def __reduce__(self) -> tuple[type[ScratchPool], tuple[()]]:
        return ScratchPool, ()

    @contextmanager
    def borrow(self, make: Callable[..., Any], *arguments: Any) -> Iterator[Any]:
        """Borrow what ``make(*arguments)`` makes, new or used.

        The borrower leaves it as it was. After an error it is not used again.
        """
        free = self._free.setdefault((make, arguments), [])
        try:
            buffer = free.pop()
        except IndexError:
            buffer = make(*arguments)
        yield buffer
        free.append(buffer)
