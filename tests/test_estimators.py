"""Selectors become estimators of scikit-learn when it is used, not before."""

from __future__ import annotations

import os
import subprocess
import sys
from textwrap import dedent

import pytest
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin

import featstream.estimators

START = """
import os
import sys
import numpy as np
from featstream import SAOLA, FisherZ
rng = np.random.default_rng(0)
y = rng.integers(0, 2, 60)
X = rng.normal(size=(60, 4)) + y[:, None]
selector = SAOLA(measure=FisherZ(alpha=0.1))
"""


USES = """
selector.fit(X, y).transform(X)
SAOLA.get_support(selector.fit(X, y))
selector.set_params(measure__alpha=0.2)
SAOLA.set_params(selector, measure__alpha=0.2)
assert repr(selector) == "SAOLA(measure=FisherZ(alpha=0.1))"
import sklearn.svm; SAOLA()
from sklearn.base import clone; clone(selector)
""".strip().splitlines()

USE = """
class Mine(SAOLA):
    def transform(self, X):
        return super().transform(X)

def use(code):
    exec(code)
    from sklearn.base import BaseEstimator, clone
    from sklearn.feature_selection import SelectorMixin
    from sklearn.pipeline import make_pipeline
    assert isinstance(selector, BaseEstimator) and issubclass(SAOLA, SelectorMixin)
    assert isinstance(clone(selector).measure, FisherZ)
    assert issubclass(FisherZ, BaseEstimator)
    framed = make_pipeline(Mine()).set_output(transform="pandas")
    names = [f"x{i}" for i in Mine().fit(X, y).selected_]
    assert list(framed.fit_transform(X, y)) == names

selector.fit(X, y)  # the kernels
for code in sys.argv[1:]:  # each in a process of its own
    child = os.fork()
    if not child:
        use(code)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, code
"""


def run(code, *arguments):
    given = [sys.executable, "-c", START + dedent(code), *arguments]
    return subprocess.run(given, stdout=subprocess.PIPE, text=True, check=True).stdout


def test_selecting_does_without_scikit_learn():
    found = run("""
        result = SAOLA(measure="fisher-z").fit(X, y).result_
        assert len(result.indices)
        assert list(result.parameters) == list(selector.get_params(deep=False))
        own = list(result.parameters)
        print(*{"sklearn", "pandas", "scipy.stats", "rich"} & set(sys.modules))
        import sklearn
        assert list(selector.get_params(deep=False)) == own
        """)
    assert found.split() == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_using_scikit_learn_makes_estimators():
    """Of classes and objects that were there before."""
    run(USE, *USES)


def test_every_method_of_scikit_learn_is_there_before():
    """And none that is not scikit-learn's."""
    theirs = {n for n in dir(BaseEstimator) if not n.startswith("_")}
    both = {n for n in dir(SelectorMixin) if not n.startswith("_")} | theirs
    estimators = featstream.estimators
    ours = {n for n in estimators._FROM_ESTIMATOR if not n.startswith("_")}
    assert ours | {"get_params"} == theirs
    assert set(estimators._FROM_SELECTOR) == both - theirs
