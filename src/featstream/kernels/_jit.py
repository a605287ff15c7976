"""The one way in which this library compiles a kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba

__all__ = ["jit"]


def jit(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile to machine code, cached on disk, with the interpreter lock released.

    There is no ``fastmath``: ties and NaN decide selections, and sums must not
    depend on the machine that compiled them.
    """
    return numba.njit(cache=True, nogil=True, error_model="numpy")(function)
