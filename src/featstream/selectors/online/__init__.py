"""Selectors to which features arrive one by one, or in groups."""

from featstream.selectors.online.group_saola import GroupSAOLA
from featstream.selectors.online.saola import SAOLA

__all__ = ["SAOLA", "GroupSAOLA"]
