"""Selectors: what decides about features as they arrive, and what it found."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from featstream.selectors.registry import SELECTORS, register

__all__ = [
    "CIFE",
    "CMIM",
    "DISR",
    "FCBF",
    "FGM",
    "GDM",
    "IAMB",
    "JMI",
    "MIM",
    "MMMB",
    "MRMR",
    "OFS",
    "OGFS",
    "OSFS",
    "OVER_LIMIT",
    "SAOLA",
    "SELECTORS",
    "SPFSLAR",
    "AlphaInvesting",
    "BatchSelector",
    "ConditionalSAOLA",
    "FastOSFS",
    "Grafting",
    "GroupLassoSelector",
    "GroupSAOLA",
    "GroupSelectionResult",
    "GroupTrace",
    "InteractionScreen",
    "LassoSelector",
    "Pair",
    "SAOLAMax",
    "SelectFromStream",
    "Selection",
    "SelectionResult",
    "SparseGroupLassoSelector",
    "StreamSelector",
    "Trace",
    "Verdict",
    "register",
    "resume",
]

# Imported when they are first used: the command line asks for names alone.
_HOMES = SELECTORS.homes | {
    "BatchSelector": "featstream.selectors.batch.base",
    "GroupSelectionResult": "featstream.selectors.base_groups",
    "GroupTrace": "featstream.selectors.base_groups",
    "OVER_LIMIT": "featstream.selectors.result",
    "Pair": "featstream.selectors.interactions.screen",
    "Selection": "featstream.selectors.batch.base",
    "SelectionResult": "featstream.selectors.result",
    "StreamSelector": "featstream.selectors.base",
    "Trace": "featstream.selectors.result",
    "Verdict": "featstream.selectors.stream",
    "resume": "featstream.runs.session",
}

if TYPE_CHECKING:
    from featstream.runs.session import resume
    from featstream.selectors.alpha_investing import AlphaInvesting
    from featstream.selectors.base import StreamSelector
    from featstream.selectors.base_groups import GroupSelectionResult, GroupTrace
    from featstream.selectors.batch.base import BatchSelector, Selection
    from featstream.selectors.batch.blankets import IAMB, MMMB
    from featstream.selectors.batch.fgm import FGM, GDM
    from featstream.selectors.batch.greedy import CIFE, CMIM, DISR, FCBF, JMI, MIM, MRMR
    from featstream.selectors.batch.regressions import (
        SPFSLAR,
        GroupLassoSelector,
        LassoSelector,
        SparseGroupLassoSelector,
    )
    from featstream.selectors.grafting import Grafting
    from featstream.selectors.interactions.screen import InteractionScreen, Pair
    from featstream.selectors.ofs import OFS
    from featstream.selectors.ogfs import OGFS
    from featstream.selectors.osfs.osfs import OSFS, FastOSFS
    from featstream.selectors.result import OVER_LIMIT, SelectionResult, Trace
    from featstream.selectors.saola.group_saola import GroupSAOLA
    from featstream.selectors.saola.saola import SAOLA
    from featstream.selectors.saola.variants import (
        ConditionalSAOLA,
        SAOLAMax,
        SelectFromStream,
    )
    from featstream.selectors.stream import Verdict


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
