"""The fates of all features, small enough to be searched inside a page.

Fates, witnesses and scores are columns of bytes, compressed together. The page
unpacks them at the first search. Where they would take too much room, scores get
fewer digits, then those of irrelevant features are left out, then all scores, and at
last only the features that were ever kept can be found. The page says which.
"""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from featstream.errors import visible
from featstream.protocols import BoolArray, Fate, IntArray
from featstream.reporting.history import History
from featstream.selectors.result import OVER_LIMIT

ROOM = 1_500_000
"""Characters that the fates may take in a page."""
ROOM_FOR_NAMES = 800_000
_MOST_EVER = 30_000
"""Features once kept that can be found, if there is no room for all."""
_SAMPLE = 1 << 17
_RUNGS = ((6, False), (2, False), (6, True), (2, True), (0, True))
"""Digits of each score, and whether only relevant features have one."""


def pack_fates(history: History) -> dict[str, Any]:
    """The recorded fates in plain JSON, by the position of a feature in its source."""
    n_features = history.result.n_features
    if not len(history.trace):
        return {"n": 0, "nSeen": n_features, "scope": "none"}
    records, places = _by_position(history)
    scope = "all"
    for digits, is_relevant_only in _RUNGS if places.size == n_features else ():
        data = _compress(records, digits, is_relevant_only, ROOM)
        if data:
            break
    else:
        is_ever = _was_kept(records)
        ever = np.flatnonzero(is_ever)[:_MOST_EVER]
        scope = "once kept" if ever.size == np.count_nonzero(is_ever) else "first kept"
        records, places, (digits, is_relevant_only) = (
            records[ever],
            places[ever],
            _RUNGS[0],
        )
        data = _compress(records, digits, is_relevant_only)
    witnesses = np.unique(records["witness"][records["witness"] >= 0])
    packed = {
        "n": int(records.size),
        "nSeen": n_features,
        "reasons": _reasons(history),
        "scope": scope,
        "digits": digits,
        "relevantOnly": is_relevant_only,
        "data": data,
        "witnesses": _pack_numbers(witnesses),
        "places": None if scope == "all" else _pack_numbers(places),
    }
    return packed | _pack_names(history, records, places, witnesses)


def _was_kept(records: NDArray[Any]) -> BoolArray:
    """Which features were ever kept."""
    return np.isin(records["fate"], (Fate.KEPT, Fate.DISPLACED, OVER_LIMIT))


def _by_position(history: History) -> tuple[NDArray[Any], IntArray]:
    """The records in the order of the source, and their positions there.

    Witnesses are positions too.
    """
    names = history.stream.names
    records, places = history.trace.records, names.positions(history.trace.arrivals)
    if names.order.size:
        order = np.argsort(places)
        records, places = records[order], places[order]
        has_witness = records["witness"] >= 0
        witness = records["witness"][has_witness]
        records["witness"][has_witness] = names.positions(witness)
    return records, places


def _compress(
    records: NDArray[Any], digits: int, is_relevant_only: bool, room: float = np.inf
) -> str:
    """The columns as text; empty if that takes more room than there is."""
    if records.size > 2 * _SAMPLE and room < np.inf:
        step = records.size // _SAMPLE * 4096  # blocks of features, from all over
        where = (np.arange(0, records.size, step)[:, None] + np.arange(4096)).ravel()
        sample = records[where[where < records.size]]
        length = len(_compress(sample, digits, is_relevant_only))
        if length * records.size / sample.size > 1.2 * room:
            return ""
    fates, scores = np.ascontiguousarray(records["fate"]), records["relevance"]
    witnesses, number = np.unique(records["witness"], return_inverse=True)
    number = number - np.count_nonzero(witnesses < 0)
    if is_relevant_only:
        scores = scores[fates != Fate.IRRELEVANT]
    bits = np.ascontiguousarray(scores, "<f4").view("<u4")
    if digits == 2:  # round to the upper half; the lower half is 0 and takes no room
        half = np.where(np.isfinite(scores), np.uint32(1 << 15), np.uint32(0))
        bits = (bits + half) & np.uint32(0xFFFF0000)
    content = fates.tobytes() + _planes(number[fates >= Fate.REDUNDANT])
    text = _pack_bytes(content + (_planes(bits) if digits else b""))
    return text if len(text) <= room else ""


def _planes(values: NDArray[Any]) -> bytes:
    """The lowest bytes of all numbers, then the next: like bytes compress well."""
    return values.astype("<u4").view(np.uint8).reshape(-1, 4).T.tobytes()


def _pack_names(
    history: History, records: NDArray[Any], places: IntArray, witnesses: IntArray
) -> dict[str, Any]:
    """Names of as many features as there is room for.

    ``names`` is None where features have no names of their own; ``named`` says which
    features do: "all", "relevant" or "once kept", and ``namedAt`` where they are.
    """
    names = history.stream.names
    if not len(names):
        return {"names": None, "named": None}
    choices = {
        "all": places,
        "relevant": places[records["fate"] != Fate.IRRELEVANT],
        "once kept": places[_was_kept(records)],
    }
    for named, own in choices.items():
        chosen = np.union1d(own, witnesses)
        if named == "once kept":
            chosen = chosen[:_MOST_EVER]
        elif chosen.size > ROOM_FOR_NAMES:
            continue  # not even one character for each
        shown = [visible(names[a]) for a in names.arrivals(chosen).tolist()]
        text = _pack_bytes("\n".join(shown).encode())
        if len(text) <= ROOM_FOR_NAMES:
            break
    is_same = np.array_equal(chosen, places)
    numbers = None if is_same else _pack_numbers(chosen)
    return {"names": text, "named": named, "namedAt": numbers}


def _pack_numbers(numbers: IntArray) -> dict[str, Any]:
    """Increasing numbers in text, by their differences."""
    steps = np.diff(numbers, prepend=0)
    return {"n": int(numbers.size), "data": _pack_bytes(_planes(steps))}


def _pack_bytes(content: bytes) -> str:
    return base64.b64encode(zlib.compress(content, 6)).decode()


def _reasons(history: History) -> dict[int, str]:
    """A sentence about each fate, with places for names and scores."""
    name, other, relevance = "{name}", "{other}", "its relevance {relevance}"
    trace, origin = history.trace, history.origin
    said = {
        int(Fate.KEPT): f"{name} is kept; {relevance}.",
        int(Fate.IRRELEVANT): f"{name} is irrelevant: "
        f"{origin._why_irrelevant(relevance)}.",
    }
    for code in (int(Fate.REDUNDANT), int(Fate.DISPLACED), OVER_LIMIT):
        fate = Fate(min(code, Fate.DISPLACED))
        how = "is redundant beside" if fate is Fate.REDUNDANT else "was displaced by"
        said[code] = f"{name} {how} {other}; {relevance}."
        first = np.flatnonzero(trace.records["fate"] == code)[:1]
        if origin._is_reason_general and first.size:
            arrival = int(trace.arrivals_at(first)[0])
            said[code] = origin._reason(arrival, fate, name, relevance, other)
    return said
