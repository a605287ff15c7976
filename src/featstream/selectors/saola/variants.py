"""SAOLA with other settings than the paper's: those for real work, and a name."""

from __future__ import annotations

from dataclasses import field
from typing import Any, Literal

from featstream.errors import check_choice
from featstream.estimators import estimator
from featstream.selectors.saola.saola import SAOLA
from featstream.selectors.stream import Stream


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
    target_copies : {"keep", "drop"}, default="keep"
        Whether features that are the target in other words (equal, recoded or
        negated) are left out. A warning names them in any case.

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

    alpha: float = 0.05
    redundancy_alpha: float = 0.2
    target_copies: Literal["keep", "drop"] = "keep"
    bound: Any = field(default="min", init=False)
    ties: Any = field(default="drop", init=False)
    pruning: Any = field(default="interleaved", init=False)
    overlap: Any = field(default=">=", init=False)
    redundancy: Any = field(default="conditional", init=False)
    correction: Any = field(default="online-fdr", init=False)

    def _begin(self, stream: Stream) -> None:
        choices = ("keep", "drop")
        check_choice(self.target_copies, "target_copies", choices, type(self).__name__)
        super()._begin(stream)


@estimator
class SAOLAMax(SAOLA):
    """SAOLA-max of the paper: two features must overlap by the larger relevance.

    It is ``SAOLA(bound="max")``, under a name for comparisons. The paper's numbers of
    features on discrete data are those of ``pruning="newcomers"``.

    Examples
    --------
    >>> from featstream import SAOLA, SAOLAMax
    >>> from featstream.datasets import make_stream
    >>> stream = make_stream(n_features=500, seed=0)
    >>> selector = SAOLAMax(measure="su").fit(stream.X, stream.y)
    >>> other = SAOLA(measure="su", bound="max").fit(stream.X, stream.y)
    >>> bool((selector.support_ == other.support_).all())
    True
    """

    bound: Any = field(default="max", init=False)


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

    bound: Any = field(default="min", init=False)
    overlap: Any = field(default=">=", init=False)
    redundancy: Any = field(default="conditional", init=False)
