"""G² and chi-square tests of independence, for discrete features."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from scipy.special import chdtrc, chdtri

from featstream.errors import DataError, ParameterError, printable
from featstream.kernels.coding import count_categories, score_chi_square, spell
from featstream.kernels.contingency import (
    CodedColumns,
    TableRule,
    TableWork,
    begin_tables,
    measure_tables,
    table_work,
)
from featstream.kernels.osfs import Candidates, KeptSet
from featstream.kernels.planes import n_words, pack_plane
from featstream.measures.conditional import (
    TARGET,
    BoundTest,
    ConditionalTest,
    Screening,
    TestResult,
    check_alpha,
    check_unreliable,
)
from featstream.measures.information import BoundInformation, MutualInformation
from featstream.measures.storages.bitplanes import unpack
from featstream.measures.storages.dense_codes import DenseCodes
from featstream.measures.storages.entropy import CodedTarget, fixed_point_nlogn
from featstream.measures.storages.sparse_codes import SparseCodes
from featstream.measures.target import Labels, as_labels
from featstream.protocols import Block, FloatArray, IntArray, SparseColumns

__all__ = ["BoundTableTest", "ChiSquareTest", "GTest"]


class _TableTest(ConditionalTest):
    """What the two tests share: all but the statistic."""

    _name: ClassVar[str]

    def __init__(
        self,
        *,
        alpha: float = 0.01,
        samples_per_df: float = 5.0,
        unreliable: Literal["independent", "skip"] = "independent",
        arity: Literal["observed", "largest"] = "observed",
        binning: Literal["quantile", "uniform", "mdl"] | None = "quantile",
        n_bins: int = 5,
        missing: Literal["error", "category"] = "error",
        max_categories: int | None = None,
        identifiers: Literal["drop", "keep"] = "drop",
    ) -> None:
        self.alpha = alpha
        self.samples_per_df = samples_per_df
        self.unreliable = unreliable
        self.arity = arity
        self.binning = binning
        self.n_bins = n_bins
        self.missing = missing
        self.max_categories = max_categories
        self.identifiers = identifiers

    @abstractmethod
    def _uses_g2(self) -> bool:
        """Whether the statistic is G²."""

    def bind(self, y: Any) -> BoundTableTest:
        """Prepare for the target ``y``."""
        owner, least = type(self).__name__, self.samples_per_df
        if not isinstance(least, int | float | np.number) or not least >= 1:
            raise ParameterError(
                f"`samples_per_df` of {owner} must be a number of at least 1. "
                f"Got {least!r}. The usual rule is samples_per_df=5."
            )
        if self.arity not in ("observed", "largest"):
            raise ParameterError(
                f"`arity` of {owner} must be 'observed' or 'largest'. "
                f"Got {printable(self.arity)}."
            )
        information = MutualInformation(
            binning=self.binning,
            n_bins=self.n_bins,
            missing=self.missing,
            # Codes that count as they are must not be binned.
            max_categories=self.max_categories if self.arity == "observed" else 2**62,
            identifiers=self.identifiers,
        )
        return BoundTableTest(
            as_labels(y),
            information.bind(y),
            name=self._name,
            uses_g2=self._uses_g2(),
            alpha=check_alpha(self.alpha, owner),
            samples_per_df=float(least),
            unreliable_separates=check_unreliable(self.unreliable, owner),
            uses_largest=self.arity == "largest",
        )


class GTest(_TableTest):
    """The G² test of (conditional) independence, for discrete features.

    ``G² = 2 Σ n ln(n / t)`` over the tables of two variables within each
    configuration of the given ones; ``t`` is the count expected if they were
    independent there.

    Parameters
    ----------
    alpha : float, default=0.01
        Significance level: independent when the p-value is at least alpha.
    samples_per_df : float, default=5
        Samples that each degree of freedom needs. With fewer the test is not run,
        and its result says so.
    unreliable : {"independent", "skip"}, default="independent"
        What a search makes of a test that is not run: independence, as in the
        authors' own library, or nothing. A feature that cannot be tested with the
        class at all is irrelevant either way.
    arity : {"observed", "largest"}, default="observed"
        What the degrees of freedom count: the categories that occur, or the
        largest code, as in the authors' own library. The latter needs whole
        numbers from 1 on, for the class as well.
    binning, n_bins, missing, max_categories, identifiers
        As of `SymmetricalUncertainty`: how numbers are cut, whether a missing value
        is an error, and what becomes of columns with about one category per row.

    Notes
    -----
    Degrees of freedom are ``(arity_a - 1) (arity_b - 1) Π arity_S``, or 1 if that is
    nothing; empty configurations are not taken off. G² is a sum of integers in
    fixed point, so neither labels nor the order of rows change a bit of it.

    Examples
    --------
    >>> import numpy as np
    >>> from featstream.measures import GTest
    >>> from featstream.protocols import Block
    >>> cause = np.tile([0, 0, 1, 1], 50)
    >>> copy = np.where(np.arange(200) % 25 == 0, 1 - cause, cause)
    >>> y = np.where(np.arange(200) % 20 == 3, 1 - cause, cause)
    >>> test = GTest().bind(y)
    >>> encoded = test.encode(Block(np.asfortranarray(np.c_[cause, copy])))
    >>> columns = test.gather(encoded, np.arange(2))
    >>> test.test(columns, 1).is_independent
    False
    >>> test.test(columns, 1, given=[0]).is_independent
    True
    """

    _name = "g2"

    def _uses_g2(self) -> bool:
        return True


class ChiSquareTest(_TableTest):
    """Pearson's chi-square test of (conditional) independence.

    As `GTest`, with ``Σ d² / t`` for the statistic, where ``d = |n - t| - 0.5`` if
    fewer than ten are expected, and ``n - t`` otherwise.

    Parameters
    ----------
    alpha : float, default=0.01
        Significance level: independent when the p-value is at least alpha.
    samples_per_df : float, default=5
        Samples that each degree of freedom needs.
    unreliable : {"independent", "skip"}, default="independent"
        What a search makes of a test that is not run.
    arity : {"observed", "largest"}, default="observed"
        What the degrees of freedom count.
    binning, n_bins, missing, max_categories, identifiers
        As of `SymmetricalUncertainty`.

    Notes
    -----
    The correction is that of the authors' own library. It is not held at zero: a
    perfect fit where ``t`` is small still adds ``0.25 / t``.

    Examples
    --------
    >>> from featstream import FastOSFS
    >>> from featstream.datasets import make_stream
    >>> from featstream.measures import ChiSquareTest
    >>> stream = make_stream(n_features=300, seed=1)
    >>> selector = FastOSFS(test=ChiSquareTest(alpha=0.001))
    >>> selector.fit(stream.X, stream.y).measure_
    'chi2'
    """

    _name = "chi2"

    def _uses_g2(self) -> bool:
        return False


class EncodedTables(NamedTuple):
    """A checked block, with the arity of each column."""

    tables: DenseCodes | SparseCodes
    arity: IntArray


class BoundTableTest(BoundTest):
    """A discrete test that knows the target."""

    def __init__(
        self,
        labels: Labels,
        information: BoundInformation,
        *,
        name: str,
        uses_g2: bool,
        alpha: float,
        samples_per_df: float,
        unreliable_separates: bool,
        uses_largest: bool,
    ) -> None:
        self.name = name
        self.n_samples = n = labels.codes.size
        self._alpha = alpha
        self._information = information
        self.left_out = information.left_out
        self._uses_largest = uses_largest
        nlogn = fixed_point_nlogn(n)
        n_classes = labels.classes.size
        arity = _largest_label(labels) if uses_largest else n_classes
        self._target = CodedTarget(
            labels.codes, labels.counts, np.zeros((0, 0), np.uint64), 0, 0
        )
        self._rule = TableRule(
            target=labels.codes,
            target_plane=_plane(labels.codes, n_classes),
            target_codes=n_classes,
            target_arity=arity,
            nlogn=nlogn,
            unit=2.0 * np.log(2.0) / (int(nlogn[2]) // 2),
            critical=chdtri(np.arange(max(1, int(n / samples_per_df)) + 1.0), alpha),
            uses_g2=uses_g2,
            samples_per_df=samples_per_df,
            max_size=0,
            unreliable_separates=unreliable_separates,
        )

    def encode(self, block: Block) -> EncodedTables:
        """Check a block and turn its values into categories."""
        tables = self._information.encode(block)
        if self._uses_largest:
            return EncodedTables(tables, _largest_codes(block))
        arity = np.empty(block.n_columns, np.int64)
        count_categories(tables, self.n_samples, arity)
        return EncodedTables(tables, arity)

    def screen(self, encoded: EncodedTables) -> Screening:
        """Test every column with the class."""
        n, rule = self.n_samples, self._rule
        df = (encoded.arity - 1.0) * (rule.target_arity - 1.0)
        df = np.maximum(df, 1.0)
        is_reliable = n >= rule.samples_per_df * df
        if rule.uses_g2:
            effect = self._information.relevance(encoded.tables)
            statistic = effect * (2.0 * n * np.log(2.0))
        else:
            statistic = np.zeros(df.size)
            score_chi_square(encoded.tables, is_reliable, self._target, statistic)
            effect = statistic / n
        critical = rule.critical[np.where(is_reliable, df, 1).astype(np.int64)]
        return Screening(effect, is_reliable & (statistic > critical), is_reliable)

    def gather(self, encoded: EncodedTables, which: IntArray) -> CodedColumns:
        """The chosen columns as codes that all occur."""
        columns = self._empty(len(which))
        for slot, i in enumerate(which):
            spell(encoded.tables, i, encoded.arity[i], columns, slot)
        return columns

    def test(
        self, columns: CodedColumns, a: int, b: int = TARGET, given: Sequence[int] = ()
    ) -> TestResult:
        """Test columns ``a`` and ``b`` given others."""
        size = len(given)
        rule, paired, work = self._pair(columns, b, size)
        begin_tables(paired, a, rule, work)
        path = np.array([*given, 0], np.int64)
        statistic, df = measure_tables(paired, path, size, 0, rule, work)
        if np.isnan(statistic):
            return TestResult(np.nan, int(df), 1.0, False, True, np.nan)
        share = 1 / (2 * np.log(2.0)) if rule.uses_g2 else 1.0
        p_value = float(chdtrc(df, statistic))
        return TestResult(
            statistic=statistic,
            df=int(df),
            p_value=p_value,
            is_reliable=True,
            is_independent=p_value >= self._alpha,
            effect=statistic / self.n_samples * share,
        )

    def rule(self, max_size: int) -> TableRule:
        """The test as the kernels want it."""
        return self._rule._replace(max_size=max_size)

    def work(self, max_size: int) -> TableWork:
        """Working memory for one search."""
        return table_work(self.n_samples, self._rule.samples_per_df, max_size)

    def candidates(
        self, encoded: EncodedTables, which: IntArray, scores: FloatArray, start: int
    ) -> Candidates:
        """The chosen columns as newcomers of a stream."""
        return Candidates(
            encoded.tables,
            which,
            scores[which],
            start + which,
            encoded.arity[which],
            np.zeros((which.size, 0)),
        )

    def allocate(self, capacity: int) -> KeptSet:
        """An empty kept set of so many slots."""
        return KeptSet(
            pool=self._empty(capacity),
            score=np.zeros(capacity),
            arrival=np.zeros(capacity, np.int64),
            values=np.zeros((0, 0)),
            total=np.zeros(capacity),
            norm=np.zeros(capacity),
            size=np.zeros(1, np.int64),
        )

    def _empty(self, capacity: int) -> CodedColumns:
        return CodedColumns(
            np.zeros((capacity, self.n_samples), np.int32),
            np.zeros(capacity, np.bool_),
            np.zeros((capacity, n_words(self.n_samples)), np.uint64),
            np.zeros(capacity, np.int64),
            np.zeros(capacity, np.int64),
        )

    def _pair(
        self, columns: CodedColumns, b: int, max_size: int
    ) -> tuple[TableRule, CodedColumns, TableWork]:
        rule = self.rule(max_size)
        if b != TARGET:
            n_codes = int(columns.n_codes[b])
            if not columns.has_codes[b]:
                unpack(columns.planes[b : b + 1], columns.codes[b])
            rule = rule._replace(
                target=columns.codes[b],
                target_plane=_plane(columns.codes[b], n_codes),
                target_codes=n_codes,
                target_arity=int(columns.arity[b]),
            )
        return rule, columns, self.work(max_size)


def _plane(codes: Any, n_codes: int) -> Any:
    """Rows of the second of two categories; empty for more."""
    plane = np.zeros(n_words(codes.size) if n_codes == 2 else 0, np.uint64)
    if n_codes == 2:
        pack_plane(codes, plane)
    return plane


def _largest_label(labels: Labels) -> int:
    classes = labels.classes
    if classes.dtype.kind not in "iuf" or classes[0] < 1:
        raise DataError(
            f"arity='largest' needs classes that are whole numbers from 1 on. Got "
            f"{printable(classes[0])}. Use arity='observed'."
        )
    return int(classes[-1])


def _largest_codes(block: Block) -> IntArray:
    """Largest value of every column; all must be whole numbers from 1 on."""
    values = block.columns
    if isinstance(values, SparseColumns):
        raise DataError(
            "arity='largest' needs whole numbers from 1 on, and sparse columns have "
            "zeros. Use arity='observed'."
        )
    is_bad = (values < 1).any(axis=0) | (values != np.floor(values)).any(axis=0)
    if is_bad.any():
        raise DataError(
            f"Feature {printable(block.name(int(is_bad.argmax())))} has values that "
            "are not whole numbers from 1 on, which arity='largest' needs. Use "
            "arity='observed'."
        )
    return np.asarray(values.max(axis=0), np.int64)
