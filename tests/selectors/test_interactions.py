"""Pairs: the kernels against all pairs counted plainly, and what is kept."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.stats import chi2
from sklearn.base import clone
from sklearn.neighbors import KNeighborsClassifier

import featstream
import reference
from checks import check_kills_change_nothing, outcome, state
from crash_runs import narrow
from featstream import SAOLA, Fate, InteractionScreen
from featstream.cli import main
from featstream.errors import DataError, FeatstreamWarning
from featstream.selectors.interactions.screen import spent
from featstream.sources import SparseSource
from shared import load, shared
from strategies import examples, interacting_data

TRUE = [28, 48, 64, 105, 128, 153, 241, 281, 318, 336]
TRUE += [338, 378, 433, 442, 451, 453, 455, 472, 475, 493]
"""The features of madelon that are not noise."""


def xor_data(n=400, p=40, pairs=((3, 17), (8, 30)), seed=0):
    """Each pair decides the class of some of the rows; nothing else does."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (n, p))
    which = rng.integers(0, len(pairs), n)
    y = np.array([X[i, pairs[k][0]] ^ X[i, pairs[k][1]] for i, k in enumerate(which)])
    return X, y


def found(screen):
    return [(pair.first, pair.second) for pair in screen.pairs_]


@pytest.mark.hypothesis
@examples(20)
@given(
    data=st.one_of(interacting_data(), interacting_data(max_arity=2)),
    alpha=st.sampled_from([0.05, 0.9]),
    n_jobs=st.sampled_from([1, 3]),
    width=st.integers(1, 6),
    is_known=st.booleans(),
)
def test_the_screen_is_all_pairs_one_after_the_other(
    data, alpha, n_jobs, width, is_known
):
    X, y = data
    n_features = X.shape[1] if is_known else None
    columns, classes = [c.tolist() for c in X.T], y.tolist()
    partners, pairs, n_tested = reference.interaction_screen(
        columns, classes, alpha, lambda df, g2: chi2.sf(g2, df), n_features
    )
    screen = InteractionScreen(alpha=alpha, n_features=n_features, n_jobs=n_jobs)
    stored = SparseSource(sparse.csc_array(X), block_columns=width)
    for source in (narrow(X, width), stored):
        fitted = clone(screen).start(y).consume(source)
        assert found(fitted) == pairs
        assert fitted.n_tested_ == n_tested
        assert fitted.selected_.tolist() == sorted(partners)
        assert fitted.share_compared_ == 1.0
        trace = fitted.result_.trace
        assert {k: trace.witness(k) for k in partners} == partners
        for pair in fitted.pairs_:
            g2, _ = reference.interaction(
                columns[pair.first], columns[pair.second], classes
            )
            bits = g2 / (2 * len(y) * math.log(2))
            assert pair.information == pytest.approx(bits, rel=1e-12)
            assert pair.p_value <= pair.level


@pytest.mark.parametrize("n", [63, 64, 65, 127, 1000])
def test_words_of_every_length_are_counted(n):
    X, y = xor_data(n=n, p=70, pairs=((3, 68),))
    screen = InteractionScreen().fit(X, y)
    assert found(screen) == [(3, 68)]


def test_a_feature_is_recalled_when_its_partner_comes():
    X, y = xor_data()
    screen = InteractionScreen().start(y)
    decisions = [screen.update(X[:, j], name=f"f{j}") for j in range(X.shape[1])]
    assert decisions[3].fate is Fate.IRRELEVANT
    assert decisions[17].is_kept
    assert (decisions[17].witness, decisions[17].recalled) == ("f3", ("f3",))
    assert screen.explain("f3").startswith("'f3' is kept because of 'f17', with which")
    assert screen.explain("f17").startswith("'f17' is kept because of 'f3'")
    assert "no feature" in screen.explain("f4")
    changed, sizes = screen.result_.trace.sizes()
    assert (changed.tolist(), sizes.tolist()) == ([17, 30], [2, 4])


