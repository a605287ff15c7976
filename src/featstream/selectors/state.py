"""A selector's state as a description and arrays, and back again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from featstream.measures.resolve import Choice
from featstream.protocols import Fate, IntArray
from featstream.runs.arrays import damaged, join_text, split_text, take_array
from featstream.runs.folder import Saved
from featstream.runs.state import (
    fingerprint_of_target,
    target_arrays,
    target_from,
)
from featstream.selectors.stream import Stream
from featstream.selectors.trace import OVER_LIMIT, Names, Trace

if TYPE_CHECKING:
    from featstream.selectors.base import OnlineSelector

__all__ = ["arrays_of", "facts_of", "restore_state"]

_KEPT = "kept/"  # before the names of the arrays that the selector itself saves


def facts_of(selector: OnlineSelector) -> dict[str, Any]:
    """What a run says of a stream besides its arrays."""
    stream = selector._started()
    return {
        "arrives": "features",
        "n_samples": len(stream.y),
        "y_fingerprint": fingerprint_of_target(stream.y),
        "measure": None if stream.measure is None else stream.measure.name,
        "choice": None if stream.choice is None else stream.choice._asdict(),
        "is_sparse": stream.is_sparse,
        "n_seen": stream.n_seen,
        "n_kept": int(selector._kept()[0].size),
        "seconds": stream.seconds,
    }


def arrays_of(selector: OnlineSelector) -> dict[str, NDArray[Any]]:
    """All of a selector's state."""
    stream = selector._started()
    trace, named = stream.trace, stream.names.items()
    records = trace.records
    text, ends = join_text([name for _, name in named])
    arrays = {
        **target_arrays(stream.y),
        "trace_fate": records["fate"],
        "trace_relevance": records["relevance"],
        "trace_witness": records["witness"],
        "trace_arrivals": trace.arrivals if trace.level == "kept" else np.empty(0, int),
        "names": text,
        "name_ends": ends,
        "name_arrivals": np.array([arrival for arrival, _ in named], np.int64),
    }
    if stream.samples is not None:
        arrays["sample_hashes"] = stream.samples
    if stream.names.order.size:
        arrays["positions"] = stream.names.order.astype(np.int32)
    for name, array in selector._state_arrays().items():
        arrays[_KEPT + name] = array
    return arrays


def restore_state(selector: OnlineSelector, saved: Saved) -> None:
    """Put a selector into the state that a run has saved."""
    facts, arrays = saved.description, saved.arrays
    n_seen, chosen = facts["n_seen"], facts["measure"]
    y = target_from(arrays)
    if fingerprint_of_target(y) != facts["y_fingerprint"]:
        raise damaged("its target is not the one it began with")
    selector.start(y)
    stream = selector._stream
    if stream.measure is None and chosen is not None:
        told = facts.get("choice") or {"name": chosen, "reason": "", "options": {}}
        stream.choice = Choice(**told)
        options = stream.choice.options
        stream.measure = selector._measure_named(chosen, **options).bind(y)
    if chosen != (None if stream.measure is None else stream.measure.name):
        raise damaged("it names another measure than its own")
    stream.is_sparse, stream.seconds = facts["is_sparse"], facts["seconds"]
    if "sample_hashes" in arrays:
        stream.samples = take_array(arrays, "sample_hashes", np.uint64, (len(y),))
    _restore_trace(stream.trace, n_seen, arrays)
    stream.names = _names_from(arrays, n_seen)
    if "positions" in arrays:
        stream.names.order = _order_from(arrays, facts)
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
    fate = take_array(arrays, "trace_fate", np.uint8)
    relevance = take_array(arrays, "trace_relevance", np.float32)
    witness = take_array(arrays, "trace_witness", np.int32)
    arrivals = take_array(arrays, "trace_arrivals", np.int64)
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
        or not np.array_equal(witness >= 0, has_witness)
        or not np.isfinite(relevance).all()
    ):
        raise damaged("its trace contradicts itself")
    records = np.empty(fate.size, trace.records.dtype)
    records["fate"], records["relevance"] = fate, relevance
    records["witness"] = witness
    trace.restore(n_seen, records, arrivals)


def _names_from(arrays: Mapping[str, NDArray[Any]], n_seen: int) -> Names:
    arrivals = take_array(arrays, "name_arrivals", np.int64)
    words = split_text(
        take_array(arrays, "names", np.uint8),
        take_array(arrays, "name_ends", np.int64),
    )
    if (
        len(words) != arrivals.size
        or len(set(words)) != len(words)
        or not _is_increasing(arrivals, n_seen)
    ):
        raise damaged("its names do not fit its features")
    names = Names()
    if arrivals.size and arrivals[-1] - arrivals[0] == arrivals.size - 1:
        names.add(int(arrivals[0]), words)
    else:
        for arrival, word in zip(arrivals.tolist(), words, strict=True):
            names.add(arrival, [word])
    return names


def _order_from(arrays: Mapping[str, NDArray[Any]], facts: dict[str, Any]) -> IntArray:
    """Positions of features: of sources that are done, and perhaps of one that is not.

    Of the latter there are positions for features that are still to come.
    """
    order = take_array(arrays, "positions", np.int32).astype(np.int64)
    sources, n_done = facts["sources"], facts["n_seen"]
    is_open = bool(sources) and not sources[-1]["is_done"]
    if is_open:
        n_done = sources[-1]["begin"]
    done, rest = order[:n_done], order[n_done:]
    if (
        not np.array_equal(np.sort(done), np.arange(done.size))
        or not np.array_equal(np.sort(rest), n_done + np.arange(rest.size))
        or (rest.size and not is_open)
    ):
        raise damaged("its features are not where they can be")
    return order


def _check_kept(selector: OnlineSelector, stream: Stream) -> None:
    """The kept features are those that the trace calls kept, with their scores."""
    kept, scores = selector._kept()
    trace = stream.trace
    is_good = _is_increasing(kept, stream.n_seen) and kept.size == scores.size
    if is_good and trace.level is not None:
        is_kept = trace.records["fate"] == Fate.KEPT
        is_good = np.array_equal(kept, trace.arrivals[is_kept])
        if is_good and selector._scores_are_relevances:
            recorded = trace.records["relevance"][is_kept]
            is_good = np.array_equal(scores.astype(np.float32), recorded)
    if not is_good:
        raise damaged("its trace keeps other features")


def _is_increasing(arrivals: NDArray[Any], stop: int) -> bool:
    if not arrivals.size:
        return True
    is_in_range = arrivals[0] >= 0 and arrivals[-1] < stop
    return bool(is_in_range and (np.diff(arrivals) > 0).all())
