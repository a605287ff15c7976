"""The experiments behind the paper's tables and figures, each run once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sklearn.dummy import DummyClassifier

from featstream.errors import DataError
from featstream.evaluation import (
    CellProgress,
    Experiment,
    ExperimentResult,
    SplitProtocol,
    Task,
    cells_observed,
)
from featstream.paper.datasets import Benchmark, available_datasets, load_dataset
from featstream.paper.exhibits import CLASSIFIERS, Design, Exhibit
from featstream.paper.findings import About, Findings
from featstream.paper.methods import (
    PAPER_CLASSIFIERS,
    FirstSplit,
    protocol_for,
    selector_for,
)

_MOST_REPEATS = {"orders": 30, "subsamples": 30}


@dataclass(frozen=True, slots=True)
class Need:
    """Methods to run on a data set by a design, and the classifiers."""

    dataset: str
    design: Design
    methods: tuple[str, ...]
    classifiers: tuple[str, ...]


class PaperStudy:
    """The experiments behind some of the paper's tables and figures.

    Parameters
    ----------
    exhibits : iterable of Exhibit
        What is wanted.
    data : str or path-like, optional
        Folder of the data sets; by default that in ``FEATSTREAM_DATA``.
    seed, time_limit, memory_limit
        As of `Experiment`.
    is_quick : bool, default=False
        Repeat everything three times, instead of ten or thirty.

    Examples
    --------
    >>> import tempfile
    >>> from featstream.paper.exhibits import find
    >>> with tempfile.TemporaryDirectory() as empty:
    ...     study = PaperStudy([find("table3")], empty)
    >>> study.needs
    ()
    """

    def __init__(
        self,
        exhibits: Iterable[Exhibit],
        data: str | os.PathLike[str] | None = None,
        *,
        seed: int = 0,
        time_limit: float | None = 60.0,
        memory_limit: str | int | None = None,
        is_quick: bool = False,
    ) -> None:
        self.exhibits = tuple(exhibits)
        self.data = data
        self.limits: dict[str, Any] = {
            "time_limit": time_limit,
            "memory_limit": memory_limit,
        }
        self.seed, self.is_quick = seed, is_quick
        self.available = available_datasets(data)
        self.needs = tuple(gather_needs(self.exhibits, self.available))

    def run(
        self,
        folder: str | os.PathLike[str],
        *,
        n_jobs: int | None = None,
        progress: bool | Callable[[CellProgress], None] = False,
    ) -> Findings:
        """Run what is not in the folder yet; options are those of `Experiment.run`."""
        findings = Findings(self.available, is_quick=self.is_quick, **self.limits)
        with cells_observed(progress) as observe:
            tally = _Tally(self.needs, observe)
            for dataset in dict.fromkeys(need.dataset for need in self.needs):
                needs = [need for need in self.needs if need.dataset == dataset]
                try:
                    data = load_dataset(dataset, self.data)
                    findings.about[dataset] = About.of(data)
                    for need in needs:
                        self._run_one(need, data, Path(folder), n_jobs, findings, tally)
                except DataError as error:  # the others can still be run
                    findings.leave_out(dataset, str(error))
                    for need in needs:
                        tally.begin(need, 0)
        return findings

    def _run_one(
        self,
        need: Need,
        data: Benchmark,
        folder: Path,
        n_jobs: int | None,
        findings: Findings,
        tally: _Tally,
    ) -> None:
        """Run all methods once, then repeat those within the time limit.

        A method that exceeds the limit in the first run is a dash in the tables.
        """
        protocol = protocol_for(data, need.design, is_quick=self.is_quick)
        selectors = {m: selector_for(m, data, need.design) for m in need.methods}
        tally.begin(need, protocol.n_splits * len(selectors))

        def run(rows: SplitProtocol) -> ExperimentResult:
            experiment = self._experiment(need, data, selectors, rows)
            return experiment.run(folder, n_jobs=n_jobs, progress=tally.update)

        if protocol.n_splits > 1:
            failures = run(FirstSplit(protocol)).failures()
            for _, method, _, reason in failures:
                if reason.startswith("exceeded"):
                    reason += f" in the first of {protocol.n_splits} runs"
                    findings.given_up[need.design, data.name, method] = reason
                    del selectors[method]
            n_given_up = len(need.methods) - len(selectors)
            tally.resume(need, protocol.n_splits * len(selectors), n_given_up)
        if not selectors:
            return
        result = run(protocol)
        if need.design == "subsamples":
            findings.add_stability(result, data)
        findings.results[need.design, data.name] = result

    def _experiment(
        self,
        need: Need,
        data: Benchmark,
        selectors: dict[str, Any],
        protocol: SplitProtocol,
    ) -> Experiment:
        classifiers = {
            name.lower(): PAPER_CLASSIFIERS[name] for name in need.classifiers
        }
        return Experiment(
            selectors,
            {data.name: Task(data.X, data.y, data.X_test, data.y_test)},
            classifiers or {"nobody": DummyClassifier()},
            protocol,
            seed=self.seed,
            **self.limits,
        )


def gather_needs(
    exhibits: Iterable[Exhibit], available: Iterable[str]
) -> Iterator[Need]:
    """What the exhibits need of the available data sets, each once."""
    methods: dict[tuple[str, Design], dict[str, None]] = {}
    classifiers: dict[tuple[str, Design], set[str]] = {}
    present = set(available)
    for exhibit in exhibits:
        for dataset in exhibit.datasets:
            if dataset in present:
                place = dataset, exhibit.design
                methods.setdefault(place, {}).update(dict.fromkeys(exhibit.methods))
                classifiers.setdefault(place, set()).update(exhibit.classifiers)
    for (dataset, design), chosen in methods.items():
        own = classifiers[dataset, design]
        yield Need(
            dataset, design, tuple(chosen), tuple(c for c in CLASSIFIERS if c in own)
        )


class _Tally:
    """One count of cells over many experiments."""

    def __init__(
        self, needs: Iterable[Need], observe: Callable[[CellProgress], None]
    ) -> None:
        self._observe = observe
        self._cells = {
            need: _MOST_REPEATS.get(need.design, 10) * len(need.methods)
            for need in needs
        }
        self._before = self._last = self._trial = CellProgress()

    def begin(self, need: Need, n_cells: int) -> None:
        """Set the number of cells, and keep the counts so far."""
        self._cells[need] = n_cells
        self._before, self._trial = self._last, CellProgress()

    def resume(self, need: Need, n_cells: int, n_given_up: int) -> None:
        """Continue after a trial, whose cells are found done, except those given up."""
        self._cells[need] = n_cells + n_given_up
        n_done = self._last.n_done - self._before.n_done
        self._trial = CellProgress(
            n_kept=n_given_up - n_done, n_done=n_done, n_failed=n_given_up
        )

    def update(self, at: CellProgress) -> None:
        """Add one experiment's progress to that of those before."""
        before, trial = self._before, self._trial
        self._last = CellProgress(
            n_cells=sum(self._cells.values()),
            # Cells that failed in the trial, but not by a limit, are done again.
            n_kept=before.n_kept + max(0, trial.n_kept + at.n_kept),
            n_done=before.n_done + trial.n_done + at.n_done,
            n_failed=before.n_failed + trial.n_failed + at.n_failed,
            running=list(at.running),
            last_failure=at.last_failure or before.last_failure,
        )
        self._observe(self._last)
