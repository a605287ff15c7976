"""Symmetrical uncertainty and mutual information, for discrete features."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from featstream.errors import ParameterError, printable
from featstream.kernels.binning import MDL, QUANTILE, UNIFORM
from featstream.kernels.bits import pack
from featstream.kernels.encoding import (
    code_dense,
    code_sparse,
    range_of_integers,
    summarise_dense,
    summarise_sparse,
)
from featstream.kernels.layout import by_column
from featstream.kernels.relevance import (
    TableTarget,
    score_dense_tables,
    score_sparse_tables,
)
from featstream.kernels.tables import (
    MAX_PLANES,
    DenseTables,
    SparseTables,
    TableScratch,
    fixed_point_nlogn,
    sum_nlogn,
    table_scratch,
)
from featstream.measures.checks import (
    FEW_VALUES,
    LeftOut,
    check_length,
    complain_of_values,
    keep_apart,
    to_kernel_dtype,
)
from featstream.measures.lending import Lender
from featstream.measures.target import Labels, as_labels
from featstream.protocols import Block, BoolArray, FloatArray, IntArray, SparseColumns

__all__ = ["BoundInformation", "MutualInformation", "SymmetricalUncertainty"]

_BINNINGS = {"quantile": QUANTILE, "uniform": UNIFORM, "mdl": MDL, None: -1}


class _InformationMeasure(BaseEstimator):
    """What the two measures share: all but the norm of the score."""

    _name: ClassVar[str]
    _largest: ClassVar[float]

    def __init__(
        self,
        *,
        threshold: float = 0.0,
        binning: Literal["quantile", "uniform", "mdl"] | None = "quantile",
        n_bins: int = 5,
        missing: Literal["error", "category"] = "error",
        max_categories: int | None = None,
        identifiers: Literal["drop", "keep"] = "drop",
    ) -> None:
        self.threshold = threshold
        self.binning = binning
        self.n_bins = n_bins
        self.missing = missing
        self.max_categories = max_categories
        self.identifiers = identifiers

    def bind(self, y: Any) -> BoundInformation:
        """Prepare for the target ``y``."""
        self._check_parameters()
        return BoundInformation(
            as_labels(y),
            name=self._name,
            threshold=float(self.threshold),
            binning=_BINNINGS[self.binning],
            n_bins=self.n_bins,
            allows_missing=self.missing == "category",
            max_categories=self.max_categories,
            drops_identifiers=self.identifiers == "drop",
        )

    def _check_parameters(self) -> None:
        owner, threshold = type(self).__name__, self.threshold
        if (
            not isinstance(threshold, int | float | np.number)
            or isinstance(threshold, bool)
            or not 0 <= threshold < self._largest
        ):
            raise ParameterError(
                f"`threshold` of {owner} must be in [0, {self._largest:g}). Got "
                f"{threshold!r}. The paper uses threshold=0.0."
            )
        if not isinstance(self.binning, str | None) or self.binning not in _BINNINGS:
            raise ParameterError(
                f"`binning` of {owner} must be 'quantile', 'uniform', 'mdl' or None. "
                f"Got {printable(self.binning)}."
            )
        if not isinstance(self.n_bins, int | np.integer) or self.n_bins < 2:
            raise ParameterError(
                f"`n_bins` of {owner} must be an integer of at least 2. "
                f"Got {self.n_bins!r}."
            )
        if self.missing not in ("error", "category"):
            raise ParameterError(
                f"`missing` of {owner} must be 'error' or 'category'. "
                f"Got {printable(self.missing)}."
            )
        limit = self.max_categories
        if limit is not None and (
            not isinstance(limit, int | np.integer)
            or isinstance(limit, bool)
            or limit < 2
        ):
            raise ParameterError(
                f"`max_categories` of {owner} must be an integer of at least 2, or "
                f"None. Got {limit!r}."
            )
        if self.identifiers not in ("drop", "keep"):
            raise ParameterError(
                f"`identifiers` of {owner} must be 'drop' or 'keep'. "
                f"Got {printable(self.identifiers)}."
            )


class SymmetricalUncertainty(_InformationMeasure):
    """Symmetrical uncertainty ``2 I(a; b) / (H(a) + H(b))``, for discrete features.

    It is 0 for independent variables and 1 for copies, whatever the number of
    categories. Booleans, text, categoricals and whole numbers are categories as
    they are, unless there are too many of them; columns with other numbers are
    binned.

    Parameters
    ----------
    threshold : float, default=0.0
        A feature is relevant when its score exceeds this (the paper's delta).
    binning : {"quantile", "uniform", "mdl"} or None, default="quantile"
        How a column that is not all whole numbers is cut: into bins of equal
        frequency, of equal width, or where the class is described in fewest bits
        (Fayyad and Irani). None makes each distinct value a category.
    n_bins : int, default=5
        Number of bins, except for "mdl". A column of fewer distinct values keeps
        them.
    missing : {"error", "category"}, default="error"
        Whether a missing value is an error or a category of its own.
    max_categories : int, optional
        A column of whole numbers with more distinct values than this holds
        quantities and is binned as well. By default the limit is one value per two
        rows (and at least 10): most values then occur once, so that as categories
        they say nothing about other rows. Text is never binned, and nothing is with
        ``binning=None``.
    identifiers : {"drop", "keep"}, default="drop"
        What becomes of a column of text or categories with fewer than two rows per
        category on average (and more than 10 categories): a name or an identifier
        of the rows. It is left out, with relevance 0 and one warning per stream, or
        scored like any other.

    Examples
    --------
    >>> from featstream import SAOLA, SymmetricalUncertainty
    >>> X = [[0, 1, 0], [0, 0, 1], [1, 1, 1], [1, 0, 1]]
    >>> y = ["no", "no", "yes", "yes"]
    >>> SAOLA(measure=SymmetricalUncertainty(threshold=0.1)).fit(X, y).selected_
    array([0])
    """

    _name = "su"
    _largest = 1.0


class MutualInformation(_InformationMeasure):
    """Mutual information in bits, for discrete features.

    As `SymmetricalUncertainty`, but not normalised: features of many categories
    score higher. The paper's Algorithm 1 prints this measure, its experiments
    use symmetrical uncertainty.

    Parameters
    ----------
    threshold : float, default=0.0
        A feature is relevant when its score, in bits, exceeds this.
    binning : {"quantile", "uniform", "mdl"} or None, default="quantile"
        How a column that is not all whole numbers is cut.
    n_bins : int, default=5
        Number of bins, except for "mdl".
    missing : {"error", "category"}, default="error"
        Whether a missing value is an error or a category of its own.
    max_categories : int, optional
        Columns of whole numbers with more distinct values are binned as well.
    identifiers : {"drop", "keep"}, default="drop"
        Whether columns of text with about one category per row are left out.

    Examples
    --------
    >>> from featstream import SAOLA, MutualInformation
    >>> X = [[0, 1, 0], [0, 0, 1], [1, 1, 1], [1, 0, 1]]
    >>> SAOLA(measure=MutualInformation()).fit(X, [0, 0, 1, 1]).scores_
    array([1.])
    """

    _name = "mi"
    _largest = math.inf


class BoundInformation:
    """An information measure that knows the target."""

    def __init__(
        self,
        labels: Labels,
        *,
        name: str,
        threshold: float,
        binning: int,
        n_bins: int,
        allows_missing: bool,
        max_categories: int | None,
        drops_identifiers: bool,
    ) -> None:
        n, n_classes = labels.codes.size, labels.classes.size
        self.name = name
        self.left_out = LeftOut()
        self._drops_identifiers = drops_identifiers
        self._most_categories = max(FEW_VALUES, n // 2)
        if max_categories is not None:
            self._most_categories = int(max_categories)
        if binning < 0:
            self._most_categories = n + 1
        self.n_samples = n
        self._threshold = threshold
        self._allows_missing = allows_missing
        self._uses_entropy_norm = name == "su"
        self._nlogn = fixed_point_nlogn(n)
        # One bit of entropy per sample is n bits, and nlogn[2] is two of them.
        bit = int(self._nlogn[2]) // 2
        self._bits_norm = n * bit
        own = int(sum_nlogn(self._nlogn, labels.counts))
        planes, _ = pack(
            labels.codes[None, :].astype(np.uint8),
            np.array([n_classes if n_classes <= MAX_PLANES + 1 else 1]),
        )
        norm = int(self._nlogn[n]) - own if self._uses_entropy_norm else self._bits_norm
        self._target = TableTarget(labels.codes, labels.counts, planes, own, norm)
        self._binning = (binning, n_bins, self._nlogn, 1.0 / bit)
        self._lender = Lender()

    def encode(self, block: Block) -> DenseTables | SparseTables:
        """Check a block and turn its values into categories."""
        check_length(block, self.n_samples)
        if self._drops_identifiers:
            block = self.left_out.strip(block)
        if isinstance(block.columns, SparseColumns):
            return self._encode_sparse(block, block.columns)
        return self._encode_dense(block, block.columns)

    def relevance(self, encoded: DenseTables | SparseTables) -> FloatArray:
        """Score of every column with the class."""
        scores = np.empty(encoded.arity.size)
        is_sparse = isinstance(encoded, SparseTables)
        score = score_sparse_tables if is_sparse else score_dense_tables
        with self.scratch(is_sparse=False) as scratch:
            score(encoded, self._target, scratch, scores, self._uses_entropy_norm)
        return scores

    def is_relevant(self, scores: FloatArray) -> BoolArray:
        """Whether a score exceeds the threshold, strictly."""
        return scores > self._threshold

    def columns(
        self, encoded: DenseTables | SparseTables, which: IntArray
    ) -> tuple[DenseTables | SparseTables, IntArray]:
        """All columns as they are, and where the chosen ones are among them."""
        return encoded, which

    def scratch(self, *, is_sparse: bool) -> AbstractContextManager[TableScratch]:
        """Lend working memory for the pair kernels, one a thread."""
        return self._lender.lend(table_scratch, self.n_samples, is_sparse)

    def _refuse_bad(
        self, block: Block, is_missing: BoolArray, is_infinite: BoolArray
    ) -> None:
        is_bad = is_infinite if self._allows_missing else is_infinite | is_missing
        if is_bad.any():
            raise complain_of_values(
                block,
                int(is_bad.argmax()),
                "Pass missing='category' to the measure, or fill them in.",
            )

    def _encode_dense(self, block: Block, values: NDArray[Any]) -> DenseTables:
        given, are_labels = values, block.nominal is None
        values = to_kernel_dtype(keep_apart(values), are_labels=are_labels)
        if block.nominal is not None and (given[:, block.nominal] < 0).any():
            values = np.where((given < 0) & block.nominal, np.nan, values)
        values = by_column(values)
        m, n = block.n_columns, self.n_samples
        low, high, is_whole, is_missing = self._summarise(block, values)
        size = np.where(is_whole & (low <= high), high - low + 1, np.inf)
        is_small = (size <= min(MAX_PLANES + 1, self._most_categories)) & ~is_missing
        arity = np.where(is_small, size, 0).astype(np.int64)
        other = np.flatnonzero(~is_small)
        codes = np.empty((other.size, n), np.int32)
        if other.size:
            found = np.empty(other.size, np.int64)
            ranges, how = (low, high), (self._target, self._binning)
            code_dense(values, other, *ranges, is_whole, is_missing, *how, codes, found)
            is_quantity = found - is_missing[other] > self._most_categories
            is_quantity &= is_whole[other]
            if block.nominal is not None:
                is_quantity &= ~block.nominal[other]
            if is_quantity.any():
                binned = np.empty((int(is_quantity.sum()), n), np.int32)
                n_bins = np.empty(binned.shape[0], np.int64)
                quantities, is_whole = other[is_quantity], np.zeros(m, np.bool_)
                code_dense(
                    values,
                    quantities,
                    *ranges,
                    is_whole,
                    is_missing,
                    *how,
                    binned,
                    n_bins,
                )
                codes[is_quantity], found[is_quantity] = binned, n_bins
            arity[other] = found
        has_planes = arity <= MAX_PLANES + 1
        n_planes = np.where(has_planes, arity - 1, 0)
        planes, plane_count = pack(
            _small_codes(values, low, is_small, has_planes, codes), arity[has_planes]
        )
        code_row = np.full(m, -1, np.int64)
        code_row[other] = np.where(has_planes[other], -1, np.arange(other.size))
        return DenseTables(
            nlogn=self._nlogn,
            arity=arity,
            own=np.zeros(m, np.int64),
            norm=np.full(m, self._bits_norm, np.int64),
            first_plane=np.cumsum(n_planes) - n_planes,
            planes=planes,
            plane_count=plane_count,
            code_row=code_row,
            codes=codes,
        )

    def _summarise(
        self, block: Block, values: NDArray[Any]
    ) -> tuple[FloatArray, FloatArray, BoolArray, BoolArray]:
        """Range of every column, whether it is whole numbers, whether some miss."""
        m = block.n_columns
        low, high = np.empty(m), np.empty(m)
        if values.dtype.kind in "iu":
            range_of_integers(values, low, high)
            return low, high, np.ones(m, dtype=bool), np.zeros(m, dtype=bool)
        is_whole, is_missing, is_infinite = np.empty((3, m), dtype=np.bool_)
        summarise_dense(values, low, high, is_whole, is_missing, is_infinite)
        self._refuse_bad(block, is_missing, is_infinite)
        return low, high, is_whole, is_missing

    def _encode_sparse(self, block: Block, stored: SparseColumns) -> SparseTables:
        begin, end = int(stored.indptr[0]), int(stored.indptr[-1])
        given, indptr = stored.values[begin:end], stored.indptr - begin
        are_labels = block.nominal is None
        values = to_kernel_dtype(keep_apart(given), are_labels=are_labels)
        if block.nominal is not None:
            is_code = np.repeat(block.nominal, np.diff(indptr))
            values = np.where((given < 0) & is_code, np.nan, values)
        m = block.n_columns
        is_plain, is_whole, is_missing, is_infinite = np.empty((4, m), dtype=np.bool_)
        summarise_sparse(indptr, values, is_plain, is_whole, is_missing, is_infinite)
        self._refuse_bad(block, is_missing, is_infinite)
        is_whole &= ~self._are_quantities(block, indptr, values, is_whole & ~is_plain)
        if is_plain.all():
            length = np.diff(indptr)
            arity = 1 + (length > 0).astype(np.int64)
            rows, codes = stored.rows[begin:end], np.ones(end - begin, np.int32)
            counts = length[length > 0]
        else:
            rows, codes = np.empty((2, end - begin), np.int32)
            counts = np.empty(end - begin + m * (self._binning[1] + 2), np.int64)
            arity, length = np.empty((2, m), np.int64)
            n_entries, n_counts = code_sparse(
                indptr,
                stored.rows[begin:end],
                values,
                is_plain,
                is_whole,
                self._target,
                self._binning,
                self.n_samples,
                rows,
                codes,
                counts,
                arity,
                length,
            )
            rows, codes, counts = rows[:n_entries], codes[:n_entries], counts[:n_counts]
        return SparseTables(
            nlogn=self._nlogn,
            arity=arity,
            own=np.zeros(m, np.int64),
            norm=np.full(m, self._bits_norm, np.int64),
            offset=np.cumsum(length) - length,
            length=length,
            rows=rows,
            codes=codes,
            count_offset=np.cumsum(arity - 1) - (arity - 1),
            counts=counts,
        )

    def _are_quantities(
        self, block: Block, indptr: IntArray, values: NDArray[Any], may_be: BoolArray
    ) -> BoolArray:
        """Sparse columns of whole numbers with too many values to be categories."""
        most = self._most_categories
        if block.nominal is not None:
            may_be = may_be & ~block.nominal
        found = may_be & (np.diff(indptr) >= most)
        for j in np.flatnonzero(found):
            stored = values[indptr[j] : indptr[j + 1]]
            present = np.append(stored[~np.isnan(stored)], stored.dtype.type(0))
            found[j] = False
            if float(present.max()) - float(present.min()) + 2 > most:
                has_zero = stored.size < self.n_samples or bool((present == 0).any())
                n_values = np.unique(present[present != 0]).size + has_zero
                found[j] = n_values > most
        return found


def _small_codes(
    values: NDArray[Any],
    low: FloatArray,
    is_small: BoolArray,
    has_planes: BoolArray,
    other_codes: NDArray[np.int32],
) -> NDArray[np.uint8]:
    """Codes of the columns of few categories, one row a column.

    Those in ``is_small`` are whole numbers that need but begin at zero.
    """
    if values.dtype == np.uint8 and is_small.all() and not low.any():
        return values.T
    codes = np.empty((int(has_planes.sum()), values.shape[0]), np.uint8)
    codes[is_small[has_planes]] = (values[:, is_small] - low[is_small]).T
    codes[~is_small[has_planes]] = other_codes[has_planes[~is_small]]
    return codes
