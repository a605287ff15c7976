"""IAMB and MMMB: transcriptions, networks whose blankets are known, the paper."""

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import chi2

import reference_batch as reference
from featstream import IAMB, MMMB, FastOSFS
from featstream.errors import FeatstreamWarning
from featstream.measures import ChiSquareTest, FisherZTest, GTest
from featstream.protocols import Block
from featstream.selectors.batch.blankets import DiscreteVariables
from shared import load, shared

TARGET = "target"


def sample(parents, n, rng):
    """Binary rows of a Bayesian network, given as parents by name, in order.

    The table of each variable favours one category for each configuration of its
    parents, a random one, so that strong and weak links occur.
    """
    data = {}
    for name, causes in parents.items():
        configuration = np.zeros(n, int)
        for cause in causes:
            configuration = configuration * 2 + data[cause]
        rows = np.arange(2 ** len(causes))
        favoured = rng.integers(0, 2) + rows
        if len(causes) > 1:  # no parent may be without effect
            favoured = rows > 0
        sure = 0.7 + 0.2 * rng.random(rows.size)
        is_favoured = rng.random(n) < (sure / (sure + 0.3))[configuration]
        data[name] = (favoured[configuration] + ~is_favoured) % 2
    return data


def blanket_of(parents):
    """Parents, children and the other parents of these."""
    found = set(parents[TARGET])
    for name, causes in parents.items():
        if TARGET in causes:
            found |= {name, *causes}
    return found - {TARGET}


NETWORKS = {
    name: {
        child: causes.split(",") if causes else []
        for child, _, causes in (word.partition("<") for word in words.split())
    }
    for name, words in {
        "collider": "a b<a target<b c<target d<c spouse child<target,spouse e<child",
        "four links": "s a b c<a target<a,b x<target y<target,s z<x w<s",
        "long way round": "root u<root v<root target<u x<target,v y<x z<root",
    }.items()
}
"""Networks by name: each variable, and its causes."""


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
        block = Block(np.asfortranarray(np.c_[x, twin, twin]))
        encoded = GTest().bind(y).encode(block)
        variables = DiscreteVariables([encoded], y, GTest(arity=arity), 1)
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


TABLES = GTest(n_bins=2, max_categories=2, samples_per_df=20, arity="occurring")
"""Tables given k features need 20 * 2**k samples."""


@pytest.mark.parametrize(
    ("selector", "name", "printed"),
    [
        (MMMB(test="fisher-z"), "dexter", 11),
        (MMMB(test="fisher-z"), "arcene", 5),
        (IAMB(test=TABLES), "dexter", 4),
        (IAMB(test=TABLES), "arcene", 3),
        (IAMB(test=TABLES), "dorothea", 6),
    ],
)
def test_as_many_features_are_selected_as_in_the_paper(selector, name, printed):
    data = load(shared("data", f"{name}.npz"))
    X, y = data["X_train"], data["y_train"]
    assert len(selector.fit(X, y).selected_) == printed
    if selector.test is TABLES:  # it is the number that the samples allow
        assert 20 * 2 ** (printed - 1) <= y.size < 20 * 2**printed


def test_a_budget_stops_the_search_and_says_so():
    X, y, _ = data_of(NETWORKS["collider"], n=2000)
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
    X, y, names = data_of(NETWORKS["collider"])
    selector = MMMB(alpha=0.001).fit(X, y)
    far = names.index("a")
    assert "is redundant: given features such as" in selector.explain(far)
    noise = names.index("noise 3")
    assert "is irrelevant" in selector.explain(noise)
