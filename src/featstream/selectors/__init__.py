"""Selectors, online and batch."""

from featstream.selectors.online import (
    OSFS,
    SAOLA,
    AlphaInvesting,
    FastOSFS,
    Grafting,
)

__all__ = ["OSFS", "SAOLA", "AlphaInvesting", "FastOSFS", "Grafting"]
