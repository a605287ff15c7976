"""Which measure is meant: by name, by object, or by what the data look like."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from featstream.errors import (
    DataTypeError,
    ParameterError,
    check_alpha,
    printable,
    unknown_name,
)
from featstream.measures.checks import FEW_VALUES, are_identifiers
from featstream.measures.fisher import FisherZ
from featstream.measures.independence import (
    ChiSquareTest,
    ConditionalTest,
    FisherZTest,
    GTest,
)
from featstream.measures.information import MutualInformation, SymmetricalUncertainty
from featstream.protocols import Block, Measure, SparseColumns

MEASURES: dict[str, Any] = {
    "fisher-z": FisherZ,
    "mi": MutualInformation,
    "su": SymmetricalUncertainty,
}
TESTS: dict[str, type[ChiSquareTest | FisherZTest | GTest]] = {
    "chi2": ChiSquareTest,
    "fisher-z": FisherZTest,
    "g2": GTest,
}


def register_measure(name: str, measure: Any) -> None:
    """Make a class of measures known by a name.

    It can then be given as ``measure=name``, and runs that use it can be resumed.

    Parameters
    ----------
    name : str
        Lower-case words joined by hyphens.
    measure : class
        A `featstream.protocols.Measure` that scikit-learn's ``get_params`` describes:
        its parameters are numbers, text, booleans or None.
    """
    if not isinstance(name, str) or not name.replace("-", "").isalnum():
        raise ParameterError(
            "The name of a measure must be words joined by hyphens. "
            f"Got {printable(name)}. Write 'distance-correlation'."
        )
    if not (isinstance(measure, type) and hasattr(measure, "bind")):
        raise DataTypeError(
            f"A measure is a class with a method bind(y). Got {printable(measure)}."
        )
    for known, other in MEASURES.items():
        same = other.__module__, other.__name__
        if (known == name or same[1] == measure.__name__) and same != (
            measure.__module__,
            measure.__name__,
        ):
            raise ParameterError(
                f"There is a measure {known!r} already, of the class {same[1]}. "
                f"Choose another name for {name!r}, or for its class."
            )
    MEASURES[name] = measure


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
        known: Measure = MEASURES[measure]()
        return known
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


class Choice(NamedTuple):
    """A measure that ``"auto"`` took: its name, its options, and the reason."""

    name: str
    reason: str
    options: dict[str, Any]
    is_guess: bool = False


def choose_measure(
    blocks: Sequence[Block], n_features: int
) -> tuple[FisherZ | MutualInformation | SymmetricalUncertainty, str]:
    """A measure for data that begin with these blocks, and the reason in words."""
    choice = propose_measure(blocks, n_features)
    return MEASURES[choice.name](**choice.options), choice.reason


def propose_measure(blocks: Sequence[Block], n_features: int) -> Choice:
    """What ``"auto"`` takes for data that begin with these blocks.

    Text, categories, booleans and whole numbers of at most ten distinct values
    are discrete: symmetrical uncertainty. Anything else is continuous: Fisher's
    Z. One continuous feature suffices, unless there is text: then symmetrical
    uncertainty it is, and continuous features are binned, whole numbers of more
    than ten distinct values among them. Columns of text that identify rows do not
    count. Only the first ``n_features`` are looked at.
    """
    looked_at = [
        (block, i) for block in blocks for i in range(min(block.n_columns, n_features))
    ][:n_features]
    text = _first_text(blocks, n_features)
    number, reason = _first_continuous(looked_at)
    if text is not None:
        reason = f"feature {printable(text)} is text or categorical"
        if number is not None:
            reason += f", and numbers such as {printable(number)} are cut into bins"
        options = {"max_categories": FEW_VALUES}
        return Choice("su", reason, options, is_guess=number is not None)
    return Choice("su" if number is None else "fisher-z", reason, {})


def _first_text(blocks: Sequence[Block], n_features: int) -> str | None:
    """The first column of text or categories that is no identifier."""
    for block in blocks:
        first = block.part(0, min(block.n_columns, n_features))
        n_features -= first.n_columns
        if first.nominal is not None:
            identifiers = are_identifiers(first)
            is_text = first.nominal
            if identifiers is not None:
                is_text = is_text & ~identifiers
            if is_text.any():
                return first.name(int(is_text.argmax()))
    return None


def _first_continuous(looked_at: list[tuple[Block, int]]) -> tuple[str | None, str]:
    """The first continuous column, if there is one, and how that is known."""
    for block, i in looked_at:
        if block.nominal is not None and block.nominal[i]:
            continue
        name, values = block.name(i), _values_of(block, i)
        if values.dtype.kind == "f" and np.any(values != np.floor(values)):
            fact = "values that are not whole numbers"
            return name, f"feature {printable(name)} has {fact}"
        n_distinct = np.unique(values).size
        if n_distinct > FEW_VALUES:
            return name, f"feature {printable(name)} has {n_distinct} distinct values"
    n_features = len(looked_at)
    return None, (
        f"none of the first {n_features} features has more than {FEW_VALUES} distinct "
        "values"
    )


def _values_of(block: Block, i: int) -> Any:
    """Values of a column, each at least once: the storage must not matter."""
    if isinstance(block.columns, SparseColumns):
        start, stop = block.columns.indptr[i], block.columns.indptr[i + 1]
        stored = block.columns.values[start:stop]
        return stored if stored.size == block.n_samples else np.append(stored, 0)
    return block.columns[:, i]
