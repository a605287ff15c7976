"""The paper's methods with the paper's parameters, and its protocols."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from featstream import (
    OFS,
    OGFS,
    SAOLA,
    AlphaInvesting,
    FastOSFS,
    FisherZ,
    GroupSAOLA,
    SymmetricalUncertainty,
)
from featstream.errors import unknown_name
from featstream.evaluation import (
    BestOf,
    FeatureOrders,
    GivenSplit,
    RandomGroups,
    RandomSplits,
    Split,
    SplitProtocol,
    Subsamples,
    TaskShape,
    as_classifier,
)
from featstream.paper.datasets import Benchmark
from featstream.paper.exhibits import Design
from featstream.paper.tables import paper_table

ABSENT = ("FCBF", "GDM", "IAMB", "MMMB", "SGLasso", "SPSF-LAR")
"""Methods of the paper that this library does not have."""

PAPER_CLASSIFIERS = {
    "J48": as_classifier("j48"),
    "KNN": as_classifier("knn"),
    "SVM": make_pipeline(MinMaxScaler(), as_classifier("svm")),
}
"""The paper's classifiers. It does not say how features were scaled for the SVM; here
training rows have the range [0, 1], as the guide of LIBSVM asks. Without it the solver
takes minutes on counts, and does not end on some."""

_LARGEST_K, _STEP_K = 100, 5
_FEW_GROUPS, _MANY_GROUPS = 100, 10_000

_SIZES = {
    "arcene": (100, 100),
    "connect-4": (60_000, 7_557),
    "covtype": (571_012, 10_000),
    "gisette": (6_000, 1_000),
    "ijcnn1": (190_000, 1_681),
    "poker": (1_020_000, 5_010),
    "real-sim": (70_000, 2_309),
}
"""Training and test rows that the text states; Table 2 has those of the others."""


def selector_for(method: str, data: Benchmark, design: Design) -> Any:
    """A method as the paper uses it on a data set.

    ``"SAOLA alpha=0.05"`` and ``"SAOLA delta=0.01"`` are SAOLA with another level or
    threshold. OFS needs the number of features: the paper takes the best of 5, 10, …,
    100, and where nothing is classified the number that it reports.

    >>> from pathlib import Path
    >>> X, y = np.zeros((4, 500)), np.array([0, 1, 0, 1])
    >>> data = Benchmark("madelon", X, y, None, None, "continuous", True, Path("x"))
    >>> selector_for("SAOLA alpha=0.05", data, "split").measure.alpha
    0.05
    """
    name, _, setting = method.partition(" ")
    if name not in _METHODS:
        raise unknown_name("method of the paper", name, _METHODS)
    value = float(setting.partition("=")[2]) if setting else None
    if design == "subsamples" and name == "OFS":
        return OFS(_printed_count(data, "OFS"))
    return _METHODS[name](data, value)


def _measure(data: Benchmark, value: float | None) -> Any:
    """Fisher's Z at level 0.01, or symmetrical uncertainty with threshold 0."""
    if data.kind == "continuous":
        return FisherZ(alpha=0.01 if value is None else value)
    return SymmetricalUncertainty(threshold=0.0 if value is None else value)


def _ofs(data: Benchmark, value: float | None) -> BestOf:
    largest = min(_LARGEST_K, data.X.shape[1])
    counts = range(_STEP_K, largest + 1, _STEP_K)
    return BestOf(OFS(), "n_features", counts, judged_on="test")


_METHODS: dict[str, Callable[[Benchmark, float | None], Any]] = {
    "SAOLA": lambda data, value: SAOLA(measure=_measure(data, value)),
    "SAOLA-max": lambda data, value: SAOLA(measure=_measure(data, value), bound="max"),
    "Fast-OSFS": lambda data, value: FastOSFS(
        test="fisher-z" if data.kind == "continuous" else "g2", alpha=0.01
    ),
    # The first column stands for the intercept, as in the authors' library.
    "Alpha-investing": lambda data, value: AlphaInvesting(intercept="first-column"),
    "OFS": _ofs,
    "group-SAOLA": lambda data, value: GroupSAOLA(
        measure=_measure(data, value), reading="library"
    ),
    "OGFS": lambda data, value: OGFS(),
}


def _printed_count(data: Benchmark, method: str) -> int:
    table = paper_table(6)
    counts = table.scores([method])[:, 0]
    return int(counts[table.datasets.index(data.name)])


@dataclass(frozen=True, slots=True)
class TrainingPartOnly(SplitProtocol):
    """All rows train and none tests, for a training part without its test part."""

    def split(self, index: int, shape: TaskShape, seed: int) -> Split:
        """All rows."""
        return Split(np.arange(len(shape.y)), np.arange(0))


@dataclass(frozen=True, slots=True)
class FirstSplit(SplitProtocol):
    """The first of the splits of another protocol."""

    protocol: SplitProtocol

    def split(self, index: int, shape: TaskShape, seed: int) -> Split:
        """The first."""
        return self.protocol.split(index, shape, seed)


def protocol_for(
    data: Benchmark, design: Design, *, is_quick: bool = False
) -> SplitProtocol:
    """How the paper splits a data set; repeated three times if ``is_quick``.

    The published parts; or rows drawn at random, as many for training and testing as
    the paper has, or in that proportion where some rows are missing.
    """
    n_few, n_many = (3, 3) if is_quick else (10, 30)
    rows = _rows_for(data, n_few)
    if design == "orders":
        return FeatureOrders(n_many, _rows_for(data, 1))
    if design == "groups":
        is_wide = data.name in paper_table(6).datasets[10:]
        n_groups = _MANY_GROUPS if is_wide else _FEW_GROUPS
        return RandomGroups(min(n_groups, data.X.shape[1]), n_few, rows)
    if design == "subsamples":
        return Subsamples(n_many)
    return rows


def _rows_for(data: Benchmark, n_runs: int) -> SplitProtocol:
    if data.y_test is not None:
        return GivenSplit()
    if data.is_split and not data.differs:
        return TrainingPartOnly()
    sizes = paper_table(2)
    if data.name in sizes.datasets:
        place = sizes.datasets.index(data.name)
        n_train, n_test = map(int, sizes.values[place, 1:])
    else:
        n_train, n_test = _SIZES[data.name]
        n_runs = 1 if data.name in paper_table(9).datasets else n_runs
    if n_train + n_test == data.y.size:
        return RandomSplits(n_runs, n_test, n_train, stratified=False)
    share = n_test / (n_train + n_test)
    return RandomSplits(n_runs, share, stratified=False)
