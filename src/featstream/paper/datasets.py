"""The data sets of the SAOLA paper, by name, from files as they are downloaded."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

from numpy.typing import NDArray

from featstream.errors import DataError, MissingFileError, ParameterError, unknown_name
from featstream.paper import formats
from featstream.paper.formats import Reader, indicators, join, npz, svmlight
from featstream.paper.tables import contents

Kind: TypeAlias = Literal["continuous", "discrete"]


@dataclass(frozen=True, slots=True)
class Files:
    """Files that hold a data set, named as they are distributed."""

    reader: Reader  # of the files of one part
    train: tuple[str, ...]
    test: tuple[str, ...] = ()  # none if there is one part, or the reader finds both
    differs: str = ""  # how the data differ from the paper's, if they do
    remark: str = ""
    n_features: int | None = None  # if it is not the paper's


@dataclass(frozen=True, slots=True)
class Entry:
    """A data set of the paper."""

    kind: Kind
    n_features: int
    source: str  # who publishes it
    files: tuple[Files, ...]  # ways in which it may be stored, the best first
    is_split: bool = False  # whether the paper uses published parts


@cache
def catalogue() -> dict[str, Entry]:
    """Table 2 of the paper; then the sets of Tables 14 to 17 and of Table 9."""
    return {name: _as_entry(**facts) for name, facts in contents("datasets").items()}


def _as_entry(files: Sequence[dict[str, Any]], **facts: Any) -> Entry:
    return Entry(files=tuple(_as_files(**way) for way in files), **facts)


def _as_files(reader: str, rows: Sequence[int] = (), **facts: Any) -> Files:
    read = getattr(formats, reader)
    return Files(read(*rows) if rows else read, **facts)


_VARIABLE = "FEATSTREAM_DATA"
_LEVELS = ("*", "*/*", "*/*/*")
"""Folders that are searched: challenges come in folders of their own."""


@dataclass(frozen=True, slots=True, eq=False)
class Benchmark:
    """A data set of the paper, and how the paper treats it."""

    name: str  # as the paper spells it, such as "lung-cancer"
    X: Any  # the published training part if the paper uses it, otherwise all rows
    y: NDArray[Any]
    X_test: Any  # the published test part, if the paper uses it and it is there
    y_test: NDArray[Any] | None
    kind: Kind  # by Fisher's Z, or by symmetrical uncertainty
    is_split: bool  # whether the paper uses published parts, or draws its own
    origin: Path  # the (first) file that was read
    differs: str = ""  # how the data differ from the paper's, if they do
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        n, p = self.X.shape
        test = "" if self.y_test is None else f" + {self.y_test.size:,}"
        return f"Benchmark({self.name}: {n:,}{test} samples × {p:,} {self.kind})"


def load_dataset(name: str, data: str | os.PathLike[str] | None = None) -> Benchmark:
    """Load a data set of the paper, by the name that the paper uses.

    Nothing is downloaded: the files have to be there, as their publishers distribute
    them, in the folder or in folders below it, plain or as ``.gz``, ``.bz2`` or
    ``.xz``. `files_of_dataset` says which. Every data set may also be an archive
    ``NAME.npz`` of ``X`` and ``y`` (or ``X_train``, ``y_train``, ``X_test`` and
    ``y_test``), or ``NAME.svm``. ``data`` is the folder, by default that in the
    environment variable ``FEATSTREAM_DATA``.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/ijcnn1.npz", X=np.zeros((9, 22)), y=[0, 1, 0] * 3)
    ...     load_dataset("ijcnn1", folder)
    Benchmark(ijcnn1: 9 samples × 22 continuous)
    """
    entry, folder = _entry(name), _folder(data)
    found = _find(name, entry, _file_names(folder))
    if found is None:
        raise MissingFileError(
            f"There is no data set {name!r} in {folder}. Put there "
            f"{files_of_dataset(name)}."
        )
    files, train, test = found
    n_features = files.n_features or entry.n_features
    parts = files.reader(train, n_features)
    if test:
        parts += files.reader(test, n_features)
    if name == "connect-4":  # 42 squares as 126 indicators, however they are stored
        parts = [(indicators(X) if X.shape[1] == 42 else X, y) for X, y in parts]
    for X, y in parts:
        _check(train[0], X, y, n_features)
    differs, notes = files.differs, [files.remark] if files.remark else []
    if not entry.is_split:
        if files.test and not test:
            differs = f"without the rows of {' and '.join(files.test)}"
        parts = [join(parts)]
    elif len(parts) == 1:
        notes.append("no test part")
    (X, y), rest = parts[0], parts[1:]
    X_test, y_test = rest[0] if rest else (None, None)
    return Benchmark(
        name=name,
        X=_by_columns(X),
        y=y,
        X_test=_by_columns(X_test),
        y_test=y_test,
        kind=entry.kind,
        is_split=entry.is_split,
        origin=train[0],
        differs=differs,
        notes=tuple(notes),
    )


def dataset_names() -> tuple[str, ...]:
    """All data sets of the paper, available or not.

    >>> dataset_names()[:3]
    ('madelon', 'hiva', 'leukemia')
    """
    return tuple(catalogue())


def available_datasets(data: str | os.PathLike[str] | None = None) -> tuple[str, ...]:
    """The names of the data sets whose files are in the folder (not read yet).

    ``data`` is the folder, by default that in ``FEATSTREAM_DATA``.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     available_datasets(folder)
    ()
    """
    names = _file_names(_folder(data))
    return tuple(
        name for name, entry in catalogue().items() if _find(name, entry, names)
    )


def files_of_dataset(name: str) -> str:
    """The files in which a data set is looked for, and who publishes it.

    >>> print(files_of_dataset("dexter"))
    dexter_train.data and dexter_train.labels, with dexter_valid.data and
    dexter_valid.labels for the test part; or dexter.npz; or dexter.svm
    (NIPS 2003 feature selection challenge; UCI has it)
    """
    entry = _entry(name)
    ways = []
    for files in _ways(name, entry):
        way = " and ".join(files.train)
        if files.test:
            what = "for the test part" if entry.is_split else "for all rows"
            way += f", with {' and '.join(files.test)} {what}"
        ways.append(way)
    return f"{'; or '.join(ways)} ({entry.source})"


def _entry(name: str) -> Entry:
    if name not in catalogue():
        raise unknown_name("data set", name, catalogue())
    return catalogue()[name]


def _folder(data: str | os.PathLike[str] | None) -> Path:
    given = os.environ.get(_VARIABLE) if data is None else data
    if not given:
        raise ParameterError(
            f"The folder of the data sets is unknown. Pass `data` or set {_VARIABLE}."
        )
    folder = Path(given)
    if not folder.is_dir():
        raise MissingFileError(
            f"There is no folder {folder}. Pass `data`, the folder with the data sets, "
            f"or set {_VARIABLE}."
        )
    return folder


def _ways(name: str, entry: Entry) -> Iterator[Files]:
    """The ways in which a data set may be stored, complete ones first."""
    yield from (files for files in entry.files if not (files.differs or files.remark))
    yield Files(npz, (f"{name.replace('-', '_')}.npz",))
    yield Files(svmlight, (f"{name}.svm",))
    yield from (files for files in entry.files if files.differs or files.remark)


def _find(
    name: str, entry: Entry, names: dict[str, Path]
) -> tuple[Files, list[Path], list[Path]] | None:
    """The first way for which the files are there, and these."""
    for files in _ways(name, entry):
        train, test = (_present(part, names) for part in (files.train, files.test))
        if train:
            return files, train, test
    return None


def _present(wanted: tuple[str, ...], names: dict[str, Path]) -> list[Path]:
    """The paths of files; none if one of them is missing."""
    found = [names[name.lower()] for name in wanted if name.lower() in names]
    return found if len(found) == len(wanted) else []


def _file_names(folder: Path) -> dict[str, Path]:
    """Files by lower-case name, as if unpacked; of two, the one further up."""
    found: dict[str, Path] = {}
    for path in (path for level in _LEVELS for path in sorted(folder.glob(level))):
        if not path.is_dir():
            plain = re.sub(r"\.(gz|bz2|xz)$", "", path.name.lower())
            found.setdefault(plain, path)
    return found


def _check(path: Path, X: Any, y: NDArray[Any], n_features: int) -> None:
    if X.ndim != 2 or X.shape[1] != n_features:
        raise DataError(
            f"{path} holds an array of shape {X.shape}, and not {n_features:,} "
            "features in columns. It is a different data set."
        )
    if y.shape != X.shape[:1]:
        raise DataError(
            f"{path} has {X.shape[0]:,} rows but labels of shape {y.shape}. Give one "
            "label per row."
        )


def _by_columns(X: Any) -> Any:
    """Sparse features as selectors want them."""
    return X.tocsc() if hasattr(X, "tocsc") else X
