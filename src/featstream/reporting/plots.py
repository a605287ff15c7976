"""Figures of what has been computed elsewhere, drawn with matplotlib.

Every function takes ``ax``, the matplotlib Axes to draw on (by default those of a new
figure), and returns it. One colour and one marker per method.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from featstream.errors import DataError, visible
from featstream.evaluation.results import TITLES
from featstream.protocols import Fate, FloatArray
from featstream.reporting.charts import indistinguishable
from featstream.reporting.history import (
    History,
    accuracy_curve,
    distribution,
    redundancy,
    removals,
    size_curve,
    timeline,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from featstream.evaluation import ExperimentResult, ScoreTable
    from featstream.selectors.result import SelectionResult

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
    largest: float = np.inf,
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
    largest : float, optional
        The largest number that there can be, such as 1 for an accuracy: error bars end
        there, and at 0.
    ax : matplotlib Axes, optional
        Where to draw.

    Examples
    --------
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
        style = _style(j)
        spread = None
        if bars.any():
            lower = np.minimum(bars[:, j], np.nan_to_num(table[:, j]))
            upper = np.minimum(bars[:, j], np.nan_to_num(largest - table[:, j]))
            spread = [lower, np.maximum(upper, 0.0)]
        look: dict[str, Any] = {"ls": "", "capsize": 2, "lw": 1, "label": method}
        ax.errorbar(table[:, j], heights, xerr=spread, **look, **style)
        look = {"color": style["color"], "fontsize": 13, "fontweight": "bold"}
        at_edge = ax.get_yaxis_transform()
        for i in np.flatnonzero(np.isnan(table[:, j])):
            ax.text(0.01, heights[i], "–", transform=at_edge, va="center", **look)
    ax.set_yticks(places, rows)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(n_rows - 0.5, -0.5)
    for edge in places[1:] - 0.5:
        ax.axhline(edge, color="0.88", lw=0.8, zorder=0)
    if is_log and np.nanmin(table, initial=np.inf) > 0:
        ax.set_xscale("log")
        _label_log_axis(ax, table)
    return _tidy(ax, label, grid="x", n_entries=n_methods)


def _label_log_axis(ax: Axes, values: FloatArray) -> None:
    """Ticks at 1, 2 and 5 of each decade where there are few, and no others."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

    shortest, longest = 0.5, 2.5  # decades
    known = values[np.isfinite(values)]
    decades = np.log10(known.max() / known.min()) if known.size else 0.0
    locator = LogLocator(subs=(1.0, 2.0, 5.0) if decades < longest else (1.0,))
    ax.xaxis.set_major_locator(MaxNLocator(4) if decades < shortest else locator)
    ax.xaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_minor_formatter(NullFormatter())


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
        ax.plot(np.asarray(x), line, lw=1.2, label=names[j], **_style(j))
    return _tidy(ax, x_label, label, n_entries=len(names))


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
    k, order = values.size, np.argsort(values, kind="stable")
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
    """Draw the lifetime of the features that were ever kept.

    A line runs from the arrival of a feature to its displacement, at the height
    of its relevance; a dot marks the arrival of those selected in the end. The result
    needs a trace of level "full" or "kept". Of very many features the most relevant
    kept ones and the longest lives are drawn.

    Examples
    --------
    >>> from featstream import SAOLA
    >>> from featstream.datasets import make_stream
    >>> stream = make_stream(n_features=300)
    >>> result = SAOLA().fit(stream.X, stream.y).result_
    >>> plot_timeline(result).get_xlabel()
    'features seen'
    """
    data, ax = timeline(History(result)), ax or _new_axes(8, 3.6)
    is_kept = data.by < 0
    n_displaced = int(data.counts[Fate.DISPLACED].sum())
    for chosen, colour, width, label in (
        (~is_kept, "0.7", 0.6, f"displaced by a better one ({n_displaced:,})"),
        (is_kept, COLOURS[0], 1.2, f"selected ({len(result):,})"),
    ):
        lives = data.relevance[chosen], data.arrival[chosen], data.end[chosen]
        ax.hlines(*lives, colors=colour, linewidth=width, label=label)
    ax.plot(data.arrival[is_kept], data.relevance[is_kept], "o", color=COLOURS[0], ms=3)
    if data.arrival.size:
        ax.set_yscale("log")
    ax.set_xlim(0, result.n_features)
    return _tidy(ax, "features seen", f"relevance ({result.measure})")


