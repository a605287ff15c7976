"""The paper's experiment with groups: 100 at random, ten times.

Means over the ten divisions, beside Table 23 (`tb17`: features and groups) and
Table 22 (`tb16`: accuracy) of the paper.
``python -m benchmarks.group_protocol [data set ...]``.
"""

import sys
import time

import numpy as np
from scipy import sparse

from benchmarks.timing import SHARED
from featstream import FisherZ, GroupSAOLA, SymmetricalUncertainty, random_groups
from featstream.evaluation import as_classifier, paper_table

FILES = {
    "madelon": ("madelon", FisherZ(alpha=0.01)),
    "dexter": ("dexter", FisherZ(alpha=0.01)),
    "hiva": ("hiva_train", SymmetricalUncertainty()),
    "dorothea": ("dorothea", SymmetricalUncertainty()),
}
CLASSIFIERS = ("KNN", "J48")


def load(name):
    """Arrays of a data set, sparse matrices put together again."""
    with np.load(SHARED / "data" / f"{name}.npz", allow_pickle=False) as archive:
        arrays = dict(archive)
    for key in [key for key in arrays if key.endswith("_format")]:
        name = key.removesuffix("_format")
        data, rows, starts, shape = (
            arrays[f"{name}_{part}"] for part in ("data", "indices", "indptr", "shape")
        )
        parts = data, rows.astype(np.int32), starts
        arrays[name] = sparse.csc_array(parts, shape=tuple(shape))
    return arrays


def printed(name):
    """What the paper says: features, groups, and an accuracy a classifier."""
    found = {}
    for label in ("tb16", "tb17"):
        table = paper_table(label)
        row = table.values[table.datasets.index(name)]
        for column, value in zip(table.columns, row, strict=True):
            if column.method == "group-SAOLA":
                found[column.classifier or column.metric] = value
    return [found[key] for key in ("n_features", "n_groups", *CLASSIFIERS)]


def dense(X):
    return X.toarray() if hasattr(X, "toarray") else np.asarray(X)


def measure(data, selector, n_repeats=10):
    """Features, groups, accuracies and seconds of each repetition."""
    X, y = (data.get(f"{part}_train", data.get(part)) for part in ("X", "y"))
    rows = []
    for seed in range(n_repeats):
        groups = random_groups(X.shape[1], 100, seed)
        began = time.perf_counter()
        selector.fit(X, y, groups=groups)
        seconds = time.perf_counter() - began
        accuracies = [np.nan] * len(CLASSIFIERS)
        if "X_test" in data:  # the 384 test rows of hiva are not to be had
            kept = selector.selected_
            train, test = dense(X[:, kept]), dense(data["X_test"][:, kept])
            accuracies = [
                as_classifier(c.lower()).fit(train, y).score(test, data["y_test"])
                for c in CLASSIFIERS
            ]
        counts = selector.selected_.size, selector.selected_groups_.size
        rows.append([*counts, *accuracies, seconds])
    return np.array(rows)


def show(name, how, values, spread=None):
    cells = [
        f"{value:6.1f}" if i < 2 else f"{value:6.4f}"
        for i, value in enumerate(values[:4])
    ]
    line = f"{name:10}{how:10}{cells[0]} /{cells[1]}   KNN {cells[2]}  J48 {cells[3]}"
    if spread is not None:
        line += f"   sd {spread[0]:.1f} /{spread[1]:4.1f}   {values[4]:.2f} s"
    print(line.replace("   nan", "     -"), flush=True)


def main(names):
    for name in names or FILES:
        file, score = FILES[name]
        data = load(file)
        show(name, "paper", printed(name))
        for reading in ("library", "relevant", "literal"):
            selector = GroupSAOLA(measure=score, reading=reading)
            rows = measure(data, selector)
            show(name, reading, rows.mean(axis=0), rows.std(axis=0))


if __name__ == "__main__":
    main(sys.argv[1:])
