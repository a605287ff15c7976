"""Estimators: their base classes, which are scikit-learn's, and their constructors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from inspect import cleandoc, signature
from typing import Any, TypeVar, dataclass_transform

from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin

T = TypeVar("T")


class Estimator(BaseEstimator):
    """An estimator of scikit-learn."""


class Selector(SelectorMixin, BaseEstimator):
    """A selector of scikit-learn."""


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
