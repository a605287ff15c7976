"""Selectors and classifiers of a comparison: their names, and their checksums."""

from __future__ import annotations

import hashlib
import inspect
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from multiprocessing.reduction import ForkingPickler
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
from sklearn.base import clone
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from featstream.errors import ParameterError, check_choice, printable, unknown_name
from featstream.evaluation.neighbour import NearestNeighbour
from featstream.selectors.registry import SELECTORS


@dataclass(frozen=True)
class BestOf:
    """A selector with the best of several values of a parameter.

    For methods that need the number of features to select. Each classifier has its
    own best value, that of the highest accuracy; among equals the first.

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
    is_nested : bool, default=False
        Whether the values are numbers of features, and a selection of fewer features
        is the beginning of one of more, as of `SPFSLAR`, `FGM`, `GDM` and `MRMR`.
        There is one fit then, for the largest number, whose time is reported.

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
    is_nested: bool = False

    def __post_init__(self) -> None:
        selector, values = as_selector(self.selector), tuple(self.values)
        if not values:
            raise ParameterError("`values` of BestOf is empty. Give at least one.")
        check_choice(self.judged_on, "judged_on", ("training", "test"), "BestOf")
        object.__setattr__(self, "selector", selector)
        object.__setattr__(self, "values", values)
        self.variants()  # raises if there is no such parameter

    @property
    def label(self) -> str:
        """How it is shown in tables."""
        shown = [str(value) for value in self.values]
        if len(shown) > 4:
            shown = [*shown[:2], "…", shown[-1]]
        where = " on the test rows" if self.judged_on == "test" else ""
        return f"best of {self.parameter}={', '.join(shown)}{where}"

    def variants(self) -> dict[str, Any]:
        """A selector for each value, by parameter and value."""
        return _swept(self.selector, self.parameter, self.values, self.parameter)


def as_selector(selector: Any) -> Any:
    """A selector from a name in `SELECTORS`, or a checked clone of an object.

    The object may be anything that selects features in scikit-learn's way:
    ``fit(X, y)``, then ``get_support()`` or ``support_``.

    >>> as_selector("saola-max")
    SAOLAMax()
    """
    if isinstance(selector, BestOf):
        return selector
    return _made("selector", selector, SELECTORS, ("fit", "get_params"))


def _made(
    what: str, given: Any, known: Mapping[str, Any], methods: Sequence[str]
) -> Any:
    """What a name stands for, or a clone of an object that has these methods."""
    if isinstance(given, str):
        if given not in known:
            raise unknown_name(what, given, known)
        return known[given]()
    if isinstance(given, type) or not all(hasattr(given, name) for name in methods):
        raise ParameterError(
            f"A {what} must be a name or a scikit-learn {what}. Got "
            f"{printable(given)}. Known names: {', '.join(sorted(known))}."
        )
    return clone(given)


def by_name(
    what: str, given: Any, made_of: Callable[[Any], Any] = lambda value: value
) -> dict[str, Any]:
    """Objects by name: that of a mapping, a word, the name of a file, or a class."""
    if isinstance(given, Mapping):
        return {str(name): made_of(value) for name, value in given.items()}
    if isinstance(given, str | PathLike) or not isinstance(given, Iterable):
        given = [given]
    named: dict[str, Any] = {}
    for value in given:
        made = made_of(value)
        inner = value.selector if isinstance(value, BestOf) else value
        name = type(inner).__name__
        if isinstance(inner, str | PathLike):
            name = Path(inner).name.split(".")[0] or str(inner)
        elif what == "data sets":
            raise ParameterError(
                "Data sets that are not files need names: datasets={'mine': (X, y)}. "
                f"Got {name}."
            )
        if name in named:
            raise ParameterError(
                f"Two {what} are called {printable(name)}. Name them: "
                f"{what.replace(' ', '')}={{'first': ..., 'second': ...}}."
            )
        named[name] = made
    return named


def sweep(
    selector: Any, parameter: str, values: Iterable[Any], name: str | None = None
) -> dict[str, Any]:
    """One selector per value of a parameter, each under its own name.

    Parameters
    ----------
    selector : str or object
        A selector, or the name of one.
    parameter : str
        The parameter; of a part of the selector as in scikit-learn,
        ``"measure__alpha"``.
    values : iterable
        Its values.
    name : str, optional
        Beginning of the names; by default the class of the selector.

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
    return _swept(base, parameter, values, f"{begin} {shown}")


