"""Selectors: online ones decide as features arrive, batch ones at the end."""

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
from featstream.selectors.resuming import resume

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
