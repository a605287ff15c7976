"""Selectors become estimators of scikit-learn when it is used, not before."""

from __future__ import annotations

import inspect
import os
import re

import pytest
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin

import featstream
import featstream.estimators
from crash_runs import run_python

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

import pandas, scipy.stats  # which scikit-learn imports
selector.fit(X, y)  # the kernels
for code in sys.argv[1:]:  # each in a process of its own
    child = os.fork()
    if not child:
        use(code)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, code
"""


def test_selecting_does_without_scikit_learn():
    run_python(f"""{START}
result = SAOLA(measure="fisher-z").fit(X, y).result_
assert len(result.indices)
own = list(result.parameters)
assert list(selector.get_params(deep=False)) == own
assert not {{"sklearn", "pandas", "scipy.stats", "rich"}} & set(sys.modules)
import sklearn
assert list(selector.get_params(deep=False)) == own
""")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_using_scikit_learn_makes_estimators():
    """Of classes and objects that were there before."""
    run_python(START + USE, *USES)


def test_every_method_of_scikit_learn_is_there_before():
    """And none that is not scikit-learn's."""
    theirs = {n for n in dir(BaseEstimator) if not n.startswith("_")}
    both = {n for n in dir(SelectorMixin) if not n.startswith("_")} | theirs
    estimators = featstream.estimators
    ours = {n for n in estimators._FROM_ESTIMATOR if not n.startswith("_")}
    assert ours | {"get_params"} == theirs
    assert set(estimators._FROM_SELECTOR) == both - theirs


PUBLIC = [getattr(featstream, name) for name in featstream.__all__]
ESTIMATORS = [c for c in PUBLIC if isinstance(c, type) and issubclass(c, BaseEstimator)]


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_every_parameter_is_described(cls):
    described = re.findall(r"(?m)^(\w+) : \S", inspect.getdoc(cls))
    assert set(inspect.signature(cls.__init__).parameters) - {"self"} <= set(described)
    assert len(described) == len(set(described))


def test_what_a_class_does_not_describe_is_described_by_its_base():
    class Base(featstream.estimators.Estimator):
        """A base.

        Parameters
        ----------
        a : int, default=1
            Of the base.
        b : int, default=2
            Not a parameter of the other.

        Attributes
        ----------
        found_ : int
            What was found.
        """

    @featstream.estimators.estimator
    class Other(Base):
        """Another.

        Parameters
        ----------
        c : float, default=0.5
            Its own.

        Examples
        --------
        None.
        """

        c: float = 0.5
        a: int = 1

    assert Other(c=3).get_params() == {"a": 1, "c": 3}
    parts = re.findall(r"(?m)^(\w+)(?: : .*\n    .*|\n-+)$", Other.__doc__)
    assert parts == ["Parameters", "c", "a", "Attributes", "found_", "Examples"]
    assert "a : int, default=1\n    Of the base.\n" in Other.__doc__
    assert inspect.cleandoc(Other.__doc__) == Other.__doc__


def test_of_two_bases_the_one_that_describes_a_thing_counts():
    """And not the nearer one, which has inherited a description of it."""
    text = """A class.

    Attributes
    ----------
    found_ : int
        {}
    """
    first = type("First", (featstream.estimators.Estimator,), {})
    first.__doc__ = text.format("As usual.")
    second = type("Second", (first,), {"__doc__": text.format("In groups.")})
    near = featstream.estimators.estimator(type("Near", (first,), {"__doc__": "A."}))
    assert "As usual." in near.__doc__
    both = type("Both", (near, second), {"__doc__": "B."})
    assert "In groups." in featstream.estimators.estimator(both).__doc__
