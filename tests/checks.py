"""Contracts that every selector keeps, on any measure and any source.

Each check takes a fresh selector and data, and raises if the contract is broken;
``how`` are options of `fit`: groups. A new selector joins ``tests/registry.py``.
"""

import contextlib
import copy
import os
import signal
import tempfile
from itertools import combinations
from unittest import mock

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import settings
from scipy import sparse
from sklearn.base import clone

import featstream
import reference
import strategies
from crash_runs import Stop, narrow, stop_at
from featstream import Fate
from featstream.measures import resolve_measure
from featstream.selectors.result import Trace
from featstream.sources import SparseSource
from scores import overlaps, relevances, scores_of


def outcome(selector):
    """All that must not depend on how the data came.

    Selection, scores, trace; of selectors of groups, these and their fates.
    """
    result = selector.result_
    found = selector.selected_, selector.scores_, result.trace.records
    if hasattr(result, "groups"):
        found += selector.selected_groups_, result.groups.fates
    return tuple(array.tolist() for array in found)


def assert_same(selector, X, y, *others, **how):
    """Other forms of X are decided about as X is."""
    expected = outcome(clone(selector).fit(X, y, **how))
    for other in others:
        assert outcome(clone(selector).fit(other, y, **how)) == expected


def fates_of(selector):
    """The fate of every feature and the one that decided it, by arrival."""
    trace = selector.result_.trace
    arrivals = range(selector.n_seen_)
    return {a: (str(trace.fate(a)), trace.witness(a)) for a in arrivals}


def update_all(stream, columns):
    """The columns one by one: the first in a buffer of its own, the next as it is."""
    decisions = []
    for i, column in enumerate(columns.T):
        values = column.copy() if i % 2 == 0 else column
        decisions.append(stream.update(values))
        if i % 2 == 0:
            values[:] = 0  # it may change after the decision
    return decisions


def check_fit_equals_update_loop(selector, X, y):
    whole = clone(selector).fit(X, y)
    online = clone(selector).start(y)
    at_once = [decision.fate for decision in update_all(online, X)]
    assert outcome(online) == outcome(whole)
    trace = whole.result_.trace
    for j, fate in enumerate(at_once):  # later a kept feature may be displaced
        later = {fate, Fate.DISPLACED} if fate is Fate.KEPT else {fate}
        if trace.fate(j) is Fate.KEPT and (trace.witness(j) or 0) > j:
            later = {Fate.KEPT}  # it was recalled
        assert trace.fate(j) in later


def check_blocks_and_threads_change_nothing(selector, X, y, **how):
    expected = outcome(clone(selector).fit(X, y, **how))
    for width, n_jobs in ((1, None), (2, 3), (3, None), (7, 3)):
        stream = clone(selector)
        if "n_jobs" in selector.get_params():
            stream.set_params(n_jobs=n_jobs)
        assert outcome(stream.start(y).consume(narrow(X, width), **how)) == expected


def check_every_storage_agrees(selector, X, y, **how):
    names = [f"f{i}" for i in range(X.shape[1])]
    arrays = np.asfortranarray(X), np.ascontiguousarray(X), np.repeat(X, 2, 1)[:, ::2]
    frames = pd.DataFrame(X), pd.DataFrame(X, columns=names)
    frames += pl.DataFrame(X, schema=names), pl.LazyFrame(X, schema=names)
    assert_same(selector, X, y, *arrays, *frames, **how)
    expected = outcome(clone(selector).fit(X, y, **how))
    for make in (sparse.csc_array, sparse.csr_array, sparse.csc_matrix):
        assert_close(clone(selector).fit(make(X), y, **how), expected)


def assert_close(selector, expected):
    """Equal to the bit for discrete measures; scores to 1e-12 for continuous ones."""
    found = outcome(selector)
    if selector.measure_ == "fisher-z":
        np.testing.assert_allclose(found[1], expected[1], rtol=0, atol=1e-12)
        found, expected = (found[0], *found[3:]), (expected[0], *expected[3:])
    assert found == expected


def check_trace_tells_the_selection(selector, X, y):
    fitted = clone(selector).fit(X, y)
    trace = fitted.result_.trace
    kept = [a for a in range(X.shape[1]) if trace.fate(a) is Fate.KEPT]
    assert kept == sorted(fitted.selected_.tolist())
    assert kept == np.flatnonzero(fitted.support_).tolist()
    assert trace.counts()["kept"] == len(kept)
    assert list(fitted.result_.names) == [f"x{j}" for j in fitted.selected_]
    changed, sizes = trace.sizes()
    assert (sizes[-1] if sizes.size else 0) == len(kept)
    assert np.all(np.diff(changed) > 0)
    for j in range(X.shape[1]):
        assert f"'x{j}' " in fitted.explain(j)


