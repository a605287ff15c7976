"""The names of samples: the same samples in the same order, or an error."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from featstream.errors import DataError, printable

SampleHashes = NDArray[np.uint64]
"""One hash per sample name: enough to compare names without storing them."""


def index_names(frame: Any) -> list[str] | None:
    """Names in the index of a pandas frame or series; None for a plain range.

    >>> import pandas as pd
    >>> index_names(pd.Series([1, 2], index=["P1", "P2"]))
    ['P1', 'P2']
    >>> index_names(pd.Series([1, 2])) is None
    True
    """
    is_pandas = nw.dependencies.is_pandas_dataframe(frame)
    if not is_pandas and not nw.dependencies.is_pandas_series(frame):
        return None
    index = frame.index
    if index.dtype.kind in "iu" and np.array_equal(index, np.arange(len(index))):
        return None
    return [str(name) for name in index]


def hash_samples(names: Sequence[str]) -> SampleHashes:
    """Hash every name: 8 bytes per sample."""
    digests = b"".join(
        hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        for name in names
    )
    return np.frombuffer(digests, "<u8").astype(np.uint64)


def refuse_other_samples(
    known: SampleHashes, names: Sequence[str], what: str, before: str
) -> None:
    """Raise unless the names are those that were hashed, in the same order.

    ``what`` has the names, and ``before`` had the known ones.
    """
    found = hash_samples(names)
    if np.array_equal(known, found):
        return
    if known.size != found.size:
        raise DataError(
            f"{what} has {found.size:,} samples, but {before} has {known.size:,}. "
            "Every feature needs one value per sample."
        )
    row = int(np.argmax(known != found))
    here = printable(names[row])
    if is_reordered(known, found):
        was = printable(names[int(np.argmax(found == known[row]))])
        raise DataError(
            f"{what} has the same samples as {before}, in another order: sample "
            f"{row} is {here}, but {was} in {before}. Put its rows into the order of "
            f"{before}."
        )
    raise DataError(
        f"{what} has other samples than {before}: sample {row} is {here}, which is "
        f"not the name of sample {row} in {before}. Give the same samples in the same "
        "order; if only their names differ, rename them or leave the names out."
    )


def is_reordered(known: SampleHashes, found: SampleHashes) -> bool:
    """Whether two lists have the same names in a different order."""
    return not np.array_equal(known, found) and np.array_equal(
        np.sort(known), np.sort(found)
    )
