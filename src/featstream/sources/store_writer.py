"""Writing a column store, block by block."""

from __future__ import annotations

import contextlib
import glob
import hashlib
import json
import os
import secrets
import shutil
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock
from numpy.typing import ArrayLike, DTypeLike, NDArray

import featstream
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
from featstream.sources import store
from featstream.sources.combined import real_names
from featstream.sources.kernels import csc_from_rows as csc
from featstream.sources.kernels.transpose import by_column
from featstream.sources.memory import in_storage
from featstream.sources.values import EXACT_IN_FLOAT

Progress = Callable[[str, int, int], object]  # stage, amount done, total
Runs = list[tuple[str, int, int]]  # type, number of columns, number of values

_LOCK = "lock"

NO_VALUES = csc.ValueFacts(
    is_whole=True, is_single=True, lowest=np.inf, highest=-np.inf
)


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
        Folder to make, usually ``NAME.cols``. It appears complete or not at all.
    source : Source
        Where the columns come from.
    y : array-like of shape (n_samples,), optional
        The target: numbers or words.
    progress : callable, optional
        Called after each block with "writing", the number of columns written and
        the total.

    Raises
    ------
    ParameterError
        If ``path`` exists.
    """
    samples, total = real_names(sample_names_of(source)), source.n_features or 0
    with new_folder(path) as folder:
        write_blocks(
            folder, source.blocks(), y, samples=samples, total=total, progress=progress
        )


@contextlib.contextmanager
def new_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A folder to fill, next to ``path``, that takes its name on success."""
    path = Path(path)
    if path.exists() or path.is_symlink():
        raise ParameterError(f"{path} exists. Remove it, or choose another name.")
    parent = path.absolute().parent
    _clear_abandoned(parent, path.name)
    folder = parent / f".{path.name}.{secrets.token_hex(4)}.tmp"
    folder.mkdir()
    # A process that dies frees its lock: by that the next one knows the folder is dead.
    lock = FileLock(folder / _LOCK, timeout=0)
    lock.acquire()
    advice = "nothing was kept of the store. Make room, or choose another disk"
    try:
        with explain_full_disk(path, advice):
            yield folder
            lock.release()
            (folder / _LOCK).unlink(missing_ok=True)
            sync_folder(folder)
            folder.rename(path)
    except BaseException:
        lock.release()
        shutil.rmtree(folder, ignore_errors=True)
        raise
    sync_folder(parent)


