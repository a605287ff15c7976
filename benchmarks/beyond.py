"""Settings beyond the paper's, on its data sets: what they select and what it is worth.

    python -m benchmarks.beyond quality      # AUC and size, by data set and setting
    python -m benchmarks.beyond chain        # selection, then L1 logistic regression
    python -m benchmarks.beyond noise        # features selected with permuted labels
    python -m benchmarks.beyond orders       # thirty orders of arrival
    python -m benchmarks.beyond text         # 20 Newsgroups bigrams: quality and time

``docs/beyond-the-paper.md`` shows what these print. The data sets are read from the
folder that ``FEATSTREAM_DATA`` names, or ``../shared/data``.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.feature_selection import chi2, f_classif
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from featstream import SAOLA, ConditionalSAOLA, SelectFromStream, SymmetricalUncertainty

DATA = Path(
    os.environ.get("FEATSTREAM_DATA", Path(__file__).parents[2] / "shared" / "data")
)
DISCRETE = ("dorothea", "dexter", "hiva_train", "thrombin_train")
CONTINUOUS = (
    "arcene",
    "dexter",
    "gisette_valid",
    "madelon",
    "leukemia",
    "lung_cancer",
)


def load(name, *, is_binary):
    """X and y with two classes, and the published split if there is one."""
    with np.load(DATA / f"{name}.npz", allow_pickle=False) as stored:
        held = {key: stored[key] for key in stored.files}
    parts = {}
    for key in [k for k in held if k.endswith("_format")]:
        p = key.removesuffix("_format")
        entries = held[p + "_data"], held[p + "_indices"].astype(np.int32)
        parts[p] = sparse.csc_array(
            (*entries, held[p + "_indptr"]), shape=tuple(held[p + "_shape"])
        )
    held |= parts
    given = []
    if "X_train" in held:
        X = [held["X_train"], held["X_test"]]
        X = sparse.vstack(X).tocsc() if sparse.issparse(X[0]) else np.vstack(X)
        y = np.concatenate([held["y_train"], held["y_test"]])
        n = len(held["y_train"])
        given = [(np.arange(n), np.arange(n, len(y)))]
    else:
        X, y = held["X"], held["y"]
        if "n_train" in held:
            n = int(held["n_train"])
            given = [(np.arange(n), np.arange(n, len(y)))]
    if is_binary:
        X = sparse.csc_array(X)
        X = sparse.csc_array(
            (np.ones(X.nnz, np.uint8), X.indices, X.indptr), shape=X.shape
        )
    elif sparse.issparse(X):
        X = X.toarray()
    return X, (y == np.unique(y)[-1]).astype(int), given


def splits(y, given, n_random):
    """The published split, and stratified random ones with a third held back."""
    rows = np.arange(len(y))
    return given + [
        train_test_split(rows, test_size=1 / 3, stratify=y, random_state=seed)
        for seed in range(n_random)
    ]


def score(X, y, train, test, chosen, *, is_scaled):
    """Accuracy and AUC of logistic regression (C = 1) on the chosen columns."""
    if not len(chosen):
        return max(y[test].mean(), 1 - y[test].mean()), 0.5
    A = X[:, chosen].tocsr() if sparse.issparse(X) else X[:, chosen].astype(float)
    fitted, judged = A[train], A[test]
    if is_scaled:
        scaler = StandardScaler().fit(fitted)
        fitted, judged = scaler.transform(fitted), scaler.transform(judged)
    model = LogisticRegression(C=1.0, max_iter=3000, solver="liblinear")
    model.fit(fitted.astype(float), y[train])
    found = model.decision_function(judged.astype(float))
    return float(np.mean((found > 0) == y[test])), roc_auc_score(y[test], found)


def ranking(X, y, size):
    """The features of highest chi-square, or of highest F for continuous data."""
    rank = chi2(X, y)[0] if sparse.issparse(X) else f_classif(X, y)[0]
    return np.sort(np.argsort(-np.nan_to_num(rank), kind="stable")[:size])


def l1(X, y, C=1.0):
    """The features that L1 logistic regression keeps."""
    model = LogisticRegression(l1_ratio=1, C=C, solver="liblinear", max_iter=3000)
    if sparse.issparse(X):
        model.fit(X.tocsr().astype(float), y)
    else:
        model.fit(StandardScaler().fit_transform(X.astype(float)), y)
    return np.flatnonzero(model.coef_[0])


def rows_of(X, rows):
    return X.tocsr()[rows].tocsc() if sparse.issparse(X) else X[rows]


def settings(measure):
    return {
        "SAOLA, the paper's": SAOLA(measure=measure),
        "conditional, no correction": ConditionalSAOLA(measure=measure),
        "SelectFromStream": SelectFromStream(measure=measure),
    }


def quality():
    for names, is_binary, n_random in ((DISCRETE, True, 3), (CONTINUOUS, False, 5)):
        measure = "su" if is_binary else "fisher-z"
        for name in names:
            X, y, given = load(name, is_binary=is_binary)
            found = {}
            for train, test in splits(y, given, n_random):
                part, labels = rows_of(X, train), y[train]
                sizes = []
                for label, selector in settings(measure).items():
                    chosen = selector.fit(part, labels).selected_
                    sizes.append(len(chosen))
                    found.setdefault(label, []).append((train, test, chosen))
                best = ranking(part, labels, sizes[-1])
                found.setdefault("ranking of the same size", []).append(
                    (train, test, best)
                )
                found.setdefault("L1 on all features", []).append(
                    (train, test, l1(part, labels))
                )
            for label, runs in found.items():
                figures = [
                    (len(run[2]), *score(X, y, *run, is_scaled=not is_binary))
                    for run in runs
                ]
                size, accuracy, auc = np.mean(figures, axis=0)
                print(f"| {name} | {label} | {size:.0f} | {accuracy:.3f} | {auc:.3f} |")
                sys.stdout.flush()


def chain():
    for name in ("news20_bigram", "dexter", "dorothea"):
        X, y, given = load(name, is_binary=True)
        train, test = given[0]
        part, labels = rows_of(X, train), y[train]
        kept = SelectFromStream(measure="su").fit(part, labels).selected_
        after = kept[l1(part[:, kept], labels)]
        alone = l1(part, labels)
        for label, chosen in (("L1 on all", alone), ("kept, then L1", after)):
            accuracy, auc = score(X, y, train, test, chosen, is_scaled=False)
            print(f"| {name} | {label} | {len(chosen)} | {accuracy:.4f} | {auc:.4f} |")
            sys.stdout.flush()


def noise(n_permutations=20):
    for name in dict.fromkeys((*DISCRETE, *CONTINUOUS)):
        is_binary = name in DISCRETE
        X, y, given = load(name, is_binary=is_binary)
        if given:
            X, y = rows_of(X, given[0][0]), y[given[0][0]]
        measure = "su" if is_binary else "fisher-z"
        candidates = {
            "SAOLA": SAOLA(measure=measure),
            "Bonferroni": ConditionalSAOLA(measure=measure, correction="bonferroni"),
            "SelectFromStream": SelectFromStream(measure=measure),
        }
        for label, selector in candidates.items():
            rng = np.random.default_rng(0)
            sizes = [
                len(selector.fit(X, rng.permutation(y)).selected_)
                for _ in range(n_permutations)
            ]
            n_runs, most = np.count_nonzero(sizes), max(sizes)
            print(f"| {name} | {label} | {np.mean(sizes):.1f} | {n_runs} | {most} |")
            sys.stdout.flush()


def orders(n_orders=30):
    for name in ("dorothea", "arcene", "hiva_train"):
        is_binary = name in DISCRETE
        X, y, given = load(name, is_binary=is_binary)
        if given:
            X, y = rows_of(X, given[0][0]), y[given[0][0]]
        for label, selector in settings("su" if is_binary else "fisher-z").items():
            rng, sets = np.random.default_rng(0), []
            for _ in range(n_orders):
                order = rng.permutation(X.shape[1])
                sets.append(set(order[selector.fit(X[:, order], y).selected_].tolist()))
            overlaps = [
                len(a & b) / max(len(a | b), 1)
                for i, a in enumerate(sets)
                for b in sets[:i]
            ]
            sizes = [len(found) for found in sets]
            print(
                f"| {name} | {label} | {np.mean(sizes):.0f} ± {np.std(sizes):.1f} | "
                f"{np.mean(overlaps):.2f} |"
            )
            sys.stdout.flush()


def text():
    X, y, given = load("news20_bigram", is_binary=True)
    train, test = given[0]
    part, labels = rows_of(X, train), y[train]
    strict = SymmetricalUncertainty(alpha=1e-4)
    candidates = {
        "SAOLA, threshold 0": SAOLA(measure="su"),
        "SelectFromStream()": SelectFromStream(),
        "redundancy_alpha=0.001": SelectFromStream(redundancy_alpha=0.001),
        "redundancy_alpha=1e-4": SelectFromStream(redundancy_alpha=1e-4),
        "redundancy_alpha=1e-7": SelectFromStream(redundancy_alpha=1e-7),
        "conditional 1e-4/0.001": ConditionalSAOLA(
            measure=strict, redundancy_alpha=0.001
        ),
        "conditional, Bonferroni/1e-7": ConditionalSAOLA(
            measure="su", correction="bonferroni", redundancy_alpha=1e-7
        ),
    }
    baseline = None
    for label, selector in candidates.items():
        selector.fit(part[:, :5000], labels)  # compiles
        began = time.process_time()
        chosen = selector.fit(part, labels).selected_
        spent = time.process_time() - began
        baseline = spent if baseline is None else baseline
        accuracy, auc = score(X, y, train, test, chosen, is_scaled=False)
        ratio = spent / baseline
        print(f"| {label} | {len(chosen)} | {accuracy:.4f} | {auc:.4f} | {ratio:.1f} |")
        sys.stdout.flush()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for word in sys.argv[1:] or ["quality", "chain", "noise", "orders", "text"]:
        print(f"\n{word}")
        {f.__name__: f for f in (quality, chain, noise, orders, text)}[word]()
