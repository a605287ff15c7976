"""What saves work must not change the answer: index, ceilings, threads."""

import numpy as np
import pytest
from scipy import sparse

from checks import outcome
from featstream import SAOLA
from featstream.measures.storages.row_index import NODE
from featstream.selectors.saola.kept import Tuning, is_indexed
from featstream.sources import ArraySource

pytestmark = pytest.mark.jit_only


class PlainScan(SAOLA):
    _tuning = Tuning(index_from=np.inf, ceilings_from=10**9)


class Indexed(SAOLA):
    _tuning = Tuning(index_from=-1)


def rare_columns(n_samples=2000, n_features=8000):
    """Sparse columns, most of them rare: the kept set grows to hundreds."""
    rng = np.random.default_rng(0)
    sizes = np.minimum(rng.geometric(0.3, n_features), n_samples // 4)
    sizes[rng.random(n_features) < 0.02] = n_samples // 3
    columns = [np.sort(rng.choice(n_samples, size, replace=False)) for size in sizes]
    rows, indptr = np.concatenate(columns), np.cumsum([0, *sizes])
    shape = (n_samples, n_features)
    X = sparse.csc_array((np.ones(rows.size), rows, indptr), shape=shape)
    return X, rng.integers(0, 3, n_samples)


def test_the_index_is_built_when_walks_are_long_only():
    X, y = rare_columns()
    many = SAOLA(measure="su").start(y).consume(X)
    assert is_indexed(many._state)
    assert outcome(many) == outcome(PlainScan(measure="su").fit(X, y))
    few = SAOLA(measure="su", max_features=5).start(y).consume(X)
    assert not is_indexed(few._state)


def test_an_error_in_a_thread_is_raised_and_what_came_before_is_kept():
    X, y = np.random.default_rng(0).normal(size=(50, 40)), np.arange(50) % 2
    X[7, 31] = np.nan
    selector = SAOLA(measure="fisher-z", n_jobs=2).start(y)
    with pytest.raises(ValueError, match="'x31' has 1 missing"):
        selector.consume(ArraySource(X, block_bytes=50 * 8 * 4))
    assert selector.n_seen_ % 4 == 0
    assert selector.n_seen_ <= 28
    if selector.n_seen_:
        seen = SAOLA(measure="fisher-z").fit(X[:, : selector.n_seen_], y)
        assert outcome(selector) == outcome(seen)


@pytest.mark.parametrize("measure", ["su", "fisher-z"])
def test_the_index_takes_twice_the_kept_columns_and_a_node_per_row_at_most(measure):
    """A thousand kept columns of eight entries, in rows of their own."""
    n_kept, length = 1000, 8
    rows = np.arange(n_kept * length, dtype=np.int32)
    y = np.repeat([0, 1], rows.size)
    X = sparse.csc_array(
        (np.ones(rows.size), rows, np.arange(0, rows.size + 1, length)),
        shape=(y.size, n_kept),
    )
    selector = Indexed(measure=measure).start(y)
    for first in range(0, n_kept, 100):
        selector.consume(X[:, first : first + 100])
    kept = selector._state
    assert kept.size[0] == n_kept
    assert is_indexed(kept)
    arrays = [a for a in kept.columns if isinstance(a, np.ndarray)]
    fields = [a for a in arrays if a.size != y.size + 1]  # not the table of logarithms
    own = sum(a.nbytes * n_kept / kept.live.size for a in fields)
    total = sum(a.nbytes for a in (*fields, *kept.index))
    # Two numbers per row, and a node that is not full for those that are stored.
    node = 4 * (NODE + 1) + (8 * NODE if measure == "fisher-z" else 0)
    assert total < 3 * own + 8 * y.size + 1.25 * rows.size * node


def test_products_after_a_sure_witness_are_left_out_and_change_nothing():
    """Copies of forty features that all stay, so that most have an early witness."""
    rng = np.random.default_rng(3)
    y = np.arange(400) % 2
    noise = rng.normal(size=(400, 40))
    noise -= noise.mean(axis=0)
    basis, _ = np.linalg.qr(np.column_stack([y - y.mean(), noise]))
    kept = basis[:, 1:] + np.linspace(0.4, 0.2, 40) * basis[:, :1]
    copies = kept[:, rng.integers(0, 40, 600)]
    copies = copies + 0.4 * rng.normal(size=copies.shape) / np.sqrt(len(y))
    X = np.asfortranarray(np.column_stack([kept, copies]))
    made = []

    class Watched(SAOLA):
        def _scan(self, newcomers, outcome):
            made.append(np.isnan(newcomers.ceiling).mean() if newcomers.slack else 0.0)
            super()._scan(newcomers, outcome)

    source = ArraySource(X, block_bytes=100 * 8 * len(y))
    watched = Watched(measure="fisher-z").start(y).consume(source)
    expected = PlainScan(measure="fisher-z").start(y).consume(source)
    assert watched.scores_.size >= 40
    assert max(made) > 0.2
    assert outcome(watched) == outcome(expected)
