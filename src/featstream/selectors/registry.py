"""The selectors by name.

A registered selector can be named at the command line (``featstream select
--selector NAME``) and in comparisons, and its runs can be resumed. The names of
the library are known without importing the selectors.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib import import_module, metadata
from typing import Any

from featstream.errors import ParameterError, printable, unknown_name

PLUGINS = "featstream.selectors"
"""Group of entry points by which an installed package adds selectors."""

MODULES = "FEATSTREAM_MODULES"
"""Environment variable with modules, separated by commas, that register selectors."""


class Registry(Mapping[str, Any]):
    """Classes of selectors by name, imported when they are first asked for.

    Parameters
    ----------
    homes : dict of str to str
        For each name, where its class is: ``"module:Class"``.
    """

    def __init__(self, homes: dict[str, str]) -> None:
        self._known: dict[str, Any] = dict(homes)

    def register(self, name: str, selector: Any) -> None:
        """Add a class of selectors under a name of lower-case words and hyphens."""
        if not (isinstance(name, str) and name.replace("-", "").isalnum()) or (
            name != name.lower()
        ):
            raise ParameterError(
                "The name of a selector must be lower-case words joined by hyphens. "
                f"Got {printable(name)}. Write 'top-k'."
            )
        class_name = selector.__name__
        for other, known in self._known.items():
            is_same = known is selector or _home(selector) == known
            if not is_same and (other == name or _class_name(known) == class_name):
                raise ParameterError(
                    f"There is a selector {other!r} already, of the class "
                    f"{_class_name(known)}. Choose another name for "
                    f"{name!r}, or for its class {class_name}."
                )
        self._known[name] = selector

    @cached_property
    def _others(self) -> None:
        """Add selectors from outside the library, once."""
        for point in metadata.entry_points(group=PLUGINS):
            self._known.setdefault(point.name, point.value)
        for module in filter(None, os.environ.get(MODULES, "").split(",")):
            import_module(module.strip())

    def __getitem__(self, name: str) -> Any:
        if name not in self._known:
            _ = self._others
        if name not in self._known:
            raise unknown_name("selector", name, self)
        found = self._known[name]
        if isinstance(found, str):
            module, _, class_name = found.partition(":")
            found = self._known[name] = getattr(import_module(module), class_name)
        return found

    def __contains__(self, name: object) -> bool:
        return name in list(self)

    def __iter__(self) -> Iterator[str]:
        _ = self._others
        return iter(list(self._known))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def find_class(self, class_name: str) -> Any:
        """The registered class of that name, or None."""
        for name in self:
            if _class_name(self._known[name]) == class_name:
                return self[name]
        return None


def _class_name(known: Any) -> str:
    return known.partition(":")[2] if isinstance(known, str) else known.__name__


def _home(selector: Any) -> str:
    return f"{selector.__module__}:{selector.__name__}"


SELECTORS = Registry(
    {
        "select-from-stream": "featstream.selectors:SelectFromStream",
        "saola": "featstream.selectors:SAOLA",
        "saola-conditional": "featstream.selectors:ConditionalSAOLA",
        "group-saola": "featstream.selectors:GroupSAOLA",
        "osfs": "featstream.selectors:OSFS",
        "fast-osfs": "featstream.selectors:FastOSFS",
        "alpha-investing": "featstream.selectors:AlphaInvesting",
        "grafting": "featstream.selectors:Grafting",
        "ofs": "featstream.selectors:OFS",
        "ogfs": "featstream.selectors:OGFS",
        "interactions": "featstream.selectors:InteractionScreen",
        "fcbf": "featstream.selectors:FCBF",
        "spfs-lar": "featstream.selectors:SPFSLAR",
        "fgm": "featstream.selectors:FGM",
        "gdm": "featstream.selectors:GDM",
        "lasso": "featstream.selectors:LassoSelector",
        "group-lasso": "featstream.selectors:GroupLassoSelector",
        "sparse-group-lasso": "featstream.selectors:SparseGroupLassoSelector",
        "mrmr": "featstream.selectors:MRMR",
        "mim": "featstream.selectors:MIM",
        "jmi": "featstream.selectors:JMI",
        "cmim": "featstream.selectors:CMIM",
        "disr": "featstream.selectors:DISR",
        "cife": "featstream.selectors:CIFE",
        "iamb": "featstream.selectors:IAMB",
        "mmmb": "featstream.selectors:MMMB",
    }
)
register = SELECTORS.register
