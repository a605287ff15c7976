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
from featstream.protocols import Fate, IntArray
from featstream.reporting.history import History
from featstream.selectors.result import OVER_LIMIT

ROOM = 1_500_000
"""Characters that the fates may take in a page."""
ROOM_FOR_NAMES = 800_000
_MOST_EVER = 30_000
"""Features once kept that can be found, if there is no room for all."""
_SAMPLE = 1 << 17
_RUNGS = ((4, False), (2, False), (4, True), (2, True), (0, True))
"""Bytes of each score, and whether only relevant features have one."""


def pack_fates(history: History) -> dict[str, Any]:
    """The recorded fates in plain JSON, by the position of a feature in its source."""
    n_features = history.result.n_features
    packed = {"n": 0, "nSeen": n_features, "reasons": _reasons(history)}
    if not len(history.trace):
        return packed | {"scope": "none"}
    fates, scores, witness, places = _by_position(history)
    data = None
    if places.size == n_features:
        for n_bytes, is_relevant_only in _RUNGS:
            data = _compress(fates, scores, witness, n_bytes, is_relevant_only)
            if data is not None:
                break
    scope = "all"
    if data is None:
        is_ever = (fates == Fate.KEPT) | (fates >= Fate.DISPLACED)
        ever = np.flatnonzero(is_ever)[:_MOST_EVER]
        scope = "once kept" if ever.size == np.count_nonzero(is_ever) else "first kept"
        fates, scores, witness = fates[ever], scores[ever], witness[ever]
        places, n_bytes, is_relevant_only = places[ever], 4, False
        data = _compress(fates, scores, witness, n_bytes, is_relevant_only, limit=None)
    others = np.unique(witness[witness >= 0])
    packed |= {
        "n": int(fates.size),
        "scope": scope,
        "bytes": n_bytes,
        "relevantOnly": is_relevant_only,
        "wide": bool(others.size >= 1 << 16),
        "data": data,
        "witnesses": _pack_numbers(others),
        "places": None if scope == "all" else _pack_numbers(places),
    }
    return packed | _pack_names(history, fates, places, others)


def _by_position(history: History) -> tuple[NDArray[Any], ...]:
    """Fates, scores, witnesses and positions, in the order of the source.

    Witnesses are positions too.
    """
    trace = history.trace
    records, places = trace.records, trace.arrivals
    witness = records["witness"].astype(np.int64)
    if history.stream is not None and history.stream.names.order.size:
        names = history.stream.names
        known = witness >= 0
        witness[known] = names.positions(witness[known])
        places = names.positions(places)
        order = np.argsort(places)
        records, witness, places = records[order], witness[order], places[order]
    return records["fate"], records["relevance"], witness, places


def _compress(
    fates: NDArray[Any],
    scores: NDArray[Any],
    witness: NDArray[Any],
    n_bytes: int,
    is_relevant_only: bool,
    limit: int | None = ROOM,
) -> str | None:
    """The columns in text; None if that takes more room than there is."""
    if limit is not None and fates.size > 2 * _SAMPLE:
        step = fates.size // _SAMPLE * 4096  # whole runs of features, from all over
        where = (np.arange(0, fates.size, step)[:, None] + np.arange(4096)).ravel()
        where = where[where < fates.size]
        part = fates[where], scores[where], witness[where]
        sample = _compress(*part, n_bytes, is_relevant_only, limit=None)
        assert sample is not None
        if len(sample) * fates.size / where.size > 1.2 * limit:
            return None
    others, number = np.unique(witness, return_inverse=True)
    number = number - np.count_nonzero(others < 0)
    has_witness = fates >= Fate.REDUNDANT
    is_wide = np.count_nonzero(others >= 0) >= 1 << 16
    numbers = number[has_witness].astype("<u4" if is_wide else "<u2")
    shown = scores[fates != Fate.IRRELEVANT] if is_relevant_only else scores
    planes = [fates.astype(np.uint8).tobytes(), _planes(numbers, numbers.itemsize)]
    if n_bytes:
        planes.append(_planes(_rounded(shown, n_bytes), n_bytes))
    text = _pack_bytes(b"".join(planes))
    return text if limit is None or len(text) <= limit else None


