"""A plain column that arrives alone is decided about as in a block."""

from __future__ import annotations

import pickle
import signal
from copy import deepcopy
from unittest import mock

import numpy as np
import pytest

import featstream
from checks import outcome
from featstream import SAOLA, FisherZ, SelectFromStream, SymmetricalUncertainty
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
    assert alone._state_arrays().keys() == whole._state_arrays().keys()
    for name, array in alone._state_arrays().items():
        np.testing.assert_array_equal(array, whole._state_arrays()[name])


@pytest.mark.parametrize("measure", ["fisher-z", "su"])
def test_what_cannot_be_decided_is_refused_as_ever(measure):
    X, y = columns(2, np.float64)
    X = np.rint(X)
    selector = SAOLA(measure=measure).start(y)
    for column in X:
        selector.update(column)
    hole = X[0].copy()
    hole[7] = np.nan
    with pytest.raises(ValueError, match="'x60' has 1 missing"):
        selector.update(hole)
    with pytest.raises(ValueError, match="has 119 values"):
        selector.update(X[0, 1:])
    selector.update(X[0], name="g")
    with pytest.raises(ValueError, match="already seen"):
        selector.update(X[0], name="g")
    with pytest.raises(TypeError, match="must be a string"):
        selector.update(X[0], name=3)
    assert selector.n_seen_ == 61


@pytest.mark.parametrize("measure", ["fisher-z", "su"])
@pytest.mark.parametrize("copy", [deepcopy, lambda s: pickle.loads(pickle.dumps(s))])
def test_copies_go_separate_ways(measure, copy):
    X, y = columns(3, np.float64)
    X = np.rint(2 * X)
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
def test_values_may_change_after_the_decision(measure):
    X, y = columns(4, np.float64)
    X = np.rint(2 * X)
    one, other = SAOLA(measure=measure).start(y), SAOLA(measure=measure).start(y)
    buffer = np.empty(len(y))
    for column in X:
        buffer[:] = column
        one.update(buffer)
        other.update(column)
    assert outcome(one) == outcome(other)


@pytest.mark.parametrize("measure", ["fisher-z", "su"])
def test_an_interrupt_waits_for_the_record(measure):
    """Ctrl-C between keeping and recording: neither is without the other."""
    X, y = columns(5, np.float64)
    X = np.rint(2 * X)
    expected = SAOLA(measure=measure).fit(X.T, y)
    selector, extend = SAOLA(measure=measure).start(y), Trace.extend

    def interrupted(trace, *records):
        signal.raise_signal(signal.SIGINT)
        extend(trace, *records)

    for column in X:
        with (
            mock.patch.object(Trace, "extend", interrupted),
            pytest.raises(KeyboardInterrupt),
        ):
            selector.update(column)
    assert outcome(selector) == outcome(expected)


@pytest.mark.parametrize("measure", ["fisher-z", "su"])
def test_a_run_continues_with_single_columns(measure, tmp_path):
    X, y = columns(6, np.float64)
    X = np.rint(2 * X)
    selector = SAOLA(measure=measure).start(y)
    for column in X[:30]:
        selector.update(column)
    selector.save(tmp_path)
    resumed = featstream.resume(tmp_path)
    for column in X[30:]:
        resumed.update(column)
    assert outcome(resumed) == outcome(SAOLA(measure=measure).fit(X.T, y))
