"""Every registered selector keeps every contract that applies to it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.utils.estimator_checks import parametrize_with_checks

import checks
import registry
from featstream.measures.inputs import MEASURES
from featstream.selectors.registry import SELECTORS
from strategies import examples

CASES = [
    pytest.param(entry, check, id=f"{entry.title}: {check.__name__[6:]}")
    for entry in registry.SELECTORS
    for check in entry.checks
    if check.__name__ not in entry.without
]


@pytest.mark.hypothesis
@pytest.mark.parametrize(("entry", "check"), CASES)
def test_contracts_hold(entry, check):
    @examples(entry.n_examples)
    @given(data=st.data())
    def held(data):
        selector = data.draw(entry.selectors)
        given, how = entry.arguments(data.draw(entry.data), check)
        check(selector, *given, **how)

    held()


@pytest.mark.hypothesis
@pytest.mark.parametrize("name", registry.MEASURES)
@pytest.mark.parametrize("check", checks.MEASURE_CHECKS, ids=lambda c: c.__name__[6:])
def test_contracts_of_measures_hold(name, check):
    measure, drawn = registry.MEASURES[name]

    @examples(8)
    @given(data=drawn)
    def held(data):
        check(measure, *data)

    held()


@pytest.mark.jit_only
@parametrize_with_checks(registry.ESTIMATORS)
def test_every_check_of_scikit_learn_passes(estimator, check):
    check(estimator)


def test_every_selector_is_in_the_registry():
    """A selector that can be chosen by name is checked, or there is a reason."""
    own = {n: c for n, c in SELECTORS.items() if c.__module__.startswith("featstream.")}
    entries = {entry.name for entry in registry.SELECTORS}
    assert entries | set(registry.WITHOUT_STREAM) == set(own)
    assert not entries & set(registry.WITHOUT_STREAM)


def test_every_measure_is_in_the_registry():
    own = {n for n, c in MEASURES.items() if c.__module__.startswith("featstream.")}
    assert set(registry.MEASURES) == own


def test_what_is_left_out_exists_and_has_a_reason():
    for entry in registry.SELECTORS:
        assert set(entry.without) <= {check.__name__ for check in entry.checks}
        assert all(entry.without.values())
