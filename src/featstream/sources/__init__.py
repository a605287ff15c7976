"""Where columns come from: memory, files, stores."""

from featstream.sources._store_writer import write_store
from featstream.sources.store import StoreSource, open_store
from featstream.sources.svmlight import RowSlice, iter_svmlight, read_svmlight
from featstream.sources.transpose import convert

__all__ = [
    "RowSlice",
    "StoreSource",
    "convert",
    "iter_svmlight",
    "open_store",
    "read_svmlight",
    "write_store",
]
