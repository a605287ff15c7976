"""What a selector found, ready to be looked at, saved and compared."""

from __future__ import annotations

import csv
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import numpy as np

from featstream.protocols import FloatArray, IntArray
from featstream.trace import Trace

__all__ = ["SelectionResult"]


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
        The parameters of the selector, spelt out.
    seconds : float
        Time spent on selection.
    trace : Trace
        The fate of every feature.

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

    def __repr__(self) -> str:
        return (
            f"SelectionResult({len(self.names):,} of {self.n_features:,} features · "
            f"{self.selector}/{self.measure} · {self.seconds:.1f} s)"
        )

    def __len__(self) -> int:
        return len(self.names)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and strings, as ``--json`` prints them."""
        return {
            "selector": self.selector,
            "measure": self.measure,
            "parameters": self.parameters,
            "n_samples": self.n_samples,
            "n_features": self.n_features,
            "n_selected": len(self.names),
            "fates": self.trace.counts() if self.trace.level == "full" else None,
            "seconds": round(self.seconds, 6),
            "selected": [
                {"name": name, "index": int(index), "relevance": float(score)}
                for name, index, score in zip(
                    self.names, self.indices, self.scores, strict=True
                )
            ],
        }

    def ranked(self) -> list[tuple[str, int, float]]:
        """Name, index and relevance of the selected features, the best first."""
        order = np.argsort(-self.scores, kind="stable")
        return [
            (self.names[i], int(self.indices[i]), float(self.scores[i])) for i in order
        ]

    def to_frame(self, backend: str = "pandas") -> Any:
        """The selected features as a data frame, the most relevant first.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, default="pandas"
            Which library's frame to make.
        """
        import narwhals as nw

        names, indices, scores = zip(*self.ranked(), strict=True) if self else ((),) * 3
        columns: dict[str, Any] = {
            "feature": list(names),
            "index": list(indices),
            "relevance": list(scores),
        }
        return nw.from_dict(columns, backend=backend).to_native()  # type: ignore[arg-type]

    def to_csv(self, path: str | PathLike[str]) -> None:
        """Write the selected features, the most relevant first."""
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["feature", "index", "relevance"])
            writer.writerows(
                (name, index, repr(score)) for name, index, score in self.ranked()
            )
