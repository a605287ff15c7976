"""A comparison of selectors: cells, each in a process, kept on disk as they end."""

from __future__ import annotations

import importlib
import math
import os
import platform
import re
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
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
from featstream.evaluation.cell import FEATURE, Job, is_ours
from featstream.evaluation.cell_cache import (
    CellStore,
    checksum_of_library,
    code_of,
    describe,
    key_of,
)
from featstream.evaluation.entrants import (
    BestOf,
    by_name,
    name_classifiers,
    name_selectors,
)
from featstream.evaluation.results import ExperimentResult
from featstream.evaluation.splits import (
    CrossValidation,
    SplitProtocol,
    TaskShape,
    default_protocol,
    random_int,
)
from featstream.evaluation.tasks import as_task
from featstream.evaluation.worker import CellOutcome, run_jobs, run_on
from featstream.parallel import count_threads
from featstream.progress import CellProgress, cells_observed

_PACKAGES = ("featstream", "numpy", "scipy", "sklearn", "numba")


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
        self.selectors = name_selectors(selectors)
        self.datasets = name_datasets(datasets)
        self.classifiers = name_classifiers(classifiers)
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
            "selectors": {n: describe(s) for n, s in self.selectors.items()},
            "classifiers": {n: describe(c) for n, c in self.classifiers.items()},
            "protocols": {n: describe(p) for n, p in self.protocols.items()},
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
    about = store.about()
    if about is None:
        raise RunError(f"{printable(path, limit=400)} is not a folder of a comparison.")
    index = about.pop("index", None)
    cells = (index or {}).get("cells", ())
    loaded = [(store.load(cell["key"]), cell) for cell in cells]
    records = [record | cell for record, cell in loaded if record is not None]
    if len(records) < len(cells) or not records:
        raise RunError(
            f"The comparison in {printable(path, limit=400)} is not complete, or was "
            "made by an older version. Run the same command again: it reads what is "
            "done, and computes the rest."
        )
    settings = about["settings"]
    return ExperimentResult(
        records,
        selectors=list(settings["selectors"]),
        datasets=settings["datasets"],
        classifiers=index["classifiers"],
        about={name: about[name] for name in ("settings", "datasets", "provenance")},
    )


def name_datasets(datasets: Any) -> dict[str, Any]:
    """Data sets by name; files are named by their file name."""

    def name_of(data: Any) -> str:
        if not isinstance(data, str | os.PathLike):
            raise ParameterError(
                "Data sets that are not files need names: datasets={'mine': (X, y)}. "
                f"Got {type(data).__name__}."
            )
        return Path(data).name.split(".")[0] or str(data)

    return by_name("data sets", datasets, name_of)


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


@dataclass(slots=True)
class PendingCell:
    """A cell that is still to be computed."""

    key: str
    record: dict[str, Any]
    shape: TaskShape
    protocol: SplitProtocol
    selector: Any
    classifiers: dict[str, Any]
    folder: Path
    seed: int

    @property
    def name(self) -> str:
        """How it is shown."""
        record = self.record
        return f"{record['selector']} on {record['dataset']}, split {record['split']}"

    @property
    def job(self) -> Job:
        """What the process gets."""
        index = self.record["split"]
        return Job(
            self.selector,
            self.folder,
            self.protocol.split(index, self.shape, self.seed),
            self.classifiers,
            random_int(self.seed, index),
            self.record["selections"] or None,
        )


