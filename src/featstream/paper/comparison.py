"""A table of the paper next to what was found: cells, ranks, wins."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from featstream.evaluation.statistics import (
    Friedman,
    average_ranks,
    critical_difference,
    friedman,
    win_tie_lose,
)
from featstream.paper.exhibits import Exhibit
from featstream.paper.findings import Findings, Value
from featstream.paper.tables import (
    PaperClaim,
    PaperColumn,
    PaperTable,
    paper_claims,
    paper_table,
)
from featstream.protocols import FloatArray

__all__ = ["CheckedClaim", "Pair", "Panel", "TableComparison", "Wins"]


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """A number that was found, and the paper's.

    Attributes
    ----------
    dataset : str
        The row.
    column : PaperColumn
        Method, metric and classifier.
    ours : Value
        What was found.
    printed : float
        What the paper prints; NaN for "-".
    """

    dataset: str
    column: PaperColumn
    ours: Value
    printed: float

    @property
    def difference(self) -> float:
        """Ours less the paper's."""
        return self.ours.value - self.printed


@dataclass(frozen=True, slots=True)
class Panel:
    """Columns of one metric and one classifier: what methods are compared in."""

    metric: str
    classifier: str | None
    columns: tuple[PaperColumn, ...]


@dataclass(frozen=True, slots=True, eq=False)
class CheckedClaim:
    """Average ranks that the paper states, and those that follow from our numbers.

    Attributes
    ----------
    claim : PaperClaim
        The statement.
    datasets : tuple of str
        Data sets on which all its methods have a number of ours.
    ranks, printed_ranks : ndarray
        Average ranks there, high is good: from our numbers, and from the paper's.
    test : Friedman
        The paper's test of our numbers.
    critical_difference : float
        Of the Nemenyi test that would follow.
    """

    claim: PaperClaim
    datasets: tuple[str, ...]
    ranks: FloatArray
    printed_ranks: FloatArray
    test: Friedman
    critical_difference: float


@dataclass(frozen=True, slots=True)
class Wins:
    """Data sets won, tied and lost against a rival, where both have numbers of ours.

    Attributes
    ----------
    panel : Panel
        What is compared.
    first, rival : str
        Who against whom.
    ours, printed_there, printed : str
        From our numbers; from the paper's on the same data sets; as printed for all.
    """

    panel: Panel
    first: str
    rival: str
    ours: str
    printed_there: str
    printed: str


class TableComparison:
    """A table of the paper, filled with what was found.

    Parameters
    ----------
    exhibit : Exhibit
        Which table.
    findings : Findings
        What was found.
    """

    def __init__(self, exhibit: Exhibit, findings: Findings) -> None:
        self.exhibit, self.findings = exhibit, findings
        self.printed: PaperTable = paper_table(exhibit.number)

    @cached_property
    def pairs(self) -> dict[tuple[str, PaperColumn], Pair]:
        """Every cell."""
        return {
            (dataset, column): Pair(
                dataset, column, self._ours(dataset, column), float(number)
            )
            for dataset, row in zip(
                self.printed.datasets, self.printed.values, strict=True
            )
            for column, number in zip(self.printed.columns, row, strict=True)
        }

    def _ours(self, dataset: str, column: PaperColumn) -> Value:
        method = column.method or ""
        if column.alpha is not None:
            method = f"{method} alpha={column.alpha:g}"
        return self.findings.value(
            self.exhibit.design, dataset, method, column.metric, column.classifier
        )

    @property
    def datasets(self) -> tuple[str, ...]:
        """The rows for which there are data."""
        present = self.findings.available
        return tuple(name for name in self.printed.datasets if name in present)

    def panels(self) -> Iterator[Panel]:
        """The columns, by metric and classifier."""
        keys = dict.fromkeys((c.metric, c.classifier) for c in self.printed.columns)
        for metric, classifier in keys:
            own = (
                c
                for c in self.printed.columns
                if (c.metric, c.classifier) == (metric, classifier)
            )
            yield Panel(metric, classifier, tuple(own))

    def claims(self) -> Iterator[CheckedClaim]:
        """The paper's statements about this table that can be checked."""
        for claim in paper_claims():
            if claim.table != self.printed.number:
                continue
            columns = [
                next(
                    c
                    for c in self.printed.columns
                    if (c.method, c.metric) == (method, claim.metric)
                    and c.classifier == claim.classifier
                )
                for method in claim.methods
            ]
            datasets, ours, printed = self._complete(columns)
            if len(datasets) < 2:
                continue
            ours = np.round(ours, 12)  # means that differ by rounding alone are ties
            yield CheckedClaim(
                claim=claim,
                datasets=datasets,
                ranks=average_ranks(ours, convention="paper"),
                printed_ranks=average_ranks(printed, convention="paper"),
                test=friedman(ours, correct_ties=False),
                critical_difference=critical_difference(len(columns), len(datasets)),
            )

    def wins(self) -> Iterator[Wins]:
        """Wins of the first method of each panel against the others, as printed.

        The paper's counts are those of a margin of 0.01.
        """
        if not self.printed.win_tie_lose:
            return
        for panel in self.panels():
            first, *rivals = panel.columns
            for rival in rivals:
                datasets, ours, printed = self._complete([first, rival])
                place = self.printed.columns.index(rival)
                counts = self.printed.win_tie_lose[place]
                if datasets and counts is not None:
                    yield Wins(
                        panel,
                        str(first.method),
                        str(rival.method),
                        str(win_tie_lose(ours[:, 0], ours[:, 1])),
                        str(win_tie_lose(printed[:, 0], printed[:, 1])),
                        counts,
                    )

    def _complete(
        self, columns: list[PaperColumn]
    ) -> tuple[tuple[str, ...], FloatArray, FloatArray]:
        """Data sets where we and the paper have all columns, and both numbers."""
        rows = {
            dataset: [
                (self.pairs[dataset, c].ours.value, self.pairs[dataset, c].printed)
                for c in columns
            ]
            for dataset in self.datasets
        }
        complete = {d: row for d, row in rows.items() if not np.isnan(row).any()}
        numbers = np.array(list(complete.values())).reshape(-1, len(columns), 2)
        return tuple(complete), numbers[:, :, 0], numbers[:, :, 1]
