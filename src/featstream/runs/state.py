"""What a run says of itself: selector, parameters, target and sources."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from featstream.errors import DataError, RunError, printable
from featstream.measures.resolve import MEASURES, TESTS
from featstream.measures.target import as_vector
from featstream.protocols import Block, Source, SparseColumns
from featstream.runs.arrays import damaged, join_text, split_text, take_array
from featstream.runs.folder import RunFolder, Saved
from featstream.sources.layouts import Layout

__all__ = [
    "describe_selector",
    "describe_source",
    "fingerprint_of_target",
    "load_parameters",
    "load_run",
    "target_arrays",
    "target_from",
]

_SAMPLE = 16  # columns looked at, at each of three places
_MEASURES = {
    kind.__name__: kind for named in (MEASURES, TESTS) for kind in named.values()
}


def describe_selector(selector: Any) -> dict[str, Any]:
    """Class and parameters."""
    return {
        "selector": type(selector).__name__,
        "parameters": {
            name: _plain(value, name)
            for name, value in selector.get_params(deep=False).items()
        },
    }


def _plain(value: Any, name: str) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [_plain(item, name) for item in value]
    if _MEASURES.get(type(value).__name__) is type(value):
        options = value.get_params(deep=False)
        return {
            "measure": type(value).__name__,
            "parameters": {key: _plain(option, key) for key, option in options.items()},
        }
    raise RunError(
        f"`{name}` is {printable(value)}, which cannot be saved. A run is saved with "
        "numbers, text and featstream's own measures only."
    )


def load_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters as `describe_selector` writes them, with measures made again."""
    loaded = dict(parameters)
    for name, value in parameters.items():
        if isinstance(value, dict):
            kind = _MEASURES.get(str(value.get("measure")))
            options = value.get("parameters")
            if kind is None or not isinstance(options, dict):
                raise RunError(
                    f"The run has the measure {printable(value.get('measure'))}, "
                    f"which is not one of {', '.join(sorted(_MEASURES))}."
                )
            try:
                loaded[name] = kind(**options)
            except TypeError as error:
                raise RunError(f"The run's measure cannot be made: {error}.") from error
    return loaded


def load_run(folder: RunFolder) -> Saved:
    """The newest whole generation of a run, its description checked."""
    saved = folder.load()
    facts = saved.description
    checks = dict(_EVERY_RUN)
    if saved.generation > 0:
        checks |= _OF_ROWS if facts.get("arrives") == "rows" else _OF_FEATURES
    for name, is_good in checks.items():
        try:
            is_whole = is_good(facts[name], facts)
        except (KeyError, TypeError):
            is_whole = False
        if not is_whole:
            raise RunError(f"The run {folder.path} is damaged in its {name}.")
    return saved


def _is_count(value: Any, facts: Any = None) -> bool:
    return type(value) is int and 0 <= value < 2**31


def _is_word(value: Any, facts: Any = None) -> bool:
    return type(value) is str


def _is_command(value: Any, facts: Any) -> bool:
    return value is None or (type(value) is list and all(map(_is_word, value)))


def _are_sources(value: Any, facts: Mapping[str, Any]) -> bool:
    return type(value) is list and all(
        type(source) is dict
        and _is_count(source.get("begin"))
        and source["begin"] <= facts["n_seen"]
        and type(source.get("is_done")) is bool
        for source in value
    )


Check = Callable[[Any, Mapping[str, Any]], bool]

_EVERY_RUN: dict[str, Check] = {
    "selector": _is_word,
    "parameters": lambda value, facts: type(value) is dict,
    "n_seen": _is_count,
    "sources": _are_sources,
    "command": _is_command,
}
_OF_FEATURES: dict[str, Check] = {
    "n_samples": _is_count,
    "y_fingerprint": _is_word,
    "measure": lambda value, facts: value is None or _is_word(value),
    "is_sparse": lambda value, facts: value is None or type(value) is bool,
    "seconds": lambda value, facts: type(value) is float and value >= 0,
}
_OF_ROWS: dict[str, Check] = {"n_features": _is_count}


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


def target_arrays(y: Any) -> dict[str, NDArray[Any]]:
    """Labels as plain arrays: numbers as they are, words end to end."""
    values = as_vector(y)
    if values.dtype.kind in "biu":
        return {"y": values}
    if values.dtype.kind == "f":
        return {"y": values.astype(np.float64)}
    if values.dtype.kind in "UT":
        text, ends = join_text(values.tolist())
        return {"y": text, "y_ends": ends}
    raise RunError("y has labels that are neither numbers nor text: cannot save them.")


def target_from(arrays: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    """Labels that `target_arrays` took apart."""
    y = arrays.get("y")
    if y is None or y.ndim != 1:
        raise damaged("it has no target")
    if "y_ends" in arrays:
        ends = take_array(arrays, "y_ends", np.int64)
        return np.array(split_text(y, ends), np.str_)
    return y


def describe_source(source: Source, layout: Layout | None = None) -> dict[str, Any]:
    """What tells one data set from another, found without reading it all.

    ``fingerprint`` is the source's own, where it has one; ``sample`` is a checksum
    of some columns at the beginning, in the middle and at the end, the same
    however they are stored and cut into blocks. A source that cannot be asked
    twice has neither. ``groups`` says how its features fall into groups, where they
    do.
    """
    n_features = source.n_features
    told: dict[str, Any] = {
        "kind": type(source).__name__,
        "n_samples": source.n_samples,
        "n_features": n_features,
        "fingerprint": getattr(source, "fingerprint", None),
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
        told["sample"] = digest.hexdigest()
    if layout is not None:
        told["groups"] = layout.describe()
    return told


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
