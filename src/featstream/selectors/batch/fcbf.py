"""FCBF: the relevant features that no more relevant one makes redundant."""

from __future__ import annotations

import numpy as np

from featstream.measures.storages.dispatch import for_storage, storage_of
from featstream.protocols import Block, Measure
from featstream.selectors.batch.base import (
    BatchSelector,
    RelevantColumns,
    Selection,
    encode_relevant,
    join_columns,
)
from featstream.selectors.result import TraceLevel
from featstream.selectors.saola.algorithm1 import Newcomers, Outcome, scan
from featstream.selectors.saola.kept import Tuning, make_room, start_kept
from featstream.selectors.saola.saola import SAOLA, make_rule
from featstream.selectors.stream import Stream


class FCBF(BatchSelector):
    """Fast correlation-based filter: the predominant features.

    Features whose relevance exceeds the threshold are taken in order of relevance,
    the most relevant first. Each is selected unless a feature selected before
    overlaps with it at least as much as it does with the target.

    Parameters
    ----------
    measure : {"auto", "su", "mi", "fisher-z"} or measure object, default="auto"
        How relevance and overlap are measured. "auto" takes symmetrical
        uncertainty, the authors' measure, for discrete data and Fisher's Z for
        continuous data; ``SymmetricalUncertainty(threshold=..., binning=...)`` bins
        continuous data instead.
    trace : {"full", "kept"} or None, default="full"
        What is remembered of features that are not selected.
    n_jobs : int, optional
        Number of threads that encode and score. The selection does not depend on it.

    Attributes
    ----------
    selected_ : ndarray of int
        The selected features, the most relevant first.
    scores_ : ndarray of float
        Their relevance.
    support_ : ndarray of bool of shape (n_features,)
        Whether each feature is selected.
    measure_ : str
        The measure in use.
    result_ : SelectionResult
        Names, scores and why each feature was selected or not.

    See Also
    --------
    SAOLA : The same comparison for features that arrive one by one.

    Notes
    -----
    Of features of equal relevance the one at the lower position comes first. Time is
    that of SAOLA on features that arrive in order of relevance with ``ties="drop"``,
    which is what this is. The encoded columns of all relevant features are in
    memory: for dense discrete data one bit per row and category, for sparse data the
    stored entries.

    References
    ----------
    .. [1] L. Yu, H. Liu: Efficient Feature Selection via Analysis of Relevance and
       Redundancy. JMLR 5, 2004.

    Examples
    --------
    >>> from featstream import FCBF
    >>> X = [[0, 0, 0], [0, 0, 0], [1, 1, 0], [1, 0, 1], [1, 1, 1], [0, 0, 1]]
    >>> y = [0, 0, 1, 1, 1, 0]
    >>> selector = FCBF(measure="su").fit(X, y)
    >>> selector.selected_
    array([0])
    >>> print(selector.explain(1))
    'x1' is redundant: its relevance 0.47... is not above that of 'x0', ...
    """

    ties = "drop"

    def __init__(
        self,
        *,
        measure: str | Measure = "auto",
        trace: TraceLevel = "full",
        n_jobs: int | None = None,
    ) -> None:
        self.measure = measure
        self.trace = trace
        self.n_jobs = n_jobs

    def _begin(self, stream: Stream) -> None:
        """There are no parameters of its own."""

    def _prepare(self, block: Block, stream: Stream) -> RelevantColumns:
        return encode_relevant(block, stream.measure)

    def _select(self, parts: list[RelevantColumns], stream: Stream) -> Selection:
        relevance = np.concatenate([part.scores for part in parts])
        relevant = np.concatenate([part.relevant for part in parts])
        n = relevant.size
        by_relevance = np.argsort(-relevance[relevant], kind="stable")
        arrivals = relevant[by_relevance]
        outcome = Outcome(
            fate=np.zeros(n, np.uint8),
            witness=np.full(n, -1, np.int64),
            overlap=np.full(n, np.nan),
            gone=np.empty(n, np.int64),
            gone_by=np.empty(n, np.int64),
            gone_fate=np.empty(n, np.uint8),
            n_events=np.zeros(1, np.int64),
        )
        if n:
            columns = join_columns([(part.columns, part.position) for part in parts])
            newcomers = Newcomers(
                columns,
                by_relevance,
                relevance[arrivals],
                arrivals,
                np.empty((n, 0), np.float32),
                0.0,
            )
            _walk(newcomers, stream.measure.n_samples, outcome)
        fate = np.zeros(relevance.size, np.uint8)
        witness = np.full(relevance.size, -1)
        fate[arrivals], witness[arrivals] = outcome.fate, outcome.witness
        order = arrivals[outcome.witness < 0]
        return Selection(order, relevance, fate=fate, witness=witness)


def _walk(newcomers: Newcomers, n_samples: int, outcome: Outcome) -> None:
    """Algorithm 1 on features in order of relevance: nothing is ever displaced."""
    columns, column, tuning = newcomers.columns, newcomers.column, Tuning()
    rule = make_rule(SAOLA(ties="drop"))
    scratch = storage_of(columns).scratch(n_samples)
    kept, done = start_kept(columns, column, tuning), 0
    while True:
        run = for_storage(scan, columns, kept.index, rule)
        free = np.empty(kept.live.size, np.int64)
        done = run(newcomers, done, kept, rule, scratch, free, outcome)
        if done == column.size:
            return
        kept = make_room(kept, columns, int(column[done]), tuning)
