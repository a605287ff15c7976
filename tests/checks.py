"""Contracts that every stream selector keeps, on any measure and any source.

Each check takes a fresh selector and data, and raises if the contract is
broken. A new selector joins the registry in ``tests/selectors/registry.py``.
"""

from __future__ import annotations

import contextlib
import copy
import tempfile

import numpy as np
from scipy import sparse
from sklearn.base import clone

import featstream
from featstream.sources import ArraySource, SparseSource


def outcome(selector):
    """All that must not depend on how the data came: selection, scores, trace."""
    records = selector.result_.trace.records
    return selector.selected_.tolist(), selector.scores_.tolist(), records.tolist()


def check_fit_equals_update_loop(selector, X, y):
    whole = clone(selector).fit(X, y)
    online = clone(selector).start(y)
    fates = [online.update(X[:, j]).fate for j in range(X.shape[1])]
    assert outcome(online) == outcome(whole)
    assert len(fates) == X.shape[1]


def check_block_size_changes_nothing(selector, X, y):
    expected = outcome(clone(selector).fit(X, y))
    column = X.itemsize * X.shape[0]
    for width in (1, 2, 3, 7):
        source = ArraySource(X, block_bytes=column * width)
        assert outcome(clone(selector).start(y).consume(source)) == expected


def check_every_storage_agrees(selector, X, y):
    expected = outcome(clone(selector).fit(X, y))
    for form in (
        np.asfortranarray(X),
        np.ascontiguousarray(X),
        np.repeat(X, 2, axis=1)[:, ::2],
    ):
        assert outcome(clone(selector).fit(form, y)) == expected
    for make in (sparse.csc_array, sparse.csr_array, sparse.csc_matrix):
        assert_close(clone(selector).fit(make(X), y), expected)


def assert_close(selector, expected):
    """Equal to the bit for discrete measures; scores to 1e-12 for continuous ones."""
    found = outcome(selector)
    if selector.measure_ == "fisher-z":
        np.testing.assert_allclose(found[1], expected[1], rtol=0, atol=1e-12)
        assert found[0] == expected[0]
    else:
        assert found == expected


def check_trace_replays_to_selection(selector, X, y):
    fitted = clone(selector).fit(X, y)
    trace = fitted.result_.trace
    kept = [a for a in range(X.shape[1]) if str(trace.fate(a)) == "kept"]
    assert kept == fitted.selected_.tolist()
    changed, sizes = trace.sizes()
    if kept:
        assert sizes[-1] == len(kept)
        assert np.all(np.diff(changed) > 0)
    else:
        assert trace.counts()["kept"] == 0


def check_prefix_does_not_depend_on_what_follows(selector, X, y):
    cut = max(1, X.shape[1] // 2)
    stream = clone(selector).start(y).consume(X[:, :cut])
    assert outcome(stream) == outcome(clone(selector).fit(X[:, :cut], y))
    stream.consume(X[:, cut:])
    assert outcome(stream) == outcome(clone(selector).fit(X, y))


def check_row_permutation_changes_nothing(selector, X, y, seed=0):
    expected = outcome(clone(selector).fit(X, y))
    order = np.random.default_rng(seed).permutation(X.shape[0])
    assert_close(clone(selector).fit(X[order], y[order]), expected)


def check_class_names_do_not_matter(selector, X, y):
    expected = outcome(clone(selector).fit(X, y))
    names = np.array(["zebra", "ant", "mole", "bee"])[y]
    assert outcome(clone(selector).fit(X, names)) == expected


def check_input_is_never_modified(selector, X, y):
    stored = sparse.csc_array(X)
    before, y_before, stored_before = X.copy(), y.copy(), copy.deepcopy(stored)
    clone(selector).fit(X, y)
    clone(selector).fit(stored, y)
    assert np.array_equal(X, before)
    assert np.array_equal(y, y_before)
    for part in ("data", "indices", "indptr"):
        assert np.array_equal(getattr(stored, part), getattr(stored_before, part))


def check_input_is_not_kept_by_reference(selector, X, y):
    values = X.copy()
    stream = clone(selector).start(y).consume(values[:, :-1])
    values[:, :-1] = 0
    stream.update(X[:, -1])
    assert outcome(stream) == outcome(clone(selector).fit(X, y))


def check_irrelevant_features_change_nothing(selector, X, y):
    """Constants may be put anywhere: the rest is decided as before."""
    plain = clone(selector).fit(X, y)
    n, p = X.shape
    spaced = np.zeros((n, 2 * p), X.dtype)
    spaced[:, 1::2] = X
    fitted = clone(selector).fit(spaced, y)
    assert ((fitted.selected_ - 1) / 2).tolist() == plain.selected_.tolist()
    assert fitted.scores_.tolist() == plain.scores_.tolist()


def check_storage_may_change_in_mid_stream(selector, X, y):
    cut = max(1, X.shape[1] // 2)
    expected = outcome(clone(selector).fit(X, y))
    mixed = clone(selector).start(y).consume(X[:, :cut])
    assert_close(mixed.consume(SparseSource(sparse.csc_array(X[:, cut:]))), expected)
    mixed = clone(selector).start(y).consume(sparse.csc_array(X[:, :cut]))
    assert_close(mixed.consume(X[:, cut:]), expected)


class _StoppedError(Exception):
    """Stands for a kill."""


def check_resume_equals_uninterrupted(selector, X, y, cut=None):
    """Stopped after ``cut`` features or later, resumed from disk, never different."""
    cut = X.shape[1] // 2 if cut is None else cut

    def stop(progress):
        if progress.n_seen >= cut:
            raise _StoppedError

    width = max(1, X.shape[1] // 8)
    for source in (
        ArraySource(X, block_bytes=width * X.itemsize * X.shape[0]),
        SparseSource(sparse.csc_array(X), block_columns=width),
    ):
        expected = outcome(clone(selector).start(y).consume(source))
        with tempfile.TemporaryDirectory() as folder:
            killed = clone(selector).start(y)
            with contextlib.suppress(_StoppedError):
                killed.consume(source, checkpoint=folder, every=0, progress=stop)
            resumed = featstream.resume(folder)
            assert resumed.n_seen_ < max(1, cut)
            assert outcome(resumed.consume(source)) == expected
            assert outcome(featstream.resume(folder)) == expected


def check_updates_go_on_after_save(selector, X, y, cut=None):
    cut = X.shape[1] // 2 if cut is None else cut
    expected = outcome(clone(selector).fit(X, y))
    stream = clone(selector).start(y)
    if selector.get_params().get("measure") == "auto":
        return  # it is chosen by as many features as arrive together
    for j in range(cut):
        stream.update(X[:, j])
    with tempfile.TemporaryDirectory() as folder:
        stream.save(folder)
        resumed = featstream.resume(folder)
        for j in range(cut, X.shape[1]):
            resumed.update(X[:, j])
        assert outcome(resumed) == expected


STREAM_CHECKS = [
    check_fit_equals_update_loop,
    check_block_size_changes_nothing,
    check_every_storage_agrees,
    check_trace_replays_to_selection,
    check_prefix_does_not_depend_on_what_follows,
    check_row_permutation_changes_nothing,
    check_class_names_do_not_matter,
    check_input_is_never_modified,
    check_input_is_not_kept_by_reference,
    check_irrelevant_features_change_nothing,
    check_storage_may_change_in_mid_stream,
    check_resume_equals_uninterrupted,
    check_updates_go_on_after_save,
]
