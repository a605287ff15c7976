"""Contracts of selectors whose features arrive in groups."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
from scipy import sparse
from sklearn.base import clone

import checks
from featstream.sources import ArraySource


def in_order(labels):
    """Lists of positions, groups in order of first appearance."""
    found = list(dict.fromkeys(labels.tolist()))
    return found, [np.flatnonzero(labels == label).tolist() for label in found]


def outcome(selector):
    """All that must not depend on how the data came."""
    result = selector.result_
    return (
        selector.selected_.tolist(),
        selector.scores_.tolist(),
        selector.selected_groups_.tolist(),
        result.groups.fates.tolist(),
        result.trace.records.tolist(),
    )


def check_fit_equals_a_loop_over_groups(selector, X, y, labels):
    whole = clone(selector).fit(X, y, groups=labels)
    online = clone(selector).start(y)
    found, groups = in_order(labels)
    for label, group in zip(found, groups, strict=True):
        decision = online.update_group(X[:, group], group=label)
        assert decision.group == label
        assert len(decision.features) == len(group)
    order = np.concatenate(groups)
    assert order[online.selected_].tolist() == whole.selected_.tolist()
    assert outcome(online)[1:] == outcome(whole)[1:]


def check_blocks_and_threads_change_nothing(selector, X, y, labels):
    expected = outcome(clone(selector).fit(X, y, groups=labels))
    column, known = X.itemsize * X.shape[0], selector.get_params()
    for width in (1, 2, 3, 7):
        source = ArraySource(X, block_bytes=column * width)
        for options in ({}, {"n_jobs": 3}) if "n_jobs" in known else ({},):
            stream = clone(selector).set_params(**options).start(y)
            assert outcome(stream.consume(source, groups=labels)) == expected


def check_every_storage_agrees(selector, X, y, labels):
    expected = outcome(clone(selector).fit(X, y, groups=labels))
    names = [f"f{i}" for i in range(X.shape[1])]
    for form in (
        np.asfortranarray(X),
        sparse.csr_array(X),
        pd.DataFrame(X, columns=names),
        pd.DataFrame(X),
        pl.DataFrame(X, schema=names),
        pl.LazyFrame(X, schema=names),
    ):
        assert outcome(clone(selector).fit(form, y, groups=labels)) == expected


def check_every_form_of_groups_agrees(selector, X, y, labels):
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(X.shape[1])])
    fitted = clone(selector).fit(frame, y, groups=labels)
    expected = outcome(fitted)
    group_of = dict(zip(frame.columns, labels.tolist(), strict=True))
    for groups in (labels.tolist(), pd.Series(labels), group_of):
        assert outcome(clone(selector).fit(frame, y, groups=groups)) == expected
    listed = clone(selector).fit(frame, y, groups=in_order(labels)[1])
    assert outcome(listed)[:2] == expected[:2]
    assert outcome(listed)[3:] == expected[3:]
    text = clone(selector).fit(frame, y, groups=[f"g{label}" for label in labels])
    assert text.selected_groups_.tolist() == [f"g{label}" for label in expected[2]]


def check_scattered_equals_gathered(selector, X, y, labels):
    scattered = clone(selector).fit(X, y, groups=labels)
    order = np.argsort([in_order(labels)[0].index(v) for v in labels], kind="stable")
    gathered = clone(selector).fit(X[:, order], y, groups=labels[order])
    assert order[gathered.selected_].tolist() == scattered.selected_.tolist()
    assert outcome(gathered)[1:] == outcome(scattered)[1:]


def check_prefix_does_not_depend_on_what_follows(selector, X, y, labels):
    order = np.argsort(labels, kind="stable")
    X, labels = X[:, order], labels[order]
    cut = int(np.searchsorted(labels, labels[len(labels) // 2]))
    stream = clone(selector).start(y)
    if cut:
        stream.consume(X[:, :cut], groups=labels[:cut])
        first = clone(selector).fit(X[:, :cut], y, groups=labels[:cut])
        assert outcome(stream) == outcome(first)
    stream.consume(sparse.csc_array(X[:, cut:]), groups=labels[cut:])
    assert outcome(stream) == outcome(clone(selector).fit(X, y, groups=labels))


def check_trace_agrees_with_selection(selector, X, y, labels):
    fitted = clone(selector).fit(X, y, groups=labels)
    result = fitted.result_
    _, sizes = result.trace.sizes()
    assert (sizes[-1] if sizes.size else 0) == len(fitted.selected_)
    assert result.groups.n_kept.sum() == len(fitted.selected_)
    assert result.groups.n_features.sum() == X.shape[1]
    assert sum(result.groups.counts().values()) == len(np.unique(labels))
    assert result.groups.counts()["kept"] == fitted.selected_groups_.size
    for level in ("kept", None):
        part = clone(selector).set_params(trace=level).fit(X, y, groups=labels)
        assert outcome(part)[:4] == outcome(fitted)[:4]


def check_row_order_changes_nothing(selector, X, y, labels):
    order = np.random.default_rng(0).permutation(len(y))
    shuffled = clone(selector).fit(X[order], y[order], groups=labels)
    assert outcome(shuffled) == outcome(clone(selector).fit(X, y, groups=labels))


def check_input_is_never_modified(selector, X, y, labels):
    before, labels_before = X.copy(), labels.copy()
    clone(selector).fit(X, y, groups=labels)
    assert np.array_equal(X, before)
    assert np.array_equal(labels, labels_before)


def check_a_run_holds_the_result(selector, X, y, labels):
    """Stopped before its end, it begins again; then the folder has it all."""
    checks.check_a_run_holds_the_result(selector, X, y, groups=labels)


def check_resume_equals_uninterrupted(selector, X, y, labels):
    """However the groups are given, wherever the run is stopped."""
    found, groups = in_order(labels)
    tuples = np.empty(labels.size, object)
    tuples[:] = [("chr", int(label)) for label in labels]
    forms = [
        labels,
        groups,
        tuples,
        [f"plate-{label}" for label in labels],
        {f"x{i}": float(label) for i, label in enumerate(labels)},
        None,
    ]
    form = forms[(X.shape[0] + len(found)) % len(forms)]
    checks.check_resume_equals_uninterrupted(selector, X, y, groups=form)


GROUP_CHECKS = [
    check_fit_equals_a_loop_over_groups,
    check_blocks_and_threads_change_nothing,
    check_every_storage_agrees,
    check_every_form_of_groups_agrees,
    check_scattered_equals_gathered,
    check_prefix_does_not_depend_on_what_follows,
    check_trace_agrees_with_selection,
    check_row_order_changes_nothing,
    check_input_is_never_modified,
    check_resume_equals_uninterrupted,
]

BATCH_GROUP_CHECKS = [
    check_blocks_and_threads_change_nothing,
    check_every_storage_agrees,
    check_every_form_of_groups_agrees,
    check_scattered_equals_gathered,
    check_trace_agrees_with_selection,
    check_row_order_changes_nothing,
    check_input_is_never_modified,
    check_a_run_holds_the_result,
]
"""Of batch selectors that know groups."""
