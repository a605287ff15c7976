"""What a run says of a selector, and its state as plain arrays, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from featstream.errors import RunError, printable
from featstream.measures.independence import TESTS
from featstream.measures.inputs import MEASURES, as_vector
from featstream.runs.arrays import (
    Arrays,
    Declared,
    check_arrays,
    damaged,
    join_text,
    split_text,
)
from featstream.runs.folder import RunFolder, Saved
from featstream.selectors.registry import SELECTORS
from featstream.sources.grouping import read_labels, write_labels

if TYPE_CHECKING:
    from featstream.selectors.base_groups import GroupTrace
    from featstream.selectors.stream import Stream

_N_FATES = 5  # with the one for "more than max_features"

_STREAM = {
    "trace_fate": Declared(np.uint8, ("n_recorded",), stop=_N_FATES),
    "trace_relevance": Declared(np.float32, ("n_recorded",)),
    "trace_witness": Declared(np.int32, ("n_recorded",), -1, "n_seen"),
    "trace_arrivals": Declared(np.int64, ("n_arrivals",), 0, "n_seen"),
    "tested_arrival": Declared(np.int32, ("n_tested",), 0, "n_seen", is_optional=True),
    "tested_p": Declared(np.float32, ("n_tested",), 0, 2, is_optional=True),
    "names": Declared(np.uint8, (None,)),
    "name_ends": Declared(np.int64, ("n_names",)),
    "name_arrivals": Declared(np.int64, ("n_names",), 0, "n_seen"),
    "identifiers": Declared(np.int64, ("n_left_out",), 0, "n_seen", is_optional=True),
    "sample_hashes": Declared(np.uint64, ("n_samples",), is_optional=True),
    "positions": Declared(np.int32, ("n_placed",), 0, "n_placed", is_optional=True),
}
_RECORD = ("fate", "relevance", "witness")
_GROUPS = {
    "group_labels": Declared(np.uint8, (None,)),
    "group_ends": Declared(np.int64, ("n_groups",), 1, "after_last"),
    "group_fates": Declared(np.uint8, ("n_groups",), stop=4),
    "group_n_kept": Declared(np.int64, ("n_groups",), 0, "after_last"),
}


def describe_selector(selector: Any) -> dict[str, Any]:
    """Class and parameters of a selector."""
    return {
        "selector": type(selector).__name__,
        "parameters": {
            name: _plain(value, name)
            for name, value in selector.get_params(deep=False).items()
        },
    }


def _measures() -> dict[str, Any]:
    """Measures and tests by the name of their class."""
    return {
        kind.__name__: kind for known in (MEASURES, TESTS) for kind in known.values()
    }


_PARTS: dict[str, Callable[[str], Any]] = {
    "measure": lambda name: _measures().get(name),
    "selector": SELECTORS.find_class,
}
"""What a parameter may be besides numbers and text; each is found by its class."""


def _plain(value: Any, name: str) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [_plain(item, name) for item in value]
    for kind, find in _PARTS.items():
        if find(type(value).__name__) is type(value):
            options = value.get_params(deep=False).items()
            parameters = {key: _plain(option, key) for key, option in options}
            return {kind: type(value).__name__, "parameters": parameters}
    raise RunError(
        f"`{name}` is {printable(value)}, which cannot be saved. A run is saved with "
        "numbers, text and measures known to featstream.measures.register_measure."
    )


def load_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters as `describe_selector` writes them, with measures made again."""
    loaded = dict(parameters)
    for name, value in parameters.items():
        if isinstance(value, dict):
            what = "selector" if "selector" in value else "measure"
            kind = _PARTS[what](str(value.get(what)))
            if kind is None:
                raise RunError(
                    f"The run has the {what} {printable(value.get(what))}, which is "
                    f"not known here. Known measures: {', '.join(sorted(_measures()))}."
                )
            loaded[name] = kind(**value["parameters"])
    return loaded


