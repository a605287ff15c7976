"""Readers of the files in which public data sets are distributed.

Each takes the files of one part (training, validation) and gives that part, or,
for archives that hold both, both. A bad line is named with its file and number.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.preprocessing import normalize

from featstream.errors import DataError, printable
from featstream.sources import iter_svmlight, read_archive, read_svmlight

Part: TypeAlias = tuple[Any, NDArray[Any]]
"""Features, samples in rows, and the class of each."""

Reader: TypeAlias = Callable[[Sequence[Path], int], list[Part]]
"""From the files of a part, and its number of features."""

_OPENERS: dict[str, Callable[[Path, str], Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
}


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


def some_of_svmlight(first: int, n_rows: int, n_test: int) -> Reader:
    """A reader of ``n_rows`` rows, and ``n_test`` after them, from row ``first`` on."""

    def read(paths: Sequence[Path], n_features: int) -> list[Part]:
        parts, begin = [], -first
        for X, y in _slices_of_svmlight(paths[0], n_features):
            wanted = slice(max(-begin, 0), max(n_rows + n_test - begin, 0))
            parts.append((X[wanted], y[wanted]))
            begin += y.size
            if begin >= n_rows + n_test:
                break
        return _cut(*join(parts), n_rows)

    return read


def _cut(X: Any, y: NDArray[Any], n_train: int) -> list[Part]:
    """The first rows, and the others."""
    return [(X[:n_train], y[:n_train]), (X[n_train:], y[n_train:])]


def sample_of_svmlight(n_rows: int, seed: int = 0) -> Reader:
    """A reader of ``n_rows`` random rows: those that draw the smallest numbers."""

    def read(paths: Sequence[Path], n_features: int) -> list[Part]:
        rng, limit = np.random.default_rng(seed), 1.0
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

    return read


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
    X = _sparse(entries, n_features)
    _check_length(X, classes, paths)
    unknown = sorted(set(classes) - {b"A", b"I"})
    if unknown:
        raise DataError(
            f"{paths[-1]}: the class {printable(unknown[0].decode('latin-1'))} is "
            "neither A (active) nor I (inactive)."
        )
    return [(X, np.where(np.array(classes) == b"A", 1, -1))]


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
    sizes = [indices.size for indices, _ in entries]
    arrays = (
        np.concatenate([values for _, values in entries] or [np.empty(0)]),
        np.concatenate([indices for indices, _ in entries] or [np.empty(0, np.int64)]),
        np.cumsum([0, *sizes]),
    )
    return sparse.csr_array(arrays, shape=(len(entries), n_features))


def _with_labels(X: Any, paths: Sequence[Path]) -> Part:
    labels = []
    for line in _lines(paths[1]):
        (label,) = line.numbers(line.text.split(), 1)
        if label != np.floor(label):
            raise line.bad(f"the label {label:g} is not a whole number")
        labels.append(label)
    _check_length(X, labels, paths)
    return X, np.array(labels).astype(np.int64)


def _check_length(X: Any, labels: Sequence[Any], paths: Sequence[Path]) -> None:
    if X.shape[0] != len(labels):
        raise DataError(
            f"{paths[0]} has {X.shape[0]:,} rows but {paths[-1]} has {len(labels):,} "
            "labels. They belong to different parts, or one is cut short."
        )
