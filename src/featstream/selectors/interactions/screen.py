"""InteractionScreen: pairs of features that matter together, found in a stream."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, chdtri, xlogy

from featstream.errors import (
    DataError,
    FeatstreamWarning,
    as_bytes,
    check_alpha,
    check_count,
    size_text,
)
from featstream.estimators import estimator
from featstream.measures.information import SymmetricalUncertainty
from featstream.measures.inputs import as_labels
from featstream.parallel import count_threads
from featstream.protocols import Block, Fate, FloatArray, IntArray, Span
from featstream.runs.arrays import Arrays, Declared, check_arrays, damaged
from featstream.selectors.base import StreamSelector
from featstream.selectors.interactions.pools import (
    MAX_LEVELS,
    DensePool,
    Newcomers,
    Pool,
    SparsePool,
)
from featstream.selectors.result import TraceLevel
from featstream.selectors.stream import Stream, Verdict

FIRST_PAIRS = 1e5
"""Pairs after which the level begins to fall."""

_SEARCH = "interactions_"
"""Begins the names of the arrays of a search that a selector saves beside its own."""

_POOL = "pool_"
_COUNTS = ("n_tested", "n_compared", "n_candidates", "n_left_out", "is_full")
_STEP = 512
_FEW_LEVELS = 4
"""Whole numbers of at most this many values are categories as they are."""


class Pair(NamedTuple):
    """Two kept features that interact.

    Attributes
    ----------
    first, second : int
        Their arrivals, the earlier first.
    information : float
        Interaction information, in bits.
    p_value : float
        Of the test of no interaction.
    level : float
        What the p-value had to reach: it pays for the pairs tested so far.
    """

    first: int
    second: int
    information: float
    p_value: float
    level: float


class Found(NamedTuple):
    """What the search found in a block, by arrival.

    ``entered`` has the partner of every feature that has entered, of this block or
    earlier; ``redundant``, for each newcomer whose pairs add nothing, the kept
    feature that makes it redundant, and the information of its best pair in bits.
    """

    entered: dict[int, int]
    redundant: dict[int, tuple[int, float]]


class _Member(NamedTuple):
    """A feature that entered with a pair, which is known by its number."""

    pair: int
    score: float
    codes: NDArray[np.uint8]


def spent(n_tested: float, n_more: float, alpha: float) -> float:
    """Level of each of the next ``n_more`` tests, after ``n_tested``.

    The tests up to number m may spend ``alpha * (1 - 1 / log2(2 + m / 100,000))``, so
    that all tests of a stream without end spend ``alpha``.

    >>> round(sum(spent(m, 1, 0.05) for m in range(100_000)), 4)
    0.0185
    """
    begin = 2 + n_tested / FIRST_PAIRS
    end = begin + n_more / FIRST_PAIRS
    gone = np.log1p((end - begin) / begin) / np.log(2)
    return float(alpha * gone / (np.log2(begin) * np.log2(end)) / n_more)


class PairSearch:
    """Search for pairs that say more about the class than their members do.

    It knows the target; features arrive in blocks. ``options`` is an
    `InteractionScreen`, which describes the parameters.
    """

    name = "interaction"

    def __init__(
        self,
        options: Any,
        y: Any,
        n_threads: int,
        missing: Literal["error", "category"] = "error",
    ) -> None:
        owner, none = type(options).__name__, "for a stream without end"
        self._alpha: float = check_alpha(options.alpha, owner)
        n_bins = check_count(options.n_bins, "n_bins", owner, least=2, most=8)
        self._n_features: int | None = options.n_features
        check_count(self._n_features, "n_features", owner, none=none)
        self._redundancy_alpha = options.redundancy_alpha
        if self._redundancy_alpha is not None:
            check_alpha(self._redundancy_alpha, owner, "redundancy_alpha")
        self._memory, self._n_threads = as_bytes(options.memory, "memory"), n_threads
        self._seed = check_count(options.seed, "seed", owner, least=0, most=2**63 - 1)
        labels = as_labels(y)
        self.n_samples = labels.codes.size
        few = max(n_bins, _FEW_LEVELS)
        binned: Any = {"n_bins": n_bins, "max_categories": few, "missing": missing}
        self._encoder = SymmetricalUncertainty(**binned).bind(y)
        self.left_out = self._encoder.left_out
        self._n_classes = labels.classes.size
        self._class_of = np.repeat(np.arange(self._n_classes), labels.counts)
        self._pools: dict[bool, Pool]
        self._pools = {False: DensePool(labels), True: SparsePool(labels)}
        self._pool = self._pools[False]
        nlogn = self._pool.nlogn
        self._nats = 4 * np.log(2) / float(nlogn[2])  # statistic to G², twice n nats
        self.pairs: list[Pair] = []
        self._members: dict[int, _Member] = {}
        self._by_partition: dict[bytes, int] = {}
        self._used = 0
        self.n_tested = self.n_compared = self.n_candidates = self.n_left_out = 0
        self.is_full = False
        self._departed: set[int] = set()  # in the last block
        self._has_scores = False

    def kept(self) -> tuple[IntArray, FloatArray]:
        """Members of kept pairs and their scores, in order of arrival."""
        arrivals = np.array(sorted(self._members), np.int64)
        scores = [self._members[arrival].score for arrival in arrivals.tolist()]
        return arrivals, np.array(scores, np.float64)

    def score_of(self, arrival: int) -> float:
        """The score of a member of a kept pair."""
        return self._members[arrival].score

    def pair_of(self, arrival: int) -> Pair | None:
        """The pair with which a feature entered."""
        member = self._members.get(arrival)
        return None if member is None else self.pairs[member.pair]

    @property
    def share_compared(self) -> float:
        """Share of the pairs that were compared, of features that vary."""
        n_pairs = math.comb(self.n_candidates, 2)
        return self.n_compared / n_pairs if n_pairs else 1.0

    def forgotten(self, start: int, end: int) -> set[int]:
        """Features that cannot be recalled, of a block and of those that left."""
        members = set(self._pool.arrival[self._pool.roster].tolist())
        return (set(range(start, end)) | self._departed) - members

    def encode(self, block: Block) -> list[tuple[int, Newcomers]]:
        """Columns in a form that can be compared; in parts that fit the caches."""
        parts: list[tuple[int, Newcomers]] = []
        pool = self._pools[block.is_sparse]
        for begin in range(0, block.n_columns, _STEP):
            part = block.part(begin, min(begin + _STEP, block.n_columns))
            codes: Any = self._encoder.encode(part)
            parts.append((begin, pool.encode(codes)))
        return parts

    def check_number(self, n_seen: int) -> None:
        """Raise if more features have arrived than were promised."""
        if self._n_features is not None and n_seen > self._n_features:
            raise DataError(
                f"Feature number {self._n_features + 1:,} has arrived, and the level "
                f"was set for n_features={self._n_features:,}. Give the number of "
                "features of the whole stream, or None if it has no end."
            )

    def take(
        self, block: Block, encoded: Any, scores: FloatArray | None = None
    ) -> Found:
        """Test the columns of a block with all in the pool, and add them to it.

        ``scores`` are theirs if a feature is to have another score than the
        interaction information of the pair with which it enters.
        """
        self._has_scores, self._departed = scores is not None, set()
        self._pool = self._pools[block.is_sparse]
        self.check_number(block.start + block.n_columns)
        found = Found({}, {})
        for begin, newcomers in encoded:
            self.n_left_out += newcomers.n_left_out
            which = begin + newcomers.which
            own = np.zeros(which.size) if scores is None else scores[which]
            if which.size:
                self._take_part(block.start + which, newcomers, own, found)
        return found

    def _take_part(
        self, arrivals: IntArray, newcomers: Newcomers, scores: FloatArray, found: Found
    ) -> None:
        pool = self._pool
        numbers = pool.add(newcomers, arrivals, scores)
        n_members = self._admit(numbers)
        bounds = partial(self._bounds, self._level(1))
        pairs, n_tested = pool.compare(newcomers, numbers, bounds, self._n_threads)
        self.n_candidates += arrivals.size
        self.n_compared += int(n_members.sum())
        pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]
        cuts = np.searchsorted(pairs[:, 0], np.arange(1, arrivals.size))
        by_newcomer = np.split(pairs[:, 1:], cuts)
        for q in np.flatnonzero(n_tested).tolist():
            if by_newcomer[q].size:
                level = self._level(int(n_tested[q]))
                self._judge(int(numbers[q]), by_newcomer[q], level, found)
            self.n_tested += int(n_tested[q])
        pool.settle()

    def _level(self, n_tests: int) -> float:
        """Level of each of the next tests."""
        if self._n_features is None:
            return spent(self.n_tested, n_tests, self._alpha)
        return self._alpha / max(1, math.comb(self._n_features, 2))

    def _bounds(self, level: float, a: int, b: int) -> FloatArray:
        """Bounds of the statistic, a little below that of the level."""
        bound = float(chdtri(self._df(a, b), level)) * 0.999
        return np.array([np.floor(bound / self._nats), bound / 2])

    def _df(self, a: Any, b: Any) -> Any:
        return (a - 1) * (b - 1) * (self._n_classes - 1)

    def _admit(self, numbers: IntArray) -> IntArray:
        """Add newcomers to the roster; the number of members each is compared with.

        When memory is full a newcomer replaces a member with the probability with
        which every earlier feature is in the pool: a uniform sample of the stream.
        """
        pool, n_before = self._pool, self._pool.roster.size
        n_bytes = int(pool.n_bytes[numbers].sum())
        if not self.is_full and self._used + n_bytes <= self._memory:
            self._used += n_bytes
            pool.roster = np.concatenate([pool.roster, numbers])
            return n_before + np.arange(numbers.size)
        roster, n_members = pool.roster.tolist(), []
        for q, number in enumerate(numbers.tolist()):
            n_members.append(len(roster))
            size, arrival = int(pool.n_bytes[number]), int(pool.arrival[number])
            if self._used + size <= self._memory and not self.is_full:
                roster.append(number)
                self._used += size
                continue
            if not self.is_full:
                self._warn_of_memory(arrival, len(roster))
            self.is_full = True
            # It depends on the seed and the arrival alone.
            random = np.random.Generator(np.random.Philox(key=[self._seed, arrival]))
            r, leaves = int(random.integers(self.n_candidates + q + 1)), number
            if r < len(roster):
                freed = int(pool.n_bytes[roster[r]])
                if self._used - freed + size <= self._memory:
                    self._used += size - freed
                    leaves, roster[r] = roster[r], number
                    self._departed.add(int(pool.arrival[leaves]))
            pool.left[leaves] = q
        pool.roster = np.array(roster, np.int64)
        return np.array(n_members, np.int64)

    def _warn_of_memory(self, arrival: int, n_members: int) -> None:
        warnings.warn(
            f"The memory for pairs, {size_text(self._memory)}, is full after "
            f"{arrival:,} features. From now on newcomers are compared with a random "
            f"sample of {n_members:,} of the features before them; share_compared_ "
            "says how much that is. Give more memory to compare all pairs.",
            FeatstreamWarning,
            stacklevel=2,
        )

    def _judge(self, number: int, pairs: IntArray, level: float, found: Found) -> None:
        """Keep the significant pairs of a newcomer, the most significant first."""
        pool, (others, statistic) = self._pool, pairs.T
        arrival, partners = int(pool.arrival[number]), pool.arrival[others]
        g2 = statistic * self._nats
        df = self._df(pool.levels[number], pool.levels[others])
        p_value = chdtrc(df, g2)
        order = np.lexsort((partners, -g2, p_value))
        for k in order[p_value[order] <= level].tolist():
            partner, other = int(partners[k]), int(others[k])
            bits = float(g2[k] / (2 * self.n_samples * np.log(2)))
            pair = Pair(partner, arrival, bits, float(p_value[k]), level)
            both = {partner: pool.codes(other), arrival: pool.codes(number)}
            entering = [a for a in both if a not in self._members]
            witness = self._witness(both, entering)
            if witness is not None:
                found.redundant.setdefault(arrival, (witness, bits))
                continue
            self.pairs.append(pair)
            for a in entering:
                score = bits
                if self._has_scores:
                    score = float(pool.score[number if a == arrival else other])
                self._enter(a, _Member(len(self.pairs) - 1, score, both[a]))
                found.entered[a] = partner + arrival - a

    def _enter(self, arrival: int, member: _Member) -> None:
        self._members[arrival] = member
        self._by_partition[_partition(member.codes)] = arrival

    def _witness(
        self, both: dict[int, NDArray[np.uint8]], entering: list[int]
    ) -> int | None:
        """The kept feature to which a pair adds nothing; None if there is none."""
        for arrival in entering:
            copy = self._by_partition.get(_partition(both[arrival]))
            if copy is not None:
                return copy
            if self._redundancy_alpha is None:
                continue
            (partner,) = (codes for a, codes in both.items() if a != arrival)
            for other in sorted(self._members.keys() - both.keys()):
                kept = self._members[other].codes.astype(np.int64)
                given = kept * MAX_LEVELS + partner
                p_value = _p_given(both[arrival], self._class_of, given)
                if p_value > self._redundancy_alpha:
                    return other
        return None

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The state as plain arrays, for `restore`."""
        arrivals, scores = self.kept()
        members = [self._members[arrival] for arrival in arrivals.tolist()]
        codes = np.array([member.codes for member in members], np.uint8)
        own: dict[str, NDArray[Any]] = {
            "counts": np.array([getattr(self, name) for name in _COUNTS], np.int64),
            "pairs": np.array([p[:2] for p in self.pairs], np.int64).reshape(-1, 2),
            "tests": np.array([p[2:] for p in self.pairs], np.float64).reshape(-1, 3),
            "member": arrivals,
            "member_pair": np.array([member.pair for member in members], np.int64),
            "member_score": scores,
            "member_codes": codes.reshape(-1, self.n_samples),
        }
        return own | {_POOL + k: v for k, v in self._pool.arrays().items()}

    def restore(self, arrays: Arrays, n_seen: int, *, is_sparse: bool) -> None:
        """Restore the state that `arrays` returned."""
        self._pool = self._pools[is_sparse]
        table = {
            "counts": Declared(np.int64, (5,), 0),
            "pairs": Declared(np.int64, ("n_pairs", 2), 0, "n_seen"),
            "tests": Declared(np.float64, ("n_pairs", 3)),
            "member": Declared(np.int64, ("n_members",), 0, "n_seen"),
            "member_pair": Declared(np.int64, ("n_members",), 0, "n_pairs"),
            "member_score": Declared(np.float64, ("n_members",)),
            "member_codes": Declared(np.uint8, ("n_members", self.n_samples)),
        }
        saved = check_arrays(arrays, table, n_seen=n_seen)
        vars(self).update(zip(_COUNTS, saved["counts"].tolist(), strict=True))
        listed = zip(saved["pairs"].tolist(), saved["tests"].tolist(), strict=True)
        self.pairs = [Pair(*both, *tested) for both, tested in listed]
        own = (saved[f"member_{name}"] for name in ("pair", "score", "codes"))
        members = map(_Member, *own)
        for arrival, member in zip(saved["member"].tolist(), members, strict=True):
            if arrival not in self.pairs[member.pair][:2]:
                raise damaged("a feature has entered with a pair of others")
            self._enter(arrival, member)
        self._pool.restore(split_arrays(arrays, _POOL)[1], n_seen)
        self._used = int(self._pool.n_bytes[self._pool.roster].sum())


