"""Groups of features: drawn at random, or read from a file or from names."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from featstream.errors import DataError, ParameterError, printable
from featstream.protocols import IntArray, feature_name

__all__ = ["random_groups", "read_groups"]

_HEADER = ["feature", "group"]


def random_groups(n_features: int, n_groups: int, seed: int = 0) -> list[IntArray]:
    """Divide features at random into groups of equal size, but for one more or less.

    It is the protocol of Section 5.6 of the paper, which has no data with groups.

    Parameters
    ----------
    n_features : int
        Features to divide.
    n_groups : int
        Groups to make of them.
    seed : int, default=0
        The same seed gives the same groups.

    Returns
    -------
    list of ndarray of int
        The features of each group, in the order in which they arrive.

    Examples
    --------
    >>> from featstream import random_groups
    >>> [sorted(group.tolist()) for group in random_groups(6, 2)]
    [[2, 3, 5], [0, 1, 4]]
    """
    if not 1 <= n_groups <= n_features:
        raise ParameterError(
            f"`n_groups` of random_groups must be between 1 and {n_features}, the "
            f"number of features. Got {n_groups}."
        )
    order = np.random.default_rng(seed).permutation(n_features)
    return np.array_split(order, n_groups)


def read_groups(
    path: str | os.PathLike[str] | None = None,
    *,
    size: int | None = None,
    pattern: str | None = None,
    names: Sequence[str] | None = None,
    n_features: int | None = None,
    first: int = 0,
) -> dict[str, str] | list[str] | IntArray:
    """Groups from a file, by size or from the names of features.

    Exactly one of `path`, `size` and `pattern` is given.

    Parameters
    ----------
    path : str or path-like
        A text file with one label a line, in the order of the features; or a CSV
        file of two columns, feature and group, with or without that header.
    size : int
        Features in a group, in order; the last may have fewer.
    pattern : str
        A regular expression: the first group in parentheses, or else the whole
        match, is the label.
    names : sequence of str, optional
        Names of the features, for `pattern`.
    n_features : int, optional
        Number of features, for `size`; and for `pattern` if they have no names.
    first : int, default=0
        Number of the first group, for `size`: features that arrive later are in
        other groups than those before.

    Returns
    -------
    dict, list or ndarray
        What `GroupSAOLA.fit` takes for ``groups``.

    Examples
    --------
    >>> from featstream import read_groups
    >>> read_groups(size=2, n_features=5)
    array([0, 0, 1, 1, 2])
    >>> read_groups(pattern=r"(.*)_", names=["chr1_17", "chr1_40", "chrX_3"])
    ['chr1', 'chr1', 'chrX']
    """
    if sum(given is not None for given in (path, size, pattern)) != 1:
        raise ParameterError(
            "read_groups takes one of `path`, `size` and `pattern`. Got "
            f"path={path!r}, size={size!r}, pattern={pattern!r}."
        )
    if path is not None:
        return _read_file(Path(path))
    if names is None and n_features is None:
        raise ParameterError(
            "read_groups needs `n_features`, the number of features, or their `names`."
        )
    n_features = n_features if names is None else len(names)
    assert n_features is not None
    if size is not None:
        if size < 1:
            raise ParameterError(
                f"`size` of read_groups must be at least 1. Got {size}."
            )
        return first + np.arange(n_features) // size
    assert pattern is not None
    return _match(pattern, names or [feature_name(i) for i in range(n_features)])


def _match(pattern: str, names: Sequence[str]) -> list[str]:
    try:
        expression = re.compile(pattern)
    except re.error as error:
        raise ParameterError(
            f"`pattern` of read_groups is not a regular expression: {error}. "
            f"Got {printable(pattern)}."
        ) from None
    labels = []
    for name in names:
        found = expression.search(name)
        label = found and found[min(1, expression.groups)]
        if label is None:
            raise DataError(
                f"Feature {printable(name)} is in no group: {printable(pattern)} does "
                "not match it. Every feature needs a group."
            )
        labels.append(label)
    return labels


def _read_file(path: Path) -> dict[str, str] | list[str]:
    """Read labels, or pairs of feature and group, and say which line is wrong."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not text in UTF-8: {error.reason}.") from None
    rows = [row for row in _rows(path, text) if row[1]]
    if not rows:
        raise DataError(f"{path} has no groups. Give a label a line, or feature,group.")
    width = len(rows[0][1])
    if width > 2:
        raise DataError(
            f"{path}, line {rows[0][0]}: {width} columns where one (group) or two "
            "(feature, group) are expected."
        )
    if width == 2 and [cell.strip().lower() for cell in rows[0][1]] == _HEADER:
        rows = rows[1:]
    for line, row in rows:
        if len(row) != width:
            raise DataError(
                f"{path}, line {line}: {len(row)} columns where the first line has "
                f"{width}."
            )
        if not row[-1].strip():
            raise DataError(f"{path}, line {line}: the group is empty.")
    if width == 1:
        return [row[0].strip() for _, row in rows]
    group_of: dict[str, str] = {}
    for line, (feature, group) in rows:
        feature, group = feature.strip(), group.strip()
        if group_of.setdefault(feature, group) != group:
            raise DataError(
                f"{path}, line {line}: feature {printable(feature)} is in group "
                f"{printable(group)} and, further up, in "
                f"{printable(group_of[feature])}. Groups must not overlap."
            )
    return group_of


def _rows(path: Path, text: str) -> list[tuple[int, list[str]]]:
    reader = csv.reader(text.splitlines(), strict=True)
    try:
        return [(reader.line_num, row) for row in reader]
    except csv.Error as error:
        raise DataError(f"{path}, line {reader.line_num}: {error}.") from None
