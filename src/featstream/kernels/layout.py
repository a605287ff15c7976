"""Columns copied to where they are wanted: from rows, or from here and there."""

from __future__ import annotations

from typing import Any

from featstream.kernels._jit import jit

__all__ = ["copy_columns", "gather_columns"]


@jit
def copy_columns(x: Any, start: int, out: Any) -> None:
    """Copy the columns of ``x`` from ``start`` on into the rows of ``out``.

    It goes by tiles of 16 rows by 8 columns, so that a cache line is used up while
    it is at hand. Constant bounds let the compiler unroll a tile; of the shapes
    tried on 4-byte values, constant and variable, this one was the fastest.

    Parameters
    ----------
    x : ndarray of shape (n_samples, n_features)
        Read only; any strides, but fastest if row-major.
    start : int
        The first column to copy.
    out : ndarray of shape (n_columns, n_samples), row-major
        Written to. Its transpose is the column-major block.
    """
    n = x.shape[0]
    p = out.shape[0]
    tiled_n = n - n % 16
    tiled_p = p - p % 8
    for i in range(0, tiled_n, 16):
        for j in range(0, tiled_p, 8):
            for b in range(8):
                for a in range(16):
                    out[j + b, i + a] = x[i + a, start + j + b]
        for j in range(tiled_p, p):
            for a in range(16):
                out[j, i + a] = x[i + a, start + j]
    for i in range(tiled_n, n):
        for j in range(p):
            out[j, i] = x[i, start + j]


@jit
def gather_columns(
    starts: Any, lengths: Any, rows: Any, values: Any, out_rows: Any, out_values: Any
) -> None:
    """Copy sparse columns, which lie anywhere, one after the other.

    Parameters
    ----------
    starts, lengths : ndarray of int
        Where each column begins, and how many entries it has.
    rows, values : ndarray
        The entries of all columns. Read only.
    out_rows, out_values : ndarray
        Written to.
    """
    place = 0
    for k in range(starts.size):
        for e in range(starts[k], starts[k] + lengths[k]):
            out_rows[place] = rows[e]
            out_values[place] = values[e]
            place += 1
