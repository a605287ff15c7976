"""Compare selections: classifiers, metrics, statistics, the paper's numbers."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sklearn.tree import DecisionTreeClassifier as DecisionTree

from featstream.evaluation.entrants import (
    CLASSIFIERS,
    BestOf,
    as_classifier,
    as_selector,
    sweep,
)
from featstream.evaluation.experiment import Experiment, open_comparison
from featstream.evaluation.metrics import (
    accuracy,
    auc,
    balanced_accuracy,
    class_scores,
    evaluate,
)
from featstream.evaluation.neighbour import NearestNeighbour
from featstream.evaluation.results import METRICS, ExperimentResult, ScoreTable
from featstream.evaluation.splits import (
    CrossValidation,
    FeatureOrders,
    GivenSplit,
    RandomGroups,
    RandomSplits,
    Split,
    SplitProtocol,
    Subsamples,
    TaskShape,
)
from featstream.evaluation.stability import Similarity, Stability, stability
from featstream.evaluation.statistics import (
    Comparison,
    Friedman,
    Nemenyi,
    WinTieLose,
    average_ranks,
    conclude,
    critical_difference,
    friedman,
    nemenyi,
    win_tie_lose,
)
from featstream.evaluation.tasks import Task, open_task
from featstream.progress import CellProgress, cells_observed
from featstream.selectors.registry import SELECTORS

if TYPE_CHECKING:
    from featstream.paper.j48 import J48
    from featstream.paper.tables import (
        PaperClaim,
        PaperColumn,
        PaperTable,
        paper_claims,
        paper_table,
        paper_tables,
    )

__all__ = [
    "CLASSIFIERS",
    "J48",
    "METRICS",
    "SELECTORS",
    "BestOf",
    "CellProgress",
    "Comparison",
    "CrossValidation",
    "DecisionTree",
    "Experiment",
    "ExperimentResult",
    "FeatureOrders",
    "Friedman",
    "GivenSplit",
    "NearestNeighbour",
    "Nemenyi",
    "PaperClaim",
    "PaperColumn",
    "PaperTable",
    "RandomGroups",
    "RandomSplits",
    "ScoreTable",
    "Similarity",
    "Split",
    "SplitProtocol",
    "Stability",
    "Subsamples",
    "Task",
    "TaskShape",
    "WinTieLose",
    "accuracy",
    "as_classifier",
    "as_selector",
    "auc",
    "average_ranks",
    "balanced_accuracy",
    "cells_observed",
    "class_scores",
    "conclude",
    "critical_difference",
    "evaluate",
    "friedman",
    "nemenyi",
    "open_comparison",
    "open_task",
    "paper_claims",
    "paper_table",
    "paper_tables",
    "stability",
    "sweep",
    "win_tie_lose",
]


def __getattr__(name: str) -> Any:
    """Load a name whose home is `featstream.paper` when it is first used."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = "j48" if name == "J48" else "tables"
    return getattr(import_module(f"featstream.paper.{home}"), name)
