"""The column store: a folder of plain ``.npy`` files, mapped when read.

NAME.cols/
meta.json       what the rest is; written last
indptr.npy      sparse columns: int64, where each column begins and ends
rows.npy        int32, row of each entry
values.npy      smallest type that is exact; absent if all are 1
columns.npy     dense columns instead: column-major
names.npy       optional: UTF-8 of all names, end to end, and
name_ends.npy   int64, where each name ends
nominal.npy     optional: bool, whether a column holds codes of categories
kinds.npy       optional: uint8, whether the 8 bytes of a column's values are float64
                (0), int64 (1) or uint64 (2)
samples.npy     optional: UTF-8 of the names of samples, end to end, with
sample_ends.npy
y.npy           optional: the target; UTF-8 if it is words, with
y_ends.npy
chunks.npy      optional: uint32, `checksum_of` each MiB of each other file

What is read is compared with these checksums, a chunk when it is first needed. In a
store without them, of an earlier version, whole files are compared before the first
column is read.
"""

from __future__ import annotations

import io
import json
import mmap
import os
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import DTypeLike, NDArray

from featstream.errors import DataError, ParameterError, check_count, printable
from featstream.protocols import Block, SparseColumns
from featstream.sources.kernels.csc_from_rows import find_bad_column
from featstream.sources.memory import sparse_stop
from featstream.sources.open import Dataset, PathLike
from featstream.sources.text_file import refuse_cut_file, release_pages
from featstream.sources.values import Names

FORMAT = "featstream columns"
VERSION = 2  # of a store with kinds or uint64; any other is of version 1
ONES = "ones"  # in place of a type: every entry is 1 and none is written
DTYPES = ("|u1", "|i1", "<u2", "<i2", "<i4", "<i8", "<u8", "<f4", "<f8")
KINDS = ("<f8", "<i8", "<u8")  # what the bits of a column may be, by their number

_TARGETS = (*DTYPES, "|b1")
CHECKED_BYTES = 1 << 20  # of a file, for each checksum
_SUMS = 128
HEADER_BYTES = 128  # of an .npy file; numpy leaves room for the length to grow
CHUNK_BYTES = 16 << 20

_MAX_META = 1 << 20
_MAX_VALUES = 1 << 24  # of a dense block, unless one column is longer


def open_store(path: PathLike, *, verify: bool = True) -> StoreSource:
    r"""Open a column store.

    Parameters
    ----------
    path : str or path
        Folder made by `write_store` or `convert`.
    verify : bool, default=True
        Whether everything that is read is compared with its checksum. It takes a
        fraction of a second per gigabyte.

    Returns
    -------
    store : StoreSource
        A source; nothing is read but the description.

    Raises
    ------
    DataError
        If the folder is not a store, is damaged, or is of a later version.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "small.svm").write_text("1 1:0.5 3:2\n-1 2:1\n")
    >>> from featstream.sources.rows_to_columns import convert
    >>> store = convert(folder / "small.svm", folder / "small.cols")
    >>> store
    StoreSource(2 samples · 3 features · 3 entries · float32)
    >>> open_store(folder / "small.cols").y
    array([ 1., -1.])
    """
    return StoreSource(path, verify=verify)


def open_cols(path: PathLike, target: str | None = None) -> Dataset:
    """Open a column store; see `featstream.sources.open_store`."""
    if target is not None:
        raise ParameterError(
            f"A column store holds its own target. Got target={target!r} for {path}."
        )
    store = open_store(path)
    return Dataset(store, store.y, store.names)


