"""What the SAOLA paper shows: its tables with their numbers, claims and figures.

Tables are numbered as the paper prints them, by counting its ``table``
environments: Table 1 is the notation, Tables 2-23 are here. The source's own
labels differ from Table 9 on (``tb9`` is Table 10), so a table is asked for by
printed number, ``paper_table(10)``, or by label, ``paper_table("tb9")``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal, TypeAlias

import numpy as np

from featstream.errors import ParameterError, printable, unknown_name
from featstream.protocols import FloatArray


@dataclass(frozen=True, slots=True)
class PaperColumn:
    """A column of a table: metric, method, classifier, and alpha where it varies.

    >>> paper_table(21).columns[1]
    PaperColumn(metric='accuracy', method='SAOLA', classifier='KNN', alpha=0.05)
    """

    metric: str
    method: str | None = None
    classifier: str | None = None
    alpha: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class PaperTable:
    """A table of the paper.

    Attributes
    ----------
    number, label, caption : int, str, str
        As printed, as labelled in the source, and its title.
    datasets : tuple of str
        Its rows, spelled as in Table 2 (``kdd10`` is ``kdd2010``, ``url`` is
        ``url1``).
    columns : tuple of PaperColumn
        Its columns.
    values : ndarray of shape (n_datasets, n_columns)
        Its cells; NaN where the paper prints "-".
    win_tie_lose, average_ranks : tuples
        Printed below the columns, where they are.
    notes : tuple of str
        Remarks that no cell can hold.

    Examples
    --------
    >>> table = paper_table(9)
    >>> table.caption
    'Running time of SAOLA and its three rivals (in seconds)'
    >>> table.values[table.datasets.index("connect-4")]
    array([  2.,  nan,  38., 310.])
    """

    number: int
    label: str
    caption: str
    datasets: tuple[str, ...]
    columns: tuple[PaperColumn, ...]
    values: FloatArray
    win_tie_lose: tuple[str | None, ...] = ()
    average_ranks: tuple[float, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods compared, in order."""
        return tuple(dict.fromkeys(c.method for c in self.columns if c.method))

    def scores(
        self,
        methods: Sequence[str] | None = None,
        *,
        metric: str | None = None,
        classifier: str | None = None,
    ) -> FloatArray:
        """The columns of some methods (all by default), NaN for "-".

        ``metric`` and ``classifier`` are needed where the table has several.
        """
        chosen = [
            [
                j
                for j, c in enumerate(self.columns)
                if c.method == method
                and metric in (None, c.metric)
                and classifier in (None, c.classifier)
            ]
            for method in (self.methods if methods is None else methods)
        ]
        if any(len(columns) != 1 for columns in chosen):
            known = sorted(
                {f"{c.method}/{c.metric}/{c.classifier}" for c in self.columns}
            )
            raise ParameterError(
                f"Table {self.number} does not have one column for each of these "
                f"methods ({methods!r}), metric={metric!r}, classifier={classifier!r}. "
                f"It has: {', '.join(known)}."
            )
        return self.values[:, [columns[0] for columns in chosen]]


@dataclass(frozen=True, slots=True)
class PaperClaim:
    """Average ranks that the paper's text states, and what it concludes.

    In the paper high ranks are good. ``is_rejected`` is its Friedman test, ``note``
    what is odd about the statement.

    >>> from featstream.evaluation import average_ranks
    >>> claim = paper_claims()[1]
    >>> claim.ranks
    (2.45, 1.85, 1.705)
    >>> average_ranks(claim.scores(), convention="paper")
    array([2.35, 1.95, 1.7 ])
    """

    table: int
    methods: tuple[str, ...]
    ranks: tuple[float, ...]
    is_rejected: bool
    metric: str
    classifier: str | None = None
    critical_difference: float | None = None
    note: str = ""

    def scores(self) -> FloatArray:
        """The complete rows of the columns meant, (n_datasets, n_methods)."""
        scores = paper_table(self.table).scores(
            self.methods, metric=self.metric, classifier=self.classifier
        )
        return scores[~np.isnan(scores).any(axis=1)]


def paper_table(which: int | str) -> PaperTable:
    """A table of the paper, by printed number or by LaTeX label.

    >>> table = paper_table(6)
    >>> table.caption
    'Number of selected features'
    >>> dict(zip(table.datasets, table.scores(["SAOLA"])[:, 0].tolist()))["dorothea"]
    63.0
    >>> paper_table("tb9").number
    10
    """
    for table in paper_tables():
        if which in (table.number, table.label):
            return table
    if isinstance(which, str):
        raise unknown_name("label of a table", which, (t.label for t in paper_tables()))
    raise ParameterError(
        f"The paper's tables here are those with numbers 2 to 23. Got {which!r}. "
        "paper_tables() lists them with their captions and LaTeX labels."
    )


