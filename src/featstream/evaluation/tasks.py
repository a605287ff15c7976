"""Data sets that selectors are compared on, and how they get to other processes.

A data set is written once as plain ``.npy`` files, which every process maps into its
memory: there is one copy in memory for all processes.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from featstream.errors import DataError, DataTypeError, printable
from featstream.evaluation.entrants import key_of
from featstream.evaluation.splits import TaskShape
from featstream.measures.inputs import as_labels, as_vector
from featstream.protocols import Block, SparseColumns, feature_name, names_of
from featstream.sources import Dataset, as_source, is_svmlight, open_dataset
from featstream.sources.grouping import label_of, read_groups
from featstream.sources.npy import read_archive


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """A data set, with a test part where one is given.

    Parameters
    ----------
    X_train : array, sparse matrix, data frame, path or Source
        Samples by features.
    y_train : array of shape (n_samples,)
        Their classes.
    X_test, y_test : likewise, optional
        A test part, with the same features.
    groups : array of labels of shape (n_features,), optional
        The group of each feature, for selectors that take groups.
    names : sequence of str, optional
        The names of the features; by default those that the data have.
    target : str, optional
        Where the classes come from, such as the name of a column; shown in results.

    Examples
    --------
    >>> task = Task([[1, 2], [3, 4], [5, 6]], [0, 1, 1], [[7, 8], [9, 0]], [0, 1])
    >>> task.rows().shape.n_train
    3
    """

    X_train: Any
    y_train: Any
    X_test: Any = None
    y_test: Any = None
    groups: Any = None
    names: Sequence[str] | None = None
    target: str | None = None

    def rows(self) -> Rows:
        """All rows as one checked matrix."""
        first = as_matrix(self.X_train, "X_train")
        X = first.values
        y = check_target(self.y_train, X, "train")
        n_train = len(y)
        if (self.X_test is None) != (self.y_test is None):
            raise DataError(
                "A Task has both X_test and y_test, or neither. Got one without "
                "the other."
            )
        if self.X_test is not None:
            second = as_matrix(self.X_test, "X_test")
            check_same_features(first, second)
            y = np.concatenate([y, check_target(self.y_test, second.values, "test")])
            X = stacked([X, second.values], axis=0)
        as_labels(y)
        if sparse.issparse(X):  # indices of 32 bits if that is enough
            short = sparse.get_index_dtype(maxval=max(X.nnz, *X.shape))
            X.indices, X.indptr = X.indices.astype(short), X.indptr.astype(short)
        names = first.names if self.names is None else list(self.names)
        groups = None if self.groups is None else number_labels(self.groups)
        for what, given in (("names", names), ("groups", groups)):
            if given is not None and len(given) != X.shape[1]:
                raise DataError(
                    f"`{what}` of a Task has {len(given):,} entries for "
                    f"{X.shape[1]:,} features. Give one for each."
                )
        return Rows(X, y, n_train, groups, names, self.target)


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """A data set as one matrix, the rows of a test part last."""

    X: Any
    y: NDArray[Any]
    n_train: int
    groups: NDArray[Any] | None = None
    names: list[str] | None = None
    target: str | None = None

    @property
    def shape(self) -> TaskShape:
        """What splits depend on."""
        return TaskShape(self.y, self.n_train, self.X.shape[1])

    def fingerprint(self) -> str:
        """Changes with any value, label, name or group."""
        known = {"n_train": self.n_train, "shape": self.X.shape, "names": self.names}
        return key_of(known | self._arrays())

    def write(self, folder: Path) -> None:
        """Write files that `map_rows` maps."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, array in self._arrays().items():
            np.save(folder / f"{name}.npy", array, allow_pickle=False)

    def _arrays(self) -> dict[str, NDArray[Any]]:
        X, arrays = self.X, {"y": self.y}
        if self.groups is not None:
            arrays["groups"] = self.groups
        if not sparse.issparse(X):
            return arrays | {"X": X}
        arrays |= {"indptr": X.indptr, "indices": X.indices, "data": X.data}
        return arrays | {"shape": np.array(X.shape)}


def map_rows(folder: Path) -> Rows:
    """The data set in a folder, mapped into memory; without the names."""

    def read(name: str) -> Any:
        return np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False)

    y = np.array(read("y"))
    groups = np.array(read("groups")) if (folder / "groups.npy").exists() else None
    if (folder / "X.npy").exists():
        return Rows(read("X"), y, len(y), groups)
    parts = (read("data"), read("indices"), read("indptr"))
    X = sparse.csc_array(parts, shape=tuple(read("shape").tolist()))
    return Rows(X, y, len(y), groups)


def as_task(data: Any) -> Task:
    """A task from a path, ``(X, y)``, a Task, a Bunch, or a function that makes one."""
    if isinstance(data, Task):
        return data
    if isinstance(data, str | os.PathLike):
        return open_task(data)
    if isinstance(data, Dataset):
        return Task(data.source, data.y, names=data.names, target=data.target_name)
    if isinstance(data, tuple | list) and len(data) in (2, 4):
        return Task(*data)
    if hasattr(data, "data") and hasattr(data, "target"):  # of sklearn.datasets
        return Task(data.data, data.target)
    if callable(data):
        return as_task(data())
    raise DataTypeError(
        f"Cannot make a data set of {type(data).__name__}. Give (X, y), the path of a "
        "file, or Task(X_train, y_train, X_test, y_test)."
    )


