"""Data that come by rows and are wanted by columns: strips in a temporary file."""

from __future__ import annotations

import errno
import os
import tempfile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from featstream.errors import explain_full_disk

__all__ = ["Spill"]

_ADVICE = (
    "columns are made out of rows in a temporary file, as large as the data. Make "
    "room, or name another folder with TMPDIR"
)


class Spill:
    """Parts that grow in turn, in one temporary file that has no name.

    Parameters
    ----------
    n_parts : int
        How many.

    Examples
    --------
    >>> import numpy as np
    >>> spill = Spill(2)
    >>> spill.append(np.frombuffer(b"abc", np.uint8), np.array([0, 1, 3]))
    >>> spill.append(np.frombuffer(b"de", np.uint8), np.array([0, 1, 2]))
    >>> [b"".join(spill.read(part)) for part in range(2)]
    [b'ad', b'bce']
    """

    def __init__(self, n_parts: int) -> None:
        self.n_parts = n_parts
        self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
        self._size = 0
        self._bounds: list[NDArray[np.int64]] = []

    def append(self, data: NDArray[np.uint8], bounds: NDArray[np.int64]) -> None:
        """Add to every part the bytes between two bounds."""
        with explain_full_disk(tempfile.gettempdir(), _ADVICE):
            view = memoryview(data)
            while view:
                view = view[self._file.write(view) or 0 :]
        self._bounds.append(self._size + bounds)
        self._size += data.size

    def read(self, part: int) -> list[bytes]:
        """What was added to a part, piece by piece."""
        descriptor = self._file.fileno()
        pieces: list[Any] = []
        for bounds in self._bounds:
            begin, end = bounds[part : part + 2].tolist()
            pieces.append(_read_at(descriptor, begin, end - begin))
        return pieces


def _read_at(descriptor: int, begin: int, size: int) -> bytes:
    os.lseek(descriptor, begin, os.SEEK_SET)
    content = os.read(descriptor, size)
    if len(content) != size:
        raise OSError(errno.EIO, "The temporary file has been cut short")
    return content
