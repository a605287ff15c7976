"""When the kept set has to grow, and where a scan stops for it, changes no decision."""

from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import hadamard

import strategies
from checks import outcome
from featstream import SAOLA, FisherZ, GroupSAOLA
from featstream.measures.storages import dense_values
from featstream.selectors.saola import kept
from strategies import STORAGES, examples, generators


@st.composite
def many_kept(draw):
    """Columns of few values, most of which stay; some say little more than others."""
    rng, p, n = draw(generators(30, 60))
    n, p = n + 30, p + 5
    y = rng.integers(0, 2, n)
    y[:2] = [0, 1]
    X = np.round(rng.normal(size=(n, p)) + y[:, None] * rng.uniform(0, 1, p)).astype(
        int
    )
    for j in range(1, p):
        if rng.random() < 0.5:
            is_other = rng.random(n) < rng.choice([0.1, 0.4])
            X[:, j] = np.where(is_other, X[:, j], X[:, rng.integers(0, j)])
    return X, y


@pytest.mark.parametrize("measure", ["su", FisherZ(alpha=0.9)], ids=str)
@examples(60)
@given(
    data=strategies.grouped(many_kept()),
    rule=strategies.group_rules(),
    make=STORAGES,
    is_grouped=st.booleans(),
)
def test_room_for_one_more_is_as_good_as_room_for_all(
    measure, data, rule, make, is_grouped
):
    X, y, labels = data
    found = []
    for n_slots in (1, 1000):
        selector = GroupSAOLA(measure=measure, **rule)
        how = {"groups": labels}
        if not is_grouped:
            own = {name: rule[name] for name in rule if name != "reading"}
            selector, how = SAOLA(measure=measure, **own), {}
        with (
            mock.patch.object(kept, "_FEW", n_slots),
            mock.patch.object(kept, "_GROWTH", 1.0),
            mock.patch.object(dense_values, "_MOST_SPARE", 0),
        ):
            found.append(outcome(selector.fit(make(X), y, **how)))
    assert found[0] == found[1]


@pytest.mark.parametrize("n_before", range(4))
def test_a_group_is_compared_once_if_the_kept_set_is_full_when_it_is_added(n_before):
    """A second time, a feature would have lost its witness and displace another.

    Features are sums of orthogonal columns, so that products of weights are
    correlations. Of the group, ``first`` is redundant beside ``witness`` (0.5), which
    comes before ``other`` (0.48); then ``second`` displaces ``witness`` (0.58).
    Features that overlap with none come before, to fill the set, and open the group:
    the set has to grow for the one that does.
    """
    weights = np.zeros((n_before + 5, 16))
    before = weights[:n_before]
    witness, other, opener, first, second = weights[n_before:]
    before[:, 0] = 0.2
    before[:, 10:14] = 0.96**0.5 * np.eye(4)[:n_before]
    opener[[0, 14]] = 0.2, 0.96**0.5
    witness[[0, 1, 5, 2]] = 0.5, 0.6, 0.3, 0.30**0.5
    other[[0, 3, 6]] = 0.3, 0.6, 0.55**0.5
    first[[0, 1, 3, 4]] = 0.4, 0.5, 0.6, 0.23**0.5
    second[[0, 5]] = 0.8, 0.6
    basis = hadamard(32)[:, 1:17]
    groups = [*range(n_before + 2), "last", "last", "last"]
    with (
        mock.patch.object(kept, "_FEW", 1),
        mock.patch.object(kept, "_GROWTH", 1.0),
        mock.patch.object(dense_values, "_MOST_SPARE", 0),
    ):
        selector = GroupSAOLA(measure=FisherZ(alpha=0.9))
        selector.fit(basis @ weights.T, basis[:, 0] > 0, groups=groups)
    expected = [*range(n_before), n_before + 1, n_before + 2, n_before + 4]
    assert selector.selected_.tolist() == expected
