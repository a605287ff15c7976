"""How kernels are compiled: the only module that knows numba's private options.

Kernels that Python calls use `jit`, or `lean` if they create no arrays. Kernels
that only other kernels call use `inner_jit` or `inner`: they get no entry points
for Python and C, which take longer to compile than most kernels themselves.

There is no ``fastmath``: ties and NaN decide selections, and sums must not depend
on the machine that compiled them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import Any

import numba
from numba.extending import overload

Kernel = Callable[..., Any]

_COMMON: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
_NO_ENTRY: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
_NO_ARRAYS: dict[str, Any] = {"_nrt": False}
_INLINED: dict[str, Any] = {"forceinline": True}
_warned: list[str] = []


def accepted(wanted: dict[str, Any], compiler: Any = numba.njit) -> dict[str, Any]:
    """The options that this version of numba knows; the others only save time."""
    described = getattr(compiler(_nothing), "targetdescr", None)
    known = getattr(described, "options", None)
    return {name: value for name, value in wanted.items() if hasattr(known, name)}


def _nothing() -> None:
    pass


_LEAN = _COMMON | accepted(_NO_ARRAYS)
_INNER_JIT = _COMMON | accepted(_NO_ENTRY)
INNER: Any = _LEAN | accepted(_NO_ENTRY | _INLINED)
"""Options of `inner`, for `numba.extending.overload`."""


def jit(function: Kernel) -> Kernel:
    """Compile a kernel that Python calls; cached on disk, without the GIL."""
    return _compile(function, _COMMON)


def lean(function: Kernel) -> Kernel:
    """Compile a kernel that Python calls and that creates no arrays (views are fine).

    Numba counts references to every array that is taken out of a tuple, with
    atomic operations, and copies whole tuples from call to call. Where a pair of
    columns is compared in 20 ns that costs fifty times the comparison.
    """
    return _compile(function, _LEAN)


def inner_jit(function: Kernel) -> Kernel:
    """Compile a kernel that only kernels call."""
    return _compile(function, _INNER_JIT)


def inner(function: Kernel) -> Kernel:
    """Compile a kernel that creates no arrays into the kernels that call it."""
    return _compile(function, INNER)


def _compile(function: Kernel, options: dict[str, Any]) -> Kernel:
    try:
        compiled: Kernel = numba.njit(cache=True, **options)(function)
    except RuntimeError as error:
        if "cannot cache" not in str(error):
            raise
        compiled = numba.njit(**options)(function)
        if not _warned:
            _warned.append(str(error))
            warnings.warn(
                "Compiled kernels cannot be cached: neither the folder of featstream "
                "nor your cache folder can be written to, so that every process "
                "compiles again. Set NUMBA_CACHE_DIR to a folder that can be.",
                RuntimeWarning,
                stacklevel=2,
            )
    return compiled


@cache
def plain(kernel: Kernel) -> Kernel:
    """The kernel, and all kernels that it calls, as plain Python."""
    function = getattr(kernel, "py_func", kernel)
    known = function.__globals__
    called = {
        name: plain(known[name])
        for name in function.__code__.co_names
        if hasattr(known.get(name), "py_func")
    }
    return FunctionType(
        function.__code__, {**known, **called}, function.__name__, function.__defaults__
    )


checks_types = False
"""Whether `call_known` verifies what its callers promise; the tests do."""

_entry_points: dict[Any, Any] = {}
_known_types: dict[Any, list[str]] = {}


def call_known(kernel: Kernel, key: Any, *arguments: Any) -> Any:
    """Call a kernel with arguments of the same types for the same key.

    Numba finds out the types of all arguments at every call. For tuples of arrays
    that takes longer than to decide about one feature, so what was found for a key
    is used again. Arguments of other types would be read as what they are not.
    """
    entry = _entry_points.get((kernel, key))
    if entry is None or checks_types:
        if not hasattr(kernel, "overloads"):  # plain Python
            return kernel(*arguments)
        types = tuple(map(numba.typeof, arguments))
        # Read-only or not, an array is read in the same way.
        names = [found.name.replace("readonly ", "") for found in types]
        if names != _known_types.setdefault((kernel, key), names):
            raise AssertionError(f"{kernel} for {key} has other types now: {names}")
        entry = _entry_points.get((kernel, key))
        if entry is None:
            entry = kernel.compile(types)  # type: ignore[attr-defined]
            _entry_points[kernel, key] = entry
    return entry(*arguments)


def by_type(kernels: dict[Any, Kernel]) -> Kernel:
    """One function for several kernels: the type of the first argument decides.

    Called from Python it runs as plain Python: inner kernels have no entry point.
    """

    def run(first: Any, *rest: Any) -> Any:
        return plain(kernels[type(first)])(first, *rest)

    @overload(run, strict=False)
    def _run(first: Any, *rest: Any) -> Any:
        chosen = kernels[first.instance_class]
        return lambda first, *rest: chosen(first, *rest)

    return run
