"""Data whose right answer is known: generated streams, and the paper's data sets."""

from featstream.datasets.benchmarks import (
    Benchmark,
    available_datasets,
    dataset_names,
    files_of_dataset,
    load_dataset,
)
from featstream.datasets.streams import Stream, make_stream

__all__ = [
    "Benchmark",
    "Stream",
    "available_datasets",
    "dataset_names",
    "files_of_dataset",
    "load_dataset",
    "make_stream",
]
