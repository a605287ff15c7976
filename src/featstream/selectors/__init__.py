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
_HOMES = {
    "FGM": "selectors.batch.fgm",
    "GDM": "selectors.batch.fgm",
    "SPFSLAR": "selectors.batch.spfs_lar",
    "LassoSelector": "selectors.batch.lasso",
    "GroupLassoSelector": "selectors.batch.lasso",
    "SparseGroupLassoSelector": "selectors.batch.lasso",
    "MMMB": "selectors.batch.blankets",
    "IAMB": "selectors.batch.blankets",
    "CIFE": "selectors.batch.greedy",
    "DISR": "selectors.batch.greedy",
    "MIM": "selectors.batch.greedy",
    "CMIM": "selectors.batch.greedy",
    "JMI": "selectors.batch.greedy",
    "MRMR": "selectors.batch.greedy",
    "FCBF": "selectors.batch.fcbf",
    "OFS": "selectors.ofs",
    "OGFS": "selectors.ogfs",
    "OSFS": "selectors.osfs.osfs",
    "OVER_LIMIT": "selectors.result",
    "SAOLA": "selectors.saola.saola",
    "AlphaInvesting": "selectors.alpha_investing",
    "BatchSelector": "selectors.batch.base",
    "ConditionalSAOLA": "selectors.saola.variants",
    "FastOSFS": "selectors.osfs.osfs",
    "Grafting": "selectors.grafting",
    "GroupSAOLA": "selectors.saola.group_saola",
    "GroupSelectionResult": "selectors.base_groups",
    "GroupTrace": "selectors.base_groups",
    "InteractionScreen": "selectors.interactions.screen",
    "Pair": "selectors.interactions.search",
    "SelectFromStream": "selectors.saola.variants",
    "Selection": "selectors.batch.base",
    "SelectionResult": "selectors.result",
    "StreamSelector": "selectors.base",
    "Trace": "selectors.result",
    "Verdict": "selectors.stream",
    "resume": "runs.session",
}

if TYPE_CHECKING:
    from featstream.runs.session import resume
    from featstream.selectors.alpha_investing import AlphaInvesting
    from featstream.selectors.base import StreamSelector
    from featstream.selectors.base_groups import GroupSelectionResult, GroupTrace
    from featstream.selectors.batch.base import BatchSelector, Selection
    from featstream.selectors.batch.blankets import IAMB, MMMB
    from featstream.selectors.batch.fcbf import FCBF
    from featstream.selectors.batch.fgm import FGM, GDM
    from featstream.selectors.batch.greedy import CIFE, CMIM, DISR, JMI, MIM, MRMR
    from featstream.selectors.batch.lasso import (
        GroupLassoSelector,
        LassoSelector,
        SparseGroupLassoSelector,
    )
    from featstream.selectors.batch.spfs_lar import SPFSLAR
    from featstream.selectors.grafting import Grafting
    from featstream.selectors.interactions.screen import InteractionScreen
    from featstream.selectors.interactions.search import Pair
    from featstream.selectors.ofs import OFS
    from featstream.selectors.ogfs import OGFS
    from featstream.selectors.osfs.osfs import OSFS, FastOSFS
    from featstream.selectors.result import OVER_LIMIT, SelectionResult, Trace
    from featstream.selectors.saola.group_saola import GroupSAOLA
    from featstream.selectors.saola.saola import SAOLA
    from featstream.selectors.saola.variants import ConditionalSAOLA, SelectFromStream
    from featstream.selectors.stream import Verdict


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"featstream.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
