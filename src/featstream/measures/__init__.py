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
from featstream.measures.inputs import (
    MEASURES,
    choose_measure,
    register_measure,
    resolve_measure,
)
from featstream.measures.storages.pair_columns import PAIR_COLUMNS, PairColumns

__all__ = [
    "MEASURES",
    "PAIR_COLUMNS",
    "TARGET",
    "ChiSquareTest",
    "ConditionalTest",
    "FisherZ",
    "FisherZTest",
    "GTest",
    "MutualInformation",
    "PairColumns",
    "SymmetricalUncertainty",
    "TestResult",
    "choose_measure",
    "register_measure",
    "resolve_measure",
]