@pytest.mark.parametrize("trace", ["full", "kept", None])
def test_names_last_until_a_feature_can_no_longer_be_recalled(trace):
    X, y = xor_data()
    screen = InteractionScreen(trace=trace).start(y)
    for j in range(X.shape[1]):
        screen.update(X[:, j], name=f"f{j}")
    assert screen.result_.names == ("f3", "f8", "f17", "f30")


def test_copies_of_a_kept_feature_add_nothing():
    X, y = xor_data()
    copies = np.column_stack([X, 1 - X[:, 17], X[:, 3], X[:, 0]])
    screen = InteractionScreen().fit(copies, y)
    assert screen.selected_.tolist() == [3, 8, 17, 30]
    trace = screen.result_.trace
    fates = [str(trace.fate(40 + k)) for k in range(3)]
    assert fates == ["redundant", "redundant", "irrelevant"]
    assert trace.witness(40) == 17
    assert "adds nothing to 'x3'" in screen.explain(41)
    first = InteractionScreen().fit(copies[:, ::-1], y)  # the copy comes first
    assert sorted(42 - first.selected_) == [8, 30, 40, 41]


def test_near_copies_are_dropped_where_a_level_is_given():
    X, y = xor_data(n=600)
    near = X[:, 17].copy()
    near[::60] ^= 1
    X = np.column_stack([X, near])
    assert 40 in InteractionScreen().fit(X, y).selected_
    strict = InteractionScreen(redundancy_alpha=0.001).fit(X, y)
    assert strict.selected_.tolist() == [3, 8, 17, 30]
    assert strict.result_.trace.witness(40) == 17


def test_the_levels_of_all_pairs_sum_to_alpha():
    assert spent(0, 10**300, 0.05) * 10**300 == pytest.approx(0.05, rel=2e-3)


def test_noise_gives_pairs_in_as_few_streams_as_the_level_says():
    rng, n_streams = np.random.default_rng(1), 300
    n_false = 0
    for _ in range(n_streams):
        X, y = rng.integers(0, 2, (200, 40)), rng.random(200) < 0.2
        n_false += bool(InteractionScreen(n_features=40).fit(X, y).pairs_)
    assert n_false <= n_streams * 0.05 + 3 * math.sqrt(n_streams * 0.05 * 0.95)


def memory_for(n_members, X, y):
    """Memory for the first of these features."""
    pool = InteractionScreen().start(y).consume(X)._search()._pool
    return int(pool.n_bytes[:n_members].sum())


@pytest.mark.filterwarnings("ignore:The memory for pairs")
@pytest.mark.parametrize("make", [np.asarray, sparse.csc_array])
def test_when_memory_is_full_it_says_so_and_how_much_it_compares(make):
    X, y = xor_data(p=200, pairs=((3, 17), (150, 190)))
    screen = InteractionScreen(memory=memory_for(60, make(X), y), seed=5)
    with pytest.warns(FeatstreamWarning, match="is full after"):
        whole = clone(screen).start(y).consume(make(X))
    search = whole._search()
    pool = search._pool
    assert pool.roster.size == 60
    n_compared = sum(min(j, 60) for j in range(200))
    assert whole.share_compared_ == n_compared / math.comb(200, 2)
    assert (3, 17) in found(whole)
    assert search._used == pool.n_bytes[pool.roster].sum() <= search._memory
    for width, n_jobs in ((1, 1), (7, 2), (64, 3)):
        source = narrow(X, width)
        if make is not np.asarray:
            source = SparseSource(make(X), block_columns=width)
        again = clone(screen).set_params(n_jobs=n_jobs).start(y).consume(source)
        assert outcome(again) == outcome(whole)
        assert state(again) == state(whole)
    check_kills_change_nothing(screen, source, y, [20, 90, 170])


@pytest.mark.filterwarnings("ignore:The memory for pairs")
def test_members_are_a_uniform_sample_of_what_was_seen():
    rng, counts = np.random.default_rng(0), np.zeros(60)
    X, y = rng.integers(0, 2, (100, 60)), rng.integers(0, 2, 100)
    memory = memory_for(20, X, y)
    for seed in range(300):
        pool = InteractionScreen(memory=memory, seed=seed).fit(X, y)._search()._pool
        counts[pool.arrival[pool.roster]] += 1
    assert counts.sum() == 300 * 20
    spread = math.sqrt(300 * (1 / 3) * (2 / 3))
    assert np.abs(counts - 100).max() < 4.5 * spread


