"""Wall time and peak memory of some work, or of the whole process."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from featstream.jit import clock


@dataclass(slots=True)
class Cost:
    """Seconds without compilation, and bytes of peak memory above the start."""

    seconds: float = 0.0
    memory: int | None = None  # None where the system does not tell


@contextmanager
def measured() -> Iterator[Cost]:
    """Measure what is done inside.

    >>> with measured() as cost:
    ...     _ = bytes(1000)
    >>> cost.seconds < 1
    True
    """
    cost = Cost()
    before, began = _startpeak_memory(), clock()
    yield cost
    cost.seconds, peak = max(0.0, clock() - began), peak_memory()
    if before is not None and peak is not None:
        cost.memory = max(0, peak - before)


def resident_bytes(pid: int) -> int | None:
    """Memory that a process holds for itself; None if the process has ended.

    Files that it maps are not counted: the system takes those pages back at need.
    """
    try:
        held = psutil.Process(pid).memory_info()
    except psutil.Error:
        return None
    return int(held.rss - getattr(held, "shared", 0))


def _startpeak_memory() -> int | None:
    """Forget the peak so far, and return the memory in use."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
        return int(psutil.Process().memory_info().rss)
    return peak_memory()


def peak_memory() -> int | None:
    """The most memory that this process has held, in bytes; None if nothing tells."""
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
