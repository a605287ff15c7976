"""OGFS by hand, on a known answer, and the contracts of a stream selector."""

import numpy as np
import pytest
from scipy import sparse

from featstream import OGFS


def test_the_spectral_score_by_hand():
    """Classes (0, 0, 1, 1), a feature (0, 2, 2, 4): means 1 and 3 around 2.

    Between the classes it varies by 1, within them by 1: the score is 1.
    """
    selector = OGFS(penalty=0.01).start([0, 0, 1, 1])
    decision = selector.update_group(np.array([[0.0], [2.0], [2.0], [4.0]]), "a")
    assert decision.is_kept
    assert decision.features[0].relevance == pytest.approx(1.0)


def test_the_two_criteria_inside_a_group_by_hand():
    """Scores 1, 1, 3 and 0.5, all of the same total variance of 2."""
    between = np.array([1.0, 1.0, 1.5, 2 / 3])
    within = 2.0 - between
    # The first raises the score from 0 to 1; the second leaves it at 1 and is as
    # good as the mean; the third raises it; the fourth lowers it.
    strict = OGFS(criterion="t-test")
    assert strict._choose(between, within, between / within).tolist() == [0, 2]
    # It differs from the mean of 1 and 3, though.
    loose = OGFS(criterion="difference")
    assert loose._choose(between, within, between / within).tolist() == [0, 2, 3]


def test_a_feature_may_stand_out_without_raising_the_score_by_much():
    """Scores 1, 1.2 and 1.1 taken: the mean is 1.1, its error 0.1 / sqrt(3) = 0.058.

    A score of 1.3 is t = 3.46 above it, where 2.92 is significant at 5% with two
    degrees of freedom; 1.26 is t = 2.77, and is not.
    """
    scores, taken = np.array([1.0, 1.2, 1.1, 1.3, 1.26]), [0, 1, 2]
    selector = OGFS(criterion="t-test", significance=0.05)
    assert selector._stands_out(scores, 3, taken)
    assert not selector._stands_out(scores, 4, taken)


def test_only_informative_groups_are_selected_from():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 100))
    y = X[:, 31] - X[:, 37] + X[:, 82] > 0
    selector = OGFS(group_size=10, penalty=0.15).fit(X, y)
    assert selector.selected_.tolist() == [31, 37, 82]
    assert selector.selected_groups_.tolist() == [3, 8]
    stored = OGFS(penalty=0.15).fit(sparse.csc_array(X), y)
    assert stored.selected_groups_.tolist() == [3, 8]
    fates = selector.result_.groups.counts()
    assert fates == {"kept": 2, "irrelevant": 8, "redundant": 0, "displaced": 0}
    assert "is kept, with 2 of its 10 features" in selector.explain(group=3)
    assert "gave none of its 10 features any weight" in selector.explain(group=0)
    assert "of group 0 is irrelevant: it adds nothing" in selector.explain(5)


def test_a_better_group_displaces_features_of_an_earlier_one():
    rng = np.random.default_rng(1)
    cause = rng.normal(size=400)
    y = (cause > 0).astype(int)
    poor = cause[:, None] + 1.5 * rng.normal(size=(400, 3))
    selector = OGFS(penalty=0.3).start(y)
    first = selector.update_group(poor, group="poor", names=["a", "b", "c"])
    assert first.is_kept
    second = selector.update_group(cause[:, None], group="good", names=["cause"])
    assert second.is_kept
    assert set(second.displaced) == {d.name for d in first.features if d.is_kept}
    assert second.displaced_groups == ("poor",)
    assert selector.selected_groups_.tolist() == ["good"]
    assert selector.explain(group="poor").startswith("Group 'poor' was displaced")
    name = second.displaced[0]
    assert "the lasso gave it no weight" in selector.explain(name)
