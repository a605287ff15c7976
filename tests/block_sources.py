"""Sources made of given blocks, and a source as one array."""

import numpy as np
from scipy.sparse import csc_array

from featstream.protocols import Block, SparseColumns
from gather import gather


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
    X = csc_array(X)
    indptr = X.indptr.astype(np.int64)
    return SparseColumns(indptr, X.indices.astype(np.int32), X.data, X.shape[0])


def as_array(source, start=0):
    """All columns of a source, dense; the contract of blocks is checked on the way."""
    return gather(source, start)[0]
