"""Discrete columns of all blocks: their information with any other variable."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from featstream.engines import prepared_ahead
from featstream.jit import jit
from featstream.measures.independence_tables import write_codes
from featstream.measures.information import counter_of
from featstream.measures.storages.dense_codes import DenseCodes
from featstream.measures.storages.sparse_codes import SparseCodes
from featstream.measures.storages.tables import (
    CodedTarget,
    class_planes,
    code_scratch,
    score_columns,
    sum_nlogn,
)
from featstream.parallel import ScratchPool
from featstream.protocols import FloatArray, IntArray
from featstream.selectors.batch.base import join_columns


class DiscreteColumns:
    """Columns as `MutualInformation` encodes them, block by block, and scored.

    The time of `information` is in the stored entries of sparse columns, and in
    words of 64 rows of dense columns of few categories.

    Parameters
    ----------
    parts : list of DenseCodes or SparseCodes
        The columns.
    n_threads : int
        Number of threads.
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
        codes = np.empty(self.n_samples, np.int32)
        _read_codes(columns, j - int(self._ends[part]) + columns.arity.size, codes)
        return codes.astype(np.int64)

    def information(self, codes: IntArray) -> FloatArray:
        """Mutual information of every column with a variable, in bits."""
        target = self._as_target(codes)
        found = prepared_ahead(
            iter(self._parts), lambda part: self._score(part, target), self._n_threads
        )
        return np.concatenate(list(found))

    def entropy_of(self, codes: IntArray) -> float:
        """Entropy of a variable, in bits."""
        own = int(self._nlogn[np.bincount(codes)].sum())
        return float((int(self._nlogn[-1]) - own) / self._bits)

    def subset(self, which: IntArray) -> DiscreteColumns:
        """A copy of the chosen columns, which increase."""
        begins = self._ends - [part.arity.size for part in self._parts]
        cuts = np.searchsorted(which, np.append(begins, self._ends[-1]))
        chosen = [
            which[cuts[k] : cuts[k + 1]] - begin for k, begin in enumerate(begins)
        ]
        joined = join_columns(list(zip(self._parts, chosen, strict=True)))
        return DiscreteColumns([joined], self._n_threads)

    def _as_target(self, codes: IntArray) -> CodedTarget:
        counts = np.bincount(codes)
        planes = class_planes(codes, counts.size)
        own = int(sum_nlogn(self._nlogn, counts))
        return CodedTarget(codes.astype(np.int32), counts, planes, own, self._bits)

    def _score(self, part: DenseCodes | SparseCodes, target: CodedTarget) -> FloatArray:
        with self._pool.borrow(code_scratch, self.n_samples) as scratch:
            given = counter_of(part), part, target, scratch
            return score_columns(*given, has_entropy_norm=False)


def merge(a: IntArray, b: IntArray) -> IntArray:
    """Codes of the pairs of categories that occur.

    >>> merge(np.array([0, 0, 2]), np.array([1, 1, 0]))
    array([0, 0, 1])
    """
    return np.unique(a * (b.max() + 1) + b, return_inverse=True)[1]


@jit
def _read_codes(columns, i, codes):  # type: ignore[no-untyped-def]
    write_codes(columns, i, codes)
