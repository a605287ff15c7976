"""Which measure is meant: by name, by object, or by what the data look like."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from featstream.errors import DataTypeError, unknown_name
from featstream.measures.conditional import ConditionalTest, check_alpha
from featstream.measures.contingency import ChiSquareTest, GTest
from featstream.measures.fisher import FisherZ
from featstream.measures.information import MutualInformation, SymmetricalUncertainty
from featstream.measures.partial import FisherZTest
from featstream.protocols import Block, Measure, SparseColumns

__all__ = [
    "MEASURES",
    "TESTS",
    "choose_measure",
    "resolve_measure",
    "resolve_test",
]

MEASURES: dict[str, type[FisherZ | SymmetricalUncertainty | MutualInformation]] = {
    "fisher-z": FisherZ,
    "mi": MutualInformation,
    "su": SymmetricalUncertainty,
}
TESTS: dict[str, type[ChiSquareTest | FisherZTest | GTest]] = {
    "chi2": ChiSquareTest,
    "fisher-z": FisherZTest,
    "g2": GTest,
}

_FEW_VALUES = 10


def resolve_measure(measure: str | Measure) -> Measure | None:
    """The measure that a parameter means; None for ``"auto"``.

    >>> resolve_measure("su")
    SymmetricalUncertainty()
    """
    if isinstance(measure, str):
        if measure == "auto":
            return None
        if measure not in MEASURES:
            raise unknown_name("measure", measure, [*MEASURES, "auto"])
        return MEASURES[measure]()
    if not hasattr(measure, "bind") or isinstance(measure, type):
        raise DataTypeError(
            f"`measure` must be a name or a measure object. Got {measure!r}. Write "
            "measure='su', or measure=FisherZ(alpha=0.01)."
        )
    return measure


def resolve_test(
    test: str | ConditionalTest, alpha: float, owner: str
) -> ConditionalTest | None:
    """The conditional test that a parameter means; None for ``"auto"``.

    >>> resolve_test("g2", 0.05, "OSFS")
    GTest(alpha=0.05)
    """
    if isinstance(test, ConditionalTest):
        return test
    if not isinstance(test, str):
        shown = type(test).__name__ if hasattr(test, "bind") else repr(test)
        raise DataTypeError(
            f"{owner} needs a conditional test and {shown} is not one. Use test='g2' "
            "(discrete) or test='fisher-z' (continuous)."
        )
    check_alpha(alpha, owner)
    if test == "auto":
        return None
    if test not in TESTS:
        raise unknown_name("test", test, [*TESTS, "auto"])
    return TESTS[test](alpha=alpha)


def choose_measure(
    blocks: Sequence[Block], n_features: int
) -> tuple[FisherZ | SymmetricalUncertainty, str]:
    """A measure for data that begin with these blocks, and the reason in words.

    Text, categories, booleans and whole numbers of at most ten distinct values
    are discrete: symmetrical uncertainty. Anything else is continuous: Fisher's
    Z. One continuous feature suffices, unless there is text. Only the first
    ``n_features`` are looked at.
    """
    looked_at = [
        (block, i) for block in blocks for i in range(min(block.n_columns, n_features))
    ][:n_features]
    for block, i in looked_at:
        if block.nominal is not None and block.nominal[i]:
            reason = f"feature {block.name(i)!r} is text or categorical"
            return SymmetricalUncertainty(), reason
    for block, i in looked_at:
        values = _values_of(block, i)
        if values.dtype.kind == "f" and np.any(values != np.floor(values)):
            reason = f"feature {block.name(i)!r} has values that are not whole numbers"
            return FisherZ(), reason
        n_distinct = np.unique(values).size
        if n_distinct > _FEW_VALUES:
            reason = f"feature {block.name(i)!r} has {n_distinct} distinct values"
            return FisherZ(), reason
    reason = (
        f"none of the first {len(looked_at)} features has more than {_FEW_VALUES} "
        "distinct values"
    )
    return SymmetricalUncertainty(), reason


def _values_of(block: Block, i: int) -> Any:
    """Values of a column, each at least once: the storage must not matter."""
    if isinstance(block.columns, SparseColumns):
        start, stop = block.columns.indptr[i], block.columns.indptr[i + 1]
        stored = block.columns.values[start:stop]
        return stored if stored.size == block.n_samples else np.append(stored, 0)
    return block.columns[:, i]
