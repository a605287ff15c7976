"""Figures and reports of what has been computed elsewhere."""

from featstream.reporting.markdown import (
    comparison_markdown,
    comparison_text,
    write_comparison,
)
from featstream.reporting.plots import (
    plot_critical_difference,
    plot_dots,
    plot_scores,
    plot_size,
    plot_sweep,
    plot_timeline,
)

__all__ = [
    "comparison_markdown",
    "comparison_text",
    "plot_critical_difference",
    "plot_dots",
    "plot_scores",
    "plot_size",
    "plot_sweep",
    "plot_timeline",
    "write_comparison",
]
