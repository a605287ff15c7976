"""The search for pairs in a stream: what is tested, at which level, what is kept."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
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
from featstream.measures.information import SymmetricalUncertainty
from featstream.measures.inputs import as_labels
from featstream.protocols import Block, FloatArray, IntArray
from featstream.runs.arrays import Declared, check_arrays, damaged
from featstream.selectors.interactions.pools import (
    MAX_LEVELS,
    DensePool,
    Newcomers,
    Pairs,
    Pool,
    SparsePool,
)

FIRST_PAIRS = 1e5
"""Pairs after which the level begins to fall."""

_POOL = "pool_"
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
    feature that makes it so, and the information of its best pair in bits.
    """

    entered: dict[int, int]
    redundant: dict[int, tuple[int, float]]


@dataclass(slots=True)
class _Member:
    """A feature that a pair brought in."""

    score: float
    pair: int
    """Number of the pair."""
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
    """Looks for pairs that say more about the class than their members do.

    Bound to a target; features arrive in blocks. ``options`` is an
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
        owner, count = type(options).__name__, options.n_features
        self._alpha: float = check_alpha(options.alpha, owner)
        n_bins = check_count(options.n_bins, "n_bins", owner, least=2, most=8)
        self._n_features: int | None = check_count(
            count, "n_features", owner, none="for a stream without end"
        )
        self._redundancy_alpha = options.redundancy_alpha
        if self._redundancy_alpha is not None:
            check_alpha(self._redundancy_alpha, owner, "redundancy_alpha")
        self._memory, self._n_threads = as_bytes(options.memory, "memory"), n_threads
        self._seed = check_count(options.seed, "seed", owner, least=0, most=2**63 - 1)
        labels = as_labels(y)
        self.n_samples = labels.codes.size
        few = max(n_bins, _FEW_LEVELS)
        encoder = SymmetricalUncertainty(
            n_bins=n_bins, max_categories=few, missing=missing
        )
        self._encoder = encoder.bind(y)
        self.left_out = self._encoder.left_out
        self._n_classes = labels.classes.size
        self._class_of = np.repeat(np.arange(self._n_classes), labels.counts)
        self._pools = {False: DensePool(labels), True: SparsePool(labels)}
        self._pool: Pool = self._pools[False]
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
        """The pair that brought a feature in."""
        member = self._members.get(arrival)
        return None if member is None else self.pairs[member.pair]

    @property
    def share_compared(self) -> float:
        """Share of the pairs that were compared, of features that vary."""
        n_pairs = math.comb(self.n_candidates, 2)
        return self.n_compared / n_pairs if n_pairs else 1.0

    def forgotten(self, start: int, end: int) -> set[int]:
        """Features that cannot be recalled: of some that arrived, and of departed."""
        members = set(self._pool.arrival[self._pool.roster].tolist())
        return (set(range(start, end)) | self._departed) - members

    def encode(self, block: Block) -> list[tuple[int, Newcomers]]:
        """Columns in a form that can be compared; in parts that fit the caches."""
        parts: list[tuple[int, Newcomers]] = []
        pool = self._pools[block.is_sparse]
        for begin in range(0, block.n_columns, _STEP):
            part = block.part(begin, min(begin + _STEP, block.n_columns))
            parts.append((begin, pool.encode(self._encoder.encode(part))))
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
        interaction information of the pair that brought it in.
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
        order = np.argsort(pairs.newcomer, kind="stable")
        cuts = np.searchsorted(pairs.newcomer[order], np.arange(arrivals.size + 1))
        for q in np.flatnonzero(n_tested).tolist():
            here = order[cuts[q] : cuts[q + 1]]
            if here.size:
                level = self._level(int(n_tested[q]))
                own = Pairs(*(part[here] for part in pairs))
                self._judge(int(numbers[q]), own, level, found)
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
        """Enter newcomers in the roster; how many members each is compared with.

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
            self._say_full(arrival, len(roster))
            r = _draw(self._seed, arrival, self.n_candidates + q + 1)
            leaves = number
            if r < len(roster):
                freed = int(pool.n_bytes[roster[r]])
                if self._used - freed + size <= self._memory:
                    self._used += size - freed
                    leaves, roster[r] = roster[r], number
                    self._departed.add(int(pool.arrival[leaves]))
            pool.left[leaves] = q
        pool.roster = np.array(roster, np.int64)
        return np.array(n_members, np.int64)

    def _say_full(self, arrival: int, n_members: int) -> None:
        if self.is_full:
            return
        self.is_full = True
        warnings.warn(
            f"The memory for pairs, {size_text(self._memory)}, is full after "
            f"{arrival:,} features. From now on newcomers are compared with a random "
            f"sample of {n_members:,} of the features before them; share_compared_ "
            "says how much that is. Give more memory to compare all pairs.",
            FeatstreamWarning,
            stacklevel=2,
        )

    def _judge(self, number: int, pairs: Pairs, level: float, found: Found) -> None:
        """Keep the significant pairs of a newcomer, the most significant first."""
        pool = self._pool
        arrival, partners = int(pool.arrival[number]), pool.arrival[pairs.partner]
        g2 = pairs.statistic * self._nats
        df = self._df(pool.levels[number], pool.levels[pairs.partner])
        p_value = chdtrc(df, g2)
        order = np.lexsort((partners, -g2, p_value))
        for k in order[p_value[order] <= level].tolist():
            partner, other = int(partners[k]), int(pairs.partner[k])
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
                self._enter(a, _Member(score, len(self.pairs) - 1, both[a]))
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
        counts = self.n_tested, self.n_compared, self.n_candidates, self.n_left_out
        codes = np.array([member.codes for member in members], np.uint8)
        own: dict[str, NDArray[Any]] = {
            "counts": np.array([*counts, self.is_full], np.int64),
            "pairs": np.array([p[:2] for p in self.pairs], np.int64).reshape(-1, 2),
            "tests": np.array([p[2:] for p in self.pairs], np.float64).reshape(-1, 3),
            "member": arrivals,
            "member_pair": np.array([member.pair for member in members], np.int64),
            "member_score": scores,
            "member_codes": codes.reshape(-1, self.n_samples),
        }
        return own | {_POOL + k: v for k, v in self._pool.arrays().items()}

    def restore(
        self, arrays: Mapping[str, NDArray[Any]], n_seen: int, *, is_sparse: bool
    ) -> None:
        """Take back the state that `arrays` gave."""
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
        *counts, is_full = saved["counts"].tolist()
        self.n_tested, self.n_compared, self.n_candidates, self.n_left_out = counts
        self.is_full = bool(is_full)
        listed = zip(saved["pairs"].tolist(), saved["tests"].tolist(), strict=True)
        self.pairs = [Pair(*who, *what) for who, what in listed]
        for k, arrival in enumerate(saved["member"].tolist()):
            pair = int(saved["member_pair"][k])
            if arrival not in self.pairs[pair][:2]:
                raise damaged("a feature has entered with a pair of others")
            score, codes = float(saved["member_score"][k]), saved["member_codes"][k]
            self._enter(arrival, _Member(score, pair, codes))
        names = [name for name in arrays if name.startswith(_POOL)]
        own = {name.removeprefix(_POOL): arrays[name] for name in names}
        self._pool.restore(own, n_seen)
        self._used = int(self._pool.n_bytes[self._pool.roster].sum())


def _draw(seed: int, arrival: int, n: int) -> int:
    """A number below n that depends on the seed and the arrival alone."""
    generator = np.random.Generator(np.random.Philox(key=[seed, arrival]))
    return int(generator.integers(n))


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
