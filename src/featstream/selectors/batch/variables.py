"""One variable tested with many columns at once, given some of the variables.

Columns are numbered; the number after the last is the target. A test of a million
columns given a set takes a pass or two over them, and no Python per column.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, stats
from scipy.special import chdtrc

from featstream.measures.fisher import EncodedMoments, FisherZ
from featstream.measures.independence import FisherZTest, GTest
from featstream.measures.independence_correlations import COLLINEAR
from featstream.measures.independence_tables import count_categories
from featstream.measures.information import MutualInformation
from featstream.measures.inputs import LeftOut, as_labels, as_numbers
from featstream.protocols import Block, BoolArray, FloatArray, IntArray
from featstream.selectors.batch.base import join_values
from featstream.selectors.batch.discrete import DiscreteColumns, merge

_DIGITS = 12
"""Correlations are compared to this many digits: copies are equally strong."""


class Tests(NamedTuple):
    """What tests of some columns found; p-value 1 and effect 0 if they were not run."""

    p_value: FloatArray
    effect: FloatArray
    is_dependent: BoolArray
    is_reliable: BoolArray

    def of(self, places: IntArray | BoolArray) -> Tests:
        """Those in some places."""
        return Tests(
            self.p_value[places],
            self.effect[places],
            self.is_dependent[places],
            self.is_reliable[places],
        )


class Variables(ABC):
    """The columns of a data set and its target, ready to be tested."""

    n_columns: int
    effects: FloatArray
    """The dependence of every column on the target alone."""

    @abstractmethod
    def test_columns(self, a: int, given: Sequence[int], which: IntArray) -> Tests:
        """Test variable ``a`` with the columns ``which``, given some variables."""

    def test(self, a: int, given: Sequence[int], which: IntArray) -> Tests:
        """The same where the last of ``which``, which increase, may be the target."""
        target = self.n_columns
        if not which.size or which[-1] != target:
            return self.test_columns(a, given, which)
        found = self.test_columns(a, given, which[:-1])
        last = self.test_columns(target, given, np.array([a]))
        return Tests(
            np.append(found.p_value, last.p_value),
            np.append(found.effect, last.effect),
            np.append(found.is_dependent, last.is_dependent),
            np.append(found.is_reliable, last.is_reliable),
        )


class DiscreteTests:
    """The G² test for a target: encodes blocks, and makes `DiscreteVariables`."""

    name = "g2"

    def __init__(self, test: GTest, y: Any) -> None:
        options: dict[str, Any] = vars(test) | {"arity": "observed"}
        GTest(**options).bind(y)  # checks its parameters
        self.separates = test.unreliable == "independent"
        self._test, self._labels = test, as_labels(y)
        self._information = MutualInformation(
            binning=test.binning,
            n_bins=test.n_bins,
            missing=test.missing,
            max_categories=test.max_categories,
            identifiers=test.identifiers,
        ).bind(y)
        self.n_samples = self._information.n_samples
        self.left_out: LeftOut = self._information.left_out

    def encode(self, block: Block) -> tuple[Any, FloatArray, IntArray]:
        """Columns as categories, their relevance, and how many categories occur."""
        encoded = self._information.encode(block)
        arity = count_categories(encoded, self.n_samples)
        return encoded, self._information.relevance(encoded), arity

    def gather(self, parts: list[Any], n_threads: int) -> DiscreteVariables:
        """All columns."""
        encoded, effects, arity = zip(*parts, strict=True)
        codes, n_classes = self._labels.codes, self._labels.classes.size
        return DiscreteVariables(
            DiscreteColumns(list(encoded), n_threads),
            codes.astype(np.int64),
            np.append(np.concatenate(arity), n_classes),
            np.concatenate(effects),
            self._test,
        )


class DiscreteVariables(Variables):
    """Discrete variables, tested by G²: information within each configuration."""

    def __init__(
        self,
        columns: DiscreteColumns,
        classes: IntArray,
        arity: IntArray,
        effects: FloatArray,
        test: GTest,
    ) -> None:
        self.n_columns = arity.size - 1
        self.effects = effects
        self._columns, self._classes, self._arity = columns, classes, arity
        self._test = test
        self._chosen, self._subset = np.arange(self.n_columns), columns

    def test_columns(self, a: int, given: Sequence[int], which: IntArray) -> Tests:
        """Test variable ``a`` with some columns, given some variables."""
        n, rule = self._classes.size, self._test
        free = (self._arity[which] - 1.0) * (self._arity[a] - 1.0)
        n_possible = np.prod(self._arity[list(given)], dtype=np.float64)
        df = np.maximum(free * n_possible, 1.0)
        is_reliable = n >= rule.samples_per_df * df
        effect = np.zeros(which.size)
        if is_reliable.any():
            codes, members = self._codes(a), self._configurations(given)
            found = self._information(codes, members, which)
            effect = np.where(is_reliable, found, 0.0)
            if rule.arity == "occurring" and members is not None:
                n_occurring = np.unique(members).size
                df = np.maximum(free * n_occurring, 1.0)
        p_value = np.asarray(chdtrc(df, effect * (2.0 * n * np.log(2.0))))
        p_value = np.where(is_reliable, p_value, 1.0)
        return Tests(p_value, effect, p_value < rule.alpha, is_reliable)

    def _configurations(self, given: Sequence[int]) -> IntArray | None:
        """The configuration of some variables in every row; None without variables."""
        if not given:
            return None
        members = self._codes(given[0])
        for member in given[1:]:
            members = merge(members, self._codes(member))
        return members

    def _information(
        self, codes: IntArray, members: IntArray | None, which: IntArray
    ) -> FloatArray:
        """Information of a variable with columns within configurations, in bits."""
        columns = self._choose(which)
        if members is None:
            return columns.information(codes)
        both = columns.information(merge(members, codes))
        return np.maximum(both - columns.information(members), 0.0)

    def _codes(self, v: int) -> IntArray:
        return self._classes if v == self.n_columns else self._columns.codes(v)

    def _choose(self, which: IntArray) -> DiscreteColumns:
        """The columns, copied when others are asked for than before."""
        if not np.array_equal(which, self._chosen):
            self._chosen = which
            self._subset = self._columns.subset(which)
        return self._subset


class ContinuousTests:
    """Fisher's Z test for a target: checks blocks, and makes `ContinuousVariables`."""

    name = "fisher-z"

    def __init__(self, test: FisherZTest, y: Any) -> None:
        test.bind(y)  # checks its parameters
        self.separates = test.unreliable == "independent"
        self._test, self._y = test, y
        self._measure = FisherZ(alpha=test.alpha, target=test.target).bind(y)
        self.n_samples = self._measure.n_samples
        self.left_out: LeftOut = self._measure.left_out

    def encode(self, block: Block) -> EncodedMoments:
        """Numbers, and their correlations with the target."""
        return self._measure.encode(block)

    def gather(self, parts: list[EncodedMoments], n_threads: int) -> Any:
        """All columns."""
        if self._test.target == "numeric":
            spanning = as_numbers(self._y)[:, None]
        else:
            labels = as_labels(self._y)
            # The last class is where all others are not.
            classes = np.arange(labels.classes.size - 1)
            spanning = np.equal.outer(labels.codes, classes).astype(np.float64)
        values = join_values([part.values for part in parts])
        effects = np.concatenate([part.scores for part in parts])
        spread = np.concatenate([part.sums.squared_norm for part in parts])
        return ContinuousVariables(values, spanning, effects, spread, self._test.alpha)