def check_row_permutation_changes_nothing(selector, X, y, **how):
    expected = outcome(clone(selector).fit(X, y, **how))
    order = np.random.default_rng(0).permutation(X.shape[0])
    assert_close(clone(selector).fit(X[order], y[order], **how), expected)


def check_class_names_do_not_matter(selector, X, y):
    names = np.array(["zebra", "ant", "mole", "bee"])[y]
    expected = outcome(clone(selector).fit(X, y))
    assert outcome(clone(selector).fit(X, names)) == expected


def check_input_is_never_modified(selector, X, y, **how):
    stored = sparse.csc_array(X)
    given = (X, y, stored.data, stored.indices, stored.indptr, *how.values())
    before = copy.deepcopy(given)
    clone(selector).fit(X, y, **how)
    clone(selector).fit(stored, y, **how)
    assert all(map(np.array_equal, given, before))


def check_input_is_not_kept_by_reference(selector, X, y):
    values = X.copy()
    stream = clone(selector).start(y).consume(values[:, :-1])
    values[:, :-1] = 0
    stream.update(X[:, -1])
    assert outcome(stream) == outcome(clone(selector).fit(X, y))


def check_constants_change_nothing(selector, X, y):
    """P5. Constants may be put anywhere: the rest is decided as before."""
    for value in (0, 1, -3, 0.1):
        constant = np.full(X.shape[0], value)
        check_insertion_changes_nothing(selector, X, y, [constant] * X.shape[1])


def check_irrelevant_features_change_nothing(selector, X, y):
    """P6. So may features that do not pass the threshold, whatever they are."""
    rng = np.random.default_rng(0)
    drawn = rng.integers(0, 2, (X.shape[0], 40)).astype(X.dtype)
    alone = clone(selector).fit(drawn, y).result_.trace
    is_irrelevant = [alone.fate(j) is Fate.IRRELEVANT for j in range(40)]
    chosen = list(drawn[:, is_irrelevant].T)
    if chosen:
        check_insertion_changes_nothing(selector, X, y, chosen)


def check_insertion_changes_nothing(selector, X, y, inserted):
    """Put the features among those of X, in turn, and compare what is kept of X."""
    plain, n_new = clone(selector).fit(X, y), len(inserted)
    places = np.r_[np.arange(n_new), np.arange(X.shape[1]) + 0.5]
    order = np.argsort(places)
    fitted = clone(selector).fit(np.column_stack([*inserted, X])[:, order], y)
    old = np.flatnonzero(order >= n_new)
    assert fitted.selected_.tolist() == old[plain.selected_].tolist()
    assert fitted.scores_.tolist() == plain.scores_.tolist()
    trace = fitted.result_.trace
    for j in np.flatnonzero(order < n_new):
        assert trace.fate(j) is Fate.IRRELEVANT


