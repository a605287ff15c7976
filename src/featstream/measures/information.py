"""Symmetrical uncertainty and mutual information, for discrete features."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, ClassVar, Literal, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from featstream.errors import check_alpha, check_choice, check_count, check_number
from featstream.estimators import Estimator, estimator
from featstream.measures.inputs import (
    FEW_VALUES,
    LeftOut,
    as_labels,
    check_length,
    complain_of_values,
    keep_apart,
    register_measure,
    to_kernel_dtype,
)
from featstream.measures.storages import dense_codes, sparse_codes, tables
from featstream.measures.storages.binning import MDL, QUANTILE, UNIFORM, Binning
from featstream.measures.storages.dense_codes import DENSE_CODES, DenseCodes
from featstream.measures.storages.dispatch import ConditionalRule, Rule
from featstream.measures.storages.sparse_codes import SPARSE_CODES, SparseCodes
from featstream.measures.table_laws import TableLaws
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

Codes: TypeAlias = DenseCodes | SparseCodes
_BINNINGS = {"quantile": QUANTILE, "uniform": UNIFORM, "mdl": MDL, None: -1}


@estimator
class Discretising(Estimator):
    """What needs categories, and how it makes them of columns.

    Parameters
    ----------
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
    """

    binning: Literal["quantile", "uniform", "mdl"] | None = "quantile"
    n_bins: int = 5
    missing: Literal["error", "category"] = "error"
    max_categories: int | None = None
    identifiers: Literal["drop", "keep"] = "drop"

    def check_discretising(self) -> None:
        """Refuse values that these parameters cannot have."""
        owner, none = type(self).__name__, "for half the samples"
        check_choice(self.binning, "binning", _BINNINGS, owner)
        check_count(self.n_bins, "n_bins", owner, least=2)
        check_choice(self.missing, "missing", ("error", "category"), owner)
        check_count(self.max_categories, "max_categories", owner, least=2, none=none)
        check_choice(self.identifiers, "identifiers", ("drop", "keep"), owner)

    def bind_information(self, y: Any, **changes: Any) -> BoundInformation:
        """Mutual information with the same categories, for the target ``y``."""
        self.check_discretising()
        own = {name: getattr(self, name) for name in Discretising.__annotations__}
        return MutualInformation(**own | changes).bind(y)


@estimator
class _InformationMeasure(Discretising):
    """What the two measures share: all but the norm of the score.

    Parameters
    ----------
    threshold : float, default=0.0
        A feature is relevant when its score exceeds this (the paper's delta).
    alpha : float, optional
        Significance level: a feature is relevant only if its p-value is at most this
        as well. It is the level of a ``correction`` too, 0.05 if it is not given. The
        p-value is that of Fisher's exact test for two categories and two classes, and
        of G² for larger tables: exact, or a bound, where expected counts are small.
    """

    _name: ClassVar[str]
    _largest: ClassVar[float]

    threshold: float = 0.0
    alpha: float | None = None

    def bind(self, y: Any) -> BoundInformation:
        """Prepare for the target ``y``."""
        self.check_discretising()
        owner, hint = type(self).__name__, "The paper uses threshold=0.0."
        limits: Any = {"high": self._largest, "closed": "left", "hint": hint}
        check_number(self.threshold, "threshold", owner, **limits)
        if self.alpha is not None:
            check_alpha(self.alpha, owner)
        return BoundInformation(self, y)


@estimator
class SymmetricalUncertainty(_InformationMeasure):
    """Symmetrical uncertainty ``2 I(a; b) / (H(a) + H(b))``, for discrete features.

    It is 0 for independent variables and 1 for copies, whatever the number of
    categories. Booleans, text, categoricals and whole numbers are categories as
    they are, unless there are too many of them; columns with other numbers are
    binned.

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


@estimator
class MutualInformation(_InformationMeasure):
    """Mutual information in bits, for discrete features.

    As `SymmetricalUncertainty`, but not normalised: features of many categories
    score higher. The paper's Algorithm 1 prints this measure, its experiments
    use symmetrical uncertainty.

    Parameters
    ----------
    threshold : float, default=0.0
        A feature is relevant when its score, in bits, exceeds this.

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

    def __init__(self, measure: _InformationMeasure, y: Any) -> None:
        labels = as_labels(y)
        self.n_samples = n = labels.codes.size
        self.name, self.alpha = measure._name, measure.alpha
        self.left_out = LeftOut()
        self._threshold = float(measure.threshold)
        self._drops_identifiers = measure.identifiers == "drop"
        self._allows_missing = measure.missing == "category"
        self._nlogn = tables.fixed_point_nlogn(n)
        # One bit of entropy per sample is n bits, and nlogn[2] is two of them.
        self._bit = int(self._nlogn[2]) // 2
        self._bits_norm = n * self._bit
        most = measure.max_categories or max(FEW_VALUES, n // 2)
        self._binning = Binning(
            method=_BINNINGS[measure.binning],
            n_bins=int(measure.n_bins),
            most_listed=n + 1 if measure.binning is None else most,
            nlogn=self._nlogn,
            unit=1.0 / self._bit,
        )
        self._uses_entropy_norm = self.name == "su"
        norm = None if self._uses_entropy_norm else self._bits_norm
        self.target = tables.coded_target(
            labels.codes, labels.counts, self._nlogn, norm
        )
        self._laws = TableLaws(labels.counts, self._nlogn)
        self._pool = ScratchPool()

    def encode(self, block: Block) -> Codes:
        """Check a block and turn its values into categories."""
        check_length(block, self.n_samples)
        if self._drops_identifiers:
            block = self.left_out.strip(block)
        storage: Any = dense_codes
        columns, is_code = block.columns, block.nominal
        if isinstance(columns, SparseColumns):
            storage, columns = sparse_codes, columns.alone()
            if is_code is not None:
                is_code = np.repeat(is_code, np.diff(columns.indptr))
            columns = replace(columns, values=_as_numbers(columns.values, is_code))
        else:
            columns = read_only(by_column(_as_numbers(columns, is_code)))
        summary = storage.summarise(columns)
        is_bad = summary.is_infinite
        if not self._allows_missing:
            is_bad = is_bad | summary.is_missing
        if is_bad.any():
            remedy = "Pass missing='category' to the measure, or fill them in."
            raise complain_of_values(block, int(is_bad.argmax()), remedy)
        if block.nominal is not None:
            summary.is_nominal[:] = block.nominal
        how = self.target, self._binning, self._bits_norm
        return self._with_split(storage.encode(columns, summary, *how))

    def encode_alone(self, values: NDArray[Any]) -> DenseCodes | None:
        """The same for one plain column of few categories, without delay.

        None if `encode` has to look at it.
        """
        if values.size != self.n_samples:
            return None
        column = to_kernel_dtype(keep_apart(values))[:, None]
        summary = dense_codes.summarise(read_only(column))
        low, n_values = summary.low[0], summary.high[0] - summary.low[0] + 1.0
        is_bad = summary.is_missing[0] or summary.is_infinite[0]
        is_large = n_values > min(tables.MAX_PLANES + 1, self._binning.most_listed)
        if is_bad or is_large or not summary.is_whole[0]:
            return None
        codes = (column.T - low).astype(np.uint8)
        known = np.array([int(n_values)]), self._nlogn, self._bits_norm
        no_codes = np.empty((0, self.n_samples), np.int32)
        found = dense_codes.assemble(codes, *known, no_codes, np.array([-1]))
        return cast("DenseCodes", self._with_split(found))

    def _with_split(self, encoded: Codes) -> Codes:
        """The same with what `conditional_rule` needs to know, once it is scored."""
        if not self.is_split:
            return encoded
        return encoded._replace(split=np.empty((encoded.arity.size, 2), np.int64))

    def relevance(self, encoded: Codes) -> FloatArray:
        """Score of every column with the class."""
        has_norm = self._uses_entropy_norm
        with self._pool.borrow(tables.code_scratch, self.n_samples) as scratch:
            return tables.score_columns(encoded, self.target, scratch, has_norm)

    def is_relevant(self, scores: FloatArray) -> BoolArray:
        """Whether a score exceeds the threshold, strictly."""
        return scores > self._threshold

    def p_values(self, encoded: Codes, scores: FloatArray) -> FloatArray:
        """The p-value of every column, given the margins of its table.

        It is 1 where a table is too large to be tested; above 0.3 it may be rough.
        """
        return np.exp(self.log_p_values(encoded, scores))

    def log_p_values(self, encoded: Codes, scores: FloatArray) -> FloatArray:
        """Natural logarithms of `p_values`, which order what would underflow."""
        log_p, laws = np.zeros(scores.size), self._laws
        with self._pool.borrow(tables.code_scratch, self.n_samples) as scratch:
            for here in tables.count_tables(encoded, self.target, scratch):
                arity = encoded.arity[here].astype(np.int64)
                log_p[here] = laws.log_p_values(scratch.cells, arity)
        return log_p

    def p_of_kept(
        self, columns: Any, which: IntArray, scores: FloatArray
    ) -> FloatArray:
        """P-values of kept columns, by the same laws."""
        n, n_classes = self.n_samples, self.target.counts.size
        arity = columns.arity[which].astype(np.int64)
        log_p = np.zeros(which.size)
        for j in np.flatnonzero(arity * n_classes <= tables.MAX_CELLS).tolist():
            codes = tables.codes_as_rows(columns, which[j : j + 1], n)[0]
            keys = codes.astype(np.int64) * n_classes + self.target.classes
            cells = np.bincount(keys, minlength=int(arity[j]) * n_classes)
            log_p[j] = self._laws.log_p_values(cells, arity[j : j + 1])[0]
        return np.exp(log_p)

    def columns(self, encoded: Codes, which: IntArray) -> tuple[Codes, IntArray]:
        """All columns as they are, and where the chosen ones are among them."""
        return encoded, which

    def conditional_rule(self, alpha: float, rule: Rule) -> ConditionalRule:
        """The rule by which G², given another feature, decides at a level."""
        self.is_split = True
        critical = tables.critical_information(alpha, self.n_samples, self._bit)
        options = rule.tie_winner, rule.displacer, rule.is_deferred, rule.limit
        return ConditionalRule(*options, alpha, critical, self.target)

    def p_given(self, values: FloatArray) -> FloatArray:
        """P-values of the conditional test, from what the scan recorded."""
        return values


def score_pairs(
    measure: MutualInformation | SymmetricalUncertainty, columns: NDArray[Any]
) -> FloatArray:
    """The score of every pair of columns of categories, by a measure that bins none."""
    any_classes = np.arange(len(columns)) % 2  # categories do not depend on the class
    encoded = measure.bind(any_classes).encode(Block(np.asfortranarray(columns)))
    scores = np.zeros((columns.shape[1], columns.shape[1]))
    for j, column in enumerate(columns.T):  # each in turn is the class
        classes, codes = np.unique(column, return_inverse=True)
        if classes.size > 1:  # a constant shares nothing with any column
            scores[j] = measure.bind(codes).relevance(encoded)
    return scores


def _as_numbers(given: NDArray[Any], is_code: BoolArray | None) -> NDArray[Any]:
    """Values for the kernels; of codes, a missing category (-1) becomes NaN."""
    values = to_kernel_dtype(keep_apart(given))
    if is_code is None:
        return values
    is_missing = (given < 0) & is_code
    return np.where(is_missing, np.nan, values) if is_missing.any() else values


register_measure("mi", MutualInformation)
register_measure("su", SymmetricalUncertainty)
