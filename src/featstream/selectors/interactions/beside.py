"""Pairs in a selection: what a selector that keeps some says about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from featstream.protocols import Block, Fate, IntArray, Span
from featstream.selectors.base import StreamSelector
from featstream.selectors.interactions.search import Found, Pair, PairSearch
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
        search, stream = self._search(), self._started()
        if search is None or search.pair_of(arrival) is None:
            return None
        return search.why_kept(arrival, lambda a: self._shown(a, stream))


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
