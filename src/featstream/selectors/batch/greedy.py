"""FCBF, mRMR and its relatives: features chosen by relevance and redundancy."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator
from dataclasses import field
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from featstream.engines import prepared_ahead
from featstream.errors import DataTypeError, check_choice
from featstream.estimators import estimator
from featstream.jit import kernel
from featstream.measures import MutualInformation
from featstream.measures.inputs import Choice, as_labels, resolve_measure
from featstream.measures.storages.dispatch import (
    for_storage,
    load_newcomer,
    overlap,
    storage_of,
    unload_newcomer,
)
from featstream.parallel import ScratchPool, count_threads
from featstream.protocols import Block, BoundMeasure, FloatArray, IntArray, Measure
from featstream.runs.arrays import Arrays, Declared, check_arrays
from featstream.selectors.batch.base import BatchSelector, Selection
from featstream.selectors.batch.encoded import DiscreteColumns, join_columns, merge
from featstream.selectors.result import OVER_LIMIT, TraceLevel
from featstream.selectors.saola.algorithm1 import Newcomers, new_outcome
from featstream.selectors.saola.kept import Tuning, start_kept
from featstream.selectors.saola.saola import SAOLA, make_rule, scan_all
from featstream.selectors.stream import Stream

_FLOOR = 1e-3
"""Less overlap than this counts as this much where relevance is divided by it."""

_STEP = 1 << 12
"""Columns that a thread compares at a time."""

Criteria = Generator[FloatArray, int, None]
"""Yields the criterion of every candidate; is sent the candidate that was chosen."""


class Scored(NamedTuple):
    """The scores of all columns of a block, and which of them are relevant.

    ``encoded`` are columns, and the position of each relevant feature among them.
    """

    scores: FloatArray
    relevant: IntArray
    encoded: tuple[Any, IntArray]


def _join(parts: list[Scored]) -> tuple[FloatArray, IntArray]:
    """The scores of all features, and the relevant ones."""
    scores, relevant, _ = zip(*parts, strict=True)
    return np.concatenate(scores), np.concatenate(relevant)


@estimator
class _ScoringSelector(BatchSelector):
    """Base of selectors that score every feature, and encode the relevant ones."""

    measure: str | Measure = "auto"
    trace: TraceLevel = "full"
    n_jobs: int | None = None

    def _has_threshold(self) -> bool:
        """Whether relevance must pass the threshold of the measure, or else only 0."""
        return True

    def _prepare(self, block: Block, stream: Stream) -> Any:
        measure: BoundMeasure = stream.measure
        encoded = measure.encode(block)
        scores = measure.relevance(encoded)
        passes = measure.is_relevant(scores) if self._has_threshold() else scores > 0.0
        relevant = np.flatnonzero(passes)
        columns = measure.columns(encoded, relevant)
        return Scored(scores, block.start + relevant, columns)


@estimator
class FCBF(_ScoringSelector):
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

    def _select(self, parts: list[Scored], stream: Stream) -> Selection:
        relevance, relevant = _join(parts)
        by_relevance = np.argsort(-relevance[relevant], kind="stable")
        arrivals = relevant[by_relevance]
        outcome = new_outcome(0, relevance.size, relevant.size)
        if relevant.size:
            columns = join_columns([part.encoded for part in parts])
            kept = start_kept(columns, by_relevance, Tuning())
            scratch = storage_of(columns).scratch(stream.measure.n_samples)
            newcomers = Newcomers(columns, by_relevance, relevance[arrivals], arrivals)
            # In order of relevance nothing is ever displaced.
            rule = make_rule(SAOLA(ties="drop"))
            scan_all(newcomers, kept, rule, scratch, Tuning(), outcome)
        order = arrivals[outcome.witness[arrivals] < 0]
        fate = np.zeros(relevance.size, np.uint8)
        return Selection(order, relevance, fate=fate, witness=outcome.witness)


@estimator
class _GreedySelector(_ScoringSelector):
    """Base of the methods that choose one feature after the other by a criterion.

    Attributes
    ----------
    criterion_ : ndarray of float
        What the criterion was when each was chosen.
    """

    n_features: int = field(default=10, kw_only=False)

    _tolerance = 0.0
    """Criteria that differ by no more than this are equal: the first is chosen."""

    @property
    def criterion_(self) -> FloatArray:
        """The criterion of each selected feature when it was chosen."""
        self._started()
        return self._values

    def _begin(self, stream: Stream) -> None:
        super()._begin(stream)
        self._values: FloatArray = np.empty(0)

    def _state_arrays(self) -> dict[str, NDArray[Any]]:
        return {"criterion": self._values}

    def _restore(self, arrays: Arrays) -> None:
        table = {"criterion": Declared(np.float64, (len(self._stream.kept),))}
        self._values = check_arrays(arrays, table)["criterion"]

    def _choose(
        self, relevance: FloatArray, candidates: IntArray, criteria: Criteria
    ) -> Selection:
        """Choose candidates by their criteria, step by step."""
        n_chosen = min(self.n_features, candidates.size)
        chosen, values = np.zeros(n_chosen, np.int64), np.zeros(n_chosen)
        is_free = np.ones(candidates.size, np.bool_)
        for k in range(n_chosen):
            value = criteria.send(int(chosen[k - 1])) if k else next(criteria)
            free = np.where(is_free, value, -np.inf)
            is_best = free >= free.max() - self._tolerance
            chosen[k] = is_best.argmax()  # of equals, the first
            values[k] = value[chosen[k]]
            is_free[chosen[k]] = False
        self._values = values
        fate = np.zeros(relevance.size, np.uint8)
        fate[candidates] = OVER_LIMIT
        return Selection(candidates[chosen], relevance, fate=fate)


@estimator
class _PairSelector(_GreedySelector):
    """Criteria of relevance and of overlaps of two features, by any measure.

    Parameters
    ----------
    measure : {"auto", "mi", "su", "fisher-z"} or measure object, default="auto"
        How relevance and overlap are measured. "auto" takes mutual information for
        discrete data and Fisher's Z for continuous data.

    Attributes
    ----------
    scores_ : ndarray of float
        Their relevance: mutual information in bits, symmetrical uncertainty, or
        absolute correlation (eta with more than two classes).
    """

    _why_no_more = (
        "the others are independent of the class, or do not pass the threshold of the "
        "measure"
    )

    def _propose(self, blocks: list[Block]) -> Choice:
        choice = super()._propose(blocks)
        return choice if choice.name == "fisher-z" else choice._replace(name="mi")

    def _has_threshold(self) -> bool:
        # The user has not chosen the threshold of a measure that is given by name.
        return not isinstance(self.measure, str)

    def _select(self, parts: list[Scored], stream: Stream) -> Selection:
        relevance, candidates = _join(parts)
        criteria = self._criteria(parts, relevance[candidates])
        return self._choose(relevance, candidates, criteria)

    @abstractmethod
    def _criteria(self, parts: list[Scored], relevance: FloatArray) -> Criteria:
        """The criterion of the candidates, whose relevance is given, at each step."""


@estimator
class MRMR(_PairSelector):
    """Minimum redundancy, maximum relevance.

    The most relevant feature is chosen first, and then, again and again, the one
    whose relevance is highest after its mean overlap with the features chosen before
    is subtracted, or divided out.

    Parameters
    ----------
    scheme : {"difference", "quotient"}, default="difference"
        Whether the mean overlap is subtracted from the relevance (MID, FCD) or
        divides it (MIQ, FCQ).

    See Also
    --------
    JMI, CMIM : Count what two features say about the class together.

    Notes
    -----
    With Fisher's Z relevance is the F statistic, and overlap the absolute correlation.
    All features can be chosen but those that are exactly independent of the class. A
    measure object has a threshold that they must pass as well: ``FisherZ(alpha=0.01)``
    admits p-values of at most 0.01. If fewer than ``n_features`` are left, a warning
    says so. In a quotient an overlap below 0.001 counts as 0.001. A step compares the
    feature chosen last with all others, so that time grows with ``n_features`` and not
    with its square.

    References
    ----------
    .. [1] H. Peng, F. Long, C. Ding: Feature Selection Based on Mutual Information.
       IEEE TPAMI 27(8), 2005.
    .. [2] C. Ding, H. Peng: Minimum Redundancy Feature Selection from Microarray Gene
       Expression Data. J. Bioinformatics and Computational Biology 3(2), 2005.

    Examples
    --------
    >>> from featstream import MRMR
    >>> from featstream.datasets import make_stream
    >>> stream = make_stream(n_features=300, kind="continuous", seed=0)
    >>> selector = MRMR(5, scheme="quotient").fit(stream.X, stream.y)
    >>> len(selector.selected_), selector.measure_
    (5, 'fisher-z')
    >>> set(stream.informative) & set(selector.selected_) != set()
    True
    """

    scheme: Literal["difference", "quotient"] = "difference"

    def _begin(self, stream: Stream) -> None:
        owner = type(self).__name__
        check_choice(self.scheme, "scheme", ("difference", "quotient"), owner)
        super()._begin(stream)

    def _criteria(self, parts: list[Scored], relevance: FloatArray) -> Criteria:
        measure, is_quotient = self._stream.measure, self.scheme == "quotient"
        n, n_threads = relevance.size, count_threads(self.n_jobs)
        if measure.name == "fisher-z":  # F statistics, which must be finite
            share = np.minimum(relevance**2, 1.0 - 2.0**-53)  # of the variance
            n_free = measure.n_samples - measure.n_spanning - 1
            relevance = share / (1.0 - share) * (n_free / measure.n_spanning)
        columns, pool = join_columns([part.encoded for part in parts]), ScratchPool()
        # Where the comparison of two columns looks for the second one.
        kept = start_kept(columns, np.empty(0, np.int64), Tuning())
        kept = kept._replace(columns=columns)
        run = for_storage(_find_overlaps, columns)
        new_scratch = storage_of(columns).scratch

        def find(i: int, begin: int) -> FloatArray:
            found = np.empty(min(_STEP, n - begin))
            with pool.borrow(new_scratch, measure.n_samples) as scratch:
                run(columns, i, kept, begin, scratch, found)
            return found

        total, n_chosen = np.zeros(n), 0
        chosen = yield relevance
        while True:
            steps, overlaps = iter(range(0, n, _STEP)), partial(find, chosen)
            found = np.concatenate(list(prepared_ahead(steps, overlaps, n_threads)))
            total += np.maximum(found, _FLOOR) if is_quotient else found
            n_chosen += 1
            mean = total / n_chosen
            chosen = yield relevance / mean if is_quotient else relevance - mean


@kernel
def _find_overlaps(columns, i, kept, begin, scratch, found):  # type: ignore[no-untyped-def]
    """Overlaps of column ``i`` with the columns in the slots from ``begin`` on."""
    load_newcomer(columns, i, scratch)
    for k in range(found.size):
        found[k] = overlap(columns, i, kept, begin + k, False, scratch)
    unload_newcomer(columns, i, scratch)


@estimator
class MIM(_PairSelector):
    """Mutual information maximisation: the most relevant features.

    Redundancy does not count: of copies all are selected. It is here to show what
    the other methods gain.

    References
    ----------
    .. [1] G. Brown, A. Pocock, M.-J. Zhao, M. Lujan: Conditional Likelihood
       Maximisation: A Unifying Framework for Information Theoretic Feature Selection.
       JMLR 13, 2012.

    Examples
    --------
    >>> from featstream import MIM
    >>> X = [[0, 0, 1], [0, 0, 0], [1, 1, 1], [1, 1, 1]]
    >>> MIM(2).fit(X, [0, 0, 1, 1]).selected_
    array([0, 1])
    """

    def _criteria(self, parts: list[Scored], relevance: FloatArray) -> Criteria:
        while True:
            yield relevance


class _Pairs(NamedTuple):
    """Information of every candidate X, alone and with Z, which was chosen last."""

    alone: FloatArray  # information with the class, I(X; Y)
    given: FloatArray  # information with the class given Z, I(X; Y | Z)
    together: FloatArray  # information of both with the class, I(X, Z; Y)
    entropy: FloatArray  # of both and the class, H(X, Z, Y)


@estimator
class _ConditionalSelector(_GreedySelector):
    """Criteria of what two features say about the class together.

    A feature that says nothing alone may do so beside another: all features but
    constants are candidates.

    Parameters
    ----------
    measure : {"auto", "mi"} or MutualInformation, default="auto"
        Mutual information; ``MutualInformation(binning=..., n_bins=...)`` says how
        continuous features are cut.

    Attributes
    ----------
    scores_ : ndarray of float
        Their mutual information with the class alone, in bits.
    """

    _why_no_more = "the others are constant"
    # Equal sums of n log n can be made of different terms, which are rounded each to
    # some 1e-14 bits; sums of as many terms as there are rows stay below this.
    _tolerance = 1e-9
    _begins_with_relevance = False
    """Whether the criterion adds to the relevance of a feature, or else to 0."""

    @abstractmethod
    def _add(self, total: FloatArray, pairs: _Pairs) -> FloatArray:
        """The criterion of the candidates after one more feature was chosen."""

    def _bind(self, y: Any) -> Any:
        measure = resolve_measure("mi" if self.measure == "auto" else self.measure)
        if not isinstance(measure, MutualInformation):
            raise DataTypeError(
                f"{type(self).__name__} needs mutual information. Got "
                f"measure={self.measure!r}. Use measure='mi'; its class "
                "MutualInformation has options for how numbers are cut."
            )
        return measure.bind(y)

    def _prepare(self, block: Block, stream: Stream) -> tuple[Any, FloatArray]:
        encoded = stream.measure.encode(block)
        return encoded, stream.measure.relevance(encoded)

    def _select(self, parts: list[tuple[Any, FloatArray]], stream: Stream) -> Selection:
        encoded, scores = zip(*parts, strict=True)
        relevance = np.concatenate(scores)
        columns = DiscreteColumns(list(encoded), count_threads(self.n_jobs))
        candidates = np.flatnonzero(columns.entropy > 0.0)
        criteria = self._criteria(columns, candidates, relevance)
        return self._choose(relevance, candidates, criteria)

    def _criteria(
        self, columns: DiscreteColumns, candidates: IntArray, relevance: FloatArray
    ) -> Criteria:
        classes = as_labels(self._stream.y).codes.astype(np.int64)
        alone = relevance[candidates]
        total = alone if self._begins_with_relevance else np.zeros(alone.size)
        chosen = yield alone
        while True:
            z = candidates[chosen]
            codes = columns.codes(z)
            both = merge(codes, classes)
            with_both = columns.information(both)
            given = with_both - columns.information(codes)
            entropy = columns.entropy + columns.entropy_of(both) - with_both
            found = (relevance, given, relevance[z] + given, entropy)
            pairs = _Pairs(*(values[candidates] for values in found))
            total = self._add(total, pairs)
            chosen = yield total


@estimator
class JMI(_ConditionalSelector):
    """Joint mutual information.

    The most relevant feature is chosen first, and then, again and again, the one that
    says most about the class together with one of the features chosen before, on
    average: the sum of ``I(X, Z; Y)`` over them.

    Notes
    -----
    All features but constants can be chosen, whatever they say alone: the threshold
    of the measure has no meaning here. Criteria that differ by less than 1e-9 bits are
    equal, and the first of equals is chosen. A step takes two passes over the encoded
    columns.

    References
    ----------
    .. [1] H. H. Yang, J. Moody: Data Visualization and Feature Selection: New
       Algorithms for Nongaussian Data. NIPS 1999.
    .. [2] G. Brown, A. Pocock, M.-J. Zhao, M. Lujan: Conditional Likelihood
       Maximisation: A Unifying Framework for Information Theoretic Feature Selection.
       JMLR 13, 2012.

    Examples
    --------
    Two features of which the class is the exclusive or, and a weak one:

    >>> import numpy as np
    >>> from featstream import JMI
    >>> a, b = np.tile([0, 0, 1, 1], 25), np.tile([0, 1, 0, 1], 25)
    >>> y = a ^ b
    >>> weak = np.where(np.arange(100) < 40, 0, y)
    >>> JMI(3).fit(np.c_[weak, a, b], y).selected_
    array([0, 1, 2])
    """

    def _add(self, total: FloatArray, pairs: _Pairs) -> FloatArray:
        return total + pairs.together


@estimator
class CMIM(_ConditionalSelector):
    """Conditional mutual information maximisation.

    The most relevant feature is chosen first, and then, again and again, the one
    that says most about the class given any one of the features chosen before: the
    least ``I(X; Y | Z)`` over them.

    References
    ----------
    .. [1] F. Fleuret: Fast Binary Feature Selection with Conditional Mutual
       Information. JMLR 5, 2004.

    Examples
    --------
    A copy adds nothing, a weaker feature of its own does:

    >>> import numpy as np
    >>> from featstream import CMIM
    >>> y = np.arange(64) % 2
    >>> strong = np.where(np.arange(64) < 16, 0, y)
    >>> other = np.where(np.arange(64) > 40, 0, y)
    >>> CMIM(2).fit(np.c_[strong, strong, other], y).selected_
    array([0, 2])
    """

    _begins_with_relevance = True

    def _add(self, total: FloatArray, pairs: _Pairs) -> FloatArray:
        return np.minimum(total, pairs.given)


@estimator
class DISR(_ConditionalSelector):
    """Double input symmetrical relevance.

    As `JMI`, with what two features say about the class relative to the entropy of
    the three: the sum of ``I(X, Z; Y) / H(X, Z, Y)``.

    References
    ----------
    .. [1] P. E. Meyer, G. Bontempi: On the Use of Variable Complementarity for Feature
       Selection in Cancer Classification. EvoWorkshops 2006.

    Examples
    --------
    >>> from featstream import DISR
    >>> X = [[0, 0, 1], [0, 1, 0], [1, 0, 1], [1, 1, 1]]
    >>> DISR(2).fit(X, [0, 0, 1, 1]).selected_
    array([0, 2])
    """

    def _add(self, total: FloatArray, pairs: _Pairs) -> FloatArray:
        return total + pairs.together / pairs.entropy


@estimator
class CIFE(_ConditionalSelector):
    """Conditional infomax feature extraction.

    The most relevant feature is chosen first, and then, again and again, the one
    with the highest relevance less its redundancy with the features chosen before,
    plus its redundancy given the class: ``I(X; Y)`` and the sum of
    ``I(X; Y | Z) - I(X; Y)`` over them.

    References
    ----------
    .. [1] D. Lin, X. Tang: Conditional Infomax Learning: An Integrated Framework for
       Feature Extraction and Fusion. ECCV 2006.

    Examples
    --------
    >>> import numpy as np
    >>> from featstream import CIFE
    >>> y = np.arange(64) % 2
    >>> strong = np.where(np.arange(64) < 16, 0, y)
    >>> other = np.where(np.arange(64) > 40, 0, y)
    >>> CIFE(2).fit(np.c_[strong, strong, other], y).selected_
    array([0, 2])
    """

    _begins_with_relevance = True

    def _add(self, total: FloatArray, pairs: _Pairs) -> FloatArray:
        return total + (pairs.given - pairs.alone)
