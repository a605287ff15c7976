"""Working memory that is lent out, and used again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["Lender"]


class Lender:
    """Keeps what has been lent and given back, for whoever borrows next.

    Megabytes of fresh memory for every block would cost more than the work on a
    small block. Several threads may borrow at once. A copy, and what is read back
    from a pickle, begins with nothing.

    Examples
    --------
    >>> lender = Lender()
    >>> with lender.lend(list) as first:
    ...     pass
    >>> with lender.lend(list) as second:
    ...     first is second
    True
    """

    def __init__(self) -> None:
        self._free: dict[Any, list[Any]] = {}

    def __reduce__(self) -> tuple[type[Lender], tuple[()]]:
        return Lender, ()

    @contextmanager
    def lend(self, make: Callable[..., Any], *arguments: Any) -> Iterator[Any]:
        """Lend what ``make(*arguments)`` makes, new or used.

        The borrower leaves it as it was. After an error it is not lent again.
        """
        free = self._free.setdefault((make, arguments), [])
        try:
            lent = free.pop()
        except IndexError:
            lent = make(*arguments)
        yield lent
        free.append(lent)
