"""The rule by which one feature removes another."""

from __future__ import annotations

from typing import NamedTuple

from featstream.jit import inner

__all__ = ["Rule", "bound_of", "reaches"]


class Rule(NamedTuple):
    """The options of Algorithms 1 and 2, as the kernels want them.

    Attributes
    ----------
    uses_max_bound : bool
        SAOLA-max: overlap must reach the larger of the two relevances.
    needs_excess : bool
        Overlap must exceed its bound instead of reaching it.
    drops_ties : bool
        Of two equally relevant features the earlier may remove the later.
    is_deferred : bool
        A newcomer that is discarded displaces nothing.
    limit : int
        Keep at most so many features.
    """

    uses_max_bound: bool
    needs_excess: bool
    drops_ties: bool
    is_deferred: bool
    limit: int


@inner
def bound_of(score_a, score_b, rule):
    """What the overlap of two features has to reach for one to remove the other."""
    return max(score_a, score_b) if rule.uses_max_bound else min(score_a, score_b)


@inner
def reaches(value, score_a, score_b, rule):
    """Whether an overlap is enough for that."""
    bound = bound_of(score_a, score_b, rule)
    return value > bound if rule.needs_excess else value >= bound
