"""Taking in a source: step by step, shown and saved on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from featstream.jit import clock
from featstream.parallel import single_blas, uninterrupted
from featstream.progress import Observer, Progress, observed
from featstream.protocols import Source
from featstream.runs.folder import Checkpoint
from featstream.runs.session import find_begin, noting_unfinished, recording
from featstream.selectors.stream import Unfinished
from featstream.sources.layouts import Layout

if TYPE_CHECKING:
    from featstream.selectors.base import OnlineSelector

__all__ = ["Steps", "take_in"]

Steps = Callable[[int], Iterator[Callable[[], object]]]
"""From so many features of a source on: what decides about the next ones."""


def take_in(
    selector: OnlineSelector,
    source: Source,
    steps: Steps,
    offered: Any,
    *,
    progress: bool | Observer,
    checkpoint: Checkpoint | None,
    layout: Layout | None = None,
) -> None:
    """Decide about every feature of a source, from where its run was left.

    Parameters
    ----------
    selector : OnlineSelector
        Its state may be replaced by that of the run before the first step.
    source : Source
        The features.
    steps : callable
        Gives the decisions from a position on, in order.
    offered : object
        What `consume` was given for the source.
    progress : bool or callable
        As for `consume`.
    checkpoint : Checkpoint or None
        As for `consume`.
    layout : Layout, optional
        The groups of the features, where they have any.
    """
    begin = find_begin(selector, source, offered, layout)
    with (
        observed(progress, type(selector).__name__) as observe,
        recording(selector, source, checkpoint, layout) as recorder,
        noting_unfinished(selector, Unfinished(offered, source, layout, begin)),
        single_blas,  # blocks are spread over threads, not products
    ):
        stream = selector._stream
        if recorder is None:
            stream.check_samples(source)
            position = stream.n_seen - begin
        else:
            position = recorder.position
        n_features = source.n_features
        if n_features is not None:
            n_features += stream.n_seen - position
        began = clock()
        for decide in steps(position):
            with uninterrupted():  # what is kept and what is recorded agree
                decide()
            stream.seconds += clock() - began
            if observe is not None:
                n_kept = selector._kept()[0].size
                observe(Progress(stream.n_seen, n_features, n_kept, stream.seconds))
            if recorder is not None:
                recorder.after_block()
            began = clock()
