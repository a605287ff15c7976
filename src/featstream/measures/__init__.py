"""Measures: how relevant a feature is, and how much two features overlap."""

from featstream.measures.fisher import FisherZ
from featstream.measures.information import MutualInformation, SymmetricalUncertainty
from featstream.measures.resolve import MEASURES, choose_measure, resolve_measure

__all__ = [
    "MEASURES",
    "FisherZ",
    "MutualInformation",
    "SymmetricalUncertainty",
    "choose_measure",
    "resolve_measure",
]
