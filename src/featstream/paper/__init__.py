"""The SAOLA paper: what it shows, with which methods, and what we find."""

from featstream.paper.comparison import Pair, TableComparison
from featstream.paper.exhibits import Exhibit, exhibits, find
from featstream.paper.findings import Findings, Value
from featstream.paper.methods import protocol_for, selector_for
from featstream.paper.study import PaperStudy

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