def test_columns_of_many_categories_take_no_part():
    rng = np.random.default_rng(0)
    X, y = xor_data()
    names = np.array([f"c{k}" for k in rng.integers(0, 12, len(y))], object)
    frame = pytest.importorskip("pandas").DataFrame(X).assign(text=names)
    frame.columns = frame.columns.astype(str)
    screen = InteractionScreen().fit(frame, y)
    assert found(screen) == [(3, 17), (8, 30)]
    assert screen.n_left_out_ == 1


def test_more_features_than_were_promised_are_refused():
    X, y = xor_data()
    screen = InteractionScreen(n_features=30).start(y)
    with pytest.raises(DataError, match="n_features=30"):
        screen.consume(X)
    assert screen.n_seen_ == 0


def test_a_recalled_feature_has_the_witness_and_the_score_of_its_pair():
    """In a trace of any level, and when the run has been loaded again."""
    X, y = xor_data()
    for level in ("full", "kept"):
        screen = InteractionScreen(trace=level).fit(X, y)
        trace = screen.result_.trace
        assert [str(trace.fate(k)) for k in (3, 17)] == ["kept", "kept"]
        assert [trace.witness(k) for k in (3, 17, 8, 30)] == [17, 3, 30, 8]
        scores = dict(zip(screen.selected_, screen.scores_, strict=True))
        for k in (3, 17, 8, 30):
            assert trace.relevance(k) == np.float32(scores[k])
        changed, sizes = trace.sizes()
        assert (changed.tolist(), sizes.tolist()) == ([17, 30], [2, 4])


def test_a_union_of_two_passes_has_what_each_selects():
    """As docs/interactions.md recommends beside SAOLA."""
    X, y = xor_data()
    rng = np.random.default_rng(1)
    X[:, 5] = np.where(rng.random(y.size) < 0.2, X[:, 5], y)
    alone, pairs = SAOLA(measure="su").fit(X, y), InteractionScreen().fit(X, y)
    both = alone.support_ | pairs.support_
    assert {3, 5, 17, 8, 30} <= set(np.flatnonzero(both))


def test_the_command_line_takes_the_options_of_the_screen(tmp_path, capsys):
    X, y = xor_data()
    np.savez(tmp_path / "d.npz", X=X, y=y)
    select = ["select", str(tmp_path / "d.npz"), "-q", "--json"]
    screen, run = ["--selector", "interactions"], str(tmp_path / "run")
    assert main([*select, *screen, "--memory", "2MB", "-o", run]) == 0
    found = {f["index"] for f in json.loads(capsys.readouterr().out)["selected"]}
    assert found == {3, 8, 17, 30}
    assert featstream.resume(run).memory == "2MB"
    assert main(["explain", run, "x17"]) == 0
    assert "because of 'x3', with which it interacts" in capsys.readouterr().out
    for flags in (["--interactions"], ["--memory", "2MB"]):
        with pytest.raises(SystemExit):
            main([*select, "--selector", "saola", *flags])
        assert "unrecognized arguments" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("selector", "n_missed", "n_false"),
    [
        (InteractionScreen(), 0, 0),
        (InteractionScreen(n_bins=2, n_features=500), 1, 0),  # all but 455
        pytest.param(InteractionScreen(n_bins=4), 0, 0, marks=pytest.mark.slow),
    ],
    ids=repr,
)
def test_madelon_is_found(selector, n_missed, n_false):
    data = load(shared("data", "madelon.npz"))
    X, y = data["X_train"], data["y_train"]
    kept = selector.fit(X, y).selected_
    assert len(set(TRUE) - set(kept)) == n_missed
    assert len(set(kept) - set(TRUE)) == n_false
    model = KNeighborsClassifier(5).fit(X[:, kept], y)
    assert model.score(data["X_test"][:, kept], data["y_test"]) >= 0.88
