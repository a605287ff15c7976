"""Figures and reports of what has been computed elsewhere."""

from featstream.reporting.comparison import (
    comparison_markdown,
    comparison_page,
    comparison_text,
    write_comparison,
)
from featstream.reporting.plots import (
    plot_accuracy,
    plot_critical_difference,
    plot_distribution,
    plot_dots,
    plot_order_sensitivity,
    plot_redundancy,
    plot_removals,
    plot_scores,
    plot_size,
    plot_stability,
    plot_sweep,
    plot_timeline,
    plot_tradeoff,
)
from featstream.reporting.report import selection_page

__all__ = [
    "comparison_markdown",
    "comparison_page",
    "comparison_text",
    "plot_accuracy",
    "plot_critical_difference",
    "plot_distribution",
    "plot_dots",
    "plot_order_sensitivity",
    "plot_redundancy",
    "plot_removals",
    "plot_scores",
    "plot_size",
    "plot_stability",
    "plot_sweep",
    "plot_timeline",
    "plot_tradeoff",
    "selection_page",
    "write_comparison",
]
