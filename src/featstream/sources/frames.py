"""Sources over data frames: pandas, polars, pyarrow and their like.

narwhals asks what a frame is, so that none of them is imported here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from featstream.errors import DataTypeError, printable
from featstream.protocols import Block, IntArray, feature_name
from featstream.sources.kernels.transpose import by_column, has_whole_rows
from featstream.sources.memory import SizedSource
from featstream.sources.missing import refuse_hidden_missing
from featstream.sources.samples import index_names
from featstream.sources.values import (
    BLOCK_BYTES,
    NamedColumn,
    as_column,
    as_column_of_objects,
    block_width,
    check_dimensions,
    check_names,
    code_categories,
    group_columns,
)

MAX_FRAME_COLUMNS = 1024

EXACT_IN_FLOAT = (nw.Int8, nw.Int16, nw.Int32, nw.UInt8, nw.UInt16, nw.UInt32)
"""Integers that survive when numpy makes floats of them, beside a float or a null."""

FLOATS = (nw.Float32, nw.Float64)

PLAIN = (*EXACT_IN_FLOAT, nw.Int64, nw.UInt64, *FLOATS)
"""What numpy and the kernels know as well."""


def is_frame(X: Any) -> bool:
    """Whether `FrameSource` takes ``X``.

    >>> is_frame([[1, 2]])
    False
    """
    return bool(
        nw.dependencies.is_into_dataframe(X) or nw.dependencies.is_polars_lazyframe(X)
    )


class FrameSource(SizedSource):
    """The columns of a data frame.

    Parameters
    ----------
    frame : pandas.DataFrame, polars.DataFrame, polars.LazyFrame or pyarrow.Table
        Or any other eager frame that narwhals knows. A LazyFrame is evaluated
        once for each block, for the columns of that block alone, and must give its
        rows in the same order each time.
    block_bytes : int, default=2**23
        Size of a block, of at most 1024 columns.

    Attributes
    ----------
    n_samples, n_features : int
        The shape of the frame.
    names : list of str or None
        The names of its columns; None if they are not strings.
    sample_names : list of str or None
        The index of a pandas frame, unless it is a plain range.

    Notes
    -----
    Text and categorical columns become nominal codes, in sorted order, with -1
    for a missing value. Missing numbers and booleans become NaN. Integers so large
    that a float would make two of them equal become codes if some are missing.
    Dates, durations and nested columns are refused.

    Examples
    --------
    >>> import polars as pl
    >>> from featstream.sources import FrameSource
    >>> source = FrameSource(pl.DataFrame({"size": [3, 5], "colour": ["red", "blue"]}))
    >>> block = next(source.blocks())
    >>> block.names, block.columns.tolist(), block.nominal.tolist()
    (['size', 'colour'], [[3, 1], [5, 0]], [False, True])
    """

    def __init__(self, frame: Any, *, block_bytes: int = BLOCK_BYTES) -> None:
        names, samples = _column_names(frame), index_names(frame)
        checked = None if names is None else check_names(names, len(names))
        if names is None:  # pandas; its own names need not even be unique
            frame = frame.set_axis(range(frame.shape[1]), axis="columns")
        self._frame: Any = nw.from_native(frame)
        if isinstance(self._frame, nw.LazyFrame):
            self._positions = self._frame.collect_schema().names()
            n_samples = int(self._frame.select(nw.len()).collect().item())
        else:
            self._positions = self._frame.columns
            n_samples = self._frame.shape[0]
        shape = check_dimensions((n_samples, len(self._positions)))
        super().__init__(shape, about=self._frame.implementation.value)
        self.names, self.sample_names, self.block_bytes = checked, samples, block_bytes

    def blocks(self, start: int = 0) -> Iterator[Block]:
        """Yield the columns from position ``start`` on."""
        return self._blocks(range(self.n_features), start)

    def blocks_at(self, positions: IntArray, start: int = 0) -> Iterator[Block]:
        """Yield the columns at these positions, in this order, from ``start`` on."""
        return self._blocks(positions.tolist(), start)

    def _blocks(self, positions: Sequence[int], start: int) -> Iterator[Block]:
        width = min(block_width(self.n_samples, 8, self.block_bytes), MAX_FRAME_COLUMNS)
        for first in range(start, len(positions), width):
            chosen = positions[first : first + width]
            part = self._part(chosen)
            columns = _plain_numbers(part)
            if columns is not None:
                names = None if self.names is None else [self.names[i] for i in chosen]
                yield Block(columns, first, names)
            else:
                coded = self._coded_columns(part, chosen)
                yield from group_columns(coded, first, block_bytes=self.block_bytes)

    def _part(self, chosen: Sequence[int]) -> Any:
        if isinstance(self._frame, nw.LazyFrame):
            return self._frame.select([self._positions[i] for i in chosen]).collect()
        if isinstance(chosen, range):
            return self._frame[:, chosen.start : chosen.stop]  # without a copy
        return self._frame[:, chosen]

    def _coded_columns(
        self, part: Any, positions: Sequence[int]
    ) -> Iterator[NamedColumn]:
        for i, series in zip(positions, part.iter_columns(), strict=True):
            name = None if self.names is None else self.names[i]
            yield name, *_coded(series, feature_name(i) if name is None else name)


def _column_names(frame: Any) -> list[Any] | None:
    """Names of the columns, by scikit-learn's rule: all strings, or none."""
    if nw.dependencies.is_pyarrow_table(frame):
        names = frame.column_names
    elif nw.dependencies.is_polars_lazyframe(frame):
        names = frame.collect_schema().names()
    else:
        names = list(getattr(frame, "columns", ()))
    kinds = sorted({type(name).__qualname__ for name in names})
    if len(kinds) > 1 and "str" in kinds:
        raise DataTypeError(
            "Feature names are only supported if all input features have string "
            f"names, but your input has {kinds} as feature name / column name types. "
            "If you want feature names to be stored and validated, you must convert "
            "them all to strings, by using X.columns = X.columns.astype(str) for "
            "example. Otherwise you can remove feature / column names from your input "
            "data, or convert them all to a non-string data type."
        )
    return names if kinds in (["str"], []) else None


