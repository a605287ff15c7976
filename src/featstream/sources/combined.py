"""Sources made of other sources: one after the other, or for some of the samples.

All features need the same samples in the same order: names of samples are compared.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import compress
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from featstream.errors import DataError, printable
from featstream.protocols import (
    Block,
    BoolArray,
    IndexedSource,
    IntArray,
    Source,
    SparseColumns,
    fingerprint_of,
    names_of,
    reopener_of,
    sample_names_of,
    text_columns_of,
)

SampleHashes = NDArray[np.uint64]
"""One hash per sample name: enough to compare names without storing them."""


class ChainedSource:
    """The columns of some sources, one source after the other.

    Parameters
    ----------
    sources : sequence of Source
        They must have the same samples, in the same order.

    Examples
    --------
    >>> import numpy as np
    >>> from featstream.sources import ArraySource, ChainedSource
    >>> both = ChainedSource([ArraySource(np.eye(3)), ArraySource(np.ones((3, 2)))])
    >>> both.n_features, [block.start for block in both.blocks()]
    (5, [0, 3])
    """

    def __init__(self, sources: Sequence[Source]) -> None:
        self.sources = tuple(sources)
        lengths = {s.n_samples for s in self.sources if s.n_samples is not None}
        if not self.sources or len(lengths) > 1:
            raise DataError(
                "Sources that follow each other need the same number of samples. "
                f"Got {sorted(lengths)}."
            )
        self.n_samples: int | None = lengths.pop() if lengths else None
        known = [s.n_features for s in self.sources if s.n_features is not None]
        is_known = len(known) == len(self.sources)
        self.n_features: int | None = sum(known) if is_known else None
        self.sample_names = common_names(
            [(f"Source {i}", source) for i, source in enumerate(self.sources)]
        )

    def reopener(self) -> Callable[[], ChainedSource] | None:
        """A function that opens all of them again in another process; or None."""
        parts = [reopener_of(source) for source in self.sources]
        opened = [part for part in parts if part is not None]
        return partial(_reopen, opened) if len(opened) == len(parts) else None

    def blocks(self, start: int = 0) -> Iterator[Block]:
        """Yield the columns from position ``start`` on."""
        offset = 0
        for source in self.sources:
            n_features = source.n_features
            if n_features is None or start < offset + n_features:
                for block in source.blocks(max(0, start - offset)):
                    yield replace(block, start=offset + block.start)
                    n_features = block.start + block.n_columns
            offset += n_features or 0

    def __repr__(self) -> str:
        return f"ChainedSource({len(self.sources)} sources)"


def _reopen(reopeners: Sequence[Callable[[], Source]]) -> ChainedSource:
    return ChainedSource([reopen() for reopen in reopeners])


class SampleSubset:
    """The columns of a source, for the samples where ``is_chosen``.

    >>> from featstream.sources import ArraySource
    >>> source = SampleSubset(ArraySource(np.eye(3)), np.array([True, False, True]))
    >>> next(source.blocks()).columns.tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    """

    def __init__(self, source: Source, is_chosen: BoolArray) -> None:
        self._source = source
        self._is_chosen = is_chosen
        self.n_samples = int(is_chosen.sum())
        self.n_features = source.n_features
        self.names = names_of(source)
        samples = sample_names_of(source)
        self.sample_names = samples and list(compress(samples, is_chosen))
        self.text_columns = text_columns_of(source)
        if isinstance(source, IndexedSource):
            self.blocks_at = self._blocks_at

    def __repr__(self) -> str:
        n_all = self._is_chosen.size
        return (
            f"SampleSubset({self.n_samples:,} of {n_all:,} samples, {self._source!r})"
        )

    @property
    def fingerprint(self) -> str | None:
        """Changes with the data and with the choice; None if the source has none."""
        whole = fingerprint_of(self._source)
        if whole is None:
            return None
        chosen = np.packbits(self._is_chosen).tobytes()
        return hashlib.sha256(whole.encode() + b"\0" + chosen).hexdigest()

    def reopener(self) -> Callable[[], SampleSubset] | None:
        """A function that opens the source again in another process; or None."""
        whole = reopener_of(self._source)
        return whole and partial(_choose, whole, self._is_chosen)

    def blocks(self, start: int = 0) -> Iterator[Block]:
        """Yield the columns from position ``start`` on."""
        return map(self._chosen, self._source.blocks(start))

    def _blocks_at(self, positions: IntArray, start: int = 0) -> Iterator[Block]:
        assert isinstance(self._source, IndexedSource)
        return map(self._chosen, self._source.blocks_at(positions, start))

    def _chosen(self, block: Block) -> Block:
        columns = block.columns
        if not isinstance(columns, SparseColumns):
            chosen = columns[self._is_chosen]
            return replace(block, columns=np.asfortranarray(chosen))
        columns = columns.alone()
        is_chosen = self._is_chosen[columns.rows]
        place = (np.cumsum(self._is_chosen) - 1).astype(np.int32)
        indptr = np.concatenate([[0], np.cumsum(is_chosen)])[columns.indptr]
        rows, values = place[columns.rows[is_chosen]], columns.values[is_chosen]
        subset = SparseColumns(indptr, rows, values, self.n_samples)
        return replace(block, columns=subset)


def _choose(reopen: Callable[[], Source], is_chosen: BoolArray) -> SampleSubset:
    return SampleSubset(reopen(), is_chosen)


def index_names(frame: Any) -> list[str] | None:
    """Names in the index of a pandas frame or series; None for a plain range."""
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


def common_names(sources: Sequence[tuple[str, Source]]) -> Sequence[str] | None:
    """Names of the samples of all sources; `DataError` where they differ."""
    listed = [(what, sample_names_of(source)) for what, source in sources]
    named = [(what, names) for what, names in listed if names is not None]
    for what, names in named[1:]:
        first, known = named[0]
        if names != known:
            refuse_other_samples(hash_samples(known), names, what, first)
    return named[0][1] if named else None
