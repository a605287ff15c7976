"""A scan on workers decides as the scan in this process does."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

from checks import state
from engines.problems import (
    make_data,
    make_groups,
    make_selector,
    make_source,
    n_ever_kept,
    solve,
)
from engines.simulated import SimulatedEngine
from featstream import SAOLA, Grafting, GroupSAOLA, SelectFromStream
from featstream.errors import ParameterError
from featstream.selectors.saola import spread
from featstream.selectors.saola.spread import find_certain


def compare(seed, kind, monkeypatch):
    """Solve a random problem twice; returns whether both agree, and what it cost."""
    rng = np.random.default_rng(seed)
    monkeypatch.setattr(spread, "FIRST_WIDTH", int(rng.integers(1, 9)))
    X, y, is_discrete = make_data(rng)
    selector, source = make_selector(rng, is_discrete, kind), make_source(rng, X)
    options = {"groups": make_groups(rng, source)} if kind is GroupSAOLA else {}
    engine = SimulatedEngine(rng, int(rng.integers(1, 6)), death=0.1)
    local = solve(clone(selector), y, source, **options)
    remote = solve(selector, y, source, engine=engine, **options)
    return state(local) == state(remote), local, engine


EACH_THOUSAND = [
    pytest.param(range(1000 * k, 1000 * k + 1000), marks=pytest.mark.slow)
    for k in range(1, 6)
]


@pytest.mark.parametrize("kind", [SAOLA, GroupSAOLA])
@pytest.mark.parametrize("seeds", [range(40), *EACH_THOUSAND], ids=str)
def test_random_problems_end_as_in_this_process(kind, seeds, monkeypatch):
    for seed in seeds:
        is_same, _, _ = compare(seed, kind, monkeypatch)
        assert is_same, seed


def test_messages_and_columns_are_few(monkeypatch):
    """At most three messages per block, and only columns of kept features."""
    for seed in range(15):
        spreads = []
        begin = spread.Spread.__init__

        def noted(self, *arguments, begin=begin, spreads=spreads):
            spreads.append(self)
            begin(self, *arguments)

        with monkeypatch.context() as patch:
            patch.setattr(spread.Spread, "__init__", noted)
            is_same, local, engine = compare(seed, SAOLA, monkeypatch)
        (driver,) = spreads
        assert is_same
        assert engine.n_messages <= 1 + 3 * driver.n_blocks
        assert driver.n_columns <= n_ever_kept(local)


def stale(verdict, first, live, ends, passes):
    """Trusts a witness that has left."""
    every = np.union1d(live, verdict.witness[verdict.witness >= 0])
    return find_certain(verdict, first, every, ends, passes)


def blind(verdict, first, live, ends, passes):
    """Forgets what a redundant feature displaces on its way."""
    nothing = np.empty(0, np.int64)
    seen = replace(verdict, gone=nothing, gone_by=nothing)
    return find_certain(seen, first, live, ends, passes)


def trusting(verdict, first, live, ends, passes):
    """Takes the levels that a worker guessed for the true ones."""
    return find_certain(verdict, first, live, ends, verdict.fate != 0)


def deaf(appeal, first, gone, by):
    """Does not walk features again whose witness leaves within their block."""
    return np.zeros(appeal.certain.size, bool)


@pytest.mark.parametrize(
    ("name", "broken", "first"),
    [
        ("find_certain", stale, 0),
        ("find_certain", blind, 290),
        ("find_certain", trusting, 0),
        ("_are_lost", deaf, 290),
    ],
)
def test_the_problems_would_find_a_driver_that_validates_less(
    name, broken, first, monkeypatch
):
    """Some of the ten thousand do; begin near one, to be quick."""
    monkeypatch.setattr(spread, name, broken)
    seeds = range(first, first + 100)
    assert not all(compare(seed, SAOLA, monkeypatch)[0] for seed in seeds)


def test_the_recommended_settings_run_on_an_engine():
    """Pairs need all features in one process: that is refused."""
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 200)
    X = rng.integers(0, 2, (200, 400)).astype(float)
    X[:, ::20] = np.where(rng.random((200, 20)) < 0.4, y[:, None], X[:, ::20])
    local = solve(SelectFromStream(), y, X)
    engine = SimulatedEngine(rng, 3)
    assert state(solve(SelectFromStream(), y, X, engine=engine)) == state(local)
    assert local.selected_.size
    with pytest.raises(ParameterError, match="`interactions` of SelectFromStream"):
        solve(SelectFromStream(interactions=True), y, X, engine=engine)


def test_groups_and_engines_are_refused_by_selectors_without_them():
    X, y = np.eye(4), [0, 1, 0, 1]
    with pytest.raises(ParameterError, match=r"SAOLA takes no groups.*GroupSAOLA"):
        SAOLA(measure="su").start(y).consume(X, groups=[0, 0, 1, 1])
    with pytest.raises(ParameterError, match="Grafting works in this process alone"):
        Grafting().start(y).consume(X, engine=SimulatedEngine(np.random))
