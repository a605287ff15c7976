"""Selectors are estimators of scikit-learn, by plain inheritance."""

from __future__ import annotations

import inspect
import re

import pytest
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin

import featstream
import featstream.estimators
from crash_runs import run_python

LOGGED = """
import numpy as np
from featstream import SAOLA
from sklearn.base import TransformerMixin
try:
    class Logged(TransformerMixin, SAOLA):
        pass
except TypeError as error:
    print(str(error).splitlines()[0])
X = [[0, 0], [0, 1], [1, 0], [1, 1]]
print(SAOLA(measure="su").fit(X, [0, 0, 1, 1]).selected_)
"""


def test_a_class_with_bases_in_a_wrong_order_breaks_no_other():
    """Python refuses the class statement itself, and nothing else changes."""
    refused, selected = run_python(LOGGED).stdout.splitlines()
    assert "consistent method resolution" in refused
    assert selected == "[0]"


def test_selectors_are_what_they_are_from_the_beginning():
    assert issubclass(featstream.SAOLA, SelectorMixin)
    assert issubclass(featstream.SAOLA, BaseEstimator)
    assert issubclass(featstream.FisherZ, BaseEstimator)


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
