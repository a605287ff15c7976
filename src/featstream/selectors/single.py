"""Selectors to which features arrive one after the other."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from functools import partial
from os import PathLike
from typing import Any, Self

from featstream.jit import clock
from featstream.parallel import (
    count_threads,
    prepared_ahead,
    single_blas,
    uninterrupted,
)
from featstream.progress import Observer
from featstream.protocols import Block, Decision, Source
from featstream.runs.folder import Checkpoint
from featstream.runs.session import as_checkpoint, begun
from featstream.selectors.base import OnlineSelector
from featstream.selectors.consuming import take_in
from featstream.selectors.stream import Stream, block_of_one, in_stream
from featstream.sources import as_source

__all__ = ["StreamSelector"]


class StreamSelector(OnlineSelector):
    """Base of selectors to which features arrive one after the other.

    A subclass decides about a block of encoded columns in `_decide`.
    """

    @abstractmethod
    def _decide(self, block: Block, stream: Stream) -> None:
        """Decide about every column of a block and record it in the stream."""

    def _prepare(self, block: Block, stream: Stream) -> Callable[[], None]:
        """Do what can be done for a block ahead of its turn, perhaps in a thread.

        Returns what decides about it when its turn has come.
        """
        return partial(self._decide, block, stream)

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

    def update(self, values: Any, name: str | None = None) -> Decision:
        """Decide about one feature.

        Parameters
        ----------
        values : array of shape (n_samples,)
            One value per sample; a sparse column will do.
        name : str, optional
            The feature's name; by default made from its arrival.
        """
        stream = self._started()
        stream.leave_unfinished()
        if self._run is not None:
            self._run.refuse_unfinished()
        stream.check_index(values)
        began = clock()
        block = block_of_one(values, name, stream.n_seen)
        if stream.measure is None:
            self._choose_measure([block], stream)
        with single_blas:
            for piece in in_stream(iter([block]), stream):
                decide = self._prepare(piece, stream)
                with uninterrupted():
                    self._take(piece, decide, stream)
        stream.seconds += clock() - began
        stream.warn_of_identifiers()
        return stream.last_decision()

    def consume(
        self,
        source: Any,
        *,
        progress: bool | Observer = False,
        checkpoint: str | PathLike[str] | Checkpoint | None = None,
        every: float = 10.0,
    ) -> Self:
        """Decide about every feature of a source.

        Parameters
        ----------
        source : anything that `as_source` takes
            Features in order of arrival; further calls continue the stream.
        progress : bool or callable, default=False
            Show a live line, or call with a `Progress` after each block.
        checkpoint : str, path or Checkpoint, optional
            Folder in which the run is saved, now and then and at Ctrl-C, so that
            `featstream.resume` can go on from there. If it holds this very run,
            unfinished, that is gone on with. Later calls use the same folder.
        every : float, default=10.0
            Seconds between checkpoints.

        Notes
        -----
        After a Ctrl-C or an error, a call with the same source continues where
        that stopped, in memory as in a run. After a Ctrl-C nothing else is
        accepted until `start`.
        """
        self._started()
        saving = as_checkpoint(checkpoint, every, source, self._run)
        with begun(self, saving):
            offered, source = source, as_source(source)
            steps = partial(self._steps, source)
            take_in(self, source, steps, offered, progress=progress, checkpoint=saving)
        self._stream.warn_of_identifiers()
        return self

    def _steps(self, source: Source, position: int) -> Iterator[Callable[[], None]]:
        """The decisions about the features of a source, block by block."""
        stream, blocks = self._stream, source.blocks(position)
        if stream.measure is None:
            blocks = self._look_ahead(blocks, stream)
        for piece, decide in prepared_ahead(
            in_stream(blocks, stream),
            lambda piece: (piece, self._prepare(piece, stream)),
            count_threads(getattr(self, "n_jobs", None)),
        ):
            yield partial(self._take, piece, decide, stream)

    def _take(self, piece: Block, decide: Callable[[], None], stream: Stream) -> None:
        """Decide about the features of a block, and keep their names."""
        if piece.names is not None:
            stream.names.refuse_taken(piece.start, piece.names)
        decide()
        if piece.names is not None:
            stream.names.add(piece.start, piece.names)
            if stream.trace.level != "full":
                self._forget_names(stream, piece)
