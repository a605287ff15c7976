"""What saves work, made to work on small data, where every decision is checked.

Shortcuts are taken where they pay, which small data never see. Here they are
taken always; ``tests/selectors/test_shortcuts.py`` has larger data.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import strategies
from featstream import SAOLA, FisherZ, GroupSAOLA
from featstream.measures.storages.row_index import has_signature, set_signature
from featstream.selectors.saola import shortcuts
from featstream.selectors.saola.algorithm1 import Newcomers
from featstream.selectors.saola.kept import Tuning
from featstream.sources import ArraySource, SparseSource
from strategies import examples, generators


class PlainScan(SAOLA):
    _tuning = Tuning(index_from=np.inf, ceilings_from=10**9)


ALWAYS = Tuning(
    index_from=-1, group_index_from=-1, is_index_forced=True, ceilings_from=0
)


class Shortcuts(SAOLA):
    _tuning = ALWAYS


class PlainGroups(GroupSAOLA):
    _tuning = Tuning(index_from=np.inf, group_index_from=np.inf, ceilings_from=10**9)


class GroupShortcuts(GroupSAOLA):
    _tuning = ALWAYS


def history(selector):
    return selector.scores_.tolist(), selector.result_.trace.records.tolist()


def check_unchanged(measure, rule, source, y):
    """Shortcuts decide as the plain scan does."""
    plain = PlainScan(measure=measure, **rule).start(y).consume(source)
    found = Shortcuts(measure=measure, **rule).start(y).consume(source)
    assert history(found) == history(plain)


@st.composite
def rare_data(draw):
    """Sparse columns of few entries: many kept, many that share no row.

    Some are the complement of another: these share no row and leave none out.
    """
    rng, p, n = draw(generators(40, 80))
    n, p = n + 6, p + 5
    y = rng.integers(0, rng.integers(2, 4), n)
    y[:2] = [0, 1]
    is_stored = rng.random((n, p)) < rng.choice([0.05, 0.1, 0.3, 0.9], p)
    helped = rng.random(p) < 0.5
    is_stored[:, helped] &= (y[:, None] == 1) | (rng.random((n, 1)) < 0.2)
    X = is_stored * rng.integers(1, rng.integers(2, 5), (n, p))
    copied = rng.random(p) < 0.3
    X[:, copied] = X[:, rng.integers(0, p, copied.sum())]
    opposed = rng.random(p) < rng.choice([0.0, 0.3])
    X[:, opposed] = X[:, rng.integers(0, p, opposed.sum())] == 0
    return X, y


@pytest.mark.parametrize("measure", ["su", "mi", FisherZ(alpha=0.9)], ids=str)
@pytest.mark.parametrize("rules", [strategies.rules(), strategies.conditional_rules()])
@examples(50)
@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
@given(data=st.data(), width=st.sampled_from([1, 4, 9]))
def test_the_index_changes_nothing_even_where_it_does_not_pay(
    measure, rules, data, width
):
    X, y = data.draw(rare_data())
    source = SparseSource(sparse.csc_array(X), block_columns=width)
    check_unchanged(measure, data.draw(rules), source, y)


@examples(60)
@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
@given(
    data=strategies.grouped(rare_data()),
    rule=strategies.group_rules(),
    width=st.sampled_from([4, 100]),
)
def test_the_index_of_one_group_says_nothing_about_the_next(data, rule, width):
    """Several groups of a block take turns in one set and its index."""
    X, y, labels = data
    source = SparseSource(sparse.csc_array(X), block_columns=width)
    plain, found = (
        kind(measure="su", **rule).fit(source, y, groups=labels)
        for kind in (PlainGroups, GroupShortcuts)
    )
    assert history(found) == history(plain)


def test_a_signature_is_length_key_and_score_together():
    """Columns of one size may differ in relevance, and then decide differently."""
    keys, scores = np.zeros((2, 2), np.int64), np.zeros(2)
    set_signature(keys, scores, 1, (3, 7, 0.25))
    assert has_signature(keys, scores, 1, (3, 7, 0.25))
    for other in ((4, 7, 0.25), (3, 8, 0.25), (3, 7, 0.5)):
        assert not has_signature(keys, scores, 1, other)


@st.composite
def growing_data(draw):
    """Columns most of which stay, among near copies of those before them."""
    rng, p, n = draw(generators(60, 60))
    n, p = n + 60, p + 40
    y = rng.integers(0, 2, n)
    y[:2] = [0, 1]
    X = rng.normal(size=(n, p)) + y[:, None] * rng.uniform(0, 0.8, p)
    for j in range(10, p):
        if rng.random() < 0.4:
            X[:, j] = X[:, rng.integers(0, j)] + rng.choice([0.1, 0.8]) * X[:, j]
    return X, y


@examples(30)
@given(
    data=growing_data(),
    rule=strategies.rules() | strategies.conditional_rules(),
    width=st.sampled_from([12, 30]),
)
def test_ceilings_change_nothing_where_the_kept_set_grows_in_a_batch(data, rule, width):
    """It has room for 16 at first, and moves to another place with more."""
    X, y = data
    source = ArraySource(X, block_bytes=width * X.itemsize * len(y))
    check_unchanged(FisherZ(alpha=0.9), rule | {"max_features": None}, source, y)


@examples(45)
@given(
    data=strategies.continuous_data(max_features=40)
    | strategies.awkward_data(max_features=30),
    rule=strategies.rules() | strategies.conditional_rules(),
    width=st.sampled_from([1, 3, 8]),
    alpha=st.sampled_from([0.1, 0.9]),
)
def test_ceilings_change_nothing_even_where_they_do_not_pay(data, rule, width, alpha):
    X, y = data
    source = ArraySource(X, block_bytes=width * X.itemsize * len(y))
    check_unchanged(FisherZ(alpha=alpha), rule, source, y)


def test_a_correlation_is_within_the_error_of_its_ceiling():
    rng = np.random.default_rng(0)
    y = np.arange(90) % 2
    X = rng.normal(size=(90, 30)) * 10.0 ** (np.arange(30) % 12)
    selector = SAOLA(measure=FisherZ(alpha=0.99), overlap=">", bound="max")
    selector.start(y).consume(X)
    bound = FisherZ().bind(y)
    (block,) = ArraySource(X).blocks()
    columns, which = bound.columns(bound.encode(block), np.arange(30))
    tuning = Tuning()
    snapshot = shortcuts.take_snapshot(selector._state, tuning)
    newcomers = Newcomers(columns, which, np.ones(30), np.arange(30))
    found = shortcuts.find_ceilings(newcomers, snapshot, selector._rule, tuning)
    exact = np.corrcoef(X, rowvar=False)[:, found.arrival]
    near = found.product[:, : found.arrival.size].astype(np.float64)
    assert found.arrival.size > 4
    assert (np.abs(near - exact) <= found.error + 1e-12).all()
