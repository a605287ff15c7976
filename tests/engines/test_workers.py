"""A stream whose features are scored by workers ends as in this process."""

import numpy as np
import pytest
from sklearn.base import clone

from checks import state
from engines.problems import (
    make_binary,
    make_data,
    make_groups,
    make_selector,
    make_source,
    solve,
)
from engines.simulated import SimulatedEngine
from featstream import (
    SAOLA,
    FisherZ,
    Grafting,
    GroupSAOLA,
    SAOLAMax,
    SelectFromStream,
    SymmetricalUncertainty,
)
from featstream.errors import DataError, FeatstreamWarning, ParameterError
from featstream.measures.storages.pair_columns import PairColumns
from featstream.selectors.saola import workers
from featstream.sources import ArraySource


def compare(seed, kind, monkeypatch):
    """Solve a random problem twice; returns both solutions and the engine."""
    rng = np.random.default_rng(seed)
    monkeypatch.setattr(workers, "_LEAST_WIDTH", int(rng.integers(1, 9)))
    X, y, is_discrete = make_data(rng)
    selector, source = make_selector(rng, is_discrete, kind), make_source(rng, X)
    options = {"groups": make_groups(rng, source)} if kind is GroupSAOLA else {}
    engine = SimulatedEngine(rng, int(rng.integers(1, 6)), death=0.1)
    local = solve(clone(selector), y, source, **options)
    remote = solve(selector, y, source, engine=engine, **options)
    return local, remote, engine


EACH_THOUSAND = [
    pytest.param(range(1000 * k, 1000 * k + 1000), marks=pytest.mark.slow)
    for k in range(1, 6)
]


@pytest.mark.parametrize("kind", [SAOLA, GroupSAOLA])
@pytest.mark.parametrize("seeds", [range(40), *EACH_THOUSAND], ids=str)
def test_random_problems_end_as_in_this_process(kind, seeds, monkeypatch):
    for seed in seeds:
        local, remote, engine = compare(seed, kind, monkeypatch)
        assert state(local) == state(remote), seed
        assert engine.most_waiting <= 2 * engine.n_workers + 1  # and what they share


def shipped(engine):
    """The arrivals of the features whose columns came back, with repetitions."""
    replies = [found for found in engine.results if isinstance(found, workers.Reply)]
    parts = [part for reply in replies for part in reply.parts]
    arrivals = []
    for part in parts:
        n_columns = {len(array) for name, array in part.columns.items() if name in ROWS}
        newcomers = part.scored.newcomers
        assert n_columns == (set() if newcomers is None else {newcomers.arrival.size})
        if newcomers is not None:
            arrivals += newcomers.arrival.tolist()
    return arrivals


ROWS = {"arity", "norm", "total"}
"""Arrays with one entry per column, in the storages of the measures."""


@pytest.mark.parametrize("measure", ["su", FisherZ(alpha=0.1)], ids=["su", "fisher-z"])
def test_columns_that_pass_travel_once_and_no_others(measure):
    """Whatever becomes of them later: their fate is any but irrelevant."""
    X, y = make_binary(np.random.default_rng(0), n_features=900)
    for block_bytes in (120 * 70, 120 * 900):
        source = ArraySource(np.asfortranarray(X), block_bytes=block_bytes)
        engine = SimulatedEngine(np.random.default_rng(1), 2, death=0.3)
        found = solve(SAOLA(measure=measure), y, source, engine=engine)
        fates = found.result_.trace.records["fate"]
        assert shipped(engine) == np.flatnonzero(fates != 0).tolist()
        assert 0 < len(shipped(engine)) < 900


def test_columns_of_a_corrected_threshold_travel_if_they_may_pass():
    """No level of a corrected threshold exceeds alpha, and some are below."""
    rng = np.random.default_rng(2)
    y = rng.integers(0, 2, 200)
    X = rng.normal(size=(200, 2000))
    X[:, ::100] += 2 * y[:, None]
    engine = SimulatedEngine(rng, 2)
    found = solve(SelectFromStream(measure="fisher-z"), y, X, engine=engine)
    p_values = np.concatenate(
        [
            part.scored.p_values
            for reply in engine.results
            if isinstance(reply, workers.Reply)
            for part in reply.parts
        ]
    )
    assert shipped(engine) == np.flatnonzero(p_values <= 0.05).tolist()
    fates = found.result_.trace.records["fate"]
    assert set(np.flatnonzero(fates != 0)) < set(shipped(engine))


def test_what_all_columns_share_stays_on_the_workers():
    X, y = make_binary(np.random.default_rng(3))
    engine = SimulatedEngine(np.random.default_rng(0), 2)
    solve(SAOLA(measure="su"), y, X, engine=engine)
    (reply,) = [r for r in engine.results if isinstance(r, workers.Reply)]
    assert "nlogn" not in reply.parts[0].columns
    assert "planes" in reply.parts[0].columns


