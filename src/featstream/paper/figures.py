"""The paper's figures from what was found, and critical-difference diagrams."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from featstream.paper.exhibits import METRICS, Exhibit, listed
from featstream.paper.findings import CheckedClaim, Findings, Value
from featstream.reporting import plot_critical_difference, plot_dots, plot_sweep

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LOG = ("n_features", "n_groups", "seconds")


class FigureData:
    """The numbers that a figure shows, of the data sets that are here."""

    def __init__(self, exhibit: Exhibit, findings: Findings) -> None:
        self.exhibit, self.findings = exhibit, findings
        self.methods = exhibit.methods
        self.datasets = tuple(d for d in exhibit.datasets if d in findings.about)

    @property
    def obstacle(self) -> str | None:
        """Why the figure cannot be drawn; None if it can."""
        if not self.datasets:
            return f"no data of {', '.join(self.exhibit.datasets)}"
        return None

    def values(self, metric: str, classifier: str | None) -> list[list[Value]]:
        """A row for each data set, a value for each method."""
        design = self.exhibit.design
        return [
            [
                self.findings.value(design, d, m, metric, classifier)
                for m in self.methods
            ]
            for d in self.datasets
        ]

    def gaps(self) -> str:
        """Why values are missing, by reason and data set; "" if none are."""
        found: dict[str, dict[str, dict[str, None]]] = {}
        classifiers = self.exhibit.classifiers or (None,)
        for metric, classifier in product(self.exhibit.metrics, classifiers):
            rows = zip(self.datasets, self.values(metric, classifier), strict=True)
            for dataset, row in rows:
                for method, value in zip(self.methods, row, strict=True):
                    if value.reason is not None:
                        by_dataset = found.setdefault(value.reason, {})
                        by_dataset.setdefault(dataset, {})[method] = None
        return "; ".join(
            f"{reason} ({', '.join(map(self._who, own, own.values()))})"
            for reason, own in found.items()
        )

    def _who(self, dataset: str, methods: Collection[str]) -> str:
        is_all = len(methods) == len(self.methods)
        return dataset if is_all else f"{dataset}: {listed(methods)}"

    def numbers(self, metric: str, classifier: str | None) -> np.ndarray:
        """The numbers as the paper reports them, data sets by methods."""
        rows = self.values(metric, classifier)
        return np.array([[v.value for v in row] for row in rows])

    def means(
        self, metric: str, classifier: str | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Means and standard deviations over the runs."""
        rows = self.values(metric, classifier)
        return (
            np.array([[v.mean for v in row] for row in rows]),
            np.array([[v.deviation for v in row] for row in rows]),
        )

    def over_classifiers(self, metric: str) -> tuple[np.ndarray, np.ndarray]:
        """Mean and deviation over the classifiers of what each finds."""
        found = [
            self.numbers(metric, classifier) for classifier in self.exhibit.classifiers
        ]
        return np.mean(found, axis=0), np.std(found, axis=0, ddof=1)


def draw_figure(data: FigureData) -> Figure:
    """Draw a figure that has no obstacle."""
    import matplotlib.pyplot as plt

    exhibit = data.exhibit
    n_rows, n_methods = len(data.datasets), len(data.methods)
    if exhibit.drawing == "sweep":
        figure, axes = plt.subplots(1, 2, figsize=(7.4, 3.0), layout="constrained")
        deltas = [float(m.partition("=")[2]) for m in data.methods]
        for ax, classifier in zip(axes, exhibit.classifiers, strict=True):
            lines = data.numbers("accuracy", classifier)
            label = f"accuracy, {classifier}"
            names = _marked(data)
            plot_sweep(deltas, lines, names, x_label="δ", label=label, ax=ax)
    else:
        n_panels = len(exhibit.metrics)
        height = 1.1 + n_rows * (0.2 + 0.13 * n_methods)
        width = 6.4 if n_panels == 1 else 7.4
        figure, axes = plt.subplots(
            1,
            n_panels,
            figsize=(width, height),
            layout="constrained",
            squeeze=False,
            sharey=True,
        )
        for ax, metric in zip(axes[0], exhibit.metrics, strict=True):
            _draw_dots(data, metric, ax)
        for ax in axes[0, 1:]:  # the methods are named once
            ax.get_legend().remove()
    figure.suptitle(f"{exhibit.heading}. {exhibit.title}", x=0.01, ha="left", size=11)
    return figure


def _draw_dots(data: FigureData, metric: str, ax: Axes) -> None:
    """One panel: values with the bars that the paper's figure has."""
    exhibit = data.exhibit
    classifier = exhibit.classifiers[0] if len(exhibit.classifiers) == 1 else None
    label, spreads = METRICS[metric], None
    if exhibit.drawing == "error bars":
        values, spreads = data.means(metric, classifier)
        label += f", {classifier}: mean ± standard deviation"
    elif metric == "auc":
        values, spreads = data.over_classifiers(metric)
        label += ": mean ± standard deviation of three classifiers"
    else:
        values = data.numbers(metric, classifier)
        label += f", {classifier}" * (bool(classifier) and metric == "accuracy")
    plot_dots(
        values,
        _marked(data),
        data.methods,
        spreads=spreads,
        label=label,
        is_log=metric in _LOG,
        ax=ax,
    )


def draw_claim(checked: CheckedClaim) -> Figure:
    """The critical-difference diagram of our numbers for a claim of the paper."""
    import matplotlib.pyplot as plt

    claim = checked.claim
    n_methods = len(claim.methods)
    # The paper counts ranks from below, the diagram from the best.
    figure, ax = plt.subplots(figsize=(6.4, 1.9), layout="constrained")
    plot_critical_difference(
        n_methods + 1 - checked.ranks,
        checked.critical_difference,
        claim.methods,
        ax=ax,
    )
    what = claim.classifier or "mean AUC"
    figure.suptitle(
        f"Table {claim.table}, {what}, {len(checked.datasets)} data sets",
        x=0.01,
        ha="left",
        size=11,
    )
    return figure


def save_figure(figure: Figure, path: Path) -> Path:
    """Write a figure and forget it."""
    import matplotlib.pyplot as plt

    figure.savefig(path, dpi=150, bbox_inches="tight")
    plt.close(figure)
    return path


def _marked(data: FigureData) -> Sequence[str]:
    return [
        f"{name} †" if data.findings.about[name].differs else name
        for name in data.datasets
    ]
