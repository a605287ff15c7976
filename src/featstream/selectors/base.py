"""What every selector has in common: streams, decisions, explanations, results."""

from __future__ import annotations

import logging
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from copy import copy
from dataclasses import replace
from functools import partial
from inspect import signature
from itertools import chain
from os import PathLike
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from narwhals.dependencies import is_pandas_dataframe
from numpy.typing import NDArray
from scipy.sparse import issparse

from featstream import sources
from featstream.engines import Engine, prepared_ahead
from featstream.errors import (
    DataError,
    FeatstreamWarning,
    NotStartedError,
    ParameterError,
)
from featstream.estimators import Selector, whole_or_not_at_all
from featstream.jit import compilation
from featstream.measures import inputs
from featstream.measures.labels import check_labels
from featstream.parallel import (
    clock,
    count_threads,
    peak_memory,
    single_blas,
    uninterrupted,
)
from featstream.progress import Observer, Progress, announce, observed
from featstream.protocols import (
    Block,
    BoolArray,
    Decision,
    FloatArray,
    IndexedSource,
    IntArray,
    Measure,
    Source,
    Span,
    text_columns_of,
)
from featstream.runs import state
from featstream.runs.arrays import Declared, check_arrays
from featstream.runs.folder import Checkpoint, Saved
from featstream.runs.session import Savable, recording, saving
from featstream.selectors import suspects
from featstream.selectors.result import SelectionResult, Trace
from featstream.selectors.stream import Decide, Explained, Stream, Unfinished, Verdict
from featstream.sources.combined import sample_order_of
from featstream.sources.grouping import Layout
from featstream.sources.memory import block_of_one, in_storage, is_plain_column

Steps: TypeAlias = Iterator[Callable[[], object]]

_LOG = logging.getLogger("featstream")

announce_compilation = partial(
    announce,
    "Compiling kernels for the first use with data of this kind. This takes some "
    "seconds, once: they are kept for later.",
)
compilation.announce = announce_compilation

_KEPT = {
    "arrival": Declared(np.int64, ("n_kept",), 0, "n_seen"),
    "score": Declared(np.float64, ("n_kept",)),
}
_OWN = "kept/"  # begins the names of the arrays that the selector itself saves

_NEARLY_ONE = 1 - 1e-6
"""The relevance that only a copy of the target exceeds, where it is at most one."""

_LOOK_AHEAD = 256
"""How many features measure="auto" looks at: blocks must not matter."""


