"""The data sets of the SAOLA paper, by name, from files as they are downloaded.

A reader takes the files of one part (training, validation) and gives that part, or,
for archives that hold both, both. A bad line is named with its file and number.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.preprocessing import normalize

from featstream.errors import (
    DataError,
    MissingFileError,
    ParameterError,
    printable,
    unknown_name,
)
from featstream.paper.tables import contents
from featstream.sources import iter_svmlight, read_archive, read_svmlight

Kind: TypeAlias = Literal["continuous", "discrete"]

Part: TypeAlias = tuple[Any, NDArray[Any]]
"""Features, samples in rows, and the class of each."""

Reader: TypeAlias = Callable[[Sequence[Path], int], list[Part]]
"""From the files of a part, and its number of features."""

_OPENERS: dict[str, Callable[[Path, str], Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
}


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
    read = globals()[reader]
    return Files(partial(read, rows=rows) if rows else read, **facts)


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
    parts = _read(name, files.reader, train, n_features)
    if test:
        parts += _read(name, files.reader, test, n_features)
    differs, notes = files.differs, [files.remark] if files.remark else []
    if not entry.is_split:
        if files.test and not test:
            differs = f"without the rows of {' and '.join(files.test)}"
        parts = [join(parts)]
    elif len(parts) == 1:
        notes.append("no test part")
    parts = [(X.tocsc() if sparse.issparse(X) else X, y) for X, y in parts]
    (X, y), (X_test, y_test) = parts if len(parts) == 2 else (parts[0], (None, None))
    return Benchmark(
        name=name,
        X=X,
        y=y,
        X_test=X_test,
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


def _read(
    name: str, reader: Reader, paths: Sequence[Path], n_features: int
) -> list[Part]:
    """The parts in some files, if they are what they should be."""
    parts = reader(paths, n_features)
    if name == "connect-4":  # 42 squares as 126 indicators, however they are stored
        parts = [(indicators(X) if X.shape[1] == 42 else X, y) for X, y in parts]
    for X, y in parts:
        if X.ndim != 2 or X.shape[1] != n_features:
            raise DataError(
                f"{paths[0]} holds an array of shape {X.shape}, and not "
                f"{n_features:,} features in columns. It is a different data set."
            )
        if y.shape != X.shape[:1]:
            raise DataError(
                f"{paths[0]} has {X.shape[0]:,} rows but {paths[-1]} has labels of "
                f"shape {y.shape}, which are not one for each row. One of them is cut "
                "short, or they belong to different parts."
            )
    return parts


def npz(paths: Sequence[Path], n_features: int) -> list[Part]:
    """Read an archive of ``X`` and ``y``, or of ``X_train`` to ``y_test``."""
    (path,) = paths
    arrays = read_archive(path)
    suffixes = [s for s in ("", "_train", "_test") if f"X{s}" in arrays] or [""]
    for name in (f"{letter}{s}" for s in suffixes for letter in "Xy"):
        if name not in arrays:
            raise DataError(
                f"{path} has no array {name}. A data set is X and y, or X_train, "
                f"y_train, X_test and y_test. It holds: {', '.join(arrays)}."
            )
    parts = [(arrays[f"X{s}"], arrays[f"y{s}"]) for s in suffixes]
    n_train = int(arrays.get("n_train", 0))
    return _cut(*parts[0], n_train) if n_train else parts


def unit_rows(paths: Sequence[Path], n_features: int) -> list[Part]:
    """Read an archive of sparse rows, and give each the length 1, as LIBSVM does."""
    return [
        (normalize(X.tocsr().astype(np.float64)), y) for X, y in npz(paths, n_features)
    ]


def svmlight(paths: Sequence[Path], n_features: int) -> list[Part]:
    """Read a file of LIBSVM's collection; the features it does not use are zero."""
    (path,) = paths
    X, y = read_svmlight(path, n_features=n_features, max_bytes=1 << 40)
    return [(X, y)]


def some_of_svmlight(
    paths: Sequence[Path], n_features: int, rows: tuple[int, int, int]
) -> list[Part]:
    """Read the rows of two parts, one after the other; ``rows`` counts from 0."""
    first, n_train, n_test = rows
    parts, begin = [], -first
    for X, y in _slices_of_svmlight(paths[0], n_features):
        wanted = slice(max(-begin, 0), max(n_train + n_test - begin, 0))
        parts.append((X[wanted], y[wanted]))
        begin += y.size
        if begin >= n_train + n_test:
            break
    return _cut(*join(parts), n_train)


