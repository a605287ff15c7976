"""Group-SAOLA: Algorithm 2 of the paper."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Any, Literal

from numpy.typing import NDArray

from featstream.errors import ParameterError, printable
from featstream.kernels.group_scan import GroupOutcome
from featstream.parallel import count_threads
from featstream.protocols import (
    Fate,
    FloatArray,
    GroupDecision,
    IntArray,
    Measure,
)
from featstream.selectors.base_groups import GroupSelector
from featstream.selectors.group_stream import (
    GroupStream,
    ScoredBatch,
    decisions,
    displacements,
    score_ahead,
)
from featstream.selectors.kept import pack_kept, unpack_kept
from featstream.selectors.online.saola import make_rule
from featstream.selectors.stream import Stream
from featstream.selectors.trace import TraceLevel
from featstream.sources.grouping import Batch

__all__ = ["GroupSAOLA"]

_LIBRARY = {"ties": "keep", "pruning": "interleaved", "overlap": ">="}
"""Options that reading="library" decides, and their defaults."""


class GroupSAOLA(GroupSelector):
    """SAOLA for features that arrive in groups: sparse between and within them.

    A group is dropped if none of its features is relevant. Otherwise its own
    features are pruned as SAOLA prunes a stream, and those left are compared with
    the features of the kept groups, in both directions. A group stays for as long
    as one of its features does.

    Parameters
    ----------
    measure : {"auto", "su", "mi", "fisher-z"} or measure object, default="auto"
        How relevance and overlap are measured; as for `SAOLA`.
    reading : {"printed", "library"}, default="printed"
        How Algorithm 2 is read. "printed": what has been removed takes no further
        part. "library": as the authors' own library does, where features removed
        in the comparison of two groups still remove others, overlap must exceed
        its bound, and of equally relevant features the earlier goes between groups
        and the later within one. `ties`, `pruning` and `overlap` are for
        "printed" alone.
    bound : {"min", "max"}, default="min"
        What the overlap of two features must reach: the smaller of their
        relevances, or the larger.
    ties : {"keep", "drop"}, default="keep"
        Whether two features of exactly equal relevance never remove each other,
        or the earlier may make the later redundant.
    pruning : {"interleaved", "deferred"}, default="interleaved"
        Whether a feature removes others during its walk, even if it is itself
        removed later in the same walk, or only if it is not.
    overlap : {">=", ">"}, default=">="
        Whether overlap must reach its bound, as printed, or exceed it.
    trace : {"full", "kept"} or None, default="full"
        What is remembered of dropped features: why each was dropped (nine bytes
        a feature), only those once kept, or nothing.
    n_jobs : int, optional
        Number of threads that score blocks ahead of the scan. The selection does
        not depend on it.

    Attributes
    ----------
    selected_ : ndarray of int
        Positions of the kept features, group after group in order of arrival.
    selected_groups_ : ndarray
        Labels of the groups with a kept feature, in order of arrival.
    scores_ : ndarray of float
        Relevance of the kept features.
    group_of_ : ndarray of shape (n_features,)
        Label of the group of each feature.
    support_ : ndarray of bool of shape (n_features,)
        Whether each feature is kept.
    measure_ : str
        The measure in use.
    result_ : GroupSelectionResult
        Names, scores and history of features and groups.

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

    Online, a group at a time:

    >>> selector = GroupSAOLA(measure="fisher-z").start(stream.y)
    >>> decision = selector.update_group(stream.X[:, :50], group="plate-0")
    >>> str(decision.fate), len(decision.features)
    ('kept', 50)
    >>> print(selector.explain(group="plate-0"))
    Group 'plate-0' is kept, with 3 of its 50 features.
    """

    def __init__(
        self,
        *,
        measure: str | Measure = "auto",
        reading: Literal["printed", "library"] = "printed",
        bound: Literal["min", "max"] = "min",
        ties: Literal["keep", "drop"] = "keep",
        pruning: Literal["interleaved", "deferred"] = "interleaved",
        overlap: Literal[">=", ">"] = ">=",
        trace: TraceLevel = "full",
        n_jobs: int | None = None,
    ) -> None:
        self.measure = measure
        self.reading = reading
        self.bound = bound
        self.ties = ties
        self.pruning = pruning
        self.overlap = overlap
        self.trace = trace
        self.n_jobs = n_jobs

    def _begin(self, stream: Stream) -> None:
        super()._begin(stream)
        rule = make_rule(self)
        if self.reading not in ("printed", "library"):
            raise ParameterError(
                "`reading` of GroupSAOLA must be 'printed' or 'library'. "
                f"Got {printable(self.reading)}."
            )
        if self.reading == "library":
            for name, default in _LIBRARY.items():
                if getattr(self, name) != default:
                    raise ParameterError(
                        f"`{name}` of GroupSAOLA is decided by reading='library'. Got "
                        f"{printable(getattr(self, name))}. Leave it out, or use "
                        "reading='printed'."
                    )
            rule = rule._replace(needs_excess=True, drops_ties=True)
        is_frozen = self.reading == "library"
        self._state = GroupStream(self._groups, rule, is_frozen=is_frozen)

    def _kept(self) -> tuple[IntArray, FloatArray]:
        return self._state.arrivals_and_scores()

    def _own_arrays(self) -> dict[str, NDArray[Any]]:
        return pack_kept(self._state.kept)

    def _restore_own(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        may_index = self.reading == "printed"
        self._state.kept = unpack_kept(arrays, self._stream, may_index=may_index)

    def _score(self, batches: Iterator[Batch], stream: Stream) -> Iterator[ScoredBatch]:
        return score_ahead(batches, stream, count_threads(self.n_jobs))

    def _decide(
        self, batch: ScoredBatch, stream: Stream
    ) -> tuple[GroupOutcome, list[Hashable]]:
        decided = self._state.decide(batch, stream)
        if stream.trace.level != "full":
            for piece in batch.pieces:
                self._forget_names(stream, piece.block)
        return decided

    def _tell(
        self,
        batch: ScoredBatch,
        decided: tuple[GroupOutcome, list[Hashable]],
        stream: Stream,
    ) -> GroupDecision:
        outcome, emptied = decided
        return GroupDecision(
            batch.labels[0],
            Fate(int(self._groups.fates[-1])),
            decisions(batch, outcome, stream),
            tuple(stream.names[gone] for gone in displacements(outcome)[0].tolist()),
            tuple(emptied),
        )

    def _why_dropped(self, fate: Fate, its_features: str) -> str:
        if fate is Fate.IRRELEVANT:
            return f"none of {its_features} passes the threshold"
        return (
            f"what is relevant of {its_features} is redundant, within the group or "
            "beside those kept before"
        )
