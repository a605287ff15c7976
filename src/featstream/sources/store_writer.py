"""Writing a column store, block by block."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csc_array

from featstream.errors import (
    DataError,
    DataTypeError,
    ParameterError,
    explain_full_disk,
)
from featstream.protocols import (
    Block,
    Source,
    SparseColumns,
    feature_name,
    sample_names_of,
)
from featstream.sources.kernels.csc_from_rows import (
    Nature,
    describe_values,
    find_bad_column,
)
from featstream.sources.kernels.transpose import by_column
from featstream.sources.npy import ArrayWriter
from featstream.sources.store import DTYPES, FORMAT, KINDS, ONES, VERSION
from featstream.sources.values import EXACT_IN_FLOAT

__all__ = [
    "NOTHING",
    "Progress",
    "merge",
    "new_folder",
    "smallest_dtype",
    "write_blocks",
    "write_store",
]

Progress = Callable[[str, int, int], object]  # stage, done, of how many
_DENSE_VALUES = 1 << 20
Compressed = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[Any]]


def write_store(
    path: str | os.PathLike[str],
    source: Source,
    y: ArrayLike | None = None,
    *,
    progress: Progress | None = None,
) -> None:
    r"""Write the columns of a source, and a target, to a column store.

    Parameters
    ----------
    path : str or path
        Folder to make, by custom ``NAME.cols``. It appears whole or not at all.
    source : Source
        Where the columns come from.
    y : array-like of shape (n_samples,), optional
        The target: numbers or words.
    progress : callable, optional
        Called after each block with "writing", the columns written, and how many
        there are (0 if nobody knows).

    Raises
    ------
    ParameterError
        If there is something at ``path`` already.
    """
    total = source.n_features or 0
    with new_folder(path) as folder:
        write_blocks(
            folder,
            source.blocks(),
            y,
            samples=sample_names_of(source),
            total=total,
            progress=progress,
        )


@contextlib.contextmanager
def new_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A folder to fill, next to ``path``, that takes its name if all goes well."""
    path = Path(path)
    if path.exists() or path.is_symlink():
        raise ParameterError(f"{path} exists. Remove it, or choose another name.")
    parent = path.absolute().parent
    folder = Path(tempfile.mkdtemp(".tmp", f".{path.name}.", parent))
    advice = "nothing was kept of the store. Make room, or choose another disk"
    try:
        with explain_full_disk(path, advice):
            yield folder
            folder.chmod(0o777 & ~_umask())
            _sync_folder(folder)
            folder.rename(path)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    _sync_folder(parent)


def write_blocks(
    folder: Path,
    blocks: Iterator[Block],
    y: ArrayLike | None,
    *,
    samples: Sequence[str] | None = None,
    dtype: str | None = None,
    total: int = 0,
    progress: Progress | None = None,
) -> None:
    """Fill a folder with a store.

    With ``dtype`` the blocks are trusted: of this type, in order, without zeros.
    """
    blocks = (block for block in blocks if block.n_columns)
    first = next(blocks, None)
    if first is None:
        raise DataError("The source has no columns. There is nothing to store.")
    target = None if y is None else _check_target(y, first.n_samples)
    with contextlib.ExitStack() as stack:
        writer = _Writer(folder, first, dtype, stack)
        for block in chain([first], blocks):
            writer.write(block)
            if progress is not None:
                progress("writing", writer.n_features, max(total, writer.n_features))
        writer.finish(target, samples)


