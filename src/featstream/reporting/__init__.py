"""Figures and reports of what has been computed elsewhere."""

from featstream.reporting.comparison import comparison_page
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
from featstream.reporting.report import selection_page

__all__ = [
    "comparison_markdown",
    "comparison_page",
    "comparison_text",
    "plot_critical_difference",
    "plot_dots",
    "plot_scores",
    "plot_size",
    "plot_sweep",
    "plot_timeline",
    "selection_page",
    "write_comparison",
]
