"""Who takes part in a comparison: selectors by name, best of several, sweeps."""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from functools import cache, partial
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator, clone

from featstream.errors import ParameterError, printable, unknown_name
from featstream.selectors import (
    OFS,
    OGFS,
    OSFS,
    SAOLA,
    AlphaInvesting,
    FastOSFS,
    Grafting,
    GroupSAOLA,
)

__all__ = [
    "SELECTORS",
    "BestOf",
    "as_message",
    "as_selector",
    "checksum_of_library",
    "code_of",
    "describe",
    "name_selectors",
    "sweep",
    "takes_groups",
]

SELECTORS: dict[str, Callable[[], Any]] = {
    "alpha-investing": AlphaInvesting,
    "fast-osfs": FastOSFS,
    "grafting": Grafting,
    "group-saola": GroupSAOLA,
    "ofs": OFS,
    "ogfs": OGFS,
    "osfs": OSFS,
    "saola": SAOLA,
    "saola-max": lambda: SAOLA(bound="max"),
}
"""The selectors by the names that the command line takes, with their defaults."""

_NOT_DECIDING = ("cli", "reporting")
"""Folders of the package that only show what was found."""


@dataclass(frozen=True)
class BestOf:
    """A selector with the best of several values of a parameter.

    For methods that must be told how many features to select. Each classifier has
    its own best value, that of the highest accuracy; among equals the first.

    Parameters
    ----------
    selector : object
        A selector, or the name of one.
    parameter : str
        The parameter, such as ``"n_features"``.
    values : iterable
        What it is set to.
    judged_on : {"training", "test"}, default="training"
        Where the accuracy is measured: by five-fold cross-validation within the
        training rows, or on the test rows. The paper does the latter, which is
        optimistic: the figure that is reported has been chosen for being high.

    Examples
    --------
    >>> from featstream import OFS
    >>> BestOf(OFS(), "n_features", range(5, 16, 5)).label
    'best of n_features=5, 10, 15'
    """

    selector: Any
    parameter: str
    values: Iterable[Any]
    judged_on: Literal["training", "test"] = "training"

    def __post_init__(self) -> None:
        selector, values = as_selector(self.selector), tuple(self.values)
        known = selector.get_params()
        if self.parameter not in known:
            what = f"parameter of {type(selector).__name__}"
            raise unknown_name(what, self.parameter, known)
        if not values:
            raise ParameterError("`values` of BestOf is empty. Give some to choose of.")
        if self.judged_on not in ("training", "test"):
            raise unknown_name("place to judge", self.judged_on, ("training", "test"))
        object.__setattr__(self, "selector", selector)
        object.__setattr__(self, "values", values)

    @property
    def label(self) -> str:
        """What a table says of it."""
        shown = [str(value) for value in self.values]
        if len(shown) > 4:
            shown = [*shown[:2], "…", shown[-1]]
        where = " on the test rows" if self.judged_on == "test" else ""
        return f"best of {self.parameter}={', '.join(shown)}{where}"

    def variants(self) -> list[tuple[Any, Any]]:
        """Each value with a selector that has it."""
        return [
            (value, clone(self.selector).set_params(**{self.parameter: value}))
            for value in self.values
        ]


def as_selector(selector: Any) -> Any:
    """A selector from a name or an object, which is checked.

    Parameters
    ----------
    selector : str, object or BestOf
        A name in `SELECTORS`, or anything that selects features in scikit-learn's
        way: ``fit(X, y)``, then ``get_support()`` or ``support_``.

    Returns
    -------
    object
        The selector, unfitted.

    Examples
    --------
    >>> as_selector("saola-max")
    SAOLA(bound='max')
    """
    if isinstance(selector, str):
        if selector not in SELECTORS:
            raise unknown_name("selector", selector, SELECTORS)
        return SELECTORS[selector]()
    if isinstance(selector, BestOf):
        return selector
    is_object = not isinstance(selector, type)
    if not (is_object and hasattr(selector, "fit") and hasattr(selector, "get_params")):
        raise ParameterError(
            "A selector must be a name or a scikit-learn selector. Got "
            f"{printable(selector)}. Known names: {', '.join(sorted(SELECTORS))}."
        )
    return clone(selector)


def name_selectors(selectors: Any) -> dict[str, Any]:
    """Selectors by the names under which they are shown.

    >>> list(name_selectors(["saola", SAOLA(bound="max")]))
    ['saola', 'SAOLA']
    """
    if isinstance(selectors, Mapping):
        return {str(name): as_selector(value) for name, value in selectors.items()}
    if isinstance(selectors, str) or not isinstance(selectors, Iterable):
        selectors = [selectors]
    named: dict[str, Any] = {}
    for given in selectors:
        selector = as_selector(given)
        inner = selector.selector if isinstance(selector, BestOf) else selector
        name = given if isinstance(given, str) else type(inner).__name__
        if name in named:
            raise ParameterError(
                f"Two selectors are called {printable(name)}. Name them: "
                "selectors={'first': ..., 'second': ...}."
            )
        named[name] = selector
    return named


