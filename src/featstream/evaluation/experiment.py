"""A comparison of selectors: cells, each in a process, kept on disk as they end."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from featstream.errors import (
    ParameterError,
    as_bytes,
    printable,
    unknown_name,
)
from featstream.evaluation.cell_cache import CellStore
from featstream.evaluation.classifiers import as_classifier
from featstream.evaluation.display import CellProgress, cells_observed
from featstream.evaluation.entrants import describe, name_selectors
from featstream.evaluation.results import ExperimentResult
from featstream.evaluation.running import Run
from featstream.evaluation.splits import SplitProtocol
from featstream.parallel import count_threads

__all__ = ["Experiment"]


class Experiment:
    """Compare selectors on data sets, by what classifiers make of the selections.

    Parameters
    ----------
    selectors : mapping of str to selector, or sequence
        Who is compared, by the name to show: names such as ``"saola"`` or
        ``"fast-osfs"`` (`SELECTORS`), selectors of this library or of scikit-learn,
        or `BestOf`. In a sequence they are called by name or class.
    datasets : mapping of str to data, or sequence of paths
        ``(X, y)``, `Task`, or the path of a file.
    classifiers : sequence of str, or mapping of str to classifier
        Who judges: names (`CLASSIFIERS`), or any scikit-learn classifiers.
    protocol : SplitProtocol or mapping of data set to SplitProtocol, optional
        How rows are split. By default the given test part is used, and where there
        is none `RandomSplits`.
    seed : int, default=0
        Decides all that is random.
    time_limit : float, optional
        Seconds that a selection, and then each classifier, may take; where the best
        of several is chosen, all of them together.
    memory_limit : str or int, optional
        Memory that a cell may take for itself, such as ``"2GB"``.

    Examples
    --------
    >>> from featstream import SAOLA, Experiment
    >>> from featstream.datasets import make_stream
    >>> from featstream.evaluation import RandomSplits
    >>> stream = make_stream(n_samples=90, n_features=50, seed=1)
    >>> experiment = Experiment(
    ...     {"SAOLA": SAOLA(measure="su"), "SAOLA-max": "saola-max"},
    ...     {"stream": (stream.X, stream.y)},
    ...     classifiers=["knn"],
    ...     protocol=RandomSplits(n_runs=2),
    ... )
    >>> result = experiment.run()  # a folder makes it resumable
    >>> result.table("accuracy", "knn").values.shape
    (1, 2)
    """

    def __init__(
        self,
        selectors: Any,
        datasets: Any,
        classifiers: Any = ("knn", "j48", "svm"),
        protocol: SplitProtocol | Mapping[str, SplitProtocol] | None = None,
        *,
        seed: int = 0,
        time_limit: float | None = None,
        memory_limit: str | int | None = None,
    ) -> None:
        self.selectors = name_selectors(selectors)
        self.datasets = name_datasets(datasets)
        self.classifiers = name_classifiers(classifiers)
        self.protocols = name_protocols(protocol, self.datasets)
        self.seed = check_seed(seed)
        self.time_limit = check_time(time_limit)
        self.memory_limit = None if memory_limit is None else as_bytes(memory_limit)
        for what in ("selectors", "datasets", "classifiers"):
            if not getattr(self, what):
                raise ParameterError(
                    f"`{what}` of Experiment is empty. Give at least one."
                )

    def __repr__(self) -> str:
        return (
            f"Experiment({len(self.selectors)} selectors × {len(self.datasets)} data "
            f"sets · judged by {', '.join(self.classifiers)})"
        )

    def run(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        n_jobs: int | None = None,
        progress: bool | Callable[[CellProgress], None] = False,
    ) -> ExperimentResult:
        """Work on every cell that is not in the folder yet.

        Parameters
        ----------
        path : str or path, optional
            Folder in which cells are kept as they end. What is there already, of
            this or an earlier run, is not done again; errors are tried again, and
            limits if they have been raised. By default nothing is kept.
        n_jobs : int, optional
            Cells at a time; -1 is one for each core. Times can be compared best when
            they were measured one at a time.
        progress : bool or callable, default=False
            Show how far it is, or call with a `CellProgress` now and then.

        Returns
        -------
        ExperimentResult
            Scores, tables and statistics.
        """
        n_processes = count_threads(n_jobs)
        temporary = tempfile.TemporaryDirectory() if path is None else nullcontext(path)
        with temporary as folder:
            store = CellStore(folder)
            with store.locked(), cells_observed(progress) as observe:
                return Run(self, store, n_processes, observe).finish()

    def settings(self) -> dict[str, Any]:
        """All that was asked for, as plain JSON."""
        return {
            "selectors": {n: describe(s) for n, s in self.selectors.items()},
            "classifiers": {n: describe(c) for n, c in self.classifiers.items()},
            "protocols": {n: describe(p) for n, p in self.protocols.items()},
            "datasets": list(self.datasets),
            "seed": self.seed,
            "time_limit": self.time_limit,
            "memory_limit": self.memory_limit,
        }


def name_datasets(datasets: Any) -> dict[str, Any]:
    """Data sets by name; files are called by theirs."""
    if isinstance(datasets, Mapping):
        return {str(name): data for name, data in datasets.items()}
    if isinstance(datasets, str | os.PathLike):
        datasets = [datasets]
    named: dict[str, Any] = {}
    for data in datasets:
        if not isinstance(data, str | os.PathLike):
            raise ParameterError(
                "Data sets that are not files need names: datasets={'mine': (X, y)}. "
                f"Got {type(data).__name__}."
            )
        name = Path(data).name.split(".")[0] or str(data)
        if name in named:
            raise ParameterError(
                f"Two data sets are called {printable(name)}. Name them: "
                "datasets={'first': ..., 'second': ...}."
            )
        named[name] = data
    return named


def name_classifiers(classifiers: Any) -> dict[str, Any]:
    """Classifiers by name."""
    if isinstance(classifiers, Mapping):
        return {str(name): as_classifier(c) for name, c in classifiers.items()}
    if isinstance(classifiers, str):
        classifiers = [classifiers]
    named = {
        c if isinstance(c, str) else type(c).__name__: as_classifier(c)
        for c in classifiers
    }
    if len(named) != len(list(classifiers)):
        raise ParameterError(
            "Two classifiers have one name. Name them: classifiers={'first': ...}."
        )
    return named


def name_protocols(
    protocol: Any, datasets: Mapping[str, Any]
) -> dict[str, SplitProtocol]:
    """The protocol of each data set, where one is asked for."""
    if protocol is None:
        return {}
    if not isinstance(protocol, Mapping):
        protocol = dict.fromkeys(datasets, protocol)
    for name, value in protocol.items():
        if name not in datasets:
            raise unknown_name("data set in `protocol`", name, datasets)
        if not isinstance(value, SplitProtocol):
            raise ParameterError(
                f"`protocol` of Experiment must be a protocol such as GivenSplit() or "
                f"RandomSplits(n_runs=10). Got {printable(value)}."
            )
    return dict(protocol)


def check_time(seconds: Any) -> float | None:
    """A limit of time that can be kept."""
    if seconds is None:
        return None
    if (
        isinstance(seconds, bool)
        or not isinstance(seconds, int | float)
        or not 0 < seconds < math.inf
    ):
        raise ParameterError(
            "`time_limit` must be a number of seconds above 0. Got "
            f"{printable(seconds)}."
        )
    return float(seconds)


def check_seed(seed: Any) -> int:
    """A seed that gives the same each time."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise ParameterError(
            "`seed` of Experiment must be an integer of at least 0. Got "
            f"{printable(seed)}."
        )
    return int(seed)
