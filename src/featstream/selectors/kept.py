"""Kept columns as plain arrays, and back: what a run saves of a kept set.

The arrays are the fields of the storage of `featstream.kernels`, under names like
``SparseTables.rows``; what can be computed from the target is left out. Reading
them checks every number that a kernel would use as a position.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from featstream.kernels.index import no_index
from featstream.kernels.moments import DenseMoments, SparseMoments
from featstream.kernels.pools import make_room
from featstream.kernels.scan import Kept
from featstream.kernels.tables import (
    MAX_PLANES,
    DenseTables,
    SparseTables,
    fixed_point_nlogn,
)
from featstream.runs.arrays import damaged, take_array, take_floats
from featstream.selectors.stream import Stream

__all__ = ["pack_kept", "unpack_kept"]

Arrays = Mapping[str, NDArray[Any]]

_COMPUTED = ("nlogn", "n_rows", "unit", "pivot")
_POOLS = {
    "planes": 0,
    "plane_count": 0,
    "rows": 0,
    "codes": 0,
    "counts": 1,
    "values": 0,
}
_TYPES = {
    "arity": np.int64,
    "own": np.int64,
    "norm": np.int64,
    "first_plane": np.int64,
    "planes": np.uint64,
    "plane_count": np.int64,
    "code_row": np.int64,
    "codes": np.int32,
    "offset": np.int64,
    "length": np.int64,
    "rows": np.int32,
    "count_offset": np.int64,
    "counts": np.int64,
    "total": np.float64,
    "base": np.float64,
    "values": np.float64,
}


def pack_kept(kept: Kept | None) -> dict[str, NDArray[Any]]:
    """The live columns of a kept set, in their order; nothing if there are none."""
    if kept is None or not kept.size[0]:
        return {}
    first = int(kept.live[0])
    packed = make_room(kept, kept.columns, first, may_index=False)
    n_kept = int(packed.size[0])
    kind = type(packed.columns).__name__
    arrays = {
        "arrival": packed.arrival[:n_kept],
        "score": packed.score[:n_kept],
        "pace": packed.lookup.pace,
    }
    for name in _stored_fields(type(packed.columns)):
        size = n_kept
        if name in _POOLS:
            pool = 1 if kind == "DenseTables" and name == "codes" else _POOLS[name]
            size = int(packed.used[pool])
        arrays[f"{kind}.{name}"] = getattr(packed.columns, name)[:size]
    return arrays


def unpack_kept(arrays: Arrays, stream: Stream, *, may_index: bool = True) -> Any:
    """The kept set that `pack_kept` took apart; `RunError` if it cannot be one."""
    if not arrays:
        return None
    kinds = {name.partition(".")[0] for name in arrays if "." in name}
    if kinds != {_storage_of(stream)}:
        raise damaged("its kept features are not stored as its measure wants them")
    kind, check = _KINDS[kinds.pop()]
    n_samples = len(stream.y)
    arrival = take_array(arrays, "arrival", np.int64)
    n_kept = arrival.size
    _need(n_kept > 0, "their number")
    score = take_floats(arrays, "score", (n_kept,))
    pace = take_floats(arrays, "pace", (1,))
    _need(bool(pace[0] >= 0), "their pace")
    is_moments = kind in (DenseMoments, SparseMoments)
    fields: dict[str, Any] = {}
    for name in _stored_fields(kind):
        dtype = np.float64 if is_moments and name == "norm" else _TYPES[name]
        shape: tuple[int | None, ...] = (None,) if name in _POOLS else (n_kept,)
        if name == "planes" or (kind, name) in _TABLES_BY_ROW:
            shape = (None, None)
        fields[name] = take_array(arrays, f"{kind.__name__}.{name}", dtype, shape)
    _need(len(arrays) == 3 + len(fields), "what they are made of")
    check(fields, n_samples)
    for name in _COMPUTED:
        if name in kind._fields:
            fields[name] = _computed(name, n_samples, n_kept)
    columns = kind(**fields)
    lookup = no_index()
    lookup.pace[:] = pace
    exact = Kept(
        columns=columns,
        lookup=lookup,
        score=score,
        arrival=arrival,
        hint=np.zeros(n_kept, np.int64),
        live=np.arange(n_kept),
        size=np.array([n_kept, n_kept]),
        used=np.zeros(2, np.int64),
    )
    return make_room(exact, columns, 0, may_index=may_index)


def _storage_of(stream: Stream) -> str | None:
    if stream.measure is None or stream.is_sparse is None:
        return None
    values = "Moments" if stream.measure.name == "fisher-z" else "Tables"
    return ("Sparse" if stream.is_sparse else "Dense") + values


_TABLES_BY_ROW = {(DenseTables, "codes"), (DenseMoments, "values")}


def _stored_fields(kind: Any) -> list[str]:
    return [name for name in kind._fields if name not in _COMPUTED]


def _computed(name: str, n_samples: int, n_kept: int) -> Any:
    if name == "nlogn":
        return fixed_point_nlogn(n_samples)
    if name == "pivot":
        return np.zeros(n_kept)
    return n_samples if name == "n_rows" else np.empty((0, 0), np.float32)


def _check_dense_tables(columns: dict[str, Any], n: int) -> None:
    arity, row, codes = columns["arity"], columns["code_row"], columns["codes"]
    planes, count = columns["planes"], columns["plane_count"]
    _check_entropies(columns, n)
    has_codes = row >= 0
    _need(bool((has_codes == (arity > MAX_PLANES + 1)).all()), "their storage")
    n_planes = np.where(has_codes, 0, arity - 1)
    starts = np.where(has_codes, 0, _starts(n_planes))
    n_all = int(n_planes.sum())
    _need(np.array_equal(columns["first_plane"], starts), "where planes begin")
    _need(planes.shape == (n_all, (n + 63) // 64), "their planes")
    sizes = np.bitwise_count(planes).sum(axis=1, dtype=np.int64)
    _need(np.array_equal(count, sizes), "the sizes of their planes")
    rest = n % 64
    if rest and n_all:
        _need(not (planes[:, -1] >> np.uint64(rest)).any(), "their planes")
    for begin, size in zip(_starts(n_planes), n_planes, strict=True):
        own = planes[begin : begin + size]
        together = int(np.bitwise_count(np.bitwise_or.reduce(own, axis=0)).sum())
        _need(together == int(count[begin : begin + size].sum()), "their planes")
    expected = np.where(has_codes, np.cumsum(has_codes) - 1, -1)
    _need(np.array_equal(row, expected), "where codes begin")
    _need(codes.shape == (int(has_codes.sum()), n), "their codes")
    for k, n_codes in enumerate(arity[has_codes]):
        _need(codes[k].min() >= 0 and codes[k].max() < n_codes, "their codes")


def _check_sparse_tables(columns: dict[str, Any], n: int) -> None:
    arity, codes, counts = columns["arity"], columns["codes"], columns["counts"]
    _check_entropies(columns, n)
    _check_rows(columns, n)
    _need(codes.shape == columns["rows"].shape, "their codes")
    starts = _starts(arity - 1)
    _need(np.array_equal(columns["count_offset"], starts), "where counts begin")
    _need(counts.size == int((arity - 1).sum()), "their counts")
    for i, size in enumerate(arity.tolist()):
        begin = int(columns["offset"][i])
        own = codes[begin : begin + int(columns["length"][i])]
        _need(own.size == 0 or (own.min() >= 1 and own.max() < size), "their codes")
        found = np.bincount(own, minlength=size)[1:]
        told = counts[starts[i] : starts[i] + size - 1]
        _need(np.array_equal(found, told), "their counts")


def _check_dense_moments(columns: dict[str, Any], n: int) -> None:
    _check_finite(columns, ("total", "norm", "values"))
    _need(columns["values"].shape == (columns["total"].size, n), "their values")


def _check_sparse_moments(columns: dict[str, Any], n: int) -> None:
    _check_finite(columns, ("total", "norm", "base", "values"))
    _check_rows(columns, n)
    _need(columns["values"].shape == columns["rows"].shape, "their values")


def _check_entropies(columns: dict[str, Any], n: int) -> None:
    arity = columns["arity"]
    most = max(n, MAX_PLANES) + 1  # with gaps there may be more than rows
    _need(bool((arity >= 1).all() and (arity <= most).all()), "their categories")
    for name in ("own", "norm"):
        numbers = columns[name]
        is_sane = (numbers >= 0).all() and (numbers < 2**62).all()
        _need(bool(is_sane), "their entropies")


def _check_rows(columns: dict[str, Any], n: int) -> None:
    length, rows = columns["length"], columns["rows"]
    _need(bool((length >= 0).all() and (length <= n).all()), "their lengths")
    _need(np.array_equal(columns["offset"], _starts(length)), "where rows begin")
    _need(rows.size == int(length.sum()), "their rows")
    if rows.size:
        _need(bool(rows.min() >= 0 and rows.max() < n), "their rows")
        is_first = np.zeros(rows.size + 1, dtype=bool)
        is_first[columns["offset"]] = True
        steps = np.diff(rows.astype(np.int64)) > 0
        _need(bool((steps | is_first[1:-1]).all()), "the order of their rows")


def _check_finite(columns: dict[str, Any], names: tuple[str, ...]) -> None:
    for name in names:
        _need(bool(np.isfinite(columns[name]).all()), "their numbers")
    _need(bool((columns["norm"] > 0).all()), "their norms")


_KINDS: dict[str, tuple[Any, Callable[[dict[str, Any], int], None]]] = {
    "DenseTables": (DenseTables, _check_dense_tables),
    "SparseTables": (SparseTables, _check_sparse_tables),
    "DenseMoments": (DenseMoments, _check_dense_moments),
    "SparseMoments": (SparseMoments, _check_sparse_moments),
}


def _starts(sizes: Any) -> Any:
    return np.cumsum(sizes) - sizes


def _need(is_so: bool, what: str) -> None:
    if not is_so:
        raise damaged(f"of its kept features, {what} cannot be right")
