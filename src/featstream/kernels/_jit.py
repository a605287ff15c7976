"""The one way in which this library compiles a kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

__all__ = ["jit", "jit_inline"]

F = TypeVar("F", bound=Callable[..., Any])


def jit(function: F) -> F:
    """Compile to machine code, cached on disk, with the interpreter lock released.

    There is no ``fastmath``: ties and NaN decide selections, and sums must not
    depend on the machine that compiled them.
    """
    return numba.njit(cache=True, nogil=True, error_model="numpy")(function)


def jit_inline(function: F) -> F:
    """Compile a small function into each of its callers."""
    return numba.njit(cache=True, nogil=True, error_model="numpy", inline="always")(
        function
    )