def _cut(X: Any, y: NDArray[Any], n_train: int) -> list[Part]:
    """The first rows, and the others."""
    return [(X[:n_train], y[:n_train]), (X[n_train:], y[n_train:])]


def sample_of_svmlight(
    paths: Sequence[Path], n_features: int, rows: tuple[int]
) -> list[Part]:
    """Read some random rows: each row draws a number, and the smallest are kept."""
    (n_rows,), rng, limit = rows, np.random.default_rng(0), 1.0
    parts: list[Part] = []
    draws = np.empty(0)
    for X, y in _slices_of_svmlight(paths[0], n_features):
        drawn = rng.random(y.size)
        is_small = drawn < limit
        parts.append((X[is_small], y[is_small]))
        draws = np.append(draws, drawn[is_small])
        if draws.size > 2 * n_rows:
            limit = np.partition(draws, n_rows)[n_rows]
            X, y = join(parts)
            parts = [(X[draws < limit], y[draws < limit])]
            draws = draws[draws < limit]
    X, y = join(parts)
    kept = np.sort(np.argsort(draws, kind="stable")[:n_rows])
    return [(X[kept], y[kept])]


def _slices_of_svmlight(path: Path, n_features: int) -> Iterator[Part]:
    """Some thousand rows at a time."""
    n_slices = 0
    for rows in iter_svmlight(path, zero_based=False):
        if rows.highest >= n_features:
            raise DataError(
                f"{path} has the index {rows.highest + 1:,} but the data set has "
                f"{n_features:,} features. It is a different data set, or damaged."
            )
        arrays = rows.values, rows.indices, rows.indptr
        yield sparse.csr_array(arrays, shape=(rows.y.size, n_features)), rows.y
        n_slices += 1
    if n_slices == 0:
        raise DataError(f"{path} is empty.")


def join(parts: Sequence[Part]) -> Part:
    """Stack the rows of parts."""
    if len(parts) == 1:
        return parts[0]
    matrices, labels = zip(*parts, strict=True)
    is_sparse = any(sparse.issparse(X) for X in matrices)
    X = sparse.vstack(matrices, format="csr") if is_sparse else np.vstack(matrices)
    return X, np.concatenate(labels)


def plain_rows(paths: Sequence[Path], n_features: int) -> list[Part]:
    """Read numbers in rows, and labels in a file of their own (NIPS 2003)."""
    rows = [line.numbers(line.text.split(), n_features) for line in _lines(paths[0])]
    return [_with_labels(np.array(rows), paths)]


def index_values(paths: Sequence[Path], n_features: int) -> list[Part]:
    """Read rows of ``index:value``, and labels in a file of their own (NIPS 2003)."""
    entries = []
    for line in _lines(paths[0], with_blank=True):
        words = line.text.replace(b":", b" ").split()
        if line.text.count(b":") * 2 != len(words):
            raise line.bad("a word is not of the form index:value")
        pairs = line.numbers(words).reshape(-1, 2)
        entries.append((line.indices(pairs[:, 0], n_features), pairs[:, 1]))
    return [_with_labels(_sparse(entries, n_features), paths)]


def index_lists(paths: Sequence[Path], n_features: int) -> list[Part]:
    """Read rows of the indices of ones, and labels apart (NIPS 2003)."""
    entries = []
    for line in _lines(paths[0], with_blank=True):
        indices = line.indices(line.numbers(line.text.split()), n_features)
        entries.append((indices, np.ones(indices.size, np.int8)))
    return [_with_labels(_sparse(entries, n_features), paths)]


def number_table(paths: Sequence[Path], n_features: int) -> list[Part]:
    """Read numbers with commas; the last one is the class (UCI)."""
    width = n_features + 1
    table = np.array(
        [line.numbers(line.text.split(b","), width) for line in _lines(paths[0])]
    )
    return [(table[:, :-1], table[:, -1].astype(np.int64))]


def gene_table(paths: Sequence[Path], n_features: int) -> list[Part]:
    """Read numbers with commas; the class is a word at the end (Kent Ridge)."""
    rows, classes = [], []
    for line in _lines(paths[0]):
        *words, label = line.text.split(b",")
        rows.append(line.numbers(words, n_features))
        classes.append(label.decode("utf-8", "replace"))
    return [(np.array(rows), np.array(classes))]


