"""Threads, BLAS limits, interrupts, reused memory, and measured time and memory."""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import psutil
import threadpoolctl
from numpy.typing import NDArray

from featstream.errors import ParameterError
from featstream.jit import compilation


def count_threads(n_jobs: int | None) -> int:
    """How many threads ``n_jobs`` means: None is one, -1 all cores, -2 all but one."""
    is_number = isinstance(n_jobs, int) and not isinstance(n_jobs, bool)
    if n_jobs is not None and (not is_number or n_jobs == 0):
        raise ParameterError(
            f"`n_jobs` must be an integer other than 0, or None for one thread. "
            f"Got {n_jobs!r}. Use -1 for all cores."
        )
    if n_jobs is None or n_jobs > 0:
        return n_jobs or 1
    return max(1, count_cores() + 1 + n_jobs)


def count_cores() -> int:
    """Number of processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def _controller() -> Any:
    return threadpoolctl.ThreadpoolController()


_openblas: Any = getattr(threadpoolctl, "OpenBLASController", None)
_hand_over = getattr(_openblas, "clear_controlling_thread", None) or bool
"""Let any thread change limits; from 3.8 on only the thread that did so first can."""


class _SingleBlas:
    """One thread for matrix products, as long as any thread asks for it.

    The limit holds for the whole process. The first thread to ask for it sets it, and
    the last one restores the limit before.
    """

    def __init__(self) -> None:
        self._lock, self._n_users = threading.Lock(), 0
        self._limiter: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if not self._n_users:
                self._limiter = _controller().limit(limits=1, user_api="blas")
                _hand_over()
            self._n_users += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._n_users -= 1
            if not self._n_users:
                self._limiter.restore_original_limits()
                _hand_over()


single_blas = _SingleBlas()
"""``with single_blas:`` use one thread for matrix products, so that all bits agree."""


Handler = Callable[[int, FrameType | None], Any] | signal.Handlers


@contextmanager
def handling_interrupts(handler: Handler) -> Iterator[None]:
    """Handle Ctrl-C with another function, where this thread may do so."""
    before = signal.getsignal(signal.SIGINT)
    if threading.get_ident() != _MAIN or before is None:
        yield
        return
    signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class uninterrupted:  # noqa: N801 (it reads as the verb that it is)
    """Delay Ctrl-C until the end of the block; a second one takes effect at once."""

    __slots__ = ("_before", "_noted")

    def __enter__(self) -> None:
        self._noted = False
        self._before: Any = None
        if threading.get_ident() == _MAIN:
            self._before = signal.getsignal(_SIGINT)
            if self._before is not None:
                signal.signal(_SIGINT, self._note)

    def __exit__(self, *error: object) -> None:
        if self._before is not None:
            signal.signal(_SIGINT, self._before)
        if self._noted and error[0] is None:
            signal.raise_signal(_SIGINT)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self._noted:
            raise KeyboardInterrupt
        self._noted = True


_MAIN = threading.main_thread().ident
_SIGINT = int(signal.SIGINT)


class ScratchPool:
    """Keeps buffers that were given back for the next borrower, in any thread.

    A copy of a pool is empty.

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
        """Borrow a buffer that ``make(*arguments)`` made, now or before.

        The borrower leaves it as it was. After an error it is not used again.
        """
        free = self._free.setdefault((make, arguments), [])
        try:
            buffer = free.pop()
        except IndexError:
            buffer = make(*arguments)
        yield buffer
        free.append(buffer)


class ReusedMemory:
    """Arrays whose memory is used again when no array refers to it any more.

    The system clears new memory page by page, which takes longer than filling it.

    >>> memory = ReusedMemory()
    >>> first = memory.empty((500, 1000), np.float32)
    >>> address = first.ctypes.data
    >>> del first
    >>> memory.empty((300, 1200), np.float32).ctypes.data == address
    True
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._of_size: dict[int, list[NDArray[np.uint8]]] = {}

    def empty(self, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        """An array like that of ``np.empty``; safe in several threads."""
        n_bytes = math.prod(shape) * np.dtype(dtype).itemsize
        if n_bytes < _SMALL:
            return np.empty(shape, dtype)
        size = 1 << n_bytes.bit_length()
        with self._lock:
            known = self._of_size.setdefault(size, [])
            for memory in known:
                if sys.getrefcount(memory) == _FREE:
                    break
            else:
                memory = np.empty(size, np.uint8)
                known.append(memory)
            array: NDArray[Any] = memory[:n_bytes].view(dtype).reshape(shape)
            return array


_SMALL = 1 << 16
"""Arrays of fewer bytes are always new."""


def _references_when_free() -> int:
    """Reference count of an array in a list alone, in this version of Python."""
    known = [np.empty(1)]
    for memory in known:
        return sys.getrefcount(memory)
    raise AssertionError


_FREE = _references_when_free()


def clock() -> float:
    """Seconds of a clock that stands still while kernels are compiled."""
    return time.perf_counter() - compilation.seconds


@dataclass(slots=True)
class Cost:
    """Seconds without compilation, and bytes of peak memory above the start."""

    seconds: float = 0.0
    memory: int | None = None  # None if the system does not report it


@contextmanager
def measured() -> Iterator[Cost]:
    """Measure the time and memory of the block."""
    cost = Cost()
    before, began = _reset_peak(), clock()
    yield cost
    cost.seconds, peak = max(0.0, clock() - began), peak_memory()
    if before is not None and peak is not None:
        cost.memory = max(0, peak - before)


def resident_bytes(pid: int) -> int | None:
    """Memory of a process without mapped files; None if the process has ended."""
    try:
        held = psutil.Process(pid).memory_info()
    except psutil.Error:
        return None
    return int(held.rss - getattr(held, "shared", 0))


def _reset_peak() -> int | None:
    """Reset the peak if possible; return the memory in use, or the peak so far."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
        return int(psutil.Process().memory_info().rss)
    return peak_memory()


def peak_memory() -> int | None:
    """The largest memory of this process so far, in bytes; None if it is unknown."""
    with suppress(OSError, StopIteration):
        lines = Path("/proc/self/status").read_text().splitlines()
        found = next(line for line in lines if line.startswith("VmHWM:"))
        return int(found.split()[1]) * 1024
    held = psutil.Process().memory_info()
    if hasattr(held, "peak_wset"):  # Windows
        return int(held.peak_wset)
    try:
        import resource
    except ImportError:
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