def _rounded(scores: NDArray[Any], n_bytes: int) -> NDArray[Any]:
    """Single precision as integers of which the upper bytes hold the number."""
    bits, n_lost = np.ascontiguousarray(scores, "<f4").view("<u4"), 8 * (4 - n_bytes)
    if n_lost:
        bits = bits + np.where(np.isfinite(scores), np.uint32(1 << (n_lost - 1)), 0)
    return (bits >> np.uint32(n_lost)).astype("<u4")


def _planes(values: NDArray[Any], n_bytes: int) -> bytes:
    """Byte by byte of all numbers, lowest first: like bytes compress well together."""
    bytes_of = np.ascontiguousarray(values).view(np.uint8)
    whole = bytes_of.reshape(values.size, values.itemsize)
    return np.ascontiguousarray(whole[:, :n_bytes].T).tobytes()


def _pack_names(
    history: History,
    fates: NDArray[Any],
    places: NDArray[Any],
    others: NDArray[Any],
) -> dict[str, Any]:
    """Names of as many features as there is room for.

    ``names`` is None where features have no names of their own; ``named`` says which
    features do: "all", "relevant" or "once kept", and ``namedAt`` where they are.
    """
    if history.stream is None or not len(history.stream.names):
        return {"names": None, "named": None}
    names = history.stream.names
    is_ever = (fates == Fate.KEPT) | (fates >= Fate.DISPLACED) | np.isin(places, others)
    choices = {
        "all": np.ones(fates.size, dtype=bool),
        "relevant": fates != Fate.IRRELEVANT,
        "once kept": is_ever,
    }
    for named, which in choices.items():
        chosen = places[which][:_MOST_EVER] if named == "once kept" else places[which]
        if chosen.size > ROOM_FOR_NAMES and named != "once kept":
            continue  # not even one character for each
        shown = [visible(names[a]) for a in names.arrivals(chosen).tolist()]
        text = _pack_bytes("\n".join(shown).encode())
        if len(text) <= ROOM_FOR_NAMES:
            break
    numbers = None if named == "all" else _pack_numbers(chosen)
    return {"names": text, "named": named, "namedAt": numbers}


def _pack_numbers(numbers: IntArray) -> dict[str, Any]:
    """Increasing numbers in text, by their differences."""
    steps = np.diff(numbers, prepend=0).astype("<u4")
    return {"n": int(numbers.size), "data": _pack_bytes(_planes(steps, 4))}


def _pack_bytes(content: bytes) -> str:
    return base64.b64encode(zlib.compress(content, 6)).decode()


def _reasons(history: History) -> dict[str, str]:
    """Sentences about each fate, with places for names and scores."""
    name, other, relevance = "{name}", "{other}", "its relevance {relevance}"
    said = {"1": f"{name} is kept; {relevance}."}
    origin = history.origin
    why = f"{relevance} does not pass the threshold"
    if origin is not None:
        why = origin._why_irrelevant(relevance)
    said["0"] = f"{name} is irrelevant: {why}."
    stored = history.trace.records["fate"]
    for code in (int(Fate.REDUNDANT), int(Fate.DISPLACED), OVER_LIMIT):
        fate = Fate(min(code, Fate.DISPLACED))
        text = f"{name} is redundant beside {other}; {relevance}."
        if fate is Fate.DISPLACED:
            text = f"{name} was displaced by {other}; {relevance}."
        first = np.flatnonzero(stored == code)[:1]
        if origin is not None and origin._is_reason_general and first.size:
            arrival = int(history.trace.arrivals_at(first)[0])
            text = origin._reason(arrival, fate, name, relevance, other)
        said[str(code)] = text
    return said
