"""The cells of an experiment: which are known, which are to do, what came of them."""

from __future__ import annotations

import hashlib
import importlib
import os
import platform
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from featstream.errors import (
    DataError,
    DataTypeError,
    FeatstreamWarning,
    ParameterError,
    printable,
)
from featstream.evaluation.cell import FEATURE, Job, is_ours
from featstream.evaluation.cell_cache import CellStore, key_of
from featstream.evaluation.display import CellProgress
from featstream.evaluation.entrants import (
    BestOf,
    checksum_of_library,
    code_of,
    describe,
)
from featstream.evaluation.results import ExperimentResult
from featstream.evaluation.splits import (
    CrossValidation,
    Split,
    SplitProtocol,
    TaskShape,
    default_protocol,
    random_int,
)
from featstream.evaluation.tasks import as_task
from featstream.evaluation.worker import Outcome, run_jobs

if TYPE_CHECKING:
    from featstream.evaluation.experiment import Experiment

__all__ = ["Cell", "Run"]

_PACKAGES = ("featstream", "numpy", "scipy", "sklearn", "numba")


@dataclass(slots=True)
class Cell:
    """A cell that is to be worked on."""

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
        """As people call it."""
        place = self.record
        return f"{place['selector']} on {place['dataset']}, split {place['split']}"

    @property
    def job(self) -> Job:
        """What a process is asked to do."""
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
    ) -> None:
        self.experiment, self.store = experiment, store
        self.n_jobs, self.observe = n_jobs, observe
        self.keys = {
            name: key_of({"classifier": describe(classifier)})
            for name, classifier in experiment.classifiers.items()
        }
        self.records: list[dict[str, Any]] = []
        self.facts: dict[str, dict[str, Any]] = {}
        self.names: dict[str, list[str] | None] = {}
        self.left: dict[Path, int] = {}
        self.at = CellProgress()

    def finish(self) -> ExperimentResult:
        """Do what is left, and gather all."""
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
        self.store.save_about(about)
        self._tell()
        outcomes = run_jobs(
            self._started(pending),
            n_jobs=self.n_jobs,
            time_limit=experiment.time_limit,
            memory_limit=experiment.memory_limit,
        )
        with closing(outcomes):
            for outcome in outcomes:
                self._take(outcome)
        return ExperimentResult(
            self.records,
            selectors=list(experiment.selectors),
            datasets=list(experiment.datasets),
            classifiers=self.keys,
            about=about,
            tasks=experiment.datasets,
        )

    def _cells_of(self, dataset: str, task: Any) -> Iterator[Cell]:
        """The cells of a data set that are still to do; the data are written."""
        experiment = self.experiment
        try:
            rows = as_task(task).rows()
            shape, fingerprint = rows.shape, rows.fingerprint()
            protocol = experiment.protocols.get(dataset) or default_protocol(shape)
            splits = [
                checksum_of(protocol.split(i, shape, experiment.seed))
                for i in range(protocol.n_splits)
            ]
        except (DataError, DataTypeError, ParameterError) as error:
            raise type(error)(f"Data set {printable(dataset)}: {error}") from error
        warn_of_small_classes(dataset, shape, protocol)
        self.facts[dataset] = {
            "n_samples": len(shape.y),
            "n_features": shape.n_features,
            "n_classes": int(np.unique(shape.y).size),
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
                record |= {"dataset": dataset, "selector": name, "split": index}
                is_best_of = isinstance(selector, BestOf)
                record["label"] = selector.label if is_best_of else None
                self.records.append(record)
                if todo:
                    place = protocol, selector, todo, folder, experiment.seed
                    pending.append(Cell(key, record, shape, *place))
        self.at.n_cells += len(splits) * len(experiment.selectors)
        self.at.n_kept += len(splits) * len(experiment.selectors) - len(pending)
        if pending:
            rows.write(folder)
            self.left[folder] = self.left.get(folder, 0) + len(pending)
        yield from pending

    def _key(self, selector: Any, fingerprint: str, index: int, split: str) -> str:
        """Checksum of all that decides what a cell selects."""
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
        """What is known of a cell, and the classifiers that are still to judge."""
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
        """Whether it failed by a limit that has not been raised since."""
        limits = {
            "seconds": self.experiment.time_limit,
            "memory": self.experiment.memory_limit,
        }
        for kind, value in (failed.get("limit") or {}).items():
            now = limits[kind]
            if now is not None and now <= value:
                return True
        return False

    def _started(self, pending: Iterable[Cell]) -> Iterator[Cell]:
        for cell in pending:
            self.at.running.append(cell.name)
            self._tell()
            yield cell

    def _take(self, outcome: Outcome) -> None:
        """Keep what came of a cell."""
        cell: Cell = outcome.cell
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
        self._tell()
        self.left[cell.folder] -= 1
        if not self.left[cell.folder]:
            self.store.drop_data(cell.folder.name)

    def _tell(self) -> None:
        self.observe(self.at)


def warn_of_small_classes(
    dataset: str, shape: TaskShape, protocol: SplitProtocol
) -> None:
    """Say that some folds will lack a class."""
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
    """A reason that calls a feature by its name, which selectors are not told."""

    def name(found: re.Match[str]) -> str:
        return f"Feature {printable(names[int(found[1])])}"

    return FEATURE.sub(name, reason)


def checksum_of(split: Split) -> str:
    """Of the rows, the order and the groups."""
    digest = hashlib.sha256()
    for part in (split.train, split.test, split.order, split.groups):
        digest.update(b"none" if part is None else np.ascontiguousarray(part).tobytes())
        digest.update(b"|")
    return digest.hexdigest()


def provenance(n_jobs: int) -> dict[str, Any]:
    """When, where and with what."""
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
