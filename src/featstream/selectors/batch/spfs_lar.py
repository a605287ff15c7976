"""SPFS-LAR: least-angle regression on the similarity of samples of one class."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from featstream.errors import check_count
from featstream.measures.inputs import Labels
from featstream.protocols import Fate, FloatArray
from featstream.selectors.batch.base import Selection
from featstream.selectors.batch.standard_columns import (
    StandardColumns,
    StandardSelector,
    largest,
)
from featstream.selectors.result import OVER_LIMIT, TraceLevel
from featstream.selectors.stream import Stream

_NEGLIGIBLE = 1e-9
"""What is left of a column, or of the target, by rounding alone."""


class SPFSLAR(StandardSelector):
    """Similarity preserving feature selection by least-angle regression.

    Samples of one class are similar. The selected features are those from which a
    linear model builds this similarity with few features: least-angle regression of
    all eigenvectors of the similarity matrix at once, in which a feature enters when
    it is as correlated with what is left of them as the features of the model are.
    A feature that repeats what the model knows does not enter.

    Parameters
    ----------
    n_features : int, default=10
        Number of features to select. The selection of fewer features is the
        beginning of that of more.
    trace : {"full", "kept"} or None, default="full"
        What is remembered of features that are not selected.

    Attributes
    ----------
    selected_ : ndarray of int
        The selected features, in the order in which they entered.
    scores_ : ndarray of float
        Their relevance: absolute correlation with the class, or eta with several.
    support_ : ndarray of bool of shape (n_features,)
        Whether each feature is selected.
    result_ : SelectionResult
        Names, scores and why each feature was selected or not.

    Notes
    -----
    The similarity of two samples is one over the size of their class if they share
    it, else zero; columns are centred and have length 1. The first feature is then
    the one with the highest F-value. With two classes this is least-angle regression
    of the class. Fewer than ``n_features`` are selected when they explain all that
    the columns can. A linear combination of features in the model is redundant.
    Every step makes one pass over the data; sparse data stay sparse.

    References
    ----------
    .. [1] Z. Zhao, L. Wang, H. Liu, J. Ye: On Similarity Preserving Feature Selection.
       IEEE TKDE 25(3), 2013.
    .. [2] B. Efron, T. Hastie, I. Johnstone, R. Tibshirani: Least Angle Regression.
       Annals of Statistics 32(2), 2004.

    Examples
    --------
    The second feature is nearly a copy of the first; the third is weaker, but new.

    >>> import numpy as np
    >>> from featstream import SPFSLAR
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 40))
    >>> y = 3 * X[:, 0] + X[:, 2] > 0
    >>> X[:, 1] = X[:, 0] + 0.1 * rng.normal(size=300)
    >>> SPFSLAR(n_features=2).fit(X, y).selected_
    array([0, 2])
    """

    _why_no_more = "these explain all that the columns can"

    def __init__(self, n_features: int = 10, *, trace: TraceLevel = "full") -> None:
        self.n_features = n_features
        self.trace = trace

    def _begin(self, stream: Stream) -> None:
        check_count(self.n_features, "n_features", type(self).__name__)

    def _choose(self, X: Any, labels: Labels, relevance: FloatArray) -> Selection:
        columns, targets = StandardColumns(X), class_similarity(labels.codes)
        path = least_angle_path(columns, targets, self.n_features)
        fate = np.where(relevance == 0.0, Fate.IRRELEVANT, OVER_LIMIT)
        witness = np.full(relevance.size, -1)
        if path.dependent:
            dependent = np.fromiter(path.dependent, np.int64)
            fate[dependent] = Fate.REDUNDANT
            witness[dependent] = list(path.dependent.values())
        order = np.array(path.entered, np.int64)
        return Selection(order, relevance, fate=fate, witness=witness)

    def _reason(
        self, arrival: int, fate: Fate, name: str, relevance: str, other: str
    ) -> str:
        if fate is Fate.REDUNDANT:
            return (
                f"{name} is redundant: it is a combination of features that entered "
                f"before, of which {other} is most like it; {relevance}."
            )
        return super()._reason(arrival, fate, name, relevance, other)


@dataclass(slots=True)
class Path:
    """Features in the order in which they entered."""

    entered: list[int] = field(default_factory=list)
    levels: list[float] = field(default_factory=list)
    dependent: dict[int, int] = field(default_factory=dict)
    """Features that are a combination of those entered, and the nearest of these."""


def class_similarity(codes: NDArray[Any]) -> FloatArray:
    """Eigenvectors of the centred class similarity, times the roots of its values.

    The similarity of two samples is one over the size of their class if they share
    it, and zero otherwise. One eigenvector per class but one.

    >>> class_similarity(np.array([0, 0, 1, 1])).round(3).ravel().tolist()
    [0.5, 0.5, -0.5, -0.5]
    """
    _, first, codes, counts = np.unique(
        codes, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.argsort(first)  # the names of the classes must not matter
    indicators = np.equal.outer(codes, order) / np.sqrt(counts[order])
    centred = indicators - indicators.mean(axis=0)
    values, vectors = np.linalg.eigh(centred.T @ centred)
    is_real = values > _NEGLIGIBLE
    found = centred @ vectors[:, is_real]
    return np.asarray(found * np.where(found[0] < 0, -1.0, 1.0))


def least_angle_path(
    columns: StandardColumns, targets: FloatArray, n_features: int
) -> Path:
    """Least-angle regression of several targets, until so many features entered.

    All features in the model have the same correlation with what is left of the
    targets (the norm over these). The fit moves towards the least-squares fit on
    them until another feature has as much, which enters.
    """
    path = Path()
    rest = targets.copy()
    products = columns.products(rest)
    is_out = columns.is_constant.copy()
    basis = np.empty((rest.shape[0], 0))  # of the features entered, orthonormal
    sizes = np.where(is_out, 0.0, np.linalg.norm(products, axis=1))
    level = float(sizes.max(initial=0.0))
    least = _NEGLIGIBLE * float(np.linalg.norm(targets))
    newcomer = int(sizes.astype(np.float32).argmax()) if sizes.size else -1
    while level > least and len(path.entered) < n_features:
        is_out[newcomer] = True
        column = columns.take(np.array([newcomer])).to_dense()[:, 0]
        own = column.copy()
        for _ in range(2):  # twice is enough
            own -= basis @ (basis.T @ own)
        norm = float(np.linalg.norm(own))
        if norm > np.sqrt(_NEGLIGIBLE):
            path.entered.append(newcomer)
            path.levels.append(level)
            basis = np.column_stack([basis, own / norm])
        else:
            shared = columns.take(np.array(path.entered)).products(column)
            nearest = int(largest(np.abs(shared), 1)[0])
            path.dependent[newcomer] = path.entered[nearest]
        if is_out.all():
            break
        direction = basis @ (basis.T @ rest)
        moves = columns.products(direction)
        steps = _steps(products, moves, level)
        steps[is_out] = np.inf
        newcomer = int(np.round(steps, 9).argmin())  # the first of equals
        step = min(1.0, float(steps[newcomer]))
        rest -= step * direction
        products -= step * moves
        level *= 1.0 - step
    return path


def _steps(products: FloatArray, moves: FloatArray, level: float) -> FloatArray:
    """How far the fit can move until each feature has the level of those entered.

    The smallest root in [0, 1] of ``|c - g a|² = (1 - g)² level²``: the difference is
    not above 0 at g = 0 and not below 0 at g = 1, so that there is one.
    """
    square = level * level
    lead = np.einsum("ij,ij->i", moves, moves) - square
    half = square - np.einsum("ij,ij->i", products, moves)
    last = np.minimum(np.einsum("ij,ij->i", products, products) - square, 0.0)
    root = np.sqrt(np.maximum(half * half - lead * last, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        steps = np.where(half >= 0, -last / (half + root), (root - half) / lead)
    # 0/0: a feature that moves with those entered reaches their level at the end.
    return np.asarray(np.clip(np.nan_to_num(steps, nan=1.0, posinf=1.0), 0.0, 1.0))