def plot_size(result: SelectionResult, *, ax: Axes | None = None) -> Axes:
    """Draw the size of the selection, as features arrive, and displacements.

    The result needs a trace of level "full" or "kept". The bars below the curve show
    where features were displaced.

    Examples
    --------
    >>> from featstream import SAOLA
    >>> X, y = [[0, 1], [0, 0], [1, 1], [1, 1]], [0, 0, 1, 1]
    >>> result = SAOLA(measure="su").fit(X, y).result_
    >>> plot_size(result).get_lines()[0].get_ydata().tolist()
    [1, 1]
    """
    data, ax = size_curve(History(result)), ax or _new_axes(8, 3.6)
    look: dict[str, Any] = {"where": "post", "color": COLOURS[0], "linewidth": 1.2}
    ax.step(data.arrivals, data.sizes, label="kept", **look)
    if data.displaced.any():
        look = {"align": "edge", "color": COLOURS[1], "hatch": "//", "alpha": 0.5}
        bars = data.edges[:-1], data.displaced, np.diff(data.edges)
        ax.bar(*bars, label="displaced", **look)
    ax.set_xlim(0, result.n_features)
    ax.set_ylim(bottom=0)
    return _tidy(ax, "features seen", "size of the selection")


def plot_removals(result: SelectionResult, *, ax: Axes | None = None) -> Axes:
    """Draw who displaced or discarded whom, with scores.

    One row per kept feature, those that removed most first: its own relevance (a
    dot), that of features that it displaced (diamonds, joined to it) and of features
    that were redundant beside it (ticks), itself or through those that it displaced.
    """
    history, trace = History(result), result.trace
    families = removals(history).families
    ax = ax or _new_axes(7, 1.2 + 0.28 * max(1, len(families)))
    for row, family in enumerate(families):
        own = trace.relevance(family.arrival)
        for fate, marker, colour in (
            (Fate.DISPLACED, "D", COLOURS[1]),
            (Fate.REDUNDANT, "|", COLOURS[2]),
        ):
            members = [a for a in family.members if trace.fate(a) is fate]
            found = [trace.relevance(a) for a in members]
            rows = [row] * len(found)
            ax.plot(found, rows, marker, color=colour, mfc="none", ms=5, lw=0)
            if fate is Fate.DISPLACED and found:
                ends = min(*found, own), max(*found, own)
                ax.hlines(row, *ends, colors=colour, linewidth=0.6)
        ax.plot(own, row, "o", color=COLOURS[0], ms=5)
    names = [history.name(family.arrival, 24) for family in families]
    ax.set_yticks(range(len(families)), names)
    ax.set_ylim(len(families) - 0.5, -0.5)
    if families:
        ax.set_xscale("log")
    ax.set_xlabel(f"relevance ({result.measure})")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def plot_distribution(result: SelectionResult, *, ax: Axes | None = None) -> Axes:
    """Draw how many features of each fate have which relevance, and the threshold.

    Examples
    --------
    >>> from featstream import SAOLA
    >>> X, y = [[0, 1], [0, 0], [1, 1], [1, 1]], [0, 0, 1, 1]
    >>> result = SAOLA(measure="su").fit(X, y).result_
    >>> plot_distribution(result).get_yscale()
    'log'
    """
    data, ax = distribution(History(result)), ax or _new_axes(6.4, 3.2)
    look: dict[str, Any]
    for k, fate in enumerate(Fate):
        if data.counts[fate].any():
            look = {"color": COLOURS[k], "linestyle": ("-.", "-", ":", "--")[k]}
            ax.stairs(data.counts[fate], data.edges, label=str(fate), **look)
    if data.threshold is not None:
        ax.axvline(data.threshold, color="black", ls=(0, (4, 3)), lw=1)
        words = f" {data.said} {data.threshold:.4g}"
        ax.text(data.threshold, 1.0, words, transform=ax.get_xaxis_transform())
    ax.set_yscale("log")
    return _tidy(ax, f"relevance ({result.measure})", "features")


def plot_redundancy(
    result: SelectionResult, X: Any = None, *, ax: Axes | None = None
) -> Axes:
    """Draw how much the most relevant kept features overlap.

    Parameters
    ----------
    result : SelectionResult
        What was selected.
    X : array or sparse matrix of shape (n_samples, n_features), optional
        The data, where the selector does not hold the kept columns itself.
    ax : matplotlib Axes, optional
        Where to draw.
    """
    data, ax = redundancy(History(result), X), ax or _new_axes(5.6, 4.8)
    if data is None:
        raise DataError(
            "The overlap of the kept features cannot be computed: there are fewer than "
            f"two, or {result.selector} does not hold their columns. Give X."
        )
    order, overlap = data
    shown = np.where(np.tri(order.size, k=-1) > 0, overlap, np.nan)
    image = ax.imshow(shown, cmap="cividis_r", vmin=0)
    names = [visible(result.names[i], 20) for i in order]
    ax.set_yticks(range(len(names)), names, fontsize="x-small")
    ax.set_xticks([])
    figure: Any = ax.get_figure()
    figure.colorbar(image, ax=ax, label=f"overlap ({result.measure})")
    return ax