class StoreSource:
    """Columns of a store, as a source.

    Blocks are views of the mapped files, whose memory is released when the next block
    is read: it does not grow with the number of columns.

    Attributes
    ----------
    path : Path
        The folder.
    n_samples, n_features : int
        Shape of the data.
    n_entries : int or None
        Stored entries; None if the columns are dense.
    dtype : dtype
        Type of the values.
    sample_names : list of str or None
        Names of the samples.
    fingerprint : str
        Changes with any value, name or label.
    """

    def __init__(
        self,
        path: PathLike,
        *,
        block_columns: int = 2**14,
        block_entries: int = 2**22,
        verify: bool = True,
    ) -> None:
        self.path = Path(path)
        self.block_columns, self.block_entries = block_columns, block_entries
        meta = _read_meta(self.path)
        self._chunks = _read_chunks(self.path, meta) if verify else None
        self._is_unverified = verify and self._chunks is None
        self.n_samples: int = meta["n_samples"]
        self.n_features: int = meta["n_features"]
        self.n_entries: int | None = meta["n_entries"]
        self.fingerprint: str = meta["fingerprint"]
        is_ones = meta["dtype"] == ONES
        self.dtype = np.dtype(np.uint8 if is_ones else meta["dtype"])
        self._meta = meta
        self._values: MappedArray | None = None
        if self.n_entries is None:
            self._columns = self._map("columns", self.dtype, *self.shape)
        else:
            self._indptr = self._map("indptr", "<i8", self.n_features + 1)
            self._rows = self._map("rows", "<i4", self.n_entries)
            if not is_ones:
                self._values = self._map("values", self.dtype, self.n_entries)
            if self._indptr.array[[0, -1]].tolist() != [0, self.n_entries]:
                raise damaged(self._indptr.path, "it does not span the entries")
        self.names: Names | None = None
        if meta["names"] is not None:
            self._text = self._map("names", "|u1", meta["names"])
            self._ends = self._map("name_ends", "<i8", self.n_features)
            self.names = Names(self._text.array, self._ends.array)
        self._nominal = (
            self._map("nominal", "|b1", self.n_features) if meta["nominal"] else None
        )
        self._kinds: NDArray[np.uint8] | None = None
        if meta.get("kinds"):
            kinds = self._map("kinds", "|u1", self.n_features)
            kinds.check(0, self.n_features)
            self._kinds = kinds.array
            if (self._kinds >= len(KINDS)).any():
                raise damaged(self.path / "kinds.npy", "it names an unknown type")

    def reopener(self) -> Callable[[], StoreSource]:
        """A function that opens the store again in another process."""
        return partial(
            StoreSource,
            os.path.abspath(self.path),
            block_columns=self.block_columns,
            block_entries=self.block_entries,
            verify=self._chunks is not None,  # not the whole store on every worker
        )

    @property
    def shape(self) -> tuple[int, int]:
        """Number of samples and of features."""
        return self.n_samples, self.n_features

    @property
    def y(self) -> NDArray[Any] | None:
        """The target, if the store has one; words as str."""
        target = self._meta["y"]
        if target is None:
            return None
        if "n_bytes" not in target:
            labels = self._map("y", target["dtype"], self.n_samples)
            labels.check(0, self.n_samples)
            return labels.array.copy()
        return np.array(self._read_words("y", "y_ends", target["n_bytes"]), np.str_)

    @property
    def sample_names(self) -> list[str] | None:
        """Names of the samples, if the store has them."""
        n_bytes = self._meta.get("samples")
        if n_bytes is None:
            return None
        return self._read_words("samples", "sample_ends", n_bytes)

    def _read_words(self, text: str, ends: str, n_bytes: int) -> list[str]:
        words = self._map(text, "|u1", n_bytes)
        bounds = self._map(ends, "<i8", self.n_samples)
        words.check(0, n_bytes)
        bounds.check(0, self.n_samples)
        return list(Names(words.array, bounds.array))

    @property
    def text_columns(self) -> list[int]:
        """Positions of columns of text or categories."""
        flags = self._nominal
        return [] if flags is None else np.flatnonzero(flags.array).tolist()

    def blocks(self, start: int = 0) -> Iterator[Block]:
        """Yield the columns from position ``start`` on; damaged ones are an error."""
        check_count(start, "start", least=0, most=self.n_features)
        if self._is_unverified:
            self.verify()
            self._is_unverified = False
        columns: NDArray[Any] | SparseColumns
        data = [self._columns] if self.n_entries is None else [self._rows, self._indptr]
        if self._values is not None:
            data.append(self._values)
        while start < self.n_features:
            for file in data:
                file.refuse_cut()
            stop, dtype = self._end_of_block(start)
            self._check(start, stop)
            if self.n_entries is None:
                columns = self._columns.array[:, start:stop].view(dtype)
            else:
                columns = self._sparse_columns(start, stop, dtype)
            nominal = None if self._nominal is None else self._nominal.array[start:stop]
            if nominal is not None and not nominal.any():
                nominal = None
            names = None if self.names is None else self.names[start:stop]
            try:
                yield Block(columns, start, names, nominal)
            finally:  # also if no more are read
                self._forget(start, stop)
            start = stop

    def verify(self) -> None:
        """Compare the checksum of every file, without reading any column."""
        for name, checksum in self._meta["checksums"].items():
            path = self.path / Path(name).name
            found = 0
            with open(path, "rb") as file:
                file.seek(HEADER_BYTES)
                while chunk := file.read(CHUNK_BYTES):
                    found = zlib.crc32(chunk, found)
            if f"{found:08x}" != checksum:
                raise damaged(path, "checksum mismatch")

    def _end_of_block(self, start: int) -> tuple[int, Any]:
        """Where a block that begins at ``start`` ends, and the type of its columns."""
        if self.n_entries is None:
            n = max(1, min(self.block_columns, _MAX_VALUES // max(1, self.n_samples)))
            stop = min(start + n, self.n_features)
        else:
            last = min(start + self.block_columns, self.n_features)
            self._indptr.check(start, last + 1)
            limits = self.block_columns, self.block_entries
            stop = sparse_stop(self._indptr.array, start, *limits)
        if self._kinds is None:
            return stop, self.dtype
        kinds = self._kinds[start:stop]
        n = int(np.argmax(kinds != kinds[0])) or kinds.size
        return start + n, KINDS[kinds[0]]

    def _check(self, start: int, stop: int) -> None:
        """Compare the checksums of all that some columns are made of."""
        if self._nominal is not None:
            self._nominal.check(start, stop)
        if self.names is not None:
            self._ends.check(max(start - 1, 0), stop)
            begin = int(self._ends.array[start - 1]) if start else 0
            self._text.check(begin, int(self._ends.array[stop - 1]))
        if self.n_entries is None:
            self._columns.check(start * self.n_samples, stop * self.n_samples)
            return
        first, last = self._indptr.array[[start, stop]].tolist()
        if 0 <= first <= last <= self.n_entries:  # otherwise an error, further down
            self._rows.check(first, last)
            if self._values is not None:
                self._values.check(first, last)

    def _sparse_columns(self, start: int, stop: int, dtype: Any) -> SparseColumns:
        indptr = self._indptr.array[start : stop + 1]
        first, last = int(indptr[0]), int(indptr[-1])
        assert self.n_entries is not None
        if not 0 <= first <= last <= self.n_entries or (np.diff(indptr) < 0).any():
            raise damaged(self._indptr.path, f"columns {start} to {stop} overlap")
        indptr = indptr - first
        rows = self._rows.array[first:last]
        bad = find_bad_column(indptr, rows, self.n_samples)
        if bad >= 0:
            raise damaged(self._rows.path, f"bad rows in column {start + bad}")
        if self._values is None:
            values: NDArray[Any] = np.ones(last - first, np.uint8)
        else:
            values = self._values.array[first:last].view(dtype)
        return SparseColumns(indptr, rows, values, self.n_samples)

    def _forget(self, start: int, stop: int) -> None:
        if self.n_entries is None:
            self._columns.forget(start * self.n_samples, stop * self.n_samples)
        else:
            first, last = self._indptr.array[[start, stop]].tolist()
            self._indptr.forget(start, stop)
            self._rows.forget(first, last)
            if self._values is not None:
                self._values.forget(first, last)
        if self._nominal is not None:
            self._nominal.forget(start, stop)
        if self.names is not None:
            begin, end = self._ends.array[[max(start - 1, 0), stop - 1]].tolist()
            if 0 <= begin <= end <= self._text.array.size:
                self._text.forget(begin, end)
            self._ends.forget(start, stop)

    def _map(self, name: str, dtype: Any, *shape: int) -> MappedArray:
        mapped = MappedArray(self.path / f"{name}.npy", dtype, shape)
        if self._chunks is not None:
            mapped.compare_with(self._chunks.get(mapped.path.name))
        return mapped

    def __repr__(self) -> str:
        entries = "dense" if self.n_entries is None else f"{self.n_entries:,} entries"
        return (
            f"StoreSource({self.n_samples:,} samples · {self.n_features:,} features · "
            f"{entries} · {self.dtype}{' and integers' * (self._kinds is not None)})"
        )


def checksum_of(chunk: NDArray[np.uint8]) -> int:
    """Checksum of the bytes of a chunk: CRC-32 of 128 sums of its words.

    It takes a quarter of the time of a plain CRC-32, which is more than scoring a
    block takes where columns are compared with the target alone. Every change of one
    word shows; two changes do not only if they cancel out.
    """
    n_words = chunk.size // (8 * _SUMS) * _SUMS
    words = chunk[: 8 * n_words].view("<u8").reshape(-1, _SUMS)
    sums = words.sum(axis=0, dtype="<u8")
    return zlib.crc32(chunk[8 * n_words :], zlib.crc32(sums))


def damaged(path: Path, how: str) -> DataError:
    """The error for a file of a store that is not as it was written."""
    return DataError(f"{path} is damaged: {how}. Make the store again from its source.")


def _read_meta(path: Path) -> dict[str, Any]:
    """Description of a store, checked."""
    try:
        with open(path / "meta.json", "rb") as file:
            text = file.read(_MAX_META + 1)
    except (FileNotFoundError, NotADirectoryError) as error:
        if not path.exists():
            raise
        raise DataError(
            f"{path} is not a column store, or one that was never finished. Make it "
            "with `featstream convert`."
        ) from error
    try:
        meta: dict[str, Any] = json.loads(text)
        if len(text) > _MAX_META or meta["format"] != FORMAT:
            raise ValueError("not the description of a column store")
        version = meta["version"]
        if isinstance(version, int) and version > VERSION:
            raise DataError(
                f"{path} has version {version} of the format. This featstream reads "
                f"up to {VERSION}; install a newer one."
            )
        _check_meta(meta)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        if isinstance(error, DataError):
            raise
        raise damaged(path / "meta.json", printable(error)) from error
    return meta


def _read_chunks(path: Path, meta: dict[str, Any]) -> dict[str, NDArray[Any]] | None:
    """The checksums of the chunks of every file; None if the store has none."""
    facts = meta.get("chunks")
    if facts is None:
        return None
    found = MappedArray(path / "chunks.npy", "<u4", (facts["n"],))
    if f"{zlib.crc32(found.array):08x}" != facts["checksum"]:
        raise damaged(found.path, "checksum mismatch")
    begins = facts["begins"]
    stops = [*sorted(begins.values())[1:], facts["n"]]
    by_begin = sorted(begins, key=begins.__getitem__)
    return {
        name: found.array[begins[name] : stop]
        for name, stop in zip(by_begin, stops, strict=True)
    }


def _check_meta(meta: dict[str, Any]) -> None:
    """Raise unless every field has a type and value that it can have."""

    def is_count(value: object, most: int = 2**62) -> bool:
        return type(value) is int and 0 <= value < most

    def is_none_or_count(field: str) -> bool:
        return meta[field] is None or is_count(meta[field])

    meta = {"kinds": False, "samples": None, "chunks": None, **meta}
    dtype, y = meta["dtype"], meta["y"]
    checks = {
        "version": is_count(meta["version"]),
        "n_samples": is_count(meta["n_samples"], 2**31),
        "n_features": is_count(meta["n_features"]),
        "n_entries": is_none_or_count("n_entries"),
        "dtype": dtype in DTYPES or (dtype == ONES and meta["n_entries"] is not None),
        "names": is_none_or_count("names"),
        "nominal": type(meta["nominal"]) is bool,
        "kinds": meta["kinds"] is False or (meta["kinds"] is True and dtype == "<f8"),
        "samples": is_none_or_count("samples"),
        "y": y is None or is_count(y.get("n_bytes")) or y.get("dtype") in _TARGETS,
        "checksums": type(meta["checksums"]) is dict,
        "fingerprint": type(meta["fingerprint"]) is str,
        "chunks": meta["chunks"] is None or _has_chunks(meta),
    }
    for field, is_good in checks.items():
        if not is_good:
            raise ValueError(f"{field} is {meta[field]!r}")


def _has_chunks(meta: dict[str, Any]) -> bool:
    """Whether the checksums of chunks can be those of the files of a store."""
    facts = meta["chunks"]
    begins = facts["begins"]
    return (
        facts["size"] == CHECKED_BYTES
        and type(facts["n"]) is int
        and type(facts["checksum"]) is str
        and list(begins) == list(meta["checksums"])
        and all(type(begin) is int for begin in begins.values())
        and list(begins.values()) == sorted(begins.values())
        and all(0 <= begin <= facts["n"] for begin in begins.values())
    )


def npy_header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """First bytes of a file: two-dimensional arrays are column-major."""
    text = io.BytesIO()
    description: dict[str, Any] = {"descr": npy.dtype_to_descr(dtype), "shape": shape}
    description["fortran_order"] = len(shape) == 2
    npy.write_array_header_1_0(text, description)
    if len(text.getvalue()) != HEADER_BYTES:
        raise RuntimeError(f"numpy writes a header of {len(text.getvalue())} bytes.")
    return text.getvalue()


class MappedArray:
    """A ``.npy`` file of a store, mapped into memory.

    Its header is compared with the one of this type and shape, never parsed, and the
    file must have the length that follows.
    """

    def __init__(self, path: Path, dtype: DTypeLike, shape: tuple[int, ...]) -> None:
        self.path, dtype = path, np.dtype(dtype)
        n_bytes = int(np.prod(shape, dtype=object)) * dtype.itemsize
        try:
            with open(path, "rb") as file:
                if file.read(HEADER_BYTES) != npy_header(dtype, shape):
                    raise damaged(path, f"it should hold {dtype} of shape {shape}")
                size = os.fstat(file.fileno()).st_size - HEADER_BYTES
                if size != n_bytes:
                    how = f"it holds {size:,} bytes of values, and not {n_bytes:,}"
                    raise damaged(path, how)
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
                self._size = HEADER_BYTES + size
        except FileNotFoundError as error:
            raise damaged(path, "it is missing") from error
        flat = np.ndarray(n_bytes // dtype.itemsize, dtype, self._map, HEADER_BYTES)
        self.array: NDArray[Any] = flat.reshape(shape, order="F")
        self._bytes = np.ndarray(n_bytes, np.uint8, self._map, HEADER_BYTES)
        self._expected: NDArray[Any] = np.empty(0, np.uint32)
        self._is_good = np.empty(0, np.bool_)

    def compare_with(self, checksums: NDArray[Any] | None) -> None:
        """Let `check` compare what is read with the checksums of all chunks."""
        n_chunks = -(-self._bytes.size // CHECKED_BYTES)
        if checksums is None or checksums.size != n_chunks:
            raise damaged(self.path, f"it does not have {n_chunks:,} checksums")
        self._expected = checksums
        self._is_good = np.zeros(checksums.size, np.bool_)

    def check(self, begin: int, stop: int) -> None:
        """Compare the chunks that hold values ``begin`` to ``stop``, each once."""
        size = self.array.itemsize
        first = max(begin, 0) * size // CHECKED_BYTES
        last = min(-(-stop * size // CHECKED_BYTES), self._expected.size)
        for chunk in range(first, last):
            if self._is_good[chunk]:
                continue
            place = chunk * CHECKED_BYTES
            found = checksum_of(self._bytes[place : place + CHECKED_BYTES])
            if found != self._expected[chunk]:
                raise damaged(self.path, f"checksum mismatch at byte {place:,}")
            self._is_good[chunk] = True

    def refuse_cut(self) -> None:
        """Raise if the file has been cut since."""
        refuse_cut_file(self.path, self._size)

    def forget(self, begin: int, stop: int) -> None:
        """Release the memory of values ``begin`` to ``stop``, in order of storage."""
        begin, stop = (HEADER_BYTES + i * self.array.itemsize for i in (begin, stop))
        release_pages(self._map, begin, stop)
