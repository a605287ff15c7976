"""A selector's state as a description and arrays, and back again."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from featstream.checkpoint import RunFolder, Saved
from featstream.errors import FeatstreamError, RunError, printable
from featstream.measures.resolve import MEASURES
from featstream.measures.target import as_vector
from featstream.protocols import Fate
from featstream.selectors.stream import Stream
from featstream.statefile import join_text, split_text
from featstream.trace import OVER_LIMIT, Names, Trace

if TYPE_CHECKING:
    from featstream.selectors.single import StreamSelector

__all__ = [
    "arrays_of",
    "describe_selector",
    "fingerprint_of_target",
    "load_parameters",
    "load_run",
    "restore_state",
]

_KEPT = "kept/"  # before the names of the arrays that the selector itself saves


def describe_selector(selector: StreamSelector) -> dict[str, Any]:
    """What must be the same for a run to go on: class, parameters, target."""
    stream = selector._started()
    return {
        "selector": type(selector).__name__,
        "parameters": {
            name: _plain(value, name)
            for name, value in selector.get_params(deep=False).items()
        },
        "n_samples": len(stream.y),
        "y_fingerprint": fingerprint_of_target(stream.y),
    }


def load_run(folder: RunFolder) -> Saved:
    """The newest whole generation of a run, its description checked."""
    saved = folder.load()
    facts = saved.description
    checks: dict[str, Any] = {
        "selector": lambda value: type(value) is str,
        "parameters": lambda value: type(value) is dict,
        "n_samples": _is_count,
        "y_fingerprint": lambda value: type(value) is str,
        "measure": lambda value: value is None or value in MEASURES,
        "is_sparse": lambda value: value is None or type(value) is bool,
        "n_seen": _is_count,
        "seconds": lambda value: type(value) is float and value >= 0,
        "sources": lambda value: _are_sources(value, facts["n_seen"]),
        "command": lambda value: value is None or _is_text(value),
    }
    for name, is_good in checks.items():
        try:
            is_whole = is_good(facts[name])
        except (KeyError, TypeError):
            is_whole = False
        if not is_whole:
            raise RunError(f"The run {folder.path} is damaged in its {name}.")
    return saved


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**31


def _is_text(value: Any) -> bool:
    return type(value) is list and all(type(word) is str for word in value)


def _are_sources(value: Any, n_seen: int) -> bool:
    return type(value) is list and all(
        type(source) is dict
        and _is_count(source.get("begin"))
        and source["begin"] <= n_seen
        and type(source.get("is_done")) is bool
        for source in value
    )


def load_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters as `describe_selector` writes them, with measures made again."""
    classes = {kind.__name__: kind for kind in MEASURES.values()}
    loaded = dict(parameters)
    for name, value in parameters.items():
        if isinstance(value, dict):
            kind = classes.get(str(value.get("measure")))
            options = value.get("parameters")
            if kind is None or not isinstance(options, dict):
                raise RunError(
                    f"The run has the measure {printable(value.get('measure'))}, "
                    f"which is not one of {', '.join(sorted(classes))}."
                )
            try:
                loaded[name] = kind(**options)
            except TypeError as error:
                raise RunError(f"The run's measure cannot be made: {error}.") from error
    return loaded


def _plain(value: Any, name: str) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [_plain(item, name) for item in value]
    if type(value) in MEASURES.values():
        options = value.get_params(deep=False)
        return {
            "measure": type(value).__name__,
            "parameters": {key: _plain(option, key) for key, option in options.items()},
        }
    raise RunError(
        f"`{name}` is {printable(value)}, which cannot be saved. A run is saved with "
        "numbers, text and featstream's own measures only."
    )