def check_a_stream_may_come_in_parts(selector, X, y):
    """Neither what follows nor its storage changes what was decided."""
    cut = max(1, X.shape[1] // 2)
    first, whole = (outcome(clone(selector).fit(part, y)) for part in (X[:, :cut], X))
    stream = clone(selector).start(y).consume(X[:, :cut])
    assert outcome(stream) == first
    assert outcome(stream.consume(X[:, cut:])) == whole
    for one, other in ((np.asarray, sparse.csc_array), (sparse.csc_array, np.asarray)):
        stream = clone(selector).start(y).consume(one(X[:, :cut]))
        assert_close(stream.consume(other(X[:, cut:])), whole)


def check_an_interrupt_waits_for_the_end_of_a_block(selector, X, y):
    """Ctrl-C between keeping and recording: neither is without the other."""
    expected = outcome(clone(selector).fit(X, y))
    cut, record, signals = X.shape[1] // 2, Trace.record, [signal.SIGINT]

    def interrupted(trace, verdict):
        if signals and trace.n_seen + verdict.fate.size > cut:
            signal.raise_signal(signals.pop())
        record(trace, verdict)

    stream, source = clone(selector).start(y), narrow(X, 2)
    with (
        mock.patch.object(Trace, "record", interrupted),
        pytest.raises(KeyboardInterrupt),
    ):
        stream.consume(source)
    assert stream.n_seen_ > cut
    if stream.n_seen_ < X.shape[1]:
        stream.consume(source)
    assert outcome(stream) == expected


MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
"""A folder in memory, where there is one: a sync to the disk takes its time."""


def state(selector):
    """All that a selector knows, to the last bit: what a run saves of it."""
    return {
        name: (array.dtype.str, array.shape, np.ascontiguousarray(array).tobytes())
        for name, array in selector._arrays().items()
    }


def consume_with_kills(selector, source, y, folder, cuts, **how):
    """Consume a source, stopped at each of ``cuts`` and resumed."""
    running = clone(selector).start(y)
    for cut in sorted(cuts):
        saving = {"checkpoint": folder, "every": 0, "progress": stop_at(cut)}
        with contextlib.suppress(Stop):
            running.consume(source, **saving, **how)
        running = featstream.resume(folder)
        assert running.n_seen_ < max(1, cut) or not running._run.unfinished
    if running._run is None or running._run.unfinished is not None:
        running.consume(source, checkpoint=folder, **how)
    return running


def check_resume_equals_uninterrupted(selector, X, y, cut=None, **options):
    """Stopped after ``cut`` features or anywhere, resumed from disk: never different.

    ``options`` are those of `consume`: groups.
    """
    cuts, width = [cut], 30
    if cut is None:
        rng = np.random.default_rng(X.shape)
        cuts = rng.integers(1, X.shape[1] + 1, rng.integers(1, 4)).tolist()
        width = int(rng.integers(1, 5))
        trace = ("full", "kept", None)[rng.integers(3)]
        selector = clone(selector).set_params(trace=trace)
    stored = SparseSource(sparse.csc_array(X), block_columns=width)
    for source in (narrow(X, width), stored):
        check_kills_change_nothing(selector, source, y, cuts, **options)


def check_kills_change_nothing(selector, source, y, cuts, **how):
    """However often, wherever it is stopped: the same result, the same state."""
    whole = clone(selector).start(y).consume(source, **how)
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        killed = consume_with_kills(selector, source, y, folder, cuts, **how)
        for found in (killed, featstream.resume(folder)):
            assert outcome(found) == outcome(whole)
            assert state(found) == state(whole)
            assert repr(found) == repr(whole)


class Recut:
    """A source in blocks of at most ``width`` columns."""

    def __init__(self, source, width):
        self._source, self._width = source, width
        self.n_samples, self.n_features = source.n_samples, source.n_features
        self.fingerprint = getattr(source, "fingerprint", None)

    def blocks(self, start=0):
        for block in self._source.blocks(start):
            for begin in range(0, block.n_columns, self._width):
                yield block.part(begin, min(begin + self._width, block.n_columns))


def check_data_set_agrees(selector, dataset, X, y, names=None):
    """Features from a file are decided about as those in memory."""
    expected = outcome(clone(selector).fit(X, y))
    assert (dataset.source.n_samples, dataset.source.n_features) == X.shape
    found = clone(selector).start(dataset.y).consume(dataset.source)
    assert_close(found, expected)
    if names is not None:
        assert list(found.result_.names) == [names[j] for j in expected[0]]


def check_data_set_resumes(selector, open_again, cut, width):
    """Stopped, opened again and resumed: as uninterrupted, to the bit."""
    dataset = open_again()
    expected = outcome(clone(selector).start(dataset.y).consume(dataset.source))

    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        killed = clone(selector).start(dataset.y)
        with contextlib.suppress(Stop):
            source, stop = Recut(dataset.source, width), stop_at(cut)
            killed.consume(source, checkpoint=folder, every=0, progress=stop)
        resumed = featstream.resume(folder)
        assert 0 < resumed.n_seen_ < dataset.source.n_features
        assert outcome(resumed.consume(open_again().source)) == expected
        assert outcome(featstream.resume(folder)) == expected


def check_updates_go_on_after_save(selector, X, y, cut=None):
    cut = X.shape[1] // 2 if cut is None else cut
    if selector.get_params().get("measure") == "auto":
        return  # it is chosen by as many features as arrive together
    stream = clone(selector).start(y)
    update_all(stream, X[:, :cut])
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        stream.save(folder)
        resumed = featstream.resume(folder)
        update_all(resumed, X[:, cut:])
    assert outcome(resumed) == outcome(clone(selector).fit(X, y))


# Of batch selectors ---------------------------------------------------------------


def check_a_run_holds_the_result(selector, X, y, **options):
    """Stopped before its end, it begins again; then the folder has it all."""
    whole, source = clone(selector).fit(X, y, **options), narrow(X, 3)
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        running = clone(selector).start(y)
        with (
            mock.patch.object(type(selector), "_select", side_effect=KeyboardInterrupt),
            pytest.raises(KeyboardInterrupt),
        ):
            running.consume(source, checkpoint=folder, **options)
        resumed = featstream.resume(folder)
        assert resumed.n_seen_ == 0
        for found in (
            running.consume(source, **options),
            featstream.resume(folder),
            clone(selector).start(y).consume(source, checkpoint=folder, **options),
        ):
            assert outcome(found) == outcome(whole)
            assert state(found) == state(whole)
            assert repr(found) == repr(whole)


def check_more_features_are_refused(selector, X, y):
    fitted = clone(selector).fit(X, y)
    expected = outcome(fitted)
    with pytest.raises(ValueError, match="all features at once"):
        fitted.consume(X)
    assert outcome(fitted) == expected
    assert outcome(fitted.start(y).consume(X)) == expected


# Of selectors that compare pairs by Algorithm 1 -----------------------------------


def check_every_decision_is_as_printed(selector, X, y):
    """P7 and P10. After each arrival all is as Algorithm 1 has it, with its reasons."""
    scores = scores_of(resolve_measure(selector.measure), X, y)
    rule = {name: getattr(selector, name) for name in strategies.RULES}
    pair_rule = {name: rule[name] for name in ("bound", "ties", "overlap")}
    stream, before, n_kept = clone(selector).start(y), {}, []
    for i in range(X.shape[1]):
        decision = stream.update(X[:, i])
        seen = scores._replace(relevance=scores.relevance[: i + 1])
        fates = reference.saola(seen, **rule)
        assert fates_of(stream) == fates
        fate, witness = fates[i]
        gone = [f"x{j}" for j in before if before[j] != fates[j]]
        kept = [j for j in fates if fates[j][0] == "kept"]
        overlap = scores.overlap(i, witness) if fate == "redundant" else None
        name = f"x{witness}" if fate == "redundant" else None
        found = (decision.arrival, decision.relevance, str(decision.fate))
        assert found == (i, scores.relevance[i], fate)
        assert (decision.witness, decision.overlap) == (name, overlap)
        assert list(decision.displaced) == gone
        assert stream.selected_.tolist() == kept
        allowed = {None}
        for newer, older in combinations(reversed(kept), 2):
            if rule["pruning"] == "newcomers":
                allowed = {None, older}
            assert reference.loser(newer, older, scores, **pair_rule) in allowed
        before = fates
        n_kept.append(len(kept))
    changed, sizes = stream.result_.trace.sizes()
    assert sizes.tolist() == [n_kept[i] for i in changed]


def check_duplicates_follow_the_tie_rule(selector, X, y):
    """P4. A copy of a kept feature, right after it: by ties and by pruning."""
    if selector.max_features is not None or selector.overlap == ">":
        return
    plain = clone(selector).fit(X, y)
    stream = clone(selector).start(y)
    for k in range(X.shape[1]):
        if not stream.update(X[:, k]).is_kept:
            continue
        order = [*range(k + 1), *range(k, X.shape[1])]
        doubled = clone(selector).fit(X[:, order], y)
        online = clone(selector).start(y).consume(X[:, : k + 1])
        before = online.selected_.tolist()
        decision = online.update(X[:, k])
        kept = [order[j] for j in doubled.selected_ if j != k + 1]
        if selector.ties == "drop":
            assert decision.fate is Fate.REDUNDANT
            assert k + 1 not in doubled.selected_
            assert kept == plain.selected_.tolist()
            continue
        assert decision.is_kept
        assert online.selected_.tolist() == [*before, k + 1]
        if selector.pruning == "deferred":
            assert kept == plain.selected_.tolist()
            assert (k + 1 in doubled.selected_) == (k in plain.selected_)


def check_a_limit_holds_at_every_moment(selector, X, y):
    """P16. At most k are kept, the most relevant; a limit not reached is none."""
    for limit in (1, 2, X.shape[1]):
        stream = clone(selector).set_params(max_features=limit).start(y)
        for j in range(X.shape[1]):
            before = dict(zip(stream.selected_, stream.scores_, strict=True))
            decision = stream.update(X[:, j])
            assert len(stream.selected_) <= limit
            if decision.fate is Fate.DISPLACED:
                assert all(score >= decision.relevance for score in before.values())
    free = clone(selector).set_params(max_features=None)
    limited = clone(selector).set_params(max_features=X.shape[1])
    assert outcome(limited.fit(X, y)) == outcome(free.fit(X, y))


# Of measures ----------------------------------------------------------------------


def check_category_names_do_not_matter(selector, X, y):
    """P3, for discrete measures: any bijection of the labels of any feature."""
    rng = np.random.default_rng(0)
    renamed = X.copy()
    for j in range(X.shape[1]):
        labels = np.unique(X[:, j])
        # Few or many, negative, with gaps or beyond what a lookup table holds.
        most = rng.choice([labels.size, 50, 10**7])
        names = rng.choice(np.arange(most) if most < 100 else most, labels.size, False)
        renamed[:, j] = (names - rng.integers(0, 5))[np.searchsorted(labels, X[:, j])]
    assert_same(selector, X, y, renamed, sparse.csc_array(renamed))


def check_spellings_of_values_agree(selector, X, y):
    """P13, for discrete measures and small whole numbers.

    Kernels are compiled for each type, dense and sparse: the fixed examples have the
    most frequent ones, the random examples of ``make test-slow`` all.
    """
    dtypes = [np.uint8, np.float64]
    if not settings.default.derandomize:
        dtypes += [np.int8, np.int16, np.int32, np.uint64, np.float32]
        dtypes += [bool] if X.max() <= 1 else []
    dense, text = [X.astype(dtype) for dtype in dtypes], pd.DataFrame(X.astype(str))
    frames = pd.DataFrame(X), text, text.astype("category"), pl.DataFrame(X)
    forms = *dense, *map(sparse.csc_array, dense), *frames, X.astype(object)
    assert_same(selector, X, y, *forms)


def check_scale_sign_and_shifts_change_nothing(selector, X, y):
    """P14, for correlations, to the bit: powers of two; sums of whole numbers."""
    rng, n = np.random.default_rng(0), X.shape[1]
    factor = 2.0 ** rng.integers(-40, 40, n) * rng.choice([-1, 1], n)
    assert_same(selector, X, y, X * factor)
    whole = np.round(4 * X)
    assert_same(selector, whole, y, whole + rng.integers(-(10**6), 10**6, n))


def check_dense_and_sparse_scores_agree(measure, X, y):
    tolerance = 1e-12 if X.dtype.kind == "f" else 0.0
    for score in (relevances, overlaps):
        found, expected = score(measure, sparse.csc_array(X), y), score(measure, X, y)
        np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)