class OnlineSelector(Savable, Explained, Selector):
    """Base of selectors that decide about features as they arrive.

    It holds the state of a stream, says what became of each feature, and is a
    scikit-learn selector.

    Parameters
    ----------
    trace : {"full", "kept"} or None, default="full"
        What is remembered of dropped features: why each was dropped (nine bytes
        per feature), only those once kept, or nothing.
    n_jobs : int, optional
        Number of threads. The selection does not depend on it.

    Attributes
    ----------
    selected_ : ndarray of int
        Kept features, in order of arrival.
    scores_ : ndarray of float
        Their relevance.
    support_ : ndarray of bool of shape (n_features,)
        Whether each feature is kept.
    result_ : SelectionResult
        Names, scores and history.
    """

    measure: str | Measure
    trace: Any
    _uses_blas: ClassVar[bool] = True
    _saves_between_blocks: ClassVar[bool] = True
    """Whether a Ctrl-C can wait for a block to end, so that a run saves it."""
    _numeric_target: ClassVar[str] = "FisherZ(target='numeric')"
    """How a quantity is given as the target; empty if it cannot be."""
    _is_reason_general: ClassVar[bool] = True
    """Whether `_reason` names no features but the two that it is given."""

    @abstractmethod
    def _begin(self, stream: Stream) -> None:
        """Check the parameters and set up the state of an empty stream."""

    def _state_arrays(self) -> dict[str, NDArray[Any]]:
        """What `_restore` needs to continue to the bit: plain arrays by name.

        They hold numbers or booleans and have one or two axes. Target, names, trace
        and measure are saved elsewhere, and so are kept features and their scores
        unless `_kept` is overridden.
        """
        return {}

    def _restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore the state from what `_state_arrays` returned, after `_begin`.

        The stream has its target, names, trace and measure again. The arrays may
        come from anyone: raise `RunError` for what cannot be right.
        """

    def _kept(self) -> tuple[IntArray, FloatArray]:
        """Arrivals and scores of the kept features, in order of arrival."""
        kept = self._started().kept
        arrivals = np.fromiter(kept, np.int64, len(kept))
        return arrivals, np.fromiter(kept.values(), np.float64, len(kept))

    def _kept_columns(self) -> NDArray[Any] | None:
        """The kept columns as plain numbers, one row each; None if it has none."""
        return None

    def _measure_named(self, name: str, **options: Any) -> Any:
        """The measure that ``"auto"`` chose, by its name."""
        return inputs.MEASURES[name](**options)

    def _facts(self) -> dict[str, Any]:
        stream = self._started()
        return {
            "arrives": "features",
            "n_samples": len(stream.y),
            "y_fingerprint": state.fingerprint_of_target(stream.y),
            "measure": None if stream.measure is None else stream.measure.name,
            "choice": None if stream.choice is None else stream.choice._asdict(),
            "is_sparse": stream.is_sparse,
            "n_seen": stream.trace.n_seen,
            "n_kept": int(self._kept()[0].size),
            "seconds": stream.seconds,
            "peak_memory": stream.peak_memory,
            "sample_column": None if stream.samples is None else stream.samples.column,
        }

    def _arrays(self) -> dict[str, NDArray[Any]]:
        stream, own = self._started(), self._state_arrays()
        if stream.keeps:
            own = dict(zip(("arrival", "score"), self._kept(), strict=True)) | own
        return state.stream_arrays(stream) | {_OWN + name: own[name] for name in own}

    def _restore_state(self, saved: Saved) -> None:
        facts, arrays = saved.description, saved.arrays
        chosen = facts["measure"]
        self.start(state.target_from(arrays))
        stream = self._stream
        if stream.measure is None and chosen is not None:
            known = {"name": chosen, "reason": "", "options": {}}
            stream.choice = inputs.Choice(**(facts.get("choice") or known))
            measure = self._measure_named(chosen, **stream.choice.options)
            stream.measure = measure.bind(stream.y)
        stream.is_sparse, stream.seconds = facts["is_sparse"], facts["seconds"]
        stream.peak_memory = facts.get("peak_memory")
        state.restore_stream(stream, facts["n_seen"], arrays)
        column = facts.get("sample_column")
        if stream.samples is not None and isinstance(column, str):
            stream.samples.column = column
        own = {
            name.removeprefix(_OWN): array
            for name, array in arrays.items()
            if name.startswith(_OWN)
        }
        if stream.keeps:
            kept = check_arrays(own, _KEPT, n_seen=stream.trace.n_seen)
            pairs = kept["arrival"].tolist(), kept["score"].tolist()
            stream.kept = dict(zip(*pairs, strict=True))
        self._restore(own)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Select from a whole data set: ``start(y).consume(X)``.

        Parameters
        ----------
        X : array, sparse matrix, data frame, path or Source
            Samples by features.
        y : array of shape (n_samples,)
            The class of each sample; by default what the file of ``X`` holds.
        """
        return self._fit(X, y)

    def _fit(self, X: Any, y: Any, **options: Any) -> Self:
        """Select from a whole data set; the options are those of `consume`."""
        with whole_or_not_at_all(self):
            self._fit_anew(X, y, **options)
        return self

    def _fit_anew(self, X: Any, y: Any, **options: Any) -> None:
        if isinstance(X, str | PathLike):
            dataset = sources.open_dataset(X) if y is None else sources.open_features(X)
            X, y = dataset.source, dataset.y if y is None else y
        source = sources.as_source(X)
        is_plain = source is X or isinstance(X, np.ndarray) or issparse(X)
        if not is_plain:
            from sklearn.utils.validation import validate_data

            validate_data(self, X, skip_check_array=True)
        sources.check_has_features(source)
        self.start(y).consume(source, **options)
        stream = self._stream
        if not stream.trace.n_seen:  # an iterator, of which it could not be known
            raise DataError(
                f"Found array with 0 feature(s) (shape=({len(stream.y)}, 0)) while a "
                "minimum of 1 is required."
            )
        self.n_features_in_ = stream.trace.n_seen
        if is_plain:
            self.__dict__.pop("feature_names_in_", None)
        # Of pandas, scikit-learn has taken the names, or has left them on purpose.
        is_named = hasattr(self, "feature_names_in_") or is_pandas_dataframe(X)
        if not is_named and len(stream.names) == self.n_features_in_:
            self.feature_names_in_ = np.array(stream.names.listed(), dtype=object)

    def start(self, y: Any) -> Self:
        """Begin a stream of features for the target ``y``.

        Parameters
        ----------
        y : array of shape (n_samples,)
            The class of each sample, in the order of every feature's values.
        """
        with single_blas:  # a model of the target may be fitted
            stream = Stream(y, Trace(self.trace), self._bind(y))
        stream.keeps = type(self)._kept is OnlineSelector._kept
        if not self._has_numeric_target:
            # A bad target is an error now, not at the first feature.
            labels = inputs.as_labels(y)
            check_labels(labels)
            inputs.check_classes(
                labels, self._numeric_target, asks=self._asks_about_target
            )
        self._stream = stream
        self._run = None
        self._begin(stream)
        return self

    @property
    def _asks_about_target(self) -> bool:
        """Whether it was left open if the target is a class or a quantity."""
        measure = getattr(self, "measure", None)
        if isinstance(measure, str):
            return measure in ("auto", "fisher-z")
        return getattr(measure, "target", "") == "auto"

    @property
    def _has_numeric_target(self) -> bool:
        """Whether the target is a quantity."""
        owners = (self, getattr(self, "measure", None), getattr(self, "test", None))
        return any(getattr(owner, "target", "") == "numeric" for owner in owners)

    def _bind(self, y: Any) -> Any:
        """The measure, test or model for the target; None if the data must decide."""
        measure = inputs.resolve_measure(self.measure)
        return None if measure is None else measure.bind(y)

    def _look_ahead(
        self, blocks: Iterator[Block], stream: Stream, source: Source
    ) -> Iterator[Block]:
        """Choose the measure by the first features; return all blocks.

        Where the types of all columns are known, text after the first ones counts.
        """
        first: list[Block] = []
        for block in blocks:
            first.append(block)
            if sum(b.n_columns for b in first) >= _LOOK_AHEAD:
                break
        if first:
            text = text_columns_of(source)
            later = [i for i in text or () if i >= _LOOK_AHEAD][:_LOOK_AHEAD]
            typed: list[Block] = []
            if later and isinstance(source, IndexedSource):
                typed.extend(source.blocks_at(np.array(later)))
            n_features = source.n_features
            is_all = n_features is not None and n_features <= _LOOK_AHEAD
            self._choose_measure(
                first, stream, typed, knows_all=is_all or text is not None
            )
        return chain(first, blocks)

    def _choose_measure(
        self,
        blocks: list[Block],
        stream: Stream,
        typed: Sequence[Block] = (),
        *,
        knows_all: bool = True,
    ) -> None:
        """Choose by some blocks, and by columns whose types are known besides."""
        n_columns = _LOOK_AHEAD
        seen = [*typed]
        for block in blocks:
            seen.append(block.part(0, min(block.n_columns, n_columns)))
            n_columns -= seen[-1].n_columns
        choice = self._propose(seen)
        if not knows_all and choice.name == "fisher-z":  # text may follow
            reason = f"{choice.reason} (only the first {_LOOK_AHEAD} were looked at)"
            choice = choice._replace(reason=reason)
        stream.choice = choice
        measure = self._measure_named(choice.name, **choice.options)
        stream.measure = measure.bind(stream.y)
        _LOG.info("'auto' took %r: %s", choice.name, choice.reason)
        if choice.is_guess:
            warnings.warn(
                f"'auto' took {choice.name!r}: {choice.reason}. Name the measure to "
                "choose otherwise.",
                FeatstreamWarning,
                stacklevel=2,
            )

    def _propose(self, blocks: list[Block]) -> inputs.Choice:
        """A measure for a stream with these blocks, and why."""
        n_columns = sum(block.n_columns for block in blocks)
        return inputs.propose_measure(blocks, n_columns)

    @abstractmethod
    def _steps(self, source: Source, layout: Any, position: int) -> Steps:
        """Functions that decide about a source from a position on, one per batch."""

    def _lay_out(self, groups: Any, source: Source) -> Layout | None:
        """How the features of a source fall into groups; None if they do not."""
        if groups is not None:
            raise ParameterError(
                f"{type(self).__name__} takes no groups: features arrive one by one. "
                "Leave `groups` out, or use GroupSAOLA or OGFS."
            )
        return None

    def _consume(
        self,
        offered: Any,
        groups: Any,
        progress: bool | Observer,
        checkpoint: str | PathLike[str] | Checkpoint | None,
        every: float,
    ) -> Self:
        """Decide about every feature of a source, from where its run was left."""
        self._started()
        is_saved = checkpoint is not None or self._run is not None
        with (
            saving(self, checkpoint, every, offered)
            if is_saved
            else nullcontext() as where,
            self._opened(offered, groups, where) as (source, layout, begin, save),
            observed(progress, type(self).__name__)
            if progress
            else nullcontext() as observe,
            single_blas,  # blocks are spread over threads, not products
        ):
            stream = self._stream  # a run may have restored it
            n_features = source.n_features
            if n_features is not None:
                n_features += begin
            began = clock()
            for decide in self._steps(source, layout, stream.trace.n_seen - begin):
                with uninterrupted():  # what is kept and what is recorded agree
                    decide()
                stream.seconds += max(0.0, clock() - began)
                if observe is not None:
                    n_seen, n_kept = stream.trace.n_seen, self._kept()[0].size
                    observe(Progress(n_seen, n_features, n_kept, stream.seconds))
                if save is not None:
                    save()
                began = clock()
            known = (stream.peak_memory, peak_memory())
            stream.peak_memory = max((n for n in known if n), default=None)
        warn_of_identifiers(stream)
        is_numeric = self._has_numeric_target
        suspects.warn_of_copies_left_out(stream)
        if not sources.is_dask_array(offered):  # its columns would be computed again
            suspects.warn_of_suspects(self, source, begin, is_numeric=is_numeric)
        self._warn_of_chance()
        return self

    @contextmanager
    def _opened(
        self, offered: Any, groups: Any, checkpoint: Checkpoint | None
    ) -> Iterator[tuple[Source, Layout | None, int, Callable[[], object] | None]]:
        """Open a source that is consumed, from where it was left.

        Gives the source, its groups, the number of features seen before it, and what
        saves after a block, if anything does. A source that is left in the middle is
        remembered.
        """
        source = sources.as_source(offered)
        layout = self._lay_out(groups, source)
        stream, begin = self._stream, self._find_begin(source, offered, layout)
        if checkpoint is not None:
            with recording(self, source, checkpoint, layout) as recorder:
                yield source, layout, recorder.begin, recorder.after_block
            return
        stream.check_samples(sample_order_of(source), "This source")
        try:
            yield source, layout, begin, None
        except BaseException as error:
            is_interrupt = isinstance(error, KeyboardInterrupt)
            rest = Unfinished(offered, source, layout, begin, is_interrupt)
            stream.unfinished = rest
            if stream.names.order.size > stream.n_seen:
                del self._stream  # it has positions for features that never came
            raise
        stream.unfinished = None

    def _find_begin(self, source: Source, offered: Any, layout: Layout | None) -> int:
        """Features seen before a source, which may have been left unfinished."""
        stream, rest = self._stream, self._stream.unfinished
        if rest is None:
            return stream.trace.n_seen
        if rest.source.n_features is None:
            is_same = offered is rest.offered and not isinstance(offered, Iterator)
        else:
            old = state.describe_source(rest.source, rest.layout)
            new = state.describe_source(source, layout)
            is_same = state.find_difference(old, new) is None
        if is_same:
            return rest.begin
        stream.leave_unfinished()
        return stream.trace.n_seen

    def _warn_of_chance(self) -> None:
        """Warn, once, if chance alone may explain most of the kept features."""

    def _forget_names(self, stream: Stream, block: Block | Span) -> None:
        """Forget the names of features that are neither kept nor in the trace."""
        kept = set(self._kept()[0].tolist())
        for arrival in range(block.start, block.start + block.n_columns):
            if arrival not in kept and not stream.trace.knows(arrival):
                stream.names.forget(arrival)

    @property
    def selected_(self) -> IntArray:
        """Positions of the kept features, in the order in which they were kept."""
        return self._started().names.positions(self._kept()[0])

    @property
    def scores_(self) -> FloatArray:
        """Relevance of the kept features, in the order of `selected_`."""
        self._started()
        return self._kept()[1]

    @property
    def support_(self) -> BoolArray:
        """Whether each feature seen is kept."""
        stream = self._started()
        n_positions = max(stream.trace.n_seen, stream.names.order.size)
        support = np.zeros(n_positions, dtype=bool)
        support[self.selected_] = True
        return support

    @property
    def n_seen_(self) -> int:
        """Number of features seen."""
        return self._started().trace.n_seen

    @property
    def measure_(self) -> str:
        """Name of the measure in use; that is, what ``"auto"`` chose."""
        stream = self._started()
        return "auto" if stream.measure is None else stream.measure.name

    @property
    def measure_reason_(self) -> str | None:
        """Why ``"auto"`` chose `measure_`; None if the measure was given."""
        choice = self._started().choice
        return None if choice is None else choice.reason

    @property
    def result_(self) -> SelectionResult:
        """The selection with its scores and history."""
        return SelectionResult(**self._result_fields())

    def _result_fields(self) -> dict[str, Any]:
        stream = self._started()
        measure, reason = self.measure_, self.measure_reason_
        kept, scores = self._kept()
        return {
            "names": tuple(stream.names[arrival] for arrival in kept.tolist()),
            "indices": stream.names.positions(kept),
            "scores": scores,
            "n_features": stream.trace.n_seen,
            "n_samples": len(stream.y),
            "selector": type(self).__name__,
            "measure": measure,
            "measure_reason": reason,
            "parameters": {
                name: value if isinstance(value, int | str | None) else repr(value)
                for name in sorted(signature(type(self)).parameters)
                for value in [getattr(self, name)]
            },
            "seconds": stream.seconds,
            "trace": stream.trace,
            "peak_memory": stream.peak_memory,
            "origin": copy(self),
        }

    def _started(self) -> Stream:
        if not hasattr(self, "_stream"):
            raise NotStartedError(
                f"This {type(self).__name__} has seen no target. Call start(y) before "
                "update or consume, or fit(X, y)."
            )
        return self._stream

    def _repr_html_(self) -> str:
        """What a notebook shows: the selection, once there is one."""
        if not hasattr(self, "_stream"):
            from sklearn.utils import estimator_html_repr

            return str(estimator_html_repr(self))
        return str(self.result_._repr_html_())

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        from sklearn import get_config

        shown = {"text/plain": repr(self)}
        if get_config()["display"] == "diagram":
            shown["text/html"] = self._repr_html_()
        return shown

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_stream")

    def transform(self, X: Any) -> Any:
        """The kept features of ``X``; those of a dask.array are not computed.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Samples by features. Of an AnnData object the result is one as well, a view.
        """
        is_annotated = sources.is_anndata(X)
        if not is_annotated and not sources.is_dask_array(X):
            return super().transform(X)
        support = self.support_
        known = getattr(self, "feature_names_in_", None)
        if is_annotated and known is not None and list(X.var_names) != list(known):
            raise DataError(
                f"The variables of X are not the features that {type(self).__name__} "
                "was fitted with, in that order. Take X[:, selector.feature_names_in_]."
            )
        if X.shape[1] != support.size:
            raise DataError(
                f"X has {X.shape[1]} features, but {type(self).__name__} is expecting "
                f"{support.size} features as input."
            )
        return X[:, np.flatnonzero(support)]

    def _get_support_mask(self) -> BoolArray:
        return self.support_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        # Without this, transform would refuse the missing values that fit took.
        measure = getattr(self, "measure", getattr(self, "test", None))
        tags.input_tags.allow_nan = getattr(measure, "missing", "") == "category"
        return tags


