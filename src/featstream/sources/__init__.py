"""Where columns come from: anything that yields blocks."""

from __future__ import annotations

from featstream.sources.annotated import open_anndata, open_h5ad, open_zarr
from featstream.sources.chunked import ChunkedArraySource, ColumnsSource, RowsSource
from featstream.sources.combined import ChainedSource, SampleSubset
from featstream.sources.memory import (
    ArraySource,
    FrameSource,
    IteratorSource,
    SparseSource,
)
from featstream.sources.npy import open_npy, open_npz, read_archive
from featstream.sources.open import (
    Dataset,
    as_source,
    is_anndata,
    is_dask_array,
    is_svmlight,
    open_dataset,
    open_features,
    open_folder,
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
from featstream.sources.tables import TableSource, open_table, read_target
from featstream.sources.values import check_has_features

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
    "is_anndata",
    "is_dask_array",
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
