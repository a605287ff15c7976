"""What the contract tests run on: selectors with the data that suit them.

A new selector joins `SELECTORS`. ``test_contracts.py`` then runs on it the checks of
``checks.py`` or ``group_checks.py``; to leave one out takes a reason. The checks of
scikit-learn run on every registered selector. A new measure joins `MEASURES`, a new
format `FORMATS` in ``sources/test_every_format.py``.
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
    CIFE,
    CMIM,
    DISR,
    FCBF,
    FGM,
    GDM,
    IAMB,
    JMI,
    MIM,
    MMMB,
    MRMR,
    OGFS,
    OSFS,
    SAOLA,
    SPFSLAR,
    AlphaInvesting,
    ConditionalSAOLA,
    FastOSFS,
    FisherZ,
    Grafting,
    GroupLassoSelector,
    GroupSAOLA,
    InteractionScreen,
    LassoSelector,
    MutualInformation,
    SelectFromStream,
    SparseGroupLassoSelector,
    SymmetricalUncertainty,
)
from featstream.measures import ChiSquareTest, FisherZTest, GTest
from featstream.selectors import SELECTORS as REGISTERED

SUMS = "sums of rounded products depend on the order of rows in the last bit"
TOGETHER = "a feature that is useless alone may be used beside others"
SPENDS = "every arrival is tested, and a test costs wealth"
PAIRS = "every pair that is tested is paid for, and a newcomer may find a partner"
PAYS = "every feature that is judged costs some of the level"
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
    n_examples: int = 4
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


def conditional_saola(measure):
    rules = strategies.conditional_rules(correction=["none", "online-fdr"])
    return rules.map(lambda rule: SAOLA(measure=measure, **rule))


def group_saola(measure):
    readings = st.sampled_from([{"reading": "printed"}, {"reading": "library"}])
    options = st.one_of(strategies.group_rules(), readings)
    return options.map(lambda chosen: GroupSAOLA(measure=measure, **chosen))


def drawn(kind, **options):
    """A selector, with each option one of several values."""
    choices = {name: st.sampled_from(values) for name, values in options.items()}
    return st.builds(kind, **choices)


DISCRETE, CONTINUOUS = strategies.discrete_data(), strategies.continuous_data()
AWKWARD = strategies.awkward_data()
PAIRWISE = (*checks.STREAM_CHECKS, *checks.PAIRWISE_CHECKS)
BATCH = tuple(checks.BATCH_CHECKS)
GROUPWISE = tuple(group_checks.GROUP_CHECKS)
BATCH_GROUPS = tuple(group_checks.BATCH_GROUP_CHECKS)
TABLES = [
    GTest(alpha=0.2, samples_per_df=1),
    GTest(alpha=0.3, samples_per_df=1, unreliable="skip"),
    ChiSquareTest(alpha=0.2, samples_per_df=1),
]
CORRELATIONS = [FisherZTest(alpha=0.1), FisherZTest(alpha=0.3, unreliable="skip")]
JUDGED = {
    "check_constants_change_nothing": PAYS,
    "check_irrelevant_features_change_nothing": PAYS,
}
FITTED = {
    "check_row_permutation_changes_nothing": SUMS,
    "check_irrelevant_features_change_nothing": TOGETHER,
}
ALONE = {"check_irrelevant_features_change_nothing": TOGETHER}
SELECTORS = [
    Entry(
        "saola",
        "SAOLA su",
        saola("su"),
        DISCRETE,
        (*PAIRWISE, *checks.DISCRETE_CHECKS),
        n_examples=10,
    ),
    Entry(
        "saola",
        "SAOLA fisher-z",
        saola(FisherZ(alpha=0.1)),
        CONTINUOUS,
        (*PAIRWISE, *checks.CONTINUOUS_CHECKS),
        n_examples=10,
        is_rounded=False,
    ),
    Entry(
        "saola",
        "SAOLA fisher-z, awkward numbers",
        saola(FisherZ(alpha=0.1)),
        AWKWARD,
        (
            checks.check_fit_equals_update_loop,
            checks.check_block_size_changes_nothing,
            checks.check_every_reason_holds,
            checks.check_the_kept_never_dominate_each_other,
            checks.check_resume_equals_uninterrupted,
        ),
        n_examples=10,
        is_rounded=False,
    ),
    Entry(
        "saola-conditional",
        "SAOLA su, conditional",
        conditional_saola("su"),
        strategies.discrete_data(least_rows=70),
        (*checks.STREAM_CHECKS, *checks.DISCRETE_CHECKS),
        n_examples=5,
        without=JUDGED,
    ),
    Entry(
        "saola-conditional",
        "SAOLA fisher-z, conditional",
        conditional_saola(FisherZ(alpha=0.1)),
        CONTINUOUS,
        (*checks.STREAM_CHECKS, *checks.CONTINUOUS_CHECKS),
        n_examples=5,
        without=JUDGED,
    ),
    Entry(
        "select-from-stream",
        "SelectFromStream",
        drawn(SelectFromStream, alpha=[0.05, 0.15], max_features=[None, 2]),
        strategies.discrete_data(least_rows=70),
        n_examples=4,
        without=JUDGED,
    ),
    Entry(
        "group-saola",
        "GroupSAOLA su, conditional",
        drawn(
            GroupSAOLA,
            measure=["su"],
            redundancy=["conditional"],
            correction=["none", "online-fdr"],
            ties=["keep", "drop"],
        ),
        strategies.grouped(strategies.discrete_data(least_rows=70)),
        GROUPWISE,
    ),
    Entry(
        "group-saola",
        "GroupSAOLA su",
        group_saola("su"),
        strategies.grouped(DISCRETE),
        GROUPWISE,
        n_examples=8,
    ),
    Entry(
        "group-saola",
        "GroupSAOLA fisher-z",
        group_saola(FisherZ(alpha=0.1)),
        strategies.grouped(CONTINUOUS),
        GROUPWISE,
    ),
    *(
        Entry(name, f"{kind.__name__}, {label}", drawn(kind, test=tests), data)
        for name, kind in (("osfs", OSFS), ("fast-osfs", FastOSFS))
        for label, tests, data in (
            ("tables", TABLES, DISCRETE),
            ("correlations", CORRELATIONS, CONTINUOUS),
        )
    ),
    *(
        Entry(
            "alpha-investing",
            f"AlphaInvesting, {loss}",
            drawn(
                AlphaInvesting,
                wealth=[5.0],
                loss=[loss],
                intercept=[True, False, "first-column"],
            ),
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
        drawn(Grafting, l1=[0.05, 0.15], l2=[0.0, 0.2], l0=[0.0, 0.02]),
        CONTINUOUS,
        without=FITTED,
    ),
    Entry(
        "ogfs",
        "OGFS, groups of one",
        drawn(OGFS, group_size=[1], penalty=[0.15], criterion=["difference", "t-test"]),
        CONTINUOUS,
        without=FITTED,
    ),
    Entry(
        "ogfs",
        "OGFS",
        drawn(OGFS, group_size=[1, 3], penalty=[0.15]),
        strategies.grouped(CONTINUOUS),
        GROUPWISE,
        without={"check_row_order_changes_nothing": SUMS},
    ),
    Entry(
        "fcbf",
        "FCBF su",
        st.just(FCBF(measure="su")),
        DISCRETE,
        (*BATCH, *checks.DISCRETE_CHECKS),
    ),
    Entry(
        "fcbf",
        "FCBF fisher-z",
        st.just(FCBF(measure=FisherZ(alpha=0.1))),
        CONTINUOUS,
        (*BATCH, *checks.CONTINUOUS_CHECKS),
    ),
    Entry(
        "saola",
        "SAOLA su, interactions",
        st.builds(
            lambda screen, rule: SAOLA(measure="su", interactions=screen, **rule),
            drawn(InteractionScreen, alpha=[0.05, 0.5], n_bins=[2, 3]),
            strategies.rules(),
        ),
        strategies.interacting_data(),
        without={"check_irrelevant_features_change_nothing": PAIRS},
        n_examples=5,
    ),
    Entry(
        "interactions",
        "InteractionScreen",
        drawn(
            InteractionScreen,
            alpha=[0.05, 0.5],
            n_bins=[2, 3],
            redundancy_alpha=[None, 0.1],
            n_jobs=[None, 2],
        ),
        strategies.interacting_data(),
        without={"check_irrelevant_features_change_nothing": PAIRS},
        n_examples=5,
    ),
    *(
        Entry(name, label, selectors, CONTINUOUS, BATCH, without=ALONE)
        for name, label, selectors in (
            ("spfs-lar", "SPFSLAR", drawn(SPFSLAR, n_features=[1, 3, 50])),
            ("fgm", "FGM", drawn(FGM, n_features=[1, 3, 50], plane_size=[1, 2])),
            ("gdm", "GDM", drawn(GDM, n_features=[2, 50], max_correlation=[0.3, 0.7])),
            ("lasso", "LassoSelector", drawn(LassoSelector, penalty=[0.05, 0.15])),
        )
    ),
    *(
        Entry(name, label, selectors, strategies.grouped(CONTINUOUS), BATCH_GROUPS)
        for name, label, selectors in (
            (
                "group-lasso",
                "GroupLassoSelector",
                drawn(GroupLassoSelector, group_penalty=[0.05, 0.1]),
            ),
            (
                "sparse-group-lasso",
                "SparseGroupLassoSelector",
                drawn(
                    SparseGroupLassoSelector,
                    penalty=[0.02, 0.1],
                    group_penalty=[0.01, 0.05],
                ),
            ),
        )
    ),
    *(
        Entry(
            name,
            f"{kind.__name__} {measure}",
            drawn(kind, n_features=[1, 3, 6], measure=[measure], **options),
            data,
            BATCH,
            n_examples=3,
        )
        for name, kind, options in (
            ("mrmr", MRMR, {"scheme": ["difference", "quotient"]}),
            ("mim", MIM, {}),
        )
        for measure, data in (("mi", DISCRETE), (FisherZ(alpha=0.2), CONTINUOUS))
    ),
    *(
        Entry(
            name,
            kind.__name__,
            drawn(kind, n_features=[1, 3, 6]),
            DISCRETE,
            (*BATCH, *checks.DISCRETE_CHECKS),
            n_examples=3,
            without={"check_irrelevant_features_change_nothing": TOGETHER},
        )
        for name, kind in (("jmi", JMI), ("cmim", CMIM), ("disr", DISR), ("cife", CIFE))
    ),
    *(
        Entry(
            name,
            f"{kind.__name__}, {label}",
            drawn(kind, test=tests),
            data,
            BATCH,
            n_examples=3,
            without={"check_irrelevant_features_change_nothing": TOGETHER} | without,
        )
        for name, kind in (("iamb", IAMB), ("mmmb", MMMB))
        for label, tests, data, without in (
            ("tables", TABLES[:2], DISCRETE, {}),
            (
                "correlations",
                CORRELATIONS,
                CONTINUOUS,
                {"check_row_permutation_changes_nothing": SUMS},
            ),
        )
    ),
]
WITHOUT_STREAM = {"ofs": ROWS}

_KNOWN = {entry.name for entry in SELECTORS} | set(WITHOUT_STREAM)
OUTSIDE = {name: REGISTERED[name] for name in REGISTERED if name not in _KNOWN}
"""Selectors of modules in the environment: see docs/adding-a-selector.md."""

SELECTORS += [
    Entry(
        name,
        f"{make.__name__} {measure}",
        st.just(make(measure=measure) if "measure" in make().get_params() else make()),
        data,
    )
    for name, make in OUTSIDE.items()
    for measure, data in (("su", DISCRETE), ("fisher-z", CONTINUOUS))
]

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
    SAOLA(interactions=True),
]
"""What scikit-learn's checks run on, without exceptions."""
