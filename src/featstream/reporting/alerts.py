"""What a reader of a selection should know: alerts with codes and advice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from featstream.protocols import Fate
from featstream.reporting.history import History, p_values, size_curve

_RARE_CLASS = 0.1
_FEW_ROWS = 10
_MANY_CONSTANT = 0.05
_NEARLY_ALL = 0.85
_GROWTH = 1.1
_MANY_TIES = 0.1


class Alert(NamedTuple):
    """Something that may make a selection worth less than it seems.

    ``code`` is a short name that stays the same. A selection with a serious alert
    should not be used before it is looked into.
    """

    code: str
    title: str
    text: str
    advice: str
    is_serious: bool = False


def find_alerts(history: History) -> list[Alert]:
    """All alerts about a selection, the serious ones first."""
    checks = _run, _classes, _constant_columns, _growth, _ties, _threshold, _chance
    found = [alert for check in checks for alert in check(history)]
    return sorted(found, key=lambda alert: not alert.is_serious)


def _run(history: History) -> Iterator[Alert]:
    n_features = history.result.n_features
    if history.run is not None and history.run.unfinished is not None:
        yield Alert(
            "unfinished",
            "The run is not finished",
            f"It stopped after {n_features:,} features, in the middle of its data.",
            f"Continue it: featstream resume {history.run.folder.path}",
            is_serious=True,
        )
    if n_features and not len(history.result):
        yield Alert(
            "nothing-kept",
            "No feature was kept",
            f"None of {n_features:,} features passed the threshold.",
            "Check the target and the order of the rows. If they are right, lower the "
            "threshold, or raise alpha.",
            is_serious=True,
        )


def _classes(history: History) -> Iterator[Alert]:
    classes = history.classes or {}
    if len(classes) < 2:
        return
    label, size = min(classes.items(), key=lambda item: item[1])
    n = sum(classes.values())
    if size / n < _RARE_CLASS or size < _FEW_ROWS:
        advice = "Judge the selection by balanced accuracy or AUC"
        if len(classes) == 2:
            advice += f": plain accuracy is {1 - size / n:.1%} without any feature"
        yield Alert(
            "class-imbalance",
            "One class is rare",
            f"Class {label} has {size:,} of {n:,} rows ({size / n:.1%}).",
            f"{advice}.",
        )


def _constant_columns(history: History) -> Iterator[Alert]:
    n_recorded = len(history.trace)
    n = int(np.count_nonzero(history.trace.records["relevance"] == 0))
    if history.trace.level == "full" and n > _MANY_CONSTANT * n_recorded:
        yield Alert(
            "constant-columns",
            "Many columns carry no information",
            f"{n:,} of {n_recorded:,} features have a relevance of exactly 0: they are "
            "constant, or unrelated to the target in these rows.",
            "Nothing is lost by them but time. If you expected values there, check how "
            "the file was read.",
        )


def _growth(history: History) -> Iterator[Alert]:
    n_features = history.result.n_features
    is_limited = history.result.parameters.get("max_features")
    if not history.has_course or n_features < 100 or is_limited:
        return
    curve = size_curve(history)
    before = np.searchsorted(curve.arrivals, 0.8 * n_features) - 1
    earlier, now = int(curve.sizes[before]), int(curve.sizes[-1])
    if before >= 0 and now >= max(_GROWTH * earlier, earlier + 3):
        yield Alert(
            "still-growing",
            "The kept set was still growing",
            f"It grew from {earlier:,} to {now:,} features in the last fifth of the "
            "stream: more features would probably have been kept.",
            "If more features exist, add them with featstream update. For a bounded "
            "set use --max-features.",
        )


def _ties(history: History) -> Iterator[Alert]:
    threshold = history.threshold
    if threshold and history.trace.level == "full":
        at = history.trace.records["relevance"] == np.float32(threshold)
        n = int(np.count_nonzero(at))
        if n > 1:
            yield Alert(
                "ties-at-threshold",
                "Features lie exactly at the threshold",
                f"{n:,} features have the relevance {threshold:.6g}, which is the "
                "threshold: a slightly different one changes the selection.",
                "Choose a threshold between two scores that occur.",
            )
    _, counts = np.unique(history.result.scores, return_counts=True)
    n, n_kept = int(counts[counts > 1].sum()), len(history.result)
    if n > max(_MANY_TIES * n_kept, 2):
        yield Alert(
            "ties-among-kept",
            "Kept features have equal scores",
            f"{n:,} of {n_kept:,} kept features share their exact relevance with "
            "another kept one. Features of equal relevance never remove each other.",
            "With ties='drop' the later of two equals can become redundant.",
        )


def _threshold(history: History) -> Iterator[Alert]:
    n = len(history.trace)
    if history.trace.level != "full" or n < 20:
        return
    share = np.count_nonzero(history.fates != Fate.IRRELEVANT) / n
    if share > _NEARLY_ALL:
        at = "" if history.threshold is None else f" {history.threshold:.4g}"
        yield Alert(
            "nearly-all-relevant",
            "Nearly all features pass the threshold",
            f"{share:.1%} of {n:,} features are relevant at the threshold{at}: it "
            "excludes almost nothing.",
            "Raise the threshold (--delta) or lower --alpha, so that relevance means "
            "more than chance.",
        )


def _chance(history: History) -> Iterator[Alert]:
    """Compare with features that have nothing to do with the target.

    Among N unrelated features, N times the p-value of a score is the expected number
    that reach it.
    """
    found, n_features = p_values(history), history.result.n_features
    if found is None or n_features < 20:
        return
    n_kept, n_weak = found.size, int(np.count_nonzero(found * n_features >= 1))
    if n_weak:
        is_serious = n_weak > n_kept / 2
        advice = "SelectFromStream, or correction='online-fdr', keeps fewer of them."
        if history.is_corrected:
            advice = "A lower alpha keeps fewer of them."
        yield Alert(
            "chance-level",
            f"{'Most' if is_serious else 'Some'} kept features score no better than "
            "chance",
            f"For {n_weak:,} of {n_kept:,} kept features the p-value of the score, "
            f"times the {n_features:,} features that were judged, is at least 1: one "
            "or more unrelated features would score as high, had the labels been "
            "shuffled.",
            "Do not read meaning into these single features (they are marked in the "
            f"table). {advice}",
            is_serious=is_serious,
        )
