"""Estimators: their constructors and docstrings, and scikit-learn's base classes.

Importing scikit-learn takes longer than most selections, which do without it. So
`Estimator` and `Selector` get their base classes, `BaseEstimator` and `SelectorMixin`,
when an object is made and scikit-learn has been imported, or when a method is called
that comes from there.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from inspect import cleandoc, signature
from typing import TYPE_CHECKING, Any, TypeVar, dataclass_transform

T = TypeVar("T")

_FROM_ESTIMATOR = ("__repr__", "__sklearn_tags__", "get_metadata_routing", "set_params")
_FROM_SELECTOR = (
    "fit_transform",
    "get_feature_names_out",
    "get_support",
    "inverse_transform",
    "set_output",
    "transform",
)


def _later(name: str) -> Callable[..., Any]:
    """A method that imports scikit-learn, which has the method itself."""

    def method(self: Any, *arguments: Any, **options: Any) -> Any:
        _adopt()
        return getattr(self, name)(*arguments, **options)

    method.__name__ = name
    return method


if TYPE_CHECKING:
    from sklearn.base import BaseEstimator
    from sklearn.feature_selection import SelectorMixin

    class Estimator(BaseEstimator):
        """An estimator of scikit-learn."""

    class Selector(SelectorMixin, BaseEstimator):
        """A selector of scikit-learn."""

else:

    class _Estimator:
        """What stands in for `BaseEstimator`."""

        def get_params(self, deep=True):
            if deep:
                _adopt()
                return self.get_params()
            names = sorted(signature(type(self)).parameters)
            return {name: getattr(self, name) for name in names}

        locals().update({name: _later(name) for name in _FROM_ESTIMATOR})

    class _Selector(_Estimator):
        """What stands in for `SelectorMixin`."""

        locals().update({name: _later(name) for name in _FROM_SELECTOR})

    class Estimator(_Estimator):
        """An estimator of scikit-learn."""

        def __new__(cls, *arguments, **options):
            """Make an object: of scikit-learn's classes, if that is in use."""
            if "sklearn" in sys.modules:
                _adopt()
            return object.__new__(cls)

    class Selector(_Selector):
        """A selector of scikit-learn."""

        __new__ = Estimator.__new__


@contextmanager
def whole_or_not_at_all(fitted: Any) -> Iterator[None]:
    """Let an estimator be as it was if fitting it fails or is interrupted.

    What it has learned is replaced by `fit`, not written to, so that the attributes of
    before are enough.
    """
    before = dict(vars(fitted))
    try:
        yield
    except BaseException:
        vars(fitted).clear()
        vars(fitted).update(before)
        raise


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(field,))
def estimator(cls: type[T]) -> type[T]:
    """Write the constructor of a class from its fields, and complete its docstring.

    Each annotated attribute is a parameter, as of a dataclass; a constructor that the
    class has stays. What its docstring does not describe of its parameters and learned
    attributes is described as in its base classes.
    """
    if "__init__" not in vars(cls):
        cls = dataclass(kw_only=True, eq=False, repr=False, match_args=False)(cls)
    if cls.__doc__ is None:  # python -OO
        return cls
    _own_docstrings[cls] = cls.__doc__
    described: dict[str, dict[str, str]] = {"Parameters": {}, "Attributes": {}}
    for base in reversed(cls.__mro__):
        text = _own_docstrings.get(base, base.__doc__) or ""
        start, *sections = _SECTION.split(cleandoc(text))
        others, own = [], []
        for section in sections:
            title, _, *lines = section.split("\n")
            if title not in described:
                others.append(section)
                continue
            for entry in re.split(r"\n(?=\S)", "\n".join(lines)):
                name = entry.split(" :")[0]
                described[title][name] = entry
                own.append(name)
    known, texts = signature(cls.__init__).parameters, described["Parameters"]
    names = dict.fromkeys([*own, *known])
    described["Parameters"] = {n: texts[n] for n in names if n in known and n in texts}
    complete = [
        "\n".join([title, "-" * len(title), *entries.values()])
        for title, entries in described.items()
        if entries
    ]
    cls.__doc__ = "\n\n".join([start.rstrip(), *complete, *others])
    return cls


_SECTION = re.compile(r"\n+(?=[A-Z][A-Za-z ]+\n-{3,}\n)")
_own_docstrings: dict[type, str] = {}
"""Docstrings before they were completed: what a base inherits does not count as its."""


def _adopt() -> None:
    """Let scikit-learn's classes be the base classes, as if they had always been."""
    if hasattr(Estimator, "_get_param_names"):  # as scikit-learn's have
        return
    from sklearn.base import BaseEstimator
    from sklearn.feature_selection import SelectorMixin

    bases = {Selector: (SelectorMixin, BaseEstimator), Estimator: (BaseEstimator,)}
    for first, theirs in bases.items():
        first.__bases__ = theirs
        family = [first]
        for member in family:
            family += member.__subclasses__()
            theirs[0].__init_subclass__.__func__(member)


if "sklearn" in sys.modules:
    _adopt()
