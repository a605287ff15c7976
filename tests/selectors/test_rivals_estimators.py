"""Every rival is a scikit-learn selector."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from featstream import OFS, OGFS, OSFS, AlphaInvesting, FastOSFS, Grafting

pytestmark = pytest.mark.jit_only


@parametrize_with_checks(
    [OSFS(), FastOSFS(), AlphaInvesting(), Grafting(), OFS(), OGFS()]
)
def test_is_a_scikit_learn_estimator(estimator, check):
    check(estimator)
