"""Sources of given blocks, and what a source yields, put together and checked."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest
from scipy.sparse import csc_array

from featstream.errors import DataError
from featstream.protocols import Block, SparseColumns
from featstream.sources.kernels.transpose import has_whole_rows
from featstream.sources.values import as_sparse_columns


def gather(source, start=0, order=None):
    """Dense values, names and nominal flags of all columns from ``start`` on.

    ``order`` are positions of columns to read, if not all one after the other.
    """
    columns, names, nominal = [], [], []
    blocks = source.blocks(start) if order is None else source.blocks_at(order, start)
    for block in blocks:
        check_block(block, start + len(columns))
        columns.extend(block.to_dense().T)
        names.extend(block.name(i) for i in range(block.n_columns))
        flags = block.nominal
        nominal.extend(np.zeros(block.n_columns, bool) if flags is None else flags)
    X = np.array(columns).T if columns else np.empty((source.n_samples, 0))
    return X, names, np.array(nominal, bool)


def check_block(block: Block, start: int) -> None:
    assert block.start == start
    assert block.n_columns > 0
    if block.names is not None:
        assert len(block.names) == block.n_columns
    if block.nominal is not None:
        assert block.nominal.shape == (block.n_columns,)
        assert block.nominal.any()
    if isinstance(block.columns, SparseColumns):
        assert block.columns.indptr.dtype == np.int64
        assert block.columns.rows.dtype == np.int32
        for j in range(block.n_columns):
            stored = slice(*block.columns.indptr[j : j + 2])
            assert np.all(np.diff(block.columns.rows[stored]) > 0)
        values = block.columns.values
    else:
        assert block.columns.flags.f_contiguous or has_whole_rows(block.columns)
        values = block.columns
    assert values.dtype.isnative
    assert values.dtype.kind in "biuf"
    assert values.dtype not in (np.float16, np.longdouble)


class Blocks:
    """A source of given blocks."""

    n_features = None

    def __init__(self, *columns, names=None, nominal=None):
        self.columns = columns
        self.names = names
        self.nominal = nominal
        self.n_samples = columns[0].shape[0]

    def blocks(self, start=0):
        position = 0
        for columns in self.columns:
            span = slice(position, position + columns.shape[1])
            names = None if self.names is None else self.names[span]
            nominal = None if self.nominal is None else np.array(self.nominal[span])
            yield Block(columns, position, names, nominal)
            position = span.stop


def as_columns(X):
    return as_sparse_columns(csc_array(X))


def as_array(source, start=0):
    """All columns of a source, dense; the contract of blocks is checked on the way."""
    return gather(source, start)[0]


@contextmanager
def refused(path, reason, error=DataError):
    """The error begins with the file, and gives the reason."""
    with pytest.raises(error) as caught:
        yield
    assert str(caught.value).startswith(str(path))
    assert reason in str(caught.value)
