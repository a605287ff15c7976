"""SAOLA and group-SAOLA."""

from featstream.selectors.online.group_saola import GroupSAOLA
from featstream.selectors.online.saola import SAOLA

__all__ = ["SAOLA", "GroupSAOLA"]
