"""mRMR and its relatives: the feature that adds most to those chosen, step by step."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator, Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from featstream.engines import prepared_ahead
from featstream.errors import DataTypeError, check_choice, check_count
from featstream.jit import lean
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
from featstream.protocols import Block, FloatArray, IntArray, Measure
from featstream.runs.arrays import Declared, check_arrays
from featstream.selectors.batch.base import (
    BatchSelector,
    RelevantColumns,
    Selection,
    encode_relevant,
    join_columns,
)
from featstream.selectors.batch.discrete import DiscreteColumns, merge
from featstream.selectors.result import OVER_LIMIT, TraceLevel
from featstream.selectors.saola.kept import Tuning, start_kept
from featstream.selectors.stream import Stream

_FLOOR = 1e-3
"""Less overlap than this counts as this much where relevance is divided by it."""

_STEP = 1 << 12
"""Columns that a thread compares at a time."""

Criteria = Generator[FloatArray, int, None]
"""Yields the criterion of every candidate; is sent the candidate that was chosen."""


class _GreedySelector(BatchSelector):
    """What the methods share: all but the criterion."""

    def __init__(
        self,
        n_features: int = 10,
        *,
        measure: str | Measure = "auto",
        trace: TraceLevel = "full",
        n_jobs: int | None = None,
    ) -> None:
        self.n_features = n_features
        self.measure = measure
        self.trace = trace
        self.n_jobs = n_jobs

    @abstractmethod
    def _open(self, parts: list[Any]) -> tuple[FloatArray, IntArray, Criteria]:
        """Relevance of all features, which are candidates, and their criteria."""

    @property
    def criterion_(self) -> FloatArray:
        """The criterion of each selected feature when it was chosen."""
        self._started()
        return self._values

    def _begin(self, stream: Stream) -> None:
        check_count(self.n_features, "n_features", type(self).__name__)
        self._values: FloatArray = np.empty(0)

    def _state_arrays(self) -> dict[str, NDArray[Any]]:
        return {"criterion": self._values}

    def _restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        table = {"criterion": Declared(np.float64, (len(self._stream.kept),))}
        self._values = check_arrays(arrays, table)["criterion"]

    def _select(self, parts: list[Any], stream: Stream) -> Selection:
        relevance, candidates, criteria = self._open(parts)
        n_chosen = min(self.n_features, candidates.size)
        chosen, values = np.zeros(n_chosen, np.int64), np.zeros(n_chosen)
        is_free = np.ones(candidates.size, np.bool_)
        for k in range(n_chosen):
            value = criteria.send(int(chosen[k - 1])) if k else next(criteria)
            free = np.where(is_free, value, -np.inf)
            chosen[k] = free.argmax()  # of equals, the first
            values[k] = value[chosen[k]]
            is_free[chosen[k]] = False
        self._values = values
        fate = np.zeros(relevance.size, np.uint8)
        fate[candidates] = OVER_LIMIT
        return Selection(candidates[chosen], relevance, fate=fate)


class _PairSelector(_GreedySelector):
    """Criteria of relevance and of overlaps of two features, by any measure."""

    _why_no_more = (
        "the others are independent of the class, or do not pass the threshold of the "
        "measure"
    )

    def _propose(self, blocks: list[Block]) -> Choice:
        choice = super()._propose(blocks)
        return choice if choice.name == "fisher-z" else choice._replace(name="mi")

    def _prepare(self, block: Block, stream: Stream) -> RelevantColumns:
        # The threshold of a measure that was named is none that the user has chosen.
        has_threshold = not isinstance(self.measure, str)
        return encode_relevant(block, stream.measure, has_threshold=has_threshold)

    def _open(
        self, parts: list[RelevantColumns]
    ) -> tuple[FloatArray, IntArray, Criteria]:
        relevance = np.concatenate([part.scores for part in parts])
        candidates = np.concatenate([part.relevant for part in parts])
        return relevance, candidates, self._criteria(parts, relevance[candidates])

    @abstractmethod
    def _criteria(
        self, parts: list[RelevantColumns], relevance: FloatArray
    ) -> Criteria:
        """The criterion of the candidates, whose relevance is given, at each step."""


class MRMR(_PairSelector):
    """Minimum redundancy, maximum relevance.

    The most relevant feature is chosen first, and then, again and again, the one
    whose relevance is highest after its mean overlap with the features chosen before
    is subtracted, or divided out.

    Parameters
    ----------
    n_features : int, default=10
        Number of features to select.
    scheme : {"difference", "quotient"}, default="difference"
        Whether the mean overlap is subtracted from the relevance (MID, FCD) or
        divides it (MIQ, FCQ).
    measure : {"auto", "mi", "su", "fisher-z"} or measure object, default="auto"
        How relevance and overlap are measured. "auto" takes mutual information for
        discrete data and Fisher's Z for continuous data. With Fisher's Z relevance is
        the F statistic, and overlap the absolute correlation.
    trace : {"full", "kept"} or None, default="full"
        What is remembered of features that are not selected.
    n_jobs : int, optional
        Number of threads. The selection does not depend on it.

    Attributes
    ----------
    selected_ : ndarray of int
        The selected features, the first choice first.
    scores_ : ndarray of float
        Their relevance: mutual information in bits, symmetrical uncertainty, or
        absolute correlation (eta with more than two classes).
    criterion_ : ndarray of float
        What the criterion was when each was chosen.
    support_ : ndarray of bool of shape (n_features,)
        Whether each feature is selected.
    measure_ : str
        The measure in use.
    result_ : SelectionResult
        Names, scores and what became of each feature.

    See Also
    --------
    JMI, CMIM : Count what two features say about the class together.

    Notes
    -----
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

    def __init__(
        self,
        n_features: int = 10,
        *,
        scheme: Literal["difference", "quotient"] = "difference",
        measure: str | Measure = "auto",
        trace: TraceLevel = "full",
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(n_features, measure=measure, trace=trace, n_jobs=n_jobs)
        self.scheme = scheme

    def _begin(self, stream: Stream) -> None:
        owner = type(self).__name__
        check_choice(self.scheme, "scheme", ("difference", "quotient"), owner)
        super()._begin(stream)

    def _criteria(
        self, parts: list[RelevantColumns], relevance: FloatArray
    ) -> Criteria:
        measure, is_quotient = self._stream.measure, self.scheme == "quotient"
        if measure.name == "fisher-z":
            is_numeric = getattr(self.measure, "target", "") == "numeric"
            n_classes = 2 if is_numeric else as_labels(self._stream.y).classes.size
            relevance = _f_statistic(relevance, measure.n_samples, n_classes)
        overlaps = _Overlaps(parts, measure.n_samples, count_threads(self.n_jobs))
        total, n_chosen = np.zeros(relevance.size), 0
        chosen = yield relevance
        while True:
            found = overlaps.with_candidate(chosen, relevance.size)
            total += np.maximum(found, _FLOOR) if is_quotient else found
            n_chosen += 1
            mean = total / n_chosen
            chosen = yield relevance / mean if is_quotient else relevance - mean


class MIM(_PairSelector):
    """Mutual information maximisation: the most relevant features.

    Redundancy does not count: of copies all are selected. It is here to show what
    the other methods gain.

    Parameters
    ----------
    n_features : int, default=10
        Number of features to select.
    measure : {"auto", "mi", "su", "fisher-z"} or measure object, default="auto"
        How relevance is measured. "auto" takes mutual information for discrete data
        and Fisher's Z for continuous data.
    trace : {"full", "kept"} or None, default="full"
        What is remembered of features that are not selected.
    n_jobs : int, optional
        Number of threads. The selection does not depend on it.

    Attributes
    ----------
    selected_, scores_, criterion_, support_, measure_, result_
        As of `MRMR`.

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

    def _criteria(
        self, parts: list[RelevantColumns], relevance: FloatArray
    ) -> Criteria:
        while True:
            yield relevance


class _Pairs(NamedTuple):
    """What every candidate says together with the one that was chosen last.

    Attributes
    ----------
    given : ndarray of float
        Information with the class given the chosen feature, ``I(X; Y | Z)``.
    together : ndarray of float
        Information of both with the class, ``I(X, Z; Y)``.
    entropy : ndarray of float
        Entropy of both and the class, ``H(X, Z, Y)``.
    """

    given: FloatArray
    together: FloatArray
    entropy: FloatArray


class _ConditionalSelector(_GreedySelector):
    """Criteria of what two features say about the class together.

    A feature that says nothing alone may do so beside another: all features but
    constants are candidates.
    """

    _why_no_more = "the others are constant"

    @abstractmethod
    def _criteria(self, relevance: FloatArray) -> Generator[FloatArray, _Pairs, None]:
        """The criterion of the candidates, whose relevance is given, at each step."""

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

    def _open(
        self, parts: list[tuple[Any, FloatArray]]
    ) -> tuple[FloatArray, IntArray, Criteria]:
        encoded, scores = zip(*parts, strict=True)
        relevance = np.concatenate(scores)
        columns = DiscreteColumns(list(encoded), count_threads(self.n_jobs))
        candidates = np.flatnonzero(columns.entropy > 0.0)
        return relevance, candidates, self._compare(columns, candidates, relevance)

    def _compare(
        self, columns: DiscreteColumns, candidates: IntArray, relevance: FloatArray
    ) -> Criteria:
        classes = as_labels(self._stream.y).codes.astype(np.int64)
        criteria = self._criteria(relevance[candidates])
        chosen = yield next(criteria)
        while True:
            z = candidates[chosen]
            codes = columns.codes(z)
            both = merge(codes, classes)
            with_both = columns.information(both)
            given = with_both - columns.information(codes)
            entropy = columns.entropy + columns.entropy_of(both) - with_both
            found = (given, relevance[z] + given, entropy)
            pairs = _Pairs(*(values[candidates] for values in found))
            chosen = yield criteria.send(pairs)


class JMI(_ConditionalSelector):
    """Joint mutual information.

    The most relevant feature is chosen first, and then, again and again, the one that
    says most about the class together with one of the features chosen before, on
    average: the sum of ``I(X, Z; Y)`` over them.

    Parameters
    ----------
    n_features : int, default=10
        Number of features to select.
    measure : {"auto", "mi"} or MutualInformation, default="auto"
        Mutual information; ``MutualInformation(binning=..., n_bins=...)`` says how
        continuous features are cut.
    trace : {"full", "kept"} or None, default="full"
        What is remembered of features that are not selected.
    n_jobs : int, optional
        Number of threads. The selection does not depend on it.

    Attributes
    ----------
    selected_ : ndarray of int
        The selected features, the first choice first.
    scores_ : ndarray of float
        Their mutual information with the class alone, in bits.
    criterion_ : ndarray of float
        What the criterion was when each was chosen.
    support_ : ndarray of bool of shape (n_features,)
        Whether each feature is selected.
    result_ : SelectionResult
        Names, scores and what became of each feature.

    Notes
    -----
    All features but constants can be chosen, whatever they say alone: the threshold
    of the measure has no meaning here. Entropies are sums of integers, so that copies
    have equal criteria, and the first of equals is chosen. A step takes two passes
    over the encoded columns.

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

    def _criteria(self, relevance: FloatArray) -> Generator[FloatArray, _Pairs, None]:
        pairs = yield relevance
        total = np.zeros(relevance.size)
        while True:
            total += pairs.together
            pairs = yield total


class CMIM(_ConditionalSelector):
    """Conditional mutual information maximisation.

    The most relevant feature is chosen first, and then, again and again, the one
    that says most about the class given any one of the features chosen before: the
    least ``I(X; Y | Z)`` over them.

    Parameters
    ----------
    n_features : int, default=10
        Number of features to select.
    measure : {"auto", "mi"} or MutualInformation, default="auto"
        Mutual information; ``MutualInformation(binning=..., n_bins=...)`` says how
        continuous features are cut.
    trace : {"full", "kept"} or None, default="full"
        What is remembered of features that are not selected.
    n_jobs : int, optional
        Number of threads. The selection does not depend on it.

    Attributes
    ----------
    selected_, scores_, criterion_, support_, result_
        As of `JMI`.

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

    def _criteria(self, relevance: FloatArray) -> Generator[FloatArray, _Pairs, None]:
        pairs, least = (yield relevance), relevance
        while True:
            least = np.minimum(least, pairs.given)
            pairs = yield least


class DISR(_ConditionalSelector):
    """Double input symmetrical relevance.

    As `JMI`, with what two features say about the class relative to the entropy of
    the three: the sum of ``I(X, Z; Y) / H(X, Z, Y)``.

    Parameters
    ----------
    n_features : int, default=10
        Number of features to select.
    measure : {"auto", "mi"} or MutualInformation, default="auto"
        Mutual information; ``MutualInformation(binning=..., n_bins=...)`` says how
        continuous features are cut.
    trace : {"full", "kept"} or None, default="full"
        What is remembered of features that are not selected.
    n_jobs : int, optional
        Number of threads. The selection does not depend on it.

    Attributes
    ----------
    selected_, scores_, criterion_, support_, result_
        As of `JMI`.

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

    def _criteria(self, relevance: FloatArray) -> Generator[FloatArray, _Pairs, None]:
        pairs = yield relevance
        total = np.zeros(relevance.size)
        while True:
            total += pairs.together / pairs.entropy
            pairs = yield total


class CIFE(_ConditionalSelector):
    """Conditional infomax feature extraction.

    The most relevant feature is chosen first, and then, again and again, the one
    with the highest relevance less its redundancy with the features chosen before,
    plus its redundancy given the class: ``I(X; Y)`` and the sum of
    ``I(X; Y | Z) - I(X; Y)`` over them.

    Parameters
    ----------
    n_features : int, default=10
        Number of features to select.
    measure : {"auto", "mi"} or MutualInformation, default="auto"
        Mutual information; ``MutualInformation(binning=..., n_bins=...)`` says how
        continuous features are cut.
    trace : {"full", "kept"} or None, default="full"
        What is remembered of features that are not selected.
    n_jobs : int, optional
        Number of threads. The selection does not depend on it.

    Attributes
    ----------
    selected_, scores_, criterion_, support_, result_
        As of `JMI`.

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

    def _criteria(self, relevance: FloatArray) -> Generator[FloatArray, _Pairs, None]:
        pairs = yield relevance
        total = relevance.copy()
        while True:
            total += pairs.given - relevance
            pairs = yield total


class _Overlaps:
    """Overlaps of one relevant feature with all of them."""

    def __init__(
        self, parts: list[RelevantColumns], n_samples: int, n_threads: int
    ) -> None:
        self._columns = columns = join_columns(
            [(part.columns, part.position) for part in parts]
        )
        # Where the comparison of two columns looks for the second one.
        none = np.empty(0, np.int64)
        self._kept = start_kept(columns, none, Tuning())._replace(columns=columns)
        self._n_samples, self._n_threads = n_samples, n_threads
        self._pool = ScratchPool()

    def with_candidate(self, i: int, n_candidates: int) -> FloatArray:
        """Overlaps of candidate ``i`` with all candidates."""
        found = np.empty(n_candidates)
        run = for_storage(_find_overlaps, self._columns)
        scratch_for = storage_of(self._columns).scratch

        def find(begin: int) -> None:
            with self._pool.borrow(scratch_for, self._n_samples) as scratch:
                here = found[begin : begin + _STEP]
                run(self._columns, i, self._kept, begin, scratch, here)

        steps = iter(range(0, n_candidates, _STEP))
        for _ in prepared_ahead(steps, find, self._n_threads):
            pass
        return found


@lean
def _find_overlaps(columns, i, kept, begin, scratch, found):  # type: ignore[no-untyped-def]
    """Overlaps of column ``i`` with the columns in the slots from ``begin`` on."""
    load_newcomer(columns, i, scratch)
    for k in range(found.size):
        found[k] = overlap(columns, i, kept, begin + k, False, scratch)
    unload_newcomer(columns, i, scratch)


def _f_statistic(scores: FloatArray, n: int, n_classes: int) -> FloatArray:
    """The F statistic of correlations, or of etas, with the target."""
    share = np.minimum(scores**2, 1.0 - 2.0**-53)  # of the variance; F is finite
    return share / (1.0 - share) * ((n - n_classes) / (n_classes - 1))
