"""What a run says of a selector and its data, and the state as arrays, and back.

A run continues with the same parameters, target, data and groups, or not at all.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from featstream.errors import DataError, RunError, printable
from featstream.measures.independence import TESTS
from featstream.measures.inputs import MEASURES, as_vector
from featstream.protocols import Block, Source, SparseColumns, fingerprint_of
from featstream.runs.arrays import (
    Arrays,
    Declared,
    check_arrays,
    damaged,
    join_text,
    split_text,
)
from featstream.runs.folder import RunFolder, Saved
from featstream.sources.combined import SampleOrder
from featstream.sources.grouping import Layout, read_labels, write_labels

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
    "copies": Declared(np.int64, ("n_copies",), 0, "n_seen", is_optional=True),
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


_NEW_NAMES = {("reading", "printed"): "relevant"}
"""Values of parameters that have been renamed since runs were saved with them."""

_NONE = Parameter.empty
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
    known = [*MEASURES.values(), *TESTS.values()]
    return {kind.__name__: kind for kind in known}


def _plain(value: Any, name: str) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [_plain(item, name) for item in value]
    if _measures().get(type(value).__name__) is type(value):
        options = value.get_params(deep=False).items()
        parameters = {key: _plain(option, key) for key, option in options}
        return {"measure": type(value).__name__, "parameters": parameters}
    raise RunError(
        f"`{name}` is {printable(value)}, which cannot be saved. A run is saved with "
        "numbers, text and measures known to featstream.measures.register_measure."
    )


def load_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters as `describe_selector` writes them, with measures made again."""
    loaded = dict(parameters)
    if loaded.pop("interactions", False) is not False:
        raise RunError(
            "The run was saved with `interactions`, which no selector has any more. "
            "Continue it with the version of featstream that wrote it, or select "
            "again, once with its selector and once with InteractionScreen, and take "
            "the features of both."
        )
    for name, value in loaded.items():
        if isinstance(value, str):
            loaded[name] = _NEW_NAMES.get((name, value), value)
        if isinstance(value, dict):
            kind = _measures().get(str(value.get("measure")))
            if kind is None:
                raise RunError(
                    f"The run has the measure {printable(value.get('measure'))}, which "
                    "is not known here. Known measures: "
                    f"{', '.join(sorted(_measures()))}."
                )
            loaded[name] = kind(**value["parameters"])
    return loaded


def complete_parameters(parameters: Mapping[str, Any], selector: Any) -> dict[str, Any]:
    """Saved parameters, with those that selectors and measures have gained since."""
    known = signature(type(selector)).parameters.items()
    loaded = {name: field.default for name, field in known if field.default != _NONE}
    loaded |= load_parameters(parameters)
    return {name: _plain(value, name) for name, value in loaded.items()}


def load_run(folder: RunFolder) -> Saved:
    """Read the newest whole generation of a run, and check its description."""
    return check_description(folder.load(), folder)


def check_description(saved: Saved, folder: RunFolder) -> Saved:
    """Return what was saved; `RunError` unless its description can be right."""
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
    if stream.copies:
        gone = np.sort(np.array(list(stream.copies), np.int64))
        arrays["copies"] = gone[gone < trace.n_seen]
    if stream.samples is not None:
        arrays["sample_hashes"] = stream.samples.hashes
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
    if "sample_hashes" in found:
        stream.samples = SampleOrder(hashes=found["sample_hashes"])
    if "positions" in found:
        stream.names.order = found["positions"].astype(np.int64)
    copies = found.get("copies", np.empty(0, np.int64)).tolist()
    stream.copies = {arrival: stream.names[arrival] for arrival in copies}
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
    groups.extend(labels, np.diff(ends, prepend=0), fates, n_kept)


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


def is_same_source(saved: dict[str, Any], found: dict[str, Any]) -> bool:
    """Whether two descriptions are of the same columns, as far as they can show."""
    known = [name for name in ("fingerprint", "sample") if saved.get(name) is not None]
    are_comparable = any(found.get(name) is not None for name in known)
    return are_comparable and find_difference(saved, found) is None


def find_difference(saved: dict[str, Any], found: dict[str, Any]) -> str | None:
    """Say what differs between a source and the one that was described, if anything."""
    groups = saved.get("groups") or {}, found.get("groups") or {}
    for start, before, now, words in (
        ("This is a different data set", saved, found, _OF_DATA),
        ("These are other groups", *groups, _OF_GROUPS),
    ):
        for name, word in words.items():
            one, other = before.get(name), now.get(name)
            if one is not None and other is not None and one != other:
                difference = f"{word} was {_short(one)} and is {_short(other)}"
                return f"{start} than the run was reading: {difference}."
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


def _short(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)[:24]


def shown(value: Any) -> str:
    """A parameter as a run records it; a measure as in Python."""
    if isinstance(value, dict) and isinstance(value.get("parameters"), dict):
        options = ", ".join(f"{k}={v!r}" for k, v in value["parameters"].items())
        return f"{next(iter(value.values()))}({options})"
    return repr(value)
