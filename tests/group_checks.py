"""Contracts of selectors whose features arrive in groups, besides those of all."""

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.base import clone

import checks
from checks import outcome


def in_order(labels):
    """Labels in order of first appearance, and the positions of each."""
    found = list(dict.fromkeys(labels.tolist()))
    return found, [np.flatnonzero(labels == label).tolist() for label in found]


def check_fit_equals_a_loop_over_groups(selector, X, y, groups):
    whole = clone(selector).fit(X, y, groups=groups)
    online = clone(selector).start(y)
    labels, members = in_order(groups)
    for label, group in zip(labels, members, strict=True):
        decision = online.update_group(X[:, group], group=label)
        assert decision.group == label
        assert len(decision.features) == len(group)
    order = np.concatenate(members)
    assert order[online.selected_].tolist() == whole.selected_.tolist()
    assert outcome(online)[1:] == outcome(whole)[1:]


def check_every_form_of_groups_agrees(selector, X, y, groups):
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(X.shape[1])])
    *expected, kept, fates = outcome(clone(selector).fit(frame, y, groups=groups))
    labels, members = in_order(groups)
    group_of = dict(zip(frame.columns, groups.tolist(), strict=True))
    for form, named in (
        (groups.tolist(), kept),
        (pd.Series(groups), kept),
        (group_of, kept),
        (members, [labels.index(label) for label in kept]),
        ([f"g{label}" for label in groups], [f"g{label}" for label in kept]),
    ):
        found = outcome(clone(selector).fit(frame, y, groups=form))
        assert found == (*expected, named, fates)


def check_scattered_equals_gathered(selector, X, y, groups):
    scattered = clone(selector).fit(X, y, groups=groups)
    order = np.concatenate(in_order(groups)[1])
    gathered = clone(selector).fit(X[:, order], y, groups=groups[order])
    assert order[gathered.selected_].tolist() == scattered.selected_.tolist()
    assert outcome(gathered)[1:] == outcome(scattered)[1:]


def check_prefix_does_not_depend_on_what_follows(selector, X, y, groups):
    order = np.argsort(groups, kind="stable")
    X, groups = X[:, order], groups[order]
    cut = int(np.searchsorted(groups, groups[len(groups) // 2]))
    stream = clone(selector).start(y)
    if cut:
        stream.consume(X[:, :cut], groups=groups[:cut])
        first = clone(selector).fit(X[:, :cut], y, groups=groups[:cut])
        assert outcome(stream) == outcome(first)
    stream.consume(sparse.csc_array(X[:, cut:]), groups=groups[cut:])
    assert outcome(stream) == outcome(clone(selector).fit(X, y, groups=groups))


def check_trace_tells_the_selection(selector, X, y, groups):
    fitted = clone(selector).fit(X, y, groups=groups)
    result = fitted.result_
    _, sizes = result.trace.sizes()
    assert (sizes[-1] if sizes.size else 0) == len(fitted.selected_)
    assert result.groups.n_kept.sum() == len(fitted.selected_)
    assert result.groups.n_features.sum() == X.shape[1]
    assert sum(result.groups.counts().values()) == len(np.unique(groups))
    assert result.groups.counts()["kept"] == fitted.selected_groups_.size
    selected, scores, _, *fates = outcome(fitted)
    for level in ("kept", None):
        part = clone(selector).set_params(trace=level).fit(X, y, groups=groups)
        assert outcome(part)[:2] == (selected, scores)
        assert list(outcome(part)[3:]) == fates


def check_resume_equals_uninterrupted(selector, X, y, groups):
    """However the groups are given, wherever the run is stopped."""
    labels, members = in_order(groups)
    tuples = np.empty(groups.size, object)
    tuples[:] = [("chr", int(label)) for label in groups]
    forms = [
        groups,
        members,
        tuples,
        [f"plate-{label}" for label in groups],
        {f"x{i}": float(label) for i, label in enumerate(groups)},
        None,
    ]
    form = forms[(X.shape[0] + len(labels)) % len(forms)]
    checks.check_resume_equals_uninterrupted(selector, X, y, groups=form)


COMMON_CHECKS = [
    *checks.HOWEVER_FEATURES_ARRIVE,
    check_every_form_of_groups_agrees,
    check_scattered_equals_gathered,
    check_trace_tells_the_selection,
]

GROUP_CHECKS = [
    *COMMON_CHECKS,
    check_fit_equals_a_loop_over_groups,
    check_prefix_does_not_depend_on_what_follows,
    check_resume_equals_uninterrupted,
]

BATCH_GROUP_CHECKS = [*COMMON_CHECKS, checks.check_a_run_holds_the_result]
"""Of batch selectors that know groups."""
