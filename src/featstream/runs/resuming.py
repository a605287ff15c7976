"""Going on with a run that was saved."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from inspect import isabstract
from typing import Any

from featstream.errors import FeatstreamError, RunError, printable
from featstream.runs.folder import RunFolder, Saved
from featstream.runs.saving import Savable
from featstream.runs.session import link_to
from featstream.runs.state import load_parameters, load_run

__all__ = ["begin_again", "resume"]


def resume(path: str | os.PathLike[str]) -> Any:
    """Open a run, to look at it or to go on with it.

    Parameters
    ----------
    path : str or path
        Folder given as ``checkpoint`` to `consume`, to `save`, or to ``select -o``.

    Returns
    -------
    selector : the selector of the run
        As it was when the run was last saved. `consume` goes on in the middle of
        the source if the run was interrupted there, and must be given the same
        one, in the same groups; otherwise it takes in further features. Both save
        in the same folder. `OFS`, which learns from rows, goes on with
        `partial_fit`, and saves when it is told to.

    Raises
    ------
    RunError
        If the folder is no run, or damaged beyond the previous generation.

    Notes
    -----
    Nothing in the folder is executed: it holds JSON and plain arrays, which are
    checked. Selectors and measures are found by name among those imported.

    Examples
    --------
    >>> import tempfile, featstream
    >>> from featstream.datasets import make_stream
    >>> stream = make_stream(n_features=300, seed=0)
    >>> selector = featstream.SAOLA(measure="su").start(stream.y)
    >>> run = tempfile.mkdtemp()
    >>> _ = selector.consume(stream.X[:, :200], checkpoint=run)
    >>> later = featstream.resume(run).consume(stream.X[:, 200:])
    >>> later.n_seen_
    300
    """
    folder = RunFolder(path)
    saved = load_run(folder)
    selector = _make_selector(folder, saved)
    if saved.generation == 0:
        told = shlex.join(saved.description["command"] or [])
        raise RunError(
            f"The run {folder.path} stopped while its data were being read, before the "
            "first feature. Begin it again: "
            + (f"featstream resume {folder.path}, or {told}" if told else "consume()")
        )
    selector._restore_from(saved)
    selector._run = link_to(folder, saved)
    return selector


def begin_again(path: str | os.PathLike[str]) -> Any:
    """The selector of a run that stopped before its first feature; otherwise None.

    It has not been started; its run says where its data are.
    """
    folder = RunFolder(path)
    saved = load_run(folder)
    if saved.generation > 0:
        return None
    selector = _make_selector(folder, saved)
    selector._run = link_to(folder, saved)
    return selector


def _make_selector(folder: RunFolder, saved: Saved) -> Any:
    name = saved.description["selector"]
    classes = {kind.__name__: kind for kind in _heirs(Savable)}
    if name not in classes:
        raise RunError(
            f"The run {folder.path} is one of {printable(name)}, which is not among "
            f"the selectors here: {', '.join(sorted(classes))}."
        )
    try:
        return classes[name](**load_parameters(saved.description["parameters"]))
    except RunError:
        raise
    except (FeatstreamError, TypeError) as error:
        raise RunError(f"The run's selector cannot be made: {error}.") from error


def _heirs(kind: Any) -> Iterator[Any]:
    for heir in kind.__subclasses__():
        if not (isabstract(heir) or heir.__name__.startswith("_")):
            yield heir
        yield from _heirs(heir)