def open_task(
    path: str | os.PathLike[str],
    target: str | None = None,
    test: str | os.PathLike[str] | None = None,
    groups: Mapping[str, Any] | None = None,
    **options: Any,
) -> Task:
    """Open a data set from a file, and its test part from another.

    Parameters
    ----------
    path, test : str or path-like
        Whatever `featstream.sources.open_dataset` opens; an ``.npz`` with ``X_test``
        and ``y_test`` has its test part in it.
    target : str, optional
        Where the target is, as there.
    groups : mapping, optional
        Where the groups of its features come from: ``path``, ``size`` or ``pattern``
        of `featstream.read_groups`.
    **options
        Further options of `open_dataset`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile(suffix=".npz") as file:
    ...     parts = {"X_train": np.eye(4), "X_test": np.eye(4)[:2]}
    ...     np.savez(file.name, **parts, y_train=[0, 1, 0, 1], y_test=[0, 1])
    ...     open_task(file.name).y_test
    array([0, 1])
    """
    found = open_with_target(path, target, **options)
    X_test = y_test = None
    if test is not None:
        other = open_with_target(test, target, **options)
        X_test, y_test = other.source, other.y
    elif Path(path).suffix.lower() == ".npz":
        arrays = read_archive(path)
        X_test, y_test = arrays.get("X_test"), arrays.get("y_test")
    X: Any = found.source
    labels: Any = None
    if test is not None and is_svmlight(path) and is_svmlight(test):
        # Such files end at their last entry: the parts may differ in width.
        X, X_test = (as_matrix(part, "a part").values for part in (X, X_test))
        n_features = max(X.shape[1], X_test.shape[1])
        for part in (X, X_test):
            part.resize((part.shape[0], n_features))
    if groups is not None:
        names, n_features = found.names, found.source.n_features
        labels = read_groups(**groups, names=names, n_features=n_features)
        if isinstance(labels, dict):
            names = names or [feature_name(i) for i in range(n_features or 0)]
            labels = [label_of(name, labels) for name in names]
    return Task(X, found.y, X_test, y_test, labels, found.names, found.target_name)


def open_with_target(
    path: str | os.PathLike[str], target: str | None, **options: Any
) -> Dataset:
    """A data set that must have a target."""
    found = open_dataset(path, target, **options)
    if found.y is None:
        raise DataError(f"{printable(path)} holds no target. Name it with target.")
    return found


class Matrix(NamedTuple):
    """An array or a CSC matrix; its names, if any; whether text was made codes."""

    values: Any
    names: list[str] | None
    has_text: bool


def as_matrix(X: Any, what: str) -> Matrix:
    """One matrix of whatever has columns."""
    if isinstance(X, np.ndarray) and X.dtype.kind in "biuf" and X.ndim == 2:
        return Matrix(X, None, has_text=False)
    source = as_source(X)
    blocks = list(source.blocks())
    if not blocks:
        raise DataError(f"{what} has no features.")
    names, has_text = names_of(source), any(b.nominal is not None for b in blocks)
    values = stacked([values_of(block) for block in blocks], axis=1)
    return Matrix(values, None if names is None else list(map(str, names)), has_text)


def stacked(parts: list[Any], axis: int) -> Any:
    """One matrix of several, sparse if one of them is."""
    if not any(map(sparse.issparse, parts)):
        return np.concatenate(parts, axis)
    stack = sparse.hstack if axis else sparse.vstack
    return sparse.csc_array(stack(list(map(sparse.csc_array, parts)), format="csc"))


def values_of(block: Block) -> Any:
    """An array, missing text as NaN, or a CSC matrix."""
    columns, nominal = block.columns, block.nominal
    if isinstance(columns, SparseColumns):
        own = columns.alone()
        return sparse.csc_array((own.values, own.rows, own.indptr), shape=own.shape)
    values = np.asarray(columns)
    if nominal is not None and (is_missing := nominal & (values < 0)).any():
        return np.where(is_missing, np.nan, values)
    return values


def check_same_features(first: Matrix, second: Matrix) -> None:
    """Refuse parts with different columns."""
    n_first, n_second = first.values.shape[1], second.values.shape[1]
    if n_first != n_second:
        raise DataError(
            f"X_test has {n_second:,} features, and X_train {n_first:,}. Both parts "
            "need the same, in the same order."
        )
    if first.names is not None and second.names not in (None, first.names):
        pairs = zip(first.names, second.names or (), strict=True)
        i, (ours, other) = next((i, p) for i, p in enumerate(pairs) if p[0] != p[1])
        raise DataError(
            f"Feature {i} is {printable(other)} in X_test, and {printable(ours)} in "
            "X_train. Both parts need the same features, in the same order."
        )
    if first.has_text or second.has_text:
        raise DataError(
            "Some columns are text, and the codes of its words need not be the same "
            "in X_train and X_test. Put both parts in one data set, or give numbers."
        )


def number_labels(labels: Any) -> NDArray[Any]:
    """Labels of any type as numbers, in order of first appearance."""
    number_of: dict[Any, int] = {}
    listed = labels.tolist() if hasattr(labels, "tolist") else list(labels)
    return np.array([number_of.setdefault(label, len(number_of)) for label in listed])


def check_target(y: Any, X: Any, part: str) -> NDArray[Any]:
    """One label per row, in an array that needs no pickle."""
    if y is None:
        raise DataError(f"A Task needs y_{part}, the class of each row. Got None.")
    labels = as_vector(y)
    if len(labels) != X.shape[0]:
        raise DataError(
            f"X_{part} has {X.shape[0]:,} rows, and y_{part} {len(labels):,}. Give one "
            "class for each row."
        )
    return labels.astype(np.str_) if labels.dtype.kind == "O" else labels
