"""InteractionScreen: pairs of features that matter together, and who keeps them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from featstream.estimators import estimator
from featstream.parallel import count_threads
from featstream.protocols import Block, Fate, FloatArray, IntArray, Span
from featstream.selectors.base import StreamSelector
from featstream.selectors.interactions.search import Found, Pair, PairSearch
from featstream.selectors.result import TraceLevel
from featstream.selectors.stream import Stream, Verdict

_SEARCH = "interactions_"
"""Begins the names of the arrays of a search that a selector saves beside its own."""


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
        """Why a member of a pair is kept; None if it is none."""
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
    """The state of a search, to be saved beside that of its selector."""
    if search is None:
        return {}
    return {_SEARCH + name: array for name, array in search.arrays().items()}


def split_arrays(
    arrays: Mapping[str, NDArray[Any]],
) -> tuple[dict[str, NDArray[Any]], dict[str, NDArray[Any]]]:
    """The arrays of a selector, and those that `search_arrays` gave."""
    mine = {k: v for k, v in arrays.items() if not k.startswith(_SEARCH)}
    others = {k.removeprefix(_SEARCH): arrays[k] for k in arrays if k not in mine}
    return mine, others


def with_pairs(
    verdict: Verdict, found: Found, start: int, kept: IntArray, search: PairSearch
) -> Verdict:
    """A verdict of a selector, and what a search found in the same block.

    ``kept`` are the arrivals that the selector itself keeps after the block. A feature
    enters when the later of its pair arrives. If the selector itself keeps it then, it
    stays for its own sake, and from then on for the pair's: it can no longer be
    displaced. Otherwise it is recalled.
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
        Interaction information, in bits, of the pair that brought each in.
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

    def _restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
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
