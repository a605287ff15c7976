"""A lock file: one writer at a time; a process that dies frees its lock."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from featstream.errors import RunError, explain_full_disk

__all__ = ["hold_lock"]


@contextmanager
def hold_lock(path: Path) -> Iterator[None]:
    """Hold a lock file; `RunError` if another process or thread does.

    The file stays where it is: the operating system holds the lock, not the file.

    >>> import tempfile
    >>> with hold_lock(Path(tempfile.mkdtemp()) / "lock"):
    ...     pass
    """
    lock = FileLock(path, timeout=0, mode=0o600)
    try:
        with explain_full_disk(path, "the run is as it was. Make room and resume"):
            lock.acquire()
    except Timeout:
        raise RunError(
            f"{path.parent} is being written by another process. Wait until it is done."
        ) from None
    try:
        yield
    finally:
        lock.release()