def fingerprint_of_target(y: Any) -> str:
    """Checksum of the labels; whole numbers count the same in any type.

    >>> fingerprint_of_target([1, 0]) == fingerprint_of_target([1.0, 0.0])
    True
    """
    digest = hashlib.sha256()
    for array in _target_arrays(y).values():
        values = array
        if values.dtype.kind == "f" and np.all(values == np.floor(values)):
            values = values.astype(np.int64)
        if values.dtype.kind in "biu" and values.dtype != np.uint64:
            values = values.astype(np.int64)
        digest.update(f"{values.dtype.str}{values.size}".encode())
        digest.update(np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()


def _target_arrays(y: Any) -> dict[str, NDArray[Any]]:
    values = as_vector(y)
    if values.dtype.kind in "biu":
        return {"y": values}
    if values.dtype.kind == "f":
        return {"y": values.astype(np.float64)}
    if values.dtype.kind in "UT":
        text, ends = join_text(values.tolist())
        return {"y": text, "y_ends": ends}
    raise RunError("y has labels that are neither numbers nor text: cannot save them.")


def _target_from(arrays: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    y = _need(arrays, "y")
    if "y_ends" in arrays:
        return np.array(split_text(y, arrays["y_ends"]), np.str_)
    return y


def arrays_of(selector: StreamSelector) -> dict[str, NDArray[Any]]:
    """All of a selector's state."""
    stream = selector._started()
    trace, named = stream.trace, stream.names.items()
    records = trace.records
    text, ends = join_text([name for _, name in named])
    arrays = {
        **_target_arrays(stream.y),
        "trace_fate": records["fate"],
        "trace_relevance": records["relevance"],
        "trace_witness": records["witness"],
        "trace_arrivals": trace.arrivals if trace.level == "kept" else np.empty(0, int),
        "names": text,
        "name_ends": ends,
        "name_arrivals": np.array([arrival for arrival, _ in named], np.int64),
    }
    for name, array in selector._state_arrays().items():
        arrays[_KEPT + name] = array
    return arrays


def restore_state(selector: StreamSelector, saved: Saved) -> None:
    """Put a selector into the state that a run has saved."""
    try:
        _restore_state(selector, saved)
    except RunError:
        raise
    except (FeatstreamError, KeyError, TypeError, OverflowError) as error:
        raise RunError(f"The run cannot be restored: {printable(error)}.") from error


def _restore_state(selector: StreamSelector, saved: Saved) -> None:
    facts, arrays = saved.description, saved.arrays
    n_seen, chosen = facts["n_seen"], facts["measure"]
    y = _target_from(arrays)
    if fingerprint_of_target(y) != facts["y_fingerprint"]:
        raise RunError("The run is damaged: its target is not the one it began with.")
    selector.start(y)
    stream = selector._stream
    if stream.measure is None and chosen is not None:
        stream.measure = MEASURES[chosen]().bind(y)
    if chosen != (None if stream.measure is None else stream.measure.name):
        raise RunError("The run is damaged: it names another measure than its own.")
    stream.is_sparse, stream.seconds = facts["is_sparse"], facts["seconds"]
    _restore_trace(stream.trace, n_seen, arrays)
    stream.names = _names_from(arrays, n_seen)
    selector._restore(
        {
            name.removeprefix(_KEPT): array
            for name, array in arrays.items()
            if name.startswith(_KEPT)
        }
    )
    _check_kept(selector, stream)


def _restore_trace(
    trace: Trace, n_seen: int, arrays: Mapping[str, NDArray[Any]]
) -> None:
    fate = _need(arrays, "trace_fate", np.uint8)
    relevance = _need(arrays, "trace_relevance", np.float32)
    witness = _need(arrays, "trace_witness", np.int32)
    arrivals = _need(arrays, "trace_arrivals", np.int64)
    n_recorded = {"full": n_seen, "kept": arrivals.size, None: 0}[trace.level]
    n_arrivals = n_recorded if trace.level == "kept" else 0
    has_witness = fate >= Fate.REDUNDANT
    if (
        not fate.size == relevance.size == witness.size == n_recorded
        or arrivals.size != n_arrivals
        or not _is_increasing(arrivals, n_seen)
        or (fate > OVER_LIMIT).any()
        or (witness < -1).any()
        or (witness >= n_seen).any()
        or (witness[has_witness] < 0).any()
    ):
        raise RunError("The run is damaged: its trace contradicts itself.")
    records = np.empty(fate.size, trace.records.dtype)
    records["fate"], records["relevance"] = fate, relevance
    records["witness"] = witness
    trace.restore(n_seen, records, arrivals)


def _names_from(arrays: Mapping[str, NDArray[Any]], n_seen: int) -> Names:
    arrivals = _need(arrays, "name_arrivals", np.int64)
    words = split_text(_need(arrays, "names"), _need(arrays, "name_ends", np.int64))
    if (
        len(words) != arrivals.size
        or len(set(words)) != len(words)
        or not _is_increasing(arrivals, n_seen)
    ):
        raise RunError("The run is damaged: its names do not fit its features.")
    names = Names()
    if arrivals.size and arrivals[-1] - arrivals[0] == arrivals.size - 1:
        names.add(int(arrivals[0]), words)
    else:
        for arrival, word in zip(arrivals.tolist(), words, strict=True):
            names.add(arrival, [word])
    return names


def _check_kept(selector: StreamSelector, stream: Stream) -> None:
    """The kept features are those that the trace calls kept."""
    kept, scores = selector._kept()
    trace = stream.trace
    is_good = _is_increasing(np.sort(kept), stream.n_seen) and kept.size == scores.size
    if is_good and trace.level is not None:
        marked = trace.arrivals[trace.records["fate"] == Fate.KEPT]
        is_good = np.array_equal(np.sort(kept), marked)
    if not is_good:
        raise RunError("The run is damaged: its trace keeps other features.")


def _is_increasing(arrivals: NDArray[Any], stop: int) -> bool:
    if not arrivals.size:
        return True
    is_in_range = arrivals[0] >= 0 and arrivals[-1] < stop
    return bool(is_in_range and (np.diff(arrivals) > 0).all())


def _need(
    arrays: Mapping[str, NDArray[Any]], name: str, dtype: Any = None
) -> NDArray[Any]:
    array = arrays.get(name)
    if array is None or array.ndim != 1 or (dtype is not None and array.dtype != dtype):
        raise RunError(f"The run is damaged: {name} is missing or of another type.")
    return array