def sweep(
    selector: Any, parameter: str, values: Iterable[Any], name: str | None = None
) -> dict[str, Any]:
    """One selector with several values of a parameter, each under its own name.

    Parameters
    ----------
    selector : str or object
        A selector, or the name of one.
    parameter : str
        The parameter; of a part of the selector as in scikit-learn,
        ``"measure__alpha"``.
    values : iterable
        What it is set to.
    name : str, optional
        How the names begin; by default as the selector's class.

    Returns
    -------
    dict
        For `Experiment`; several can be joined with ``|``.

    Examples
    --------
    >>> from featstream import SAOLA, FisherZ
    >>> list(sweep(SAOLA(measure=FisherZ()), "measure__alpha", [0.01, 0.05]))
    ['SAOLA alpha=0.01', 'SAOLA alpha=0.05']
    """
    base = as_selector(selector)
    begin = type(base).__name__ if name is None else name
    shown = parameter.rpartition("__")[2]
    return {
        f"{begin} {shown}={value}": set_parameter(clone(base), parameter, value)
        for value in values
    }


def set_parameter(selector: Any, parameter: str, value: Any) -> Any:
    """Set a parameter, also of a measure, which is no scikit-learn estimator."""
    head, _, rest = parameter.partition("__")
    if head not in selector.get_params(deep=False):
        known = selector.get_params(deep=False)
        raise unknown_name(f"parameter of {type(selector).__name__}", head, known)
    part = getattr(selector, head)
    if not rest or isinstance(part, BaseEstimator):
        return selector.set_params(**{parameter: value})
    if not hasattr(part, rest):
        raise unknown_name(f"parameter of {type(part).__name__}", rest, vars(part))
    changed = copy(part)
    setattr(changed, rest, value)
    return selector.set_params(**{head: changed})


def takes_groups(selector: Any) -> bool:
    """Whether ``fit`` takes the groups of features.

    In scikit-learn that word means groups of samples.
    """
    is_foreign = type(selector).__module__.partition(".")[0] == "sklearn"
    return not is_foreign and "groups" in inspect.signature(selector.fit).parameters


def describe(value: Any) -> Any:
    """A value as plain JSON that is the same whenever the value is.

    >>> describe(SAOLA(max_features=3))["parameters"]["max_features"]
    3
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        digest = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        return {"array": [value.dtype.str, list(value.shape), digest]}
    if isinstance(value, Mapping):
        return {str(k): describe(v) for k, v in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(map(repr, value))
    if isinstance(value, list | tuple | range):
        return [describe(v) for v in value]
    if isinstance(value, type) or inspect.isroutine(value):
        return {"code": code_of(value)}
    if isinstance(value, partial):
        return {"partial": describe([value.func, value.args, value.keywords])}
    told = {"class": code_of(type(value))}
    if hasattr(value, "get_params"):
        return told | {"parameters": describe(value.get_params(deep=False))}
    if type(value).__module__.partition(".")[0] == "featstream":
        return told | {"parameters": describe(public_state(value))}
    # Nothing is known of what makes it up but how it would be sent to a process.
    return told | {"state": hashlib.sha256(as_message(value)).hexdigest()}


def as_message(value: Any) -> bytes:
    """What another process is sent to have the same object."""
    try:
        return bytes(ForkingPickler.dumps(value))
    except Exception as error:
        raise ParameterError(
            f"A selector or classifier cannot be sent to another process: {error}. "
            "Define classes and functions at the top of a module, not inside another "
            "function."
        ) from error


def public_state(value: Any) -> dict[str, Any]:
    """What an object was made of: its fields, or its attributes."""
    names = getattr(value, "__slots__", None) or vars(value)
    return {n: getattr(value, n) for n in names if not n.startswith("_")}


def code_of(thing: Any) -> str:
    """Name and version of a class or function; a checksum where it has no version."""
    module = getattr(thing, "__module__", None) or "builtins"
    root = sys.modules.get(module.partition(".")[0])
    version = getattr(root, "__version__", None)
    if version is None:
        version = checksum_of_module(module)
    return f"{module}.{getattr(thing, '__qualname__', repr(thing))} {version}"


@cache
def checksum_of_module(name: str) -> str:
    """Of its source, so that a changed script is not taken for the old one."""
    path = getattr(sys.modules.get(name), "__file__", None)
    if path is None or not Path(path).exists():
        return ""
    return checksum_of_files([Path(path)])


@cache
def checksum_of_library() -> str:
    """Of the source that decides what is selected and how it is judged.

    A version is not enough where the library itself is worked on.
    """
    return checksum_of_files(deciding_files())


def deciding_files() -> list[Path]:
    """Every file of the package, except what only shows results."""
    root = Path(__file__).parents[1]
    return [
        path
        for path in sorted(root.rglob("*.py"))
        if path.relative_to(root).parts[0] not in _NOT_DECIDING
    ]


def checksum_of_files(paths: Iterable[Path]) -> str:
    """Of their contents, one after the other."""
    digest = hashlib.sha256()
    for path in paths:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