class Run:
    """One run of an experiment in a folder."""

    def __init__(
        self,
        experiment: Experiment,
        store: CellStore,
        n_jobs: int,
        observe: Callable[[CellProgress], None],
        engine: Engine | None = None,
    ) -> None:
        self.experiment, self.store = experiment, store
        self.n_jobs, self.observe, self.engine = n_jobs, observe, engine
        self.keys = {
            name: key_of({"classifier": describe(classifier)})
            for name, classifier in experiment.classifiers.items()
        }
        self.records: list[dict[str, Any]] = []
        self.cells: list[dict[str, Any]] = []  # where each record is, and belongs
        self.facts: dict[str, dict[str, Any]] = {}
        self.names: dict[str, list[str] | None] = {}
        self.left: dict[Path, int] = {}
        self.at = CellProgress()

    def finish(self) -> ExperimentResult:
        """Compute the missing cells, and collect all results."""
        experiment = self.experiment
        pending = [
            cell
            for name, task in experiment.datasets.items()
            for cell in self._cells_of(name, task)
        ]
        about = {
            "settings": experiment.settings(),
            "datasets": self.facts,
            "provenance": provenance(self.n_jobs),
        }
        index = {"cells": self.cells, "classifiers": self.keys}
        self.store.save_about(about | {"index": index})
        self.observe(self.at)
        limits = experiment.time_limit, experiment.memory_limit
        cells = self._started(pending)
        if self.engine is None:
            outcomes = run_jobs(cells, self.n_jobs, *limits)
        else:
            outcomes = run_on(self.engine, cells, *limits)
        with closing(outcomes):
            for outcome in outcomes:
                self._save(outcome)
        return ExperimentResult(
            self.records,
            selectors=list(experiment.selectors),
            datasets=list(experiment.datasets),
            classifiers=self.keys,
            about=about,
            tasks=experiment.datasets,
        )

    def _cells_of(self, dataset: str, task: Any) -> Iterator[PendingCell]:
        """The pending cells of a data set, for which its data are written to disk."""
        experiment = self.experiment
        try:
            rows = as_task(task).rows()
            shape, fingerprint = rows.shape, rows.fingerprint()
            protocol = experiment.protocols.get(dataset) or default_protocol(shape)
            splits = [
                key_of(describe(protocol.split(i, shape, experiment.seed)))
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
        self.names[dataset] = rows.names
        folder = self.store.data_folder(fingerprint)
        pending = []
        for index, split in enumerate(splits):
            for name, selector in experiment.selectors.items():
                key = self._key(selector, fingerprint, index, split)
                record, todo = self._known(key)
                place = {"dataset": dataset, "selector": name, "split": index}
                place["label"] = (
                    selector.label if isinstance(selector, BestOf) else None
                )
                record |= place
                self.records.append(record)
                self.cells.append({"key": key, **place})
                if todo:
                    how = protocol, selector, todo, folder, experiment.seed
                    pending.append(PendingCell(key, record, shape, *how))
        self.at.n_cells += len(splits) * len(experiment.selectors)
        self.at.n_kept += len(splits) * len(experiment.selectors) - len(pending)
        if pending:
            rows.write(folder)
            self.left[folder] = self.left.get(folder, 0) + len(pending)
        yield from pending

    def _key(self, selector: Any, fingerprint: str, index: int, split: str) -> str:
        """Checksum of everything that determines what a cell selects."""
        return key_of(
            {
                "featstream": [code_of(Run), checksum_of_library()],
                "selector": describe(selector),
                "data": fingerprint,
                "split": [index, split],
                "seed": self.experiment.seed,
            }
        )

    def _known(self, key: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """The saved record of a cell, and the classifiers still to be evaluated."""
        found = self.store.load(key)
        classifiers = self.experiment.classifiers
        if found is None or (found["reason"] and not self._is_final(found)):
            return {"selections": [], "scores": {}, "reason": None}, dict(classifiers)
        if found["reason"]:
            return found, {}
        for own, scores in list(found["scores"].items()):
            if scores.get("reason") and not self._is_final(scores):
                del found["scores"][own]
        todo = {
            n: c for n, c in classifiers.items() if self.keys[n] not in found["scores"]
        }
        return found, todo

    def _is_final(self, failed: Mapping[str, Any]) -> bool:
        """Whether it exceeded a limit that has not been raised since."""
        now = {
            "seconds": self.experiment.time_limit,
            "memory": self.experiment.memory_limit,
        }
        exceeded = (failed.get("limit") or {}).items()
        return any((now[kind] or math.inf) <= value for kind, value in exceeded)

    def _started(self, pending: Iterable[PendingCell]) -> Iterator[PendingCell]:
        for cell in pending:
            self.at.running.append(cell.name)
            self.observe(self.at)
            yield cell

    def _save(self, outcome: CellOutcome) -> None:
        """Save a finished cell."""
        cell: PendingCell = outcome.cell
        record, names = cell.record, self.names[cell.record["dataset"]]
        if outcome.selections:
            record["selections"] = outcome.selections
            for selection in outcome.selections:
                if names is not None:
                    selection["names"] = [names[i] for i in selection["selected"]]
        record["reason"], record["limit"] = outcome.reason, outcome.limit
        if outcome.reason and names is not None and is_ours(cell.selector):
            record["reason"] = with_names(outcome.reason, names)
        record["warnings"] = outcome.warnings
        for name, scores in outcome.scores.items():
            record["scores"][self.keys[name]] = {"classifier": name, **scores}
        record["provenance"] = provenance(self.n_jobs)
        self.store.save(cell.key, record)
        self.at.running.remove(cell.name)
        self.at.n_done += 1
        if outcome.reason is not None:
            self.at.n_failed += 1
            self.at.last_failure = f"{cell.name}: {record['reason']}"
        self.observe(self.at)
        self.left[cell.folder] -= 1
        if not self.left[cell.folder]:
            self.store.drop_data(cell.folder.name)


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


def with_names(reason: str, names: list[str]) -> str:
    """A reason with the names of features, which selectors do not get."""

    def name(found: re.Match[str]) -> str:
        return f"Feature {printable(names[int(found[1])])}"

    return FEATURE.sub(name, reason)


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
