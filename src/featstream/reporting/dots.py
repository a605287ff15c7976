"""Dots for numbers by data set and method; one colour and one marker a method."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike

from featstream.errors import DataError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["COLOURS", "MARKERS", "new_axes", "plot_dots", "plot_sweep"]

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's, which readers with any vision of colours can tell apart."""

MARKERS = "osD^vP*X<>"


def plot_dots(
    values: ArrayLike,
    rows: Sequence[str],
    methods: Sequence[str],
    *,
    spreads: ArrayLike | None = None,
    label: str = "",
    is_log: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """A dot for each row and method, side by side within a row.

    Parameters
    ----------
    values : array-like of shape (n_rows, n_methods)
        The numbers. NaN is shown as a dash at the left edge.
    rows, methods : sequences of str
        Their names; rows are written at the left, from the top down.
    spreads : array-like of shape (n_rows, n_methods), optional
        Half the length of error bars.
    label : str
        What the numbers are.
    is_log : bool, default=False
        Whether the axis is logarithmic.
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
    >>> ax = plot_dots([[0.8, 0.7], [0.9, 0.6]], ["dexter", "hiva"], ["SAOLA", "OFS"])
    >>> [text.get_text() for text in ax.get_yticklabels()]
    ['dexter', 'hiva']
    """
    table = np.asarray(values, np.float64)
    if table.shape != (len(rows), len(methods)):
        raise DataError(
            f"`values` has shape {table.shape} for {len(rows)} rows and "
            f"{len(methods)} methods. Give one number for each row and method."
        )
    bars = np.zeros_like(table) if spreads is None else np.nan_to_num(spreads)
    n_rows, n_methods = table.shape
    if ax is None:
        ax = new_axes(height=1.0 + n_rows * (0.2 + 0.13 * n_methods))
    places = np.arange(n_rows, dtype=float)
    for j, method in enumerate(methods):
        heights = places + (j - (n_methods - 1) / 2) * 0.75 / n_methods
        colour = COLOURS[j % len(COLOURS)]
        ax.errorbar(
            table[:, j],
            heights,
            xerr=bars[:, j] if bars.any() else None,
            fmt=MARKERS[j % len(MARKERS)],
            color=colour,
            markersize=5,
            capsize=2,
            lw=1,
            label=method,
        )
        for i in np.flatnonzero(np.isnan(table[:, j])):
            ax.text(
                0.01,
                heights[i],
                "–",
                color=colour,
                fontsize=13,
                fontweight="bold",
                transform=ax.get_yaxis_transform(),
                va="center",
            )
    ax.set_yticks(places, rows)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(n_rows - 0.5, -0.5)
    for edge in places[1:] - 0.5:
        ax.axhline(edge, color="0.88", lw=0.8, zorder=0)
    if is_log and np.nanmin(table, initial=np.inf) > 0:
        ax.set_xscale("log")
        ax.xaxis.set_major_formatter("{x:g}")
    ax.set_xlabel(label)
    _tidy(ax, "x")
    _legend_above(ax, n_methods)
    return ax


def plot_sweep(
    x: ArrayLike,
    lines: ArrayLike,
    names: Sequence[str],
    *,
    x_label: str = "",
    label: str = "",
    ax: Axes | None = None,
) -> Axes:
    """A line for each name over the values of a parameter.

    Parameters
    ----------
    x : array-like of shape (n_values,)
        The parameter.
    lines : array-like of shape (n_names, n_values)
        What comes of it; NaN leaves a gap.
    names : sequence of str
        What the lines are of.
    x_label, label : str
        What the axes show.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
        The axes drawn on.
    """
    if ax is None:
        ax = new_axes(height=3.2)
    for j, line in enumerate(np.asarray(lines, np.float64)):
        ax.plot(
            np.asarray(x),
            line,
            marker=MARKERS[j % len(MARKERS)],
            color=COLOURS[j % len(COLOURS)],
            markersize=5,
            lw=1.2,
            label=names[j],
        )
    ax.set_xlabel(x_label)
    ax.set_ylabel(label)
    _tidy(ax, "y")
    _legend_above(ax, len(names))
    return ax


def new_axes(height: float) -> Axes:
    """Axes in a figure of their own."""
    import matplotlib.pyplot as plt

    _, ax = plt.subplots(figsize=(6.4, height), layout="constrained")
    return ax


def _tidy(ax: Axes, grid: Literal["both", "x", "y"]) -> None:
    ax.grid(axis=grid, color="0.92", lw=0.8)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)


def _legend_above(ax: Axes, n_columns: int) -> None:
    ax.legend(
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        ncols=min(n_columns, 4),
        frameon=False,
        borderaxespad=0.2,
        handletextpad=0.4,
        columnspacing=1.2,
    )
