"""Selected features that say nothing about new samples: copies of y, row counters.

They are looked for among the most relevant features alone, so that scanning costs no
more: a copy of the target has the highest relevance, and a counter of rows that are
sorted by class is near it.
"""

from __future__ import annotations

import warnings
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from featstream.errors import (
    DataError,
    FeatstreamWarning,
    printable,
    some_of,
)
from featstream.measures.inputs import as_vector, without_values
from featstream.protocols import Block, IndexedSource, Source, SparseColumns
from featstream.selectors.stream import Stream

_N_TOP = 5
"""How many of the kept features are looked at."""

_LEAST_ROWS = 10
"""With fewer rows a column may rise with them, or equal the target, by chance."""

_CHANCE = 24.0
"""Whole numbers from a range of n * n / 24 are all different by chance once in 160,000
times: exp(-12), for n draws from a range of r give that with exp(-n * n / (2 * r))."""


def is_target_in_other_words(
    values: NDArray[Any], y: NDArray[Any], *, is_numeric: bool
) -> bool:
    """Whether a column is equal to the target, recoded, or negated.

    Each of its values goes with one class, and each class with one value. A column of
    numbers beside a numeric target rises or falls with it, without exception.
    """
    if y.size < _LEAST_ROWS:
        return False
    distinct, codes = np.unique(values, return_inverse=True)
    classes, labels = np.unique(y, return_inverse=True)
    if distinct.size != classes.size or distinct.size < 2:
        return False
    partner = np.full(distinct.size, -1)
    partner[codes] = labels
    if not np.array_equal(partner[codes], labels):
        return False
    if not is_numeric:
        return np.unique(partner).size == partner.size
    steps = np.diff(partner)
    return bool((steps > 0).all() or (steps < 0).all())


def counts_the_rows(values: NDArray[Any]) -> bool:
    """Whether a column rises or falls strictly with the number of the row."""
    steps = np.diff(values)
    return values.size >= _LEAST_ROWS and bool((steps > 0).all() or (steps < 0).all())


def numbers_the_rows(values: NDArray[Any]) -> bool:
    """Whether a column has another whole number in every row, as identifiers do.

    Measurements may be whole numbers and all different as well, but then by far not all
    numbers of their range occur.
    """
    if values.size < _LEAST_ROWS or not np.all(values == np.floor(values)):
        return False
    span = float(values.max()) - float(values.min()) + 1.0
    is_narrow = span <= max(values.size, values.size**2 / _CHANCE)
    return is_narrow and np.unique(values).size == values.size


def warn_of_suspects(
    selector: Any, source: Source, begin: int, *, is_numeric: bool
) -> None:
    """Name the most relevant features of a source that are no measurements."""
    stream: Stream = selector._stream
    kept, scores = selector._kept()
    is_new = kept >= begin
    kept, scores = kept[is_new], scores[is_new]
    if not kept.size or source.n_features is None:
        return
    copies, counters, numbers = [], [], []
    y = as_vector(stream.y)
    for arrival in kept[np.argsort(-scores, kind="stable")[:_N_TOP]].tolist():
        position = int(stream.names.positions(np.array([arrival]))[0]) - begin
        found = None
        with suppress(OSError, DataError):  # it has been read once; this is a courtesy
            found = _read_column(source, position)
        if found is None:
            continue
        values, is_nominal = found
        shown = printable(stream.names[arrival])
        if is_target_in_other_words(values, y, is_numeric=is_numeric):
            copies.append(shown)
        elif not is_nominal and counts_the_rows(values):
            counters.append(shown)
        elif not is_nominal and numbers_the_rows(values):
            numbers.append(shown)
    _warn_of_copies(copies)
    _warn_of_counters(counters, numbers)