def plot_accuracy(
    result: SelectionResult, X: Any = None, *, ax: Axes | None = None
) -> Axes:
    """Draw cross-validated accuracy against the number of features.

    The test rows took part in the selection: new data will show less. ``X`` is as for
    `plot_redundancy`.
    """
    data, ax = accuracy_curve(History(result), X), ax or _new_axes(6.4, 3.2)
    if data is None:
        raise DataError(
            "There is no accuracy to draw: the target is a quantity or has a class "
            f"with very few rows, or {result.selector} does not hold the kept columns. "
            "In the last case give X."
        )
    style: dict[str, Any] = {"fmt": "o-", "color": COLOURS[0], "capsize": 2}
    ax.errorbar(data.sizes, data.accuracy, data.spreads, label=data.classifier, **style)
    ax.axhline(data.baseline, color="black", ls="--", lw=1, label="the largest class")
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter("{x:g}")
    return _tidy(ax, "most relevant kept features", "accuracy")


def plot_tradeoff(
    result: ExperimentResult,
    cost: Literal["n_features", "n_groups", "seconds", "memory"] = "n_features",
    classifier: str | None = None,
    *,
    ax: Axes | None = None,
) -> Axes:
    """Draw accuracy against a cost, one mark per selector and data set.

    With ``cost="n_groups"`` these are Figures 18 and 19 of the paper.
    """
    accuracy = result.table("accuracy", classifier)
    costs, ax = result.table(cost, classifier), ax or _new_axes(6.4, 3.6)
    for j, selector in enumerate(result.selectors):
        points = costs.values[:, j], accuracy.values[:, j]
        ax.plot(*points, ls="", label=selector, **_style(j))
    if np.nanmin(costs.values, initial=np.inf) > 0:
        ax.set_xscale("log")
    labels = TITLES[cost].lower(), f"accuracy, {accuracy.classifier}"
    return _tidy(ax, *labels, grid="both", n_entries=len(result.selectors))


def plot_stability(result: ExperimentResult, *, ax: Axes | None = None) -> Axes:
    """Draw how much selections agree from split to split, with 95% intervals.

    By Nogueira et al. (2018); meant for the protocol `Subsamples`.
    """
    values, _, upper = stability_intervals(result, result.datasets)
    label = "stability (Nogueira et al. 2018)"
    names = result.datasets, result.selectors
    return plot_dots(values, *names, spreads=upper - values, label=label, ax=ax)


def stability_intervals(result: ExperimentResult, datasets: list[str]) -> FloatArray:
    """Stability, lower and upper end; shape (3, n_datasets, n_selectors)."""
    found = result.stability("nogueira")
    intervals = np.full((3, len(datasets), len(result.selectors)), np.nan)
    for i, j in np.ndindex(intervals.shape[1:]):
        own = found[datasets[i], result.selectors[j]]
        if own is not None:
            intervals[:, i, j] = own.value, own.lower, own.upper
    return intervals


def plot_order_sensitivity(
    result: ExperimentResult,
    metric: Literal["accuracy", "n_features"] = "accuracy",
    classifier: str | None = None,
    *,
    ax: Axes | None = None,
) -> Axes:
    """Draw mean and deviation of a metric over random orders of the features.

    Meant for the protocol `FeatureOrders`: a short bar means that the order in which
    features arrive matters little.
    """
    table = result.table(metric, classifier)
    ax = plot_scores(table, ax=ax)
    ax.set_xlabel(f"{table.what} over orders of the features")
    return ax


def _style(j: int) -> dict[str, Any]:
    """Colour and marker of a method."""
    marker, colour = MARKERS[j % len(MARKERS)], COLOURS[j % len(COLOURS)]
    return {"marker": marker, "color": colour, "markersize": 5}


def _new_axes(width: float, height: float) -> Axes:
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def _tidy(
    ax: Axes,
    x_label: str,
    y_label: str = "",
    *,
    grid: Literal["both", "x", "y"] = "y",
    n_entries: int = 4,
) -> Axes:
    """Labels, a light grid, and the legend above."""
    ax.set_xlabel(x_label)
    ax.set_ylabel(y_label)
    ax.grid(axis=grid, color="0.92", lw=0.8)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0)}
    place |= {"borderaxespad": 0.2, "handletextpad": 0.4, "columnspacing": 1.2}
    ax.legend(**place, ncols=min(n_entries, 4), frameon=False)
    return ax
