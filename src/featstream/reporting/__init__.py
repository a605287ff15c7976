"""Figures and reports of what has been computed elsewhere."""

from featstream.reporting.comparison import (
    comparison_markdown,
    comparison_text,
    write_comparison,
)
from featstream.reporting.figures import plot_critical_difference, plot_scores
from featstream.reporting.timeline import plot_size, plot_timeline

__all__ = [
    "comparison_markdown",
    "comparison_text",
    "plot_critical_difference",
    "plot_scores",
    "plot_size",
    "plot_timeline",
    "write_comparison",
]
