"""What a selector found, ready to be looked at, saved and compared."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np

from featstream.errors import DataError
from featstream.markup import small_table, tag, visible
from featstream.protocols import Fate, FloatArray, IntArray
from featstream.selectors.trace import GroupTrace, Trace

_FEW_ROWS = 10
"""Rows that a notebook shows."""


@dataclass(frozen=True, repr=False)
class SelectionResult:
    """The selected features with their scores and the history behind them.

    Attributes
    ----------
    names : tuple of str
        The selected features, in the order in which they were kept.
    indices : ndarray of int
        Their positions in the stream.
    scores : ndarray of float
        Their relevance.
    n_features, n_samples : int
        What was seen.
    selector, measure : str
        How they were selected.
    parameters : dict
        The parameters of the selector, as text where they are not plain.
    seconds : float
        Time spent on selection.
    trace : Trace
        The fate of every feature.
    measure_reason : str or None
        Why ``"auto"`` chose the measure; None if the measure was given.
    is_ranked : bool
        Whether the order of the selected features is a ranking, the best first, as
        batch selectors make it. Tables then keep it; otherwise they go by relevance.
    peak_memory : int or None
        The most memory, in bytes, that the process had held when the stream ended.
    origin : selector or None
        The selector as it was, with the target and all names: for the report.

    Examples
    --------
    >>> from featstream import SAOLA
    >>> from featstream.datasets import make_stream
    >>> stream = make_stream(n_features=300, seed=0)
    >>> result = SAOLA(measure="su").fit(stream.X, stream.y).result_
    >>> result.n_features
    300
    """

    names: tuple[str, ...]
    indices: IntArray
    scores: FloatArray
    n_features: int
    n_samples: int
    selector: str
    measure: str
    parameters: dict[str, Any]
    seconds: float
    trace: Trace = field(compare=False)
    measure_reason: str | None = field(default=None, compare=False)
    is_ranked: bool = field(default=False, compare=False)
    peak_memory: int | None = field(default=None, compare=False)
    origin: Any = field(default=None, compare=False)

    def __repr__(self) -> str:
        return (
            f"SelectionResult({len(self.names):,} of {self.n_features:,} features · "
            f"{self.selector}/{self.measure} · {self.seconds:.1f} s)"
        )

    def _repr_html_(self) -> str:
        rows = [
            [visible(name, 80), f"{index:,}", f"{score:.4g}"]
            for name, index, score in self.ranked()[:_FEW_ROWS]
        ]
        title = repr(self)
        if len(self) > len(rows):
            title += f": the first {len(rows)}, best first"
        return small_table(tag("b", title), ["feature", "index", "relevance"], rows)

    def __len__(self) -> int:
        return len(self.names)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and strings, as ``--json`` prints them."""
        return {
            "selector": self.selector,
            "measure": self.measure,
            "measure_reason": self.measure_reason,
            "parameters": self.parameters,
            "n_samples": self.n_samples,
            "n_features": self.n_features,
            "n_selected": len(self.names),
            "fates": self.trace.counts() if self.trace.level == "full" else None,
            "seconds": round(self.seconds, 6),
            "peak_memory": self.peak_memory,
            "selected": [
                {"name": name, "index": int(index), "relevance": float(score)}
                for name, index, score in zip(
                    self.names, self.indices, self.scores, strict=True
                )
            ],
        }

    def with_names(self, input_features: Any) -> Self:
        """The same result, its features called by other names.

        Parameters
        ----------
        input_features : array of str of shape (n_features,)
            One name per feature of the source, as `get_feature_names_out` of the
            step before the selector in a pipeline gives them.
        """
        if len(input_features) != self.n_features:
            raise DataError(
                f"`input_features` must have one name per feature. Got "
                f"{len(input_features):,} names for {self.n_features:,} features."
            )
        names = tuple(str(input_features[i]) for i in self.indices.tolist())
        origin = self.origin
        if origin is not None:
            origin = origin._with_names(input_features)
        return replace(self, names=names, origin=origin)

    def ranked(self) -> list[tuple[str, int, float]]:
        """Name, index and relevance of the selected features, the best first."""
        return [
            (self.names[i], int(self.indices[i]), float(self.scores[i]))
            for i in self._order()
        ]

    def to_frame(self, backend: str = "pandas") -> Any:
        """The selected features as a data frame, the best first.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, default="pandas"
            Which library's frame to make.
        """
        order = self._order()
        columns = {name: [cells[i] for i in order] for name, cells in self._columns()}
        return _frame(columns, backend)

    def report(self, path: str | PathLike[str]) -> Path:
        """Write a report: one HTML file that opens in any browser, without a network.

        It shows what was kept and why, figures of how it went, alerts, and a search
        that says why a feature was dropped.

        Parameters
        ----------
        path : str or path
            The file. An earlier report is replaced; any other file is not.

        Returns
        -------
        Path
            The file.
        """
        from featstream.reporting.report import selection_page, write_page

        return write_page(selection_page(self), path)

    def to_csv(self, path: str | PathLike[str]) -> None:
        """Write the selected features, the best first."""
        with open(path, "w", newline="", encoding="utf-8") as file:
            file.write(self.as_csv())

    def as_csv(self) -> str:
        """What `to_csv` writes."""
        text = io.StringIO(newline="")
        writer = csv.writer(text)
        titles, cells = zip(*self._columns(), strict=True)
        writer.writerow(titles)
        rows = list(zip(*cells, strict=True))
        writer.writerows(rows[i] for i in self._order())
        return text.getvalue()

    def _order(self) -> list[int]:
        """The selected features, the best first."""
        if self.is_ranked:
            return list(range(len(self)))
        order: list[int] = np.argsort(-self.scores, kind="stable").tolist()
        return order

    def _columns(self) -> list[tuple[str, list[Any]]]:
        """What the frame says of each feature."""
        return [
            ("feature", list(self.names)),
            ("index", self.indices.tolist()),
            ("relevance", self.scores.tolist()),
        ]


