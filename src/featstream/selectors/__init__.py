"""Selectors, online and batch."""

from featstream.selectors.online import SAOLA

__all__ = ["SAOLA"]
