"""Class labels that may be something else: spellings of others, or missing ones."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from featstream.errors import DataError, FeatstreamWarning, label_text, some_of
from featstream.measures.inputs import Labels

_NO_LABEL = ("", "nan", "NaN", "<NA>", "NaT")
"""What libraries write for a missing label when they turn it into text."""

_WORDS = {
    *("none", "na", "n/a", "n.a.", "null", "nil", "missing", "unknown", "unk", "unkn"),
    *("undefined", "not available", "not applicable", "no data", "nd", "n.d.", "blank"),
    *("?", "??", ".", "..", "-", "--", "*", "#"),
}
"""Words that mean a missing label beside others, in lower case."""

_FAR = (-9999, -999, -99, -9, 99, 999, 9999)
"""Numbers that mean a missing label if all others are far from them."""

_SHOWN = 6


def check_labels(labels: Labels) -> None:
    """Refuse labels that are missing ones as text; warn of others that are odd."""
    classes = labels.classes.tolist()
    counts = labels.counts.tolist()
    if labels.classes.dtype.kind == "U":
        _refuse_missing(labels)
        _warn_of_spellings(classes, counts)
        odd = [word for word in classes if word.strip().casefold() in _WORDS]
    elif labels.classes.dtype.kind in "iuf":
        odd = _odd_numbers(labels)
    else:
        return
    others = [label for label in classes if label not in odd]
    if not odd or len(others) < 2:
        return
    size_of = dict(zip(classes, counts, strict=True))
    is_one = len(odd) == 1
    what = "it looks like a missing label" if is_one else "they look like missing ones"
    warnings.warn(
        f"y has the class{'' if is_one else 'es'} {_sized(odd, size_of)} beside "
        f"{_sized(others, size_of)}: {what}. If so, drop those samples; otherwise "
        "features are selected that tell them from the others.",
        FeatstreamWarning,
        stacklevel=4,
    )


def _refuse_missing(labels: Labels) -> None:
    for code, word in enumerate(labels.classes.tolist()):
        if word.strip() in _NO_LABEL:
            n_rows, row = int(labels.counts[code]), int(np.argmax(labels.codes == code))
            raise DataError(
                f"y has {n_rows:,} missing label{'s' * (n_rows > 1)}: the text "
                f"{word!r}, the first at row {row}. Drop those samples, or give them a "
                "label."
            )


def _warn_of_spellings(classes: Sequence[str], counts: Sequence[int]) -> None:
    """Warn of labels that differ by case or blanks alone."""
    alike = defaultdict(list)
    for label in classes:
        alike[" ".join(label.split()).casefold()].append(label)
    groups = [group for group in alike.values() if len(group) > 1]
    if not groups:
        return
    size_of = dict(zip(classes, counts, strict=True))
    found = some_of([_sized(group, size_of) for group in groups], 3)
    warnings.warn(
        f"y has labels that differ by upper and lower case or by blanks alone: {found}."
        " If they mean the same, write them in the same way; they are now classes of "
        "their own.",
        FeatstreamWarning,
        stacklevel=5,
    )


def _odd_numbers(labels: Labels) -> list[float]:
    """Numbers that stand for missing labels beside at least two classes."""
    classes, counts = labels.classes, labels.counts
    odd = []
    for label, n_rows in zip(classes.tolist(), counts.tolist(), strict=True):
        is_other = ~np.isin(classes, [*_FAR, label])
        others = classes[is_other]
        if others.size < 2:
            continue
        is_far = label in _FAR and np.abs(others).max() < abs(label) / 2
        # Among 0 and 1, -1 may be a class, unless it is rare.
        is_rare = 2 * n_rows < counts[is_other].min()
        is_minus = label == -1 and others.min() >= 0 and is_rare
        if is_far or is_minus:
            odd.append(label)
    return odd


def _sized(labels: Sequence[Any], size_of: Mapping[Any, int]) -> str:
    """Labels with the number of their rows; text in quotes."""
    shown = [
        f"{label!r} ({size_of[label]:,})"
        if isinstance(label, str)
        else f"{label_text(label)} ({size_of[label]:,})"
        for label in labels
    ]
    return some_of(shown, _SHOWN)
