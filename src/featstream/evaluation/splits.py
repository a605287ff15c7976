"""Protocols: which rows are trained on and tested on, and how features arrive."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import (
    ShuffleSplit,
    StratifiedKFold,
    StratifiedShuffleSplit,
)

from featstream.errors import DataError, ParameterError
from featstream.groups import random_groups
from featstream.protocols import IntArray

__all__ = [
    "CrossValidation",
    "FeatureOrders",
    "GivenSplit",
    "RandomGroups",
    "RandomSplits",
    "Split",
    "SplitProtocol",
    "Subsamples",
    "TaskShape",
]


@dataclass(frozen=True, slots=True, eq=False)
class TaskShape:
    """All that a split may depend on: classes and counts, never a value of X.

    Attributes
    ----------
    y : ndarray of shape (n_samples,)
        The class of each row, those of a given test part last.
    n_train : int
        Rows of the given training part; all, if no test part is given.
    n_features : int
        Columns.
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
    """A way to split a data set, some number of times.

    Every split is a function of the seed, its own number and the `TaskShape`: the
    first ten of twenty are the ten of ten, and all selectors get the same.
    """

    @property
    @abstractmethod
    def n_splits(self) -> int:
        """How many splits there are."""

    @abstractmethod
    def split(self, index: int, shape: TaskShape, seed: int) -> Split:
        """Split number ``index``, from 0."""


@dataclass(frozen=True, slots=True)
class GivenSplit(SplitProtocol):
    """The training and test parts as they are given.

    Examples
    --------
    >>> GivenSplit().n_splits
    1
    """

    @property
    def n_splits(self) -> int:
        """How many splits there are."""
        return 1

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
    """Rows drawn at random for training and testing, anew each time.

    A given test part is put together with the training part before.

    Parameters
    ----------
    n_runs : int, default=10
        How many times.
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

    n_runs: int = 10
    test_size: float | int = 1 / 3
    train_size: float | int | None = None
    stratified: bool = True

    def __post_init__(self) -> None:
        check_count(self.n_runs, "n_runs", self)

    @property
    def n_splits(self) -> int:
        """How many splits there are."""
        return self.n_runs

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

    A given test part is put together with the training part before.

    Parameters
    ----------
    n_folds : int, default=10
        Folds.
    n_repeats : int, default=1
        How many times, with other folds.

    Examples
    --------
    >>> shape = TaskShape(np.repeat([0, 1], 6), 12, 5)
    >>> [CrossValidation(3).split(i, shape, seed=0).test.size for i in range(3)]
    [4, 4, 4]
    """

    n_folds: int = 10
    n_repeats: int = 1

    def __post_init__(self) -> None:
        check_count(self.n_folds, "n_folds", self, least=2)
        check_count(self.n_repeats, "n_repeats", self)

    @property
    def n_splits(self) -> int:
        """How many splits there are."""
        return self.n_folds * self.n_repeats

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
        How many subsamples.
    share : float, default=4/5
        Share of the rows in each.

    Examples
    --------
    >>> shape = TaskShape(np.repeat([0, 1], 5), 10, 5)
    >>> Subsamples(n=2).split(1, shape, seed=0).train.size
    8
    """

    n: int = 30
    share: float = 4 / 5

    def __post_init__(self) -> None:
        check_count(self.n, "n", self)

    @property
    def n_splits(self) -> int:
        """How many splits there are."""
        return self.n

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
        How many orders.
    rows : SplitProtocol, optional
        How rows are split; its splits are used in turn. By default they are the
        same for all orders: the given parts, or the first of `RandomSplits`.

    Examples
    --------
    >>> shape = TaskShape(np.repeat([0, 1], 6), 12, 4)
    >>> FeatureOrders(n=2).split(1, shape, seed=0).order
    array([3, 0, 2, 1])
    """

    n: int = 30
    rows: SplitProtocol | None = None

    def __post_init__(self) -> None:
        check_count(self.n, "n", self)

    @property
    def n_splits(self) -> int:
        """How many splits there are."""
        return self.n

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
        How many groups.
    n_runs : int, default=10
        How many times they are drawn.
    rows : SplitProtocol, optional
        As in `FeatureOrders`.

    Examples
    --------
    >>> shape = TaskShape(np.repeat([0, 1], 6), 12, 4)
    >>> RandomGroups(n_groups=2).split(0, shape, seed=0).groups
    array([0, 0, 1, 1])
    """

    n_groups: int = 100
    n_runs: int = 10
    rows: SplitProtocol | None = None

    def __post_init__(self) -> None:
        check_count(self.n_groups, "n_groups", self)
        check_count(self.n_runs, "n_runs", self)

    @property
    def n_splits(self) -> int:
        """How many splits there are."""
        return self.n_runs

    def split(self, index: int, shape: TaskShape, seed: int) -> Split:
        """One draw of groups."""
        found = split_in_turn(self.rows, index, shape, seed)
        groups = random_groups(shape.n_features, self.n_groups, random_int(seed, index))
        sizes = [group.size for group in groups]
        labels = np.repeat(np.arange(len(groups)), sizes)
        return Split(found.train, found.test, np.concatenate(groups), labels)


def default_protocol(shape: TaskShape) -> SplitProtocol:
    """The given parts, or random splits where there is no test part."""
    return GivenSplit() if shape.has_test_part else RandomSplits()


def split_in_turn(
    rows: SplitProtocol | None, index: int, shape: TaskShape, seed: int
) -> Split:
    """The rows of a protocol that is about something else."""
    if rows is None:
        return default_protocol(shape).split(0, shape, seed)
    return rows.split(index % rows.n_splits, shape, seed)


def split_rows(
    splitter: Any, y: NDArray[Any], protocol: SplitProtocol, index: int = 0
) -> Split:
    """Sorted rows of one split of scikit-learn's, or why there is none."""
    try:
        with warnings.catch_warnings():
            # Of small classes; `Run` says so once, and not for every split.
            warnings.simplefilter("ignore", UserWarning)
            train, test = list(splitter.split(np.zeros(len(y)), y))[index]
    except ValueError as error:
        told = str(error).rstrip(".")
        raise DataError(
            f"{protocol} cannot split these rows: {told}. Choose another size, or "
            "leave out the rows of classes that have too few."
        ) from error
    return Split(np.sort(train), np.sort(test))


def random_int(seed: int, index: int) -> int:
    """A seed for those who take none but an integer."""
    return int(np.random.default_rng([seed, index]).integers(2**31))


def check_count(value: Any, name: str, protocol: Any, least: int = 1) -> None:
    """Refuse what is not a number of things."""
    if not isinstance(value, int | np.integer) or value < least:
        raise ParameterError(
            f"`{name}` of {type(protocol).__name__} must be an integer of at least "
            f"{least}. Got {value!r}."
        )