@cache
def paper_tables() -> tuple[PaperTable, ...]:
    """All tables of the paper's evaluation, in order."""
    return tuple(_as_table(**table) for table in contents("tables")["tables"])


def _as_table(
    columns: list[dict[str, Any]], rows: dict[str, list[float | None]], **rest: Any
) -> PaperTable:
    values = np.array(list(rows.values()), dtype=np.float64)
    values.setflags(write=False)
    listed = tuple(PaperColumn(**column) for column in columns)
    return PaperTable(columns=listed, datasets=tuple(rows), values=values, **rest)


@cache
def paper_claims() -> tuple[PaperClaim, ...]:
    """All average ranks in the paper's text, in order."""
    return tuple(PaperClaim(**claim) for claim in contents("tables")["claims"])


@cache
def contents(name: str) -> Any:
    """A data file, with lists of words and of numbers as tuples."""
    text = files("featstream.paper").joinpath(f"{name}.json").read_text("utf-8")
    return json.loads(text, object_hook=_with_tuples)


def _with_tuples(found: dict[str, Any]) -> dict[str, Any]:
    return {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in found.items()
    }


Design: TypeAlias = Literal["split", "sweep", "orders", "groups", "subsamples"]
"""Rows split as in the paper; the same with several values of a parameter; 30 orders
of the features; random groups, ten times; 30 subsamples of four fifths of the rows."""

Drawing: TypeAlias = Literal["values", "error bars", "sweep"]

CLASSIFIERS = ("J48", "KNN", "SVM")
METRICS = {
    "accuracy": "Accuracy",
    "accuracy_sd": "Standard deviation of the accuracy",
    "auc": "AUC",
    "n_features": "Selected features",
    "n_groups": "Selected groups",
    "seconds": "Seconds",
    "stability": "Stability",
}


@dataclass(frozen=True, slots=True)
class Exhibit:
    """A table or a figure of the paper."""

    kind: str  # "table" or "figure"
    number: int  # as printed
    label: str  # in the LaTeX source
    section: str
    title: str
    methods: tuple[str, ...]  # as the paper spells them
    datasets: tuple[str, ...]
    design: Design = "split"
    classifiers: tuple[str, ...] = CLASSIFIERS
    drawing: Drawing | None = None  # of a figure
    metrics: tuple[str, ...] = ()  # of a figure, one panel each

    @property
    def name(self) -> str:
        """Its name at the command line and on disk."""
        return f"{self.kind}{self.number}"

    @property
    def heading(self) -> str:
        """Its name in print."""
        return f"{self.kind.capitalize()} {self.number}"


_FOURTEEN, _TEN = paper_table(6).datasets, paper_table(8).datasets
_PUBLISHED_PARTS = ("hiva", "madelon", "dexter", "dorothea", "news20", "url1")

_DATASETS = {
    "all": _FOURTEEN,
    "first ten": _TEN,
    "last four": tuple(name for name in _FOURTEEN if name not in _TEN),
    "drawn": tuple(name for name in _FOURTEEN if name not in _PUBLISHED_PARTS),
    "many rows": paper_table(9).datasets,
}
"""Sets of data sets by which figures are described; "drawn" are those whose training
rows the paper draws at random, ten times."""


@cache
def exhibits() -> tuple[Exhibit, ...]:
    """All tables from 3 on and all figures of the evaluation, in printed order."""
    listed = contents("exhibits")
    tables = map(_of_table, listed["tables"])
    figures = ({"kind": "figure", **facts} for facts in listed["figures"])
    return tuple(_as_exhibit(**facts) for facts in (*tables, *figures))


def _of_table(facts: dict[str, Any]) -> dict[str, Any]:
    """The facts of a table, with those that it has itself."""
    printed = paper_table(facts["number"])
    alphas = sorted({c.alpha for c in printed.columns if c.alpha is not None})
    levels = tuple(f"SAOLA alpha={alpha:g}" for alpha in alphas)
    own = {"kind": "table", "label": printed.label, "datasets": printed.datasets}
    return facts | own | {"methods": levels or printed.methods}


def _as_exhibit(datasets: Any, **facts: Any) -> Exhibit:
    return Exhibit(datasets=_DATASETS.get(datasets, datasets), **facts)


def find_exhibit(name: str) -> Exhibit:
    """A table or figure, by printed number ("table10") or by LaTeX label ("tb9")."""
    found = {e.name: e for e in exhibits()} | {e.label: e for e in exhibits()}
    plain = re.sub(r"[\s.-]+", "", name.lower())
    for key, exhibit in found.items():
        if key.lower() in (name.lower(), plain):
            return exhibit
    if plain.isdigit():
        raise ParameterError(
            f"{printable(name)} may be a table or a figure. Write table{plain} or "
            f"figure{plain}."
        )
    raise unknown_name("table or figure", name, found)
