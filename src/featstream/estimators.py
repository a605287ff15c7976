"""Scikit-learn's base classes, from the moment at which scikit-learn is imported.

Importing it takes longer than most selections, which do without it. So `Estimator`
and `Selector` get their base classes, `BaseEstimator` and `SelectorMixin`, as soon as
anyone imports scikit-learn: a user, one of the methods that come from there, or a
module of this package that needs more of it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from inspect import Parameter, signature
from types import ModuleType
from typing import TYPE_CHECKING, Any

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
            known = signature(type(self).__init__).parameters.values()
            kinds = Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY
            names = sorted(p.name for p in known if p.kind in kinds)
            return {name: getattr(self, name) for name in names if name != "self"}

        locals().update({name: _later(name) for name in _FROM_ESTIMATOR})

    class _Selector(_Estimator):
        """What stands in for `SelectorMixin`."""

        locals().update({name: _later(name) for name in _FROM_SELECTOR})

    class Estimator(_Estimator):
        """An estimator of scikit-learn."""

    class Selector(_Selector):
        """A selector of scikit-learn."""


class _Watcher:
    """An import hook that changes nothing but the time at which `_adopt` is called."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != "sklearn":
            return None
        others = [finder for finder in sys.meta_path if finder is not self]
        specs = (finder.find_spec(name, path, target) for finder in others)
        spec = next(filter(None, specs), None)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_adopt(module: ModuleType) -> None:
                execute(module)
                sys.meta_path.remove(self)
                _adopt()

            spec.loader.exec_module = execute_and_adopt  # type: ignore[method-assign]
        return spec


def _adopt() -> None:
    """Let scikit-learn's classes be the base classes, as if they had always been."""
    from sklearn.base import BaseEstimator
    from sklearn.feature_selection import SelectorMixin

    if Estimator.__bases__ == (BaseEstimator,):
        return
    bases = {Estimator: (BaseEstimator,), Selector: (SelectorMixin, BaseEstimator)}
    for first, theirs in bases.items():
        first.__bases__ = theirs
        family = [first]
        for member in family:
            family += member.__subclasses__()
            theirs[0].__init_subclass__.__func__(member)


if "sklearn" in sys.modules:
    _adopt()
else:
    sys.meta_path.insert(0, _Watcher())
