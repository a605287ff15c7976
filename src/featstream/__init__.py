"""Online streaming feature selection: a small, predictive subset, in one pass."""

from featstream.measures import FisherZ, MutualInformation, SymmetricalUncertainty
from featstream.protocols import Decision, Fate
from featstream.result import SelectionResult
from featstream.selectors import SAOLA
from featstream.sources import as_source
from featstream.trace import Trace

__version__ = "0.1.0"

__all__ = [
    "SAOLA",
    "Decision",
    "Fate",
    "FisherZ",
    "MutualInformation",
    "SelectionResult",
    "SymmetricalUncertainty",
    "Trace",
    "as_source",
]