def _read_column(source: Source, position: int) -> tuple[NDArray[Any], bool] | None:
    """The values of one column, and whether they are codes of categories."""
    if isinstance(source, IndexedSource):
        blocks = source.blocks_at(np.array([position]))
    else:
        blocks = source.blocks(position)
    block = next(blocks, None)
    if block is None:
        return None
    block = block.part(0, 1)
    is_nominal = block.nominal is not None and bool(block.nominal[0])
    return np.array(block.to_dense()[:, 0]), is_nominal


def warn_of_single(
    values: NDArray[Any], name: str, stream: Stream, *, is_numeric: bool
) -> None:
    """Warn if a feature that arrived alone is the target in other words."""
    y = as_vector(stream.y)
    if is_target_in_other_words(values, y, is_numeric=is_numeric):
        _warn_of_copies([printable(name)])


def _warn_of_copies(shown: list[str]) -> None:
    if not shown:
        return
    be = "is" if len(shown) == 1 else "are"
    warnings.warn(
        f"{some_of(shown, _N_TOP)} {be} the target in other words: each value goes "
        "with one label, and each label with one value. If it was made from the "
        "target, or is known no sooner, leave it out: other features are redundant "
        "beside it. With target_copies='drop' SelectFromStream does so.",
        FeatstreamWarning,
        stacklevel=5,
    )


def _warn_of_counters(counters: list[str], numbers: list[str]) -> None:
    for shown, what in (
        (counters, "with the number of the row, from the first to the last"),
        (numbers, ""),
    ):
        if not shown:
            continue
        is_one = len(shown) == 1
        how = f"rise{'s' * is_one} or fall{'s' * is_one} {what}"
        if not what:
            how = f"{'has' if is_one else 'have'} another whole number in every row"
        warnings.warn(
            f"{some_of(shown, _N_TOP)} {how}, like a counter or an identifier. What "
            "the order of the rows, or of their numbers, says about the target does "
            "not hold for new samples: leave such features out, unless they measure "
            "something.",
            FeatstreamWarning,
            stacklevel=5,
        )


def find_copies(block: Block, y: NDArray[Any], *, is_numeric: bool) -> NDArray[Any]:
    """Which columns of a block are the target in other words.

    Two rows have one value if and only if they have one label. A few pairs of rows tell
    this of nearly all columns at once; what is left is compared as a whole.
    """
    rng = np.random.default_rng(0)
    pairs = rng.integers(0, y.size, (2, 32))
    same = y[pairs[0]] == y[pairs[1]]
    if isinstance(block.columns, SparseColumns):
        # What is not stored is one value, and so one label, or no row has it.
        sizes = np.diff(block.columns.indptr)
        counts = np.unique(y, return_counts=True)[1]
        may_be = np.isin(sizes, [y.size, *(y.size - counts).tolist()])
    else:
        first, second = block.columns[pairs[0]], block.columns[pairs[1]]
        may_be = ((first == second) == same[:, None]).all(axis=0)
    found = np.zeros(block.n_columns, np.bool_)
    for i in np.flatnonzero(may_be).tolist():
        values = block.part(i, i + 1).to_dense()[:, 0]
        found[i] = is_target_in_other_words(values, y, is_numeric=is_numeric)
    return found


def without_copies(block: Block, stream: Stream, *, is_numeric: bool) -> Block:
    """The block with a constant in place of each copy of the target, which is noted."""
    found = find_copies(block, as_vector(stream.y), is_numeric=is_numeric)
    if not found.any():
        return block
    for i in np.flatnonzero(found).tolist():
        stream.copies[block.start + i] = block.name(i)
    return without_values(block, found)


def warn_of_copies_left_out(stream: Stream) -> None:
    """Name the copies of the target that were left out, once."""
    if not stream.copies or stream.has_warned_of_copies:
        return
    stream.has_warned_of_copies = True
    shown = [printable(name) for _, name in sorted(stream.copies.items())]
    be = "is" if len(shown) == 1 else "are"
    warnings.warn(
        f"Left out, with relevance 0: {some_of(shown, _N_TOP)} {be} the target in "
        "other words.",
        FeatstreamWarning,
        stacklevel=5,
    )