class ContinuousVariables(Variables):
    """Continuous variables, tested by their partial correlation.

    Products with an orthonormal basis of the given variables and of what is left of
    the tested one say it for all columns.
    """

    def __init__(
        self,
        values: Any,
        spanning: FloatArray,
        effects: FloatArray,
        spread: FloatArray,
        alpha: float,
    ) -> None:
        n, self.n_columns = values.shape
        self.effects = effects
        self._alpha = alpha
        self._target = _orthonormal(spanning - spanning.mean(axis=0))
        self._mean = np.asarray(values.sum(axis=0)).ravel() / n
        if not sparse.issparse(values):
            values, self._mean = values - self._mean, np.zeros(self.n_columns)
        self._values = values
        norm = np.sqrt(np.maximum(spread, 0.0) / n)
        self._scale = np.where(norm > 0.0, 1.0 / np.where(norm > 0.0, norm, 1.0), 0.0)
        """One over the length of each column; 0 for constants."""

    def test_columns(self, a: int, given: Sequence[int], which: IntArray) -> Tests:
        """Test variable ``a`` with some columns, given some variables."""
        n = self._target.shape[0]
        members = [self._units(member) for member in given]
        basis = _orthonormal(np.hstack([np.empty((n, 0)), *members]))
        own = self._units(a)
        left = _orthonormal(own - basis @ (basis.T @ own))
        shares = self._products(np.hstack([basis, left]), which) ** 2
        rest = 1.0 - shares[:, : basis.shape[1]].sum(axis=1)
        shared = shares[:, basis.shape[1] :].sum(axis=1)
        is_left = rest > COLLINEAR
        effect = np.sqrt(np.where(is_left, shared / np.where(is_left, rest, 1.0), 0.0))
        effect = np.minimum(np.round(effect, _DIGITS), 1.0)
        dims, size = own.shape[1], basis.shape[1]
        df = n - size - (3 if dims == 1 else dims + 1)
        is_reliable = np.full(which.size, df > 0)
        if df <= 0:
            none = np.zeros(which.size)
            return Tests(none + 1.0, none, is_reliable, is_reliable)
        below_one = np.minimum(effect, 1.0 - 1e-16)
        if dims == 1:
            p_value = 2.0 * stats.norm.sf(np.sqrt(df) * np.arctanh(below_one))
        else:
            odds = below_one**2 / (1.0 - below_one**2)
            p_value = stats.f.sf(odds * df / dims, dims, df)
        return Tests(p_value, effect, p_value <= self._alpha, is_reliable)

    def _units(self, v: int) -> FloatArray:
        """A variable as columns of length one and mean zero."""
        if v == self.n_columns:
            return self._target
        column = self._values[:, [v]]
        if sparse.issparse(column):
            column = column.toarray() - self._mean[v]
        return np.asarray(column * self._scale[v])

    def _products(self, basis: FloatArray, which: IntArray) -> FloatArray:
        if which.size < self.n_columns:
            values = self._values[:, which]
        else:
            values = self._values
        found = values.T @ basis - np.outer(self._mean[which], basis.sum(axis=0))
        return np.asarray(found * self._scale[which, None])


def _orthonormal(columns: FloatArray) -> FloatArray:
    """A basis of what the columns span; what is left of a column by rounding is not."""
    basis: list[NDArray[Any]] = []
    for column in columns.T:
        before = float(column @ column)
        for _ in range(2):  # the second time for what rounding left
            for unit in basis:
                column = column - (unit @ column) * unit
        square = float(column @ column)
        if square > COLLINEAR * max(before, COLLINEAR):
            basis.append(column / np.sqrt(square))
    return np.column_stack(basis) if basis else np.empty((columns.shape[0], 0))
