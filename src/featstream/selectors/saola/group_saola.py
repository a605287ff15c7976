"""Group-SAOLA: Algorithm 2 of the paper."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import numpy as np

from featstream.errors import ParameterError, check_choice, printable
from featstream.estimators import estimator
from featstream.measures.storages.dispatch import EARLIER, for_storage, storage_of
from featstream.protocols import BoolArray, Fate, IntArray
from featstream.selectors.base_groups import GroupSelector
from featstream.selectors.saola.algorithm1 import (
    Newcomers,
    Outcome,
    Scored,
    new_outcome,
)
from featstream.selectors.saola.algorithm2 import Arriving, Workspace, scan_groups
from featstream.selectors.saola.kept import (
    Kept,
    fit_index,
    make_room,
    start_group,
    start_kept,
)
from featstream.selectors.saola.saola import PairwiseSelector
from featstream.selectors.stream import Decide, Stream, Verdict
from featstream.sources.grouping import Batch

_LIBRARY = {"ties": "keep", "pruning": "interleaved", "overlap": ">="}
"""Options that reading="library" decides, and their defaults."""


@estimator
class GroupSAOLA(PairwiseSelector, GroupSelector):
    """SAOLA for features that arrive in groups: sparse between and within them.

    A group is dropped if none of its features is relevant. Otherwise its own
    features are pruned as SAOLA prunes a stream, and those left are compared with
    the features of the kept groups, in both directions. A group stays for as long
    as one of its features does.

    Parameters
    ----------
    reading : {"relevant", "literal", "library"}, default="relevant"
        How Algorithm 2 is read. "literal": to the letter, so that Steps 5 to 8 drop
        only groups without any relevant feature, and irrelevant features of the
        others are compared like relevant ones. "relevant": Steps 5 to 8 drop single
        irrelevant features as well. "library": as the authors' own library does,
        which drops them too; there features removed in the comparison of two groups
        still remove others, overlap must exceed its bound, and of equally relevant
        features the earlier goes between groups and the later within one. `ties`,
        `pruning` and `overlap` are not for "library".
    max_features : int, optional
        Keep at most this number: after each group the least relevant leave.

    See Also
    --------
    SAOLA : The same for features that arrive one by one.
    featstream.random_groups : The groups of the paper's experiments.

    Notes
    -----
    Groups arrive in the order in which they first appear, features in that of
    their group. If the features of a group are scattered they are gathered, from
    arrays, sparse matrices and data frames; other sources are read in order, and
    there the features of a group must be next to each other. A group costs memory
    for its own columns while it arrives, and then for the kept ones.

    Groups of one feature each give what `SAOLA` gives, with the same options.

    The paper's numbers of groups and features are those of ``reading="library"``;
    ``docs/fidelity-groups.md`` compares the readings.

    References
    ----------
    .. [1] K. Yu, X. Wu, W. Ding, J. Pei: Scalable and Accurate Online Feature
       Selection for Big Data. ACM TKDD 11(2), 2016.

    Examples
    --------
    >>> from featstream import GroupSAOLA
    >>> from featstream.datasets import make_stream
    >>> stream = make_stream(n_features=500, kind="continuous", seed=0)
    >>> groups = [f"plate-{i // 50}" for i in range(500)]
    >>> selector = GroupSAOLA().fit(stream.X, stream.y, groups=groups)
    >>> set(stream.blanket) <= set(selector.selected_)
    True

    Online, one group at a time:

    >>> selector = GroupSAOLA(measure="fisher-z").start(stream.y)
    >>> decision = selector.update_group(stream.X[:, :50], group="plate-0")
    >>> str(decision.fate), len(decision.features)
    ('kept', 50)
    >>> print(selector.explain(group="plate-0"))
    Group 'plate-0' is kept, with 3 of its 50 features.
    """

    reading: Literal["relevant", "literal", "library"] = "relevant"
    max_features: int | None = None

    def _begin(self, stream: Stream) -> None:
        GroupSelector._begin(self, stream)
        PairwiseSelector._begin(self, stream)
        self._used_tuning = self._tuning
        readings = ("relevant", "literal", "library")
        check_choice(self.reading, "reading", readings, "GroupSAOLA")
        if self.reading != "library":
            return
        for name, default in _LIBRARY.items():
            if getattr(self, name) != default:
                raise ParameterError(
                    f"`{name}` of GroupSAOLA is decided by reading='library'. Got "
                    f"{printable(getattr(self, name))}. Leave it out, or use "
                    "reading='relevant'."
                )
        self._rule = self._rule._replace(needs_excess=True, tie_winner=EARLIER)
        # It visits all kept features.
        self._used_tuning = self._tuning._replace(index_from=np.inf)

    def _kept_ends(self) -> IntArray:
        """The arrival after the last of each group of which something is kept."""
        return np.unique(self._groups.ends[self._groups.of(self._kept()[0])])

    def _score_batch(self, batch: Batch) -> list[Scored]:
        scored = [self._score(block) for block in batch.blocks]
        return scored if self.reading != "literal" else _in_relevant(batch, scored)

    def _deciding(self, batch: Any, scored: list[Scored]) -> Decide:
        return partial(self._decide_about, batch, scored)

    def _taking_part(self, relevant: IntArray, n_features: int) -> IntArray:
        if self.reading == "literal":  # whether their group is relevant shows later
            return np.arange(n_features)
        return relevant

    def _pass(self, batch: Batch, scored: list[Scored]) -> BoolArray:
        """Which features of some groups pass Steps 5 to 8."""
        passes = np.concatenate([self._are_relevant(block) for block in scored])
        if self.reading != "literal":
            return passes
        begins = np.append(0, batch.ends[:-1])
        has_relevant = np.logical_or.reduceat(passes, begins)
        return np.repeat(has_relevant, batch.ends - begins)

    def _are_relevant(self, scored: Scored) -> BoolArray:
        """Which features of a block are relevant."""
        if scored.p_values is not None:
            return self._budget.judge(scored.p_values)
        is_relevant = np.zeros(scored.scores.size, np.bool_)
        is_relevant[scored.relevant] = True
        return is_relevant

    def _decide_about(self, batch: Batch, scored: list[Scored]) -> Verdict:
        """Walk the features that pass, of some groups, through the kernel."""
        first, newcomers = scored[0].start, []
        passes = self._pass(batch, scored)
        for block in scored:
            new = block.newcomers
            if new is None:
                continue
            part = passes[new.arrival - first]
            if part.any():
                newcomers.append(new if part.all() else new.part(part))
        n_events = self._kept()[0].size + sum(new.column.size for new in newcomers)
        outcome = new_outcome(first, int(batch.ends[-1]), n_events)
        if newcomers:
            self._walk(newcomers, first + batch.ends, outcome)
        return self._verdict(
            outcome, np.concatenate([block.scores for block in scored])
        )

    def _walk(
        self, newcomers: list[Newcomers], ends: IntArray, outcome: Outcome
    ) -> None:
        """Take the newcomers of several blocks, in groups, through Algorithm 2."""
        columns, tuning = newcomers[0].columns, self._used_tuning
        arrivals = np.concatenate([new.arrival for new in newcomers])
        group = np.searchsorted(ends, arrivals, "right")
        begins = np.flatnonzero(np.diff(group, prepend=-1))
        left = start_group(newcomers, begins, tuning)
        group = np.append(group, -1)
        if self._state is None:
            self._state = start_kept(columns, newcomers[0].column, tuning)
        scratch = storage_of(columns).scratch(self._stream.measure.n_samples)
        all_ends = np.concatenate([self._kept_ends(), ends])
        how = all_ends, self._rule, self.reading == "library", scratch
        begin = 0
        for new in newcomers:
            own_group = group[begin : begin + new.column.size + 1]
            begin += new.column.size
            self._scan_block(new, own_group, left, how, outcome)

    def _scan_block(
        self,
        newcomers: Newcomers,
        group: IntArray,
        left: Kept,
        how: tuple[Any, ...],
        outcome: Outcome,
    ) -> None:
        assert self._state is not None
        self._state = fit_index(self._state, self._used_tuning)
        done, n_added = 0, np.full(1, -1)
        while True:
            run = for_storage(scan_groups, newcomers.columns)
            n_slots = max(left.live.size, self._state.live.size)
            work = Workspace(
                np.empty(n_slots, np.int64), np.zeros(n_slots, bool), n_added
            )
            sets = Arriving.of(left), self._state
            done = run(newcomers, group, done, *sets, *how, work, outcome)
            if done == newcomers.column.size:
                break
            slot = int(left.live[n_added[0]])  # the next one to be added
            self._state = make_room(self._state, left.columns, slot, self._used_tuning)

    def _why_dropped(self, fate: Fate, its_features: str) -> str:
        if fate is Fate.IRRELEVANT:
            return f"none of {its_features} passes the threshold"
        return (
            f"what is relevant of {its_features} is redundant, within the group or "
            "beside those kept before"
        )


def _in_relevant(batch: Batch, scored: list[Scored]) -> list[Scored]:
    """The same without newcomers of groups in which no feature can be relevant."""
    first = scored[0].start
    relevant = [block.start - first + block.relevant for block in scored]
    groups = np.searchsorted(batch.ends, np.concatenate(relevant), "right")
    may_pass = np.zeros(batch.ends.size, np.bool_)
    may_pass[groups] = True
    left = []
    for block in scored:
        newcomers = block.newcomers
        if newcomers is not None:
            group = np.searchsorted(batch.ends, newcomers.arrival - first, "right")
            takes_part = may_pass[group]
            newcomers = newcomers.part(takes_part) if takes_part.any() else None
        left.append(block._replace(newcomers=newcomers))
    return left
