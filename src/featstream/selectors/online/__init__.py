"""Selectors to which features arrive one by one, or in groups; OFS takes rows."""

from featstream.selectors.online.alpha_investing import AlphaInvesting
from featstream.selectors.online.grafting import Grafting
from featstream.selectors.online.ofs import OFS
from featstream.selectors.online.ogfs import OGFS
from featstream.selectors.online.osfs import OSFS, FastOSFS
from featstream.selectors.saola.group_saola import GroupSAOLA
from featstream.selectors.saola.saola import SAOLA

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
