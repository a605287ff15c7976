"""Selectors: what decides about features as they arrive, and what it found."""

from featstream.runs.resuming import resume
from featstream.selectors.alpha_investing import AlphaInvesting
from featstream.selectors.grafting import Grafting
from featstream.selectors.ofs import OFS
from featstream.selectors.ogfs import OGFS
from featstream.selectors.osfs.osfs import OSFS, FastOSFS
from featstream.selectors.result import GroupSelectionResult, SelectionResult
from featstream.selectors.saola.group_saola import GroupSAOLA
from featstream.selectors.saola.saola import SAOLA
from featstream.selectors.trace import GroupTrace, Trace

__all__ = [
    "OFS",
    "OGFS",
    "OSFS",
    "SAOLA",
    "AlphaInvesting",
    "FastOSFS",
    "Grafting",
    "GroupSAOLA",
    "GroupSelectionResult",
    "GroupTrace",
    "SelectionResult",
    "Trace",
    "resume",
]