def _clear_abandoned(parent: Path, name: str) -> None:
    """Remove folders in which a writer of the same store was killed."""
    for folder in parent.glob(f".{glob.escape(name)}.*.tmp"):
        if not (folder / _LOCK).is_file():
            continue
        lock = FileLock(folder / _LOCK, timeout=0)
        with contextlib.suppress(OSError):  # Timeout, too: it is being written
            lock.acquire()
            lock.release()
            shutil.rmtree(folder, ignore_errors=True)


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

    With ``dtype`` the blocks are trusted: of this type, sorted, without zeros.
    """
    blocks = (block for block in blocks if block.n_columns)
    first = next(blocks, None)
    if first is None:
        raise DataError("The source has no columns. There is nothing to store.")
    target = None if y is None else _check_target(y, first.n_samples)
    writer = _Writer(folder, first, dtype)
    try:
        for block in chain([first], blocks):
            writer.write(block)
            if progress is not None:
                progress("writing", writer.n_features, max(total, writer.n_features))
        writer.finish(target, samples)
    finally:
        for file in writer.files.values():
            file.file.close()


class _Writer:
    """Files of a store in the making.

    Values whose type is not known in advance are written with 8 bytes each, as
    float64, int64 or uint64, and again in the smallest type once all are known.
    """

    def __init__(self, folder: Path, first: Block, dtype: str | None) -> None:
        self.n_features = 0
        self._folder = folder
        self._is_sparse = first.is_sparse
        self._n_samples = first.n_samples
        self._dtype = dtype
        self._facts = NO_VALUES
        self._runs: Runs = []
        self._is_wide = False  # some integers are not exact as floats
        self.files: dict[str, ArrayWriter] = {}
        written = dtype.replace(store.ONES, "|u1") if dtype else "<f8"
        if self._is_sparse:
            self._file("indptr", "<i8").append(np.zeros(1, np.int64))
            self._rows = self._file("rows", "<i4")
            self._values = self._file("values", written)
        else:
            self._values = self._file("columns", written, self._n_samples)

    def _file(self, name: str, dtype: str, n_rows: int | None = None) -> ArrayWriter:
        """The file of this name, created if need be."""
        if name not in self.files:
            path = self._folder / f"{name}.npy"
            self.files[name] = ArrayWriter(path, dtype, n_rows)
        return self.files[name]

    def _write_words(self, text: str, ends: str, words: Sequence[str]) -> int:
        """Append words to a pair of files; return the size of the text."""
        encoded = [word.encode("utf-8") for word in words]
        lengths = np.array([len(word) for word in encoded], np.int64)
        file = self._file(text, "|u1")
        self._file(ends, "<i8").append(file.size + np.cumsum(lengths))
        file.append(np.frombuffer(b"".join(encoded), np.uint8))
        return file.size

    def write(self, block: Block) -> None:
        """Append a block."""
        if block.n_samples != self._n_samples:
            raise DataError(
                f"Feature {block.name(0)!r} has {block.n_samples} values but the first "
                f"one has {self._n_samples}. Every feature needs one value per sample."
            )
        if isinstance(block.columns, SparseColumns) and self._dtype is None:
            stored = block.columns.alone()
            bad = csc.find_bad_column(stored.indptr, stored.rows, self._n_samples)
            if bad >= 0:
                raise DataError(
                    f"The rows of sparse feature {block.name(bad)!r} do not increase "
                    f"within [0, {self._n_samples}). Call sum_duplicates() on it."
                )
        for part in in_storage(block, is_sparse=self._is_sparse):
            if isinstance(part.columns, SparseColumns):
                self._write_sparse(part.columns.alone())
            else:
                self._write_values(by_column(part.columns), part.n_columns)
        if block.names is not None or "names" in self.files:
            names = [block.name(i) for i in range(block.n_columns)]
            if "names" not in self.files:
                names = [feature_name(j) for j in range(self.n_features)] + names
            self._write_words("names", "name_ends", names)
        if block.nominal is not None or "nominal" in self.files:
            file = self._file("nominal", "|b1")
            file.append(np.zeros(self.n_features - file.size, np.bool_))
            no_flags = np.zeros(block.n_columns, np.bool_)
            file.append(no_flags if block.nominal is None else block.nominal)
        self.n_features += block.n_columns

    def _write_sparse(self, stored: SparseColumns) -> None:
        indptr, rows, values = stored.indptr, stored.rows, stored.values
        is_stored = values != 0
        if self._dtype is None and not is_stored.all():
            indptr = np.concatenate([[0], np.cumsum(is_stored)])[indptr]
            rows, values = rows[is_stored], values[is_stored]
        self.files["indptr"].append(indptr[1:] + self._rows.size)
        self._rows.append(rows)
        self._write_values(values, stored.shape[1])

    def _write_values(self, values: NDArray[Any], n_columns: int) -> None:
        if self._dtype is not None:
            if self._dtype != store.ONES:
                self._values.append(values)
            return
        written = _eight_bytes(values)
        values = values.ravel(order="F").astype(written, copy=False)
        facts = csc.describe_values(values)  # compiled for three types at most
        self._facts = merge_facts(self._facts, facts)
        if written != "<f8":
            self._is_wide |= max(facts.highest, -facts.lowest) >= EXACT_IN_FLOAT
        self._values.append(values.view("<f8"))
        self._runs.append((written, n_columns, values.size))

    def _choose_dtype(self) -> tuple[str, bool]:
        """The smallest type that holds every value, and whether columns differ in it.

        No type holds both fractions and integers beyond 2**53: such a store records for
        each column which of the three types of 8 bytes it has.
        """
        if self._dtype is not None:
            return self._dtype, False
        types = {dtype for dtype, _, _ in self._runs}
        if not self._is_wide:
            dtype = smallest_dtype(self._facts, is_integer="<f8" not in types)
            is_dense = not self._is_sparse
            return "|u1" if is_dense and dtype == store.ONES else dtype, False
        if len(types) == 1:
            return types.pop(), False
        if "<f8" not in types and self._facts.lowest >= 0:
            return "<u8", False
        return "<f8", True

    def finish(self, y: NDArray[Any] | None, samples: Sequence[str] | None) -> None:
        """Close all files; then describe them."""
        dtype, is_mixed = self._choose_dtype()
        name = self._values.path.stem
        if dtype == store.ONES:
            self.files.pop(name).file.close()
            self._values.path.unlink()
        elif self._runs and not is_mixed:
            self.files[name] = self._values.convert(dtype, self._runs)
        extra: dict[str, Any] = {}
        if is_mixed:
            extra["kinds"] = True
            for written, n_columns, _ in self._runs:
                kind = np.full(n_columns, store.KINDS.index(written), np.uint8)
                self._file("kinds", "|u1").append(kind)
        if samples is not None:
            extra["samples"] = self._write_words("samples", "sample_ends", samples)
        target: dict[str, Any] | None = None
        if y is not None and y.dtype.kind == "U":
            target = {"n_bytes": self._write_words("y", "y_ends", y.tolist())}
        elif y is not None:
            target = {"dtype": y.dtype.str}
            self._file("y", y.dtype.str).append(y)
        for file in self.files.values():
            file.close()
        is_new = is_mixed or "<u8" in (dtype, (target or {}).get("dtype"))
        meta = {
            "format": store.FORMAT,
            "version": store.VERSION if is_new else 1,  # of the first featstream
            "n_samples": self._n_samples,
            "n_features": self.n_features,
            "n_entries": self._rows.size if self._is_sparse else None,
            "dtype": dtype,
            "names": self.files["names"].size if "names" in self.files else None,
            "nominal": "nominal" in self.files,
            "y": target,
            "checksums": {
                f.path.name: f"{f.checksum:08x}" for f in self.files.values()
            },
            **extra,
        }
        content = json.dumps(meta, sort_keys=True).encode()
        meta["fingerprint"] = hashlib.sha256(content).hexdigest()
        meta["creator"] = f"featstream {featstream.__version__}"
        meta["chunks"] = self._write_chunk_checksums()
        with open(self._folder / "meta.json", "x", encoding="utf-8") as description:
            json.dump(meta, description, indent=1)
            description.flush()
            os.fsync(description.fileno())

    def _write_chunk_checksums(self) -> dict[str, Any]:
        """Write the checksums of the chunks of all files; where those of each begin."""
        begins: dict[str, int] = {}
        joined: list[int] = []
        for file in self.files.values():
            begins[file.path.name] = len(joined)
            joined += file.chunk_checksums
        written = ArrayWriter(self._folder / "chunks.npy", "<u4")
        written.append(np.array(joined, np.uint32))
        written.close()
        return {
            "size": store.CHECKED_BYTES,
            "begins": begins,
            "n": len(joined),
            "checksum": f"{written.checksum:08x}",
        }


def merge_facts(a: csc.ValueFacts, b: csc.ValueFacts) -> csc.ValueFacts:
    """Facts about the values of two arrays together."""
    return csc.ValueFacts(
        a.is_whole and b.is_whole,
        a.is_single and b.is_single,
        min(a.lowest, b.lowest),
        max(a.highest, b.highest),
    )


def smallest_dtype(facts: csc.ValueFacts, *, is_integer: bool = False) -> str:
    """Smallest type that holds such values exactly, or ``ONES``."""
    if facts.is_whole:
        if facts.lowest >= 1 and facts.highest <= 1:
            return store.ONES
        for dtype in ("|u1", "|i1", "<u2", "<i2", "<i4"):
            limits = np.iinfo(dtype)
            if limits.min <= facts.lowest and facts.highest <= limits.max:
                return dtype
        if is_integer:
            return "<i8"
    return "<f4" if facts.is_single else "<f8"


def _eight_bytes(values: NDArray[Any]) -> str:
    """The type of 8 bytes that holds some numbers exactly."""
    if values.dtype.kind not in "biuf":
        raise DataTypeError(
            f"A column store holds numbers. Got columns of type {values.dtype}."
        )
    if values.dtype.kind == "f":
        return "<f8"
    is_large = values.dtype == np.uint64 and values.size and int(values.max()) >= 2**63
    return "<u8" if is_large else "<i8"


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
        target.dtype.str not in store.DTYPES or target.dtype == np.uint64
    ):
        target = target.astype(_eight_bytes(target))
    return target


def sync_folder(path: Path) -> None:
    """Make a rename in a folder last through a power cut."""
    if os.name == "posix":
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


class ArrayWriter:
    """A ``.npy`` file that grows; by columns of length ``n_rows``, if that is given."""

    def __init__(self, path: Path, dtype: DTypeLike, n_rows: int | None = None) -> None:
        self.path = path
        self.dtype = np.dtype(dtype)
        self.n_rows = n_rows
        self.size = 0
        self.checksum = 0
        self.chunk_checksums: list[int] = []
        self._rest = bytearray()  # what has been written of the next chunk
        self.file = open(path, "xb")  # noqa: SIM115 - closed by close()
        self.file.write(bytes(store.HEADER_BYTES))

    def append(self, values: NDArray[Any]) -> None:
        """Write values after the previous ones."""
        data = np.ascontiguousarray(values.ravel(order="F"), self.dtype)
        self.checksum = zlib.crc32(data, self.checksum)
        self._add_chunks(data.view(np.uint8))
        self.size += data.size
        self.file.write(data)

    def _add_chunks(self, data: NDArray[np.uint8]) -> None:
        """Add the checksums of the chunks that these bytes complete."""
        while data.size:
            part = data[: store.CHECKED_BYTES - len(self._rest)]
            data = data[part.size :]
            if self._rest or part.size < store.CHECKED_BYTES:
                self._rest += part.tobytes()
                part = np.frombuffer(self._rest, np.uint8)
            if part.size == store.CHECKED_BYTES:
                self.chunk_checksums.append(store.checksum_of(part))
                self._rest = bytearray()

    def close(self) -> None:
        """Write the header and synchronise the file with the disk."""
        if self._rest:
            rest = np.frombuffer(self._rest, np.uint8)
            self.chunk_checksums.append(store.checksum_of(rest))
        shape: tuple[int, ...] = (self.size,)
        if self.n_rows is not None:
            shape = (self.n_rows, self.size // self.n_rows if self.n_rows else 0)
        self.file.seek(0)
        self.file.write(store.npy_header(self.dtype, shape))
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.close()

    def convert(self, dtype: str, runs: Iterable[tuple[str, int, int]]) -> ArrayWriter:
        """Write the array again as another type; ``runs`` says how it was written."""
        if {written for written, _, _ in runs} == {dtype}:
            self.dtype = np.dtype(dtype)
            return self
        self.file.close()
        old = self.path.rename(self.path.with_suffix(".old"))
        new = ArrayWriter(self.path, dtype, self.n_rows)
        with open(old, "rb") as file:
            file.seek(store.HEADER_BYTES)
            for written, _, n_values in runs:
                for begin in range(0, n_values, store.CHUNK_BYTES // 8):
                    n = min(store.CHUNK_BYTES // 8, n_values - begin)
                    new.append(np.fromfile(file, written, n))
        old.unlink()
        return new
