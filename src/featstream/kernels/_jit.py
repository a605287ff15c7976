"""The two ways in which this library compiles a kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba

__all__ = ["LEAN", "jit", "lean"]

_OPTIONS: Any = {"nogil": True, "error_model": "numpy"}

LEAN: Any = {**_OPTIONS, "_nrt": False, "forceinline": True}
"""Options of `lean`, for `numba.extending.overload`."""


def jit(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile to machine code, cached on disk, with the interpreter lock released.

    There is no ``fastmath``: ties and NaN decide selections, and sums must not
    depend on the machine that compiled them.
    """
    compiled: Callable[..., Any] = numba.njit(cache=True, **_OPTIONS)(function)
    return compiled


def lean(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a kernel that allocates nothing, into those that call it.

    Numba counts references to every array that is taken out of a tuple, with
    atomic operations, and copies whole tuples from call to call. Where a pair of
    columns is compared in 20 ns that costs fifty times the comparison. A lean
    kernel may not create arrays (views are fine) and pays neither.
    """
    compiled: Callable[..., Any] = numba.njit(cache=True, **LEAN)(function)
    return compiled
