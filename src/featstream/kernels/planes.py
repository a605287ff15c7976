"""Tables of binary columns, counted in bit planes: 64 rows in one operation.

A plane holds the rows of one cell of (column, target, members so far). Another
member splits each into two; the last one need not, its rows are only counted.
"""

from __future__ import annotations

import numpy as np

from featstream.jit import inner, lean
from featstream.measures.storages.bitplanes import count_common

__all__ = [
    "MAX_MEMBERS",
    "count_cells",
    "n_words",
    "pack_plane",
    "pair_planes",
    "split_planes",
]

MAX_MEMBERS = 6
"""Sets of more members are counted row by row: their planes would be too many."""


def n_words(n_rows: int) -> int:
    """Number of 64-bit words that hold one bit for each row."""
    return (n_rows + 63) // 64


@lean
def pack_plane(codes, plane):
    """Rows with code 1."""
    plane[:] = 0
    for r in range(codes.size):
        if codes[r] == 1:
            plane[r >> 6] |= np.uint64(1) << np.uint64(r & 63)


@inner
def pair_planes(column, target, n_rows, level, sizes):
    """The four cells of two planes, and how many rows each has."""
    n_words = column.size
    for w in range(n_words):
        whole = ~np.uint64(0)
        if w == n_words - 1 and n_rows & 63:
            whole = (np.uint64(1) << np.uint64(n_rows & 63)) - np.uint64(1)
        level[0, w] = whole & ~(column[w] | target[w])
        level[1, w] = target[w] & ~column[w]
        level[2, w] = column[w] & ~target[w]
        level[3, w] = column[w] & target[w]
    for c in range(4):
        sizes[c] = count_common(level[c], level[c])


@inner
def split_planes(level, sizes, n_cells, member, deeper, deeper_sizes):
    """Split each cell by a member."""
    for c in range(n_cells):
        inside, outside = deeper[2 * c + 1], deeper[2 * c]
        for w in range(member.size):
            inside[w] = level[c, w] & member[w]
            outside[w] = level[c, w] & ~member[w]
        deeper_sizes[2 * c + 1] = count_common(inside, inside)
        deeper_sizes[2 * c] = sizes[c] - deeper_sizes[2 * c + 1]


@inner
def count_cells(level, sizes, n_cells, member, cells):
    """Count the rows of each cell inside and outside of the last member."""
    for c in range(n_cells):
        inside = 0
        if sizes[c] > 0:
            inside = count_common(level[c], member)
        cells[2 * c + 1] = inside
        cells[2 * c] = sizes[c] - inside