def check_overlap_is_symmetric(measure, X, y):
    found = overlaps(measure, X, y)
    np.testing.assert_allclose(found, found.T, rtol=0, atol=1e-15)


def check_a_copy_of_the_class_is_most_relevant_and_a_constant_irrelevant(measure, X, y):
    columns = np.column_stack([X, y, np.full(len(y), 3)]).astype(X.dtype)
    *scores, best, none = relevances(measure, columns, y)
    assert best >= max(scores) - 1e-12
    assert none == 0.0
    assert not measure.bind(y).is_relevant(np.array([none]))[0]


MEASURE_CHECKS = [
    check_dense_and_sparse_scores_agree,
    check_overlap_is_symmetric,
    check_a_copy_of_the_class_is_most_relevant_and_a_constant_irrelevant,
]
"""Of every measure."""

HOWEVER_FEATURES_ARRIVE = [
    check_blocks_and_threads_change_nothing,
    check_every_storage_agrees,
    check_row_permutation_changes_nothing,
    check_input_is_never_modified,
]
"""Of every selector, also of groups."""

COMMON_CHECKS = [
    *HOWEVER_FEATURES_ARRIVE,
    check_class_names_do_not_matter,
    check_constants_change_nothing,
    check_irrelevant_features_change_nothing,
    check_trace_tells_the_selection,
]
"""Of every selector, stream or batch."""

STREAM_CHECKS = [
    *COMMON_CHECKS,
    check_fit_equals_update_loop,
    check_a_stream_may_come_in_parts,
    check_input_is_not_kept_by_reference,
    check_an_interrupt_waits_for_the_end_of_a_block,
    check_resume_equals_uninterrupted,
    check_updates_go_on_after_save,
]
"""Of every stream selector, with any measure."""

BATCH_CHECKS = [
    *COMMON_CHECKS,
    check_a_run_holds_the_result,
    check_more_features_are_refused,
]
"""Of every batch selector."""

PAIRWISE_CHECKS = [
    check_every_decision_is_as_printed,
    check_duplicates_follow_the_tie_rule,
    check_a_limit_holds_at_every_moment,
]
"""Of selectors with the options of Algorithm 1."""

DISCRETE_CHECKS = [check_category_names_do_not_matter, check_spellings_of_values_agree]
CONTINUOUS_CHECKS = [check_scale_sign_and_shifts_change_nothing]