@dataclass(frozen=True, repr=False)
class GroupSelectionResult(SelectionResult):
    """The selected features and groups with the history behind them.

    As `SelectionResult`; ``indices`` are positions in the source, while the trace
    goes by arrival, group after group.

    Attributes
    ----------
    groups : GroupTrace
        The fate of every group.
    group_numbers : ndarray of int
        The group of each selected feature, by its place among ``groups``.

    Examples
    --------
    >>> from featstream import GroupSAOLA
    >>> X = [[0, 0, 0], [0, 0, 1], [1, 1, 0], [1, 0, 1]]
    >>> selector = GroupSAOLA(measure="su").fit(X, [0, 0, 1, 1], groups=["a", "a", "b"])
    >>> print(selector.result_.groups_frame("polars"))
    shape: (2, 5)
    ┌───────┬────────────┬────────┬────────────┬───────────┐
    │ group ┆ n_features ┆ n_kept ┆ fate       ┆ relevance │
    │ ---   ┆ ---        ┆ ---    ┆ ---        ┆ ---       │
    │ str   ┆ i64        ┆ i64    ┆ str        ┆ f64       │
    ╞═══════╪════════════╪════════╪════════════╪═══════════╡
    │ a     ┆ 2          ┆ 1      ┆ kept       ┆ 1.0       │
    │ b     ┆ 1          ┆ 0      ┆ irrelevant ┆ null      │
    └───────┴────────────┴────────┴────────────┴───────────┘
    """

    groups: GroupTrace = field(default_factory=GroupTrace, compare=False)
    group_numbers: IntArray = field(default_factory=lambda: np.empty(0, np.int64))

    def __repr__(self) -> str:
        n_kept = int(np.count_nonzero(self.groups.n_kept))
        return (
            f"GroupSelectionResult({len(self.names):,} of {self.n_features:,} features "
            f"in {n_kept:,} of {len(self.groups):,} groups · "
            f"{self.selector}/{self.measure} · {self.seconds:.1f} s)"
        )

    @property
    def selected_groups(self) -> list[Any]:
        """Labels of the groups with a selected feature, in order of arrival."""
        kept = np.flatnonzero(self.groups.n_kept)
        return [self.groups.labels[number] for number in kept]

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and strings, as ``--json`` prints them."""
        plain = super().to_dict()
        for feature, number in zip(plain["selected"], self.group_numbers, strict=True):
            feature["group"] = self.groups.labels[number]
        return plain | {
            "n_groups": len(self.groups),
            "group_fates": self.groups.counts(),
            "selected_groups": self.selected_groups,
        }

    def groups_frame(self, backend: str = "pandas") -> Any:
        """Every group as a row of a data frame, in order of arrival.

        Its columns are ``group``, ``n_features``, ``n_kept``, ``fate`` and
        ``relevance``: the highest among its kept features, null if there are none.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, default="pandas"
            Which library's frame to make.
        """
        best = np.zeros(len(self.groups))
        np.maximum.at(best, self.group_numbers, self.scores)
        n_kept = self.groups.n_kept.tolist()
        columns = {
            "group": list(self.groups.labels),
            "n_features": self.groups.n_features.tolist(),
            "n_kept": n_kept,
            "fate": [str(Fate(fate)) for fate in self.groups.fates.tolist()],
            "relevance": [
                score if n else None
                for score, n in zip(best.tolist(), n_kept, strict=True)
            ],
        }
        return _frame(columns, backend)

    def _columns(self) -> list[tuple[str, list[Any]]]:
        labels = [self.groups.labels[number] for number in self.group_numbers]
        return [*super()._columns(), ("group", labels)]


def _frame(columns: dict[str, list[Any]], backend: str) -> Any:
    import narwhals as nw

    return nw.from_dict(columns, backend=backend).to_native()  # type: ignore[arg-type]
