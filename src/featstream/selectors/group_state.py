"""The history of groups as plain arrays, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from featstream.protocols import Fate, IntArray
from featstream.runs.arrays import damaged, join_text, split_text, take_array
from featstream.selectors.trace import GroupTrace, Trace
from featstream.sources.labels import read_labels, write_labels

__all__ = ["group_arrays", "restore_groups"]

_TYPES = {
    "group_labels": np.uint8,
    "group_ends": np.int64,
    "group_fates": np.uint8,
    "group_n_kept": np.int64,
}


def group_arrays(groups: GroupTrace) -> dict[str, NDArray[Any]]:
    """All that is known of the groups."""
    text, _ = join_text([write_labels(groups.labels)])
    return {
        "group_labels": text,
        "group_ends": groups.ends,
        "group_fates": groups.fates,
        "group_n_kept": groups.n_kept,
    }


def restore_groups(
    groups: GroupTrace, arrays: Mapping[str, NDArray[Any]], trace: Trace
) -> dict[str, NDArray[Any]]:
    """Take over what `group_arrays` gave, and return the other arrays.

    `RunError` if the groups cannot be those of the features in the trace.
    """
    text, ends, fates, n_kept = (
        take_array(arrays, name, dtype) for name, dtype in _TYPES.items()
    )
    (words,) = split_text(text, np.array([text.size]))
    labels = read_labels(words)
    n_last = int(ends[-1]) if ends.size else 0
    sizes = np.diff(ends, prepend=0)
    if (
        not len(labels) == len(set(labels)) == ends.size == fates.size == n_kept.size
        or n_last != trace.n_seen
        or (sizes < 1).any()
        or (fates > Fate.DISPLACED).any()
        or (n_kept < 0).any()
        or (n_kept > sizes).any()
        or not np.array_equal(fates == Fate.KEPT, n_kept > 0)
        or (trace.level == "full" and not np.array_equal(fates, _fates(trace, ends)))
    ):
        raise damaged("its groups contradict themselves")
    groups.restore(labels, ends, fates, n_kept)
    return {name: array for name, array in arrays.items() if name not in _TYPES}


def _fates(trace: Trace, ends: IntArray) -> Any:
    """The fates of groups, from those of their features."""
    found = np.zeros(ends.size, np.uint8)
    begins = np.concatenate([[0], ends[:-1]])[: ends.size]
    for fate in (Fate.REDUNDANT, Fate.DISPLACED, Fate.KEPT):
        is_so = trace.records["fate"] == fate
        if is_so.size:
            found[np.logical_or.reduceat(is_so, begins)] = fate
    return found
