"""What a source yields, put back together, with the contract checked on the way."""

from __future__ import annotations

import numpy as np

from featstream.protocols import Block, SparseColumns
from featstream.sources.kernels.transpose import has_whole_rows


def gather(source, start=0):
    """Dense values, names and nominal flags of all columns from ``start`` on."""
    columns, names, nominal = [], [], []
    for block in source.blocks(start):
        check_block(block, start + len(columns))
        columns.extend(block.to_dense().T)
        names.extend(block.name(i) for i in range(block.n_columns))
        flags = block.nominal
        nominal.extend(np.zeros(block.n_columns, bool) if flags is None else flags)
    X = np.array(columns).T if columns else np.empty((source.n_samples, 0))
    return X, names, np.array(nominal, bool)


dense = Block.to_dense


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
