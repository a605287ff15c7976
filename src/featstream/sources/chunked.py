"""Dense arrays on disk, in chunks: read in slabs of whole columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from featstream.errors import printable
from featstream.protocols import Block
from featstream.sources._spill import Spill
from featstream.sources.dataset import reading
from featstream.sources.memory import ArraySource
from featstream.sources.values import (
    Duplicates,
    check_dimensions,
    check_names,
    numeric_dtype,
)

__all__ = ["SlabSource"]

SLAB_BYTES = 64 << 20
"""What is read at a time, unless one column is longer."""

_MAX_READS = 2  # of a chunk, before the columns are made out of rows in one pass
_RUN_BYTES = 1 << 16  # of a row of an array without chunks, read at once


class SlabSource:
    """The columns of an array in an HDF5 file or of zarr.

    A slab is as wide as some chunks, so that each is unpacked once. Chunks that
    are wider than a slab can be are unpacked twice at most; if that does not do, as
    for a large array stored by rows, the columns are put into a temporary file of
    the array's size first.

    Parameters
    ----------
    array : array-like of shape (n_samples, n_features)
        With ``shape``, ``dtype``, ``chunks`` and slices; see h5py and zarr.
    path : Path
        The file, for messages.
    names : sequence of str, default=None
        One name a feature.
    fingerprint : str, default=None
        Changes with the data, as far as that can be told without reading them.
    duplicates : {"error", "number"}, default="error"
        What to do about two features of one name.

    Attributes
    ----------
    n_samples, n_features : int
        The shape.
    names : list of str or None
        The names as given.
    sample_names : list of str or None
        One name per sample, where they are known.
    """

    sample_names: Sequence[str] | None = None

    def __init__(
        self,
        array: Any,
        path: Path,
        names: Sequence[str] | None = None,
        fingerprint: str | None = None,
        duplicates: Duplicates = "error",
    ) -> None:
        self._array, self.path = array, path
        self.n_samples, self.n_features = check_dimensions(tuple(array.shape))
        self._dtype = numeric_dtype(np.dtype(array.dtype), "X")
        self.names = (
            None if names is None else check_names(names, self.n_features, duplicates)
        )
        self.fingerprint = fingerprint
        self._width, self._is_by_row = self._plan()
        self._spill: Spill | None = None

    def __repr__(self) -> str:
        return (
            f"SlabSource({self.n_samples:,} samples × {self.n_features:,} features, "
            f"{self._array.dtype}, {printable(self.path.name)})"
        )

    def _plan(self) -> tuple[int, bool]:
        """Columns in a slab, and whether they are better made out of rows."""
        itemsize = self._array.dtype.itemsize
        fitting = max(SLAB_BYTES // (self.n_samples * itemsize), 1)
        chunks = self._array.chunks
        chunk = chunks[1] if chunks else max(_RUN_BYTES // itemsize, 1)
        chunk = min(chunk, max(self.n_features, 1))
        if chunk <= fitting:
            return fitting // chunk * chunk, False
        return fitting, -(-chunk // fitting) > _MAX_READS

    def blocks(self, start: int = 0) -> Iterator[Block]:
        """Yield the columns from position ``start`` on."""
        if self._is_by_row and self._spill is None:
            with reading(self.path):
                self._spill = self._transpose()
        for first in range(
            start // self._width * self._width, self.n_features, self._width
        ):
            begin = max(start, first)
            source = ArraySource(self._read(begin, first), None)
            for block in source.blocks():
                names = None
                if self.names is not None:
                    at = begin + block.start
                    names = self.names[at : at + block.n_columns]
                yield replace(block, start=begin + block.start, names=names)

    def _read(self, begin: int, first: int) -> NDArray[Any]:
        """Columns from ``begin`` to the end of the slab that has ``first``."""
        stop = min(first + self._width, self.n_features)
        if self._spill is None:
            with reading(self.path):
                return np.asarray(self._array[:, begin:stop])
        pieces = [
            np.frombuffer(piece, self._array.dtype).reshape(-1, stop - first)
            for piece in self._spill.read(first // self._width)
        ]
        return np.concatenate(pieces)[:, begin - first :]

    def _transpose(self) -> Spill:
        """Read the array once, by rows, and put its slabs into a temporary file."""
        bounds = np.arange(0, self.n_features, self._width)
        spill = Spill(bounds.size)
        height = self._array.chunks[0] if self._array.chunks else 1
        row_bytes = self.n_features * self._array.dtype.itemsize
        height *= max(SLAB_BYTES // (row_bytes * height), 1)
        for top in range(0, self.n_samples, height):
            rows = np.asarray(self._array[top : top + height])
            pieces = [
                np.ascontiguousarray(part).view(np.uint8).ravel()
                for part in np.split(rows, bounds[1:], axis=1)
            ]
            ends = np.cumsum([0, *(piece.size for piece in pieces)])
            spill.append(np.concatenate(pieces), ends)
        return spill
