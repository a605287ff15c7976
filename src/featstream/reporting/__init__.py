"""Figures and reports of what has been computed elsewhere."""

from featstream.reporting.figures import plot_critical_difference
from featstream.reporting.timeline import plot_size, plot_timeline

__all__ = ["plot_critical_difference", "plot_size", "plot_timeline"]
