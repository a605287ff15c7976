"""What the paper shows: its tables and figures, from one small table of facts.

An exhibit lists methods, data sets, the design of the experiment, and classifiers.
Tables take the rest from the printed table itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal, TypeAlias

from featstream.errors import ParameterError, printable, unknown_name
from featstream.paper.tables import paper_table

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
    """A table or a figure of the paper.

    >>> find("table3").methods
    ('SAOLA', 'Fast-OSFS', 'Alpha-investing', 'OFS')
    """

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


def _exhibit(kind: str, facts: dict[str, Any]) -> Exhibit:
    """An exhibit from its entry in the data file."""
    complete: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in facts.items()
    }
    if kind == "table":
        printed = paper_table(facts["number"])
        alphas = sorted({c.alpha for c in printed.columns if c.alpha is not None})
        levels = tuple(f"SAOLA alpha={alpha:g}" for alpha in alphas)
        complete["methods"] = levels or printed.methods
        complete["label"], complete["datasets"] = printed.label, printed.datasets
    named = complete["datasets"]
    complete["datasets"] = _DATASETS.get(named, named)
    return Exhibit(kind=kind, **complete)


@cache
def exhibits() -> tuple[Exhibit, ...]:
    """All tables from 3 on and all figures of the evaluation, in printed order.

    >>> len(exhibits())
    39
    """
    text = files("featstream.paper").joinpath("exhibits.json")
    listed = json.loads(text.read_text("utf-8"))
    return (
        *(_exhibit("table", facts) for facts in listed["tables"]),
        *(_exhibit("figure", facts) for facts in listed["figures"]),
    )


def find(name: str) -> Exhibit:
    """A table or figure, by printed number ("table10") or by LaTeX label ("tb9").

    >>> find("fig4").heading
    'Figure 3'
    """
    found = {e.name: e for e in exhibits()} | {e.label: e for e in exhibits()}
    plain = re.sub(r"[\s.-]+", "", name.lower())
    exact = {key.lower(): exhibit for key, exhibit in found.items()}
    if name.lower() in exact:
        return exact[name.lower()]
    if plain in exact:
        return exact[plain]
    if plain.isdigit():
        raise ParameterError(
            f"{printable(name)} may be a table or a figure. Write table{plain} or "
            f"figure{plain}."
        )
    raise unknown_name("table or figure", name, found)


def listed(words: Iterable[str]) -> str:
    """``a, b and c``."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last
