"""Which features arrive together: groups laid over the columns of a source."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from featstream.errors import DataError, DataTypeError
from featstream.protocols import IndexedSource, Source, feature_name
from featstream.sources.grouping import (
    Layout,
    Mapped,
    Planned,
    Singles,
    label_of,
)
from featstream.sources.missing import is_missing

__all__ = ["lay_out"]


def lay_out(groups: Any, source: Source) -> Layout:
    """Check a grouping of the features of a source, and put groups together.

    Groups arrive in the order in which they first appear, and the features of a
    group in the order of the source or, in a list of index lists, as listed.

    Parameters
    ----------
    groups : array of labels, mapping of names to labels, list of index lists, or None
        One label a feature, or one list of positions a group. None makes each
        feature a group of its own, labelled with its name.
    source : Source
        The features.

    Returns
    -------
    Layout
        The groups in order of arrival.

    Examples
    --------
    >>> import numpy as np
    >>> from featstream.sources import ArraySource
    >>> lay_out(["a", "b", "a"], ArraySource(np.eye(3))).order
    array([0, 2, 1])
    """
    if groups is None:
        return Singles()
    if isinstance(groups, Mapping):
        names = getattr(source, "names", None)
        if names is None and source.n_features is None:
            return Mapped(groups)
        if names is None:
            names = [feature_name(i) for i in range(source.n_features or 0)]
        layout = _from_labels([label_of(name, groups) for name in names])
    elif _holds_lists(groups):
        layout = _from_lists(groups, source)
    else:
        layout = _from_labels(_as_labels(groups))
    n_features = layout.n_features
    if source.n_features is not None and source.n_features != n_features:
        raise DataError(
            f"`groups` has {n_features:,} labels for {source.n_features:,} features. "
            "Give one label a feature."
        )
    if layout.order is not None and not isinstance(source, IndexedSource):
        raise DataError(
            "The features of a group are scattered, and "
            f"{type(source).__name__} can only be read in order. Order its features "
            "by group, or give an array, a sparse matrix or a data frame, from which "
            "groups can be gathered."
        )
    return layout


def _holds_lists(groups: Any) -> bool:
    """Whether it is a list of index lists rather than of labels."""
    return (
        isinstance(groups, (list, tuple))
        and len(groups) > 0
        and all(isinstance(group, (list, range, set, np.ndarray)) for group in groups)
    )


def _as_labels(groups: Any) -> NDArray[Any]:
    if hasattr(groups, "to_numpy"):
        groups = groups.to_numpy()
    if not isinstance(groups, (np.ndarray, list, tuple, range)):
        raise DataTypeError(
            "`groups` must be an array of labels, a mapping of feature names to "
            f"labels, or a list of index lists. Got {type(groups).__name__}."
        )
    labels = np.asarray(groups)
    if labels.dtype.kind in "US" and not isinstance(groups, np.ndarray):
        labels = np.empty(len(groups), object)  # numpy makes text of numbers
        labels[:] = groups
    if labels.ndim != 1:
        raise DataError(
            f"`groups` has the shape {labels.shape}. Give one label a feature, in one "
            "dimension, or a list of index lists."
        )
    return labels


def _from_labels(labels: NDArray[Any] | list[Hashable]) -> Planned:
    """Features in order of the first appearance of their label."""
    if isinstance(labels, np.ndarray) and labels.dtype.kind in "biu":
        found, begins, codes = np.unique(labels, return_index=True, return_inverse=True)
        by_appearance = np.argsort(begins)
        codes = np.argsort(by_appearance)[codes]
        names = found[by_appearance].tolist()
    else:
        number_of: dict[Hashable, int] = {}
        coded = np.empty(len(labels), np.int64)
        listed = labels.tolist() if isinstance(labels, np.ndarray) else labels
        for i, label in enumerate(listed):
            if is_missing(label):
                raise DataError(
                    f"Feature {i} is in no group: its label is {label}. Every feature "
                    "needs one, of its own if need be."
                )
            coded[i] = number_of.setdefault(label, len(number_of))
        codes, names = coded, list(number_of)
    ends = np.cumsum(np.bincount(codes, minlength=len(names)))
    is_contiguous = bool(np.all(codes[:-1] <= codes[1:]))
    order = None if is_contiguous else np.argsort(codes, kind="stable")
    return Planned(names, ends, order)


def _from_lists(groups: Sequence[Any], source: Source) -> Planned:
    """Groups numbered from 0, their features as listed."""
    lists = [np.array(sorted(g) if isinstance(g, set) else g) for g in groups]
    for number, members in enumerate(lists):
        if not members.size:
            raise DataError(f"Group {number} of `groups` has no features.")
        if members.ndim != 1 or members.dtype.kind not in "iu":
            raise DataTypeError(
                f"Group {number} of `groups` is not a list of positions. Give "
                "integers, or map feature names to labels."
            )
    order = np.concatenate(lists).astype(np.int64)
    sizes = np.array([members.size for members in lists])
    n_features = order.size if source.n_features is None else source.n_features
    if order.min() < 0 or order.max() >= n_features:
        wrong = order[(order < 0) | (order >= n_features)][0]
        raise DataError(
            f"`groups` has the position {wrong} for {n_features:,} features, which are "
            "counted from 0."
        )
    times = np.bincount(order, minlength=n_features)
    if times.max() > 1:
        position = int(times.argmax())
        holders = np.repeat(np.arange(len(lists)), sizes)[order == position]
        raise DataError(
            f"Feature {position} is in the groups {' and '.join(map(str, holders))}. "
            "Groups must not overlap: leave it in one of them."
        )
    if times.min() == 0:
        raise DataError(
            f"Feature {int(times.argmin())} is in no group, as are "
            f"{int((times == 0).sum()) - 1:,} others. Every feature needs one: add "
            "them, or leave them out of the data."
        )
    is_in_order = bool(np.all(order == np.arange(order.size)))
    return Planned(
        list(range(len(lists))), np.cumsum(sizes), None if is_in_order else order
    )