class _Writer:
    """Files of a store in the making.

    Values whose type is not known in advance are written with 8 bytes each, as
    float64, int64 or uint64, and again in the smallest type once all are known.
    """

    def __init__(
        self, folder: Path, first: Block, dtype: str | None, stack: contextlib.ExitStack
    ) -> None:
        self.n_features = 0
        self._folder = folder
        self._stack = stack
        self._is_sparse = first.is_sparse
        self._n_samples = first.n_samples
        self._dtype = dtype
        self._nature = NOTHING
        self._runs: list[tuple[str, int, int]] = []  # type, columns, values
        self._is_wide = False  # some integers are not exact as floats
        self._names: tuple[ArrayWriter, ArrayWriter] | None = None
        self._nominal: ArrayWriter | None = None
        written = dtype.replace(ONES, "|u1") if dtype else "<f8"
        if self._is_sparse:
            self._indptr = self._open("indptr", "<i8")
            self._indptr.append(np.zeros(1, np.int64))
            self._rows = self._open("rows", "<i4")
            self._values = self._open("values", written)
        else:
            self._values = self._open("columns", written, self._n_samples)

    def _open(self, name: str, dtype: str, n_rows: int | None = None) -> ArrayWriter:
        writer = ArrayWriter(self._folder / f"{name}.npy", dtype, n_rows)
        self._stack.callback(writer.abandon)
        return writer

    def write(self, block: Block) -> None:
        """Append a block."""
        if block.n_samples != self._n_samples:
            raise DataError(
                f"Feature {block.name(0)!r} has {block.n_samples} values but the first "
                f"one has {self._n_samples}. Every feature needs one value per sample."
            )
        if block.is_sparse and self._dtype is None:
            indptr, rows, _ = _as_sparse(block.columns)
            bad = find_bad_column(indptr, rows, self._n_samples)
            if bad >= 0:
                raise DataError(
                    f"The rows of sparse feature {block.name(bad)!r} do not increase "
                    f"within [0, {self._n_samples}). Call sum_duplicates() on it."
                )
        if self._is_sparse:
            self._write_sparse(block)
        else:
            # A sparse block may be far larger when it is dense: some columns at a time.
            width = block.n_columns
            if block.is_sparse:
                width = max(1, _DENSE_VALUES // self._n_samples)
            for begin in range(0, block.n_columns, width):
                part = block.part(begin, min(begin + width, block.n_columns))
                self._write_values(_as_dense(part.columns), part.n_columns)
        self._write_names(block)
        self._write_nominal(block)
        self.n_features += block.n_columns

    def _write_sparse(self, block: Block) -> None:
        indptr, rows, values = _as_sparse(block.columns)
        if self._dtype is None:
            indptr, rows, values = _without_zeros(indptr, rows, values)
        self._indptr.append(indptr[1:] + self._rows.size)
        self._rows.append(rows)
        self._write_values(values, block.n_columns)

    def _write_values(self, values: NDArray[Any], n_columns: int) -> None:
        if self._dtype is not None:
            if self._dtype != ONES:
                self._values.append(values)
            return
        values = values.ravel(order="F")
        written = _eight_bytes(values)
        nature = describe_values(values)
        self._nature = merge(self._nature, nature)
        if values.dtype.kind in "iu":
            reach = max(nature.highest, -nature.lowest)
            self._is_wide |= reach >= EXACT_IN_FLOAT
        self._values.append(values.astype(written, copy=False).view("<f8"))
        if self._runs and self._runs[-1][0] == written:
            _, more_columns, more = self._runs.pop()
            self._runs.append((written, n_columns + more_columns, values.size + more))
        else:
            self._runs.append((written, n_columns, values.size))

    def _write_names(self, block: Block) -> None:
        if block.names is None and self._names is None:
            return
        names = [block.name(i) for i in range(block.n_columns)]
        if self._names is None:
            self._names = self._open("names", "|u1"), self._open("name_ends", "<i8")
            names = [feature_name(j) for j in range(self.n_features)] + names
        _append_words(*self._names, names)

    def _write_nominal(self, block: Block) -> None:
        if block.nominal is None and self._nominal is None:
            return
        if self._nominal is None:
            self._nominal = self._open("nominal", "|b1")
            self._nominal.append(np.zeros(self.n_features, np.bool_))
        if block.nominal is None:
            self._nominal.append(np.zeros(block.n_columns, np.bool_))
        else:
            self._nominal.append(block.nominal)

    def _choose_dtype(self) -> tuple[str, bool]:
        """The smallest type that holds every value, and whether columns differ in it.

        No type holds both fractions and integers beyond 2**53: such a store says of
        each column which of the three types of 8 bytes it has.
        """
        if self._dtype is not None:
            return self._dtype, False
        types = {dtype for dtype, _, _ in self._runs}
        if not self._is_wide:
            dtype = smallest_dtype(self._nature, is_integer="<f8" not in types)
            return "|u1" if dtype == ONES and not self._is_sparse else dtype, False
        if len(types) == 1:
            return types.pop(), False
        if "<f8" not in types and self._nature.lowest >= 0:
            return "<u8", False
        return "<f8", True

    def finish(self, y: NDArray[Any] | None, samples: Sequence[str] | None) -> None:
        """Close all files; then describe them."""
        dtype, is_mixed = self._choose_dtype()
        types = {written for written, _, _ in self._runs}
        if types and dtype != ONES and not is_mixed and types != {dtype}:
            self._values = self._values.convert(dtype, self._runs)
            self._stack.callback(self._values.abandon)
        elif types == {dtype}:
            self._values.dtype = np.dtype(dtype)
        writers = [self._values]
        if self._is_sparse:
            writers += [self._indptr, self._rows]
        if dtype == ONES:
            writers.remove(self._values)
            self._values.abandon()
            self._values.path.unlink()
        if self._names is not None:
            writers += self._names
        if self._nominal is not None:
            writers.append(self._nominal)
        if is_mixed:
            kinds = self._open("kinds", "|u1")
            for written, n_columns, _ in self._runs:
                kinds.append(np.full(n_columns, KINDS.index(written), np.uint8))
            writers.append(kinds)
        n_sample_bytes = None
        if samples is not None:
            names, ends = self._open("samples", "|u1"), self._open("sample_ends", "<i8")
            _append_words(names, ends, list(samples))
            writers += [names, ends]
            n_sample_bytes = names.size
        target: dict[str, Any] | None = None
        if y is not None:
            is_words = y.dtype.kind == "U"
            labels = self._open("y", "|u1" if is_words else y.dtype.str)
            writers.append(labels)
            if is_words:
                ends = self._open("y_ends", "<i8")
                writers.append(ends)
                _append_words(labels, ends, y.tolist())
                target = {"n_bytes": labels.size}
            else:
                labels.append(y)
                target = {"dtype": y.dtype.str}
        for writer in writers:
            writer.close()
        is_new = is_mixed or "<u8" in (dtype, (target or {}).get("dtype"))
        meta = {
            "format": FORMAT,
            "version": VERSION if is_new else 1,  # that the first featstream reads
            "n_samples": self._n_samples,
            "n_features": self.n_features,
            "n_entries": self._rows.size if self._is_sparse else None,
            "dtype": dtype,
            "names": None if self._names is None else self._names[0].size,
            "nominal": self._nominal is not None,
            "y": target,
            "checksums": {w.path.name: f"{w.checksum:08x}" for w in writers},
        }
        if is_mixed:
            meta["kinds"] = True
        if n_sample_bytes is not None:
            meta["samples"] = n_sample_bytes
        content = json.dumps(meta, sort_keys=True).encode()
        meta["fingerprint"] = hashlib.sha256(content).hexdigest()
        meta["creator"] = f"featstream {_version()}"
        with open(self._folder / "meta.json", "x", encoding="utf-8") as file:
            json.dump(meta, file, indent=1)
            file.flush()
            os.fsync(file.fileno())


NOTHING = Nature(is_whole=True, is_single=True, lowest=np.inf, highest=-np.inf)


def merge(a: Nature, b: Nature) -> Nature:
    """Nature of the values of two arrays together."""
    return Nature(
        a.is_whole and b.is_whole,
        a.is_single and b.is_single,
        min(a.lowest, b.lowest),
        max(a.highest, b.highest),
    )


def smallest_dtype(nature: Nature, *, is_integer: bool = False) -> str:
    """Smallest type that holds values of this nature exactly, or ``ONES``.

    Examples
    --------
    >>> smallest_dtype(Nature(True, True, -1, 200))
    '<i2'
    """
    if nature.is_whole:
        if nature.lowest >= 1 and nature.highest <= 1:
            return ONES
        for dtype in ("|u1", "|i1", "<u2", "<i2", "<i4"):
            limits = np.iinfo(dtype)
            if limits.min <= nature.lowest and nature.highest <= limits.max:
                return dtype
        if is_integer:
            return "<i8"
    return "<f4" if nature.is_single else "<f8"


def _eight_bytes(values: NDArray[Any]) -> str:
    """The type of 8 bytes that holds some numbers exactly."""
    if values.dtype.kind not in "biuf":
        raise DataTypeError(
            f"A column store holds numbers. Got columns of type {values.dtype}."
        )
    if values.dtype.kind == "f":
        return "<f8"
    return "<u8" if _exceeds_int64(values) else "<i8"


def _exceeds_int64(values: NDArray[Any]) -> bool:
    is_unsigned = values.dtype.kind == "u" and values.dtype.itemsize == 8
    return is_unsigned and values.size > 0 and int(values.max()) >= 2**63


def _as_dense(columns: NDArray[Any] | SparseColumns) -> NDArray[Any]:
    if isinstance(columns, SparseColumns):
        indptr, rows, values = _as_sparse(columns)
        packed = csc_array((values, rows, indptr), shape=columns.shape)
        return np.asarray(packed.toarray(order="F"))
    return by_column(columns)


def _as_sparse(
    columns: NDArray[Any] | SparseColumns,
) -> Compressed:
    """Start of each column, from 0, rows and values."""
    if isinstance(columns, SparseColumns):
        first, last = columns.indptr[[0, -1]]
        indptr = columns.indptr - first
        rows, values = columns.rows[first:last], columns.values[first:last]
    else:
        packed = csc_array(columns)
        indptr = packed.indptr.astype(np.int64)
        rows, values = packed.indices.astype(np.int32), packed.data
    return indptr, rows, values


def _without_zeros(
    indptr: NDArray[np.int64], rows: NDArray[np.int32], values: NDArray[Any]
) -> Compressed:
    is_stored = values != 0
    if not is_stored.all():
        indptr = np.concatenate([[0], np.cumsum(is_stored)])[indptr]
        rows, values = rows[is_stored], values[is_stored]
    return indptr, rows, values


def _append_words(text: ArrayWriter, ends: ArrayWriter, words: list[str]) -> None:
    encoded = [word.encode("utf-8") for word in words]
    lengths = np.array([len(word) for word in encoded], np.int64)
    ends.append(text.size + np.cumsum(lengths))
    text.append(np.frombuffer(b"".join(encoded), np.uint8))


def _check_target(y: ArrayLike, n_samples: int) -> NDArray[Any]:
    target = np.asarray(y)
    if target.dtype == object and all(isinstance(label, str) for label in target.flat):
        target = target.astype(np.str_)
    if target.dtype.kind not in "biufU":
        raise DataTypeError(
            f"The target must be numbers or words. Got values of type {target.dtype}."
        )
    if target.shape != (n_samples,):
        raise DataError(
            f"The target has shape {target.shape} but the features have {n_samples} "
            f"values. It needs shape ({n_samples},)."
        )
    if target.dtype.kind in "iuf" and (
        target.dtype.str not in DTYPES or target.dtype == np.uint64
    ):
        target = target.astype(_eight_bytes(target))
    return target


def _sync_folder(folder: Path) -> None:
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _version() -> str:
    try:
        return version("featstream")
    except PackageNotFoundError:  # run from a checkout that is not installed
        return "unknown"


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