def test_the_literal_reading_ships_groups_with_a_relevant_feature():
    """Their irrelevant features take part; those of other groups do not travel."""
    rng = np.random.default_rng(4)
    y = np.arange(80) % 2
    X = rng.permuted(np.repeat(y[:, None], 60, axis=1), axis=0)
    X[:, [7, 31]] = np.where(rng.random((80, 2)) < 0.2, X[:, [7, 31]], y[:, None])
    groups, measure = np.arange(60) // 4, SymmetricalUncertainty(threshold=0.2)
    selector = GroupSAOLA(measure=measure, reading="literal")
    local = solve(clone(selector), y, X, groups=groups)
    engine = SimulatedEngine(rng, 2)
    remote = solve(selector, y, X, groups=groups, engine=engine)
    assert state(remote) == state(local)
    assert shipped(engine) == [4, 5, 6, 7, 28, 29, 30, 31]


@pytest.mark.parametrize("kind", [SelectFromStream, SAOLAMax])
def test_the_recommended_settings_and_others_run_on_an_engine(kind):
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 200)
    X = rng.integers(0, 2, (200, 400)).astype(float)
    X[:, ::20] = np.where(rng.random((200, 20)) < 0.4, y[:, None], X[:, ::20])
    local = solve(kind(), y, X)
    engine = SimulatedEngine(rng, 3)
    assert state(solve(kind(), y, X, engine=engine)) == state(local)
    assert local.selected_.size


def test_copies_of_the_target_and_identifiers_are_left_out_and_named():
    """By the workers that find them; the driver warns, and explains."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(5)
    y = np.arange(60) % 2
    frame = pd.DataFrame(rng.integers(0, 2, (60, 30)), columns=map(str, range(30)))
    frame["17"], frame["21"] = 1 - y, [f"patient {i}" for i in rng.permutation(60)]
    texts = []
    for engine in (None, SimulatedEngine(rng, 2)):
        selector = SelectFromStream(measure="su", target_copies="drop").start(y)
        with pytest.warns(FeatstreamWarning) as caught:
            selector.consume(frame, engine=engine)
        said = sorted(str(warning.message) for warning in caught)
        texts.append([*said, selector.explain("17"), selector.explain("21")])
    assert texts[0] == texts[1]
    assert "is the target in other words, and was left out" in texts[0][-2]
    assert "like an identifier, and was left out" in texts[0][-1]


class Products:
    """A measure that brings no storage: the cosine of two columns."""

    name = "products"

    def bind(self, y):
        self.n_samples, self._y = len(y), np.asarray(y) - np.mean(y)
        self.storages = (workers_storage(),)
        return self

    def pair(self, a, b):
        return abs(float(a @ b)) / np.sqrt((a @ a) * (b @ b))

    def encode(self, block):
        return np.ascontiguousarray(block.to_dense().T, np.float64)

    def relevance(self, encoded):
        return np.array([self.pair(row, self._y) for row in encoded])

    def is_relevant(self, scores):
        return scores > 0.2

    def columns(self, encoded, which):
        return PairColumns(encoded, self.pair), which


def workers_storage():
    from featstream.measures.storages.pair_columns import PAIR_COLUMNS

    return PAIR_COLUMNS


def test_a_measure_without_a_storage_of_its_own_runs_on_an_engine():
    rng = np.random.default_rng(6)
    y = rng.integers(0, 2, 50)
    X = rng.normal(size=(50, 80)) + rng.normal(size=80) * y[:, None]
    local = solve(SAOLA(measure=Products()), y, X)
    engine = SimulatedEngine(rng, 2)
    assert state(solve(SAOLA(measure=Products()), y, X, engine=engine)) == state(local)
    assert 1 < local.selected_.size < 80


def test_an_error_comes_when_its_turn_has_come():
    """What was decided before it stays, and the same source continues there."""
    X, y = make_binary(np.random.default_rng(7), n_features=300)
    X = np.asfortranarray(X.astype(float))
    X[3, 250] = np.nan
    source = ArraySource(X, block_bytes=120 * 8 * 40)
    selector = SAOLA(measure="su").start(y)
    with pytest.raises(DataError, match="x250"):
        selector.consume(source, engine=SimulatedEngine(np.random.default_rng(0), 3))
    assert selector.n_seen_ == 240
    X[3, 250] = 0.0
    selector.consume(source)
    assert state(selector) == state(solve(SAOLA(measure="su"), y, source))


def test_groups_and_engines_are_refused_by_selectors_without_them():
    X, y = np.eye(4), [0, 1, 0, 1]
    with pytest.raises(ParameterError, match=r"SAOLA takes no groups.*GroupSAOLA"):
        SAOLA(measure="su").start(y).consume(X, groups=[0, 0, 1, 1])
    with pytest.raises(ParameterError, match="Grafting works in this process alone"):
        Grafting().start(y).consume(X, engine=SimulatedEngine(np.random))
