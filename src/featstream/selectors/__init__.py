"""Selectors, online and batch."""

from featstream.selectors.online import OSFS, SAOLA, FastOSFS

__all__ = ["OSFS", "SAOLA", "FastOSFS"]
