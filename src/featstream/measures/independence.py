"""Tests of independence given other features: G², chi-square, partial correlation."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, chdtri

from featstream.errors import (
    DataError,
    DataTypeError,
    check_alpha,
    check_choice,
    check_number,
    printable,
    unknown_name,
)
from featstream.estimators import Estimator, estimator
from featstream.measures.fisher import (
    EncodedMoments,
    FisherZ,
    critical_share,
    p_of_share,
)
from featstream.measures.independence_correlations import (
    Correlations,
    PartialRule,
    PartialWork,
    begin_partial,
    measure_partial,
    partial_work,
)
from featstream.measures.independence_tables import (
    CodedColumns,
    TableRule,
    TableWork,
    begin_tables,
    measure_tables,
    recode_column,
    score_chi_square,
    table_work,
)
from featstream.measures.information import Discretising
from featstream.measures.inputs import as_labels
from featstream.measures.storages.dense_codes import DenseCodes, unpack
from featstream.measures.storages.sparse_codes import SparseCodes
from featstream.measures.storages.tables import (
    code_scratch,
    count_tables,
    fixed_point_nlogn,
    n_words,
    pack_rows,
)
from featstream.parallel import ScratchPool
from featstream.protocols import Block, BoolArray, FloatArray, IntArray, SparseColumns

_UNRELIABLE = ("independent", "skip")

TARGET = -1
"""Stands for the target where a test asks for two columns."""


@dataclass(frozen=True, slots=True)
class TestResult:
    """The result of a test of independence.

    Attributes
    ----------
    statistic : float
        The statistic; NaN if the test was not run.
    df : int
        Its degrees of freedom.
    p_value : float
        How often independence gives a statistic as extreme; 1 if not run.
    is_reliable : bool
        Whether there were enough samples. If not, the test was not run.
    is_independent : bool
        The verdict; if the test was not run, that of its rule.
    effect : float
        The strength of the dependence: absolute (partial) correlation,
        (conditional) mutual information in bits, or chi-square per sample.
    """

    __test__: ClassVar[bool] = False

    statistic: float
    df: int
    p_value: float
    is_reliable: bool
    is_independent: bool
    effect: float


class Screening(NamedTuple):
    """Every column of a block tested with the target alone."""

    effect: FloatArray
    is_dependent: BoolArray
    is_reliable: BoolArray


class ConditionalTest(Estimator):
    """A test of independence given other features; bound to a target before use."""

    @abstractmethod
    def bind(self, y: Any) -> BoundTest:
        """Prepare for the target ``y``."""


@estimator
class _TableTest(Discretising, ConditionalTest):
    """The parameters and the binding of both discrete tests.

    Parameters
    ----------
    alpha : float, default=0.01
        Significance level: independent when the p-value is at least alpha.
    samples_per_df : float, default=5
        Samples that each degree of freedom needs. With fewer the test is not run,
        and its result says so.
    unreliable : {"independent", "skip"}, default="independent"
        Whether a search takes a test that is not run for independence, as the authors'
        own library does, or ignores it. A feature that cannot be tested with the class
        at all is irrelevant in both cases.
    arity : {"observed", "largest"}, default="observed"
        What the degrees of freedom count: the categories that occur; or the largest
        code, as in the authors' own library, which needs whole numbers from 1 on, for
        the class as well.
    """

    _name: ClassVar[str]

    alpha: float = 0.01
    samples_per_df: float = 5.0
    unreliable: Literal["independent", "skip"] = "independent"
    arity: Literal["observed", "largest", "occurring"] = "observed"

    def bind(self, y: Any) -> BoundTableTest:
        """Prepare for the target ``y``."""
        return BoundTableTest(self, y)


@estimator
class GTest(_TableTest):
    """The G² test of (conditional) independence, for discrete features.

    ``G² = 2 Σ n ln(n / t)`` over the tables of two variables within each
    configuration of the given ones; ``t`` is the count expected if they were
    independent there.

    Parameters
    ----------
    arity : {"observed", "largest", "occurring"}, default="observed"
        What the degrees of freedom count: the categories that occur; the largest
        code, as in the authors' own library, which needs whole numbers from 1 on, for
        the class as well; or, in IAMB and MMMB, the categories that occur, in the
        configurations of the given features that occur.

    Notes
    -----
    Degrees of freedom are ``(arity_a - 1) (arity_b - 1) Π arity_S``, or 1 if that is
    nothing. With ``arity="occurring"`` the number of configurations of the given
    features that occur replaces the product, except in the rule of
    ``samples_per_df``. G² is a sum of integers in
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


