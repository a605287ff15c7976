"""One cell of a comparison: a selector, a data set, a split; runs in a process.

The selector gets the training rows and nothing else. Results are sent as plain
dictionaries, one by one, so that a classifier that takes too long does not lose the
selection.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import StratifiedKFold
from threadpoolctl import threadpool_limits

from featstream.errors import DataError, ParameterError
from featstream.evaluation.entrants import BestOf, library_of, takes_groups
from featstream.evaluation.metrics import evaluate
from featstream.evaluation.splits import Split
from featstream.evaluation.tasks import Rows, map_rows
from featstream.parallel import measured
from featstream.protocols import FloatArray, IntArray

Say = Callable[..., None]
"""Sends a message: its kind, and what it is about."""

FEATURE = re.compile(r"\bFeature 'x(\d+)'")
"""A feature without a name in the errors of our own selectors."""

_ROW = re.compile(r"(?<= at row )\d+")
_WARM_ROWS, _WARM_COLUMNS = 100, 50
_INNER_FOLDS = 5
_MAX_REASON = 300


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """What a process computes."""

    selector: Any  # a selector or BestOf
    folder: Path  # of the data set, for `map_rows`
    split: Split
    classifiers: dict[str, Any]
    seed: int  # for selectors and classifiers without a seed of their own
    known: Sequence[dict[str, Any]]  # selections made before


@dataclass(frozen=True, slots=True, eq=False)
class TrainingPart:
    """What a selector sees: features in order of arrival, training rows only."""

    X: Any
    y: NDArray[Any]
    order: IntArray | None
    groups: NDArray[Any] | None
    origin: IntArray  # of each row in the data set

    @classmethod
    def of(cls, rows: Rows, split: Split) -> TrainingPart:
        """The training rows of a split, with groups side by side."""
        order, labels = split.order, split.groups
        if labels is None and rows.groups is not None:
            labels = rows.groups if order is None else rows.groups[order]
            # Groups arrive one after the other, in order of their first feature.
            _, firsts, codes = np.unique(labels, return_index=True, return_inverse=True)
            together = np.argsort(firsts[codes], kind="stable")
            order = together if order is None else order[together]
            labels = labels[together]
        X = rows.X[split.train]
        if order is not None:
            X = X[:, order]
        return cls(X, rows.y[split.train], order, labels, split.train)

    def options(self, selector: Any, n_features: int | None = None) -> dict[str, Any]:
        """What ``fit`` takes besides the values of the first features."""
        if self.groups is None or not takes_groups(selector):
            return {}
        return {"groups": self.groups[:n_features]}

    def describe(self, arrivals: IntArray) -> dict[str, Any]:
        """A selection with features numbered as in the data set, and its size."""
        features = arrivals if self.order is None else self.order[arrivals]
        n_groups = None if self.groups is None else len(set(self.groups[arrivals]))
        sizes = {"n_features": features.size, "n_groups": n_groups}
        return {"selected": features.tolist(), **sizes}

    def in_terms_of_data(self, text: str) -> str:
        """An error message with features and rows numbered as in the data set."""
        if self.order is not None:
            order = self.order
            text = FEATURE.sub(lambda found: f"Feature 'x{order[int(found[1])]}'", text)
        return _ROW.sub(lambda found: str(self.origin[int(found[0])]), text)


def work(job: Job, say: Say) -> None:
    """Select and classify, and send each result as it is known."""
    with threadpool_limits(1), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rows = map_rows(job.folder)
        part = TrainingPart.of(rows, job.split)
        found = {selection["value"]: selection for selection in job.known}
        entry, wanted = job.selector, set(variants_of(job.selector))
        chosen: dict[str, Any] = {}  # the value that each classifier takes
        is_chosen_first = isinstance(entry, BestOf) and entry.judged_on == "training"
        if is_chosen_first or wanted - found.keys():
            warm_up(entry, part)
        if is_chosen_first:
            chosen = choose_within_training(job, rows, say)
            wanted = set(chosen.values())
        for selection in select_each(job, wanted - found.keys(), part, say):
            found[selection["value"]] = selection
            say("selected", selection)
        for name, classifier in job.classifiers.items():
            say("step", name)
            scored: dict[tuple[int, ...], dict[str, Any]] = {}
            for selection in [found[chosen[name]]] if chosen else found.values():
                features = tuple(selection["selected"])
                if features not in scored:  # several values may select the same
                    scores = score_selection(selection, classifier, rows, job)
                    scored[features] = scores
            best = max(scored.values(), key=lambda scores: scores.get("accuracy", -1.0))
            say("scored", name, best)
    noted = dict.fromkeys(f"{w.category.__name__}: {w.message}" for w in caught)
    say("done", [text[:_MAX_REASON] for text in noted][:20])


def choose_within_training(job: Job, rows: Rows, say: Say) -> dict[str, Any]:
    """Each classifier's best value, by cross-validation within the training rows."""
    all_train = job.split.train
    y = rows.y[all_train]
    largest = np.unique(y, return_counts=True)[1].max()
    if largest < _INNER_FOLDS:
        raise DataError(
            f"BestOf chooses by {_INNER_FOLDS} folds of the training rows, and no "
            f"class has more than {largest} there. Give more rows, or the selector "
            "with one value instead of BestOf."
        )
    folds = StratifiedKFold(_INNER_FOLDS, shuffle=True, random_state=job.seed)
    labels = list(variants_of(job.selector))
    accuracy = {name: np.zeros(len(labels)) for name in job.classifiers}
    for train, test in folds.split(np.zeros(len(y)), y):
        split = replace(job.split, train=all_train[train], test=all_train[test])
        inner = replace(job, split=split)
        part = TrainingPart.of(rows, split)
        for i, selection in enumerate(select_each(inner, set(labels), part, say)):
            for name, classifier in job.classifiers.items():
                say("step", name)
                scores = score_selection(selection, classifier, rows, inner)
                # Why a classifier fails will be recorded in the final evaluation.
                accuracy[name][i] += scores.get("accuracy", 0.0)
    return {name: labels[int(np.argmax(sums))] for name, sums in accuracy.items()}