def in_stream(
    blocks: Iterable[Block], stream: Stream, arrival: int | None = None
) -> Iterator[Block]:
    """The blocks in the storage of the stream, placed in it from an arrival on."""
    arrival = stream.trace.n_seen if arrival is None else arrival
    for block in blocks:
        if stream.is_sparse is None:
            stream.is_sparse = block.is_sparse
        placed = replace(block, start=arrival)
        yield from in_storage(placed, is_sparse=stream.is_sparse)
        arrival += block.n_columns


def warn_of_identifiers(stream: Stream) -> None:
    """Name the columns that the measure left out as identifiers, once."""
    left_out = getattr(stream.measure, "left_out", None)
    if left_out is not None and left_out.names:
        left_out.warn()


class SequentialSelector(OnlineSelector):
    """Base of selectors that decide about a source while it is read."""

    _engine: Engine | None = None  # in use by `consume`

    def consume(
        self,
        source: Any,
        *,
        groups: Any = None,
        engine: Any = None,
        progress: bool | Observer = False,
        checkpoint: str | PathLike[str] | Checkpoint | None = None,
        every: float = 10.0,
    ) -> Self:
        """Decide about every feature of a source.

        Parameters
        ----------
        source : anything that `as_source` takes
            Features in order of arrival; further calls continue the stream.
        groups : array of labels, mapping or list of index lists, optional
            For selectors of groups: one label per feature; or a mapping of the names
            of features to labels; or the positions of the features of each group,
            whose labels are then 0, 1 and so on. Every feature is in one group. By
            default each feature is a group of its own, labelled with its name; `OGFS`
            makes groups of ``group_size`` consecutive features, numbered from 0.
        engine : distributed.Client or "dask", optional
            For selectors that have this parameter, which is the default: the cluster
            on which features are scored. Workers read a column store, zarr, parquet
            with one row per feature, PLINK files and folders of these by themselves,
            from the same path; other data are sent to them.
        progress : bool or callable, default=False
            Show a live line, or call with a `Progress` after each block.
        checkpoint : str, path or Checkpoint, optional
            Folder in which the run is saved, now and then and at Ctrl-C, for
            `featstream.resume`. If it holds this very run, unfinished, that is
            continued. Later calls use the same folder.
        every : float, default=10.0
            Seconds between checkpoints.

        Notes
        -----
        After a Ctrl-C or an error, a call with the same source and groups continues
        where that stopped, in memory as in a run. After a Ctrl-C nothing else is
        accepted until `start`. An error ends a stream whose groups have to be
        gathered, unless it is saved in a run.
        """
        chosen = getattr(self, "engine", None) if engine is None else engine
        self._engine = None if chosen is None else self._as_engine(chosen)
        try:
            return self._consume(source, groups, progress, checkpoint, every)
        finally:
            self._engine = None

    def _as_engine(self, engine: Any) -> Engine | None:
        """What runs the scan elsewhere; an error if it must run here."""
        raise ParameterError(
            f"{type(self).__name__} works in this process alone. Leave `engine` out, "
            "or use SelectFromStream, SAOLA or GroupSAOLA."
        )

    def _begun(self) -> Stream:
        """The stream; an error if it has stopped in the middle of a source."""
        stream = self._started()
        if stream.unfinished is not None:
            stream.leave_unfinished()
        if self._run is not None:
            self._run.refuse_unfinished()
        return stream

    def _decide_now(self, batch: Any, stream: Stream) -> Verdict:
        """Decide about a batch that arrives alone, and record it."""
        with single_blas if self._uses_blas else nullcontext():
            decide = self._prepare(batch, stream)
            with uninterrupted():
                return self._take(batch, decide, stream)

    def _decide(self, batch: Any, stream: Stream) -> Verdict:
        """Decide about all columns of a batch, which is a block or some groups."""
        raise NotImplementedError

    def _prepare(self, batch: Any, stream: Stream) -> Decide:
        """Prepare a batch ahead of its turn, perhaps in a thread.

        Returns a function that decides about the batch when its turn has come.
        """
        return partial(self._decide, batch, stream)

    def _take(self, batch: Any, decide: Decide, stream: Stream) -> Verdict:
        """Decide about the features of a batch, here a block, and record it."""
        names = batch.names
        if names is not None:
            stream.names.refuse_taken(batch.start, names)
        verdict = decide()
        if stream.keeps:
            stream.record(batch.start, verdict)
        else:
            stream.trace.record(verdict)
        if names is not None:
            stream.names.add(batch.start, names)
            if stream.trace.level != "full":
                self._forget_names(stream, batch)
        return verdict

    def _steps(self, source: Source, layout: Any, position: int) -> Steps:
        stream, (blocks, layout) = self._stream, self._read(source, layout, position)
        if stream.measure is None:
            blocks = self._look_ahead(blocks, stream, source)
        return self._decisions(source, blocks, layout, position)

    def _read(
        self, source: Source, layout: Any, position: int
    ) -> tuple[Iterator[Block], Any]:
        """The blocks of a source from a position on, and how they fall into groups."""
        return source.blocks(position), layout

    def _decisions(
        self, source: Source, blocks: Iterator[Block], layout: Any, position: int
    ) -> Steps:
        """Functions that decide about the blocks of a source from a position on."""
        stream, n_threads = self._stream, count_threads(getattr(self, "n_jobs", None))
        given = self._batches(blocks, layout, position)
        prepare = lambda batch: (batch, self._prepare(batch, stream))  # noqa: E731
        prepared: Iterator[Any] = map(prepare, given)
        if n_threads > 1:
            prepared = prepared_ahead(given, prepare, n_threads)
        for batch, decide in prepared:
            yield partial(self._take, batch, decide, stream)

    def _batches(
        self, blocks: Iterator[Block], layout: Any, position: int
    ) -> Iterator[Any]:
        """The blocks from a position on as batches: whole groups, or single blocks."""
        return in_stream(blocks, self._stream)


