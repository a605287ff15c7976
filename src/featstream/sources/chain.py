"""Several sources as one stream: features that come in several files."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from featstream.errors import DataError, MissingFileError, printable
from featstream.protocols import Block, Source, sample_names_of
from featstream.sources.dataset import Dataset, PathLike
from featstream.sources.files import open_dataset, open_features, takes_target_file
from featstream.sources.samples import hash_samples, refuse_other_samples
from featstream.sources.targets import is_target_file

__all__ = ["ChainedSource", "open_folder"]


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


def open_folder(
    path: PathLike,
    target: str | None = None,
    *,
    optional: Collection[str] = (),
    **options: str | None,
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
        ``class`` and ``label``; a last column of another name is a feature. Or the
        file that holds it, where that is allowed.
    optional : collection of str, default=()
        Further names of such a column.
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
            parts.append((file, open_dataset(file, target, **options)))
        else:
            parts.append((file, open_features(file, names, **options)))
    y: NDArray[Any] | None = None
    for file, part in parts:
        if part.y is None:
            continue
        if y is not None and not np.array_equal(y, part.y):
            raise DataError(
                f"{file} has another target than the files before it. The files of a "
                "folder need the same samples, in the same order."
            )
        y = part.y
    _common_names([(str(file), part.source) for file, part in parts])
    return Dataset(ChainedSource([part.source for _, part in parts]), y)


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