def _partition(codes: NDArray[np.uint8]) -> bytes:
    """The same bytes for columns that differ only in the names of categories."""
    values, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    rank = np.empty(values.size, np.uint8)
    rank[np.argsort(first)] = np.arange(values.size)
    return rank[inverse].tobytes()


def _p_given(codes: Any, classes: Any, given: Any) -> float:
    """P-value of G² of a feature and the class within each value of a third."""
    _, given = np.unique(given, return_inverse=True)
    n_codes, n_classes = int(codes.max()) + 1, int(classes.max()) + 1
    shape = (int(given.max()) + 1, n_codes, n_classes)
    cell = (given * n_codes + codes) * n_classes + classes
    table = np.bincount(cell, minlength=math.prod(shape)).reshape(shape)
    by_code, by_class = table.sum(axis=2), table.sum(axis=1)
    df = (((by_code > 0).sum(axis=1) - 1) * ((by_class > 0).sum(axis=1) - 1)).sum()
    if df == 0:
        return 1.0
    parts = table, by_code.sum(axis=1), by_code, by_class
    both, given_sum, code_sum, class_sum = (xlogy(part, part).sum() for part in parts)
    return float(chdtrc(df, max(0.0, 2 * (both + given_sum - code_sum - class_sum))))


class PairKeeper(StreamSelector):
    """Base of selectors that keep features because of pairs, perhaps among others."""

    def _search(self) -> PairSearch | None:
        """The search for pairs; None if there is none."""
        raise NotImplementedError

    @property
    def pairs_(self) -> list[Pair]:
        """The pairs that were kept, in the order in which they were found."""
        search = self._search()
        return [] if search is None else list(search.pairs)

    @property
    def n_tested_(self) -> int:
        """Number of pairs tested."""
        search = self._search()
        return 0 if search is None else search.n_tested

    @property
    def share_compared_(self) -> float:
        """Share of all pairs of features that were compared."""
        search = self._search()
        return 0.0 if search is None else search.share_compared

    def _forget_names(self, stream: Stream, block: Block | Span) -> None:
        search = self._search()
        if search is None:
            super()._forget_names(stream, block)
            return
        kept = set(self._kept()[0].tolist())
        end = block.start + block.n_columns
        for arrival in sorted(search.forgotten(block.start, end)):
            if arrival not in kept and not stream.trace.knows(arrival):
                stream.names.forget(arrival)

    def _why_paired(self, arrival: int) -> str | None:
        """Why a member of a pair is kept; None for other features."""
        search = self._search()
        pair = None if search is None else search.pair_of(arrival)
        if pair is None:
            return None
        other = self._shown(pair.first + pair.second - arrival, self._started())
        return (
            f" because of {other}, with which it interacts: together they tell "
            f"{pair.information:.3g} bits more about the class than each alone "
            f"(p = {pair.p_value:.2g}, level {pair.level:.2g})"
        )


