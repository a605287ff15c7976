"""A comparison of selectors: cells, each in a process, kept on disk as they end."""

from __future__ import annotations

import importlib
import math
import os
import platform
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from featstream.engines import Engine, as_engine
from featstream.errors import (
    DataError,
    DataTypeError,
    FeatstreamWarning,
    ParameterError,
    RunError,
    as_bytes,
    check_count,
    check_number,
    printable,
    unknown_name,
)
from featstream.evaluation import entrants, splits
from featstream.evaluation.cell import FEATURE, Job
from featstream.evaluation.entrants import describe, key_of
from featstream.evaluation.results import ExperimentResult
from featstream.evaluation.splits import CrossValidation, SplitProtocol, TaskShape
from featstream.evaluation.tasks import as_task
from featstream.evaluation.worker import CellOutcome, run_jobs, run_on
from featstream.parallel import count_threads
from featstream.progress import CellProgress, cells_observed
from featstream.runs import folder as run_folder

_FORMAT, _VERSION = "featstream comparison", 2
_PACKAGES = ("featstream", "numpy", "scipy", "sklearn", "numba")
_PLACE = ("key", "dataset", "selector", "split", "label")
"""The fields that identify the record of a cell."""


class Experiment:
    """Compare selectors on data sets, by what classifiers make of the selections.

    Parameters
    ----------
    selectors : mapping of str to selector, or sequence
        The selectors by the name to show: names such as ``"saola"`` or
        ``"fast-osfs"`` (`SELECTORS`), selectors of this library or of scikit-learn,
        or `BestOf`. In a sequence they are shown by name or class.
    datasets : mapping of str to data, or sequence of paths
        ``(X, y)``, `Task`, or the path of a file.
    classifiers : sequence of str, or mapping of str to classifier
        The classifiers that evaluate selections: names (`CLASSIFIERS`), or any
        scikit-learn classifiers.
    protocol : SplitProtocol or mapping of data set to SplitProtocol, optional
        How rows are split. By default the given test part is used, and where there
        is none `RandomSplits`.
    seed : int, default=0
        Determines everything random.
    time_limit : float, optional
        Seconds for a selection, and for each classifier; for `BestOf`, for all its
        values together.
    memory_limit : str or int, optional
        Memory of each process, such as ``"2GB"``, without files that it maps.

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
        named = entrants.by_name
        self.selectors = named("selectors", selectors, entrants.as_selector)
        self.datasets = named("data sets", datasets)
        self.classifiers = named("classifiers", classifiers, entrants.as_classifier)
        self.protocols = name_protocols(protocol, self.datasets)
        self.seed = check_count(seed, "seed", "Experiment", least=0)
        self.time_limit = time_limit
        if time_limit is not None:
            self.time_limit = check_number(time_limit, "time_limit", "Experiment")
        self.memory_limit = None if memory_limit is None else as_bytes(memory_limit)
        for what in ("selectors", "datasets", "classifiers"):
            if not getattr(self, what):
                raise ParameterError(
                    f"`{what}` of Experiment is empty. Give at least one."
                )

    def __repr__(self) -> str:
        return (
            f"Experiment({len(self.selectors)} selectors × {len(self.datasets)} data "
            f"sets · evaluated by {', '.join(self.classifiers)})"
        )

    def run(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        n_jobs: int | None = None,
        engine: Any = None,
        progress: bool | Callable[[CellProgress], None] = False,
    ) -> ExperimentResult:
        """Compute every cell that is not in the folder yet.

        Parameters
        ----------
        path : str or path, optional
            Folder in which finished cells are saved. Cells that are there already
            are not computed again; failed cells are tried again, those that
            exceeded a limit only if it was raised. By default nothing is saved.
        n_jobs : int, optional
            Cells at a time; -1 is one per core. Times are most comparable when
            measured one at a time.
        engine : distributed.Client or "dask", optional
            A Dask cluster that computes the cells, one per thread of its workers. They
            read the data from the folder, which must be on storage that all share.
        progress : bool or callable, default=False
            Show the progress, or call this with a `CellProgress` at every change.

        Returns
        -------
        ExperimentResult
            Scores, tables and statistics.
        """
        used = as_engine(engine)
        if used is not None and n_jobs is not None:
            raise ParameterError(
                "`n_jobs` is about processes on this machine, and `engine` computes "
                "cells elsewhere, one per thread of its workers. Leave one out."
            )
        n_processes = count_threads(n_jobs) if used is None else used.n_workers
        temporary = tempfile.TemporaryDirectory() if path is None else nullcontext(path)
        with temporary as folder:
            store = CellStore(folder)
            with store.locked(), cells_observed(progress) as observe:
                return Run(self, store, n_processes, observe, used).finish()

    def settings(self) -> dict[str, Any]:
        """All parameters as plain JSON."""
        return {
            "selectors": describe(self.selectors),
            "classifiers": describe(self.classifiers),
            "protocols": describe(self.protocols),
            "datasets": list(self.datasets),
            "seed": self.seed,
            "time_limit": self.time_limit,
            "memory_limit": self.memory_limit,
        }


def open_comparison(path: str | os.PathLike[str]) -> ExperimentResult:
    """What a comparison found, from the folder that `Experiment.run` was given.

    The values of the data are not there, which stability by "yu" needs.
    """
    store = CellStore(path)
    about = store.load()
    if about is None:
        raise RunError(f"{printable(path, limit=400)} is not a folder of a comparison.")
    index = about.pop("index", None) or {}
    cells = index.get("cells", ())
    loaded = [(store.load(f"cells/{cell['key']}"), cell) for cell in cells]
    records = [record | cell for record, cell in loaded if record is not None]
    if len(records) < len(cells) or not records:
        raise RunError(
            f"The comparison in {printable(path, limit=400)} is not complete, or was "
            "made by an older version. Run the same command again: it reads what is "
            "done, and computes the rest."
        )
    about = {name: about[name] for name in ("settings", "datasets", "provenance")}
    return ExperimentResult(records, index["classifiers"], about)


class CellStore:
    """The folder of a comparison, made when it is first locked.

    OUT/
    experiment.json     settings, data sets and provenance
    cells/KEY.json      a cell; the key is a checksum of everything that determines it
    data/               data sets, while processes need them
    lock                while a process writes
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.cells, self.data = self.path / "cells", self.path / "data"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other writers out; removes the data sets at the end."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise RunError(
                f"{printable(self.path)} cannot be the folder of a comparison: it, or "
                "something above it, is a file. Choose a folder that is new or empty."
            ) from None
        if not ((self.path / "experiment.json").exists() or self.cells.is_dir()):
            run_folder.refuse_other_files(self.path, ("lock", "."), "comparison")
        with run_folder.hold_lock(self.path / "lock"):
            shutil.rmtree(self.data, ignore_errors=True)
            self.cells.mkdir(exist_ok=True)
            try:
                yield
            finally:
                shutil.rmtree(self.data, ignore_errors=True)

    def load(self, name: str = "experiment") -> dict[str, Any] | None:
        """A record, by default of the settings; None if it is absent or damaged."""
        try:
            path = self.path / f"{name}.json"
            return run_folder.read_sealed(path, _FORMAT, _VERSION)[0]
        except RunError:
            return None

    def save(self, content: Mapping[str, Any], name: str = "experiment") -> None:
        """Write a record in one step."""
        head = {"format": _FORMAT, "version": _VERSION}
        run_folder.write_sealed(self.path / f"{name}.json", {**head, **content})


