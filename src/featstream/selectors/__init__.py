"""Selectors, online and batch."""

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
]
