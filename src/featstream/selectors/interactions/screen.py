"""InteractionScreen: pairs of features that matter together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from featstream.errors import as_bytes, check_alpha, check_count
from featstream.parallel import count_threads
from featstream.protocols import Block, Fate, FloatArray, IntArray
from featstream.selectors.interactions.beside import PairKeeper, with_pairs
from featstream.selectors.interactions.search import PairSearch
from featstream.selectors.result import TraceLevel
from featstream.selectors.stream import Stream, Verdict


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
    trace : {"full", "kept"} or None, default="full"
        What is remembered of dropped features.
    n_jobs : int, optional
        Number of threads. The selection does not depend on it.

    Attributes
    ----------
    selected_ : ndarray of int
        Kept features, in order of arrival.
    scores_ : ndarray of float
        Interaction information, in bits, of the pair that brought each in.
    pairs_ : list of Pair
        The pairs that were kept, in the order in which they were found.
    n_tested_ : int
        Number of pairs tested: those that the level pays for.
    share_compared_ : float
        Share of all pairs of features that were compared: 1 until memory is full.
    n_left_out_ : int
        Number of features with too many categories, more than 8, to be compared.
    support_ : ndarray of bool of shape (n_features,)
        Whether each feature is kept.
    result_ : SelectionResult
        Names, scores and history.

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

    _numeric_target = ""
    _uses_blas = False

    def __init__(
        self,
        *,
        alpha: float = 0.05,
        n_bins: int = 3,
        n_features: int | None = None,
        redundancy_alpha: float | None = None,
        memory: str | int = "1GB",
        seed: int = 0,
        trace: TraceLevel = "full",
        n_jobs: int | None = None,
    ) -> None:
        self.alpha = alpha
        self.n_bins = n_bins
        self.n_features = n_features
        self.redundancy_alpha = redundancy_alpha
        self.memory = memory
        self.seed = seed
        self.trace = trace
        self.n_jobs = n_jobs

    @property
    def n_left_out_(self) -> int:
        """Number of features with too many categories to be compared."""
        return self._search().n_left_out

    def _bind(self, y: Any) -> PairSearch:
        return self.search_in(y, count_threads(self.n_jobs))

    def search_in(
        self,
        y: Any,
        n_threads: int,
        missing: Literal["error", "category"] = "error",
    ) -> PairSearch:
        """A search with these parameters, for the target ``y``."""
        owner = type(self).__name__
        level = self.redundancy_alpha
        if level is not None:
            check_alpha(level, owner, "redundancy_alpha")
        return PairSearch(
            y,
            alpha=check_alpha(self.alpha, owner),
            n_bins=check_count(self.n_bins, "n_bins", owner, least=2, most=8),
            n_features=check_count(
                self.n_features, "n_features", owner, none="for a stream without end"
            ),
            redundancy_alpha=level,
            memory=as_bytes(self.memory, "memory"),
            seed=check_count(self.seed, "seed", owner, least=0, most=2**63 - 1),
            n_threads=n_threads,
            missing=missing,
        )

    def _search(self) -> PairSearch:
        search: PairSearch = self._started().measure
        return search

    def _begin(self, stream: Stream) -> None:
        """Nothing: the search, which `_bind` made, holds the state."""

    def _kept(self) -> tuple[IntArray, FloatArray]:
        return self._search().kept()

    def _state_arrays(self) -> dict[str, NDArray[Any]]:
        return self._search().arrays()

    def _restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        stream = self._stream
        is_sparse = bool(stream.is_sparse)
        self._search().restore(arrays, stream.n_seen, is_sparse=is_sparse)

    def _decide(self, block: Block, stream: Stream) -> Verdict:
        return self._prepare(block, stream)()

    def _prepare(self, block: Block, stream: Stream) -> Callable[[], Verdict]:
        encoded = stream.measure.encode(block)
        return partial(self._decide_about, block, encoded)

    def _decide_about(self, block: Block, encoded: Any) -> Verdict:
        search, start = self._search(), block.start
        found = search.take(start, block.n_columns, encoded, is_sparse=block.is_sparse)
        nothing = Verdict(
            np.zeros(block.n_columns, np.uint8), np.zeros(block.n_columns)
        )
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
