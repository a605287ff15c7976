"""Selectors: online ones decide as features arrive, batch ones at the end."""

from featstream.runs.session import resume
from featstream.selectors.online import (
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
    "OFS",
    "OGFS",
    "OSFS",
    "SAOLA",
    "AlphaInvesting",
    "FastOSFS",
    "Grafting",
    "GroupSAOLA",
    "resume",
]