def search_arrays(search: PairSearch | None) -> dict[str, NDArray[Any]]:
    """The state of a search, which is saved beside that of its selector."""
    if search is None:
        return {}
    return {_SEARCH + name: array for name, array in search.arrays().items()}


def split_arrays(
    arrays: Arrays, prefix: str = _SEARCH
) -> tuple[dict[str, NDArray[Any]], dict[str, NDArray[Any]]]:
    """The arrays without a prefix, and those with it: by default of `search_arrays`."""
    mine = {k: v for k, v in arrays.items() if not k.startswith(prefix)}
    others = {k.removeprefix(prefix): arrays[k] for k in arrays if k not in mine}
    return mine, others


def with_pairs(
    verdict: Verdict, found: Found, start: int, kept: IntArray, search: PairSearch
) -> Verdict:
    """A verdict of a selector, and what a search found in the same block.

    ``kept`` are the arrivals that the selector itself keeps after the block. A feature
    enters when the later of its pair arrives. If the selector itself keeps it at that
    time, it stays, and can no longer be displaced. Otherwise it is recalled.
    """
    fate, n_columns = verdict.fate.copy(), verdict.fate.size
    witness = np.full(n_columns, -1) if verdict.witness is None else verdict.witness
    witness, recalled = witness.copy(), {}
    left_at = dict(zip(verdict.gone.tolist(), verdict.gone_by.tolist(), strict=True))
    own = set(kept.tolist()) | left_at.keys()
    for arrival, partner in found.entered.items():
        moment, column = max(arrival, partner), arrival - start
        if arrival in own and left_at.get(arrival, moment + 1) > moment:
            continue
        is_at_once = left_at.get(arrival) == moment == arrival  # over the limit
        if column >= 0 and (fate[column] != Fate.KEPT or is_at_once):
            fate[column], witness[column] = Fate.KEPT, partner
        else:
            recalled[arrival] = partner
    gone, gone_fate = verdict.gone.tolist(), verdict.gone_fate
    stays = [search.pair_of(a) is not None and a not in recalled for a in gone]
    leaves = ~np.array(stays, np.bool_)
    return replace(
        verdict,
        fate=fate,
        witness=witness,
        gone=verdict.gone[leaves],
        gone_by=verdict.gone_by[leaves],
        gone_fate=None if gone_fate is None else gone_fate[leaves],
        recalled=np.array(list(recalled), np.int64),
        recalled_by=np.array(list(recalled.values()), np.int64),
        recalled_scores=np.array([search.score_of(a) for a in recalled], np.float64),
    )


