"""Measures: how relevant a feature is, and how much two features overlap."""

from featstream.measures.fisher import FisherZ
from featstream.measures.independence import (
    TARGET,
    ChiSquareTest,
    ConditionalTest,
    FisherZTest,
    GTest,
    TestResult,
)
from featstream.measures.information import MutualInformation, SymmetricalUncertainty
from featstream.measures.resolve import MEASURES, choose_measure, resolve_measure

__all__ = [
    "MEASURES",
    "TARGET",
    "ChiSquareTest",
    "ConditionalTest",
    "FisherZ",
    "FisherZTest",
    "GTest",
    "MutualInformation",
    "SymmetricalUncertainty",
    "TestResult",
    "choose_measure",
    "resolve_measure",
]
