"""Protocols: which rows are trained on and tested on, and how features arrive."""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import (
    ShuffleSplit,
    StratifiedKFold,
    StratifiedShuffleSplit,
)

from featstream.errors import DataError, check_count
from featstream.protocols import IntArray
from featstream.sources.grouping import random_groups


@dataclass(frozen=True, slots=True, eq=False)
class TaskShape:
    """What a split may depend on: classes and counts, never a value of X.

    Attributes
    ----------
    y : ndarray of shape (n_samples,)
        The class of each row, those of a given test part last.
    n_train : int
        Rows of the given training part; all, if no test part is given.
    n_features : int
        Number of columns.
    """

    y: NDArray[Any]
    n_train: int
    n_features: int

    @property
    def has_test_part(self) -> bool:
        """Whether a test part is given."""
        return self.n_train < len(self.y)


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """Rows to train and to test on, and the order in which features arrive.

    Attributes
    ----------
    train, test : ndarray of int
        Rows, which have none in common.
    order : ndarray of int or None
        Features in order of arrival; None is their own order.
    groups : ndarray of int or None
        The group of each feature in order of arrival, if the protocol makes groups.
    """

    train: IntArray
    test: IntArray
    order: IntArray | None = None
    groups: IntArray | None = None


class SplitProtocol(ABC):
    """A way to split a data set, ``n_splits`` times.

    Every split is a function of the seed, its own number and the `TaskShape`: the
    first ten of twenty are the ten of ten, and all selectors get the same.
    """

    repeats: ClassVar[tuple[str, ...]] = ()
    """Parameters whose product is the number of splits; without any there is one."""

    @property
    def n_splits(self) -> int:
        """The number of splits."""
        return math.prod(getattr(self, name) for name in self.repeats)

    @abstractmethod
    def split(self, index: int, shape: TaskShape, seed: int) -> Split:
        """Split number ``index``, from 0."""

    def __post_init__(self) -> None:
        for name in self.repeats:
            least = 2 if name == "n_folds" else 1
            check_count(getattr(self, name), name, type(self).__name__, least=least)


@dataclass(frozen=True, slots=True)
class GivenSplit(SplitProtocol):
    """The training and test parts as they are given.

    Examples
    --------
    >>> GivenSplit().n_splits
    1
    """

    def split(self, index: int, shape: TaskShape, seed: int) -> Split:
        """The given parts."""
        if not shape.has_test_part:
            raise DataError(
                "A given split needs a test part, and there is none. Give "
                "Task(X_train, y_train, X_test, y_test) or --test FILE, or use "
                "RandomSplits()."
            )
        rows = np.arange(len(shape.y))
        return Split(rows[: shape.n_train], rows[shape.n_train :])


@dataclass(frozen=True, slots=True)
class RandomSplits(SplitProtocol):
    """Training and test rows drawn at random, anew each time.

    The rows of a given test part are drawn from too. The draws are those of
    scikit-learn's `StratifiedShuffleSplit` or `ShuffleSplit`.

    Parameters
    ----------
    n_runs : int, default=10
        Number of draws.
    test_size : float or int, default=1/3
        Share, or number, of the rows to test on.
    train_size : float or int, optional
        Share, or number, of the rows to train on; by default all others.
    stratified : bool, default=True
        Whether both parts keep the shares of the classes.

    Examples
    --------
    >>> shape = TaskShape(np.repeat([0, 1], 6), 12, 5)
    >>> split = RandomSplits(n_runs=2).split(0, shape, seed=0)
    >>> split.train.size, split.test.size
    (8, 4)
    """

    repeats = ("n_runs",)
    n_runs: int = 10
    test_size: float | int = 1 / 3
    train_size: float | int | None = None
    stratified: bool = True

    def split(self, index: int, shape: TaskShape, seed: int) -> Split:
        """One draw."""
        kind = StratifiedShuffleSplit if self.stratified else ShuffleSplit
        draw = kind(
            1,
            test_size=self.test_size,
            train_size=self.train_size,
            random_state=random_int(seed, index),
        )
        return split_rows(draw, shape.y, self)


@dataclass(frozen=True, slots=True)
class CrossValidation(SplitProtocol):
    """Stratified cross-validation: each row is tested on once in each repetition.

    The rows of a given test part are folded in too. The folds are those of
    scikit-learn's `StratifiedKFold`.

    Parameters
    ----------
    n_folds : int, default=10
        Folds.
    n_repeats : int, default=1
        Repetitions, with other folds each time.

    Examples
    --------
    >>> shape = TaskShape(np.repeat([0, 1], 6), 12, 5)
    >>> [CrossValidation(3).split(i, shape, seed=0).test.size for i in range(3)]
    [4, 4, 4]
    """

    repeats = ("n_folds", "n_repeats")
    n_folds: int = 10
    n_repeats: int = 1

    def split(self, index: int, shape: TaskShape, seed: int) -> Split:
        """One fold."""
        repeat, fold = divmod(index, self.n_folds)
        folds = StratifiedKFold(
            self.n_folds, shuffle=True, random_state=random_int(seed, repeat)
        )
        return split_rows(folds, shape.y, self, fold)