def name_protocols(
    protocol: Any, datasets: Mapping[str, Any]
) -> dict[str, SplitProtocol]:
    """The protocol of each data set, where one is given."""
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


@dataclass(slots=True, eq=False)
class PendingCell:
    """A cell that is still to be computed."""

    record: dict[str, Any]
    selector: Any
    classifiers: dict[str, Any]  # those without scores
    folder: Path  # of the data
    names: Sequence[str] | None  # of the features
    make_split: Callable[[], splits.Split]  # they are large, and made one at a time

    @property
    def name(self) -> str:
        """How it is shown."""
        return "{selector} on {dataset}, split {split}".format_map(self.record)


@dataclass(slots=True, eq=False)
class Run:
    """One run of an experiment in a folder."""

    experiment: Experiment
    store: CellStore
    n_jobs: int
    observe: Callable[[CellProgress], None]
    engine: Engine | None
    keys: dict[str, str] = field(init=False)  # of the classifiers
    records: list[dict[str, Any]] = field(default_factory=list)
    pending: list[PendingCell] = field(default_factory=list)
    facts: dict[str, dict[str, Any]] = field(default_factory=dict)
    at: CellProgress = field(default_factory=CellProgress)

    def __post_init__(self) -> None:
        classifiers = self.experiment.classifiers.items()
        self.keys = {name: key_of({"classifier": c}) for name, c in classifiers}

    def finish(self) -> ExperimentResult:
        """Compute the missing cells, and collect all results."""
        experiment = self.experiment
        for name, task in experiment.datasets.items():
            self._add_cells(name, task)
        about = {
            "settings": experiment.settings(),
            "datasets": self.facts,
            "provenance": provenance(self.n_jobs),
        }
        cells = [{name: record[name] for name in _PLACE} for record in self.records]
        index = {"cells": cells, "classifiers": self.keys}
        self.store.save(about | {"index": index})
        self.observe(self.at)
        limits = experiment.time_limit, experiment.memory_limit
        if self.engine is None:
            outcomes = run_jobs(self._started(), self.n_jobs, *limits)
        else:
            outcomes = run_on(self.engine, self._started(), *limits)
        with closing(outcomes):
            for cell, outcome in outcomes:
                self._save(cell, outcome)
        return ExperimentResult(self.records, self.keys, about, experiment.datasets)

    def _add_cells(self, dataset: str, task: Any) -> None:
        """Add the cells of a data set, whose data are written for the pending ones."""
        experiment = self.experiment
        try:
            rows = as_task(task).rows()
            shape, fingerprint = rows.shape, rows.fingerprint()
            protocol = experiment.protocols.get(dataset)
            protocol = protocol or splits.default_protocol(shape)
            split_keys = [
                key_of(protocol.split(i, shape, experiment.seed))
                for i in range(protocol.n_splits)
            ]
        except (DataError, DataTypeError, ParameterError) as error:
            raise type(error)(f"Data set {printable(dataset)}: {error}") from error
        warn_about_small_classes(dataset, shape, protocol)
        self.facts[dataset] = {
            "n_samples": len(shape.y),
            "n_features": shape.n_features,
            "n_classes": int(np.unique(shape.y).size),
            "target": rows.target,
            "fingerprint": fingerprint,
            "protocol": repr(protocol),
            "n_splits": protocol.n_splits,
        }
        folder, n_before = self.store.data / fingerprint, len(self.pending)
        for (index, split), (name, selector) in product(
            enumerate(split_keys), experiment.selectors.items()
        ):
            determined_by = {
                "featstream": [entrants.code_of(Run), entrants.checksum_of_library()],
                "selector": selector,
                "data": fingerprint,
                "split": [index, split],
                "seed": experiment.seed,
            }
            is_best = isinstance(selector, entrants.BestOf)
            label = selector.label if is_best else None
            place = (key_of(determined_by), dataset, name, index, label)
            record, todo = self._known(place[0])
            record |= zip(_PLACE, place, strict=True)
            self.records.append(record)
            if todo:
                make_split = partial(protocol.split, index, shape, experiment.seed)
                data = folder, rows.names, make_split
                self.pending.append(PendingCell(record, selector, todo, *data))
        if len(self.pending) > n_before:
            rows.write(folder)
        self.at.n_cells = len(self.records)
        self.at.n_kept = len(self.records) - len(self.pending)

    def _known(self, key: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """The saved record of a cell, and the classifiers still to be evaluated."""
        found = self.store.load(f"cells/{key}")
        if found is None or not self._is_final(found):
            found = {"selections": [], "scores": {}, "reason": None}
        elif found["reason"]:
            return found, {}
        scores = found["scores"].items()
        found["scores"] = {own: s for own, s in scores if self._is_final(s)}
        return found, {
            name: classifier
            for name, classifier in self.experiment.classifiers.items()
            if self.keys[name] not in found["scores"]
        }

    def _is_final(self, found: Mapping[str, Any]) -> bool:
        """Whether it is done, or exceeded a limit that has not been raised since."""
        experiment, exceeded = self.experiment, (found.get("limit") or {}).items()
        now = {"seconds": experiment.time_limit, "memory": experiment.memory_limit}
        return not found.get("reason") or any(
            (now[kind] or math.inf) <= value for kind, value in exceeded
        )

    def _started(self) -> Iterator[tuple[PendingCell, Job]]:
        for cell in tuple(self.pending):
            self.at.running.append(cell.name)
            self.observe(self.at)
            seed = splits.random_int(self.experiment.seed, cell.record["split"])
            how = cell.make_split(), cell.classifiers, seed, cell.record["selections"]
            yield cell, Job(cell.selector, cell.folder, *how)

    def _save(self, cell: PendingCell, outcome: CellOutcome) -> None:
        """Save a finished cell."""
        record, names = cell.record, cell.names
        for field_name in ("selections", "reason", "limit", "warnings"):
            record[field_name] = getattr(outcome, field_name)
        record["provenance"] = provenance(self.n_jobs)
        for name, scores in outcome.scores.items():
            record["scores"][self.keys[name]] = {"classifier": name, **scores}
        if names is not None:
            for selection in record["selections"]:
                selection["names"] = [names[i] for i in selection["selected"]]
            if outcome.reason and entrants.library_of(cell.selector) == "featstream":
                record["reason"] = FEATURE.sub(
                    lambda found: f"Feature {printable(names[int(found[1])])}",
                    outcome.reason,
                )
        self.store.save(record, f"cells/{record['key']}")
        self.at.running.remove(cell.name)
        self.at.n_done += 1
        if outcome.reason is not None:
            self.at.n_failed += 1
            self.at.last_failure = f"{cell.name}: {record['reason']}"
        self.observe(self.at)
        self.pending.remove(cell)
        if all(other.folder != cell.folder for other in self.pending):
            shutil.rmtree(cell.folder, ignore_errors=True)


def warn_about_small_classes(
    dataset: str, shape: TaskShape, protocol: SplitProtocol
) -> None:
    """Warn that some folds will lack a class."""
    labels, sizes = np.unique(shape.y, return_counts=True)
    if isinstance(protocol, CrossValidation) and sizes.min() < protocol.n_folds:
        label = printable(labels[sizes.argmin()].item())
        warnings.warn(
            f"Data set {printable(dataset)}: class {label} has {sizes.min()} rows for "
            f"{protocol.n_folds} folds. Some folds do not test on it.",
            FeatstreamWarning,
            stacklevel=2,
        )


def provenance(n_jobs: int) -> dict[str, Any]:
    """Date, versions and machine."""
    versions = {
        name: getattr(importlib.import_module(name), "__version__", None)
        for name in _PACKAGES
    }
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {"python": platform.python_version(), **versions},
        "platform": platform.platform(),
        "n_cores": os.cpu_count(),
        "n_jobs": n_jobs,
    }
