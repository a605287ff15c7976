"""Which set of columns makes another independent of the target: the search."""

from __future__ import annotations

from numba.extending import overload

from featstream.jit import inner, jit
from featstream.kernels.contingency import (
    INDEPENDENT,
    SINGULAR,
    UNRELIABLE,
    TableRule,
    begin_tables,
    judge_tables,
)
from featstream.kernels.partial import PartialRule, begin_partial, judge_partial

__all__ = ["CUT", "LEFT", "N_TESTS", "N_UNRELIABLE", "next_subset", "separate"]

N_TESTS, N_UNRELIABLE, CUT, LEFT = 0, 1, 2, 3
"""Places in a tally: tests run, not run, searches cut short, tests left to spend."""

_BEGIN = {TableRule: begin_tables, PartialRule: begin_partial}
_JUDGE = {TableRule: judge_tables, PartialRule: judge_partial}


def begin(columns, a, rule, work):
    """Pair column ``a`` with the target."""
    _BEGIN[type(rule)](columns, a, rule, work)


@overload(begin)
def _begin(columns, a, rule, work):
    chosen = _BEGIN[rule.instance_class]
    return lambda columns, a, rule, work: chosen(columns, a, rule, work)


def judge(columns, path, size, built, rule, work):
    """Verdict on the set ``path[:size]``, of which ``built`` members are worked in."""
    return _JUDGE[type(rule)](columns, path, size, built, rule, work)


@overload(judge)
def _judge(columns, path, size, built, rule, work):
    chosen = _JUDGE[rule.instance_class]
    return lambda columns, path, size, built, rule, work: chosen(
        columns, path, size, built, rule, work
    )


@inner
def next_subset(index, size, n):
    """Make ``index[:size]`` the next subset of ``range(n)`` in lexicographic order.

    Returns the first position that changed, or -1 after the last subset.
    """
    p = size - 1
    while p >= 0 and index[p] == n - size + p:
        p -= 1
    if p >= 0:
        index[p] += 1
        for q in range(p + 1, size):
            index[q] = index[q - 1] + 1
    return p


@jit
def separate(columns, a, candidates, must, rule, work, found, tally):
    """Find a set of candidates given which column ``a`` and target are independent.

    Sets of 1, 2, … members, each size in lexicographic order; if ``must`` is not
    negative all sets contain it, besides candidates. Writes the first that
    separates to ``found`` and returns its size, or 0 if none does.
    """
    begin(columns, a, rule, work)
    n_fixed, n = (1 if must >= 0 else 0), candidates.size
    path, index = work.path, work.order
    path[0] = must
    for size in range(1, rule.max_size + 1):
        n_free = size - n_fixed
        if n_free > n:
            break
        for q in range(n_free):
            index[q] = q
            path[n_fixed + q] = candidates[q]
        built = 0
        while True:
            if tally[LEFT] == 0:
                tally[CUT] += 1
                return 0
            verdict, built = judge(columns, path, size, built, rule, work)
            if verdict == UNRELIABLE:
                tally[N_UNRELIABLE] += 1
            elif verdict != SINGULAR:
                tally[N_TESTS] += 1
                tally[LEFT] -= 1
            if verdict == INDEPENDENT or (
                verdict == UNRELIABLE and rule.unreliable_separates
            ):
                for q in range(size):
                    found[q] = path[q]
                return size
            p = next_subset(index, n_free, n)
            if p < 0:
                break
            for q in range(p, n_free):
                path[n_fixed + q] = candidates[index[q]]
            built = min(built, n_fixed + p)
    return 0
