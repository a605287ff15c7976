"""Sources made of other sources: one after the other, or for some of the samples.

All features need the same samples in the same order: names of samples are compared.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import compress
from typing import Any, overload

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
        self.sample_names, self.sample_column = common_names(
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
        samples = real_names(sample_names_of(source))
        self.sample_names = samples and list(compress(samples, is_chosen))
        self.text_columns = text_columns_of(source)
        self.sample_column = getattr(source, "sample_column", None)
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


class RowNumbers(Sequence[str]):
    """Names of rows that are only counted, as pandas does by default.

    They do not say which samples the rows are. But whoever has the same numbers in
    another order has put the rows into another order.
    """

    def __init__(self, n_rows: int, first: int = 0) -> None:
        self._numbers = range(first, first + n_rows)

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, i: int) -> str: ...
    @overload
    def __getitem__(self, i: slice) -> list[str]: ...
    def __getitem__(self, i: int | slice) -> str | list[str]:
        """The number of one row, or those of some, as text."""
        if isinstance(i, slice):
            return [str(number) for number in self._numbers[i]]
        return str(self._numbers[i])


def real_names(names: Sequence[str] | None) -> Sequence[str] | None:
    """The names, unless they only count the rows."""
    return None if isinstance(names, RowNumbers) else names


def index_names(frame: Any) -> Sequence[str] | None:
    """Names in the index of a pandas frame or series; None for what has no index."""
    is_pandas = nw.dependencies.is_pandas_dataframe(frame)
    if not is_pandas and not nw.dependencies.is_pandas_series(frame):
        return None
    index = frame.index
    if index.dtype.kind in "iu" and len(index) and index[0] in (0, 1):
        first = int(index[0])
        if np.array_equal(index, np.arange(first, first + len(index))):
            return RowNumbers(len(index), first)
    return [str(name) for name in index]


def hash_samples(names: Sequence[str]) -> SampleHashes:
    """Hash every name: 8 bytes per sample."""
    digests = b"".join(
        hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        for name in names
    )
    return np.frombuffer(digests, "<u8").astype(np.uint64)


class SampleOrder:
    """Which samples some rows are: their names, or hashes of these.

    ``column`` is the feature that the names were found in, if they were not an index:
    another column may name the same samples otherwise.
    """

    def __init__(
        self,
        names: Sequence[str] | None = None,
        hashes: SampleHashes | None = None,
        column: str | None = None,
    ) -> None:
        self.names, self._hashes, self.column = names, hashes, column

    def __len__(self) -> int:
        given = self._hashes if self.names is None else self.names
        return 0 if given is None else len(given)

    @property
    def hashes(self) -> SampleHashes:
        """One hash per sample."""
        if self._hashes is None:
            self._hashes = hash_samples(self.names or ())
        return self._hashes

    def name(self, row: int) -> str | None:
        """The name of a sample, if it is known."""
        return None if self.names is None else self.names[row]

    @cached_property
    def is_counted(self) -> bool:
        """Whether the rows are only counted, from 0 or from 1."""
        if isinstance(self.names, RowNumbers):
            return True
        n_rows = len(self)
        for first in (0, 1) if n_rows else ():
            counted = RowNumbers(n_rows, first)
            ends = [0, n_rows - 1]
            if self.names is not None:
                if all(self.names[i] == counted[i] for i in ends):
                    return list(self.names) == list(counted)
            elif np.array_equal(
                self.hashes[ends], hash_samples([counted[i] for i in ends])
            ):
                return np.array_equal(self.hashes, hash_samples(counted))
        return False

    def may_share(self, other: SampleOrder) -> bool:
        """False only if it is plain that no name is in both: numbers and words."""
        for one, two in ((self, other), (other, self)):
            if isinstance(one.names, RowNumbers) and isinstance(two.names, list):
                return any(name.isdecimal() for name in two.names)
        return True


def refuse_other_samples(
    known: SampleOrder, found: SampleOrder, what: str, before: str
) -> bool:
    """Raise if rows are the same samples in another order, or share only a part.

    ``what`` has the samples that were found, and ``before`` had the known ones. Returns
    whether they can be the same: False if no name is in both.
    """
    if known.is_counted and found.is_counted:
        return True
    if len(known) != len(found):
        raise DataError(
            f"{what} has {len(found):,} samples, but {before} has {len(known):,}. "
            "Every feature needs one value per sample."
        )
    if not known.may_share(found):
        return False
    if known.names is not None and known.names == found.names:  # no need of hashes
        return True
    if np.array_equal(known.hashes, found.hashes):
        return True
    row = int(np.argmax(known.hashes != found.hashes))
    here = f"sample {row} is {_shown(found, row)}"
    if np.array_equal(np.sort(known.hashes), np.sort(found.hashes)):
        place = int(np.argmax(found.hashes == known.hashes[row]))
        was = known.name(row) if found.name(place) is None else found.name(place)
        was_there = "another" if was is None else printable(was)
        raise DataError(
            f"{what} has the same samples as {before}, in another order: {here}, but "
            f"{was_there} in {before}. {_align(before)}"
        )
    is_shared = np.isin(found.hashes, known.hashes)
    has_column = known.column is not None or found.column is not None
    if not is_shared.any() or (has_column and known.column != found.column):
        return False
    row = int(np.argmin(is_shared))
    raise DataError(
        f"{what} has other samples than {before}: {int(is_shared.sum()):,} of "
        f"{len(found):,} are in both, and sample {row} is {_shown(found, row)}, which "
        f"is not in {before}. {_RENAME if before != 'y' else _WITHOUT_INDEX}"
    )


def _shown(order: SampleOrder, row: int) -> str:
    name = order.name(row)
    return "another" if name is None else printable(name)


_RENAME = (
    "Give the same samples in the same order; if only their names differ, rename them "
    "or leave the names out."
)
_WITHOUT_INDEX = (
    "If the rows belong together as they are, give y without its index: y.to_numpy()."
)


def _align(before: str) -> str:
    """How to put rows into the order of what came before."""
    if before == "y":
        return f"Align them: y.loc[X.index]. {_WITHOUT_INDEX}"
    return f"Put its rows into the order of {before}."


def refuse_unlike_samples(
    known: SampleOrder, found: SampleOrder, what: str, before: str
) -> None:
    """Raise unless two sources of columns can have the same samples in one order."""
    can_be = refuse_other_samples(known, found, what, before)
    are_trusted = known.is_counted or found.is_counted or known.column != found.column
    if can_be or are_trusted:
        return
    here = _shown(found, 0)
    raise DataError(
        f"{what} has other samples than {before}: sample 0 is {here}, which is not the "
        f"name of sample 0 in {before}. {_RENAME}"
    )


def sample_order_of(source: Any) -> SampleOrder | None:
    """Which samples the rows of a source are; None if it does not say."""
    names = sample_names_of(source)
    if names is None:
        return None
    return SampleOrder(names, column=getattr(source, "sample_column", None))


def without_identifier(source: Any, column: str) -> Any:
    """The source without a column that names the samples, as earlier data do."""
    if isinstance(source, ChainedSource):
        return ChainedSource([without_identifier(s, column) for s in source.sources])
    if getattr(source, "sample_column", None) != column:
        return source
    remove = getattr(source, "without_identifier", None)
    return source if remove is None else remove()


def common_names(
    sources: Sequence[tuple[str, Source]],
) -> tuple[Sequence[str] | None, str | None]:
    """Names of the samples of all sources, and the column that has them.

    `DataError` where they differ.
    """
    best: tuple[str, Source, SampleOrder] | None = None
    for what, source in sources:
        found = sample_order_of(source)
        if found is None:
            continue
        if best is not None:
            refuse_unlike_samples(best[2], found, what, best[0])
        if best is None or (best[2].is_counted and not found.is_counted):
            best = what, source, found
    if best is None:
        return None, None
    return sample_names_of(best[1]), best[2].column