def complete_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Saved parameters, with the options that measures have gained since."""
    loaded = load_parameters(parameters)
    return {name: _plain(value, name) for name, value in loaded.items()}


def load_run(folder: RunFolder) -> Saved:
    """Read the newest whole generation of a run, and check its description."""
    saved = folder.load()
    facts = saved.description
    try:
        n_seen, sources, command = (facts[k] for k in ("n_seen", "sources", "command"))
        is_whole = (
            isinstance(facts["selector"], str)
            and isinstance(facts["parameters"], dict)
            and type(n_seen) is int
            and 0 <= n_seen < 2**31
            and all(0 <= source["begin"] <= n_seen for source in sources)
            and all(type(source["is_done"]) is bool for source in sources)
            and all(isinstance(word, str) for word in command or [])
        )
    except (KeyError, TypeError):
        is_whole = False
    if not is_whole:
        raise RunError(f"The run {folder.path} is damaged in its description.")
    return saved


def target_arrays(y: Any) -> dict[str, NDArray[Any]]:
    """Labels as plain arrays: numbers as they are, text end to end."""
    values = as_vector(y)
    if values.dtype.kind in "biu":
        return {"y": values}
    if values.dtype.kind == "f":
        return {"y": values.astype(np.float64)}
    if values.dtype.kind in "UT":
        text, ends = join_text(values.tolist())
        return {"y": text, "y_ends": ends}
    raise RunError("y has labels that are neither numbers nor text: cannot save them.")


def target_from(arrays: Arrays) -> NDArray[Any]:
    """Labels that `target_arrays` took apart."""
    y = arrays.get("y")
    if y is None or y.ndim != 1:
        raise damaged("it has no target")
    if "y_ends" in arrays:
        return np.array(split_text(y, arrays["y_ends"]), np.str_)
    return y


def stream_arrays(stream: Stream) -> dict[str, NDArray[Any]]:
    """Target, trace and names of a stream."""
    trace, named = stream.trace, stream.names.items()
    text, ends = join_text([name for _, name in named])
    arrays = {
        **target_arrays(stream.y),
        **{f"trace_{name}": trace.records[name] for name in _RECORD},
        "trace_arrivals": trace.arrivals if trace.level == "kept" else np.empty(0, int),
        "names": text,
        "name_ends": ends,
        "name_arrivals": np.array([arrival for arrival, _ in named], np.int64),
    }
    if trace.tested.size:
        for name in trace.tested.dtype.names or ():
            arrays[f"tested_{name}"] = trace.tested[name]
    left_out = getattr(stream.measure, "left_out", None)
    if left_out is not None and left_out.names:  # threads add to it, ahead of the trace
        gone = np.sort(np.array(list(left_out.names), np.int64))
        arrays["identifiers"] = gone[gone < trace.n_seen]
    if stream.samples is not None:
        arrays["sample_hashes"] = stream.samples
    if stream.names.order.size:
        arrays["positions"] = stream.names.order.astype(np.int32)
    return arrays


def restore_stream(stream: Stream, n_seen: int, arrays: Arrays) -> None:
    """Restore what `stream_arrays` returned, into a stream that has just begun."""
    trace, sizes = stream.trace, {"n_seen": n_seen, "n_samples": len(stream.y)}
    if trace.level == "kept":
        sizes["n_recorded"] = sizes["n_arrivals"] = arrays["trace_arrivals"].size
    else:
        sizes |= {"n_recorded": n_seen if trace.level else 0, "n_arrivals": 0}
    found = check_arrays(arrays, _STREAM, **sizes)
    records = np.empty(sizes["n_recorded"], trace.records.dtype)
    for name in _RECORD:
        records[name] = found[f"trace_{name}"]
    p_values = found.get("tested_p", np.empty(0, np.float32))
    tested = np.empty(p_values.size, trace.tested.dtype)
    tested["arrival"], tested["p"] = found.get("tested_arrival", p_values), p_values
    trace.restore(n_seen, records, found["trace_arrivals"], tested)
    words = split_text(found["names"], found["name_ends"])
    stream.names.restore(found["name_arrivals"].tolist(), words)
    stream.samples = found.get("sample_hashes")
    if "positions" in found:
        stream.names.order = found["positions"].astype(np.int64)
    left_out = getattr(stream.measure, "left_out", None)
    if left_out is not None and "identifiers" in found:
        gone = found["identifiers"].tolist()
        left_out.names = {arrival: stream.names[arrival] for arrival in gone}


def group_arrays(groups: GroupTrace) -> dict[str, NDArray[Any]]:
    """Labels, sizes and fates of groups."""
    text, _ = join_text([write_labels(groups.labels)])
    return {
        "group_labels": text,
        "group_ends": groups.ends,
        "group_fates": groups.fates,
        "group_n_kept": groups.n_kept,
    }


def restore_groups(groups: GroupTrace, arrays: Arrays, n_seen: int) -> None:
    """Restore what `group_arrays` returned."""
    found = check_arrays(arrays, _GROUPS, after_last=n_seen + 1)
    text, ends, fates, n_kept = found.values()
    (words,) = split_text(text, np.array([text.size]))
    labels = read_labels(words)
    if len(labels) != ends.size or ends[-1:].sum() != n_seen:
        raise damaged("its groups do not fit its features")
    groups.restore(labels, ends, fates, n_kept)
