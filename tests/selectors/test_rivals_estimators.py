"""What holds for many rivals: sizes in the paper, sparse data, classes, refusals."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from featstream import (
    CMIM,
    FCBF,
    FGM,
    IAMB,
    JMI,
    MMMB,
    MRMR,
    OFS,
    OGFS,
    OSFS,
    SAOLA,
    SPFSLAR,
    AlphaInvesting,
    FastOSFS,
    FisherZ,
    Grafting,
    InteractionScreen,
    LassoSelector,
    SymmetricalUncertainty,
)
from featstream.measures import ChiSquareTest, FisherZTest, GTest
from shared import shared

TABLES = GTest(n_bins=2, max_categories=2, samples_per_df=20, arity="occurring")
"""Tables given k features need 20 * 2**k samples."""
TWO, THREE = (SymmetricalUncertainty(n_bins=n, max_categories=2) for n in (2, 3))
"""The paper does not say how many bins FCBF had."""
NUMERIC = FisherZ(target="numeric")


@pytest.mark.jit_only
@pytest.mark.parametrize(
    ("selector", "name", "printed", "found"),
    [
        (FCBF(measure="su"), "dorothea", 96, 96),
        (FCBF(measure=TWO), "dexter", 55, 53),
        (FCBF(measure=TWO), "arcene", 31, 29),
        (FCBF(measure=THREE), "arcene", 31, 33),
        (MMMB(test="fisher-z"), "dexter", 11, 11),
        (MMMB(test="fisher-z"), "arcene", 5, 5),
        (IAMB(test=TABLES), "dexter", 4, 4),
        (IAMB(test=TABLES), "arcene", 3, 3),
        (IAMB(test=TABLES), "dorothea", 6, 6),
        (FastOSFS(test="fisher-z"), "madelon", 3, 3),
        (FastOSFS(test="fisher-z"), "dexter", 9, 9),
        (FastOSFS(test="g2"), "hiva_train", 5, 5),
        (FastOSFS(test="g2"), "dorothea", 5, 5),
    ],
)
def test_about_as_many_features_are_selected_as_in_the_paper(
    selector, name, printed, found
):
    fitted = selector.fit(shared("data", f"{name}.npz"))
    assert len(fitted.selected_) == found
    assert abs(found - printed) <= 2


@pytest.mark.jit_only
@pytest.mark.parametrize(
    "selector",
    [
        OSFS(test="g2"),
        FastOSFS(test="fisher-z"),
        AlphaInvesting(),
        AlphaInvesting(loss="logistic"),
        Grafting(l1=0.05),
        OGFS(group_size=250, penalty=0.2),
        FGM(60, plane_size=10),
        SPFSLAR(3),
        LassoSelector(penalty=0.2),
        MMMB(test="fisher-z", alpha=1e-4, max_condition=1),
    ],
    ids=repr,
)
def test_sparse_data_are_never_made_dense(selector):
    """Columns of 1,000 values, which would take 160 megabytes."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 1000)
    X = sparse.random_array((1000, 20_000), density=0.002, format="csc", rng=rng)
    X.data[:] = 1.0
    X = sparse.hstack([X, sparse.csc_array(y[:, None] * (rng.random((1000, 3)) < 0.5))])
    X = sparse.csc_array(X)
    clone(selector).fit(X[:, :200], y)  # compiles
    tracemalloc.start()
    fitted = clone(selector).fit(X, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert set(fitted.selected_) & {20_000, 20_001, 20_002}
    assert peak < 40e6


@pytest.mark.parametrize(
    "selector",
    [
        *(kind(test="fisher-z", alpha=0.001) for kind in (OSFS, FastOSFS, IAMB, MMMB)),
        *(kind(2) for kind in (FGM, SPFSLAR)),
        *(AlphaInvesting(), Grafting(l1=0.12), OGFS(penalty=0.3)),
        *(LassoSelector(penalty=0.12), OFS(2, step_size=0.1)),
    ],
    ids=repr,
)
def test_three_classes_share_their_features(selector):
    """Their names do not matter: y is neither the first nor the last."""
    rng = np.random.default_rng(2)
    y = rng.integers(0, 3, 600)
    X = rng.normal(size=(600, 20))
    X[:, 4] += 3 * (y == 0)
    X[:, 7] += 3 * (y == 2)
    fitted = selector.fit(X, np.array(list("zxy"))[y])
    assert sorted(fitted.selected_.tolist()) == [4, 7]


@pytest.mark.parametrize(
    ("selector", "error", "message"),
    [
        (JMI(measure="su"), TypeError, "JMI needs mutual information"),
        (JMI(measure=FisherZ()), TypeError, "JMI needs mutual information"),
        (MRMR(scheme="ratio"), ValueError, "`scheme` of MRMR"),
        (CMIM(0), ValueError, "`n_features` of CMIM"),
        (IAMB(test=ChiSquareTest()), TypeError, "IAMB needs the test G²"),
        (IAMB(test=GTest(arity="largest")), TypeError, "IAMB needs the test G²"),
        (IAMB(max_seconds=-1), ValueError, "`max_seconds` of IAMB"),
        (MMMB(test=FisherZTest(alpha=5)), ValueError, "`alpha`"),
        (OSFS(test=GTest(arity="occurring")), TypeError, "for IAMB and MMMB alone"),
        (OSFS(test=FisherZ()), TypeError, r"FisherZ is not one\. Use test='g2'"),
        (OSFS(test="fisherz"), ValueError, "Did you mean 'fisher-z'"),
        (OSFS(max_condition=0), ValueError, "`max_condition` of OSFS"),
        (AlphaInvesting(loss="logistic"), ValueError, "for two classes, and y has 3"),
        (InteractionScreen(alpha=5), ValueError, "`alpha` of InteractionScreen"),
        (InteractionScreen(n_bins=9), ValueError, "`n_bins` .* from 2 to 8"),
        (InteractionScreen(memory="much"), ValueError, "`memory` must be a size"),
        (InteractionScreen(redundancy_alpha=1.5), ValueError, "`redundancy_alpha`"),
        (SAOLA(interactions="yes"), ValueError, "must be True, False or"),
        (SAOLA(measure=NUMERIC, interactions=True), ValueError, "needs classes"),
    ],
    ids=repr,
)
def test_what_does_not_fit_is_refused_at_the_start(selector, error, message):
    with pytest.raises(error, match=message):
        selector.start(np.arange(15) % 3)
