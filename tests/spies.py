"""Selectors and classifiers that tell what was done to them, or misbehave.

They live in a module of their own because other processes import them.
"""

import os
import signal
import time
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.neighbors import KNeighborsClassifier


class FirstFeatures(SelectorMixin, BaseEstimator):
    """Selects the first features, and keeps a copy of what it was shown."""

    def __init__(self, n_features=2, folder=None, seconds=0.0):
        self.n_features = n_features
        self.folder = folder
        self.seconds = seconds

    def fit(self, X, y):
        if self.folder is not None:
            name = f"{time.time_ns()}-{os.getpid()}"
            np.savez(Path(self.folder) / f"{name}.npz", X=X, y=y)
        time.sleep(self.seconds)
        self.n_features_in_ = X.shape[1]
        return self

    def _get_support_mask(self):
        return np.arange(self.n_features_in_) < self.n_features


def comparison(**options):
    """Three selectors on three splits."""
    from featstream.evaluation import Experiment, RandomSplits

    X, y = np.random.default_rng(0).normal(size=(60, 5)), np.arange(60) % 2
    selectors = {n: FirstFeatures(n, **options) for n in (1, 2, 3)}
    return Experiment(selectors, {"data": (X, y)}, ["knn"], RandomSplits(n_runs=3))


def without_costs(result):
    """The rows of a result without time and memory, which are never the same twice."""
    costs = ("seconds", "memory")
    return [
        {key: value for key, value in row.items() if key not in costs}
        for row in result.rows()
    ]


def fits(folder):
    """What was shown in each fit, in order of time."""
    return [np.load(path) for path in sorted(Path(folder).glob("*.npz"))]


class RandomFeature(SelectorMixin, BaseEstimator):
    """Selects a feature at random."""

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, X, y):
        chosen = np.random.default_rng(self.random_state).integers(X.shape[1])
        self.is_chosen_ = np.arange(X.shape[1]) == chosen
        return self

    def _get_support_mask(self):
        return self.is_chosen_


class Misfit(SelectorMixin, BaseEstimator):
    """Fails in a way of one's choice."""

    def __init__(self, how):
        self.how = how

    def fit(self, X, y):
        if self.how == "raise":
            raise ValueError("no such thing\nas a free lunch")
        if self.how == "sleep":
            time.sleep(600)
        if self.how == "hoard":
            held = []
            while True:
                held.append(np.ones(4 << 20))
                time.sleep(0.01)
        if self.how == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        if self.how == "exit":
            os._exit(3)
        return self

    def _get_support_mask(self):
        raise NotImplementedError


class SlowClassifier(KNeighborsClassifier):
    """Takes its time to learn."""

    def __init__(self, seconds=600):
        super().__init__()
        self.seconds = seconds

    def fit(self, X, y):
        time.sleep(self.seconds)
        return super().fit(X, y)


class FailingClassifier(KNeighborsClassifier):
    """Does not like the data."""

    def predict(self, X):
        raise RuntimeError("not today")


class Hungry(FirstFeatures):
    """Needs memory, and gives it back."""

    def __init__(self, megabytes, n_features=2, folder=None, seconds=0.0):
        super().__init__(n_features, folder, seconds)
        self.megabytes = megabytes

    def fit(self, X, y):
        np.ones(self.megabytes << 17).sum()
        return super().fit(X, y)


class Compiling(FirstFeatures):
    """Compiles a kernel that nobody has cached."""

    def fit(self, X, y):
        import numba

        from featstream.jit import compilation

        @numba.njit
        def total(a):
            return np.sort(a.ravel())[::-1].cumsum() + np.linalg.norm(a)

        began = time.perf_counter()
        total(np.ones((3, 3)))
        compilation.add(began, time.perf_counter())
        assert time.perf_counter() - began > 0.5
        return super().fit(X, y)
