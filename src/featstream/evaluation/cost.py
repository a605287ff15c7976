"""Wall time and peak memory of a piece of work, and of nothing else."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
from numba.core import event

__all__ = ["Cost", "measured", "resident_bytes"]


@dataclass(slots=True)
class Cost:
    """What some work took.

    Attributes
    ----------
    seconds : float
        Wall time, less what numba took to compile kernels.
    memory : int or None
        Bytes by which the peak of the process lay above its memory before; None
        where the system does not tell.
    """

    seconds: float = 0.0
    memory: int | None = None


@contextmanager
def measured() -> Iterator[Cost]:
    """Measure what is done inside.

    >>> with measured() as cost:
    ...     _ = bytes(1000)
    >>> cost.seconds < 1
    True
    """
    cost = Cost()
    compiling: list[float] = []
    before = _start_peak()
    began = time.perf_counter()
    with event.install_timer("numba:compile", compiling.append):
        yield cost
    cost.seconds = max(0.0, time.perf_counter() - began - sum(compiling))
    peak = _peak()
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


def _start_peak() -> int | None:
    """Forget the peak so far, and return the memory in use."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
        return int(psutil.Process().memory_info().rss)
    return _peak()


def _peak() -> int | None:
    """The most memory that this process has held."""
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
