"""Selectors, online and batch."""

from featstream.selectors.online import SAOLA, GroupSAOLA

__all__ = ["SAOLA", "GroupSAOLA"]
