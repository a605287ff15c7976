"""Selectors, online and batch."""

from featstream.selectors.online import (
    OFS,
    OSFS,
    SAOLA,
    AlphaInvesting,
    FastOSFS,
    Grafting,
)

__all__ = ["OFS", "OSFS", "SAOLA", "AlphaInvesting", "FastOSFS", "Grafting"]
