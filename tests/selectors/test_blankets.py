"""IAMB and MMMB: transcriptions, networks whose blankets are known, the paper."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import chi2

import featstream
import reference_batch as reference
from featstream import IAMB, MMMB, FastOSFS
from featstream.errors import FeatstreamWarning
from featstream.measures import ChiSquareTest, FisherZTest, GTest
from featstream.protocols import Block
from featstream.selectors.batch.variables import DiscreteTests
from shared import load, shared

TARGET = "target"


def sample(parents, n, rng, arity=2):
    """Rows of a Bayesian network, given as parents by name, in topological order.

    The table of each variable favours one category for each configuration of its
    parents, a random one, so that strong and weak links occur.
    """
    data = {}
    for name, causes in parents.items():
        configuration = np.zeros(n, int)
        for cause in causes:
            configuration = configuration * arity + data[cause]
        n_rows = arity ** len(causes)
        favoured = rng.integers(0, arity) + np.arange(n_rows) * rng.integers(1, arity)
        if len(causes) > 1:  # no parent may be without effect
            favoured = np.array([bin(k).count("1") for k in range(n_rows)]) > 0
        table = np.full((n_rows, arity), 0.3 / (arity - 1))
        table[np.arange(n_rows), favoured % arity] = 0.7 + 0.2 * rng.random(n_rows)
        table /= table.sum(axis=1, keepdims=True)
        draws = rng.random(n)[:, None]
        data[name] = (draws > table[configuration].cumsum(axis=1)).sum(axis=1)
    return data


def blanket_of(parents):
    """Parents, children and the other parents of these."""
    found = set(parents[TARGET])
    for name, causes in parents.items():
        if TARGET in causes:
            found |= {name, *causes}
    return found - {TARGET}


NETWORKS = {
    "chain with a collider": {
        "a": [],
        "b": ["a"],
        TARGET: ["b"],
        "c": [TARGET],
        "d": ["c"],
        "spouse": [],
        "child": [TARGET, "spouse"],
        "e": ["child"],
    },
    "two parents, two children": {
        "s": [],
        "a": [],
        "b": [],
        "c": ["a"],
        TARGET: ["a", "b"],
        "x": [TARGET],
        "y": [TARGET, "s"],
        "z": ["x"],
        "w": ["s"],
    },
    "a fork and a long way round": {
        "root": [],
        "u": ["root"],
        "v": ["root"],
        TARGET: ["u"],
        "x": [TARGET, "v"],
        "y": ["x"],
        "z": ["root"],
    },
}


def data_of(network, n=20_000, seed=0, n_noise=15):
    rng = np.random.default_rng(seed)
    data = sample(network, n, rng)
    y = data.pop(TARGET)
    noise = rng.integers(0, 2, (n, n_noise))
    names = [*data, *(f"noise {k}" for k in range(n_noise))]
    order = rng.permutation(len(names))
    X = np.column_stack([*data.values(), noise])[:, order]
    return X, y, [names[k] for k in order]


@pytest.mark.parametrize(
    "selector",
    [IAMB(alpha=0.001), MMMB(alpha=0.001), MMMB(alpha=0.001, symmetric=True)],
    ids=["IAMB", "MMMB", "MMMB symmetric"],
)
def test_blankets_of_known_networks_are_recovered(selector):
    """Recall and precision of at least 0.95 over all networks and seeds."""
    n_right = n_found = n_true = 0
    for network in NETWORKS.values():
        for seed in range(4):
            X, y, names = data_of(network, seed=seed)
            found = {names[j] for j in selector.fit(X, y).selected_}
            true = blanket_of(network)
            n_right += len(found & true)
            n_found, n_true = n_found + len(found), n_true + len(true)
    assert n_right / n_true >= 0.95
    assert n_right / n_found >= 0.95


@pytest.mark.parametrize("arity", ["observed", "occurring"])
@pytest.mark.parametrize("seed", range(4))
def test_discrete_blankets_are_those_of_the_transcription(seed, arity):
    network = list(NETWORKS.values())[seed % 3]
    X, y, _ = data_of(network, n=400, seed=seed, n_noise=6)
    X[:, 0] = X[:, 0] * 2 + X[:, 1]  # four categories
    X[:, 2] = X[:, 3] & X[:, 2]  # no row has only this one
    plain = reference.g_test(X, y, alpha=0.05, occurring=arity == "occurring")
    expected = reference.iamb(plain)
    blankets = {s: reference.mmmb(plain, symmetric=s) for s in (False, True)}
    test = GTest(alpha=0.05, arity=arity)
    for form in (X, sparse.csc_array(X)):
        assert IAMB(test=test).fit(form, y).selected_.tolist() == expected
        for symmetric, blanket in blankets.items():
            found = MMMB(test=test, symmetric=symmetric).fit(form, y)
            assert found.selected_.tolist() == blanket
            assert found.n_neighbours_ <= len(blanket)


def test_configurations_that_do_not_occur_may_count_nothing():
    """A feature and its copy have four configurations, of which two occur."""
    y, twin = np.tile([0, 1], 100), np.repeat([0, 1], 100)
    x = np.where(np.arange(200) % 5 == 0, y, np.arange(200) // 2 % 2)
    p_values = {}
    for arity in ("observed", "occurring"):
        tests = DiscreteTests(GTest(arity=arity), y)
        block = Block(np.asfortranarray(np.c_[x, twin, twin]))
        variables = tests.gather([tests.encode(block)], 1)
        found = variables.test(3, [1, 2], np.array([0]))
        p_values[arity] = found.p_value[0]
    statistic = found.effect[0] * 2 * 200 * np.log(2)
    assert statistic > 1
    assert p_values["observed"] == pytest.approx(chi2.sf(statistic, 4))
    assert p_values["occurring"] == pytest.approx(chi2.sf(statistic, 2))


@pytest.mark.parametrize("seed", range(3))
def test_continuous_blankets_are_those_of_the_transcription(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(150, 10))
    X[:, 3] += X[:, 1]
    y = (X[:, 0] + X[:, 1] + rng.normal(size=150) > 0).astype(int)
    X[:, 7] += 2 * y + X[:, 5]
    test = reference.fisher_test(X, y, alpha=0.05)
    for form in (X, sparse.csc_array(X)):
        found = IAMB(test="fisher-z", alpha=0.05).fit(form, y)
        assert found.selected_.tolist() == reference.iamb(test)
        found = MMMB(test="fisher-z", alpha=0.05).fit(form, y)
        assert found.selected_.tolist() == reference.mmmb(test)


def test_several_classes_have_several_indicators():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 600)
    middle = (y == 1) + rng.normal(scale=0.5, size=600)
    X = np.c_[rng.normal(size=600), middle, middle + rng.normal(size=600), y == 2]
    for selector in (IAMB(test="fisher-z"), MMMB(test="fisher-z")):
        found = selector.fit(X + 0.0, y).selected_.tolist()
        assert sorted(found) == [1, 3]


@pytest.mark.parametrize(
    ("name", "printed"), [("dexter", 11), ("arcene", 5)], ids=["dexter", "arcene"]
)
def test_mmmb_selects_as_many_features_as_the_paper(name, printed):
    data = load(shared("data", f"{name}.npz"))
    selector = MMMB(test="fisher-z").fit(data["X_train"], data["y_train"])
    assert len(selector.selected_) == printed


@pytest.mark.parametrize(
    ("name", "printed"), [("dexter", 4), ("arcene", 3), ("dorothea", 6)]
)
def test_iamb_selects_as_many_features_as_the_paper(name, printed):
    """The number that five samples per cell allow: tables given k need 20 * 2**k."""
    data = load(shared("data", f"{name}.npz"))
    y = data["y_train"]
    assert 20 * 2 ** (printed - 1) <= y.size < 20 * 2**printed
    test = GTest(n_bins=2, max_categories=2, samples_per_df=20, arity="occurring")
    selector = IAMB(test=test).fit(data["X_train"], y)
    assert len(selector.selected_) == printed


def test_a_budget_stops_the_search_and_says_so():
    X, y, _ = data_of(NETWORKS["chain with a collider"], n=2000)
    n_columns = X.shape[1]
    for selector in (IAMB(), MMMB()):
        whole = selector.fit(X, y)
        assert whole.is_complete_
        assert whole.n_tests_ > n_columns
        selector.set_params(max_tests=n_columns)
        with pytest.warns(FeatstreamWarning, match="stopped at max_tests=22"):
            selector.fit(X, y)
        assert not selector.is_complete_
        assert selector.n_tests_ == n_columns
        selector.set_params(max_tests=None, max_seconds=1e-9)
        with pytest.warns(FeatstreamWarning, match="stopped at max_seconds"):
            selector.fit(X, y)
        assert len(selector.selected_) == 0


def test_too_few_samples_are_counted():
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 8, (60, 5)), rng.integers(0, 2, 60)
    X[:, 2] = y  # eight categories need 35 samples, given another one 280
    selector = IAMB(test=GTest(binning=None)).fit(X, y)
    assert selector.selected_.tolist() == [2]
    assert selector.n_unreliable_ == 4


def test_a_run_keeps_what_was_counted(tmp_path):
    X, y, _ = data_of(NETWORKS["chain with a collider"], n=2000)
    selector = MMMB().start(y).consume(X, checkpoint=tmp_path / "run")
    again = featstream.resume(tmp_path / "run")
    for name in ("n_tests_", "n_unreliable_", "is_complete_", "n_neighbours_"):
        assert getattr(again, name) == getattr(selector, name)


def test_tests_that_do_not_fit_are_refused():
    for test in (ChiSquareTest(), GTest(arity="largest")):
        with pytest.raises(TypeError, match="IAMB needs the test G²"):
            IAMB(test=test).start([1, 2])
    with pytest.raises(TypeError, match="for IAMB and MMMB alone"):
        FastOSFS(test=GTest(arity="occurring")).start([1, 2])
    with pytest.raises(ValueError, match="`alpha`"):
        MMMB(test=FisherZTest(alpha=5)).start([1, 2])
    with pytest.raises(ValueError, match="`max_seconds` of IAMB"):
        IAMB(max_seconds=-1).start([1, 2])


def test_explanations_name_what_separates():
    X, y, names = data_of(NETWORKS["chain with a collider"])
    selector = MMMB(alpha=0.001).fit(X, y)
    far = names.index("a")
    assert "is redundant: given features such as" in selector.explain(far)
    noise = names.index("noise 3")
    assert "is irrelevant" in selector.explain(noise)
