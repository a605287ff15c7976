"""A lock file: one writer at a time, and none that a dead process keeps."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from featstream.errors import RunError, explain_full_disk, printable

__all__ = ["hold_lock"]

_MODE = 0o600
_ADVICE = "the run is as it was. Make room and resume"


@contextmanager
def hold_lock(path: Path) -> Iterator[None]:
    """Hold a lock file; `RunError` if another live process does.

    >>> import tempfile
    >>> with hold_lock(Path(tempfile.mkdtemp()) / "lock") as lock:
    ...     pass
    """
    with _guarded(path.parent):
        _take(path)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


@contextmanager
def _guarded(path: Path) -> Iterator[None]:
    """One process at a time looks at the lock, so that a stale one has one heir."""
    try:
        import fcntl
    except ImportError:  # not a system that has them
        yield
        return
    folder = os.open(path, os.O_RDONLY)
    try:
        with suppress(OSError):  # some network folders have no such locks
            fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def _take(path: Path) -> None:
    text = json.dumps(_this_process()).encode()
    for _ in range(2):
        try:
            lock = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _MODE)
        except FileExistsError:
            owner = _live_owner(path)
            if owner is not None:
                raise RunError(
                    f"{path.parent} is being written by {owner}. Wait until it is "
                    f"done; if it is not, delete {path}."
                ) from None
            path.unlink(missing_ok=True)
        else:
            try:
                with explain_full_disk(path, _ADVICE), open(lock, "wb") as file:
                    file.write(text)
            except BaseException:
                path.unlink(missing_ok=True)
                raise
            return
    raise RunError(f"{path} cannot be taken over. Delete it if nobody writes.")


def _this_process() -> dict[str, Any]:
    pid = os.getpid()
    return {"pid": pid, "host": socket.gethostname(), "since": _began(pid)}


def _live_owner(path: Path) -> str | None:
    """Who holds a lock; None if that process is no more."""
    try:
        owner = json.loads(path.read_bytes())
        pid, host, since = int(owner["pid"]), str(owner["host"]), owner["since"]
    except (OSError, ValueError, KeyError, TypeError):
        return None  # its writer was killed before it could sign
    if host != socket.gethostname():
        return f"process {pid} on {printable(host)}"
    if pid <= 0 or not _is_alive(pid) or _began(pid) != since:
        return None
    return f"process {pid}"


def _is_alive(pid: int) -> bool:
    if os.name != "posix":
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def _began(pid: int) -> str | None:
    """When a process began, where the system tells: numbers of dead ones come back."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return status.rpartition(")")[2].split()[19]
