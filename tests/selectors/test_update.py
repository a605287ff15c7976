"""A plain column that arrives alone is decided about as in a block."""

import pickle
import signal
from copy import deepcopy
from unittest import mock

import numpy as np
import pytest

from checks import outcome, state
from featstream import (
    SAOLA,
    FisherZ,
    MutualInformation,
    SelectFromStream,
    SymmetricalUncertainty,
)
from featstream.selectors.result import Trace

SELECTORS = {
    "saola": SAOLA,
    "recommended": SelectFromStream,
    "bonferroni": lambda measure: SAOLA(measure=measure, correction="bonferroni"),
    "few": lambda measure: SAOLA(measure=measure, max_features=3, pruning="deferred"),
}
MEASURES = {
    "fisher-z": "fisher-z",
    "its level": FisherZ(alpha=0.2),
    "su": "su",
    "level of su": SymmetricalUncertainty(alpha=0.2),
    "mi": "mi",
    "su of few": SymmetricalUncertainty(max_categories=2, n_bins=2, threshold=0.01),
    "mi of few": MutualInformation(max_categories=3, binning="uniform", alpha=0.2),
}


def columns(seed, dtype, n_classes=2):
    """Columns of a dtype in rows of their own, and classes; many are redundant."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, 120)
    noise = rng.normal(size=(60, 120))
    X = noise + rng.uniform(0, 1.5, (60, 1)) * y
    X[20:40] = X[rng.integers(0, 20, 20)] + 0.3 * noise[20:40]
    if np.dtype(dtype).kind != "f":
        X = np.clip(np.rint(X + 1), 0, 1 if dtype is bool else 3)
    return np.ascontiguousarray(X.astype(dtype)), y


def whole_numbers(seed):
    X, y = columns(seed, np.float64)
    return np.rint(2 * X), y


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.uint8, bool])
@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("selector", SELECTORS)
def test_single_columns_end_as_a_block_does(selector, measure, dtype):
    X, y = columns(1, dtype, n_classes=3 if dtype == np.float32 else 2)
    make = SELECTORS[selector]
    # In one block all features are new: without a known length, as for updates.
    whole = make(measure=MEASURES[measure]).start(y)
    whole.consume((f"x{j}", column) for j, column in enumerate(X))
    alone = make(measure=MEASURES[measure]).start(y)
    for j, column in enumerate(X):
        decision = alone.update(column, name=f"x{j}")
        assert decision.arrival == j
        assert decision.fate is alone.result_.trace.fate(j)
    assert outcome(alone) == outcome(whole)
    assert state(alone) == state(whole)


@pytest.mark.parametrize("measure", ["fisher-z", "su"])
@pytest.mark.parametrize("copy", [deepcopy, lambda s: pickle.loads(pickle.dumps(s))])
def test_copies_go_separate_ways(measure, copy):
    X, y = whole_numbers(3)
    one = SAOLA(measure=measure).start(y)
    for column in X[:30]:
        one.update(column)
    other = copy(one)
    for column in X[30:]:
        one.update(column)
        other.update(column[::-1].copy()[::-1])  # by the longer way
        other.n_seen_
    assert outcome(one) == outcome(other)


@pytest.mark.parametrize("measure", ["fisher-z", "su"])
def test_an_interrupt_waits_for_the_record(measure):
    """Ctrl-C between keeping and recording: neither is without the other."""
    X, y = whole_numbers(5)
    selector, record = SAOLA(measure=measure).start(y), Trace.record

    def interrupted(trace, verdict):
        signal.raise_signal(signal.SIGINT)
        record(trace, verdict)

    for column in X:
        with (
            mock.patch.object(Trace, "record", interrupted),
            pytest.raises(KeyboardInterrupt),
        ):
            selector.update(column)
    assert outcome(selector) == outcome(SAOLA(measure=measure).fit(X.T, y))


@pytest.mark.parametrize("trace", ["full", "kept", None])
def test_a_decision_names_a_feature_that_no_trace_records(trace):
    y = [0, 0, 1, 1]
    selector = SAOLA(measure="su", trace=trace).start(y)
    assert selector.update(np.array(y), name="first").is_kept
    decision = selector.update(np.array([0, 1, 1, 1]), name="second")
    assert (decision.name, decision.witness) == ("second", "first")
