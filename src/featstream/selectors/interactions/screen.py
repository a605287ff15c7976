"""InteractionScreen: pairs of features that matter together, found in a stream."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, NamedTuple

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
from featstream.protocols import Block, Decision, Fate, FloatArray, IntArray, Span
from featstream.runs.arrays import Arrays, Declared, check_arrays, damaged
from featstream.selectors.base import StreamSelector
from featstream.selectors.interactions.pools import (
    MAX_LEVELS,
    DensePool,
    Newcomers,
    Pool,
    SparsePool,
)
from featstream.selectors.result import Trace, TraceLevel
from featstream.selectors.stream import Stream, Verdict

FIRST_PAIRS = 1e5
"""Pairs after which the level begins to fall."""

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

    def __init__(self, options: Any, y: Any, n_threads: int) -> None:
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
        encoder = SymmetricalUncertainty(n_bins=n_bins, max_categories=few)
        self._encoder = encoder.bind(y)
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

    def take(self, block: Block, encoded: Any) -> Found:
        """Test the columns of a block with all in the pool, and add them to it."""
        self._departed = set()
        self._pool = self._pools[block.is_sparse]
        self.check_number(block.start + block.n_columns)
        found = Found({}, {})
        for begin, newcomers in encoded:
            self.n_left_out += newcomers.n_left_out
            which = begin + newcomers.which
            if which.size:
                self._take_part(block.start + which, newcomers, found)
        return found

    def _take_part(
        self, arrivals: IntArray, newcomers: Newcomers, found: Found
    ) -> None:
        pool = self._pool
        numbers = pool.add(newcomers, arrivals)
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
                self._enter(a, _Member(len(self.pairs) - 1, bits, both[a]))
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
        of_pool = [name for name in arrays if name.startswith(_POOL)]
        pool = {name.removeprefix(_POOL): arrays[name] for name in of_pool}
        self._pool.restore(pool, n_seen)
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


@dataclass(slots=True)
class PairVerdict(Verdict):
    """What was decided about the columns of a block, and about earlier features.

    Attributes
    ----------
    recalled, recalled_by : ndarray
        Arrivals that are kept from now on though they had been dropped, and the
        arrivals because of which they are.
    recalled_scores : ndarray of float
        Their scores.
    """

    recalled: IntArray = field(default_factory=lambda: np.empty(0, np.int64))
    recalled_by: IntArray = field(default_factory=lambda: np.empty(0, np.int64))
    recalled_scores: FloatArray = field(default_factory=lambda: np.empty(0))


@dataclass(frozen=True, slots=True)
class PairDecision(Decision):
    """What `InteractionScreen` decided about one feature on its arrival.

    Attributes
    ----------
    recalled : tuple of str
        Features that had been dropped and are kept now, because of it.
    """

    recalled: tuple[str, ...] = ()


class PairTrace(Trace):
    """A trace in which dropped features can be recalled.

    The witness of a feature that is kept is the other one of its pair.
    """

    def record(self, verdict: Verdict) -> None:
        """Record what was decided about the next features, and about earlier ones."""
        super().record(verdict)
        assert isinstance(verdict, PairVerdict)
        if self.level is not None and verdict.recalled.size:
            self._recall(verdict)

    def _recall(self, verdict: PairVerdict) -> None:
        arrivals = verdict.recalled
        if self.level == "kept":
            new = np.setdiff1d(arrivals, self.arrivals)
            at = np.searchsorted(self.arrivals, new)
            unknown = np.zeros(1, self.records.dtype)
            self._records = np.insert(self.records, at, unknown)
            self._arrivals = np.insert(self.arrivals, at, new)
            self._size += new.size
        self._mark(arrivals, Fate.KEPT, verdict.recalled_by)
        self._records["relevance"][self._positions(arrivals)] = verdict.recalled_scores

    def _kept_from(self, places: IntArray) -> IntArray:
        """A pair is kept when the later of the two comes."""
        own, records = super()._kept_from(places), self.records[places]
        is_kept = records["fate"] == Fate.KEPT  # of others the witness displaced them
        return np.where(is_kept, np.maximum(own, records["witness"]), own)


@estimator
class InteractionScreen(StreamSelector):
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
    def pairs_(self) -> list[Pair]:
        """The pairs that were kept, in the order in which they were found."""
        return list(self._search().pairs)

    @property
    def n_tested_(self) -> int:
        """Number of pairs tested."""
        return self._search().n_tested

    @property
    def share_compared_(self) -> float:
        """Share of all pairs of features that were compared."""
        return self._search().share_compared

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
        # The search, which `_bind` made, holds the rest of the state.
        stream.trace = PairTrace(self.trace)
        self._recalled: IntArray = np.empty(0, np.int64)  # by the last block

    def update(self, values: Any, name: str | None = None) -> PairDecision:
        """Decide about one feature.

        Parameters
        ----------
        values : array of shape (n_samples,)
            One value per sample; a sparse column will do.
        name : str, optional
            The feature's name; by default made from its arrival.
        """
        decision = super().update(values, name)
        names = self._stream.names
        recalled = tuple(names[arrival] for arrival in self._recalled.tolist())
        own = {part.name: getattr(decision, part.name) for part in fields(decision)}
        return PairDecision(**own, recalled=recalled)

    def _kept(self) -> tuple[IntArray, FloatArray]:
        return self._search().kept()

    def _state_arrays(self) -> dict[str, NDArray[Any]]:
        return self._search().arrays()

    def _restore(self, arrays: Arrays) -> None:
        n_seen, is_sparse = self._stream.n_seen, bool(self._stream.is_sparse)
        self._search().restore(arrays, n_seen, is_sparse=is_sparse)

    def _prepare(self, block: Block, stream: Stream) -> Callable[[], Verdict]:
        return partial(self._decide_about, block, stream.measure.encode(block))

    def _decide_about(self, block: Block, encoded: Any) -> PairVerdict:
        """Keep the features that have entered; recall those of earlier blocks."""
        search, start, n_columns = self._search(), block.start, block.n_columns
        found = search.take(block, encoded)
        verdict = PairVerdict(
            fate=np.zeros(n_columns, np.uint8),
            scores=np.zeros(n_columns),
            witness=np.full(n_columns, -1),
        )
        assert verdict.witness is not None
        recalled = [arrival for arrival in found.entered if arrival < start]
        for arrival, partner in found.entered.items():
            if arrival >= start:
                verdict.fate[arrival - start] = Fate.KEPT
                verdict.scores[arrival - start] = search.score_of(arrival)
                verdict.witness[arrival - start] = partner
        for arrival, (witness, bits) in found.redundant.items():
            if arrival not in found.entered:
                verdict.fate[arrival - start] = Fate.REDUNDANT
                verdict.scores[arrival - start] = bits
                verdict.witness[arrival - start] = witness
        verdict.recalled = self._recalled = np.array(recalled, np.int64)
        partners = [found.entered[arrival] for arrival in recalled]
        verdict.recalled_by = np.array(partners, np.int64)
        scores = [search.score_of(arrival) for arrival in recalled]
        verdict.recalled_scores = np.array(scores, np.float64)
        return verdict

    def _forget_names(self, stream: Stream, block: Block | Span) -> None:
        search, kept = self._search(), set(self._kept()[0].tolist())
        end = block.start + block.n_columns
        for arrival in sorted(search.forgotten(block.start, end)):
            if arrival not in kept and not stream.trace.knows(arrival):
                stream.names.forget(arrival)

    def _why_kept(self, arrival: int, score: float) -> str:
        pair = self._search().pair_of(arrival)
        assert pair is not None, "only members of pairs are kept"
        other = self._shown(pair.first + pair.second - arrival, self._started())
        return (
            f" because of {other}, with which it interacts: together they tell "
            f"{pair.information:.3g} bits more about the class than each alone "
            f"(p = {pair.p_value:.2g}, level {pair.level:.2g})"
        )

    def _why_irrelevant(self, relevance: str) -> str:
        return "it interacts significantly with no feature that it was compared with"

    def _reason(
        self, arrival: int, fate: Fate, name: str, relevance: str, other: str
    ) -> str:
        return (
            f"{name} is redundant: it interacts with another feature, but adds nothing "
            f"to {other}, which is kept."
        )
