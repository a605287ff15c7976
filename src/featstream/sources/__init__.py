"""Where columns come from: anything that yields blocks."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from featstream.errors import DataTypeError
from featstream.protocols import IndexedSource, Source
from featstream.sources.annotated import (
    is_anndata_object,
    open_anndata,
    open_h5ad,
    open_zarr,
)
from featstream.sources.chain import ChainedSource, SampleSubset, open_folder
from featstream.sources.chunked import ChunkedArraySource, ColumnsSource, RowsSource
from featstream.sources.dataset import Dataset
from featstream.sources.frames import FrameSource, is_frame
from featstream.sources.memory import ArraySource, IteratorSource, SparseSource
from featstream.sources.npy import open_npy, open_npz, read_archive
from featstream.sources.open import (
    is_svmlight,
    open_dataset,
    open_features,
)
from featstream.sources.parquet import FeatureTableSource, open_feature_table
from featstream.sources.plink import PlinkSource, open_plink
from featstream.sources.rows_to_columns import convert
from featstream.sources.store import StoreSource, open_store
from featstream.sources.store_writer import write_store
from featstream.sources.svmlight import (
    RowSlice,
    iter_svmlight,
    open_svmlight,
    read_svmlight,
)
from featstream.sources.tables import TableSource, open_table
from featstream.sources.target import read_target
from featstream.sources.values import as_array, check_has_features

SlabSource = ChunkedArraySource  # its first name

__all__ = [
    "ArraySource",
    "ChainedSource",
    "ChunkedArraySource",
    "ColumnsSource",
    "Dataset",
    "FeatureTableSource",
    "FrameSource",
    "IteratorSource",
    "PlinkSource",
    "RowSlice",
    "RowsSource",
    "SampleSubset",
    "SlabSource",
    "SparseSource",
    "StoreSource",
    "TableSource",
    "as_source",
    "check_has_features",
    "convert",
    "is_svmlight",
    "iter_svmlight",
    "open_anndata",
    "open_dataset",
    "open_feature_table",
    "open_features",
    "open_folder",
    "open_h5ad",
    "open_npy",
    "open_npz",
    "open_plink",
    "open_store",
    "open_svmlight",
    "open_table",
    "open_zarr",
    "read_archive",
    "read_svmlight",
    "read_target",
    "write_store",
]


def as_source(X: Any) -> Source:
    """Make a source of anything that has columns.

    Parameters
    ----------
    X : array-like, sparse matrix, data frame, path, iterable of pairs, or Source
        A two-dimensional array (or list of rows), a matrix of scipy.sparse, a
        frame of pandas, polars or pyarrow, an AnnData object (its ``X``; for a layer
        see `open_anndata`), the path of a data set (`open_features`), or an iterable
        of ``(name, values)``. A source is returned as it is.

    Returns
    -------
    Source
        The columns of ``X``, which is never modified.

    Examples
    --------
    >>> import numpy as np
    >>> from featstream.sources import as_source
    >>> as_source(np.eye(3))
    ArraySource(3 samples × 3 features, float64)
    >>> as_source([("age", [31, 47]), ("height", [1.75, 1.68])])
    IteratorSource(list)
    """
    if isinstance(X, (str, PathLike)):
        return open_features(X).source
    if sparse.issparse(X):
        return SparseSource(X)
    if isinstance(X, np.ndarray):
        return ArraySource(X)
    pyarrow = sys.modules.get("pyarrow")
    if pyarrow is not None and isinstance(X, pyarrow.RecordBatch):
        X = pyarrow.Table.from_batches([X])
    if is_frame(X):
        return FrameSource(X)
    if is_anndata_object(X):
        return open_anndata(X).source
    if isinstance(X, Source):
        return X
    if hasattr(X, "__array__") or (isinstance(X, (list, tuple)) and not _has_pairs(X)):
        return ArraySource(as_array(X, "X"))
    if isinstance(X, Iterable) and not isinstance(X, (Mapping, bytes, set)):
        return IteratorSource(X)
    raise DataTypeError(
        f"Cannot read features from {type(X).__name__}. Give a two-dimensional "
        "array or list of rows, a scipy.sparse matrix, a pandas, polars or pyarrow "
        "table, an AnnData object, the path of a data set, an iterable of (name, "
        "values), or a Source."
    )


def _has_pairs(X: list[Any] | tuple[Any, ...]) -> bool:
    """Whether a list holds (name, values) rather than rows, which hold scalars."""
    first = X[0] if X else None
    return (
        isinstance(first, (list, tuple))
        and len(first) == 2
        and isinstance(first[0], str)
        and (hasattr(first[1], "__len__") or sparse.issparse(first[1]))
        and not isinstance(first[1], (str, bytes))
    )


if TYPE_CHECKING:

    def _columns_in_any_order(
        a: ArraySource, b: SparseSource, c: FrameSource, d: TableSource, e: PlinkSource
    ) -> tuple[IndexedSource, ...]:
        """Checked by mypy, which compares signatures; `isinstance` only knows names."""
        return a, b, c, d, e