@estimator
class InteractionScreen(PairKeeper):
    """Keep features that say more about the class in pairs than alone.

    A pair such as XOR is invisible to every method that judges a feature by its own
    relevance: each of the two is independent of the class. This screen tests every
    newcomer with every feature seen before, and keeps the two features of each pair
    whose interaction is significant. A feature that was dropped on its arrival is
    recalled when its partner comes.

    Parameters
    ----------
    alpha : float, default=0.05
        Bound on the probability of keeping any pair without an interaction, over all
        pairs of the stream, however long it is.
    n_bins : int, default=3
        Columns that are not categories are cut into this many bins of equal
        frequency, from 2 to 8. Two bins cost a quarter of the time of three and see
        less.
    n_features : int, optional
        Number of features of the whole stream, if it is known: every test then has
        the level ``alpha`` divided by the number of pairs (Bonferroni). By default
        the level pays for a stream without end.
    redundancy_alpha : float, optional
        A feature enters only if the class depends on it at this level, given its
        partner and any kept feature. By default only copies are redundant: features
        that divide the samples as a kept one does.
    memory : str or int, default="1GB"
        Memory for the features seen, with which newcomers are compared. When it is
        full they are compared with a random sample of them.
    seed : int, default=0
        Of that sample.

    Attributes
    ----------
    scores_ : ndarray of float
        Interaction information, in bits, of the pair with which each entered.
    pairs_ : list of Pair
        The pairs that were kept, in the order in which they were found.
    n_tested_ : int
        Number of pairs tested: those that the level pays for.
    share_compared_ : float
        Share of all pairs of features that were compared: 1 until memory is full.
    n_left_out_ : int
        Number of features with too many categories, more than 8, to be compared.

    Notes
    -----
    The statistic is G² = 2 n (I(A,B;C) - I(A;C) - I(B;C)) in nats, compared with the
    chi-square law of (a-1)(b-1)(c-1) degrees of freedom. It measures synergy: strong
    effects of two independent features that merely add up have some as well. Pairs
    are tested if more cells of their table have five rows than their margins need
    (for two categories: all four); in particular, sparse columns that share no row
    are not. Which pairs these are does not depend on the class, so that the level
    need not pay for the others. See ``docs/interactions.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from featstream import InteractionScreen
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 2, (300, 50))
    >>> y = X[:, 7] ^ X[:, 31]
    >>> screen = InteractionScreen().fit(X, y)
    >>> screen.selected_
    array([ 7, 31])
    >>> print(screen.explain(7))
    'x7' is kept because of 'x31', with which it interacts: together they ...
    """

    alpha: float = 0.05
    n_bins: int = 3
    n_features: int | None = None
    redundancy_alpha: float | None = None
    memory: str | int = "1GB"
    seed: int = 0
    trace: TraceLevel = "full"
    n_jobs: int | None = None

    _numeric_target = ""
    _uses_blas = False

    @property
    def n_left_out_(self) -> int:
        """Number of features with too many categories to be compared."""
        return self._search().n_left_out

    def _bind(self, y: Any) -> PairSearch:
        return PairSearch(self, y, count_threads(self.n_jobs))

    def _search(self) -> PairSearch:
        search: PairSearch = self._started().measure
        return search

    def _begin(self, stream: Stream) -> None:
        """Nothing: the search, which `_bind` made, holds the state."""

    def _kept(self) -> tuple[IntArray, FloatArray]:
        return self._search().kept()

    def _state_arrays(self) -> dict[str, NDArray[Any]]:
        return self._search().arrays()

    def _restore(self, arrays: Arrays) -> None:
        n_seen, is_sparse = self._stream.n_seen, bool(self._stream.is_sparse)
        self._search().restore(arrays, n_seen, is_sparse=is_sparse)

    def _prepare(self, block: Block, stream: Stream) -> Callable[[], Verdict]:
        return partial(self._decide_about, block, stream.measure.encode(block))

    def _decide_about(self, block: Block, encoded: Any) -> Verdict:
        search, start, n_columns = self._search(), block.start, block.n_columns
        found = search.take(block, encoded)
        nothing = Verdict(np.zeros(n_columns, np.uint8), np.zeros(n_columns))
        verdict = with_pairs(nothing, found, start, np.empty(0, np.int64), search)
        assert verdict.witness is not None
        for arrival, (witness, bits) in found.redundant.items():
            if arrival not in found.entered:
                column = arrival - start
                verdict.fate[column], verdict.scores[column] = Fate.REDUNDANT, bits
                verdict.witness[column] = witness
        for column in np.flatnonzero(verdict.fate == Fate.KEPT).tolist():
            verdict.scores[column] = search.score_of(start + column)
        return verdict

    def _why_kept(self, arrival: int, score: float) -> str:
        return self._why_paired(arrival) or ""

    def _why_irrelevant(self, relevance: str) -> str:
        return "it interacts significantly with no feature that it was compared with"

    def _reason(
        self, arrival: int, fate: Fate, name: str, relevance: str, other: str
    ) -> str:
        return (
            f"{name} is redundant: it interacts with another feature, but adds nothing "
            f"to {other}, which is kept."
        )
