"""How a selection came about, drawn over the arrivals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from featstream.errors import DataError
from featstream.protocols import Fate
from featstream.selectors.result import SelectionResult
from featstream.selectors.trace import Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_size", "plot_timeline"]


def plot_timeline(result: SelectionResult, *, ax: Axes | None = None) -> Axes:
    """Life lines of the features that were ever kept.

    A line runs from the arrival of a feature to its displacement, at the height
    of its relevance; a dot marks the arrival of those selected in the end.

    Parameters
    ----------
    result : SelectionResult
        With a trace of level "full" or "kept".
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
    >>> from featstream import SAOLA
    >>> from featstream.datasets import make_stream
    >>> stream = make_stream(n_features=300)
    >>> result = SAOLA().fit(stream.X, stream.y).result_
    >>> plot_timeline(result).get_xlabel()
    'features seen'
    """
    trace, ax = _traced(result), ax or _new_axes()
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
    ax.legend(
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncols=2,
        fontsize="small",
        frameon=False,
    )
    return ax


def plot_size(result: SelectionResult, *, ax: Axes | None = None) -> Axes:
    """Number of features in the selection, as features arrive.

    Parameters
    ----------
    result : SelectionResult
        With a trace of level "full" or "kept".
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
    >>> from featstream import SAOLA
    >>> X, y = [[0, 1], [0, 0], [1, 1], [1, 1]], [0, 0, 1, 1]
    >>> result = SAOLA(measure="su").fit(X, y).result_
    >>> plot_size(result).get_lines()[0].get_ydata().tolist()
    [1, 1]
    """
    trace, ax = _traced(result), ax or _new_axes()
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


def _new_axes() -> Axes:
    import matplotlib.pyplot as plt

    _, ax = plt.subplots(figsize=(8, 3.6), layout="constrained")
    return ax
