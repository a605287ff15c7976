"""Symmetrical uncertainty and mutual information, for discrete features."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special

from featstream.errors import check_alpha, check_choice, check_count, check_number
from featstream.estimators import Estimator
from featstream.measures.inputs import (
    FEW_VALUES,
    Labels,
    LeftOut,
    as_labels,
    check_length,
    complain_of_values,
    keep_apart,
    register_measure,
    to_kernel_dtype,
)
from featstream.measures.storages import dense_codes, sparse_codes
from featstream.measures.storages.binning import MDL, QUANTILE, UNIFORM
from featstream.measures.storages.dense_codes import DENSE_CODES, DenseCodes
from featstream.measures.storages.dispatch import ConditionalRule, Rule
from featstream.measures.storages.sparse_codes import SPARSE_CODES, SparseCodes
from featstream.measures.storages.tables import (
    MAX_PLANES,
    CodedTarget,
    class_planes,
    code_scratch,
    critical_information,
    empty_memo,
    find_p_values,
    fixed_point_nlogn,
    score_columns,
    sum_nlogn,
)
from featstream.parallel import ScratchPool
from featstream.protocols import (
    Block,
    BoolArray,
    FloatArray,
    IntArray,
    SparseColumns,
    Storage,
    read_only,
)
from featstream.sources.kernels.transpose import by_column

_BINNINGS = {"quantile": QUANTILE, "uniform": UNIFORM, "mdl": MDL, None: -1}


class _InformationMeasure(Estimator):
    """What the two measures share: all but the norm of the score."""

    _name: ClassVar[str]
    _largest: ClassVar[float]

    def __init__(
        self,
        *,
        threshold: float = 0.0,
        alpha: float | None = None,
        binning: Literal["quantile", "uniform", "mdl"] | None = "quantile",
        n_bins: int = 5,
        missing: Literal["error", "category"] = "error",
        max_categories: int | None = None,
        identifiers: Literal["drop", "keep"] = "drop",
    ) -> None:
        self.threshold = threshold
        self.alpha = alpha
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
            alpha=None if self.alpha is None else float(self.alpha),
            binning=_BINNINGS[self.binning],
            n_bins=self.n_bins,
            allows_missing=self.missing == "category",
            max_categories=self.max_categories,
            drops_identifiers=self.identifiers == "drop",
        )

    def _check_parameters(self) -> None:
        owner = type(self).__name__
        check_number(
            self.threshold,
            "threshold",
            owner,
            high=self._largest,
            closed="left",
            hint="The paper uses threshold=0.0.",
        )
        if self.alpha is not None:
            check_alpha(self.alpha, owner)
        check_choice(self.binning, "binning", _BINNINGS, owner)
        check_count(self.n_bins, "n_bins", owner, least=2)
        check_choice(self.missing, "missing", ("error", "category"), owner)
        none = "for half the samples"
        check_count(self.max_categories, "max_categories", owner, least=2, none=none)
        check_choice(self.identifiers, "identifiers", ("drop", "keep"), owner)


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
    alpha : float, optional
        Significance level: a feature is relevant only if its p-value is at most this
        as well. It is the level of a ``correction`` too, 0.05 if it is not given. The
        p-value is that of G², exact where expected counts are small.
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
    alpha : float, optional
        Significance level: its p-value must be at most this as well.
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

    storages: ClassVar[tuple[Storage, ...]] = (DENSE_CODES, SPARSE_CODES)
    is_split = False
    """Whether columns are prepared for `conditional_rule`."""

    def __init__(
        self,
        labels: Labels,
        *,
        name: str,
        threshold: float,
        alpha: float | None,
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
        self.alpha = alpha
        self._memo = empty_memo()
        self._allows_missing = allows_missing
        self._uses_entropy_norm = name == "su"
        self._nlogn = fixed_point_nlogn(n)
        # One bit of entropy per sample is n bits, and nlogn[2] is two of them.
        self._bit = bit = int(self._nlogn[2]) // 2
        self._bits_norm = n * bit
        own = int(sum_nlogn(self._nlogn, labels.counts))
        planes = class_planes(labels.codes, n_classes)
        norm = int(self._nlogn[n]) - own if self._uses_entropy_norm else self._bits_norm
        self.target = CodedTarget(labels.codes, labels.counts, planes, own, norm)
        self._binning = (binning, n_bins, self._nlogn, 1.0 / bit)
        self._pool = ScratchPool()

    def encode(self, block: Block) -> DenseCodes | SparseCodes:
        """Check a block and turn its values into categories."""
        check_length(block, self.n_samples)
        if self._drops_identifiers:
            block = self.left_out.strip(block)
        if isinstance(block.columns, SparseColumns):
            return self._encode_sparse(block, block.columns)
        return self._encode_dense(block, block.columns)

    def encode_alone(self, values: NDArray[Any]) -> DenseCodes | None:
        """The same for one plain column of few categories, without delay.

        None if `encode` has to look at it.
        """
        if values.size != self.n_samples:
            return None
        column = to_kernel_dtype(keep_apart(values), are_labels=True)[:, None]
        low, high, *flags = dense_codes.summarise(read_only(column))
        n_values = high[0] - low[0] + 1.0
        is_plain = flags[0][0] and not (flags[1][0] or flags[2][0])
        if not is_plain or n_values > min(MAX_PLANES + 1, self._most_categories):
            return None
        codes = (column.T - low[0]).astype(np.uint8)
        facts = np.array([int(n_values)]), self._nlogn, self._bits_norm
        return dense_codes.from_small_codes(codes, *facts)

    def relevance(self, encoded: DenseCodes | SparseCodes) -> FloatArray:
        """Score of every column with the class."""
        count, has_norm = counter_of(encoded), self._uses_entropy_norm
        with self._pool.borrow(code_scratch, self.n_samples) as scratch:
            given = count, encoded, self.target, scratch
            return score_columns(*given, has_entropy_norm=has_norm)

    def is_relevant(self, scores: FloatArray) -> BoolArray:
        """Whether a score exceeds the threshold, strictly."""
        return scores > self._threshold

    def p_values(
        self, encoded: DenseCodes | SparseCodes, scores: FloatArray
    ) -> FloatArray:
        """The p-value of every column."""
        count = counter_of(encoded)
        with self._pool.borrow(code_scratch, self.n_samples) as scratch:
            return find_p_values(count, encoded, self.target, scratch, self._memo)

    def p_of_kept(
        self, columns: Any, which: IntArray, scores: FloatArray
    ) -> FloatArray:
        """P-values of kept columns by the chi-square law of G², from their scores."""
        information = scores * (columns.norm[which] + self.target.norm) / 2
        df = (columns.arity[which] - 1) * (self.target.counts.size - 1)
        g_square = 2 * math.log(2) * information / self._bit
        p_values: FloatArray = special.chdtrc(np.maximum(df, 1), g_square)
        return p_values

    def columns(
        self, encoded: DenseCodes | SparseCodes, which: IntArray
    ) -> tuple[DenseCodes | SparseCodes, IntArray]:
        """All columns as they are, and where the chosen ones are among them."""
        if not self.is_split:
            return encoded, which
        if isinstance(encoded, SparseCodes):
            return sparse_codes.split(encoded, self.target), which
        return dense_codes.split(encoded, which, self.target), which

    def conditional_rule(self, alpha: float, rule: Rule) -> ConditionalRule:
        """The rule by which G², given another feature, decides at a level."""
        self.is_split = True
        critical = critical_information(alpha, self.n_samples, self._bit)
        options = rule.tie_winner, rule.is_deferred, rule.limit
        return ConditionalRule(*options, alpha, critical, self.target)

    def p_given(self, values: FloatArray) -> FloatArray:
        """P-values of the conditional test, from what the scan recorded."""
        return values

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

    def _encode_dense(self, block: Block, values: NDArray[Any]) -> DenseCodes:
        given, are_labels = values, block.nominal is None
        values = to_kernel_dtype(keep_apart(values), are_labels=are_labels)
        if block.nominal is not None and (given[:, block.nominal] < 0).any():
            values = np.where((given < 0) & block.nominal, np.nan, values)
        values = read_only(by_column(values))
        summary = dense_codes.summarise(values)
        self._refuse_bad(block, summary.is_missing, summary.is_infinite)
        how = self.target, self._binning, self._most_categories
        return dense_codes.encode(
            values, block.nominal, summary, how, self._nlogn, self._bits_norm
        )

    def _encode_sparse(self, block: Block, stored: SparseColumns) -> SparseCodes:
        stored = stored.alone()
        given, indptr = stored.values, stored.indptr
        are_labels = block.nominal is None
        values = to_kernel_dtype(keep_apart(given), are_labels=are_labels)
        if block.nominal is not None:
            is_code = np.repeat(block.nominal, np.diff(indptr))
            values = np.where((given < 0) & is_code, np.nan, values)
        stored = replace(stored, values=values)
        summary = sparse_codes.summarise(stored)
        self._refuse_bad(block, summary.is_missing, summary.is_infinite)
        may_be = summary.is_whole & ~summary.is_plain
        summary.is_whole[self._are_quantities(block, indptr, values, may_be)] = False
        return sparse_codes.encode(
            stored, summary, self.target, self._binning, self._nlogn, self._bits_norm
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


def counter_of(columns: DenseCodes | SparseCodes) -> Any:
    """What counts (category, class) in such columns."""
    if isinstance(columns, SparseCodes):
        return sparse_codes.count_classes
    return dense_codes.count_classes


register_measure("mi", MutualInformation)
register_measure("su", SymmetricalUncertainty)
