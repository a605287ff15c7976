"""Drawing what has been computed elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from featstream.errors import DataError
from featstream.protocols import FloatArray
from featstream.reporting.dots import new_axes, plot_dots

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from featstream.evaluation import ScoreTable

__all__ = ["plot_critical_difference", "plot_scores"]


def plot_critical_difference(
    ranks: ArrayLike,
    critical_difference: float,
    methods: Sequence[str],
    *,
    ax: Axes | None = None,
) -> Axes:
    """Demšar's diagram: average ranks on a line, equals joined by a bar.

    Parameters
    ----------
    ranks : array-like of shape (n_methods,)
        Average ranks in Demšar's convention, 1 is the best; see
        `featstream.evaluation.average_ranks`.
    critical_difference : float
        Methods whose ranks differ by less are joined by a bar; see
        `featstream.evaluation.critical_difference`.
    methods : sequence of str
        Their names.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
        The axes drawn on.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from featstream.evaluation import critical_difference
    >>> cd = critical_difference(3, 10)
    >>> ax = plot_critical_difference([1.6, 1.65, 2.75], cd, ["a", "b", "c"])
    >>> [text.get_text() for text in ax.texts][-3:]
    ['a  1.60', 'b  1.65', '2.75  c']
    """
    values = np.asarray(ranks, np.float64)
    if values.ndim != 1 or values.size != len(methods):
        raise DataError(
            f"`ranks` has shape {values.shape} for {len(methods)} methods. "
            "Give one average rank for each."
        )
    k = values.size
    order = np.argsort(values, kind="stable")
    bars = indistinguishable(values[order], critical_difference)
    n_left = (k + 1) // 2
    first_label = -0.35 - 0.25 * len(bars)
    if ax is None:
        ax = new_axes(height=1.4 + 0.25 * (n_left + len(bars)))
    ink: dict[str, Any] = {"color": "black", "clip_on": False}

    ax.plot([1, k], [0, 0], lw=1.2, **ink)
    for tick in range(1, k + 1):
        ax.plot([tick, tick], [0, 0.12], lw=1.2, **ink)
        ax.text(tick, 0.2, str(tick), ha="center", va="bottom")
    ax.plot([1, 1 + critical_difference], [0.85, 0.85], lw=2, marker="|", **ink)
    margin = 0.06 * max(k - 1, critical_difference)
    caption = f"critical difference {critical_difference:.2f}"
    ax.text(1 + critical_difference + margin / 2, 0.85, caption, va="center")
    for place, j in enumerate(order):
        is_left = place < n_left
        depth = first_label - 0.35 * (place if is_left else k - 1 - place)
        end = 1 - margin if is_left else k + margin
        ax.plot([values[j], values[j], end], [0, depth, depth], lw=0.9, **ink)
        ax.text(
            end - margin / 4 if is_left else end + margin / 4,
            depth,
            f"{methods[j]}  {values[j]:.2f}"
            if is_left
            else f"{values[j]:.2f}  {methods[j]}",
            ha="right" if is_left else "left",
            va="center",
        )
    for i, (low, high) in enumerate(bars):
        ax.plot(
            [low, high], [-0.25 - 0.25 * i] * 2, lw=4, solid_capstyle="round", **ink
        )
    ax.set_xlim(1 - margin, max(k, 1 + critical_difference) + margin)
    ax.set_ylim(first_label - 0.35 * n_left, 1.0)
    ax.axis("off")
    return ax


def plot_scores(table: ScoreTable, *, ax: Axes | None = None) -> Axes:
    """Scores of every selector on every data set, with error bars.

    Parameters
    ----------
    table : ScoreTable
        From `ExperimentResult.table`. Bars reach one standard deviation over the
        splits to each side of a mean.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
        The axes drawn on. A selector that failed has no point; "-" says where.
    """
    return plot_dots(
        table.values,
        table.datasets,
        table.selectors,
        spreads=table.spreads,
        label=table.title,
        is_log=table.metric in ("seconds", "memory"),
        ax=ax,
    )


def indistinguishable(
    ranks: FloatArray, critical_difference: float
) -> list[tuple[float, float]]:
    """Longest stretches of sorted ranks within the critical difference."""
    result: list[tuple[float, float]] = []
    last_end = -1
    for start in range(ranks.size):
        near = ranks - ranks[start] < critical_difference
        end = int(np.flatnonzero(near)[-1])
        if end > start and end > last_end:
            result.append((float(ranks[start]), float(ranks[end])))
            last_end = end
    return result
