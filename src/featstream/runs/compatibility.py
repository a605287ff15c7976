"""What must be the same for a run to continue: parameters, target, data, groups."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from featstream.errors import DataError, RunError, printable
from featstream.protocols import Block, Source, SparseColumns, fingerprint_of
from featstream.runs.folder import Saved
from featstream.runs.state import target_arrays
from featstream.sources.grouping import Layout

_SAMPLE = 16  # columns that are read, at each of three places

_OF_DATA = {
    "n_samples": "the number of samples",
    "n_features": "the number of features",
    "fingerprint": "the fingerprint",
    "sample": "the checksum of some columns",
}
_OF_GROUPS = {
    "kind": "how they are given",
    "n_groups": "their number",
    "fingerprint": "the checksum of labels and members",
}


def describe_source(source: Source, layout: Layout | None = None) -> dict[str, Any]:
    """Describe a data set without reading all of it, to recognise it later.

    ``fingerprint`` is the source's own, where it has one; ``sample`` is a checksum
    of some columns at the beginning, in the middle and at the end, which does not
    depend on storage and blocks. A source that cannot be read twice has neither.
    """
    n_features = source.n_features
    found: dict[str, Any] = {
        "kind": type(source).__name__,
        "n_samples": source.n_samples,
        "n_features": n_features,
        "fingerprint": fingerprint_of(source),
        "sample": None,
    }
    if n_features:
        digest = hashlib.sha256()
        for start in sorted({0, n_features // 2, max(0, n_features - _SAMPLE)}):
            n_left = _SAMPLE
            for block in source.blocks(start):
                _add_columns(digest, block, n_left)
                n_left -= block.n_columns
                if n_left <= 0:
                    break
        found["sample"] = digest.hexdigest()
    if layout is not None:
        found["groups"] = layout.describe()
    return found


def _add_columns(digest: Any, block: Block, n_most: int) -> None:
    columns = block.columns
    for i in range(min(n_most, block.n_columns)):
        if isinstance(columns, SparseColumns):
            begin, end = columns.indptr[i], columns.indptr[i + 1]
            rows, values = columns.rows[begin:end], columns.values[begin:end]
        else:
            rows, values = np.arange(block.n_samples, dtype=np.int32), columns[:, i]
        if values.dtype.kind not in "biuf":
            raise DataError(f"Column {block.name(i)} is of type {values.dtype}.")
        numbers = values.astype(np.float64)
        is_stored = numbers != 0
        digest.update(rows[is_stored].astype(np.int64).tobytes())
        digest.update((numbers[is_stored] + 0.0).tobytes())
        digest.update(block.name(i).encode("utf-8", "surrogatepass"))


def fingerprint_of_target(y: Any) -> str:
    """Checksum of the labels; whole numbers count the same in any type.

    >>> fingerprint_of_target([1, 0]) == fingerprint_of_target([1.0, 0.0])
    True
    """
    digest = hashlib.sha256()
    for array in target_arrays(y).values():
        values = array
        if values.dtype.kind == "f" and np.all(values == np.floor(values)):
            values = values.astype(np.int64)
        if values.dtype.kind in "biu" and values.dtype != np.uint64:
            values = values.astype(np.int64)
        digest.update(f"{values.dtype.str}{values.size}".encode())
        digest.update(np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()


def find_difference(saved: dict[str, Any], found: dict[str, Any]) -> str | None:
    """Say what differs between a source and the one that was described, if anything."""
    difference = _difference(saved, found, _OF_DATA)
    if difference is not None:
        return f"This is another data set than the run was reading: {difference}."
    groups = saved.get("groups") or {}, found.get("groups") or {}
    difference = _difference(*groups, _OF_GROUPS)
    if difference is not None:
        return f"These are other groups than the run was reading: {difference}."
    return None


def refuse_difference(mine: dict[str, Any], saved: Saved, where: str) -> None:
    """Raise unless the run was begun by the same selector on the same target."""
    theirs = saved.description
    if mine["selector"] != theirs["selector"]:
        raise RunError(
            f"{where} is one of {printable(theirs['selector'])}, not of "
            f"{mine['selector']}. Choose another folder."
        )
    both = {*mine["parameters"], *theirs["parameters"]}
    for name in sorted(both - {"n_jobs", "engine"}):
        one, other = mine["parameters"].get(name), theirs["parameters"].get(name)
        if one != other:
            raise RunError(
                f"{where} has {name}={shown(other)}; here it is {shown(one)}. Use "
                "the same parameters, or another folder."
            )
    refuse_other_target(theirs, mine, where)


def refuse_other_target(
    theirs: dict[str, Any], mine: dict[str, Any], where: str
) -> None:
    """Raise unless two descriptions have the same target."""
    if mine["n_samples"] != theirs["n_samples"]:
        raise RunError(
            f"{where} has {theirs['n_samples']:,} samples; here are "
            f"{mine['n_samples']:,}."
        )
    if mine["y_fingerprint"] != theirs["y_fingerprint"]:
        raise RunError(
            f"y differs from the y that {where[0].lower()}{where[1:]} was started "
            "with. Use the same target, or another folder."
        )


def _difference(
    saved: dict[str, Any], found: dict[str, Any], words: dict[str, str]
) -> str | None:
    for name, word in words.items():
        one, other = saved.get(name), found.get(name)
        if one is not None and other is not None and one != other:
            return f"{word} was {_short(one)} and is {_short(other)}"
    return None


def _short(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)[:24]


def shown(value: Any) -> str:
    """A parameter as a run records it; a measure or a selector as in Python."""
    if isinstance(value, dict) and isinstance(value.get("parameters"), dict):
        options = ", ".join(f"{k}={v!r}" for k, v in value["parameters"].items())
        return f"{next(iter(value.values()))}({options})"
    return repr(value)