def _swept(
    selector: Any, parameter: str, values: Iterable[Any], begin: str
) -> dict[str, Any]:
    """Clones with other values of a parameter, by the beginning and the value."""
    if parameter not in (known := selector.get_params()):
        raise unknown_name(f"parameter of {type(selector).__name__}", parameter, known)
    return {
        f"{begin}={value}": clone(selector).set_params(**{parameter: value})
        for value in values
    }


def library_of(selector: Any) -> str:
    """The package that defines a selector; of `BestOf`, the selector inside."""
    inner = selector.selector if isinstance(selector, BestOf) else selector
    return type(inner).__module__.partition(".")[0]


def takes_groups(selector: Any) -> bool:
    """Whether ``fit`` takes the groups of features.

    In scikit-learn that word means groups of samples.
    """
    is_foreign = library_of(selector) == "sklearn"
    return not is_foreign and "groups" in inspect.signature(selector.fit).parameters


CLASSIFIERS: dict[str, Callable[[], Any]] = {
    "decision-tree": lambda: DecisionTreeClassifier(random_state=0),
    "j48": lambda: import_module("featstream.paper.j48").J48(),  # the paper's alone
    "knn": NearestNeighbour,
    "svm": lambda: SVC(C=1.0, kernel="linear"),
}
"""The tree of the paper (J48) and its nearest neighbour, LIBSVM's linear C-SVC, and
scikit-learn's tree (CART), which is not C4.5 and has a name of its own."""


def as_classifier(classifier: Any) -> Any:
    """An unfitted classifier from a name in `CLASSIFIERS`, or a clone of an object.

    >>> as_classifier("knn")
    NearestNeighbour()
    """
    return _made("classifier", classifier, CLASSIFIERS, ("predict",))


def key_of(value: Any) -> str:
    """Checksum of a value, by its description; the order of mappings is no matter."""
    plain = json.dumps(describe(value), sort_keys=True)
    return hashlib.sha256(plain.encode()).hexdigest()[:40]


def describe(value: Any) -> Any:
    """A value as plain JSON, equal for equal values."""
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
    known = {"class": code_of(type(value))}
    if hasattr(value, "get_params"):
        return known | {"parameters": describe(value.get_params(deep=False))}
    if type(value).__module__.partition(".")[0] == "featstream":
        names = getattr(value, "__slots__", None) or vars(value)
        state = {n: getattr(value, n) for n in names if not n.startswith("_")}
        return known | {"parameters": describe(state)}
    # All that is known is the message that would be sent to a process.
    return known | {"state": hashlib.sha256(as_message(value)).hexdigest()}


def as_message(value: Any) -> bytes:
    """The message that sends an object to another process."""
    try:
        return bytes(ForkingPickler.dumps(value))
    except Exception as error:
        raise ParameterError(
            f"A selector or classifier cannot be sent to another process: {error}. "
            "Define classes and functions at the top of a module, not inside another "
            "function."
        ) from error


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
    """Checksum of the source of a module, so that changes of a script are noticed."""
    path = getattr(sys.modules.get(name), "__file__", None)
    return checksum_of_files([Path(path)]) if path and Path(path).exists() else ""


@cache
def checksum_of_library() -> str:
    """Checksum of the source: the version alone does not notice all changes."""
    return checksum_of_files(deciding_files())


def deciding_files() -> list[Path]:
    """Every file that determines selections and scores, or might."""
    root = Path(__file__).parents[1]
    paths = sorted(root.rglob("*.py"))
    only_show = ("cli", "reporting")
    return [p for p in paths if p.relative_to(root).parts[0] not in only_show]


def checksum_of_files(paths: Iterable[Path]) -> str:
    """Checksum of the contents, one after the other."""
    content = b"".join(path.read_bytes() for path in paths)
    return hashlib.sha256(content).hexdigest()[:16]