@estimator
class ChiSquareTest(_TableTest):
    """Pearson's chi-square test of (conditional) independence.

    As `GTest`, with ``Σ d² / t`` for the statistic, where ``d = |n - t| - 0.5`` if
    fewer than ten are expected, and ``n - t`` otherwise.

    Notes
    -----
    The correction is that of the authors' own library: where ``t`` is small, even a
    perfect fit adds ``0.25 / t``.

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


class EncodedTables(NamedTuple):
    """A checked block, with the arity and the information of each column."""

    tables: DenseCodes | SparseCodes
    arity: IntArray
    information: FloatArray


class BoundTableTest:
    """A discrete test that knows the target.

    ``encode`` checks a block, ``screen`` tests all its columns with the target, and
    ``gather`` chooses columns for `test`. The other methods are for `OSFS`.
    """

    def __init__(self, test: _TableTest, y: Any) -> None:
        owner, hint = type(test).__name__, "The usual rule is samples_per_df=5."
        least: Any = {"low": 1, "closed": "left", "hint": hint}
        check_number(test.samples_per_df, "samples_per_df", owner, **least)
        check_choice(test.arity, "arity", ("observed", "largest", "occurring"), owner)
        if test.arity == "occurring":
            raise DataTypeError(
                f"{owner}(arity='occurring') is a test for IAMB and MMMB alone. Use "
                "arity='observed' here."
            )
        check_choice(test.unreliable, "unreliable", _UNRELIABLE, owner)
        labels = as_labels(y)
        self.name, self._alpha = test._name, check_alpha(test.alpha, owner)
        self.n_samples = n = labels.codes.size
        self._uses_largest = test.arity == "largest"
        # Numbers whose largest value counts must not be binned.
        changes = {"max_categories": 2**62} if self._uses_largest else {}
        self._information = test.bind_information(y, **changes)
        self._information.is_split = True
        self.left_out = self._information.left_out
        self._pool = ScratchPool()
        n_classes = arity = labels.classes.size
        if self._uses_largest:
            least_class, arity = labels.classes[0], labels.classes[-1]
            if labels.classes.dtype.kind not in "iuf" or least_class < 1:
                raise _not_from_one(f"a class is {printable(least_class)}")
        nlogn, most_df = fixed_point_nlogn(n), max(1, int(n / test.samples_per_df))
        self._rule = TableRule(
            **_as_target(labels.codes, n_classes, int(arity)),
            nlogn=nlogn,
            unit=2.0 * np.log(2.0) / (int(nlogn[2]) // 2),
            critical=chdtri(np.arange(most_df + 1.0), self._alpha),
            uses_g2=self.name == "g2",
            samples_per_df=float(test.samples_per_df),
            max_size=0,
            unreliable_separates=test.unreliable == "independent",
        )

    def encode(self, block: Block) -> EncodedTables:
        """Check a block and turn its values into categories."""
        tables = self._information.encode(block)
        information = self._information.relevance(tables)
        arity = _largest_codes(block) if self._uses_largest else tables.split[:, 0]
        return EncodedTables(tables, arity, information)

    def screen(self, encoded: EncodedTables) -> Screening:
        """Test every column with the class."""
        n, rule = self.n_samples, self._rule
        df = np.maximum((encoded.arity - 1.0) * (rule.target_arity - 1.0), 1.0)
        is_reliable = n >= rule.samples_per_df * df
        if rule.uses_g2:
            effect = encoded.information
            statistic = effect * (2.0 * n * np.log(2.0))
        else:
            statistic = self._chi_square(encoded.tables, is_reliable)
            effect = statistic / n
        critical = rule.critical[np.where(is_reliable, df, 1).astype(np.int64)]
        return Screening(effect, is_reliable & (statistic > critical), is_reliable)

    def _chi_square(self, tables: Any, is_wanted: BoolArray) -> FloatArray:
        statistic, target = np.zeros(is_wanted.size), self._information.target
        with self._pool.borrow(code_scratch, self.n_samples) as scratch:
            for here in count_tables(tables, target, scratch):
                counted = scratch.cells, tables.arity[here], target.counts.size
                score_chi_square(*counted, is_wanted[here], statistic[here])
        return statistic

    def gather(self, encoded: EncodedTables, which: IntArray) -> CodedColumns:
        """The chosen columns, with codes of which all occur."""
        columns, _ = self.allocate(len(which))
        for slot, i in enumerate(which):
            recode_column(encoded.tables, i, encoded.arity[i], columns, slot)
        return columns

    def test(
        self, columns: CodedColumns, a: int, b: int = TARGET, given: Sequence[int] = ()
    ) -> TestResult:
        """Test columns ``a`` and ``b``, by default the target, given others."""
        size = len(given)
        rule, work = self.rule(size), self.work(size)
        if b != TARGET:
            if not columns.has_codes[b]:
                unpack(columns.planes[b : b + 1], columns.codes[b])
            sizes = int(columns.n_codes[b]), int(columns.arity[b])
            rule = rule._replace(**_as_target(columns.codes[b], *sizes))
        begin_tables(columns, a, rule, work)
        path = np.array([*given, 0], np.int64)
        statistic, df = measure_tables(columns, path, size, 0, rule, work)
        if np.isnan(statistic):
            return TestResult(np.nan, int(df), 1.0, False, True, np.nan)
        share = 1 / (2 * np.log(2.0)) if rule.uses_g2 else 1.0
        effect = statistic / self.n_samples * share
        p_value = float(chdtrc(df, statistic))
        is_independent = p_value >= self._alpha
        return TestResult(statistic, int(df), p_value, True, is_independent, effect)

    def rule(self, max_size: int) -> TableRule:
        """The test for the kernels, with at most this number of given columns."""
        return self._rule._replace(max_size=max_size)

    def work(self, max_size: int) -> TableWork:
        """Scratch buffers for one search."""
        return table_work(self.n_samples, self._rule.samples_per_df, max_size)

    def newcomers(
        self, encoded: EncodedTables, which: IntArray
    ) -> tuple[Any, IntArray, IntArray, FloatArray]:
        """The chosen columns as newcomers of a stream.

        Returns columns, the position of each chosen one among them, its arity (0
        for continuous columns) and its correlations with the target.
        """
        arity = encoded.arity[which]
        return encoded.tables, which, arity, np.zeros((which.size, 0))

    def allocate(self, capacity: int) -> tuple[CodedColumns, FloatArray]:
        """Slots for kept columns: those that the tests read, and deviations."""
        pool = CodedColumns(
            codes=np.zeros((capacity, self.n_samples), np.int32),
            has_codes=np.zeros(capacity, np.bool_),
            planes=np.zeros((capacity, n_words(self.n_samples)), np.uint64),
            n_codes=np.zeros(capacity, np.int64),
            arity=np.zeros(capacity, np.int64),
        )
        return pool, np.zeros((0, 0))


def _as_target(codes: NDArray[Any], n_codes: int, arity: int) -> dict[str, Any]:
    """A discrete variable as the fields of the target in `TableRule`."""
    n_planes = 1 if n_codes == 2 else 0
    plane = pack_rows(codes[None, :][:n_planes] == 1).ravel()
    own = {"target": codes, "target_plane": plane}
    return own | {"target_codes": n_codes, "target_arity": arity}


def _not_from_one(what: str) -> DataError:
    return DataError(
        f"arity='largest' needs whole numbers from 1 on, and {what}. Use "
        "arity='observed'."
    )


def _largest_codes(block: Block) -> IntArray:
    """Largest value of every column; all must be whole numbers from 1 on."""
    values = block.columns
    if isinstance(values, SparseColumns):
        raise _not_from_one("sparse columns have zeros")
    is_bad = (values < 1).any(axis=0) | (values != np.floor(values)).any(axis=0)
    if is_bad.any():
        name = printable(block.name(int(is_bad.argmax())))
        raise _not_from_one(f"feature {name} has other values")
    return np.asarray(values.max(axis=0), np.int64)


@estimator
class FisherZTest(ConditionalTest):
    """Fisher's Z test of (partial) correlation, for continuous features.

    The partial correlation ``r`` of two variables given a set comes from a Cholesky
    factor that grows with the set, and ``W = sqrt(n - |S| - 3) atanh(r)`` is
    compared with the normal distribution. With more than two classes the test is
    the F-test of the classes in a regression on the set.

    Parameters
    ----------
    alpha : float, default=0.01
        Significance level: dependent when the p-value is at most alpha.
    target : {"nominal", "numeric"}, default="nominal"
        "numeric" correlates with the target as a number, whatever its values.
    unreliable : {"independent", "skip"}, default="independent"
        Whether a search takes a test with too few samples for independence, or ignores
        it.

    Notes
    -----
    A column that is a linear function of the given ones is independent of all others,
    and a target that they determine is independent of all columns. Linearly dependent
    sets are left out, as their independent subsets have been tested before. (The
    authors' own library inverts a singular matrix there.)

    Examples
    --------
    >>> import numpy as np
    >>> from featstream.measures import FisherZTest
    >>> from featstream.protocols import Block
    >>> rng = np.random.default_rng(0)
    >>> cause = rng.normal(size=200)
    >>> y = cause + rng.normal(size=200) > 0
    >>> X = np.c_[cause, cause + rng.normal(size=200)]
    >>> test = FisherZTest().bind(y)
    >>> columns = test.gather(test.encode(Block(np.asfortranarray(X))), np.arange(2))
    >>> test.test(columns, 1).is_independent
    False
    >>> test.test(columns, 1, given=[0]).is_independent
    True
    """

    alpha: float = 0.01
    target: Literal["nominal", "numeric"] = "nominal"
    unreliable: Literal["independent", "skip"] = "independent"

    def bind(self, y: Any) -> BoundPartialTest:
        """Prepare for the target ``y``."""
        return BoundPartialTest(self, y)


class BoundPartialTest:
    """`FisherZTest` that knows the target; as `BoundTableTest`."""

    name = "fisher-z"

    def __init__(self, test: FisherZTest, y: Any) -> None:
        owner = type(test).__name__
        self._alpha = check_alpha(test.alpha, owner)
        check_choice(test.unreliable, "unreliable", _UNRELIABLE, owner)
        self._unreliable_separates = test.unreliable == "independent"
        self._measure = FisherZ(alpha=test.alpha, target=test.target).bind(y)
        self._n_targets = self._measure.n_spanning
        self.n_samples = self._measure.n_samples
        self.left_out = self._measure.left_out

    def encode(self, block: Block) -> EncodedMoments:
        """Check a block and sum its columns."""
        return self._measure.encode(block)

    def screen(self, encoded: EncodedMoments) -> Screening:
        """Test every column with the target."""
        scores = self._measure.relevance(encoded)
        is_reliable = np.full(scores.size, np.isfinite(self._measure.critical))
        return Screening(scores, self._measure.is_relevant(scores), is_reliable)

    def gather(self, encoded: EncodedMoments, which: IntArray) -> Correlations:
        """The chosen columns by their correlations."""
        values = Block(encoded.values).to_dense()[:, which].astype(np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            gram = np.nan_to_num(np.corrcoef(values, rowvar=False))
        gram = gram.reshape(which.size, which.size)
        np.fill_diagonal(gram, 1.0)
        return Correlations(gram, self._measure.span(encoded.sums)[which])

    def test(
        self, columns: Correlations, a: int, b: int = TARGET, given: Sequence[int] = ()
    ) -> TestResult:
        """Test columns ``a`` and ``b`` given others."""
        size = len(given)
        if b != TARGET:
            columns = columns._replace(links=columns.gram[:, b : b + 1].copy())
        n_targets = columns.links.shape[1]
        rule, work = self._rule(n_targets, size), partial_work(n_targets, size)
        begin_partial(columns, a, rule, work)
        path = np.array([*given, 0], np.int64)
        effect, _ = measure_partial(columns, path, size, 0, rule, work)
        n, is_singular = self.n_samples, bool(np.isnan(effect))
        df = n - size - (3 if n_targets == 1 else n_targets + 1)
        if df <= 0 or is_singular:
            return TestResult(np.nan, df, 1.0, False, not is_singular, effect)
        share = min(effect**2, 1 - 1e-16)
        statistic = share / (1 - share) * df / n_targets
        if n_targets == 1:
            statistic = float(np.sqrt(df) * np.arctanh(np.sqrt(share)))
        p_value = float(p_of_share(np.array(share), n, n_targets, size))
        is_independent = bool(effect < rule.critical[size])
        return TestResult(statistic, df, p_value, True, is_independent, effect)

    def rule(self, max_size: int) -> PartialRule:
        """The test for the kernels, with at most this number of given columns."""
        return self._rule(self._n_targets, max_size)

    def work(self, max_size: int) -> PartialWork:
        """Scratch buffers for one search."""
        return partial_work(self._n_targets, max_size)

    def newcomers(
        self, encoded: EncodedMoments, which: IntArray
    ) -> tuple[Any, IntArray, IntArray, FloatArray]:
        """The chosen columns as newcomers of a stream."""
        columns, positions = self._measure.columns(encoded, which)
        links = self._measure.span(encoded.sums)[which]
        return columns, positions, np.zeros(which.size, np.int64), links

    def allocate(self, capacity: int) -> tuple[Correlations, FloatArray]:
        """Slots for kept columns."""
        links = np.zeros((capacity, self._n_targets))
        values = np.zeros((capacity, self.n_samples))
        return Correlations(np.zeros((capacity, capacity)), links), values

    def _rule(self, n_targets: int, max_size: int) -> PartialRule:
        n_given = np.arange(max_size + 1)
        share = critical_share(self._alpha, self.n_samples, n_targets, n_given)
        return PartialRule(np.sqrt(share), max_size, self._unreliable_separates)


BoundTest = BoundTableTest | BoundPartialTest

TESTS: dict[str, Any] = {"chi2": ChiSquareTest, "fisher-z": FisherZTest, "g2": GTest}


def resolve_test(
    test: str | ConditionalTest, alpha: float, owner: str
) -> ConditionalTest | None:
    """The conditional test that a parameter means; None for ``"auto"``."""
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
    known: ConditionalTest = TESTS[test](alpha=alpha)
    return known
