"""What the contract tests run on: selectors with the data that suit them.

A new selector is added by `join`. ``test_contracts.py`` then runs on it the checks of
``checks.py`` or ``group_checks.py``; to leave one out takes a reason. The checks of
scikit-learn run on every registered selector. A new measure is added to `MEASURES`, a
new format to `FORMATS` in ``sources/test_every_format.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

import checks
import group_checks
import strategies
from featstream import (
    SAOLA,
    ConditionalSAOLA,
    FisherZ,
    MutualInformation,
    SymmetricalUncertainty,
)
from featstream.measures import ChiSquareTest, FisherZTest, GTest
from featstream.selectors import SELECTORS as REGISTERED

STREAM, BATCH = checks.STREAM_CHECKS, checks.BATCH_CHECKS
PAIRWISE = [*STREAM, *checks.PAIRWISE_CHECKS]
GROUPWISE, BATCH_GROUPS = group_checks.GROUP_CHECKS, group_checks.BATCH_GROUP_CHECKS
EXACT_SUMS = {
    "check_row_permutation_changes_nothing",
    "check_every_storage_agrees",
    "check_a_stream_may_come_in_parts",
}


@dataclass(frozen=True)
class Entry:
    """A selector, drawn with its options, on one kind of data."""

    name: str  # in the registry of featstream
    label: str  # what tells it from other entries of the same selector
    options: dict[str, list[Any]]  # the values of which each option is drawn
    data: st.SearchStrategy[Any]
    checks: list[Callable[..., None]]
    n_examples: int
    without: dict[str, str]  # checks that are left out, and why
    is_rounded: bool  # whether data are whole numbers, whose sums are exact

    @property
    def title(self):
        return f"{REGISTERED[self.name].__name__} {self.label}".strip()

    @property
    def selectors(self):
        options = strategies.options(self.options)
        return options.map(lambda chosen: REGISTERED[self.name](**chosen))

    def arguments(self, drawn, check):
        """Data for a check, and groups if there are any."""
        X, y, *groups = drawn
        if X.dtype.kind == "f" and (self.is_rounded or check.__name__ in EXACT_SUMS):
            X = np.round(4 * X)
        return (X, y), {"groups": labels for labels in groups}


SELECTORS: list[Entry] = []


def join(
    name,
    data,
    checks=STREAM,
    label="",
    *,
    n_examples=4,
    without=(),
    is_rounded=True,
    **options,
):
    """Add a selector on one kind of data, with the values of its options."""
    without, checks = dict(without), list(checks)
    entry = Entry(name, label, options, data, checks, n_examples, without, is_rounded)
    SELECTORS.append(entry)


SUMS = {
    "check_row_permutation_changes_nothing": (
        "sums of rounded products depend on the order of rows in the last bit"
    )
}
TOGETHER = {
    "check_irrelevant_features_change_nothing": (
        "a feature that is useless alone may be used beside others"
    )
}
PAIRS = {
    "check_irrelevant_features_change_nothing": (
        "every pair that is tested is paid for, and a newcomer may find a partner"
    )
}
SPENDS = dict.fromkeys(
    ("check_constants_change_nothing", "check_irrelevant_features_change_nothing"),
    "every feature that is judged costs some of the level, or of the wealth",
)

DISCRETE, CONTINUOUS = strategies.discrete_data(), strategies.continuous_data()
MANY_ROWS = strategies.discrete_data(least_rows=70)
AWKWARD, INTERACTING = strategies.awkward_data(), strategies.interacting_data()
CONTINUOUS_IN_GROUPS = strategies.grouped(CONTINUOUS)
MEASURED = [
    ("su", ["su"], DISCRETE, checks.DISCRETE_CHECKS),
    ("fisher-z", [FisherZ(alpha=0.1)], CONTINUOUS, checks.CONTINUOUS_CHECKS),
]
TABLES = [
    GTest(alpha=0.2, samples_per_df=1),
    GTest(alpha=0.3, samples_per_df=1, unreliable="skip"),
    ChiSquareTest(alpha=0.2, samples_per_df=1),
]
CORRELATIONS = [FisherZTest(alpha=0.1), FisherZTest(alpha=0.3, unreliable="skip")]

# SAOLA --------------------------------------------------------------------------

RULES, GROUP_RULES = strategies.RULES, strategies.GROUP_RULES
CORRECTED = {"correction": ["none", "online-fdr"], "ties": ["keep", "drop"]}
CONDITIONAL = strategies.CONDITIONAL | CORRECTED
del CONDITIONAL["redundancy"]
HARD = [
    checks.check_fit_equals_update_loop,
    checks.check_blocks_and_threads_change_nothing,
    checks.check_every_decision_is_as_printed,
    checks.check_resume_equals_uninterrupted,
]
for label, measure, data, more in MEASURED:
    plain = {"measure": measure, "n_examples": 10, "is_rounded": False, **RULES}
    join("saola", data, PAIRWISE + more, label, **plain)
    data = MANY_ROWS if label == "su" else data
    corrected = {"measure": measure, "n_examples": 5, "without": SPENDS, **CONDITIONAL}
    join("saola-conditional", data, STREAM + more, label, **corrected)
join("saola", AWKWARD, HARD, "awkward numbers", **plain)
lengths = [  # the length of a source matters to Bonferroni
    checks.check_resume_equals_uninterrupted,
    checks.check_blocks_and_threads_change_nothing,
]
corrected |= {"correction": ["bonferroni"], "without": {}}
join("saola-conditional", CONTINUOUS, lengths, "bonferroni", **corrected)
recommended = {"alpha": [0.05, 0.15], "max_features": [None, 2]}
join("select-from-stream", MANY_ROWS, without=SPENDS, **recommended)

for label, measure, data, _ in MEASURED:
    grouped, measured = strategies.grouped(data), {"measure": measure}
    library = {"reading": ["library"], **measured}
    join("group-saola", grouped, GROUPWISE, label, **measured, **GROUP_RULES)
    join("group-saola", grouped, GROUPWISE, f"{label}, library", **library)
tested = {"measure": ["su"], "redundancy": ["conditional"], **CORRECTED}
join("group-saola", strategies.grouped(MANY_ROWS), GROUPWISE, "conditional", **tested)

# Other streams ------------------------------------------------------------------

for name in ("osfs", "fast-osfs"):
    join(name, DISCRETE, label="tables", test=TABLES)
    join(name, CONTINUOUS, label="correlations", test=CORRELATIONS)
for loss, data in (
    ("linear", CONTINUOUS),
    ("logistic", strategies.two_classes(CONTINUOUS)),
):
    options = {"wealth": [5.0], "intercept": [True, False, "first-column"]}
    without = SUMS | SPENDS
    join("alpha-investing", data, label=loss, without=without, loss=[loss], **options)
prices = {"l1": [0.05, 0.15], "l2": [0.0, 0.2], "l0": [0.0, 0.02]}
join("grafting", CONTINUOUS, without=SUMS | TOGETHER, **prices)
single = {"group_size": [1], "penalty": [0.15], "criterion": ["difference", "t-test"]}
join("ogfs", CONTINUOUS, label="alone", without=SUMS | TOGETHER, **single)
several = {"group_size": [1, 3], "penalty": [0.15]}
join("ogfs", CONTINUOUS_IN_GROUPS, GROUPWISE, without=SUMS, **several)
screen = {"alpha": [0.05, 0.5], "n_bins": [2, 3], "redundancy_alpha": [None, 0.1]}
join("interactions", INTERACTING, without=PAIRS, n_jobs=[None, 2], **screen)

# Batch --------------------------------------------------------------------------

for label, measure, data, more in MEASURED:
    join("fcbf", data, BATCH + more, label, measure=measure)
for name, options in {
    "spfs-lar": {"n_features": [1, 3, 50]},
    "fgm": {"n_features": [1, 3, 50], "plane_size": [1, 2]},
    "gdm": {"n_features": [2, 50], "max_correlation": [0.3, 0.7]},
    "lasso": {"penalty": [0.05, 0.15]},
}.items():
    join(name, CONTINUOUS, BATCH, without=TOGETHER, **options)
for name, options in {
    "group-lasso": {"group_penalty": [0.05, 0.1]},
    "sparse-group-lasso": {"penalty": [0.02, 0.1], "group_penalty": [0.01, 0.05]},
}.items():
    join(name, CONTINUOUS_IN_GROUPS, BATCH_GROUPS, **options)

greedy = {"n_examples": 3, "n_features": [1, 3, 6]}
for name, options in {
    "mrmr": {"scheme": ["difference", "quotient"]},
    "mim": {},
}.items():
    join(name, DISCRETE, BATCH, "mi", measure=["mi"], **greedy, **options)
    z = [FisherZ(alpha=0.2)]
    join(name, CONTINUOUS, BATCH, "fisher-z", measure=z, **greedy, **options)
for name in ("jmi", "cmim", "disr", "cife"):
    join(name, DISCRETE, BATCH + checks.DISCRETE_CHECKS, without=TOGETHER, **greedy)
for name in ("iamb", "mmmb"):
    tables, correlations = {"test": TABLES[:2]}, {"test": CORRELATIONS}
    join(name, DISCRETE, BATCH, "tables", n_examples=3, without=TOGETHER, **tables)
    without = SUMS | TOGETHER
    join(name, CONTINUOUS, BATCH, "z", n_examples=3, without=without, **correlations)

WITHOUT_STREAM = {"ofs": "it learns from rows; columns do not arrive"}

_KNOWN = {entry.name for entry in SELECTORS} | set(WITHOUT_STREAM)
for name in [name for name in REGISTERED if name not in _KNOWN]:
    # Of modules in the environment: see docs/adding-a-selector.md.
    has_measure = "measure" in REGISTERED[name]().get_params()
    for measure, data in (("su", DISCRETE), ("fisher-z", CONTINUOUS)):
        options = {"measure": [measure]} if has_measure else {}
        join(name, data, label=measure, **options)

MEASURES = {
    "su": (SymmetricalUncertainty(), DISCRETE),
    "mi": (MutualInformation(), DISCRETE),
    "fisher-z": (FisherZ(), CONTINUOUS),
}

ESTIMATORS = [
    *(REGISTERED[name]() for name in REGISTERED),
    ConditionalSAOLA(correction="bonferroni"),
    SAOLA(
        measure=SymmetricalUncertainty(binning="mdl", missing="category"),
        bound="max",
        ties="drop",
        pruning="deferred",
        max_features=2,
        trace=None,
    ),
    SAOLA(measure=FisherZ(alpha=0.05, target="numeric")),
]
"""What scikit-learn's checks run on, without exceptions."""
