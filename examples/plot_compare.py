"""
Which selector suits my data?
=============================

Three small data sets stand for one's own: whatever is given as ``(X, y)``, a table or
the path of a file will do. Two online selectors are compared with one of scikit-learn,
which needs the number of features to keep: it is chosen by cross-validation
within the training rows.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.feature_selection import SelectKBest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from featstream import SAOLA, Experiment, FastOSFS
from featstream.evaluation import BestOf, RandomSplits, as_classifier
from featstream.reporting import plot_critical_difference, plot_scores

experiment = Experiment(
    selectors={
        "SAOLA": SAOLA(measure="fisher-z"),
        "Fast-OSFS": FastOSFS(test="fisher-z"),
        "SelectKBest": BestOf(SelectKBest(), "k", [2, 4, 8, 12]),
    },
    datasets={
        "breast cancer": load_breast_cancer(),
        "digits": load_digits(),
        "wine": load_wine(),
    },
    classifiers={
        name: make_pipeline(StandardScaler(), as_classifier(name))
        for name in ("knn", "svm")
    },
    protocol=RandomSplits(n_runs=3),
    time_limit=60,
    memory_limit="1GB",
)

# %%
# ``run("comparison/")`` would save every cell, and continue from there after Ctrl-C.

result = experiment.run(n_jobs=2)

# %%
# More features than a selector keeps may do better: the table of accuracies is to be
# read together with that of sizes.

for table in (
    result.table("accuracy", "knn"),
    result.table("accuracy", "svm"),
    result.table("n_features", "knn"),
):
    print(table, end="\n\n")

# %%
# Three data sets are few. The paragraph says what follows from them.

comparison = result.statistics("accuracy", "knn")
print(comparison.conclusion)

figure, axes = plt.subplots(
    2, 1, figsize=(8, 6.5), height_ratios=(3, 1.4), layout="constrained"
)
plot_scores(result.table("accuracy", "knn"), ax=axes[0])
plot_critical_difference(
    comparison.nemenyi.average_ranks,
    comparison.nemenyi.critical_difference,
    comparison.selectors,
    ax=axes[1],
)
plt.show()
