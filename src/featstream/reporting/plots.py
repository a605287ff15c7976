"""Figures of what has been computed elsewhere, drawn with matplotlib.

Every function takes ``ax``, the matplotlib Axes to draw on (by default those of a new
figure), and returns it. One colour and one marker per method.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from featstream.errors import DataError
from featstream.protocols import Fate
from featstream.reporting.charts import indistinguishable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from featstream.evaluation import ScoreTable
    from featstream.selectors.result import SelectionResult
    from featstream.selectors.trace import Trace

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's palette, which is safe for colour-blind readers."""

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
    """Draw one dot per row and method, side by side within a row.

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
        Where to draw.

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
    ax = ax or _new_axes(6.4, 1.0 + n_rows * (0.2 + 0.13 * n_methods))
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
    _tidy(ax, "x", n_methods)
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
    """Draw one line per name over the values of a parameter.

    ``lines`` has shape (n_names, n_values); NaN leaves a gap.
    """
    ax = ax or _new_axes(6.4, 3.2)
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
    _tidy(ax, "y", len(names))
    return ax


def plot_scores(table: ScoreTable, *, ax: Axes | None = None) -> Axes:
    """Draw the scores of every selector on every data set.

    Error bars reach one standard deviation over the splits to each side of a mean. A
    selector that failed has a dash instead of a dot.
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


def plot_critical_difference(
    ranks: ArrayLike,
    critical_difference: float,
    methods: Sequence[str],
    *,
    ax: Axes | None = None,
) -> Axes:
    """Draw Demšar's diagram: average ranks on a line, equals joined by a bar.

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
        Where to draw.

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
    ax = ax or _new_axes(6.4, 1.4 + 0.25 * (n_left + len(bars)))
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
        words = [methods[j], f"{values[j]:.2f}"]
        ax.text(
            end - margin / 4 if is_left else end + margin / 4,
            depth,
            "  ".join(words if is_left else words[::-1]),
            ha="right" if is_left else "left",
            va="center",
        )
    for i, bar in enumerate(bars):
        ax.plot(bar, [-0.25 - 0.25 * i] * 2, lw=4, solid_capstyle="round", **ink)
    ax.set_xlim(1 - margin, max(k, 1 + critical_difference) + margin)
    ax.set_ylim(first_label - 0.35 * n_left, 1.0)
    ax.axis("off")
    return ax


def plot_timeline(result: SelectionResult, *, ax: Axes | None = None) -> Axes:
    """Draw the lifetime of every feature that was ever kept.

    A line runs from the arrival of a feature to its displacement, at the height
    of its relevance; a dot marks the arrival of those selected in the end. The result
    needs a trace of level "full" or "kept".

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from featstream import SAOLA
    >>> from featstream.datasets import make_stream
    >>> stream = make_stream(n_features=300)
    >>> result = SAOLA().fit(stream.X, stream.y).result_
    >>> plot_timeline(result).get_xlabel()
    'features seen'
    """
    trace, ax = _traced(result), ax or _new_axes(8, 3.6)
    records, arrivals = trace.records, trace.arrivals
    has_left = records["fate"] >= Fate.DISPLACED
    is_kept = records["fate"] == Fate.KEPT
    end = np.where(has_left, records["witness"], result.n_features)
    for chosen, colour, width, label in (
        (has_left, "0.7", 0.6, f"displaced by a better one ({has_left.sum():,})"),
        (is_kept, "C0", 1.2, f"selected ({is_kept.sum():,})"),
    ):
        ax.hlines(
            records["relevance"][chosen],
            arrivals[chosen],
            end[chosen],
            colors=colour,
            linewidth=width,
            label=label,
        )
    ax.plot(arrivals[is_kept], records["relevance"][is_kept], "o", color="C0", ms=3)
    if len(arrivals):
        ax.set_yscale("log")
    ax.set_xlabel("features seen")
    ax.set_ylabel(f"relevance ({result.measure})")
    ax.set_xlim(0, result.n_features)
    place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0, 1), "ncols": 2}
    ax.legend(**place, fontsize="small", frameon=False)
    return ax


def plot_size(result: SelectionResult, *, ax: Axes | None = None) -> Axes:
    """Draw the size of the selection, as features arrive.

    The result needs a trace of level "full" or "kept".

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from featstream import SAOLA
    >>> X, y = [[0, 1], [0, 0], [1, 1], [1, 1]], [0, 0, 1, 1]
    >>> result = SAOLA(measure="su").fit(X, y).result_
    >>> plot_size(result).get_lines()[0].get_ydata().tolist()
    [1, 1]
    """
    trace, ax = _traced(result), ax or _new_axes(8, 3.6)
    changed, sizes = trace.sizes()
    ax.step(
        np.append(changed, result.n_features),
        np.append(sizes, sizes[-1:]),
        where="post",
        color="C1",
        linewidth=1.2,
    )
    ax.set_xlabel("features seen")
    ax.set_ylabel("size of the selection")
    ax.set_xlim(0, result.n_features)
    ax.set_ylim(bottom=0)
    return ax


def _traced(result: SelectionResult) -> Trace:
    if result.trace.level is None:
        raise DataError(
            "This result has no trace to draw. Select with trace='full' or 'kept'."
        )
    return result.trace


def _new_axes(width: float, height: float) -> Axes:
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def _tidy(ax: Axes, grid: Literal["both", "x", "y"], n_methods: int) -> None:
    """A light grid, and the legend above."""
    ax.grid(axis=grid, color="0.92", lw=0.8)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        ncols=min(n_methods, 4),
        frameon=False,
        borderaxespad=0.2,
        handletextpad=0.4,
        columnspacing=1.2,
    )
