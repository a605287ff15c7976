"""IAMB and MMMB: transcriptions, a network whose blanket is known, the paper."""

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import chi2

import reference_batch as reference
from featstream import IAMB, MMMB
from featstream.errors import FeatstreamWarning
from featstream.measures import FisherZTest, GTest
from featstream.protocols import Block
from featstream.selectors.batch.blankets import DiscreteVariables

BLANKET = {"b", "c", "child", "spouse"}


def data_of(n=20_000, seed=0, n_noise=15):
    """Rows of a -> b -> y -> c -> d and y -> child <- spouse, child -> e; and noise."""
    rng = np.random.default_rng(seed)

    def copy(values):
        return values ^ (rng.random(n) < 0.2)

    a, spouse = rng.integers(0, 2, (2, n))
    b = copy(a)
    y = copy(b)
    c, child = copy(y), copy(y | spouse)
    data = {"a": a, "b": b, "c": c, "d": copy(c), "e": copy(child)}
    data |= {"child": child, "spouse": spouse}
    data |= {f"noise {k}": rng.integers(0, 2, n) for k in range(n_noise)}
    names = rng.permutation(list(data)).tolist()
    return np.column_stack([data[name] for name in names]), y, names


@pytest.mark.parametrize(
    "selector",
    [IAMB(alpha=0.001), MMMB(alpha=0.001), MMMB(alpha=0.001, symmetric=True)],
    ids=repr,
)
def test_the_blanket_of_a_known_network_is_found(selector):
    for seed in range(4):
        X, y, names = data_of(seed=seed)
        found = [names[j] for j in selector.fit(X, y).selected_]
        assert set(found) == BLANKET
        if isinstance(selector, MMMB):
            assert set(found[: selector.n_neighbours_]) == BLANKET - {"spouse"}


def check_blankets(X, y, test, plain):
    """Dense and sparse, they are those of the transcription."""
    expected = {
        IAMB(test=test): reference.iamb(plain),
        MMMB(test=test): reference.mmmb(plain),
        MMMB(test=test, symmetric=True): reference.mmmb(plain, symmetric=True),
    }
    for selector, blanket in expected.items():
        for form in (X, sparse.csc_array(X)):
            assert selector.fit(form, y).selected_.tolist() == blanket


@pytest.mark.parametrize("arity", ["observed", "occurring"])
@pytest.mark.parametrize("seed", range(4))
def test_discrete_blankets_are_those_of_the_transcription(seed, arity):
    X, y, _ = data_of(n=400, seed=seed, n_noise=6)
    X[:, 0] = X[:, 0] * 2 + X[:, 1]  # four categories
    X[:, 2] = X[:, 3] & X[:, 2]  # no row has only this one
    plain = reference.g_test(X, y, alpha=0.05, occurring=arity == "occurring")
    check_blankets(X, y, GTest(alpha=0.05, arity=arity), plain)


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
    plain = reference.fisher_test(X, y, alpha=0.05)
    check_blankets(X, y, FisherZTest(alpha=0.05), plain)


def test_a_budget_stops_the_search_and_says_so():
    X, y, _ = data_of(n=2000)
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


def test_explanations_name_what_separates():
    X, y, names = data_of()
    selector = MMMB(alpha=0.001).fit(X, y)
    assert "is redundant: given features such" in selector.explain(names.index("a"))
    assert "is irrelevant" in selector.explain(names.index("noise 3"))
