"""Group-SAOLA: Algorithm 2 of the paper."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from featstream.errors import ParameterError, check_choice, printable
from featstream.estimators import estimator
from featstream.measures.storages.dispatch import EARLIER, for_storage, storage_of
from featstream.protocols import Fate, FloatArray, IntArray
from featstream.selectors.base_groups import GroupSelector
from featstream.selectors.saola.algorithm1 import Newcomers
from featstream.selectors.saola.algorithm2 import (
    Arriving,
    GroupOutcome,
    Workspace,
    as_newcomers,
    scan_groups,
)
from featstream.selectors.saola.budget import Budget
from featstream.selectors.saola.kept import (
    Kept,
    fit_index,
    make_room,
    start_group,
    start_kept,
)
from featstream.selectors.saola.saola import PairwiseSelector
from featstream.selectors.stream import Stream, Verdict
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
    reading : {"printed", "library"}, default="printed"
        How Algorithm 2 is read. "printed": what has been removed takes no further
        part. "library": as the authors' own library does, where features removed
        in the comparison of two groups still remove others, overlap must exceed
        its bound, and of equally relevant features the earlier goes between groups
        and the later within one. `ties`, `pruning` and `overlap` are for
        "printed" alone.

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

    Algorithm 2 of [1]_ leaves irrelevant features of a relevant group in play; here
    they are dropped, as in the authors' library. The paper's numbers of groups and
    features are those of ``reading="library"``. ``docs/fidelity.md`` has the
    details.

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

    reading: Literal["printed", "library"] = "printed"

    def _begin(self, stream: Stream) -> None:
        GroupSelector._begin(self, stream)
        PairwiseSelector._begin(self, stream)
        self._used_tuning = self._tuning
        check_choice(self.reading, "reading", ("printed", "library"), "GroupSAOLA")
        if self.reading == "printed":
            return
        for name, default in _LIBRARY.items():
            if getattr(self, name) != default:
                raise ParameterError(
                    f"`{name}` of GroupSAOLA is decided by reading='library'. Got "
                    f"{printable(getattr(self, name))}. Leave it out, or use "
                    "reading='printed'."
                )
        self._rule = self._rule._replace(needs_excess=True, tie_winner=EARLIER)
        # It visits all kept features.
        self._used_tuning = self._tuning._replace(index_from=np.inf)

    def _restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        super()._restore(arrays)
        self._state = self._unpack(arrays)

    def _kept_ends(self) -> IntArray:
        """The arrival after the last of each group of which something is kept."""
        return np.unique(self._groups.ends[self._groups.of(self._kept()[0])])

    def _packed(self) -> dict[str, NDArray[Any]]:
        return {**super()._packed(), "group_ends": self._kept_ends()}

    def _load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        ends = arrays["group_ends"]
        unknown = np.zeros(ends.size, np.int64)
        self._groups.restore(range(ends.size), ends, unknown, unknown)
        self._state = self._unpack(arrays)

    def _prepare(self, batch: Batch, stream: Stream) -> Callable[[], Verdict]:
        measure = stream.measure
        self._bind_measure(measure)
        scored = []
        for block in batch.blocks:
            encoded = measure.encode(block)
            scores = measure.relevance(encoded)
            found = self._budget.screen(measure, encoded, scores)
            scored.append(Scored(block.start, encoded, scores, *found))
        return partial(self._scan, batch, scored)

    def _scan(self, batch: Batch, scored: list[Scored]) -> Verdict:
        """Walk the relevant features of some groups through the kernel."""
        scored = [block.judged(self._budget) for block in scored]
        outcome = self._walk(batch, [block for block in scored if block.relevant.size])
        return self._verdict(outcome, np.concatenate([b.scores for b in scored]))

    def _walk(self, batch: Batch, blocks: list[Scored]) -> GroupOutcome:
        measure, first = self._stream.measure, batch.blocks[0].start
        n_relevant = sum(block.relevant.size for block in blocks)
        n_events = self._kept()[0].size + n_relevant
        outcome = _new_outcome(first, int(batch.ends[-1]), n_events)
        if not blocks:
            return outcome
        chosen = [measure.columns(block.encoded, block.relevant) for block in blocks]
        arrivals = [block.start + block.relevant for block in blocks]
        ends = first + batch.ends
        group = np.searchsorted(ends, np.concatenate(arrivals), "right")
        begins = np.flatnonzero(np.diff(group, prepend=-1))
        left = start_group(chosen, begins, self._used_tuning)
        group = np.append(group, -1)
        if self._state is None:
            columns, column = chosen[0]
            self._state = start_kept(columns, column, self._used_tuning)
        scratch = storage_of(chosen[0][0]).scratch(measure.n_samples)
        all_ends = np.concatenate([self._kept_ends(), ends])
        how = all_ends, self._rule, self.reading == "library", scratch
        begin = 0
        for block, arrival, (columns, column) in zip(
            blocks, arrivals, chosen, strict=True
        ):
            scores = block.scores[block.relevant]
            no_ceiling = np.empty((scores.size, 0), np.float32)
            newcomers = Newcomers(columns, column, scores, arrival, no_ceiling, 0.0)
            own_group = group[begin : begin + scores.size + 1]
            begin += scores.size
            self._scan_block(newcomers, own_group, left, how, outcome)
        return outcome

    def _scan_block(
        self,
        newcomers: Newcomers,
        group: IntArray,
        left: Kept,
        how: tuple[Any, ...],
        outcome: GroupOutcome,
    ) -> None:
        assert self._state is not None
        self._state = fit_index(self._state, self._used_tuning)
        done = 0
        while True:
            indexes = left.index, self._state.index
            run = for_storage(scan_groups, newcomers.columns, *indexes, self._rule)
            arriving = Arriving(left, as_newcomers(left))
            sets, work = (arriving, self._state), _workspace(left, self._state)
            done = run(newcomers, group, done, *sets, *how, work, outcome)
            if done == newcomers.column.size:
                break
            slot = int(left.live[outcome.n_added[0]])  # the next one to be added
            self._state = make_room(self._state, left.columns, slot, self._used_tuning)

    def _why_dropped(self, fate: Fate, its_features: str) -> str:
        if fate is Fate.IRRELEVANT:
            return f"none of {its_features} passes the threshold"
        return (
            f"what is relevant of {its_features} is redundant, within the group or "
            "beside those kept before"
        )


@dataclass(frozen=True, slots=True)
class Scored:
    """The columns of a block from an arrival on, encoded and scored."""

    start: int
    encoded: Any
    scores: FloatArray
    p_values: FloatArray | None
    relevant: IntArray

    def judged(self, budget: Budget) -> Scored:
        """The same with the features that pass the correction, if there is one."""
        if self.p_values is None:
            return self
        return replace(self, relevant=np.flatnonzero(budget.judge(self.p_values)))


def _workspace(*sets: Any) -> Workspace:
    n_slots = max(kept.live.size for kept in sets)
    return Workspace(np.zeros(n_slots, np.int64), np.zeros(n_slots, np.bool_))


def _new_outcome(first: int, n_features: int, n_events: int) -> GroupOutcome:
    return GroupOutcome(
        first=first,
        fate=np.full(n_features, Fate.IRRELEVANT, np.uint8),
        witness=np.full(n_features, -1, np.int64),
        overlap=np.full(n_features, np.nan),
        gone=np.zeros(n_events, np.int64),
        gone_by=np.zeros(n_events, np.int64),
        n_events=np.zeros(1, np.int64),
        n_added=np.full(1, -1, np.int64),
    )