class StreamSelector(SequentialSelector):
    """Base of selectors to which features arrive one after the other.

    A subclass sets up its state in `_begin`, decides about a block in `_decide`,
    and gives and takes back its state in `_state_arrays` and `_restore`.
    """

    def update(self, values: Any, name: str | None = None) -> Decision:
        """Decide about one feature.

        Parameters
        ----------
        values : array of shape (n_samples,)
            One value per sample; a sparse column will do.
        name : str, optional
            The feature's name; by default made from its arrival.
        """
        stream = self._begun()
        if type(values) is not np.ndarray:
            stream.check_index(values)
        began, verdict = clock(), None
        names: Sequence[str] | None = None if name is None else [name]
        if (name is None or type(name) is str) and is_plain_column(values):
            verdict = self._decide_plain(values, names, stream)
        if verdict is None:
            block = block_of_one(values, name, stream.trace.n_seen)
            verdict, names = self._decide_one(block, stream), block.names
            values = block.to_dense()[:, 0]
            warn_of_identifiers(stream)
            suspects.warn_of_copies_left_out(stream)
        stream.seconds += max(0.0, clock() - began)
        decision = stream.decision(verdict, names)
        if decision.is_kept and decision.relevance > _NEARLY_ONE:
            is_numeric = self._has_numeric_target
            suspects.warn_of_single(
                values, decision.name, stream, is_numeric=is_numeric
            )
        return decision

    def _decide_plain(
        self, values: NDArray[Any], names: Sequence[str] | None, stream: Stream
    ) -> Verdict | None:
        """Decide about one plain column by a shorter way; None if there is none."""
        return None

    def _decide_one(self, block: Block, stream: Stream) -> Verdict:
        if stream.measure is None:
            self._choose_measure([block], stream)
        if stream.is_sparse is None:
            stream.is_sparse = block.is_sparse
        if block.is_sparse != stream.is_sparse:
            (block,) = in_storage(block, is_sparse=stream.is_sparse)
        return self._decide_now(block, stream)
