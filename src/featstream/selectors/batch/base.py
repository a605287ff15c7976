"""What batch selectors have in common: all features are read, then some chosen."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from functools import partial
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from featstream.engines import prepared_ahead
from featstream.errors import DataError, FeatstreamWarning, check_count
from featstream.measures.fisher import BoundFisherZ, FisherZ
from featstream.measures.inputs import Labels, as_labels
from featstream.parallel import count_threads
from featstream.progress import Observer
from featstream.protocols import (
    Block,
    Fate,
    FloatArray,
    IndexedSource,
    IntArray,
    Source,
)
from featstream.runs.folder import Checkpoint
from featstream.selectors.base import OnlineSelector, in_stream
from featstream.selectors.base_groups import GroupedSelector
from featstream.selectors.numeric import as_numeric, join_values
from featstream.selectors.result import OVER_LIMIT, Names
from featstream.selectors.stream import Stream, Verdict
from featstream.sources.grouping import Layout, batches


@dataclass(slots=True)
class Selection:
    """What a batch selector chose among all features.

    Attributes
    ----------
    order : ndarray of int of shape (n_selected,)
        The selected features, the first choice first.
    relevance : ndarray of float of shape (n_features,)
        The score of every feature, alone, with the target.
    scores : ndarray of float of shape (n_selected,), optional
        The learned `scores_`; by default the relevance of the selected features.
    fate : ndarray of uint8 of shape (n_features,), optional
        Why the others were not selected: ``Fate.IRRELEVANT``, ``Fate.REDUNDANT``
        or ``OVER_LIMIT``, others came first. By default the first for a relevance
        of 0, and the last for the rest.
    witness : ndarray of int of shape (n_features,), optional
        The selected feature that makes another one redundant; -1 if none does.
        Features with a witness are redundant, whatever ``fate`` says.
    """

    order: IntArray
    relevance: FloatArray
    scores: FloatArray | None = None
    fate: NDArray[np.uint8] | None = None
    witness: IntArray | None = None


class BatchSelector(OnlineSelector):
    """Base of selectors that decide about all features of a source at once.

    A subclass checks its parameters in `_begin`, turns a block into what it keeps
    of it in `_prepare`, perhaps in a thread, and chooses among the features in
    `_select`. What it has learned besides the selection goes into `_state_arrays`
    and comes back in `_restore`.

    A batch selector needs a whole source: there is no `update`, and a second
    `consume` is an error. All that `_prepare` returns is in memory at the same time.

    Parameters
    ----------
    n_features : int, default=10
        Number of features to select, at most. The selection of fewer features is the
        beginning of that of more.
    trace : {"full", "kept"} or None, default="full"
        What is remembered of features that are not selected.

    Attributes
    ----------
    selected_ : ndarray of int
        The selected features, the first choice first.
    scores_ : ndarray of float
        Their relevance.
    support_ : ndarray of bool of shape (n_features,)
        Whether each feature is selected.
    measure_ : str
        The measure in use.
    result_ : SelectionResult
        Names, scores and what became of each feature.
    """

    _saves_between_blocks = False
    _why_no_more = ""
    """Why it may select fewer than ``n_features``."""

    def _begin(self, stream: Stream) -> None:
        if hasattr(self, "n_features"):
            check_count(self.n_features, "n_features", type(self).__name__)

    @abstractmethod
    def _prepare(self, block: Block, stream: Stream) -> Any:
        """What `_select` needs of a block, whose columns may then be freed."""

    @abstractmethod
    def _select(self, parts: list[Any], stream: Stream) -> Selection:
        """Choose among all features; ``parts`` is what `_prepare` returned."""

    def consume(
        self,
        source: Any,
        *,
        groups: Any = None,
        progress: bool | Observer = False,
        checkpoint: str | PathLike[str] | Checkpoint | None = None,
    ) -> Self:
        """Read all features of a source, and select.

        Parameters
        ----------
        source : anything that `as_source` takes
            All features; a second call is an error.
        groups : array of labels, mapping or list of index lists, optional
            For selectors of groups: one label per feature; or a mapping of the names
            of features to labels; or the positions of the features of each group,
            whose labels are then 0, 1 and so on. Every feature is in one group. By
            default each feature is a group of its own, labelled with its name.
        progress : bool or callable, default=False
            Show a live line, or call with a `Progress` at the end.
        checkpoint : str, path or Checkpoint, optional
            Folder in which the run is saved at the end, for `featstream.resume`. A
            run that was stopped before begins again when it is resumed.
        """
        if self._started().n_seen:
            raise DataError(
                f"{type(self).__name__} chooses among all features at once, and has "
                "done so. Call start(y), or fit, with all features to choose again."
            )
        return self._consume(source, groups, progress, checkpoint, 0.0)

    def _read(self, source: Source, layout: Any, names: Names) -> Iterator[Block]:
        """All features in order of arrival."""
        return source.blocks()

    def _steps(
        self, source: Source, layout: Layout | None, position: int
    ) -> Iterator[Callable[[], object]]:
        """Read and choose, and then record it in a single step."""
        if position:  # a run in this folder is done with this very source
            return
        stream, names, parts = self._stream, Names(), []
        blocks = self._read(source, layout, names)
        if stream.measure is None:
            blocks = self._look_ahead(blocks, stream, source)
        for block, part in prepared_ahead(
            in_stream(blocks, stream),
            lambda block: (block, self._prepare(block, stream)),
            count_threads(getattr(self, "n_jobs", None)),
        ):
            if block.names is not None:
                names.refuse_taken(block.start, block.names)
                names.add(block.start, block.names)
            parts.append(part)
        if parts:
            selection = self._select(parts, stream)
            yield partial(self._record, selection, names, stream)

    def _record(self, selection: Selection, names: Names, stream: Stream) -> None:
        order, relevance = selection.order, selection.relevance
        fate, witness, scores = selection.fate, selection.witness, selection.scores
        if fate is None:
            fate = np.where(relevance == 0.0, Fate.IRRELEVANT, OVER_LIMIT)
        fate = fate.astype(np.uint8)
        if witness is None:
            witness = np.full(fate.size, -1)
        fate[witness >= 0] = Fate.REDUNDANT
        fate[order] = Fate.KEPT
        own = np.arange(fate.size)  # a feature over the limit was never kept
        witness = np.where(fate == OVER_LIMIT, own, witness)
        stream.names = names
        stream.record(0, Verdict(fate, relevance, witness))
        if order.size < getattr(self, "n_features", 0):
            why = self._why_no_more if order.size < fate.size else "there are no others"
            warnings.warn(
                f"{type(self).__name__} selects {order.size:,} features, fewer than "
                f"n_features={self.n_features}: {why}.",
                FeatstreamWarning,
                stacklevel=2,
            )
        scores = relevance[order] if scores is None else scores
        stream.kept = dict(zip(order.tolist(), scores.tolist(), strict=True))
        if stream.trace.level != "full":
            for arrival in dict(names.items()).keys() - stream.kept.keys():
                names.forget(arrival)

    def _reason(
        self, arrival: int, fate: Fate, name: str, relevance: str, other: str
    ) -> str:
        if fate is Fate.REDUNDANT:
            return super()._reason(arrival, fate, name, relevance, other)
        return f"{name} is not selected: others come first; {relevance}."

    def _result_fields(self) -> dict[str, Any]:
        return super()._result_fields() | {"is_ranked": True}


class StandardSelector(BatchSelector):
    """Base of batch selectors that fit a model to standardised columns.

    A subclass chooses in `_choose`.

    Attributes
    ----------
    scores_ : ndarray of float
        Their relevance: absolute correlation with the class, or eta with several.
    """

    _numeric_target = ""

    @abstractmethod
    def _choose(self, X: Any, labels: Labels, relevance: FloatArray) -> Selection:
        """Choose among the columns of a matrix, dense or sparse (CSC)."""

    def _bind(self, y: Any) -> BoundFisherZ:
        return FisherZ().bind(y)

    def _prepare(self, block: Block, stream: Stream) -> tuple[Any, FloatArray]:
        measure: BoundFisherZ = stream.measure
        values = as_numeric(block, measure.n_samples, type(self).__name__)
        return values, measure.relevance(measure.encode(block))

    def _select(self, parts: list[tuple[Any, FloatArray]], stream: Stream) -> Selection:
        values, relevance = map(list, zip(*parts, strict=True))
        parts.clear()  # the matrix holds their values
        X = join_values(values)
        values.clear()
        return self._choose(X, as_labels(stream.y), np.concatenate(relevance))


class BatchGroupSelector(GroupedSelector, BatchSelector):
    """Base of batch selectors that know the groups of features.

    `_select` finds in `_group_numbers` which group each feature is in.
    """

    def _read(self, source: Source, layout: Any, names: Names) -> Iterator[Block]:
        self._labels: list[Hashable] = []
        self._sizes: list[int] = []
        blocks = source.blocks()
        if layout.order is not None:
            names.reorder(0, layout.order)
            assert isinstance(source, IndexedSource), "checked by lay_out"
            blocks = source.blocks_at(layout.order)
        for batch in batches(blocks, layout):
            self._labels += batch.labels
            self._sizes += np.diff(batch.ends, prepend=0).tolist()
            yield from batch.blocks
        self._groups.check_new(self._labels)

    def _group_numbers(self) -> IntArray:
        """The group of each feature, from 0."""
        return np.repeat(np.arange(len(self._sizes)), self._sizes)

    def _record(self, selection: Selection, names: Names, stream: Stream) -> None:
        super()._record(selection, names, stream)
        sizes = np.array(self._sizes, np.int64)
        kept = self._group_numbers()[selection.order]
        n_kept = np.bincount(kept, minlength=sizes.size)
        fates = np.where(n_kept > 0, Fate.KEPT, Fate.IRRELEVANT)
        self._groups.extend(self._labels, sizes, fates, n_kept)
