"""Encoded columns of all blocks: joined, and their information with any variable."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from featstream.engines import prepared_ahead
from featstream.jit import kernel
from featstream.measures.storages.dense_codes import DenseCodes
from featstream.measures.storages.dispatch import copy_column, for_storage, storage_of
from featstream.measures.storages.sparse_codes import SparseCodes
from featstream.measures.storages.tables import (
    code_scratch,
    coded_target,
    codes_as_rows,
    score_columns,
)
from featstream.parallel import ScratchPool
from featstream.protocols import FloatArray, IntArray


def join_columns(parts: list[tuple[Any, IntArray]]) -> Any:
    """The chosen columns of all blocks, at least one, in one storage."""
    parts = [(columns, which) for columns, which in parts if which.size]
    like, n_columns = parts[0][0], sum(which.size for _, which in parts)
    storage = storage_of(like)
    demand = np.hstack([storage.demand(columns, which) for columns, which in parts])
    first, second = demand.sum(axis=1).tolist()
    joined = storage.allocate(like, n_columns, first, second)
    used, copied, run = np.zeros(2, np.int64), 0, for_storage(_copy_columns, like)
    for columns, which in parts:
        copied = run(columns, which, joined, copied, used)
    # Read-only where the measure makes them so: the same kernels as for newcomers.
    for old, new in zip(like, joined, strict=True):
        if isinstance(old, np.ndarray) and not old.flags.writeable:
            new.flags.writeable = False
    return joined


@kernel
def _copy_columns(columns, which, joined, slot, used):  # type: ignore[no-untyped-def]
    """Copy the chosen columns to the slots from ``slot`` on; the next free slot."""
    for k in range(which.size):
        copy_column(columns, which[k], joined, slot + k, used)
    return slot + which.size


class DiscreteColumns:
    """Columns as `MutualInformation` encodes them, block by block, and scored.

    The time of `information` is in the stored entries of sparse columns, and in
    words of 64 rows of dense columns of few categories.
    """

    def __init__(self, parts: list[Any], n_threads: int) -> None:
        self._parts, self._n_threads = parts, n_threads
        self._ends = np.cumsum([part.arity.size for part in parts])
        self._nlogn: NDArray[np.int64] = parts[0].nlogn
        self.n_samples = self._nlogn.size - 1
        self._bits = self.n_samples * (int(self._nlogn[2]) // 2)
        self._pool = ScratchPool()
        own = np.concatenate([part.own for part in parts])
        self.entropy: FloatArray = (self._nlogn[-1] - own) / self._bits
        """Entropy of every column, in bits."""

    def codes(self, j: int) -> IntArray:
        """The category of every row in a column; some may not occur."""
        part = int(np.searchsorted(self._ends, j, side="right"))
        columns = self._parts[part]
        place = np.array([j - self._ends[part] + columns.arity.size])
        rows = codes_as_rows(columns, place, self.n_samples)
        return np.asarray(rows[0], np.int64)

    def information(self, codes: IntArray) -> FloatArray:
        """Mutual information of every column with a variable, in bits."""
        target = coded_target(codes, np.bincount(codes), self._nlogn, self._bits)

        def score(part: DenseCodes | SparseCodes) -> FloatArray:
            with self._pool.borrow(code_scratch, self.n_samples) as scratch:
                return score_columns(part, target, scratch, has_entropy_norm=False)

        found = prepared_ahead(iter(self._parts), score, self._n_threads)
        return np.concatenate(list(found))

    def entropy_of(self, codes: IntArray) -> float:
        """Entropy of a variable, in bits."""
        own = int(self._nlogn[np.bincount(codes)].sum())
        return float((int(self._nlogn[-1]) - own) / self._bits)

    def subset(self, which: IntArray) -> DiscreteColumns:
        """A copy of the chosen columns, which increase."""
        begins = self._ends - [part.arity.size for part in self._parts]
        chosen = np.split(which, np.searchsorted(which, begins[1:]))
        found = zip(self._parts, chosen, begins, strict=True)
        joined = join_columns([(part, own - begin) for part, own, begin in found])
        return DiscreteColumns([joined], self._n_threads)


def merge(a: IntArray, b: IntArray) -> IntArray:
    """Codes of the pairs of categories that occur.

    >>> merge(np.array([0, 0, 2]), np.array([1, 1, 0]))
    array([0, 0, 1])
    """
    return np.unique(a * (b.max() + 1) + b, return_inverse=True)[1]
