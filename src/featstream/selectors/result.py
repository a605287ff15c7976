"""What became of every feature, and what was selected."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from featstream.errors import DataError, check_choice, printable, visible
from featstream.markup import small_table, tag
from featstream.protocols import Fate, FloatArray, IntArray, feature_name

if TYPE_CHECKING:
    from featstream.selectors.stream import Verdict

TraceLevel = Literal["full", "kept"] | None

OVER_LIMIT = 4
"""Stored for a feature that was displaced because `max_features` was reached."""

_DTYPE = np.dtype([("fate", "u1"), ("relevance", "<f4"), ("witness", "<i4")])

_TESTED = np.dtype([("arrival", "<i4"), ("p", "<f4")])

_FEW_NAMES = 10_000
_FEW_ROWS = 10
"""Rows that a notebook shows."""


class Trace:
    """The fate, relevance and witness of the features seen so far.

    Parameters
    ----------
    level : {"full", "kept"} or None
        Record every feature, those that were ever kept, or none.

    Notes
    -----
    The witness of a redundant feature is the kept one that covers it; of a
    displaced one, the newcomer that removed it. Both are arrivals. Relevance is in
    single precision here; the selector holds the exact scores of the features that
    it keeps.

    Examples
    --------
    >>> from featstream import SAOLA
    >>> X = [[0, 0, 0], [0, 0, 0], [1, 1, 0], [1, 0, 1], [1, 1, 1], [0, 0, 1]]
    >>> y = [0, 0, 1, 1, 1, 0]
    >>> trace = SAOLA(measure="su").fit(X, y).result_.trace
    >>> [str(trace.fate(arrival)) for arrival in range(3)]
    ['kept', 'redundant', 'redundant']
    >>> trace.witness(1)
    0
    """

    def __init__(self, level: TraceLevel = "full") -> None:
        check_choice(level, "trace", ("full", "kept", None))
        self.level = level
        self.n_seen = 0
        self._records = np.empty(0, _DTYPE)
        self._arrivals = np.empty(0, np.int64)  # used by level "kept" alone
        self._size = 0
        self._tested: list[NDArray[Any]] = []

    def __len__(self) -> int:
        return self._size

    @property
    def arrivals(self) -> IntArray:
        """Arrivals of the recorded features, increasing."""
        if self.level == "full":
            return np.arange(self._size)
        return self._arrivals[: self._size]

    def arrivals_at(self, places: IntArray) -> IntArray:
        """Arrivals of the recorded features at some places among them."""
        return places if self.level == "full" else self._arrivals[places]

    @property
    def records(self) -> NDArray[Any]:
        """Structured array of ``fate``, ``relevance`` and ``witness``, as stored."""
        return self._records[: self._size]

    def record(self, verdict: Verdict) -> None:
        """Record what was decided about the next features, and about earlier ones."""
        first, gone = self.n_seen, verdict.gone
        self.n_seen += verdict.fate.size
        if self.level is None:
            return
        self._append(first, verdict)
        if gone.size:
            fates = Fate.DISPLACED if verdict.gone_fate is None else verdict.gone_fate
            self._mark(gone, fates, verdict.gone_by)

    def _append(self, first: int, verdict: Verdict) -> None:
        fate, relevance, witness = verdict.fate, verdict.scores, verdict.witness
        if self.level == "full" and verdict.p_value is not None:
            known = np.flatnonzero(~np.isnan(verdict.p_value))
            tested = np.empty(known.size, _TESTED)
            tested["arrival"], tested["p"] = first + known, verdict.p_value[known]
            self._tested.append(tested)
        if self.level == "kept":
            chosen = np.flatnonzero(fate == Fate.KEPT)
            fate, relevance = fate[chosen], relevance[chosen]
            witness = None if witness is None else witness[chosen]
            self._arrivals = appended(self._arrivals, self._size, first + chosen)
        begin, self._size = self._size, self._size + fate.size
        self._records = with_room(self._records, begin, self._size)
        new = self._records[begin : self._size]
        new["fate"], new["relevance"] = fate, relevance
        new["witness"] = -1 if witness is None else witness

    def _mark(self, arrivals: IntArray, fates: Any, witnesses: Any) -> None:
        """Change the fates of recorded features."""
        positions = self._positions(arrivals)
        self._records["fate"][positions] = fates
        self._records["witness"][positions] = witnesses

    @property
    def tested(self) -> NDArray[Any]:
        """Structured array of ``arrival`` and ``p`` of features that were tested."""
        if len(self._tested) != 1:
            self._tested = [np.concatenate([np.empty(0, _TESTED), *self._tested])]
        return self._tested[0]

    def p_value(self, arrival: int) -> float | None:
        """What a test of a feature and the class, given its witness, found."""
        position = np.searchsorted(self.tested["arrival"], arrival)
        found = self.tested[position : position + 1]
        return float(found["p"][0]) if (found["arrival"] == arrival).any() else None

    def restore(
        self,
        n_seen: int,
        records: NDArray[Any],
        arrivals: IntArray,
        tested: NDArray[Any],
    ) -> None:
        """Restore what a run has saved."""
        self._tested = [tested]
        self.n_seen, self._size = n_seen, records.size
        self._records = records.astype(_DTYPE)
        self._arrivals = np.array(arrivals, np.int64)

    def knows(self, arrival: int) -> bool:
        """Whether the feature is recorded."""
        if self.level == "full":
            return 0 <= arrival < self._size
        position = self._positions(arrival)
        return bool((self.arrivals[position : position + 1] == arrival).any())

    def fate(self, arrival: int) -> Fate:
        """What became of a feature."""
        return Fate(min(int(self._record(arrival)["fate"]), Fate.DISPLACED))

    def is_over_limit(self, arrival: int) -> bool:
        """Whether it was displaced because `max_features` was reached."""
        return int(self._record(arrival)["fate"]) == OVER_LIMIT

    def relevance(self, arrival: int) -> float:
        """Its score with the target, in single precision."""
        return float(self._record(arrival)["relevance"])

    def witness(self, arrival: int) -> int | None:
        """The feature that made it redundant or displaced it."""
        witness = int(self._record(arrival)["witness"])
        return witness if witness >= 0 else None

    def sizes(self) -> tuple[IntArray, IntArray]:
        """Arrivals at which the kept set changed, and its size after each."""
        fates = np.ascontiguousarray(self.records["fate"])
        is_kept, has_left = fates == Fate.KEPT, fates >= Fate.DISPLACED
        left = self.records["witness"][np.flatnonzero(has_left)].astype(np.int64)
        was_kept = np.flatnonzero(is_kept | has_left)
        moments = np.concatenate([self._kept_from(was_kept), left])
        steps = np.concatenate([np.ones(was_kept.size, int), -np.ones(left.size, int)])
        changed, where = np.unique(moments, return_inverse=True)
        change = np.bincount(where, weights=steps, minlength=changed.size)
        return changed, np.cumsum(change).astype(np.int64)

    def _kept_from(self, places: IntArray) -> IntArray:
        """The arrival at which each of some recorded features was kept: its own."""
        return self.arrivals_at(places)

    def counts(self) -> dict[str, int]:
        """Number of recorded features by fate."""
        found = np.bincount(self.records["fate"], minlength=OVER_LIMIT + 1)
        found[Fate.DISPLACED] += found[OVER_LIMIT]
        order = Fate.KEPT, Fate.IRRELEVANT, Fate.REDUNDANT, Fate.DISPLACED
        return {str(fate): int(found[fate]) for fate in order}

    def _positions(self, arrivals: Any) -> Any:
        if self.level == "full":
            return arrivals
        return np.searchsorted(self.arrivals, arrivals)

    def _record(self, arrival: int) -> Any:
        if not self.knows(arrival):
            hint = " Use trace='full' to record every feature."
            raise DataError(
                f"Feature {arrival} is not in the trace of {self._size} features."
                + (hint if self.level != "full" else "")
            )
        return self._records[self._positions(arrival)]


def appended(array: NDArray[Any], size: int, values: NDArray[Any]) -> NDArray[Any]:
    """The first ``size`` items and the values, in an array with room for more."""
    array = with_room(array, size, size + len(values))
    array[size : size + len(values)] = values
    return array


def with_room(array: NDArray[Any], size: int, end: int) -> NDArray[Any]:
    """An array of at least ``end`` items, the first ``size`` of which are these."""
    if end <= len(array):
        return array
    room = max(end, len(array) * 3 // 2, 64)
    grown = np.empty((room, *array.shape[1:]), array.dtype)
    # Byte by byte: numpy would copy every field of every record by itself.
    known = array[:size].view(np.uint8)
    grown.view(np.uint8)[: len(known)] = known
    return grown


class Names:
    """Names of features by arrival, and arrivals by name.

    Features without a name of their own cost nothing: they are called by their
    position in the source. ``order[a]`` is the source position of arrival ``a``; it
    is empty while both orders agree, and complete from the moment on at which a
    source is read in another order.
    """

    def __init__(self) -> None:
        self._name_of: dict[int, str] = {}
        self._arrival_of: dict[str, int] = {}
        self.order: IntArray = np.empty(0, np.int64)

    def __len__(self) -> int:
        return len(self._name_of)

    def add(self, first: int, names: Sequence[str]) -> None:
        """Name consecutive features, with names that `refuse_taken` accepts."""
        self.restore(range(first, first + len(names)), names)

    def restore(self, arrivals: Sequence[int], names: Sequence[str]) -> None:
        """Name some features."""
        self._arrival_of.update(zip(names, arrivals, strict=True))
        self._name_of.update(zip(arrivals, names, strict=True))

    def refuse_taken(self, first: int, names: Sequence[str]) -> None:
        """Raise if a name for the features from ``first`` on is not unique."""
        distinct = set(names)
        if len(distinct) == len(names) and self._arrival_of.keys().isdisjoint(distinct):
            return
        seen = dict(self._arrival_of)
        for position, name in enumerate(names, start=first):
            if name in seen:
                raise DataError(
                    f"Feature name {printable(name)} already seen at position "
                    f"{seen[name]} (now {position}). Names must be unique."
                )
            seen[name] = position

    def forget(self, arrival: int) -> None:
        """Drop the name of a feature that is not recorded."""
        name = self._name_of.pop(arrival, None)
        if name is not None:
            del self._arrival_of[name]

    def __getitem__(self, arrival: int) -> str:
        name = self._name_of.get(arrival)
        if name is not None:
            return name
        if arrival < self.order.size:
            arrival = int(self.order[arrival])
        return feature_name(arrival)

    def reorder(self, first: int, order: IntArray) -> None:
        """Set the source positions of the next features, relative to ``first``."""
        before = self.positions(np.arange(first))
        self.order = np.concatenate([before, first + order])

    def positions(self, arrivals: IntArray) -> IntArray:
        """Positions of features in their source; several sources count as one."""
        return positions_in(self.order, arrivals)

    def arrivals(self, positions: IntArray) -> IntArray:
        """When the features at some positions arrived."""
        return positions_in(np.argsort(self.order), positions)

    def arrival(self, position: int) -> int:
        """When the feature at a position arrived."""
        if not 0 <= position < self.order.size:
            return position
        return int(np.flatnonzero(self.order == position)[0])

    def find(self, name: str) -> int | None:
        """Arrival of the feature of that name, if it can be known."""
        if name in self._arrival_of:
            return self._arrival_of[name]
        if name[:1] == "x" and name[1:].isdecimal():
            position = int(name[1:])
            arrival = self.arrival(position)
            if arrival not in self._name_of and feature_name(position) == name:
                return arrival
        return None

    def closest(self, name: object) -> str | None:
        """A name that may have been meant, if it can be found without delay."""
        if len(self) > _FEW_NAMES:
            return None
        return next(iter(get_close_matches(str(name), self._arrival_of, n=1)), None)

    def listed(self) -> list[str]:
        """The names there are, in order of position."""
        arrivals = np.array(sorted(self._name_of), dtype=np.int64)
        by_position = arrivals[np.argsort(self.positions(arrivals))]
        return [self._name_of[arrival] for arrival in by_position.tolist()]

    def items(self) -> list[tuple[int, str]]:
        """Arrivals and names, in order of arrival."""
        return sorted(self._name_of.items())


def positions_in(order: IntArray, which: IntArray) -> IntArray:
    """``order[which]``, for those beyond its end as they are."""
    if not order.size:
        return which
    is_moved = which < order.size
    return np.where(is_moved, order[np.where(is_moved, which, 0)], which)


class GapBound(NamedTuple):
    """How much of what all features say about the class a selection may lack.

    Attributes
    ----------
    bits : float
        The most that the features which were not selected can add: what the selected
        ones leave open, the conditional entropy of the class H(C | S).
    entropy : float
        The entropy of the class, in bits: the bound if nothing is selected.
    n_patterns : int
        The number of different rows among the selected columns. Where it is near the
        number of samples the bound is near 0, whatever is selected.
    """

    bits: float
    entropy: float
    n_patterns: int


class Written:
    """What can be written to files: a table, and a report."""

    def as_csv(self) -> str:
        """What `to_csv` writes."""
        raise NotImplementedError

    def _page(self) -> str:
        """What `report` writes."""
        raise NotImplementedError

    def to_csv(self, path: str | PathLike[str]) -> None:
        """Write the table that `as_csv` returns."""
        with open(path, "w", newline="", encoding="utf-8") as file:
            file.write(self.as_csv())

    def report(self, path: str | PathLike[str]) -> Path:
        """Write a report: one HTML file that opens in any browser, without a network.

        Of a selection it shows what was kept and why, figures of how it went, alerts,
        and a search that says why a feature was dropped; of a comparison ranks,
        scores, costs and stability.

        Parameters
        ----------
        path : str or path
            The file. An earlier report is replaced; any other file is not.

        Returns
        -------
        Path
            The file.
        """
        from featstream.reporting.report import write_page

        return write_page(self._page(), path)


@dataclass(frozen=True, repr=False)
class SelectionResult(Written):
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
        how = f"{self.selector}/{self.measure} · {self.seconds:.1f} s"
        return f"{type(self).__name__}({self._counted()} · {how})"

    def _counted(self) -> str:
        return f"{len(self.names):,} of {self.n_features:,} features"

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
                {"name": name, "index": index, "relevance": score}
                for name, index, score in zip(
                    self.names, self.indices.tolist(), self.scores.tolist(), strict=True
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

    def gap_bound(self) -> GapBound:
        """How many bits about the class the selection may have lost, at most.

        By the chain rule I(C; all) = I(C; S) + I(C; rest | S), and what the rest can
        add is at most H(C | S): the gap between the selected features S and an optimal
        set, which equations 26 to 28 of the SAOLA paper bound in the limit of many
        samples. Entropies are those of the samples, so that the bound is too small
        where the selected columns take nearly as many patterns as there are samples.

        Examples
        --------
        >>> from featstream import SAOLA
        >>> X = [[0, 0], [0, 1], [0, 0], [1, 1], [1, 1], [0, 0], [1, 1], [0, 0]]
        >>> result = SAOLA(measure="su").fit(X, [0, 0, 0, 1, 1, 1, 1, 0]).result_
        >>> result.names, round(result.gap_bound().bits, 3)
        (('x0',), 0.451)
        """
        columns = None if self.origin is None else self.origin._kept_columns()
        if columns is None or self.measure not in ("su", "mi"):
            raise DataError(
                "gap_bound() is for selections that hold discrete columns, by the "
                f"measures 'su' and 'mi'. This one is by {self.selector} with "
                f"{printable(self.measure)}."
            )
        _, classes = np.unique(np.asarray(self.origin._stream.y), return_inverse=True)
        patterns = np.zeros(self.n_samples, np.int64)
        for column in columns:
            _, patterns = np.unique(
                patterns * (column.max() + 1) + column, return_inverse=True
            )
        joint = patterns * (classes.max() + 1) + classes
        entropy_of_both = _entropy(joint)
        return GapBound(
            bits=max(entropy_of_both - _entropy(patterns), 0.0),
            entropy=_entropy(classes),
            n_patterns=int(patterns.max()) + 1,
        )

    def ranked(self) -> list[tuple[str, int, float]]:
        """Name, index and relevance of the selected features, the best first."""
        columns = self._columns()
        names, indices, scores = list(columns.values())[:3]
        return list(zip(names, indices, scores, strict=True))

    def to_frame(self, backend: str = "pandas") -> Any:
        """The selected features as a data frame, the best first.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, default="pandas"
            Which library's frame to make.
        """
        return frame_of(self._columns(), backend)

    def as_csv(self) -> str:
        """The selected features, the best first, as `to_csv` writes them."""
        text, columns = io.StringIO(newline=""), self._columns()
        writer = csv.writer(text)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
        return text.getvalue()

    def _page(self) -> str:
        from featstream.reporting.report import selection_page

        return selection_page(self)

    def _order(self) -> list[int]:
        """The selected features, the best first."""
        if self.is_ranked:
            return list(range(len(self)))
        order: list[int] = np.argsort(-self.scores, kind="stable").tolist()
        return order

    def _columns(self) -> dict[str, list[Any]]:
        """What tables say of each selected feature, the best first."""
        order = self._order()
        return {
            "feature": [self.names[i] for i in order],
            "index": self.indices[order].tolist(),
            "relevance": self.scores[order].tolist(),
        }


def _entropy(codes: IntArray) -> float:
    """Entropy of some codes, in bits."""
    _, counts = np.unique(codes, return_counts=True)
    shares = counts / codes.size
    return float(-(shares * np.log2(shares)).sum())


def frame_of(columns: dict[str, list[Any]], backend: str) -> Any:
    """A data frame of the chosen library."""
    import narwhals as nw

    return nw.from_dict(columns, backend=backend).to_native()  # type: ignore[arg-type]
