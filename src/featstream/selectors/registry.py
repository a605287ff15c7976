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

    ``homes`` says for each name where its class is: ``"module:Class"``.
    """

    def __init__(self, homes: dict[str, str]) -> None:
        self._known: dict[str, Any] = dict(homes)
        parts = (home.partition(":") for home in homes.values())
        self.homes = {class_name: module for module, _, class_name in parts}

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
            known_name = _class_name(known)
            is_same = known in (selector, f"{selector.__module__}:{class_name}")
            if not is_same and (other == name or known_name == class_name):
                raise ParameterError(
                    f"There is a selector {other!r} already, of the class "
                    f"{known_name}. Choose another name for {name!r}, or for its "
                    f"class {class_name}."
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


_HOMES = {
    "select-from-stream": "saola.variants:SelectFromStream",
    "saola": "saola.saola:SAOLA",
    "saola-max": "saola.variants:SAOLAMax",
    "saola-conditional": "saola.variants:ConditionalSAOLA",
    "group-saola": "saola.group_saola:GroupSAOLA",
    "osfs": "osfs.osfs:OSFS",
    "fast-osfs": "osfs.osfs:FastOSFS",
    "alpha-investing": "alpha_investing:AlphaInvesting",
    "grafting": "grafting:Grafting",
    "ofs": "ofs:OFS",
    "ogfs": "ogfs:OGFS",
    "interactions": "interactions.screen:InteractionScreen",
    "fcbf": "batch.greedy:FCBF",
    "spfs-lar": "batch.regressions:SPFSLAR",
    "fgm": "batch.fgm:FGM",
    "gdm": "batch.fgm:GDM",
    "lasso": "batch.regressions:LassoSelector",
    "group-lasso": "batch.regressions:GroupLassoSelector",
    "sparse-group-lasso": "batch.regressions:SparseGroupLassoSelector",
    "mrmr": "batch.greedy:MRMR",
    "mim": "batch.greedy:MIM",
    "jmi": "batch.greedy:JMI",
    "cmim": "batch.greedy:CMIM",
    "disr": "batch.greedy:DISR",
    "cife": "batch.greedy:CIFE",
    "iamb": "batch.blankets:IAMB",
    "mmmb": "batch.blankets:MMMB",
}
SELECTORS = Registry({n: f"featstream.selectors.{home}" for n, home in _HOMES.items()})
register = SELECTORS.register
