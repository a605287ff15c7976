"""Several sources as one stream: features that come in several files."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from featstream.errors import DataError, MissingFileError, printable
from featstream.protocols import (
    Block,
    BoolArray,
    IndexedSource,
    IntArray,
    Source,
    SparseColumns,
    sample_names_of,
)
from featstream.sources.dataset import Dataset, PathLike
from featstream.sources.grouping import is_absent
from featstream.sources.open import open_one, takes_target_file
from featstream.sources.samples import hash_samples, refuse_other_samples
from featstream.sources.target import is_target_file


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
        self.sample_names = _common_names(
            [(f"Source {i}", source) for i, source in enumerate(self.sources)]
        )

    @property
    def n_features(self) -> int | None:
        """Number of columns of all; None if one of them does not know."""
        total = 0
        for source in self.sources:
            if source.n_features is None:
                return None
            total += source.n_features
        return total

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


class SampleSubset:
    """The columns of a source, for some of its samples.

    Parameters
    ----------
    source : Source
        The columns.
    is_chosen : ndarray of bool of shape (n_samples,)
        Which samples.

    Examples
    --------
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
        self.names = getattr(source, "names", None)
        self.sample_names: list[str] | None = None
        sample_names = sample_names_of(source)
        if sample_names is not None:
            chosen = np.flatnonzero(is_chosen).tolist()
            self.sample_names = [sample_names[i] for i in chosen]
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
        whole = getattr(self._source, "fingerprint", None)
        if whole is None:
            return None
        chosen = np.packbits(self._is_chosen).tobytes()
        return hashlib.sha256(whole.encode() + b"\0" + chosen).hexdigest()

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
        begin, end = columns.indptr[[0, -1]]
        rows = columns.rows[begin:end]
        is_chosen = self._is_chosen[rows]
        place = (np.cumsum(self._is_chosen) - 1).astype(np.int32)
        n_before = np.concatenate([[0], np.cumsum(is_chosen)])
        subset = SparseColumns(
            n_before[columns.indptr - begin],
            place[rows[is_chosen]],
            columns.values[begin:end][is_chosen],
            self.n_samples,
        )
        return replace(block, columns=subset)


def labelled(dataset: Dataset, path: PathLike, *, is_wanted: bool) -> Dataset:
    """Leave out the samples without a label if that is wanted, otherwise raise."""
    y = dataset.y
    if y is None or y.ndim != 1:
        return dataset
    if y.dtype.kind == "f":
        is_missing = np.isnan(y)
    elif y.dtype.kind == "O":
        is_missing = np.array([is_absent(label) for label in y], bool)
    else:
        return dataset
    n_missing = int(is_missing.sum())
    if not n_missing:
        return dataset
    if not is_wanted:
        target = dataset.target_name
        where = "" if target is None else f" in {printable(target)}"
        row = int(is_missing.argmax())
        first = f"row {row}"
        if dataset.samples is not None:
            first += f" ({printable(dataset.samples[row])})"
        raise DataError(
            f"{path}: {n_missing:,} of {y.size:,} samples have no label{where}, the "
            f"first at {first}. Pass drop_unlabelled=True (command line: "
            "--drop-unlabelled) to leave them out."
        )
    labels = y[~is_missing]
    if labels.dtype.kind == "O":
        labels = np.array(labels.tolist())
    source = SampleSubset(dataset.source, ~is_missing)
    return replace(dataset, source=source, y=labels)


def open_folder(
    path: PathLike,
    target: str | None = None,
    *,
    optional: Collection[str] = (),
    drop_unlabelled: bool = False,
    **options: Any,
) -> Dataset:
    """Open the files in a folder as one data set.

    Parameters
    ----------
    path : str or path-like
        A folder of files, or column stores, that `open_dataset` opens. They follow
        each other in the order of their names, compared as text: ``part-2`` comes
        after ``part-10``. Hidden files are passed over, and so are the ``.bim`` and
        ``.fam`` that belong to a ``.bed``.
    target : str, default=None
        The column of tables that is the target, besides ``y``, ``target``,
        ``class`` and ``label``. Or the file that holds it, where that is allowed.
    optional : collection of str, default=()
        Further names of such a column.
    drop_unlabelled : bool, default=False
        Whether to leave out samples without a label, instead of an error.
    **options
        As for `open_dataset`; they hold for every file.

    Returns
    -------
    Dataset
        The features of all files. The target is that of the files that have one;
        they must agree.

    Examples
    --------
    >>> import pathlib, tempfile, numpy as np
    >>> from featstream.sources import open_folder
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> np.savez(folder / "part-01.npz", X=np.eye(3), y=[0, 1, 1])
    >>> np.save(folder / "part-02.npy", np.ones((3, 2)))
    >>> data = open_folder(folder)
    >>> data.source.n_features, data.y
    (5, array([0, 1, 1]))
    """
    files = sorted(p for p in Path(path).iterdir() if not _is_passed_over(p))
    if not files:
        raise MissingFileError(
            f"There is no file in {printable(path, limit=400)}. It is a folder that "
            "is empty."
        )
    names = [*optional] if target is None else [target, *optional]
    is_file = target is not None and is_target_file(target)
    parts = []
    for file in files:
        if is_file and takes_target_file(file, options.get("orient")):
            parts.append((file, open_one(file, target, options)))
        else:
            parts.append((file, open_one(file, None, options, names)))
    found: Dataset | None = None
    for file, part in parts:
        if part.y is None:
            continue
        if found is not None and not _are_equal(found.y, part.y):
            raise DataError(
                f"{file} has another target than the files before it. The files of a "
                "folder need the same samples, in the same order."
            )
        found = part
    _common_names([(str(file), part.source) for file, part in parts])
    source = ChainedSource([part.source for _, part in parts])
    whole = Dataset(source) if found is None else replace(found, source=source)
    return labelled(replace(whole, names=None), path, is_wanted=drop_unlabelled)


def _are_equal(y: NDArray[Any] | None, other: NDArray[Any]) -> bool:
    """Whether two targets agree, missing labels included."""
    assert y is not None
    if y.dtype.kind == other.dtype.kind == "f":
        return np.array_equal(y, other, equal_nan=True)
    return np.array_equal(y, other)


def _common_names(sources: Sequence[tuple[str, Source]]) -> Sequence[str] | None:
    """Names of the samples of all sources; `DataError` where they differ."""
    first: str = ""
    names: Sequence[str] | None = None
    for what, source in sources:
        found = sample_names_of(source)
        if found is None:
            continue
        if names is None:
            first, names = what, found
        elif names != found:
            refuse_other_samples(hash_samples(names), found, what, first)
    return names


def _is_passed_over(path: Path) -> bool:
    is_companion = path.suffix in (".bim", ".fam") and path.with_suffix(".bed").exists()
    return path.name.startswith(".") or is_companion
