"""Online streaming feature selection: a small, predictive subset, in one pass."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

__all__ = [
    "CIFE",
    "CMIM",
    "DISR",
    "FCBF",
    "FGM",
    "GDM",
    "IAMB",
    "JMI",
    "MIM",
    "MMMB",
    "MRMR",
    "OFS",
    "OGFS",
    "OSFS",
    "SAOLA",
    "SPFSLAR",
    "AlphaInvesting",
    "ConditionalSAOLA",
    "Decision",
    "Experiment",
    "FastOSFS",
    "Fate",
    "FisherZ",
    "Grafting",
    "GroupDecision",
    "GroupLassoSelector",
    "GroupSAOLA",
    "GroupSelectionResult",
    "InteractionScreen",
    "LassoSelector",
    "MutualInformation",
    "SAOLAMax",
    "SelectFromStream",
    "SelectionResult",
    "SparseGroupLassoSelector",
    "SymmetricalUncertainty",
    "Task",
    "Trace",
    "as_source",
    "random_groups",
    "read_groups",
    "resume",
    "select_genes",
]

# Names are loaded when they are first used: the command line must not wait for
# scikit-learn and numba to say how it is called.
_HOMES = dict.fromkeys(__all__, "selectors") | {
    **dict.fromkeys(("Decision", "Fate", "GroupDecision"), "protocols"),
    **dict.fromkeys(("Experiment", "Task"), "evaluation"),
    **dict.fromkeys(
        ("FisherZ", "MutualInformation", "SymmetricalUncertainty"), "measures"
    ),
    **dict.fromkeys(("random_groups", "read_groups"), "sources.grouping"),
    "as_source": "sources",
    "select_genes": "genes",
}

if TYPE_CHECKING:
    from featstream.evaluation import Experiment, Task
    from featstream.genes import select_genes
    from featstream.measures import FisherZ, MutualInformation, SymmetricalUncertainty
    from featstream.protocols import Decision, Fate, GroupDecision
    from featstream.selectors import *
    from featstream.sources import as_source
    from featstream.sources.grouping import random_groups, read_groups


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'featstream' has no attribute {name!r}")
    value = getattr(import_module(f"featstream.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