def letter_table(paths: Sequence[Path], n_features: int) -> list[Part]:
    """Read letters with commas, the class at the end; one indicator per letter."""
    rows, classes = [], []
    for line in _lines(paths[0]):
        *words, label = line.text.split(b",")
        if {len(word) for word in words} != {1}:
            raise line.bad("a field is not a single letter")
        rows.append(np.frombuffer(b"".join(words), np.uint8))
        line.check_width(rows[-1].size, rows[0].size)
        classes.append(label.decode("utf-8", "replace"))
    return [(indicators(np.array(rows)), np.array(classes))]


def thrombin_rows(paths: Sequence[Path], n_features: int) -> list[Part]:
    """Read rows such as ``A,0,1,0``; a second file may have the classes A and I."""
    entries, classes = [], []
    for line in _lines(paths[0]):
        bits = np.frombuffer(line.text[2:], np.uint8)
        values = bits[::2] - ord("0")
        if (bits[1::2] != ord(",")).any() or (values > 1).any():
            raise line.bad("a field after the class is neither 0 nor 1")
        line.check_width(values.size, n_features)
        ones = np.flatnonzero(values)
        entries.append((ones, np.ones(ones.size, np.int8)))
        classes.append(line.text[:1])
    if len(paths) > 1:
        classes = [line.text[:1] for line in _lines(paths[1])]
    unknown = sorted(set(classes) - {b"A", b"I"})
    if unknown:
        raise DataError(
            f"{paths[-1]}: the class {printable(unknown[0].decode('latin-1'))} is "
            "neither A (active) nor I (inactive)."
        )
    y = np.where(np.array(classes) == b"A", 1, -1)
    return [(_sparse(entries, n_features), y)]


def indicators(codes: NDArray[Any]) -> NDArray[np.int8]:
    """A column of zeros and ones for each column and each value in the table.

    >>> indicators(np.array([[0, 2], [1, 0]]))
    array([[1, 0, 0, 0, 0, 1],
           [0, 1, 0, 1, 0, 0]], dtype=int8)
    """
    values = np.unique(codes)
    is_value = codes[:, :, None] == values
    return np.asarray(is_value.reshape(len(codes), -1), np.int8)


class Line(NamedTuple):
    """A line of a file, which errors name."""

    path: Path
    number: int
    text: bytes

    def bad(self, reason: str) -> DataError:
        """The error for this line."""
        return DataError(f"{self.path}, line {self.number}: {reason}.")

    def check_width(self, found: int, width: int) -> None:
        """Refuse another number of values."""
        if found != width:
            raise self.bad(f"it has {found:,} values and not {width:,}")

    def numbers(
        self, words: list[bytes], width: int | None = None
    ) -> NDArray[np.float64]:
        """Words of the line as numbers."""
        try:
            numbers = np.array(words, np.float64)
        except ValueError as error:
            raise self.bad(str(error)) from None
        self.check_width(numbers.size, numbers.size if width is None else width)
        return numbers

    def indices(
        self, numbers: NDArray[np.float64], n_features: int
    ) -> NDArray[np.int64]:
        """Indices from 0, of numbers from 1; each once."""
        indices = numbers.astype(np.int64) - 1
        is_bad = (indices < 0) | (indices >= n_features) | (indices + 1 != numbers)
        if is_bad.any():
            value = numbers[is_bad.argmax()]
            raise self.bad(f"index {value:g} is not between 1 and {n_features}")
        if np.unique(indices).size != indices.size:
            raise self.bad("an index occurs twice")
        return indices


def _lines(path: Path, *, with_blank: bool = False) -> Iterator[Line]:
    """Each line without blanks at its ends, of a file that may be packed."""
    try:
        with _OPENERS.get(path.suffix, open)(path, "rb") as file:
            for number, text in enumerate(file, 1):
                if with_blank or text.strip():
                    yield Line(path, number, text.strip())
    except (EOFError, OSError, zlib.error, lzma.LZMAError) as error:
        raise DataError(f"{path} cannot be read: {error}.") from error


def _sparse(entries: list[tuple[NDArray[Any], NDArray[Any]]], n_features: int) -> Any:
    nothing = np.empty(0, np.int64), np.empty(0, np.int8)  # a file may be empty
    indices, values = map(np.concatenate, zip(nothing, *entries, strict=True))
    indptr = np.cumsum([0, *(own.size for own, _ in entries)])
    shape = len(entries), n_features
    return sparse.csr_array((values, indices, indptr), shape=shape)


def _with_labels(X: Any, paths: Sequence[Path]) -> Part:
    labels = []
    for line in _lines(paths[1]):
        (label,) = line.numbers(line.text.split(), 1)
        if label != np.floor(label):
            raise line.bad(f"the label {label:g} is not a whole number")
        labels.append(label)
    return X, np.array(labels).astype(np.int64)
