"""Selectors: online ones decide as features arrive, batch ones at the end."""

from featstream.selectors.online import SAOLA, GroupSAOLA
from featstream.selectors.resuming import resume

__all__ = ["SAOLA", "GroupSAOLA", "resume"]
