"""What holds for many rivals: sizes in the paper, sparse data, classes, refusals."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

import featstream as fs
from featstream.measures import ChiSquareTest, FisherZTest, GTest
from shared import shared

TABLES = GTest(n_bins=2, max_categories=2, samples_per_df=20, arity="occurring")
"""Tables given k features need 20 * 2**k samples."""
TWO, THREE = (fs.SymmetricalUncertainty(n_bins=n, max_categories=2) for n in (2, 3))
"""The paper does not say how many bins FCBF had."""
NUMERIC = fs.FisherZ(target="numeric")


@pytest.mark.jit_only
@pytest.mark.parametrize(
    ("selector", "name", "printed", "found"),
    [
        (fs.FCBF(measure="su"), "dorothea", 96, 96),
        (fs.FCBF(measure=TWO), "dexter", 55, 53),
        (fs.FCBF(measure=TWO), "arcene", 31, 29),
        (fs.FCBF(measure=THREE), "arcene", 31, 33),
        (fs.MMMB(test="fisher-z"), "dexter", 11, 11),
        (fs.MMMB(test="fisher-z"), "arcene", 5, 5),
        (fs.IAMB(test=TABLES), "dexter", 4, 4),
        (fs.IAMB(test=TABLES), "arcene", 3, 3),
        (fs.IAMB(test=TABLES), "dorothea", 6, 6),
        (fs.FastOSFS(test="fisher-z"), "madelon", 3, 3),
        (fs.FastOSFS(test="fisher-z"), "dexter", 9, 9),
        (fs.FastOSFS(test="g2"), "hiva_train", 5, 5),
        (fs.FastOSFS(test="g2"), "dorothea", 5, 5),
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
        fs.OSFS(test="g2"),
        fs.FastOSFS(test="fisher-z"),
        fs.AlphaInvesting(),
        fs.AlphaInvesting(loss="logistic"),
        fs.Grafting(l1=0.05),
        fs.OGFS(group_size=250, penalty=0.2),
        fs.FGM(60, plane_size=10),
        fs.SPFSLAR(3),
        fs.LassoSelector(penalty=0.2),
        fs.MMMB(test="fisher-z", alpha=1e-4, max_condition=1),
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
        *(
            kind(test="fisher-z", alpha=0.001)
            for kind in (fs.OSFS, fs.FastOSFS, fs.IAMB, fs.MMMB)
        ),
        *(kind(2) for kind in (fs.FGM, fs.SPFSLAR)),
        *(fs.AlphaInvesting(), fs.Grafting(l1=0.12), fs.OGFS(penalty=0.3)),
        *(fs.LassoSelector(penalty=0.12), fs.OFS(2, step_size=0.1)),
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
        (fs.JMI(measure="su"), TypeError, "JMI needs mutual information"),
        (fs.JMI(measure=fs.FisherZ()), TypeError, "JMI needs mutual information"),
        (fs.IAMB(test=ChiSquareTest()), TypeError, "IAMB needs the test G²"),
        (fs.IAMB(test=GTest(arity="largest")), TypeError, "IAMB needs the test G²"),
        (fs.MMMB(test=FisherZTest(alpha=5)), ValueError, "`alpha`"),
        (fs.OSFS(test=GTest(arity="occurring")), TypeError, "for IAMB and MMMB alone"),
        (fs.OSFS(test=fs.FisherZ()), TypeError, r"FisherZ is not one\. Use test='g2'"),
        (fs.OSFS(test="fisherz"), ValueError, "Did you mean 'fisher-z'"),
        (
            fs.AlphaInvesting(loss="logistic"),
            ValueError,
            "for two classes, and y has 3",
        ),
        (fs.InteractionScreen(n_bins=9), ValueError, "`n_bins` .* from 2 to 8"),
        (fs.InteractionScreen(redundancy_alpha=1.5), ValueError, "`redundancy_alpha`"),
    ],
    ids=repr,
)
def test_what_does_not_fit_is_refused_at_the_start(selector, error, message):
    with pytest.raises(error, match=message):
        selector.start(np.arange(15) % 3)
