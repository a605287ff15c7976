"""What the contract tests run on: selectors with the data that suit them.

A new selector joins `SELECTORS`. ``test_contracts.py`` then runs on it the checks
of ``checks.py`` or ``group_checks.py`` and those of scikit-learn; to leave one out
takes a reason.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st

import checks
import group_checks
import strategies
from featstream import (
    OFS,
    OGFS,
    OSFS,
    SAOLA,
    AlphaInvesting,
    FastOSFS,
    FisherZ,
    Grafting,
    GroupSAOLA,
    MutualInformation,
    SymmetricalUncertainty,
)
from featstream.measures import ChiSquareTest, FisherZTest, GTest

SUMS = "sums of rounded products depend on the order of rows in the last bit"
TOGETHER = "a feature that is useless alone may be used beside others"
SPENDS = "every arrival is tested, and a test costs wealth"
ROWS = "it learns from rows; columns do not arrive"
EXACT_SUMS = {
    "check_row_permutation_changes_nothing",
    "check_row_order_changes_nothing",
    "check_every_storage_agrees",
    "check_storage_may_change_in_mid_stream",
}


@dataclass(frozen=True)
class Entry:
    """A selector, drawn with its options, on one kind of data."""

    name: str
    """In the registry of featstream."""
    label: str
    selectors: st.SearchStrategy[Any]
    data: st.SearchStrategy[Any]
    checks: tuple[Callable[..., None], ...] = (*checks.STREAM_CHECKS,)
    n_examples: int = 8
    without: dict[str, str] = field(default_factory=dict)
    """Checks that are left out, and why."""
    is_rounded: bool = True
    """Whether continuous data are whole numbers, whose sums are exact."""

    def arguments(self, drawn, check):
        X, *others = drawn
        if X.dtype.kind == "f" and (self.is_rounded or check.__name__ in EXACT_SUMS):
            X = np.round(4 * X)
        return X, *others


def saola(measure):
    return strategies.rules().map(lambda rule: SAOLA(measure=measure, **rule))


def group_saola(measure):
    readings = st.sampled_from([{"reading": "printed"}, {"reading": "library"}])
    options = st.one_of(strategies.group_rules(), readings)
    return options.map(lambda chosen: GroupSAOLA(measure=measure, **chosen))


DISCRETE, CONTINUOUS = strategies.discrete_data(), strategies.continuous_data()
PAIRWISE = (*checks.STREAM_CHECKS, *checks.RESUME_CHECKS, *checks.PAIRWISE_CHECKS)
GROUPWISE = tuple(group_checks.GROUP_CHECKS)
TESTS = {
    "g2": (GTest(alpha=0.2, samples_per_df=1), DISCRETE),
    "chi2": (ChiSquareTest(alpha=0.2, samples_per_df=1), DISCRETE),
    "fisher-z": (FisherZTest(alpha=0.1), CONTINUOUS),
}
SELECTORS = [
    Entry(
        "saola",
        "SAOLA su",
        saola("su"),
        DISCRETE,
        (*PAIRWISE, *checks.DISCRETE_CHECKS),
        n_examples=25,
    ),
    Entry(
        "saola",
        "SAOLA fisher-z",
        saola(FisherZ(alpha=0.1)),
        CONTINUOUS,
        (*PAIRWISE, *checks.CONTINUOUS_CHECKS),
        n_examples=25,
        is_rounded=False,
    ),
    Entry(
        "saola",
        "SAOLA fisher-z, awkward numbers",
        saola(FisherZ(alpha=0.1)),
        strategies.awkward_data(),
        (
            checks.check_fit_equals_update_loop,
            checks.check_block_size_changes_nothing,
            checks.check_every_reason_holds,
            checks.check_the_kept_never_dominate_each_other,
        ),
        n_examples=25,
        is_rounded=False,
    ),
    Entry(
        "group-saola",
        "GroupSAOLA su",
        group_saola("su"),
        strategies.grouped(DISCRETE),
        GROUPWISE,
        n_examples=20,
    ),
    Entry(
        "group-saola",
        "GroupSAOLA fisher-z",
        group_saola(FisherZ(alpha=0.1)),
        strategies.grouped(CONTINUOUS),
        GROUPWISE,
    ),
    *(
        Entry(
            name, f"{make.__name__} {label}", st.just(make(test=test, alpha=0.1)), data
        )
        for name, make in (("osfs", OSFS), ("fast-osfs", FastOSFS))
        for label, (test, data) in TESTS.items()
    ),
    *(
        Entry(
            "alpha-investing",
            f"AlphaInvesting {loss}",
            st.just(AlphaInvesting(wealth=5.0, loss=loss)),
            CONTINUOUS if loss == "linear" else strategies.two_classes(CONTINUOUS),
            without={
                "check_row_permutation_changes_nothing": SUMS,
                "check_constants_change_nothing": SPENDS,
                "check_irrelevant_features_change_nothing": SPENDS,
            },
        )
        for loss in ("linear", "logistic")
    ),
    Entry(
        "grafting",
        "Grafting",
        st.just(Grafting(l1=0.15)),
        CONTINUOUS,
        without={
            "check_row_permutation_changes_nothing": SUMS,
            "check_irrelevant_features_change_nothing": TOGETHER,
        },
    ),
    Entry(
        "ogfs",
        "OGFS, groups of one",
        st.just(OGFS(group_size=1, penalty=0.15)),
        CONTINUOUS,
        without={
            "check_row_permutation_changes_nothing": SUMS,
            "check_irrelevant_features_change_nothing": TOGETHER,
        },
    ),
    Entry(
        "ogfs",
        "OGFS, groups of three",
        st.just(OGFS(group_size=3, penalty=0.15)),
        CONTINUOUS,
        (
            checks.check_block_size_changes_nothing,
            checks.check_every_storage_agrees,
            checks.check_trace_replays_to_selection,
            checks.check_input_is_never_modified,
        ),
    ),
]
WITHOUT_STREAM = {"ofs": ROWS, "saola-max": "SAOLA with an option that is drawn above"}

ESTIMATORS = [
    SAOLA(),
    SAOLA(measure="su"),
    SAOLA(measure="fisher-z"),
    SAOLA(measure=FisherZ(alpha=0.05, target="numeric")),
    SAOLA(measure=SymmetricalUncertainty(binning="mdl")),
    SAOLA(measure=MutualInformation(missing="category")),
    SAOLA(bound="max", ties="drop", pruning="deferred", overlap=">", max_features=2),
    SAOLA(trace=None),
    GroupSAOLA(),
    GroupSAOLA(reading="library"),
    OSFS(),
    FastOSFS(),
    AlphaInvesting(),
    Grafting(),
    OFS(),
    OGFS(),
]
"""What scikit-learn's checks run on, without exceptions."""
