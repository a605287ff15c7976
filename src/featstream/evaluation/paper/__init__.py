"""The SAOLA paper: what it shows, with which methods, and what we find."""

from featstream.evaluation.paper.comparison import Pair, TableComparison
from featstream.evaluation.paper.exhibits import Exhibit, exhibits, find
from featstream.evaluation.paper.findings import Findings, Value
from featstream.evaluation.paper.methods import protocol_for, selector_for
from featstream.evaluation.paper.study import PaperStudy

__all__ = [
    "Exhibit",
    "Findings",
    "Pair",
    "PaperStudy",
    "TableComparison",
    "Value",
    "exhibits",
    "find",
    "protocol_for",
    "selector_for",
]
