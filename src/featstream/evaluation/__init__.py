"""Compare selections: classifiers, metrics, statistics, the paper's numbers."""

from featstream.evaluation.classifiers import CLASSIFIERS, DecisionTree, as_classifier
from featstream.evaluation.conclusion import conclude
from featstream.evaluation.j48 import J48
from featstream.evaluation.metrics import (
    accuracy,
    auc,
    balanced_accuracy,
    class_scores,
    evaluate,
)
from featstream.evaluation.paper_tables import (
    PaperClaim,
    PaperColumn,
    PaperTable,
    paper_claims,
    paper_table,
    paper_tables,
)
from featstream.evaluation.stability import Similarity, Stability, stability
from featstream.evaluation.statistics import (
    Friedman,
    Nemenyi,
    WinTieLose,
    average_ranks,
    critical_difference,
    friedman,
    nemenyi,
    win_tie_lose,
)

__all__ = [
    "CLASSIFIERS",
    "J48",
    "DecisionTree",
    "Friedman",
    "Nemenyi",
    "PaperClaim",
    "PaperColumn",
    "PaperTable",
    "Similarity",
    "Stability",
    "WinTieLose",
    "accuracy",
    "as_classifier",
    "auc",
    "average_ranks",
    "balanced_accuracy",
    "class_scores",
    "conclude",
    "critical_difference",
    "evaluate",
    "friedman",
    "nemenyi",
    "paper_claims",
    "paper_table",
    "paper_tables",
    "stability",
    "win_tie_lose",
]