def _plain_numbers(part: Any) -> NDArray[Any] | None:
    """All columns at once, if they are numbers and one array can hold them exactly."""
    dtypes = set(part.schema.values())
    if not dtypes <= set(PLAIN):
        return None
    array = part.to_numpy()
    is_exact = array.dtype.kind in "iu" or (
        array.dtype.kind == "f" and dtypes <= {*EXACT_IN_FLOAT, *FLOATS}
    )
    if not is_exact:
        return None
    return array if has_whole_rows(array) else by_column(array)


def _coded(series: Any, name: str) -> tuple[NDArray[Any], bool]:
    dtype = series.dtype
    if dtype.is_temporal() or dtype.is_nested():
        hint = (
            "Convert it to a number, for instance of days since a fixed date."
            if dtype.is_temporal()
            else "Give each of its fields as a feature of its own."
        )
        raise DataTypeError(
            f"Feature {printable(name)} has dtype {dtype}, which is neither numbers "
            f"nor text. {hint}"
        )
    if dtype in (nw.Categorical, nw.Enum):
        return _code_categorical(series, name), True
    has_nulls = series.null_count() > 0
    if dtype == nw.Boolean and has_nulls:
        return series.cast(nw.Float64).to_numpy(), False
    is_awkward = dtype.is_integer() and (has_nulls or dtype not in PLAIN)
    if is_awkward or dtype in (nw.String, nw.Decimal):
        return as_column_of_objects(series.to_list(), name)
    return as_column(np.asarray(series.to_numpy()), name)


def _code_categorical(series: Any, name: str) -> NDArray[Any]:
    """Code by distinct value; categories need not be text, nor even ordered."""
    values = series.to_list()
    refuse_hidden_missing(values, f"Feature {printable(name)}")
    present = series.drop_nulls().unique().to_list()
    try:
        present.sort()
    except TypeError:
        present = list(dict.fromkeys(series.drop_nulls().to_list()))
    return code_categories(values, present)