def variants_of(selector: Any) -> dict[str | None, Any]:
    """A selector by the label None, or those of `BestOf` by their values."""
    is_several = isinstance(selector, BestOf)
    return dict(selector.variants()) if is_several else {None: selector}


def select_each(
    job: Job, wanted: Set[str | None], part: TrainingPart, say: Say
) -> Iterator[dict[str, Any]]:
    """The selections of the wanted variants, in order; nested ones by a single fit."""
    entry, largest = job.selector, None
    is_nested = isinstance(entry, BestOf) and entry.is_nested
    for label, selector in variants_of(entry).items():
        if label not in wanted:
            continue
        if largest is None or not is_nested:
            say("step", "selection")
            size = {entry.parameter: max(entry.values)} if is_nested else {}
            largest = select(clone(selector).set_params(**size), part, job.seed)
        arrivals, costs = largest
        if is_nested:
            arrivals = arrivals[: selector.get_params()[entry.parameter]]
        yield part.describe(arrivals) | costs | {"value": label}


def select(
    selector: Any, part: TrainingPart, seed: int
) -> tuple[IntArray, dict[str, Any]]:
    """Fit a selector on the training rows; its selection, and time and memory."""
    selector = seeded(selector, seed)
    try:
        with measured() as cost:
            selector.fit(part.X, part.y, **part.options(selector))
    except DataError as error:
        if library_of(selector) != "featstream":
            raise
        raise DataError(part.in_terms_of_data(str(error))) from error
    return selected_by(selector), {
        "seconds": cost.seconds,
        "memory": cost.memory,
        "measure": getattr(selector, "measure_", None),
    }


def selected_by(selector: Any) -> IntArray:
    """Columns that a fitted selector keeps, in its order where it has one."""
    if hasattr(selector, "selected_"):
        return np.asarray(selector.selected_, np.int64)
    if hasattr(selector, "get_support"):
        return np.asarray(selector.get_support(indices=True), np.int64)
    if hasattr(selector, "support_"):
        return np.flatnonzero(selector.support_).astype(np.int64)
    raise ParameterError(
        f"{type(selector).__name__} has neither get_support() nor support_, so its "
        "selection is unknown. Give a selector, not a transformer or pipeline."
    )


def warm_up(selector: Any, part: TrainingPart) -> None:
    """Let a selector of ours load its kernels, on some of the training rows."""
    selector, *_ = variants_of(selector).values()
    if library_of(selector) != "featstream":
        return
    classes = np.unique(part.y)
    n_each = math.ceil(_WARM_ROWS / classes.size)
    first = [np.flatnonzero(part.y == label)[:n_each] for label in classes]
    rows = np.sort(np.concatenate(first))
    # If it fails here it fails again later, where the error is recorded.
    with suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options = part.options(selector, _WARM_COLUMNS)
        clone(selector).fit(part.X[:, :_WARM_COLUMNS][rows], part.y[rows], **options)


def score_selection(
    selection: dict[str, Any], classifier: Any, rows: Rows, job: Job
) -> dict[str, Any]:
    """Scores of a classifier that sees only the selected features, or why none."""
    train, test, columns = job.split.train, job.split.test, selection["selected"]
    about = {"value": selection["value"]}
    if not test.size:
        return {"reason": "there are no test rows"} | about
    if not columns:
        classifier = DummyClassifier(strategy="most_frequent")
        about["note"] = "no feature was selected; scored as the majority class"
    try:
        fitted = seeded(classifier, job.seed)
        fitted.fit(take(rows.X, train, columns), rows.y[train])
        scores = evaluate(fitted, take(rows.X, test, columns), rows.y[test])
    except Exception as error:
        return {"reason": reason_of(error), "value": selection["value"]}
    return {k: v if math.isfinite(v) else None for k, v in scores.items()} | about


def take(X: Any, rows: IntArray, columns: Any) -> FloatArray:
    """Some rows of some columns, for a classifier."""
    taken = X[np.ix_(rows, columns)]
    # Nearest neighbours break ties differently for integers: all get float64.
    return np.asarray(taken.toarray() if sparse.issparse(taken) else taken, np.float64)


def seeded(estimator: Any, seed: int) -> Any:
    """A clone with every open ``random_state`` set."""
    fresh = clone(estimator)
    open_ones = {
        name: seed
        for name, value in fresh.get_params().items()
        if name.rpartition("__")[2] == "random_state" and value is None
    }
    return fresh.set_params(**open_ones)


def reason_of(error: BaseException) -> str:
    """The first line of an error, with its class."""
    if isinstance(error, MemoryError):
        return "ran out of memory"
    text = next(iter(str(error).strip().splitlines()), "")
    reason = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return reason if len(reason) <= _MAX_REASON else reason[: _MAX_REASON - 1] + "…"
