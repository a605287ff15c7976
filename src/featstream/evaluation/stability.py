"""How much a selection changes when the data change a little."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, stats
from scipy.optimize import linear_sum_assignment

from featstream.errors import (
    DataError,
    ParameterError,
    check_alpha,
    check_choice,
    printable,
)
from featstream.measures.information import SymmetricalUncertainty, score_pairs
from featstream.protocols import FloatArray, IntArray

Similarity = Callable[[NDArray[Any]], FloatArray]
"""From columns, (n_samples, n), the likeness of every pair, (n, n), in [0, 1]."""


@dataclass(frozen=True, slots=True)
class Stability:
    """Stability of a selection (1 if all are the same), with a confidence interval.

    >>> float(stability([[0, 1], [0, 1]], method="nogueira", n_features=5))
    1.0
    """

    value: float
    lower: float | None = None
    upper: float | None = None

    def __float__(self) -> float:
        return self.value


def stability(
    selections: Sequence[Sequence[int]],
    X: Any = None,
    *,
    method: Literal["yu", "nogueira"] = "yu",
    similarity: Similarity | Literal["su", "correlation"] = "su",
    n_features: int | None = None,
    alpha: float = 0.05,
) -> Stability:
    """Agreement of the features selected from several samples of one data set.

    Parameters
    ----------
    selections : sequence of sequences of int
        Indices of the features selected from each sample; at least two.
    X : array-like or sparse matrix of shape (n_samples, n_features), optional
        The data, for ``method="yu"``: a selection may swap a feature for one
        like it without becoming unstable.
    method : {"yu", "nogueira"}, default="yu"
        Yu et al. [1]_, the SAOLA paper's: the mean over all pairs of selections
        of the mean likeness of their features under the best one-to-one
        matching. Nogueira et al. [2]_: agreement on the features themselves,
        corrected for chance, with a confidence interval.
    similarity : callable, "su" or "correlation", default="su"
        Likeness of features for "yu": symmetrical uncertainty of discrete
        columns, absolute correlation, or a function from columns
        (n_samples, n) to likenesses (n, n).
    n_features : int, optional
        Number of features selected from, for "nogueira"; taken from `X` where
        that is given.
    alpha : float, default=0.05
        The confidence interval has level 1 - alpha.

    Returns
    -------
    Stability
        The value, and for "nogueira" its interval.

    Notes
    -----
    Selections of different sizes are matched as far as the smaller goes and the
    likeness is averaged over the matched pairs, so a selection agrees fully
    with any larger one that contains it. An empty selection agrees with an
    empty one only.

    References
    ----------
    .. [1] Yu, L., Ding, C. and Loscalzo, S. (2008). Stable feature selection
       via dense feature groups. KDD, 803-811.
    .. [2] Nogueira, S., Sechidis, K. and Brown, G. (2018). On the stability of
       feature selection algorithms. Journal of Machine Learning Research 18.

    Examples
    --------
    Features 0 and 1 are copies, so choosing one or the other is the same:

    >>> X = [[0, 0, 0], [0, 0, 1], [1, 1, 0], [1, 1, 1]]
    >>> stability([[0, 2], [1, 2]], X).value
    1.0
    >>> round(stability([[0, 2], [1, 2]], X, method="nogueira").value, 3)
    -0.5
    """
    sets = [as_indices(s, i) for i, s in enumerate(selections)]
    check_alpha(alpha)
    check_choice(method, "method", ("yu", "nogueira"), "stability")
    if len(sets) < 2:
        raise DataError(
            f"Stability compares selections and needs two or more. Got {len(sets)}. "
            "Select again from other samples of the rows."
        )
    if method == "yu":
        if X is None:
            raise ParameterError(
                'stability(method="yu") compares features by their values and needs X. '
                'Give the data, or use method="nogueira".'
            )
        return matched_stability(sets, X, similarity)
    if n_features is None and X is not None:
        n_features = np.shape(X)[1]
    if n_features is None or n_features <= max(s.max(initial=-1) for s in sets):
        raise ParameterError(
            'stability(method="nogueira") needs the number of features, larger '
            f"than every selected index. Got n_features={n_features!r}. Count the "
            "columns that were selected from."
        )
    return chance_corrected_stability(sets, n_features, alpha)


def as_indices(selection: Any, i: int) -> IntArray:
    """The features of a selection, each once."""
    given = np.asarray(selection)
    if given.size == 0:
        return np.array([], np.int64)
    if given.dtype.kind not in "iu" or given.ndim != 1 or given.min() < 0:
        raise DataError(
            f"Selection {i} must be a list of indices from 0. Got "
            f"{printable(given.tolist())}. From a selector: get_support(indices=True)."
        )
    return np.unique(given.astype(np.int64))


def matched_stability(
    sets: list[IntArray], X: Any, similarity: Similarity | str
) -> Stability:
    """Yu et al.: mean likeness under the best matching, over all pairs."""
    if isinstance(similarity, str):
        name = check_choice(similarity, "similarity", SIMILARITIES, "stability")
        similarity = SIMILARITIES[name]
    used = np.unique(np.concatenate(sets))
    likeness = np.ones((0, 0))
    if used.size:
        likeness = np.array(similarity(take_columns(X, used)))
        if np.isnan(likeness).any():
            place = used[np.isnan(likeness).any(axis=1).argmax()]
            raise DataError(
                f"The likeness of feature {place} to others is not a number (NaN). "
                "Fill in missing and infinite values."
            )
        np.fill_diagonal(likeness, 1.0)  # a constant feature is like itself too
    places = [np.searchsorted(used, s) for s in sets]
    values = []
    for a, b in combinations(places, 2):
        if a.size == 0 or b.size == 0:
            values.append(float(a.size == b.size))
            continue
        pairs = likeness[np.ix_(a, b)]
        values.append(pairs[linear_sum_assignment(pairs, maximize=True)].mean())
    return Stability(float(np.mean(values)))


def chance_corrected_stability(
    sets: list[IntArray], n_features: int, alpha: float
) -> Stability:
    """Nogueira et al.: one minus the variance of choices over that of chance."""
    m, d = len(sets), n_features  # features that are never selected add nothing
    used, positions = np.unique(np.concatenate(sets), return_inverse=True)
    share = np.bincount(positions, minlength=used.size) / m  # of selections, by feature
    sizes = np.array([s.size for s in sets])
    mean_share = sizes.mean() / d
    chance = mean_share * (1.0 - mean_share)
    if chance == 0.0:  # nothing, or everything, is selected every time
        return Stability(1.0, 1.0, 1.0)
    value = 1.0 - m / (m - 1) * float(np.sum(share * (1 - share))) / d / chance
    # The variance comes from the influence of each selection on the value.
    overlap = np.array([share[np.searchsorted(used, s)].sum() for s in sets]) / d
    own = sizes / d
    influence = (
        overlap
        - own * mean_share
        + value / 2 * (2 * mean_share * own - own - mean_share + 1)
    ) / chance
    error = np.sqrt(4.0 / m**2 * np.sum((influence - influence.mean()) ** 2))
    reach = float(stats.norm.isf(alpha / 2) * error)
    return Stability(float(value), float(value - reach), float(value + reach))


def take_columns(X: Any, which: IntArray) -> NDArray[Any]:
    """Some columns as a dense array."""
    X = X.tocsc() if sparse.issparse(X) else np.asarray(X)
    if X.ndim != 2 or X.shape[1] <= which[-1]:
        raise DataError(
            f"Feature {which[-1]} was selected, and X has shape {X.shape}. Give the "
            "samples by features that were selected from."
        )
    columns: Any = X[:, which]
    return np.asarray(columns.toarray() if sparse.issparse(columns) else columns)


def symmetrical_uncertainty(columns: NDArray[Any]) -> FloatArray:
    """2 I(a; b) / (H(a) + H(b)) for every pair of discrete columns."""
    n, largest = len(columns), max(np.unique(column).size for column in columns.T)
    if largest > max(n // 2, 20):
        raise DataError(
            f"Symmetrical uncertainty needs discrete columns, and one has {largest} "
            f"values in {n} samples. Bin it first, or use "
            'similarity="correlation".'
        )
    return score_pairs(SymmetricalUncertainty(binning=None), columns)


def absolute_correlation(columns: NDArray[Any]) -> FloatArray:
    """|r| of every pair of columns; 0 with a constant."""
    centred = columns - columns.mean(axis=0)
    norm = np.linalg.norm(centred, axis=0)
    centred /= np.where(norm > 0.0, norm, 1.0)
    return np.asarray(np.minimum(np.abs(centred.T @ centred), 1.0))


SIMILARITIES: dict[str, Similarity] = {
    "correlation": absolute_correlation,
    "su": symmetrical_uncertainty,
}
