"""SAOLA with other settings than the paper's: those for real work, and a name."""

from __future__ import annotations

from typing import Literal

from featstream.estimators import estimator
from featstream.protocols import Measure
from featstream.selectors.interactions.screen import InteractionScreen
from featstream.selectors.result import TraceLevel
from featstream.selectors.saola.saola import SAOLA


@estimator
class SelectFromStream(SAOLA):
    """Select features in one pass, with the settings that we recommend.

    A feature is dropped if it is irrelevant, by a test whose level pays for the
    number of features judged; or if it adds nothing to the class once a more
    relevant kept feature is known. It is `SAOLA` with ``redundancy="conditional"``,
    ``redundancy_alpha=0.2``, ``correction="online-fdr"`` and ``ties="drop"``.

    Parameters
    ----------
    alpha : float, default=0.05
        Of the features that pass as relevant, the expected share that is not (false
        discovery rate).
    redundancy_alpha : float, default=0.2
        A feature adds nothing if its p-value, given another feature, is above this. A
        smaller value keeps fewer features.

    See Also
    --------
    SAOLA : The algorithm with the paper's settings, and all options.

    Notes
    -----
    ``docs/beyond-the-paper.md`` compares these settings with the paper's and with
    other methods. The false discovery rate is bounded if p-values of irrelevant
    features are independent of those before them; dependent features, such as
    neighbouring SNPs, are in practice dropped as redundant anyway.

    Examples
    --------
    >>> from featstream import SelectFromStream
    >>> from featstream.datasets import make_stream
    >>> stream = make_stream(n_features=2000, kind="continuous", seed=0)
    >>> selector = SelectFromStream().fit(stream.X, stream.y)
    >>> set(stream.blanket) <= set(selector.selected_)
    True

    Nothing is selected from noise:

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> noise, y = rng.normal(size=(200, 1000)), rng.integers(0, 2, 200)
    >>> SelectFromStream().fit(noise, y).selected_.size
    0
    """

    bound = "min"
    ties = "drop"
    pruning = "interleaved"
    overlap = ">="
    redundancy = "conditional"
    correction = "online-fdr"

    def __init__(
        self,
        *,
        alpha: float = 0.05,
        redundancy_alpha: float = 0.2,
        measure: str | Measure = "auto",
        max_features: int | None = None,
        interactions: bool | InteractionScreen = False,
        trace: TraceLevel = "full",
        n_jobs: int | None = None,
        engine: Literal["dask"] | None = None,
    ) -> None:
        self.alpha = alpha
        self.redundancy_alpha = redundancy_alpha
        self.measure = measure
        self.max_features = max_features
        self.interactions = interactions
        self.trace = trace
        self.n_jobs = n_jobs
        self.engine = engine


@estimator
class ConditionalSAOLA(SAOLA):
    """`SAOLA` with the conditional test in place of the bound.

    It is ``SAOLA(redundancy="conditional")``, under a name for comparisons.

    Examples
    --------
    >>> from featstream import SAOLA, ConditionalSAOLA
    >>> from featstream.datasets import make_stream
    >>> stream = make_stream(n_features=500, seed=0)
    >>> selector = ConditionalSAOLA(measure="su").fit(stream.X, stream.y)
    >>> other = SAOLA(measure="su", redundancy="conditional").fit(stream.X, stream.y)
    >>> bool((selector.support_ == other.support_).all())
    True
    """

    bound = "min"
    overlap = ">="
    redundancy = "conditional"
    interactions = False

    def __init__(
        self,
        *,
        measure: str | Measure = "auto",
        ties: Literal["keep", "drop"] = "keep",
        pruning: Literal["interleaved", "deferred"] = "interleaved",
        redundancy_alpha: float = 0.05,
        correction: Literal["none", "bonferroni", "online-fdr"] = "none",
        max_features: int | None = None,
        trace: TraceLevel = "full",
        n_jobs: int | None = None,
        engine: Literal["dask"] | None = None,
    ) -> None:
        self.measure = measure
        self.ties = ties
        self.pruning = pruning
        self.redundancy_alpha = redundancy_alpha
        self.correction = correction
        self.max_features = max_features
        self.trace = trace
        self.n_jobs = n_jobs
        self.engine = engine