@dataclass(frozen=True, slots=True)
class Subsamples(SplitProtocol):
    """Selection from random parts of the training rows, to see how stable it is.

    The rows left out are tested on, or a test part if one is given.

    Parameters
    ----------
    n : int, default=30
        Number of subsamples.
    share : float, default=4/5
        Share of the rows in each.

    Examples
    --------
    >>> shape = TaskShape(np.repeat([0, 1], 5), 10, 5)
    >>> Subsamples(n=2).split(1, shape, seed=0).train.size
    8
    """

    repeats = ("n",)
    n: int = 30
    share: float = 4 / 5

    def split(self, index: int, shape: TaskShape, seed: int) -> Split:
        """One subsample."""
        draw = StratifiedShuffleSplit(
            1, train_size=self.share, random_state=random_int(seed, index)
        )
        found = split_rows(draw, shape.y[: shape.n_train], self)
        if not shape.has_test_part:
            return found
        return Split(found.train, np.arange(shape.n_train, len(shape.y)))


@dataclass(frozen=True, slots=True)
class FeatureOrders(SplitProtocol):
    """The features arrive in random orders.

    Parameters
    ----------
    n : int, default=30
        Number of orders.
    rows : SplitProtocol, optional
        How rows are split; its splits are used in turn. By default they are the
        same for all orders: the given parts, or the first of `RandomSplits`.

    Examples
    --------
    >>> shape = TaskShape(np.repeat([0, 1], 6), 12, 4)
    >>> FeatureOrders(n=2).split(1, shape, seed=0).order
    array([3, 0, 2, 1])
    """

    repeats = ("n",)
    n: int = 30
    rows: SplitProtocol | None = None

    def split(self, index: int, shape: TaskShape, seed: int) -> Split:
        """One order."""
        found = split_in_turn(self.rows, index, shape, seed)
        order = np.random.default_rng([seed, index]).permutation(shape.n_features)
        return Split(found.train, found.test, order)


@dataclass(frozen=True, slots=True)
class RandomGroups(SplitProtocol):
    """The features arrive in groups drawn at random, without overlap.

    Selectors that take groups get them; others see their features in that order.

    Parameters
    ----------
    n_groups : int, default=100
        Number of groups.
    n_runs : int, default=10
        Number of draws.
    rows : SplitProtocol, optional
        As in `FeatureOrders`.

    Examples
    --------
    >>> shape = TaskShape(np.repeat([0, 1], 6), 12, 4)
    >>> RandomGroups(n_groups=2).split(0, shape, seed=0).groups
    array([0, 0, 1, 1])
    """

    repeats = ("n_runs",)
    n_groups: int = 100
    n_runs: int = 10
    rows: SplitProtocol | None = None

    def split(self, index: int, shape: TaskShape, seed: int) -> Split:
        """One draw of groups."""
        found = split_in_turn(self.rows, index, shape, seed)
        groups = random_groups(shape.n_features, self.n_groups, random_int(seed, index))
        labels = np.repeat(np.arange(len(groups)), [group.size for group in groups])
        return Split(found.train, found.test, np.concatenate(groups), labels)


def default_protocol(shape: TaskShape) -> SplitProtocol:
    """The given parts, or random splits where there is no test part."""
    return GivenSplit() if shape.has_test_part else RandomSplits()


def split_in_turn(
    rows: SplitProtocol | None, index: int, shape: TaskShape, seed: int
) -> Split:
    """A split of the rows, for protocols that vary the features."""
    if rows is None:
        return default_protocol(shape).split(0, shape, seed)
    return rows.split(index % rows.n_splits, shape, seed)


def split_rows(
    splitter: Any, y: NDArray[Any], protocol: SplitProtocol, index: int = 0
) -> Split:
    """Sorted rows of one split of a scikit-learn splitter, or why there is none."""
    try:
        with warnings.catch_warnings():
            # About small classes; the experiment warns once, not for every split.
            warnings.simplefilter("ignore", UserWarning)
            train, test = list(splitter.split(np.zeros(len(y)), y))[index]
    except ValueError as error:
        reason = str(error).rstrip(".")
        raise DataError(
            f"{protocol} cannot split these rows: {reason}. Choose another size, or "
            "leave out the rows of classes that have too few."
        ) from error
    return Split(np.sort(train), np.sort(test))


def random_int(seed: int, index: int) -> int:
    """An integer seed for one split."""
    return int(np.random.default_rng([seed, index]).integers(2**31))
